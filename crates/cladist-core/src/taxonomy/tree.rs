//! A taxonomy as indented lines.

use std::fmt;

use super::{LabelId, Taxonomy};

/// One line of the drawing; its text is what [`fmt::Display`] writes.
#[derive(Debug, Clone, Copy)]
pub struct TreeLine<'a> {
    taxonomy: &'a Taxonomy,
    /// The label.
    pub label: LabelId,
    /// How far to indent, from 0.
    pub depth: usize,
    /// Whether what is below the label is already drawn under another parent.
    pub repeated: bool,
    /// How many children the depth limit hides.
    pub hidden: usize,
}

impl fmt::Display for TreeLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (id, name) = (self.taxonomy.id(self.label), self.taxonomy.name(self.label));
        // Deeper lines say their depth instead: a chain of 100,000 labels would be gigabytes of spaces.
        const INDENTED: usize = 40;
        write!(f, "{:width$}", "", width = self.depth.min(INDENTED) * 2)?;
        if self.depth > INDENTED {
            write!(f, "[{}] ", self.depth + 1)?;
        }
        f.write_str(id)?;
        if name != id {
            write!(f, "  {name}")?;
        }
        if self.repeated {
            f.write_str("  (see above)")?;
        }
        if self.hidden > 0 {
            write!(f, "  (+{})", self.hidden)?;
        }
        Ok(())
    }
}

/// The lines of a drawing, made one at a time.
#[derive(Debug, Clone)]
pub struct TreeLines<'a> {
    taxonomy: &'a Taxonomy,
    max_depth: usize,
    stack: Vec<(LabelId, usize)>,
    /// Labels with nothing left to draw below them.
    drawn: Vec<bool>,
}

impl Taxonomy {
    /// Draws `tops` and what is below them, at most `max_depth` levels (1: only `tops`). A label under a second
    /// parent is drawn there too, marked and without what is below it, so that the drawing has at most one line
    /// per top and edge.
    #[must_use]
    pub fn render_tree(&self, tops: &[LabelId], max_depth: usize) -> TreeLines<'_> {
        let stack =
            if max_depth == 0 { Vec::new() } else { tops.iter().rev().map(|&top| (top, 0)).collect() };
        TreeLines { taxonomy: self, max_depth, stack, drawn: vec![false; self.n_labels()] }
    }
}

impl<'a> Iterator for TreeLines<'a> {
    type Item = TreeLine<'a>;

    fn next(&mut self) -> Option<TreeLine<'a>> {
        let (label, depth) = self.stack.pop()?;
        let children = self.taxonomy.children(label);
        let repeated = self.drawn[label.index()];
        let at_limit = depth + 1 >= self.max_depth;
        let mut hidden = 0;
        if !repeated {
            if at_limit {
                hidden = children.len();
            } else {
                self.stack.extend(children.iter().rev().map(|&child| (child, depth + 1)));
            }
            // Cut short by the limit here, a label may still be drawn whole where it hangs higher.
            self.drawn[label.index()] = hidden == 0;
        }
        Some(TreeLine { taxonomy: self.taxonomy, label, depth, repeated, hidden })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::taxonomy::strategies::{build, chain, dag, diamond};

    fn draw(taxonomy: &crate::Taxonomy, max_depth: usize) -> Vec<String> {
        taxonomy.render_tree(taxonomy.roots(), max_depth).map(|line| line.to_string()).collect()
    }

    #[test]
    fn a_label_under_a_second_parent_is_marked_and_not_expanded_again() {
        let mut lines = draw(&diamond(), usize::MAX);
        assert_eq!(lines, ["top", "  left", "    bottom", "  right", "    bottom  (see above)"]);
        lines = draw(&build(&[(None, "a"), (Some("a"), "b"), (None, "b"), (Some("b"), "c")]), usize::MAX);
        assert_eq!(lines, ["a", "  b", "    c", "b  (see above)"]);
    }

    #[test]
    fn the_depth_limit_says_how_much_it_hides() {
        assert_eq!(draw(&diamond(), 1), ["top  (+2)"]);
        assert_eq!(draw(&diamond(), 2), ["top", "  left  (+1)", "  right  (+1)"]);
        assert!(draw(&diamond(), 0).is_empty());
    }

    #[test]
    fn a_label_cut_by_the_limit_is_drawn_whole_where_it_hangs_higher() {
        let taxonomy = build(&[(None, "a"), (Some("a"), "b"), (None, "b"), (Some("b"), "c")]);
        assert_eq!(draw(&taxonomy, 2), ["a", "  b  (+1)", "b", "  c"]);
    }

    #[test]
    fn a_deep_chain_is_drawn_without_recursion() {
        let taxonomy = chain(100_000);
        assert_eq!(
            taxonomy.render_tree(taxonomy.roots(), usize::MAX).last().map(|line| line.depth),
            Some(99_999)
        );
    }

    proptest! {
        #[test]
        fn every_root_and_edge_is_drawn_once(taxonomy in dag()) {
            let lines = taxonomy.render_tree(taxonomy.roots(), usize::MAX).count();
            prop_assert_eq!(lines, taxonomy.roots().len() + taxonomy.n_edges());
        }
    }
}
