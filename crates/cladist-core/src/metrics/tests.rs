//! Numbers worked out by hand, and what input does to errors and results.

use super::arbitrary::Case;
use super::bootstrap::{ResampleOptions, bootstrap};
use super::compare::{Comparison, Contributions, compare};
use super::naive::{judge, report};
use super::*;
use crate::taxonomy::{Builder, Origin};

fn set(taxonomy: &Taxonomy, labels: &[usize]) -> LabelSet {
    labels.iter().map(|label| taxonomy.get(&label.to_string()).unwrap()).collect()
}

/// Labels 0 and 1 over {2, 3} and {4}.
fn two_levels() -> Taxonomy {
    let mut builder = Builder::new();
    for (parent, child) in [("0", "2"), ("0", "3"), ("1", "4")] {
        builder.edge(Some(parent), child, &Origin::default());
    }
    builder.build().unwrap()
}

fn four_documents(n: usize) -> Case {
    let taxonomy = two_levels();
    let rows = [
        [0.9, 0.2, 0.6, 0.7, 0.1],
        [0.4, 0.8, 0.3, 0.2, 0.5],
        [0.7, 0.6, 0.1, 0.2, 0.3],
        [0.3, 0.2, 0.9, 0.8, 0.1],
    ];
    let gold = [[0, 2], [1, 4], [0, 1], [0, 2]];
    let scores = Scores::from_rows(
        rows.iter().take(n).map(|row| taxonomy.labels().zip(row.iter().copied()).collect()),
    );
    let decoder = crate::decode::DecodeConfig::default();
    Case {
        predicted: decoder.build(&taxonomy).unwrap().decode(&scores),
        gold: gold.iter().take(n).map(|gold| set(&taxonomy, gold)).collect(),
        counts: LabelCounts::default(),
        scores,
        taxonomy,
    }
}

fn assert_metrics(report: &Report, expected: &[(&str, f64)]) {
    for &(name, value) in expected {
        let actual = report.metrics.get(name).unwrap_or_else(|| panic!("{name} is missing"));
        assert!((actual - value).abs() < 5e-8, "{name}: {actual} instead of {value}");
    }
}

#[test]
fn r_precision_of_four_documents() {
    let report = report(&four_documents(4), &MetricOptions::default());
    assert_metrics(
        &report,
        &[
            ("r-precision-level-1", 1.0),
            ("r-precision-level-2", 0.666_666_67),
            ("r-precision-macro", 0.833_333_33),
            ("r-precision-micro", 0.75),
            ("r-precision-gold-weighted", 0.875),
        ],
    );
}

#[test]
fn sets_of_three_documents() {
    let options = MetricOptions { labels: LabelSpace::All, ..MetricOptions::default() };
    let report = report(&four_documents(3), &options);
    assert_metrics(
        &report,
        &[
            ("micro-f1", 0.833_333_33),
            ("macro-f1", 0.6),
            ("hamming-accuracy", 0.866_666_67),
            ("set-accuracy", 0.333_333_33),
            ("macro-f1-gold", 0.75),
        ],
    );
    let counts: Vec<_> =
        report.per_label.iter().map(|row| (row.tp, row.predicted - row.tp, row.support - row.tp)).collect();
    assert_eq!(counts, [(2, 0, 0), (2, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]);
}

#[test]
fn a_wrong_leaf_under_the_right_parent_is_half_right() {
    let taxonomy = two_levels();
    let case = Case {
        scores: Scores::from_rows([vec![], vec![]]),
        gold: vec![set(&taxonomy, &[2]), set(&taxonomy, &[4])],
        predicted: vec![set(&taxonomy, &[3]), set(&taxonomy, &[4])],
        counts: LabelCounts::default(),
        taxonomy,
    };
    let options = MetricOptions { labels: LabelSpace::All, ..MetricOptions::default() };
    assert_metrics(
        &report(&case, &options),
        &[
            ("hierarchical-precision-micro", 0.75),
            ("hierarchical-recall-micro", 0.75),
            ("hierarchical-f1-micro", 0.75),
            ("hierarchical-f1-macro", 0.6),
            ("set-accuracy", 0.5),
        ],
    );
}

#[test]
fn a_sibling_at_the_end_of_a_chain_of_four_is_three_quarters_right() {
    let mut builder = Builder::new();
    for (parent, child) in [("0", "1"), ("1", "2"), ("2", "3"), ("2", "4")] {
        builder.edge(Some(parent), child, &Origin::default());
    }
    let taxonomy = builder.build().unwrap();
    let ranked = |labels: &[usize]| set(&taxonomy, labels).iter().map(|&label| (label, 0.9)).collect();
    let case = Case {
        scores: Scores::from_rows([ranked(&[0, 1, 2, 4])]),
        gold: vec![set(&taxonomy, &[0, 1, 2, 3])],
        predicted: vec![set(&taxonomy, &[4])],
        counts: LabelCounts::default(),
        taxonomy,
    };
    assert_metrics(
        &report(&case, &MetricOptions::default()),
        &[("r-precision-micro", 0.75), ("hierarchical-f1-micro", 0.75)],
    );
}

#[test]
fn two_rankings_with_propensities() {
    let taxonomy = Taxonomy::flat(["0", "1", "2", "3", "4"]);
    let ranking = |labels: [usize; 3]| {
        labels.iter().zip([0.9, 0.8, 0.7]).map(|(&l, score)| (taxonomy.at(l).unwrap(), score)).collect()
    };
    let case = Case {
        scores: Scores::from_rows([ranking([3, 0, 1]), ranking([2, 4, 0])]),
        gold: vec![set(&taxonomy, &[0, 1]), set(&taxonomy, &[2])],
        predicted: vec![LabelSet::new(), LabelSet::new()],
        counts: LabelCounts { n_documents: 100, counts: vec![50, 5, 1, 20, 10] },
        taxonomy,
    };
    let options = MetricOptions::default();
    let weights = options.propensity.weights(&case.counts);
    for (weight, expected) in
        weights.iter().zip([1.682_808_3, 3.131_525_0, 4.605_170_2, 2.103_955_6, 2.557_431_5])
    {
        assert!((weight - expected).abs() < 5e-8, "{weight} instead of {expected}");
    }
    let report = report(&case, &options);
    assert_metrics(
        &report,
        &[
            ("p@1", 0.5),
            ("p@3", 0.5),
            ("ndcg@1", 0.5),
            ("ndcg@3", 0.846_713_2),
            ("psp@1", 0.595_237_4),
            ("psp@3", 1.0),
            ("psndcg@3", 0.822_040_7),
            ("micro-precision", 0.0),
            // Labels 1 and 2 to 4 are few-shot, of which only label 2 is right; label 0 is medium-shot.
            ("few-p@1", 0.25),
            ("few-r@1", 0.25),
            ("few-f@1", 0.25),
            ("few-f@1-present", 0.5),
            ("medium-p@1", 0.0),
        ],
    );
    let few = report.shots.iter().find(|row| row.class == "few" && row.k == 1).unwrap();
    assert_eq!((few.labels, few.present, few.unpredicted), (4, 2, 2));
}

#[test]
fn threads_leave_no_trace_in_results() {
    let base = four_documents(4);
    let n = 5000;
    let row = |i: usize| {
        let scale = 1.0 / (1.0 + (i % 97) as f32);
        base.scores.row(i % 4).iter().map(|&(label, score)| (label, score * scale)).collect()
    };
    let case = Case {
        scores: Scores::from_rows((0..n).map(row)),
        gold: (0..n).map(|i| base.gold[i * 7 % 4].clone()).collect(),
        predicted: (0..n).map(|i| base.predicted[i * 3 % 4].clone()).collect(),
        counts: LabelCounts { n_documents: 90, counts: vec![50, 5, 1, 20, 0] },
        ..base.clone()
    };
    let second = Case { predicted: case.predicted.iter().rev().cloned().collect(), ..case.clone() };
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let options = MetricOptions::default();
            let resample = ResampleOptions { resamples: 20, ..ResampleOptions::default() };
            let rows = compare(&judge(&case), &judge(&second), &options, &resample, &Job::silent()).unwrap();
            (report(&case, &options), rows)
        })
    };
    assert_eq!(on(1), on(3));
}

#[test]
fn a_clear_difference_is_significant_and_none_is_not() {
    let base = four_documents(4);
    let n = 200;
    let gold: Vec<LabelSet> = (0..n).map(|i| base.gold[i % 4].clone()).collect();
    let worse = |every: usize| -> Vec<LabelSet> {
        (0..n).map(|i| if i % every == 0 { LabelSet::new() } else { gold[i].clone() }).collect()
    };
    let make = |predicted: Vec<LabelSet>| Case {
        scores: Scores::from_rows((0..n).map(|i| base.scores.row(i % 4).to_vec())),
        gold: gold.clone(),
        predicted,
        ..base.clone()
    };
    let (a, b) = (make(worse(3)), make(worse(10)));
    let run = |a: &Case, b: &Case| {
        let options = ResampleOptions::default();
        compare(&judge(a), &judge(b), &MetricOptions::default(), &options, &Job::silent()).unwrap()
    };
    let rows = run(&a, &b);
    let row = |name: &str| rows.iter().find(|row| row.metric == name).unwrap();
    for name in ["micro-f1", "macro-f1", "sample-f1", "set-accuracy", "hierarchical-f1-micro"] {
        assert!(row(name).p_value < 0.01 && row(name).ci_low > 0.0, "{:?}", row(name));
        assert!(row(name).ci_low < row(name).difference && row(name).difference < row(name).ci_high);
    }
    // The rankings are the same.
    assert!(row("p@1").p_value > 0.99 && row("p@1").difference == 0.0);

    // Two runs that fail on different thirds do not differ.
    let other: Vec<LabelSet> =
        (0..n).map(|i| if i % 3 == 1 { LabelSet::new() } else { gold[i].clone() }).collect();
    assert!(run(&a, &make(other))[0].p_value > 0.2);
}

#[test]
fn answers_of_several_runs_to_a_document_are_exchanged_together() {
    let base = four_documents(4);
    let n = 40;
    let gold: Vec<LabelSet> = (0..n).map(|i| base.gold[i % 4].clone()).collect();
    let worse = |every: usize| Case {
        scores: Scores::from_rows((0..n).map(|i| base.scores.row(i * (1 + i % every) % 4).to_vec())),
        gold: gold.clone(),
        predicted: (0..n).map(|i| if i % every == 0 { LabelSet::new() } else { gold[i].clone() }).collect(),
        ..base.clone()
    };
    let metrics = ["micro-f1", "macro-f1", "r-precision-macro", "r-precision-level-1"].map(str::to_owned);
    let options = ResampleOptions { metrics: metrics.to_vec(), ..ResampleOptions::default() };
    let collect = |case: &Case| {
        Contributions::collect(&judge(case), &metrics, &MetricOptions::default(), &Job::silent()).unwrap()
    };
    let (a, b) = (collect(&worse(3)), collect(&worse(6)));
    let alone = a.compare(&b, &options, &Job::silent()).unwrap();
    let plain =
        compare(&judge(&worse(3)), &judge(&worse(6)), &MetricOptions::default(), &options, &Job::silent());
    assert_eq!(alone, plain.unwrap());
    // The same answers once more are no more evidence.
    let twice = |runs: &Contributions| {
        let mut joined = runs.clone();
        joined.join(runs).unwrap();
        joined
    };
    let joined = twice(&a).compare(&twice(&b), &options, &Job::silent()).unwrap();
    for (once, twice) in alone.iter().zip(&joined) {
        assert_eq!(once.p_value, twice.p_value, "{}", once.metric);
        assert!((once.difference - twice.difference).abs() < 1e-12, "{once:?} {twice:?}");
    }
    // Runs that differ meet in the middle.
    let mut both = a.clone();
    both.join(&b).unwrap();
    let half = both.compare(&twice(&b), &options, &Job::silent()).unwrap();
    let level = |rows: &[Comparison]| rows.last().unwrap().difference;
    assert!((level(&half) - level(&alone) / 2.0).abs() < 1e-12);

    let moved = Case { gold: gold.iter().rev().cloned().collect(), ..worse(3) };
    let message = a.clone().join(&collect(&moved)).unwrap_err().to_string();
    assert!(message.contains("different gold"), "{message}");
}

#[test]
fn unusable_input_is_refused_with_numbers_and_names() {
    let case = four_documents(4);
    let short = Case { gold: case.gold[..3].to_vec(), ..case.clone() };
    let Case { taxonomy, scores, gold, predicted, counts } = &short;
    let run = evaluate(scores, predicted, gold, taxonomy, counts, &MetricOptions::default(), &Job::silent());
    assert_eq!(run.unwrap_err().to_string(), "4 rows of scores but 3 gold sets");

    let refused = |metric: &str| {
        let options = ResampleOptions { metrics: vec![metric.to_owned()], ..ResampleOptions::default() };
        bootstrap(&judge(&case), &MetricOptions::default(), &options, &Job::silent()).unwrap_err().to_string()
    };
    assert_eq!(refused("f2"), "`metrics` must be names of metrics that can be resampled: `f2`");
    assert_eq!(refused("ece"), "`metrics` must be names of metrics that can be resampled: `ece`");

    let moved = Case { gold: case.gold.iter().rev().cloned().collect(), ..case.clone() };
    let options = ResampleOptions::default();
    let run = compare(&judge(&case), &judge(&moved), &MetricOptions::default(), &options, &Job::silent());
    assert_eq!(run.unwrap_err().to_string(), "the runs have different gold labels for document 2");
}

#[test]
fn propensities_are_read_by_name_and_by_number() {
    let read = |json: &str| serde_json::from_str::<MetricOptions>(json).unwrap().propensity.numbers();
    assert_eq!(read(r#"{"propensity": "amazon-670k"}"#), PropensityNumbers { a: 0.6, b: 2.6 });
    assert_eq!(read(r#"{"propensity": "eurlex"}"#), PropensityNumbers { a: 0.55, b: 1.5 });
    assert_eq!(read(r#"{"propensity": {"a": 0.5, "b": 0.4}}"#), PropensityNumbers { a: 0.5, b: 0.4 });
    let bad: MetricOptions = serde_json::from_str(r#"{"propensity": {"a": 0.5, "b": 0}}"#).unwrap();
    let message = bad.validate().unwrap_err().to_string();
    assert_eq!(message, "`metrics.propensity.b` must be above 0 and at most 1000: 0");
}

#[test]
fn a_table_of_labels_has_one_line_per_label_in_play() {
    let mut tsv = Vec::new();
    report(&four_documents(3), &MetricOptions::default()).per_label_tsv(&mut tsv).unwrap();
    let tsv = String::from_utf8(tsv).unwrap();
    let lines: Vec<&str> = tsv.lines().collect();
    assert_eq!(lines.len(), 6);
    assert_eq!(lines[1], "0\t0\t1\t0\t2\t2\t2\t1.000000\t1.000000\t1.000000");
}

#[test]
fn gold_of_another_taxonomy_is_refused() {
    let foreign = LabelSet::from_iter([Taxonomy::flat(["a", "b", "c"]).get("c").unwrap()]);
    let (taxonomy, scores) = (Taxonomy::flat(["a", "b"]), Scores::from_rows([Vec::new()]));
    let (gold, predicted) = ([foreign], [LabelSet::new()]);
    let options = MetricOptions::default();
    let counts = LabelCounts::default();
    let report = evaluate(&scores, &predicted, &gold, &taxonomy, &counts, &options, &Job::silent());
    assert_eq!(report.unwrap_err().to_string(), "unknown label in gold sets: `2`");
}

#[test]
fn sizes_beyond_reason_are_refused_by_name() {
    let refused = |options: MetricOptions| options.validate().unwrap_err().to_string();
    let default = MetricOptions::default;
    let bins = "`metrics.ece_bins` must be 1 to 10000: ";
    assert_eq!(refused(MetricOptions { ece_bins: 1_000_000_000, ..default() }), format!("{bins}1000000000"));
    assert_eq!(refused(MetricOptions { ece_bins: 0, ..default() }), format!("{bins}0"));
    let message = refused(MetricOptions { k: (1..=101).collect(), ..default() });
    assert_eq!(message, "`metrics.k` must be at most 100 numbers: 101 of them");
    let message = refused(MetricOptions { max_labels: 9, ..default() });
    assert_eq!(message, "`metrics.max_labels` must be 0, or at least the largest of `metrics.k`, 10: 9");
    let options = ResampleOptions { resamples: 99_999_999_999, ..ResampleOptions::default() };
    let message = options.validate().unwrap_err().to_string();
    assert_eq!(message, "`resamples` must be 1 to 1000000: 99999999999");
}

proptest::proptest! {
    #[test]
    fn a_cap_on_labels_takes_the_others_for_not_scored(case in arbitrary::cases(), most in 3usize..6) {
        let Case { taxonomy, scores, gold, predicted, counts } = case;
        let report = |scores: &Scores, max_labels: usize| {
            let options = MetricOptions { k: vec![1, 3], max_labels, ..MetricOptions::default() };
            evaluate(scores, &predicted, &gold, &taxonomy, &counts, &options, &Job::silent()).unwrap()
        };
        let capped = report(&scores, most);
        let expected = report(&scores.clone().keep_best(most), 0);
        proptest::prop_assert_eq!(&capped.metrics, &expected.metrics);
        proptest::prop_assert_eq!(&capped.reliability, &expected.reliability);
        proptest::prop_assert!(capped.conventions.contains_key("ranked-labels"));
        proptest::prop_assert!(!expected.conventions.contains_key("ranked-labels"));
    }

    #[test]
    fn a_cap_changes_no_metric_of_label_sets_and_none_at_k(case in arbitrary::cases()) {
        let Case { taxonomy, scores, gold, predicted, counts } = case;
        let options = MetricOptions { k: vec![1, 3], ..MetricOptions::default() };
        let report = |scores: &Scores| {
            evaluate(scores, &predicted, &gold, &taxonomy, &counts, &options, &Job::silent()).unwrap()
        };
        let whole = report(&scores);
        let capped = report(&scores.keep_best(3));
        let by_set_or_rank = |name: &str| {
            let (info, number) = find(name).unwrap();
            let of_sets = ["f1", "precision", "recall", "hamming", "set-accuracy"];
            let of_sets = of_sets.iter().any(|part| info.name.contains(part)) && !name.contains("r-precision");
            of_sets || name == "accuracy" || number.is_some() && name.contains('@')
        };
        for name in whole.metrics.keys().filter(|name| by_set_or_rank(name)) {
            proptest::prop_assert_eq!(capped.metrics.get(name), whole.metrics.get(name), "{}", name);
        }
    }
}
