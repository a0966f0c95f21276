use cladist::Work;
use cladist::config::Recipe;

use super::*;

/// Options in short: settings, values to try, variants and so on.
fn options(change: impl FnOnce(&mut ExperimentOptions<'static>)) -> ExperimentOptions<'static> {
    let mut layers = Layers::default();
    layers.over.set("encoder", "scratch:tiny").unwrap();
    let spec = Spec {
        layers,
        corpus: CorpusSource::default(),
        bad_lines: BadLinePolicy::Stop,
        device: "cpu".to_owned(),
        work: Work::default(),
    };
    let mut options = ExperimentOptions {
        name: "layer-guided".to_owned(),
        out: "x".into(),
        spec,
        variants: Vec::new(),
        tries: Vec::new(),
        no_grid: false,
        seeds: 3,
        overwrite: false,
    };
    change(&mut options);
    options
}

fn planned(change: impl FnOnce(&mut ExperimentOptions<'static>)) -> Vec<PlannedVariant> {
    let args = options(change);
    let experiment = experiments::find("layer-guided").unwrap();
    let axes = axes(experiment, &args).unwrap();
    let chosen = variants(experiment, &args.variants).unwrap();
    chosen.into_iter().map(|variant| plan_variant(experiment, variant, &axes, &args).unwrap()).collect()
}

fn texts(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

#[test]
fn every_experiment_resolves_with_its_grid() {
    for experiment in experiments::ALL {
        let args = options(|_| {});
        let axes = axes(experiment, &args).unwrap();
        for variant in experiment.variants {
            let planned = plan_variant(experiment, variant, &axes, &args).unwrap();
            let n: usize = experiment.grid.iter().map(|axis| axis.values.len()).product();
            assert_eq!(planned.combinations.len(), n, "{}", variant.name);
        }
    }
}

#[test]
fn dropouts_of_head_and_encoder_vary_together() {
    for variant in planned(|_| {}) {
        for combination in &variant.combinations {
            let table = Settings::of(&combination.config).unwrap().flat();
            let head = combination.config.head();
            assert_eq!(table[&format!("{head}.dropout")], table["train.dropout"]);
            let named = &combination.values[1];
            assert_eq!(named.0, "dropout");
            assert_eq!(table["train.dropout"].as_float().unwrap(), named.1.parse::<f64>().unwrap());
        }
        assert_eq!(
            variant.combinations[1].folder,
            format!("{}/learning-rate-2e-5_dropout-0.1", variant.variant.name)
        );
    }
}

#[test]
fn what_the_user_decides_is_not_varied_and_wins_over_what_is_shared() {
    let variants = planned(|options| {
        options.spec.layers.over.set("train.learning_rate", 1e-3).unwrap();
        options.spec.layers.set = texts(&["train.patience=9"]);
    });
    for combination in variants.iter().flat_map(|variant| &variant.combinations) {
        assert_eq!(combination.values.len(), 1);
        let Recipe::Neural(recipe) = &combination.config.recipe else { unreachable!("heads on encoders") };
        assert_eq!((recipe.train.learning_rate, recipe.train.patience), (1e-3, 9));
    }
    let variants = planned(|options| {
        options.spec.layers.set = texts(&["flat.dropout=0.3", "head.dropout=0.4"]);
    });
    let dropout = |n: usize| Settings::of(&variants[n].combinations[0].config).unwrap().flat();
    assert_eq!(dropout(0)["flat.dropout"].as_float(), Some(0.4));
    assert_eq!(dropout(1)["layer-guided.dropout"].as_float(), Some(0.4));
    assert!(variants.iter().all(|variant| variant.combinations.len() == 3));
    let variants = planned(|options| {
        options.variants = texts(&["hybrid", "flat"]);
        options.tries = texts(&["flat.dropout=0.2,0.3,0.4", "train.epochs=1,2"]);
    });
    let counts: Vec<(&str, usize)> =
        variants.iter().map(|variant| (variant.variant.name, variant.combinations.len())).collect();
    // The dropout of another head does not concern `hybrid`.
    assert_eq!(counts, [("flat", 6), ("hybrid", 2)]);
    assert_eq!(planned(|options| options.no_grid = true)[0].combinations[0].folder, "flat/as-given");
}

#[test]
fn folders_of_different_values_differ() {
    let variants = planned(|options| {
        options.variants = texts(&["flat"]);
        options.tries = texts(&["encoder=a/b,a-b,a+b"]);
    });
    let folders: BTreeSet<String> =
        variants[0].combinations.iter().map(|combination| combination.folder.clone()).collect();
    assert_eq!(folders.len(), 3, "{folders:?}");
    assert!(folders.iter().all(|folder| folder.matches('/').count() == 1));
}
