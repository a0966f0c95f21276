//! Parents and children by name, and which name is the root: shared by the line formats.

use super::source::Source;
use crate::taxonomy::{Builder, ProblemKind, Taxonomy};

/// How files write the artificial root. A label can be called by the second and third, never by the first.
const ROOTS: [&str; 3] = [ROOT, "Root", "root"];
const ROOT: &str = "ROOT";

/// One statement of a file.
#[derive(Debug)]
pub(super) struct Edge<'a> {
    pub(super) parent: &'a str,
    pub(super) child: &'a str,
    pub(super) line: usize,
}

/// Adds the edges of a whole file.
///
/// A root marker is the root only where it is nobody's child: a label may be called `root`, but `ROOT` as a child is a
/// slip. A file that has a root says which labels hang under it, so a parent that is nobody's child is unknown; without
/// a root, such parents are where the hierarchy starts.
pub(super) fn add(source: &Source<'_>, edges: &[Edge<'_>], builder: &mut Builder) {
    let label = |root: &str| root != ROOT && edges.iter().any(|edge| edge.child == root);
    let roots: Vec<&str> = ROOTS.into_iter().filter(|root| !label(root)).collect();
    for edge in edges {
        if edge.child == ROOT {
            let parent = edge.parent.to_owned();
            builder.problem(&source.origin(edge.line), ProblemKind::RootAsChild { parent });
            continue;
        }
        let parent = (!roots.contains(&edge.parent)).then_some(edge.parent);
        if parent.is_none() {
            builder.require_declared_parents();
        }
        builder.edge(parent, edge.child, &source.origin(edge.line));
    }
}

/// Whether files write the artificial root like this.
pub(super) fn is_root_marker(id: &str) -> bool {
    ROOTS.contains(&id)
}

/// A marker for the root that no label uses, the preferred one first; none if a label is called as no label can be.
pub(super) fn root_marker(taxonomy: &Taxonomy, preferred: &'static str) -> Option<&'static str> {
    let free = |root: &&str| taxonomy.get(root).is_none();
    free(&ROOT).then(|| std::iter::once(preferred).chain(ROOTS).find(free)).flatten()
}
