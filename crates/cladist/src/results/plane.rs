//! Vectors of labels on a plane.

use cladist_core::project::Siblings;
use serde::Serialize;

/// The labels of one bundle.
#[derive(Debug, Serialize)]
pub struct Projected {
    /// As typed.
    pub bundle: String,
    /// As figures and tables call it.
    pub name: String,
    /// The head.
    pub head: String,
    /// How they came to the plane.
    #[serde(flatten)]
    pub plane: Plane,
    /// How often siblings are nearest to each other; none if no label has both siblings and others at its level.
    pub siblings: Option<Siblings>,
    /// Labels that are shown.
    pub n_labels: usize,
    /// Labels that no training document has, or that got no weights.
    pub n_untrained: usize,
    /// The rarest beyond those that can be shown.
    pub n_left_out: usize,
    /// Labels at the top, that of most labels first; none without a hierarchy.
    pub branches: Vec<String>,
    /// The labels, the most frequent first.
    pub labels: Vec<Placed>,
}

/// How labels came to the plane, and how well.
#[derive(Debug, Serialize)]
#[serde(tag = "method", rename_all = "kebab-case")]
pub enum Plane {
    /// Principal components.
    Pca {
        /// The share of each axis.
        variance: [f64; 2],
    },
    /// t-SNE.
    Tsne {
        /// KL(vectors ‖ plane), in nats.
        kl: f64,
        /// As it was used.
        perplexity: f64,
    },
}

/// A label and its place.
#[derive(Debug, Serialize)]
pub struct Placed {
    /// The label.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The number of its branch.
    pub branch: Option<usize>,
    /// Training documents.
    pub train: u32,
    /// To the right.
    pub x: f64,
    /// Up.
    pub y: f64,
    /// The label with the most similar vector.
    pub nearest: String,
    /// The cosine of the angle between both.
    pub cosine: f64,
    /// What the nearest is to it.
    pub relation: Option<&'static str>,
}

impl Projected {
    /// What the picture shows.
    #[must_use]
    pub fn title(&self) -> String {
        format!("Labels of {} ({})", self.name, self.head)
    }

    /// What is to be said of the labels, a sentence each.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let siblings = match &self.siblings {
            Some(Siblings { n_labels, share, chance }) => format!(
                "Of {n_labels} labels with siblings and others at their level, {:.1}% have a sibling nearest to them there \
                 (by chance {:.1}%).",
                100.0 * share,
                100.0 * chance
            ),
            None => "No label has both siblings and others at its level.".to_owned(),
        };
        std::iter::once(siblings).chain(self.left_out()).collect()
    }

    /// What is left out, a sentence each.
    #[must_use]
    pub fn left_out(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.n_untrained > 0 {
            lines.push(format!(
                "{} labels without training documents or weights are left out.",
                self.n_untrained
            ));
        }
        if self.n_left_out > 0 {
            lines.push(format!(
                "The {} most frequent labels are shown, {} are left out.",
                self.labels.len(),
                self.n_left_out
            ));
        }
        lines
    }

    /// The name of a label's branch; empty without a hierarchy.
    #[must_use]
    pub fn branch(&self, label: &Placed) -> &str {
        label.branch.and_then(|branch| self.branches.get(branch)).map_or("", String::as_str)
    }

    /// A label in a line.
    #[must_use]
    pub fn describe(&self, label: &Placed) -> String {
        let Placed { id, name, train, nearest, cosine, .. } = label;
        let branch = match self.branch(label) {
            "" => String::new(),
            branch => format!(" · {branch}"),
        };
        let id = if id == name { String::new() } else { format!(" ({id})") };
        format!("{name}{id}{branch} · {train} training documents · nearest: {nearest} ({cosine:.3})")
    }
}
