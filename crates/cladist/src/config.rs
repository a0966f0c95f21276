//! The settings of a run as typed values; [`Layers`] makes them of files and single settings.

mod layers;
mod text;

use cladist_core::calibrate::{CalibrateConfig, FitThresholds, Method};
use cladist_core::corpus::{Ancestors, DataConfig};
use cladist_core::decode::{DecodeConfig, Rule, Thresholds};
use cladist_core::linear::{LinearConfig, LinearRecipe, LinearTrain, RankerConfig};
use cladist_core::metrics::MetricOptions;
use cladist_core::mixed::MixedConfig;
use cladist_core::text::tfidf::FeatureConfig;
use cladist_nn::heads::branches::{BranchesConfig, Split};
use cladist_nn::heads::{AnyHeadConfig, Pool, Task};
use cladist_nn::model::Design;
use cladist_nn::ranker;
use cladist_nn::shortlist::ShortlistConfig;
use cladist_nn::source::EncoderSource;
use cladist_nn::tokens::TokensConfig;
use cladist_nn::train::TrainConfig;
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value as Json};
use toml::{Table, Value};

use crate::error::{Error, Result};
use crate::heads::{self, Family, HeadInfo};
use crate::settings::within;
pub use layers::{Layers, difference};

/// When the model is trained once more on train and dev together, after dev was used to choose.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refit {
    /// If dev was held out of train.
    #[default]
    HeldOut,
    /// Whenever there is a dev split.
    Always,
    /// Never.
    Never,
}

/// Where decision thresholds come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ThresholdSource {
    /// Fitted on dev, if there is one.
    #[default]
    Fitted,
    /// As `decode.threshold` says.
    Fixed,
}

/// Labels of a set have scores above this.
pub(crate) const SET: f32 = 0.5;

/// Settings of a run: what every head shares, and what its family needs.
#[derive(Debug, Clone, PartialEq)]
pub struct RunConfig {
    /// The model.
    pub recipe: Recipe,
    /// Everything around it.
    pub common: Common,
}

/// What decides the model.
#[derive(Debug, Clone, PartialEq)]
pub enum Recipe {
    /// A linear head on TF-IDF features.
    Linear(LinearRecipe),
    /// A head on a transformer encoder.
    Neural(Box<NeuralRecipe>),
    /// Trained models together.
    Mixed(MixedConfig),
}

/// Settings of a head on an encoder.
#[derive(Debug, Clone, PartialEq)]
pub struct NeuralRecipe {
    /// The head's own section.
    pub head: AnyHeadConfig,
    /// Whether each branch of the taxonomy has a head of its own.
    pub branches: BranchesConfig,
    /// Folder, name on the hub, or `scratch:SIZE`.
    pub encoder: String,
    /// What is to be predicted.
    pub task: Task,
    /// From text to tokens.
    pub tokens: TokensConfig,
    /// Which labels are learnt and scored at a time.
    pub shortlist: ShortlistConfig,
    /// What scores labels of a shortlist instead of the network.
    pub ranker: RankerConfig,
    /// The training run.
    pub train: TrainConfig,
}

impl NeuralRecipe {
    /// Whether the trained model answers for labels that it has not met. Branches are made of the labels there were.
    #[must_use]
    pub fn knows_new_labels(&self) -> bool {
        self.head.knows_new_labels() && self.branches.split == Split::None
    }

    /// What decides the form of the network.
    #[must_use]
    pub fn design(&self) -> Design {
        Design {
            head: self.head.clone(),
            branches: self.branches.clone(),
            task: self.task,
            tokens: self.tokens.clone(),
            label_smoothing: self.train.label_smoothing,
            prior_bias: self.train.prior_bias,
            shortlist: self.shortlist,
            ranker: self.ranker.clone(),
        }
    }
}

/// Settings that every head has.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Common {
    /// When to train once more on train and dev together.
    pub refit: Refit,
    /// Where decision thresholds come from.
    pub thresholds: ThresholdSource,
    /// How the corpus is read.
    pub data: DataConfig,
    /// From scores to probabilities.
    pub calibrate: CalibrateConfig,
    /// How thresholds are fitted on dev.
    pub fit_thresholds: FitThresholds,
    /// From probabilities to label sets.
    pub decode: DecodeConfig,
    /// How metrics are computed.
    pub metrics: MetricOptions,
}

/// Sections of linear heads.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LinearSections {
    #[serde(default)]
    features: FeatureConfig,
    #[serde(default)]
    linear: LinearConfig,
    #[serde(default)]
    train: LinearTrain,
}

/// Sections of neural heads, but for the head's own.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NeuralSections {
    #[serde(default)]
    encoder: String,
    #[serde(default)]
    task: Task,
    #[serde(default)]
    branches: BranchesConfig,
    #[serde(default)]
    tokens: TokensConfig,
    #[serde(default)]
    shortlist: ShortlistConfig,
    #[serde(default)]
    ranker: RankerConfig,
    #[serde(default)]
    train: TrainConfig,
}

/// The section of models together.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MixedSections {
    #[serde(default)]
    mixed: MixedConfig,
}

impl Serialize for RunConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.table().map_err(S::Error::custom)?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RunConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        Self::from_table(Table::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl RunConfig {
    /// A head's defaults.
    #[must_use]
    pub fn new(head: &HeadInfo) -> Self {
        // Something must be there to calibrate and fit thresholds on.
        let data = DataConfig { dev: 0.1, ..DataConfig::default() };
        let common = Common { data, ..Common::default() };
        match head.family {
            Family::Linear(linear) => Self { recipe: Recipe::Linear(LinearRecipe::new(linear)), common },
            Family::Neural(defaults) => {
                let head = defaults();
                let mut common = common;
                if head.learns_ancestors() {
                    common.data.ancestors = Ancestors::Add;
                }
                let recipe = NeuralRecipe {
                    head,
                    branches: BranchesConfig::default(),
                    encoder: String::new(),
                    task: Task::default(),
                    tokens: TokensConfig::default(),
                    shortlist: ShortlistConfig::default(),
                    ranker: RankerConfig::default(),
                    train: TrainConfig::default(),
                };
                // Training twice costs hours here, not seconds.
                let common = Common { refit: Refit::Never, ..common };
                Self { recipe: Recipe::Neural(Box::new(recipe)), common }
            }
            Family::Mixed => {
                let common = Common { refit: Refit::Never, ..common };
                Self { recipe: Recipe::Mixed(MixedConfig::default()), common }
            }
        }
    }

    /// The head's name.
    #[must_use]
    pub fn head(&self) -> &'static str {
        match &self.recipe {
            Recipe::Linear(recipe) => heads::linear_name(recipe.head),
            Recipe::Neural(recipe) => recipe.head.name(),
            Recipe::Mixed(_) => heads::MIXED.name,
        }
    }

    /// Every setting by section; unset ones are null.
    fn sections(&self) -> serde_json::Result<Map<String, Json>> {
        let mut table = Map::new();
        table.insert("head".to_owned(), self.head().into());
        match &self.recipe {
            Recipe::Linear(LinearRecipe { head: _, features, linear, train }) => {
                table.extend(text::section(&LinearSections {
                    features: features.clone(),
                    linear: linear.clone(),
                    train: train.clone(),
                })?);
            }
            Recipe::Neural(recipe) => {
                let NeuralRecipe { head, branches, encoder, task, tokens, shortlist, ranker, train } =
                    recipe.as_ref();
                table.extend(text::section(&NeuralSections {
                    encoder: encoder.clone(),
                    task: *task,
                    branches: branches.clone(),
                    tokens: tokens.clone(),
                    shortlist: *shortlist,
                    ranker: ranker.clone(),
                    train: train.clone(),
                })?);
                table.insert(head.name().to_owned(), text::section(&Section(head))?.into());
            }
            Recipe::Mixed(mixed) => table.extend(text::section(&MixedSections { mixed: mixed.clone() })?),
        }
        table.extend(text::section(&self.common)?);
        Ok(table)
    }

    fn from_table(mut table: Table) -> std::result::Result<Self, String> {
        let text = |error: toml::de::Error| error.to_string();
        let name = table.remove("head").and_then(|value| value.as_str().map(str::to_owned));
        let name = name.ok_or_else(|| within("head", "must be the name of a head"))?;
        let head = heads::find(&name).map_err(|error| within("head", &error.to_string()))?;
        let shared = Table::try_from(Common::default()).map_err(|error| error.to_string())?;
        let (common, mut own): (Table, Table) =
            table.into_iter().partition(|(key, _)| shared.contains_key(key));
        let common = Common::deserialize(common).map_err(text)?;
        let recipe = match head.family {
            Family::Linear(head) => {
                let LinearSections { features, linear, train } =
                    LinearSections::deserialize(own).map_err(text)?;
                Recipe::Linear(LinearRecipe { head, features, linear, train })
            }
            Family::Neural(_) => {
                let section = own.remove(head.name).unwrap_or_else(|| Value::Table(Table::new()));
                let head = AnyHeadConfig::parse(head.name, section)
                    .ok_or_else(|| format!("`{name}` is not a head on an encoder"))?
                    .map_err(|error| within(&name, &error.to_string()))?;
                let NeuralSections { encoder, task, branches, tokens, shortlist, ranker, train } =
                    NeuralSections::deserialize(own).map_err(text)?;
                Recipe::Neural(Box::new(NeuralRecipe {
                    head,
                    branches,
                    encoder,
                    task,
                    tokens,
                    shortlist,
                    ranker,
                    train,
                }))
            }
            Family::Mixed => Recipe::Mixed(MixedSections::deserialize(own).map_err(text)?.mixed),
        };
        Ok(Self { recipe, common })
    }

    /// The seed of training.
    #[must_use]
    pub fn seed(&self) -> u64 {
        match &self.recipe {
            Recipe::Linear(recipe) => recipe.train.seed,
            Recipe::Neural(recipe) => recipe.train.seed,
            Recipe::Mixed(_) => self.common.data.seed,
        }
    }

    /// The same with another seed of training; what is held out for dev stays the same.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        match &mut self.recipe {
            Recipe::Linear(recipe) => recipe.train.seed = seed,
            Recipe::Neural(recipe) => recipe.train.seed = seed,
            Recipe::Mixed(_) => {}
        }
        self
    }

    /// The settings with what follows from other settings and from the encoder: as it will be trained.
    pub(crate) fn settled(&self) -> Result<Self> {
        let mut config = self.clone();
        if let Recipe::Neural(recipe) = &mut config.recipe {
            recipe.head.settle(recipe.train.all_epochs());
            if recipe.head.pool() == Some(Pool::Auto) && !recipe.encoder.is_empty() {
                recipe.head.settle_pool(EncoderSource::parse(&recipe.encoder)?.pooling()?);
            }
        }
        if config.answers_sets() && config.common.thresholds == ThresholdSource::Fitted {
            config.common.thresholds = ThresholdSource::Fixed;
            config.common.decode.threshold = Thresholds::One(SET);
            config.common.calibrate.method = Method::None;
        }
        Ok(config)
    }

    /// Whether the head answers with sets of labels, which no calibration and no threshold may change.
    pub(crate) fn answers_sets(&self) -> bool {
        matches!(&self.recipe, Recipe::Neural(recipe) if recipe.head.answers_sets())
    }

    /// Checks what types cannot.
    pub fn validate(&self) -> Result<()> {
        let Common { refit, thresholds: _, data, calibrate, fit_thresholds, decode, metrics } = &self.common;
        match &self.recipe {
            Recipe::Linear(recipe) => recipe.validate()?,
            Recipe::Neural(recipe) => {
                recipe.tokens.validate()?;
                ranker::check(&recipe.shortlist, &recipe.ranker)?;
                recipe.train.validate()?;
            }
            Recipe::Mixed(mixed) => {
                mixed.validate()?;
                if !data.normalise.is_identity() {
                    return Err(Error::setting(
                        "data.normalise",
                        "has no effect on the head `mixed`: each member normalises texts as it was trained to",
                    ));
                }
            }
        }
        if *refit != Refit::Never && !matches!(self.recipe, Recipe::Linear(_)) {
            return Err(Error::setting(
                "refit",
                "must be `never`: heads on encoders and ensembles are not trained a second time",
            ));
        }
        if decode.rule == Rule::PredictedCount && !matches!(self.recipe, Recipe::Neural(_)) {
            return Err(Error::setting(
                "decode.rule",
                "can be `predicted-count` with heads on encoders alone",
            ));
        }
        data.validate()?;
        calibrate.validate()?;
        fit_thresholds.validate()?;
        decode.validate()?;
        metrics.validate()?;
        Ok(())
    }
}

/// A head's section, for serde.
struct Section<'a>(&'a AnyHeadConfig);

impl Serialize for Section<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.0.serialize_section(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_read_as_the_encoder_was_pretrained() {
        let folder = tempfile::tempdir().unwrap();
        let settled = |said: Option<&str>| {
            let mut settings = crate::settings::Settings::default();
            settings.set_text("head", "flat").unwrap();
            settings.set_text("encoder", &format!("{:?}", folder.path())).unwrap();
            said.into_iter().for_each(|pool| settings.set_text("flat.pool", pool).unwrap());
            let config: RunConfig = settings.resolve().unwrap();
            config.settled().unwrap().to_toml().unwrap()
        };
        assert!(settled(None).contains("pool = \"cls\""), "{}", settled(None));
        let modules = r#"[{"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]"#;
        std::fs::write(folder.path().join("modules.json"), modules).unwrap();
        std::fs::create_dir(folder.path().join("1_Pooling")).unwrap();
        let pooling = r#"{"pooling_mode_mean_tokens": true}"#;
        std::fs::write(folder.path().join("1_Pooling/config.json"), pooling).unwrap();
        assert!(settled(None).contains("pool = \"mean\""), "{}", settled(None));
        assert!(settled(Some("\"cls\"")).contains("pool = \"cls\""));
    }
}
