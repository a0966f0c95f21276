//! What can be chosen about tokens.

use cladist_core::{Error, Result};
use serde::{Deserialize, Serialize};

/// The tokens that are put around every sequence: one before, one after.
pub(super) const SPECIAL: usize = 2;

/// Which part of a document is kept if it is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Truncate {
    /// The beginning.
    #[default]
    Head,
    /// The end.
    Tail,
    /// Half of the room for the beginning, half for the end; an odd token goes to the beginning.
    HeadTail,
}

/// How the scores of a document's windows become the scores of the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pool {
    /// The highest score of each label.
    #[default]
    Max,
    /// The mean score of each label.
    Mean,
}

/// How texts become tokens: the `[tokens]` section.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TokensConfig {
    /// The length of a sequence at most, counting the special tokens before and after.
    pub max_tokens: usize,
    /// What is kept of a longer document. With more than one window it must be `head`.
    pub truncate: Truncate,
    /// Sequences that a document is divided into at most, counted from its beginning.
    pub windows: usize,
    /// Tokens that a window shares with the one before; without effect on a single window.
    pub stride: usize,
    /// How the scores of windows are brought together; without effect on a single window.
    pub pool: Pool,
}

impl Default for TokensConfig {
    fn default() -> Self {
        Self { max_tokens: 128, truncate: Truncate::Head, windows: 1, stride: 0, pool: Pool::Max }
    }
}

impl TokensConfig {
    /// Refuses values that make no sense, naming the key.
    pub fn validate(&self) -> Result<()> {
        if !(8..=1_000_000).contains(&self.max_tokens) {
            return Err(Error::setting("tokens.max_tokens", "8 to 1000000", self.max_tokens));
        }
        if !(1..=10_000).contains(&self.windows) {
            return Err(Error::setting("tokens.windows", "1 to 10000", self.windows));
        }
        if self.stride >= self.room() {
            return Err(Error::setting("tokens.stride", "below `tokens.max_tokens` - 2", self.stride));
        }
        if self.windows > 1 && self.truncate != Truncate::Head {
            let value = match self.truncate {
                Truncate::Head => "head",
                Truncate::Tail => "tail",
                Truncate::HeadTail => "head-tail",
            };
            return Err(Error::setting("tokens.truncate", "`head` if `tokens.windows` is above 1", value));
        }
        Ok(())
    }

    /// Tokens of the text in a sequence at most.
    pub(super) fn room(&self) -> usize {
        self.max_tokens.saturating_sub(SPECIAL)
    }

    /// How far a window begins after the one before.
    pub(super) fn step(&self) -> usize {
        self.room().saturating_sub(self.stride).max(1)
    }
}

/// Pools the scores of windows into scores of documents, row by row.
///
/// # Shapes
/// `scores`: Σ `windows` × `n_labels`, the windows of a document one after the other; `windows`: how many each
/// document has. The result is `windows.len()` × `n_labels`. A document without windows scores 0 everywhere.
///
/// ```
/// use cladist_nn::tokens::{Pool, pool_rows};
///
/// let scores = [0.1, 0.6, 0.3, 0.2, 0.5, 0.5];
/// assert_eq!(pool_rows(&scores, 2, &[2, 1], Pool::Max).unwrap(), [0.3, 0.6, 0.5, 0.5]);
/// assert_eq!(pool_rows(&scores, 2, &[2, 1], Pool::Mean).unwrap(), [0.2, 0.4, 0.5, 0.5]);
/// ```
pub fn pool_rows(scores: &[f32], n_labels: usize, windows: &[usize], pool: Pool) -> Result<Vec<f32>> {
    let expected = windows.iter().sum::<usize>() * n_labels;
    if scores.len() != expected {
        return Err(Error::Mismatch {
            left: "scores of windows",
            n_left: scores.len(),
            right: "windows × labels",
            n_right: expected,
        });
    }
    let mut pooled = vec![0.0; windows.len() * n_labels];
    if n_labels == 0 {
        return Ok(pooled);
    }
    let mut rows = scores.chunks_exact(n_labels);
    for (document, &n_windows) in pooled.chunks_exact_mut(n_labels).zip(windows) {
        for (i, row) in rows.by_ref().take(n_windows).enumerate() {
            for (all, &score) in document.iter_mut().zip(row) {
                *all = match pool {
                    _ if i == 0 => score,
                    Pool::Max => all.max(score),
                    Pool::Mean => *all + score,
                };
            }
        }
        if pool == Pool::Mean && n_windows > 1 {
            document.iter_mut().for_each(|score| *score /= n_windows as f32);
        }
    }
    Ok(pooled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_valid_and_survive_toml() {
        let config = TokensConfig::default();
        config.validate().unwrap();
        let text = toml::to_string(&config).unwrap();
        assert!(text.contains("truncate = \"head\""), "{text}");
        assert_eq!(toml::from_str::<TokensConfig>(&text).unwrap(), config);
        assert_eq!(toml::from_str::<TokensConfig>("").unwrap(), config);
        assert!(toml::from_str::<TokensConfig>("max_token = 9").is_err());
    }

    #[test]
    fn a_bad_setting_is_named_with_its_value() {
        let message = |text: &str| {
            toml::from_str::<TokensConfig>(text).unwrap().validate().map_err(|error| error.to_string())
        };
        assert_eq!(message("max_tokens = 7").unwrap_err(), "`tokens.max_tokens` must be 8 to 1000000: 7");
        assert_eq!(message("windows = 0").unwrap_err(), "`tokens.windows` must be 1 to 10000: 0");
        assert_eq!(
            message("max_tokens = 10\nstride = 8").unwrap_err(),
            "`tokens.stride` must be below `tokens.max_tokens` - 2: 8"
        );
        assert_eq!(
            message("windows = 2\ntruncate = \"head-tail\"").unwrap_err(),
            "`tokens.truncate` must be `head` if `tokens.windows` is above 1: head-tail"
        );
        message("max_tokens = 10\nstride = 7\nwindows = 3").unwrap();
        message("truncate = \"tail\"").unwrap();
    }

    #[test]
    fn negative_scores_are_pooled_like_others() {
        let scores = [-3.0, -1.0, -2.0];
        assert_eq!(pool_rows(&scores, 1, &[2, 1], Pool::Max).unwrap(), [-1.0, -2.0]);
        assert_eq!(pool_rows(&scores, 1, &[2, 1], Pool::Mean).unwrap(), [-2.0, -2.0]);
    }

    #[test]
    fn rows_that_do_not_add_up_are_refused() {
        let error = pool_rows(&[0.0; 5], 2, &[1, 2], Pool::Max).unwrap_err();
        assert_eq!(error.to_string(), "5 scores of windows but 6 windows × labels");
        assert_eq!(pool_rows(&[], 3, &[0], Pool::Mean).unwrap(), [0.0; 3]);
        assert!(pool_rows(&[], 0, &[1, 1], Pool::Max).unwrap().is_empty());
    }
}
