//! A step uses what the exchange gives back, and what a source gives.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::{Arc, Barrier, Mutex};

use cladist_core::{LabelSet, Taxonomy};

use super::*;
use crate::heads::flat::FlatConfig;
use crate::parameters::{Tensors, named};
use crate::shortlist::ShortlistConfig;
use crate::tokens::Sequence;
use crate::train::exchange::{Alone, Exchange, Update};
use crate::train::source::{Example, Fingerprint, Resident, Source};
use crate::train::train_from;

/// What a rank has to say.
#[derive(Clone, Default)]
struct Post {
    dense: BTreeMap<String, Vec<f32>>,
    rows: Option<(Vec<u32>, Vec<f32>)>,
    terms: Vec<(String, f64)>,
    says: bool,
}

/// Two ranks in two threads.
struct Pair {
    rank: usize,
    barrier: Arc<Barrier>,
    posts: Arc<[Mutex<Post>; 2]>,
}

impl Pair {
    fn both() -> [Self; 2] {
        let (barrier, posts) = (Arc::new(Barrier::new(2)), Arc::<[Mutex<Post>; 2]>::default());
        [0, 1].map(|rank| Self { rank, barrier: Arc::clone(&barrier), posts: Arc::clone(&posts) })
    }

    /// Everyone's posts, in the order of ranks.
    fn tell(&self, post: Post) -> Vec<Post> {
        *self.posts[self.rank].lock().unwrap() = post;
        self.barrier.wait();
        let all = self.posts.iter().map(|post| post.lock().unwrap().clone()).collect();
        self.barrier.wait();
        all
    }
}

impl Exchange for Pair {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        2
    }

    fn exchange(&mut self, update: &mut Update) -> Result<()> {
        let dense: BTreeMap<String, Vec<f32>> =
            update.names().map(|name| (name.to_owned(), update.values(name).unwrap())).collect();
        let rows = update.rows().map(|(numbers, values)| (numbers.to_vec(), values.to_vec()));
        let all = self.tell(Post { dense, rows, terms: update.terms().to_vec(), says: false });
        let names: BTreeSet<&String> = all.iter().flat_map(|post| post.dense.keys()).collect();
        for name in names {
            let mut parts = all.iter().filter_map(|post| post.dense.get(name));
            let mut sum = parts.next().unwrap().clone();
            parts.for_each(|part| sum.iter_mut().zip(part).for_each(|(sum, value)| *sum += value));
            update.replace(name, sum);
        }
        update.clear_rows();
        for (numbers, values) in all.iter().filter_map(|post| post.rows.as_ref()) {
            update.add_rows(numbers, values);
        }
        for (name, value) in &all[1 - self.rank].terms {
            update.add_term(name, *value);
        }
        Ok(())
    }

    fn any(&mut self, says: bool) -> Result<bool> {
        Ok(self.tell(Post { says, ..Post::default() }).iter().any(|post| post.says))
    }
}

/// All parameters, and losses.
type Learnt = (Tensors, Vec<f64>);

fn learnt(model: &NeuralModel, seen: &Seen) -> Learnt {
    let mut all = named(&model.network);
    if let Some(table) = model.table() {
        all.insert("rows".to_owned(), (vec![table.n_rows()], table.values().to_vec()));
    }
    (all, seen.losses())
}

/// What each of two ranks learns.
fn together(run: &Run<'_>) -> Vec<Learnt> {
    let (toy, design, config) = (run.toy, &run.design, &run.config);
    std::thread::scope(|scope| {
        let one = |mut pair: Pair| {
            scope.spawn(move || {
                let run = Run { design: design.clone(), ..Run::new(toy, config.clone()) };
                let seen = Seen::new(Stop::Never);
                let model = run.model();
                let trained = run.plan_with(&seen, |plan| {
                    let source = Resident::new(&model, &plan.train, &plan.cancel).unwrap();
                    train_from(model, plan, &source, &mut pair)
                });
                learnt(&trained.unwrap().0, &seen)
            })
        };
        let both = Pair::both().map(one);
        both.map(|rank| rank.join().unwrap()).into()
    })
}

/// Nothing is drawn, and small gradients are not divided by themselves.
fn plain(batch_size: usize, accumulate: usize) -> TrainConfig {
    let mut config = TrainConfig { batch_size, accumulate, dropout: Some(0.0), ..quick() };
    config.optimizer.epsilon = 1e-3;
    config
}

fn without_dropout() -> Design {
    let head = AnyHeadConfig::Flat(FlatConfig { dropout: 0.0, ..FlatConfig::default() });
    design(head, Task::MultiLabel)
}

#[test]
fn two_ranks_with_half_of_each_batch_learn_what_one_learns_with_all_of_it() {
    let toy = Toy::new(Task::MultiLabel);
    let shortlist = ShortlistConfig { group_size: 8, top_groups: 9, random: 0, size: 99, match_only: false };
    // Halves; parts of two and one documents; batches of which the second rank has nothing.
    for (design, config) in [
        (without_dropout(), plain(4, 1)),
        (without_dropout(), plain(3, 2)),
        (without_dropout(), plain(1, 3)),
        (Design { shortlist, ..without_dropout() }, plain(4, 1)),
    ] {
        let run = Run { design, ..Run::new(&toy, config) };
        let (model, _, seen) = run.finish();
        let (whole, losses) = learnt(&model, &seen);
        let ranks = together(&run);
        assert!(ranks[0].0 == ranks[1].0, "ranks have the same parameters to the bit");
        let start = named(&run.model().network);
        for (name, (_, values)) in &whole {
            let apart =
                values.iter().zip(&ranks[0].0[name].1).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(apart < 1e-5, "{name}: {apart}");
            assert!(start.get(name).is_none_or(|(_, start)| start != values), "{name} did not learn");
        }
        for (n, loss) in losses.iter().enumerate() {
            assert!(ranks.iter().all(|rank| (rank.1[n] - loss).abs() < 1e-5), "loss of step {n}");
        }
    }
}

/// Whose documents teach nothing.
struct Nought;

impl Exchange for Nought {
    fn rank(&self) -> usize {
        0
    }
    fn size(&self) -> usize {
        1
    }
    fn exchange(&mut self, update: &mut Update) -> Result<()> {
        let names: Vec<String> = update.names().map(str::to_owned).collect();
        for name in names {
            let n = update.values(&name).unwrap().len();
            update.replace(&name, vec![0.0; n]);
        }
        Ok(())
    }
    fn any(&mut self, says: bool) -> Result<bool> {
        Ok(says)
    }
}

#[test]
fn what_is_applied_is_what_was_exchanged() {
    let toy = Toy::new(Task::MultiLabel);
    let mut config = quick();
    config.optimizer.weight_decay = 0.0;
    let run = Run::new(&toy, config);
    let model = run.model();
    let before = bytes(&model);
    let seen = Seen::new(Stop::Never);
    let trained = run.plan_with(&seen, |plan| {
        let source = Resident::new(&model, &plan.train, &plan.cancel).unwrap();
        train_from(model, plan, &source, &mut Nought)
    });
    assert!(bytes(&trained.unwrap().0) == before);
    assert!(bytes(&run.finish().0) != before);
}

/// Examples that are read from a file each when they are asked for.
struct OnDisk<'a> {
    folder: tempfile::TempDir,
    lengths: Vec<usize>,
    taxonomy: &'a Taxonomy,
    /// The most that were asked for at once.
    most: Cell<usize>,
}

impl<'a> OnDisk<'a> {
    fn new(model: &NeuralModel, toy: &'a Toy) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let windows = model.tokenize(&toy.documents).unwrap();
        let mut lengths = Vec::new();
        for (windows, gold) in windows.iter().zip(&toy.gold) {
            for window in windows {
                let labels: Vec<usize> = gold.iter().map(|label| label.index()).collect();
                let text = serde_json::to_vec(&(&window.ids, &window.spans, labels)).unwrap();
                fs::write(folder.path().join(lengths.len().to_string()), text).unwrap();
                lengths.push(window.len());
            }
        }
        Self { folder, lengths, taxonomy: &toy.taxonomy, most: Cell::new(0) }
    }
}

impl Source for OnDisk<'_> {
    fn lengths(&self) -> &[usize] {
        &self.lengths
    }
    fn fetch(&self, numbers: &[usize]) -> Result<Vec<Example<'_>>> {
        self.most.set(self.most.get().max(numbers.len()));
        let read = |number: &usize| {
            let bytes = fs::read(self.folder.path().join(number.to_string())).unwrap();
            let (ids, spans, labels): (Vec<u32>, Vec<(u32, u32)>, Vec<usize>) =
                serde_json::from_slice(&bytes).unwrap();
            let gold: LabelSet = labels.iter().map(|&label| self.taxonomy.at(label).unwrap()).collect();
            Example { sequence: Cow::Owned(Sequence { ids, spans }), gold: Cow::Owned(gold) }
        };
        Ok(numbers.iter().map(read).collect())
    }
    fn id(&self, number: usize) -> String {
        number.to_string()
    }
    fn n_documents(&self) -> usize {
        self.lengths.len()
    }
    fn fingerprint(&self) -> Fingerprint {
        Fingerprint { texts: self.folder.path().display().to_string(), labels: String::new() }
    }
}

#[test]
fn examples_need_not_be_in_memory() {
    let toy = Toy::new(Task::MultiLabel);
    for freeze_epochs in [0, 1] {
        let run = Run { n_dev: 4, ..Run::new(&toy, TrainConfig { freeze_epochs, ..quick() }) };
        let model = run.model();
        let source = OnDisk::new(&model, &toy);
        let seen = Seen::new(Stop::Never);
        let trained = run.plan_with(&seen, |plan| {
            // No document is taken from the plan.
            let nothing = Examples { documents: &[], gold: &[] };
            let plan = Plan { train: nothing, cancel: plan.cancel.clone(), ..*plan };
            train_from(model, &plan, &source, &mut Alone)
        });
        assert!(bytes(&trained.unwrap().0) == bytes(&run.finish().0), "{freeze_epochs} frozen");
        assert!(freeze_epochs > 0 || source.most.get() == 3, "a batch at a time");
    }
}
