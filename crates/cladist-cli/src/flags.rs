//! From flags to settings, corpora and inputs of the library.

use std::path::{Path, PathBuf};

use cladist::config::Layers;
use cladist::heads::Family;
use cladist::inputs::{DocumentStream, Input};
use cladist::settings::Settings;
use cladist::{Error, Model, Training};
use cladist_core::corpus::{CorpusSource, DataConfig, SplitName};
use cladist_core::readers::{FORMATS, Format};
use cladist_lab::Spec;

use crate::args::{BadLineArgs, CorpusArgs, FitThresholds, InputArgs, TrainArgs};
use crate::error::Usage;
use crate::session::Session;

/// What the flags of `train` say of a run, layer by layer.
pub fn layers(args: &TrainArgs) -> anyhow::Result<Layers> {
    let file = args.config.as_deref().map(Settings::read).transpose()?.unwrap_or_default();
    let mut layers = Layers {
        head: args.head.clone(),
        under: Vec::new(),
        file,
        over: Settings::default(),
        set: args.set.clone(),
        members: args.members.clone(),
    };
    let over = &mut layers.over;
    corpus_settings(over, &args.corpus)?;
    for (_, key, value) in args.neural.settings() {
        over.set(key, value)?;
    }
    if let Some(seed) = args.seed {
        // Integers in TOML have a sign.
        let seed = i64::try_from(seed).map_err(|_| Usage::Value {
            flag: "--seed",
            expected: "at most 9223372036854775807",
            value: seed.to_string(),
        })?;
        over.set("train.seed", seed)?;
        over.set("data.seed", seed)?;
    }
    if let Some(dev) = args.dev {
        over.set("data.dev", dev)?;
    }
    if let Some(fit) = args.fit_thresholds {
        let choice = match fit {
            FitThresholds::Micro => Some("micro-f1"),
            FitThresholds::Macro => Some("macro-f1"),
            FitThresholds::None => None,
        };
        over.set("thresholds", if choice.is_some() { "fitted" } else { "fixed" })?;
        if let Some(objective) = choice {
            over.set("fit_thresholds.objective", objective)?;
        }
    }
    Ok(layers)
}

/// The same for one head: flags of heads on encoders are refused for others.
pub fn layers_of_one(args: &TrainArgs) -> anyhow::Result<Layers> {
    let mut layers = layers(args)?;
    let head = layers.head()?;
    let of_linear = |key: &str| key == "train.epochs" && matches!(head.family, Family::Linear(_));
    if !matches!(head.family, Family::Neural(_))
        && let Some((flag, ..)) = args.neural.settings().into_iter().find(|(_, key, _)| !of_linear(key))
    {
        return Err(Usage::NoEffect { flag, head: head.name }.into());
    }
    if matches!(head.family, Family::Mixed) {
        // An ensemble has nothing random but what is held out.
        layers.over = layers.over.filtered(|key| key != "train.seed")?;
    }
    Ok(layers)
}

/// The training that flags ask for, as far as all commands that train have it in common.
pub fn training<'a>(
    config: cladist::RunConfig,
    args: &TrainArgs,
    out: &Path,
    session: &'a Session,
) -> anyhow::Result<Training<'a>> {
    let mut training = Training::new(config)
        .out(out)
        .observe(&session.view)
        .cancel(session.cancel.clone())
        .resume(args.resume)
        .overwrite(args.overwrite)
        .bad_lines(args.bad_lines.policy())
        .device(&session.device);
    if args.corpus.names_documents() || !args.resume {
        training = training.corpus(source(&args.corpus, None)?);
    }
    Ok(training)
}

/// What many trainings share.
pub fn spec<'a>(layers: Layers, args: &TrainArgs, session: &'a Session) -> anyhow::Result<Spec<'a>> {
    Ok(Spec {
        layers,
        corpus: source(&args.corpus, None)?,
        bad_lines: args.bad_lines.policy(),
        device: session.device.clone(),
        work: session.work(),
    })
}

/// The flags that say how a corpus is read, as settings.
pub fn corpus_settings(settings: &mut Settings, args: &CorpusArgs) -> cladist::Result<()> {
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

/// The files that the flags name; flags for single files win over the folder's. `known` is what a run remembers.
pub fn source(args: &CorpusArgs, known: Option<&CorpusSource>) -> cladist::Result<CorpusSource> {
    let mut source = match (&args.corpus, known) {
        (Some(folder), _) => CorpusSource::folder(folder)?,
        (None, Some(known)) => known.clone(),
        (None, None) => CorpusSource::default(),
    };
    for (file, place) in
        [(&args.train, &mut source.train), (&args.dev_file, &mut source.dev), (&args.test, &mut source.test)]
    {
        if let Some(file) = file {
            *place = vec![file.clone()];
        }
    }
    if source.train.is_empty() && source.dev.is_empty() && source.test.is_empty() {
        return Err(Error::NoCorpus);
    }
    if let Some(file) = &args.taxonomy {
        source.taxonomy = Some(file.clone());
    }
    if let Some(file) = &args.labels {
        source.names = Some(file.clone());
    }
    if let Some(language) = &args.language {
        source.vocabulary.language.clone_from(language);
    }
    Ok(source)
}

/// Reading settings with the flags laid over them.
pub fn data_config(args: &CorpusArgs, under: &DataConfig) -> cladist::Result<DataConfig> {
    #[derive(serde::Serialize, serde::Deserialize)]
    struct Section {
        data: DataConfig,
    }
    let mut settings = Settings::of(&Section { data: under.clone() })?;
    corpus_settings(&mut settings, args)?;
    Ok(settings.resolve::<Section>()?.data)
}

/// A split of a corpus by name.
pub fn split_name(name: &str) -> anyhow::Result<SplitName> {
    name.parse().map_err(|_| {
        let known = SplitName::ALL.map(|name| name.to_string()).join(", ");
        Error::UnknownChoice { what: "split", name: name.to_owned(), known }.into()
    })
}

/// A split for a model: the files and settings of its training, unless flags say otherwise.
pub fn read_split(
    model: &Model,
    args: &CorpusArgs,
    bad_lines: &BadLineArgs,
    name: SplitName,
    session: &Session,
) -> anyhow::Result<(cladist_core::corpus::Split, cladist_core::corpus::DataReport)> {
    let source = source(args, model.source())?;
    let config = data_config(args, &model.config().common.data)?;
    Ok(model.read_split(name, Some(&source), Some(&config), &bad_lines.policy(), &session.work())?)
}

/// A corpus format by name.
pub fn format(name: &str) -> anyhow::Result<Format> {
    name.parse().map_err(|_| {
        let known = FORMATS.iter().map(|info| info.name).collect::<Vec<_>>().join(", ");
        Error::UnknownChoice { what: "corpus format", name: name.to_owned(), known }.into()
    })
}

/// A format of documents to be labelled: there, `tsv` is `id TAB text`.
fn input_format(name: &str) -> anyhow::Result<Format> {
    if name == "tsv" { Ok(Format::IdText) } else { format(name) }
}

/// Documents of files or of standard input, read as the model was trained to unless flags say otherwise.
pub fn documents(
    files: &[PathBuf],
    model: &Model,
    args: &InputArgs,
    bad_lines: &BadLineArgs,
    session: &Session,
) -> anyhow::Result<DocumentStream> {
    let mut options = model.input_options();
    options.format = args.input_format.as_deref().map(input_format).transpose()?;
    if let Some(field) = &args.text_field {
        options.read.text_field = Some(field.clone());
    }
    if let Some(field) = &args.id_field {
        options.read.id_field = Some(field.clone());
    }
    options.bad_lines = bad_lines.policy();
    options.cancel = session.cancel.clone();
    Ok(DocumentStream::new(inputs(files), options))
}

fn inputs(files: &[PathBuf]) -> Vec<Input> {
    let stdin = [PathBuf::from("-")];
    let files = if files.is_empty() { &stdin[..] } else { files };
    let input = |path: &PathBuf| match path.as_os_str() == "-" {
        true => Input::Stream(PathBuf::from("standard input"), Box::new(std::io::stdin())),
        false => Input::Path(path.clone()),
    };
    files.iter().map(input).collect()
}

#[cfg(test)]
mod documentation;
#[cfg(test)]
mod tests;
