//! From flags to decoding.

use cladist::{DecodeOptions, Model};
use cladist_core::decode::ClosureRule;

use crate::args::{DecodeArgs, PathsArg};
use crate::session::Session;

impl From<&DecodeArgs> for DecodeOptions {
    fn from(args: &DecodeArgs) -> Self {
        let DecodeArgs {
            top_k,
            threshold,
            at_least,
            floor,
            coherent,
            paths,
            coarser_when_unsure,
            include,
            exclude,
        } = args;
        Self {
            top_k: *top_k,
            threshold: *threshold,
            at_least: *at_least,
            floor: *floor,
            coherent: *coherent,
            paths: paths.map(|paths| match paths {
                PathsArg::None => ClosureRule::None,
                PathsArg::CloseUpward => ClosureRule::CloseUpward,
                PathsArg::Prune => ClosureRule::Prune,
            }),
            coarser: *coarser_when_unsure,
            include: include.clone(),
            exclude: exclude.clone(),
        }
    }
}

/// The options of the flags; says so if the model has learnt too little for them.
pub fn options(model: &Model, args: &DecodeArgs, session: &Session) -> DecodeOptions {
    let options = DecodeOptions::from(args);
    if model.knows_little_of_ancestors(&options) {
        session.output.warn(
            "the model was trained on gold labels without their ancestors, so it knows little of upper levels\n\
             hint: train with `--set data.ancestors=add`",
        );
    }
    options
}
