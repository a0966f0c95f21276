//! What commands come to, as plain data: written as JSON, printed as tables and rendered as pages.

mod evaluation;
pub mod experiment;
mod explanation;
mod plane;

pub use evaluation::{Evaluation, HEADLINE, HEADS_OF_GROUPS, cells};
pub use explanation::{ByLabel, ByModel, Explained, Measure, Word};
pub use plane::{Placed, Plane, Projected};

/// A metric as people write it: four decimals, or a dash.
#[must_use]
pub fn four_decimals(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.4}"))
}
