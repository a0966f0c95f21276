//! What a run says of its documents before it begins.

use super::config::TrainConfig;
use super::run::{Examples, Plan};
use crate::descriptions::Descriptions;
use crate::error::{Error, Result};
use crate::heads::Task;
use crate::model::{Design, NeuralModel};
use crate::tokens::Sequence;

/// What must not change between the sittings of a run: settings, texts and labels.
pub(super) fn fingerprint(plan: &Plan<'_>, model: &NeuralModel, examples: &[(usize, &Sequence)]) -> String {
    let mut hasher = blake3::Hasher::new();
    // How often a run saves or speaks does not change what it learns.
    let settings =
        TrainConfig { checkpoint_steps: 0, checkpoint_minutes: 0.0, log_steps: 1, ..plan.config.clone() };
    hasher.update(serde_json::to_string(&settings).unwrap_or_default().as_bytes());
    // A ranker comes after all this.
    let Design { head, branches, task, tokens, label_smoothing, prior_bias: _, shortlist, ranker: _ } =
        &model.design;
    let section = head.serialize_section(serde_json::value::Serializer).unwrap_or_default();
    let mut design = serde_json::json!([head.name(), section, branches, task, tokens, label_smoothing]);
    if let (true, Some(design)) = (shortlist.is_on(), design.as_array_mut()) {
        let mut shortlist = serde_json::json!(shortlist);
        if let Some(values) = shortlist.as_object_mut().filter(|values| values["match_only"] == false) {
            // Runs that began before there was a choice go on.
            values.remove("match_only");
        }
        design.push(shortlist);
    }
    hasher.update(design.to_string().as_bytes());
    let labels = model.descriptions.iter().flat_map(Descriptions::ids).zip(0u64..);
    let documents = examples.iter().map(|(document, sequence)| (sequence.ids.as_slice(), *document as u64));
    for (ids, number) in documents.chain(labels) {
        hasher.update(&number.to_le_bytes());
        ids.iter().for_each(|id| {
            hasher.update(&id.to_le_bytes());
        });
    }
    let dev = plan.dev.as_ref();
    for document in dev.map_or(&[][..], |dev| dev.documents) {
        hasher.update(&(document.text.len() as u64).to_le_bytes());
        hasher.update(document.text.as_bytes());
    }
    for labels in plan.train.gold.iter().chain(dev.map_or(&[][..], |dev| dev.gold)) {
        hasher.update(&(labels.len() as u64).to_le_bytes());
        labels.iter().for_each(|label| {
            hasher.update(&(label.index() as u64).to_le_bytes());
        });
    }
    hasher.finalize().to_hex().to_string()
}

/// With a softmax, every document must have one label.
pub(super) fn check_gold(examples: &Examples<'_>, task: Task) -> Result<()> {
    if task == Task::MultiLabel {
        return Ok(());
    }
    let wrong = examples.gold.iter().position(|labels| labels.len() != 1);
    wrong.map_or(Ok(()), |n| {
        let id = examples.documents[n].id.clone();
        Err(Error::NotOneLabel { id, n_labels: examples.gold[n].len() })
    })
}
