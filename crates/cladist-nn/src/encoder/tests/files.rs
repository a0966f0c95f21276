//! Folders whose weights do not fit, or are not there.

use std::path::Path;

use safetensors::SafeTensors;
use serde_json::{Value, json};

use super::*;

fn changed(name: &str, changes: &Value) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(golden(name).join("config.json")).unwrap();
    let mut config: Value = serde_json::from_str(&text).unwrap();
    for (key, value) in changes.as_object().unwrap() {
        config[key] = value.clone();
    }
    std::fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
    std::fs::copy(golden(name).join("model.safetensors"), folder.path().join("model.safetensors")).unwrap();
    folder
}

fn problem(folder: &Path) -> String {
    let error = Encoder::load(folder, true, 1, &device()).unwrap_err();
    format!("{error}; {}", error.remedy().unwrap_or_default())
}

#[test]
fn weights_with_types_against_a_config_without_are_refused() {
    for name in ["bert", "roberta", "electra"] {
        let message = problem(changed(name, &json!({"type_vocab_size": 0})).path());
        assert!(message.contains("embeddings.token_type_embeddings.weight"), "{message}");
        assert!(message.contains("type_vocab_size"), "{message}");
    }
    // Weights without types are what such a config describes.
    let folder = changed("bert", &json!({"type_vocab_size": 0}));
    let path = folder.path().join("model.safetensors");
    let bytes = std::fs::read(&path).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let rest = file.iter().filter(|(name, _)| !name.contains("token_type"));
    std::fs::write(&path, safetensors::serialize(rest, None).unwrap()).unwrap();
    Encoder::load(folder.path(), true, 1, &device()).unwrap();
}

#[test]
fn a_projection_that_the_config_lacks_is_refused() {
    let message = problem(changed("electra", &json!({"embedding_size": 32})).path());
    assert!(message.contains("embeddings_project.weight"), "{message}");
}

#[test]
fn a_width_that_the_weights_lack_is_refused_without_taking_memory() {
    let message = problem(changed("bert", &json!({"hidden_size": 1 << 16})).path());
    assert!(message.contains("[120, 65536]"), "{message}");
    let message = problem(changed("bert", &json!({"hidden_size": 1_000_000_000})).path());
    assert!(message.contains("hidden_size"), "{message}");
}

#[test]
fn a_pointer_of_git_lfs_is_named_as_such() {
    let folder = changed("bert", &json!({}));
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 133376\n";
    std::fs::write(folder.path().join("model.safetensors"), pointer).unwrap();
    let message = problem(folder.path());
    assert!(message.contains("Git LFS pointer") && message.contains("`git lfs pull`"), "{message}");
    assert!(message.contains("model.safetensors"), "{message}");
}
