//! What a model has beside its network: components, each with files of its own in a bundle.
//!
//! The model makes, reads, writes and prepares all of them alike. What a component knows of the others it is told with the
//! network: a table has a row for every label of the groups that the head was built with.

mod counts;
mod descriptions;
mod ranker;
mod rows;
mod trees;

use std::fmt::Debug;
use std::path::Path;

use cladist_core::bundle::Writer;
use cladist_core::taxonomy::CodingTrees;
use cladist_core::{Cancel, Document, LabelCounts, LabelId, Request, Taxonomy};

use super::{Design, Network};
use crate::encoder::{Encoded, Encoder, LayerSet, PackedWeights};
use crate::error::Result;
use crate::examples::Examples;
use crate::heads::{HeadContext, HeadInput, LabelStates};
use crate::parameters::Tensors;
use crate::shortlist::Rows;
use crate::tokens::{Pool, Sequence, Tokenizer};

pub(crate) use counts::Counts;
pub(crate) use descriptions::Described;
pub(crate) use ranker::Ranking;
pub(crate) use rows::LabelRows;

/// Where a model comes from.
#[derive(Clone, Copy)]
pub(crate) enum Origin<'a> {
    /// It is made for these documents.
    New { examples: &'a Examples<'a>, seed: u64 },
    /// It is read from a bundle.
    Bundle(&'a Path),
}

/// What there is of a model before its head.
#[derive(Clone, Copy)]
pub(crate) struct Ground<'a> {
    pub(crate) design: &'a Design,
    pub(crate) taxonomy: &'a Taxonomy,
    pub(crate) counts: &'a LabelCounts,
    pub(crate) tokenizer: &'a Tokenizer,
    pub(crate) encoder: &'a Encoder,
    /// Checked between units of work.
    pub(crate) cancel: &'a Cancel,
}

/// What components give a head for a batch.
#[derive(Debug, Default)]
pub(crate) struct Lent<'a> {
    pub(crate) labels: Option<LabelStates>,
    pub(crate) rows: Option<Rows<'a>>,
}

impl Lent<'_> {
    /// With the documents: all that a head sees.
    pub(crate) fn input<'b>(&'b self, documents: &'b Encoded) -> HeadInput<'b> {
        HeadInput { rows: self.rows.as_ref(), ..HeadInput::of(documents, self.labels.as_ref()) }
    }
}

/// Documents that are scored, with the windows of each.
#[derive(Clone, Copy)]
pub(crate) struct Chunk<'a> {
    pub(crate) documents: &'a [Document],
    pub(crate) tokens: &'a [Vec<Sequence>],
    pub(crate) pool: Pool,
    pub(crate) taxonomy: &'a Taxonomy,
    pub(crate) request: &'a Request<'a>,
}

/// What is known of documents once they are scored.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    pub(crate) rows: Vec<Vec<(LabelId, f32)>>,
    /// How many labels each document has, if the model knows.
    pub(crate) counts: Vec<u32>,
}

/// What a component makes of the states of documents while they are scored.
pub(crate) trait Pass {
    /// Whether it scores labels, in place of the head.
    fn scores_labels(&self) -> bool {
        false
    }

    /// Takes the states of the windows of a batch.
    fn take(&mut self, batch: &[usize], input: &HeadInput<'_>);

    /// Adds what it found to the answers.
    fn finish(self: Box<Self>, chunk: &Chunk<'_>, answers: &mut Answers);
}

/// Values that a component has outside the network: name, shape and numbers.
pub(crate) type Outside<'a> = (&'static str, Vec<usize>, &'a [f32]);

/// A part of a model beside its network. One that a model does not need is there too, and does nothing.
pub(crate) trait Component: Debug + Send + Sync {
    /// Makes or reads what the head is built from.
    fn begin(&mut self, _origin: &Origin<'_>, _ground: &Ground<'_>) -> Result<()> {
        Ok(())
    }

    /// Says what the head is built from.
    fn inform<'a>(&'a self, _context: &mut HeadContext<'a>) {}

    /// Makes or reads what depends on the network.
    fn complete(&mut self, _origin: &Origin<'_>, _ground: &Ground<'_>, _network: &Network) -> Result<()> {
        Ok(())
    }

    /// Writes its files into a bundle.
    fn save(&self, writer: &Writer) -> Result<()>;

    /// Makes what inference needs of the network, for as long as its weights stay.
    fn prepare(
        &mut self,
        _network: &Network,
        _packed: Option<&PackedWeights>,
        _cancel: &Cancel,
    ) -> Result<()> {
        Ok(())
    }

    /// Gives the head what it scores with.
    fn lend<'a>(&'a self, _network: &Network, _packed: Option<&PackedWeights>, _lent: &mut Lent<'a>) {}

    /// What it makes of documents that are scored, if anything.
    fn pass<'a>(
        &'a self,
        _network: &'a Network,
        _layers: &LayerSet,
        _n_windows: usize,
    ) -> Option<Box<dyn Pass + 'a>> {
        None
    }

    /// What it learns outside the network, if anything.
    fn outside(&self) -> Option<Outside<'_>> {
        None
    }

    /// The same, to be changed.
    fn outside_mut(&mut self) -> Option<&mut Vec<f32>> {
        None
    }
}

/// The components of a model.
#[derive(Debug, Default)]
pub(crate) struct Components {
    pub(crate) trees: CodingTrees,
    pub(crate) descriptions: Described,
    pub(crate) rows: LabelRows,
    pub(crate) counts: Counts,
    pub(crate) ranker: Ranking,
}

impl Components {
    /// All of them. Whatever happens to every component goes through here.
    pub(crate) fn all(&self) -> [&dyn Component; 5] {
        let Self { trees, descriptions, rows, counts, ranker } = self;
        [trees, descriptions, rows, counts, ranker]
    }

    /// All of them, to be changed.
    pub(crate) fn all_mut(&mut self) -> [&mut dyn Component; 5] {
        let Self { trees, descriptions, rows, counts, ranker } = self;
        [trees, descriptions, rows, counts, ranker]
    }

    /// What the head scores with.
    pub(crate) fn lend(&self, network: &Network, packed: Option<&PackedWeights>) -> Lent<'_> {
        let mut lent = Lent::default();
        self.all().into_iter().for_each(|component| component.lend(network, packed, &mut lent));
        lent
    }

    /// What they make of documents that are scored: states of these layers, of so many windows.
    pub(crate) fn passes<'a>(
        &'a self,
        network: &'a Network,
        layers: &LayerSet,
        n_windows: usize,
    ) -> Vec<Box<dyn Pass + 'a>> {
        self.all().into_iter().filter_map(|component| component.pass(network, layers, n_windows)).collect()
    }

    /// What they learn outside the network.
    pub(crate) fn outside(&self) -> impl Iterator<Item = Outside<'_>> {
        self.all().into_iter().filter_map(Component::outside)
    }

    /// Whether a tensor of this name is outside the network.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.outside().any(|(own, ..)| own == name)
    }

    /// Takes what is theirs of these values, which must be there.
    pub(crate) fn take(&mut self, values: &mut Tensors) -> Result<(), String> {
        for component in self.all_mut() {
            let Some((name, expected, _)) = component.outside() else { continue };
            let (shape, values) = values.remove(name).ok_or_else(|| format!("it has no tensor `{name}`"))?;
            if shape != expected {
                return Err(format!("tensor `{name}` has shape {shape:?}, not {expected:?}"));
            }
            if let Some(own) = component.outside_mut() {
                *own = values;
            }
        }
        Ok(())
    }

    /// Exchanges their values for those of the same name, where there are some.
    pub(crate) fn swap(&mut self, values: &mut Tensors) {
        for component in self.all_mut() {
            let Some((name, ..)) = component.outside() else { continue };
            if let (Some((_, other)), Some(own)) = (values.get_mut(name), component.outside_mut()) {
                std::mem::swap(own, other);
            }
        }
    }
}
