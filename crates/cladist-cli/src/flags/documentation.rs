//! What the documentation says is what the program takes: settings, metrics and command lines.

use std::collections::BTreeSet;

use cladist::config::Recipe;
use cladist::{RunConfig, heads};
use clap::Parser;
use serde_json::Value;

use super::*;
use crate::args::{Cli, Command};

fn page(name: &str) -> String {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(name);
    std::fs::read_to_string(path).unwrap()
}

/// Sections of settings that have all keys of another, by their own words.
const ALIKE: [(&str, &str); 4] = [
    ("hi-match", "hierarchy-gcn"),
    ("sgm", "label-sequence"),
    ("enc-dec", "label-sequence"),
    ("ranker.features", "features"),
];

#[test]
fn every_setting_is_documented_under_its_section() {
    let (settings, metrics) = (page("docs/configuration.md"), page("docs/metrics.md"));
    let mut missing = BTreeSet::new();
    for head in heads::all() {
        let mut config = RunConfig::new(head);
        // Of what is off by default, every key.
        if let Recipe::Neural(recipe) = &mut config.recipe {
            recipe.train.averaging = Some(Default::default());
        }
        let linear = matches!(head.family, Family::Linear(_));
        let mut keys = Vec::new();
        flatten("", &config.to_json().unwrap(), &mut keys);
        assert!(keys.iter().any(|key| key == "head") && keys.iter().any(|key| key.starts_with("data.")));
        for key in keys {
            let page = if key.starts_with("metrics.") { &metrics } else { &settings };
            if !is_documented(page, &key, linear) {
                missing.insert((key, head.name));
            }
        }
    }
    assert!(missing.is_empty(), "not documented under their section: {missing:?}");
}

/// Keys with their sections.
fn flatten(prefix: &str, value: &Value, keys: &mut Vec<String>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
                flatten(&key, value, keys);
            }
        }
        _ => keys.push(prefix.to_owned()),
    }
}

/// Whether a table below a heading that names the section of a key has a row for it: as a key of the section in the first
/// column, or with its section in any. A page of one section needs no heading for it.
fn is_documented(page: &str, key: &str, linear: bool) -> bool {
    let (section, rest) = key.split_once('.').unwrap_or(("", key));
    let (mut title, mut about) = ("", false);
    let mut same = None;
    for line in page.lines() {
        if line.starts_with('#') {
            title = line;
            let of_linear = line.contains("linear heads");
            about = if section.is_empty() {
                line.starts_with("# ")
            } else {
                line.contains(&format!("`[{section}]`")) && (section != "train" || of_linear == linear)
            };
        } else if line.starts_with('|') {
            let cells: Vec<&str> = line.trim_matches('|').split(" | ").collect();
            let first = codes(cells.first().copied().unwrap_or_default());
            let whole = cells.iter().any(|cell| codes(cell).iter().any(|code| code == key));
            if (about && first.iter().any(|code| code == rest)) || (whole && (about || !title.contains("`[")))
            {
                return true;
            }
        }
        // Prose under the heading may refer to another section.
        let other = ALIKE.iter().find(|(own, other)| {
            let own_keys = key.strip_prefix(own).is_some_and(|rest| rest.starts_with('.'));
            about && own_keys && codes(line).iter().any(|code| code.trim_matches(['[', ']']) == *other)
        });
        same = same.or(other);
    }
    same.is_some_and(|(own, other)| is_documented(page, &key.replacen(own, other, 1), linear))
}

/// What stands between backticks; `.b` after `a.c` is `a.b`.
fn codes(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for code in text.split('`').skip(1).step_by(2) {
        let stem = found.last().and_then(|last| last.rsplit_once('.')).map_or("", |(stem, _)| stem);
        found.push(if code.starts_with('.') { format!("{stem}{code}") } else { code.to_owned() });
    }
    found
}

#[test]
fn a_setting_is_documented_only_in_a_row_below_its_own_heading() {
    let page = "# Settings\n| `head` | svm |\n## `[data]`\nA `seed` in prose.\n\
                | `dev`, `normalise.a`, `.b` | x | `c` |\n## `[train]` of linear heads\n| `epochs` |\n\
                ### `[train]`\n| `clip` |\n### `[caml]`, `[laat]`\n| `caml.width` |\n| `loss` |\n\
                ### `[sgm]`\nAll settings of `[label-sequence]`.\n### `[label-sequence]`\n| `beam` |\n";
    let has = |key: &str| is_documented(page, key, false);
    for key in ["head", "data.dev", "data.normalise.b", "train.clip", "caml.width", "laat.loss", "sgm.beam"] {
        assert!(has(key), "{key}");
    }
    for key in ["dev", "data.seed", "data.c", "data.head", "train.epochs", "laat.width", "caml.clip", "sgm.x"]
    {
        assert!(!has(key), "{key}");
    }
    assert!(is_documented(page, "train.epochs", true) && !is_documented(page, "train.clip", true));
}

#[test]
fn every_metric_is_in_the_documentation() {
    let page = page("docs/metrics.md");
    for metric in cladist_core::metrics::METRICS {
        assert!(page.contains(&format!("| `{}` |", metric.name)), "`{}` is not documented", metric.name);
    }
}

#[test]
fn every_command_line_of_the_documentation_is_taken() {
    let mut refused = Vec::new();
    for (name, at_least) in [("README.md", 40), ("docs/guide.md", 60)] {
        let lines = commands(&page(name));
        assert!(lines.len() >= at_least, "{name}: {}", lines.len());
        for words in lines {
            let line = words.join(" ");
            let cli = match Cli::try_parse_from(&words) {
                Ok(cli) => cli,
                Err(error) => {
                    refused.push(format!("{name}: {line}\n{error}"));
                    continue;
                }
            };
            let Command::Train(mut args) = cli.command else { continue };
            assert!(args.out.is_some() || args.print_config, "{name}: {line}");
            if let Some(file) = args.config.take_if(|file| file.starts_with("configs")) {
                args.config = Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file));
            }
            // What lines before it would have made is not there.
            let made = args.config.iter().chain(&args.members).all(|path| path.exists());
            if made && !args.resume {
                let settings = layers_of_one(&args).and_then(|layers| Ok(layers.resolve()?));
                refused.extend(settings.err().map(|error| format!("{name}: {line}\n{error}")));
            }
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n\n"));
}

/// The words of every call of the program in the code blocks of a page, and of every whole `cladist train` in a table.
fn commands(page: &str) -> Vec<Vec<String>> {
    let mut fenced = false;
    let mut found = Vec::new();
    let mut begun = String::new();
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if line.starts_with('|') {
            for code in codes(line).iter().filter(|code| code.starts_with("cladist train ")) {
                found.extend(calls(code));
            }
        } else if fenced || line.starts_with("    ") {
            begun.push_str(line);
            if begun.ends_with('\\') {
                begun.pop();
            } else {
                found.extend(calls(&std::mem::take(&mut begun)));
            }
        }
    }
    found
}

/// The calls of the program in a line of shell, without pipes, redirections and comments.
fn calls(line: &str) -> Vec<Vec<String>> {
    let mut calls = vec![Vec::new()];
    let mut redirected = false;
    for word in shell_words(line) {
        match word.as_str() {
            "|" => calls.push(Vec::new()),
            ">" | "<" => redirected = true,
            _ if redirected => redirected = false,
            _ => calls.last_mut().unwrap().push(word),
        }
    }
    calls
        .into_iter()
        .filter_map(|words| match words.first()?.as_str() {
            "cladist" => Some(words),
            "cargo" if words.get(1)? == "run" && !words.iter().any(|word| word == "--example") => {
                let arguments = words.into_iter().skip_while(|word| word != "--").skip(1);
                Some(std::iter::once("cladist".to_owned()).chain(arguments).collect())
            }
            _ => None,
        })
        .collect()
}

/// Words as a shell splits them, up to a comment: quotes hold them together.
fn shell_words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars() {
        match c {
            _ if quote == Some(c) => quote = None,
            _ if quote.is_some() => word.get_or_insert_default().push(c),
            '\'' | '"' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            '#' if word.is_none() => break,
            '|' | '>' | '<' => {
                words.extend(word.take());
                words.push(c.to_string());
            }
            c if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[test]
fn lines_are_split_as_a_shell_splits_them() {
    let page = "prose\n    echo 'a | b' | cladist predict RUN --set 'x=[\"a b\"]' > out.txt   # cladist no\n\
                ```\ncladist train \\\n  --out \"my run\"\n```\n    cargo run --release -- demo\n\
                | `cladist train --out R` | `cladist heads` |\n    cargo test\ncladist prose\n";
    let found: Vec<String> = commands(page).iter().map(|words| words.join("·")).collect();
    let expected = [
        "cladist·predict·RUN·--set·x=[\"a b\"]",
        "cladist·train·--out·my run",
        "cladist·demo",
        "cladist·train·--out·R",
    ];
    assert_eq!(found, expected);
}
