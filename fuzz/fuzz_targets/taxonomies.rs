//! No bytes make a taxonomy parser panic, and what parses is consistent.
#![no_main]

use cladist_core::taxonomy::io::{FORMATS, ReadOptions, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((&choice, bytes)) = input.split_first() else { return };
    let format = FORMATS[choice as usize % FORMATS.len()].format;
    let Ok(loaded) = parse(bytes, format, &ReadOptions::default()) else { return };
    let taxonomy = loaded.taxonomy;
    for label in taxonomy.labels() {
        assert_eq!(taxonomy.get(taxonomy.id(label)), Some(label));
        assert!(taxonomy.parents(label).iter().all(|&parent| parent < label));
        let shortest = taxonomy.parents(label).iter().map(|&parent| taxonomy.level(parent) + 1).min();
        assert!(taxonomy.level(label) == 1 || shortest == Some(taxonomy.level(label)));
    }
});
