//! Model bundles and run folders on disk: everything `evaluate` and `predict` need, checked before use.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use cladist_core::bundle::{self, BundleError, Writer};
use cladist_core::calibrate::Calibration;
use cladist_core::corpus::{CorpusSource, SplitName};
use cladist_core::decode::Thresholds;
use cladist_core::linear::LinearModel;
use cladist_core::mixed::{Mixed, Weights};
use cladist_core::pipeline::Pipeline;
use cladist_core::taxonomy::io::{from_json, to_json};
use cladist_core::{Classifier, Error, LabelCounts, Taxonomy};
use cladist_nn::device;
use cladist_nn::model::NeuralModel;
use serde::{Deserialize, Serialize};

use crate::config::{Recipe, RunConfig};
use crate::error::ConfigError;
use crate::session::Session;
use crate::settings::Settings;

const KIND: &str = "model";

/// A trained model, ready to score.
#[derive(Debug)]
pub struct Model {
    /// How it was made.
    pub config: RunConfig,
    /// Normalisation, classifier and calibration.
    pub pipeline: Pipeline,
    /// The classifier once more if it is a network, to look inside.
    pub network: Option<Arc<NeuralModel>>,
    /// The thresholds that were fitted on dev, or those of the settings.
    pub thresholds: Thresholds,
    /// Label counts of its training documents.
    pub counts: LabelCounts,
    /// What it was trained on.
    pub training: Training,
}

/// What a model was trained on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Training {
    /// Splits that it has seen: no measure of it.
    pub splits: Vec<SplitName>,
    /// Whether documents came as features rather than text.
    pub features: bool,
}

impl Model {
    /// The labels it knows.
    #[must_use]
    pub fn taxonomy(&self) -> &Taxonomy {
        self.pipeline.taxonomy()
    }
}

/// Writes a bundle; `classifier` writes the files of its own.
pub fn save(
    target: &Path,
    model: &Model,
    classifier: impl FnOnce(&Writer) -> cladist_core::Result<()>,
) -> anyhow::Result<()> {
    let writer = Writer::create(target, KIND)?;
    writer.write("config.toml", toml::to_string(&model.config)?.as_bytes())?;
    writer.write("taxonomy.json", &to_json(model.taxonomy()))?;
    writer.write("calibration.json", &serde_json::to_vec(&model.pipeline.calibration)?)?;
    writer.write("thresholds.json", &serde_json::to_vec_pretty(&model.thresholds)?)?;
    writer.write("label_counts.json", &serde_json::to_vec(&model.counts)?)?;
    writer.write("training.json", &serde_json::to_vec_pretty(&model.training)?)?;
    classifier(&writer)?;
    writer.finish()?;
    Ok(())
}

/// The file of an ensemble's weights.
pub const WEIGHTS: &str = "weights.json";

/// The folder of a member of an ensemble.
#[must_use]
pub fn member(number: usize) -> String {
    format!("member-{}", number + 1)
}

/// The settings of a run folder or bundle.
pub fn settings_of(path: &Path) -> anyhow::Result<RunConfig> {
    check_place(path)?;
    Settings::read(&bundle::find(path)?.join("config.toml"))?.resolve()
}

/// From the taxonomy of a bundle to one with more labels.
type Extend<'a> = dyn FnMut(&Taxonomy) -> anyhow::Result<Taxonomy> + 'a;

/// How a bundle is opened: settings that are changed, and a taxonomy with more labels than its own.
#[derive(Default)]
struct Opening<'a> {
    changes: &'a [String],
    extend: Option<&'a mut Extend<'a>>,
}

fn load(folder: &Path, device: &str, opening: Opening<'_>) -> anyhow::Result<Model> {
    bundle::verify(folder, KIND)?;
    let mut settings = Settings::read(&folder.join("config.toml"))?;
    for change in opening.changes {
        settings.set_argument(change)?;
    }
    let config: RunConfig = settings.resolve()?;
    let path = folder.join("taxonomy.json");
    let bytes = std::fs::read(&path).map_err(Error::io("read", &path))?;
    let mut taxonomy = from_json(&bytes)
        .map_err(|problems| Error::from(BundleError::Content { path, reason: problems.to_string() }))?;
    let mut counts = LabelCounts::read(&folder.join("label_counts.json"), &taxonomy)?;
    let thresholds = Thresholds::read(&folder.join("thresholds.json"), &taxonomy)?;
    if let Some(extend) = opening.extend {
        let knows = matches!(&config.recipe, Recipe::Neural(recipe) if recipe.knows_new_labels());
        if !knows {
            bail!(ConfigError::Missing(format!(
                "`{}` has an output for each label that it was trained with, and none for new ones\n\
                 hint: train `--head label-attention`, which tells labels apart by their descriptions",
                config.head()
            )));
        }
        let wider = extend(&taxonomy)?;
        counts = counts.moved(&taxonomy, &wider);
        taxonomy = wider;
    }
    let calibration = Calibration::read(&folder.join("calibration.json"))?;
    let training: Training = bundle::read_json(&folder.join("training.json"))?;
    let mut network = None;
    let model: Arc<dyn Classifier> = match &config.recipe {
        Recipe::Linear(_) => Arc::new(LinearModel::load(folder, taxonomy)?),
        Recipe::Neural(recipe) => {
            let device = device::parse(device)?;
            let model = NeuralModel::load(folder, recipe.design(), taxonomy, &counts, &device)?;
            Arc::clone(network.insert(Arc::new(model))) as _
        }
        Recipe::Mixed(mixed) => {
            let path = folder.join(WEIGHTS);
            let weights: Weights = bundle::read_json(&path)?;
            if !weights.are_sound(mixed.members.len(), taxonomy.n_labels()) {
                let reason = "weights for other members or labels".to_owned();
                bail!(Error::from(BundleError::Content { path, reason }));
            }
            let members = (0..mixed.members.len())
                .map(|n| {
                    Ok(Arc::new(load(&folder.join(member(n)), device, Opening::default())?.pipeline) as _)
                })
                .collect::<anyhow::Result<_>>()?;
            Arc::new(Mixed::new(members, taxonomy)?.with_weights(weights)?)
        }
    };
    let pipeline = Pipeline { calibration, ..Pipeline::new(model, config.normalise()) };
    Ok(Model { config, pipeline, network, thresholds, counts, training })
}

/// What a run folder remembers of its corpus.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DataCard {
    /// The files, with whole paths.
    pub source: CorpusSource,
    /// BLAKE3 of each file, as it was in training.
    pub files: std::collections::BTreeMap<String, String>,
    /// What was counted while reading.
    pub report: serde_json::Value,
}

/// A run folder or a bundle on its own.
#[derive(Debug)]
pub struct Run {
    /// The trained model.
    pub model: Model,
    /// The run folder; none for a bundle.
    pub folder: Option<PathBuf>,
    /// The corpus it was trained on, if known.
    pub source: Option<CorpusSource>,
}

/// Opens a run folder or a bundle, checking every file.
pub fn open(path: &Path, session: &Session) -> anyhow::Result<Run> {
    open_with(path, &[], session)
}

/// The same with other settings than it was trained with, each `key=value`: those of its head and of its tokens, as far as
/// its parameters allow.
pub fn open_with(path: &Path, changes: &[String], session: &Session) -> anyhow::Result<Run> {
    if !changes.is_empty() {
        let head = settings_of(path)?.head();
        let sections = [head, "tokens", "shortlist"];
        for change in changes {
            let fixed = change.trim_start().starts_with("shortlist.match_only");
            if fixed
                || !sections.iter().any(|section| change.trim_start().starts_with(&format!("{section}.")))
            {
                bail!(ConfigError::Missing(format!(
                    "`{change}` cannot be changed after training\nhint: settings of `{head}`, `tokens` and `shortlist` can, but for `shortlist.match_only`"
                )));
            }
        }
    }
    open_as(path, Opening { changes, extend: None }, session)
}

/// The same with a taxonomy made of its own, if its head scores labels that it has not met.
pub fn open_extended(
    path: &Path,
    session: &Session,
    mut extend: impl FnMut(&Taxonomy) -> anyhow::Result<Taxonomy>,
) -> anyhow::Result<Run> {
    open_as(path, Opening { extend: Some(&mut extend), ..Opening::default() }, session)
}

fn open_as(path: &Path, opening: Opening<'_>, session: &Session) -> anyhow::Result<Run> {
    let device = &session.device;
    let inner = bundle::find(path)?;
    if inner != path {
        let model = load(&inner, device, opening)?;
        let card = path.join("data.json");
        let source = if card.exists() {
            let card: DataCard =
                bundle::read_json(&card).with_context(|| format!("cannot use `{}`", path.display()))?;
            Some(card.source)
        } else {
            None
        };
        return Ok(Run { model, folder: Some(path.to_owned()), source });
    }
    check_place(path)?;
    Ok(Run { model: load(path, device, opening)?, folder: None, source: None })
}

/// Refuses what is no folder.
fn check_place(path: &Path) -> anyhow::Result<()> {
    if !path.exists() {
        let text = format!(
            "`{}` does not exist\nhint: give the folder that `cladist train --out` wrote",
            path.display()
        );
        bail!(ConfigError::NoRun(text));
    }
    if !path.is_dir() {
        bail!(Error::from(BundleError::Foreign { path: path.to_owned(), kind: KIND.to_owned() }));
    }
    Ok(())
}
