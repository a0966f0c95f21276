//! Coding trees that were built, so that none is built twice.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{CodingRule, CodingTree};
use crate::bundle::{self, Writer};
use crate::taxonomy::Taxonomy;
use crate::{Cancel, Error, Result};

/// The file of a bundle that has them.
const FILE: &str = "coding_trees.json";

/// Trees by what they were built from: the edges, the height and the rule. A model has them in its bundle: at a million labels a
/// tree takes up to half a minute.
#[derive(Debug, Default)]
pub struct CodingTrees {
    kept: Mutex<BTreeMap<String, Arc<CodingTree>>>,
    cancel: Cancel,
}

impl CodingTrees {
    /// The tree of a taxonomy, as it was kept or built now.
    pub fn of(&self, taxonomy: &Taxonomy, height: usize, rule: CodingRule) -> Result<Arc<CodingTree>> {
        let mut kept = self.lock();
        let key = key(taxonomy, height, rule);
        if let Some(tree) = kept.get(&key) {
            return Ok(Arc::clone(tree));
        }
        let tree = Arc::new(taxonomy.coding_tree(height, rule, &self.cancel)?);
        kept.insert(key, Arc::clone(&tree));
        Ok(tree)
    }

    /// The same trees; building others stops when it is asked to.
    #[must_use]
    pub fn unless(self, cancel: &Cancel) -> Self {
        Self { cancel: cancel.clone(), ..self }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<CodingTree>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Writes them into a bundle, if there are any.
    pub fn save(&self, writer: &Writer) -> Result<()> {
        let kept = self.lock();
        if kept.is_empty() {
            return Ok(());
        }
        let trees: BTreeMap<&String, &CodingTree> =
            kept.iter().map(|(key, tree)| (key, tree.as_ref())).collect();
        let bytes = serde_json::to_vec(&trees)
            .map_err(|error| Error::io("write", &writer.path(FILE))(std::io::Error::other(error)))?;
        writer.write(FILE, &bytes)
    }

    /// Those of a bundle; none if it has none.
    pub fn load(folder: &Path) -> Result<Self> {
        let path = folder.join(FILE);
        if !path.exists() {
            return Ok(Self::default());
        }
        let trees: BTreeMap<String, CodingTree> = bundle::read_json(&path)?;
        // A tree of other labels than its key says is built again.
        let fits =
            |(key, tree): &(String, CodingTree)| key.starts_with(&size(tree.n_nodes(0), tree.height()));
        let trees = trees.into_iter().filter(fits).map(|(key, tree)| (key, Arc::new(tree)));
        Ok(Self { kept: Mutex::new(trees.collect()), cancel: Cancel::default() })
    }
}

/// What the key of a tree begins with.
fn size(n_labels: usize, height: usize) -> String {
    format!("{n_labels}/{height}/")
}

fn key(taxonomy: &Taxonomy, height: usize, rule: CodingRule) -> String {
    let mut hasher = blake3::Hasher::new();
    for (parent, child) in taxonomy.edges() {
        for label in [parent, child] {
            hasher.update(&(label.index() as u64).to_le_bytes());
        }
    }
    let rule = match rule {
        CodingRule::Reference => "reference",
        CodingRule::StopWhenPositive => "stop-when-positive",
    };
    format!("{}{rule}/{}", size(taxonomy.n_labels(), height.max(1)), hasher.finalize().to_hex())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::taxonomy::{Builder, Origin};

    fn taxonomy(edges: &[(&str, &str)]) -> Taxonomy {
        let mut builder = Builder::new();
        for (parent, child) in edges {
            builder.edge(Some(parent), child, &Origin::default());
        }
        builder.build().unwrap()
    }

    #[test]
    fn trees_come_back_from_a_bundle_and_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bundle");
        let one = taxonomy(&[("a", "b"), ("b", "c"), ("c", "d"), ("a", "e")]);
        let other = taxonomy(&[("a", "b"), ("a", "c"), ("a", "d"), ("d", "e")]);
        let trees = CodingTrees::default();
        assert!(trees.is_empty());
        let all = [(&one, 2), (&one, 3), (&other, 2)];
        let built: Vec<Arc<CodingTree>> = all
            .iter()
            .map(|(taxonomy, height)| trees.of(taxonomy, *height, CodingRule::Reference).unwrap())
            .collect();
        assert!(Arc::ptr_eq(&built[0], &trees.of(&one, 2, CodingRule::Reference).unwrap()));
        assert_ne!(built[0].parents(0), built[2].parents(0));
        let writer = Writer::create(&path, "model").unwrap();
        trees.save(&writer).unwrap();
        writer.finish().unwrap();
        let read = CodingTrees::load(&path).unwrap();
        assert_eq!(read.lock().len(), 3);
        for ((taxonomy, height), built) in all.iter().zip(&built) {
            assert_eq!(&read.of(taxonomy, *height, CodingRule::Reference).unwrap(), built);
        }
        assert_eq!(read.lock().len(), 3, "one was built again");
    }

    #[test]
    fn what_is_no_tree_of_these_labels_is_refused_or_built_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let one = taxonomy(&[("a", "b"), ("b", "c"), ("c", "d")]);
        let small = r#"{"parents": [[0, 0], [0]], "entropy": "0"}"#;
        std::fs::write(&path, format!("{{{:?}: {small}}}", key(&one, 2, CodingRule::Reference))).unwrap();
        let read = CodingTrees::load(folder.path()).unwrap();
        assert!(read.is_empty());
        let anew = one.coding_tree(2, CodingRule::Reference, &Cancel::default()).unwrap();
        assert_eq!(*read.of(&one, 2, CodingRule::Reference).unwrap(), anew);
        std::fs::write(&path, "{").unwrap();
        let error = CodingTrees::load(folder.path()).unwrap_err().to_string();
        assert!(error.contains(FILE), "{error}");
        assert!(CodingTrees::load(&folder.path().join("none")).unwrap().is_empty());
    }
}
