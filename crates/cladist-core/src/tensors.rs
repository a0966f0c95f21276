//! Flat arrays in one safetensors file: how fitted models are stored. Reading trusts nothing.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use safetensors::{Dtype, SafeTensors, View};

use crate::bundle::{self, BundleError};
use crate::error::{Error, Result};

/// An array to be written, little-endian whatever the machine.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Array<'a> {
    U32(&'a [u32]),
    U64(&'a [u64]),
    F32(&'a [f32]),
}

/// [`View`] wants its shape by reference.
struct Shaped<'a> {
    array: Array<'a>,
    shape: [usize; 1],
}

impl View for Shaped<'_> {
    fn dtype(&self) -> Dtype {
        match self.array {
            Array::U32(_) => Dtype::U32,
            Array::U64(_) => Dtype::U64,
            Array::F32(_) => Dtype::F32,
        }
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Owned(match self.array {
            Array::U32(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            Array::U64(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            Array::F32(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        })
    }

    fn data_len(&self) -> usize {
        match self.array {
            Array::U32(values) => size_of_val(values),
            Array::U64(values) => size_of_val(values),
            Array::F32(values) => size_of_val(values),
        }
    }
}

/// Writes named arrays; the same arrays give the same bytes.
pub(crate) fn write(path: &Path, arrays: &[(&str, Array)]) -> Result<()> {
    let shaped = arrays.iter().map(|&(name, array)| {
        let length = match array {
            Array::U32(values) => values.len(),
            Array::U64(values) => values.len(),
            Array::F32(values) => values.len(),
        };
        (name, Shaped { array, shape: [length] })
    });
    safetensors::serialize_to_file(shaped, None, path).map_err(|error| match error {
        safetensors::SafeTensorError::IoError(source) => Error::io("write", path)(source),
        other => Error::io("write", path)(std::io::Error::other(other)),
    })
}

/// A file of arrays, read whole.
#[derive(Debug)]
pub(crate) struct Arrays {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl Arrays {
    pub(crate) fn read(path: &Path) -> Result<Self> {
        Ok(Self { path: path.to_owned(), bytes: bundle::read(path)? })
    }

    /// The error for content that is well-formed but makes no sense.
    pub(crate) fn refuse(&self, reason: impl Into<String>) -> Error {
        bundle::content(&self.path, reason)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        SafeTensors::deserialize(&self.bytes).is_ok_and(|file| file.tensor(name).is_ok())
    }

    fn array<const N: usize, T>(
        &self,
        name: &str,
        dtype: Dtype,
        decode: impl Fn([u8; N]) -> T,
    ) -> Result<Vec<T>> {
        let file = SafeTensors::deserialize(&self.bytes)
            .map_err(|error| BundleError::content_by(&self.path, error))?;
        let tensor = file.tensor(name).map_err(|_| self.refuse(format!("it has no array `{name}`")))?;
        if tensor.dtype() != dtype || tensor.shape().len() != 1 {
            return Err(self.refuse(format!(
                "array `{name}` is {:?} of shape {:?}, not {dtype:?} in one dimension",
                tensor.dtype(),
                tensor.shape()
            )));
        }
        let (values, _) = tensor.data().as_chunks::<N>();
        let mut decoded = Vec::new();
        decoded.try_reserve_exact(values.len()).map_err(|_| {
            self.refuse(format!("there is no memory for the {} numbers of `{name}`", values.len()))
        })?;
        decoded.extend(values.iter().map(|&bytes| decode(bytes)));
        Ok(decoded)
    }

    pub(crate) fn u32(&self, name: &str) -> Result<Vec<u32>> {
        self.array(name, Dtype::U32, u32::from_le_bytes)
    }

    pub(crate) fn u64(&self, name: &str) -> Result<Vec<u64>> {
        self.array(name, Dtype::U64, u64::from_le_bytes)
    }

    /// Numbers of which none is NaN or infinite.
    pub(crate) fn f32(&self, name: &str) -> Result<Vec<f32>> {
        let values = self.array(name, Dtype::F32, f32::from_le_bytes)?;
        match values.iter().find(|value| !value.is_finite()) {
            Some(value) => Err(self.refuse(format!("array `{name}` holds {value}"))),
            None => Ok(values),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn arrays_come_back_as_written_and_bytes_repeat() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (folder.path().join("one"), folder.path().join("two"));
        let arrays = [
            ("b", Array::U32(&[1, 2, u32::MAX])),
            ("a", Array::F32(&[0.5, -1.0])),
            ("c", Array::U64(&[7])),
            ("empty", Array::U32(&[])),
        ];
        write(&one, &arrays).unwrap();
        write(&two, &arrays).unwrap();
        assert_eq!(fs::read(&one).unwrap(), fs::read(&two).unwrap());
        let read = Arrays::read(&one).unwrap();
        assert_eq!(read.u32("b").unwrap(), [1, 2, u32::MAX]);
        assert_eq!(read.f32("a").unwrap(), [0.5, -1.0]);
        assert_eq!(read.u64("c").unwrap(), [7]);
        assert_eq!(read.u32("empty").unwrap(), [] as [u32; 0]);
        assert!(read.has("a") && !read.has("z"));
    }

    #[test]
    fn what_is_not_there_or_not_a_number_is_refused_with_the_name_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weights");
        write(&path, &[("a", Array::F32(&[f32::NAN])), ("b", Array::U64(&[1]))]).unwrap();
        let read = Arrays::read(&path).unwrap();
        for refused in [read.f32("a").map(|_| ()), read.u32("b").map(|_| ()), read.u32("c").map(|_| ())] {
            let message = refused.unwrap_err().to_string();
            assert!(message.contains("weights") && message.contains("cannot be used"), "{message}");
        }
        fs::write(&path, b"not safetensors").unwrap();
        assert!(Arrays::read(&path).unwrap().u32("a").is_err());
    }

    #[test]
    fn sizes_that_a_header_makes_up_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weights");
        let file = |length: u64, header: &str| {
            fs::write(&path, [&length.to_le_bytes(), header.as_bytes(), &[0; 8]].concat()).unwrap();
            Arrays::read(&path).unwrap().u64("a").unwrap_err().to_string()
        };
        let array = |shape: &str, end: u64| {
            format!(r#"{{"a":{{"dtype":"U64","shape":[{shape}],"data_offsets":[0,{end}]}}}}"#)
        };
        let most = u64::MAX.to_string();
        for (shape, end) in
            [("2305843009213693952", 8), (most.as_str(), 8), ("1", u64::MAX), ("4,4611686018427387904", 8)]
        {
            let header = array(shape, end);
            let message = file(header.len() as u64, &header);
            assert!(message.contains("weights"), "{message}");
        }
        assert!(file(u64::MAX, &array("1", 8)).contains("weights"));
    }

    #[test]
    fn a_pointer_of_git_lfs_is_named_as_such() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weights");
        fs::write(&path, "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n").unwrap();
        let message = Arrays::read(&path).unwrap_err().to_string();
        assert!(message.contains("weights") && message.contains("Git LFS"), "{message}");
    }
}
