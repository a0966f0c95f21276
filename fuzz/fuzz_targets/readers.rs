//! No bytes make a corpus reader panic, and every record is counted once.
#![no_main]

use cladist_core::readers::{Expect, FORMATS, ReadOptions, Reader};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((&choice, bytes)) = input.split_first() else { return };
    // One value past the table means: sniff.
    let streams: Vec<_> = FORMATS.iter().filter(|info| !info.is_folder()).collect();
    let format = streams.get(choice as usize % (streams.len() + 1)).map(|info| info.format);
    let expect = if choice < 128 { Expect::Labelled } else { Expect::Text };
    let options = ReadOptions { max_record: 1 << 16, expect, ..ReadOptions::default() };
    let Ok(mut reader) = Reader::stream("fuzz", std::io::Cursor::new(bytes.to_vec()), format, &options) else { return };
    let (mut kept, mut rejected) = (0, 0);
    for record in reader.by_ref() {
        match record {
            Ok(_) => kept += 1,
            Err(_) => rejected += 1,
        }
    }
    let tally = reader.tally();
    assert_eq!((tally.kept, tally.rejected), (kept, rejected));
    assert_eq!(tally.read, kept + rejected + tally.dropped);
});
