//! Vectors of label descriptions while a network learns.

use burn::module::Module;
use burn::tensor::{Tensor, TensorData};
use cladist_core::{Cancel, LabelSet};

use crate::descriptions::Descriptions;
use crate::error::Result;
use crate::heads::{LabelBatch, LabelStates, Moment};
use crate::model::Network;
use crate::parameters::{Tensors, to_vec};

/// The name of the vectors among those that stay between updates.
const VECTORS: &str = "vectors";

/// [`label_states_unless`] nobody asks to stop.
#[cfg(test)]
pub(crate) fn label_states(
    network: &Network,
    descriptions: Option<&Descriptions>,
    gold: &[LabelSet],
    moment: &Moment,
    after: Option<u64>,
    kept: &mut Option<Tensors>,
) -> Option<LabelStates> {
    label_states_unless(network, descriptions, gold, moment, after, kept, &Cancel::default()).unwrap()
}

/// The labels that the head reads in this batch. `kept` has those that stay for several updates; they are made anew if
/// there are none or the head wants it `after` so many updates.
pub(super) fn label_states_unless(
    network: &Network,
    descriptions: Option<&Descriptions>,
    gold: &[LabelSet],
    moment: &Moment,
    after: Option<u64>,
    kept: &mut Option<Tensors>,
    cancel: &Cancel,
) -> Result<Option<LabelStates>> {
    let Some(descriptions) = descriptions else { return Ok(None) };
    let encoder = &network.encoder;
    let seed = moment.seed.unwrap_or(0);
    let Some(batch) = network.head.label_batch(gold, moment) else { return Ok(None) };
    let states = match batch {
        LabelBatch::All => LabelStates { vectors: descriptions.learn(encoder, None, seed), labels: None },
        LabelBatch::Of(labels) => {
            let vectors = descriptions.learn(encoder, Some(&labels), seed);
            LabelStates { vectors, labels: Some(labels) }
        }
        LabelBatch::Every(updates) => {
            let due = after.is_some_and(|after| after.is_multiple_of(updates.max(1)));
            let (shape, values) = match kept.take().and_then(|mut kept| kept.remove(VECTORS)).filter(|_| !due)
            {
                Some(kept) => kept,
                None => {
                    let encoder = encoder.valid();
                    let vectors = descriptions.read_unless(&encoder, encoder.pack().as_ref(), cancel)?;
                    (vectors.dims().to_vec(), to_vec(vectors))
                }
            };
            let data = TensorData::new(values.clone(), shape.clone());
            *kept = Some(Tensors::from([(VECTORS.to_owned(), (shape, values))]));
            LabelStates { vectors: Tensor::from_data(data, &encoder.device()), labels: None }
        }
    };
    Ok(Some(states))
}
