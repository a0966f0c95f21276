//! `metrics.jsonl`: what a run measured, one JSON object per line.
//!
//! ```json
//! {"step":120,"epoch":0,"kind":"train","values":{"loss":0.31},"seconds":14.2}
//! ```
//!
//! A value that is not a finite number is written as `null`, which JSON has, and read as NaN.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use cladist_core::Error;
use cladist_core::bundle::write_atomically;
use serde::{Deserialize, Deserializer, Serialize};

use super::append::Appender;
use crate::error::Result;

/// The documents a record speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The training documents since the last such record.
    Train,
    /// The development documents.
    Dev,
    /// The test documents.
    Test,
}

/// A line of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Updates made so far.
    pub step: u64,
    /// The epoch, from 0.
    pub epoch: usize,
    /// What was measured on.
    pub kind: Kind,
    /// The measured values by name.
    #[serde(deserialize_with = "numbers_or_null")]
    pub values: BTreeMap<String, f64>,
    /// Seconds of training so far.
    pub seconds: f64,
}

fn numbers_or_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, f64>, D::Error> {
    let values = BTreeMap::<String, Option<f64>>::deserialize(deserializer)?;
    Ok(values.into_iter().map(|(name, value)| (name, value.unwrap_or(f64::NAN))).collect())
}

/// A journal being written.
#[derive(Debug)]
pub struct Journal(Appender);

impl Journal {
    /// Starts an empty journal, in place of one that may be there.
    pub fn create(path: &Path) -> Result<Self> {
        write_atomically(path, b"")?;
        Ok(Self(Appender::open(path)?))
    }

    /// Goes on with the journal of a run that resumes at a checkpoint: the checkpoint's `step` and what came before is
    /// kept, later records are dropped, and so are lines that cannot be read, such as the last one of a killed process.
    /// Also gives the number of unreadable lines.
    pub fn resume(path: &Path, step: u64) -> Result<(Self, usize)> {
        let n_unreadable = truncate_after(path, step)?;
        Ok((Self(Appender::open(path)?), n_unreadable))
    }

    /// Writes a record; when this returns, the system has it.
    pub fn append(&mut self, record: &Record) -> Result<()> {
        let mut line = serde_json::to_vec(record)
            .map_err(|error| Error::io("write", self.0.path())(std::io::Error::from(error)))?;
        line.push(b'\n');
        self.0.append(&line)
    }
}

/// The records of a journal by step, train before dev before test, and the number of lines that cannot be read.
///
/// A run killed between a record and the checkpoint of the same step measures again, so the last record of a step and
/// kind counts.
pub fn read(path: &Path) -> Result<(Vec<Record>, usize)> {
    let bytes = std::fs::read(path).map_err(Error::io("read", path))?;
    let (lines, n_unreadable) = parse(&bytes);
    let records: BTreeMap<(u64, Kind), Record> =
        lines.into_iter().map(|(_, record)| ((record.step, record.kind), record)).collect();
    Ok((records.into_values().collect(), n_unreadable))
}

/// Drops records past a step and lines that cannot be read, and gives the number of the latter. A journal that is not
/// there stays so.
pub fn truncate_after(path: &Path, step: u64) -> Result<usize> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(Error::io("read", path)(error).into()),
    };
    let (lines, n_unreadable) = parse(&bytes);
    let mut kept = Vec::with_capacity(bytes.len());
    for (line, _) in lines.iter().filter(|(_, record)| record.step <= step) {
        kept.extend_from_slice(line);
        kept.push(b'\n');
    }
    if kept != bytes {
        write_atomically(path, &kept)?;
    }
    Ok(n_unreadable)
}

/// The lines that hold a record, as they are, and the number of those that do not.
fn parse(bytes: &[u8]) -> (Vec<(&[u8], Record)>, usize) {
    let mut records = Vec::new();
    let mut n_unreadable = 0;
    for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
        match serde_json::from_slice(line) {
            Ok(record) => records.push((line, record)),
            Err(_) => n_unreadable += 1,
        }
    }
    (records, n_unreadable)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn record(step: u64, kind: Kind, loss: f64) -> Record {
        Record { step, epoch: 0, kind, values: BTreeMap::from([("loss".to_owned(), loss)]), seconds: 0.5 }
    }

    fn written(folder: &Path, records: &[Record]) -> std::path::PathBuf {
        let path = folder.join("metrics.jsonl");
        let mut journal = Journal::create(&path).unwrap();
        for record in records {
            journal.append(record).unwrap();
        }
        path
    }

    #[test]
    fn a_record_is_a_line_of_json() {
        let folder = tempfile::tempdir().unwrap();
        let path = written(folder.path(), &[record(3, Kind::Dev, 0.25)]);
        let text = fs::read_to_string(path).unwrap();
        assert_eq!(
            text,
            "{\"step\":3,\"epoch\":0,\"kind\":\"dev\",\"values\":{\"loss\":0.25},\"seconds\":0.5}\n"
        );
    }

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let records =
            [record(1, Kind::Train, 0.5), record(1, Kind::Dev, 0.25), record(2, Kind::Train, 0.125)];
        let path = written(folder.path(), &records);
        assert_eq!(read(&path).unwrap(), (records.to_vec(), 0));
        written(folder.path(), &records[..1]);
        assert_eq!(read(&path).unwrap().0.len(), 1, "a new journal replaces the old one");
    }

    #[test]
    fn a_value_that_is_no_number_survives_as_null() {
        let folder = tempfile::tempdir().unwrap();
        let path = written(folder.path(), &[record(1, Kind::Train, f64::NAN), record(2, Kind::Train, 0.5)]);
        assert!(fs::read_to_string(&path).unwrap().contains("\"loss\":null"));
        let (records, n_unreadable) = read(&path).unwrap();
        assert!(records[0].values["loss"].is_nan() && records[1].values["loss"] == 0.5);
        assert_eq!(n_unreadable, 0);
    }

    #[test]
    fn resuming_drops_what_came_after_the_checkpoint() {
        let folder = tempfile::tempdir().unwrap();
        let records: Vec<Record> = (1..=5).map(|step| record(step, Kind::Train, 0.5)).collect();
        let path = written(folder.path(), &records);
        let (mut journal, n_unreadable) = Journal::resume(&path, 3).unwrap();
        assert_eq!(n_unreadable, 0);
        journal.append(&record(4, Kind::Train, 0.75)).unwrap();
        let mut expected = records[..3].to_vec();
        expected.push(record(4, Kind::Train, 0.75));
        assert_eq!(read(&path).unwrap().0, expected);
    }

    #[test]
    fn a_line_torn_anywhere_is_dropped_and_the_rest_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = written(folder.path(), &[record(1, Kind::Train, 0.5), record(2, Kind::Train, 0.25)]);
        let whole = fs::read(&path).unwrap();
        let first = whole.len() / 2;
        for length in first..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            let (mut journal, n_unreadable) = Journal::resume(&path, 9).unwrap();
            journal.append(&record(3, Kind::Train, 0.125)).unwrap();
            let steps: Vec<u64> = read(&path).unwrap().0.iter().map(|record| record.step).collect();
            // Only the line end was lost: the record is whole.
            let last_whole = length == whole.len() - 1;
            assert_eq!(steps, if last_whole { vec![1, 2, 3] } else { vec![1, 3] }, "{length}");
            assert_eq!(n_unreadable, usize::from(length > first && !last_whole), "{length}");
        }
    }

    #[test]
    fn the_last_record_of_a_step_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = written(
            folder.path(),
            &[record(1, Kind::Dev, 0.5), record(1, Kind::Dev, 0.25), record(1, Kind::Train, 1.0)],
        );
        assert_eq!(read(&path).unwrap().0, [record(1, Kind::Train, 1.0), record(1, Kind::Dev, 0.25)]);
    }

    #[test]
    fn a_journal_that_is_not_there_begins_on_resume() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        assert_eq!(read(&path).unwrap_err().kind(), cladist_core::ErrorKind::NotFound);
        let (mut journal, _) = Journal::resume(&path, 3).unwrap();
        journal.append(&record(4, Kind::Train, 0.5)).unwrap();
        assert_eq!(read(&path).unwrap().0.len(), 1);
    }
}
