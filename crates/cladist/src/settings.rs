//! Settings in layers: a head's defaults, then the `--config` file, then flags, then `--set`, later ones winning.
//!
//! All layers are TOML tables until the last moment; then one strict deserialisation refuses what no type knows.

use std::path::Path;

use anyhow::{Context, bail};
use cladist_core::Error;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use crate::error::ConfigError;

/// Layers of settings, merged.
#[derive(Debug, Clone, Default)]
pub struct Settings(Table);

impl Settings {
    /// Settings from a file.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path).map_err(Error::io("read", path))?;
        let table = text
            .parse::<Table>()
            .map_err(|error| ConfigError::Syntax { path: path.to_owned(), reason: error.to_string() })?;
        Ok(Self(table))
    }

    /// Settings from a value that serialises to a table.
    pub fn of(value: &impl serde::Serialize) -> anyhow::Result<Self> {
        Ok(Self(Table::try_from(value).context("settings do not form a table")?))
    }

    /// Lays `over` on top.
    pub fn merge(&mut self, over: Self) {
        merge(&mut self.0, over.0);
    }

    /// Sets one key, such as `train.seed`.
    pub fn set(&mut self, key: &str, value: impl Into<Value>) -> anyhow::Result<()> {
        let mut parts: Vec<&str> = key.split('.').collect();
        let last = parts.pop().unwrap_or_default();
        if last.is_empty() || parts.iter().any(|part| part.is_empty()) {
            bail!(ConfigError::Key(key.to_owned()));
        }
        let mut table = &mut self.0;
        for part in parts {
            let entry = table.entry(part).or_insert_with(|| Value::Table(Table::new()));
            let Value::Table(inner) = entry else { bail!(ConfigError::NotASection { key: key.to_owned() }) };
            table = inner;
        }
        table.insert(last.to_owned(), value.into());
        Ok(())
    }

    /// Applies a `--set` argument: `key=value`, the value as in TOML, or else a plain string.
    pub fn set_argument(&mut self, argument: &str) -> anyhow::Result<()> {
        let Some((key, value)) = argument.split_once('=') else {
            bail!(ConfigError::Argument(argument.to_owned()));
        };
        let value = value.trim();
        let parsed =
            format!("value = {value}").parse::<Table>().ok().and_then(|mut table| table.remove("value"));
        self.set(key.trim(), parsed.unwrap_or_else(|| Value::String(value.to_owned())))
    }

    /// A string setting at the top level.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(Value::as_str)
    }

    /// Checks the settings against a type: unknown keys and wrong values are refused by name.
    pub fn resolve<T: DeserializeOwned>(self) -> anyhow::Result<T> {
        T::deserialize(self.0).map_err(|error| ConfigError::Refused(tidy(&error.to_string())).into())
    }
}

fn merge(under: &mut Table, over: Table) {
    for (key, value) in over {
        match (under.get_mut(&key), value) {
            (Some(Value::Table(under)), Value::Table(over)) => merge(under, over),
            (_, value) => {
                under.insert(key, value);
            }
        }
    }
}

/// toml's messages come with positions in a text the user never wrote.
fn tidy(message: &str) -> String {
    message.lines().filter(|line| !line.trim().is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Train {
        epochs: usize,
        rate: f64,
        name: String,
    }

    #[derive(Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Config {
        head: String,
        train: Train,
    }

    #[test]
    fn later_layers_win_key_by_key() {
        let base = Config { head: "svm".into(), train: Train { epochs: 1, rate: 0.5, name: "x".into() } };
        let mut settings = Settings::of(&base).unwrap();
        settings.merge(Settings("[train]\nepochs = 2".parse().unwrap()));
        settings.set_argument("train.rate=2e-5").unwrap();
        settings.set_argument("train.name=plain words").unwrap();
        let config: Config = settings.resolve().unwrap();
        assert_eq!(config.head, "svm");
        assert_eq!(config.train, Train { epochs: 2, rate: 2e-5, name: "plain words".into() });
    }

    #[test]
    fn an_unknown_key_is_refused_by_name() {
        let mut settings = Settings::of(&Config::default()).unwrap();
        settings.set_argument("train.epoch=3").unwrap();
        let error = settings.resolve::<Config>().unwrap_err().to_string();
        assert!(error.contains("`epoch`") && error.contains("`epochs`"), "{error}");
    }

    #[test]
    fn a_set_argument_needs_a_key_and_a_value() {
        let mut settings = Settings::default();
        assert!(settings.set_argument("train.epochs").is_err());
        assert!(settings.set_argument(".x=1").is_err());
        settings.set_argument("a=1").unwrap();
        assert!(settings.set_argument("a.b=1").unwrap_err().to_string().contains("`a.b`"));
    }
}
