use std::path::Path;

use super::*;

/// The name of a variant, and all names. A new variant does not compile until it is listed here, and the test below wants an
/// example of each that is.
macro_rules! variants {
    ($($variant:ident)+) => {
        const VARIANTS: &[&str] = &[$(stringify!($variant)),+];

        fn name(error: &Error) -> &'static str {
            match error {
                $(Error::$variant { .. } => stringify!($variant),)+
            }
        }
    };
}

variants!(Core Encoder Busy Tokenizer Diverged NotOneLabel Head Parameters NothingToStudy OtherRun OtherVersion);

#[test]
fn every_error_has_a_message_and_a_kind() {
    let text = str::to_owned;
    let folder = || PathBuf::from("run");
    let examples = vec![
        Error::Core(cladist_core::Error::io("read", Path::new("encoder/config.json"))(
            std::io::ErrorKind::NotFound.into(),
        )),
        Error::encoder("encoder", "it has no model.safetensors"),
        Error::encoder_by("encoder/config.json", serde_json::from_str::<serde_json::Value>("{").unwrap_err()),
        Error::Encoder {
            path: "vectors".into(),
            problem: text("the folder has several `.npy` files"),
            remedy: Some("give one of them"),
            source: None,
        },
        Error::Busy { folder: folder(), process: Some(7) },
        Error::Busy { folder: folder(), process: None },
        Error::Tokenizer { problem: text("no tokens for start and end, like `[CLS]` and `[SEP]`") },
        Error::Diverged { step: 12, in_a_row: 10, ids: vec![text("7"), text("9")] },
        Error::NotOneLabel { id: text("7"), n_labels: 2 },
        Error::Head {
            problem: text("a softmax needs all labels, not a shortlist"),
            remedy: "leave `shortlist.group_size` at 0, or use the task `multi-label`",
        },
        Error::Parameters { problem: text("it has no tensor `head.weight`") },
        Error::NothingToStudy,
        Error::OtherRun {
            path: folder(),
            differences: vec![text("`train.seed` was 1 and is 2"), text("other training documents")],
        },
        Error::OtherVersion { path: folder(), reason: text("missing field `identity`") },
    ];
    for variant in VARIANTS {
        assert!(examples.iter().any(|error| name(error) == *variant), "`{variant}` has no example");
    }
    let one = |error: &Error| {
        let remedy = error.remedy().map(|remedy| format!("\n  remedy: {remedy}")).unwrap_or_default();
        format!("{}, {:?}\n  {error}{remedy}", name(error), error.kind())
    };
    insta::assert_snapshot!("errors", examples.iter().map(one).collect::<Vec<_>>().join("\n\n"));
}

#[test]
fn an_encoder_keeps_the_error_it_is_refused_by() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("config.json"), "{").unwrap();
    let error = crate::encoder::EncoderConfig::read(folder.path()).unwrap_err();
    let source = std::error::Error::source(&error).unwrap();
    assert!(source.is::<serde_json::Error>() && error.to_string().ends_with(&source.to_string()), "{error}");
}

#[test]
fn an_error_comes_back_from_the_core_crate_as_it_went() {
    let error = Error::Head { problem: "too wide".to_owned(), remedy: "take less" };
    let core = error.into_core();
    assert_eq!((core.kind(), core.to_string().as_str()), (ErrorKind::Setting, "too wide"));
    let error = Error::from(core);
    assert_eq!((matches!(error, Error::Head { .. }), error.remedy()), (true, Some("take less")));
    let busy = Error::Busy { folder: PathBuf::from("run"), process: None };
    assert_eq!(Error::from(busy.into_core()).kind(), ErrorKind::Busy);
    let cancelled = Error::from(cladist_core::Error::Cancelled).into_core();
    assert!(matches!(cancelled, cladist_core::Error::Cancelled));
}
