//! What only the trainer itself can show.

use super::*;
use crate::heads::Task;
use crate::toy::{Toy, flat, places};

struct Nothing;

impl Measure for Nothing {
    fn decode(&self, scores: Scores) -> cladist_core::Result<Decoded> {
        Ok(Decoded { scores, sets: Vec::new() })
    }
    fn measure(&self, _: &Decoded) -> cladist_core::Result<BTreeMap<String, f64>> {
        Ok(BTreeMap::new())
    }
    fn higher_is_better(&self, _: &str) -> Option<bool> {
        None
    }
}

#[test]
fn updates_change_parameters_in_place() {
    let toy = Toy::new(Task::MultiLabel);
    let model = toy.model(flat(), 1);
    let config = TrainConfig { batch_size: 2, epochs: 3, ..TrainConfig::default() };
    let plan = Plan {
        config: &config,
        train: toy.examples(),
        dev: Some(toy.examples()),
        measure: &Nothing,
        folder: None,
        lock: None,
        resume: false,
        save_last: false,
        watcher: &cladist_core::job::Silent,
        cancel: Cancel::default(),
    };
    let source = Resident::new(&model, &plan.train, &plan.cancel).unwrap();
    let dev = Dev { gold: &toy.gold, tokens: model.tokenize(&toy.documents).unwrap() };
    let mut alone = Alone;
    let mut trainer = Trainer::new(model, &plan, Some(dev), &source, &mut alone).unwrap();
    // The first update leaves the model that was given as it is.
    assert!(trainer.has_next().unwrap());
    trainer.step().unwrap().unwrap();
    let first = places(&trainer.network);
    for _ in 0..2 {
        let before = parameters::named(&trainer.network);
        assert!(trainer.has_next().unwrap());
        trainer.step().unwrap().unwrap();
        assert_eq!(places(&trainer.network), first);
        assert!(parameters::named(&trainer.network).iter().all(|(name, values)| *values != before[name]));
    }
    // An evaluation looks at the parameters; once it is over, updates are in place again.
    assert!(trainer.evaluate().unwrap());
    trainer.step().unwrap().unwrap();
    let after = places(&trainer.network);
    assert!(trainer.has_next().unwrap());
    trainer.step().unwrap().unwrap();
    assert_eq!(places(&trainer.network), after);
}
