//! What many trainings for one question share.

use std::path::Path;

use cladist::config::Layers;
use cladist::corpus::CorpusSource;
use cladist::{BadLinePolicy, OpenOptions, RunConfig, Training, Work};

/// Settings, corpus and surroundings that every run gets.
#[derive(Debug, Clone)]
pub struct Spec<'a> {
    /// What the user says of the settings.
    pub layers: Layers,
    /// What is learnt from.
    pub corpus: CorpusSource,
    /// What becomes of lines that cannot be read.
    pub bad_lines: BadLinePolicy,
    /// What tensors are computed on.
    pub device: String,
    /// Who watches, and when to stop.
    pub work: Work<'a>,
}

impl<'a> Spec<'a> {
    /// A run with these settings in a folder.
    #[must_use]
    pub fn training(&self, config: RunConfig, out: &Path) -> Training<'a> {
        Training::new(config)
            .corpus(self.corpus.clone())
            .out(out)
            .observe(self.work.observer)
            .cancel(self.work.cancel.clone())
            .bad_lines(self.bad_lines.clone())
            .device(&self.device)
    }

    /// How its models are opened.
    #[must_use]
    pub fn open(&self) -> OpenOptions {
        OpenOptions {
            device: self.device.clone(),
            cancel: self.work.cancel.clone(),
            ..OpenOptions::default()
        }
    }
}
