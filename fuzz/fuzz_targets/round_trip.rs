//! What a writer writes reads back as the same taxonomy.
#![no_main]

use cladist_core::taxonomy::io::{FORMATS, Format, ReadOptions, from_json, parse, to_json, write};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((&choice, bytes)) = input.split_first() else { return };
    let options = ReadOptions::default();
    let source = [Format::Tsv, Format::Json, Format::List, Format::Taxonomy][choice as usize % 4];
    let Ok(loaded) = parse(bytes, source, &options) else { return };
    let taxonomy = loaded.taxonomy;
    assert_eq!(from_json(&to_json(&taxonomy)).as_ref(), Ok(&taxonomy));
    for info in FORMATS.iter().filter(|info| info.is_writable()) {
        let mut out = Vec::new();
        if write(&taxonomy, info.format, &mut out).is_ok() {
            let again = parse(&out, info.format, &options).expect("what was written reads");
            assert_eq!(again.taxonomy.n_labels(), taxonomy.n_labels(), "{}", info.name);
        }
    }
});
