//! Which descriptions can be run.

use super::EncoderConfig;
use super::description::{NormKind, NormPlace, Positions, Projection};
use super::slots::slots;

/// More parameters than this are no encoder: memory would end before the message.
const MOST_PARAMETERS: usize = 1 << 36;

impl EncoderConfig {
    /// Refuses what no path runs, by the name of what is wrong.
    pub(super) fn check(&self) -> Result<(), String> {
        let Self { hidden_size, n_heads, n_layers, n_groups, .. } = *self;
        if hidden_size == 0 {
            return Err("the width must be at least 1".to_owned());
        }
        if n_heads == 0 || !hidden_size.is_multiple_of(n_heads) {
            return Err(format!("a width of {hidden_size} cannot be split among {n_heads} heads"));
        }
        if n_layers > 0 && !(1..=n_layers).contains(&n_groups) {
            return Err(format!("{n_layers} layers cannot share the parameters of {n_groups}"));
        }
        if !(self.norm.epsilon.is_finite() && self.norm.epsilon >= 0.0) {
            return Err(format!(
                "ε of normalisations must be finite and not negative: {}",
                self.norm.epsilon
            ));
        }
        if self.norm.kind == NormKind::Rms && self.norm.bias {
            return Err("RMS normalisation has no bias".to_owned());
        }
        if self.norm.place == (NormPlace::Pre { skip_first: true }) && n_groups != n_layers {
            return Err("a first layer of its own cannot share its parameters".to_owned());
        }
        self.check_embeddings()?;
        self.check_attention()?;
        let n_parameters: usize =
            slots(self, true).iter().map(|slot| slot.shape.iter().product::<usize>()).sum();
        if n_parameters > MOST_PARAMETERS {
            return Err(format!("{n_parameters} parameters are more than any encoder has"));
        }
        Ok(())
    }

    fn check_embeddings(&self) -> Result<(), String> {
        let embeddings = &self.embeddings;
        if embeddings.width == 0
            || (embeddings.projection == Projection::None && embeddings.width != self.hidden_size)
        {
            let (width, hidden) = (embeddings.width, self.hidden_size);
            return Err(format!("embeddings of width {width} cannot be states of width {hidden}"));
        }
        match embeddings.positions {
            Positions::Learned { rows, first } if rows <= first => {
                Err(format!("`max_position_embeddings` leaves no room: {rows}"))
            }
            Positions::None { limit: 0 } => Err("sequences of no token".to_owned()),
            _ => Ok(()),
        }
    }

    fn check_attention(&self) -> Result<(), String> {
        let attention = &self.attention;
        let width = self.hidden_size / self.n_heads;
        if attention.n_key_heads == 0 || !self.n_heads.is_multiple_of(attention.n_key_heads) {
            let (keys, heads) = (attention.n_key_heads, self.n_heads);
            return Err(format!("{heads} heads cannot share {keys} heads of keys and values"));
        }
        if let Some(rotary) = attention.rotary {
            if !width.is_multiple_of(2) {
                return Err(format!("rotary positions need heads of an even width: {width}"));
            }
            let fit = |value: f64| value.is_finite() && value > 0.0;
            if !(fit(rotary.theta) && fit(rotary.local_theta) && fit(rotary.factor)) {
                return Err(format!("constants of rotary positions must be above 0: {rotary:?}"));
            }
        }
        if let Some(bias) = attention.distance
            && (bias.rows < bias.buckets || bias.buckets < 4 || bias.max_distance <= bias.buckets / 4)
        {
            return Err(format!(
                "a bias by distance needs at least {} buckets: {}",
                bias.buckets.max(4),
                bias.rows
            ));
        }
        if let Some(window) = &attention.window
            && window.local.len() != self.n_layers
        {
            let (said, layers) = (window.local.len(), self.n_layers);
            return Err(format!("{said} layers are said to be local or global, of {layers}"));
        }
        Ok(())
    }
}
