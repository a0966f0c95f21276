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

fn run() -> PathBuf {
    PathBuf::from("runs/one")
}

#[test]
fn every_error_of_the_library_has_a_message_and_an_exit_code() {
    use cladist::Error as E;
    let io = |kind: Io| E::Core(cladist_core::Error::io("read", &run())(kind.into()));
    let text = || "reason".to_owned();
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
        E::Syntax { path: "my.toml".into(), reason: text() },
        E::NoValue("train.seed".into()),
        E::Key(".x".into()),
        E::Lines("linear.c".into()),
        E::NotASection("head.x".into()),
        E::Refused("unknown field `epoch`".into()),
        E::Setting { key: "refit".into(), problem: "must be `never`".into() },
        E::Setting { key: "mixed.members".into(), problem: "is for the head `mixed`".into() },
        E::UnknownChoice { what: "head", name: "perceptron".into(), known: "`svm`".into() },
        E::NoEncoder { head: "flat" },
        E::NoRun(run()),
        E::NothingToResume(run()),
        E::OtherSettings { path: run(), difference: text() },
        E::Exists(run()),
        E::Unfinished(run()),
        E::NotARun(run()),
        E::Foreign { path: run(), files: "notes.txt".into() },
        E::NoFolder,
        E::NoCorpus,
        E::NoSplit { split: SplitName::Train, purpose: "to learn from" },
        E::NoSplit { split: SplitName::Dev, purpose: "to weigh members on" },
        E::NoSplit { split: SplitName::Test, purpose: "to evaluate" },
        E::Documents { model: "`runs/one`".into(), reads: "features", given: "text" },
        E::Documents { model: "`runs/one`".into(), reads: "text", given: "features" },
        E::TooFewMembers,
        E::MemberSawDev(run()),
        E::MemberHeldOut(run()),
        E::Fixed { change: "train.seed=1".into(), head: "flat" },
        E::FixedEnsemble("mixed.steps=3".into()),
        E::NoNewLabels { head: "svm" },
        E::NothingToAdd { labels: 9 },
        E::NoSuchLevel { first: 3, n_levels: 2 },
        E::Unsupported { head: "svm", problem: "emits no sequences of labels" },
        E::Unsupported { head: "svm", problem: "does not explain by gradients" },
        E::Unsupported { head: "flat", problem: "has no attention" },
        E::NotComparable("read different documents"),
        E::NotComparable("know different labels"),
        E::Threads { n: 99_999, reason: "choose 1 to 1024".into() },
        E::Stopped(run()),
        E::Damaged { path: run(), reason: text() },
        E::Serialise { what: "settings", source: "out of range".into() },
    ];
    insta::assert_snapshot!("library", shown(errors.into_iter().map(Into::into).collect()));
}

#[test]
fn every_error_of_the_command_line_has_a_message_and_an_exit_code() {
    let errors = vec![
        Usage::NoEffect { flag: "--epochs", head: "svm" },
        Usage::Needs { flag: "--sequences", needs: "--format jsonl" },
        Usage::Value { flag: "--seed", expected: "at most 7", value: "8".into() },
        Usage::Exists("out.csv".into()),
        Usage::OtherFormat { path: "out.x".into(), format: "a format that can be written".into() },
        Usage::NoLabels,
        Usage::NoVocabulary("corpus".into()),
        Usage::Resumed("`train.epochs` is 4 there and 9 here".into()),
        Usage::Unclean("unknown labels: 1".into()),
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
        L::Variant {
            name: "flat",
            source: Box::new(L::Cladist(cladist::Error::Refused("unknown field `x`".into()))),
        },
        L::Axis("train.seed".into()),
        L::TooMany(1000),
        L::HeadChosen,
        L::NoMember { variant: "mixed", member: "svm" },
        L::NoMemberRun { variant: "mixed", member: "svm", seed: 42 },
        L::NoEffect { key: "flat.pool".into(), head: "flat" },
        L::Zero("seeds"),
        L::NoDevToChooseOn,
        L::NothingToChooseBy("micro-f1".into()),
        L::NotAnExperiment(run()),
        L::OtherPlan { path: run(), difference: "another name".into() },
        L::Unfinished(run()),
        L::NoBundle,
        L::NoLayers { path: run(), head: "svm" },
        L::NoVectors { path: run(), head: "bonsai", reason: "trees decide".into() },
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
