//! `cladist taxonomy add-labels`: labels for a trained model that it has not met, by what their descriptions say.

use std::path::{Path, PathBuf};

use cladist::folders::bundle_of;
use cladist::{Error, Model};
use cladist_core::Taxonomy;
use serde::Serialize;

use crate::error::Usage;
use crate::session::Session;

/// Labels that are listed.
const SHOWN: usize = 10;

/// What was done.
#[derive(Debug, Serialize)]
struct Added {
    bundle: PathBuf,
    added: Vec<String>,
    labels: usize,
}

/// Writes the bundle of `run` with the labels of `vocabulary` that it does not have, in its place or at `out`.
pub(super) fn run(
    run: &Path,
    vocabulary: &Taxonomy,
    out: Option<&Path>,
    json: bool,
    session: &Session,
) -> anyhow::Result<()> {
    let place = out.map_or_else(|| bundle_of(run), Path::to_owned);
    if out.is_some() && place.exists() {
        return Err(Usage::Exists(place).into());
    }
    let mut added = Vec::new();
    let opened = Model::open_extended(run, &session.open(), |known| {
        let new = vocabulary.labels().filter(|&label| known.get(vocabulary.id(label)).is_none());
        added = new.map(|label| vocabulary.id(label).to_owned()).collect();
        if added.is_empty() {
            return Err(Error::NothingToAdd { labels: vocabulary.n_labels() });
        }
        Ok(known.extended(vocabulary)?)
    })?;
    opened.save(&place)?;
    session.view.clear();
    let labels = opened.taxonomy().n_labels();
    if json {
        return session.output.json(&Added { bundle: place, added, labels });
    }
    let shown = added.iter().take(SHOWN).map(|id| format!("`{id}`")).collect::<Vec<_>>().join(", ");
    let more = if added.len() > SHOWN { format!(" and {} more", added.len() - SHOWN) } else { String::new() };
    session.output.line(format!(
        "labels added: {} ({shown}{more})\nthe model has {labels} now: {}",
        added.len(),
        place.display()
    ))
}
