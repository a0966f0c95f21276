//! AdamW with groups of parameters, global clipping and gradient accumulation.

use std::collections::BTreeMap;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Device, Gradients, Tensor, TensorData};
use cladist_kernels::adamw;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::fused::{Values, is_cpu, recycle, update_in_place};
use crate::parameters::{Place, Tensors, follow_place, to_vec};

/// Constants of the optimiser.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdamWConfig {
    /// Decay of the first moment.
    pub beta1: f64,
    /// Decay of the second moment.
    pub beta2: f64,
    /// Keeps the division finite.
    pub epsilon: f64,
    /// Decoupled weight decay of matrices; biases and normalisations have none. 0 makes it Adam.
    pub weight_decay: f64,
}

impl Default for AdamWConfig {
    fn default() -> Self {
        Self { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.01 }
    }
}

/// Sums of gradients by parameter name, each flat.
#[derive(Debug, Default)]
pub struct GradientSum {
    gradients: BTreeMap<String, Tensor<1>>,
    batches: usize,
}

impl GradientSum {
    /// Adds the gradients of a batch.
    pub fn add(&mut self, module: &impl Module, gradients: Gradients) {
        struct Collect<'a> {
            place: Place,
            gradients: Gradients,
            sums: &'a mut BTreeMap<String, Tensor<1>>,
        }
        impl ModuleVisitor for Collect<'_> {
            follow_place!();
            fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
                let Some(gradient) = param.val().grad_remove(&mut self.gradients) else { return };
                let n: usize = gradient.dims().iter().product();
                let gradient = gradient.reshape([n]);
                let name = self.place.name();
                let sum = match self.sums.remove(&name) {
                    Some(sum) => sum + gradient,
                    None => gradient,
                };
                self.sums.insert(name, sum);
            }
        }
        module.visit(&mut Collect { place: Place::default(), gradients, sums: &mut self.gradients });
        self.batches += 1;
    }

    /// Batches added.
    #[must_use]
    pub fn batches(&self) -> usize {
        self.batches
    }

    /// √Σg² of the mean over batches.
    #[must_use]
    pub fn norm(&self) -> f64 {
        let squares: f64 = self
            .gradients
            .values()
            .map(|gradient| {
                if is_cpu(&gradient.device()) {
                    adamw::square_sum(&Values::of(gradient.clone()))
                } else {
                    f64::from(gradient.clone().powi_scalar(2).sum().into_scalar::<f32>())
                }
            })
            .sum();
        squares.sqrt() / self.batches.max(1) as f64
    }

    /// Puts values in place of a parameter's summed gradient.
    pub(crate) fn replace(&mut self, name: &str, values: Vec<f32>, device: &Device) {
        let n = values.len();
        let gradient = Tensor::<1>::from_data(TensorData::new(values, [n]), device).inner();
        self.gradients.insert(name.to_owned(), gradient);
    }

    /// Says how many batches the sum is of, where others have added theirs.
    pub(crate) fn count(&mut self, batches: usize) {
        self.batches = batches;
    }

    /// Names of the parameters that have a gradient.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.gradients.keys().map(String::as_str)
    }

    /// The values of a parameter's summed gradient.
    #[must_use]
    pub fn values(&self, name: &str) -> Option<Vec<f32>> {
        self.gradients.get(name).map(|gradient| to_vec(gradient.clone()))
    }
}

/// What a sum of gradients over batches is multiplied by: their mean, whose norm is `norm`, has norm `clip` at most.
pub(crate) fn scale(batches: usize, norm: f64, clip: Option<f64>) -> f64 {
    // As the usual implementations have it, with a guard for norms of 0.
    1.0 / batches.max(1) as f64 * clip.map_or(1.0, |clip| (clip / (norm + 1e-6)).min(1.0))
}

#[derive(Debug, Clone)]
enum Moments {
    Host(Vec<f32>, Vec<f32>),
    Device(Box<[Tensor<1>; 2]>),
}

/// The optimiser and its moments.
#[derive(Debug)]
pub struct AdamW {
    config: AdamWConfig,
    moments: BTreeMap<String, Moments>,
    /// Steps taken.
    number: u64,
}

impl AdamW {
    /// A fresh optimiser.
    #[must_use]
    pub fn new(config: AdamWConfig) -> Self {
        Self { config, moments: BTreeMap::new(), number: 0 }
    }

    /// One step: the mean gradient, whose norm is `norm`, scaled down to norm `clip` if it is longer, moves each
    /// parameter by its rate.
    #[must_use]
    pub fn step<M: Module>(
        &mut self,
        module: M,
        mut sum: GradientSum,
        norm: f64,
        clip: Option<f64>,
        rate: &dyn Fn(&str) -> f64,
    ) -> M {
        self.number += 1;
        let scale = scale(sum.batches, norm, clip);
        module.map(&mut Update {
            place: Place::default(),
            optimiser: self,
            gradients: &mut sum.gradients,
            scale,
            rate,
        })
    }

    fn update<const D: usize>(
        &mut self,
        name: String,
        parameter: Tensor<D>,
        gradient: Tensor<1>,
        rate: f64,
        scale: f64,
    ) -> Tensor<D> {
        let AdamWConfig { beta1, beta2, epsilon, weight_decay } = self.config;
        let decay = if D > 1 { weight_decay } else { 0.0 };
        let n = gradient.dims()[0];
        if is_cpu(&parameter.device()) {
            let fresh = || Moments::Host(vec![0.0; n], vec![0.0; n]);
            let Moments::Host(first, second) = self.moments.entry(name).or_insert_with(fresh) else {
                return parameter;
            };
            let step = adamw::Step {
                rate: rate as f32,
                beta1: beta1 as f32,
                beta2: beta2 as f32,
                epsilon: epsilon as f32,
                decay: decay as f32,
                number: self.number,
                scale: scale as f32,
            };
            let gradient = Values::of(gradient);
            let parameter =
                update_in_place(parameter, |values| adamw::step(step, values, &gradient, first, second));
            recycle(gradient);
            return parameter;
        }
        let device = parameter.device();
        let shape = parameter.dims();
        let (m, v) = match self.moments.remove(&name) {
            Some(Moments::Device(moments)) => (*moments).into(),
            _ => (Tensor::zeros([n], &device), Tensor::zeros([n], &device)),
        };
        let gradient = gradient * scale;
        let m = m * beta1 + gradient.clone() * (1.0 - beta1);
        let v = v * beta2 + gradient.powi_scalar(2) * (1.0 - beta2);
        let number = self.number as f64;
        let (c1, c2) = (1.0 - beta1.powf(number), 1.0 - beta2.powf(number));
        let direction = (m.clone() / c1) / ((v.clone() / c2).sqrt() + epsilon);
        self.moments.insert(name, Moments::Device(Box::new([m, v])));
        parameter * (1.0 - rate * decay) - (direction * rate).reshape(shape)
    }

    /// Its constants.
    #[must_use]
    pub fn config(&self) -> AdamWConfig {
        self.config
    }

    /// Steps taken.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The moments as named arrays.
    pub(crate) fn export(&self) -> Tensors {
        let mut state = Tensors::new();
        for (name, moments) in &self.moments {
            let (first, second) = match moments {
                Moments::Host(first, second) => (first.clone(), second.clone()),
                Moments::Device(moments) => (to_vec(moments[0].clone()), to_vec(moments[1].clone())),
            };
            for (kind, values) in [("first", first), ("second", second)] {
                state.insert(format!("{name}/{kind}"), (vec![values.len()], values));
            }
        }
        state
    }

    /// Takes up where [`AdamW::export`] left.
    pub(crate) fn import(
        config: AdamWConfig,
        number: u64,
        mut state: Tensors,
        device: &Device,
    ) -> Result<Self, String> {
        let mut moments = BTreeMap::new();
        while let Some((key, (_, first))) = state.pop_first() {
            let Some(name) = key.strip_suffix("/first") else {
                return Err(format!("`{key}` has no first moment"));
            };
            let Some((_, second)) = state.remove(&format!("{name}/second")) else {
                return Err(format!("`{name}` has no second moment"));
            };
            let pair = if is_cpu(device) {
                Moments::Host(first, second)
            } else {
                let tensor = |values: Vec<f32>| Tensor::<1>::from_floats(values.as_slice(), device);
                Moments::Device(Box::new([tensor(first), tensor(second)]))
            };
            moments.insert(name.to_owned(), pair);
        }
        Ok(Self { config, moments, number })
    }
}

struct Update<'a> {
    place: Place,
    optimiser: &'a mut AdamW,
    gradients: &'a mut BTreeMap<String, Tensor<1>>,
    scale: f64,
    rate: &'a dyn Fn(&str) -> f64,
}

impl ModuleMapper for Update<'_> {
    follow_place!();

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let name = self.place.name();
        let Some(gradient) = self.gradients.remove(&name) else { return param };
        let rate = (self.rate)(&name);
        param.map(|tensor| {
            let inner = self.optimiser.update(name, tensor.inner(), gradient, rate, self.scale);
            Tensor::from_inner(inner).require_grad()
        })
    }
}

#[cfg(test)]
mod tests;
