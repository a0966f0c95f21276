//! Which labels an answer may hold.

use crate::error::{Error, Result};
use crate::taxonomy::{Closure, LabelId, Taxonomy};

/// What follows a label's id where the label and everything below it is meant.
const SUBTREE: &str = "/**";

/// The labels that may be answered, of one taxonomy.
///
/// An entry is the id of a label, or an id followed by `/**` for the label and all its descendants. If nothing is
/// included by name, everything is. Of two entries that disagree on a label, the one for it alone counts more than one
/// for a subtree, and of equals the exclusion counts.
///
/// ```
/// # use cladist_core::decode::LabelFilter;
/// # use cladist_core::taxonomy::{Builder, Origin};
/// let mut builder = Builder::new();
/// for (parent, child) in [("animals", "cats"), ("animals", "dogs"), ("plants", "trees")] {
///     builder.edge(Some(parent), child, &Origin::default());
/// }
/// let taxonomy = builder.build().unwrap();
/// let filter = LabelFilter::new(&[], &["animals/**".into(), "trees".into()], &taxonomy).unwrap();
/// let allowed: Vec<&str> =
///     taxonomy.labels().filter(|&label| filter.allows(label)).map(|label| taxonomy.id(label)).collect();
/// assert_eq!(allowed, ["plants"]);
/// assert!(LabelFilter::new(&["birds".into()], &[], &taxonomy).is_err());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelFilter {
    /// By label; none if all are allowed.
    allowed: Option<Vec<bool>>,
}

/// Labels by the entries that name them.
struct Named {
    alone: Vec<bool>,
    below: Vec<bool>,
}

impl Named {
    fn new(entries: &[String], place: &'static str, taxonomy: &Taxonomy) -> Result<Self> {
        let n = taxonomy.n_labels();
        let mut named = Self { alone: vec![false; n], below: vec![false; n] };
        let mut tops = Vec::new();
        for entry in entries {
            if let Some(label) = taxonomy.get(entry) {
                named.alone[label.index()] = true;
            } else if let Some(label) = entry.strip_suffix(SUBTREE).and_then(|id| taxonomy.get(id)) {
                tops.push(label);
            } else {
                return Err(Error::UnknownLabel { place, id: entry.clone() });
            }
        }
        for label in &Closure::new(taxonomy).downward(&tops) {
            named.below[label.index()] = true;
        }
        Ok(named)
    }
}

impl LabelFilter {
    /// Checks entries against a taxonomy.
    pub fn new(include: &[String], exclude: &[String], taxonomy: &Taxonomy) -> Result<Self> {
        if include.is_empty() && exclude.is_empty() {
            return Ok(Self::default());
        }
        let included = Named::new(include, "`decode.include`", taxonomy)?;
        let excluded = Named::new(exclude, "`decode.exclude`", taxonomy)?;
        let allows = |label: LabelId| {
            let label = label.index();
            if excluded.alone[label] || included.alone[label] {
                !excluded.alone[label]
            } else {
                !excluded.below[label] && (include.is_empty() || included.below[label])
            }
        };
        Ok(Self { allowed: Some(taxonomy.labels().map(allows).collect()) })
    }

    /// Whether a label may be answered.
    #[must_use]
    pub fn allows(&self, label: LabelId) -> bool {
        self.allowed.as_ref().is_none_or(|allowed| allowed.get(label.index()).copied().unwrap_or(false))
    }

    /// Whether every label may.
    #[must_use]
    pub fn allows_all(&self) -> bool {
        self.allowed.is_none()
    }
}
