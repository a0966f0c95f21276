//! The page of label vectors: the picture, whose points say who they are, and each label's nearest.

use askama::Template;

use super::table::{Table, numbers, text};
use super::{PageError, render};
use crate::figure::Svg;
use crate::results::Projected;

#[derive(Template)]
#[template(path = "plane.html", whitespace = "minimize")]
struct Page<'a> {
    title: &'a str,
    projected: &'a Projected,
    svg: &'a Svg,
    labels: Table,
}

/// The page of label vectors; `svg` is the picture of the same labels.
pub fn plane(projected: &Projected, svg: &Svg) -> Result<String, PageError> {
    let columns = [
        text("label"),
        text("name"),
        text("branch"),
        numbers("train"),
        text("nearest"),
        numbers("cosine"),
        text("which is its"),
    ];
    let mut labels = Table::new(columns);
    for label in &projected.labels {
        labels.row([
            label.id.clone(),
            label.name.clone(),
            projected.branch(label).to_owned(),
            label.train.to_string(),
            label.nearest.clone(),
            format!("{:.3}", label.cosine),
            label.relation.unwrap_or_default().to_owned(),
        ]);
    }
    render(&Page { title: &projected.title(), projected, svg, labels })
}
