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
}
