//! The library as a program that embeds it sees it: no terminal, no flags.

#[cfg(test)]
mod ensembles;
#[cfg(test)]
mod interruptions;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod models;
#[cfg(test)]
mod streams;
#[cfg(test)]
mod support;
#[cfg(test)]
mod trainings;
