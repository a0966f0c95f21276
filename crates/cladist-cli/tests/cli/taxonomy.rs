//! Showing, converting and comparing taxonomies.

use crate::support::{LABELS, Place};

#[test]
fn a_taxonomy_is_shown_as_a_tree_with_its_statistics() {
    let place = Place::with_corpus();
    insta::assert_snapshot!("taxonomy-show", place.run("taxonomy show corpus --depth 9").ok().stdout);
    let file = place.run("taxonomy show corpus/hierarchy.tsv --labels corpus/labels.tsv --depth 9").ok();
    assert_eq!(file.stdout, place.run("taxonomy show corpus --depth 9").ok().stdout);
    let part = place.run("taxonomy show corpus --below dogs").ok().stdout;
    assert!(part.contains("robot-dogs") && !part.contains("Cats"), "{part}");
    place.run("taxonomy show corpus --below wolves").fails(78, &["`wolves`"]);
}

#[test]
fn statistics_are_json_on_request() {
    let stats = Place::with_corpus().run("taxonomy show corpus --json").ok().json();
    assert_eq!(stats["labels"], LABELS.len());
    assert_eq!(stats["labels_per_level"], serde_json::json!([3, 6]));
    assert_eq!(stats["multi_parent_labels"], 1);
    assert_eq!(stats["named"], LABELS.len());
    assert_eq!(stats["described"], LABELS.len());
}

#[test]
fn formats_convert_into_each_other_and_back() {
    let place = Place::with_corpus();
    place.run("taxonomy convert corpus/hierarchy.tsv all.json --labels corpus/labels.tsv").ok();
    for (to, file) in
        [("tsv", "t.tsv"), ("taxonomy", "t.taxonomy"), ("skos-turtle", "t.ttl"), ("json", "t.json")]
    {
        let outcome = place.run(&format!("taxonomy convert all.json {file} --to {to}")).ok();
        assert!(outcome.stderr.contains(&format!("wrote 9 labels as {to} to {file}")), "{}", outcome.stderr);
        place.run(&format!("taxonomy convert {file} back.json --labels corpus/labels.tsv --local-ids")).ok();
        let diff = place.run("taxonomy diff all.json back.json").ok();
        assert_eq!(diff.stdout, "no difference\n", "{to}: {}", place.read(file));
        // By its ending alone the format is the same, and writing is repeatable.
        place.run(&format!("taxonomy convert all.json again-{file}")).ok();
        assert_eq!(place.read(&format!("again-{file}")), place.read(file));
    }
}

#[test]
fn names_descriptions_and_parents_survive_turtle_and_json() {
    let place = Place::with_corpus();
    place.run("taxonomy convert corpus/hierarchy.tsv t.ttl --labels corpus/labels.tsv").ok();
    place.run("taxonomy convert t.ttl t.json --local-ids").ok();
    let json: serde_json::Value = serde_json::from_str(&place.read("t.json")).unwrap();
    let labels = json["labels"].as_array().unwrap();
    let cars = labels.iter().find(|label| label["id"] == "cars").unwrap();
    assert_eq!(cars["name"], "Motor cars");
    assert_eq!(cars["description"], "Documents about motor cars.");
    let robots = labels.iter().find(|label| label["id"] == "robot-dogs").unwrap();
    assert_eq!(robots["parents"].as_array().unwrap().len(), 2);
}

#[test]
fn conversion_goes_to_standard_output_unless_told() {
    let place = Place::with_corpus();
    let tsv = place.run("taxonomy convert corpus/hierarchy.tsv --to tsv").ok();
    assert_eq!(tsv.stderr, "");
    assert_eq!(tsv.stdout.lines().count(), 3 + 7);
    assert!(tsv.stdout.contains("dogs\trobot-dogs"), "{}", tsv.stdout);
    place
        .run("taxonomy convert corpus/hierarchy.tsv --to parchment")
        .fails(78, &["`parchment`", "skos-turtle"]);
    place.run("taxonomy convert corpus/hierarchy.tsv --to mesh").fails(65, &["`mesh`", "only read"]);
    place
        .run("taxonomy convert corpus/hierarchy.tsv corpus/labels.tsv/x")
        .fails(74, &["corpus/labels.tsv/x"]);
    place.run("taxonomy convert nowhere.tsv").fails(66, &["`nowhere.tsv`"]);
    assert_eq!(place.names(""), ["corpus".to_owned()].into());
}

#[test]
fn levels_are_cut_at_both_ends() {
    let place = Place::with_corpus();
    let lines = |flags: &str| {
        let text = place.run(&format!("taxonomy convert corpus/hierarchy.tsv --to tsv {flags}")).ok().stdout;
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(lines("--max-levels 1"), ["ROOT\tanimals", "ROOT\tmachines", "ROOT\tplants"]);
    let low = lines("--drop-top 1");
    assert!(
        low.contains(&"ROOT\tcats".to_owned()) && low.contains(&"dogs\trobot-dogs".to_owned()),
        "{low:?}"
    );
    assert!(!low.iter().any(|line| line.contains("animals")), "{low:?}");
    place.run("taxonomy convert corpus/hierarchy.tsv --drop-top 5").fails(78, &["`--drop-top`", "2 levels"]);
}

#[test]
fn a_difference_names_what_was_added_removed_renamed_and_moved() {
    let place = Place::with_corpus();
    let hierarchy = place.read("corpus/hierarchy.tsv");
    let changed =
        hierarchy.replace("plants\tflowers\n", "").replace("machines\trobot-dogs", "machines\tdrones")
            + "plants\tcars\nROOT\tstones\n";
    place.write("new/hierarchy.tsv", changed);
    let names =
        place.read("corpus/labels.tsv").replace("Motor cars\t", "Cars\t").replace("about cats", "on cats");
    place.write("new/labels.tsv", names.replace("flowers\tFlowers\tDocuments about flowers.\n", ""));
    place.write("new/train.jsonl", "");
    let diff = place.run("taxonomy diff corpus new").ok();
    insta::assert_snapshot!("taxonomy-diff", diff.stdout);
    let json = place.run("taxonomy diff corpus new --json").ok().json();
    assert_eq!(json["added"].as_array().unwrap().len(), 2, "{json:#}");
    assert_eq!(json["removed"][0]["id"], "flowers");
    assert_eq!(json["renamed"][0]["from"], "Motor cars");
    let moved: Vec<&str> = crate::support::column(&json["moved"], "id");
    assert_eq!(moved, ["cars", "robot-dogs"]);
    assert_eq!(place.run("taxonomy diff new new").ok().stdout, "no difference\n");
}

#[test]
fn skos_is_read_in_the_language_asked_for() {
    let place = Place::new();
    place.write(
        "pets.ttl",
        "@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n\
         <http://x/pets> a skos:Concept ; skos:prefLabel \"Pets\"@en, \"Haustiere\"@de .\n\
         <http://x/cats> a skos:Concept ; skos:prefLabel \"Cats\"@en, \"Katzen\"@de ;\n\
           skos:broader <http://x/pets> .\n",
    );
    let english = place.run("taxonomy show pets.ttl").ok().stdout;
    assert!(english.contains("Cats") && !english.contains("Katzen"), "{english}");
    let german = place.run("taxonomy show pets.ttl --language de --local-ids").ok().stdout;
    assert!(german.contains("Katzen") && !german.contains("http://"), "{german}");
}
