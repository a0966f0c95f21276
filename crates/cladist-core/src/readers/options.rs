//! What a corpus reader can be told.

/// How to read a corpus. The defaults suit files that say `id`, `text` and `labels`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadOptions {
    /// Field or column of the id; by default `id`, and a document without one is called after its line.
    pub id_field: Option<String>,
    /// Fields or columns of the text, separated by commas and joined by a new line in that order; by default
    /// `title,text`. One of them must be there. `a.b` looks for `b` inside `a`.
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
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            id_field: None,
            text_field: None,
            labels_field: None,
            drop_field: None,
            label_separator: ";".to_owned(),
            label_prefix: "__label__".to_owned(),
            language: None,
            missing_id: "line".to_owned(),
            max_record: 256 << 20,
        }
    }
}

impl ReadOptions {
    pub(super) fn id_fields(&self) -> Vec<String> {
        names(self.id_field.as_deref(), &["id"])
    }

    pub(super) fn text_fields(&self) -> Vec<String> {
        names(self.text_field.as_deref(), &["title", "text"])
    }

    pub(super) fn labels_fields(&self) -> Vec<String> {
        names(self.labels_field.as_deref(), &["labels", "label"])
    }

    pub(super) fn id_of_line(&self, line: usize) -> String {
        format!("{}-{line}", self.missing_id)
    }
}

fn names(chosen: Option<&str>, default: &[&str]) -> Vec<String> {
    match chosen {
        Some(chosen) => {
            chosen.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
        }
        None => default.iter().map(|&name| name.to_owned()).collect(),
    }
}
