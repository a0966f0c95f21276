//! A trained network with its tokenizer and labels: a classifier.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use burn::module::Module;
use burn::tensor::Device;
use cladist_core::bundle::Writer;
use cladist_core::classifier::LabelSequence;
use cladist_core::label_tree::Partition;
use cladist_core::linear::{Ranker, RankerConfig};
use cladist_core::taxonomy::CodingTrees;
use cladist_core::text::tfidf::SparseRow;
use cladist_core::{Classifier, Document, LabelCounts, LabelId, LabelSet, Request, Scores, Taxonomy};

use crate::counts::{self, CountNetwork};
use crate::descriptions::{self, Descriptions};
use crate::encoder::{Encoder, LayerSet, LoadReport, Mode, PackedWeights};
use crate::error::{Error, Result};
use crate::heads::branches::BranchesConfig;
use crate::heads::{AnyHead, AnyHeadConfig, HeadContext, HeadInput, LabelStates, Moment, Task};
use crate::parameters;
use crate::ranker::{self, Seen};
use crate::shortlist::{Listed, Outputs, Rows, Shortlist, ShortlistConfig, Table};
use crate::source::EncoderSource;
use crate::tokens::{Pool, Sequence, TokenBatch, Tokenizer, TokensConfig, sorted_by_tokens};
use crate::train::Examples;

/// Tokens of a batch when nothing is learnt: enough to keep all cores busy, little enough for the caches.
pub(crate) const BUDGET: usize = 4096;
/// Documents tokenised at once.
pub(crate) const CHUNK: usize = 2048;
/// The file of the head's parameters.
const HEAD: &str = "head.safetensors";
/// The file of the groups of a shortlist.
const GROUPS: &str = "groups.safetensors";
/// The file of the rows of its labels.
const ROWS: &str = "rows.safetensors";

/// What decides the form of a network.
#[derive(Debug, Clone, PartialEq)]
pub struct Design {
    /// The head.
    pub head: AnyHeadConfig,
    /// Whether each branch of the taxonomy has one of its own.
    pub branches: BranchesConfig,
    /// What is to be predicted.
    pub task: Task,
    /// From text to tokens.
    pub tokens: TokensConfig,
    /// Label smoothing of the losses.
    pub label_smoothing: f64,
    /// Whether outputs of labels begin at how often each occurs.
    pub prior_bias: bool,
    /// Which labels are learnt and scored at a time.
    pub shortlist: ShortlistConfig,
    /// Whether linear classifiers score the labels of groups, and how they are trained.
    pub ranker: RankerConfig,
}

/// Encoder and head.
#[derive(Module, Debug)]
pub struct Network {
    pub(crate) encoder: Encoder,
    pub(crate) head: AnyHead,
}

/// A network that labels documents.
#[derive(Debug)]
pub struct NeuralModel {
    pub(crate) network: Network,
    pub(crate) packed: Option<PackedWeights>,
    /// What labels say of themselves, if the head reads it.
    pub(crate) descriptions: Option<Descriptions>,
    /// Their vectors, made once for all batches. They are not saved: the encoder and the taxonomy are, so that a label
    /// described anew, or a new one, is read as it is.
    labels: Option<LabelStates>,
    /// How many labels a document has, if that was learnt.
    pub(crate) counts: Option<CountNetwork>,
    /// What scores the labels of groups, if it was trained.
    pub(crate) ranker: Option<Ranker>,
    /// Groups of labels, if there is a shortlist.
    pub(crate) shortlist: Option<Arc<Shortlist>>,
    /// The rows of its labels.
    pub(crate) table: Option<Table>,
    pub(crate) layers: LayerSet,
    pub(crate) tokenizer: Tokenizer,
    /// Coding trees, if the head has any.
    trees: CodingTrees,
    pub(crate) taxonomy: Taxonomy,
    pub(crate) design: Design,
}

/// Windows, each with the number of its document.
pub(crate) type Windows<'a> = [(usize, &'a Sequence)];

/// What a network starts from.
struct Start<'a> {
    counts: &'a LabelCounts,
    shortlist: Option<Arc<Shortlist>>,
    /// Of new parameters; without one, they will be read from a file.
    seed: Option<u64>,
    trees: CodingTrees,
}

/// A score and, if gold labels were given, a loss.
pub(crate) struct Judged {
    pub(crate) rows: Vec<Vec<(LabelId, f32)>>,
    /// What a ranker makes rows of, if there is one; then there are none yet.
    pub(crate) seen: Option<Seen>,
    /// How many labels each document has, if the model knows.
    pub(crate) counts: Vec<u32>,
    /// Mean loss over documents.
    pub(crate) loss: f64,
}

impl NeuralModel {
    /// A network with a new head on a pretrained or new encoder.
    pub fn create(
        design: Design,
        source: &EncoderSource,
        examples: &Examples<'_>,
        taxonomy: Taxonomy,
        counts: &LabelCounts,
        seed: u64,
        device: &Device,
    ) -> Result<(Self, LoadReport)> {
        design.tokens.validate()?;
        let shortlist = design.shortlist.group(examples, taxonomy.n_labels(), seed)?.map(Arc::new);
        let described = design.head.describes().map(|config| descriptions::texts(&taxonomy, config.path));
        let texts = || {
            let texts = examples.documents.iter().map(|document| document.text.as_str());
            texts.chain(described.iter().flatten().map(String::as_str)).collect::<Vec<_>>()
        };
        let (tokenizer, encoder, report) = source.open(texts, design.head.pooled(), seed, device)?;
        let start = Start { counts, shortlist, seed: Some(seed), trees: CodingTrees::default() };
        let mut model = Self::assemble(design, tokenizer, encoder, taxonomy, start, device)?;
        if let (Some(shortlist), Some(width)) = (&model.shortlist, model.row_width()) {
            let seed = crate::encoder::place(seed, 1 << 41);
            let mut table = Table::new(shortlist.partition.n_rows(), width, seed);
            if model.design.prior_bias {
                let odds = counts.log_odds(model.taxonomy.n_labels());
                table = table.with_biases(|row| odds[shortlist.partition.label(row) as usize]);
            }
            model.table = Some(table);
        }
        Ok((model, report))
    }

    /// Puts the parts together, but for the rows of labels.
    fn assemble(
        design: Design,
        tokenizer: Tokenizer,
        encoder: Encoder,
        taxonomy: Taxonomy,
        start: Start<'_>,
        device: &Device,
    ) -> Result<Self> {
        let Start { counts, shortlist, seed, trees } = start;
        ranker::check(&design.shortlist, &design.ranker)?;
        if shortlist.is_some() && design.task == Task::MultiClass {
            return Err(Error::Head {
                problem: "a softmax needs all labels, not a shortlist".to_owned(),
                hint: "leave `shortlist.group_size` at 0, or use the task `multi-label`",
            });
        }
        tokenizer.fits(&encoder, &design.tokens)?;
        let mut descriptions = None;
        let mut described = None;
        if let Some(config) = design.head.describes() {
            let read = Descriptions::new(&config, &taxonomy, &tokenizer, &encoder)?;
            if config.at_start_only {
                described = seed.map(|_| read.read(&encoder, None));
            } else {
                descriptions = Some(read);
            }
        }
        let context = HeadContext {
            only: None,
            taxonomy: &taxonomy,
            label_counts: counts,
            hidden_size: encoder.hidden_size(),
            n_layers: encoder.n_layers(),
            task: design.task,
            label_smoothing: design.label_smoothing,
            prior_bias: design.prior_bias,
            labels: described.as_ref(),
            shortlist: shortlist.as_ref(),
            trees: &trees,
            device,
            seed: crate::encoder::place(seed.unwrap_or(0), 1 << 40),
        };
        let head = design.branches.build(&design.head, &context)?;
        if shortlist.is_some() && head.outputs().and_then(Outputs::listed).is_none() {
            return Err(Error::Head {
                problem: format!("the head `{}` cannot learn from a shortlist of labels", design.head.name()),
                hint: "leave `shortlist.group_size` at 0, or use `flat` or `light-xml` without branches",
            });
        }
        let layers = head.layers(None);
        Ok(Self {
            network: Network { encoder, head },
            packed: None,
            descriptions,
            labels: None,
            counts: None,
            ranker: None,
            shortlist,
            table: None,
            layers,
            tokenizer,
            trees,
            taxonomy,
            design,
        })
    }

    /// Writes its files into a bundle: an encoder folder as Hugging Face's tools have it, and the head.
    pub fn save(&self, writer: &Writer) -> cladist_core::Result<()> {
        let core = |error: Error| error.into_core();
        let (config, weights) = self.network.encoder.export().map_err(core)?;
        writer.write("config.json", &config)?;
        writer.write("model.safetensors", &weights)?;
        writer.write("tokenizer.json", self.tokenizer.to_json())?;
        let head = parameters::write(&parameters::named(&self.network.head)).map_err(core)?;
        writer.write(HEAD, &head)?;
        self.trees.save(writer)?;
        self.save_counts(writer)?;
        self.save_ranker(writer)?;
        if let Some(shortlist) = &self.shortlist {
            shortlist.partition.write(&writer.path(GROUPS))?;
        }
        if let Some(table) = &self.table {
            table.write(&writer.path(ROWS)).map_err(core)?;
        }
        Ok(())
    }

    /// Reads what [`NeuralModel::save`] wrote.
    pub fn load(
        folder: &Path,
        design: Design,
        taxonomy: Taxonomy,
        counts: &LabelCounts,
        device: &Device,
    ) -> Result<Self> {
        let tokenizer = Tokenizer::from_folder(folder)?;
        let (encoder, _) = Encoder::load(folder, design.head.pooled(), 0, device)?;
        let mut shortlist = None;
        if design.shortlist.is_on() {
            design.shortlist.validate()?;
            let partition = Partition::read(&folder.join(GROUPS), taxonomy.n_labels())?;
            shortlist = Some(Arc::new(Shortlist { partition, config: design.shortlist }));
        }
        let start = Start { counts, shortlist, seed: None, trees: CodingTrees::load(folder)? };
        let mut model = Self::assemble(design, tokenizer, encoder, taxonomy, start, device)?;
        if let (Some(shortlist), Some(width)) = (&model.shortlist, model.row_width()) {
            model.table = Some(Table::open(&folder.join(ROWS), shortlist.partition.n_rows(), width)?);
        }
        let path = folder.join(HEAD);
        let values = parameters::read(&path)?;
        model.network.head = parameters::replace(model.network.head, values)
            .map_err(|reason| parameters::unfit(&path, reason))?;
        model.load_counts(folder)?;
        model.load_ranker(folder)?;
        Ok(model.ready())
    }

    /// Ready for scoring.
    #[must_use]
    pub(crate) fn ready(mut self) -> Self {
        self.prepare();
        self
    }

    /// Packs the weights and reads the labels, for all batches until the weights change.
    pub(crate) fn prepare(&mut self) {
        self.packed = self.network.encoder.pack();
        self.labels = None;
        self.labels = self.label_states();
    }

    fn label_states(&self) -> Option<LabelStates> {
        let vectors = |descriptions: &Descriptions| LabelStates {
            vectors: descriptions.read(&self.network.encoder, self.packed.as_ref()),
            labels: None,
        };
        self.labels.clone().or_else(|| self.descriptions.as_ref().map(vectors))
    }

    /// Vectors of labels by a copy of the network, as constants.
    pub(crate) fn label_states_of(&self, network: &Network) -> Option<LabelStates> {
        let descriptions = self.descriptions.as_ref()?;
        Some(LabelStates { vectors: descriptions.read(&network.encoder, None).detach(), labels: None })
    }

    /// Rows of labels as they are, if the head has a shortlist.
    pub(crate) fn rows(&self) -> Option<Rows<'_>> {
        self.table.as_ref().map(Rows::new)
    }

    /// Values of a label's row, if labels have rows.
    fn row_width(&self) -> Option<usize> {
        self.network.head.outputs().and_then(Outputs::listed).and_then(Listed::row_width)
    }

    /// Groups of labels, if there is a shortlist.
    #[must_use]
    pub fn n_groups(&self) -> Option<usize> {
        self.shortlist.as_ref().map(|shortlist| shortlist.partition.n_groups())
    }

    /// The number of parameters, rows of labels included.
    #[must_use]
    pub fn n_parameters(&self) -> usize {
        self.network.num_params() + self.table.as_ref().map_or(0, |table| table.values().len())
    }

    /// Windows of each text.
    pub(crate) fn tokenize(&self, documents: &[Document]) -> Result<Vec<Vec<Sequence>>> {
        let texts: Vec<&str> = documents.iter().map(|document| document.text.as_str()).collect();
        self.tokenizer.encode(&texts, &self.design.tokens)
    }

    /// Rows of scores of tokenised documents, in order; the loss too if gold labels are given.
    pub(crate) fn run(
        &self,
        documents: &[Vec<Sequence>],
        gold: Option<&[LabelSet]>,
        request: &Request<'_>,
    ) -> cladist_core::Result<Judged> {
        let windows = numbered(documents);
        let mut rows: Vec<Vec<(LabelId, f32)>> = vec![Vec::new(); windows.len()];
        let mut loss = 0.0;
        let mut seen = self.ranker.as_ref().map(|_| Seen::new(windows.len()));
        let mut numbers: Vec<Vec<f32>> = vec![Vec::new(); windows.len()];
        // Pooling windows needs every label's score, and so does choosing among labels of some levels.
        let early = windows.len() == documents.len() && request.levels.is_none();
        let top_k = request.top_k.filter(|_| early);
        let layers = self.network.head.layers(request.levels.as_ref());
        self.each_batch(&windows, &layers, request, |batch, input| {
            if let Some(gold) = gold {
                let gold: Vec<LabelSet> = batch.iter().map(|&n| gold[windows[n].0].clone()).collect();
                let objective = self.network.head.objective(input, &gold, &Moment { epoch: 0.0, seed: None });
                let total = objective.total().map_or(0.0, |total| f64::from(total.into_scalar::<f32>()));
                loss += total * batch.len() as f64;
            }
            let vectors = || counts::vectors(input.documents, &layers);
            match &mut seen {
                Some(seen) => seen.take(batch, vectors(), self.network.head.groups(input)),
                None => {
                    let scored = self.network.head.score(input, top_k);
                    batch.iter().zip(scored).for_each(|(&n, row)| rows[n] = row);
                }
            }
            if let Some(network) = &self.counts {
                let vectors = vectors();
                batch.iter().zip(network.probabilities(vectors)).for_each(|(&n, row)| numbers[n] = row);
            }
        })?;
        let counts = self
            .counts
            .as_ref()
            .map(|_| counts::likeliest(&windows, documents.len(), &numbers))
            .unwrap_or_default();
        loss /= windows.len().max(1) as f64;
        if windows.len() > documents.len() {
            rows = pool(documents, rows, self.design.tokens.pool);
        }
        rows.iter_mut().for_each(|row| request.narrow(row, &self.taxonomy));
        Ok(Judged { rows, seen, counts, loss })
    }

    /// Runs the encoder on windows of similar length at a time; `work` gets the numbers of the windows and their states.
    pub(crate) fn each_batch(
        &self,
        windows: &Windows<'_>,
        layers: &LayerSet,
        request: &Request<'_>,
        mut work: impl FnMut(&[usize], &HeadInput<'_>),
    ) -> cladist_core::Result<()> {
        let lengths: Vec<usize> = windows.iter().map(|(_, sequence)| sequence.len()).collect();
        let (labels, rows) = (self.label_states(), self.rows());
        for batch in sorted_by_tokens(&lengths, BUDGET) {
            request.job.cancel.check()?;
            let sequences: Vec<&Sequence> = batch.iter().map(|&n| windows[n].1).collect();
            let mode = Mode::Inference(self.packed.as_ref());
            let encoded = self.network.encoder.encode(&TokenBatch::new(&sequences), layers, mode);
            let input = HeadInput { rows: rows.as_ref(), ..HeadInput::of(&encoded, labels.as_ref()) };
            work(&batch, &input);
            let firsts = batch.iter().filter(|&&n| n == 0 || windows[n - 1].0 != windows[n].0);
            request.job.progress.advance(firsts.count() as u64);
        }
        Ok(())
    }
}

/// All windows, each with the number of its document.
pub(crate) fn numbered(documents: &[Vec<Sequence>]) -> Vec<(usize, &Sequence)> {
    let windows = documents.iter().enumerate();
    windows.flat_map(|(n, windows)| windows.iter().map(move |window| (n, window))).collect()
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
            request.job.cancel.check()?;
            let tokens = self.tokenize(chunk).map_err(Error::into_core)?;
            let Judged { rows, seen, counts, .. } = self.run(&tokens, None, request)?;
            let rows = self.ranked(rows, seen, chunk, &tokens, request);
            scores.append(Scores::from_rows(rows).with_counts(counts));
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
            let tokens = self.tokenize(chunk).map_err(Error::into_core)?;
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
        let (Some(shortlist), Some(table)) = (&self.shortlist, &self.table) else {
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

#[cfg(test)]
mod tests;
