//! Encoders against `transformers`: golden files written by `parity/encoders.py` and `parity/minilm.py`.

#![expect(clippy::unwrap_used, reason = "a test fails by it")]

use std::io::Write as _;
use std::path::{Path, PathBuf};

use burn::tensor::Device;
use cladist_nn::encoder::{Encoded, Encoder, LayerSet, Mode};
use cladist_nn::tokens::{Sequence, TokenBatch, Tokenizer, TokensConfig};
use safetensors::{Dtype, SafeTensors};

const TOLERANCE: f32 = 1e-4;

struct Golden(Vec<u8>);

impl Golden {
    fn read(path: &Path) -> Self {
        Self(std::fs::read(path).unwrap())
    }

    fn floats(&self, name: &str) -> (Vec<usize>, Vec<f32>) {
        let file = SafeTensors::deserialize(&self.0).unwrap();
        let view = file.tensor(name).unwrap();
        assert_eq!(view.dtype(), Dtype::F32);
        let values = view.data().chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
        (view.shape().to_vec(), values)
    }

    fn integers(&self, name: &str) -> (Vec<usize>, Vec<usize>) {
        let file = SafeTensors::deserialize(&self.0).unwrap();
        let view = file.tensor(name).unwrap();
        let values =
            view.data().chunks_exact(8).map(|b| i64::from_le_bytes(b.try_into().unwrap()) as usize).collect();
        (view.shape().to_vec(), values)
    }

    fn has(&self, name: &str) -> bool {
        SafeTensors::deserialize(&self.0).unwrap().tensor(name).is_ok()
    }

    fn batch(&self) -> (TokenBatch, Vec<usize>) {
        let (shape, ids) = self.integers("input_ids");
        let (_, lengths) = self.integers("lengths");
        let sequences: Vec<Sequence> = lengths
            .iter()
            .enumerate()
            .map(|(n, &length)| Sequence {
                ids: ids[n * shape[1]..][..length].iter().map(|&id| id as u32).collect(),
                ..Sequence::default()
            })
            .collect();
        (TokenBatch::new(&sequences.iter().collect::<Vec<_>>()), lengths)
    }
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn values<const D: usize>(tensor: burn::tensor::Tensor<D>) -> Vec<f32> {
    tensor.inner().into_data().try_into_vec().unwrap()
}

fn close(actual: f32, expected: f32, what: impl Fn() -> String) {
    assert!((actual - expected).abs() <= TOLERANCE, "{}: {actual} instead of {expected}", what());
}

/// Hidden states: `[batch, longest or fewer, hidden]` of the golden file against the padded states.
fn compare_states(encoded: &Encoded, golden: &Golden, layers: usize, lengths: &[usize]) {
    for layer in 0..=layers {
        let (shape, expected) = golden.floats(&format!("hidden.{layer}"));
        let (states, _) = encoded.tokens(layer);
        let [_, longest, hidden] = states.dims();
        let states = values(states);
        for (n, &length) in lengths.iter().enumerate() {
            for t in 0..length.min(shape[1]) {
                for h in 0..hidden {
                    let actual = states[(n * longest + t) * hidden + h];
                    let wanted = expected[(n * shape[1] + t) * hidden + h];
                    close(actual, wanted, || format!("layer {layer}, sequence {n}, token {t}, unit {h}"));
                }
            }
        }
    }
}

/// Attention: `[batch, heads, rows, columns]` of the golden file, whose heads are `heads` of ours.
fn compare_attention(encoded: &Encoded, golden: &Golden, layers: usize, lengths: &[usize], heads: &[usize]) {
    for layer in 1..=layers {
        let (shape, expected) = golden.floats(&format!("attention.{layer}"));
        let attention = encoded.attention(layer).unwrap();
        let [_, n_heads, longest, _] = attention.dims();
        let attention = values(attention);
        for (n, &length) in lengths.iter().enumerate() {
            for (place, &head) in heads.iter().enumerate() {
                for row in 0..length.min(shape[2]) {
                    for column in 0..longest.min(shape[3]) {
                        let actual = attention[((n * n_heads + head) * longest + row) * longest + column];
                        let at = ((n * shape[1] + place) * shape[2] + row) * shape[3] + column;
                        close(actual, expected[at], || {
                            format!("layer {layer}, sequence {n}, head {head}, {row} to {column}")
                        });
                    }
                }
            }
        }
    }
}

fn check_folder(name: &str, n_unused: usize) {
    let folder = golden(name);
    let golden = Golden::read(&folder.join("golden.safetensors"));
    let pooler = golden.has("pooled");
    let (batch, lengths) = golden.batch();
    for device in [Device::flex(), Device::flex().autodiff()] {
        let (encoder, report) = Encoder::load(&folder, pooler, 1, &device).unwrap();
        assert!(report.missing.is_empty(), "{report:?}");
        assert_eq!(report.unused.len(), n_unused, "{report:?}");
        let layers = encoder.n_layers();
        let all: LayerSet = (0..=layers).collect();
        let packed = encoder.pack();
        for mode in [Mode::Inference(None), Mode::Inference(packed.as_ref())] {
            let watched = (1..=layers).collect();
            let encoded = encoder.encode_with_attention(&batch, &all, &watched, mode);
            compare_states(&encoded, &golden, layers, &lengths);
            let heads: Vec<usize> = (0..encoder.config().n_heads).collect();
            compare_attention(&encoded, &golden, layers, &lengths, &heads);
            if pooler {
                let (_, expected) = golden.floats("pooled");
                for (n, (actual, wanted)) in
                    values(encoded.pooled().unwrap()).into_iter().zip(expected).enumerate()
                {
                    close(actual, wanted, || format!("pooled {n}"));
                }
            }
        }
    }
}

#[test]
fn bert_equals_transformers() {
    check_folder("bert", 0);
}

#[test]
fn roberta_equals_transformers() {
    check_folder("roberta", 0);
}

#[test]
fn distilbert_equals_transformers() {
    check_folder("distilbert", 0);
}

#[test]
fn electra_equals_transformers() {
    check_folder("electra", 0);
}

#[test]
fn mpnet_equals_transformers() {
    check_folder("mpnet", 0);
}

/// `MPNetTokenizer` of `transformers` wrote the folder and the ids.
#[test]
fn tokens_of_mpnet_equal_transformers() {
    let read = |name: &str| std::fs::read(golden("mpnet").join(name)).unwrap();
    let texts: Vec<(String, Vec<u32>)> = serde_json::from_slice(&read("texts.json")).unwrap();
    // The vocabulary also has `[CLS]` and `[SEP]`, which start and end nothing.
    let bare = tempfile::tempdir().unwrap();
    for name in ["vocab.txt", "tokenizer_config.json"] {
        std::fs::write(bare.path().join(name), read(name)).unwrap();
    }
    // Without `tokenizer.json` nothing tells that a text's own `[CLS]`, the last one's, is no special token.
    let n = texts.len();
    for (folder, n) in [(golden("mpnet").as_path(), n), (bare.path(), n - 1)] {
        let tokenizer = Tokenizer::from_folder(folder).unwrap();
        assert_eq!((tokenizer.special().start, tokenizer.special().end, tokenizer.pad_id()), (0, 2, 1));
        for (text, ids) in &texts[..n] {
            let tokens = tokenizer.encode(&[text], &TokensConfig::default()).unwrap();
            assert_eq!(&tokens[0][0].ids, ids, "{text}");
        }
    }
}

#[test]
fn half_precision_and_shards_equal_transformers() {
    check_folder("bert-f16", 0);
    check_folder("bert-sharded-bf16", 0);
}

#[test]
fn prefixes_and_old_names_are_understood_and_the_rest_is_reported() {
    check_folder("bert-prefixed", 2);
    check_folder("bert-gamma-beta", 0);
}

#[test]
fn a_missing_pooler_is_made_and_reported() {
    let (encoder, report) = Encoder::load(&golden("distilbert"), true, 1, &Device::flex()).unwrap();
    assert!(encoder.has_pooler());
    assert_eq!(report.missing, ["pooler.dense.weight", "pooler.dense.bias"]);
}

#[test]
fn an_unfit_folder_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let message = |folder: &Path| Encoder::load(folder, true, 1, &Device::flex()).unwrap_err().to_string();
    assert!(message(folder.path()).contains("config.json"));
    let config = std::fs::read_to_string(golden("bert").join("config.json")).unwrap();
    std::fs::write(folder.path().join("config.json"), &config).unwrap();
    assert!(message(folder.path()).contains("model.safetensors"));
    std::fs::write(folder.path().join("pytorch_model.bin"), "x").unwrap();
    assert!(message(folder.path()).contains("convert"));
    std::fs::copy(golden("bert").join("model.safetensors"), folder.path().join("model.safetensors")).unwrap();
    assert!(Encoder::load(folder.path(), true, 1, &Device::flex()).is_ok());
    let wide = config.replace("\"intermediate_size\": 64", "\"intermediate_size\": 65");
    std::fs::write(folder.path().join("config.json"), wide).unwrap();
    let text = message(folder.path());
    assert!(text.contains("intermediate.dense.weight") && text.contains("[65, 32]"), "{text}");
    let deep = config.replace("\"num_hidden_layers\": 3", "\"num_hidden_layers\": 4");
    std::fs::write(folder.path().join("config.json"), deep).unwrap();
    assert!(message(folder.path()).contains("encoder.layer.3"));
    std::fs::write(folder.path().join("model.safetensors"), "not a file of tensors").unwrap();
    assert!(message(folder.path()).contains("model.safetensors"));
}

#[test]
fn minilm_equals_transformers() {
    let shared = std::env::var("CLADIST_SHARED")
        .map_or_else(|_| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    let folder = shared.join("models/all-MiniLM-L6-v2");
    if !folder.exists() {
        // Past the harness, which keeps what a passing test prints.
        let _ = writeln!(std::io::stderr(), "skipped: {} not found", folder.display());
        return;
    }
    let golden = Golden::read(&golden("minilm.safetensors"));
    let (batch, lengths) = golden.batch();
    let (encoder, report) = Encoder::load(&folder, true, 1, &Device::flex()).unwrap();
    assert!(report.missing.is_empty() && report.unused.is_empty(), "{report:?}");
    let all: LayerSet = (0..=6).collect();
    let watched = (1..=6).collect();
    let encoded = encoder.encode_with_attention(&batch, &all, &watched, Mode::Inference(None));
    compare_states(&encoded, &golden, 6, &lengths);
    let (_, heads) = golden.integers("heads");
    compare_attention(&encoded, &golden, 6, &lengths, &heads);
    let (_, expected) = golden.floats("pooled");
    for (n, (actual, wanted)) in values(encoded.pooled().unwrap()).into_iter().zip(expected).enumerate() {
        close(actual, wanted, || format!("pooled {n}"));
    }
}
