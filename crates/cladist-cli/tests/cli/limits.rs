//! What would take for ever or more than there is.

use std::time::{Duration, Instant};

use crate::support::Place;

#[test]
fn absurd_numbers_are_refused_at_once() {
    let place = Place::with_run();
    let begin = Instant::now();
    for (arguments, words) in [
        ("predict run corpus/test.jsonl --threads 99999", &["99999", "threads"][..]),
        ("predict run corpus/test.jsonl --threads 0", &["threads"]),
        (
            "train --corpus corpus --out x --set metrics.ece_bins=1000000000",
            &["`metrics.ece_bins`", "1000000000"],
        ),
        ("evaluate run --bootstrap 99999999999", &["99999999999"]),
        ("compare run run --resamples 99999999999", &["99999999999"]),
        (
            "train --corpus corpus --head flat --encoder scratch:tiny --max-tokens 1000000 --out x",
            &["tokens.max_tokens", "1000000"],
        ),
        (
            "train --corpus corpus --head flat --encoder scratch:giant --out x",
            &["scratch:giant", "scratch:small"],
        ),
        (
            "train --corpus corpus --head flat --encoder scratch:tiny --set train.epochs=2000000000000000000 --out x",
            &["`train.epochs`", "2000000000000000000"],
        ),
        (
            "train --corpus corpus --head flat --encoder scratch:tiny --set train.freeze_epochs=9000000000000000000 --out x",
            &["`train.freeze_epochs`", "9000000000000000000"],
        ),
        ("train --corpus corpus --device cuda --out x", &["cuda"]),
    ] {
        place.run(arguments).fails(78, words);
        assert!(!place.path("x").exists());
    }
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
}

#[test]
fn a_value_of_several_lines_is_refused() {
    let place = Place::with_corpus();
    let arguments = ["train", "--corpus", "corpus", "--out", "run", "--set", "linear.c=2\nlinear.prune=0.9"];
    place.run_args(&arguments, b"").fails(78, &["`linear.c`", "more than one line"]);
    assert!(!place.path("run").exists());
}

#[cfg(target_os = "linux")]
#[test]
fn input_without_end_is_refused() {
    let place = Place::with_corpus();
    let begin = Instant::now();
    place.run("train --train /dev/zero --out run").fails(65, &["/dev/zero", "binary"]);
    let outcome = place.shell("yes 'no end' | tr -d '\\n' | cladist data convert /dev/stdin --from text -");
    assert_eq!(outcome.code, Some(65), "{outcome:?}");
    assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", begin.elapsed());
}

#[test]
fn damaged_compression_is_bad_data_in_plain_words() {
    let place = Place::with_run();
    place.write("in.jsonl.zst", b"\x28\xb5\x2f\xfd\x04\x58nonsense that is no block");
    let outcome = place.run("predict run in.jsonl.zst").fails(65, &["in.jsonl.zst"]);
    assert!(!outcome.stderr.contains(['{', '(']), "{}", outcome.stderr);
}

/// Ends a program that waits for a pipe, and says how it ended.
#[cfg(unix)]
fn interrupted(place: &Place, command: &str) -> (Option<i32>, Duration) {
    let mut child = crate::neural::start(place, command);
    // The input thread is there once the pipe is waited for.
    let threads = format!("/proc/{}/task", child.id());
    let waits = |name: &std::path::Path| {
        std::fs::read_to_string(name.join("comm")).is_ok_and(|name| name.trim() == "input")
    };
    let begin = Instant::now();
    while !std::fs::read_dir(&threads).is_ok_and(|tasks| tasks.flatten().any(|task| waits(&task.path()))) {
        assert!(begin.elapsed() < Duration::from_secs(20), "`{command}` never waited for the pipe");
        assert!(child.try_wait().unwrap().is_none(), "{}", crate::neural::stderr(&mut child));
        std::thread::sleep(Duration::from_millis(5));
    }
    let begin = Instant::now();
    let kill = std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    while child.try_wait().unwrap().is_none() && begin.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let code = child.try_wait().unwrap().and_then(|status| status.code());
    let _ = child.kill();
    (code, begin.elapsed())
}

#[cfg(target_os = "linux")]
#[test]
fn the_first_signal_ends_a_program_that_waits_for_a_pipe() {
    let place = Place::with_run();
    assert_eq!(place.shell("mkfifo pipe").code, Some(0));
    let before = place.names("");
    for command in [
        "train --train pipe --out new",
        "train --corpus corpus --taxonomy pipe --out new",
        "train --train pipe --head flat --encoder scratch:tiny --out new",
        "predict run pipe",
        "explain run pipe",
        "evaluate run --test pipe",
        "data convert pipe",
        "data check --train pipe",
        "taxonomy show pipe",
    ] {
        let (code, time) = interrupted(&place, command);
        assert_eq!(code, Some(75), "`{command}` after {time:?}");
        assert_eq!(place.names(""), before, "`{command}`");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn too_little_memory_is_an_error_and_no_abort() {
    let place = Place::with_run();
    for kilobytes in [40_000, 80_000, 120_000, 200_000, 400_000] {
        for command in ["predict run corpus/test.jsonl --threads 2", "predict run corpus/test.jsonl"] {
            let outcome = place.shell(&format!("ulimit -v {kilobytes}; cladist {command}"));
            let code = outcome.code;
            assert!(code.is_some_and(|code| code != 134 && code != 101), "{kilobytes}: {outcome:?}");
            assert!(code == Some(0) || outcome.stderr.contains("error: "), "{kilobytes}: {outcome:?}");
        }
    }
}
