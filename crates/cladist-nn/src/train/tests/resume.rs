//! A run that was stopped goes on as if it had not been.

use std::fs;
use std::path::Path;

use super::*;
use crate::error::Error;
use crate::heads::label_attention::Encode;
use crate::heads::layer_guided::LayerGuidedConfig;
use crate::shortlist::ShortlistConfig;
use crate::tokens::TokensConfig;
use crate::toy::fitting;
use crate::train::averaging::AveragingConfig;
use crate::train::journal::{self, Record};

/// The journal without what depends on the clock.
fn journal(folder: &Path) -> Vec<Record> {
    let (mut records, n_unreadable) = journal::read(&folder.join("metrics.jsonl")).unwrap();
    assert_eq!(n_unreadable, 0);
    for record in &mut records {
        record.seconds = 0.0;
        record.values.retain(|name, _| !name.ends_with("-per-second"));
    }
    records
}

/// Everything a run leaves that must not depend on interruptions.
fn left(run: &Run<'_>) -> (Vec<u8>, Outcome, Vec<Record>) {
    let (model, outcome, _) = run.finish();
    (bytes(&model), Outcome { seconds: 0.0, ..outcome }, journal(run.folder.unwrap()))
}

fn check(config: &TrainConfig, n_dev: usize) -> Outcome {
    check_design(config, flat(), n_dev)
}

pub(super) fn check_design(config: &TrainConfig, design: Design, n_dev: usize) -> Outcome {
    let toy = Toy::new(design.task);
    let whole = tempfile::tempdir().unwrap();
    let run = Run { n_dev, design, folder: Some(whole.path()), ..Run::new(&toy, config.clone()) };
    let unbroken = left(&run);
    let total = unbroken.1.steps;
    assert!(total >= 6, "{total}");
    let after_dev = (unbroken.2.iter()).filter(|record| record.kind == journal::Kind::Dev);
    let stops: Vec<Stop> =
        (1..=total).map(Stop::AfterStep).chain(after_dev.map(|record| Stop::AfterDev(record.step))).collect();
    assert!(n_dev == 0 || stops.len() > total as usize + 1);
    for stop in stops {
        let folder = tempfile::tempdir().unwrap();
        let broken = Run { folder: Some(folder.path()), ..run.clone() };
        match broken.go(stop).0 {
            Err(Error::Core(cladist_core::Error::Cancelled)) => {}
            // Nothing is left to do after the last update or evaluation.
            Ok((_, outcome)) => assert_eq!(outcome.steps, total, "{stop:?}"),
            Err(error) => panic!("{error}"),
        }
        let resumed = left(&Run { resume: true, ..broken });
        assert!(resumed.0 == unbroken.0, "parameters after {stop:?}");
        assert_eq!(resumed.1, unbroken.1, "outcome after {stop:?}");
        assert_eq!(resumed.2, unbroken.2, "journal after {stop:?}");
    }
    unbroken.1
}

#[test]
fn labels_that_are_read_now_and_then_are_the_same_after_a_break() {
    let config = LabelAttentionConfig { encode: Encode::EveryN, refresh: 4, ..Default::default() };
    let design = design(AnyHeadConfig::LabelAttention(config), Task::MultiLabel);
    on_threads(1, || check_design(&quick(), design, 0));
}

#[test]
fn a_resumed_run_equals_an_unbroken_one_bit_for_bit() {
    let config = TrainConfig {
        epochs: 3,
        batch_tokens: 24,
        accumulate: 2,
        log_steps: 2,
        patience: 9,
        averaging: Some(AveragingConfig { start_epoch: 1, every: 2 }),
        ..quick()
    };
    on_threads(1, || check(&config, 4));
}

#[test]
fn so_do_documents_in_windows_one_label_each_and_levels_at_layers() {
    let config = TrainConfig { epochs: 2, batch_size: 3, ..quick() };
    let windows = TokensConfig { max_tokens: 8, windows: 3, stride: 2, ..TokensConfig::default() };
    let guided = fitting(AnyHeadConfig::LayerGuided(LayerGuidedConfig::default()));
    for design in [
        Design { tokens: windows, ..flat() },
        Design { task: Task::MultiClass, ..flat() },
        Design { head: guided, ..flat() },
    ] {
        on_threads(1, || check_design(&config, design, 4));
    }
}

#[test]
fn so_do_rows_of_a_shortlist_their_average_and_the_best_of_them() {
    let shortlist = ShortlistConfig { group_size: 2, top_groups: 2, random: 1, size: 6, match_only: false };
    for averaging in [None, Some(AveragingConfig { start_epoch: 1, every: 2 })] {
        let config = TrainConfig { accumulate: 2, batch_size: 2, averaging, ..quick() };
        let config = TrainConfig { epochs: 3, monitor: "sum".to_owned(), ..config };
        on_threads(1, || check_design(&config, Design { shortlist, ..flat() }, 4));
    }
}

#[test]
fn so_does_one_that_evaluates_within_epochs_and_stops_early() {
    let config = TrainConfig {
        epochs: 4,
        eval_steps: 2,
        log_steps: 5,
        patience: 1,
        learning_rate: 5e-3,
        monitor: "sum".to_owned(),
        ..quick()
    };
    assert!(on_threads(1, || check(&config, 4)).stopped_early);
}

#[test]
fn so_does_one_without_dev() {
    let config = TrainConfig { log_steps: 4, ..quick() };
    check(&config, 0);
}

#[test]
fn a_run_may_be_stopped_again_and_again() {
    let toy = Toy::new(Task::MultiLabel);
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let run = Run { n_dev: 3, ..Run::new(&toy, quick()) };
    let unbroken = left(&Run { folder: Some(folders[0].path()), ..run.clone() });
    let broken = Run { folder: Some(folders[1].path()), resume: true, ..run };
    for step in 1..=6 {
        let (result, seen) = broken.go(Stop::AfterStep(step));
        assert!(result.is_err());
        assert_eq!(seen.steps.lock().unwrap().len(), 1);
        assert!(seen.has_note(&format!("stopped and saved after step {step}")));
    }
    assert!(left(&broken) == unbroken);
}

#[test]
fn a_run_that_was_killed_goes_on_from_its_last_checkpoint() {
    let toy = Toy::new(Task::MultiLabel);
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let run =
        Run { n_dev: 3, ..Run::new(&toy, TrainConfig { checkpoint_steps: 2, log_steps: 3, ..quick() }) };
    let unbroken = left(&Run { folder: Some(folders[0].path()), ..run.clone() });
    let killed = Run { folder: Some(folders[1].path()), ..run };
    killed.go(Stop::AfterStep(4)).0.unwrap_err();
    let checkpoints = folders[1].path().join("checkpoints");
    let aside = folders[1].path().join("aside");
    fs::rename(checkpoints.join("step-00000004"), &aside).unwrap();
    // What a killed process leaves: the checkpoint of step 4, and a journal that knows more.
    killed.finish();
    fs::remove_dir_all(&checkpoints).unwrap();
    fs::create_dir(&checkpoints).unwrap();
    fs::rename(aside, checkpoints.join("step-00000004")).unwrap();
    assert_eq!(journal(folders[1].path()).last().unwrap().step, 6);
    let (result, seen) = Run { resume: true, ..killed.clone() }.go(Stop::AfterStep(5));
    result.unwrap_err();
    assert!(seen.has_note("going on after step 4"));
    assert_eq!(journal(folders[1].path()).last().unwrap().step, 3, "there is no line of step 4 or 5");
    assert!(left(&Run { resume: true, ..killed }) == unbroken);
}

#[test]
fn other_settings_or_documents_are_refused() {
    let toy = Toy::new(Task::MultiLabel);
    let folder = tempfile::tempdir().unwrap();
    let run = Run { folder: Some(folder.path()), n_dev: 3, ..Run::new(&toy, quick()) };
    run.go(Stop::AfterStep(2)).0.unwrap_err();
    let run = Run { resume: true, ..run };
    let other_rate = Run { config: TrainConfig { learning_rate: 2e-3, ..quick() }, ..run.clone() };
    let other_seed = Run { config: TrainConfig { seed: 7, ..quick() }, ..run.clone() };
    let other_dev = Run { n_dev: 4, ..run.clone() };
    let mut other_head = run.clone();
    other_head.design.head = AnyHeadConfig::Flat(crate::heads::flat::FlatConfig {
        dropout: 0.2,
        ..crate::heads::flat::FlatConfig::default()
    });
    let mut other_loss = run.clone();
    other_loss.design.label_smoothing = 0.1;
    let mut other = Toy::new(Task::MultiLabel);
    other.gold.swap(1, 6);
    let other_gold = Run { toy: &other, ..run.clone() };
    let mut other = Toy::new(Task::MultiLabel);
    other.documents[7].text.push_str(" again");
    let other_text = Run { toy: &other, ..run.clone() };
    let longer = Run { config: TrainConfig { epochs: 9, dropout: Some(0.5), ..quick() }, ..run.clone() };
    for (run, expected) in [
        (other_rate, vec!["`train.learning_rate` was 0.001 and is 0.002"]),
        (other_seed, vec!["`train.seed` was 42 and is 7"]),
        (other_dev, vec!["other dev documents", "other labels of dev documents"]),
        (other_head, vec!["`flat.dropout` was 0.1 and is 0.2"]),
        (other_loss, vec!["`train.label_smoothing` was 0.0 and is 0.1"]),
        (other_gold, vec!["other labels of dev documents", "other labels of training documents"]),
        (other_text, vec!["other training documents"]),
        (longer, vec!["`train.dropout` was nothing and is 0.5", "`train.epochs` was 2 and is 9"]),
    ] {
        let error = run.go(Stop::Never).0.unwrap_err();
        assert!(expected.iter().all(|part| error.to_string().contains(part)), "{error}");
        let Error::OtherRun { differences, .. } = error else { panic!("{error}") };
        assert_eq!(differences, expected);
    }
    // How often it saves and speaks is not of the run's essence.
    let config = TrainConfig { log_steps: 1, checkpoint_steps: 1, checkpoint_minutes: 5.0, ..quick() };
    let (result, seen) = Run { config, ..run }.go(Stop::Never);
    result.unwrap();
    assert!(seen.has_note("going on after step 2"));
}

#[test]
fn a_checkpoint_of_another_version_is_refused_with_what_to_do() {
    let toy = Toy::new(Task::MultiLabel);
    let folder = tempfile::tempdir().unwrap();
    let run = Run { folder: Some(folder.path()), ..Run::new(&toy, quick()) };
    run.go(Stop::AfterStep(2)).0.unwrap_err();
    let place = folder.path().join("checkpoints/step-00000002");
    let mut state: serde_json::Value =
        serde_json::from_slice(&fs::read(place.join("state.json")).unwrap()).unwrap();
    // Version 0.1.0 kept one hash of settings and documents.
    let fields = state.as_object_mut().unwrap();
    fields.remove("identity").unwrap();
    fields.insert("fingerprint".to_owned(), "f6f7e3c6".into());
    let writer = cladist_core::bundle::Writer::create(&place, "checkpoint").unwrap();
    for entry in fs::read_dir(&place).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        match name.as_str() {
            "MANIFEST.json" => {}
            "state.json" => writer.write(&name, state.to_string().as_bytes()).unwrap(),
            _ => writer.write(&name, &fs::read(place.join(&name)).unwrap()).unwrap(),
        }
    }
    writer.finish().unwrap();
    let error = Run { resume: true, ..run }.go(Stop::Never).0.unwrap_err();
    assert!(matches!(error, Error::OtherVersion { .. }), "{error}");
    assert_eq!(error.kind(), cladist_core::ErrorKind::Bundle);
    let text = error.to_string();
    assert!(text.contains("step-00000002") && text.contains("another version of Cladist"), "{text}");
    assert!(error.remedy().is_some_and(|remedy| remedy.contains("train again")), "{:?}", error.remedy());
}

fn damage(folder: &Path, name: &str) {
    let path = folder.join("checkpoints").join(name).join("model.safetensors");
    let mut bytes = fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_damaged_checkpoint_is_passed_over_with_a_note() {
    let toy = Toy::new(Task::MultiLabel);
    let folder = tempfile::tempdir().unwrap();
    let run = Run { folder: Some(folder.path()), ..Run::new(&toy, quick()) };
    run.go(Stop::AfterStep(2)).0.unwrap_err();
    let checkpoints = folder.path().join("checkpoints");
    fs::create_dir(checkpoints.join("step-00000003")).unwrap();
    for entry in fs::read_dir(checkpoints.join("step-00000002")).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), checkpoints.join("step-00000003").join(entry.file_name())).unwrap();
    }
    damage(folder.path(), "step-00000003");
    let run = Run { resume: true, ..run };
    let (result, seen) = run.go(Stop::AfterStep(4));
    result.unwrap_err();
    assert!(seen.has_note("a checkpoint cannot be used") && seen.has_note("step-00000003"));
    assert!(seen.has_note("going on after step 2") && !seen.has_note("from the beginning"));
    damage(folder.path(), "step-00000004");
    let (result, seen) = run.go(Stop::Never);
    assert_eq!(result.unwrap().1.steps, 6);
    assert!(seen.has_note("step-00000004") && seen.has_note("from the beginning"));
    assert_eq!(seen.steps.lock().unwrap()[0].step, 1);
}
