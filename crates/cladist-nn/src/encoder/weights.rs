//! Encoders from and to Hugging Face folders.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, Tensor, TensorData};
use half::{bf16, f16};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

use super::config::{EncoderConfig, Family};
use super::names::{Slot, Start, slots};
use super::{Embeddings, Encoder, Layer, Pooler};
use crate::error::{Error, Result};
use crate::random::normal;

/// Which tensors of a folder an encoder did not find or did not use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoadReport {
    /// Tensors that no file has; they start at random.
    pub missing: Vec<String>,
    /// Tensors that the encoder has no place for.
    pub unused: Vec<String>,
}

impl Encoder {
    /// Reads an encoder from a folder with `config.json` and `model.safetensors` (or its shards).
    ///
    /// With `pooler`, one is made at random if the files have none; without, theirs is left out.
    pub fn load(folder: &Path, pooler: bool, seed: u64, device: &Device) -> Result<(Self, LoadReport)> {
        let config = EncoderConfig::read(folder)?;
        let mut files = Files::open(folder)?;
        let mut report = LoadReport::default();
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut lost = Vec::new();
        let mut values = Vec::new();
        for slot in slots(&config, pooler) {
            match files.take(&slot)? {
                Some(found) => values.push((slot, found)),
                None => {
                    let absent = slot.names.iter().filter(|name| !files.has(name)).cloned();
                    if slot.optional {
                        report.missing.extend(absent);
                        let start = start(&slot, config.initializer_range, &mut random);
                        values.push((slot, start));
                    } else {
                        lost.extend(absent);
                    }
                }
            }
        }
        if let Some(first) = lost.first() {
            let rest = if lost.len() > 1 { format!(" and {} more", lost.len() - 1) } else { String::new() };
            let problem = format!("the weights have no tensor `{first}`{rest}");
            return Err(Error::Encoder { path: folder.to_owned(), problem });
        }
        report.unused = files.unused();
        Ok((assemble(config, values, device), report))
    }

    /// An encoder with random weights.
    #[must_use]
    pub fn random(config: EncoderConfig, pooler: bool, seed: u64, device: &Device) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let values = slots(&config, pooler)
            .into_iter()
            .map(|slot| {
                let values = start(&slot, config.initializer_range, &mut random);
                (slot, values)
            })
            .collect();
        assemble(config, values, device)
    }

    /// Word vectors: rows of `table [vocab_size, width]` by token id.
    #[must_use]
    pub(crate) fn of_words(table: Vec<f32>, width: usize, device: &Device) -> Self {
        let config = EncoderConfig::words(table.len() / width.max(1), width);
        let values = slots(&config, false).into_iter().zip([table]).collect();
        assemble(config, values, device)
    }

    /// The content of `config.json` and `model.safetensors`, with Hugging Face names.
    pub fn export(&self) -> Result<(Vec<u8>, Vec<u8>)> {
        struct Collect(Vec<Vec<f32>>);
        impl ModuleVisitor for Collect {
            fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
                self.0.push(crate::parameters::to_vec(param.val()));
            }
        }
        let mut collect = Collect(Vec::new());
        self.visit(&mut collect);
        let mut tensors: Vec<(String, Vec<usize>, Vec<u8>)> = Vec::new();
        for (slot, values) in slots(&self.config, self.pooler.is_some()).into_iter().zip(collect.0) {
            let mut shape = slot.shape.clone();
            shape[0] /= slot.names.len();
            for (name, part) in slot.names.into_iter().zip(values.chunks_exact(shape.iter().product())) {
                let bytes = part.iter().flat_map(|value| value.to_le_bytes()).collect();
                tensors.push((name, shape.clone(), bytes));
            }
        }
        let mut source = self.config.source.clone();
        // Weights are written as f32, whatever they were read as.
        for key in ["dtype", "torch_dtype"] {
            source.entry(key).and_modify(|kind| *kind = "float32".into());
        }
        let mut config = serde_json::to_vec_pretty(&source).unwrap_or_default();
        config.push(b'\n');
        Ok((config, crate::parameters::safetensors(&tensors)?))
    }
}

fn start(slot: &Slot, deviation: f32, random: &mut ChaCha8Rng) -> Vec<f32> {
    let n = slot.shape.iter().product();
    match slot.start {
        Start::Normal => (0..n).map(|_| normal(random) * deviation).collect(),
        Start::Ones => vec![1.0; n],
        Start::Zeros => vec![0.0; n],
    }
}

/// Puts values in the order of [`slots`] into their places.
#[expect(clippy::expect_used, reason = "slots and fields are in the same order; the round trip is tested")]
fn assemble(config: EncoderConfig, values: Vec<(Slot, Vec<f32>)>, device: &Device) -> Encoder {
    struct Places<'a> {
        values: std::vec::IntoIter<(Slot, Vec<f32>)>,
        device: &'a Device,
    }
    impl Places<'_> {
        fn next<const D: usize>(&mut self) -> Param<Tensor<D>> {
            let (slot, values) = self.values.next().expect("a value for every place");
            Param::from_data(TensorData::new(values, slot.shape), self.device)
        }
    }
    let pooled = values.last().is_some_and(|(slot, _)| slot.optional);
    let context = config.family != Family::Words;
    let mut places = Places { values: values.into_iter(), device };
    let embeddings = Embeddings {
        words: places.next(),
        positions: context.then(|| places.next()),
        types: (config.type_vocab_size > 0).then(|| places.next()),
        norm_gain: context.then(|| places.next()),
        norm_bias: context.then(|| places.next()),
    };
    let layers = (0..config.n_layers)
        .map(|_| Layer {
            qkv_weight: places.next(),
            qkv_bias: places.next(),
            out_weight: places.next(),
            out_bias: places.next(),
            norm1_gain: places.next(),
            norm1_bias: places.next(),
            up_weight: places.next(),
            up_bias: places.next(),
            down_weight: places.next(),
            down_bias: places.next(),
            norm2_gain: places.next(),
            norm2_bias: places.next(),
        })
        .collect();
    let pooler = pooled.then(|| Pooler { weight: places.next(), bias: places.next() });
    Encoder { embeddings, layers, pooler, config: Arc::new(config) }
}

/// The safetensors files of a folder, and which of their tensors were taken.
struct Files {
    folder: PathBuf,
    /// Path and content of each file.
    files: Vec<(PathBuf, Vec<u8>)>,
    /// Name without prefix → file and full name.
    places: BTreeMap<String, (usize, String)>,
    taken: BTreeSet<String>,
}

impl Files {
    fn open(folder: &Path) -> Result<Self> {
        let refuse = |path: &Path, problem: String| Error::Encoder { path: path.to_owned(), problem };
        let single = folder.join("model.safetensors");
        let index = folder.join("model.safetensors.index.json");
        let paths = if single.is_file() {
            vec![single]
        } else if index.is_file() {
            let text = fs::read_to_string(&index).map_err(cladist_core::Error::io("read", &index))?;
            let parsed: serde_json::Value =
                serde_json::from_str(&text).map_err(|error| refuse(&index, error.to_string()))?;
            let map = parsed.get("weight_map").and_then(|map| map.as_object());
            let map = map.ok_or_else(|| refuse(&index, "it has no `weight_map`".into()))?;
            let names: BTreeSet<&str> = map.values().filter_map(|name| name.as_str()).collect();
            if let Some(name) = names.iter().find(|name| name.contains(['/', '\\'])) {
                return Err(refuse(&index, format!("`{name}` is not the name of a file beside it")));
            }
            names.into_iter().map(|name| folder.join(name)).collect()
        } else {
            let old = folder.join("pytorch_model.bin").is_file();
            let hint = if old { "; convert pytorch_model.bin to safetensors first" } else { "" };
            return Err(refuse(folder, format!("it has no model.safetensors{hint}")));
        };
        let mut files = Vec::new();
        for path in paths {
            let bytes = fs::read(&path).map_err(cladist_core::Error::io("read", &path))?;
            files.push((path, bytes));
        }
        let mut names = Vec::new();
        for (number, (path, bytes)) in files.iter().enumerate() {
            let parsed = SafeTensors::deserialize(bytes).map_err(|error| refuse(path, error.to_string()))?;
            names.extend(parsed.names().into_iter().map(|name| (number, name.to_owned())));
        }
        // Heads and language models put the encoder under a prefix: `bert.`, `roberta.`, `model.encoder.`, …
        let words = "embeddings.word_embeddings.weight";
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
        Ok(Self { folder: folder.to_owned(), files, places, taken: BTreeSet::new() })
    }

    fn has(&self, name: &str) -> bool {
        self.places.contains_key(name)
    }

    /// The values of a slot, or `None` if a tensor of it is not there.
    fn take(&mut self, slot: &Slot) -> Result<Option<Vec<f32>>> {
        if !slot.names.iter().all(|name| self.has(name)) {
            return Ok(None);
        }
        let mut shape = slot.shape.clone();
        shape[0] /= slot.names.len();
        let mut values = Vec::with_capacity(slot.shape.iter().product());
        for name in &slot.names {
            let (file, full) = &self.places[name];
            let (path, bytes) = &self.files[*file];
            let refuse = |problem: String| Error::Encoder { path: path.clone(), problem };
            let parsed = SafeTensors::deserialize(bytes).map_err(|error| refuse(error.to_string()))?;
            let view = parsed.tensor(full).map_err(|error| refuse(error.to_string()))?;
            if view.shape() != shape {
                let found = view.shape();
                return Err(refuse(format!(
                    "tensor `{full}` has shape {found:?}, not {shape:?} as config.json says"
                )));
            }
            append(&view, &mut values).map_err(|problem| refuse(format!("tensor `{full}` {problem}")))?;
            self.taken.insert(full.clone());
        }
        if values.iter().any(|value| !value.is_finite()) {
            let problem = format!("`{}` holds values that are not finite", slot.names[0]);
            return Err(Error::Encoder { path: self.folder.clone(), problem });
        }
        Ok(Some(values))
    }

    /// What is left, but for the position numbers that older versions wrote as a tensor.
    fn unused(&self) -> Vec<String> {
        let full = self.places.values().map(|(_, name)| name);
        full.filter(|name| !self.taken.contains(*name) && !name.ends_with("position_ids")).cloned().collect()
    }
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
