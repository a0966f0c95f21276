use super::*;

const ICD9: &str = "001\tFalse\tCholera\tCholera\t001\tCholera\tGut Diseases\tInfections\n\
        0010\tTrue\tChol vib\tCholera vibrio\t001\tCholera\tGut Diseases\tInfections\n\
        00101\tTrue\tChol x\tCholera x\t001\tCholera\tGut Diseases\tInfections\n\
        7401\tTrue\tAn\tAnomaly\t740\tAnomalies\tInfections\tAnomalies\n";

#[test]
fn icd9_codes_come_under_the_longest_code_they_start_with() {
    let taxonomy = load(Format::Icd9, ICD9).taxonomy;
    assert_eq!(parents(&taxonomy, "00101"), ["0010"]);
    assert_eq!(parents(&taxonomy, "0010"), ["001"]);
    assert_eq!(parents(&taxonomy, "001"), ["sec:gut-diseases"]);
    assert_eq!(parents(&taxonomy, "sec:gut-diseases"), ["ch:infections"]);
    let code = taxonomy.label(taxonomy.get("0010").unwrap());
    assert_eq!(code.name.as_deref(), Some("Cholera vibrio"));
    assert_eq!(code.alternatives, ["Chol vib"]);
}

#[test]
fn an_icd9_category_without_a_row_is_made_from_its_name() {
    let taxonomy = load(Format::Icd9, ICD9).taxonomy;
    assert_eq!(parents(&taxonomy, "7401"), ["740"]);
    assert_eq!(taxonomy.name(taxonomy.get("740").unwrap()), "Anomalies");
    assert_eq!(parents(&taxonomy, "740"), ["sec:infections"]);
    assert_eq!(ids(&taxonomy, taxonomy.roots()), ["ch:anomalies", "ch:infections"]);
}

#[test]
fn icd9_ids_made_of_names_do_not_clash() {
    let text = "ch:a\tTrue\ts\tl\tch:a\tc\tS\tA\nx\tTrue\ts\tl\tx\tc\ts!\tA\ny\tTrue\ts\tl\ty\tc\tS\tB\n";
    let taxonomy = load(Format::Icd9, text).taxonomy;
    assert_eq!(parents(&taxonomy, "sec:s"), ["ch:a-2"]);
    assert_eq!(parents(&taxonomy, "x"), ["sec:s-2"]);
    assert_eq!(parents(&taxonomy, "sec:s-3"), ["ch:b"]);
}

#[test]
fn bad_icd9_rows_are_named() {
    let found = problems(Format::Icd9, "a\tmaybe\ts\tl\ta\tc\tS\tC\na\tb\n\tTrue\ts\tl\ta\tc\tS\tC\n");
    assert_eq!(found[0], "line 1: expected `True` or `False` in the second column, found `maybe`");
    assert_eq!(found.len(), 3);
}

const HEADER: &str = "mesh_id\tmesh_name\tmesh_tree_number\n";

#[test]
fn mesh_tree_numbers_make_a_dag() {
    let text = format!("{HEADER}D3\tCat\tB01.2\nD1\tAnimals\tB01\nD2\tPets\tA01\nD3\tCat\tA01.1\n");
    let taxonomy = load(Format::Mesh, &text).taxonomy;
    assert_eq!(parents(&taxonomy, "D3"), ["D1", "D2"]);
    assert_eq!(ids(&taxonomy, taxonomy.roots()), ["D1", "D2"]);
    assert_eq!(taxonomy.name(taxonomy.get("D3").unwrap()), "Cat");
}

#[test]
fn mesh_cycles_are_broken_and_counted_unless_refused() {
    let text = format!("{HEADER}D1\tA\tA01\nD2\tB\tA01.1\nD2\tB\tB01.1\nD3\tC\tB01\nD1\tA\tB01.1.5\n");
    let loaded = load(Format::Mesh, &text);
    assert!(
        matches!(&loaded.warnings[..], [Warning::BrokenCycles { count: 1, .. }]),
        "{:?}",
        loaded.warnings
    );
    let options = ReadOptions { on_cycle: Some(OnCycle::Refuse), ..ReadOptions::default() };
    let found = parse(text.as_bytes(), Format::Mesh, &options).unwrap_err();
    assert!(matches!(found.0[0].kind, ProblemKind::Cycle(_)));
}

#[test]
fn a_missing_mesh_tree_number_is_passed_over() {
    let loaded = load(Format::Mesh, &format!("{HEADER}D1\tA\tA01\nD2\tB\tA01.1.2\nD3\tC\tZ01.5\n"));
    assert_eq!(parents(&loaded.taxonomy, "D2"), ["D1"]);
    assert!(loaded.taxonomy.is_root_child(loaded.taxonomy.get("D3").unwrap()));
    let expected = Warning::MissingTreeNumbers { count: 2, example: "A01.1".into() };
    assert_eq!(loaded.warnings, [expected]);
}

#[test]
fn a_mesh_tree_number_of_two_descriptors_is_a_problem() {
    let found = problems(Format::Mesh, &format!("{HEADER}D1\tA\tA01\nD2\tB\tA01\n"));
    assert_eq!(found, ["line 3: duplicate id `A01`, first declared at line 2"]);
    assert_eq!(problems(Format::Mesh, "D1\tA\tA01\n").len(), 1);
}

#[test]
fn mesh_terms_alone_are_a_list_with_names() {
    let taxonomy = load(Format::Mesh, "mesh_id\tmesh_name\nD1\tA\nD2\tB\n").taxonomy;
    assert_eq!((taxonomy.roots().len(), taxonomy.name(taxonomy.roots()[1])), (2, "B"));
}
