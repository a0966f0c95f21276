//! Many trainings for one question: combinations of settings, runs of which some may fail, and what several come to.

use std::path::Path;

use cladist::{Event, Summary, Work};
use cladist_core::bundle::write_atomically;
use serde::{Deserialize, Serialize};

use crate::error::{LabError, Result};

/// Combinations that nobody will wait for.
const MOST: usize = 10_000;

/// Settings that take the same value, one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Axis {
    /// The keys.
    pub keys: Vec<String>,
    /// The values.
    pub values: Vec<String>,
}

impl Axis {
    /// Understands `key=v1,v2`, and `key+key=v1,v2` for keys that vary together.
    pub fn parse(argument: &str) -> Result<Self> {
        let list = |text: &str, by: char| -> Vec<String> {
            text.split(by).map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
        };
        let (keys, values) = argument.split_once('=').unwrap_or((argument, ""));
        let axis = Self { keys: list(keys, '+'), values: list(values, ',') };
        if axis.keys.is_empty() || axis.values.is_empty() {
            return Err(LabError::Axis(argument.to_owned()));
        }
        Ok(axis)
    }
}

/// One value of an axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The keys that take it.
    pub keys: Vec<String>,
    /// The value.
    pub value: String,
}

/// One value of each axis.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Combination(pub Vec<Choice>);

impl Combination {
    /// Each key with its value.
    pub fn settings(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().flat_map(|choice| choice.keys.iter().map(|key| (key.as_str(), choice.value.as_str())))
    }

    /// As `key=value`.
    #[must_use]
    pub fn arguments(&self) -> Vec<String> {
        self.settings().map(|(key, value)| format!("{key}={value}")).collect()
    }
}

/// Every combination of values, the last axis changing first; a single empty one without axes.
pub fn combinations(axes: &[Axis]) -> Result<Vec<Combination>> {
    let mut all = vec![Combination::default()];
    for axis in axes {
        if all.len() * axis.values.len() > MOST {
            return Err(LabError::TooMany(MOST));
        }
        let longer = |combination: &Combination, value: &String| {
            let mut longer = combination.clone();
            longer.0.push(Choice { keys: axis.keys.clone(), value: value.clone() });
            longer
        };
        all = (all.iter())
            .flat_map(|combination| axis.values.iter().map(|value| longer(combination, value)))
            .collect();
    }
    Ok(all)
}

/// How a training ended.
#[derive(Debug)]
pub enum Ended {
    /// With a model.
    Finished(Box<Summary>),
    /// Without one: its loss was not finite.
    Failed(String),
}

/// The file that remembers why a run failed.
const FAILED: &str = "failed.json";

#[derive(Serialize, Deserialize)]
struct Failure {
    problem: String,
}

/// Why the run in this folder failed, if it did.
pub fn failure(folder: &Path) -> Option<String> {
    let bytes = std::fs::read(folder.join(FAILED)).ok()?;
    serde_json::from_slice::<Failure>(&bytes).ok().map(|failure| failure.problem)
}

/// Trains in a folder. A run that diverges is a result, remembered there; anything else that goes wrong is an error.
pub fn attempt(
    folder: &Path,
    resume: bool,
    work: &Work<'_>,
    train: impl FnOnce() -> Result<Summary>,
) -> Result<Ended> {
    if let Some(problem) = failure(folder).filter(|_| resume) {
        return Ok(Ended::Failed(problem));
    }
    match train() {
        Ok(summary) => Ok(Ended::Finished(Box::new(summary))),
        Err(LabError::Cladist(error @ cladist::Error::Network(cladist_nn::Error::Diverged { .. }))) => {
            let problem = error.to_string();
            work.tell(&Event::Warning(problem.clone()));
            std::fs::create_dir_all(folder).map_err(LabError::io("create", folder))?;
            let failure = Failure { problem: problem.clone() };
            write_atomically(&folder.join(FAILED), &serde_json::to_vec_pretty(&failure)?)?;
            Ok(Ended::Failed(problem))
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn combinations_go_through_all_values_of_all_axes() {
        let axes = [Axis::parse("a=1,2").unwrap(), Axis::parse("b + c = x , y").unwrap()];
        let said: Vec<String> = combinations(&axes)
            .unwrap()
            .iter()
            .map(|combination| combination.arguments().join(" "))
            .collect();
        assert_eq!(said, ["a=1 b=x c=x", "a=1 b=y c=y", "a=2 b=x c=x", "a=2 b=y c=y"]);
        assert_eq!(combinations(&[]).unwrap(), [Combination::default()]);
        for bad in ["a", "a=", "=1", "a=,", "+=1"] {
            assert!(Axis::parse(bad).is_err(), "{bad}");
        }
        let wide = Axis { keys: vec!["a".to_owned()], values: vec!["1".to_owned(); 101] };
        assert!(combinations(&[wide.clone(), wide]).is_err());
    }
}
