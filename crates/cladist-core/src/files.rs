//! Opening files: gzip and Zstandard are recognised by their first bytes, whatever the name says.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use crate::error::{Error, Result};

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// Opens a file for reading lines, decompressed if need be. A UTF-8 byte order mark is left to the caller.
pub fn open(path: &Path) -> Result<Box<dyn BufRead + Send>> {
    let file = File::open(path).map_err(Error::io("read", path))?;
    decompress(file).map_err(Error::io("read", path))
}

/// Decompresses a stream if it starts like gzip or Zstandard.
pub fn decompress(stream: impl Read + Send + 'static) -> std::io::Result<Box<dyn BufRead + Send>> {
    let mut stream = BufReader::with_capacity(1 << 16, stream);
    let start = stream.fill_buf()?;
    if start.starts_with(GZIP) {
        Ok(Box::new(BufReader::with_capacity(1 << 16, flate2::bufread::MultiGzDecoder::new(stream))))
    } else if start.starts_with(ZSTD) {
        let decoder = ruzstd::decoding::StreamingDecoder::new(stream).map_err(std::io::Error::other)?;
        Ok(Box::new(BufReader::with_capacity(1 << 16, decoder)))
    } else {
        Ok(Box::new(stream))
    }
}
