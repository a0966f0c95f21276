//! A folder of its own for each test, a tiny corpus, and the program run in that folder.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

/// Labels with their parents and names: a DAG, as `robot-dogs` has two parents.
pub(crate) const LABELS: &[(&str, &[&str], &str)] = &[
    ("animals", &[], "Animals"),
    ("machines", &[], "Machines"),
    ("plants", &[], "Plants"),
    ("cats", &["animals"], "Cats"),
    ("dogs", &["animals"], "Dogs"),
    ("cars", &["machines"], "Motor cars"),
    ("trees", &["plants"], "Trees"),
    ("flowers", &["plants"], "Flowers"),
    ("robot-dogs", &["dogs", "machines"], "Robot dogs"),
];

/// What documents of the deepest labels speak of.
const WORDS: &[(&str, &[&str])] = &[
    ("cats", &["purr", "whiskers", "meow", "kitten", "litter", "claws"]),
    ("dogs", &["bark", "leash", "puppy", "fetch", "kennel", "tail"]),
    ("cars", &["engine", "brakes", "motorway", "gearbox", "tyres", "fuel"]),
    ("trees", &["oak", "trunk", "forest", "bark", "branches", "timber"]),
    ("flowers", &["petal", "rose", "bouquet", "tulip", "scent", "bloom"]),
    ("robot-dogs", &["servo", "battery", "bark", "sensor", "firmware", "legs"]),
];

/// The parents of a label.
pub(crate) fn parents(label: &str) -> &'static [&'static str] {
    LABELS.iter().find(|(id, _, _)| *id == label).expect("a label of the corpus").1
}

/// A label and all labels above it.
pub(crate) fn closed(label: &str) -> BTreeSet<&str> {
    let mut set = BTreeSet::from([label]);
    let mut open = vec![label];
    while let Some(next) = open.pop() {
        open.extend(parents(next));
        set.extend(parents(next));
    }
    set
}

/// `per_topic` documents of every topic as JSON lines; every third has a second topic. Gold is closed upward.
pub(crate) fn documents(split: &str, per_topic: usize) -> String {
    let mut lines = String::new();
    for round in 0..per_topic {
        for (topic, (label, words)) in WORDS.iter().enumerate() {
            let word = |n: usize| words[(round * 2 + n * 3 + split.len()) % words.len()];
            let mut text = format!("{} {} and {} number{round}{split}", word(0), word(1), word(round + 2));
            let mut labels = closed(label);
            if (round + topic) % 3 == 2 {
                let (second, words) = WORDS[(topic + 1 + round) % WORDS.len()];
                let word = |n: usize| words[(round + n) % words.len()];
                _ = write!(text, " with {} {} {}", word(0), word(1), word(2));
                labels.extend(closed(second));
            }
            let id = format!("{split}-{label}-{round}");
            _ = writeln!(lines, "{}", serde_json::json!({"id": id, "text": text, "labels": labels}));
        }
    }
    lines
}

/// A folder that goes away with the test; the program runs in it.
pub(crate) struct Place {
    folder: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// A place with a corpus in the folder `corpus`.
    pub(crate) fn with_corpus() -> Self {
        let place = Self::new();
        let (mut hierarchy, mut names) = (String::new(), String::new());
        for (id, parents, name) in LABELS {
            if parents.is_empty() {
                _ = writeln!(hierarchy, "ROOT\t{id}");
            }
            for parent in *parents {
                _ = writeln!(hierarchy, "{parent}\t{id}");
            }
            _ = writeln!(names, "{id}\t{name}\tDocuments about {}.", name.to_lowercase());
        }
        place.write("corpus/hierarchy.tsv", hierarchy);
        place.write("corpus/labels.tsv", names);
        for (split, per_topic) in [("train", 12), ("dev", 4), ("test", 3)] {
            place.write(&format!("corpus/{split}.jsonl"), documents(split, per_topic));
        }
        place
    }

    /// A place with a corpus and a run trained on it.
    pub(crate) fn with_run() -> Self {
        let place = Self::with_corpus();
        place.run("train --corpus corpus --out run --quiet").ok();
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn copy(&self, from: &str, to: &str) {
        for (name, bytes) in self.files(from) {
            self.write(&format!("{to}/{name}"), bytes);
        }
    }

    /// Every file below a folder with its bytes, hidden ones too.
    pub(crate) fn files(&self, folder: &str) -> BTreeMap<String, Vec<u8>> {
        let root = self.path(folder);
        let mut files = BTreeMap::new();
        let mut open = vec![root.clone()];
        while let Some(next) = open.pop() {
            for entry in fs::read_dir(next).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    open.push(path);
                } else {
                    let name = path.strip_prefix(&root).unwrap().display().to_string();
                    files.insert(name, fs::read(path).unwrap());
                }
            }
        }
        files
    }

    /// What stands directly in a folder, hidden things too.
    pub(crate) fn names(&self, folder: &str) -> BTreeSet<String> {
        let entries = fs::read_dir(self.path(folder)).unwrap();
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
    }

    /// The program with arguments that have no spaces in them.
    pub(crate) fn run(&self, arguments: &str) -> Outcome {
        self.run_with(arguments, "")
    }

    /// The same, with bytes on standard input.
    pub(crate) fn run_with(&self, arguments: &str, input: impl AsRef<[u8]>) -> Outcome {
        let arguments: Vec<&str> = arguments.split_whitespace().collect();
        self.run_args(&arguments, input.as_ref())
    }

    pub(crate) fn run_args(&self, arguments: &[&str], input: &[u8]) -> Outcome {
        let output = assert_cmd::Command::new(program())
            .args(arguments)
            .current_dir(self.folder.path())
            .env_remove("COLUMNS")
            .env("NO_COLOR", "1")
            .write_stdin(input)
            .output()
            .unwrap();
        // Whole paths differ from run to run.
        let here = fs::canonicalize(self.folder.path()).unwrap().display().to_string();
        let text = |bytes: Vec<u8>| {
            let text = String::from_utf8(bytes).unwrap();
            text.replace(&here, "[here]").replace(&self.folder.path().display().to_string(), "[here]")
        };
        let outcome =
            Outcome { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) };
        assert!(!outcome.stderr.contains("panicked"), "`{}`\n{}", arguments.join(" "), outcome.stderr);
        outcome
    }
}

/// A script for `sh` in the folder of the test, in which `cladist` is the program.
#[cfg(unix)]
impl Place {
    pub(crate) fn shell(&self, script: &str) -> Outcome {
        let cladist = format!("cladist() {{ \"{}\" \"$@\"; }}\n", program().display());
        let output = std::process::Command::new("sh")
            .args(["-c", &(cladist + script)])
            .current_dir(self.folder.path())
            .env_remove("COLUMNS")
            .env("NO_COLOR", "1")
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Outcome { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

/// The program.
pub(crate) fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_cladist"))
}

/// How the program ended and what it said.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Outcome {
    /// Expects success.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:#?}");
        self
    }

    /// Expects this exit code, a message that holds all of `words`, and no result.
    #[track_caller]
    pub(crate) fn fails(self, code: i32, words: &[&str]) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        assert!(self.stderr.contains("error: "), "{self:#?}");
        for word in words {
            assert!(self.stderr.contains(word), "`{word}` is not in: {}", self.stderr);
        }
        self
    }

    /// The result as one JSON value.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}\n{}", self.stdout))
    }

    /// The result as JSON lines.
    #[track_caller]
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// The values of a field of each element, as text.
pub(crate) fn column<'a>(rows: &'a Value, field: &str) -> Vec<&'a str> {
    rows.as_array().unwrap().iter().map(|row| row[field].as_str().unwrap()).collect()
}
