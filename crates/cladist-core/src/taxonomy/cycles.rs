//! Cycles in a graph of statements: found, named and broken in linear time, without recursion.

use super::Origin;

/// An edge of the builder: parent, child, where it was said.
pub(super) type Edge = (u32, u32, Origin);

/// The edges that close cycles, and some of the cycles.
#[derive(Debug, Default)]
pub(super) struct Cycles {
    /// Positions of edges, ascending; without them the graph is acyclic.
    pub(super) closing: Vec<usize>,
    /// Cycles that share no label, at least one for each knot of labels: the slots downwards from the label at
    /// which the cycle closes, and the position of the closing edge.
    pub(super) examples: Vec<(Vec<u32>, usize)>,
}

/// Searches the labels that are still `waiting` for a parent after everything acyclic was taken away.
///
/// `edges` are sorted by parent and `starts` are the positions at which each parent's begin. The search goes
/// depth first from where the knot hangs on the rest (`entries`), so that an edge that closes a cycle leads back
/// up: a label reachable from the root stays reachable when the closing edges are dropped.
pub(super) fn find(edges: &[Edge], starts: &[usize], waiting: &[u32], entries: &[bool]) -> Cycles {
    const NEW: u32 = u32::MAX;
    const LEFT: u32 = u32::MAX - 1;
    let n = waiting.len();
    let mut found = Cycles::default();
    // The height on the stack of a label that is on it.
    let mut height = vec![NEW; n];
    // Slot, next edge to look at, and how many labels of the stack up to here are part of an example.
    let mut stack: Vec<(u32, usize, u32)> = Vec::new();
    let knotted = |slot: &u32| waiting[*slot as usize] > 0;
    let slots = 0..n as u32;
    let inner = slots.clone().filter(knotted).filter(|&slot| !entries[slot as usize]);
    for start in slots.filter(knotted).filter(|&slot| entries[slot as usize]).chain(inner) {
        if height[start as usize] != NEW {
            continue;
        }
        height[start as usize] = 0;
        stack.push((start, starts[start as usize], 0));
        while let Some(top) = stack.last_mut() {
            let (slot, position, taken) = *top;
            if position == starts[slot as usize + 1] {
                height[slot as usize] = LEFT;
                stack.pop();
                continue;
            }
            top.1 += 1;
            let child = edges[position].1;
            if waiting[child as usize] == 0 {
                continue;
            }
            match height[child as usize] {
                NEW => {
                    height[child as usize] = stack.len() as u32;
                    stack.push((child, starts[child as usize], taken));
                }
                LEFT => {}
                first => {
                    found.closing.push(position);
                    let first = first as usize;
                    let before = if first == 0 { 0 } else { stack[first - 1].2 };
                    if taken == before {
                        found.examples.push((stack[first..].iter().map(|entry| entry.0).collect(), position));
                        for (n, entry) in stack[first..].iter_mut().enumerate() {
                            entry.2 = before + n as u32 + 1;
                        }
                    }
                }
            }
        }
    }
    found.closing.sort_unstable();
    found
}
