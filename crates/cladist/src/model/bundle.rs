//! Model bundles on disk, checked before use.

use std::path::Path;
use std::sync::Arc;

use cladist_core::bundle::{self, BundleError, Writer};
use cladist_core::calibrate::Calibration;
use cladist_core::decode::Thresholds;
use cladist_core::linear::LinearModel;
use cladist_core::mixed::{Mixed, Weights};
use cladist_core::pipeline::Pipeline;
use cladist_core::taxonomy::io::{from_json, to_json};
use cladist_core::text::normalise::Normalise;
use cladist_core::{Classifier, LabelCounts, Taxonomy};
use cladist_nn::device;
use cladist_nn::model::NeuralModel;

use super::{OpenOptions, Parts, TrainedOn};
use crate::config::{Recipe, RunConfig, SET};
use crate::error::{Error, Result};
use crate::folders::{self, KIND};
use crate::settings::Settings;

/// Writes a bundle; `classifier` writes the files of its own.
pub(crate) fn save(
    target: &Path,
    model: &Parts,
    classifier: impl FnOnce(&Writer) -> cladist_core::Result<()>,
) -> Result<()> {
    let writer = Writer::create(target, KIND)?;
    writer.write(folders::CONFIG, model.config.to_toml()?.as_bytes())?;
    writer.write("taxonomy.json", &to_json(model.pipeline.taxonomy()))?;
    writer.write("calibration.json", &serde_json::to_vec(&model.pipeline.calibration)?)?;
    writer.write("thresholds.json", &serde_json::to_vec_pretty(&model.thresholds)?)?;
    writer.write("label_counts.json", &serde_json::to_vec(&model.counts)?)?;
    writer.write("training.json", &serde_json::to_vec_pretty(&model.training)?)?;
    classifier(&writer)?;
    writer.finish()?;
    Ok(())
}

/// The file of an ensemble's weights.
pub(crate) const WEIGHTS: &str = "weights.json";

/// The folder of a member of an ensemble.
#[must_use]
pub(crate) fn member(number: usize) -> String {
    format!("member-{}", number + 1)
}

/// Copies what an ensemble is made of from its bundle.
pub(super) fn copy_members(bundle: &Path, model: &Parts, writer: &Writer) -> cladist_core::Result<()> {
    let Recipe::Mixed(mixed) = &model.config.recipe else { return Ok(()) };
    let path = bundle.join(WEIGHTS);
    writer.write(WEIGHTS, &std::fs::read(&path).map_err(cladist_core::Error::io("read", &path))?)?;
    (0..mixed.members.len()).try_for_each(|n| writer.include(&member(n), &bundle.join(member(n))))
}

/// From the taxonomy of a bundle to one with more labels.
pub(super) type Extend<'a> = dyn FnMut(&Taxonomy) -> Result<Taxonomy> + Send + 'a;

/// Reads a bundle: settings may be changed, and labels added.
pub(super) fn load(
    folder: &Path,
    options: &OpenOptions,
    changes: &[String],
    extend: Option<&mut Extend<'_>>,
) -> Result<Parts> {
    options.cancel.check()?;
    bundle::verify(folder, KIND)?;
    options.cancel.check()?;
    let mut settings = Settings::read(&folder.join(folders::CONFIG))?;
    let answered_sets = !changes.is_empty() && settings.clone().resolve::<RunConfig>()?.answers_sets();
    for change in changes {
        settings.set_argument(change)?;
    }
    let mut config: RunConfig = settings.resolve()?;
    if matches!(config.recipe, Recipe::Mixed(_)) {
        // Members normalise texts themselves; bundles of earlier versions say so of the ensemble too.
        config.common.data.normalise = Normalise::default();
    }
    let path = folder.join("taxonomy.json");
    let bytes = std::fs::read(&path).map_err(Error::io("read", &path))?;
    let mut taxonomy =
        from_json(&bytes).map_err(|problems| Error::from(BundleError::content_by(path, problems)))?;
    let mut counts = LabelCounts::read(&folder.join("label_counts.json"), &taxonomy)?;
    let mut thresholds = Thresholds::read(&folder.join("thresholds.json"), &taxonomy)?;
    if let Some(extend) = extend {
        let knows = matches!(&config.recipe, Recipe::Neural(recipe) if recipe.knows_new_labels());
        if !knows {
            return Err(Error::NoNewLabels { head: config.head() });
        }
        let wider = extend(&taxonomy)?;
        counts = counts.moved(&taxonomy, &wider);
        taxonomy = wider;
    }
    let mut calibration = Calibration::read(&folder.join("calibration.json"))?;
    if !changes.is_empty() && config.answers_sets() && !answered_sets {
        // Both were fitted to other scores: what a search found would vanish below them.
        (calibration, thresholds) = (Calibration::default(), Thresholds::One(SET));
    }
    let training: TrainedOn = bundle::read_json(&folder.join("training.json"))?;
    let (mut network, mut linear) = (None, None);
    let model: Arc<dyn Classifier> = match &config.recipe {
        Recipe::Linear(_) => Arc::clone(linear.insert(Arc::new(LinearModel::load(folder, taxonomy)?))) as _,
        Recipe::Neural(recipe) => {
            let device = device::parse(&options.device)?;
            let model =
                NeuralModel::load(folder, recipe.design(), taxonomy, &counts, &device, &options.cancel)?;
            Arc::clone(network.insert(Arc::new(model))) as _
        }
        Recipe::Mixed(mixed) => {
            let path = folder.join(WEIGHTS);
            let weights: Weights = bundle::read_json(&path)?;
            if !weights.are_sound(mixed.members.len(), taxonomy.n_labels()) {
                return Err(BundleError::content(path, "weights for other members or labels").into());
            }
            let members = (0..mixed.members.len())
                .map(|n| {
                    let parts = load(&folder.join(member(n)), options, &[], None)?;
                    Ok(Arc::new(parts.pipeline.member(mixed.scores)) as _)
                })
                .collect::<Result<_>>()?;
            Arc::new(Mixed::new(members, taxonomy)?.with_weights(weights)?)
        }
    };
    let pipeline = Pipeline { calibration, ..Pipeline::new(model, config.common.data.normalise) };
    Ok(Parts { config, pipeline, network, linear, thresholds, counts, training })
}
