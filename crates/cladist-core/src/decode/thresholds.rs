//! Thresholds as people and files write them: by level number or label id.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::bundle::{self, BundleError};
use crate::error::{Error, Result};
use crate::taxonomy::Taxonomy;

/// The score that a label must exceed, strictly, to be chosen. The same form in settings and in files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "expected a threshold: a number, a list of one number per level, or a table of `default` and `labels`"
)]
pub enum Thresholds {
    /// One for all labels.
    One(f32),
    /// One per level from level 1; deeper levels use the last.
    PerLevel(Vec<f32>),
    /// Some labels have their own.
    PerLabel(PerLabel),
}

/// Thresholds of single labels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PerLabel {
    /// For labels that are not listed.
    pub default: f32,
    /// By label id.
    pub labels: BTreeMap<String, f32>,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self::One(0.5)
    }
}

impl Thresholds {
    /// Checks that every threshold is between 0 and 1 and that there is one.
    pub fn validate(&self) -> Result<()> {
        const KEY: &str = "decode.threshold";
        let check = |value: f32| {
            if (0.0..=1.0).contains(&value) {
                Ok(())
            } else {
                Err(Error::setting(KEY, "between 0 and 1", value))
            }
        };
        match self {
            Self::One(value) => check(*value),
            Self::PerLevel(levels) if levels.is_empty() => {
                Err(Error::setting(KEY, "a number for level 1", "[]"))
            }
            Self::PerLevel(levels) => levels.iter().try_for_each(|&value| check(value)),
            Self::PerLabel(PerLabel { default, labels }) => {
                std::iter::once(default).chain(labels.values()).try_for_each(|&value| check(value))
            }
        }
    }

    /// Reads the thresholds of a bundle for the labels of its taxonomy.
    pub fn read(path: &Path, taxonomy: &Taxonomy) -> Result<Self> {
        let thresholds: Self = bundle::read_json(path)?;
        match thresholds.resolve(taxonomy) {
            Ok(_) => Ok(thresholds),
            Err(error) => Err(BundleError::content_by(path, error).into()),
        }
    }

    /// The threshold of every label, by [`crate::LabelId::index`].
    pub fn resolve(&self, taxonomy: &Taxonomy) -> Result<Vec<f32>> {
        self.validate()?;
        match self {
            Self::One(value) => Ok(vec![*value; taxonomy.n_labels()]),
            Self::PerLevel(levels) => Ok(taxonomy
                .labels()
                .map(|label| levels[taxonomy.level(label).clamp(1, levels.len()) - 1])
                .collect()),
            Self::PerLabel(PerLabel { default, labels }) => {
                let mut thresholds = vec![*default; taxonomy.n_labels()];
                for (id, &value) in labels {
                    let Some(label) = taxonomy.get(id) else {
                        return Err(Error::UnknownLabel { place: "`decode.threshold`", id: id.clone() });
                    };
                    thresholds[label.index()] = value;
                }
                Ok(thresholds)
            }
        }
    }

    /// Thresholds from one value per label, by [`crate::LabelId::index`]; labels equal to `default` are not listed.
    #[must_use]
    pub fn from_values(values: &[f32], default: f32, taxonomy: &Taxonomy) -> Self {
        let labels = taxonomy
            .labels()
            .zip(values)
            .filter(|&(_, &value)| value != default)
            .map(|(label, &value)| (taxonomy.id(label).to_owned(), value))
            .collect();
        Self::PerLabel(PerLabel { default, labels })
    }
}
