//! The `cladist` program as a library: what its commands do, without the terminal.

pub mod demo;
