//! NumPy's `.npy`, as far as word vectors need it: matrices of floating-point numbers.

use half::f16;

/// A matrix in a file's bytes.
#[derive(Debug)]
pub(super) struct Matrix<'a> {
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// Bytes of a number: 2, 4 or 8.
    size: usize,
    /// Stored column by column.
    by_columns: bool,
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
        let by_columns = match value("fortran_order").as_deref() {
            Some("False") => false,
            Some("True") => true,
            _ => return Err(not()),
        };
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
        Ok(Self { rows, columns, size, by_columns, data })
    }

    pub(super) fn row(&self, number: usize) -> Option<Vec<f32>> {
        let (first, step) = if self.by_columns { (number, self.rows) } else { (number * self.columns, 1) };
        (number < self.rows).then(|| (0..self.columns).filter_map(|n| self.value(first + n * step)).collect())
    }

    fn value(&self, place: usize) -> Option<f32> {
        let bytes = self.data.get(place * self.size..(place + 1) * self.size)?;
        Some(match self.size {
            2 => f16::from_le_bytes(bytes.try_into().ok()?).to_f32(),
            4 => f32::from_le_bytes(bytes.try_into().ok()?),
            _ => f64::from_le_bytes(bytes.try_into().ok()?) as f32,
        })
    }
}
