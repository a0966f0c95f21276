//! Opening text files: gzip and Zstandard are recognised by their first bytes, whatever the name says, and what is no
//! text is refused by name before anybody tries to parse it.

mod waiting;
mod zstd;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use crate::error::{Error, Result};
use crate::job::Cancel;

pub use waiting::Waiting;

const GZIP: &[u8] = &[0x1f, 0x8b];
const UTF16: [&[u8]; 2] = [&[0xff, 0xfe], &[0xfe, 0xff]];
const LFS: &[u8] = b"version https://git-lfs.github.com/spec/";

/// What helps where Git LFS left a pointer in the place of a file.
pub const FETCH_LFS: &str = "`git lfs pull` fetches the file";

/// How much of a file is looked at to tell text from other data.
const LOOKED_AT: usize = 1 << 13;

/// The most bytes that are read of a file that is held in memory as a whole.
const WHOLE: u64 = 2 << 30;

/// A file that should be text and is something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotText {
    /// A file that Git LFS left in the place of the real one.
    #[error("it is a Git LFS pointer, not the file itself")]
    LfsPointer,
    /// UTF-16 with a byte order mark.
    #[error("it is UTF-16 text")]
    Utf16,
    /// NUL bytes, as no text has them.
    #[error("it is binary data, or text in another encoding than UTF-8")]
    Binary,
    /// More than fits.
    #[error("it has more than {WHOLE} bytes")]
    TooLong,
}

impl From<NotText> for io::Error {
    fn from(found: NotText) -> Self {
        Self::new(io::ErrorKind::InvalidData, found)
    }
}

impl NotText {
    /// What would help.
    #[must_use]
    pub fn remedy(self) -> Option<&'static str> {
        match self {
            Self::LfsPointer => Some(FETCH_LFS),
            Self::Utf16 => Some("save it as UTF-8"),
            Self::Binary | Self::TooLong => None,
        }
    }

    /// What a file is that begins like this, if it is no text.
    fn of(start: &[u8]) -> Option<Self> {
        let start = &start[..start.len().min(LOOKED_AT)];
        if start.starts_with(LFS) {
            return Some(Self::LfsPointer);
        }
        if UTF16.iter().any(|mark| start.starts_with(mark)) {
            return Some(Self::Utf16);
        }
        let nuls = start.iter().filter(|&&byte| byte == 0).count();
        // A stray NUL among words is no reason to refuse a text; the end of the block may cut a character.
        let is_text = match std::str::from_utf8(start) {
            Ok(_) => true,
            Err(error) => error.error_len().is_none(),
        };
        (nuls > 0 && (!is_text || nuls * 5 > start.len())).then_some(Self::Binary)
    }
}

/// Opens a file for reading text, decompressed if need be. A UTF-8 byte order mark is left to the caller. Waiting for a
/// pipe ends with [`Error::Cancelled`] once that is asked for.
pub fn open(path: &Path, cancel: &Cancel) -> Result<Box<dyn BufRead + Send>> {
    let opened = std::fs::metadata(path).and_then(|metadata| {
        // Pipes and devices have paths too.
        let waits = !metadata.is_file() && !metadata.is_dir();
        if waits { decompress(Waiting::open(path, cancel)?) } else { decompress(File::open(path)?) }
    });
    opened.map_err(Error::io("read", path))
}

/// The whole text of a file, decompressed if need be; 2 GiB at most.
pub fn read(path: &Path, cancel: &Cancel) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = open(path, cancel)?
        .take(WHOLE + 1)
        .read_to_end(&mut bytes)
        .and_then(|n| if n as u64 > WHOLE { Err(NotText::TooLong.into()) } else { Ok(()) });
    read.map_err(Error::io("read", path))?;
    Ok(bytes)
}

/// Decompresses a stream of text if it starts like gzip or Zstandard; an error if what comes out is no text.
pub fn decompress(stream: impl Read + Send + 'static) -> io::Result<Box<dyn BufRead + Send>> {
    let mut stream = BufReader::with_capacity(1 << 16, stream);
    let start = stream.fill_buf()?;
    let mut text: Box<dyn BufRead + Send> = if start.starts_with(GZIP) {
        Box::new(BufReader::with_capacity(1 << 16, flate2::bufread::MultiGzDecoder::new(stream)))
    } else if zstd::is_zstd(start) {
        Box::new(BufReader::with_capacity(1 << 16, zstd::Zstd::new(stream)))
    } else {
        Box::new(stream)
    };
    match NotText::of(text.fill_buf()?) {
        Some(found) => Err(found.into()),
        None => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_bytes(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        decompress(io::Cursor::new(bytes.to_vec()))?.read_to_end(&mut text)?;
        Ok(text)
    }

    fn refused(bytes: &[u8]) -> String {
        let error = read_bytes(bytes).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
        error.to_string()
    }

    fn compressed(text: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(text, ruzstd::encoding::CompressionLevel::Fastest)
    }

    #[test]
    fn what_is_no_text_is_named() {
        assert!(
            refused(b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n")
                .contains("Git LFS pointer")
        );
        assert!(refused(b"\xff\xfei\0d\0").contains("UTF-16"));
        assert!(refused(&[0; 100]).contains("binary data"));
        assert!(refused(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR").contains("binary data"));
        assert!(refused(&compressed(&[0; 100])).contains("binary data"));
        for text in ["", "a stray \0 among words", "ä"] {
            assert_eq!(read_bytes(text.as_bytes()).unwrap(), text.as_bytes());
        }
        // The end of the block cuts a character.
        let long = "a\0".to_owned() + &"ä".repeat(LOOKED_AT);
        assert_eq!(read_bytes(long.as_bytes()).unwrap(), long.as_bytes());
    }

    #[test]
    fn every_frame_of_a_zstandard_file_is_read() {
        let mut bytes = b"\x50\x2a\x4d\x18\x03\0\0\0abc".to_vec();
        bytes.extend(compressed(b"first\n"));
        bytes.extend(b"\x5f\x2a\x4d\x18\x01\0\0\0x");
        bytes.extend(compressed(b"second\n"));
        assert_eq!(read_bytes(&bytes).unwrap(), b"first\nsecond\n");
        let error = read_bytes(&[&compressed(b"first\n")[..], b"more"].concat()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn damaged_zstandard_is_bad_data_wherever_the_damage_is() {
        let text: String = (0..2000).map(|n| format!("line {} of many {n}\n", n % 7)).collect();
        let whole = compressed(text.as_bytes());
        assert_eq!(read_bytes(&whole).unwrap(), text.as_bytes());
        for end in [5, 9, whole.len() / 2, whole.len() - 1] {
            let error = read_bytes(&whole[..end]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{end}");
            assert!(!error.to_string().contains(['{', '(']), "{error}");
        }
        let mut damaged = 0;
        for at in (5..whole.len()).step_by(7) {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x55;
            match read_bytes(&bytes) {
                Ok(read) => assert_eq!(read, text.as_bytes(), "damage at {at} goes unnoticed"),
                Err(error) => {
                    assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
                    damaged += 1;
                }
            }
        }
        assert!(damaged > 0);
    }
}
