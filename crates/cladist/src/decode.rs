//! From flags to a decoder: what was fitted in training, unless a flag says otherwise.

use cladist_core::corpus::Ancestors;
use cladist_core::decode::{ClosureRule, DecodeConfig, Decoder, Rule, Thresholds};

use crate::args::{DecodeArgs, PathsArg};
use crate::model::Model;
use crate::session::Session;

/// The decoding settings of a model, with flags laid over them. With `by_rank`, `--top-k` alone asks for the best labels
/// whatever their probability, as a person would who wants suggestions.
#[must_use]
pub fn settings(model: &Model, args: &DecodeArgs, by_rank: bool) -> DecodeConfig {
    let mut config =
        DecodeConfig { threshold: model.thresholds.clone(), ..model.config.common.decode.clone() };
    if let Some(threshold) = args.threshold {
        config.threshold = Thresholds::One(threshold);
        config.rule = Rule::Threshold;
    }
    if let Some(k) = args.top_k {
        config.top_k = Some(k);
        if by_rank && args.threshold.is_none() {
            config.at_least = k;
        }
    }
    if let Some(n) = args.at_least {
        config.at_least = n;
    }
    if let Some(floor) = args.floor {
        config.floor = floor;
    }
    config.coherence |= args.coherent;
    config.coarser_when_unsure |= args.coarser_when_unsure;
    if let Some(paths) = args.paths {
        config.closure = match paths {
            PathsArg::None => ClosureRule::None,
            PathsArg::CloseUpward => ClosureRule::CloseUpward,
            PathsArg::Prune => ClosureRule::Prune,
        };
    }
    config
}

/// The decoder of a model.
pub fn decoder<'a>(
    model: &'a Model,
    args: &DecodeArgs,
    by_rank: bool,
    session: &Session,
) -> anyhow::Result<Decoder<'a>> {
    let config = settings(model, args, by_rank);
    let climbs = config.coherence || config.coarser_when_unsure || config.closure == ClosureRule::Prune;
    if climbs && model.taxonomy().n_edges() > 0 && model.config.common.data.ancestors == Ancestors::Keep {
        session.output.warn(
            "the model was trained on gold labels without their ancestors, so it knows little of upper levels\n\
             hint: train with `--set data.ancestors=add`",
        );
    }
    Ok(config.build(model.taxonomy())?)
}
