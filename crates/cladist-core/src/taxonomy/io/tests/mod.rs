mod files;
mod json_format;
mod line_formats;
mod skos_formats;
mod tables;

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
