//! The safetensors files of a folder.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use half::{bf16, f16};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

use crate::error::{Error, Result};

/// What git leaves in place of a file that git-lfs holds begins so.
const POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";

/// The files, and which of their tensors were taken.
pub(super) struct Files {
    /// Path and content of each file.
    files: Vec<(PathBuf, Vec<u8>)>,
    /// Name without prefix → file and full name.
    places: BTreeMap<String, (usize, String)>,
    taken: BTreeSet<String>,
}

fn refuse(path: &Path, problem: String) -> Error {
    Error::encoder(path, problem)
}

impl Files {
    /// Reads the files. Heads and language models put the encoder under a prefix (`bert.`, `model.encoder.`, …): it is
    /// what stands before `words`, the name of the word table, and is left out of names.
    pub(super) fn open(folder: &Path, words: &str) -> Result<Self> {
        let mut files = Vec::new();
        for path in paths(folder)? {
            let bytes = fs::read(&path).map_err(cladist_core::Error::io("read", &path))?;
            if bytes.starts_with(POINTER) {
                return Err(Error::Encoder {
                    path,
                    problem: "it is a Git LFS pointer, not the weights".to_owned(),
                    remedy: Some(cladist_core::files::FETCH_LFS),
                    source: None,
                });
            }
            files.push((path, bytes));
        }
        let mut names = Vec::new();
        for (number, (path, bytes)) in files.iter().enumerate() {
            let parsed = SafeTensors::deserialize(bytes).map_err(|error| Error::encoder_by(path, error))?;
            names.extend(parsed.names().into_iter().map(|name| (number, name.to_owned())));
        }
        let prefix = (names.iter())
            .filter_map(|(_, name)| name.strip_suffix(words))
            .min_by_key(|prefix| prefix.len())
            .unwrap_or_default()
            .to_owned();
        let places = names
            .into_iter()
            .map(|(number, name)| {
                let plain = name.strip_prefix(&prefix).unwrap_or(&name);
                // Names of the first TensorFlow conversions.
                let plain = plain.replace("LayerNorm.gamma", "LayerNorm.weight");
                (plain.replace("LayerNorm.beta", "LayerNorm.bias"), (number, name))
            })
            .collect();
        Ok(Self { files, places, taken: BTreeSet::new() })
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.places.contains_key(name)
    }

    /// The values of tensors, given with the shapes they must have, one after the other; `None` if one of them is not
    /// there.
    pub(super) fn take(&mut self, tensors: &[(String, Vec<usize>)]) -> Result<Option<Vec<f32>>> {
        if tensors.is_empty() || !tensors.iter().all(|(name, _)| self.has(name)) {
            return Ok(None);
        }
        let mut values = Vec::new();
        for (name, shape) in tensors {
            let (file, full) = &self.places[name];
            let (path, bytes) = &self.files[*file];
            let parsed = SafeTensors::deserialize(bytes).map_err(|error| Error::encoder_by(path, error))?;
            let view = parsed.tensor(full).map_err(|error| Error::encoder_by(path, error))?;
            if view.shape() != shape {
                let found = view.shape();
                let problem =
                    format!("tensor `{full}` has shape {found:?}, not {shape:?} as config.json says");
                return Err(refuse(path, problem));
            }
            let from = values.len();
            append(&view, &mut values)
                .map_err(|problem| refuse(path, format!("tensor `{full}` {problem}")))?;
            if values[from..].iter().any(|value| !value.is_finite()) {
                return Err(refuse(path, format!("tensor `{full}` holds values that are not finite")));
            }
            self.taken.insert(full.clone());
        }
        Ok(Some(values))
    }

    /// What is left, but for the position numbers that older versions wrote as a tensor.
    pub(super) fn unused(&self) -> Vec<String> {
        let full = self.places.values().map(|(_, name)| name);
        full.filter(|name| !self.taken.contains(*name) && !name.ends_with("position_ids")).cloned().collect()
    }
}

/// `model.safetensors`, or the shards that its index lists.
fn paths(folder: &Path) -> Result<Vec<PathBuf>> {
    let single = folder.join("model.safetensors");
    let index = folder.join("model.safetensors.index.json");
    if single.is_file() {
        return Ok(vec![single]);
    }
    if !index.is_file() {
        let old = folder.join("pytorch_model.bin").is_file();
        let how = if old { "; convert pytorch_model.bin to safetensors first" } else { "" };
        return Err(refuse(folder, format!("it has no model.safetensors{how}")));
    }
    let text = fs::read_to_string(&index).map_err(cladist_core::Error::io("read", &index))?;
    let parsed: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| Error::encoder_by(&index, error))?;
    let map = parsed.get("weight_map").and_then(|map| map.as_object());
    let map = map.ok_or_else(|| refuse(&index, "it has no `weight_map`".into()))?;
    let names: BTreeSet<&str> = map.values().filter_map(|name| name.as_str()).collect();
    if let Some(name) = names.iter().find(|name| name.contains(['/', '\\'])) {
        return Err(refuse(&index, format!("`{name}` is not the name of a file beside it")));
    }
    Ok(names.into_iter().map(|name| folder.join(name)).collect())
}

fn append(view: &TensorView<'_>, values: &mut Vec<f32>) -> Result<(), String> {
    let data = view.data();
    match view.dtype() {
        Dtype::F32 => values.extend(data.as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes))),
        Dtype::F16 => {
            values.extend(data.as_chunks::<2>().0.iter().map(|&bytes| f16::from_le_bytes(bytes).to_f32()));
        }
        Dtype::BF16 => {
            values.extend(data.as_chunks::<2>().0.iter().map(|&bytes| bf16::from_le_bytes(bytes).to_f32()));
        }
        other => return Err(format!("is of type {other:?}; f32, f16 or bf16 is needed")),
    }
    Ok(())
}
