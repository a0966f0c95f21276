//! What the program makes of errors: the exit code, and a hint in terms of flags.

use cladist::{Error, ErrorKind};
use cladist_lab::LabError;

/// A command line that makes no sense, though clap takes it.
#[derive(Debug, thiserror::Error)]
pub enum Usage {
    /// A flag for heads of another family.
    #[error("`{flag}` has no effect on the head `{head}`")]
    NoEffect {
        /// The flag.
        flag: &'static str,
        /// The head.
        head: &'static str,
    },
    /// A flag without another that it needs.
    #[error("`{flag}` needs `{needs}`")]
    Needs {
        /// The flag.
        flag: &'static str,
        /// What it needs.
        needs: &'static str,
    },
    /// A value that cannot be used.
    #[error("`{flag}` must be {expected}: {value}")]
    Value {
        /// The flag.
        flag: &'static str,
        /// What would do.
        expected: &'static str,
        /// What was given.
        value: String,
    },
    /// A file that is not replaced unasked.
    #[error("`{}` already exists", .0.display())]
    Exists(std::path::PathBuf),
    /// A file name that says another format than the one asked for.
    #[error("`{}` does not look like {format}", path.display())]
    OtherFormat {
        /// The file.
        path: std::path::PathBuf,
        /// The format that would be written.
        format: String,
    },
    /// New labels are to be added, but which?
    #[error("no labels given")]
    NoLabels,
    /// A corpus folder without labels.
    #[error("`{}` has neither a hierarchy nor labels.tsv", .0.display())]
    NoVocabulary(std::path::PathBuf),
    /// Settings for an unfinished run other than its own.
    #[error("an unfinished run keeps its settings: {0}")]
    Resumed(String),
    /// A corpus that did not pass its check.
    #[error("the corpus has problems: {0}")]
    Unclean(String),
}

/// The exit code where the system has no more memory.
pub const OUT_OF_MEMORY: u8 = 71;

/// The exit code of an error, of the sysexits family: the first cause that has a kind decides.
#[must_use]
pub fn exit_code(error: &anyhow::Error) -> u8 {
    let broken_pipe = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<std::io::Error>().is_some_and(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
    };
    // Whoever reads has seen enough.
    if error.chain().any(broken_pipe) {
        return 0;
    }
    for cause in error.chain() {
        if let Some(kind) = kind(cause) {
            return match kind {
                ErrorKind::Data | ErrorKind::Bundle | ErrorKind::Encoder => 65,
                ErrorKind::NotFound => 66,
                ErrorKind::Io => 74,
                ErrorKind::Busy | ErrorKind::Cancelled => 75,
                ErrorKind::Setting => 78,
                _ => 70,
            };
        }
    }
    70
}

fn kind(cause: &(dyn std::error::Error + 'static)) -> Option<ErrorKind> {
    if let Some(usage) = cause.downcast_ref::<Usage>() {
        return Some(match usage {
            Usage::Unclean(_) | Usage::NoVocabulary(_) => ErrorKind::Data,
            Usage::NoEffect { .. }
            | Usage::Needs { .. }
            | Usage::Value { .. }
            | Usage::Exists(_)
            | Usage::OtherFormat { .. }
            | Usage::NoLabels
            | Usage::Resumed(_) => ErrorKind::Setting,
        });
    }
    None.or_else(|| cause.downcast_ref::<Error>().map(Error::kind))
        .or_else(|| cause.downcast_ref::<LabError>().map(LabError::kind))
        .or_else(|| cause.downcast_ref::<cladist_core::Error>().map(cladist_core::Error::kind))
        .or_else(|| cause.downcast_ref::<cladist_nn::Error>().map(cladist_nn::Error::kind))
        .or_else(|| cause.is::<std::io::Error>().then_some(ErrorKind::Io))
}

/// What would help, in terms of flags.
#[must_use]
pub fn hint(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(|cause| {
        if let Some(usage) = cause.downcast_ref::<Usage>() {
            return of_usage(usage);
        }
        if let Some(lab) = cause.downcast_ref::<LabError>() {
            return of_lab(lab);
        }
        let remedy = None
            .or_else(|| cause.downcast_ref::<cladist_core::Error>().and_then(cladist_core::Error::remedy))
            .or_else(|| cause.downcast_ref::<cladist_nn::Error>().and_then(cladist_nn::Error::remedy));
        remedy.map(str::to_owned).or_else(|| cause.downcast_ref::<Error>().and_then(of_library))
    })
}

fn of_usage(usage: &Usage) -> Option<String> {
    let hint = match usage {
        Usage::Exists(_) => "choose another place, or pass `--overwrite`",
        Usage::OtherFormat { .. } => "name the format with `--to`",
        Usage::NoLabels => "pass `--labels FILE` with id, name and description in columns",
        Usage::Resumed(_) => {
            "leave these flags away to go on, or start anew with `--overwrite` instead of `--resume`"
        }
        _ => return None,
    };
    Some(hint.to_owned())
}

fn of_library(error: &Error) -> Option<String> {
    let hint = match error {
        Error::NoValue(_) => "write `--set key=value`, such as `--set train.seed=7`",
        Error::Refused { .. } => "`--print-config` shows every setting of the head",
        Error::NoEncoder { .. } => "pass `--encoder DIR`, or `--encoder scratch:mini` for a small new one",
        Error::NoRun(_) => "give the folder that `cladist train --out` wrote",
        Error::Exists(_) => "choose another place, or pass `--overwrite`",
        Error::OtherSettings { .. } => "choose another place, or start anew with `--overwrite`",
        Error::Unfinished(_) => "go on with `--resume`, or start anew with `--overwrite`",
        Error::NotARun(_) => "choose another place",
        Error::Foreign { .. } => "move these files elsewhere, or choose another place",
        Error::NoFolder => "pass `--out RUN`",
        Error::NoCorpus => "pass `--corpus DIR`, or `--train FILE`, `--test FILE` and `--taxonomy FILE`",
        Error::NoSplit { split, .. } => {
            return Some(match split {
                cladist::corpus::SplitName::Dev => {
                    "pass `--dev-file FILE`, or hold one out with `--dev 0.1`".to_owned()
                }
                other => format!("pass `--{other} FILE`"),
            });
        }
        Error::Documents { reads: "features", .. } => "give xmc or libsvm files, see `--input-format`",
        Error::TooFewMembers => "pass `--member RUN` for each",
        Error::MemberSawDev(_) => "train it with `--set refit=never`",
        Error::MemberHeldOut(_) => {
            "train members and ensemble on the same corpus with the same `--dev`, `--seed` and `data.stratified`"
        }
        Error::NoNewLabels { .. } => {
            "train `--head label-attention`, which scores labels by their descriptions"
        }
        Error::Unsupported { problem, .. } if problem.contains("sequences") => {
            "train a model that emits them with `--head label-sequence`"
        }
        Error::Unsupported { problem, .. }
            if problem.contains("explain by") || problem.contains("normalises") =>
        {
            "`--method leave-one-out` works with any model"
        }
        Error::Unsupported { problem, .. } if problem.contains("attention") => {
            "use `--method integrated-gradients` or `leave-one-out`"
        }
        Error::NotComparable("read different documents") => "name the documents of both with `--corpus DIR`",
        Error::NotComparable(_) => {
            "train both on the same corpus with the same `[data]` settings, such as `data.ancestors`"
        }
        Error::Setting { key, .. } if key == "mixed.members" => "`--member` goes with `--head mixed`",
        Error::Stopped(out) => {
            return Some(format!("go on with `cladist train --resume --out {}`", out.display()));
        }
        Error::Network(cladist_nn::Error::OtherRun { .. }) => {
            "resume with what the run began with, or start anew with `--overwrite`"
        }
        Error::Network(cladist_nn::Error::OtherVersion { .. }) => {
            "train again with `--overwrite`, or go on with the version that began the run"
        }
        other => return other.remedy().map(str::to_owned),
    };
    Some(hint.to_owned())
}

fn of_lab(error: &LabError) -> Option<String> {
    let hint = match error {
        LabError::Cladist(inner) => return of_library(inner),
        LabError::Variant { source, .. } => return of_lab(source),
        LabError::NotAnExperiment(_) => "choose another place",
        LabError::NothingToChooseBy(_) => {
            "give a dev split, hold one out with `--dev 0.1`, and pass `--set refit=never`"
        }
        LabError::NoDevToChooseOn => "hold one out with `--dev 0.1`, or pass `--no-grid`",
        LabError::Axis(_) => "write `--try key=v1,v2`, such as `--try train.learning_rate=5e-5,1e-4`",
        LabError::NothingHeldOut => "hold labels out of training with `--set data.hold_out_labels=0.2`",
        LabError::NoLayers { .. } => "give a run that was trained with `--encoder`",
        LabError::OtherPlan { .. } => "choose another `--out`, or start anew with `--overwrite`",
        LabError::Stopped => "the same command again goes on from here",
        _ => return None,
    };
    Some(hint.to_owned())
}

#[cfg(test)]
mod tests;
