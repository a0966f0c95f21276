//! Settings from the command line, laid over those of a file and the defaults.

use anyhow::bail;
use cladist_core::Error;

use super::RunConfig;
use crate::args::{CorpusArgs, FitThresholds as FitThresholdsArg, TrainArgs};
use crate::error::ConfigError;
use crate::heads::{Family, HeadInfo};
use crate::settings::Settings;

/// Defaults, what lies under the user's settings, file, flags and `--set`, each over the one before.
pub(super) fn layers(
    defaults: &RunConfig,
    under: &[(&str, &str)],
    file: &Settings,
    head: &HeadInfo,
    args: &TrainArgs,
) -> anyhow::Result<Settings> {
    let mut settings = Settings::of(defaults)?;
    for (key, value) in under {
        settings.set_text(key, value)?;
    }
    settings.merge(file.clone());
    settings.set("head", head.name)?;
    corpus_settings(&mut settings, &args.corpus)?;
    args.neural.apply(&mut settings, head)?;
    if !args.members.is_empty() {
        if !matches!(head.family, Family::Mixed) {
            bail!(ConfigError::Missing("`--member` is for `--head mixed`".to_owned()));
        }
        let members = args.members.iter().map(|path| Ok(std::path::absolute(path)?.display().to_string()));
        settings.set("mixed.members", members.collect::<anyhow::Result<Vec<String>>>()?)?;
    }
    if let Some(seed) = args.seed {
        // Integers in TOML have a sign.
        let seed = i64::try_from(seed)
            .map_err(|_| Error::setting("train.seed", "at most 9223372036854775807", seed))?;
        if !matches!(head.family, Family::Mixed) {
            settings.set("train.seed", seed)?;
        }
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
    Ok(settings)
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
