use proptest::prelude::*;

use super::*;
use crate::decode::{DecodeConfig, Thresholds};
use crate::job::Job;
use crate::metrics::arbitrary::{Case, cases};
use crate::metrics::{LabelSpace, MetricOptions, evaluate};
use crate::taxonomy::LabelCounts;

/// `n` documents of one label with this score, of which `right` are gold.
fn repeat(rows: &[(f32, usize, usize)]) -> (Taxonomy, Scores, Vec<LabelSet>) {
    let taxonomy = Taxonomy::flat(["a"]);
    let label = taxonomy.get("a").unwrap();
    let (mut scores, mut gold) = (Scores::new(), Vec::new());
    for &(score, n, right) in rows {
        for i in 0..n {
            scores.push_row(vec![(label, score)]);
            gold.push(if i < right { [label].into_iter().collect() } else { LabelSet::new() });
        }
    }
    (taxonomy, scores, gold)
}

fn config(method: Method) -> CalibrateConfig {
    CalibrateConfig { method, ..CalibrateConfig::default() }
}

#[test]
fn isotonic_steps_become_their_centres() {
    // 0.2 and 0.4 are out of order and pool to (0.3, 0.2).
    let (taxonomy, scores, gold) = repeat(&[(0.2, 10, 3), (0.4, 10, 1), (0.8, 10, 9)]);
    let fitted = config(Method::Isotonic).fit(&scores, &gold, &taxonomy, &Cancel::default()).unwrap();
    for (score, expected) in [(0.0, 0.0), (0.15, 0.1), (0.3, 0.2), (0.55, 0.55), (0.8, 0.9), (1.0, 0.9)] {
        let actual = fitted.global.apply(score);
        assert!((actual - expected).abs() < 2e-3, "{score}: {actual} instead of {expected}");
    }
    let json = serde_json::to_string(&fitted).unwrap();
    assert_eq!(serde_json::from_str::<Calibration>(&json).unwrap(), fitted);
}

#[test]
fn platt_finds_the_curve_that_made_the_gold() {
    // Shares follow sigmoid(0.5 logit(score) - 1), in large numbers so that smoothing does not matter.
    let rows: Vec<(f32, usize, usize)> = (1..10)
        .map(|tenth| {
            let score = f64::from(tenth) / 10.0;
            let z: f64 = 0.5 * (score / (1.0 - score)).ln() - 1.0;
            (score as f32, 10_000, (10_000.0 / (1.0 + (-z).exp())).round() as usize)
        })
        .collect();
    let (taxonomy, scores, gold) = repeat(&rows);
    let fitted = config(Method::Platt).fit(&scores, &gold, &taxonomy, &Cancel::default()).unwrap();
    for &(score, n, right) in &rows {
        assert!((f64::from(fitted.global.apply(score)) - right as f64 / n as f64).abs() < 1e-3);
    }
    let json = serde_json::to_string(&fitted).unwrap();
    assert_eq!(serde_json::from_str::<Calibration>(&json).unwrap(), fitted);
}

#[test]
fn calibration_lowers_the_expected_calibration_error() {
    let (taxonomy, scores, gold) = repeat(&[(0.3, 200, 10), (0.6, 200, 40), (0.9, 200, 120)]);
    let error =
        |scores: &Scores| expected_calibration_error(scores, &gold, 15, EceOver::Pairs).unwrap().unwrap();
    // (0.3 - 0.05 + 0.6 - 0.2 + 0.9 - 0.6) / 3
    assert!((error(&scores) - 0.95 / 3.0).abs() < 1e-6);
    for method in [Method::Isotonic, Method::Platt] {
        let fitted = config(method).fit(&scores, &gold, &taxonomy, &Cancel::default()).unwrap();
        let after = error(&fitted.apply(scores.clone(), &taxonomy));
        assert!(after < 0.02, "{method:?}: {after}");
    }
    let none = config(Method::None).fit(&scores, &gold, &taxonomy, &Cancel::default()).unwrap();
    assert_eq!(none.apply(scores.clone(), &taxonomy), scores);
}

#[test]
fn scores_that_say_nothing_are_left_alone_or_pooled() {
    let (taxonomy, scores, gold) = repeat(&[(0.5, 40, 10)]);
    let fitted = config(Method::Isotonic).fit(&scores, &gold, &taxonomy, &Cancel::default()).unwrap();
    assert!((fitted.global.apply(0.5) - 0.25).abs() < 1e-3);
    // Against gold: no rising curve fits.
    let (taxonomy, scores, gold) = repeat(&[(0.2, 40, 30), (0.9, 40, 5)]);
    assert!(config(Method::Platt).fit(&scores, &gold, &taxonomy, &Cancel::default()).unwrap().is_identity());
    let (taxonomy, scores, gold) = repeat(&[(0.2, 40, 0)]);
    assert!(
        config(Method::Isotonic).fit(&scores, &gold, &taxonomy, &Cancel::default()).unwrap().is_identity()
    );
    assert!(CalibrateConfig { min_positives: 0, ..config(Method::None) }.validate().is_err());
}

#[test]
fn saturated_scores_keep_their_order() {
    let (taxonomy, scores, gold) = repeat(&[(0.2, 40, 5), (0.9, 40, 35)]);
    let many = Taxonomy::flat((0..50).map(|n| format!("{n:02}")));
    // Neighbouring numbers below 1, and numbers that no logit is kept for.
    let mut high = 1.0f32;
    let mut row = Vec::new();
    for (n, label) in many.labels().enumerate() {
        high = high.next_down();
        row.push((label, if n < 25 { high } else { 1e-9 / n as f32 }));
    }
    // Labels in the opposite order, so that ties would turn the ranking round.
    let labels: Vec<LabelId> = row.iter().rev().map(|entry| entry.0).collect();
    let raw = Scores::from_rows([labels.iter().copied().zip(row.iter().map(|entry| entry.1)).collect()]);
    for method in [Method::Isotonic, Method::Platt] {
        let fitted = config(method).fit(&scores, &gold, &taxonomy, &Cancel::default()).unwrap();
        let ranked: Vec<LabelId> =
            fitted.apply(raw.clone(), &many).row(0).iter().map(|entry| entry.0).collect();
        assert_eq!(ranked, labels, "{method:?}");
    }
}

#[test]
fn a_level_with_few_positives_uses_the_global_map() {
    let mut builder = crate::taxonomy::Builder::new();
    builder.edge(Some("a"), "b", &crate::taxonomy::Origin::default());
    let taxonomy = builder.build().unwrap();
    let (a, b) = (taxonomy.get("a").unwrap(), taxonomy.get("b").unwrap());
    let scores = Scores::from_rows((0..100).map(|_| vec![(a, 0.5), (b, 0.5)]));
    // `a` is right 60 times, `b` 10 times.
    let gold: Vec<LabelSet> = (0..100)
        .map(|i| [(a, 60), (b, 10)].into_iter().filter(|(_, n)| i < *n).map(|(label, _)| label).collect())
        .collect();
    let fit = |min_positives| {
        let config = CalibrateConfig { method: Method::Isotonic, pool: Pool::Level, min_positives };
        let row = config
            .fit(&scores, &gold, &taxonomy, &Cancel::default())
            .unwrap()
            .apply(scores.clone(), &taxonomy);
        [a, b].map(|label| row.row(0).iter().find(|entry| entry.0 == label).unwrap().1)
    };
    let near = |actual: [f32; 2], expected: [f32; 2]| {
        actual.iter().zip(expected).all(|(actual, expected)| (actual - expected).abs() < 2e-3)
    };
    assert!(near(fit(1), [0.6, 0.1]), "{:?}", fit(1));
    assert!(near(fit(50), [0.6, 0.35]), "{:?}", fit(50));
}

/// `max over a ≤ i of min over b ≥ i of the mean of a..=b`, of shares by distinct score.
fn naive_isotonic(pairs: &[Pair]) -> Vec<(f32, f64)> {
    let mut scores: Vec<f32> = pairs.iter().map(|pair| pair.0).collect();
    scores.sort_by(f32::total_cmp);
    scores.dedup();
    let mean = |a: f32, b: f32| {
        let inside: Vec<_> = pairs.iter().filter(|pair| a <= pair.0 && pair.0 <= b).collect();
        inside.iter().filter(|pair| pair.1).count() as f64 / inside.len() as f64
    };
    let fitted = |&x: &f32| {
        let lowest = |a: f32| scores.iter().filter(|&&b| b >= x).map(|&b| mean(a, b)).fold(2.0, f64::min);
        (x, scores.iter().filter(|&&a| a <= x).map(|&a| lowest(a)).fold(-1.0, f64::max))
    };
    scores.iter().map(fitted).collect()
}

/// The best value of an objective over all combinations of thresholds, one per group of labels.
fn brute_force(case: &Case, groups: &[usize], objective: Objective) -> f64 {
    let Case { taxonomy, scores, gold, .. } = case;
    let n_groups = groups.iter().max().map_or(0, |max| max + 1);
    // Scores are eighths: these thresholds are all that can make a difference.
    let steps = 9usize;
    let mut best = 0.0f64;
    for combination in 0..steps.pow(n_groups as u32) {
        let threshold = |label: LabelId| {
            let digit = combination / steps.pow(groups[label.index()] as u32) % steps;
            digit as f32 / 8.0
        };
        let predicted: Vec<LabelSet> = scores
            .rows()
            .map(|row| row.iter().filter(|(l, s)| *s > threshold(*l)).map(|&(l, _)| l).collect())
            .collect();
        best = best.max(measure(taxonomy, scores, &predicted, gold, objective));
    }
    best
}

fn measure(
    taxonomy: &Taxonomy,
    scores: &Scores,
    predicted: &[LabelSet],
    gold: &[LabelSet],
    objective: Objective,
) -> f64 {
    let options = MetricOptions { labels: LabelSpace::Gold, ..MetricOptions::default() };
    let counts = LabelCounts::default();
    let report = evaluate(scores, predicted, gold, taxonomy, &counts, &options, &Job::silent()).unwrap();
    let name = match objective {
        Objective::MicroF1 => "micro-f1",
        Objective::MacroF1 => "macro-f1",
        Objective::SampleF1 => "sample-f1",
    };
    report.metrics.get(name).copied().unwrap_or(0.0)
}

fn objectives() -> impl Strategy<Value = Objective> {
    prop_oneof![Just(Objective::MicroF1), Just(Objective::MacroF1), Just(Objective::SampleF1)]
}

fn granularities() -> impl Strategy<Value = Granularity> {
    prop_oneof![Just(Granularity::Global), Just(Granularity::Level), Just(Granularity::Label)]
}

proptest! {
    #[test]
    fn isotonic_equals_the_max_min_formula(pairs in prop::collection::vec((0u8..9, any::<bool>()), 1..30)) {
        let pairs: Vec<Pair> = pairs.into_iter().map(|(step, gold)| (f32::from(step) / 8.0, gold)).collect();
        let fitted = Isotonic::fit(pairs.clone());
        let naive = naive_isotonic(&pairs);
        for block in naive.chunk_by(|a, b| (a.1 - b.1).abs() < 1e-12) {
            let inside = pairs.iter().filter(|pair| block[0].0 <= pair.0 && pair.0 <= block[block.len() - 1].0);
            let scores: Vec<f64> = inside.map(|pair| f64::from(pair.0)).collect();
            let centre = scores.iter().sum::<f64>() / scores.len() as f64;
            let expected = 0.999 * block[0].1 + 0.001 * centre;
            prop_assert!((f64::from(fitted.apply(centre as f32)) - expected).abs() < 1e-5);
        }
    }

    #[test]
    fn labels_of_one_map_keep_their_order(case in cases(), per_level: bool, method in prop_oneof![Just(Method::Isotonic), Just(Method::Platt)]) {
        let Case { taxonomy, scores, gold, .. } = case;
        let pool = if per_level { Pool::Level } else { Pool::Global };
        let fitted = CalibrateConfig { method, pool, min_positives: 1 }.fit(&scores, &gold, &taxonomy, &Cancel::default()).unwrap();
        let after = fitted.apply(scores.clone(), &taxonomy);
        for (row, raw) in after.rows().zip(scores.rows()) {
            prop_assert!(row.iter().all(|entry| (0.0..=1.0).contains(&entry.1)));
            let of = |label: LabelId| row.iter().find(|entry| entry.0 == label).unwrap().1;
            for (&(a, raw_a), &(b, raw_b)) in raw.iter().flat_map(|a| raw.iter().map(move |b| (a, b))) {
                if !per_level || taxonomy.level(a) == taxonomy.level(b) {
                    prop_assert_eq!(raw_a.total_cmp(&raw_b), of(a).total_cmp(&of(b)), "{} {}", raw_a, raw_b);
                }
            }
        }
    }

    #[test]
    fn a_global_threshold_is_the_best_there_is(case in cases(), objective in objectives()) {
        let config = FitThresholds { objective, ..global() };
        let fitted = fit_thresholds(&case.scores, &case.gold, &case.taxonomy, &config, &Cancel::default()).unwrap();
        let best = brute_force(&case, &vec![0; case.taxonomy.n_labels()], objective);
        prop_assert!((fitted.value - best).abs() < 1e-9, "{} instead of {}", fitted.value, best);
    }

    #[test]
    fn the_value_of_thresholds_is_that_of_decoding_with_them(case in cases(), objective in objectives(), granularity in granularities(), min_positives in 0usize..4) {
        let granularity = if objective == Objective::SampleF1 { Granularity::Global } else { granularity };
        let Case { taxonomy, scores, gold, .. } = &case;
        let config = FitThresholds { objective, granularity, min_positives };
        let fitted = fit_thresholds(scores, gold, taxonomy, &config, &Cancel::default()).unwrap();
        let decode = DecodeConfig { threshold: fitted.thresholds, ..DecodeConfig::default() };
        let predicted = decode.build(taxonomy).unwrap().decode(scores);
        let value = measure(taxonomy, scores, &predicted, gold, objective);
        prop_assert!((fitted.value - value).abs() < 1e-9, "{} instead of {}", fitted.value, value);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn thresholds_of_groups_are_jointly_the_best(case in cases(), objective in prop_oneof![Just(Objective::MicroF1), Just(Objective::MacroF1)], by_level: bool) {
        let Case { taxonomy, scores, gold, .. } = &case;
        let granularity = if by_level { Granularity::Level } else { Granularity::Label };
        let groups: Vec<usize> = taxonomy
            .labels()
            .map(|label| if by_level { taxonomy.level(label) - 1 } else { label.index() })
            .collect();
        prop_assume!(groups.iter().all(|&group| group < 3));
        // A group of which no gold label is scored gets the overall threshold, which need not be its best.
        let found = |group: usize| scores.rows().zip(gold).any(|(row, gold)| {
            row.iter().any(|&(label, score)| groups[label.index()] == group && score > 0.0 && gold.contains(label))
        });
        prop_assume!(groups.iter().all(|&group| found(group)));
        let config = FitThresholds { objective, granularity, min_positives: 1 };
        let fitted = fit_thresholds(scores, gold, taxonomy, &config, &Cancel::default()).unwrap();
        let best = brute_force(&case, &groups, objective);
        prop_assert!((fitted.value - best).abs() < 1e-9, "{} instead of {}", fitted.value, best);
    }
}

fn global() -> FitThresholds {
    FitThresholds { granularity: Granularity::Global, ..FitThresholds::default() }
}

#[test]
fn a_threshold_lies_midway_between_neighbouring_scores() {
    let (taxonomy, scores, gold) = repeat(&[(0.9, 3, 3), (0.7, 2, 2), (0.3, 5, 0)]);
    let fitted = fit_thresholds(&scores, &gold, &taxonomy, &global(), &Cancel::default()).unwrap();
    assert_eq!(fitted, FittedThresholds { thresholds: Thresholds::One(0.5), value: 1.0 });

    let close = 0.7f32.next_down();
    let (taxonomy, scores, gold) = repeat(&[(0.7, 5, 5), (close, 5, 0)]);
    let fitted = fit_thresholds(&scores, &gold, &taxonomy, &global(), &Cancel::default()).unwrap();
    assert_eq!(fitted, FittedThresholds { thresholds: Thresholds::One(close), value: 1.0 });
}

#[test]
fn rare_labels_share_a_threshold() {
    let taxonomy = Taxonomy::flat(["common", "rare", "rarer"]);
    let [common, rare, rarer] = ["common", "rare", "rarer"].map(|id| taxonomy.get(id).unwrap());
    let mut scores = Scores::new();
    let mut gold: Vec<LabelSet> = Vec::new();
    for i in 0..20 {
        // `common` is right above 0.75, the others are above 0.25.
        scores.push_row(vec![(common, if i < 10 { 0.875 } else { 0.625 })]);
        gold.push(if i < 10 { [common].into_iter().collect() } else { LabelSet::new() });
    }
    for (label, score, right) in [(rare, 0.375, true), (rarer, 0.375, true), (rare, 0.125, false)] {
        scores.push_row(vec![(label, score)]);
        gold.push(if right { [label].into_iter().collect() } else { LabelSet::new() });
    }
    for objective in [Objective::MicroF1, Objective::MacroF1] {
        let config = FitThresholds { objective, granularity: Granularity::Label, min_positives: 5 };
        let fitted = fit_thresholds(&scores, &gold, &taxonomy, &config, &Cancel::default()).unwrap();
        assert_eq!(fitted.thresholds.resolve(&taxonomy).unwrap(), [0.75, 0.25, 0.25]);
        assert!((fitted.value - 1.0).abs() < 1e-12);
    }
}

#[test]
fn impossible_settings_are_refused() {
    let config = FitThresholds {
        objective: Objective::SampleF1,
        granularity: Granularity::Label,
        ..FitThresholds::default()
    };
    assert_eq!(
        config.validate().unwrap_err().to_string(),
        "`fit_thresholds.granularity` must be `global` for `sample-f1`: label"
    );
    let read: FitThresholds =
        serde_json::from_str(r#"{"objective": "macro-f1", "granularity": "label"}"#).unwrap();
    assert_eq!((read.objective, read.granularity), (Objective::MacroF1, Granularity::Label));
}

#[test]
fn maps_that_no_fit_makes_are_refused_with_the_name_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calibration.json");
    let read = |global: &str| {
        std::fs::write(&path, format!(r#"{{"global": {global}}}"#)).unwrap();
        Calibration::read(&path)
    };
    let isotonic = |points: &str| read(&format!(r#"{{"kind": "isotonic", "points": {points}}}"#));
    isotonic("[[0.1, 0.0], [0.2, 0.5], [1.0, 1.0]]").unwrap();
    for points in [
        "[]",
        "[[0.5, 0.5], [0.2, 0.7]]",
        "[[0.2, 0.7], [0.5, 0.5]]",
        "[[0.2, 2.3]]",
        "[[-0.1, 0.5]]",
        "[[0.2, null]]",
        "[[0.2, 1e999]]",
    ] {
        let error = isotonic(points).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Bundle, "{points}");
        assert!(error.to_string().contains("calibration.json"), "{error}");
    }
    let platt = |slope: &str, intercept: &str| {
        read(&format!(r#"{{"kind": "platt", "slope": {slope}, "intercept": {intercept}}}"#))
    };
    platt("1.5", "-2").unwrap();
    for (slope, intercept) in [("null", "0"), ("0", "0"), ("-1", "0"), ("1", "null")] {
        assert!(platt(slope, intercept).is_err(), "{slope} {intercept}");
    }
    assert!(read(r#"{"kind": "identity"}"#).unwrap().is_identity());
}

#[test]
fn fitting_stops_when_it_is_asked_to() {
    let (taxonomy, scores, gold) = repeat(&[(0.9, 3, 3), (0.3, 5, 0)]);
    let cancel = Cancel::default();
    cancel.cancel();
    let calibration = CalibrateConfig::default().fit(&scores, &gold, &taxonomy, &cancel);
    assert!(matches!(calibration, Err(Error::Cancelled)));
    for objective in [Objective::MicroF1, Objective::MacroF1] {
        let config = FitThresholds { objective, ..FitThresholds::default() };
        let thresholds = fit_thresholds(&scores, &gold, &taxonomy, &config, &cancel);
        assert!(matches!(thresholds, Err(Error::Cancelled)));
    }
}
