//! Settings in layers: a head's defaults, then those of a file, then single ones, later ones winning.
//!
//! All layers are TOML tables until the last moment; then one strict deserialisation refuses what no type knows.

use std::collections::BTreeMap;
use std::path::Path;

use serde::de::DeserializeOwned;
use toml::{Table, Value};

use crate::error::{Error, Result};

/// Layers of settings, merged.
#[derive(Debug, Clone, Default)]
pub struct Settings(Table);

impl Settings {
    /// Settings from a file.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(Error::io("read", path))?;
        let table = text
            .parse::<Table>()
            .map_err(|error| Error::Syntax { path: path.to_owned(), source: error.into() })?;
        Ok(Self(table))
    }

    /// Settings from a value that serialises to a table.
    pub fn of(value: &impl serde::Serialize) -> Result<Self> {
        Ok(Self(Table::try_from(value)?))
    }

    /// Lays `over` on top.
    pub fn merge(&mut self, over: Self) {
        merge(&mut self.0, over.0);
    }

    /// Sets one key, such as `train.seed`.
    pub fn set(&mut self, key: &str, value: impl Into<Value>) -> Result<()> {
        let mut parts: Vec<&str> = key.split('.').collect();
        let last = parts.pop().unwrap_or_default();
        if last.is_empty() || parts.iter().any(|part| part.is_empty()) {
            return Err(Error::Key(key.to_owned()));
        }
        let mut table = &mut self.0;
        for part in parts {
            let entry = table.entry(part).or_insert_with(|| Value::Table(Table::new()));
            let Value::Table(inner) = entry else { return Err(Error::NotASection(key.to_owned())) };
            table = inner;
        }
        table.insert(last.to_owned(), value.into());
        Ok(())
    }

    /// Sets `key=value`, the value as in TOML, or else a plain string.
    pub fn set_argument(&mut self, argument: &str) -> Result<()> {
        let Some((key, value)) = argument.split_once('=') else {
            return Err(Error::NoValue(argument.to_owned()));
        };
        self.set_text(key.trim(), value)
    }

    /// Sets one key to a value as in TOML, or else to a plain string.
    pub fn set_text(&mut self, key: &str, value: &str) -> Result<()> {
        let value = value.trim();
        if value.contains('\n') {
            return Err(Error::Lines(key.to_owned()));
        }
        let parsed =
            format!("value = {value}").parse::<Table>().ok().and_then(|mut table| table.remove("value"));
        self.set(key, parsed.unwrap_or_else(|| Value::String(value.to_owned())))
    }

    /// Drops values and sections of the top level that are not to be kept.
    pub fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.0.retain(|key, _| keep(key));
    }

    /// Only the values whose whole keys, such as `train.seed`, are to be kept.
    pub fn filtered(&self, keep: impl Fn(&str) -> bool) -> Result<Self> {
        let mut kept = Self::default();
        for (key, value) in self.flat().into_iter().filter(|(key, _)| keep(key)) {
            kept.set(&key, value)?;
        }
        Ok(kept)
    }

    /// Whether a key, such as `train.seed`, is set.
    #[must_use]
    pub fn contains(&self, key: &str) -> bool {
        let mut parts = key.split('.');
        let first = parts.next().and_then(|part| self.0.get(part));
        parts.fold(first, |value, part| value.and_then(|value| value.get(part))).is_some()
    }

    /// Every value with its whole key, such as `train.seed`, in the order of the keys.
    #[must_use]
    pub fn flat(&self) -> BTreeMap<String, Value> {
        let mut flat = BTreeMap::new();
        let mut open: Vec<(String, &Table)> = vec![(String::new(), &self.0)];
        while let Some((prefix, table)) = open.pop() {
            for (key, value) in table {
                let key = format!("{prefix}{key}");
                match value {
                    Value::Table(inner) => open.push((format!("{key}."), inner)),
                    value => {
                        flat.insert(key, value.clone());
                    }
                }
            }
        }
        flat
    }

    /// A string setting at the top level.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(Value::as_str)
    }

    /// Checks the settings against a type: unknown keys and wrong values are refused by name.
    pub fn resolve<T: DeserializeOwned>(self) -> Result<T> {
        T::deserialize(self.0).map_err(|error| refused(&error.to_string()))
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

/// What toml says of settings, by key. It tells of keys in its last line alone, ``in `train` ``, and not which of a section is
/// unknown; nothing else is in its error, so that no source is kept.
fn refused(message: &str) -> Error {
    let (section, problem) = place_and_problem(message);
    let unknown = problem.strip_prefix("unknown field `").and_then(|rest| rest.split('`').next());
    let parts: Vec<&str> = section.into_iter().chain(unknown).collect();
    Error::Refused { key: (!parts.is_empty()).then(|| parts.join(".")), problem }
}

/// The same message, of settings that stand in a section.
pub(crate) fn within(section: &str, message: &str) -> String {
    let (place, problem) = place_and_problem(message);
    let place = place.map(|place| format!(".{place}")).unwrap_or_default();
    format!("{problem}\nin `{section}{place}`")
}

fn place_and_problem(message: &str) -> (Option<&str>, String) {
    let mut lines: Vec<&str> = message.lines().filter(|line| !line.trim().is_empty()).collect();
    let place = lines.last().and_then(|line| line.strip_prefix("in `")?.strip_suffix('`'));
    if place.is_some() {
        lines.pop();
    }
    (place, lines.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::RunConfig;

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
        let error = settings.resolve::<Config>().unwrap_err();
        assert!(matches!(&error, Error::Refused { key: Some(key), .. } if key == "train.epoch"), "{error:?}");
        let error = error.to_string();
        assert!(error.contains("`epoch`") && error.contains("`epochs`") && !error.contains('\n'), "{error}");
    }

    #[test]
    fn a_setting_that_is_refused_has_its_key_wherever_it_stands() {
        for (head, argument, wanted) in [
            ("svm", "colour=1", "colour"),
            ("svm", "linear.c=many", "linear.c"),
            ("svm", "linear.colour=1", "linear.colour"),
            ("svm", "metrics.propensity=x", "metrics.propensity"),
            ("svm", "refit=perhaps", "refit"),
            ("flat", "flat.colour=1", "flat.colour"),
            ("flat", "flat.loss=none", "flat.loss"),
            ("flat", "train.schedule.warmup=x", "train.schedule.warmup"),
            ("flat", "head=3", "head"),
            ("flat", "head=perceptron", "head"),
        ] {
            let mut settings = Settings::of(&RunConfig::new(crate::heads::find(head).unwrap())).unwrap();
            settings.set_argument(argument).unwrap();
            let error = settings.resolve::<RunConfig>().unwrap_err();
            let Error::Refused { key, .. } = &error else { panic!("{error}") };
            assert_eq!(key.as_deref(), Some(wanted), "{argument}: {error}");
        }
    }

    #[test]
    fn a_file_that_is_not_toml_keeps_the_error_of_its_parser() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("my.toml");
        std::fs::write(&path, "[train]\nepochs =\n").unwrap();
        let error = Settings::read(&path).unwrap_err();
        let source = std::error::Error::source(&error).unwrap();
        assert!(source.is::<toml::de::Error>());
        let source = source.to_string();
        assert!(source.contains("line 2") && !error.to_string().contains('\n'), "{error}: {source}");
    }

    #[test]
    fn keys_are_found_wherever_they_stand() {
        let settings = Settings("a = 1\n[train]\nrate = 2\n[train.deep]\nx = 3".parse().unwrap());
        assert!(settings.contains("a") && settings.contains("train.deep.x") && settings.contains("train"));
        assert!(!settings.contains("a.b") && !settings.contains("train.x") && !settings.contains("b"));
        let keys: Vec<String> = settings.flat().into_keys().collect();
        assert_eq!(keys, ["a", "train.deep.x", "train.rate"]);
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
