//! A tiny corpus in memory and on disk, and observers that interfere.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use cladist::config::Layers;
use cladist::core::taxonomy::{Builder, Origin};
use cladist::corpus::{Corpus, CorpusSource, Split, SplitName};
use cladist::{Document, Model, OpenOptions, RunConfig, Taxonomy, Training};

/// Topics with the words that documents of them have.
const TOPICS: [(&str, &str, [&str; 4]); 3] = [
    ("cats", "animals", ["purr", "whiskers", "meow", "kitten"]),
    ("dogs", "animals", ["bark", "leash", "puppy", "fetch"]),
    ("cars", "machines", ["engine", "brakes", "gearbox", "tyres"]),
];

pub(crate) fn taxonomy() -> Taxonomy {
    labels().build().unwrap()
}

/// The labels, to be described.
pub(crate) fn labels() -> Builder {
    let (mut builder, origin) = (Builder::new(), Origin::default());
    for id in ["animals", "machines"] {
        builder.edge(None, id, &origin);
    }
    for (label, parent, _) in TOPICS {
        builder.edge(Some(parent), label, &origin);
    }
    builder
}

pub(crate) fn documents(split: &str, per_topic: usize) -> Vec<Document> {
    let document = |n: usize, (label, parent, words): (&str, &str, [&str; 4])| Document {
        labels: vec![label.to_owned(), parent.to_owned()],
        ..Document::from_text(
            format!("{split}-{label}-{n}"),
            format!("{} {} and {}", words[n % 4], words[(n + 1) % 4], words[(3 * n + 2) % 4]),
        )
    };
    (0..per_topic).flat_map(|n| TOPICS.map(|topic| document(n, topic))).collect()
}

pub(crate) fn split(name: SplitName, per_topic: usize) -> Split {
    let taxonomy = taxonomy();
    let documents = documents(&name.to_string(), per_topic);
    let gold = documents
        .iter()
        .map(|document| document.labels.iter().filter_map(|label| taxonomy.get(label)).collect())
        .collect();
    Split { name, documents, gold, normalised: Default::default() }
}

/// Documents in memory, with dev.
pub(crate) fn corpus() -> Corpus {
    Corpus {
        taxonomy: taxonomy(),
        train: Some(split(SplitName::Train, 8)),
        dev: Some(split(SplitName::Dev, 3)),
        test: None,
    }
}

/// The same as files.
pub(crate) fn files(folder: &Path) -> CorpusSource {
    let hierarchy: String = TOPICS.iter().map(|(label, parent, _)| format!("{parent}\t{label}\n")).collect();
    std::fs::write(folder.join("hierarchy.tsv"), format!("ROOT\tanimals\nROOT\tmachines\n{hierarchy}"))
        .unwrap();
    for (name, n) in [("train", 8), ("dev", 3), ("test", 3)] {
        let line = |document: &Document| {
            let Document { id, text, labels, .. } = document;
            serde_json::json!({"id": id, "text": text, "labels": labels}).to_string() + "\n"
        };
        let lines: String = documents(name, n).iter().map(line).collect();
        std::fs::write(folder.join(format!("{name}.jsonl")), lines).unwrap();
    }
    CorpusSource::folder(folder).unwrap()
}

pub(crate) fn settings(head: &str, set: &[&str]) -> RunConfig {
    let set = set.iter().map(|&text| text.to_owned()).collect();
    Layers { set, ..Layers::of_head(head) }.resolve().unwrap()
}

/// A network that learns in a second.
pub(crate) fn network() -> RunConfig {
    settings(
        "flat",
        &["encoder=scratch:tiny", "train.epochs=3", "train.batch_size=8", "train.learning_rate=1e-3"],
    )
}

pub(crate) fn svm(folder: &Path) -> Model {
    let run = Training::new(settings("svm", &["refit=never"])).corpus(corpus()).out(folder.join("svm")).run();
    run.unwrap().open(&OpenOptions::default()).unwrap()
}

pub(crate) fn small_network(folder: &Path) -> Model {
    let run = Training::new(network()).corpus(corpus()).out(folder.join("network")).run();
    run.unwrap().open(&OpenOptions::default()).unwrap()
}

/// Every file below a folder, but for times.
pub(crate) fn bytes(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                files.push((path.strip_prefix(folder).unwrap().to_owned(), std::fs::read(&path).unwrap()));
            }
        }
    }
    files.sort();
    files
}

/// What observers were told.
#[derive(Default)]
pub(crate) struct Heard(pub(crate) Mutex<Vec<String>>);

impl cladist::core::Progress for Heard {
    fn stage(&self, name: &str, _total: u64) {
        self.0.lock().unwrap().push(format!("stage {name}"));
    }
    fn advance(&self, _n: u64) {}
}

impl cladist::Observer for Heard {
    fn event(&self, event: &cladist::Event<'_>) {
        self.0.lock().unwrap().push(event.to_string());
    }
}
