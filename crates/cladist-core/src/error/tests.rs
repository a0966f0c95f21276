use std::sync::Arc;

use super::*;
use crate::corpus::{CorpusError, RepeatedId, SplitName, UnknownLabel};
use crate::readers::{self, BadKind, BadLine, Reason, Unwritable};
use crate::taxonomy::{self, Origin, Problem, ProblemKind, Problems, WriteError};

/// The names of an enum's variants, and which of them a value is. A new variant does not compile until it is listed here, and
/// [`shown`] wants an example of each that is.
macro_rules! variants {
    ($enum:ident: $($variant:ident)+) => {
        (
            [$(stringify!($variant)),+].as_slice(),
            |value: &$enum| match value {
                $($enum::$variant { .. } => stringify!($variant),)+
            },
        )
    };
}

/// Every error as a front end gets it: variant and kind, message, remedy.
fn shown<E>(
    (all, name): (&[&str], impl Fn(&E) -> &'static str),
    examples: Vec<E>,
    into: impl Fn(E) -> Error,
) -> String {
    let names: Vec<&str> = examples.iter().map(name).collect();
    for variant in all {
        assert!(names.contains(variant), "`{variant}` has no example");
    }
    let one = |(name, error): (&str, Error)| {
        let remedy = error.remedy().map(|remedy| format!("\n  remedy: {remedy}")).unwrap_or_default();
        format!("{name}, {:?}\n  {error}{remedy}", error.kind())
    };
    names.into_iter().zip(examples.into_iter().map(into)).map(one).collect::<Vec<_>>().join("\n\n")
}

fn json_error() -> serde_json::Error {
    serde_json::from_str::<serde_json::Value>("{").unwrap_err()
}

#[test]
fn every_error_has_a_message_and_a_kind() {
    let variants = variants!(Error:
        Io Taxonomy TaxonomyWrite Bundle Setting Mismatch DifferentGold UnknownLabel NoFeatures NothingToLearn BadLine
        Unwritable Corpus Classifier Cancelled
    );
    let io = |action, kind: io::ErrorKind| Error::io(action, Path::new("corpus/train.jsonl"))(kind.into());
    // Errors of modules stand for themselves below.
    let problem = |n| Problem { origin: Origin { path: None, line: n }, kind: ProblemKind::EmptyId };
    let line = BadLine {
        path: Arc::new("train.jsonl".into()),
        line: 3,
        column: None,
        kind: BadKind::EmptyLabel,
        content: String::new(),
    };
    let examples = vec![
        io("read", io::ErrorKind::NotFound),
        io("read", io::ErrorKind::IsADirectory),
        io("read", io::ErrorKind::UnexpectedEof),
        io("read", io::ErrorKind::PermissionDenied),
        io("write", io::ErrorKind::StorageFull),
        Problems((1..=21).map(problem).collect()).into(),
        WriteError::ReadOnly(taxonomy::Format::Mesh).into(),
        BundleError::Checksum("bundle/model.safetensors".into()).into(),
        Error::setting("features.min_df", "at least 1", 0),
        Error::Mismatch { left: "rows of scores", n_left: 2, right: "gold sets", n_right: 3 },
        Error::DifferentGold { document: 7 },
        Error::UnknownLabel { place: "`decode.threshold`", id: "cat".to_owned() },
        Error::NoFeatures { min_df: 2 },
        Error::NothingToLearn { n_documents: 12 },
        line.into(),
        Box::new(Unwritable { id: "7".to_owned(), format: readers::Format::Csv, reason: Reason::Features })
            .into(),
        CorpusError::EmptySplit(SplitName::Dev).into(),
        Error::classifier(ErrorKind::Busy, io::Error::other("another training is at work in `run`")),
        Error::Cancelled,
    ];
    insta::assert_snapshot!("errors", shown(variants, examples, |error| error));
}

#[test]
fn every_error_of_bundles_has_a_message_and_a_kind() {
    let variants = variants!(BundleError:
        Foreign Manifest Newer Missing Size Checksum Content Unlisted LfsPointer Exists
    );
    let (manifest, weights) =
        (|| "bundle/MANIFEST.json".into(), || PathBuf::from("bundle/model.safetensors"));
    let kind = || "model".to_owned();
    let examples = vec![
        BundleError::Foreign { path: "bundle".into(), kind: kind() },
        BundleError::Manifest {
            path: manifest(),
            kind: kind(),
            reason: "it describes a `cladist checkpoint`".to_owned(),
            source: None,
        },
        BundleError::Newer { path: manifest(), version: 2 },
        BundleError::Missing(weights()),
        BundleError::Size { path: weights(), expected: 12, actual: 11 },
        BundleError::Checksum(weights()),
        BundleError::content("bundle/linear.json", "the model was trained for other labels"),
        BundleError::content_by("bundle/linear.json", json_error()),
        BundleError::Unlisted { path: "bundle/notes.txt".into(), kind: kind() },
        BundleError::LfsPointer(weights()),
        BundleError::Exists("bundle".into()),
    ];
    insta::assert_snapshot!("bundles", shown(variants, examples, Error::from));
}

#[test]
fn every_error_of_corpora_has_a_message_and_a_kind() {
    let variants = variants!(CorpusError:
        NoSplit PathNotUtf8 TwoFiles NothingLeft MissingSplit UnknownSplit EmptySplit NoLabels UnknownLabels GoldSets
        ForeignLabel DuplicateId
    );
    let unknown = |id: &str, first: Option<&str>| UnknownLabel {
        id: id.to_owned(),
        documents: 2,
        first: first.map(str::to_owned),
    };
    let split = SplitName::Train;
    let examples = vec![
        CorpusError::NoSplit("corpus".into()),
        CorpusError::PathNotUtf8("corpus/caf\u{fffd}.jsonl".into()),
        CorpusError::TwoFiles {
            what: "taxonomy".to_owned(),
            first: "corpus/taxonomy.json".into(),
            second: "corpus/taxonomy.tsv".into(),
        },
        CorpusError::NothingLeft { levels: 2 },
        CorpusError::MissingSplit(SplitName::Test),
        CorpusError::UnknownSplit("valid".to_owned()),
        CorpusError::EmptySplit(SplitName::Dev),
        CorpusError::NoLabels { split, documents: 12 },
        CorpusError::UnknownLabels {
            labels: 3,
            documents: 4,
            examples: vec![unknown("cat", Some("train.jsonl:3")), unknown("dog", None)],
        },
        CorpusError::GoldSets { split, documents: 3, gold: 2 },
        CorpusError::ForeignLabel { split, document: "7".to_owned(), label: 9, labels: 4 },
        CorpusError::DuplicateId {
            repeated: RepeatedId {
                id: "7".to_owned(),
                place: "train.jsonl:9".to_owned(),
                first: "train.jsonl:2".to_owned(),
            },
            split,
        },
    ];
    insta::assert_snapshot!("corpora", shown(variants, examples, Error::from));
}

#[test]
fn every_bad_line_has_a_message_and_a_kind() {
    let variants = variants!(BadKind:
        InvalidUtf8 Nul TooLong Endless CarriageReturns ArrayEnd Json MissingField NullText AbsentField Malformed Columns
        UnclosedQuote EmptyLabel Indicator Indicators Header DuplicateFeature OutOfRange DocumentCount Unreadable
    );
    let text = str::to_owned;
    let examples = vec![
        BadKind::InvalidUtf8,
        BadKind::Nul,
        BadKind::TooLong { limit: 1000 },
        BadKind::Endless { limit: 1000 },
        BadKind::CarriageReturns,
        BadKind::ArrayEnd,
        BadKind::Json(text("not valid JSON: EOF while parsing an object")),
        BadKind::Json(text("an id is one string or number")),
        BadKind::MissingField { wanted: text("text"), found: text("`id`, `labels`") },
        BadKind::NullText { field: text("text") },
        BadKind::AbsentField { wanted: text("body"), found: text("`id`, `text`") },
        BadKind::Malformed { expected: text("a feature as index:value"), found: text("12:x") },
        BadKind::Columns { expected: 3, found: 2 },
        BadKind::UnclosedQuote,
        BadKind::EmptyLabel,
        BadKind::Indicator { found: text("1.0") },
        BadKind::Indicators,
        BadKind::Header(text("expected the header `documents features labels`, found `3,17 12:0.5`")),
        BadKind::DuplicateFeature { index: 12 },
        BadKind::OutOfRange { what: "label", index: 9, limit: 4 },
        BadKind::DocumentCount { announced: 3, found: 2 },
        BadKind::Unreadable(io::ErrorKind::PermissionDenied.into()),
    ];
    let line = |kind| {
        let (path, content) = (Arc::new("train.jsonl".into()), String::new());
        Error::from(BadLine { path, line: 3, column: Some(5), kind, content })
    };
    insta::assert_snapshot!("bad_lines", shown(variants, examples, line));
}

#[test]
fn every_file_that_is_no_text_has_a_message_and_a_kind() {
    let variants = variants!(NotText: LfsPointer Utf16 Binary TooLong);
    let examples = vec![NotText::LfsPointer, NotText::Utf16, NotText::Binary, NotText::TooLong];
    let read = |found: NotText| Error::io("read", Path::new("train.jsonl"))(found.into());
    insta::assert_snapshot!("not_text", shown(variants, examples, read));
}

#[test]
fn every_problem_of_a_taxonomy_has_a_message_and_a_kind() {
    let variants = variants!(ProblemKind:
        Cycle UnknownParent RootAsChild DuplicateId ConflictingName Malformed Syntax NotUtf8 EmptyId Empty
    );
    let text = str::to_owned;
    let path: Arc<PathBuf> = Arc::new("taxonomy.tsv".into());
    let cycle = |n: usize| (0..n).map(|n| format!("label {n}")).chain([text("label 0")]).collect();
    let examples = vec![
        ProblemKind::Cycle(cycle(2)),
        ProblemKind::Cycle(cycle(20)),
        ProblemKind::UnknownParent { parent: text("animal"), child: text("cat") },
        ProblemKind::RootAsChild { parent: text("animal") },
        ProblemKind::DuplicateId { id: text("cat"), first: Origin::new(&path, 2) },
        ProblemKind::ConflictingName { id: text("cat"), name: text("Cats"), first: text("Cat") },
        ProblemKind::Malformed {
            expected: text("id [TAB name [TAB description]]"),
            found: text("4 columns: `cat\tCat\tpurrs\tx`"),
        },
        ProblemKind::Syntax { language: "JSON", message: text("unknown field `colour`") },
        ProblemKind::NotUtf8 { byte: 4 },
        ProblemKind::EmptyId,
        ProblemKind::Empty,
    ];
    let at_line = |kind| Error::from(Problems(vec![Problem { origin: Origin::new(&path, 3), kind }]));
    insta::assert_snapshot!("taxonomies", shown(variants, examples, at_line));
}

#[test]
fn every_refusal_to_write_a_taxonomy_has_a_message_and_a_kind() {
    let variants = variants!(WriteError: ReadOnly Unwritable NoRoot Io);
    let format = taxonomy::Format::Tsv;
    let examples = vec![
        WriteError::ReadOnly(taxonomy::Format::Mesh),
        WriteError::Unwritable { id: "a\tb".to_owned(), format },
        WriteError::NoRoot(format),
        WriteError::Io(io::ErrorKind::StorageFull.into()),
    ];
    insta::assert_snapshot!("written_taxonomies", shown(variants, examples, Error::from));
}

#[test]
fn every_refusal_to_write_a_document_has_a_message_and_a_kind() {
    let variants = variants!(Reason:
        Features NoFeatures Blank Id Label LabelNumber PrefixInText NotFinite Shape Json ReadOnly
    );
    let examples = vec![
        Reason::Features,
        Reason::NoFeatures,
        Reason::Blank,
        Reason::Id,
        Reason::Label { label: "a b".to_owned(), problem: "white space" },
        Reason::LabelNumber { label: "cat".to_owned(), limit: 4 },
        Reason::PrefixInText("__label__".to_owned()),
        Reason::NotFinite(12),
        Reason::Shape,
        Reason::Json("key must be a string".to_owned()),
        Reason::ReadOnly,
    ];
    let document = |reason| {
        Error::from(Box::new(Unwritable { id: "7".to_owned(), format: readers::Format::Fasttext, reason }))
    };
    insta::assert_snapshot!("written_documents", shown(variants, examples, document));
}

#[test]
fn a_format_that_does_not_exist_is_told_from_all_that_do() {
    let corpus = "excel".parse::<readers::Format>().unwrap_err();
    let taxonomy = "excel".parse::<taxonomy::Format>().unwrap_err();
    insta::assert_snapshot!("formats", format!("{corpus}\n{taxonomy}"));
}

#[test]
fn a_file_of_a_bundle_keeps_the_error_it_is_refused_by() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("training.json");
    std::fs::write(&path, "{").unwrap();
    let error = crate::bundle::read_json::<u32>(&path).unwrap_err();
    let source = std::error::Error::source(&error).unwrap();
    assert!(source.is::<serde_json::Error>() && error.to_string().ends_with(&source.to_string()), "{error}");
}

#[test]
fn the_kind_of_a_classifier_of_another_crate_is_kept_with_its_error() {
    let error = Error::classifier(ErrorKind::Busy, io::Error::other("elsewhere"));
    assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Busy, "elsewhere"));
    let source = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<io::Error>());
    assert!(source.is_some());
}

#[test]
fn a_file_that_is_not_there_is_told_from_one_that_cannot_be_read() {
    let kind = |action, kind: io::ErrorKind| Error::io(action, Path::new("x"))(kind.into()).kind();
    assert_eq!(kind("read", io::ErrorKind::NotFound), ErrorKind::NotFound);
    assert_eq!(kind("read", io::ErrorKind::InvalidData), ErrorKind::Data);
    assert_eq!(kind("read", io::ErrorKind::PermissionDenied), ErrorKind::Io);
    assert_eq!(kind("write", io::ErrorKind::NotFound), ErrorKind::Io);
}
