//! How many labels a document has, by a network of its own beside any head (the label count prediction of ML-NET, Du
//! et al. 2019).
//!
//! It reads the document vector that the head reads, or the mean of the tokens, which it does not change: three hidden
//! layers and a softmax over 0, 1, … the largest number in training. It learns after the head is done. Vectors are
//! standardised by their means and deviations in training, which is what batch normalisation comes to in the end.

use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor, TensorData, activation};
use cladist_core::Job;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::blocks::Linear;
use crate::encoder::{Encoded, LayerSet, Reads};
use crate::error::Result;
use crate::losses::cross_entropy;
use crate::optim::{AdamW, AdamWConfig, GradientSum};
use crate::parameters::{self, Tensors, to_vec};
use crate::seeds;
use crate::tokens::Windows;

/// Widest first two layers: as many as there are labels, up to this.
const WIDEST: usize = 256;
const LAST: usize = 128;
const EPOCHS: u64 = 20;
const BATCH: usize = 16;
const RATE: f64 = 1e-3;
/// More labels than this count as this many.
pub(crate) const MOST: usize = 100;

/// The network.
#[derive(Module, Debug)]
pub struct CountNetwork {
    means: Param<Tensor<1>>,
    deviations: Param<Tensor<1>>,
    layers: Vec<Linear>,
}

impl CountNetwork {
    fn new(vectors: &Tensor<2>, widths: &[usize], seed: u64) -> Self {
        let device = vectors.device();
        let means = vectors.clone().mean_dim(0);
        let deviations = (vectors.clone() - means.clone()).powi_scalar(2).mean_dim(0).sqrt() + 1e-6;
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        Self {
            means: constant(to_vec(means), &device),
            deviations: constant(to_vec(deviations), &device),
            layers: widths
                .windows(2)
                .map(|pair| Linear::new(pair[0], pair[1], &mut random, &device))
                .collect(),
        }
    }

    /// The network that a file holds, whose shapes say its widths.
    pub(crate) fn of(values: Tensors, device: &Device) -> Result<Self, String> {
        let mut widths = vec![values.get("means").map_or(0, |(shape, _)| shape.iter().product())];
        while let Some((shape, _)) = values.get(&format!("layers.{}.weight", widths.len() - 1)) {
            widths.push(shape.first().copied().unwrap_or(0));
        }
        let empty = Tensor::zeros([1, widths[0].max(1)], device);
        parameters::replace(Self::new(&empty, &widths, 0), values)
    }

    /// Logits of each number of labels: `[documents, numbers]`.
    fn forward(&self, vectors: Tensor<2>) -> Tensor<2> {
        let mut x = (vectors - self.means.val().unsqueeze()) / self.deviations.val().unsqueeze();
        for (n, layer) in self.layers.iter().enumerate() {
            if n > 0 {
                x = activation::relu(x);
            }
            x = layer.forward(x);
        }
        x
    }

    /// The probability of each number of labels, a row for each document.
    pub(crate) fn probabilities(&self, vectors: Tensor<2>) -> Vec<Vec<f32>> {
        let p = activation::softmax(self.forward(vectors), 1);
        let [_, numbers] = p.dims();
        to_vec(p).chunks_exact(numbers.max(1)).map(<[f32]>::to_vec).collect()
    }

    /// Learns from vectors of documents and the numbers of their labels.
    pub(crate) fn learn(
        vectors: &Tensor<2>,
        counts: &[u32],
        n_labels: usize,
        seed: u64,
        job: &Job<'_>,
    ) -> Result<Self> {
        let device = vectors.device().autodiff();
        let [documents, width] = vectors.dims();
        let wide = n_labels.clamp(LAST, WIDEST);
        let numbers = counts.iter().max().map_or(1, |most| *most as usize + 1);
        let network =
            Self::new(vectors, &[width, wide, wide, LAST, numbers], seeds::derive(seed, seeds::COUNTS));
        let mut network = network.train();
        let mut optimiser = AdamW::new(AdamWConfig { weight_decay: 0.0, ..AdamWConfig::default() });
        let vectors = Tensor::<2>::from_inner(vectors.clone());
        let mut order: Vec<usize> = (0..documents).collect();
        for epoch in 0..EPOCHS {
            order.shuffle(&mut ChaCha8Rng::seed_from_u64(seeds::derive(seed, seeds::COUNTS + 1 + epoch)));
            for batch in order.chunks(BATCH) {
                job.cancel.check()?;
                let rows: Vec<i64> = batch.iter().map(|&n| n as i64).collect();
                let rows: Tensor<1, Int> = Tensor::from_data(TensorData::new(rows, [batch.len()]), &device);
                let gold: Vec<u32> = batch.iter().map(|&n| counts[n]).collect();
                let loss = cross_entropy(network.forward(vectors.clone().select(0, rows)), &gold, 0.0);
                let mut sum = GradientSum::default();
                sum.add(&network, loss.backward());
                let norm = sum.norm();
                network = optimiser.step(network, sum, norm, Some(1.0), &|_| RATE);
            }
        }
        Ok(network.valid())
    }
}

fn constant(values: Vec<f32>, device: &Device) -> Param<Tensor<1>> {
    let n = values.len();
    Param::from_data(TensorData::new(values, [n]), device).set_require_grad(false)
}

/// The vector of each document that the network reads.
pub(crate) fn vectors(documents: &Encoded, layers: &LayerSet) -> Tensor<2> {
    let layer = layers.last().unwrap_or(0);
    match layers.reads(layer) {
        Some(Reads::First) => documents.cls(layer),
        _ => documents.mean(layer),
    }
}

/// The likeliest number of labels of each document, whose windows are asked alike.
pub(crate) fn likeliest(windows: &Windows<'_>, n_documents: usize, of_windows: &[Vec<f32>]) -> Vec<u32> {
    let numbers = of_windows.first().map_or(0, Vec::len);
    let mut sums = vec![vec![0.0f32; numbers]; n_documents];
    for ((document, _), probabilities) in windows.iter().zip(of_windows) {
        sums[*document].iter_mut().zip(probabilities).for_each(|(sum, p)| *sum += p);
    }
    let best =
        |sum: &Vec<f32>| (0..numbers).rev().max_by(|&a, &b| sum[a].total_cmp(&sum[b])).unwrap_or(0) as u32;
    sums.iter().map(best).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_labels_is_learnt_from_what_tells_it() {
        let device = Device::flex();
        let mut random = ChaCha8Rng::seed_from_u64(3);
        let counts: Vec<u32> = (0..90).map(|n| n % 3).collect();
        let rows: Vec<f32> = counts
            .iter()
            .flat_map(|&count| [count as f32 * 5.0 + crate::random::normal(&mut random) * 0.1, 1.0])
            .collect();
        let vectors = Tensor::from_data(TensorData::new(rows, [90, 2]), &device);
        let network = CountNetwork::learn(&vectors, &counts, 10, 1, &Job::silent()).unwrap();
        let p = network.probabilities(vectors.clone());
        let windows: Vec<(usize, &crate::tokens::Sequence)> = Vec::new();
        assert!(likeliest(&windows, 2, &[]).iter().all(|&count| count == 0));
        let hits = p.iter().zip(&counts).filter(|(p, count)| {
            let best = (0..3).max_by(|&a, &b| p[a].total_cmp(&p[b])).unwrap();
            best as u32 == **count
        });
        assert!(hits.count() >= 88);
        let again = CountNetwork::of(parameters::named(&network), &device).unwrap();
        assert_eq!(again.probabilities(vectors.clone()), p);
        let twice = CountNetwork::learn(&vectors, &counts, 10, 1, &Job::silent()).unwrap();
        assert_eq!(twice.probabilities(vectors), p);
    }
}
