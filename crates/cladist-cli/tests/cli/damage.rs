//! Bundles that are not as they were written.

use std::fs;

use crate::support::Place;

const PREDICT: &str = "predict run corpus/test.jsonl";

/// The names of the bundle's files.
fn names(place: &Place) -> Vec<String> {
    let names: Vec<String> = place.files("run/bundle").into_keys().collect();
    assert!(names.len() >= 8, "{names:?}");
    names
}

/// Replaces one file of the bundle, expects it to be refused by name, and puts it back.
#[track_caller]
fn refused(place: &Place, name: &str, bytes: &[u8]) {
    let whole = fs::read(place.path(&format!("run/bundle/{name}"))).unwrap();
    place.write(&format!("run/bundle/{name}"), bytes);
    for command in [PREDICT, "evaluate run", "compare run run"] {
        let outcome = place.run(command).fails(65, &[&format!("run/bundle/{name}")]);
        assert_eq!(outcome.stdout, "");
    }
    place.write(&format!("run/bundle/{name}"), whole);
}

#[test]
fn a_truncated_file_is_refused_by_name() {
    let place = Place::with_run();
    for name in names(&place) {
        let bytes = fs::read(place.path(&format!("run/bundle/{name}"))).unwrap();
        refused(&place, &name, &bytes[..bytes.len() - 1]);
    }
    refused(&place, "model.safetensors", b"");
    refused(&place, "MANIFEST.json", b"");
    place.run(PREDICT).ok();
}

#[test]
fn a_flipped_bit_is_refused_by_name() {
    let place = Place::with_run();
    for name in names(&place).into_iter().filter(|name| name != "MANIFEST.json") {
        let bytes = fs::read(place.path(&format!("run/bundle/{name}"))).unwrap();
        let mut flipped = bytes.clone();
        flipped[bytes.len() / 2] ^= 1;
        refused(&place, &name, &flipped);
    }
    place.run(PREDICT).ok();
}

#[test]
fn no_flipped_bit_of_the_manifest_passes_unseen() {
    let place = Place::with_run();
    let bytes = fs::read(place.path("run/bundle/MANIFEST.json")).unwrap();
    let step = bytes.len() / 40;
    for at in (0..bytes.len()).step_by(step) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1;
        place.write("run/bundle/MANIFEST.json", &flipped);
        let outcome = place.run(PREDICT);
        // White space may become other white space; everything else is noticed.
        if outcome.code != Some(0) {
            outcome.fails(65, &["run/bundle/"]);
        } else {
            let same = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).unwrap();
            assert_eq!(same(&flipped), same(&bytes), "byte {at}");
        }
    }
}

#[test]
fn a_missing_file_is_named() {
    let place = Place::with_run();
    for name in names(&place) {
        let path = place.path(&format!("run/bundle/{name}"));
        let bytes = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        place.run(PREDICT).fails(65, &[name.as_str(), "run"]);
        fs::write(&path, bytes).unwrap();
    }
    place.run(PREDICT).ok();
}

#[test]
fn a_foreign_folder_or_file_is_refused_by_name() {
    let place = Place::with_run();
    for foreign in ["corpus", "run/reports", "corpus/test.jsonl", "run/bundle/model.safetensors"] {
        for command in [format!("predict {foreign}"), format!("evaluate {foreign} --corpus corpus")] {
            place.run(&command).fails(65, &[&format!("`{foreign}`"), "MANIFEST.json"]);
        }
    }
    fs::create_dir(place.path("empty")).unwrap();
    place.run("predict empty").fails(65, &["`empty`"]);
    place.run("predict nowhere").fails(66, &["`nowhere` does not exist", "hint"]);
}

#[test]
fn a_manifest_of_something_else_is_refused() {
    let place = Place::with_run();
    let manifest = place.read("run/bundle/MANIFEST.json");
    for (from, to, words) in [
        ("\"model\"", "\"checkpoint\"", "checkpoint"),
        ("\"cladist\"", "\"other\"", "other"),
        ("\"version\": 1", "\"version\": 999", "hint: update Cladist"),
        ("config.toml", "../config.toml", "../config.toml"),
        ("config.toml", "missing.toml", "missing.toml"),
    ] {
        assert!(manifest.contains(from), "{manifest}");
        place.write("run/bundle/MANIFEST.json", manifest.replacen(from, to, 1));
        place.run(PREDICT).fails(65, &["run/bundle/", words]);
    }
    for text in ["", "null", "{}", "[1, 2", "\u{0}\u{0}"] {
        place.write("run/bundle/MANIFEST.json", text);
        place.run(PREDICT).fails(65, &["run/bundle/MANIFEST.json"]);
    }
}

#[test]
fn a_damaged_data_card_is_named() {
    let place = Place::with_run();
    place.write("run/data.json", "{\"source\": 7}");
    place.run("evaluate run").fails(65, &["run/data.json"]);
    fs::remove_file(place.path("run/data.json")).unwrap();
    place.run("evaluate run").fails(78, &["no corpus given"]);
    place.run("evaluate run --corpus corpus").ok();
}

#[test]
fn a_file_that_is_not_in_the_manifest_is_refused_by_name() {
    let place = Place::with_run();
    place.write("run/bundle/notes.txt", "mine");
    place.run(PREDICT).fails(65, &["run/bundle/notes.txt", "MANIFEST.json"]);
    // The run folder around the bundle is open to notes.
    fs::rename(place.path("run/bundle/notes.txt"), place.path("run/notes.txt")).unwrap();
    place.run(PREDICT).ok();
}

#[cfg(unix)]
#[test]
fn whoever_may_read_one_file_of_a_bundle_may_read_all() {
    use std::os::unix::fs::PermissionsExt;

    let place = Place::with_run();
    let mode =
        |name: &str| fs::metadata(place.path(&format!("run/bundle/{name}"))).unwrap().permissions().mode();
    for name in names(&place) {
        assert_eq!(mode(&name), mode("MANIFEST.json"), "{name}");
    }
}
