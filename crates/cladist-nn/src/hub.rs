//! Encoders from the Hugging Face hub, kept in its usual cache.

use std::path::PathBuf;

use hf_hub::HFClientSync;

use crate::error::{Error, Result};

/// What an encoder needs of a repository.
const FILES: [&str; 10] = [
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "vocab.*",
    "merges.txt",
    "*.safetensors",
    "*.safetensors.index.json",
    "modules.json",
    "1_Pooling/config.json",
];

/// The folder of a repository's snapshot: from the cache if it is there, else downloaded.
pub(crate) fn fetch(name: &str, revision: Option<&str>) -> Result<PathBuf> {
    let (owner, repository) = name.split_once('/').unwrap_or(("", name));
    let refuse = |reason: String| Error::Encoder {
        path: PathBuf::from(name),
        problem: format!("there is no such folder, and the hub did not give it: {reason}"),
        remedy: Some("check the name and the network, or download the model and give its folder"),
        source: None,
    };
    let client = HFClientSync::new().map_err(|error| refuse(error.to_string()))?;
    let model = client.model(owner, repository);
    let get = |local: bool| {
        model
            .snapshot_download()
            .maybe_revision(revision)
            .allow_patterns(FILES.map(str::to_owned).to_vec())
            .local_files_only(local)
            .send()
    };
    let cached = get(true).ok().filter(|folder| folder.join("config.json").exists());
    cached.map_or_else(|| get(false), Ok).map_err(|error| refuse(error.to_string()))
}
