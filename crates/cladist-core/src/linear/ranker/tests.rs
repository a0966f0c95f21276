use super::*;
use crate::label_tree::PartitionConfig;
use crate::linear::solver::solve;
use crate::taxonomy::Taxonomy;

const WORDS: [&str; 6] =
    ["copper ore", "gold bar", "wheat field", "barley crop", "interest rate", "index fund"];
const WIDTH: usize = 3;

/// Documents whose label shows in their words, and half of it in their vectors; the label before is there as well in
/// every third.
struct World {
    documents: Vec<Document>,
    gold: Vec<LabelSet>,
    vectors: Vec<f32>,
    groups: Vec<Vec<u32>>,
    partition: Partition,
}

fn world() -> World {
    let labels: Vec<_> = Taxonomy::flat(WORDS).labels().collect();
    let documents: Vec<Document> = (0..48)
        .map(|n| Document::from_text(n.to_string(), format!("{} {}", WORDS[n % 6], WORDS[n / 6 % 5])))
        .collect();
    let gold: Vec<LabelSet> = (0..48)
        .map(|n| labels.iter().skip(n % 6).take(1 + usize::from(n % 3 == 0)).copied().collect())
        .collect();
    let vectors = (0..48).flat_map(|n| [(n % 6 / 2) as f32, 1.0, (n % 5) as f32 * 0.3]).collect();
    let config = PartitionConfig { leaf: 2, seed: 1 };
    let partition = Partition::of_documents(&documents, &gold, 6, &config, &Job::silent()).unwrap();
    let n_groups = partition.n_groups() as u32;
    assert!(n_groups > 2);
    let groups = (0..48).map(|n| vec![n % n_groups, (n * 7 + 1) % n_groups]).collect();
    let groups = unique(groups);
    World { documents, gold, vectors, groups, partition }
}

fn unique(mut groups: Vec<Vec<u32>>) -> Vec<Vec<u32>> {
    groups.iter_mut().for_each(Vec::dedup);
    groups
}

impl World {
    fn train(&self, config: &RankerConfig) -> Ranker {
        let Self { documents, gold, vectors, groups, partition } = self;
        let examples = Matched { documents, gold, vectors, groups };
        Ranker::train(config, &examples, partition, 7, &Job::silent()).unwrap()
    }

    fn vector(&self, n: usize) -> &[f32] {
        &self.vectors[n * WIDTH..][..WIDTH]
    }

    /// Every label of every group, whose scores are 1, ½, ⅓, …
    fn scores(&self, ranker: &Ranker, n: usize) -> Vec<(u32, f32)> {
        let groups: Vec<(u32, f32)> = (0..self.partition.n_groups() as u32).map(|g| (g, share(g))).collect();
        ranker.score(&self.documents[n], self.vector(n), &groups)
    }
}

fn share(group: u32) -> f32 {
    1.0 / (group + 1) as f32
}

#[test]
fn raw_scores_become_numbers_up_to_one() {
    for (raw, expected) in [(1.2, 1.0), (0.5, 0.882_496_9), (-0.5, 0.034_218_1)] {
        assert!((hinge_probability(raw) - expected).abs() < 1e-7, "{raw}");
    }
}

#[test]
fn one_document_is_learnt_as_by_hand() {
    // x = (1, 1) with the constant, C = 1: α = 1/(2 + ½), so that v = 0.8 and exp(−0.2³) = 0.9920319.
    let labels: Vec<_> = Taxonomy::flat(["only"]).labels().collect();
    let documents = [Document::from_text("a", "ore")];
    let gold = [labels.iter().copied().collect()];
    let features = SparseMatrix::from_rows(&[vec![(0, 1.0)]], 1);
    let config = PartitionConfig { leaf: 2, seed: 1 };
    let partition = Partition::of_features(&features, vec![0], &config, &Job::silent()).unwrap();
    let examples = Matched { documents: &documents, gold: &gold, vectors: &[5.0], groups: &[vec![]] };
    let ranker = Ranker::train(&RankerConfig::default(), &examples, &partition, 1, &Job::silent()).unwrap();
    let scores = ranker.score(&documents[0], &[5.0], &[(0, 0.5)]);
    assert_eq!(scores.len(), 1);
    assert!((scores[0].1 - 0.5 * 0.992_031_9).abs() < 5e-4, "{scores:?}");
}

#[test]
fn it_is_what_classifiers_of_the_chosen_documents_are() {
    let world = world();
    let config = RankerConfig { vector_weight: 0.7, ..RankerConfig::default() };
    let ranker = world.train(&config);
    let vectorizer = Vectorizer::fit(&config.features, &world.documents, &Job::silent()).unwrap();
    let n_columns = vectorizer.n_features() + WIDTH;
    let row = |n: usize| -> SparseRow {
        let mut row = vectorizer.transform(&world.documents[n]);
        let norm = world.vector(n).iter().map(|x| x * x).sum::<f32>().sqrt();
        for (column, x) in world.vector(n).iter().enumerate() {
            row.push(((vectorizer.n_features() + column) as u32, x / norm * 0.7));
        }
        row
    };
    let linear = LinearConfig { prune: config.prune, ..LinearConfig::default() };
    for group in 0..world.partition.n_groups() {
        let labels = world.partition.labels(group);
        let has = |n: usize, label: u32| world.gold[n].iter().any(|gold| gold.index() as u32 == label);
        let chosen: Vec<usize> = (0..48)
            .filter(|&n| {
                labels.iter().any(|&label| has(n, label)) || world.groups[n].contains(&(group as u32))
            })
            .collect();
        assert!(chosen.len() < 48);
        let rows: Vec<SparseRow> = chosen.iter().map(|&n| row(n)).collect();
        let positives: Vec<Vec<u32>> = labels
            .iter()
            .map(|&label| (0..chosen.len() as u32).filter(|&n| has(chosen[n as usize], label)).collect())
            .collect();
        let positives: Vec<&[u32]> = positives.iter().map(Vec::as_slice).collect();
        let settings = settings(&linear, &LinearTrain::default(), chosen.len(), 48);
        let matrix = SparseMatrix::from_rows(&rows, n_columns);
        let seed = seed_of(&[7, group as u64]);
        let classifiers = solve(&matrix, &positives, &settings, seed, &Job::silent()).unwrap();
        for n in 0..48 {
            let scores = world.scores(&ranker, n);
            for (label, classifier) in labels.iter().zip(&classifiers) {
                let v = row(n).iter().fold(classifier.bias, |sum, (column, x)| {
                    let weight = classifier.weights.iter().find(|(other, _)| other == column);
                    sum + weight.map_or(0.0, |(_, weight)| weight * x)
                });
                let expected = hinge_probability(v) as f32 * share(group as u32);
                let found = scores.iter().find(|(other, _)| other == label).map_or(0.0, |(_, score)| *score);
                assert!((found - expected).abs() < 2e-3, "document {n}, label {label}: {found} {expected}");
            }
        }
    }
}

#[test]
fn labels_with_like_scores_are_told_apart() {
    assert!(told_apart(1.0, 3.0) > told_apart(1.0, 2.0));
    assert_eq!(told_apart(0.0, 2.0), None);
}

#[test]
fn it_knows_the_labels_of_words_and_more_with_vectors() {
    let world = world();
    let right = |config: &RankerConfig| {
        let ranker = world.train(config);
        let best = |n: usize| {
            let groups: Vec<(u32, f32)> = (0..world.partition.n_groups() as u32).map(|g| (g, 1.0)).collect();
            let scores = ranker.score(&world.documents[n], world.vector(n), &groups);
            scores.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(label, _)| label)
        };
        (0..48).filter(|&n| world.gold[n].iter().any(|gold| best(n) == Some(gold.index() as u32))).count()
    };
    let without = right(&RankerConfig { vector_weight: 0.0, ..RankerConfig::default() });
    let with = right(&RankerConfig::default());
    assert!(with >= 40 && with >= without, "{with} {without}");
}

#[test]
fn it_comes_back_from_its_files_and_the_same_bytes_do_on_any_number_of_threads() {
    let world = world();
    let folder = tempfile::tempdir().unwrap();
    let config = RankerConfig::default();
    let saved = |name: &str, threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let path = folder.path().join(name);
        let writer = Writer::create(&path, "test").unwrap();
        let ranker = pool.install(|| world.train(&config));
        ranker.save(&writer).unwrap();
        writer.finish().unwrap();
        (ranker, std::fs::read(path.join(FILE)).unwrap(), path)
    };
    let (ranker, bytes, path) = saved("one", 1);
    assert!(bytes == saved("two", 2).1);
    let load = |partition: &Partition, width| Ranker::load(&path, &config, partition, width);
    let loaded = load(&world.partition, WIDTH).unwrap();
    assert_eq!(loaded, ranker);
    assert_eq!(loaded.n_weights(), ranker.n_weights());
    assert!((0..48).all(|n| world.scores(&loaded, n) == world.scores(&ranker, n)));
    let features = SparseMatrix::from_rows(&vec![vec![(0, 1.0)]; 6], 1);
    let partition_config = PartitionConfig { leaf: 6, seed: 1 };
    let other =
        Partition::of_features(&features, (0..6).collect(), &partition_config, &Job::silent()).unwrap();
    assert!(load(&other, WIDTH).unwrap_err().to_string().contains(FILE));
    // Weights of columns that vectors of one number less do not have.
    assert!(load(&world.partition, WIDTH - 1).is_err());
    std::fs::write(path.join(FILE), &bytes[..bytes.len() - 4]).unwrap();
    assert!(load(&world.partition, WIDTH).unwrap_err().to_string().contains(FILE));
}

#[test]
fn it_stops_when_asked_and_refuses_settings_without_sense() {
    let world = world();
    let World { documents, gold, vectors, groups, partition } = &world;
    let examples = Matched { documents, gold, vectors, groups };
    let job = Job::silent();
    job.cancel.cancel();
    let stopped = Ranker::train(&RankerConfig::default(), &examples, partition, 1, &job);
    assert!(matches!(stopped, Err(Error::Cancelled)));
    let default = RankerConfig::default;
    for (key, config) in [
        ("ranker.c", RankerConfig { c: 0.0, ..default() }),
        ("ranker.prune", RankerConfig { prune: f32::NAN, ..default() }),
        ("ranker.vector_weight", RankerConfig { vector_weight: -1.0, ..default() }),
        (
            "features.min_df",
            RankerConfig { features: FeatureConfig { min_df: 0, ..Default::default() }, ..default() },
        ),
    ] {
        let error = config.validate().unwrap_err();
        assert!(error.to_string().starts_with(&format!("`{key}` must be ")), "{error}");
    }
}
