use super::*;

#[test]
fn byte_order_mark_crlf_and_blank_lines_are_tolerated() {
    let loaded = load(Format::Tsv, "\u{feff}ROOT\ta\tA\r\n\r\n  \na\t#b\r\n");
    assert_eq!(loaded.taxonomy.name(loaded.taxonomy.get("a").unwrap()), "A");
    assert_eq!(parents(&loaded.taxonomy, "#b"), ["a"]);
    assert_eq!(loaded.taxonomy.n_labels(), 2);
}

#[test]
fn with_a_root_a_parent_that_is_nobodys_child_is_unknown() {
    let found = problems(Format::Tsv, "ROOT\ta\nmissing\tb\n");
    assert_eq!(found, ["line 2: unknown parent `missing` of `b`"]);
    let found = problems(Format::Taxonomy, "Root\ta\nmissing\tb\tc\n");
    assert_eq!(found.len(), 2);
}

#[test]
fn without_a_root_parents_that_are_nobodys_child_are_roots() {
    let taxonomy = load(Format::Tsv, "a\tb\nc\td\n").taxonomy;
    assert_eq!(ids(&taxonomy, taxonomy.roots()), ["a", "c"]);
}

#[test]
fn a_label_may_be_called_root_if_it_is_somebodys_child() {
    let taxonomy = load(Format::Tsv, "ROOT\tplant\nplant\troot\nroot\ttaproot\n").taxonomy;
    assert_eq!(ids(&taxonomy, taxonomy.roots()), ["plant"]);
    assert_eq!(parents(&taxonomy, "taproot"), ["root"]);
    assert_eq!(load(Format::Tsv, &written(&taxonomy, Format::Tsv)).taxonomy, taxonomy);
}

#[test]
fn the_root_below_a_label_is_refused_with_its_line() {
    let expected = ["line 2: the root, `ROOT`, is a child of `a` here; it is no label"];
    assert_eq!(problems(Format::Tsv, "ROOT\ta\na\tROOT\n"), expected);
    assert_eq!(problems(Format::Tsv, "a\tb\na\tROOT\n"), expected);
    assert_eq!(problems(Format::Taxonomy, "Root\ta\na\tb\tROOT\n"), expected);
}

#[test]
fn all_problems_of_a_file_are_found_in_one_pass() {
    let text = b"ROOT\ta\tA\nROOT\ta\tB\njust one\nx\ty\tz\tw\n\tb\nb\t\nnobody\tc\nd\td\n\xff\tq\n";
    let found = parse(text, Format::Tsv, &ReadOptions::default()).unwrap_err();
    let found: Vec<String> = found.0.iter().map(ToString::to_string).collect();
    let expected = [
        "line 2: `a` is called `B` here and `A` before",
        "line 3: expected parent TAB child [TAB name], found 1 column: `just one`",
        "line 4: expected parent TAB child [TAB name], found 4 columns: `x\ty\tz\tw`",
        "line 5: empty label id",
        "line 6: empty label id",
        "line 7: unknown parent `nobody` of `c`",
        "line 8: the labels form a cycle: d → d",
        "line 9: not UTF-8 at byte 1 of the line",
    ];
    assert_eq!(found, expected);
}

#[test]
fn an_empty_file_is_a_problem_in_every_format() {
    for info in &FORMATS {
        let found = parse(b"", info.format, &ReadOptions::default()).unwrap_err();
        assert_eq!(found.0.len(), 1, "{}", info.name);
    }
    assert_eq!(problems(Format::Tsv, "\n\r\n"), ["taxonomy: no label found in the file"]);
}

#[test]
fn a_line_of_children_may_end_with_tabs() {
    let taxonomy = load(Format::Taxonomy, "Root\ta\tb\t\na\tc\td\n").taxonomy;
    assert_eq!(ids(&taxonomy, taxonomy.roots()), ["a", "b"]);
    assert_eq!(parents(&taxonomy, "d"), ["a"]);
    assert_eq!(problems(Format::Taxonomy, "alone\n").len(), 1);
    assert_eq!(problems(Format::Taxonomy, "a\t\tb\n"), ["line 1: empty label id"]);
}

#[test]
fn a_list_has_ids_and_perhaps_names_and_descriptions() {
    let taxonomy = load(Format::List, "id\tname\nb\tBee\tIt stings.\na\nc\t\tNo name.\n").taxonomy;
    let label = |id: &str| taxonomy.label(taxonomy.get(id).unwrap());
    assert_eq!(taxonomy.roots().len(), 3);
    assert_eq!(
        (label("b").name.as_deref(), label("b").description.as_deref()),
        (Some("Bee"), Some("It stings."))
    );
    assert_eq!((label("c").name.as_deref(), label("c").description.as_deref()), (None, Some("No name.")));
    assert_eq!(problems(Format::List, "a\nb\na\n"), ["line 3: duplicate id `a`, first declared at line 1"]);
}

#[test]
fn an_id_that_would_break_the_line_is_not_written() {
    // The mark would be lost at the start of a file: an id must read as it was written.
    for id in ["\u{feff}", "a\tb"] {
        for format in [Format::Tsv, Format::Taxonomy, Format::List] {
            let error = write(&build(&[(None, id)]), format, &mut Vec::new()).unwrap_err();
            assert!(matches!(error, WriteError::Unwritable { .. }), "{error}");
        }
    }
    let taxonomy = build(&[(None, "a\tb")]);
    assert_eq!(from_json(&to_json(&taxonomy)).unwrap(), taxonomy);
    let roots = build(&[(None, "root"), (None, "Root"), (None, "ROOT")]);
    assert!(matches!(write(&roots, Format::Tsv, &mut Vec::new()), Err(WriteError::NoRoot(_))));
    let error = write(&taxonomy, Format::Mesh, &mut Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), "cannot write `mesh`: this format is only read");
}
