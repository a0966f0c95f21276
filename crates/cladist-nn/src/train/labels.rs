//! Vectors of label descriptions while a network learns.

use burn::module::Module;
use burn::tensor::{Tensor, TensorData};
use cladist_core::LabelSet;

use crate::descriptions::Descriptions;
use crate::heads::{LabelBatch, LabelStates, Moment};
use crate::model::Network;
use crate::parameters::{Tensors, to_vec};

/// The name of the vectors among those that stay between updates.
const VECTORS: &str = "vectors";

/// The labels that the head reads in this batch. `kept` has those that stay for several updates; they are made anew if
/// there are none or the head wants it `after` so many updates.
pub(crate) fn label_states(
    network: &Network,
    descriptions: Option<&Descriptions>,
    gold: &[LabelSet],
    moment: &Moment,
    after: Option<u64>,
    kept: &mut Option<Tensors>,
) -> Option<LabelStates> {
    let descriptions = descriptions?;
    let encoder = &network.encoder;
    let seed = moment.seed.unwrap_or(0);
    let states = match network.head.label_batch(gold, moment)? {
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
                    let vectors = descriptions.read(&encoder, encoder.pack().as_ref());
                    (vectors.dims().to_vec(), to_vec(vectors))
                }
            };
            let data = TensorData::new(values.clone(), shape.clone());
            *kept = Some(Tensors::from([(VECTORS.to_owned(), (shape, values))]));
            LabelStates { vectors: Tensor::from_data(data, &encoder.device()), labels: None }
        }
    };
    Some(states)
}
