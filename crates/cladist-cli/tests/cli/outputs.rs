//! Where results go: files, links, pipes, and places that cannot take them.

use std::fs;

use crate::support::{Place, documents};

#[cfg(unix)]
#[test]
fn pipes_and_links_stay_what_they_are_and_get_the_output() {
    let place = Place::with_run();
    place.write("in.txt", "a kitten may purr\n");
    for (command, words) in [
        ("predict run in.txt --output", "line-1"),
        ("data convert corpus/test.jsonl --to jsonl", "test-cats-0"),
        ("taxonomy convert corpus/hierarchy.tsv", "robot-dogs"),
        ("explain run in.txt --html", "kitten"),
        ("evaluate run --per-label", "robot-dogs"),
    ] {
        let outcome = place
            .shell(&format!("rm -f pipe got; mkfifo pipe; cat pipe > got & cladist {command} pipe && wait"));
        assert_eq!(outcome.code, Some(0), "{command}: {outcome:?}");
        assert!(place.read("got").contains(words), "{command}");
        let kind = |name: &str| fs::symlink_metadata(place.path(name)).unwrap().file_type();
        assert!(!kind("pipe").is_file(), "{command} replaced the pipe by a file");
        let outcome = place.shell(&format!("rm -f link target; ln -s target link; cladist {command} link"));
        assert_eq!(outcome.code, Some(0), "{command}: {outcome:?}");
        assert!(kind("link").is_symlink(), "{command} replaced the link");
        assert!(place.read("target").contains(words), "{command}");
    }
}

#[test]
fn a_conversion_follows_the_ending_and_replaces_nothing_unasked() {
    let place = Place::new();
    place.write("in.jsonl", documents("in", 1));
    place.run("data convert in.jsonl out.csv").ok();
    assert!(place.read("out.csv").starts_with("id,labels,text\n"), "{}", place.read("out.csv"));
    place.write("out.csv", "mine");
    place.run("data convert in.jsonl out.csv").fails(78, &["`out.csv` already exists", "--overwrite"]);
    assert_eq!(place.read("out.csv"), "mine");
    place.run("data convert in.jsonl out.csv --overwrite").ok();
    assert_ne!(place.read("out.csv"), "mine");
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_is_an_error_and_leaves_no_draft() {
    let place = Place::with_run();
    place.write("in.txt", "a kitten may purr\n".repeat(20_000));
    let before = place.names("");
    for script in [
        "cladist predict run in.txt > /dev/full",
        "ulimit -f 100; cladist predict run in.txt --output big.jsonl",
        "cladist data convert corpus/train.jsonl /dev/full",
        "cladist predict run in.txt >&-",
        "cladist data convert corpus/train.jsonl >&-",
        "cladist evaluate run --json --quiet >&-",
    ] {
        let outcome = place.shell(script);
        assert_eq!(outcome.code, Some(74), "{script}: {outcome:?}");
        assert!(outcome.stderr.contains("error: "), "{script}: {outcome:?}");
        assert_eq!(place.names(""), before, "{script}");
    }
}

#[cfg(unix)]
#[test]
fn a_path_that_is_no_utf8_is_refused_before_any_work() {
    let place = Place::with_corpus();
    for (script, code) in [
        ("cladist train --corpus corpus --out \"$(printf 'r\\377')\"", 78),
        ("cp -r corpus \"$(printf 'c\\377')\"; cladist train --corpus \"$(printf 'c\\377')\" --out run", 65),
        ("cladist train --corpus corpus --test \"$(printf 'c\\377')/test.jsonl\" --out run", 65),
    ] {
        let outcome = place.shell(script);
        assert_eq!(outcome.code, Some(code), "{script}: {outcome:?}");
        assert!(outcome.stderr.contains("UTF-8"), "{script}: {outcome:?}");
        assert!(!outcome.stderr.contains("trained"), "{script}: {outcome:?}");
        assert!(!place.path("run").exists());
    }
}
