//! The page of label vectors: the picture, whose points say who they are, and each label's nearest.

use std::fmt::Write;

use super::{STYLE, escape};
use crate::commands::analyze::labels::Projected;
use crate::figure::Figure;

/// The page; `figure` is the picture of the same labels.
#[must_use]
pub fn plane(projected: &Projected, figure: &Figure) -> String {
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = write!(
        page,
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>\
         <title>{title}</title><style>{STYLE} svg.figure {{ max-width: 100%; height: auto; }} \
         svg.figure circle:hover, svg.figure rect[stroke]:hover {{ stroke: #1c2430; stroke-width: 2; }}</style>\
         <h1>{title}</h1><p class=soft>{}</p>",
        escape(&projected.bundle),
        title = escape(&projected.title())
    );
    for line in projected.remarks() {
        let _ = write!(page, "<p>{}</p>", escape(&line));
    }
    page.push_str(&figure.to_svg());
    page.push_str(
        "<h2>Labels</h2><div class=scroll><table><tr><th>label<th class=text>name<th class=text>branch<th>train\
         <th class=text>nearest<th>cosine<th class=text>which is its",
    );
    for label in &projected.labels {
        let _ = write!(
            page,
            "<tr><td>{}<td class=text>{}<td class=text>{}<td>{}<td class=text>{}<td>{:.3}<td class=text>{}",
            escape(&label.id),
            escape(&label.name),
            escape(projected.branch(label)),
            label.train,
            escape(&label.nearest),
            label.cosine,
            label.relation.unwrap_or_default()
        );
    }
    page.push_str("</table></div></html>\n");
    page
}
