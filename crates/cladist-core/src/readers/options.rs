//! What a corpus reader can be told.

use crate::job::Cancel;

/// Fields and columns that hold the text of a document without a `text`, in the order in which they are joined.
const BODIES: [&str; 5] = ["abstract", "summary", "description", "body", "content"];

/// How to read documents. The defaults suit files that say `id`, `text` and `labels`.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// What the documents are read for.
    pub expect: Expect,
    /// Field or column of the id; by default `id`, and a document without one is called after its line.
    pub id_field: Option<String>,
    /// Fields or columns of the text, separated by commas and joined by a new line in that order. `a.b` looks for `b`
    /// inside `a`. A column of this name must be there, a field in at least one record of the file; a record that has
    /// none of the fields is bad. By default `title` and then `text`, or where there is no `text` all that there are of
    /// `abstract`, `summary`, `description`, `body` and `content`.
    pub text_field: Option<String>,
    /// Field or column of the labels; by default `labels` or `label`.
    pub labels_field: Option<String>,
    /// Documents whose field of this name is true are left out and counted.
    pub drop_field: Option<String>,
    /// Between the labels in a cell of csv and tsv-columns.
    pub label_separator: String,
    /// Before each label in fastText files.
    pub label_prefix: String,
    /// The language to take where a text is given in several, as in MultiEURLEX; documents without it are left
    /// out and counted.
    pub language: Option<String>,
    /// What goes before the line number in the id of a document that has none: `line` gives `line-12`.
    pub missing_id: String,
    /// The most bytes of one record; a longer one is a bad line.
    pub max_record: usize,
    /// When to stop waiting for a pipe that says nothing.
    pub cancel: Cancel,
}

/// What documents are read for. It decides what an ambiguous file is taken for and whether labels are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Expect {
    /// Training or evaluation: documents with gold labels.
    #[default]
    Labelled,
    /// Prediction by a model of text. Labels in the file are not read, nor is `drop_field`: every record is answered.
    /// A line is a document unless the file says otherwise; a `.tsv` without a header is `id TAB text`.
    Text,
    /// Prediction by a model of features.
    Features,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            expect: Expect::Labelled,
            id_field: None,
            text_field: None,
            labels_field: None,
            drop_field: None,
            label_separator: ";".to_owned(),
            label_prefix: "__label__".to_owned(),
            language: None,
            missing_id: "line".to_owned(),
            max_record: 256 << 20,
            cancel: Cancel::default(),
        }
    }
}

impl ReadOptions {
    /// The same options for documents read for another purpose: text is made from a record in the same way.
    #[must_use]
    pub fn expecting(self, expect: Expect) -> Self {
        Self { expect, ..self }
    }

    /// Whether gold labels are read.
    pub(super) fn reads_labels(&self) -> bool {
        self.expect == Expect::Labelled
    }

    /// The fields of the id, and whether they must be there.
    pub(super) fn id_fields(&self) -> (Vec<String>, bool) {
        (names(self.id_field.as_deref(), &["id"]), self.id_field.is_some() && self.reads_labels())
    }

    /// The fields of the labels, the first of which counts, and whether one must be there.
    pub(super) fn labels_fields(&self) -> (Vec<String>, bool) {
        if self.reads_labels() {
            (names(self.labels_field.as_deref(), &["labels", "label"]), self.labels_field.is_some())
        } else {
            (Vec::new(), false)
        }
    }

    pub(super) fn drop_field(&self) -> Option<&str> {
        self.drop_field.as_deref().filter(|_| self.reads_labels())
    }

    pub(super) fn text_fields(&self) -> TextFields {
        match self.text_field.as_deref() {
            Some(chosen) => TextFields { names: names(Some(chosen), &[]), chosen: true },
            None => {
                let names = ["title", "text"].into_iter().chain(BODIES).map(str::to_owned).collect();
                TextFields { names, chosen: false }
            }
        }
    }

    pub(super) fn id_of_line(&self, line: usize) -> String {
        format!("{}-{line}", self.missing_id)
    }
}

/// The fields that may make a text, in order.
#[derive(Debug, Clone)]
pub(super) struct TextFields {
    pub(super) names: Vec<String>,
    /// Whether they are all to be there; if not, `text` makes the [`BODIES`] superfluous.
    pub(super) chosen: bool,
}

impl TextFields {
    /// Those of the fields that make the text where some are there.
    pub(super) fn choose(&self, is_there: impl Fn(usize) -> bool) -> Vec<usize> {
        let found = (0..self.names.len()).filter(|&n| is_there(n));
        if self.chosen {
            return found.collect();
        }
        let (title, text) = (0, 1);
        let has_text = is_there(text);
        found.filter(|&n| n == title || (n == text) == has_text).collect()
    }
}

fn names(chosen: Option<&str>, default: &[&str]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let chosen = chosen.map(|chosen| chosen.split(',').map(str::trim).collect());
    for name in chosen.unwrap_or_else(|| default.to_vec()) {
        if !name.is_empty() && !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}
