//! Settings that ask for more memory than there is.

use serde_json::{Value, json};

use super::*;
use crate::error::Error;

/// Integers that may be as large as they like, since nothing is allocated by them: why.
const BOUNDED_OTHERWISE: &[(&str, &str, &str)] = &[
    ("aplc", "divisor", "divides a width, which stays at least 1"),
    ("biforest", "bce_epochs", "epochs"),
    ("caml", "bce_epochs", "epochs"),
    ("caml", "max_tokens", "no description is encoded at the default weight of 0"),
    ("enc-dec", "max_labels", "at most the labels there are"),
    ("experts", "diversity_after", "epochs"),
    ("flat", "bce_epochs", "epochs"),
    ("hi-match", "refresh", "updates"),
    ("hilap", "max_labels", "at most the labels there are"),
    ("hilap", "reinforce_after", "epochs"),
    ("laat", "bce_epochs", "epochs"),
    ("label-attention", "bce_epochs", "epochs"),
    ("label-attention", "refresh", "updates"),
    ("label-attention", "sample", "at most the labels there are"),
    ("label-sequence", "max_labels", "at most the labels there are"),
    ("light-xml", "layers", "at most the layers of the encoder"),
    ("lwan", "bce_epochs", "epochs"),
    ("lwan", "max_tokens", "no description is encoded by default"),
    ("lwan", "refresh", "updates"),
    ("sgm", "max_labels", "at most the labels there are"),
];

/// A head, one of its settings, and what it is set to instead.
type Exempt = (&'static str, &'static str, fn(u64) -> Value);

/// Keys of integers, or of lists of them, that a section leaves out at its defaults.
const LEFT_OUT: &[Exempt] = &[
    ("aplc", "cuts", |n| json!([n])),
    ("experts", "diversity_after", |n| json!(n)),
    ("experts", "document_hidden", |n| json!([n])),
    ("hilap", "reinforce_after", |n| json!(n)),
    ("layer-guided", "ties", |n| json!([[n], [n], [n]])),
    ("light-xml", "bottleneck", |n| json!(n)),
    ("text-cnn", "kernels", |n| json!([n, n])),
    ("text-cnn", "maps", |n| json!(n)),
];

/// Sections of a head in which one integer is huge, with its key.
fn huge(head: &str, section: &Value) -> Vec<(String, Value)> {
    let mut sections = Vec::new();
    for n in [1_000_000_001u64, 1_000_000_000_000, 1 << 62] {
        let mut with = |key: &str, value: Value| {
            let mut section = section.clone();
            section[key] = value;
            sections.push((key.to_owned(), section));
        };
        for (key, value) in section.as_object().unwrap() {
            match value {
                Value::Number(number) if number.is_u64() => with(key, json!(n)),
                Value::Array(list) if !list.is_empty() && list.iter().all(Value::is_u64) => {
                    with(key, json!([n]));
                }
                _ => {}
            }
        }
        for (_, key, value) in LEFT_OUT.iter().filter(|(of, ..)| *of == head) {
            with(key, value(n));
        }
    }
    sections
}

#[test]
fn a_setting_beyond_all_memory_is_refused_by_name() {
    let toy = Toy::new(Task::MultiLabel);
    let mut exempt = Vec::new();
    for (name, _, config) in HEADS {
        let section = config().serialize_section(serde_json::value::Serializer).unwrap();
        for (key, section) in huge(name, &section) {
            let config = AnyHeadConfig::parse(name, section.clone()).unwrap().unwrap();
            let source = EncoderSource::parse("scratch:tiny").unwrap();
            let device = Device::flex();
            let made = NeuralModel::create(
                design(config, Task::MultiLabel),
                &source,
                &toy.examples(),
                toy.taxonomy.clone(),
                &toy.counts(),
                &Start::new(1, &device),
            );
            let is_exempt = BOUNDED_OTHERWISE.iter().any(|(head, of, _)| head == name && *of == key);
            match made {
                Ok(_) => {
                    assert!(is_exempt, "{name}.{key} is taken: {section}");
                    exempt.push((*name, key));
                }
                Err(error) => {
                    let is_setting = matches!(
                        error,
                        Error::Head { .. } | Error::Core(cladist_core::Error::Setting { .. })
                    );
                    let said = format!("{error} {}", error.remedy().unwrap_or_default());
                    assert!(is_setting && said.contains(&key), "{name}.{key}: {said}");
                }
            }
        }
    }
    // No exemption that is not used.
    for (head, key, why) in BOUNDED_OTHERWISE {
        assert!(exempt.iter().any(|(name, of)| name == head && of == key), "{head}.{key}: {why}");
    }
}
