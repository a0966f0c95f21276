//! LSTM and GRU: single steps, whole sequences, and layers in both directions.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, TensorData, activation};
pub use cladist_kernels::recurrent::Cell;
use cladist_kernels::recurrent::Shape;
use rand_chacha::ChaCha8Rng;

use super::{Linear, dropout};
use crate::encoder::{Packing, place};
use crate::fused::{is_cpu, recurrent};

/// The recurrent half of a cell. What its inputs add to the gates comes from outside, so that all steps' inputs can be
/// multiplied at once. States are `[n, outputs]`: of an LSTM, h and after it the memory m.
#[derive(Module, Debug)]
pub struct Recurrence {
    recurrent: Linear,
    #[module(skip)]
    cell: Cell,
    #[module(skip)]
    hidden: usize,
}

impl Recurrence {
    /// A new cell; the forget gate of an LSTM has a bias of 1.
    pub(crate) fn new(cell: Cell, hidden: usize, random: &mut ChaCha8Rng, device: &Device) -> Self {
        let gates = cell.gates() * hidden;
        let mut recurrent = Linear::new(hidden, gates, random, device);
        if cell == Cell::Lstm {
            let bias: Vec<f32> = (0..gates).map(|n| if n / hidden == 1 { 1.0 } else { 0.0 }).collect();
            recurrent.bias = Param::from_data(TensorData::new(bias, [gates]), device);
        }
        Self { recurrent, cell, hidden }
    }

    /// Values that an input gives.
    #[must_use]
    pub fn gates(&self) -> usize {
        self.cell.gates() * self.hidden
    }

    /// A state to begin with, from h `[n, hidden]`: a memory of zeros beside it.
    #[must_use]
    pub fn begin(&self, h: Tensor<2>) -> Tensor<2> {
        match self.cell {
            Cell::Lstm => Tensor::cat(vec![h.clone(), h.zeros_like()], 1),
            Cell::Gru => h,
        }
    }

    /// The part h of a state.
    #[must_use]
    pub fn h(&self, state: Tensor<2>) -> Tensor<2> {
        match self.cell {
            Cell::Lstm => part(&state, 0, self.hidden),
            Cell::Gru => state,
        }
    }

    /// One step with `input [n, gates]`: gates in, forget, new, out of an LSTM; reset, update, new of a GRU.
    #[must_use]
    pub fn step(&self, input: Tensor<2>, state: Tensor<2>) -> Tensor<2> {
        let hidden = self.hidden;
        let products = self.recurrent.forward(self.h(state.clone()));
        match self.cell {
            Cell::Lstm => {
                let gates = input + products;
                let gate = |number| part(&gates, number, hidden);
                let kept = activation::sigmoid(gate(1)) * part(&state, 1, hidden);
                let memory = kept + activation::sigmoid(gate(0)) * gate(2).tanh();
                let h = activation::sigmoid(gate(3)) * memory.clone().tanh();
                Tensor::cat(vec![h, memory], 1)
            }
            Cell::Gru => {
                let gate = |number| {
                    activation::sigmoid(part(&input, number, hidden) + part(&products, number, hidden))
                };
                let new = (part(&input, 2, hidden) + gate(0) * part(&products, 2, hidden)).tanh();
                new.clone() + gate(1) * (state - new)
            }
        }
    }

    /// States after every token `[tokens, outputs]`, from inputs packed the same way.
    #[must_use]
    pub fn run(&self, input: Tensor<2>, packing: &Packing, reverse: bool) -> Tensor<2> {
        if !is_cpu(&input.device()) {
            return self.run_plain(input, packing, reverse);
        }
        let shape = Shape { cell: self.cell, hidden: self.hidden, reverse };
        let (weight, bias) = (self.recurrent.weight.val(), self.recurrent.bias.val());
        recurrent(shape, packing.offsets.clone(), input, weight, bias)
    }

    /// The same in ordinary operations: what every device but the CPU runs.
    pub(super) fn run_plain(&self, input: Tensor<2>, packing: &Packing, reverse: bool) -> Tensor<2> {
        let (device, n, longest) = (input.device(), packing.n_sequences(), packing.longest());
        let width = self.cell.states() * self.hidden;
        let (padded, mask) = (packing.pad(input), packing.mask(&device));
        let mut state = Tensor::zeros([n, width], &device);
        let mut states = vec![state.clone(); longest];
        for step in 0..longest {
            let t = if reverse { longest - 1 - step } else { step };
            let input = padded.clone().slice([0..n, t..t + 1, 0..self.gates()]).reshape([n, self.gates()]);
            // Padding leaves the state as it was: zeros before a reversed sequence begins.
            let here = mask.clone().slice([0..n, t..t + 1]);
            let next = self.step(input, state.clone());
            state = state.clone() + (next - state) * here;
            states[t] = state.clone();
        }
        Tensor::<2>::stack::<3>(states, 1).reshape([n * longest, width]).select(0, packing.rows(&device))
    }
}

/// A part of each row.
fn part(rows: &Tensor<2>, number: usize, width: usize) -> Tensor<2> {
    let [n, _] = rows.dims();
    rows.clone().slice([0..n, number * width..(number + 1) * width])
}

/// One direction of a layer.
#[derive(Module, Debug)]
pub(crate) struct Direction {
    input: Linear,
    recurrence: Recurrence,
}

/// Layers of which each reads the one below in both directions.
#[derive(Module, Debug)]
pub struct Bidirectional {
    forward: Vec<Direction>,
    backward: Vec<Direction>,
    #[module(skip)]
    sum: bool,
    #[module(skip)]
    dropout: f64,
}

/// The state at the end of each sequence, `[sequences, outputs]`.
#[derive(Debug, Clone)]
pub struct Ends {
    /// Of the direction from the first token to the last.
    pub forward: Tensor<2>,
    /// Of the direction from the last token to the first.
    pub backward: Tensor<2>,
}

impl Bidirectional {
    /// New layers of `hidden` units a direction, on inputs of width `inputs`. The two directions are added up, or lie side
    /// by side.
    #[expect(clippy::too_many_arguments, reason = "the sizes of one block")]
    pub(crate) fn new(
        cell: Cell,
        inputs: usize,
        hidden: usize,
        n_layers: usize,
        sum: bool,
        dropout: f64,
        random: &mut ChaCha8Rng,
        device: &Device,
    ) -> Self {
        let between = if sum { hidden } else { 2 * hidden };
        let mut direction = |layer: usize| {
            let recurrence = Recurrence::new(cell, hidden, random, device);
            let inputs = if layer == 0 { inputs } else { between };
            Direction { input: Linear::new(inputs, recurrence.gates(), random, device), recurrence }
        };
        let forward = (0..n_layers).map(&mut direction).collect();
        Self { forward, backward: (0..n_layers).map(direction).collect(), sum, dropout }
    }

    /// States of the last layer, packed, and the ends of every layer. Dropout is between layers.
    #[must_use]
    pub fn run(&self, mut x: Tensor<2>, packing: &Packing, seed: Option<u64>) -> (Tensor<2>, Vec<Ends>) {
        let device = x.device();
        let mut ends = Vec::with_capacity(self.forward.len());
        for (n, (forward, backward)) in self.forward.iter().zip(&self.backward).enumerate() {
            if n > 0 {
                x = dropout(x, self.dropout, seed.map(|seed| place(seed, n as u64)));
            }
            let [there, back] = [(forward, false), (backward, true)].map(|(direction, reverse)| {
                direction.recurrence.run(direction.input.forward(x.clone()), packing, reverse)
            });
            ends.push(Ends {
                forward: there.clone().select(0, packing.last_rows(&device)),
                backward: back.clone().select(0, packing.first_rows(&device)),
            });
            let (there, back) = (forward.recurrence.h(there), backward.recurrence.h(back));
            x = if self.sum { there + back } else { Tensor::cat(vec![there, back], 1) };
        }
        (x, ends)
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::optim::GradientSum;
    use crate::parameters::{names, to_vec};

    fn apart(a: &[f32], b: &[f32]) -> f32 {
        assert_eq!(a.len(), b.len());
        a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
    }

    #[test]
    fn the_fused_recurrence_equals_ordinary_operations() {
        let device = Device::flex().autodiff();
        let packing = Packing::new(&[0, 3, 4, 11]);
        for (cell, reverse) in
            [Cell::Lstm, Cell::Gru].into_iter().flat_map(|cell| [(cell, false), (cell, true)])
        {
            let mut random = ChaCha8Rng::seed_from_u64(7);
            let recurrence = Recurrence::new(cell, 6, &mut random, &device);
            let mut rows = |n: usize, width: usize| {
                let values: Vec<f32> = (0..n * width).map(|_| random.random_range(-1.0..1.0)).collect();
                Tensor::<2>::from_data(TensorData::new(values, [n, width]), &device)
            };
            let (x, weights) = (rows(11, recurrence.gates()), rows(11, cell.states() * 6));
            let results = [Recurrence::run, Recurrence::run_plain].map(|run| {
                let x = x.clone().require_grad();
                let y = run(&recurrence, x.clone(), &packing, reverse);
                let mut all = (y.clone() * weights.clone()).sum().backward();
                let dx = x.grad_remove(&mut all).unwrap().into_data().try_into_vec::<f32>().unwrap();
                let mut sum = GradientSum::default();
                sum.add(&recurrence, all);
                let of = |name: &String| sum.values(name).unwrap();
                (to_vec(y), dx, names(&recurrence).iter().map(of).collect::<Vec<_>>())
            });
            let [(y, dx, slopes), (plain_y, plain_dx, plain_slopes)] = results;
            assert!(apart(&y, &plain_y) < 1e-5 && apart(&dx, &plain_dx) < 1e-5, "{cell:?} {reverse}");
            assert_eq!(slopes.len(), 2);
            for (a, b) in slopes.iter().zip(&plain_slopes) {
                assert!(apart(a, b) < 1e-4, "{cell:?} {reverse}");
            }
        }
    }

    #[test]
    fn both_directions_meet_and_end_where_sequences_do() {
        let device = Device::flex();
        let mut random = ChaCha8Rng::seed_from_u64(7);
        let both = Bidirectional::new(Cell::Lstm, 3, 4, 2, false, 0.0, &mut random, &device);
        let x = Tensor::<2>::from_data(
            TensorData::new((0..15).map(|n| n as f32 / 9.0).collect::<Vec<_>>(), [5, 3]),
            &device,
        );
        let (states, ends) = both.run(x, &Packing::new(&[0, 2, 5]), None);
        assert_eq!((states.dims(), ends.len()), ([5, 8], 2));
        let (states, forward, backward) =
            (to_vec(states), to_vec(ends[1].forward.clone()), to_vec(ends[1].backward.clone()));
        // The second sequence: its last token read forwards, its first backwards.
        assert_eq!(states[4 * 8..][..4], forward[8..][..4]);
        assert_eq!(states[2 * 8 + 4..][..4], backward[8..][..4]);
    }
}
