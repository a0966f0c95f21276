use super::*;

fn documents(texts: &[&str]) -> Vec<Document> {
    texts.iter().enumerate().map(|(n, text)| Document::from_text(n.to_string(), *text)).collect()
}

fn unigrams() -> FeatureConfig {
    FeatureConfig { word_ngrams: [1, 1], min_df: 1, ..FeatureConfig::default() }
}

fn fit(config: &FeatureConfig, texts: &[&str]) -> Vectorizer {
    Vectorizer::fit(config, &documents(texts), &Job::silent()).unwrap()
}

fn named(vectorizer: &Vectorizer, text: &str) -> Vec<(String, f32)> {
    let row = vectorizer.transform(&Document::from_text("", text));
    row.into_iter().map(|(feature, weight)| (vectorizer.feature_name(feature).unwrap(), weight)).collect()
}

#[test]
fn weights_follow_the_formula() {
    let config = FeatureConfig { l2_normalise: false, ..unigrams() };
    let vectorizer = fit(&config, &["a b", "a a a", "c"]);
    let row = named(&vectorizer, "a a b unseen");
    // idf: a in 2 of 3, b in 1 of 3, each smoothed by one document.
    let (a, b) = (1.0 + (4.0f32 / 3.0).ln(), 1.0 + (4.0f32 / 2.0).ln());
    assert_eq!(row.len(), 2);
    assert!((row[0].1 - (1.0 + 2.0f32.ln()) * a).abs() < 1e-6, "{row:?}");
    assert!((row[1].1 - b).abs() < 1e-6, "{row:?}");

    let plain = FeatureConfig { sublinear_tf: false, smooth_idf: false, ..config };
    let row = named(&fit(&plain, &["a b", "a a a", "c"]), "a a b");
    assert!((row[0].1 - 2.0 * (1.0 + 1.5f32.ln())).abs() < 1e-6, "{row:?}");

    let row = named(&fit(&unigrams(), &["a b", "a a a", "c"]), "a a b");
    assert!((row.iter().map(|(_, weight)| weight * weight).sum::<f32>() - 1.0).abs() < 1e-6);
}

#[test]
fn rare_frequent_and_surplus_terms_are_left_out() {
    let texts = ["a b c", "a b d", "a c e", "a f b"];
    let names = |config: &FeatureConfig| -> Vec<String> {
        let vectorizer = fit(config, &texts);
        (0..vectorizer.n_features() as u32).map(|f| vectorizer.feature_name(f).unwrap()).collect()
    };
    assert_eq!(names(&unigrams()), ["a", "b", "c", "d", "e", "f"]);
    assert_eq!(names(&FeatureConfig { min_df: 2, ..unigrams() }), ["a", "b", "c"]);
    assert_eq!(names(&FeatureConfig { min_df: 2, max_df: 0.75, ..unigrams() }), ["b", "c"]);
    // d, e and f tie: the smallest terms stay.
    assert_eq!(names(&FeatureConfig { max_features: 4, ..unigrams() }), ["a", "b", "c", "d"]);
    assert_eq!(
        names(&FeatureConfig { word_ngrams: [1, 2], min_df: 2, ..unigrams() }),
        ["a", "a b", "b", "c"]
    );
}

#[test]
fn documents_without_known_terms_have_empty_rows() {
    let vectorizer = fit(&unigrams(), &["a b"]);
    for text in ["", " \n", "zzz", "!?"] {
        assert!(named(&vectorizer, text).is_empty(), "{text:?}");
    }
    let none = fit(&unigrams(), &[]);
    assert_eq!(none.n_features(), 0);
    assert!(named(&none, "a").is_empty());
}

#[test]
fn a_corpus_of_features_passes_by_the_vocabulary() {
    let features = |pairs: &[(u32, f32)]| Document { features: Some(pairs.to_vec()), ..Document::default() };
    let train = [features(&[(3, 1.0), (u32::MAX, 2.0)]), features(&[(7, 1.0)])];
    let vectorizer = Vectorizer::fit(&FeatureConfig::default(), &train, &Job::silent()).unwrap();
    assert_eq!(vectorizer.n_features(), 3);
    let row = vectorizer.transform(&features(&[(u32::MAX, 4.0), (3, 3.0), (5, 9.0), (7, f32::NAN)]));
    assert_eq!(row, [(0, 0.6), (2, 0.8)]);
    assert_eq!(vectorizer.feature_name(2), Some(u32::MAX.to_string()));
    assert!(vectorizer.transform(&Document::from_text("", "text")).is_empty());
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let texts: Vec<String> =
        (0..3000).map(|n| format!("w{} w{} w{} x{}", n % 7, n % 31, n % 5, n % 900)).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| fit(&FeatureConfig::default(), &texts))
    };
    assert_eq!(on(1), on(3));
}

#[test]
fn what_was_saved_loads_equal_and_damage_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let config = FeatureConfig { char_ngrams: [2, 4], ..unigrams() };
    let vectorizer = fit(&config, &["don't l'été 42", "été x"]);
    let target = folder.path().join("bundle");
    let save = |vectorizer: &Vectorizer| {
        let writer = crate::bundle::Writer::create(&target, "test").unwrap();
        vectorizer.save(&writer).unwrap();
        writer.finish().unwrap();
    };
    save(&vectorizer);
    assert_eq!(Vectorizer::load(&target, config.clone()).unwrap(), vectorizer);

    let vocabulary = target.join("vocabulary.txt");
    let text = std::fs::read_to_string(&vocabulary).unwrap();
    let reversed: Vec<&str> = text.lines().rev().collect();
    for damaged in [String::new(), format!("{text}zzzz\n"), format!("{}\n", reversed.join("\n"))] {
        std::fs::write(&vocabulary, damaged).unwrap();
        let error = Vectorizer::load(&target, config.clone()).unwrap_err();
        assert!(error.to_string().contains("vocabulary.txt"), "{error}");
    }
    std::fs::write(&vocabulary, [0xff, b'\n']).unwrap();
    assert!(Vectorizer::load(&target, config).is_err());
}

#[test]
fn settings_without_sense_are_refused_by_name() {
    let refused = |config: FeatureConfig| config.validate().unwrap_err().to_string();
    assert!(refused(FeatureConfig { word_ngrams: [2, 1], ..unigrams() }).contains("features.word_ngrams"));
    assert!(refused(FeatureConfig { word_ngrams: [0, 0], ..unigrams() }).contains("features.word_ngrams"));
    assert!(refused(FeatureConfig { char_ngrams: [0, 3], ..unigrams() }).contains("features.char_ngrams"));
    assert!(refused(FeatureConfig { min_df: 0, ..unigrams() }).contains("features.min_df"));
    assert!(refused(FeatureConfig { max_df: f64::NAN, ..unigrams() }).contains("features.max_df"));
    assert!(refused(FeatureConfig { max_features: 0, ..unigrams() }).contains("features.max_features"));
    assert!(refused(FeatureConfig { max_chars: 0, ..unigrams() }).contains("features.max_chars"));
}

#[test]
fn unknown_keys_are_refused() {
    assert!(serde_json::from_str::<FeatureConfig>(r#"{"min_df": 3}"#).is_ok());
    assert!(serde_json::from_str::<FeatureConfig>(r#"{"mindf": 3}"#).is_err());
}

#[test]
fn fitting_stops_when_asked() {
    let job = Job::silent();
    job.cancel.cancel();
    let refused = Vectorizer::fit(&unigrams(), &documents(&["a"]), &job);
    assert!(matches!(refused, Err(Error::Cancelled)));
}
