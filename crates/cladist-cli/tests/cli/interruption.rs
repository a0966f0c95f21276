//! Ctrl-C, and readers that have seen enough.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Place, program};

fn start(place: &Place, arguments: &[&str]) -> Child {
    Command::new(program())
        .args(arguments)
        .current_dir(place.path(""))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The demo corpus, `times` as large, so that training takes a while.
fn large_corpus(place: &Place, times: usize) {
    place.run("demo --corpus-only corpus").ok();
    let train = place.read("corpus/train.jsonl");
    let copies = (0..times).map(|n| train.replace("\"id\":\"", &format!("\"id\":\"{n}-")));
    place.write("corpus/train.jsonl", copies.collect::<String>());
}

#[cfg(unix)]
fn interrupt(child: &Child, signal: &str) {
    let status = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

/// Waits for something to stand at the place besides what was there.
#[cfg(unix)]
fn wait_for_draft(place: &Place, child: &mut Child) {
    let before = Instant::now();
    while place.names("").len() < 2 && child.try_wait().unwrap().is_none() {
        assert!(before.elapsed() < Duration::from_secs(20), "no draft was ever seen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(unix)]
#[test]
fn an_interrupted_training_leaves_nothing() {
    let place = Place::new();
    large_corpus(&place, 40);
    // While documents are read, while features are counted, while weights are learnt.
    for (pause, signal) in [(0, "-INT"), (100, "-TERM"), (700, "-INT")] {
        let mut child = start(&place, &["train", "--corpus", "corpus", "--out", "run"]);
        wait_for_draft(&place, &mut child);
        std::thread::sleep(Duration::from_millis(pause));
        interrupt(&child, signal);
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(!stderr.contains("panicked"), "{stderr}");
        assert_eq!(output.status.code(), Some(75), "{stderr}");
        assert!(stderr.contains("error: cancelled"), "{stderr}");
        assert_eq!(place.names(""), ["corpus".to_owned()].into());
    }
}

#[cfg(unix)]
#[test]
fn an_interrupted_training_leaves_the_old_run() {
    let place = Place::with_run();
    let before = place.files("run");
    large_corpus(&place, 20);
    let mut child = start(&place, &["train", "--corpus", "corpus", "--out", "run", "--overwrite"]);
    while place.names("").len() < 3 && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
    interrupt(&child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(75));
    assert!(place.files("run") == before);
    assert_eq!(place.names(""), ["corpus", "run"].map(str::to_owned).into());
}

#[test]
fn an_answer_comes_while_the_input_stays_open() {
    let place = Place::with_run();
    let mut child = start(&place, &["predict", "run"]);
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    for n in 1..=3 {
        input.write_all(b"a kitten may purr\n").unwrap();
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        assert!(line.starts_with(&format!("{{\"id\":\"line-{n}\"")), "{line}");
    }
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[cfg(unix)]
#[test]
fn a_prediction_that_waits_for_input_can_be_interrupted() {
    let place = Place::with_run();
    let before = place.names("");
    let mut child = start(&place, &["predict", "run", "--output", "out.jsonl"]);
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"a kitten may purr\n").unwrap();
    while place.names("") == before {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::sleep(Duration::from_millis(5));
    }
    interrupt(&child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(75));
    assert_eq!(place.names(""), before);
    drop(input);
}

#[test]
fn predictions_stream_and_stop_with_their_reader() {
    let place = Place::with_run();
    let mut child = start(&place, &["predict", "run"]);
    let mut input = child.stdin.take().unwrap();
    // Far more than pipes hold; the writer stops when the program does.
    let writer = std::thread::spawn(move || {
        let text = "a kitten may purr and bark at the engine of an oak\n".repeat(1000);
        let mut sent = 0;
        while sent < 2000 && input.write_all(text.as_bytes()).is_ok() {
            sent += 1;
        }
        sent
    });
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    lines.read_line(&mut first).unwrap();
    assert!(first.starts_with("{\"id\":\"line-1\""), "{first}");
    drop(lines);
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{stderr}");
    assert_eq!(stderr, "");
    assert!(writer.join().unwrap() < 2000, "the first answer came before the end of the input");
}

#[test]
fn a_closed_pipe_is_no_error_for_any_command() {
    let place = Place::with_run();
    let many: String = (0..20_000).map(|n| format!("ROOT\tlabel-{n}\n")).collect();
    place.write("many.tsv", many);
    let text = crate::support::documents("x", 500).repeat(5);
    place.write("many.jsonl", text);
    for arguments in [
        &["data", "convert", "many.jsonl"][..],
        &["data", "convert", "many.jsonl", "-", "--to", "csv"],
        &["taxonomy", "convert", "many.tsv"],
        &["taxonomy", "show", "many.tsv"],
        &["predict", "run", "many.jsonl", "--format", "tsv"],
        &["metrics"],
        &["evaluate", "run", "--json", "--quiet"],
    ] {
        let mut child = start(&place, arguments);
        drop(child.stdin.take());
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {stderr}");
        assert!(!stderr.contains("error") && !stderr.contains("panicked"), "{arguments:?}: {stderr}");
    }
}
