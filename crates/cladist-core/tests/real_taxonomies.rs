//! Vocabularies that people use, if they are at hand.
#![expect(clippy::print_stdout, clippy::panic, reason = "the functions below are parts of tests")]

mod common;

use std::path::Path;
use std::time::Instant;

use cladist_core::Cancel;
use cladist_core::LabelSet;
use cladist_core::taxonomy::{self, CodingRule, Format, IdStyle, ReadOptions, Taxonomy, Warning};
use common::shared;

fn load(path: &Path, options: &ReadOptions) -> (Taxonomy, Vec<Warning>) {
    let started = Instant::now();
    let loaded = taxonomy::read(path, options).unwrap_or_else(|error| panic!("{error}"));
    println!("{} in {:?}: {:?}", path.display(), started.elapsed(), loaded.taxonomy.stats());
    for warning in &loaded.warnings {
        println!("  {warning}");
    }
    (loaded.taxonomy, loaded.warnings)
}

/// Labels, roots, levels, labels with several parents.
fn shape(taxonomy: &Taxonomy) -> (usize, usize, usize, usize) {
    let stats = taxonomy.stats();
    (stats.labels, stats.roots, taxonomy.n_levels(), stats.multi_parent_labels)
}

fn parents<'a>(taxonomy: &'a Taxonomy, id: &str) -> Vec<&'a str> {
    let label = taxonomy.get(id).unwrap_or_else(|| panic!("{id} is missing"));
    taxonomy.parents(label).iter().map(|&parent| taxonomy.id(parent)).collect()
}

#[test]
fn the_taxonomies_of_wos_rcv1_and_nyt_have_their_known_shapes() {
    for (name, labels, roots) in
        [("wos.taxnomy", 141, 7), ("rcv1.taxonomy", 103, 4), ("nyt.taxonomy", 166, 4)]
    {
        let Some(path) = shared(&format!("taxonomies/{name}")) else { continue };
        let (taxonomy, warnings) = load(&path, &ReadOptions::default());
        assert_eq!((taxonomy.n_labels(), taxonomy.roots().len()), (labels, roots), "{name}");
        assert!(taxonomy.is_tree() && warnings.is_empty());
    }
}

/// Heights, groups of level 1 and entropies of coding trees.
fn assert_coding_trees(
    name: &str,
    taxonomy: &Taxonomy,
    expected: &[(usize, CodingRule, Option<usize>, f64)],
) {
    for &(height, rule, groups, entropy) in expected {
        let tree = taxonomy.coding_tree(height, rule, &Cancel::default());
        let tree = tree.unwrap_or_else(|error| panic!("{error}"));
        let actual = tree.structural_entropy();
        println!("{name}: height {height}, {rule:?}: {} groups, entropy {actual:.6}", tree.n_nodes(1));
        assert!((actual - entropy).abs() < 1e-6, "{name}, height {height}, {rule:?}: {actual}");
        assert!(groups.is_none_or(|groups| groups == tree.n_nodes(1)), "{name}: {} groups", tree.n_nodes(1));
    }
}

#[test]
fn coding_trees_have_the_entropies_of_the_published_routine() {
    use CodingRule::{Reference, StopWhenPositive};
    let read = |name: &str| Some(load(&shared(&format!("taxonomies/{name}"))?, &ReadOptions::default()).0);
    if let Some(wos) = read("wos.taxnomy") {
        let expected = [
            (1, Reference, Some(1), 5.779_187),
            (2, Reference, Some(7), 3.286_902),
            (2, StopWhenPositive, Some(7), 3.286_902),
            (3, Reference, None, 3.084_096),
            (3, StopWhenPositive, None, 3.286_902),
        ];
        assert_coding_trees("wos", &wos, &expected);
    }
    if let Some(nyt) = read("nyt.taxonomy") {
        let expected = [
            (1, Reference, Some(1), 6.817_620),
            (2, Reference, Some(18), 3.532_695),
            (2, StopWhenPositive, Some(31), 2.891_141),
            (3, Reference, None, 2.546_469),
            (3, StopWhenPositive, None, 2.489_412),
        ];
        assert_coding_trees("nyt", &nyt, &expected);
    }
    if let Some(rcv1) = read("rcv1.taxonomy") {
        assert_coding_trees(
            "rcv1",
            &rcv1,
            &[(1, Reference, Some(1), 5.901_234), (2, Reference, Some(5), 3.774_627)],
        );
        // HiTIN's file lacks one label.
        let others: LabelSet = rcv1.labels().filter(|&label| rcv1.id(label) != "GMIL").collect();
        let expected = [
            (1, Reference, Some(1), 5.899_231),
            (2, Reference, Some(5), 3.773_178),
            (2, StopWhenPositive, Some(18), 2.780_903),
            (3, Reference, None, 2.421_300),
            (3, StopWhenPositive, None, 2.512_002),
        ];
        assert_coding_trees("rcv1 without GMIL", &rcv1.project(&others).taxonomy, &expected);
    }
}

#[test]
fn branches_of_real_taxonomies_overlap_only_in_dags() {
    for (name, n_branches, overlap) in
        [("wos.taxnomy", 7, false), ("nyt.taxonomy", 4, false), ("eurovoc-2021-06.tsv", 21, true)]
    {
        let Some(path) = shared(&format!("taxonomies/{name}")) else { continue };
        let (taxonomy, _) = load(&path, &ReadOptions::default());
        let branches = taxonomy.branches();
        assert_eq!((branches.all().len(), branches.overlap()), (n_branches, overlap), "{name}");
        for branch in branches.all() {
            let part = taxonomy.project(&branch.labels).taxonomy;
            assert_eq!((part.n_labels(), part.n_edges()), (branch.labels.len(), branch.edges.len()));
        }
    }
}

#[test]
fn eurovoc_is_a_dag_under_21_domains() {
    let Some(path) = shared("taxonomies/eurovoc-2021-06.tsv") else { return };
    let (taxonomy, warnings) = load(&path, &ReadOptions::default());
    assert_eq!((taxonomy.n_labels(), taxonomy.roots().len()), (7465, 21));
    assert_eq!((taxonomy.stats().multi_parent_labels, taxonomy.stats().named), (242, 7465));
    assert!(warnings.is_empty());
}

#[test]
fn arxiv_has_eight_groups_and_a_name_for_everything() {
    let Some(path) = shared("taxonomies/arxiv.tsv") else { return };
    let (taxonomy, warnings) = load(&path, &ReadOptions::default());
    assert_eq!(shape(&taxonomy), (183, 8, 3, 0));
    assert_eq!(taxonomy.stats().named, 183);
    assert_eq!(parents(&taxonomy, "astro-ph.CO"), ["arch:astro-ph"]);
    assert!(warnings.is_empty());
}

#[test]
fn icd10_is_a_tree_of_47_200_codes() {
    let Some(path) = shared("taxonomies/icd10cm-2026.tsv") else { return };
    let (taxonomy, _) = load(&path, &ReadOptions::default());
    assert_eq!((taxonomy.n_labels(), taxonomy.is_tree()), (47_200, true));
    assert_eq!(parents(&taxonomy, "A01.00"), ["A01.0"]);
}

#[test]
fn icd9_has_chapters_sections_categories_and_codes() {
    let Some(path) = shared("taxonomies/icd9cm.tsv") else { return };
    let (taxonomy, warnings) = load(&path, &ReadOptions::default());
    assert_eq!((taxonomy.n_labels(), taxonomy.roots().len()), (17_561 + 150 + 19, 19));
    assert!(taxonomy.is_tree() && warnings.is_empty());
    assert_eq!(taxonomy.n_levels(), 5);
    assert_eq!(parents(&taxonomy, "0010"), ["001"]);
    assert_eq!(parents(&taxonomy, "sec:congenital-anomalies"), ["ch:congenital-anomalies"]);
}

#[test]
fn mesh_is_a_dag_of_27_453_descriptors() {
    let Some(path) = shared("taxonomies/mesh2015-tree-numbers.tsv") else { return };
    let (taxonomy, warnings) = load(&path, &ReadOptions::default());
    assert_eq!(taxonomy.n_labels(), 27_453);
    assert!(taxonomy.stats().multi_parent_labels > 5_000);
    let broken = warnings.iter().find_map(|warning| match warning {
        Warning::BrokenCycles { count, .. } => Some(*count),
        _ => None,
    });
    assert_eq!(taxonomy.n_edges() + broken.unwrap_or(0), 37_332);
    let Some(path) = shared("taxonomies/mesh2015-terms.tsv") else { return };
    let (terms, _) = load(&path, &ReadOptions::default());
    assert_eq!((terms.n_labels(), terms.n_levels()), (27_455, 1));
}

#[test]
fn stw_is_read_from_skos_in_two_languages() {
    let Some(path) = shared("taxonomies/stw-skos.ttl") else { return };
    let options = ReadOptions { id_style: IdStyle::Local, ..ReadOptions::default() };
    let (english, warnings) = load(&path, &options);
    assert_eq!(english.name(english.get("10041-1").unwrap()), "Classical economics");
    assert_eq!(english.stats().named, english.n_labels());
    assert!(warnings.iter().any(|warning| matches!(warning, Warning::Deprecated { .. })));
    let (german, _) = load(&path, &ReadOptions { language: "de".into(), ..options });
    let concept = german.get("10041-1").unwrap();
    assert_eq!(german.name(concept), "Klassische Ökonomie");
    assert_eq!(german.label(concept).alternatives.len(), 2);
    for format in [Format::Json, Format::SkosTurtle] {
        let mut bytes = Vec::new();
        taxonomy::write(&english, format, &mut bytes).unwrap();
        let again = taxonomy::io::parse(&bytes, format, &ReadOptions::default()).unwrap().taxonomy;
        assert!(again == english, "{format}");
    }
}

#[test]
fn every_corpus_vocabulary_loads() {
    let Some(folder) = shared("") else { return };
    let mut n = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let corpus = entry.unwrap().path();
        let at = |name: &str| Some(corpus.join(name)).filter(|path| path.exists());
        let (hierarchy, names) = (at("hierarchy.tsv"), at("labels.tsv"));
        if hierarchy.is_none() && names.is_none() {
            continue;
        }
        n += 1;
        let loaded = taxonomy::read_vocabulary(
            hierarchy.as_deref(),
            names.as_deref(),
            &ReadOptions::default(),
            &Cancel::default(),
        )
        .unwrap();
        println!("{}: {:?} {:?}", corpus.display(), shape(&loaded.taxonomy), loaded.warnings);
        let expected = match corpus.file_name().and_then(|name| name.to_str()) {
            Some("eurlex-law-1k") => Some((1_482, 33, 7, 43)),
            Some("tibkat-gnd") => Some((17_261, 17_261, 1, 0)),
            Some("reuters21578-aptemod") => Some((96, 6, 2, 0)),
            _ => None,
        };
        assert!(expected.is_none_or(|expected| expected == shape(&loaded.taxonomy)), "{}", corpus.display());
    }
    assert!(n > 0);
}
