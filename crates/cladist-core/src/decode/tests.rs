use proptest::prelude::*;

use super::*;
use crate::metrics::arbitrary::{Case, cases};
use crate::taxonomy::{Builder, Origin};

/// `a` over `b` and `c`; `d` under both `b` and `c`.
fn diamond() -> Taxonomy {
    let mut builder = Builder::new();
    for (parent, child) in [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")] {
        builder.edge(Some(parent), child, &Origin::default());
    }
    builder.build().unwrap()
}

fn scores(taxonomy: &Taxonomy, rows: &[&[(&str, f32)]]) -> Scores {
    Scores::from_rows(
        rows.iter().map(|row| row.iter().map(|&(id, score)| (taxonomy.get(id).unwrap(), score)).collect()),
    )
}

fn chosen(config: &DecodeConfig, rows: &[&[(&str, f32)]]) -> Vec<Vec<String>> {
    let taxonomy = diamond();
    let sets = config.build(&taxonomy).unwrap().decode(&scores(&taxonomy, rows));
    sets.iter().map(|set| set.iter().map(|&label| taxonomy.id(label).to_owned()).collect()).collect()
}

#[test]
fn a_score_equal_to_the_threshold_does_not_pass() {
    let config = DecodeConfig { threshold: Thresholds::One(0.5), ..DecodeConfig::default() };
    assert_eq!(chosen(&config, &[&[("a", 0.5), ("b", 0.6)]]), [["b"]]);
}

#[test]
fn coherence_gives_a_parent_the_best_score_below_it() {
    let taxonomy = diamond();
    let before = scores(&taxonomy, &[&[("a", 0.3), ("b", 0.6), ("c", 0.2)]]);
    let expected = scores(&taxonomy, &[&[("a", 0.6), ("b", 0.6), ("c", 0.2)]]);
    assert_eq!(make_coherent(&before, &taxonomy), expected);
}

#[test]
fn the_deepest_ancestors_that_pass_answer_for_an_unsure_label() {
    let config = DecodeConfig { coarser_when_unsure: true, ..DecodeConfig::default() };
    let rows: &[&[(&str, f32)]] = &[
        &[("d", 0.4), ("b", 0.7), ("c", 0.6)],
        &[("d", 0.4), ("b", 0.7)],
        &[("d", 0.4), ("a", 0.9)],
        &[("d", 0.8)],
        &[("d", 0.4)],
    ];
    let expected: [&[&str]; 5] = [&["b", "c"], &["b"], &["a"], &["d"], &[]];
    assert_eq!(chosen(&config, rows), expected);
}

#[test]
fn a_predicted_count_chooses_the_best_whatever_their_scores() {
    let taxonomy = diamond();
    let row: &[(&str, f32)] = &[("a", 0.1), ("b", 0.2), ("c", 0.1)];
    let scores = scores(&taxonomy, &[row; 5]).with_counts(vec![0, 1, 2, 9, 3]);
    let config = DecodeConfig { rule: Rule::PredictedCount, ..DecodeConfig::default() };
    let sizes = |config: DecodeConfig, scores: &Scores| -> Vec<usize> {
        config.build(&taxonomy).unwrap().decode(scores).iter().map(|set| set.len()).collect()
    };
    assert_eq!(sizes(config.clone(), &scores), [0, 1, 2, 3, 3]);
    assert_eq!(sizes(DecodeConfig { top_k: Some(2), ..config.clone() }, &scores), [0, 1, 2, 2, 2]);
    assert_eq!(sizes(DecodeConfig { floor: 0.15, ..config.clone() }, &scores), [0, 1, 1, 1, 1]);
    assert_eq!(sizes(DecodeConfig::default(), &scores), [0; 5]);
    // Coherence and calibration do not lose the numbers.
    assert_eq!(
        sizes(DecodeConfig { coherence: true, ..config }, &make_coherent(&scores, &taxonomy)),
        [0, 1, 2, 3, 3]
    );
}

#[test]
fn per_level_thresholds_go_on_below_the_last_one() {
    let config = DecodeConfig { threshold: Thresholds::PerLevel(vec![0.9, 0.3]), ..DecodeConfig::default() };
    assert_eq!(chosen(&config, &[&[("a", 0.8), ("b", 0.4), ("c", 0.2), ("d", 0.4)]]), [["b", "d"]]);
}

#[test]
fn pruning_keeps_a_label_with_one_chosen_parent() {
    let config = DecodeConfig { closure: ClosureRule::Prune, ..DecodeConfig::default() };
    let rows: &[&[(&str, f32)]] =
        &[&[("a", 0.6), ("b", 0.7), ("d", 0.9)], &[("a", 0.6), ("d", 0.9)], &[("b", 0.9), ("d", 0.9)]];
    let expected: [&[&str]; 3] = [&["a", "b", "d"], &["a"], &[]];
    assert_eq!(chosen(&config, rows), expected);
}

#[test]
fn an_answer_shows_added_ancestors_with_the_best_score_below_them() {
    let taxonomy = diamond();
    let config = DecodeConfig { closure: ClosureRule::CloseUpward, ..DecodeConfig::default() };
    let answer = config.build(&taxonomy).unwrap().answer(&scores(&taxonomy, &[&[("d", 0.75), ("b", 0.25)]]));
    assert_eq!(answer, scores(&taxonomy, &[&[("a", 0.75), ("b", 0.75), ("c", 0.75), ("d", 0.75)]]));
}

#[test]
fn what_is_excluded_never_comes_back_and_what_is_below_it_stays() {
    let filtered = |include: &[&str], exclude: &[&str], closure: ClosureRule, coherence: bool| {
        let owned = |ids: &[&str]| ids.iter().map(|&id| id.to_owned()).collect();
        let config = DecodeConfig {
            include: owned(include),
            exclude: owned(exclude),
            closure,
            coherence,
            ..DecodeConfig::default()
        };
        chosen(&config, &[&[("b", 0.6), ("d", 0.9)]]).remove(0)
    };
    use ClosureRule::{CloseUpward, None, Prune};
    assert_eq!(filtered(&[], &["b"], None, false), ["d"]);
    assert_eq!(filtered(&[], &["b"], CloseUpward, false), ["a", "c", "d"]);
    assert_eq!(filtered(&[], &["b"], None, true), ["a", "c", "d"]);
    assert_eq!(filtered(&[], &["a", "c"], Prune, false), ["b", "d"]);
    assert_eq!(filtered(&["d"], &[], Prune, true), ["d"]);
    assert_eq!(filtered(&["b/**"], &["d"], CloseUpward, false), ["b"]);
    assert_eq!(filtered(&["d"], &["a/**"], CloseUpward, false), ["d"]);
    assert!(filtered(&[], &["b/**"], CloseUpward, true).is_empty());
}

#[test]
fn settings_are_read_from_each_form_and_refused_by_name() {
    let config: DecodeConfig =
        serde_json::from_str(r#"{"threshold": {"default": 0.4, "labels": {"d": 0.1}}, "top_k": 3}"#).unwrap();
    let taxonomy = diamond();
    assert_eq!(config.threshold.resolve(&taxonomy).unwrap(), [0.4, 0.4, 0.4, 0.1]);
    assert_eq!(Thresholds::from_values(&[0.4, 0.4, 0.4, 0.1], 0.4, &taxonomy), config.threshold);
    let round_trip: DecodeConfig = serde_json::from_str(&serde_json::to_string(&config).unwrap()).unwrap();
    assert_eq!(round_trip, config);

    let error = |json: &str| {
        let config: DecodeConfig = serde_json::from_str(json).unwrap();
        config.build(&taxonomy).unwrap_err().to_string()
    };
    assert_eq!(error(r#"{"threshold": 1.5}"#), "`decode.threshold` must be between 0 and 1: 1.5");
    assert_eq!(error(r#"{"threshold": []}"#), "`decode.threshold` must be a number for level 1: []");
    assert_eq!(error(r#"{"top_k": 0}"#), "`decode.top_k` must be at least 1: 0");
    assert_eq!(
        error(r#"{"threshold": {"default": 0.5, "labels": {"z": 0.5}}}"#),
        "unknown label in `decode.threshold`: `z`"
    );
    assert_eq!(error(r#"{"exclude": ["a", "z/**"]}"#), "unknown label in `decode.exclude`: `z/**`");
    assert_eq!(error(r#"{"include": ["z"]}"#), "unknown label in `decode.include`: `z`");
    assert!(serde_json::from_str::<DecodeConfig>(r#"{"treshold": 0.5}"#).is_err());
    let unreadable = serde_json::from_str::<DecodeConfig>(r#"{"threshold": "high"}"#).unwrap_err();
    assert!(unreadable.to_string().contains("one number per level"), "{unreadable}");
}

#[test]
fn a_chain_of_a_hundred_thousand_labels_is_closed_without_recursion() {
    let mut builder = Builder::new();
    for n in 1..100_000 {
        builder.edge(Some(&format!("{:06}", n - 1)), &format!("{n:06}"), &Origin::default());
    }
    let taxonomy = builder.build().unwrap();
    let row = Scores::from_rows([vec![(taxonomy.get("099999").unwrap(), 0.9)]]);
    let config =
        DecodeConfig { closure: ClosureRule::CloseUpward, coherence: true, ..DecodeConfig::default() };
    assert_eq!(config.build(&taxonomy).unwrap().decode(&row)[0].len(), 100_000);
}

fn configs() -> impl Strategy<Value = DecodeConfig> {
    (
        prop_oneof![
            (0u8..8).prop_map(|t| Thresholds::One(f32::from(t) / 8.0)),
            prop::collection::vec(0u8..8, 1..4)
                .prop_map(|ts| Thresholds::PerLevel(ts.iter().map(|&t| f32::from(t) / 8.0).collect())),
        ],
        prop::option::of(2usize..5),
        0usize..3,
        0u8..3,
        prop_oneof![Just(ClosureRule::None), Just(ClosureRule::CloseUpward), Just(ClosureRule::Prune)],
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(|(threshold, top_k, at_least, floor, closure, coherence, coarser_when_unsure)| {
            DecodeConfig {
                rule: Rule::Threshold,
                threshold,
                top_k,
                at_least,
                floor: f32::from(floor) / 8.0,
                closure,
                coherence,
                coarser_when_unsure,
                ..DecodeConfig::default()
            }
        })
}

/// Entries of a filter: a number for the label, and whether everything below it is meant too.
type Entries = Vec<(u8, bool)>;

fn entries() -> impl Strategy<Value = Entries> {
    prop::collection::vec((any::<u8>(), any::<bool>()), 0..4)
}

fn written(entries: &Entries, taxonomy: &Taxonomy) -> Vec<String> {
    let write = |&(n, below): &(u8, bool)| {
        let label = taxonomy.at(usize::from(n) % taxonomy.n_labels()).unwrap();
        format!("{}{}", taxonomy.id(label), if below { "/**" } else { "" })
    };
    entries.iter().map(write).collect()
}

/// The documented rule, entry by entry.
fn naive_allows(config: &DecodeConfig, label: LabelId, taxonomy: &Taxonomy) -> bool {
    let id = taxonomy.id(label);
    let alone = |entries: &[String]| entries.iter().any(|entry| entry == id);
    let below = |entries: &[String]| {
        let tops = entries.iter().filter_map(|entry| taxonomy.get(entry.strip_suffix("/**")?));
        tops.into_iter().any(|top| taxonomy.close_downward(&[top]).contains(label))
    };
    let DecodeConfig { include, exclude, .. } = config;
    match (alone(exclude), alone(include)) {
        (true, _) => false,
        (false, true) => true,
        (false, false) => !below(exclude) && (include.is_empty() || below(include)),
    }
}

fn naive_coherent(row: &[(LabelId, f32)], taxonomy: &Taxonomy) -> Vec<(LabelId, f32)> {
    let below = |label| taxonomy.close_downward(&[label]);
    let best = |label| {
        row.iter()
            .filter(|(other, _)| below(label).contains(*other))
            .map(|&(_, score)| score)
            .reduce(f32::max)
    };
    let mut all: Vec<_> =
        taxonomy.labels().filter_map(|label| best(label).map(|score| (label, score))).collect();
    all.sort_by(by_rank);
    all
}

/// The steps of the module documentation, one after the other, with sets.
fn naive_decode(config: &DecodeConfig, row: &[(LabelId, f32)], taxonomy: &Taxonomy) -> LabelSet {
    let thresholds = config.threshold.resolve(taxonomy).unwrap();
    let allows = |label| naive_allows(config, label, taxonomy);
    let mut row: Vec<(LabelId, f32)> = row.iter().copied().filter(|entry| allows(entry.0)).collect();
    if config.coherence || config.coarser_when_unsure {
        row = naive_coherent(&row, taxonomy);
        row.retain(|entry| allows(entry.0));
    }
    let above = |label| -> Vec<LabelId> {
        taxonomy.close_upward(&[label]).iter().copied().filter(|&other| other != label).collect()
    };
    let passing: Vec<LabelId> = row
        .iter()
        .filter(|(label, score)| *score > thresholds[label.index()] && *score > config.floor)
        .map(|&(label, _)| label)
        .collect();
    let covered = |label: LabelId| {
        config.coarser_when_unsure && passing.iter().any(|&other| above(other).contains(&label))
    };
    let mut set: Vec<LabelId> = passing.iter().copied().filter(|&label| !covered(label)).collect();
    for &(label, score) in &row {
        if set.len() < config.at_least && score > config.floor && !set.contains(&label) && !covered(label) {
            set.push(label);
        }
    }
    set.sort_by_key(|&label| row.iter().position(|&(other, _)| other == label));
    set.truncate(config.top_k.unwrap_or(usize::MAX));
    match config.closure {
        ClosureRule::None => set.into_iter().collect(),
        ClosureRule::CloseUpward => {
            taxonomy.close_upward(&set).iter().copied().filter(|&label| allows(label)).collect()
        }
        ClosureRule::Prune => {
            // Dropping orphans until none is left; paths may lead through what must not be answered.
            set.extend(taxonomy.labels().filter(|&label| !allows(label)));
            loop {
                let before = set.clone();
                set.retain(|&label| {
                    taxonomy.is_root_child(label)
                        || taxonomy.parents(label).iter().any(|parent| before.contains(parent))
                });
                if set == before {
                    return set.into_iter().filter(|&label| allows(label)).collect();
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn decoding_equals_the_documented_steps(
        case in cases(),
        config in configs(),
        (include, exclude) in (entries(), entries()),
    ) {
        let Case { taxonomy, scores, .. } = case;
        let (include, exclude) = (written(&include, &taxonomy), written(&exclude, &taxonomy));
        let config = DecodeConfig { include, exclude, ..config };
        let decoder = config.build(&taxonomy).unwrap();
        let sets = decoder.decode(&scores);
        for (set, row) in sets.iter().zip(scores.rows()) {
            prop_assert_eq!(set, &naive_decode(&config, row, &taxonomy));
        }
        let answers = decoder.answer(&scores);
        prop_assert!(answers.rows().flatten().all(|&(label, _)| naive_allows(&config, label, &taxonomy)));
        prop_assert_eq!(decoder.decode(&decoder.prepare(scores)), sets);
    }

    #[test]
    fn the_labels_that_decoding_needs_decide_its_sets(case in cases(), config in configs()) {
        let Case { taxonomy, scores, .. } = case;
        let decoder = config.build(&taxonomy).unwrap();
        if let Some(most) = decoder.needed_labels() {
            prop_assert_eq!(decoder.decode(&scores.clone().keep_best(most)), decoder.decode(&scores));
        }
    }

    #[test]
    fn a_limit_on_scores_changes_no_label_set(case in cases(), config in configs(), most in 0usize..4) {
        let Case { taxonomy, scores, .. } = case;
        let decoder = config.build(&taxonomy).unwrap();
        let Decoded { scores: kept, sets } = decoder.decode_keeping(scores.clone(), Some(most));
        prop_assert_eq!(sets, decoder.decode(&scores));
        prop_assert_eq!(kept, decoder.prepare(scores).keep_best(most));
    }

    #[test]
    fn path_decoding_gives_path_consistent_sets(case in cases(), config in configs()) {
        let Case { taxonomy, scores, .. } = case;
        for set in config.build(&taxonomy).unwrap().decode(&scores) {
            match config.closure {
                ClosureRule::None => {}
                ClosureRule::CloseUpward => prop_assert_eq!(&taxonomy.close_upward(&set), &set),
                ClosureRule::Prune => prop_assert!(set.iter().all(|&label| taxonomy.is_root_child(label)
                    || taxonomy.parents(label).iter().any(|&parent| set.contains(parent)))),
            }
        }
    }

    #[test]
    fn coherence_is_the_maximum_over_descendants_and_idempotent(case in cases()) {
        let Case { taxonomy, scores, .. } = case;
        let coherent = make_coherent(&scores, &taxonomy);
        for (row, before) in coherent.rows().zip(scores.rows()) {
            prop_assert_eq!(row, &naive_coherent(before, &taxonomy));
        }
        prop_assert_eq!(make_coherent(&coherent, &taxonomy), coherent);
    }

    #[test]
    fn top_k_equals_the_head_of_a_full_sort(case in cases(), k in 1usize..6) {
        let Case { taxonomy, scores, .. } = case;
        let config = DecodeConfig { threshold: Thresholds::One(0.0), top_k: Some(k), ..DecodeConfig::default() };
        for (set, row) in config.build(&taxonomy).unwrap().decode(&scores).iter().zip(scores.rows()) {
            let mut sorted: Vec<_> = row.iter().filter(|entry| entry.1 > 0.0).collect();
            sorted.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            prop_assert_eq!(set, &sorted.iter().take(k).map(|entry| entry.0).collect::<LabelSet>());
        }
    }
}
