use super::*;

fn features(n: u32) -> SparseMatrix {
    let rows: Vec<_> = (0..n).map(|row| vec![(row % 5, 0.8), (5 + row % 3, 0.6)]).collect();
    SparseMatrix::from_rows(&rows, 8)
}

fn grow(n: u32, config: &TreeConfig) -> LabelTree {
    LabelTree::grow(&features(n), (0..n).collect(), config, 7, &Job::silent()).unwrap()
}

#[test]
fn halves_go_on_until_nodes_are_small() {
    let tree = grow(40, &TreeConfig { min_split: 10, ..TreeConfig::default() });
    let leaves = tree.leaves();
    assert!(leaves.windows(2).all(|pair| pair[0].labels.end == pair[1].labels.start));
    assert!(leaves.iter().all(|leaf| leaf.labels.len() == 5), "{tree:?}");
    assert_eq!(leaves.len(), 8);
    assert_eq!(tree.outputs(0).len(), 2);
    assert_eq!(tree.outputs(tree.nodes.len() - 1).len(), 5);
    let mut order = tree.order.clone();
    order.sort_unstable();
    assert_eq!(order, (0..40).collect::<Vec<_>>());
}

#[test]
fn depth_and_arity_are_as_set() {
    let small = TreeConfig { min_split: 2, ..TreeConfig::default() };
    let depth = |tree: &LabelTree| {
        let mut depth = vec![1; tree.nodes.len()];
        for (node, TreeNode { children, .. }) in tree.nodes.iter().enumerate() {
            for child in children.clone() {
                depth[child] = depth[node] + 1;
            }
        }
        depth.into_iter().max().unwrap()
    };
    for max_depth in [1, 2] {
        assert_eq!(depth(&grow(40, &TreeConfig { max_depth, ..small })), max_depth);
    }
    let wide = TreeConfig { k: 100, balanced: false, max_depth: 3, ..small };
    assert!(depth(&grow(40, &wide)) <= 3);
    let four = TreeConfig { k: 4, balanced: false, max_depth: 2, ..small };
    assert!((3..=4).contains(&grow(40, &four).outputs(0).len()));
}

#[test]
fn one_label_or_none_is_one_leaf() {
    for n in [0, 1] {
        let tree = grow(n, &TreeConfig { min_split: 2, ..TreeConfig::default() });
        assert_eq!(tree.nodes.len(), 1);
        assert_eq!(tree.outputs(0).len(), n as usize);
    }
}

#[test]
fn thousands_of_labels_end_in_small_leaves() {
    let row = |label: u32| {
        let word = |n: u32| label.wrapping_mul(2_654_435_761).wrapping_add(n.wrapping_mul(40_503)) >> 12;
        let topic = label / 100;
        let mut columns: Vec<u32> = (0..15).map(|n| (topic * 15 + n) % 100_000).collect();
        columns.extend((0..15).map(|n| word(n) % 100_000));
        columns.sort_unstable();
        columns.dedup();
        let value = (columns.len() as f32).sqrt().recip();
        columns.into_iter().map(move |column| (column, value))
    };
    let mut features = SparseMatrix::new(100_000);
    for label in 0..20_000 {
        features.push_row(row(label));
    }
    let labels = (0..20_000).collect();
    let tree = LabelTree::grow(&features, labels, &TreeConfig::default(), 7, &Job::silent()).unwrap();
    assert!(tree.leaves().iter().all(|leaf| leaf.labels.len() < 100));
    assert_eq!(tree.leaves().iter().map(|leaf| leaf.labels.len()).sum::<usize>(), 20_000);
}
