//! What must not change between an interruption of a run and its resumption, kept so that a difference has a name.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::config::TrainConfig;
use super::source::{Source, hash_ids, hash_labels};
use crate::descriptions::Descriptions;
use crate::error::{Error, Result};
use crate::examples::Examples;
use crate::heads::Task;
use crate::model::{Design, NeuralModel};

/// Settings that do not change what is learnt: how often a run saves or speaks.
const FREE: [&str; 3] = ["train.checkpoint_steps", "train.checkpoint_minutes", "train.log_steps"];

/// Settings and documents of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Identity {
    /// By key, as JSON has them.
    settings: BTreeMap<String, String>,
    /// Hashes by what they are of.
    documents: BTreeMap<String, String>,
}

impl Identity {
    pub(super) fn new(
        config: &TrainConfig,
        model: &NeuralModel,
        source: &dyn Source,
        dev: Option<&Examples<'_>>,
    ) -> Self {
        let mut settings = BTreeMap::new();
        flatten("", &self::settings(config, &model.design), &mut settings);
        settings.retain(|key, _| !FREE.contains(&key.as_str()));
        let train = source.fingerprint();
        let mut documents = BTreeMap::from([
            ("training documents".to_owned(), train.texts),
            ("labels of training documents".to_owned(), train.labels),
        ]);
        if let Some(descriptions) = model.descriptions() {
            documents.insert("descriptions of labels".to_owned(), hash_descriptions(descriptions));
        }
        if let Some(Examples { documents: texts, gold }) = dev {
            let mut hasher = blake3::Hasher::new();
            for document in *texts {
                hasher.update(&(document.text.len() as u64).to_le_bytes());
                hasher.update(document.text.as_bytes());
            }
            documents.insert("dev documents".to_owned(), hasher.finalize().to_hex().to_string());
            documents.insert("labels of dev documents".to_owned(), hash_labels(gold));
        }
        Self { settings, documents }
    }

    /// What differs from the run as it began, for a person.
    pub(super) fn differences(&self, began: &Self) -> Vec<String> {
        let value = |values: &BTreeMap<String, String>, key: &str| {
            values.get(key).map_or_else(|| "nothing".to_owned(), Clone::clone)
        };
        let setting = |key: &String| {
            format!("`{key}` was {} and is {}", value(&began.settings, key), value(&self.settings, key))
        };
        let settings = changed(&self.settings, &began.settings).into_iter().map(setting);
        let documents = changed(&self.documents, &began.documents).into_iter();
        settings.chain(documents.map(|what| format!("other {what}"))).collect()
    }
}

/// Keys with other values, or that only one has.
fn changed<'a>(a: &'a BTreeMap<String, String>, b: &'a BTreeMap<String, String>) -> Vec<&'a String> {
    let added = b.keys().filter(|key| !a.contains_key(*key));
    a.iter().filter(|(key, value)| b.get(*key) != Some(value)).map(|(key, _)| key).chain(added).collect()
}

/// Settings under the keys that users give them by.
fn settings(config: &TrainConfig, design: &Design) -> Value {
    // A ranker comes after all this, and outputs begin as the training's settings say.
    let Design { head, branches, task, tokens, label_smoothing, prior_bias: _, shortlist, ranker: _ } =
        design;
    let mut train = json!(config);
    train["label_smoothing"] = json!(label_smoothing);
    let mut settings =
        json!({ "head": head.name(), "task": task, "branches": branches, "tokens": tokens, "train": train });
    settings[head.name()] = head.serialize_section(serde_json::value::Serializer).unwrap_or_default();
    if shortlist.is_on() {
        settings["shortlist"] = json!(shortlist);
    }
    settings
}

/// Values by dotted key. Settings are a few sections deep.
fn flatten(prefix: &str, value: &Value, found: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(values) => {
            for (key, value) in values {
                let key = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
                flatten(&key, value, found);
            }
        }
        // Not set: as if there were no such setting.
        Value::Null => {}
        other => {
            found.insert(prefix.to_owned(), other.to_string());
        }
    }
}

fn hash_descriptions(descriptions: &Descriptions) -> String {
    let mut hasher = blake3::Hasher::new();
    descriptions.ids().for_each(|ids| hash_ids(&mut hasher, ids));
    hasher.finalize().to_hex().to_string()
}

/// With a softmax, every document must have one label.
pub(super) fn check_gold(examples: &Examples<'_>, task: Task) -> Result<()> {
    if task == Task::MultiLabel {
        return Ok(());
    }
    let wrong = examples.gold.iter().position(|labels| labels.len() != 1);
    wrong.map_or(Ok(()), |n| {
        let id = examples.documents[n].id.clone();
        Err(Error::NotOneLabel { id, n_labels: examples.gold[n].len() })
    })
}
