//! The command line as scripts see it: arguments in, standard output, standard error, files and exit code out.

#[cfg(test)]
mod analyze;
#[cfg(test)]
mod bad_corpora;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod data;
#[cfg(test)]
mod data_conversion;
#[cfg(test)]
mod decoding;
#[cfg(test)]
mod demo;
#[cfg(test)]
mod documents_in;
#[cfg(test)]
mod ensembles;
#[cfg(test)]
mod experiment;
#[cfg(test)]
mod explain;
#[cfg(test)]
mod fields;
#[cfg(test)]
mod help;
#[cfg(test)]
mod interruption;
#[cfg(test)]
mod layer_guided;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod neural;
#[cfg(test)]
mod new_labels;
#[cfg(test)]
mod outputs;
#[cfg(test)]
mod printed;
#[cfg(test)]
mod reproducibility;
#[cfg(test)]
mod round_trip;
#[cfg(test)]
mod run_folders;
#[cfg(test)]
mod settings;
#[cfg(test)]
mod support;
#[cfg(test)]
mod taxonomy;
#[cfg(test)]
mod taxonomy_problems;
