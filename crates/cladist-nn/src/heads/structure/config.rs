//! Settings that the structure heads have in common, and their checks.

use serde::{Deserialize, Serialize};

use super::Variant;
use crate::heads::Pool;
use crate::losses::Loss;

/// Labels up to which `auto` is `full`. Published taxonomies have up to 166; parameters grow with the square of labels.
const FULL_UP_TO: usize = 200;

/// How many parameters a label has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// `full` up to 200 labels of the taxonomy, whether or not heads are split by branches, `small` above.
    #[default]
    Auto,
    /// As published: every label has weights on the features of all.
    Full,
    /// Every label has weights on its own features, so that there is room for thousands of them.
    Small,
}

impl Form {
    /// What `auto` is with so many labels in the taxonomy.
    pub(super) fn of(self, n_labels: usize) -> Self {
        if self.is_full(n_labels) { Self::Full } else { Self::Small }
    }

    pub(super) fn is_full(self, n_labels: usize) -> bool {
        match self {
            Self::Auto => n_labels <= FULL_UP_TO,
            Self::Full => true,
            Self::Small => false,
        }
    }
}

/// What every structure head is told, checked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Common {
    pub(super) form: Form,
    pub(super) pool: Pool,
    pub(super) dropout: f64,
    pub(super) output_dropout: f64,
    pub(super) recursive_regularisation: f64,
    pub(super) loss: Loss,
}

/// What every head with graph layers is told, checked.
#[derive(Debug, Clone, Copy)]
pub(super) struct GraphSettings {
    pub(super) common: Common,
    pub(super) variant: Variant,
    pub(super) layers: usize,
    pub(super) node_size: usize,
    /// The key of `node_size`, for what does not fit.
    pub(super) node_size_key: &'static str,
}

/// Settings of a structure head: its own, and those of [`Common`] with the two defaults in which heads differ. A flattened
/// section would do the same but for unknown keys, which it cannot refuse with the list of those there are.
macro_rules! structured {
    (
        $(#[$about:meta])*
        $config:ident of $name:literal, output_dropout = $output_dropout:literal, recursive_regularisation = $recursive:literal {
            $($(#[$doc:meta])* $field:ident: $kind:ty = $default:expr,)*
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $config {
            $($(#[$doc])* pub $field: $kind,)*
            /// `full` has weights for every pair of labels, `small` for each label alone; `auto` is `full` up to 200 labels
            /// of the taxonomy.
            pub form: $crate::heads::structure::Form,
            /// The document vector: `cls`, `pooled` or `mean`.
            pub pool: $crate::heads::Pool,
            /// Dropout on the features before message passing.
            pub dropout: f64,
            /// Dropout on the features before the output layer.
            pub output_dropout: f64,
            /// λ of recursive regularisation, ½λ·Σ‖w_parent − w_child‖² over the output weights of adjacent labels.
            pub recursive_regularisation: f64,
            /// The loss of any number of labels: `bce`, `f-measure`, `bce-and-f`, `focal`, `asymmetric`, `ranking` or
            /// `coherent`.
            pub loss: $crate::losses::Loss,
        }

        impl Default for $config {
            fn default() -> Self {
                Self {
                    $($field: $default,)*
                    form: Default::default(),
                    pool: Default::default(),
                    dropout: 0.1,
                    output_dropout: $output_dropout,
                    recursive_regularisation: $recursive,
                    loss: Default::default(),
                }
            }
        }

        impl $config {
            /// The settings in common, checked.
            fn common(&self) -> $crate::error::Result<$crate::heads::structure::config::Common> {
                $crate::heads::settings::check_rates(&[
                    (concat!($name, ".dropout"), self.dropout),
                    (concat!($name, ".output_dropout"), self.output_dropout),
                ])?;
                $crate::heads::settings::check_weights(&[(
                    concat!($name, ".recursive_regularisation"),
                    self.recursive_regularisation,
                )])?;
                Ok($crate::heads::structure::config::Common {
                    form: self.form,
                    pool: self.pool,
                    dropout: self.dropout,
                    output_dropout: self.output_dropout,
                    recursive_regularisation: self.recursive_regularisation,
                    loss: self.loss,
                })
            }
        }
    };
}
pub(super) use structured;

/// The same for a head with graph layers, which has those of [`GraphSettings`] too.
macro_rules! propagating {
    (
        $(#[$about:meta])*
        $config:ident of $name:literal, recursive_regularisation = $recursive:literal {
            $($own:tt)*
        }
    ) => {
        $crate::heads::structure::config::structured! {
            $(#[$about])*
            $config of $name, output_dropout = 0.1, recursive_regularisation = $recursive {
                $($own)*
                /// Layers of message passing.
                layers: usize = 1,
                /// Features of a label.
                node_size: usize = 300,
                /// Dropout on the messages that reach a label.
                node_dropout: f64 = 0.05,
            }
        }

        impl $config {
            /// The settings of message passing, checked.
            fn graph(
                &self,
                variant: $crate::heads::structure::Variant,
            ) -> $crate::error::Result<$crate::heads::structure::config::GraphSettings> {
                use $crate::heads::settings::{check_layers, check_rates, check_widths};
                check_layers(concat!($name, ".layers"), self.layers)?;
                check_widths(&[(concat!($name, ".node_size"), self.node_size)])?;
                check_rates(&[(concat!($name, ".node_dropout"), self.node_dropout)])?;
                Ok($crate::heads::structure::config::GraphSettings {
                    common: self.common()?,
                    variant,
                    layers: self.layers,
                    node_size: self.node_size,
                    node_size_key: concat!($name, ".node_size"),
                })
            }
        }
    };
}
pub(super) use propagating;

/// What the settings of every structure head say of it, inside `impl HeadConfig`: labels of all levels are learnt, and a masked
/// branch keeps the structure of all labels.
macro_rules! of_all_levels {
    () => {
        fn learns_ancestors(&self) -> bool {
            true
        }

        fn masking(&self) -> $crate::heads::Masking {
            $crate::heads::Masking::Among
        }

        fn fit(&mut self, n_labels: usize) {
            self.form = self.form.of(n_labels);
        }
    };
}
pub(super) use of_all_levels;
