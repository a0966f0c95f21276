//! Labels that go together.

use std::collections::HashMap;

use serde::Serialize;

/// Two labels and the documents that have both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PairFrequency {
    /// The two, in order of id.
    pub labels: (String, String),
    /// How many documents have both.
    pub documents: u32,
}

/// Pairs and their counts in bounded memory, after Misra and Gries (1982): when the table is full, every count loses one
/// and what reaches zero goes. Counts are then too low by at most the number of times that happened.
pub(super) struct Pairs {
    counts: HashMap<(u32, u32), u32>,
    capacity: usize,
    /// Whether the table was ever full.
    pub(super) approximate: bool,
}

impl Default for Pairs {
    fn default() -> Self {
        Self { counts: HashMap::new(), capacity: 1 << 20, approximate: false }
    }
}

impl Pairs {
    /// Counts a pair, the smaller number first.
    pub(super) fn add(&mut self, a: u32, b: u32) {
        if self.counts.len() >= self.capacity && !self.counts.contains_key(&(a, b)) {
            self.approximate = true;
            self.counts.retain(|_, count| {
                *count -= 1;
                *count > 0
            });
            return;
        }
        *self.counts.entry((a, b)).or_default() += 1;
    }

    /// The most frequent pairs, named.
    pub(super) fn top(&self, top: usize, names: &[String]) -> Vec<PairFrequency> {
        let mut pairs: Vec<PairFrequency> = Vec::new();
        let mut least = 0;
        for (&(a, b), &documents) in &self.counts {
            if documents < least {
                continue;
            }
            let (a, b) = (&names[a as usize], &names[b as usize]);
            let labels = if a <= b { (a.clone(), b.clone()) } else { (b.clone(), a.clone()) };
            pairs.push(PairFrequency { labels, documents });
            if pairs.len() > top.saturating_mul(4).max(64) {
                sort_pairs(&mut pairs, top);
                least = pairs.last().map_or(0, |pair| pair.documents);
            }
        }
        sort_pairs(&mut pairs, top);
        pairs
    }
}

fn sort_pairs(pairs: &mut Vec<PairFrequency>, top: usize) {
    pairs.sort_by(|a, b| b.documents.cmp(&a.documents).then_with(|| a.labels.cmp(&b.labels)));
    pairs.truncate(top);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frequent_pair_survives_a_full_table_with_a_count_that_is_not_too_high() {
        let mut pairs = Pairs { capacity: 3, ..Pairs::default() };
        for n in 0..40 {
            pairs.add(0, 1);
            if n % 4 == 0 {
                pairs.add(2, 3 + n);
            }
        }
        assert!(pairs.approximate && pairs.counts.len() <= 3);
        let names: Vec<String> = (0..50).map(|n| format!("label {n}")).collect();
        let top = pairs.top(1, &names);
        assert_eq!(top[0].labels, ("label 0".to_owned(), "label 1".to_owned()));
        assert!((30..=40).contains(&top[0].documents), "{}", top[0].documents);
    }

    #[test]
    fn equal_pairs_come_in_order_of_their_names() {
        let mut pairs = Pairs::default();
        let names: Vec<String> = (0..200).map(|n| format!("{n:03}")).collect();
        for n in (0..199).rev() {
            pairs.add(n, n + 1);
        }
        pairs.add(7, 9);
        pairs.add(7, 9);
        let top = pairs.top(3, &names);
        let labels: Vec<_> = top.iter().map(|pair| (pair.labels.0.as_str(), pair.documents)).collect();
        assert_eq!(labels, [("007", 2), ("000", 1), ("001", 1)]);
        assert!(!pairs.approximate);
    }
}
