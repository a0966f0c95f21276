//! NumPy's `.npy`, as far as word vectors need it: matrices of floating-point numbers, row by row.

use half::f16;

/// A matrix in a file's bytes.
#[derive(Debug)]
pub(super) struct Matrix<'a> {
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// Bytes of a number: 2, 4 or 8.
    size: usize,
    data: &'a [u8],
}

impl<'a> Matrix<'a> {
    /// Understands the header, or says why not.
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, String> {
        let not = || "not a NumPy file".to_owned();
        let rest = bytes.strip_prefix(b"\x93NUMPY").ok_or_else(not)?;
        let (&[version, _], rest) = rest.split_first_chunk::<2>().ok_or_else(not)?;
        let (length, rest) = match version {
            1 => rest.split_first_chunk().map(|(n, rest)| (usize::from(u16::from_le_bytes(*n)), rest)),
            _ => rest.split_first_chunk().map(|(n, rest)| (u32::from_le_bytes(*n) as usize, rest)),
        }
        .ok_or_else(not)?;
        let (header, data) = rest.split_at_checked(length).ok_or_else(not)?;
        let header = String::from_utf8_lossy(header);
        let value = |key: &str| {
            let after = header.split_once(&format!("'{key}':"))?.1.trim_start();
            let end = if after.starts_with('(') { after.find(')')? + 1 } else { after.find([',', '}'])? };
            Some(after[..end].trim().to_owned())
        };
        let kind = value("descr").ok_or_else(not)?;
        let size = match kind.trim_matches('\'') {
            "<f2" => 2,
            "<f4" => 4,
            "<f8" => 8,
            _ => return Err(format!("numbers of type {kind}; <f2, <f4 or <f8 is needed")),
        };
        if value("fortran_order").as_deref() != Some("False") {
            return Err("it is stored column by column\nhint: save numpy.ascontiguousarray(…)".to_owned());
        }
        let shape = value("shape").ok_or_else(not)?;
        let shape: Vec<usize> = shape
            .trim_matches(['(', ')'])
            .split(',')
            .filter(|part| !part.trim().is_empty())
            .filter_map(|part| part.trim().parse().ok())
            .collect();
        let &[rows, columns] = shape.as_slice() else {
            return Err("a matrix with a row for each word is needed".to_owned());
        };
        let wanted = rows.checked_mul(columns).and_then(|n| n.checked_mul(size));
        if columns == 0 || wanted != Some(data.len()) {
            return Err(format!("{rows} × {columns} numbers do not fit {} bytes", data.len()));
        }
        Ok(Self { rows, columns, size, data })
    }

    pub(super) fn row(&self, number: usize) -> Option<Vec<f32>> {
        let width = self.columns * self.size;
        let row = self.data.get(number * width..(number + 1) * width)?;
        Some(match self.size {
            2 => row.as_chunks().0.iter().map(|&bytes| f16::from_le_bytes(bytes).to_f32()).collect(),
            4 => row.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect(),
            _ => row.as_chunks().0.iter().map(|&bytes| f64::from_le_bytes(bytes) as f32).collect(),
        })
    }
}
