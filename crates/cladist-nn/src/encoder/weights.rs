//! Encoders from and to Hugging Face folders: parameters and tensors are matched by the names of the family.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use burn::module::Param;
use burn::tensor::{Device, Tensor, TensorData};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::files::Files;
use super::layer::Layer;
use super::slots::{Slot, Start, slots};
use super::{Embeddings, Encoder, EncoderConfig, Pooler, Pooling};
use crate::error::{Error, Result};
use crate::parameters::{Tensors, named};
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
        let refuse = |problem: String| Error::encoder(folder, problem);
        let config = EncoderConfig::read(folder)?;
        let words = config.family.tensors("embeddings.words");
        let mut files = Files::open(folder, words.first().map_or("", String::as_str))?;
        let wanted = slots(&config, pooler);
        if let Some(tensor) = undescribed(&config, &files) {
            return Err(Error::Encoder {
                path: folder.to_owned(),
                problem: format!("the weights have a tensor `{tensor}`, but by config.json there is none"),
                remedy: Some(
                    "they are of different models, or `type_vocab_size` or `embedding_size` is wrong",
                ),
                source: None,
            });
        }
        let required = wanted.iter().filter(|slot| !slot.is_optional());
        let required = required.flat_map(|slot| slot.tensors(config.family));
        let lost: Vec<String> = required.map(|(name, _)| name).filter(|name| !files.has(name)).collect();
        if let Some(first) = lost.first() {
            let rest = if lost.len() > 1 { format!(" and {} more", lost.len() - 1) } else { String::new() };
            return Err(refuse(format!("the weights have no tensor `{first}`{rest}")));
        }
        let mut report = LoadReport::default();
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut values = Tensors::new();
        for slot in wanted {
            let tensors = slot.tensors(config.family);
            let found = match files.take(&tensors)? {
                Some(found) => found,
                None => {
                    let names = tensors.into_iter().map(|(name, _)| name);
                    report.missing.extend(names.filter(|name| !files.has(name)));
                    start(&slot, config.initializer_range, &mut random)
                }
            };
            values.insert(slot.path, (slot.shape, found));
        }
        report.unused = files.unused();
        Ok((assemble(config, values, device), report))
    }

    /// An encoder with random weights.
    #[must_use]
    pub fn random(config: EncoderConfig, pooler: bool, seed: u64, device: &Device) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let start = |slot: Slot| {
            let values = start(&slot, config.initializer_range, &mut random);
            (slot.path, (slot.shape, values))
        };
        let values = slots(&config, pooler).into_iter().map(start).collect();
        assemble(config, values, device)
    }

    /// Word vectors: rows of `table [vocab_size, width]` by token id.
    #[must_use]
    pub(crate) fn of_words(table: Vec<f32>, width: usize, device: &Device) -> Self {
        let config = EncoderConfig::words(table.len() / width.max(1), width);
        let values = slots(&config, false).into_iter().zip([table]);
        let values = values.map(|(slot, table)| (slot.path, (slot.shape, table))).collect();
        assemble(config, values, device)
    }

    /// The content of `config.json` and `model.safetensors`, with Hugging Face names, and how it was trained to be read.
    pub fn export(&self, pooling: Option<Pooling>) -> Result<(Vec<u8>, Vec<u8>)> {
        let mut parameters = named(self);
        let mut tensors: Vec<(String, Vec<usize>, Vec<u8>)> = Vec::new();
        for slot in slots(&self.config, self.pooler.is_some()) {
            let Some((_, values)) = parameters.remove(&slot.path) else { continue };
            let mut rest = values.as_slice();
            for (name, shape) in slot.tensors(self.config.family) {
                let (part, others) = rest.split_at(shape.iter().product());
                rest = others;
                let bytes = part.iter().flat_map(|value| value.to_le_bytes()).collect();
                tensors.push((name, shape, bytes));
            }
        }
        let mut source = self.config.source.clone();
        // Weights are written as f32, whatever they were read as.
        for key in ["dtype", "torch_dtype"] {
            source.entry(key).and_modify(|kind| *kind = "float32".into());
        }
        if let Some(pooling) = pooling {
            source.insert(Pooling::KEY.to_owned(), pooling.name().into());
        }
        let mut config = serde_json::to_vec_pretty(&source).unwrap_or_default();
        config.push(b'\n');
        Ok((config, crate::parameters::safetensors(&tensors)?))
    }
}

/// A tensor of the embeddings that the family knows, the files have and the description lacks: states would lack it too.
fn undescribed(config: &EncoderConfig, files: &Files) -> Option<&'static str> {
    let described = slots(config, false);
    let (_, tensors) = config.family.rows().find(|(path, tensors)| {
        path.starts_with("embeddings.")
            && described.iter().all(|slot| slot.path != *path)
            && tensors.iter().any(|name| files.has(name))
    })?;
    tensors.first().copied()
}

fn start(slot: &Slot, deviation: f32, random: &mut ChaCha8Rng) -> Vec<f32> {
    let n = slot.shape.iter().product();
    match slot.start {
        Start::Normal => (0..n).map(|_| normal(random) * deviation).collect(),
        Start::Ones => vec![1.0; n],
        Start::Zeros => vec![0.0; n],
    }
}

/// Values by the place of the parameter they are for.
struct Places<'a> {
    values: BTreeMap<String, (Vec<usize>, Vec<f32>)>,
    device: &'a Device,
}

impl Places<'_> {
    fn maybe<const D: usize>(&mut self, path: &str) -> Option<Param<Tensor<D>>> {
        let (shape, values) = self.values.remove(path)?;
        Some(Param::from_data(TensorData::new(values, shape), self.device))
    }

    #[expect(clippy::expect_used, reason = "every description has these slots")]
    fn one<const D: usize>(&mut self, path: &str) -> Param<Tensor<D>> {
        self.maybe(path).expect("a value for every slot")
    }
}

/// Puts values of all slots into their places.
fn assemble(config: EncoderConfig, values: Tensors, device: &Device) -> Encoder {
    let mut places = Places { values, device };
    let embeddings = Embeddings {
        words: places.one("embeddings.words"),
        positions: places.maybe("embeddings.positions"),
        types: places.maybe("embeddings.types"),
        norm_gain: places.maybe("embeddings.norm_gain"),
        norm_bias: places.maybe("embeddings.norm_bias"),
        projection_weight: places.maybe("embeddings.projection_weight"),
        projection_bias: places.maybe("embeddings.projection_bias"),
    };
    let mut layer = |n: usize| {
        let path = |name: &str| format!("layers.{n}.{name}");
        Layer {
            qkv_weight: places.one(&path("qkv_weight")),
            qkv_bias: places.maybe(&path("qkv_bias")),
            out_weight: places.one(&path("out_weight")),
            out_bias: places.maybe(&path("out_bias")),
            norm1_gain: places.maybe(&path("norm1_gain")),
            norm1_bias: places.maybe(&path("norm1_bias")),
            up_weight: places.one(&path("up_weight")),
            up_bias: places.maybe(&path("up_bias")),
            down_weight: places.one(&path("down_weight")),
            down_bias: places.maybe(&path("down_bias")),
            norm2_gain: places.maybe(&path("norm2_gain")),
            norm2_bias: places.maybe(&path("norm2_bias")),
        }
    };
    let layers = (0..config.n_groups).map(&mut layer).collect();
    let distance_bias = places.maybe("distance_bias");
    let last_norm_gain = places.maybe("last_norm_gain");
    let last_norm_bias = places.maybe("last_norm_bias");
    let pooler = places.maybe("pooler.weight");
    let pooler = pooler.map(|weight| Pooler { weight, bias: places.one("pooler.bias") });
    debug_assert!(places.values.is_empty(), "a place for every slot");
    let config = Arc::new(config);
    Encoder {
        embeddings,
        layers,
        distance_bias,
        last_norm_gain,
        last_norm_bias,
        pooler,
        config,
        frozen: None,
    }
}
