//! Settings as text: every one of them, the unset ones as comments, numbers as short as they can be written.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Map, Value};
use toml::Table;

use super::RunConfig;
use crate::error::Result;

/// The settings of a section by key. They go through JSON text because that has a value for what is not set, and the
/// shortest decimals that give the same number back: 0.1 for an `f32` of 0.1.
pub(super) fn section(section: &impl Serialize) -> serde_json::Result<Map<String, Value>> {
    serde_json::from_slice(&serde_json::to_vec(section)?)
}

impl RunConfig {
    /// As a settings file. Reads back equal.
    pub fn to_toml(&self) -> Result<String> {
        let mut text = String::new();
        write(&mut text, "", &self.sections()?)?;
        Ok(text)
    }

    /// Every setting; unset ones are null.
    pub fn to_json(&self) -> Result<Value> {
        Ok(Value::Object(self.sections()?))
    }

    /// The settings that are set.
    pub(super) fn table(&self) -> Result<Table> {
        Ok(Table::try_from(set(self.sections()?))?)
    }
}

/// Without what is not set.
fn set(section: Map<String, Value>) -> Map<String, Value> {
    let keep = |(key, value)| match value {
        Value::Null => None,
        Value::Object(inner) => Some((key, Value::Object(set(inner)))),
        value => Some((key, value)),
    };
    section.into_iter().filter_map(keep).collect()
}

/// Values first, then sections.
fn write(text: &mut String, name: &str, section: &Map<String, Value>) -> Result<()> {
    let (sections, values): (Vec<_>, Vec<_>) = section.iter().partition(|(_, value)| value.is_object());
    // A section of sections alone needs no line of its own.
    if !name.is_empty() && (!values.is_empty() || sections.is_empty()) {
        let _ = writeln!(text, "\n[{name}]");
    }
    for (key, value) in values {
        let _ = match value {
            Value::Null => writeln!(text, "# {key} =  # not set"),
            value => writeln!(text, "{key} = {}", toml::Value::try_from(value)?),
        };
    }
    for (key, value) in sections {
        let name = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
        if let Value::Object(inner) = value {
            write(text, &name, inner)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heads;
    use crate::settings::Settings;

    #[test]
    fn the_text_of_every_head_reads_back_equal() {
        for head in heads::all() {
            let config = RunConfig::new(head);
            let text = config.to_toml().unwrap();
            let read: RunConfig = toml::from_str(&text).unwrap();
            assert_eq!(read, config, "{text}");
            assert_eq!(Settings::of(&config).unwrap().resolve::<RunConfig>().unwrap(), config);
        }
    }

    #[test]
    fn what_is_not_set_is_shown_and_numbers_are_short() {
        let text = RunConfig::new(heads::find("svm").unwrap()).to_toml().unwrap();
        assert!(text.contains("\nepsilon = 0.1\n"), "{text}");
        assert!(text.contains("\n# text_field =  # not set\n"), "{text}");
        let text = RunConfig::new(heads::find("flat").unwrap()).to_toml().unwrap();
        assert!(
            text.contains("[train.output]\n# fallback =  # not set\n# learning_rate =  # not set\n"),
            "{text}"
        );
    }
}
