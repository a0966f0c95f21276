//! Fitted features on disk.
//!
//! * `features.safetensors`: `idf`, F32, one entry per term; or `numbers`, U32, for a corpus that came as features.
//! * `vocabulary.txt`: with `idf` only. One term per line, ascending by bytes, the line's number (from 0) being the
//!   feature. Words of an n-gram are separated by one space; an n-gram of characters starts with `#`. Terms hold no
//!   line break, so nothing is escaped; spaces at the ends of a line belong to the term.

use std::fs;
use std::path::Path;

use crate::bundle::{BundleError, Writer};
use crate::error::{Error, Result};
use crate::tensors::{self, Array, Arrays};

use super::{FeatureConfig, Vectorizer, Vocabulary};

const FEATURES: &str = "features.safetensors";
const VOCABULARY: &str = "vocabulary.txt";

impl Vectorizer {
    /// Writes `features.safetensors` and `vocabulary.txt` into a bundle; the configuration is the caller's to keep.
    pub fn save(&self, writer: &Writer) -> Result<()> {
        let path = writer.path(FEATURES);
        match &self.vocabulary {
            Vocabulary::Terms { terms, idf, .. } => {
                let mut text = String::with_capacity(terms.iter().map(|term| term.len() + 1).sum());
                for term in terms {
                    text.push_str(term);
                    text.push('\n');
                }
                writer.write(VOCABULARY, text.as_bytes())?;
                tensors::write(&path, &[("idf", Array::F32(idf))])
            }
            Vocabulary::Numbers(numbers) => tensors::write(&path, &[("numbers", Array::U32(numbers))]),
        }
    }

    /// Reads what [`Vectorizer::save`] wrote, made with this configuration.
    pub fn load(folder: &Path, config: FeatureConfig) -> Result<Self> {
        config.validate()?;
        let arrays = Arrays::read(&folder.join(FEATURES))?;
        if arrays.has("numbers") {
            let numbers = arrays.u32("numbers")?;
            if !numbers.is_sorted_by(|a, b| a < b) {
                return Err(arrays.refuse("its features are not in ascending order"));
            }
            return Ok(Self { config, vocabulary: Vocabulary::Numbers(numbers) });
        }
        let idf = arrays.f32("idf")?;
        let path = folder.join(VOCABULARY);
        let refuse = |reason: String| BundleError::content(&path, reason);
        let bytes = fs::read(&path).map_err(Error::io("read", &path))?;
        let text = String::from_utf8(bytes).map_err(|_| refuse("it is not UTF-8".to_owned()))?;
        let terms: Vec<String> = text.split_terminator('\n').map(str::to_owned).collect();
        if terms.len() != idf.len() {
            return Err(refuse(format!("it has {} terms for {} weights", terms.len(), idf.len())).into());
        }
        if let Some(at) = terms.windows(2).position(|pair| pair[0] >= pair[1]) {
            return Err(refuse(format!("line {} is not in ascending order", at + 2)).into());
        }
        Ok(Self { config, vocabulary: Vocabulary::of_terms(terms, idf) })
    }
}
