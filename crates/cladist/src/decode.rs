//! From flags to a decoder: what was fitted in training, unless a flag says otherwise.

use cladist_core::decode::{ClosureRule, DecodeConfig, Decoder, Thresholds};

use crate::args::{DecodeArgs, PathsArg};
use crate::model::Model;

/// The decoder of a model. With `by_rank`, `--top-k` alone asks for the best labels whatever their probability, as a
/// person would who wants suggestions.
pub fn decoder<'a>(model: &'a Model, args: &DecodeArgs, by_rank: bool) -> anyhow::Result<Decoder<'a>> {
    let mut config = DecodeConfig { threshold: model.thresholds.clone(), ..model.config.decode.clone() };
    if let Some(threshold) = args.threshold {
        config.threshold = Thresholds::One(threshold);
    }
    if let Some(k) = args.top_k {
        config.top_k = Some(k);
        if by_rank && args.threshold.is_none() {
            config.at_least = k;
        }
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
    Ok(config.build(model.taxonomy())?)
}
