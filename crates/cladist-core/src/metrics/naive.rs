//! Dense, direct versions of every metric, and the properties that tie the fast ones to them.

use proptest::prelude::*;

use super::arbitrary::{Case, cases};
use super::bootstrap::{Interval, ResampleOptions, bootstrap};
use super::compare::compare;
use super::*;
use crate::taxonomy::LabelId;

/// Matrices of documents × labels.
struct Dense {
    taxonomy: Taxonomy,
    train: Vec<u32>,
    n_train: usize,
    /// Labels in rank order; labels without a score are missing.
    ranking: Vec<Vec<usize>>,
    scores: Vec<Vec<Option<f64>>>,
    gold: Vec<Vec<bool>>,
    predicted: Vec<Vec<bool>>,
}

type Matrix = Vec<Vec<bool>>;

fn ratio(a: f64, b: f64) -> f64 {
    if b == 0.0 { 0.0 } else { a / b }
}

fn average(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.into_iter().collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn count(row: &[bool]) -> f64 {
    row.iter().filter(|&&bit| bit).count() as f64
}

fn both(a: &[bool], b: &[bool]) -> f64 {
    a.iter().zip(b).filter(|(a, b)| **a && **b).count() as f64
}

impl Dense {
    fn new(case: &Case) -> Self {
        let n = case.taxonomy.n_labels();
        let bits = |set: &LabelSet| -> Vec<bool> {
            case.taxonomy.labels().map(|label| set.contains(label)).collect()
        };
        let scores: Vec<Vec<Option<f64>>> = case
            .scores
            .rows()
            .map(|row| {
                let mut dense = vec![None; n];
                row.iter().for_each(|&(label, score)| dense[label.index()] = Some(f64::from(score)));
                dense
            })
            .collect();
        let ranking = scores.iter().map(|row| {
            let mut order: Vec<usize> = (0..n).filter(|&label| row[label].is_some()).collect();
            order.sort_by(|&a, &b| row[b].partial_cmp(&row[a]).unwrap().then(a.cmp(&b)));
            order
        });
        Self {
            ranking: ranking.collect(),
            scores,
            gold: case.gold.iter().map(bits).collect(),
            predicted: case.predicted.iter().map(bits).collect(),
            train: case.counts.counts.clone(),
            n_train: case.counts.n_documents,
            taxonomy: case.taxonomy.clone(),
        }
    }

    fn closed(&self, rows: &Matrix) -> Matrix {
        let close = |row: &Vec<bool>| -> Vec<bool> {
            let set: Vec<LabelId> = self.taxonomy.labels().filter(|label| row[label.index()]).collect();
            let closed = self.taxonomy.close_upward(&set);
            self.taxonomy.labels().map(|label| closed.contains(label)).collect()
        };
        rows.iter().map(close).collect()
    }

    fn documents(&self) -> std::ops::Range<usize> {
        0..self.gold.len()
    }

    fn with_gold(&self) -> impl Iterator<Item = usize> + '_ {
        self.documents().filter(|&i| count(&self.gold[i]) > 0.0)
    }

    fn hits(&self, i: usize, k: usize) -> f64 {
        self.ranking[i].iter().take(k).filter(|&&label| self.gold[i][label]).count() as f64
    }

    /// Micro precision, recall, F1.
    fn micro(&self, predicted: &Matrix, gold: &Matrix) -> [Option<f64>; 3] {
        let tp: f64 = predicted.iter().zip(gold).map(|(p, y)| both(p, y)).sum();
        let p: f64 = predicted.iter().map(|row| count(row)).sum();
        let y: f64 = gold.iter().map(|row| count(row)).sum();
        [
            (!self.gold.is_empty()).then(|| ratio(tp, p)),
            (y > 0.0).then(|| tp / y),
            (p + y > 0.0).then(|| 2.0 * tp / (p + y)),
        ]
    }

    fn space(&self, space: LabelSpace, gold: &Matrix, trained: &[bool]) -> Vec<usize> {
        let is_gold = |l: usize| gold.iter().any(|row| row[l]);
        let in_space = |&l: &usize| match space {
            LabelSpace::All => true,
            LabelSpace::Gold => is_gold(l),
            LabelSpace::Seen => is_gold(l) || trained[l],
        };
        (0..self.taxonomy.n_labels()).filter(in_space).collect()
    }

    /// Macro precision, recall, F1.
    fn label_mean(&self, predicted: &Matrix, gold: &Matrix, space: LabelSpace) -> [Option<f64>; 3] {
        let trained: Vec<bool> = self.train.iter().map(|&n| n > 0).collect();
        self.label_mean_within(predicted, gold, space, &trained)
    }

    /// The same where sets are closed: what training saw is closed too.
    fn closed_label_mean(&self, predicted: &Matrix, gold: &Matrix, space: LabelSpace) -> [Option<f64>; 3] {
        let trained = self.closed(&vec![self.train.iter().map(|&n| n > 0).collect()]);
        self.label_mean_within(predicted, gold, space, &trained[0])
    }

    fn label_mean_within(
        &self,
        predicted: &Matrix,
        gold: &Matrix,
        space: LabelSpace,
        trained: &[bool],
    ) -> [Option<f64>; 3] {
        let of = |l: usize| {
            let tp = self.documents().filter(|&i| predicted[i][l] && gold[i][l]).count() as f64;
            let p = self.documents().filter(|&i| predicted[i][l]).count() as f64;
            let y = self.documents().filter(|&i| gold[i][l]).count() as f64;
            [ratio(tp, p), ratio(tp, y), ratio(2.0 * tp, p + y)]
        };
        let labels = if self.gold.is_empty() { Vec::new() } else { self.space(space, gold, trained) };
        [0, 1, 2].map(|part| average(labels.iter().map(|&l| of(l)[part])))
    }

    fn weight(&self, label: usize, options: &MetricOptions) -> f64 {
        let PropensityNumbers { a, b } = options.propensity.numbers();
        let c = (((self.n_train as f64).ln() - 1.0) * (b + 1.0).powf(a)).max(0.0);
        1.0 + c * (f64::from(self.train[label]) + b).powf(-a)
    }

    fn propensity(&self, k: usize, options: &MetricOptions, discount: fn(usize) -> f64) -> Option<f64> {
        let gain = |i: usize| -> f64 {
            let top = self.ranking[i].iter().take(k).enumerate();
            top.filter(|(_, l)| self.gold[i][**l]).map(|(r, &l)| self.weight(l, options) * discount(r)).sum()
        };
        let ideal = |i: usize| -> f64 {
            let mut w: Vec<f64> =
                (0..self.train.len()).filter(|&l| self.gold[i][l]).map(|l| self.weight(l, options)).collect();
            w.sort_by(|a, b| b.total_cmp(a));
            w.iter().take(k).enumerate().map(|(r, w)| w * discount(r)).sum()
        };
        let total: f64 = self.documents().map(ideal).sum();
        (self.n_train > 0 && total > 0.0).then(|| self.documents().map(gain).sum::<f64>() / total)
    }

    fn level(&self, level: usize) -> Option<f64> {
        let at = |l: &usize| self.taxonomy.level(self.taxonomy.at(*l).unwrap()) == level;
        average(self.documents().filter_map(|i| {
            let gold = (0..self.train.len()).filter(|l| at(l) && self.gold[i][*l]).count();
            let top = self.ranking[i].iter().copied().filter(at).take(gold);
            (gold > 0).then(|| top.filter(|&l| self.gold[i][l]).count() as f64 / gold as f64)
        }))
    }

    fn gold_weighted(&self) -> Option<f64> {
        let (mut hits, mut all) = (0, 0);
        for (i, level) in self.documents().flat_map(|i| (1..=self.taxonomy.n_levels()).map(move |n| (i, n))) {
            let at = |l: &usize| self.taxonomy.level(self.taxonomy.at(*l).unwrap()) == level;
            let gold = (0..self.train.len()).filter(|l| at(l) && self.gold[i][*l]).count();
            all += gold;
            let top = self.ranking[i].iter().copied().filter(at).take(gold);
            hits += top.filter(|&l| self.gold[i][l]).count();
        }
        (all > 0).then(|| f64::from(hits as u32) / f64::from(all as u32))
    }

    fn shot(&self, class: &str, letter: &str, k: usize, present: bool) -> Option<f64> {
        let y = |l: usize| self.documents().filter(|&i| self.gold[i][l]).count() as f64;
        let class_of = |l: usize| match self.train[l] {
            0 => "zero",
            1..=20 => "few",
            21..=100 => "medium",
            _ => "many",
        };
        let in_class = |&l: &usize| class_of(l) == class && (y(l) > 0.0 || !(present || class == "zero"));
        average((0..self.train.len()).filter(in_class).filter(|_| self.n_train > 0).map(|l| {
            let top = |&i: &usize| self.ranking[i].iter().take(k).any(|&other| other == l);
            let p = self.documents().filter(top).count() as f64;
            let t = self.documents().filter(top).filter(|&i| self.gold[i][l]).count() as f64;
            let (p, r) = (ratio(t, p), ratio(t, y(l)));
            match letter {
                "p" => p,
                "r" => r,
                _ => ratio(2.0 * p * r, p + r),
            }
        }))
    }

    fn ece(&self, bins: usize, top_only: bool) -> Option<f64> {
        let mut pairs = Vec::new();
        for i in self.documents() {
            let n = if top_only { 1 } else { usize::MAX };
            for &l in self.ranking[i].iter().take(n) {
                pairs.push((self.scores[i][l].unwrap(), self.gold[i][l]));
            }
        }
        let gap = |bin: usize| {
            let inside = |p: f64| ((p * bins as f64).floor() as usize).min(bins - 1) == bin;
            let here: Vec<_> = pairs.iter().filter(|(p, _)| inside(*p)).collect();
            let conf = average(here.iter().map(|pair| pair.0)).unwrap_or(0.0);
            let share = average(here.iter().map(|pair| f64::from(u8::from(pair.1)))).unwrap_or(0.0);
            here.len() as f64 / pairs.len() as f64 * (conf - share).abs()
        };
        (!pairs.is_empty()).then(|| (0..bins).map(gap).sum())
    }

    fn violations(&self) -> (f64, f64) {
        let (mut edges, mut wrong) = (0.0, 0.0);
        for (i, label) in self.documents().flat_map(|i| self.taxonomy.labels().map(move |l| (i, l))) {
            for parent in self.taxonomy.parents(label) {
                if let (Some(child), Some(above)) =
                    (self.scores[i][label.index()], self.scores[i][parent.index()])
                {
                    edges += 1.0;
                    wrong += f64::from(u8::from(child > above));
                }
            }
        }
        (edges, wrong)
    }

    /// Any metric, by name.
    fn value(&self, name: &str, options: &MetricOptions) -> Option<f64> {
        let (gold, predicted) = (&self.gold, &self.predicted);
        let size = |i: usize| count(&gold[i]);
        let (_, k) = find(name).unwrap();
        let k = k.unwrap_or(0);
        if let Some((class, rest)) = name.split_once('-').filter(|(class, _)| shots::CLASSES.contains(class))
        {
            return self.shot(class, &rest[..1], k, rest.ends_with("present"));
        }
        let stem = if name.contains('@') || name.contains("level") {
            name.trim_end_matches(|c: char| c.is_ascii_digit())
        } else {
            name
        };
        match stem {
            "micro-precision" => self.micro(predicted, gold)[0],
            "micro-recall" => self.micro(predicted, gold)[1],
            "micro-f1" => self.micro(predicted, gold)[2],
            "macro-precision" => self.label_mean(predicted, gold, options.labels)[0],
            "macro-recall" => self.label_mean(predicted, gold, options.labels)[1],
            "macro-f1" => self.label_mean(predicted, gold, options.labels)[2],
            "macro-f1-seen" => self.label_mean(predicted, gold, LabelSpace::Seen)[2],
            "macro-f1-all" => self.label_mean(predicted, gold, LabelSpace::All)[2],
            "macro-f1-gold" => self.label_mean(predicted, gold, LabelSpace::Gold)[2],
            "sample-precision" => {
                average(self.documents().map(|i| ratio(both(&predicted[i], &gold[i]), count(&predicted[i]))))
            }
            "sample-recall" => {
                average(self.documents().map(|i| ratio(both(&predicted[i], &gold[i]), size(i))))
            }
            "sample-f1" => average(
                self.documents()
                    .map(|i| ratio(2.0 * both(&predicted[i], &gold[i]), count(&predicted[i]) + size(i))),
            ),
            "hamming-accuracy" => {
                let trained: Vec<bool> = self.train.iter().map(|&n| n > 0).collect();
                let labels = self.space(options.labels, gold, &trained);
                let cells = self.documents().flat_map(|i| labels.iter().map(move |&l| (i, l)));
                average(cells.map(|(i, l)| f64::from(u8::from(gold[i][l] == predicted[i][l]))))
            }
            "set-accuracy" => average(self.documents().map(|i| f64::from(u8::from(gold[i] == predicted[i])))),
            "accuracy" => average(self.with_gold().map(|i| self.hits(i, 1))),
            "p@" => average(self.documents().map(|i| self.hits(i, k) / k as f64)),
            "r@" => average(self.with_gold().map(|i| self.hits(i, k) / size(i))),
            "rp@" => average(self.with_gold().map(|i| self.hits(i, k) / size(i).min(k as f64))),
            "ndcg@" => average(self.with_gold().map(|i| {
                let gain = |rank: usize| 1.0 / ((rank + 2) as f64).log2();
                let dcg: f64 =
                    (0..k).filter(|&r| self.ranking[i].get(r).is_some_and(|&l| gold[i][l])).map(gain).sum();
                dcg / (0..k).take(size(i) as usize).map(gain).sum::<f64>()
            })),
            "psp@" => self.propensity(k, options, |_| 1.0),
            "psndcg@" => self.propensity(k, options, |rank| 1.0 / ((rank + 2) as f64).log2()),
            "r-precision-micro" => {
                average(self.with_gold().map(|i| self.hits(i, size(i) as usize) / size(i)))
            }
            "r-precision-gold-weighted" => self.gold_weighted(),
            "r-precision-level-" => self.level(k),
            "r-precision-macro" => {
                average((1..=self.taxonomy.n_levels()).filter_map(|level| self.level(level)))
            }
            "hierarchical-precision-micro" => self.micro(&self.closed(predicted), &self.closed(gold))[0],
            "hierarchical-recall-micro" => self.micro(&self.closed(predicted), &self.closed(gold))[1],
            "hierarchical-f1-micro" => self.micro(&self.closed(predicted), &self.closed(gold))[2],
            "hierarchical-f1-macro" => {
                self.closed_label_mean(&self.closed(predicted), &self.closed(gold), options.labels)[2]
            }
            "hierarchical-precision-micro-open" => self.micro(predicted, &self.closed(gold))[0],
            "hierarchical-recall-micro-open" => self.micro(predicted, &self.closed(gold))[1],
            "hierarchical-f1-micro-open" => self.micro(predicted, &self.closed(gold))[2],
            "hierarchical-f1-macro-open" => {
                self.closed_label_mean(predicted, &self.closed(gold), options.labels)[2]
            }
            "ece" => self.ece(options.ece_bins, false),
            "ece-top" => self.ece(options.ece_bins, true),
            "coherence-violations" => Some(self.violations()).filter(|v| v.0 > 0.0).map(|v| v.1),
            "coherence-violation-rate" => Some(self.violations()).filter(|v| v.0 > 0.0).map(|v| v.1 / v.0),
            other => panic!("no naive version of {other}"),
        }
    }
}

pub(super) fn judge(case: &Case) -> Judged<'_> {
    Judged {
        scores: &case.scores,
        predicted: &case.predicted,
        gold: &case.gold,
        taxonomy: &case.taxonomy,
        counts: &case.counts,
    }
}

pub(super) fn report(case: &Case, options: &MetricOptions) -> Report {
    let Case { taxonomy, scores, gold, predicted, counts } = case;
    evaluate(scores, predicted, gold, taxonomy, counts, options, &Job::silent()).unwrap()
}

/// Every name that the table can give for these options and levels.
fn all_names(options: &MetricOptions, n_levels: usize) -> Vec<String> {
    let mut names = Vec::new();
    for info in METRICS {
        let classes: &[&str] = if info.name.contains("<class>") { &shots::CLASSES } else { &[""] };
        let numbers: Vec<usize> =
            if info.name.contains("<n>") { (1..=n_levels).collect() } else { options.cutoffs() };
        for class in classes {
            let name = info.name.replace("<class>", class);
            if name.contains('<') {
                names.extend(numbers.iter().map(|&n| table::numbered(&name, n)));
            } else {
                names.push(name);
            }
        }
    }
    names
}

fn spaces() -> impl Strategy<Value = LabelSpace> {
    prop_oneof![Just(LabelSpace::Seen), Just(LabelSpace::All), Just(LabelSpace::Gold)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_metric_equals_its_naive_version(case in cases(), labels in spaces(), bins in 1usize..20) {
        let options = MetricOptions { labels, ece_bins: bins, k: vec![5, 1, 3, 2, 3], ..MetricOptions::default() };
        let report = report(&case, &options);
        let dense = Dense::new(&case);
        let names = all_names(&options, case.taxonomy.n_levels());
        for name in &names {
            let (fast, naive) = (report.metrics.get(name).copied(), dense.value(name, &options));
            let equal = match (fast, naive) {
                (Some(fast), Some(naive)) => (fast - naive).abs() < 1e-9,
                (fast, naive) => fast == naive,
            };
            prop_assert!(equal, "{}: {:?} instead of {:?}", name, fast, naive);
        }
        for name in report.metrics.keys() {
            prop_assert!(names.contains(name), "{} is not in the table", name);
        }
    }

    #[test]
    fn tables_of_levels_and_labels_add_up_to_the_totals(case in cases()) {
        let report = report(&case, &MetricOptions::default());
        let tp: u32 = report.per_label.iter().map(|row| row.tp).sum();
        let predicted: u32 = report.per_label.iter().map(|row| row.predicted).sum();
        let gold: u64 = report.per_level.iter().map(|row| row.scores.gold).sum();
        prop_assert_eq!(predicted as usize, case.predicted.iter().map(|set| set.len()).sum::<usize>());
        prop_assert_eq!(gold as usize, case.gold.iter().map(|set| set.len()).sum::<usize>());
        if let Some(recall) = report.metrics.get("micro-recall") {
            prop_assert!((f64::from(tp) / gold as f64 - recall).abs() < 1e-12);
        }
        let json = serde_json::to_string(&report).unwrap();
        prop_assert_eq!(&serde_json::from_str::<serde_json::Value>(&json).unwrap()["n_documents"], report.n_documents);
        prop_assert_eq!(report.n_labels, report.per_level.iter().map(|row| row.scores.labels).sum::<usize>());
    }

    #[test]
    fn a_branch_counts_what_is_below_its_top(case in cases()) {
        let options = MetricOptions { labels: LabelSpace::All, ..MetricOptions::default() };
        let report = report(&case, &options);
        let dense = Dense::new(&case);
        let (gold, predicted) = (dense.closed(&dense.gold), dense.closed(&dense.predicted));
        let rows: usize = if case.taxonomy.n_levels() > 1 { case.taxonomy.roots().len() } else { 0 };
        prop_assert_eq!(report.per_branch.len(), rows);
        for row in &report.per_branch {
            let below = case.taxonomy.close_downward(&[case.taxonomy.get(&row.id).unwrap()]);
            let inside: Vec<bool> = case.taxonomy.labels().map(|label| below.contains(label)).collect();
            let masked = |rows: &Matrix| -> Matrix {
                rows.iter().map(|bits| bits.iter().zip(&inside).map(|(&bit, &inside)| bit && inside).collect()).collect()
            };
            prop_assert_eq!(row.scores.gold as f64, masked(&dense.gold).iter().map(|bits| count(bits)).sum::<f64>());
            prop_assert_eq!(row.scores.predicted as f64, masked(&dense.predicted).iter().map(|bits| count(bits)).sum::<f64>());
            prop_assert_eq!(row.scores.labels, below.len());
            let f1 = dense.micro(&masked(&dense.predicted), &masked(&dense.gold))[2].unwrap_or(0.0);
            prop_assert!((row.scores.f1 - f1).abs() < 1e-9);
            let closed = dense.micro(&masked(&predicted), &masked(&gold))[2].unwrap_or(0.0);
            prop_assert!((row.hierarchical_f1 - closed).abs() < 1e-9);
        }
    }

    #[test]
    fn coherent_scores_violate_nothing(case in cases()) {
        let (pairs, violated) = Dense::new(&case).violations();
        let before = Violations::count(&case.scores, &case.taxonomy);
        prop_assert_eq!((before.pairs as f64, before.violated as f64), (pairs, violated));
        let coherent = crate::decode::make_coherent(&case.scores, &case.taxonomy);
        prop_assert_eq!(Violations::count(&coherent, &case.taxonomy).violated, 0);
    }

    #[test]
    fn a_resample_has_the_value_of_an_evaluation_of_its_documents(case in cases(), seed in 0u64..1000) {
        let options = MetricOptions::default();
        let judged = judge(&case);
        prop_assume!(!judged.is_empty());
        let names: Vec<String> = all_names(&options, case.taxonomy.n_levels())
            .into_iter()
            .filter(|name| matches!(find(name).unwrap().0.source, Source::Documents(_) | Source::Numbered(_) | Source::LevelMean))
            .collect();
        let samples = samples::Samples::collect(&judged, &names, &options, &Job::silent()).unwrap();
        let times = bootstrap::draw(judged.len(), seed, 3);
        let drawn: Vec<usize> =
            times.iter().enumerate().flat_map(|(i, &n)| std::iter::repeat_n(i, n as usize)).collect();
        let copy = Case {
            scores: Scores::from_rows(drawn.iter().map(|&i| case.scores.row(i).to_vec())),
            gold: drawn.iter().map(|&i| case.gold[i].clone()).collect(),
            predicted: drawn.iter().map(|&i| case.predicted[i].clone()).collect(),
            ..case.clone()
        };
        let expected = report(&copy, &options);
        for (name, metric) in names.iter().zip(&samples) {
            let value = metric.resampled(&bootstrap::weighted(metric, &times));
            match (value, expected.metrics.get(name)) {
                (Some(value), Some(expected)) => prop_assert!((value - expected).abs() < 1e-9, "{}", name),
                (value, expected) => prop_assert_eq!(value.as_ref(), expected, "{}", name),
            }
        }
    }

    #[test]
    fn values_beside_intervals_and_comparisons_are_those_of_the_report(case in cases(), other in cases(), labels in spaces()) {
        let options = MetricOptions { labels, ..MetricOptions::default() };
        let metrics = ["micro-f1", "macro-f1", "macro-f1-all", "hierarchical-f1-macro", "hierarchical-f1-macro-open", "r-precision-macro", "psp@3"];
        let resample = ResampleOptions { metrics: metrics.map(str::to_owned).to_vec(), resamples: 3, ..ResampleOptions::default() };
        let judged = judge(&case);
        let expected = report(&case, &options);
        let intervals = bootstrap(&judged, &options, &resample, &Job::silent()).unwrap();
        for Interval { metric, value, low, high } in &intervals {
            prop_assert!((value - expected.metrics[metric]).abs() < 1e-9, "{}", metric);
            prop_assert!(low <= high);
        }
        for metric in samples::Samples::collect(&judged, &resample.metrics, &options, &Job::silent()).unwrap() {
            let sums = bootstrap::weighted(&metric, &vec![1; judged.len()]);
            if let (Some(drawn), Some(value)) = (metric.resampled(&sums), metric.value(&sums)) {
                prop_assert!((drawn - value).abs() < 1e-12);
            }
        }
        // The second run answers the same documents differently.
        let n = case.taxonomy.n_labels();
        let predicted: Vec<LabelSet> = (0..judged.len())
            .map(|i| other.predicted.get(i).map(|set| set.iter().filter_map(|l| case.taxonomy.at(l.index() % n)).collect()).unwrap_or_default())
            .collect();
        let second = Case { predicted, ..case.clone() };
        let (a, b) = (report(&case, &options), report(&second, &options));
        for row in compare(&judged, &judge(&second), &options, &resample, &Job::silent()).unwrap() {
            prop_assert!((row.a - a.metrics[&row.metric]).abs() < 1e-9, "{}", row.metric);
            prop_assert!((row.b - b.metrics[&row.metric]).abs() < 1e-9, "{}", row.metric);
            prop_assert!(row.p_value > 0.0 && row.p_value <= 1.0);
        }
    }
}
