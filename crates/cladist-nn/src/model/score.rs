//! From documents to scores.

use std::collections::{BTreeMap, HashSet};

use cladist_core::classifier::LabelSequence;
use cladist_core::text::tfidf::SparseRow;
use cladist_core::{Classifier, Document, LabelId, LabelSet, Request, Scores, Taxonomy};

use super::NeuralModel;
use super::components::{Answers, Chunk, Pass};
use crate::encoder::{Encoded, LayerSet, Mode};
use crate::error::Error;
use crate::heads::{HeadInput, Measured, Moment};
use crate::tokens::{BUDGET, CHUNK, Pool, Sequence, TokenBatch, Windows, numbered, sorted_by_tokens};

/// A score and, if gold labels were given, a loss.
pub(crate) struct Judged {
    pub(crate) rows: Vec<Vec<(LabelId, f32)>>,
    /// The loss of all documents together, whatever the batches they were scored in.
    pub(crate) loss: f64,
}

impl NeuralModel {
    /// Rows of the head's scores of tokenised documents, in order; the loss too if gold labels are given. Components that
    /// have a pass see the same states; one that scores labels itself leaves the rows empty.
    pub(crate) fn run(
        &self,
        documents: &[Vec<Sequence>],
        gold: Option<&[LabelSet]>,
        request: &Request<'_>,
        passes: &mut [Box<dyn Pass + '_>],
    ) -> cladist_core::Result<Judged> {
        self.run_within(BUDGET, documents, gold, request, passes)
    }

    /// The same in batches of so many tokens.
    pub(crate) fn run_within(
        &self,
        budget: usize,
        documents: &[Vec<Sequence>],
        gold: Option<&[LabelSet]>,
        request: &Request<'_>,
        passes: &mut [Box<dyn Pass + '_>],
    ) -> cladist_core::Result<Judged> {
        let windows = numbered(documents);
        let mut rows: Vec<Vec<(LabelId, f32)>> = vec![Vec::new(); windows.len()];
        let mut measured = Measured::default();
        let by_head = !passes.iter().any(|pass| pass.scores_labels());
        // Pooling windows needs every label's score, and so does choosing among labels of some levels.
        let early = windows.len() == documents.len() && request.levels.is_none();
        let top_k = request.top_k.filter(|_| early);
        let layers = self.network.head.layers(request.levels.as_ref());
        self.each_batch_within(budget, &windows, &layers, request, |batch, input| {
            if let Some(gold) = gold {
                let gold: Vec<LabelSet> = batch.iter().map(|&n| gold[windows[n].0].clone()).collect();
                let moment = Moment { epoch: 0.0, thawed: 0.0, seed: None };
                measured.add(self.network.head.objective(input, &gold, &moment), batch.len());
            }
            if by_head {
                let scored = self.network.head.score(input, top_k);
                batch.iter().zip(scored).for_each(|(&n, row)| rows[n] = row);
            }
            passes.iter_mut().for_each(|pass| pass.take(batch, input));
        })?;
        if windows.len() > documents.len() {
            rows = pool(documents, rows, self.design.tokens.pool);
        }
        rows.iter_mut().for_each(|row| request.narrow(row, &self.taxonomy));
        Ok(Judged { rows, loss: measured.loss() })
    }

    /// Runs the encoder on windows of similar length at a time; `work` gets the numbers of the windows and their states.
    pub(crate) fn each_batch(
        &self,
        windows: &Windows<'_>,
        layers: &LayerSet,
        request: &Request<'_>,
        work: impl FnMut(&[usize], &HeadInput<'_>),
    ) -> cladist_core::Result<()> {
        self.each_batch_within(BUDGET, windows, layers, request, work)
    }

    fn each_batch_within(
        &self,
        budget: usize,
        windows: &Windows<'_>,
        layers: &LayerSet,
        request: &Request<'_>,
        mut work: impl FnMut(&[usize], &HeadInput<'_>),
    ) -> cladist_core::Result<()> {
        let lengths: Vec<usize> = windows.iter().map(|(_, sequence)| sequence.len()).collect();
        let lent = self.components.lend(&self.network, self.packed.as_ref());
        for batch in sorted_by_tokens(&lengths, budget) {
            request.job.cancel.check()?;
            let sequences: Vec<&Sequence> = batch.iter().map(|&n| windows[n].1).collect();
            let encoded = self.encode(&sequences, layers);
            work(&batch, &lent.input(&encoded));
            let firsts = batch.iter().filter(|&&n| n == 0 || windows[n - 1].0 != windows[n].0);
            request.job.progress.advance(firsts.count() as u64);
        }
        Ok(())
    }

    /// States of sequences, as the encoder has them without learning.
    pub(crate) fn encode(&self, sequences: &[&Sequence], layers: &LayerSet) -> Encoded {
        let mode = Mode::Inference(self.packed.as_ref());
        self.network.encoder.encode(&TokenBatch::new(sequences), layers, mode)
    }
}

/// One row per document from the rows of its windows. A label that a window did not score counts as 0 there.
fn pool(documents: &[Vec<Sequence>], rows: Vec<Vec<(LabelId, f32)>>, pool: Pool) -> Vec<Vec<(LabelId, f32)>> {
    let mut rows = rows.into_iter();
    documents
        .iter()
        .map(|windows| {
            let mut pooled: BTreeMap<LabelId, f32> = BTreeMap::new();
            for (label, score) in rows.by_ref().take(windows.len()).flatten() {
                let cell = pooled.entry(label).or_default();
                *cell = match pool {
                    Pool::Max => cell.max(score),
                    Pool::Mean => *cell + score / windows.len() as f32,
                };
            }
            pooled.into_iter().collect()
        })
        .collect()
}

impl Classifier for NeuralModel {
    fn taxonomy(&self) -> &Taxonomy {
        &self.taxonomy
    }

    fn score(&self, documents: &[Document], request: &Request<'_>) -> cladist_core::Result<Scores> {
        let mut scores = Scores::new();
        for chunk in documents.chunks(CHUNK) {
            let tokens = self.tokenize_unless(chunk, &request.job.cancel).map_err(Error::into_core)?;
            let layers = self.network.head.layers(request.levels.as_ref());
            let n_windows = tokens.iter().map(Vec::len).sum();
            let mut passes = self.components.passes(&self.network, &layers, n_windows);
            let judged = self.run(&tokens, None, request, &mut passes)?;
            let mut answers = Answers { rows: judged.rows, counts: Vec::new() };
            let pool = self.design.tokens.pool;
            let chunk = Chunk { documents: chunk, tokens: &tokens, pool, taxonomy: &self.taxonomy, request };
            passes.into_iter().for_each(|pass| pass.finish(&chunk, &mut answers));
            scores.append(Scores::from_rows(answers.rows).with_counts(answers.counts));
        }
        Ok(scores)
    }

    fn sequences(
        &self,
        documents: &[Document],
        n_best: usize,
        request: &Request<'_>,
    ) -> cladist_core::Result<Option<Vec<Vec<LabelSequence>>>> {
        let mut all: Vec<Vec<LabelSequence>> = Vec::with_capacity(documents.len());
        for chunk in documents.chunks(CHUNK) {
            let tokens = self.tokenize_unless(chunk, &request.job.cancel).map_err(Error::into_core)?;
            let windows = numbered(&tokens);
            let mut best: Vec<Vec<LabelSequence>> = vec![Vec::new(); chunk.len()];
            let mut emits = true;
            self.each_batch(&windows, &self.layers, request, |batch, input| {
                match self.network.head.sequences(input, n_best) {
                    Some(found) => {
                        batch.iter().zip(found).for_each(|(&n, found)| best[windows[n].0].extend(found));
                    }
                    None => emits = false,
                }
            })?;
            if !emits {
                return Ok(None);
            }
            // The windows of a long document each have sequences of their own.
            for best in &mut best {
                best.sort_by(|a, b| b.log_probability.total_cmp(&a.log_probability));
                let mut seen = HashSet::new();
                best.retain(|sequence| seen.insert(sequence.labels.clone()));
                best.truncate(n_best);
            }
            all.extend(best);
        }
        Ok(Some(all))
    }

    fn label_vectors(&self) -> Option<Vec<SparseRow>> {
        let (Some(shortlist), Some(table)) = (self.shortlist(), self.table()) else {
            return self.network.head.label_vectors();
        };
        let vector = |label: u32| match shortlist.partition.row_of(label) {
            Some(row) => {
                let row = table.rows(row as usize..row as usize + 1);
                (0..).zip(row[..row.len().saturating_sub(1)].iter().copied()).collect()
            }
            None => Vec::new(),
        };
        Some((0..self.taxonomy.n_labels() as u32).map(vector).collect())
    }
}
