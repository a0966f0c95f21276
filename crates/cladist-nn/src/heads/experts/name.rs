//! Names of experts: the kind of input, and its layers.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::heads::settings::setting;

/// The input of an expert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The `[CLS]` vector, with an output for each label.
    Document,
    /// All tokens, by label-wise attention.
    Attention,
}

/// A layer by number, or by its place in an encoder of any depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// The layer with this number, from 1.
    Number(usize),
    /// Half the layers, rounded up.
    Mid,
    /// The last one.
    Last,
}

/// `D-last`, `D-12+1`, `A-1`, `A-mid`: the kind of an expert and its layers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ExpertName {
    /// Its input.
    pub kind: Kind,
    /// Of which layers; those of a document are put side by side.
    pub layers: Vec<At>,
}

impl ExpertName {
    /// The numbers of its layers in an encoder of this depth.
    pub(super) fn resolve(&self, n_layers: usize) -> Result<Vec<usize>> {
        if n_layers == 0 && self.kind == Kind::Document {
            return Err(Error::Head {
                problem: "word vectors have no context, so `[CLS]` is the same for every document".to_owned(),
                remedy: "use `experts.experts = [\"A-last\"]` on word vectors",
            });
        }
        let number = |at: &At| match *at {
            At::Number(layer) if (1..=n_layers).contains(&layer) => Ok(layer),
            At::Number(_) => Err(setting("experts.experts", "layers that the encoder has", self)),
            At::Mid => Ok(n_layers.div_ceil(2)),
            At::Last => Ok(n_layers),
        };
        self.layers.iter().map(number).collect()
    }
}

impl TryFrom<String> for ExpertName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is no expert: `D-` and layers with `+` between them, or `A-` and one layer; a layer is a number, `mid` or `last`"
            )
        };
        let (kind, layers) = match text.split_once('-') {
            Some(("D", layers)) => (Kind::Document, layers),
            Some(("A", layers)) => (Kind::Attention, layers),
            _ => return Err(wrong()),
        };
        let at = |layer: &str| match layer {
            "mid" => Ok(At::Mid),
            "last" => Ok(At::Last),
            number => number.parse().map(At::Number).map_err(|_| wrong()),
        };
        let layers = layers.split('+').map(at).collect::<Result<Vec<At>, String>>()?;
        if kind == Kind::Attention && layers.len() > 1 {
            return Err(wrong());
        }
        Ok(Self { kind, layers })
    }
}

impl fmt::Display for ExpertName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            Kind::Document => "D-",
            Kind::Attention => "A-",
        })?;
        for (n, at) in self.layers.iter().enumerate() {
            if n > 0 {
                f.write_str("+")?;
            }
            match at {
                At::Number(layer) => write!(f, "{layer}")?,
                At::Mid => f.write_str("mid")?,
                At::Last => f.write_str("last")?,
            }
        }
        Ok(())
    }
}

impl From<ExpertName> for String {
    fn from(name: ExpertName) -> Self {
        name.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_is_read_where() {
        for (text, n_layers, expected) in [
            ("D-last", 12, vec![12]),
            ("D-12+1", 12, vec![12, 1]),
            ("D-last+1", 6, vec![6, 1]),
            ("A-1", 12, vec![1]),
            ("A-mid", 12, vec![6]),
            ("A-mid", 5, vec![3]),
            ("A-last", 0, vec![0]),
        ] {
            let name = ExpertName::try_from(text.to_owned()).unwrap();
            assert_eq!(name.to_string(), text);
            assert_eq!(name.resolve(n_layers).unwrap(), expected, "{text}");
        }
        for wrong in ["", "D", "D-", "B-1", "A-1+2", "A-x", "D-1+", "d-1", "A--1"] {
            let message = ExpertName::try_from(wrong.to_owned()).unwrap_err();
            assert!(message.contains("no expert"), "{message}");
        }
        for (text, n_layers) in [("A-0", 12), ("D-13", 12), ("D-last", 0)] {
            let name = ExpertName::try_from(text.to_owned()).unwrap();
            let message = name.resolve(n_layers).unwrap_err().to_string();
            assert!(message.contains("experts.experts") || message.contains("[CLS]"), "{message}");
        }
    }
}
