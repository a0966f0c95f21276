//! Any description as loops over numbers, one token at a time: what the tensor operations must equal.

use super::super::description::{
    Activation, Gate, NormKind, NormPlace, NormSpec, Positions, Projection, Rotary,
};
use super::*;
use crate::parameters::Tensors;

type Rows = Vec<Vec<f64>>;

pub(super) struct Reference<'a> {
    pub(super) config: &'a EncoderConfig,
    pub(super) values: Tensors,
}

impl Reference<'_> {
    fn get(&self, path: &str) -> Option<Vec<f64>> {
        self.values.get(path).map(|(_, values)| values.iter().map(|&value| f64::from(value)).collect())
    }

    fn row(&self, path: &str, row: usize) -> Option<Vec<f64>> {
        let width = self.values.get(path)?.0[1];
        self.get(path).map(|values| values[row * width..][..width].to_vec())
    }

    /// W·x + b.
    fn linear(&self, path: &str, x: &[f64]) -> Vec<f64> {
        let weight = self.get(&format!("{path}_weight")).unwrap();
        let bias = self.get(&format!("{path}_bias"));
        let product = |row: &[f64]| row.iter().zip(x).map(|(a, b)| a * b).sum::<f64>();
        let products = weight.chunks(x.len()).map(product).enumerate();
        products.map(|(n, product)| product + bias.as_ref().map_or(0.0, |bias| bias[n])).collect()
    }

    fn norm(&self, path: &str, x: Vec<f64>) -> Vec<f64> {
        let Some(gain) = self.get(&format!("{path}_gain")) else { return x };
        let NormSpec { kind, epsilon, .. } = self.config.norm;
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let middle = if kind == NormKind::Layer { mean(&x) } else { 0.0 };
        let squares: Vec<f64> = x.iter().map(|value| (value - middle).powi(2)).collect();
        let scale = (mean(&squares) + f64::from(epsilon)).sqrt();
        let bias = self.get(&format!("{path}_bias")).unwrap_or_else(|| vec![0.0; x.len()]);
        (0..x.len()).map(|n| (x[n] - middle) / scale * gain[n] + bias[n]).collect()
    }

    fn embed(&self, place: usize, id: u32) -> Vec<f64> {
        let spec = &self.config.embeddings;
        let mut x = self.row("embeddings.words", id as usize).unwrap();
        let mut add = |row: Option<Vec<f64>>| {
            x.iter_mut().zip(row.into_iter().flatten()).for_each(|(x, value)| *x += value);
        };
        if let Positions::Learned { first, .. } = spec.positions {
            add(self.row("embeddings.positions", place + first));
        }
        add(self.row("embeddings.types", 0));
        match spec.projection {
            Projection::None => self.norm("embeddings.norm", x),
            Projection::AfterNorm => self.linear("embeddings.projection", &self.norm("embeddings.norm", x)),
            Projection::BeforeNorm => self.norm("embeddings.norm", self.linear("embeddings.projection", &x)),
        }
    }

    /// What all tokens take from each other in a layer.
    fn attend(&self, layer: usize, path: &str, x: &[Vec<f64>]) -> Rows {
        let EncoderConfig { hidden_size, n_heads, ref attention, .. } = *self.config;
        let (width, keys) = (hidden_size / n_heads, attention.n_key_heads);
        let radius = attention.window.as_ref().and_then(|window| window.radius(layer));
        let qkv: Rows = x.iter().map(|x| self.linear(&format!("{path}.qkv"), x)).collect();
        let head = |place: usize, from: usize, turned: bool| -> Vec<f64> {
            let own = qkv[place][from * width..][..width].to_vec();
            match attention.rotary.filter(|_| turned) {
                Some(rotary) => turn(&own, place, rotary, radius.is_some()),
                None => own,
            }
        };
        let mut context: Rows = vec![Vec::new(); x.len()];
        for (h, i) in (0..n_heads).flat_map(|h| (0..x.len()).map(move |i| (h, i))) {
            let shared = n_heads + h / (n_heads / keys);
            let query = head(i, h, true);
            let mut seen: Vec<(usize, f64)> = Vec::new();
            for j in (0..x.len()).filter(|&j| radius.is_none_or(|radius| i.abs_diff(j) <= radius)) {
                let product: f64 = query.iter().zip(head(j, shared, true)).map(|(a, b)| a * b).sum();
                let bias = attention.distance.map_or(0.0, |bias| {
                    let bucket = bias.bucket(j as isize - i as isize);
                    self.row("distance_bias", bucket).unwrap()[h]
                });
                seen.push((j, (product / (width as f64).sqrt() + bias).exp()));
            }
            let total: f64 = seen.iter().map(|(_, weight)| weight).sum();
            let mut sum = vec![0.0; width];
            for (j, weight) in seen {
                let value = head(j, shared + keys, false);
                sum.iter_mut().zip(value).for_each(|(sum, value)| *sum += weight / total * value);
            }
            context[i].extend(sum);
        }
        context.iter().map(|row| self.linear(&format!("{path}.out"), row)).collect()
    }

    fn feed_forward(&self, path: &str, x: &[f64]) -> Vec<f64> {
        let spec = self.config.mlp;
        let up = self.linear(&format!("{path}.up"), x);
        let middle: Vec<f64> = match spec.gate {
            Gate::None => up.iter().map(|&u| activate(u, spec.activation)).collect(),
            Gate::First => {
                (0..spec.width).map(|n| activate(up[n], spec.activation) * up[n + spec.width]).collect()
            }
            Gate::Second => {
                (0..spec.width).map(|n| up[n] * activate(up[n + spec.width], spec.activation)).collect()
            }
        };
        self.linear(&format!("{path}.down"), &middle)
    }

    /// States of a sequence at every layer from 0.
    pub(super) fn states(&self, ids: &[u32]) -> Vec<Rows> {
        let mut x: Rows = ids.iter().enumerate().map(|(place, &id)| self.embed(place, id)).collect();
        let mut states = vec![x.clone()];
        let pre = self.config.norm.place != NormPlace::Post;
        for layer in 0..self.config.n_layers {
            let path = format!("layers.{}", layer * self.config.n_groups / self.config.n_layers);
            let (norm1, norm2) = (format!("{path}.norm1"), format!("{path}.norm2"));
            let read: Rows =
                x.iter().map(|x| if pre { self.norm(&norm1, x.clone()) } else { x.clone() }).collect();
            let attended = self.attend(layer, &path, &read);
            for (x, out) in x.iter_mut().zip(attended) {
                let sum = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a + b).collect::<Vec<f64>>();
                if pre {
                    let h = sum(x, &out);
                    *x = sum(&h, &self.feed_forward(&path, &self.norm(&norm2, h.clone())));
                } else {
                    let h = self.norm(&norm1, sum(x, &out));
                    *x = self.norm(&norm2, sum(&h, &self.feed_forward(&path, &h)));
                }
            }
            let finish = |x: &Vec<f64>| if pre { self.norm("last_norm", x.clone()) } else { x.clone() };
            states.push(x.iter().map(finish).collect());
        }
        states
    }
}

fn turn(x: &[f64], place: usize, rotary: Rotary, local: bool) -> Vec<f64> {
    let half = x.len() / 2;
    let theta = if local { rotary.local_theta } else { rotary.theta };
    let mut turned = x.to_vec();
    for k in 0..half {
        let share = 2.0 / x.len() as f64;
        let speed = (theta * rotary.factor).powf(-share * k as f64) / rotary.factor.powf(share);
        let (sin, cos) = (place as f64 * speed).sin_cos();
        turned[k] = x[k] * cos - x[k + half] * sin;
        turned[k + half] = x[k + half] * cos + x[k] * sin;
    }
    turned
}

fn activate(x: f64, by: Activation) -> f64 {
    match by {
        // Φ by the integral of the density: Simpson's rule between 0 and x.
        Activation::Gelu => {
            let density = |t: f64| (-t * t / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
            let (n, step) = (400, x / 400.0);
            let inner: f64 =
                (1..n).map(|i| if i % 2 == 1 { 4.0 } else { 2.0 } * density(f64::from(i) * step)).sum();
            x * (0.5 + (density(0.0) + inner + density(x)) * step / 3.0)
        }
        Activation::GeluTanh => {
            let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3));
            0.5 * x * (1.0 + inner.tanh())
        }
        Activation::Silu => x / (1.0 + (-x).exp()),
        Activation::Relu => x.max(0.0),
    }
}
