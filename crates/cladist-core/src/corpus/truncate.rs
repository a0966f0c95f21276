//! Gold labels of a truncated taxonomy: what was cut off is replaced by what is left above it.

use super::{CorpusError, CorpusSource, DataConfig, VocabularyReport, vocabulary};
use crate::document::Document;
use crate::error::Result;
use crate::job::Job;
use crate::taxonomy::{BottomLevels, Taxonomy, TopLevels, Truncated};

/// A taxonomy before and after levels were dropped.
pub(super) struct Cut {
    whole: Taxonomy,
    truncated: Truncated,
}

impl Cut {
    /// Cuts a taxonomy as the settings say.
    pub(super) fn new(whole: Taxonomy, config: &DataConfig) -> Result<Self> {
        let top = config.drop_top_levels;
        let bottom = config.max_levels.map_or(0, |kept| whole.n_levels().saturating_sub(top + kept));
        let truncated = whole.truncate(TopLevels(top), BottomLevels(bottom));
        if truncated.taxonomy.n_labels() == 0 {
            return Err(CorpusError::NothingLeft { levels: whole.n_levels() }.into());
        }
        Ok(Self { whole, truncated })
    }

    /// The same cut again, for a split that is read on its own. Without a vocabulary there is nothing to cut.
    pub(super) fn of_source(
        source: &CorpusSource,
        config: &DataConfig,
        job: &Job<'_>,
    ) -> Result<Option<Self>> {
        if !config.truncates() {
            return Ok(None);
        }
        let whole = vocabulary::read(source, config, &mut VocabularyReport::default(), job)?;
        whole.map(|whole| Self::new(whole, config)).transpose()
    }

    pub(super) fn into_taxonomy(self) -> Taxonomy {
        self.truncated.taxonomy
    }

    /// Puts kept labels in the place of dropped ones. Labels that the whole taxonomy does not have stay, to be
    /// counted as unknown. Returns how many labels were replaced.
    pub(super) fn apply(&self, document: &mut Document) -> usize {
        let mut replaced = 0;
        let mut labels = Vec::with_capacity(document.labels.len());
        for label in std::mem::take(&mut document.labels) {
            let Some(known) = self.whole.get(&label) else {
                labels.push(label);
                continue;
            };
            let kept = &self.truncated.replacement[known.index()];
            let ids = kept.iter().map(|&label| self.truncated.taxonomy.id(label));
            if kept.len() == 1 && ids.clone().eq([label.as_str()]) {
                labels.push(label);
                continue;
            }
            replaced += 1;
            for id in ids {
                // Siblings below the cut become one label: no repetition of the corpus.
                if !labels.iter().any(|seen| seen == id) {
                    labels.push(id.to_owned());
                }
            }
        }
        document.labels = labels;
        replaced
    }
}
