//! The table of formats. Names, help, sniffing, reading and writing all come from it.

use std::fmt;
use std::io::Write;
use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::source::Source;
use super::{ReadOptions, Reading, WriteError, icd9, json, lines, list, mesh, rdfxml, tsv, turtle};
use crate::taxonomy::{OnCycle, Taxonomy};

/// A format of vocabularies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Our own.
    Json,
    /// SKOS as RDF/XML.
    SkosRdfxml,
    /// SKOS as Turtle or N-Triples.
    SkosTurtle,
    /// Tables of MeSH descriptors.
    Mesh,
    /// The table of ICD-9-CM codes.
    Icd9,
    /// A parent and all its children in a line.
    Taxonomy,
    /// A parent and a child in a line.
    Tsv,
    /// A label in a line.
    List,
}

type Writer = fn(&Taxonomy, &mut dyn Write) -> Result<(), WriteError>;

/// What the program knows of a format.
#[derive(Debug)]
pub struct FormatInfo {
    /// Which one it is.
    pub format: Format,
    /// What people write on the command line.
    pub name: &'static str,
    /// File endings without the dot, or whole file names.
    pub endings: &'static [&'static str],
    /// One line of help.
    pub description: &'static str,
    /// What becomes of cycles unless the user says.
    pub on_cycle: OnCycle,
    /// Whether the first lines look like it.
    pub(super) looks_like: fn(&[&str]) -> bool,
    pub(super) read: fn(&Source<'_>, &ReadOptions, &mut Reading),
    pub(super) write: Option<Writer>,
}

impl FormatInfo {
    /// Whether [`super::write`] can write it.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.write.is_some()
    }
}

/// Every format; those that are easier to recognise first.
pub static FORMATS: [FormatInfo; 8] = [
    FormatInfo {
        format: Format::Json,
        name: "json",
        endings: &["json"],
        description: "cladist's own: everything known of each label, nothing lost",
        on_cycle: OnCycle::Refuse,
        looks_like: |head| head.first().is_some_and(|line| line.trim_start().starts_with('{')),
        read: json::read,
        write: Some(json::write),
    },
    FormatInfo {
        format: Format::SkosRdfxml,
        name: "skos-rdfxml",
        endings: &["rdf", "xml", "owl"],
        description: "SKOS concepts in RDF/XML",
        on_cycle: OnCycle::Refuse,
        looks_like: |head| {
            let start = head.first().map_or("", |line| line.trim_start());
            ["<?xml", "<!", "<rdf:"].iter().any(|tag| start.starts_with(tag))
        },
        read: rdfxml::read,
        write: None,
    },
    FormatInfo {
        format: Format::SkosTurtle,
        name: "skos-turtle",
        endings: &["ttl", "turtle", "nt"],
        description: "SKOS concepts in Turtle or N-Triples",
        on_cycle: OnCycle::Refuse,
        looks_like: turtle::looks_like,
        read: turtle::read,
        write: Some(turtle::write),
    },
    FormatInfo {
        format: Format::Mesh,
        name: "mesh",
        endings: &["tsv", "txt"],
        description: "MeSH table with a header: mesh_id TAB mesh_name [TAB mesh_tree_number]",
        // A descriptor with two tree numbers can stand both above and below another.
        on_cycle: OnCycle::Break,
        looks_like: |head| head.first().is_some_and(|line| mesh::is_header(line)),
        read: mesh::read,
        write: None,
    },
    FormatInfo {
        format: Format::Icd9,
        name: "icd9",
        endings: &["tsv", "txt"],
        description: "ICD-9-CM table: code, is-leaf, short and long name, category, its name, section, chapter",
        on_cycle: OnCycle::Refuse,
        looks_like: |head| head.first().is_some_and(|line| icd9::is_row(line)),
        read: icd9::read,
        write: None,
    },
    FormatInfo {
        format: Format::Taxonomy,
        name: "taxonomy",
        endings: &["taxonomy", "taxnomy", "txt"],
        description: "parent TAB child TAB child …; the root is written `Root`",
        on_cycle: OnCycle::Refuse,
        looks_like: |head| head.iter().any(|line| line.split('\t').count() > 3),
        read: lines::read,
        write: Some(lines::write),
    },
    FormatInfo {
        format: Format::Tsv,
        name: "tsv",
        endings: &["tsv", "txt"],
        description: "parent TAB child [TAB name of the child]; the root is written `ROOT`",
        on_cycle: OnCycle::Refuse,
        looks_like: |head| head.first().is_some_and(|line| line.contains('\t')),
        read: tsv::read,
        write: Some(tsv::write),
    },
    FormatInfo {
        format: Format::List,
        name: "list",
        endings: &["labels.tsv", "list", "txt"],
        description: "one label per line: id [TAB name [TAB description]]",
        on_cycle: OnCycle::Refuse,
        looks_like: |head| head.iter().all(|line| !line.contains('\t')),
        read: list::read,
        write: Some(list::write),
    },
];

impl Format {
    /// Its row in the table.
    #[must_use]
    pub fn info(self) -> &'static FormatInfo {
        &FORMATS[self as usize]
    }

    /// The first format that a file name's ending stands for, whatever the content.
    #[must_use]
    pub fn of_path(path: &Path) -> Option<Self> {
        let candidates = by_ending(path);
        // `.tsv` and `.txt` stand for several; the plain one is the last of them.
        candidates.iter().find(|info| info.format == Self::Tsv).or(candidates.first()).map(|info| info.format)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.info().name)
    }
}

/// A name that is no format's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown taxonomy format `{0}`: expected one of {names}", names = names())]
pub struct UnknownFormat(pub String);

fn names() -> String {
    FORMATS.iter().map(|info| info.name).collect::<Vec<_>>().join(", ")
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        let found = FORMATS.iter().find(|info| info.name == name);
        found.map(|info| info.format).ok_or_else(|| UnknownFormat(name.to_owned()))
    }
}

/// The formats of a file's ending, the longest ending only; all of them, if the ending says nothing.
fn by_ending(path: &Path) -> Vec<&'static FormatInfo> {
    let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    let name = [".gz", ".zst"].iter().find_map(|packed| name.strip_suffix(packed)).unwrap_or(&name);
    let matched = |info: &FormatInfo| {
        let fits = |ending: &&&str| {
            name.strip_suffix(**ending).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        info.endings.iter().filter(fits).map(|ending| ending.len()).max()
    };
    let longest = FORMATS.iter().filter_map(matched).max();
    FORMATS.iter().filter(|info| longest.is_some() && matched(info) == longest).collect()
}

/// Tells a file's format from its name and, where that leaves a choice, from its first lines.
#[must_use]
pub fn sniff(path: &Path, bytes: &[u8]) -> Format {
    const HEAD: usize = 1 << 16;
    const LINES: usize = 50;
    let candidates = by_ending(path);
    if let [only] = candidates[..] {
        return only.format;
    }
    let source = Source::new(&bytes[..bytes.len().min(HEAD)], None);
    let head = String::from_utf8_lossy(source.bytes);
    let head: Vec<&str> = head.lines().filter(|line| !line.trim().is_empty()).take(LINES).collect();
    let candidates = if candidates.is_empty() { FORMATS.iter().collect() } else { candidates };
    let found = candidates.iter().find(|info| (info.looks_like)(&head)).or(candidates.last());
    found.map_or(Format::Tsv, |info| info.format)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_enum_and_its_names_are_the_serde_names() {
        for (n, info) in FORMATS.iter().enumerate() {
            assert_eq!(info.format as usize, n);
            assert_eq!(serde_json::to_value(info.format).unwrap(), info.name);
            assert_eq!(info.name.parse(), Ok(info.format));
            assert_eq!(info.format.to_string(), info.name);
        }
        let error = "excel".parse::<Format>().unwrap_err().to_string();
        assert!(error.starts_with("unknown taxonomy format `excel`: expected one of json, "), "{error}");
    }

    #[test]
    fn formats_are_told_by_ending_then_by_content() {
        let cases: &[(&str, &str, Format)] = &[
            ("a.json", "", Format::Json),
            ("a.TTL", "", Format::SkosTurtle),
            ("a.nt.gz", "", Format::SkosTurtle),
            ("a.rdf", "", Format::SkosRdfxml),
            ("wos.taxnomy", "", Format::Taxonomy),
            ("hierarchy.tsv", "ROOT\ta\n", Format::Tsv),
            ("hierarchy.tsv.zst", "", Format::Tsv),
            ("labels.tsv", "a\tA\n", Format::List),
            ("my-labels.tsv", "a\tA\n", Format::Tsv),
            ("mesh.tsv", "mesh_id\tmesh_name\nD1\tX\n", Format::Mesh),
            ("icd.tsv", "001\tFalse\tC\tC\t001\tC\tS\tCh\n", Format::Icd9),
            ("x.txt", "a\nb\n", Format::List),
            ("x.txt", "a\tb\n", Format::Tsv),
            ("x.txt", "\u{feff}Root\ta\tb\tc\td\n", Format::Taxonomy),
            ("x", "\n  {\"format\"", Format::Json),
            ("x", "<?xml version='1.0'?>", Format::SkosRdfxml),
            ("x", "@prefix a: <b> .", Format::SkosTurtle),
            ("x", "<http://a/b> <http://c> <http://d> .", Format::SkosTurtle),
            ("x", "", Format::List),
        ];
        for (name, content, expected) in cases {
            assert_eq!(sniff(Path::new(name), content.as_bytes()), *expected, "{name} {content}");
        }
    }

    #[test]
    fn a_file_to_write_gets_the_plain_format_of_its_ending() {
        assert_eq!(Format::of_path(Path::new("x.tsv")), Some(Format::Tsv));
        assert_eq!(Format::of_path(Path::new("labels.tsv")), Some(Format::List));
        assert_eq!(Format::of_path(Path::new("x.json")), Some(Format::Json));
        assert_eq!(Format::of_path(Path::new("x.docx")), None);
    }
}
