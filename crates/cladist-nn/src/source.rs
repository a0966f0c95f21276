//! Where an encoder comes from: a folder, the Hugging Face hub, word vectors, or nothing.

use std::path::{Path, PathBuf};

use burn::tensor::Device;
use cladist_core::Cancel;

use crate::encoder::{Encoder, LoadReport, Pooling, Scratch};
use crate::error::{Error, Result};
use crate::tokens::Tokenizer;
use crate::vectors::WordVectors;

/// Where an encoder comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EncoderSource {
    /// A folder with `config.json`, `tokenizer.json` and `model.safetensors`.
    Folder(PathBuf),
    /// A new encoder and a tokenizer made from the training texts.
    Scratch(Scratch),
    /// A vector for each word of the training texts.
    Words(WordVectors),
    /// A repository of the hub, with a revision if one was given: `bert-base-uncased`, `org/name@main`.
    Hub {
        /// `name` or `owner/name`.
        name: String,
        /// Branch, tag or commit.
        revision: Option<String>,
    },
}

/// Words of a vocabulary made from texts.
const MAX_WORDS: usize = 50_000;

impl EncoderSource {
    /// Understands what a user wrote: `scratch:SIZE` or `words:VECTORS`, an existing folder, else a name of the hub.
    pub fn parse(text: &str) -> Result<Self> {
        let refuse = |problem: String| Error::encoder(text, problem);
        if let Some(size) = text.strip_prefix("scratch:") {
            let sizes = "`scratch:tiny`, `scratch:mini` or `scratch:small`";
            let unknown = |_| cladist_core::Error::setting("encoder", sizes, text).into();
            return size.parse().map(Self::Scratch).map_err(unknown);
        }
        if let Some(vectors) = text.strip_prefix("words:") {
            return vectors.parse().map(Self::Words).map_err(refuse);
        }
        let path = Path::new(text);
        if path.is_dir() {
            return Ok(Self::Folder(path.to_owned()));
        }
        let (name, revision) = match text.split_once('@') {
            Some((name, revision)) => (name, Some(revision.to_owned())),
            None => (text, None),
        };
        let plain = |part: &str| {
            !part.is_empty()
                && !part.starts_with('.')
                && part.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        };
        let parts: Vec<&str> = name.split('/').collect();
        if path.is_absolute()
            || text.starts_with('.')
            || parts.len() > 2
            || !parts.iter().all(|part| plain(part))
        {
            return Err(refuse("there is no such folder".to_owned()));
        }
        Ok(Self::Hub { name: name.to_owned(), revision })
    }

    /// How documents are read unless settings say so: as the encoder was pretrained. A folder of sentence-transformers says
    /// it; word vectors have no `[CLS]`; the families were pretrained with one.
    pub fn pooling(&self) -> Result<Pooling> {
        let folder = match self {
            Self::Words(_) => return Ok(Pooling::Mean),
            Self::Scratch(_) => return Ok(Pooling::Cls),
            Self::Folder(folder) => folder.clone(),
            Self::Hub { name, revision } => fetch(name, revision.as_deref())?,
        };
        Ok(Pooling::of_folder(&folder).unwrap_or(Pooling::Cls))
    }

    /// Tokenizer and encoder; `texts` is called if a tokenizer is to be made.
    pub(crate) fn open<'a>(
        &self,
        texts: impl FnOnce() -> Vec<&'a str>,
        pooler: bool,
        seed: u64,
        device: &Device,
        cancel: &Cancel,
    ) -> Result<(Tokenizer, Encoder, LoadReport)> {
        cancel.check()?;
        let folder = match self {
            Self::Folder(folder) => folder.clone(),
            Self::Scratch(size) => {
                let tokenizer = Tokenizer::train(&texts(), size.vocab_size(), 2, cancel)?;
                let config = size.config(tokenizer.vocab_size());
                return Ok((tokenizer, Encoder::random(config, pooler, seed, device), LoadReport::default()));
            }
            Self::Words(vectors) => {
                let tokenizer = Tokenizer::words(&texts(), MAX_WORDS, 2, cancel)?;
                let (table, width, missing) = vectors.table(&tokenizer, seed, cancel)?;
                let report = LoadReport { missing, ..LoadReport::default() };
                return Ok((tokenizer, Encoder::of_words(table, width, device), report));
            }
            Self::Hub { name, revision } => fetch(name, revision.as_deref())?,
        };
        let tokenizer = Tokenizer::from_folder(&folder)?;
        let (encoder, report) = Encoder::load(&folder, pooler, seed, device)?;
        Ok((tokenizer, encoder, report))
    }
}

#[cfg(not(feature = "hub"))]
fn fetch(name: &str, _revision: Option<&str>) -> Result<PathBuf> {
    Err(Error::Encoder {
        path: PathBuf::from(name),
        problem: "there is no such folder, and this program was built without the `hub` feature".to_owned(),
        remedy: Some("download the model and give its folder, or build with the feature `hub`"),
        source: None,
    })
}

#[cfg(feature = "hub")]
use crate::hub::fetch;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_folders_and_sizes_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().to_str().unwrap();
        assert_eq!(EncoderSource::parse(text).unwrap(), EncoderSource::Folder(folder.path().to_owned()));
        assert_eq!(EncoderSource::parse("scratch:mini").unwrap(), EncoderSource::Scratch(Scratch::Mini));
        let words = |vectors| EncoderSource::Words(vectors);
        assert_eq!(EncoderSource::parse("words:300").unwrap(), words(WordVectors::Random { width: 300 }));
        let pretrained = WordVectors::Pretrained(folder.path().to_owned());
        assert_eq!(EncoderSource::parse(&format!("words:{text}")).unwrap(), words(pretrained));
        let hub = |name: &str, revision: Option<&str>| EncoderSource::Hub {
            name: name.to_owned(),
            revision: revision.map(str::to_owned),
        };
        assert_eq!(EncoderSource::parse("bert-base-uncased").unwrap(), hub("bert-base-uncased", None));
        assert_eq!(EncoderSource::parse("a/b@v1").unwrap(), hub("a/b", Some("v1")));
    }

    #[test]
    fn what_can_be_neither_is_refused() {
        for text in [
            "scratch:huge",
            "words:0",
            "words:no-such-file",
            "/no/such/folder",
            "./models/x",
            "a/b/c",
            "../x",
            "a b",
            "",
        ] {
            let message = EncoderSource::parse(text).unwrap_err().to_string();
            assert!(message.contains(text), "{message}");
        }
    }

    #[test]
    fn an_unknown_size_is_a_setting_and_a_missing_folder_an_encoder() {
        let kind = |text: &str| EncoderSource::parse(text).unwrap_err().kind();
        assert_eq!(kind("scratch:giant"), cladist_core::ErrorKind::Setting);
        assert_eq!(kind("/no/such/folder"), cladist_core::ErrorKind::Encoder);
    }

    fn problem(source: &EncoderSource) -> String {
        source.open(Vec::new, true, 1, &Device::flex(), &Cancel::default()).unwrap_err().to_string()
    }

    #[test]
    fn what_cannot_be_opened_says_what_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let source = EncoderSource::Folder(folder.path().to_owned());
        let name = folder.path().to_str().unwrap();
        assert!(problem(&source).contains(name), "{}", problem(&source));
        let bert = crate::toy::golden("bert");
        std::fs::copy(bert.join("vocab.txt"), folder.path().join("vocab.txt")).unwrap();
        assert!(problem(&source).contains("config.json"), "{}", problem(&source));
        std::fs::copy(bert.join("config.json"), folder.path().join("config.json")).unwrap();
        assert!(problem(&source).contains("model.safetensors"), "{}", problem(&source));
        std::fs::copy(bert.join("model.safetensors"), folder.path().join("model.safetensors")).unwrap();
        source.open(Vec::new, true, 1, &Device::flex(), &Cancel::default()).unwrap();
    }

    #[cfg(not(feature = "hub"))]
    #[test]
    fn a_name_of_the_hub_needs_the_hub() {
        let message = problem(&EncoderSource::parse("bert-base-uncased").unwrap());
        assert!(message.contains("bert-base-uncased") && message.contains("`hub` feature"), "{message}");
    }

    #[test]
    fn the_same_texts_and_seed_give_the_same_new_encoder() {
        let open = |seed| {
            let texts = || vec!["a few words", "a few more words"];
            let source = EncoderSource::Scratch(Scratch::Tiny);
            let (tokenizer, encoder, _) =
                source.open(texts, true, seed, &Device::flex(), &Cancel::default()).unwrap();
            assert_eq!(encoder.config().vocab_size, tokenizer.vocab_size());
            (tokenizer.to_json().to_vec(), encoder.export(None).unwrap())
        };
        assert!(open(1) == open(1));
        assert!(open(1).1 != open(2).1);
    }
}
