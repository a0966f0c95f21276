//! Reports of evaluations on disk: JSON, a page, and a table of all labels.

use std::path::Path;

use cladist_core::bundle::write_atomically;
use cladist_core::metrics::Report;

use crate::error::{Error, Result};
use crate::folders;
use crate::html;
use crate::observe::{Event, Work};
use crate::results::Evaluation;

/// Writes `SPLIT.json`, `SPLIT.html` and `SPLIT-labels.tsv` into a folder. A report that cannot be written is told of; the
/// figures are not lost with it.
pub fn save(folder: &Path, evaluation: &Evaluation, work: &Work<'_>) {
    match write(folder, evaluation) {
        Ok(()) => {
            // A run is drafted beside its place; its report will be where the run is said to be.
            let place = Path::new(&evaluation.run).join(folders::REPORTS);
            work.tell(&Event::Report(place.join(format!("{}.html", evaluation.split))));
        }
        Err(error) => work.tell(&Event::Warning(format!("the report was not saved: {error}"))),
    }
}

fn write(folder: &Path, evaluation: &Evaluation) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
    let path = |ending: &str| folder.join(format!("{}{ending}", evaluation.split));
    write_atomically(&path(".json"), &serde_json::to_vec_pretty(evaluation)?)?;
    write_atomically(&path(".html"), html::report(evaluation)?.as_bytes())?;
    write_labels(&path("-labels.tsv"), &evaluation.report)
}

/// Writes a table of all labels.
pub fn write_labels(path: &Path, report: &Report) -> Result<()> {
    let mut bytes = Vec::new();
    report.per_label_tsv(&mut bytes).map_err(Error::io("write", path))?;
    write_atomically(path, &bytes)?;
    Ok(())
}
