//! Studies of trained models: label vectors on a plane, use of encoder layers, labels without training documents.

pub mod labels;
pub mod layers;
pub mod zero_shot;

use std::path::{Path, PathBuf};

use cladist::Model;

/// Where results go: as asked, or `analysis` in the first run folder, or here.
fn place(asked: Option<&Path>, first: &Model) -> PathBuf {
    let home = || first.folder().map(|folder| folder.join("analysis"));
    asked.map(Path::to_owned).or_else(home).unwrap_or_else(|| PathBuf::from("."))
}
