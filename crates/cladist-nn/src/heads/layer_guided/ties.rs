//! Which layers of the encoder supervise which level of the taxonomy.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::heads::settings::setting;

/// How levels are tied to layers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "`last`, `one-by-one`, `in-groups`, `hybrid`, or layers by level as [[1, 2], [3]]"
)]
pub enum Ties {
    /// By a rule that fits any number of layers and levels.
    Rule(TieRule),
    /// The layers of each level, from 1.
    Table(Vec<Vec<usize>>),
}

/// The published ways of tying, for N layers and D levels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TieRule {
    /// The last D layers, one for each level.
    #[default]
    Last,
    /// Every (N/D)th layer.
    OneByOne,
    /// All layers, cut into D runs.
    InGroups,
    /// The lowest quarter free; then a layer for each level, and a second one first for the levels with most labels.
    Hybrid,
}

impl TieRule {
    /// Every rule with its name.
    pub const ALL: [(Self, &'static str); 4] = [
        (Self::Last, "last"),
        (Self::OneByOne, "one-by-one"),
        (Self::InGroups, "in-groups"),
        (Self::Hybrid, "hybrid"),
    ];

    /// The layers of each level; `counts` are the labels of each level, at most one level per layer.
    fn table(self, n_layers: usize, counts: &[usize]) -> Vec<Vec<usize>> {
        let n_levels = counts.len();
        let bound = |level: usize| (level * n_layers).div_ceil(n_levels);
        let levels = 1..=n_levels;
        match self {
            Self::Last => levels.map(|level| vec![n_layers - n_levels + level]).collect(),
            Self::OneByOne => levels.map(|level| vec![bound(level)]).collect(),
            Self::InGroups => levels.map(|level| (bound(level - 1) + 1..=bound(level)).collect()).collect(),
            Self::Hybrid => hybrid(n_layers, counts),
        }
    }
}

fn hybrid(n_layers: usize, counts: &[usize]) -> Vec<Vec<usize>> {
    let n_levels = counts.len();
    let free = (n_layers / 4).min(n_layers - n_levels);
    // Levels in the order in which they get more layers: most labels first, the deeper of two equals first.
    let mut order: Vec<usize> = (0..n_levels).collect();
    order.sort_by_key(|&level| (std::cmp::Reverse(counts[level]), std::cmp::Reverse(level)));
    let mut widths = vec![1; n_levels];
    for &level in order.iter().cycle().take(n_layers - free - n_levels) {
        widths[level] += 1;
    }
    let mut next = free + 1;
    widths
        .into_iter()
        .map(|width| {
            let run = next..next + width;
            next += width;
            run.collect()
        })
        .collect()
}

impl Default for Ties {
    fn default() -> Self {
        Self::Rule(TieRule::default())
    }
}

impl Ties {
    /// How many levels can have a head of their own.
    pub(super) fn room(&self, n_layers: usize) -> usize {
        match self {
            Self::Rule(_) => n_layers,
            Self::Table(table) => table.len(),
        }
    }

    /// The layers of each level, whose numbers of labels are given.
    pub(super) fn resolve(&self, n_layers: usize, counts: &[usize]) -> Result<Vec<Vec<usize>>> {
        let n_levels = counts.len();
        match self {
            Self::Rule(rule) if n_levels <= n_layers => Ok(rule.table(n_layers, counts)),
            Self::Rule(_) => Err(Error::Head {
                problem: format!("the taxonomy has {n_levels} levels but the encoder only {n_layers} layers"),
                remedy: "merge the deepest with `layer-guided.merge_levels=true`, or keep fewer with `data.max_levels`",
            }),
            Self::Table(table) => {
                if table.len() != n_levels {
                    return Err(Error::Head {
                        problem: format!(
                            "`layer-guided.ties` has {} rows but the taxonomy {n_levels} levels",
                            table.len()
                        ),
                        remedy: "give one row per level, or merge the deepest with `layer-guided.merge_levels=true`",
                    });
                }
                let wrong = |row: &Vec<usize>| {
                    row.is_empty() || row.iter().any(|layer| !(1..=n_layers).contains(layer))
                };
                match table.iter().find(|row| wrong(row)) {
                    Some(row) => Err(setting(
                        "layer-guided.ties",
                        "rows of layers that the encoder has, from 1",
                        format!("{row:?}"),
                    )),
                    None => Ok(table.clone()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EURLEX: [usize; 6] = [21, 127, 567, 3861, 2284, 481];
    const MIMIC: [usize; 6] = [79, 589, 3982, 9640, 7234, 867];

    /// `2 / 3-4 / 5-6` as a table.
    fn table(text: &str) -> Vec<Vec<usize>> {
        let layers = |run: &str| {
            let (first, last) = run.trim().split_once('-').unwrap_or((run.trim(), run.trim()));
            (first.parse().unwrap()..=last.parse().unwrap()).collect()
        };
        text.split('/').map(layers).collect()
    }

    fn of(rule: TieRule, n_layers: usize, counts: &[usize]) -> Vec<Vec<usize>> {
        Ties::Rule(rule).resolve(n_layers, counts).unwrap()
    }

    #[test]
    fn twelve_layers_and_six_levels_are_tied_as_published() {
        for counts in [EURLEX, MIMIC] {
            assert_eq!(of(TieRule::Last, 12, &counts), table("7/8/9/10/11/12"));
            assert_eq!(of(TieRule::OneByOne, 12, &counts), table("2/4/6/8/10/12"));
            assert_eq!(of(TieRule::InGroups, 12, &counts), table("1-2/3-4/5-6/7-8/9-10/11-12"));
            assert_eq!(of(TieRule::Hybrid, 12, &counts), table("4/5/6-7/8-9/10-11/12"));
        }
    }

    #[test]
    fn other_shapes_follow_the_same_rules() {
        let counts = [4, 20, 50];
        assert_eq!(of(TieRule::Last, 6, &counts), table("4/5/6"));
        assert_eq!(of(TieRule::OneByOne, 6, &counts), table("2/4/6"));
        assert_eq!(of(TieRule::InGroups, 6, &counts), table("1-2/3-4/5-6"));
        assert_eq!(of(TieRule::Hybrid, 6, &counts), table("2/3-4/5-6"));
        assert_eq!(of(TieRule::Last, 4, &[3, 9]), table("3/4"));
        assert_eq!(of(TieRule::Hybrid, 4, &[3, 9]), table("2/3-4"));
        let counts = [3, 30, 90];
        assert_eq!(of(TieRule::Last, 8, &counts), table("6/7/8"));
        assert_eq!(of(TieRule::OneByOne, 8, &counts), table("3/6/8"));
        assert_eq!(of(TieRule::InGroups, 8, &counts), table("1-3/4-6/7-8"));
        assert_eq!(of(TieRule::Hybrid, 8, &counts), table("3-4/5-6/7-8"));
        assert_eq!(of(TieRule::Hybrid, 24, &EURLEX), table("7-9/10-12/13-15/16-18/19-21/22-24"));
    }

    #[test]
    fn every_rule_gives_every_level_layers_in_order_and_ends_at_the_last() {
        for n_layers in 1..=24 {
            for n_levels in 1..=n_layers {
                let counts: Vec<usize> = (0..n_levels).map(|n| (n * 7 + 3) % 11 + 1).collect();
                for (rule, name) in TieRule::ALL {
                    let table = of(rule, n_layers, &counts);
                    let flat = table.concat();
                    assert!(table.iter().all(|row| !row.is_empty()), "{name} {n_layers}x{n_levels}");
                    assert!(flat.is_sorted_by(|a, b| a < b), "{name} {n_layers}x{n_levels}: {table:?}");
                    assert_eq!(flat.last(), Some(&n_layers), "{name} {n_layers}x{n_levels}");
                }
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_with_what_to_do() {
        let message = |ties: Ties, n_layers, counts: &[usize]| {
            let error = ties.resolve(n_layers, counts).unwrap_err();
            format!("{error}; {}", error.remedy().unwrap_or_default())
        };
        let text = message(Ties::default(), 2, &[1, 2, 3]);
        assert!(
            text.contains("3 levels") && text.contains("2 layers") && text.contains("merge_levels"),
            "{text}"
        );
        let text = message(Ties::Table(vec![vec![1]]), 2, &[1, 2]);
        assert!(text.contains("1 rows") && text.contains("2 levels"), "{text}");
        for table in [vec![vec![1], vec![]], vec![vec![0], vec![1]], vec![vec![1], vec![3]]] {
            let text = message(Ties::Table(table), 2, &[1, 2]);
            assert!(text.contains("layer-guided.ties"), "{text}");
        }
        let read = |text: &str| serde_json::from_str::<Ties>(text);
        assert_eq!(read("\"in-groups\"").unwrap(), Ties::Rule(TieRule::InGroups));
        assert_eq!(read("[[1, 2], [3]]").unwrap(), Ties::Table(vec![vec![1, 2], vec![3]]));
        assert!(read("\"all\"").unwrap_err().to_string().contains("one-by-one"));
    }
}
