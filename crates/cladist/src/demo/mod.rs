//! The embedded demo corpus: support tickets of a made-up city mobility service, and their taxonomy.
//!
//! The taxonomy is a DAG of three levels in `assets/demo/labels.tsv`. Tickets come from a grammar of hand-written
//! sentences (`assets/demo/complaints`), fully determined by a seed. Gold labels are the deepest ones that apply;
//! a vague ticket carries a label of level 2.

mod grammar;
mod noise;
mod ticket;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cladist_core::taxonomy::{Builder, Label, Origin, ProblemKind};
use cladist_core::{Document, Error, Result, Taxonomy};
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use grammar::{Grammar, Topic};

const LABELS: &str = include_str!("../../assets/demo/labels.tsv");
const TRAIN: usize = 1200;
const DEV: usize = 200;
const TEST: usize = 300;
/// Tickets of the training split that every label with sentences of its own is sure to be the reason for.
const AT_LEAST: usize = 2;

/// Tickets written for nobody's statistics: no sentence of theirs is in the grammar.
pub const EXAMPLES: &[&str] = &[
    "Took an e-bike from Market Hall up to the observatory. After the first bend the motor gave up, so I brought \
     it back down and docked it. An hour later the ride is still open and the meter says €14. Could someone \
     close it and give me back what I overpaid?",
    "elevator at Glassworks dead for the 3rd week!! my dad is in a wheelchair & the tram that came next had no \
     working ramp either. who answers for that??",
    "Good evening, my purse must have slipped down beside the seat of the 22 around half past six. The money does \
     not matter, but my monthly pass was inside, so please have it blocked. The driver was very sweet about it, by \
     the way. Kind regards, Edith",
    "app threw me out while i was paying for parking, tried again, now two payments on my card AND a fine on the \
     windscreen. brilliant",
];

/// The three splits of the demo.
#[derive(Debug, Clone, PartialEq)]
pub struct DemoCorpus {
    /// 1,200 tickets; every label that dev and test use occurs.
    pub train: Vec<Document>,
    /// 200 tickets for thresholds and calibration.
    pub dev: Vec<Document>,
    /// 300 tickets. Like dev, it draws on sentences that training has not seen.
    pub test: Vec<Document>,
}

/// The demo's taxonomy.
pub fn taxonomy() -> Result<Taxonomy> {
    let path = Arc::new(PathBuf::from("demo/labels.tsv"));
    let mut builder = Builder::new();
    builder.require_declared_parents();
    for (n, line) in LABELS.lines().enumerate().skip(1) {
        let origin = Origin::new(&path, n + 1);
        let columns: Vec<&str> = line.split('\t').collect();
        let [id, parents, name, description] = columns[..] else {
            let expected = "id, parents, name and description, separated by tabs".to_owned();
            let found = format!("{} columns", columns.len());
            builder.problem(&origin, ProblemKind::Malformed { expected, found });
            continue;
        };
        let label = Label {
            id: id.to_owned(),
            name: Some(name.to_owned()),
            description: Some(description.to_owned()),
            alternatives: Vec::new(),
        };
        builder.declare(label, &origin);
        if parents.is_empty() {
            builder.edge(None, id, &origin);
        }
        for parent in parents.split(',').filter(|parent| !parent.is_empty()) {
            builder.edge(Some(parent), id, &origin);
        }
    }
    Ok(builder.build()?)
}

/// The demo's tickets; the same seed gives the same tickets.
#[must_use]
pub fn corpus(seed: u64) -> DemoCorpus {
    let grammar = Grammar::embedded();
    let mut desk = Desk {
        total: grammar.topics.iter().map(|topic| topic.frequency).sum(),
        grammar: &grammar,
        edges: edges(),
        rng: ChaCha8Rng::seed_from_u64(seed),
        seen: BTreeSet::new(),
    };
    let sure = grammar.topics.iter().flat_map(|topic| [topic; AT_LEAST]).collect();
    DemoCorpus {
        train: desk.split(TRAIN, sure, false),
        dev: desk.split(DEV, Vec::new(), true),
        test: desk.split(TEST, Vec::new(), true),
    }
}

/// Parent and child of every edge in the labels file, without the root.
fn edges() -> Vec<(&'static str, &'static str)> {
    let rows = LABELS.lines().skip(1).filter_map(|line| {
        let mut columns = line.split('\t');
        Some((columns.next()?, columns.next()?))
    });
    rows.flat_map(|(id, parents)| {
        parents.split(',').filter(|parent| !parent.is_empty()).map(move |parent| (parent, id))
    })
    .collect()
}

/// Where tickets come in, one after the other.
struct Desk<'g> {
    grammar: &'g Grammar,
    /// The sum of all frequencies.
    total: u32,
    edges: Vec<(&'static str, &'static str)>,
    rng: ChaCha8Rng,
    /// Texts so far, without case: no two tickets are the same.
    seen: BTreeSet<String>,
}

impl<'g> Desk<'g> {
    fn split(&mut self, size: usize, mut reasons: Vec<&'g Topic>, all: bool) -> Vec<Document> {
        while reasons.len() < size {
            reasons.push(self.topic());
        }
        reasons.shuffle(&mut self.rng);
        reasons.into_iter().map(|reason| self.document(reason, all)).collect()
    }

    fn document(&mut self, reason: &'g Topic, all: bool) -> Document {
        let topics = self.matters(reason);
        loop {
            let text = ticket::write(self.grammar, &topics, all, &mut self.rng);
            if self.seen.insert(text.to_lowercase()) {
                let labels = topics.iter().map(|topic| topic.label.to_owned()).collect();
                let id = format!("ticket-{:04}", self.seen.len());
                return Document { id, text, labels, features: None };
            }
        }
    }

    /// A topic drawn by frequency.
    fn topic(&mut self) -> &'g Topic {
        let mut left = self.rng.random_range(0..self.total);
        let mut topics = self.grammar.topics.iter();
        loop {
            match topics.next() {
                Some(topic) if left < topic.frequency => return topic,
                Some(topic) => left -= topic.frequency,
                None => topics = self.grammar.topics.iter(),
            }
        }
    }

    /// The matters of one ticket: the reason for writing, then companions of what is there or something else.
    fn matters(&mut self, reason: &'g Topic) -> Vec<&'g Topic> {
        let vague = self.edges.iter().any(|&(parent, _)| parent == reason.label);
        let n = ticket::n_matters(vague, &mut self.rng);
        let mut topics = vec![reason];
        while topics.len() < n {
            let candidate = if self.rng.random_bool(0.65) {
                let from = topics[self.rng.random_range(0..topics.len())];
                let label = from.companions.choose(&mut self.rng).copied();
                self.grammar.topics.iter().find(|topic| Some(topic.label) == label)
            } else {
                None
            };
            let candidate = candidate.unwrap_or_else(|| self.topic());
            // Deepest labels only: nothing beside its own parent.
            let clashes = |topic: &&Topic| {
                let pairs = [(topic.label, candidate.label), (candidate.label, topic.label)];
                topic.label == candidate.label || pairs.iter().any(|pair| self.edges.contains(pair))
            };
            if !topics.iter().any(clashes) {
                topics.push(candidate);
            }
        }
        topics
    }
}

/// Writes the demo as a corpus folder: `train.jsonl`, `dev.jsonl`, `test.jsonl`, `hierarchy.tsv` (parent, child;
/// the top is `ROOT`) and `labels.tsv` (id, name, description).
pub fn write_folder(path: &Path, seed: u64) -> Result<()> {
    let taxonomy = taxonomy()?;
    let corpus = corpus(seed);
    std::fs::create_dir_all(path).map_err(Error::io("create", path))?;
    let write = |name: &str, content: String| {
        let file = path.join(name);
        std::fs::write(&file, content).map_err(Error::io("write", &file))
    };
    for (name, documents) in
        [("train.jsonl", &corpus.train), ("dev.jsonl", &corpus.dev), ("test.jsonl", &corpus.test)]
    {
        write(name, json_lines(documents).map_err(Error::io("write", &path.join(name)))?)?;
    }
    let (mut hierarchy, mut labels) = (String::new(), String::new());
    for label in taxonomy.labels() {
        let id = taxonomy.id(label);
        if taxonomy.is_root_child(label) {
            _ = writeln!(hierarchy, "ROOT\t{id}");
        }
        for &parent in taxonomy.parents(label) {
            _ = writeln!(hierarchy, "{}\t{id}", taxonomy.id(parent));
        }
        let description = taxonomy.label(label).description.as_deref().unwrap_or_default();
        _ = writeln!(labels, "{id}\t{}\t{description}", taxonomy.name(label));
    }
    write("hierarchy.tsv", hierarchy)?;
    write("labels.tsv", labels)
}

fn json_lines(documents: &[Document]) -> std::io::Result<String> {
    #[derive(Serialize)]
    struct Line<'a> {
        id: &'a str,
        text: &'a str,
        labels: &'a [String],
    }
    let mut lines = String::new();
    for Document { id, text, labels, features: _ } in documents {
        lines.push_str(&serde_json::to_string(&Line { id, text, labels })?);
        lines.push('\n');
    }
    Ok(lines)
}

#[cfg(test)]
mod tests;
