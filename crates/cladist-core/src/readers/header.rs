//! The columns of a table by name, and the document in a row.

use super::{BadKind, Parsed, ReadOptions, indicator, write};
use crate::document::Document;

/// Where the columns are.
pub(super) struct Header {
    n_columns: usize,
    id: Option<usize>,
    text: Vec<usize>,
    /// What these columns are called.
    pub(super) text_names: Vec<String>,
    labels: Option<usize>,
    drop: Option<usize>,
}

impl Header {
    pub(super) fn new(names: &[String], options: &ReadOptions) -> Result<Self, BadKind> {
        let called = |column: &String, wanted: &str| column.trim().eq_ignore_ascii_case(wanted.trim());
        let find = |wanted: &str| names.iter().position(|name| called(name, wanted));
        let first = |(wanted, required): (Vec<String>, bool)| match (
            wanted.iter().find_map(|name| find(name)),
            wanted.first(),
        ) {
            (None, Some(wanted)) if required => Err(missing(wanted, names)),
            (found, _) => Ok(found),
        };
        let wanted = options.text_fields();
        let found: Vec<Option<usize>> = wanted.names.iter().map(|name| find(name)).collect();
        if let Some(n) = found.iter().position(Option::is_none).filter(|_| wanted.chosen) {
            return Err(missing(&wanted.names[n], names));
        }
        let text: Vec<usize> =
            wanted.choose(|n| found[n].is_some()).into_iter().filter_map(|n| found[n]).collect();
        if text.is_empty() {
            return Err(missing("text", names));
        }
        let id = first(options.id_fields())?;
        let labels = first(options.labels_fields())?;
        let drop = options.drop_field().and_then(find);
        // Columns that nobody reads may have any names.
        let mut read = text.iter().copied().chain(id).chain(labels).chain(drop);
        let twice = read.find(|&column| names.iter().filter(|name| called(name, &names[column])).count() > 1);
        if let Some(column) = twice {
            let message = format!("column `{}` occurs twice in the header", names[column].trim());
            return Err(BadKind::Header(message));
        }
        let text_names = text.iter().map(|&column| names[column].trim().to_owned()).collect();
        Ok(Self { n_columns: names.len(), id, text, text_names, labels, drop })
    }

    pub(super) fn document(
        &self,
        mut fields: Vec<String>,
        line: usize,
        options: &ReadOptions,
    ) -> Result<Parsed, BadKind> {
        if fields.len() != self.n_columns {
            return Err(BadKind::Columns { expected: self.n_columns, found: fields.len() });
        }
        if let Some(column) = self.drop {
            match fields[column].trim().to_ascii_lowercase().as_str() {
                "true" | "1" | "yes" => return Ok(Parsed::Dropped),
                "false" | "0" | "no" | "" => {}
                _ => {
                    let expected = "`true` or `false`".to_owned();
                    return Err(BadKind::Malformed { expected, found: std::mem::take(&mut fields[column]) });
                }
            }
        }
        let labels = match self.labels {
            Some(column) => labels(&fields[column], &options.label_separator)?,
            None => Vec::new(),
        };
        let mut take = |column: usize| std::mem::take(&mut fields[column]);
        let id = self.id.map(&mut take).filter(|id| !id.is_empty());
        let text = self.text.iter().map(|&column| take(column)).collect::<Vec<_>>().join("\n");
        let id = id.unwrap_or_else(|| options.id_of_line(line));
        Ok(Parsed::Document(Document { id, text, labels, features: None }))
    }
}

fn missing(wanted: &str, names: &[String]) -> BadKind {
    BadKind::Header(format!("no column `{wanted}`; the header has {}", write::quoted(names)))
}

/// The labels of a cell. A list as JSON or Python write it would become one odd label, so it is refused.
fn labels(cell: &str, separator: &str) -> Result<Vec<String>, BadKind> {
    let cell = cell.trim();
    let is_list = ["['", "[\"", "[]"].iter().any(|start| cell.starts_with(start)) && cell.ends_with(']');
    if is_list {
        let expected = format!("labels separated by `{separator}`");
        return Err(BadKind::Malformed { expected, found: write::excerpt(cell) });
    }
    let labels: Vec<String> =
        cell.split(separator).map(str::trim).filter(|label| !label.is_empty()).map(str::to_owned).collect();
    indicator::check(&labels)?;
    Ok(labels)
}
