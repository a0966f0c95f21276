//! Labels by how near their descriptions are to a document, for an encoder as it is: what to beat where a label has no
//! documents to learn from.

use burn::tensor::Device;
use burn::tensor::Tensor;
use cladist_core::{Document, Job, Scores, Taxonomy};

use crate::descriptions::{DescriptionConfig, DescriptionVector, Descriptions};
use crate::encoder::{LayerSet, Mode};
use crate::error::Result;
use crate::heads::rows;
use crate::source::EncoderSource;
use crate::tokens::{BUDGET, CHUNK, Sequence, TokenBatch, TokensConfig, sorted_by_tokens};

/// For each document every label with ½(1 + cos) of the angle between their mean token vectors. Of a long document the
/// first window counts.
pub fn nearest_descriptions(
    source: &EncoderSource,
    tokens: &TokensConfig,
    documents: &[Document],
    taxonomy: &Taxonomy,
    device: &Device,
    job: &Job<'_>,
) -> Result<Scores> {
    let texts = || documents.iter().map(|document| document.text.as_str()).collect();
    let (tokenizer, encoder, _) = source.open(texts, false, 0, device, &job.cancel)?;
    let config = DescriptionConfig {
        path: false,
        max_tokens: tokens.max_tokens,
        vector: DescriptionVector::Mean,
        at_start_only: false,
    };
    let packed = encoder.pack();
    let descriptions = Descriptions::new(&config, taxonomy, &tokenizer, &encoder, &job.cancel)?;
    let labels = unit(descriptions.read_unless(&encoder, packed.as_ref(), &job.cancel)?).transpose();
    let ids: Vec<_> = taxonomy.labels().collect();
    let layer = encoder.n_layers();
    let keep: LayerSet = [layer].into_iter().collect();
    let mut scores = Scores::new();
    for chunk in documents.chunks(CHUNK) {
        let texts: Vec<&str> = chunk.iter().map(|document| document.text.as_str()).collect();
        let windows = tokenizer.encode(&texts, tokens)?;
        let first: Vec<&Sequence> = windows.iter().filter_map(|windows| windows.first()).collect();
        let lengths: Vec<usize> = first.iter().map(|sequence| sequence.len()).collect();
        let mut all = vec![Vec::new(); first.len()];
        for batch in sorted_by_tokens(&lengths, BUDGET) {
            job.cancel.check()?;
            let sequences: Vec<&Sequence> = batch.iter().map(|&n| first[n]).collect();
            let mode = Mode::Inference(packed.as_ref());
            let vectors = encoder.encode(&TokenBatch::new(&sequences), &keep, mode).mean(layer);
            let cosines = unit(vectors).matmul(labels.clone());
            for (&n, row) in batch.iter().zip(rows((cosines + 1.0) * 0.5, &ids, None)) {
                all[n] = row;
            }
            job.progress.advance(batch.len() as u64);
        }
        scores.append(Scores::from_rows(all));
    }
    Ok(scores)
}

/// Rows of length 1.
fn unit(x: Tensor<2>) -> Tensor<2> {
    let length = x.clone().powi_scalar(2).sum_dim(1).sqrt() + 1e-12;
    x / length
}
