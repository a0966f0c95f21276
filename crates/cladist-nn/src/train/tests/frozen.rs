//! Epochs in which only the head learns.

use std::collections::BTreeMap;

use super::resume::check_design;
use super::*;
use crate::heads::Pool;
use crate::heads::experts::ExpertsConfig;
use crate::heads::flat::FlatConfig;
use crate::heads::hmcn::HmcnConfig;
use crate::heads::light_xml::LightXmlConfig;
use crate::parameters;
use crate::shortlist::ShortlistConfig;
use crate::toy::fitting;
use crate::train::checkpoint;

fn frozen(epochs: usize) -> TrainConfig {
    TrainConfig { freeze_epochs: epochs, ..quick() }
}

/// Parameters of a model.
fn named(model: &NeuralModel) -> BTreeMap<String, (Vec<usize>, Vec<f32>)> {
    parameters::named(&model.network)
}

#[test]
fn the_head_learns_first_and_the_encoder_after_it() {
    let toy = Toy::new(Task::MultiLabel);
    let heads = [
        AnyHeadConfig::Flat(FlatConfig { pool: Pool::Pooled, ..FlatConfig::default() }),
        AnyHeadConfig::Flat(FlatConfig { pool: Pool::Mean, ..FlatConfig::default() }),
        AnyHeadConfig::LightXml(LightXmlConfig::default()),
        AnyHeadConfig::Experts(ExpertsConfig::default()),
        AnyHeadConfig::Hmcn(HmcnConfig::default()),
        // Labels are read by the encoder too.
        AnyHeadConfig::LabelAttention(LabelAttentionConfig::default()),
    ];
    for head in heads {
        let name = head.name();
        let folder = tempfile::tempdir().unwrap();
        let design = design(fitting(head), Task::MultiLabel);
        let run = Run { design, folder: Some(folder.path()), ..Run::new(&toy, frozen(2)) };
        let before = named(&run.model());
        // Two epochs of three updates, after which a checkpoint is left.
        run.go(Stop::AfterStep(6)).0.unwrap_err();
        let found = checkpoint::latest(&folder.path().join("checkpoints")).unwrap();
        let path = found.checkpoint.unwrap().path.join("model.safetensors");
        let between = parameters::read(&path).unwrap();
        for (parameter, values) in &before {
            let learnt = between[parameter] != *values;
            assert_eq!(learnt, parameter.starts_with("head."), "{name}: {parameter}");
        }
        let (model, outcome, seen) = Run { resume: true, ..run }.finish();
        assert_eq!(outcome.steps, 12, "{name}");
        assert!(seen.losses().iter().all(|loss| loss.is_finite()));
        let after = named(&model);
        assert!(after.iter().any(|(parameter, values)| {
            parameter.starts_with("encoder.layers.0.") && *values != before[parameter]
        }));
    }
}

#[test]
fn rates_are_full_at_first_and_their_course_begins_afterwards() {
    let toy = Toy::new(Task::MultiLabel);
    let (_, _, seen) = Run::new(&toy, frozen(1)).finish();
    let (_, _, plain) = Run::new(&toy, quick()).finish();
    let rates = |seen: &Seen| -> Vec<Vec<(String, f64)>> {
        seen.steps.lock().unwrap().iter().map(|report| report.learning_rates.clone()).collect()
    };
    let (first, rest) = (rates(&seen)[..3].to_vec(), rates(&seen)[3..].to_vec());
    let full = [("encoder".to_owned(), 0.0), ("output".to_owned(), 1e-2)];
    assert!(first.iter().all(|rates| *rates == full), "{first:?}");
    assert_eq!(rest, rates(&plain));
    assert!(seen.has_note("reads 8 documents once"));
    assert_eq!(*seen.read.lock().unwrap(), Some((8, 8)));
    assert_eq!(*plain.read.lock().unwrap(), None);
}

#[test]
fn dev_is_asked_after_the_last_of_them() {
    let toy = Toy::new(Task::MultiLabel);
    let (_, _, seen) = Run { n_dev: 4, ..Run::new(&toy, frozen(3)) }.finish();
    let steps: Vec<u64> = seen.dev.lock().unwrap().iter().map(|report| report.step).collect();
    assert_eq!(steps, [9, 12, 15]);
}

#[test]
fn a_run_that_breaks_in_one_goes_on_bit_for_bit() {
    let shortlist = ShortlistConfig { group_size: 2, top_groups: 2, random: 1, size: 6, match_only: false };
    for design in [flat(), Design { shortlist, prior_bias: true, ..flat() }] {
        on_threads(1, || check_design(&frozen(2), design.clone(), 4));
    }
}
