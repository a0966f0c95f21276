//! What an experiment will run: every variant with every combination of settings, resolved before anything is trained.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use cladist::config::{Layers, difference};
use cladist::corpora::{hashes, whole_paths};
use cladist::heads::{self, HeadInfo};
use cladist::settings::Settings;
use cladist::{BadLinePolicy, RunConfig};
use cladist_core::bundle::write_atomically;
use cladist_core::corpus::{CorpusSource, SplitName};
use serde::{Deserialize, Serialize};

use super::ExperimentOptions;
use crate::error::{LabError, Result};
use crate::experiments::{self, Experiment, Variant};
use crate::spec::Spec;
use crate::trials::{self, Axis, Combination};

/// The file that an experiment's folder knows its settings by.
const PLAN: &str = "plan.json";
/// The combination without axes.
const AS_GIVEN: &str = "as-given";

/// Everything that decides what is run.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    pub(super) experiment: &'static Experiment,
    pub(super) variants: Vec<PlannedVariant>,
    pub(super) seeds: Vec<u64>,
    /// Where results are measured.
    pub(super) split: SplitName,
    /// What every run shares.
    pub(super) spec: Spec<'a>,
    corpus: CorpusCard,
}

/// A variant with the combinations of settings to choose from.
#[derive(Debug)]
pub(super) struct PlannedVariant {
    pub(super) variant: &'static Variant,
    pub(super) combinations: Vec<PlannedCombination>,
}

/// A combination of settings of a variant.
#[derive(Debug)]
pub(super) struct PlannedCombination {
    /// Below the experiment's folder.
    pub(super) folder: String,
    /// What varies, by a short name, with its value here.
    pub(super) values: Vec<(String, String)>,
    /// The whole settings, with the first seed.
    pub(super) config: RunConfig,
}

/// The corpus of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct CorpusCard {
    source: CorpusSource,
    files: BTreeMap<String, String>,
    skip_bad: bool,
}

/// What is kept in the folder. Variants, values and seeds may be added later; what is there stays as it is.
#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    experiment: String,
    corpus: CorpusCard,
    /// Settings as TOML by folder; seeds of training aside.
    settings: BTreeMap<String, String>,
}

impl Stored {
    fn read(out: &Path) -> Result<Option<Self>> {
        let path = out.join(PLAN);
        if !path.exists() {
            return Ok(None);
        }
        let bytes = std::fs::read(&path).map_err(LabError::io("read", &path))?;
        Ok(Some(serde_json::from_slice(&bytes).map_err(|error| cladist::Error::damaged(&path, error))?))
    }
}

impl<'a> Plan<'a> {
    /// Resolves all settings, so that every fault in them shows at once.
    pub(super) fn new(args: &ExperimentOptions<'a>) -> Result<Self> {
        let experiment = experiments::find(&args.name)?;
        let chosen = variants(experiment, &args.variants)?;
        let sets_head =
            |argument: &String| argument.split('=').next().is_some_and(|key| key.trim() == "head");
        let layers = &args.spec.layers;
        if layers.head.is_some() || layers.set.iter().any(sets_head) {
            return Err(LabError::HeadChosen);
        }
        for planned in &chosen {
            let absent =
                planned.members.iter().find(|member| !chosen.iter().any(|other| other.name == **member));
            if let Some(member) = absent {
                return Err(LabError::NoMember { variant: planned.name, member });
            }
        }
        let axes = axes(experiment, args)?;
        for_known_variants(experiment, args)?;
        let keys = axes.iter().flat_map(|axis| &axis.keys).map(String::as_str);
        // What is for one variant alone is of no concern to the others.
        let set = args.spec.layers.set.iter().filter(|set| of_variant(set).is_none()).map(String::as_str);
        no_other_heads(&chosen, keys.chain(set))?;
        let variants: Vec<PlannedVariant> = chosen
            .into_iter()
            .map(|variant| plan_variant(experiment, variant, &axes, args))
            .collect::<Result<_>>()?;
        let source = whole_paths(args.spec.corpus.clone())?;
        if source.train.is_empty() {
            return Err(cladist::Error::NoSplit { split: SplitName::Train, purpose: "to learn from" }.into());
        }
        for planned in &variants {
            let held_out = planned.combinations.iter().all(|one| one.config.common.data.dev > 0.0);
            if planned.combinations.len() > 1 && source.dev.is_empty() && !held_out {
                return Err(LabError::NoDevToChooseOn);
            }
        }
        let first = variants.first().and_then(|planned| planned.combinations.first());
        let first = first.map_or(0, |combination| combination.config.seed());
        let n = args.seeds;
        if n == 0 {
            return Err(LabError::Zero("seeds"));
        }
        let split = if source.test.is_empty() { SplitName::Dev } else { SplitName::Test };
        let files = hashes(&source)?;
        let skip_bad = args.spec.bad_lines != BadLinePolicy::Stop;
        Ok(Self {
            experiment,
            variants,
            seeds: (0..u64::from(n)).map(|k| first + k).collect(),
            split,
            spec: Spec { corpus: source.clone(), ..args.spec.clone() },
            corpus: CorpusCard { source, files, skip_bad },
        })
    }

    /// All runs: the grid with the first seed, and the choice with the others.
    pub(super) fn n_runs(&self) -> usize {
        self.variants.iter().map(|planned| planned.combinations.len() + self.seeds.len() - 1).sum()
    }

    /// The corpus, file by file, as a reader of the results wants it.
    pub(super) fn corpus_files(&self) -> Vec<String> {
        let CorpusSource { train, dev, test, taxonomy, names, vocabulary: _ } = &self.corpus.source;
        let files = train.iter().chain(dev).chain(test).chain(taxonomy).chain(names);
        files.map(|path| path.display().to_string()).collect()
    }

    /// Refuses a folder that is not new, empty, or of the same experiment with the same settings.
    pub(super) fn check_place(&self, out: &Path) -> Result<()> {
        if let Some(known) = Stored::read(out)? {
            return self.check_known(&known, out);
        }
        if out.exists() && !out.read_dir().is_ok_and(|mut entries| entries.next().is_none()) {
            return Err(LabError::NotAnExperiment(out.to_owned()));
        }
        Ok(())
    }

    /// Removes an earlier experiment, whatever its settings.
    pub(super) fn clear(out: &Path) -> Result<()> {
        if out.join(PLAN).exists() {
            std::fs::remove_dir_all(out).map_err(LabError::io("remove", out))?;
        }
        Ok(())
    }

    /// Remembers the settings in a folder that passed the check.
    pub(super) fn keep(&self, out: &Path) -> Result<()> {
        let mut stored = Stored {
            experiment: self.experiment.name.to_owned(),
            corpus: self.corpus.clone(),
            settings: Stored::read(out)?.map(|known| known.settings).unwrap_or_default(),
        };
        for combination in self.variants.iter().flat_map(|planned| &planned.combinations) {
            let text = combination.config.clone().with_seed(0).to_toml()?;
            stored.settings.insert(combination.folder.clone(), text);
        }
        std::fs::create_dir_all(out).map_err(LabError::io("create", out))?;
        write_atomically(&out.join(PLAN), &serde_json::to_vec_pretty(&stored)?)?;
        Ok(())
    }

    fn check_known(&self, known: &Stored, out: &Path) -> Result<()> {
        let refuse = |difference: String| Err(LabError::OtherPlan { path: out.to_owned(), difference });
        if known.experiment != self.experiment.name {
            return refuse(format!("another name: `{}`", known.experiment));
        }
        if known.corpus != self.corpus {
            return refuse("another corpus, or one that has changed since".to_owned());
        }
        for combination in self.variants.iter().flat_map(|planned| &planned.combinations) {
            let Some(text) = known.settings.get(&combination.folder) else { continue };
            let now = combination.config.clone().with_seed(0);
            // Read as settings: keys that are new since have their defaults.
            let Ok(then) = toml::from_str::<RunConfig>(text) else {
                return refuse("settings that cannot be read".to_owned());
            };
            if then != now {
                return refuse(format!("other settings: {}", difference(&then, &now)?.unwrap_or_default()));
            }
        }
        Ok(())
    }
}

/// The variants of these names, or all, in the order of the definition.
fn variants(experiment: &'static Experiment, names: &[String]) -> Result<Vec<&'static Variant>> {
    let names: BTreeSet<&str> = names.iter().map(|name| name.trim()).collect();
    for name in &names {
        if !experiment.variants.iter().any(|variant| variant.name == *name) {
            let known = experiment.variants.iter().map(|variant| format!("`{}`", variant.name));
            let known = known.collect::<Vec<_>>().join(", ");
            return Err(
                cladist::Error::UnknownChoice { what: "variant", name: (*name).to_owned(), known }.into()
            );
        }
    }
    let chosen = experiment.variants.iter();
    Ok(chosen.filter(|variant| names.is_empty() || names.contains(variant.name)).collect())
}

/// What is tried: what the user says, or else the experiment's grid.
fn axes(experiment: &Experiment, args: &ExperimentOptions<'_>) -> Result<Vec<Axis>> {
    if args.no_grid {
        return Ok(Vec::new());
    }
    if !args.tries.is_empty() {
        return args.tries.iter().map(|argument| Axis::parse(argument)).collect();
    }
    let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    let grid = experiment.grid.iter();
    Ok(grid.map(|axis| Axis { keys: owned(axis.keys), values: owned(axis.values) }).collect())
}

/// What the user's settings decide: the grid leaves it alone. What is to be tried is for it to vary.
fn decided(head: &HeadInfo, variant: &Variant, args: &ExperimentOptions<'_>) -> Result<Settings> {
    let mut decided = Settings::default();
    if args.tries.is_empty() {
        if let Some(rate) = args.spec.layers.over.flat().remove("train.learning_rate") {
            decided.set("train.learning_rate", rate)?;
        }
        for argument in sets_of(args, variant) {
            decided.set_argument(&of_head(&argument, head.name))?;
        }
    }
    Ok(decided)
}

/// Refuses settings of heads that no variant has: they would have no effect.
fn no_other_heads<'a>(variants: &[&'static Variant], keys: impl Iterator<Item = &'a str>) -> Result<()> {
    for key in keys {
        let Some(head) = heads::section(key) else { continue };
        if !variants.iter().any(|variant| variant.head() == head) {
            return Err(LabError::NoEffect { key: key.to_owned(), head });
        }
    }
    Ok(())
}

/// The variant and the rest of `VARIANT:KEY=VALUE`.
fn of_variant(argument: &str) -> Option<(&str, &str)> {
    let (name, rest) = argument.split_once(':')?;
    // A colon in a value comes after the `=`.
    (!name.contains('=')).then_some((name.trim(), rest))
}

/// What the user sets for a variant: what is for all, and what is for it alone.
fn sets_of(args: &ExperimentOptions<'_>, variant: &Variant) -> Vec<String> {
    let set = args.spec.layers.set.iter().filter_map(|argument| match of_variant(argument) {
        Some((name, rest)) => (name == variant.name).then(|| rest.to_owned()),
        None => Some(argument.clone()),
    });
    set.collect()
}

/// Refuses settings for variants that the experiment does not have.
fn for_known_variants(experiment: &'static Experiment, args: &ExperimentOptions<'_>) -> Result<()> {
    let named = args.spec.layers.set.iter().filter_map(|argument| of_variant(argument));
    let names: Vec<String> = named.map(|(name, _)| name.to_owned()).collect();
    variants(experiment, &names).map(|_| ())
}

/// A key with `head.` replaced by the section of a head.
fn of_head(key: &str, head: &str) -> String {
    key.strip_prefix("head.").map_or_else(|| key.to_owned(), |rest| format!("{head}.{rest}"))
}

fn plan_variant(
    experiment: &Experiment,
    variant: &'static Variant,
    axes: &[Axis],
    args: &ExperimentOptions<'_>,
) -> Result<PlannedVariant> {
    let head = heads::find(variant.head())?;
    let short = labels(axes);
    let decided = decided(head, variant, args)?;
    // Only what concerns the variant's head, and is still open, varies here.
    let (mut own, mut names) = (Vec::new(), Vec::new());
    let axes = if variant.members.is_empty() { axes } else { &[] };
    for (axis, name) in axes.iter().zip(short) {
        let keys: Vec<String> = axis.keys.iter().map(|key| of_head(key, head.name)).collect();
        let keys: Vec<String> = keys.into_iter().filter(|key| !heads::is_of_other(key, head.name)).collect();
        if !keys.is_empty() && !keys.iter().any(|key| decided.contains(key)) {
            own.push(Axis { keys, values: axis.values.clone() });
            names.push(name);
        }
    }
    let mut combinations = Vec::new();
    let mut folders = BTreeSet::new();
    for combination in trials::combinations(&own)? {
        let values: Vec<(String, String)> =
            names.iter().cloned().zip(combination.0.iter().map(|choice| choice.value.clone())).collect();
        let config =
            resolve(experiment, variant, &combination, args).map_err(LabError::of_variant(variant.name))?;
        let mut folder = format!("{}/{}", variant.name, folder(&values));
        while !folders.insert(folder.clone()) {
            folder.push('+');
        }
        combinations.push(PlannedCombination { folder, values, config });
    }
    Ok(PlannedVariant { variant, combinations })
}

/// Shared settings, the user's, the variant's and the combination's, each over the one before.
fn resolve(
    experiment: &Experiment,
    variant: &Variant,
    combination: &Combination,
    args: &ExperimentOptions<'_>,
) -> Result<RunConfig> {
    let head = heads::find(variant.head())?;
    let is_for_all = |set: &&String| of_variant(set).is_none();
    let for_all = args.spec.layers.set.iter().filter(is_for_all).map(|set| of_head(set, head.name));
    let for_it = args.spec.layers.set.iter().filter_map(|set| of_variant(set));
    let for_it = for_it.filter(|(name, _)| *name == variant.name).map(|(_, set)| of_head(set, head.name));
    let own = variant.settings.iter().filter(|(key, _)| *key != "head");
    let own = own.map(|(key, value)| format!("{key}={value}"));
    let set = for_all.chain(own).chain(for_it).chain(combination.arguments()).collect();
    let text = |&(key, value): &(&str, &str)| (key.to_owned(), value.to_owned());
    let under = experiment.shared.iter().map(text).collect();
    Ok(Layers { under, set, ..args.spec.layers.clone() }.resolve_one_of(head)?)
}

/// A short name of each axis: the end of its first key, or all of it where that would be the same twice.
fn labels(axes: &[Axis]) -> Vec<String> {
    let end = |axis: &Axis| {
        let key = axis.keys.first().map_or("", String::as_str);
        key.rsplit('.').next().unwrap_or(key).replace('_', " ")
    };
    let twice = |label: &str| axes.iter().filter(|axis| end(axis) == label).count() > 1;
    let label = |axis: &Axis| {
        let short = end(axis);
        if twice(&short) { axis.keys.join("+") } else { short }
    };
    axes.iter().map(label).collect()
}

/// The name of a combination's folder.
fn folder(values: &[(String, String)]) -> String {
    if values.is_empty() {
        return AS_GIVEN.to_owned();
    }
    let plain = |text: &str| -> String {
        text.chars().map(|c| if c.is_alphanumeric() || ".-+".contains(c) { c } else { '-' }).collect()
    };
    let parts: Vec<String> =
        values.iter().map(|(name, value)| format!("{}-{}", plain(name), plain(value))).collect();
    parts.join("_")
}

#[cfg(test)]
mod tests;
