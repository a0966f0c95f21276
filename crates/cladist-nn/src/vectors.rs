//! Word vectors: new ones, or pretrained ones from files.
//!
//! Read are GloVe's text format, word2vec's and fastText's (a first line with two numbers), and a NumPy matrix with
//! `vocab.txt` beside it, one word a line. Only words of the vocabulary are kept.

mod npy;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use cladist_core::Cancel;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::error::{Error, Result};
use crate::random::normal;
use crate::tokens::Tokenizer;

/// Where word vectors come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WordVectors {
    /// They start at random.
    Random {
        /// Numbers of a vector.
        width: usize,
    },
    /// A file of vectors, or a folder with a `.npy` and a `vocab.txt`.
    Pretrained(PathBuf),
}

/// Standard deviation of new vectors when there are no others to go by.
const DEVIATION: f32 = 0.1;

impl FromStr for WordVectors {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(width) = text.parse::<usize>() {
            return match width {
                1..=4096 => Ok(Self::Random { width }),
                _ => Err("word vectors have 1 to 4096 numbers".to_owned()),
            };
        }
        let path = PathBuf::from(text);
        let expected = "give the width of new vectors, like `words:300`, or a file: GloVe's text, or a `.npy` with `vocab.txt` beside it";
        if path.exists() {
            Ok(Self::Pretrained(path))
        } else {
            Err(format!("there is no such file: {expected}"))
        }
    }
}

/// Vectors of a vocabulary while they are read.
struct Found {
    width: usize,
    /// By token id.
    rows: Vec<Option<Vec<f32>>>,
}

impl WordVectors {
    /// A row for each token, their width, and the tokens that had to start at random though others did not.
    pub(crate) fn table(
        &self,
        tokenizer: &Tokenizer,
        seed: u64,
        cancel: &Cancel,
    ) -> Result<(Vec<f32>, usize, Vec<String>)> {
        let Found { width, rows } = match self {
            Self::Random { width } => Found { width: *width, rows: vec![None; tokenizer.vocab_size()] },
            Self::Pretrained(path) => read(path, tokenizer, cancel)?,
        };
        let known: Vec<&Vec<f32>> = rows.iter().flatten().collect();
        if let (Self::Pretrained(path), true) = (self, known.is_empty()) {
            return Err(refuse(path, "it has none of the words of the training texts"));
        }
        // New vectors are as long as the others.
        let n = (known.len() * width) as f64;
        let squares: f64 =
            known.iter().flat_map(|row| row.iter()).map(|&value| f64::from(value).powi(2)).sum();
        let deviation = if known.is_empty() { DEVIATION } else { (squares / n).sqrt() as f32 };
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut missing = Vec::new();
        let mut table = Vec::with_capacity(rows.len() * width);
        let all_new = known.is_empty();
        for (id, row) in (0u32..).zip(rows) {
            match row {
                Some(row) => table.extend(row),
                None => {
                    table.extend((0..width).map(|_| normal(&mut random) * deviation));
                    if !all_new {
                        missing.extend(tokenizer.token(id));
                    }
                }
            }
        }
        Ok((table, width, missing))
    }
}

fn refuse(path: &Path, problem: impl Into<String>) -> Error {
    Error::encoder(path, problem)
}

fn read(path: &Path, tokenizer: &Tokenizer, cancel: &Cancel) -> Result<Found> {
    let matrix = if path.is_dir() {
        let files = std::fs::read_dir(path).map_err(cladist_core::Error::io("read", path))?;
        let mut found: Vec<PathBuf> =
            files.flatten().map(|file| file.path()).filter(|path| is_npy(path)).collect();
        found.sort();
        match found.as_slice() {
            [one] => one.clone(),
            [] => return Err(refuse(path, "the folder has no `.npy` file of vectors")),
            _ => {
                return Err(Error::Encoder {
                    path: path.to_owned(),
                    problem: "the folder has several `.npy` files".to_owned(),
                    remedy: Some("give one of them"),
                    source: None,
                });
            }
        }
    } else {
        path.to_owned()
    };
    if is_npy(&matrix) { read_npy(&matrix, tokenizer, cancel) } else { read_text(&matrix, tokenizer, cancel) }
}

fn is_npy(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "npy")
}

fn lines<'a>(path: &Path, cancel: &'a Cancel) -> Result<impl Iterator<Item = Result<String>> + use<'a>> {
    let file = File::open(path).map_err(cladist_core::Error::io("read", path))?;
    let owner = path.to_owned();
    // A word that is not UTF-8 is in no vocabulary; GloVe's largest files have a few.
    Ok(BufReader::new(file).split(b'\n').map(move |line| {
        cancel.check()?;
        let line = line.map_err(cladist_core::Error::io("read", &owner))?;
        Ok(String::from_utf8_lossy(&line).trim_end_matches('\r').to_owned())
    }))
}

fn read_text(path: &Path, tokenizer: &Tokenizer, cancel: &Cancel) -> Result<Found> {
    let mut width = 0;
    let mut rows: Vec<Option<Vec<f32>>> = vec![None; tokenizer.vocab_size()];
    for (number, line) in (1usize..).zip(lines(path, cancel)?) {
        let line = line?;
        let line = line.trim_end();
        let fields = line.split(' ').count();
        if line.is_empty()
            || (number == 1 && fields == 2 && line.split(' ').all(|n| n.parse::<u64>().is_ok()))
        {
            continue;
        }
        if width == 0 {
            width = fields - 1;
        }
        let wrong = |problem: &str| refuse(path, format!("line {number}: {problem}"));
        // A word may hold spaces: the numbers are the last ones.
        let mut parts = line.rsplitn(width + 1, ' ');
        let numbers: Vec<&str> = parts.by_ref().take(width).collect();
        let Some(word) = parts.next().filter(|_| width > 0 && numbers.len() == width) else {
            return Err(wrong(&format!("a word and {} numbers are needed", width.max(1))));
        };
        let Some(id) = tokenizer.id(word).filter(|&id| rows[id as usize].is_none()) else { continue };
        let values: Option<Vec<f32>> = numbers.iter().rev().map(|number| number.parse().ok()).collect();
        let values = values.filter(|values| values.iter().all(|value: &f32| value.is_finite()));
        rows[id as usize] = Some(values.ok_or_else(|| wrong("not a finite number among its values"))?);
    }
    if width == 0 {
        return Err(refuse(path, "it is empty"));
    }
    Ok(Found { width, rows })
}

fn read_npy(path: &Path, tokenizer: &Tokenizer, cancel: &Cancel) -> Result<Found> {
    let bytes = std::fs::read(path).map_err(cladist_core::Error::io("read", path))?;
    let matrix = npy::Matrix::parse(&bytes).map_err(|problem| refuse(path, problem))?;
    let words = path.with_file_name("vocab.txt");
    let mut rows: Vec<Option<Vec<f32>>> = vec![None; tokenizer.vocab_size()];
    let mut n_words = 0;
    for (number, word) in lines(&words, cancel)?.enumerate() {
        n_words = number + 1;
        let Some(id) = tokenizer.id(&word?).filter(|&id| rows[id as usize].is_none()) else { continue };
        let row = matrix.row(number).filter(|row| row.iter().all(|value| value.is_finite()));
        rows[id as usize] =
            Some(row.ok_or_else(|| refuse(path, format!("row {number} is missing or not finite")))?);
    }
    if n_words != matrix.rows {
        let problem = format!("it has {} vectors, but `vocab.txt` beside it {n_words} words", matrix.rows);
        return Err(refuse(path, problem));
    }
    Ok(Found { width: matrix.columns, rows })
}

#[cfg(test)]
mod tests;
