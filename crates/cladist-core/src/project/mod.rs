//! Vectors on a plane, and how their directions lie to each other: what the labels of a model look like from outside.
//!
//! Everything is worked out from the [`Gram`] matrix, so that short dense vectors and long sparse ones are the same.
//! Nothing is random, and every sum has its order: the same vectors give the same picture on any number of threads.

mod eigen;
mod gram;
mod neighbours;
mod pca;
mod tsne;

pub use gram::Gram;
pub use neighbours::{Nearest, Siblings, nearest, siblings};
pub use pca::{Pca, pca};
pub use tsne::{Tsne, TsneConfig, tsne};

/// A place on the plane.
pub type Point = [f64; 2];
