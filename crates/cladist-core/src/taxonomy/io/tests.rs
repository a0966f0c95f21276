use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;

use super::*;
use crate::taxonomy::strategies::{build, dag};
use crate::taxonomy::{Builder, Label, LabelId, Origin};

fn load(format: Format, text: &str) -> Loaded {
    parse(text.as_bytes(), format, &ReadOptions::default()).unwrap()
}

fn problems(format: Format, text: &str) -> Vec<String> {
    let problems = parse(text.as_bytes(), format, &ReadOptions::default()).unwrap_err();
    problems.0.iter().map(ToString::to_string).collect()
}

fn ids(taxonomy: &Taxonomy, labels: &[LabelId]) -> Vec<String> {
    labels.iter().map(|&label| taxonomy.id(label).to_owned()).collect()
}

fn parents(taxonomy: &Taxonomy, id: &str) -> Vec<String> {
    ids(taxonomy, taxonomy.parents(taxonomy.get(id).unwrap()))
}

fn written(taxonomy: &Taxonomy, format: Format) -> String {
    let mut bytes = Vec::new();
    write(taxonomy, format, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

mod line_formats {
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
        assert_eq!(
            problems(Format::List, "a\nb\na\n"),
            ["line 3: duplicate id `a`, first declared at line 1"]
        );
    }

    #[test]
    fn an_id_that_would_break_the_line_is_not_written() {
        let taxonomy = build(&[(None, "a\tb")]);
        for format in [Format::Tsv, Format::Taxonomy, Format::List] {
            let error = write(&taxonomy, format, &mut Vec::new()).unwrap_err();
            assert!(matches!(error, WriteError::Unwritable { .. }), "{error}");
        }
        assert_eq!(from_json(&to_json(&taxonomy)).unwrap(), taxonomy);
        let roots = build(&[(None, "root"), (None, "Root"), (None, "ROOT")]);
        assert!(matches!(write(&roots, Format::Tsv, &mut Vec::new()), Err(WriteError::NoRoot(_))));
        let error = write(&taxonomy, Format::Mesh, &mut Vec::new()).unwrap_err();
        assert_eq!(error.to_string(), "cannot write `mesh`: this format is only read");
    }
}

mod tables {
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
}

mod json_format {
    use super::*;

    fn file(labels: &str) -> String {
        format!("{{\"format\":\"cladist-taxonomy\",\"version\":1,\"labels\":[\n{labels}\n]}}")
    }

    #[test]
    fn every_bad_label_is_found_with_its_line() {
        let text = file(
            "{\"id\":\"a\"},\n{\"id\":\"b\",\"colour\":1},\n{\"id\":\"a\"},\n{\n\"name\":\"x\"\n},\n{\"id\":\"c\",\"parents\":[\"z\"]}",
        );
        let found = problems(Format::Json, &text);
        let expected = [
            "line 3: invalid JSON: unknown field `colour`, expected one of `id`, `name`, `description`, `alternatives`, `parents`, `root`",
            "line 4: duplicate id `a`, first declared at line 2",
            "line 7: invalid JSON: missing field `id`",
            "line 8: unknown parent `z` of `c`",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn other_json_and_later_versions_are_refused() {
        assert_eq!(
            problems(Format::Json, "{\"level_1\":[]}"),
            ["line 1: invalid JSON: missing field `format`"]
        );
        let later = "{\"format\":\"cladist-taxonomy\",\"version\":2,\"labels\":{}}";
        let expected =
            "line 1: expected `cladist-taxonomy` of version 1, found `cladist-taxonomy` of version 2";
        assert_eq!(problems(Format::Json, later), [expected]);
        assert_eq!(problems(Format::Json, "{\n\n]").len(), 1);
        assert_eq!(problems(Format::Json, &file("")), ["taxonomy: no label found in the file"]);
    }

    #[test]
    fn json_looks_as_documented() {
        let text = file(
            "{\"id\":\"animals\",\"name\":\"Animals\"},\n{\"id\":\"dogs\",\"alternatives\":[\"hounds\"],\"parents\":[\"animals\"],\"root\":true}",
        );
        let taxonomy = load(Format::Json, &text).taxonomy;
        assert_eq!(String::from_utf8(to_json(&taxonomy)).unwrap(), text + "\n");
    }
}

mod skos_formats {
    use super::*;

    const PREFIX: &str = "@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n\
        @prefix owl: <http://www.w3.org/2002/07/owl#> .\n@prefix : <http://x.org/v/> .\n";

    fn turtle(text: &str, options: &ReadOptions) -> Loaded {
        parse(format!("{PREFIX}{text}").as_bytes(), Format::SkosTurtle, options).unwrap()
    }

    fn local() -> ReadOptions {
        ReadOptions { id_style: IdStyle::Local, ..ReadOptions::default() }
    }

    #[test]
    fn broader_and_narrower_say_the_same_thing() {
        let text = ":a a skos:Concept ; skos:narrower :b , :c . :b a skos:Concept ; skos:broader :a . :c a skos:Concept .";
        let taxonomy = turtle(text, &local()).taxonomy;
        assert_eq!(taxonomy.n_edges(), 2);
        assert_eq!(parents(&taxonomy, "c"), ["a"]);
        assert_eq!(parents(&taxonomy, "b"), ["a"]);
    }

    #[test]
    fn names_follow_the_language_asked_for() {
        let text = ":a a skos:Concept ; skos:prefLabel 'Hund'@de , 'dog'@en , 'chien'@fr ; skos:altLabel 'Köter'@de , 'hound'@en ;\
            skos:definition 'Ein Tier.'@de .\n:b a skos:Concept ; skos:prefLabel 'plain' , 'dansk'@da .\n\
            :c a skos:Concept ; skos:prefLabel 'svensk'@sv , 'dansk'@da .\n:d a skos:Concept ; skos:prefLabel 'Paradeiser'@de-AT , 'x' .";
        let name =
            |loaded: &Loaded, id: &str| loaded.taxonomy.name(loaded.taxonomy.get(id).unwrap()).to_owned();
        let german = turtle(text, &ReadOptions { language: "de".into(), ..local() });
        let english = turtle(text, &local());
        assert_eq!([name(&german, "a"), name(&english, "a")], ["Hund", "dog"]);
        assert_eq!([name(&german, "b"), name(&german, "c")], ["plain", "dansk"]);
        assert_eq!([name(&german, "d"), name(&english, "d")], ["Paradeiser", "x"]);
        let label = |loaded: &Loaded| loaded.taxonomy.label(loaded.taxonomy.get("a").unwrap()).clone();
        assert_eq!(label(&german).alternatives, ["Köter"]);
        assert_eq!(label(&english).alternatives, ["hound"]);
        assert_eq!(label(&english).description.as_deref(), Some("Ein Tier."));
        let french = turtle(text, &ReadOptions { language: "it".into(), ..local() });
        assert_eq!(name(&french, "a"), "dog");
    }

    #[test]
    fn top_concepts_hang_under_the_root_even_with_a_broader_one() {
        let text = ":s skos:hasTopConcept :b . :a a skos:Concept ; skos:topConceptOf :s . :b a skos:Concept ; skos:broader :a .";
        let taxonomy = turtle(text, &local()).taxonomy;
        assert_eq!(ids(&taxonomy, taxonomy.roots()), ["a", "b"]);
        assert_eq!(parents(&taxonomy, "b"), ["a"]);
    }

    #[test]
    fn what_is_no_concept_of_the_file_is_counted_and_ignored() {
        let text = ":a a skos:Concept ; skos:broader <http://other.org/1> ; skos:narrower :old .\n\
            :old owl:deprecated true ; skos:broader :a .";
        let loaded = turtle(text, &local());
        assert_eq!(loaded.taxonomy.n_labels(), 1);
        let expected = [
            Warning::OutsideConcepts { count: 2, concept: "a".into(), other: "http://other.org/1".into() },
            Warning::Deprecated { count: 1 },
        ];
        assert_eq!(loaded.warnings, expected);
    }

    #[test]
    fn local_ids_are_taken_only_where_they_are_unique() {
        let text = "<http://x.org/1#a> a skos:Concept . <http://x.org/2/a> a skos:Concept . <http://x.org/b/> a skos:Concept .";
        let loaded = turtle(text, &local());
        let mut found = ids(&loaded.taxonomy, loaded.taxonomy.roots());
        found.sort();
        assert_eq!(found, ["b", "http://x.org/1#a", "http://x.org/2/a"]);
        assert!(matches!(&loaded.warnings[..], [Warning::SharedLocalNames { count: 2, .. }]));
        let whole = turtle(text, &ReadOptions::default());
        assert!(whole.taxonomy.get("http://x.org/b/").is_some());
    }

    #[test]
    fn turtle_problems_have_lines_and_do_not_hide_each_other() {
        let cycle = format!(
            "{PREFIX}:a a skos:Concept ;\n  skos:broader :b .\n:b a skos:Concept ;\n  skos:broader :a .\n"
        );
        let found = problems(Format::SkosTurtle, &cycle);
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("the labels form a cycle: http://x.org/v/"), "{found:?}");
        assert!(found[0].starts_with("line 5:") || found[0].starts_with("line 7:"), "{found:?}");
        let found = problems(
            Format::SkosTurtle,
            "<http://a> <http://b> foo:c .\n<http://a> <http://b> <http://c> .\n<http://d> <http://e> bar:f .\n",
        );
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[0].starts_with("line 1: invalid Turtle:") && found[1].starts_with("line 3:"),
            "{found:?}"
        );
    }

    #[test]
    fn a_literal_of_many_lines_is_read_in_linear_time() {
        let text = format!(":a a skos:Concept ; skos:definition '''{}''' .", "word\n".repeat(200_000));
        let taxonomy = turtle(&text, &local()).taxonomy;
        assert_eq!(
            taxonomy.label(taxonomy.roots()[0]).description.as_ref().map(String::len),
            Some(1_000_000)
        );
    }

    #[test]
    fn n_triples_are_turtle() {
        let text = "<http://x/a> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://www.w3.org/2004/02/skos/core#Concept> .\n\
            <http://x/a> <http://www.w3.org/2004/02/skos/core#prefLabel> \"A\"@en .\n";
        let taxonomy = load(Format::SkosTurtle, text).taxonomy;
        assert_eq!(taxonomy.name(taxonomy.get("http://x/a").unwrap()), "A");
    }

    const XML: &str = "<?xml version=\"1.0\"?>\n<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\"\n\
        xmlns:skos=\"http://www.w3.org/2004/02/skos/core#\">\n\
        <skos:Concept rdf:about=\"http://x.org/a\"><skos:prefLabel xml:lang=\"en\">A &amp; B</skos:prefLabel></skos:Concept>\n\
        <skos:Concept rdf:about=\"http://x.org/b\">\n<skos:broader rdf:resource=\"http://x.org/a\"/></skos:Concept>\n";

    #[test]
    fn rdf_xml_is_read() {
        let taxonomy =
            parse(format!("{XML}</rdf:RDF>").as_bytes(), Format::SkosRdfxml, &local()).unwrap().taxonomy;
        assert_eq!(parents(&taxonomy, "b"), ["a"]);
        assert_eq!(taxonomy.name(taxonomy.get("a").unwrap()), "A & B");
    }

    #[test]
    fn rdf_xml_problems_have_lines() {
        let cycle = format!(
            "{XML}<rdf:Description rdf:about=\"http://x.org/a\">\n<skos:broader rdf:resource=\"http://x.org/b\"/></rdf:Description></rdf:RDF>"
        );
        let found = problems(Format::SkosRdfxml, &cycle);
        let expected = "the labels form a cycle: http://x.org/a → http://x.org/b → http://x.org/a";
        assert_eq!(found, [format!("line 8: {expected}")]);
        let found = problems(Format::SkosRdfxml, &format!("{XML}<oops></rdf:RDF>"));
        assert!(found[0].starts_with("line 7: invalid RDF/XML:"), "{found:?}");
    }
}

mod files {
    use super::*;

    fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in files {
            fs::write(folder.path().join(name), content).unwrap();
        }
        folder
    }

    #[test]
    fn the_file_of_names_wins_and_its_other_rows_are_counted() {
        let folder = folder(&[
            ("hierarchy.tsv", b"ROOT\ta\told\na\tb\tB\n"),
            ("labels.tsv", b"id\tname\nROOT\tAll\na\tnew\tA thing.\nz\tZ\n"),
        ]);
        let (hierarchy, names) = (folder.path().join("hierarchy.tsv"), folder.path().join("labels.tsv"));
        let loaded = read_vocabulary(Some(&hierarchy), Some(&names), &ReadOptions::default()).unwrap();
        let label = |id: &str| loaded.taxonomy.label(loaded.taxonomy.get(id).unwrap());
        assert_eq!(
            (label("a").name.as_deref(), label("a").description.as_deref()),
            (Some("new"), Some("A thing."))
        );
        assert_eq!(label("b").name.as_deref(), Some("B"));
        let expected = [
            Warning::ExtraNames { count: 1, example: "z".into() },
            Warning::ReplacedNames { count: 1, example: "a".into() },
        ];
        assert_eq!(loaded.warnings, expected);
        let options = ReadOptions { names: Some(names), ..ReadOptions::default() };
        assert_eq!(read(&hierarchy, &options).unwrap(), loaded);
    }

    #[test]
    fn names_alone_are_the_label_list() {
        let folder = folder(&[("labels.tsv", b"b\tB\na\tA\n")]);
        let loaded =
            read_vocabulary(None, Some(&folder.path().join("labels.tsv")), &ReadOptions::default()).unwrap();
        assert_eq!(ids(&loaded.taxonomy, loaded.taxonomy.roots()), ["a", "b"]);
        assert!(read_vocabulary(None, None, &ReadOptions::default()).is_err());
    }

    #[test]
    fn problems_of_both_files_are_found_together_and_named() {
        let folder = folder(&[("hierarchy.tsv", b"ROOT\ta\nx\tb\n"), ("labels.tsv", b"a\tA\na\tA\n\tC\n")]);
        let (hierarchy, names) = (folder.path().join("hierarchy.tsv"), folder.path().join("labels.tsv"));
        let error = read_vocabulary(Some(&hierarchy), Some(&names), &ReadOptions::default()).unwrap_err();
        assert_eq!(error.exit_code(), 65);
        let place = |name: &str| folder.path().join(name).display().to_string();
        let (hierarchy, names) = (place("hierarchy.tsv"), place("labels.tsv"));
        let expected = format!(
            "{hierarchy}:2: unknown parent `x` of `b`\n{names}:2: duplicate id `a`, first declared at {names}:1\n{names}:3: empty label id"
        );
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn packed_files_are_read_and_told_by_the_name_inside() {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut packed, b"Root\ta\tb\n").unwrap();
        let folder = folder(&[("x.taxonomy.gz", &packed.finish().unwrap())]);
        let loaded = read(&folder.path().join("x.taxonomy.gz"), &ReadOptions::default()).unwrap();
        assert_eq!(ids(&loaded.taxonomy, loaded.taxonomy.roots()), ["a", "b"]);
    }

    #[test]
    fn a_file_that_is_not_there_is_no_bad_data() {
        let error = read(&PathBuf::from("no/such/file.tsv"), &ReadOptions::default()).unwrap_err();
        assert_eq!(error.exit_code(), 66);
    }

    #[test]
    fn the_format_asked_for_wins_over_the_ending() {
        let folder = folder(&[("x.json", b"a\tb\n")]);
        let options = ReadOptions { format: Some(Format::Tsv), ..ReadOptions::default() };
        assert_eq!(read(&folder.path().join("x.json"), &options).unwrap().taxonomy.n_labels(), 2);
    }
}

/// What the line formats keep: all but descriptions and alternatives, and names only if asked.
fn without_texts(taxonomy: &Taxonomy, keep_names: bool) -> Taxonomy {
    let mut builder = Builder::new();
    let here = Origin::default();
    for label in taxonomy.labels() {
        let name = taxonomy.label(label).name.clone().filter(|_| keep_names);
        builder.declare(Label { id: taxonomy.id(label).to_owned(), name, ..Label::default() }, &here);
        if taxonomy.is_root_child(label) {
            builder.edge(None, taxonomy.id(label), &here);
        }
        for &parent in taxonomy.parents(label) {
            builder.edge(Some(taxonomy.id(parent)), taxonomy.id(label), &here);
        }
    }
    builder.build().unwrap()
}

proptest! {
    #[test]
    fn json_and_turtle_give_back_what_was_written(taxonomy in dag()) {
        for format in [Format::Json, Format::SkosTurtle] {
            let text = written(&taxonomy, format);
            let loaded = load(format, &text);
            prop_assert_eq!(&loaded.taxonomy, &taxonomy, "{}", text);
            prop_assert!(loaded.warnings.is_empty());
        }
    }

    #[test]
    fn json_keeps_any_text(id in "\\PC+|.*\n.", name in any::<Option<String>>(), other in any::<Vec<String>>()) {
        let mut builder = Builder::new();
        let label = Label { id, description: name.clone(), name, alternatives: other };
        builder.declare(label, &Origin::default());
        let taxonomy = builder.build().unwrap();
        prop_assert_eq!(from_json(&to_json(&taxonomy)).unwrap(), taxonomy);
    }

    #[test]
    fn line_formats_give_back_what_they_can_hold(taxonomy in dag()) {
        let loaded = load(Format::Tsv, &written(&taxonomy, Format::Tsv));
        prop_assert_eq!(loaded.taxonomy, without_texts(&taxonomy, true));
        let loaded = load(Format::Taxonomy, &written(&taxonomy, Format::Taxonomy));
        prop_assert_eq!(loaded.taxonomy, without_texts(&taxonomy, false));
        let list = load(Format::List, &written(&taxonomy, Format::List)).taxonomy;
        prop_assert_eq!(list.n_labels(), taxonomy.n_labels());
        for label in list.labels() {
            let (kept, whole) = (list.label(label), taxonomy.label(taxonomy.get(list.id(label)).unwrap()));
            prop_assert_eq!((&kept.name, &kept.description), (&whole.name, &whole.description));
        }
    }

    #[test]
    fn parsers_never_panic_on_any_bytes(bytes in any::<Vec<u8>>()) {
        for info in &FORMATS {
            let _ = parse(&bytes, info.format, &ReadOptions::default());
        }
        let _ = sniff(&PathBuf::from("x"), &bytes);
    }

    #[test]
    fn parsers_never_panic_on_text_that_is_nearly_right(
        words in prop::collection::vec(prop::sample::select(vec![
            "\t", "\n", "\r\n", "ROOT", "a", "b", "True", "mesh_id\tmesh_name\tmesh_tree_number\n", "A01.1", ".", "{", "}", "\"",
            "\"id\":", "[", "]", ",", "{\"format\":\"cladist-taxonomy\",\"version\":1,\"labels\":[", "<http://a>", " a ", "skos:Concept",
            "@prefix skos: <http://www.w3.org/2004/02/skos/core#> .", ";", "skos:broader", "'x'@en", "<rdf:RDF>", "<", "/>", "&amp;", "é", "\u{feff}",
        ]), 0..40)
    ) {
        let text = words.concat();
        for info in &FORMATS {
            let options = ReadOptions { id_style: IdStyle::Local, ..ReadOptions::default() };
            let _ = parse(text.as_bytes(), info.format, &options);
        }
    }
}
