//! Dividing documents in two, with a seed.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeSet, BinaryHeap};
use std::ops::Deref;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::error::Result;
use crate::job::Cancel;

/// Divides documents into those that stay and those that are held out, both in ascending order.
///
/// `round(n · fraction)` documents are held out, of two or more at most n − 1. With `stratified`, each label is
/// divided in about the same ratio by iterative stratification (Sechidis, Tsoumakas and Vlahavas, 2011): the label
/// with the fewest documents left is served first, and each of its documents goes where the label is wanted most,
/// or else where most documents are wanted. Then the sides are brought to their exact sizes by the documents whose
/// labels mind least. A label with a single document is not held out while there is room. The work is about
/// O(m log m) for m labels of documents.
///
/// ```
/// let gold = vec![vec![0], vec![0], vec![1], vec![1], vec![0, 1], vec![]];
/// let (kept, held_out) = cladist_core::corpus::split(&gold, 0.5, 7, true, &cladist_core::Cancel::default())?;
/// assert_eq!((kept.len(), held_out.len()), (3, 3));
/// # Ok::<(), cladist_core::Error>(())
/// ```
pub fn split<G, T>(
    gold: &[G],
    fraction: f64,
    seed: u64,
    stratified: bool,
    cancel: &Cancel,
) -> Result<(Vec<usize>, Vec<usize>)>
where
    G: Deref<Target = [T]>,
    T: Ord + Copy,
{
    cancel.check()?;
    let n = gold.len();
    let wanted = (n as f64 * fraction.clamp(0.0, 1.0)).round() as usize;
    let n_held_out = if n >= 2 { wanted.min(n - 1) } else { 0 };
    let mut order: Vec<usize> = (0..n).collect();
    order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));

    let mut held_out = vec![false; n];
    if stratified {
        stratify(gold, &order, n_held_out, &mut held_out, cancel)?;
    } else {
        for &document in &order[..n_held_out] {
            held_out[document] = true;
        }
    }
    Ok((0..n).partition(|&document| !held_out[document]))
}

/// What one label has and wants.
#[derive(Clone, Default)]
struct Wanted {
    count: usize,
    /// Documents not placed yet.
    left: usize,
    /// Documents still wanted on either side.
    kept: f64,
    held_out: f64,
    documents: Vec<usize>,
}

fn stratify<G, T>(
    gold: &[G],
    order: &[usize],
    n_held_out: usize,
    held_out: &mut [bool],
    cancel: &Cancel,
) -> Result<()>
where
    G: Deref<Target = [T]>,
    T: Ord + Copy,
{
    let n = gold.len();
    if n_held_out == 0 {
        return Ok(());
    }
    let fraction = n_held_out as f64 / n as f64;
    let labels_of = numbered(gold);
    let n_labels = labels_of.iter().flatten().max().map_or(0, |&last| last + 1);
    let mut wanted = vec![Wanted::default(); n_labels];
    for &document in order {
        for &label in &labels_of[document] {
            wanted[label].documents.push(document);
        }
    }
    for want in &mut wanted {
        want.count = want.documents.len();
        want.left = want.count;
        want.held_out = want.count as f64 * fraction;
        want.kept = want.count as f64 - want.held_out;
    }

    // How many more documents each side wants; below zero if it has too many.
    let (mut room_kept, mut room_held_out) = ((n - n_held_out) as i64, n_held_out as i64);
    let mut placed = vec![false; n];
    let mut rarest: BTreeSet<(usize, usize)> = wanted.iter().enumerate().map(|(l, w)| (w.left, l)).collect();
    while let Some((_, label)) = rarest.pop_first() {
        cancel.check()?;
        for document in std::mem::take(&mut wanted[label].documents) {
            if std::mem::replace(&mut placed[document], true) {
                continue;
            }
            let single = labels_of[document].iter().any(|&label| wanted[label].count == 1);
            let Wanted { kept, held_out: out, .. } = wanted[label];
            let goes = !single && (out > kept || (out == kept && room_held_out > room_kept));
            held_out[document] = goes;
            *(if goes { &mut room_held_out } else { &mut room_kept }) -= 1;
            for &other in &labels_of[document] {
                let want = &mut wanted[other];
                *(if goes { &mut want.held_out } else { &mut want.kept }) -= 1.0;
                if other != label {
                    rarest.remove(&(want.left, other));
                    want.left -= 1;
                    if want.left > 0 {
                        rarest.insert((want.left, other));
                    }
                }
            }
        }
    }
    for &document in order.iter().filter(|&&document| !placed[document]) {
        held_out[document] = room_held_out > 0;
        room_held_out -= i64::from(room_held_out > 0);
    }
    let surplus = held_out.iter().filter(|&&out| out).count() as i64 - n_held_out as i64;
    rebalance(order, &labels_of, &mut wanted, held_out, surplus, cancel)
}

/// The labels of each document as numbers from 0, ascending.
fn numbered<G, T>(gold: &[G]) -> Vec<Vec<usize>>
where
    G: Deref<Target = [T]>,
    T: Ord + Copy,
{
    let mut names: Vec<T> = gold.iter().flat_map(|labels| labels.iter().copied()).collect();
    names.sort_unstable();
    names.dedup();
    let number = |labels: &G| {
        let mut numbers: Vec<usize> = labels.iter().filter_map(|l| names.binary_search(l).ok()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    };
    gold.iter().map(number).collect()
}

/// A document that may change sides. The cheapest comes first, then the first in seeded order; one that would take a
/// label's only document out of what is kept comes last.
#[derive(PartialEq)]
struct Move {
    single: bool,
    cost: f64,
    position: usize,
}

impl Eq for Move {}

impl Ord for Move {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_cost = self.single.cmp(&other.single).then(self.cost.total_cmp(&other.cost));
        by_cost.then(self.position.cmp(&other.position))
    }
}

impl PartialOrd for Move {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Serving labels leaves the sides a little too large or too small. Moves the `surplus` of held-out documents back (or,
/// below zero, more of them out), one by one the document that brings its labels closest to what they want. A
/// label counts by its squared distance over the root of its documents: between saving every rare label and
/// saving the shares of frequent ones.
fn rebalance(
    order: &[usize],
    labels_of: &[Vec<usize>],
    wanted: &mut [Wanted],
    held_out: &mut [bool],
    surplus: i64,
    cancel: &Cancel,
) -> Result<()> {
    let returns = surplus > 0;
    let price = |position: usize, wanted: &[Wanted]| {
        let labels = labels_of[order[position]].iter().map(|&label| &wanted[label]);
        // Moving changes a distance d, as seen from the side that gains, to d − 1: d² falls by 2d − 1.
        let cost = |want: &Wanted| {
            let distance = if returns { want.kept } else { want.held_out };
            (1.0 - 2.0 * distance) / (want.count as f64).sqrt()
        };
        let single = !returns && labels.clone().any(|want| want.count == 1);
        Move { single, cost: labels.map(cost).sum(), position }
    };
    let movable = (0..order.len()).filter(|&position| held_out[order[position]] == returns);
    let mut moves: BinaryHeap<Reverse<Move>> =
        movable.map(|position| Reverse(price(position, wanted))).collect();
    let mut left = surplus.unsigned_abs();
    while let (1.., Some(Reverse(old))) = (left, moves.pop()) {
        cancel.check()?;
        // Moves only make the others dearer, so an old price that still is the lowest today is the lowest of all.
        let today = price(old.position, wanted);
        if moves.peek().is_some_and(|Reverse(next)| *next < today) {
            moves.push(Reverse(today));
            continue;
        }
        let document = order[old.position];
        held_out[document] = !returns;
        let change = if returns { -1.0 } else { 1.0 };
        for &label in &labels_of[document] {
            wanted[label].kept += change;
            wanted[label].held_out -= change;
        }
        left -= 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(gold: &[Vec<u32>], fraction: f64, seed: u64, stratified: bool) -> (Vec<usize>, Vec<usize>) {
        super::split(gold, fraction, seed, stratified, &Cancel::default()).unwrap()
    }

    fn corpora() -> impl Strategy<Value = Vec<Vec<u32>>> {
        prop::collection::vec(prop::collection::vec(0u32..12, 0..5), 0..120)
    }

    proptest! {
        #[test]
        fn every_document_is_on_one_side_and_the_size_is_as_asked(
            gold in corpora(), fraction in 0.0..0.95f64, seed: u64, stratified: bool,
        ) {
            let (kept, held_out) = split(&gold, fraction, seed, stratified);
            prop_assert!(kept.is_sorted() && held_out.is_sorted());
            let mut all = [kept, held_out.clone()].concat();
            all.sort_unstable();
            prop_assert_eq!(all, (0..gold.len()).collect::<Vec<_>>());
            prop_assert!((held_out.len() as f64 - gold.len() as f64 * fraction).abs() <= 1.0);
            prop_assert_eq!(split(&gold, fraction, seed, stratified).1, held_out);
        }

        #[test]
        fn a_label_with_one_document_is_not_held_out(
            // Twelve labels cannot fill three quarters of 60 documents with single ones.
            gold in prop::collection::vec(prop::collection::vec((0u32..144).prop_map(u32::isqrt), 0..3), 60..120),
            seed: u64,
        ) {
            let (_, held_out) = split(&gold, 0.25, seed, true);
            for label in 0..12 {
                let with: Vec<usize> = (0..gold.len()).filter(|&d| gold[d].contains(&label)).collect();
                if let [only] = with[..] {
                    prop_assert!(!held_out.contains(&only));
                }
            }
        }

        #[test]
        fn frequent_labels_keep_their_share(seed: u64, gold in prop::collection::vec(
            // A document has a label once or not at all.
            prop::collection::btree_set(0u32..8, 1..4).prop_map(Vec::from_iter), 400..600,
        )) {
            let (_, held_out) = split(&gold, 0.2, seed, true);
            for label in 0..8 {
                let all = gold.iter().filter(|labels| labels.contains(&label)).count() as f64;
                let out = held_out.iter().filter(|&&d| gold[d].contains(&label)).count() as f64;
                if all >= 40.0 {
                    prop_assert!((out - 0.2 * all).abs() <= 0.08 * all, "{out} of {all}");
                }
            }
        }
    }

    #[test]
    fn another_seed_holds_out_other_documents() {
        let gold: Vec<Vec<u32>> = (0..200).map(|n| vec![n % 7]).collect();
        assert_ne!(split(&gold, 0.2, 1, true), split(&gold, 0.2, 2, true));
        assert_ne!(split(&gold, 0.2, 1, false), split(&gold, 0.2, 2, false));
    }
}
