use std::io::ErrorKind as Io;
use std::path::PathBuf;

use cladist::corpus::SplitName;
use cladist_lab::LabError;

use super::{Usage, exit_code, hint};
use crate::output::message;

/// Every error as a person sees it, after its exit code.
fn shown(errors: Vec<anyhow::Error>) -> String {
    let one =
        |error: anyhow::Error| format!("{}  {}", exit_code(&error), message(&error, hint(&error).as_deref()));
    errors.into_iter().map(one).collect::<Vec<_>>().join("\n\n")
}

/// What the library says of a setting of the head `svm`.
fn refused(argument: &str) -> cladist::Error {
    let svm = cladist::heads::find("svm").unwrap();
    let mut settings = cladist::settings::Settings::of(&cladist::RunConfig::new(svm)).unwrap();
    settings.set_argument(argument).unwrap();
    settings.resolve::<cladist::RunConfig>().unwrap_err()
}

fn run() -> PathBuf {
    PathBuf::from("runs/one")
}

#[test]
fn every_error_of_the_library_has_a_message_and_an_exit_code() {
    use cladist::Error as E;
    let io = |kind: Io| E::Core(cladist_core::Error::io("read", &run())(kind.into()));
    let json = serde_json::from_str::<serde_json::Value>("{").unwrap_err();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("my.toml"), "[train]\nseed =\n").unwrap();
    let Err(E::Syntax { source, .. }) = cladist::settings::Settings::read(&folder.path().join("my.toml"))
    else {
        panic!("this is no TOML");
    };
    let errors: Vec<E> = vec![
        io(Io::NotFound),
        io(Io::PermissionDenied),
        io(Io::InvalidData),
        E::Core(cladist_core::Error::setting("linear.c", "above 0", -1)),
        E::Core(cladist_core::Error::UnknownLabel { place: "`decode.exclude`", id: "nope".into() }),
        E::Core(cladist_core::Error::Cancelled),
        E::Network(cladist_nn::Error::Busy { folder: run(), process: Some(7) }),
        E::Network(cladist_nn::Error::OtherRun {
            path: run(),
            differences: vec!["`train.seed` was 1 and is 2".into()],
        }),
        E::Network(cladist_nn::Error::OtherVersion {
            path: run(),
            reason: "missing field `identity`".into(),
        }),
        E::Syntax { path: "my.toml".into(), source },
        E::NoValue("train.seed".into()),
        E::Key(".x".into()),
        E::Lines("linear.c".into()),
        E::NotASection("head.x".into()),
        refused("linear.colour=1"),
        refused("linear.c=many"),
        refused("head=3"),
        E::Setting {
            key: "refit".into(),
            problem: "must be `never`: heads on encoders and ensembles are not trained a second time".into(),
        },
        E::Setting { key: "mixed.members".into(), problem: "is for the head `mixed`".into() },
        cladist::heads::find("perceptron").unwrap_err(),
        E::NoEncoder { head: "flat" },
        E::NoRun(run()),
        E::NothingToResume(run()),
        E::OtherSettings { path: run(), difference: "`linear.c` is 1.0 there and 2.0 here".into() },
        E::Exists(run()),
        E::Unfinished(run()),
        E::NotARun(run()),
        E::Foreign { path: run(), files: "notes.txt".into() },
        E::NoFolder,
        E::NoCorpus,
        E::NoSplit { split: SplitName::Train, purpose: "to learn from" },
        E::NoSplit { split: SplitName::Dev, purpose: "to fit ensemble weights on" },
        E::NoSplit { split: SplitName::Train, purpose: "to count labels in" },
        E::Documents { model: "`runs/one`".into(), reads: "features", given: "text" },
        E::Documents { model: "`runs/one`".into(), reads: "text", given: "features" },
        E::Documents { model: "the head `flat`".into(), reads: "text", given: "features" },
        E::TooFewMembers,
        E::MemberSawDev(run()),
        E::MemberHeldOut(run()),
        E::Fixed { change: "train.seed=1".into(), head: "flat" },
        E::FixedEnsemble("mixed.steps=3".into()),
        E::NoNewLabels { head: "svm" },
        E::NothingToAdd { labels: 9 },
        E::NoSuchLevel { first: 3, n_levels: 2 },
        E::Unsupported { head: "svm", problem: "emits no sequences of labels" },
        E::Unsupported { head: "svm", problem: "was trained on features, which have no words" },
        E::Unsupported { head: "svm", problem: "has no gradients and no attention to explain by" },
        E::Unsupported {
            head: "flat",
            problem: "normalises texts first (`data.normalise`), so that its words are not those of the text",
        },
        E::Unsupported { head: "flat", problem: "has no label-wise attention" },
        E::NotComparable("read different documents"),
        E::NotComparable("have different label sets"),
        E::NotComparable("treat gold labels differently"),
        E::Threads { n: 99_999, most: 1024 },
        E::NoThreads { n: 1, source: Box::new(std::io::Error::from(Io::WouldBlock)) },
        E::NoThreads { n: 64, source: Box::new(std::io::Error::from(Io::WouldBlock)) },
        E::Stopped(run()),
        E::damaged(&run().join("summary.json"), json),
        E::Damaged { path: run().join("reports/test.json"), reason: "it is no report".into(), source: None },
        E::Serialise { what: "settings", source: "out of range".into() },
    ];
    insta::assert_snapshot!("library", shown(errors.into_iter().map(Into::into).collect()));
}

#[test]
fn every_error_of_the_command_line_has_a_message_and_an_exit_code() {
    let errors = vec![
        Usage::NoEffect { flag: "--epochs", head: "svm" },
        Usage::Needs { flag: "--sequences", needs: "--format jsonl" },
        Usage::Value {
            flag: "--seed",
            expected: "at most 9223372036854775807",
            value: "9223372036854775808".into(),
        },
        Usage::Exists("out.csv".into()),
        Usage::OtherFormat { path: "out.x".into(), format: "a format that can be written".into() },
        Usage::NoLabels,
        Usage::NoVocabulary("corpus".into()),
        Usage::Resumed("`train.epochs` is 4 there and 9 here".into()),
        Usage::Unclean("2 bad lines, 1 unknown label".into()),
    ];
    // A new kind of error needs a line above.
    let known = |usage: &Usage| match usage {
        Usage::NoEffect { .. }
        | Usage::Needs { .. }
        | Usage::Value { .. }
        | Usage::Exists(_)
        | Usage::OtherFormat { .. }
        | Usage::NoLabels
        | Usage::NoVocabulary(_)
        | Usage::Resumed(_)
        | Usage::Unclean(_) => true,
    };
    assert!(errors.iter().all(known));
    insta::assert_snapshot!("usage", shown(errors.into_iter().map(Into::into).collect()));
}

#[test]
fn every_error_of_experiments_has_a_message_and_an_exit_code() {
    use LabError as L;
    let errors = vec![
        L::Cladist(cladist::Error::NoEncoder { head: "flat" }),
        L::Variant { name: "svm", source: Box::new(L::Cladist(refused("linear.colour=1"))) },
        L::Axis("train.seed".into()),
        L::TooMany(10_000),
        L::HeadChosen,
        L::NoMember { variant: "mixed", member: "svm" },
        L::NoMemberRun { variant: "mixed", member: "svm", seed: 42 },
        L::NoEffect { key: "flat.pool".into(), head: "flat" },
        L::Zero("seeds"),
        L::Zero("random"),
        L::NoDevToChooseOn,
        L::NothingToChooseBy("runs/one/trial-001".into()),
        L::NotAnExperiment(run()),
        L::OtherPlan { path: run(), difference: "another name: `himtl`".into() },
        L::OtherPlan { path: run(), difference: "another corpus, or one that has changed since".into() },
        L::Unfinished(run()),
        L::NoBundle,
        L::NoLayers { path: run(), head: "svm" },
        L::NoVectors {
            path: run(),
            head: "bonsai",
            reason: "trees of labels decide step by step; give a run of the head `svm`, or one on an encoder"
                .into(),
        },
        L::NotFinite(run()),
        L::TooFewLabels { path: run(), trained: 2, all: 9, fewest: 3 },
        L::NothingHeldOut,
        L::NoUnseenDocument(SplitName::Test),
        L::Stopped,
    ];
    insta::assert_snapshot!("experiments", shown(errors.into_iter().map(Into::into).collect()));
}

#[test]
fn whoever_reads_less_than_all_gets_no_error() {
    let error = anyhow::Error::from(std::io::Error::from(Io::BrokenPipe)).context("cannot write predictions");
    assert_eq!(exit_code(&error), 0);
    assert_eq!(exit_code(&anyhow::anyhow!("a fault of this program")), 70);
}
