//! The settings of a run, resolved and checked.

mod flags;

use std::path::Path;

use cladist_core::Error;
use cladist_core::calibrate::{CalibrateConfig, FitThresholds, Method};
use cladist_core::corpus::{Ancestors, DataConfig};
use cladist_core::decode::{DecodeConfig, Rule};
use cladist_core::linear::{LinearConfig, LinearRecipe, LinearTrain, RankerConfig};
use cladist_core::metrics::MetricOptions;
use cladist_core::mixed::MixedConfig;
use cladist_core::text::normalise::Normalise;
use cladist_core::text::tfidf::FeatureConfig;
use cladist_nn::heads::branches::{BranchesConfig, Split};
use cladist_nn::heads::{AnyHeadConfig, Task};
use cladist_nn::model::Design;
use cladist_nn::ranker;
use cladist_nn::shortlist::ShortlistConfig;
use cladist_nn::tokens::TokensConfig;
use cladist_nn::train::TrainConfig;
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toml::{Table, Value};

use crate::args::{NeuralArgs, TrainArgs};
use crate::heads::{self, Family, HeadInfo};
use crate::settings::Settings;
pub use flags::corpus_settings;
use flags::layers;

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

/// What names word vectors instead of an encoder.
const WORDS: &str = "words:";

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
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.table().map_err(S::Error::custom)?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RunConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
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

    /// As a file has it: values first, then sections.
    fn table(&self) -> Result<Table, toml::ser::Error> {
        let mut table = Table::new();
        table.insert("head".to_owned(), self.head().into());
        match &self.recipe {
            Recipe::Linear(LinearRecipe { head: _, features, linear, train }) => {
                table.extend(Table::try_from(LinearSections {
                    features: features.clone(),
                    linear: linear.clone(),
                    train: train.clone(),
                })?);
            }
            Recipe::Neural(recipe) => {
                let NeuralRecipe { head, branches, encoder, task, tokens, shortlist, ranker, train } =
                    recipe.as_ref();
                table.extend(Table::try_from(NeuralSections {
                    encoder: encoder.clone(),
                    task: *task,
                    branches: branches.clone(),
                    tokens: tokens.clone(),
                    shortlist: *shortlist,
                    ranker: ranker.clone(),
                    train: train.clone(),
                })?);
                table.insert(head.name().to_owned(), Value::try_from(Section(head))?);
            }
            Recipe::Mixed(mixed) => table.extend(Table::try_from(MixedSections { mixed: mixed.clone() })?),
        }
        table.extend(Table::try_from(&self.common)?);
        Ok(table)
    }

    fn from_table(mut table: Table) -> Result<Self, String> {
        let text = |error: toml::de::Error| error.to_string();
        let name = table.remove("head").and_then(|value| value.as_str().map(str::to_owned));
        let name = name.ok_or("`head` must be the name of a head")?;
        let head = heads::find(&name).map_err(|error| error.to_string())?;
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
                    .map_err(text)?;
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

    /// What becomes of texts before the model sees them; members of an ensemble each see to it themselves.
    #[must_use]
    pub fn normalise(&self) -> Normalise {
        match self.recipe {
            Recipe::Mixed(_) => Normalise::default(),
            Recipe::Linear(_) | Recipe::Neural(_) => self.common.data.normalise,
        }
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

    /// Lays defaults, file, flags and `--set` over each other and checks the result.
    pub fn resolve(args: &TrainArgs) -> anyhow::Result<Self> {
        let file = args.config.as_deref().map(Settings::read).transpose()?.unwrap_or_default();
        let name = args.head.as_deref().or(file.text("head")).unwrap_or("svm");
        Self::from_layers(&[], &file, heads::find(name)?, args)
    }

    /// The settings of one of several heads that share a file and a command line, on top of settings that lie under
    /// the user's. What the user says of other heads does not concern this one.
    pub fn resolve_one_of(head: &HeadInfo, under: &[(&str, &str)], args: &TrainArgs) -> anyhow::Result<Self> {
        let mut file = args.config.as_deref().map(Settings::read).transpose()?.unwrap_or_default();
        file.retain(|key| !heads::is_of_other(key, head.name));
        let mut args = args.clone();
        args.set.retain(|argument| !heads::is_of_other(argument, head.name));
        let mut under = under.to_vec();
        under.retain(|(key, _)| !heads::is_of_other(key, head.name));
        // Of training on an encoder, nothing concerns linear models, nor members that were trained already.
        let key = |argument: &str| argument.split('=').next().unwrap_or(argument).trim().to_owned();
        let trains = |key: &str| {
            let section = key.split('.').next().unwrap_or(key);
            ["train", "tokens", "shortlist", "ranker", "task", "branches", "encoder"].contains(&section)
        };
        match head.family {
            Family::Linear(_) | Family::Mixed => {
                let is_linear = matches!(head.family, Family::Linear(_));
                let is_own = |key: &str| is_linear && ["train.epochs", "train.seed"].contains(&key);
                args.neural = NeuralArgs::default();
                file.retain(|key| !trains(key));
                args.set.retain(|argument| !trains(&key(argument)) || is_own(&key(argument)));
                under.retain(|(key, _)| !trains(key));
            }
            Family::Neural(_) => {}
        }
        Self::from_layers(&under, &file, head, &args)
    }

    fn from_layers(
        under: &[(&str, &str)],
        file: &Settings,
        head: &HeadInfo,
        args: &TrainArgs,
    ) -> anyhow::Result<Self> {
        let mut defaults = Self::new(head);
        if let (Family::Mixed, Some(first)) = (head.family, args.members.first()) {
            // What the members saw of the corpus is what they are weighed on.
            defaults.common.data = crate::model::settings_of(first)?.common.data;
        }
        let mut settings = layers(&defaults, under, file, head, args)?;
        let one_label = settings.text("task") == Some("multi-class");
        let on_words = settings.text("encoder").is_some_and(|encoder| encoder.starts_with(WORDS));
        if one_label || on_words {
            if one_label {
                defaults = defaults.for_one_label();
            }
            if on_words {
                defaults = defaults.for_word_vectors();
            }
            settings = layers(&defaults, under, file, head, args)?;
        }
        let mut config: Self = settings.resolve()?;
        config.validate()?;
        if let Recipe::Neural(recipe) = &mut config.recipe {
            recipe.head.settle(recipe.train.all_epochs());
            // A run can be taken up again from anywhere.
            let (kind, path) = match recipe.encoder.strip_prefix(WORDS) {
                Some(path) => (WORDS, path),
                None => ("", recipe.encoder.as_str()),
            };
            if Path::new(path).exists() {
                recipe.encoder = format!("{kind}{}", std::path::absolute(path)?.display());
            }
        }
        Ok(config)
    }

    /// Defaults where each document has exactly one label: the most probable one is the answer.
    fn for_one_label(mut self) -> Self {
        self.common.thresholds = ThresholdSource::Fixed;
        self.common.decode.top_k = Some(1);
        self.common.decode.at_least = 1;
        self.common.calibrate.method = Method::None;
        self
    }

    /// Defaults where no encoder was pretrained: what is above word vectors learns as fast as they do.
    fn for_word_vectors(mut self) -> Self {
        if let Recipe::Neural(recipe) = &mut self.recipe {
            let rate = 1e-3;
            recipe.train.learning_rate = rate;
            recipe.train.output.learning_rate = Some(rate);
            recipe.train.labels.learning_rate = Some(rate);
        }
        self
    }

    /// Checks what types cannot.
    pub fn validate(&self) -> anyhow::Result<()> {
        let Common { refit: _, thresholds: _, data, calibrate, fit_thresholds, decode, metrics } =
            &self.common;
        match &self.recipe {
            Recipe::Linear(recipe) => recipe.validate()?,
            Recipe::Neural(recipe) => {
                recipe.tokens.validate()?;
                ranker::check(&recipe.shortlist, &recipe.ranker)?;
                recipe.train.validate()?;
            }
            Recipe::Mixed(mixed) => mixed.validate()?,
        }
        if decode.rule == Rule::PredictedCount && !matches!(self.recipe, Recipe::Neural(_)) {
            return Err(Error::setting(
                "decode.rule",
                "`threshold`, but with heads on encoders",
                "predicted-count",
            )
            .into());
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
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize_section(serializer)
    }
}

#[cfg(test)]
mod tests;
