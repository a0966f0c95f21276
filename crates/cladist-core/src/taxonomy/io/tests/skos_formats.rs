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
    let name = |loaded: &Loaded, id: &str| loaded.taxonomy.name(loaded.taxonomy.get(id).unwrap()).to_owned();
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
    assert!(found[0].starts_with("line 1: invalid Turtle:") && found[1].starts_with("line 3:"), "{found:?}");
}

#[test]
fn a_literal_of_many_lines_is_read_in_linear_time() {
    let text = format!(":a a skos:Concept ; skos:definition '''{}''' .", "word\n".repeat(200_000));
    let taxonomy = turtle(&text, &local()).taxonomy;
    assert_eq!(taxonomy.label(taxonomy.roots()[0]).description.as_ref().map(String::len), Some(1_000_000));
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

#[test]
fn entities_that_abbreviate_are_read_and_those_that_explode_are_refused() {
    let file = |entities: &str| {
        format!(
            "<?xml version=\"1.0\"?>\n<!DOCTYPE rdf:RDF [\n{entities}\n]>\n\
            <rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns:skos=\"http://www.w3.org/2004/02/skos/core#\">\n\
            <skos:Concept rdf:about=\"&v;a\"/></rdf:RDF>"
        )
    };
    let loaded = load(Format::SkosRdfxml, &file("<!ENTITY v \"http://x.org/\" >"));
    assert_eq!(ids(&loaded.taxonomy, loaded.taxonomy.roots()), ["http://x.org/a"]);
    let nested = file("<!ENTITY w \"ha\">\n<!ENTITY v \"&w;&w;&w;&w;\">");
    let message = "an entity that is made of others or longer than 2000 bytes";
    assert_eq!(problems(Format::SkosRdfxml, &nested), [format!("line 4: invalid RDF/XML: {message}")]);
    let long = file(&format!("<!ENTITY v \"http://x.org/{}\">", "a".repeat(5000)));
    assert_eq!(problems(Format::SkosRdfxml, &long), [format!("line 3: invalid RDF/XML: {message}")]);
}
