//! Pages that need nothing else. Each is a template under `templates/`, which escapes whatever is put into it; pictures come
//! from [`crate::figure`] and are the only markup that is taken as it is (`docs/adr/0017`).

mod experiment;
mod explain;
mod plane;
mod report;
mod table;
#[cfg(test)]
mod tests;
mod training;

use askama::Template;

pub use experiment::experiment;
pub use explain::explain;
pub use plane::plane;
pub use report::report;
pub use training::training;

/// A page that could not be put together.
#[derive(Debug, thiserror::Error)]
#[error("the page could not be written: {0}")]
pub struct PageError(#[from] askama::Error);

fn render(page: &impl Template) -> Result<String, PageError> {
    Ok(page.render()?)
}
