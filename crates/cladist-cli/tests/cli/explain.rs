//! Which words a label rests on.

use crate::support::Place;

#[test]
fn words_of_a_topic_carry_its_label() {
    let place = Place::with_run();
    let documents = place.run("explain run corpus/test.jsonl --limit 4 -k 1 --json").ok().json();
    let documents = documents.as_array().unwrap();
    assert_eq!(documents.len(), 4);
    for document in documents {
        let text: Vec<char> = document["text"].as_str().unwrap().chars().collect();
        let label = &document["models"][0]["labels"][0];
        assert!(label["score"].as_f64().unwrap() > 0.0, "{label}");
        let words = label["words"].as_array().unwrap();
        assert!(words.iter().any(|word| word["importance"].as_f64().unwrap() > 0.01), "{label}");
        for word in words {
            let at = |key: &str| word[key].as_u64().unwrap() as usize;
            let inside: String = text[at("start")..at("end")].iter().collect();
            assert_eq!(inside, word["text"].as_str().unwrap());
        }
    }
}

#[test]
fn two_models_stand_side_by_side_on_a_page() {
    let place = Place::with_run();
    place.run("train --corpus corpus --head bonsai --out other --quiet").ok();
    place.run("explain run corpus/test.jsonl --against other --limit 2 --html page.html").ok();
    let page = place.read("page.html");
    assert!(
        page.contains(">run<") && page.contains(">other<") && page.contains("<span class=\"for-"),
        "{page}"
    );
    assert!(!page.contains("http"), "the page needs nothing else");
    let text = place.run_with("explain run", "plain words & such").ok().stdout;
    assert!(text.contains("line-1"), "{text}");
}

#[test]
fn what_cannot_be_explained_is_refused() {
    let place = Place::with_run();
    place.run("explain run corpus/test.jsonl --label nowhere").fails(78, &["`nowhere`"]);
    place.run("explain nothing corpus/test.jsonl").fails(66, &["nothing"]);
    place.run("explain run missing.jsonl").fails(66, &["missing.jsonl"]);
    for flag in ["--top-k", "--max-words", "--limit"] {
        place.run(&format!("explain run corpus/test.jsonl {flag} 0")).fails(2, &[flag]);
    }
}
