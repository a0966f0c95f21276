//! Every setting does something.

use std::collections::BTreeSet;

use serde_json::Value;

use super::*;
use crate::heads::{Group, Task};
use crate::train::averaging::AveragingConfig;
use crate::train::config::GroupConfig;
use crate::train::schedule::ScheduleConfig;

type Change = fn(&mut TrainConfig);

const CHANGES: &[(&str, Change)] = &[
    ("epochs", |config| config.epochs = 2),
    ("batch_size", |config| config.batch_size = 2),
    ("batch_tokens", |config| config.batch_tokens = 30),
    ("accumulate", |config| config.accumulate = 2),
    ("learning_rate", |config| config.learning_rate = 2e-3),
    ("clip", |config| config.clip = 0.05),
    ("dropout", |config| config.dropout = Some(0.5)),
    ("freeze_layers", |config| config.freeze_layers = 1),
    ("freeze_epochs", |config| config.freeze_epochs = 1),
    ("prior_bias", |config| config.prior_bias = false),
    ("label_smoothing", |config| config.label_smoothing = 0.2),
    ("monitor", |config| config.monitor = "loss".to_owned()),
    ("patience", |config| config.patience = 1),
    ("eval_steps", |config| config.eval_steps = 2),
    ("checkpoint_steps", |config| config.checkpoint_steps = 2),
    ("checkpoint_minutes", |config| config.checkpoint_minutes = 1e-9),
    ("log_steps", |config| config.log_steps = 1),
    ("seed", |config| config.seed = 7),
    ("schedule", |config| config.schedule = ScheduleConfig::constant()),
    ("labels.learning_rate", |config| config.labels.learning_rate = Some(1.0)),
    ("labels.fallback", |config| config.labels.fallback = Some(1.0)),
    ("labels.schedule", |config| config.labels.schedule = Some(ScheduleConfig::constant())),
    ("output.learning_rate", |config| config.output.learning_rate = Some(1.0)),
    ("output.fallback", |config| config.output.fallback = Some(1.0)),
    ("output.schedule", |config| config.output.schedule = Some(ScheduleConfig::constant())),
    ("optimizer.beta1", |config| config.optimizer.beta1 = 0.5),
    ("optimizer.beta2", |config| config.optimizer.beta2 = 0.5),
    ("optimizer.epsilon", |config| config.optimizer.epsilon = 0.1),
    ("optimizer.weight_decay", |config| config.optimizer.weight_decay = 0.5),
    ("averaging.start_epoch", |config| {
        config.averaging = Some(AveragingConfig { start_epoch: 1, every: 2 });
    }),
    ("averaging.every", |config| config.averaging = Some(AveragingConfig { start_epoch: 0, every: 1 })),
];

/// What can be seen of a run: parameters, reports, files, rates.
fn visible(toy: &Toy, config: &TrainConfig) -> (Vec<u8>, String) {
    let folder = tempfile::tempdir().unwrap();
    let script = [0.5, 0.4, 0.3];
    let mut run =
        Run { folder: Some(folder.path()), n_dev: 3, script: &script, ..Run::new(toy, config.clone()) };
    // Losses and outputs are made with the network, so whoever designs it hands the settings on.
    run.design.prior_bias = config.prior_bias;
    run.design.label_smoothing = config.label_smoothing;
    let (model, outcome, seen) = run.finish();
    let records = std::fs::read_to_string(folder.path().join("metrics.jsonl")).unwrap().lines().count();
    let n_checkpoints = std::fs::read_dir(folder.path().join("checkpoints")).unwrap().count();
    let rates = |group, fell_back| (0..9).map(move |step| config.rate(group, step, 9, fell_back));
    let labels: Vec<f64> = rates(Group::Labels, false).collect();
    let fallen: Vec<f64> = rates(Group::Labels, true).chain(rates(Group::Output, true)).collect();
    let dev: Vec<(u64, bool)> =
        seen.dev.lock().unwrap().iter().map(|report| (report.step, report.best)).collect();
    let summary = format!(
        "{:?} {:?} {dev:?} {records} {n_checkpoints} {labels:?} {fallen:?} {:?}",
        seen.losses(),
        (outcome.steps, outcome.best, outcome.stopped_early),
        seen.steps.lock().unwrap().iter().map(|report| report.learning_rates.clone()).collect::<Vec<_>>()
    );
    (bytes(&model), summary)
}

fn base() -> TrainConfig {
    TrainConfig { epochs: 3, monitor: "scripted".to_owned(), log_steps: 2, ..quick() }
}

#[test]
fn every_setting_has_an_effect() {
    let toy = Toy::new(Task::MultiLabel);
    let averaged = |start_epoch, every| {
        let averaging = Some(AveragingConfig { start_epoch, every });
        visible(&toy, &TrainConfig { averaging, ..base() })
    };
    let (plain, sparse) = (visible(&toy, &base()), averaged(0, 2));
    assert!(plain == visible(&toy, &base()), "the base itself must not vary");
    assert!(plain != sparse);
    for (key, change) in CHANGES {
        let mut config = base();
        change(&mut config);
        config.validate().unwrap();
        let reference = if key.starts_with("averaging.") { &sparse } else { &plain };
        assert!(visible(&toy, &config) != *reference, "`{key}` changes nothing");
    }
}

/// Keys of a section, those of its own sections behind a dot.
fn keys(value: &Value, prefix: &str, found: &mut BTreeSet<String>) {
    for (key, value) in value.as_object().unwrap() {
        let name = format!("{prefix}{key}");
        // Schedules have tests of their own.
        if value.is_object() && key != "schedule" {
            keys(value, &format!("{name}."), found);
        } else {
            found.insert(name);
        }
    }
}

#[test]
fn the_table_of_changes_knows_every_setting() {
    let group = GroupConfig {
        learning_rate: Some(1.0),
        fallback: Some(1.0),
        schedule: Some(ScheduleConfig::default()),
    };
    let config = TrainConfig {
        dropout: Some(0.0),
        labels: group.clone(),
        output: group,
        averaging: Some(AveragingConfig::default()),
        ..TrainConfig::default()
    };
    let mut expected = BTreeSet::new();
    keys(&serde_json::to_value(&config).unwrap(), "", &mut expected);
    let table: BTreeSet<String> = CHANGES.iter().map(|(key, _)| (*key).to_owned()).collect();
    assert_eq!(table, expected);
}

#[test]
fn checkpoints_may_be_as_rare_as_one_likes() {
    let toy = Toy::new(Task::MultiLabel);
    let folder = tempfile::tempdir().unwrap();
    let config = TrainConfig { checkpoint_minutes: f64::MAX, ..quick() };
    Run { folder: Some(folder.path()), ..Run::new(&toy, config) }.finish();
    assert_eq!(std::fs::read_dir(folder.path().join("checkpoints")).unwrap().count(), 0);
}

#[test]
fn accumulated_batches_make_one_update_of_their_mean() {
    let toy = Toy::new(Task::MultiLabel);
    let config = TrainConfig { epochs: 1, dropout: Some(0.0), ..quick() };
    let run = |batch_size, accumulate| {
        let mut run = Run::new(&toy, TrainConfig { batch_size, accumulate, ..config.clone() });
        run.design.head = AnyHeadConfig::Flat(crate::heads::flat::FlatConfig {
            dropout: 0.0,
            ..crate::heads::flat::FlatConfig::default()
        });
        let (model, outcome, _) = run.finish();
        (crate::parameters::named(&model.network), outcome.steps)
    };
    let ((whole, steps), (parts, part_steps)) = (run(4, 1), run(2, 2));
    assert_eq!((steps, part_steps), (2, 2));
    // Adam divides small gradients by themselves, so rounding shows: the bulk must agree, far below a step of 1e-3.
    for (name, (_, values)) in &whole {
        let apart: f64 =
            values.iter().zip(&parts[name].1).map(|(a, b)| f64::from((a - b).abs())).sum::<f64>();
        assert!(apart / (values.len() as f64) < 1e-5, "{name}: {apart}");
    }
}
