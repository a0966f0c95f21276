//! How an encoder was pretrained to make a vector of a text.
//!
//! Encoders for sentences have it in the files of sentence-transformers: `modules.json` names a folder of the module
//! `Pooling`, whose `config.json` says which tokens are read. The encoder of a bundle has it in its own `config.json`, so
//! that training can go on from there.

use std::path::Path;

use serde::Deserialize;

/// What the vector of a text is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pooling {
    /// The first token.
    Cls,
    /// The mean of all tokens.
    Mean,
}

#[derive(Deserialize)]
struct Module {
    #[serde(rename = "type")]
    kind: String,
    path: String,
}

/// Both ways to say it: a flag for each mode, or the name of one.
#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct Modes {
    pooling_mode: Option<String>,
    pooling_mode_cls_token: bool,
    pooling_mode_mean_tokens: bool,
}

impl Pooling {
    /// Its key in `config.json` of a bundle.
    pub(crate) const KEY: &str = "pooling_mode";

    /// Its name in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cls => "cls",
            Self::Mean => "mean",
        }
    }

    /// What a folder says; nothing if it is no encoder for sentences, or pools in a way that heads do not have.
    #[must_use]
    pub fn of_folder(folder: &Path) -> Option<Self> {
        let modules: Vec<Module> = read(&folder.join("modules.json")).unwrap_or_default();
        let module = modules.into_iter().find(|module| module.kind.ends_with("Pooling"));
        let inner = module.map(|module| module.path).unwrap_or_default();
        // Nothing that a file says leads out of the folder.
        if inner.contains(['/', '\\']) || inner == ".." {
            return None;
        }
        match read::<Modes>(&folder.join(inner).join("config.json"))? {
            Modes { pooling_mode: Some(mode), .. } if mode == "mean" => Some(Self::Mean),
            Modes { pooling_mode: Some(mode), .. } if mode == "cls" => Some(Self::Cls),
            Modes { pooling_mode_mean_tokens: true, pooling_mode_cls_token: false, .. } => Some(Self::Mean),
            Modes { pooling_mode_cls_token: true, pooling_mode_mean_tokens: false, .. } => Some(Self::Cls),
            Modes { .. } => None,
        }
    }
}

/// A JSON file, if it is there and understood: it only chooses a default.
fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_encoder_of_a_bundle_says_it_itself() {
        let folder = tempfile::tempdir().unwrap();
        let write = |config: &str| std::fs::write(folder.path().join("config.json"), config).unwrap();
        write(r#"{"hidden_size": 8, "pooling_mode": "mean"}"#);
        assert_eq!(Pooling::of_folder(folder.path()), Some(Pooling::Mean));
        write(r#"{"hidden_size": 8}"#);
        assert_eq!(Pooling::of_folder(folder.path()), None);
        let modules = r#"[{"path": "../elsewhere", "type": "x.Pooling"}]"#;
        std::fs::write(folder.path().join("modules.json"), modules).unwrap();
        assert_eq!(Pooling::of_folder(folder.path()), None);
    }

    fn folder(pooling: Option<&str>) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        if let Some(pooling) = pooling {
            let modules = r#"[{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
                {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]"#;
            std::fs::write(folder.path().join("modules.json"), modules).unwrap();
            std::fs::create_dir(folder.path().join("1_Pooling")).unwrap();
            std::fs::write(folder.path().join("1_Pooling/config.json"), pooling).unwrap();
        }
        folder
    }

    #[test]
    fn a_folder_of_sentence_transformers_says_how_it_pools() {
        let of = |pooling: Option<&str>| Pooling::of_folder(folder(pooling).path());
        let mean = r#"{"word_embedding_dimension": 384, "pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true}"#;
        assert_eq!(of(Some(mean)), Some(Pooling::Mean));
        assert_eq!(of(Some(r#"{"pooling_mode_cls_token": true}"#)), Some(Pooling::Cls));
        assert_eq!(of(Some(r#"{"embedding_dimension": 384, "pooling_mode": "mean"}"#)), Some(Pooling::Mean));
        assert_eq!(of(Some(r#"{"pooling_mode_max_tokens": true}"#)), None);
        assert_eq!(of(Some("not JSON")), None);
        assert_eq!(of(None), None);
    }
}
