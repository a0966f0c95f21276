//! Help, lists and completions.

use cladist_cli::args::Cli;
use clap::CommandFactory;

use crate::support::{Place, column};

/// The words that lead to every command, such as `data split`.
fn commands() -> Vec<Vec<String>> {
    let mut found = vec![Vec::new()];
    let mut open = vec![(Vec::new(), Cli::command())];
    while let Some((words, command)) = open.pop() {
        for inner in command.get_subcommands() {
            let mut words: Vec<String> = words.clone();
            words.push(inner.get_name().to_owned());
            found.push(words.clone());
            open.push((words, inner.clone()));
        }
    }
    found
}

#[test]
fn every_command_explains_itself() {
    let place = Place::new();
    for words in commands() {
        let help = place.run(&format!("{} --help", words.join(" "))).ok();
        assert_eq!(help.stderr, "");
        let name = if words.is_empty() { "cladist".to_owned() } else { words.join("-") };
        insta::assert_snapshot!(format!("help-{name}"), help.stdout);
    }
}

#[test]
fn no_command_is_a_usage_error_with_help() {
    let outcome = Place::new().run("");
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("Usage: cladist"), "{}", outcome.stderr);
    assert_eq!(outcome.stdout, "");
}

#[test]
fn an_unknown_command_or_flag_is_a_usage_error() {
    let place = Place::new();
    for (arguments, word) in
        [("trane", "trane"), ("heads --jason", "--jason"), ("predict run --format x", "x")]
    {
        let outcome = place.run(arguments);
        assert_eq!(outcome.code, Some(2), "{outcome:?}");
        assert!(outcome.stderr.contains(word), "{}", outcome.stderr);
    }
}

#[test]
fn lists_are_tables_for_people() {
    let place = Place::new();
    for command in ["heads", "metrics", "experiment", "data formats", "taxonomy formats"] {
        let outcome = place.run(command).ok();
        assert_eq!(outcome.stderr, "");
        insta::assert_snapshot!(format!("list-{}", command.replace(' ', "-")), outcome.stdout);
    }
}

#[test]
fn lists_are_json_for_programs() {
    let place = Place::new();
    for (command, field) in [
        ("heads", "family"),
        ("experiment", "baseline"),
        ("data formats", "endings"),
        ("taxonomy formats", "writable"),
    ] {
        let rows = place.run(&format!("{command} --json")).ok().json();
        assert!(rows.as_array().unwrap().iter().all(|row| !row[field].is_null()), "{rows}");
        let table = place.run(command).ok().stdout;
        let first_words: Vec<&str> =
            table.lines().skip(2).map(|line| line.split_whitespace().next().unwrap()).collect();
        assert_eq!(column(&rows, "name"), first_words);
    }
    let metrics = place.run("metrics --json").ok().json();
    let names = column(&metrics, "name");
    assert!(names.contains(&"micro-f1") && names.contains(&"r-precision-level-<n>"), "{names:?}");
}

#[test]
fn the_version_is_that_of_the_package() {
    let outcome = Place::new().run("--version").ok();
    assert_eq!(outcome.stdout.trim(), format!("cladist {}", env!("CARGO_PKG_VERSION")));
}

#[test]
fn completions_know_every_command() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = place.run(&format!("completions {shell}")).ok().stdout;
        for words in commands() {
            let last = words.last().map_or("cladist", String::as_str);
            assert!(script.contains(last), "{shell} does not know {last}");
        }
    }
    assert_eq!(place.run("completions tcsh").code, Some(2));
}
