use std::fs;

use super::*;
use crate::bundle::BundleError;
use crate::linear::Loss;
use crate::scores::by_rank;
use rand::{RngExt, SeedableRng};

/// Documents whose labels show in their words, with noise.
fn corpus(n_documents: usize, n_labels: usize) -> (Vec<Document>, Vec<LabelSet>, Taxonomy) {
    let taxonomy = Taxonomy::flat((0..n_labels).map(|label| format!("label-{label:04}")));
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(5);
    let mut documents = Vec::new();
    let mut gold = Vec::new();
    for document in 0..n_documents {
        let labels: LabelSet = (0..rng.random_range(1..4))
            .filter_map(|_| taxonomy.at(rng.random_range(0..n_labels.max(1))))
            .collect();
        let mut text = String::new();
        for label in &labels {
            text.push_str(&format!("topic{} group{} ", label.index(), label.index() / 5));
        }
        for _ in 0..5 {
            text.push_str(&format!("noise{} ", rng.random_range(0..30)));
        }
        documents.push(Document::from_text(document.to_string(), text));
        gold.push(labels);
    }
    (documents, gold, taxonomy)
}

fn recipe(head: LinearHead) -> LinearRecipe {
    let linear = LinearConfig {
        min_branch_size: 8,
        k: (head == LinearHead::Bonsai).then_some(5),
        ..LinearConfig::default()
    };
    LinearRecipe { linear, ..LinearRecipe::new(head) }
}

const HEADS: [LinearHead; 3] = [LinearHead::Svm, LinearHead::Parabel, LinearHead::Bonsai];

fn train(recipe: &LinearRecipe) -> LinearModel {
    let (documents, gold, taxonomy) = corpus(600, 40);
    LinearModel::train(recipe, &documents, &gold, taxonomy, &Job::silent()).unwrap()
}

#[test]
fn every_head_and_loss_learns_what_words_say() {
    let (documents, gold, _) = corpus(600, 40);
    for head in HEADS {
        for loss in [Loss::SquaredHinge, Loss::Logistic] {
            let mut recipe = recipe(head);
            recipe.linear.loss = loss;
            recipe.linear.c = if loss == Loss::Logistic { 10.0 } else { 1.0 };
            let scores = train(&recipe).score(&documents, &Request::default()).unwrap();
            let right = scores.rows().zip(&gold).filter(|(row, gold)| gold.contains(row[0].0)).count();
            assert!(right > 580, "{head:?} {loss:?}: {right} of 600");
            assert!(scores.rows().flatten().all(|&(_, p)| p > 0.0 && p < 1.0));
            assert!(scores.rows().all(|row| row.is_sorted_by(|a, b| by_rank(a, b).is_lt())));
        }
    }
}

fn saved(model: &LinearModel, folder: &Path) -> Vec<(String, Vec<u8>)> {
    let target = folder.join("bundle");
    let writer = Writer::create(&target, "test").unwrap();
    model.save(&writer).unwrap();
    writer.finish().unwrap();
    let mut files: Vec<(String, Vec<u8>)> = fs::read_dir(&target)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    files
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_any_number_of_threads() {
    for head in HEADS {
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let folder = tempfile::tempdir().unwrap();
            pool.install(|| saved(&train(&recipe(head)), folder.path()))
        };
        let files = on(1);
        assert_eq!(files.len(), 5, "{:?}", files.iter().map(|(name, _)| name).collect::<Vec<_>>());
        assert!(files == on(2) && files == on(2), "{head:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    let mut other = recipe(LinearHead::Parabel);
    let files = saved(&train(&other), folder.path());
    other.train.seed = 43;
    assert!(files != saved(&train(&other), folder.path()));
}

#[test]
fn a_loaded_model_scores_the_same_and_so_does_a_document_alone() {
    let (documents, _, taxonomy) = corpus(50, 40);
    for head in HEADS {
        let folder = tempfile::tempdir().unwrap();
        let model = train(&recipe(head));
        saved(&model, folder.path());
        let loaded = LinearModel::load(&folder.path().join("bundle"), taxonomy.clone()).unwrap();
        let scores = model.score(&documents, &Request::default()).unwrap();
        assert_eq!(loaded.score(&documents, &Request::default()).unwrap(), scores);
        assert_eq!(loaded.forest, model.forest);
        assert_eq!(loaded.recipe(), model.recipe());
        for (document, row) in documents.iter().zip(scores.rows()) {
            let alone = model.score(std::slice::from_ref(document), &Request::default()).unwrap();
            assert_eq!(alone.row(0), row);
        }
    }
}

#[test]
fn the_best_k_are_the_first_k_of_all() {
    let (documents, ..) = corpus(30, 40);
    for head in HEADS {
        let model = train(&recipe(head));
        let all = model.score(&documents, &Request::default()).unwrap();
        for k in [0, 1, 7] {
            let some = model.score(&documents, &Request { top_k: Some(k), ..Request::default() }).unwrap();
            for (all, some) in all.rows().zip(some.rows()) {
                assert_eq!(some, &all[..k.min(all.len())]);
            }
        }
    }
}

#[test]
fn a_document_without_known_words_scores_nothing() {
    let documents =
        [Document::from_text("", ""), Document::from_text("", "\u{0}!?"), Document::from_text("", "zzz")];
    for head in HEADS {
        let scores = train(&recipe(head)).score(&documents, &Request::default()).unwrap();
        assert_eq!(scores.len(), 3);
        assert!(scores.rows().all(<[_]>::is_empty));
    }
}

#[test]
fn labels_without_documents_are_never_predicted() {
    let (documents, mut gold, taxonomy) = corpus(300, 40);
    let never = taxonomy.at(3).unwrap();
    for labels in &mut gold {
        *labels = labels.iter().copied().filter(|&label| label != never).collect();
    }
    for head in HEADS {
        let model =
            LinearModel::train(&recipe(head), &documents, &gold, taxonomy.clone(), &Job::silent()).unwrap();
        let scores = model.score(&documents, &Request::default()).unwrap();
        assert!(scores.rows().flatten().all(|&(label, _)| label != never));
    }
}

#[test]
fn nothing_to_learn_is_an_error_and_one_document_is_enough() {
    let (documents, gold, taxonomy) = corpus(4, 3);
    for head in HEADS {
        let mut recipe = recipe(head);
        recipe.features.min_df = 1;
        let nothing = [
            LinearModel::train(&recipe, &[], &[], taxonomy.clone(), &Job::silent()),
            LinearModel::train(
                &recipe,
                &documents,
                &vec![LabelSet::new(); 4],
                taxonomy.clone(),
                &Job::silent(),
            ),
            LinearModel::train(&recipe, &[Document::default()], &gold[..1], taxonomy.clone(), &Job::silent()),
        ];
        for refused in nothing {
            assert!(matches!(refused, Err(Error::NothingToLearn { .. })));
        }
        let one = LinearModel::train(&recipe, &documents[..1], &gold[..1], taxonomy.clone(), &Job::silent())
            .unwrap();
        let scores = one.score(&documents[..1], &Request::default()).unwrap();
        assert_eq!(scores.row(0).len(), gold[0].len());
    }
}

#[test]
fn a_corpus_of_features_trains_like_one_of_text() {
    let (documents, gold, taxonomy) = corpus(300, 10);
    let recipe = recipe(LinearHead::Svm);
    let text = LinearModel::train(&recipe, &documents, &gold, taxonomy.clone(), &Job::silent()).unwrap();
    let features: Vec<Document> = documents
        .iter()
        .map(|document| Document {
            features: Some(text.vectorizer().transform(document)),
            ..Document::default()
        })
        .collect();
    let sparse = LinearModel::train(&recipe, &features, &gold, taxonomy, &Job::silent()).unwrap();
    let (a, b) = (text.score(&documents, &Request::default()), sparse.score(&features, &Request::default()));
    for (a, b) in a.unwrap().rows().zip(b.unwrap().rows()) {
        assert_eq!(a[0].0, b[0].0);
        assert!((a[0].1 - b[0].1).abs() < 0.02, "{a:?} {b:?}");
    }
}

#[test]
fn other_labels_and_crafted_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let model = train(&recipe(LinearHead::Parabel));
    saved(&model, folder.path());
    let bundle = folder.path().join("bundle");
    let refused = |taxonomy: Taxonomy| match LinearModel::load(&bundle, taxonomy) {
        Err(Error::Bundle(BundleError::Content { path, .. })) => path.file_name().unwrap().to_owned(),
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(Taxonomy::flat(["one"])), RECIPE);

    let path = bundle.join(MODEL);
    let crafts: [fn(&mut Forest); 18] = [
        |forest| forest.targets[0] = 0,
        |forest| forest.targets[0] = u32::MAX,
        |forest| forest.targets[1] = forest.targets[0],
        |forest| *forest.targets.last_mut().unwrap() = 40,
        |forest| forest.roots.clear(),
        |forest| forest.roots[1] = u32::MAX,
        |forest| forest.roots[1] += 1,
        |forest| forest.leaf.truncate(1),
        |forest| forest.bias.truncate(1),
        |forest| forest.outputs.truncate(1),
        |forest| forest.bias[0] = f32::NAN,
        |forest| forest.weights[0] = f32::NAN,
        |forest| *forest.weights.last_mut().unwrap() = f32::INFINITY,
        |forest| forest.node_outputs[1] = u64::MAX,
        |forest| forest.node_features[1] = u64::MAX,
        |forest| forest.feature_weights[1] = 1 << 40,
        |forest| forest.features[0] = u32::MAX,
        |forest| forest.outputs[0] = 2,
    ];
    for (number, craft) in crafts.into_iter().enumerate() {
        let mut forest = model.forest.clone();
        craft(&mut forest);
        forest.write(&path).unwrap();
        assert_eq!(refused(model.taxonomy().clone()), MODEL, "craft {number}");
    }
    fs::write(bundle.join(RECIPE), "{}").unwrap();
    assert_eq!(refused(model.taxonomy().clone()), RECIPE);
}

#[test]
fn training_and_scoring_stop_when_asked() {
    let (documents, gold, taxonomy) = corpus(20, 5);
    let job = Job::silent();
    job.cancel.cancel();
    let recipe = recipe(LinearHead::Svm);
    let stopped = LinearModel::train(&recipe, &documents, &gold, taxonomy, &job);
    assert!(matches!(stopped, Err(Error::Cancelled)));
    let stopped = train(&recipe).score(&documents, &Request { job, ..Request::default() });
    assert!(matches!(stopped, Err(Error::Cancelled)));
}
