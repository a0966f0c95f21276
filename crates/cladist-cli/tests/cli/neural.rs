//! Heads on encoders from the command line: training, interruption, resuming, and what becomes of the bundle.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Place, program};

/// A run of a tiny new encoder that learns the corpus well enough in seconds.
pub(crate) fn train(epochs: usize) -> String {
    format!(
        "train --corpus corpus --head flat --encoder scratch:tiny --epochs {epochs} --learning-rate 2e-3 \
         --max-tokens 24 --set flat.pool=mean --set train.checkpoint_steps=1 --threads 1"
    )
}

pub(crate) fn start(place: &Place, command: &str) -> Child {
    Command::new(program())
        .args(command.split_whitespace())
        .current_dir(place.path(""))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

pub(crate) fn stderr(child: &mut Child) -> String {
    let mut text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_new_encoder_learns_and_its_bundle_stands_alone() {
    let place = Place::with_corpus();
    place.run(&format!("{} --out run --quiet", train(25))).ok();
    let report = place.run("evaluate run --json").json();
    let micro = report["metrics"]["micro-f1"].as_f64().unwrap();
    assert!(micro > 0.8, "micro-F1 {micro}");
    for name in
        ["config.toml", "data.json", "metrics.jsonl", "report.html", "summary.json", "tb", "reports/dev.html"]
    {
        assert!(place.path("run").join(name).exists(), "{name}");
    }
    assert!(!place.path("run/checkpoints").exists());
    std::fs::copy(place.path("corpus/test.jsonl"), place.path("docs.jsonl")).unwrap();
    let answer = |bundle: &str| place.run(&format!("predict {bundle} docs.jsonl --top-k 3")).ok().stdout;
    let before = answer("run");
    place.copy("run/bundle", "elsewhere");
    std::fs::remove_dir_all(place.path("run")).unwrap();
    std::fs::remove_dir_all(place.path("corpus")).unwrap();
    assert_eq!(answer("elsewhere"), before);
}

#[test]
fn with_a_shortlist_labels_are_scored_in_groups() {
    let place = Place::with_corpus();
    let train = format!("{} --set shortlist.group_size=2 --set shortlist.top_groups=2", train(25));
    place.run(&format!("{train} --out run --quiet")).ok();
    for name in ["groups.safetensors", "rows.safetensors"] {
        assert!(place.path("run/bundle").join(name).exists(), "{name}");
    }
    let metrics = |groups: usize| {
        let command = format!("evaluate run --json --set shortlist.top_groups={groups}");
        place.run(&command).ok().json()["metrics"].clone()
    };
    assert!(metrics(2)["micro-f1"].as_f64() > Some(0.6), "{}", metrics(2));
    assert_ne!(metrics(1), metrics(9));
    let other = train.replace("--head flat", "--head lwan").replace("--set flat.pool=mean", "");
    place.run(&format!("{other} --out other")).fails(78, &["`lwan`", "shortlist"]);
}

#[test]
fn with_a_ranker_groups_come_from_the_network_and_labels_from_linear_classifiers() {
    let place = Place::with_corpus();
    let train = format!(
        "{} --set shortlist.group_size=2 --set shortlist.top_groups=3 --set shortlist.match_only=true",
        train(25)
    );
    place.run(&format!("{train} --out none")).fails(78, &["`shortlist.match_only`", "`ranker.on`"]);
    place.run(&format!("{train} --set ranker.on=true --out run --quiet")).ok();
    for name in ["groups.safetensors", "ranker.safetensors", "features.safetensors", "vocabulary.txt"] {
        assert!(place.path("run/bundle").join(name).exists(), "{name}");
    }
    assert!(!place.path("run/bundle/rows.safetensors").exists());
    let metrics = place.run("evaluate run --json").json()["metrics"].clone();
    assert!(metrics["micro-f1"].as_f64() > Some(0.6), "{metrics}");
    place.run("evaluate run --set shortlist.match_only=false").fails(78, &["after training"]);
    place.run("predict run corpus/test.jsonl --top-k 3").ok();
}

#[test]
fn a_bundle_serves_as_an_encoder() {
    let place = Place::with_corpus();
    place.run(&format!("{} --out first --quiet", train(6))).ok();
    let again = train(6).replace("scratch:tiny", "first/bundle");
    place.run(&format!("{again} --out second --quiet")).ok();
    place.run("compare first second").ok();
}

/// Lines of the journal of a run.
fn journal(place: &Place, run: &str) -> usize {
    std::fs::read_to_string(place.path(run).join("metrics.jsonl")).unwrap_or_default().lines().count()
}

/// Waits until the journal has more lines than before, or until the program has ended.
pub(crate) fn wait_for_step(place: &Place, run: &str, before: usize, child: &mut Child) {
    let begin = Instant::now();
    while journal(place, run) <= before && child.try_wait().unwrap().is_none() {
        assert!(begin.elapsed() < Duration::from_secs(60), "no step was ever seen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(unix)]
#[test]
fn killed_fifty_times_a_run_ends_as_if_nothing_had_happened() {
    let place = Place::with_corpus();
    let run = train(100);
    let begin = Instant::now();
    place.run(&format!("{run} --out whole --quiet")).ok();
    // Moments from just after the start to well into the run, spread by a fixed sequence. Half of the longest pause fifty
    // times is the time of the whole run, start-ups included, so that it cannot end before.
    let longest = (begin.elapsed() / 25).as_micros() as u64;
    let mut kills = 0;
    let mut random = 0x2545_f491_4f6c_dd1du64;
    let mut resume = "";
    for _ in 0..400 {
        let mut child = start(&place, &format!("{run} --out broken --quiet {resume}"));
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let pause = Duration::from_micros(random % longest);
        let begin = Instant::now();
        let ended = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break Some(status);
            }
            if kills < 50 && begin.elapsed() >= pause {
                break None;
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        match ended {
            Some(status) => {
                assert!(status.success(), "{}", stderr(&mut child));
                assert!(kills >= 50, "the run ended after {kills} kills");
                break;
            }
            None => {
                child.kill().unwrap();
                child.wait().unwrap();
                kills += 1;
                resume = "--resume";
            }
        }
    }
    assert_eq!(kills, 50);
    for name in
        ["model.safetensors", "head.safetensors", "tokenizer.json", "thresholds.json", "calibration.json"]
    {
        assert!(
            std::fs::read(place.path("whole/bundle").join(name)).unwrap()
                == std::fs::read(place.path("broken/bundle").join(name)).unwrap(),
            "{name} differs"
        );
    }
    assert!(!place.path("broken/checkpoints").exists());
}

#[cfg(unix)]
#[test]
fn interrupted_it_saves_says_how_to_go_on_and_does() {
    let place = Place::with_corpus();
    let run = format!("{} --set train.checkpoint_steps=0", train(400));
    for signal in ["-INT", "-TERM"] {
        let folder = format!("run{signal}");
        let mut child = start(&place, &format!("{run} --out {folder}"));
        wait_for_step(&place, &folder, 1, &mut child);
        let status = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        assert!(status.success());
        let text = stderr(&mut child);
        assert_eq!(child.wait().unwrap().code(), Some(75), "{text}");
        assert!(
            text.contains(&format!("--resume --out {folder}")) && text.contains("saved after step"),
            "{text}"
        );
    }
    place
        .run("train --corpus corpus --head flat --encoder scratch:tiny --out run-INT")
        .fails(78, &["--resume"]);
    // Resuming needs nothing but the folder; settings and corpus are remembered.
    let before = journal(&place, "run-INT");
    let mut child = start(&place, "train --resume --out run-INT");
    let mut first = start(&place, "train --resume --out run-INT");
    let texts = [&mut child, &mut first].map(|child| {
        wait_for_step(&place, "run-INT", before, child);
        let _ = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        let text = stderr(child);
        (child.wait().unwrap().code(), text)
    });
    let refused = texts.iter().filter(|(_, text)| text.contains("another training is at work")).count();
    assert!(refused <= 1, "{texts:?}");
    assert!(texts.iter().all(|(code, _)| *code == Some(75)), "{texts:?}");
}

#[test]
fn a_finished_run_is_not_trained_again() {
    let place = Place::with_corpus();
    place.run(&format!("{} --out run --quiet", train(6))).ok();
    let before = place.files("run");
    place.run("train --resume --out run").ok();
    assert!(place.files("run") == before);
    place.run("train --resume --out nothing").fails(66, &["no run to resume"]);
    place.run("train --corpus corpus --out linear --quiet").ok();
    place.run("train --resume --out linear").ok();
}

#[test]
fn what_cannot_be_trained_is_refused_with_a_hint() {
    let place = Place::with_corpus();
    place.run("train --corpus corpus --head flat --out run").fails(78, &["--encoder"]);
    place
        .run("train --corpus corpus --head flat --encoder no/such/place/at-all --out run")
        .fails(65, &["no such folder"]);
    place.run("train --corpus corpus --head flat --encoder bert-base-uncased --out run").fails(65, &["hub"]);
    place
        .run("train --corpus corpus --head flat --encoder scratch:huge --out run")
        .fails(78, &["scratch:small"]);
    place.run("train --corpus corpus --head flat --encoder corpus --out run").fails(65, &["tokenizer.json"]);
    place
        .run("train --corpus corpus --head flat --encoder scratch:tiny --max-tokens 9999 --out run")
        .fails(78, &["512"]);
    place
        .run("train --corpus corpus --head flat --encoder scratch:tiny --set train.monitor=beauty --out run")
        .fails(78, &["train.monitor"]);
    place
        .run("train --corpus corpus --head flat --encoder scratch:tiny --set task=multi-class --out run")
        .fails(65, &["exactly one"]);
    place
        .run("train --corpus corpus --head flat --encoder scratch:tiny --device abacus --out run")
        .fails(78, &["abacus"]);
    // Nothing is left of a run that never began.
    assert_eq!(place.names(""), ["corpus".to_owned()].into());
    place
        .run("train --corpus corpus --head svm --learning-rate 1e-3 --out run")
        .fails(78, &["--learning-rate"]);
}

#[test]
fn a_damaged_checkpoint_is_named_and_an_older_state_or_nothing_lost() {
    let place = Place::with_corpus();
    let run = train(400);
    let mut child = start(&place, &format!("{run} --out run --quiet"));
    let begin = Instant::now();
    while !place.path("run/checkpoints").exists()
        || place.names("run/checkpoints").iter().all(|name| name.starts_with('.'))
    {
        assert!(begin.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    for name in place.names("run/checkpoints").iter().filter(|name| name.starts_with("step-")) {
        place.write(&format!("run/checkpoints/{name}/model.safetensors"), "damaged");
    }
    let before = journal(&place, "run");
    let mut child = start(&place, "train --resume --out run");
    wait_for_step(&place, "run", before, &mut child);
    child.kill().unwrap();
    let text = stderr(&mut child);
    child.wait().unwrap();
    assert!(text.contains("cannot be used") && text.contains("model.safetensors"), "{text}");
}

#[test]
fn exactly_one_label_a_document_gives_exactly_one_answer() {
    let place = Place::new();
    let mut lines = String::new();
    for n in 0..30 {
        for (label, word) in [("yes", "gladly"), ("no", "never"), ("maybe", "perhaps")] {
            lines += &format!(
                "{{\"id\":\"{label}{n}\",\"text\":\"{word} said number {n}\",\"labels\":[\"{label}\"]}}\n"
            );
        }
    }
    place.write("corpus/train.jsonl", &lines);
    place.write("corpus/test.jsonl", &lines);
    place.run(&format!("{} --set task=multi-class --out run --quiet", train(12))).ok();
    let report = place.run("evaluate run --json").json();
    assert!(report["metrics"]["micro-f1"].as_f64().unwrap() > 0.95, "{report}");
    assert_eq!(report["metrics"]["micro-precision"], report["metrics"]["micro-recall"]);
}

#[test]
fn several_seeds_are_averaged_and_settings_are_ranked() {
    let place = Place::with_corpus();
    let report = place.run(&format!("{} --seeds 2 --seed 5 --out seeds --json --quiet", train(6))).json();
    assert_eq!(report["seeds"], serde_json::json!([5, 6]));
    let values: Vec<f64> = report["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["dev"]["micro-f1"].as_f64().unwrap())
        .collect();
    let mean = report["dev"]["micro-f1"]["mean"].as_f64().unwrap();
    assert!((mean - (values[0] + values[1]) / 2.0).abs() < 1e-9);
    assert!(report["test"]["micro-f1"]["std"].is_number());
    place.run(&format!("{} --seeds 2 --seed 5 --out seeds --resume --json --quiet", train(6))).ok();

    let tune = train(6).replacen("train", "tune", 1);
    let tune = format!("{tune} --out tune --try train.learning_rate=1e-6,2e-3 --try flat.dropout=0,0.1");
    let trials = place.run(&format!("{tune} --json --quiet")).json();
    let trials = trials.as_array().unwrap();
    assert_eq!(trials.len(), 4);
    assert_eq!(trials[0]["settings"]["train.learning_rate"], "2e-3");
    assert_eq!(trials[3]["settings"]["train.learning_rate"], "1e-6");
    assert!(place.read("tune/best.toml").contains("learning_rate = 0.002"));
    let again = place.run(&format!("{tune} --resume --json --quiet")).json();
    assert_eq!(again.as_array().unwrap(), trials);
    place.run("tune --corpus corpus --out x --try train.epochs").fails(78, &["--try key=v1,v2"]);
    place.run("tune --corpus corpus --out x --try linear.c=1,2 --metric beauty").fails(78, &["beauty"]);
}

#[test]
fn any_reported_metric_may_decide_which_model_is_best() {
    let place = Place::with_corpus();
    place.run(&format!("{} --set train.monitor=ndcg@3 --out run --quiet", train(2))).ok();
    let summary: serde_json::Value = serde_json::from_str(&place.read("run/summary.json")).unwrap();
    assert_eq!(summary["best"]["monitor"], "ndcg@3");
    for metric in ["ndcg@4", "ndcg@", "no-such-metric"] {
        let command = format!("{} --set train.monitor={metric} --out other --quiet", train(2));
        place.run(&command).fails(78, &["train.monitor", metric]);
    }
}
