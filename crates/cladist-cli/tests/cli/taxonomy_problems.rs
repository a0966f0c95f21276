//! Everything that is wrong with a taxonomy file, found in one pass and named with file and line.

use crate::support::Place;

/// What `taxonomy check` says is what every other command says.
#[track_caller]
fn problems(place: &Place, file: &str) -> String {
    let check = place.run(&format!("taxonomy check {file}")).fails(65, &[file]);
    assert_eq!(check.stdout, "");
    for command in [format!("taxonomy show {file}"), format!("taxonomy convert {file} out.json")] {
        assert_eq!(place.run(&command).fails(65, &[]).stderr, check.stderr);
    }
    assert!(!place.path("out.json").exists());
    check.stderr
}

#[test]
fn a_cycle_is_reported_with_its_path() {
    let place = Place::new();
    place.write("t.tsv", "ROOT\ta\na\tb\nb\tc\nc\td\nd\tb\nROOT\tx\n");
    insta::assert_snapshot!(problems(&place, "t.tsv"), @"error: t.tsv:5: the labels form a cycle: b → c → d → b");
    let shown = place.run("taxonomy show t.tsv --break-cycles").ok();
    assert!(shown.stderr.starts_with("warning: t.tsv: dropped 1 edge"), "{}", shown.stderr);
    place.write("self.tsv", "ROOT\ta\na\ta\n");
    insta::assert_snapshot!(problems(&place, "self.tsv"), @"error: self.tsv:2: the labels form a cycle: a → a");
}

#[test]
fn all_problems_of_a_file_are_found_in_one_pass() {
    let place = Place::new();
    let entries = [
        r#"{"id":"a"}"#,
        r#"{"id":"b","parents":["a","ghost"]}"#,
        r#"{"id":"a"}"#,
        r#"{"id":"c","parents":["d"]}"#,
        r#"{"id":"d","parents":["c"]}"#,
        r#"{"id":""}"#,
        r#"{"id":"e","colour":"red"}"#,
    ];
    let text =
        format!("{{\"format\":\"cladist-taxonomy\",\"version\":1,\"labels\":[\n{}\n]}}", entries.join(",\n"));
    place.write("t.json", text);
    insta::assert_snapshot!(problems(&place, "t.json"), @r"
    error: t.json:3: unknown parent `ghost` of `b`
    t.json:4: duplicate id `a`, first declared at t.json:2
    t.json:5: the labels form a cycle: c → d → c
    t.json:7: empty label id
    t.json:8: invalid JSON: unknown field `colour`, expected one of `id`, `name`, `description`, `alternatives`, `parents`, `root`
    ");
    let json = place.run("taxonomy check t.json --json");
    assert_eq!(json.code, Some(65));
    let report = json.json();
    assert_eq!(report["ok"], false);
    for problem in report["problems"].as_array().unwrap() {
        assert_eq!(problem["path"], "t.json");
        assert!(problem["line"].as_u64().unwrap() > 1, "{problem}");
    }
}

#[test]
fn lines_that_are_no_edges_are_reported_together() {
    let place = Place::new();
    place.write("t.tsv", "ROOT\ta\nlonely\na\tb\tB\textra\na\t\nROOT\tc\n");
    insta::assert_snapshot!(problems(&place, "t.tsv"), @"
    error: t.tsv:2: expected parent TAB child [TAB name], found 1 column: `lonely`
    t.tsv:3: expected parent TAB child [TAB name], found 4 columns: `a\tb\tB\textra`
    t.tsv:4: empty label id
    ");
}

#[test]
fn a_label_list_with_duplicates_names_both_lines() {
    let place = Place::new();
    place.write("t.list", "a\tA\nb\tB\na\tAgain\nb\tAgain\n");
    insta::assert_snapshot!(problems(&place, "t.list"), @r"
    error: t.list:3: duplicate id `a`, first declared at t.list:1
    t.list:4: duplicate id `b`, first declared at t.list:2
    ");
}

#[test]
fn broken_syntax_has_a_line() {
    let place = Place::new();
    place.write(
        "t.ttl",
        "@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n<http://x/a> a skos:Concept ;;; oops\n",
    );
    assert!(problems(&place, "t.ttl").contains("t.ttl:2: invalid Turtle"));
    place.write(
        "t.rdf",
        "<?xml version=\"1.0\"?>\n<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\">\n<a>",
    );
    assert!(problems(&place, "t.rdf").contains("t.rdf:"));
    place.write("t.json", "{\"format\":\"cladist-taxonomy\",\n\"version\":1,\"labels\":[");
    assert!(problems(&place, "t.json").contains("t.json:2: invalid JSON"));
    place.write("latin.tsv", b"ROOT\ta\nROOT\tcaf\xe9\n");
    assert!(problems(&place, "latin.tsv").contains("latin.tsv:2: not UTF-8"));
}

#[test]
fn an_empty_file_of_any_format_says_so() {
    let place = Place::new();
    for name in ["t.tsv", "t.taxonomy", "t.ttl", "t.list", "blank.tsv"] {
        place.write(name, if name == "blank.tsv" { "\n\n" } else { "" });
        assert_eq!(problems(&place, name), format!("error: {name}: no label found in the file\n"));
    }
    place.write("t.json", "");
    assert!(problems(&place, "t.json").contains("t.json"));
}

#[test]
fn a_file_that_is_not_there_is_not_a_problem_of_its_content() {
    let place = Place::new();
    for command in ["show", "check", "convert"] {
        place.run(&format!("taxonomy {command} nowhere.tsv")).fails(66, &["`nowhere.tsv`"]);
    }
    place.write("a.tsv", "ROOT\ta\n");
    place.run("taxonomy diff a.tsv nowhere.tsv").fails(66, &["`nowhere.tsv`"]);
    place.run("taxonomy check a.tsv --labels nowhere.tsv").fails(66, &["`nowhere.tsv`"]);
    place.run("taxonomy check a.tsv --from papyrus").fails(78, &["`papyrus`"]);
}

#[test]
fn a_good_file_is_ok() {
    let place = Place::with_corpus();
    assert_eq!(place.run("taxonomy check corpus").ok().stdout, "ok: 9 labels, 2 levels\n");
    let report = place.run("taxonomy check corpus/hierarchy.tsv --json").ok().json();
    assert_eq!((&report["ok"], &report["labels"]), (&true.into(), &9.into()));
    place.write("more.tsv", format!("{}ghosts\tGhosts\n", place.read("corpus/labels.tsv")));
    let checked = place.run("taxonomy check corpus/hierarchy.tsv --labels more.tsv").ok().stdout;
    assert!(checked.starts_with("warning: ") && checked.contains("ok: 9 labels"), "{checked}");
}

#[test]
fn deep_chains_need_no_stack() {
    let place = Place::new();
    let chain: String = (0..20_000).map(|n| format!("{n}\t{}\n", n + 1)).collect();
    place.write("chain.tsv", &chain);
    assert_eq!(place.run("taxonomy check chain.tsv").ok().stdout, "ok: 20001 labels, 20001 levels\n");
    place.write("ring.tsv", format!("{chain}20000\t0\n"));
    place.run("taxonomy check ring.tsv").fails(65, &["ring.tsv:20001", "cycle"]);
}
