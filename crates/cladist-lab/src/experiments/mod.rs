//! The table of experiments: comparisons of variants as their authors made them, each run by one command.
//!
//! An experiment is a file beside this one and a line in [`ALL`]. It says what to run and which table to print; how
//! runs are made, chosen, resumed and compared is the business of `cladist experiment`.

mod experts;
mod himtl;
mod label_attention;
mod layer_guided;
mod mixed;

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use crate::error::Result;

/// A comparison of variants.
#[derive(Debug, Serialize)]
pub struct Experiment {
    /// As typed.
    pub name: &'static str,
    /// One line of help.
    pub description: &'static str,
    /// What is compared, in the order of the table.
    pub variants: &'static [Variant],
    /// Settings of all variants; the user's win over them.
    #[serde(serialize_with = "map")]
    pub shared: &'static [Setting],
    /// What is tried for each variant, with one seed; the best on dev is run with all seeds.
    pub grid: &'static [Axis],
    /// The variant that all others are tested against.
    pub baseline: &'static str,
    /// What the table shows, in words.
    pub measure: &'static str,
    /// The table.
    pub columns: &'static [Column],
    /// Parts of the table that are shown one after the other; the whole if there are none.
    pub views: &'static [View],
    /// What is measured of one variant when it answers with other settings than it was trained with.
    pub sweep: Option<Sweep>,
}

/// Some rows and columns of a table.
#[derive(Debug, Serialize)]
pub struct View {
    /// What it is about.
    pub title: &'static str,
    /// Its variants; all if there are none.
    pub variants: &'static [&'static str],
    /// The metrics of its columns.
    pub metrics: &'static [&'static str],
}

/// A setting of a trained model that is varied without training again.
#[derive(Debug, Serialize)]
pub struct Sweep {
    /// The variant; its run with the first seed.
    pub variant: &'static str,
    /// The setting.
    pub key: &'static str,
    /// Its values.
    pub values: &'static [&'static str],
    /// Settings that go with it.
    #[serde(serialize_with = "map")]
    pub settings: &'static [Setting],
}

/// A key and its value, as in `key=value`.
pub type Setting = (&'static str, &'static str);

/// Word vectors of the usual width, without a file, and the rates that networks on them learn at whatever transformers get.
const WORDS: Setting = ("encoder", "words:300");
const RATE: Setting = ("train.learning_rate", "1e-3");
const RATE_OF_LABELS: Setting = ("train.labels.learning_rate", "1e-3");
const RATE_ABOVE: Setting = ("train.output.learning_rate", "1e-3");

/// One of the things compared.
#[derive(Debug, Serialize)]
pub struct Variant {
    /// As typed and printed; the name of a folder.
    pub name: &'static str,
    /// What makes it: `head`, and more. These win over the user's settings.
    #[serde(serialize_with = "map")]
    pub settings: &'static [Setting],
    /// The variants whose runs, seed by seed, an ensemble is made of.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub members: &'static [&'static str],
}

impl Variant {
    /// A variant that is trained.
    const fn new(name: &'static str, settings: &'static [Setting]) -> Self {
        Self { name, settings, members: &[] }
    }

    /// The name of its head.
    #[must_use]
    pub fn head(&self) -> &'static str {
        self.settings.iter().find(|(key, _)| *key == "head").map_or("", |(_, head)| head)
    }
}

/// Settings that take the same value, one after the other. `head.` stands for the section of the variant's head.
#[derive(Debug, Serialize)]
pub struct Axis {
    /// The keys; the first one names the axis.
    pub keys: &'static [&'static str],
    /// The values.
    pub values: &'static [&'static str],
}

/// A column of the table: a share, printed in percent, or a value of the training journal (`train:` and its name).
#[derive(Debug, Serialize)]
pub struct Column {
    /// Its head; `<n>` stands for a level.
    pub label: &'static str,
    /// The metric, on test; one with `<n>` makes a column of each level.
    pub metric: &'static str,
}

/// Every experiment.
pub static ALL: &[&Experiment] = &[
    &experts::EXPERIMENT,
    &himtl::EXPERIMENT,
    &label_attention::EXPERIMENT,
    &layer_guided::EXPERIMENT,
    &mixed::EXPERIMENT,
];

/// The experiment of this name.
pub fn find(name: &str) -> Result<&'static Experiment> {
    let known =
        || ALL.iter().map(|experiment| format!("`{}`", experiment.name)).collect::<Vec<_>>().join(", ");
    let found = ALL.iter().find(|experiment| experiment.name == name).copied();
    Ok(found.ok_or_else(|| cladist::Error::UnknownChoice {
        what: "experiment",
        name: name.to_owned(),
        known: known(),
    })?)
}

fn map<S: Serializer>(settings: &[Setting], serializer: S) -> Result<S::Ok, S::Error> {
    settings.iter().copied().collect::<BTreeMap<_, _>>().serialize(serializer)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_definition_is_sound() {
        let mut names = BTreeSet::new();
        for experiment in ALL {
            assert!(names.insert(experiment.name), "{} is there twice", experiment.name);
            let variants: BTreeSet<&str> = experiment.variants.iter().map(|variant| variant.name).collect();
            assert_eq!(variants.len(), experiment.variants.len(), "{}", experiment.name);
            assert!(variants.contains(experiment.baseline), "{}", experiment.name);
            for (n, variant) in experiment.variants.iter().enumerate() {
                cladist::heads::find(variant.head()).unwrap();
                let before: BTreeSet<&str> =
                    experiment.variants[..n].iter().map(|variant| variant.name).collect();
                assert!(variant.members.iter().all(|member| before.contains(member)), "{}", variant.name);
                assert_eq!(variant.members.is_empty(), variant.head() != "mixed", "{}", variant.name);
            }
            if let Some(sweep) = &experiment.sweep {
                assert!(variants.contains(sweep.variant) && !sweep.values.is_empty(), "{}", experiment.name);
            }
            for column in experiment.columns {
                // What was the case before scores were made coherent is reported beside the metric.
                let metric = column.metric.replace("<n>", "1").replace("-before", "");
                let in_training = metric.starts_with("train:");
                assert!(in_training || cladist_core::metrics::find(&metric).is_some(), "{metric}");
                assert_eq!(column.metric.contains("<n>"), column.label.contains("<n>"), "{}", column.label);
            }
            for view in experiment.views {
                assert!(view.variants.iter().all(|name| variants.contains(name)), "{}", view.title);
                let is_there = |name: &&str| experiment.columns.iter().any(|column| column.metric == *name);
                assert!(view.metrics.iter().all(is_there), "{}", view.title);
            }
            assert!(experiment.grid.iter().all(|axis| !axis.keys.is_empty() && !axis.values.is_empty()));
        }
    }
}
