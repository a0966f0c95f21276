//! Random small cases for property tests: DAGs, tied scores, documents without gold, without scores.

use proptest::prelude::*;

use crate::scores::Scores;
use crate::taxonomy::LabelCounts;
use crate::taxonomy::{Builder, LabelSet, Origin, Taxonomy};

/// Everything that an evaluation sees.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) taxonomy: Taxonomy,
    pub(crate) scores: Scores,
    pub(crate) gold: Vec<LabelSet>,
    pub(crate) predicted: Vec<LabelSet>,
    pub(crate) counts: LabelCounts,
}

/// One document: score steps (0 to 8, ties are likely; 9 and more mean "not scored"), gold and predicted bits.
type Row = (Vec<u8>, Vec<bool>, Vec<bool>);

fn row(n: usize) -> impl Strategy<Value = Row> {
    (
        prop::collection::vec(0u8..12, n),
        prop::collection::vec(prop::bool::weighted(0.25), n),
        prop::collection::vec(prop::bool::weighted(0.3), n),
    )
}

pub(crate) fn dag() -> impl Strategy<Value = Taxonomy> {
    (1usize..10).prop_flat_map(|n| prop::collection::vec((any::<u16>(), any::<u16>()), n)).prop_map(|masks| {
        let mut builder = Builder::new();
        let origin = Origin::default();
        for (child, (some, others)) in masks.iter().enumerate() {
            let id = format!("l{child}");
            builder.label(&id, &origin);
            // Both bits set: few parents each, yet often two.
            for parent in (0..child).filter(|parent| (some & others) >> parent & 1 == 1) {
                builder.edge(Some(&format!("l{parent}")), &id, &origin);
            }
            if some >> 15 == 1 {
                builder.edge(None, &id, &origin);
            }
        }
        builder.build().expect("edges go from lower to higher numbers")
    })
}

pub(crate) fn cases() -> impl Strategy<Value = Case> {
    let documents = dag().prop_flat_map(|taxonomy| {
        let n = taxonomy.n_labels();
        (
            Just(taxonomy),
            prop::collection::vec(row(n), 0..12),
            prop::collection::vec(0u32..150, n),
            0usize..200,
        )
    });
    documents.prop_map(|(taxonomy, rows, counts, n_documents)| {
        let pick =
            |bits: &[bool]| -> LabelSet { taxonomy.labels().filter(|label| bits[label.index()]).collect() };
        let scores = Scores::from_rows(rows.iter().map(|(steps, _, _)| {
            let scored = taxonomy.labels().filter(|label| steps[label.index()] < 9);
            scored.map(|label| (label, f32::from(steps[label.index()]) / 8.0)).collect()
        }));
        // About a third of the labels never occur in training.
        let counts = counts.iter().map(|&count| count.saturating_sub(50)).collect();
        Case {
            gold: rows.iter().map(|(_, gold, _)| pick(gold)).collect(),
            predicted: rows.iter().map(|(_, _, predicted)| pick(predicted)).collect(),
            scores,
            counts: LabelCounts { n_documents, counts },
            taxonomy,
        }
    })
}
