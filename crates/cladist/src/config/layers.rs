//! From what a caller says of a run to its settings: defaults of the head, a file, single settings, each over the one before.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::{Common, Recipe, RunConfig, ThresholdSource};
use cladist_core::bundle;
use cladist_core::calibrate::Method;
use cladist_core::corpus::DataConfig;
use cladist_core::text::normalise::Normalise;

use crate::error::{Error, Result};
use crate::folders;
use crate::heads::{self, Family, HeadInfo};
use crate::settings::Settings;

/// What names word vectors instead of an encoder.
const WORDS: &str = "words:";
/// The head if nobody says which.
const DEFAULT_HEAD: &str = "svm";
/// Sections of training on an encoder.
const OF_ENCODERS: [&str; 7] = ["train", "tokens", "shortlist", "ranker", "task", "branches", "encoder"];

/// What a caller says of a run. All of it may be empty: then the defaults hold.
///
/// ```
/// # fn main() -> Result<(), cladist::Error> {
/// use cladist::config::Layers;
/// let layers = Layers { head: Some("svm".into()), set: vec!["linear.c=0.5".into()], ..Layers::default() };
/// assert_eq!(layers.resolve()?.head(), "svm");
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Layers {
    /// The head; without one, that of the file, or else `svm`.
    pub head: Option<String>,
    /// Settings below the file: what an experiment proposes.
    pub under: Vec<(String, String)>,
    /// Settings of a file.
    pub file: Settings,
    /// Single settings over the file.
    pub over: Settings,
    /// `key=value`, over everything else.
    pub set: Vec<String>,
    /// Run folders or bundles that the head `mixed` is an ensemble of.
    pub members: Vec<PathBuf>,
}

impl Layers {
    /// Settings of a head, the defaults of everything else.
    #[must_use]
    pub fn of_head(name: &str) -> Self {
        Self { head: Some(name.to_owned()), ..Self::default() }
    }

    /// The head that these settings are for.
    pub fn head(&self) -> Result<&'static HeadInfo> {
        heads::find(self.head.as_deref().or(self.file.text("head")).unwrap_or(DEFAULT_HEAD))
    }

    /// Lays the settings over each other and checks the result.
    pub fn resolve(&self) -> Result<RunConfig> {
        let head = self.head()?;
        let mut defaults = RunConfig::new(head);
        if let (Family::Mixed, Some(first)) = (head.family, self.members.first()) {
            // What the members saw of the corpus is what they are weighed on; each normalises texts by itself.
            let data = RunConfig::of(first)?.common.data;
            defaults.common.data = DataConfig { normalise: Normalise::default(), ..data };
        }
        let mut settings = self.over(&defaults, head)?;
        let one_label = settings.text("task") == Some("multi-class");
        let on_words = settings.text("encoder").is_some_and(|encoder| encoder.starts_with(WORDS));
        if one_label || on_words {
            if one_label {
                for_one_label(&mut defaults.common);
            }
            if on_words {
                for_word_vectors(&mut defaults.recipe);
            }
            settings = self.over(&defaults, head)?;
        }
        let mut config: RunConfig = settings.resolve()?;
        config.validate()?;
        if let Recipe::Neural(recipe) = &mut config.recipe {
            recipe.head.settle(recipe.train.all_epochs());
            recipe.encoder = whole_path(&recipe.encoder)?;
        }
        Ok(config)
    }

    /// The settings of one of several heads that share these layers. What the caller says of other heads does not concern
    /// this one.
    pub fn resolve_one_of(&self, head: &HeadInfo) -> Result<RunConfig> {
        let mut own = Self { head: Some(head.name.to_owned()), ..self.clone() };
        own.file.retain(|key| !heads::is_of_other(key, head.name));
        own.set.retain(|argument| !heads::is_of_other(argument, head.name));
        own.under.retain(|(key, _)| !heads::is_of_other(key, head.name));
        // Of training on an encoder, nothing concerns linear models, nor members that were trained already.
        if !matches!(head.family, Family::Neural(_)) {
            let key = |argument: &str| argument.split('=').next().unwrap_or(argument).trim().to_owned();
            let is_linear = matches!(head.family, Family::Linear(_));
            let is_own = |key: &str| is_linear && ["train.epochs", "train.seed"].contains(&key);
            own.file.retain(|key| !of_encoders(key));
            own.over = own.over.filtered(|key| !of_encoders(key) || (is_linear && key == "train.seed"))?;
            own.set.retain(|argument| !of_encoders(&key(argument)) || is_own(&key(argument)));
            own.under.retain(|(key, _)| !of_encoders(key));
            if !is_linear {
                // Members see to it themselves.
                own.file = own.file.filtered(|key| !of_normalisation(key))?;
                own.over = own.over.filtered(|key| !of_normalisation(key))?;
                own.set.retain(|argument| !of_normalisation(&key(argument)));
                own.under.retain(|(key, _)| !of_normalisation(key));
            }
        }
        own.resolve()
    }

    /// The first setting that these layers would give another value than a run has; none if they agree with it.
    pub fn difference(&self, known: &RunConfig) -> Result<Option<String>> {
        let head = self.head()?;
        if head.name != known.head() {
            return Ok(Some(format!("`head` is \"{}\", not \"{}\"", known.head(), head.name)));
        }
        let mut wanted: RunConfig = self.over(known, head)?.resolve()?;
        if let Recipe::Neural(recipe) = &mut wanted.recipe {
            recipe.encoder = whole_path(&recipe.encoder)?;
        }
        difference(known, &wanted)
    }

    fn over(&self, defaults: &RunConfig, head: &HeadInfo) -> Result<Settings> {
        let mut settings = Settings::of(defaults)?;
        for (key, value) in &self.under {
            settings.set_text(key, value)?;
        }
        settings.merge(self.file.clone());
        settings.set("head", head.name)?;
        settings.merge(self.over.clone());
        if !self.members.is_empty() {
            if !matches!(head.family, Family::Mixed) {
                return Err(Error::setting("mixed.members", "is for the head `mixed`"));
            }
            let members = self
                .members
                .iter()
                .map(|path| text_of(&std::path::absolute(path).map_err(Error::io("find", path))?));
            settings.set("mixed.members", members.collect::<Result<Vec<String>>>()?)?;
        }
        for argument in &self.set {
            settings.set_argument(argument)?;
        }
        Ok(settings)
    }
}

impl RunConfig {
    /// The settings of a run folder or bundle.
    pub fn of(path: &std::path::Path) -> Result<Self> {
        folders::check_exists(path)?;
        Settings::read(&bundle::find(path)?.join(folders::CONFIG))?.resolve()
    }
}

/// The first setting in which two runs differ, with both values.
pub fn difference(then: &RunConfig, now: &RunConfig) -> Result<Option<String>> {
    let (then, now) = (Settings::of(then)?.flat(), Settings::of(now)?.flat());
    let keys: BTreeSet<&String> = then.keys().chain(now.keys()).collect();
    let say = |value: Option<&toml::Value>| value.map_or_else(|| "not set".to_owned(), ToString::to_string);
    let key = keys.into_iter().find(|key| then.get(*key) != now.get(*key));
    Ok(key.map(|key| format!("`{key}` is {} there and {} here", say(then.get(key)), say(now.get(key)))))
}

fn of_encoders(key: &str) -> bool {
    OF_ENCODERS.contains(&key.split('.').next().unwrap_or(key))
}

fn of_normalisation(key: &str) -> bool {
    key == "data.normalise" || key.starts_with("data.normalise.")
}

/// A path as settings can hold it.
fn text_of(path: &std::path::Path) -> Result<String> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        Error::setting(&path.display().to_string(), "is a path that is not UTF-8, which settings cannot hold")
    })
}

/// A run can be taken up again from anywhere.
fn whole_path(encoder: &str) -> Result<String> {
    let (kind, path) = match encoder.strip_prefix(WORDS) {
        Some(path) => (WORDS, std::path::Path::new(path)),
        None => ("", std::path::Path::new(encoder)),
    };
    if !path.exists() {
        return Ok(encoder.to_owned());
    }
    let path = std::path::absolute(path).map_err(Error::io("find", path))?;
    Ok(format!("{kind}{}", text_of(&path)?))
}

/// Defaults where each document has exactly one label: the most probable one is the answer.
fn for_one_label(common: &mut Common) {
    common.thresholds = ThresholdSource::Fixed;
    common.decode.top_k = Some(1);
    common.decode.at_least = 1;
    common.calibrate.method = Method::None;
}

/// Defaults where no encoder was pretrained: what is above word vectors learns as fast as they do.
fn for_word_vectors(recipe: &mut Recipe) {
    if let Recipe::Neural(recipe) = recipe {
        let rate = 1e-3;
        recipe.train.learning_rate = rate;
        recipe.train.output.learning_rate = Some(rate);
        recipe.train.labels.learning_rate = Some(rate);
    }
}
