//! Files as memory: what is not looked at is not read.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;

/// A file that stands in memory for as long as this lives.
#[derive(Debug)]
pub struct Mapped(memmap2::Mmap);

impl Mapped {
    /// Maps a file, which nobody may write to meanwhile. Replacing it by another one of the same name is fine.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        // SAFETY: the values are plain numbers, so whatever the file holds is valid; that it is not written to in place
        // is how bundles are kept, which are moved in whole.
        unsafe { memmap2::Mmap::map(&file) }.map(Self)
    }

    /// All bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Little-endian numbers in a range of bytes; `None` if they do not lie as this machine has them in memory.
    #[must_use]
    pub fn floats(&self, range: Range<usize>) -> Option<&[f32]> {
        let bytes = self.0.get(range)?;
        if cfg!(target_endian = "big") {
            return None;
        }
        // SAFETY: any four bytes are an `f32`.
        let (before, values, after) = unsafe { bytes.align_to::<f32>() };
        (before.is_empty() && after.is_empty()).then_some(values)
    }
}

/// The bytes of numbers as a file has them, little-endian; `None` if this machine has them the other way round.
#[must_use]
pub fn bytes_of(values: &[f32]) -> Option<&[u8]> {
    if cfg!(target_endian = "big") {
        return None;
    }
    // SAFETY: an `f32` is four bytes, each of them valid, and bytes need no alignment.
    Some(unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_from_a_file_where_they_are_aligned() {
        let path = std::env::temp_dir().join(format!("cladist-mapped-{}", std::process::id()));
        let values = [1.5f32, -2.0, f32::MIN_POSITIVE, 1e30];
        std::fs::write(&path, bytes_of(&values).unwrap()).unwrap();
        let mapped = Mapped::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(mapped.floats(0..16).unwrap(), values);
        assert_eq!(mapped.floats(4..12).unwrap(), &values[1..3]);
        assert!(
            mapped.floats(2..14).is_none() && mapped.floats(0..6).is_none() && mapped.floats(0..20).is_none()
        );
        assert_eq!(mapped.bytes().len(), 16);
        assert!(Mapped::open(&path).is_err());
    }
}
