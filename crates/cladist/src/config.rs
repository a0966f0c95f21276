//! The settings of a run, resolved and checked.

use cladist_core::Error;
use cladist_core::calibrate::{CalibrateConfig, FitThresholds};
use cladist_core::corpus::DataConfig;
use cladist_core::decode::DecodeConfig;
use cladist_core::linear::{LinearConfig, LinearHead, LinearRecipe, LinearTrain};
use cladist_core::metrics::MetricOptions;
use cladist_core::text::tfidf::FeatureConfig;
use serde::{Deserialize, Serialize};

use crate::args::{CorpusArgs, FitThresholds as FitThresholdsArg, TrainArgs};
use crate::heads::{self, Family};
use crate::settings::Settings;

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

/// Settings of a run of a linear head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunConfig {
    /// Which head.
    pub head: LinearHead,
    /// When to train once more on train and dev together.
    #[serde(default)]
    pub refit: Refit,
    /// Where decision thresholds come from.
    #[serde(default)]
    pub thresholds: ThresholdSource,
    /// How the corpus is read.
    #[serde(default)]
    pub data: DataConfig,
    /// From text to features.
    #[serde(default)]
    pub features: FeatureConfig,
    /// The model.
    #[serde(default)]
    pub linear: LinearConfig,
    /// The training run.
    #[serde(default)]
    pub train: LinearTrain,
    /// From scores to probabilities.
    #[serde(default)]
    pub calibrate: CalibrateConfig,
    /// How thresholds are fitted on dev.
    #[serde(default)]
    pub fit_thresholds: FitThresholds,
    /// From probabilities to label sets.
    #[serde(default)]
    pub decode: DecodeConfig,
    /// How metrics are computed.
    #[serde(default)]
    pub metrics: MetricOptions,
}

impl RunConfig {
    /// A head's defaults.
    #[must_use]
    pub fn new(head: LinearHead) -> Self {
        let LinearRecipe { head, features, linear, train } = LinearRecipe::new(head);
        Self {
            head,
            refit: Refit::default(),
            thresholds: ThresholdSource::default(),
            // Something must be there to calibrate and fit thresholds on.
            data: DataConfig { dev: 0.1, ..DataConfig::default() },
            features,
            linear,
            train,
            calibrate: CalibrateConfig::default(),
            fit_thresholds: FitThresholds::default(),
            decode: DecodeConfig::default(),
            metrics: MetricOptions::default(),
        }
    }

    /// The part that decides the model.
    #[must_use]
    pub fn recipe(&self) -> LinearRecipe {
        LinearRecipe {
            head: self.head,
            features: self.features.clone(),
            linear: self.linear.clone(),
            train: self.train.clone(),
        }
    }

    /// Lays defaults, file, flags and `--set` over each other and checks the result.
    pub fn resolve(args: &TrainArgs) -> anyhow::Result<Self> {
        let file = args.config.as_deref().map(Settings::read).transpose()?.unwrap_or_default();
        let name = args.head.as_deref().or(file.text("head")).unwrap_or("svm");
        let head = heads::find(name)?;
        let Family::Linear(linear) = head.family;
        let mut settings = Settings::of(&Self::new(linear))?;
        settings.merge(file);
        settings.set("head", head.name)?;
        corpus_settings(&mut settings, &args.corpus)?;
        if let Some(seed) = args.seed {
            // Integers in TOML have a sign.
            let seed = i64::try_from(seed)
                .map_err(|_| Error::setting("train.seed", "at most 9223372036854775807", seed))?;
            settings.set("train.seed", seed)?;
            settings.set("data.seed", seed)?;
        }
        if let Some(dev) = args.dev {
            settings.set("data.dev", dev)?;
        }
        if let Some(fit) = args.fit_thresholds {
            let choice = match fit {
                FitThresholdsArg::Micro => Some("micro-f1"),
                FitThresholdsArg::Macro => Some("macro-f1"),
                FitThresholdsArg::None => None,
            };
            settings.set("thresholds", if choice.is_some() { "fitted" } else { "fixed" })?;
            if let Some(objective) = choice {
                settings.set("fit_thresholds.objective", objective)?;
            }
        }
        for argument in &args.set {
            settings.set_argument(argument)?;
        }
        let config: Self = settings.resolve()?;
        config.validate()?;
        Ok(config)
    }

    /// Checks what types cannot.
    pub fn validate(&self) -> anyhow::Result<()> {
        let Self {
            head: _,
            refit: _,
            thresholds: _,
            data,
            features: _,
            linear: _,
            train: _,
            calibrate,
            fit_thresholds,
            decode,
            metrics,
        } = self;
        self.recipe().validate()?;
        data.validate()?;
        calibrate.validate()?;
        fit_thresholds.validate()?;
        decode.validate()?;
        metrics.validate()?;
        Ok(())
    }
}

/// The flags that say how a corpus is read, as settings.
pub fn corpus_settings(settings: &mut Settings, args: &CorpusArgs) -> anyhow::Result<()> {
    for (key, value) in [
        ("data.format", &args.corpus_format),
        ("data.labels_field", &args.fields.labels_field),
        ("data.text_field", &args.fields.text_field),
        ("data.id_field", &args.fields.id_field),
        ("data.drop_field", &args.fields.drop_field),
        ("data.language", &args.language),
    ] {
        if let Some(value) = value {
            settings.set(key, value.as_str())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    fn resolve(words: &[&str]) -> anyhow::Result<RunConfig> {
        let cli = Cli::try_parse_from(["cladist", "train", "--out", "x"].iter().chain(words)).unwrap();
        let Command::Train(args) = cli.command else { unreachable!("the command is train") };
        RunConfig::resolve(&args)
    }

    fn repository() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
    }

    #[test]
    fn every_recipe_resolves_and_says_what_its_name_says() {
        let mut n = 0;
        for entry in std::fs::read_dir(repository().join("configs")).unwrap() {
            let path = entry.unwrap().path();
            let config = resolve(&["--config", path.to_str().unwrap()]).unwrap();
            let head = serde_json::to_value(config.head).unwrap();
            let stem = path.file_stem().unwrap().to_str().unwrap();
            assert!(stem.ends_with(head.as_str().unwrap()), "{stem}");
            n += 1;
        }
        assert!(n > 0);
    }

    #[test]
    fn flags_win_over_the_file_and_set_wins_over_flags() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("c.toml");
        std::fs::write(&file, "head = \"bonsai\"\n[train]\nseed = 1\nepochs = 3\n").unwrap();
        let file = file.to_str().unwrap();
        let config = resolve(&["--config", file]).unwrap();
        assert_eq!((config.head, config.train.seed, config.train.epochs), (LinearHead::Bonsai, 1, 3));
        let config = resolve(&["--config", file, "--head", "svm", "--seed", "2"]).unwrap();
        assert_eq!((config.head, config.train.seed, config.data.seed), (LinearHead::Svm, 2, 2));
        let config = resolve(&["--config", file, "--seed", "2", "--set", "train.seed=3"]).unwrap();
        assert_eq!((config.train.seed, config.data.seed), (3, 2));
        let config = resolve(&["--fit-thresholds", "none"]).unwrap();
        assert_eq!(config.thresholds, ThresholdSource::Fixed);
    }

    #[test]
    fn every_setting_is_in_the_documentation() {
        let page = std::fs::read_to_string(repository().join("docs/configuration.md")).unwrap()
            + &std::fs::read_to_string(repository().join("docs/metrics.md")).unwrap();
        let mut config = RunConfig::new(LinearHead::Svm);
        // Settings without a default have none in the table either.
        config.data.max_levels = Some(1);
        let table = toml::Table::try_from(&config).unwrap();
        let mut rest: Vec<(String, &toml::Value)> =
            table.iter().map(|(key, value)| (key.clone(), value)).collect();
        while let Some((key, value)) = rest.pop() {
            match value.as_table() {
                Some(inner) => rest.extend(inner.iter().map(|(name, value)| (name.clone(), value))),
                None => assert!(page.contains(&key), "`{key}` is not documented"),
            }
        }
    }

    #[test]
    fn every_metric_is_in_the_documentation() {
        let page = std::fs::read_to_string(repository().join("docs/metrics.md")).unwrap();
        for metric in cladist_core::metrics::METRICS {
            assert!(page.contains(&format!("| `{}` |", metric.name)), "`{}` is not documented", metric.name);
        }
    }
}
