//! Typed access to a JSON object, with messages that name the key.

use serde_json::{Map, Value};

/// The content of a `config.json`.
pub(super) struct Fields<'a>(pub(super) &'a Map<String, Value>);

/// The largest sizes that are read: far above any encoder, and far below what overflows or exhausts memory unseen.
pub(super) mod most {
    pub(crate) const VOCABULARY: usize = 1 << 24;
    pub(crate) const WIDTH: usize = 1 << 16;
    pub(crate) const MIDDLE: usize = 1 << 18;
    pub(crate) const LAYERS: usize = 1 << 10;
    pub(crate) const POSITIONS: usize = 1 << 20;
}

impl Fields<'_> {
    fn present(&self, key: &str) -> Option<&Value> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    pub(super) fn text(&self, key: &str) -> Result<String, String> {
        let value = self.present(key).ok_or_else(|| format!("`{key}` is missing"))?;
        Ok(value.as_str().ok_or_else(|| format!("`{key}` must be a string: {value}"))?.to_owned())
    }

    pub(super) fn text_or(&self, key: &str, default: &str) -> Result<String, String> {
        if self.present(key).is_some() { self.text(key) } else { Ok(default.to_owned()) }
    }

    /// Whether a key is there and true.
    pub(super) fn is_set(&self, key: &str) -> bool {
        self.present(key).and_then(Value::as_bool).unwrap_or(false)
    }

    pub(super) fn size(&self, key: &str, most: usize) -> Result<usize, String> {
        let value = self.present(key).ok_or_else(|| format!("`{key}` is missing"))?;
        let size = value.as_u64().and_then(|value| usize::try_from(value).ok());
        size.filter(|&size| size <= most)
            .ok_or_else(|| format!("`{key}` must be a whole number of at most {most}: {value}"))
    }

    pub(super) fn size_or(&self, key: &str, default: usize, most: usize) -> Result<usize, String> {
        if self.present(key).is_some() { self.size(key, most) } else { Ok(default) }
    }

    /// A finite number that is not negative.
    pub(super) fn number_or(&self, key: &str, default: f32) -> Result<f32, String> {
        let Some(value) = self.present(key) else { return Ok(default) };
        let number = value.as_f64().map(|number| number as f32);
        number
            .filter(|number| number.is_finite() && *number >= 0.0)
            .ok_or_else(|| format!("`{key}` must be a finite number of at least 0: {value}"))
    }

    /// A share of what is dropped.
    pub(super) fn share_or(&self, key: &str, default: f32) -> Result<f32, String> {
        let share = self.number_or(key, default)?;
        if share < 1.0 { Ok(share) } else { Err(format!("`{key}` must be below 1: {share}")) }
    }
}
