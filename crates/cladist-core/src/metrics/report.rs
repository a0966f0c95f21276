//! The report of an evaluation: numbers, tables and the conventions behind them.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use super::counts::{LabelCount, mean};
use super::groups::{BranchRow, LevelRow};
use super::options::{MetricOptions, PropensityNumbers};
use super::reliability::ReliabilityBin;
use super::shots::ShotRow;
use super::table::{METRICS, MetricInfo, Source, numbered};
use super::view::Judged;
use super::{Totals, groups};

/// Everything that is known of a run on some documents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Evaluated documents.
    pub n_documents: usize,
    /// Those with a gold label.
    pub n_with_gold: usize,
    /// Labels that macro averages run over.
    pub n_labels: usize,
    /// Values by name; a metric that these documents do not define is left out.
    pub metrics: BTreeMap<String, f64>,
    /// The choices behind the values, in words.
    pub conventions: BTreeMap<String, String>,
    /// One row per level of the taxonomy.
    pub per_level: Vec<LevelRow>,
    /// One row per label under the root, for it and everything below; empty if the taxonomy has but one level. A label
    /// with two parents can count in several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub per_branch: Vec<BranchRow>,
    /// One row per shot class and cut-off; empty if nothing is known of training.
    pub shots: Vec<ShotRow>,
    /// Scores against gold, over all scored pairs; bins without a score are left out.
    pub reliability: Vec<ReliabilityBin>,
    /// Labels with a training document, with gold or predicted, in topological order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub per_label: Vec<LabelRow>,
}

/// A label.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LabelRow {
    /// As written in the vocabulary.
    pub id: String,
    /// For people.
    pub name: String,
    /// From 1.
    pub level: usize,
    /// Training documents.
    pub train: u32,
    /// Evaluated documents with the label gold.
    pub support: u32,
    /// Evaluated documents with the label decoded.
    pub predicted: u32,
    /// Those with both.
    pub tp: u32,
    /// 0 if never decoded.
    pub precision: f64,
    /// 0 if never gold.
    pub recall: f64,
    /// 0 if neither.
    pub f1: f64,
}

impl Report {
    /// Writes the table of labels, with a header line. Tabs and line breaks in names become spaces.
    pub fn per_label_tsv(&self, writer: &mut impl Write) -> io::Result<()> {
        writeln!(writer, "id\tname\tlevel\ttrain\tsupport\tpredicted\ttp\tprecision\trecall\tf1")?;
        let plain = |text: &str| text.replace(['\t', '\n', '\r'], " ");
        for row in &self.per_label {
            let LabelRow { id, name, level, train, support, predicted, tp, precision, recall, f1 } = row;
            writeln!(
                writer,
                "{}\t{}\t{level}\t{train}\t{support}\t{predicted}\t{tp}\t{precision:.6}\t{recall:.6}\t{f1:.6}",
                plain(id),
                plain(name),
            )?;
        }
        Ok(())
    }
}

/// A ratio metric with its cut-off filled in.
pub(super) struct Term {
    pub(super) info: &'static MetricInfo,
    pub(super) number: usize,
    name: String,
}

/// The ratio metrics that the options ask for; levels have their own tally.
pub(super) fn terms(options: &MetricOptions) -> Vec<Term> {
    let mut terms = Vec::new();
    for info in METRICS {
        match info.source {
            Source::Documents(_) => terms.push(Term { info, number: 0, name: info.name.to_owned() }),
            Source::Numbered(_) if info.name.contains("<k>") => {
                for k in options.cutoffs() {
                    terms.push(Term { info, number: k, name: numbered(info.name, k) });
                }
            }
            Source::Numbered(_) | Source::LevelMean | Source::LabelF1(..) | Source::Whole => {}
        }
    }
    terms
}

pub(super) fn assemble(judged: &Judged, options: &MetricOptions, terms: &[Term], totals: &Totals) -> Report {
    let mut metrics = BTreeMap::new();
    let mut put = |name: String, value: Option<f64>| {
        if let Some(value) = value {
            metrics.insert(name, value);
        }
    };
    let n_labels = totals.plain.within(options.labels, judged).count();
    if !judged.is_empty() {
        for (term, (numerator, denominator)) in terms.iter().zip(&totals.ratios.sums) {
            let denominator = denominator.value();
            let value =
                if denominator > 0.0 { Some(numerator.value() / denominator) } else { term.info.empty };
            put(term.name.clone(), value);
        }
        let label_mean =
            |value: fn(LabelCount) -> f64| mean(totals.plain.within(options.labels, judged), value);
        put("macro-precision".to_owned(), label_mean(LabelCount::precision));
        put("macro-recall".to_owned(), label_mean(LabelCount::recall));
        for info in METRICS {
            if let Source::LabelF1(sets, space) = info.source {
                let within = totals.labels(sets).within(space.unwrap_or(options.labels), judged);
                put(info.name.to_owned(), mean(within, LabelCount::f1));
            }
        }
        let errors: u64 = totals.plain.within(options.labels, judged).map(LabelCount::errors).sum();
        let cells = n_labels as f64 * judged.len() as f64;
        put("hamming-accuracy".to_owned(), (cells > 0.0).then(|| 1.0 - errors as f64 / cells));
    }

    let mut level_values = Vec::new();
    for (n, &(sum, documents)) in totals.levels.0.iter().enumerate() {
        let value = (documents > 0).then(|| sum.value() / documents as f64);
        put(numbered("r-precision-level-<n>", n + 1), value);
        level_values.push(value);
    }
    let defined: Vec<f64> = level_values.iter().flatten().copied().collect();
    let level_mean = defined.iter().sum::<f64>() / defined.len() as f64;
    put("r-precision-macro".to_owned(), (!defined.is_empty()).then_some(level_mean));

    let shots = totals.shots.rows(judged, options, |label| totals.plain.labels[label].support);
    for row in &shots {
        for (means, suffix) in [(row.all, ""), (row.only_present, "-present")] {
            for (letter, value) in
                [("p", means.map(|m| m.p)), ("r", means.map(|m| m.r)), ("f", means.map(|m| m.f))]
            {
                put(format!("{}-{letter}@{}{suffix}", row.class, row.k), value);
            }
        }
    }

    put("ece".to_owned(), totals.pairs.error());
    put("ece-top".to_owned(), totals.top_label.error());
    let rate = totals.violations.rate();
    put("coherence-violations".to_owned(), rate.map(|_| totals.violations.violated as f64));
    put("coherence-violation-rate".to_owned(), rate);

    Report {
        n_documents: judged.len(),
        n_with_gold: totals.with_gold as usize,
        n_labels,
        metrics,
        conventions: conventions(judged, options),
        per_level: groups::per_level(judged, options.labels, totals, &level_values),
        per_branch: groups::per_branch(judged, options.labels, totals),
        shots,
        reliability: totals.pairs.bins(),
        per_label: per_label(judged, totals),
    }
}

fn conventions(judged: &Judged, options: &MetricOptions) -> BTreeMap<String, String> {
    let PropensityNumbers { a, b } = options.propensity.numbers();
    let (few, medium) = (options.few_at_most, options.medium_at_most);
    let training = if judged.counts.n_documents == 0 { " (left out: no training counts)" } else { "" };
    let seen = options.top_k(judged.gold.len(), judged.taxonomy.n_labels()).map(|n| {
        let others = "others count as not scored, also by R-Precision, ece and coherence";
        ("ranked-labels", format!("the {n} best of each document; {others}"))
    });
    [
        ("macro-labels", format!("{}; for hierarchical macro F1, these and their ancestors", options.labels.describe())),
        ("hamming-accuracy", "over the labels of macro-labels".to_owned()),
        ("ranking-ties", "by ascending label; labels without a score come last and are never hits".to_owned()),
        ("documents-without-gold", "skipped by r@k, rp@k, ndcg@k, accuracy and R-Precision; counted by p@k and sample averages".to_owned()),
        ("r-precision-micro", "one ranking of all levels; r-precision-gold-weighted divides level-wise hits by gold".to_owned()),
        ("r-precision-macro", "plain mean of the levels with gold".to_owned()),
        ("hierarchical-f1", "closed: gold and predictions with ancestors; open: only gold with ancestors; the root is no label".to_owned()),
        ("propensity", format!("A = {a}, B = {b}{training}")),
        ("shots", format!("training documents: zero 0 (with gold here), few 1 to {few}, medium {} to {medium}, many above{training}", few.saturating_add(1))),
        ("ece", format!("{} bins of equal width; ece over scored pairs, ece-top over best-ranked labels", options.ece_bins)),
    ]
    .into_iter()
    .chain(seen)
    .map(|(name, words)| (name.to_owned(), words))
    .collect()
}

fn per_label(judged: &Judged, totals: &Totals) -> Vec<LabelRow> {
    let rows = judged.taxonomy.labels().zip(&totals.plain.labels).filter_map(|(label, &count)| {
        let train = judged.train(label);
        let LabelCount { tp, predicted, support } = count;
        (train > 0 || support > 0 || predicted > 0).then(|| LabelRow {
            id: judged.taxonomy.id(label).to_owned(),
            name: judged.taxonomy.name(label).to_owned(),
            level: judged.taxonomy.level(label),
            train,
            support,
            predicted,
            tp,
            precision: count.precision(),
            recall: count.recall(),
            f1: count.f1(),
        })
    });
    rows.collect()
}
