//! Runs that go wrong.

use super::*;
use crate::error::Error;
use crate::heads::Task;
use crate::parameters::{named, read};
use crate::train::checkpoint::latest;
use crate::train::lock::RunLock;
use crate::train::schedule::ScheduleConfig;

/// The first update moves nothing; the second makes every matrix infinite by its decay; none can follow.
fn exploding(updates: usize) -> TrainConfig {
    let mut config = TrainConfig {
        epochs: updates,
        batch_size: 8,
        learning_rate: 900.0,
        checkpoint_steps: 1,
        eval_steps: 1,
        schedule: ScheduleConfig { warmup: 0.5, ..ScheduleConfig::default() },
        ..quick()
    };
    config.optimizer.weight_decay = 1e38;
    config
}

#[test]
fn a_run_that_diverges_stops_with_the_documents_and_the_checkpoint_before() {
    let toy = Toy::new(Task::MultiLabel);
    let folder = tempfile::tempdir().unwrap();
    let run = Run { folder: Some(folder.path()), ..Run::new(&toy, exploding(9)) };
    let start = named(&run.model().network);
    let (result, seen) = run.go(Stop::Never);
    let error = result.unwrap_err();
    assert_eq!(error.kind(), cladist_core::ErrorKind::Data);
    let Error::Diverged { step, in_a_row, mut ids } = error else { panic!("{error}") };
    ids.sort();
    assert_eq!((step, in_a_row), (5, 3));
    assert_eq!(ids, toy.documents.iter().map(|document| document.id.clone()).collect::<Vec<_>>());
    let notes = seen.notes.lock().unwrap();
    assert_eq!(notes.iter().filter(|note| note.contains("skipped")).count(), 2, "{notes:?}");
    let found = latest(&folder.path().join("checkpoints")).unwrap();
    assert!(found.passed_over.is_empty());
    let checkpoint = found.checkpoint.unwrap();
    assert_eq!(checkpoint.step, 1);
    assert_eq!(read(&checkpoint.path.join("model.safetensors")).unwrap(), start);
}

#[test]
fn skipped_batches_are_counted_and_the_best_model_before_comes_back() {
    let toy = Toy::new(Task::MultiLabel);
    let run = Run { n_dev: 4, ..Run::new(&toy, exploding(4)) };
    let start = named(&run.model().network);
    let (model, outcome, seen) = run.finish();
    assert_eq!((outcome.steps, outcome.skipped), (4, 2));
    assert_eq!(outcome.best.map(|(step, _)| step), Some(1));
    assert_eq!(named(&model.network), start);
    let losses = seen.losses();
    assert!(
        losses[..2].iter().all(|loss| loss.is_finite()) && losses[2..].iter().all(|loss| !loss.is_finite())
    );
}

#[test]
fn an_infinite_weight_ends_the_run_at_once() {
    let toy = Toy::new(Task::MultiLabel);
    let run = Run::new(&toy, quick());
    let mut model = run.model();
    let mut values = named(&model.network.head);
    values.get_mut("output.weight").unwrap().1[3] = f32::INFINITY;
    model.network.head = crate::parameters::replace(model.network.head, values).unwrap();
    let error = run.go_from(model, Stop::Never).0.unwrap_err();
    let Error::Diverged { step: 3, ids, .. } = error else { panic!("{error}") };
    assert_eq!(ids.len(), 2, "the last batch of the epoch");
}

#[test]
fn a_second_trainer_in_the_same_folder_is_refused() {
    let toy = Toy::new(Task::MultiLabel);
    let folder = tempfile::tempdir().unwrap();
    let run = Run { folder: Some(folder.path()), ..Run::new(&toy, quick()) };
    let lock = RunLock::take(folder.path()).unwrap();
    let error = run.go(Stop::Never).0.unwrap_err();
    assert!(matches!(error, Error::Busy { process: Some(_), .. }), "{error}");
    drop(lock);
    run.finish();
}

#[test]
fn a_softmax_is_refused_documents_without_exactly_one_label() {
    let toy = Toy::new(Task::MultiLabel);
    let mut run = Run::new(&toy, quick());
    run.design.task = Task::MultiClass;
    let message = run.go(Stop::Never).0.unwrap_err().to_string();
    assert!(message.contains("document-0") && message.contains("3 labels"), "{message}");
}

#[test]
fn nothing_to_learn_from_and_unknown_metrics_are_refused() {
    let mut toy = Toy::new(Task::MultiLabel);
    let model = Run::new(&toy, quick()).model();
    let config = TrainConfig { monitor: "accuracy".to_owned(), ..quick() };
    let message = Run::new(&toy, config).go(Stop::Never).0.unwrap_err().to_string();
    assert!(message.contains("train.monitor") && message.contains("accuracy"), "{message}");
    (toy.documents, toy.gold) = (Vec::new(), Vec::new());
    let error = Run::new(&toy, quick()).go_from(model, Stop::Never).0.unwrap_err();
    assert!(matches!(error, Error::Core(cladist_core::Error::NothingToLearn { .. })), "{error}");
}

#[test]
fn a_rate_that_is_too_high_is_given_up_after_warm_up() {
    let toy = Toy::new(Task::MultiLabel);
    let run = |learning_rate: f64| {
        let output = crate::train::config::GroupConfig {
            learning_rate: Some(learning_rate),
            fallback: Some(1e-3),
            ..Default::default()
        };
        let schedule = ScheduleConfig { warmup: 0.5, ..ScheduleConfig::default() };
        let config = TrainConfig { epochs: 6, output, schedule, ..quick() };
        let (_, _, seen) = Run::new(&toy, config).finish();
        let rates: Vec<f64> =
            seen.steps.lock().unwrap().iter().map(|report| report.learning_rates[1].1).collect();
        (rates, seen.has_note("fallback"))
    };
    let (rates, noted) = run(50.0);
    // The report of the last update of the warm-up, the ninth, is made after the decision.
    assert!(noted && rates[7] > 1.0 && rates[9..].iter().all(|rate| *rate <= 1e-3), "{rates:?}");
    let (rates, noted) = run(1e-2);
    assert!(!noted && rates[9] == 1e-2, "{rates:?}");
}
