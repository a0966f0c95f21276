//! From statements about labels to a checked [`Taxonomy`], in linear time and with every problem named.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::cycles::{self, Edge};
use super::{Adjacency, LabelId, Origin, Problem, ProblemKind, Problems, Taxonomy};

/// What a vocabulary says of a label.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Label {
    /// Unique in the vocabulary.
    pub id: String,
    /// The preferred name.
    pub name: Option<String>,
    /// A sentence or more on what belongs under the label.
    pub description: Option<String>,
    /// Other names.
    pub alternatives: Vec<String>,
}

/// What the builder does when labels form a cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnCycle {
    /// Report it as a problem.
    #[default]
    Refuse,
    /// Drop the edge that closes it, seen from the root, and count it.
    Break,
}

/// Collects statements in any order and checks them together.
///
/// ```
/// use cladist_core::taxonomy::{Builder, Origin};
/// let mut builder = Builder::new();
/// let here = Origin::default();
/// builder.edge(None, "animals", &here);
/// builder.edge(Some("animals"), "dogs", &here);
/// let taxonomy = builder.build()?;
/// let dogs = taxonomy.get("dogs").ok_or("dogs are missing")?;
/// assert_eq!(taxonomy.level(dogs), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct Builder {
    labels: Vec<Label>,
    declared: Vec<Option<Origin>>,
    /// Whether something hangs the label directly under the root.
    rooted: Vec<bool>,
    index: HashMap<String, u32>,
    edges: Vec<Edge>,
    problems: Vec<Problem>,
    declared_parents_only: bool,
    on_cycle: OnCycle,
    broken: Vec<(String, String)>,
}

impl Builder {
    /// A builder without labels.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Chooses what happens to cycles.
    pub fn on_cycle(&mut self, choice: OnCycle) {
        self.on_cycle = choice;
    }

    /// Asks that every parent be declared, by [`Builder::label`], [`Builder::declare`] or as somebody's child.
    pub fn require_declared_parents(&mut self) {
        self.declared_parents_only = true;
    }

    fn slot(&mut self, id: &str) -> usize {
        if let Some(&slot) = self.index.get(id) {
            return slot as usize;
        }
        let slot = self.labels.len();
        self.index.insert(id.to_owned(), slot as u32);
        self.labels.push(Label { id: id.to_owned(), ..Label::default() });
        self.declared.push(None);
        self.rooted.push(false);
        slot
    }

    /// Mentions a label; saying it twice is fine.
    pub fn label(&mut self, id: &str, origin: &Origin) {
        if id.is_empty() {
            return self.problem(origin, ProblemKind::EmptyId);
        }
        let slot = self.slot(id);
        self.declared[slot].get_or_insert_with(|| origin.clone());
    }

    /// Declares a label with all that is known of it; saying it twice is a problem.
    pub fn declare(&mut self, label: Label, origin: &Origin) {
        if label.id.is_empty() {
            return self.problem(origin, ProblemKind::EmptyId);
        }
        let slot = self.slot(&label.id);
        if let Some(first) = self.declared[slot].clone() {
            return self.problem(origin, ProblemKind::DuplicateId { id: label.id, first });
        }
        self.declared[slot] = Some(origin.clone());
        self.labels[slot] = label;
    }

    /// Names a label that is there already or comes later. Two different names are a problem.
    pub fn name(&mut self, id: &str, name: &str, origin: &Origin) {
        if id.is_empty() {
            return self.problem(origin, ProblemKind::EmptyId);
        }
        if name.is_empty() {
            return;
        }
        let slot = self.slot(id);
        match &self.labels[slot].name {
            Some(first) if first != name => {
                let kind = ProblemKind::ConflictingName {
                    id: id.to_owned(),
                    name: name.to_owned(),
                    first: first.clone(),
                };
                self.problem(origin, kind);
            }
            Some(_) => {}
            None => self.labels[slot].name = Some(name.to_owned()),
        }
    }

    /// Replaces what is known of a label by what `label` says: its name and description where it has one, and
    /// its alternatives if any. Returns whether there is such a label; if not, nothing changes.
    pub fn describe(&mut self, label: Label) -> bool {
        let Some(&slot) = self.index.get(&label.id) else { return false };
        let known = &mut self.labels[slot as usize];
        known.name = label.name.or_else(|| known.name.take());
        known.description = label.description.or_else(|| known.description.take());
        if !label.alternatives.is_empty() {
            known.alternatives = label.alternatives;
        }
        true
    }

    /// What is known of a label so far.
    #[must_use]
    pub fn known(&self, id: &str) -> Option<&Label> {
        self.index.get(id).map(|&slot| &self.labels[slot as usize])
    }

    /// Puts `child` under `parent`; `None` is the root. The child counts as declared, the parent does not.
    /// The same edge twice is one edge.
    pub fn edge(&mut self, parent: Option<&str>, child: &str, origin: &Origin) {
        if child.is_empty() || parent == Some("") {
            return self.problem(origin, ProblemKind::EmptyId);
        }
        // The parent first: slots are in reading order.
        let parent = parent.map(|parent| self.slot(parent));
        let child = self.slot(child);
        self.declared[child].get_or_insert_with(|| origin.clone());
        match parent {
            Some(parent) => self.edges.push((parent as u32, child as u32, origin.clone())),
            None => self.rooted[child] = true,
        }
    }

    /// Notes a problem that a parser found; building will fail with it and all others.
    pub fn problem(&mut self, origin: &Origin, kind: ProblemKind) {
        self.problems.push(Problem { origin: origin.clone(), kind });
    }

    /// How many problems were noted so far.
    pub(super) fn n_problems(&self) -> usize {
        self.problems.len()
    }

    /// Adds the problems, not the labels, that another builder noted.
    pub(super) fn take_problems(&mut self, other: Self) {
        self.problems.extend(other.problems);
    }

    /// Whether nothing was said yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Whether a label of this id was mentioned, as child, parent or by declaration.
    #[must_use]
    pub fn contains(&self, id: &str) -> bool {
        self.index.contains_key(id)
    }

    /// Checks everything and builds, or returns every problem found.
    pub fn build(self) -> Result<Taxonomy, Problems> {
        self.build_reporting().map(|(taxonomy, _)| taxonomy)
    }

    /// Like [`Builder::build`], with the edges that [`OnCycle::Break`] dropped (parent, child).
    pub fn build_reporting(mut self) -> Result<(Taxonomy, Vec<(String, String)>), Problems> {
        if self.declared_parents_only {
            self.check_parents();
        }
        let order = self.order();
        if self.problems.is_empty() {
            let broken = std::mem::take(&mut self.broken);
            Ok((self.finish(&order), broken))
        } else {
            self.problems.sort_by(|a, b| {
                (a.origin.path.as_deref(), a.origin.line).cmp(&(b.origin.path.as_deref(), b.origin.line))
            });
            Err(Problems(self.problems))
        }
    }

    /// For statements that cannot have problems: without edges, or a part of another taxonomy.
    pub(super) fn build_acyclic(mut self) -> Taxonomy {
        let order = self.order();
        self.finish(&order)
    }

    fn check_parents(&mut self) {
        let mut unknown = Vec::new();
        for (parent, child, origin) in &self.edges {
            if self.declared[*parent as usize].is_none() {
                let kind = ProblemKind::UnknownParent {
                    parent: self.labels[*parent as usize].id.clone(),
                    child: self.labels[*child as usize].id.clone(),
                };
                unknown.push(Problem { origin: origin.clone(), kind });
            }
        }
        self.problems.extend(unknown);
    }

    /// Old slots in their new order, by (longest path from the root, id); empty if cycles are refused and found.
    fn order(&mut self) -> Vec<u32> {
        // Stable: of several statements of one edge, the first gives its origin.
        self.edges.sort_by_key(|&(parent, child, _)| (parent, child));
        self.edges.dedup_by_key(|&mut (parent, child, _)| (parent, child));
        let mut starts = self.starts();
        let (mut depth, waiting) = self.depths(&starts);
        if waiting.iter().any(|&n| n > 0) {
            self.untie(&starts, &waiting);
            if self.on_cycle == OnCycle::Refuse {
                return Vec::new();
            }
            starts = self.starts();
            (depth, _) = self.depths(&starts);
        }
        let mut order: Vec<u32> = (0..self.labels.len() as u32).collect();
        order.sort_by(|&a, &b| {
            let (a, b) = (a as usize, b as usize);
            depth[a].cmp(&depth[b]).then_with(|| self.labels[a].id.cmp(&self.labels[b].id))
        });
        order
    }

    /// Where the edges of each parent begin, with one more entry for the end.
    fn starts(&self) -> Vec<usize> {
        let mut starts = vec![0; self.labels.len() + 1];
        for (parent, _, _) in &self.edges {
            starts[*parent as usize + 1] += 1;
        }
        for slot in 0..self.labels.len() {
            starts[slot + 1] += starts[slot];
        }
        starts
    }

    /// The longest path from a label without parents, and how many parents each label still waits for when
    /// nothing more can be ordered: 0 everywhere if there is no cycle.
    fn depths(&self, starts: &[usize]) -> (Vec<u32>, Vec<u32>) {
        let n = self.labels.len();
        let mut depth = vec![0u32; n];
        let mut waiting = vec![0u32; n];
        for (_, child, _) in &self.edges {
            waiting[*child as usize] += 1;
        }
        let mut ready: Vec<u32> = (0..n as u32).filter(|&slot| waiting[slot as usize] == 0).collect();
        let mut done = 0;
        while done < ready.len() {
            let parent = ready[done] as usize;
            done += 1;
            for (_, child, _) in &self.edges[starts[parent]..starts[parent + 1]] {
                let child = *child as usize;
                depth[child] = depth[child].max(depth[parent] + 1);
                waiting[child] -= 1;
                if waiting[child] == 0 {
                    ready.push(child as u32);
                }
            }
        }
        (depth, waiting)
    }

    /// Drops the edges that close cycles, or notes the cycles as problems.
    fn untie(&mut self, starts: &[usize], waiting: &[u32]) {
        let mut entries = self.rooted.clone();
        for (parent, child, _) in &self.edges {
            entries[*child as usize] |= waiting[*parent as usize] == 0;
        }
        let cycles = cycles::find(&self.edges, starts, waiting, &entries);
        match self.on_cycle {
            OnCycle::Refuse => {
                for (slots, closing) in cycles.examples {
                    let id = |slot: &u32| self.labels[*slot as usize].id.clone();
                    let path = slots.iter().chain(slots.first()).map(id).collect();
                    let origin = self.edges[closing].2.clone();
                    self.problem(&origin, ProblemKind::Cycle(path));
                }
            }
            OnCycle::Break => {
                for &position in &cycles.closing {
                    let (parent, child) = (self.edges[position].0, self.edges[position].1);
                    let id = |slot: u32| self.labels[slot as usize].id.clone();
                    self.broken.push((id(parent), id(child)));
                }
                let mut position = 0;
                self.edges.retain(|_| {
                    position += 1;
                    cycles.closing.binary_search(&(position - 1)).is_err()
                });
            }
        }
    }

    fn finish(self, order: &[u32]) -> Taxonomy {
        let n = order.len();
        let mut new_of = vec![0u32; n];
        for (new, &old) in order.iter().enumerate() {
            new_of[old as usize] = new as u32;
        }
        let edges: Vec<(u32, u32)> =
            self.edges.iter().map(|(p, c, _)| (new_of[*p as usize], new_of[*c as usize])).collect();
        let mut slots: Vec<Option<Label>> = self.labels.into_iter().map(Some).collect();
        let labels: Vec<Label> =
            order.iter().map(|&old| slots[old as usize].take().unwrap_or_default()).collect();
        let index =
            labels.iter().enumerate().map(|(n, label)| (label.id.clone(), LabelId(n as u32))).collect();
        let parents = adjacency(n, edges.iter().map(|&(p, c)| (c, p)));
        let children = adjacency(n, edges.iter().copied());

        let mut levels = vec![0u32; n];
        let mut queue: Vec<LabelId> = (0..n as u32)
            .map(LabelId)
            .filter(|&label| parents.of(label).is_empty() || self.rooted[order[label.index()] as usize])
            .collect();
        for label in &queue {
            levels[label.index()] = 1;
        }
        let mut next = 0;
        while next < queue.len() {
            let label = queue[next];
            next += 1;
            for &child in children.of(label) {
                if levels[child.index()] == 0 {
                    levels[child.index()] = levels[label.index()] + 1;
                    queue.push(child);
                }
            }
        }
        let n_levels = levels.iter().copied().max().unwrap_or(0) as usize;
        let mut by_level = vec![Vec::new(); n_levels];
        for (n, &level) in levels.iter().enumerate() {
            by_level[level as usize - 1].push(LabelId(n as u32));
        }
        Taxonomy { labels, index, parents, children, levels, by_level }
    }
}

/// Groups `(from, to)` pairs by `from`, each group ascending.
fn adjacency(n: usize, pairs: impl Iterator<Item = (u32, u32)>) -> Adjacency {
    let mut pairs: Vec<(u32, u32)> = pairs.collect();
    pairs.sort_unstable();
    let mut starts = vec![0; n + 1];
    for &(from, _) in &pairs {
        starts[from as usize + 1] += 1;
    }
    for slot in 0..n {
        starts[slot + 1] += starts[slot];
    }
    Adjacency { starts, targets: pairs.into_iter().map(|(_, to)| LabelId(to)).collect() }
}

#[cfg(test)]
#[path = "build_tests.rs"]
mod tests;
