//! Event files for TensorBoard.
//!
//! Written by hand: of the whole format only three kinds of message are needed, each a handful of fields, where a
//! library would bring a protobuf compiler and runtime for them.
//!
//! A file is a series of records: the length of the data (u64), the length's checksum (u32), the data, the data's
//! checksum (u32), all little-endian; checksums are CRC-32C, masked. The data is an `Event` in protobuf encoding:
//!
//! | field | type | |
//! |---|---|---|
//! | 1 `wall_time` | double | seconds since 1970 |
//! | 2 `step` | int64 | |
//! | 3 `file_version` | string | of the first event: `brain.Event:2` |
//! | 5 `summary` | message | repeated 1 `value`: { 1 `tag`: string, 2 `simple_value`: float } |
//! | 7 `session_log` | message | 1 `status`: 1 = the run starts (again) at this step |

use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cladist_core::Error;

use super::append::Appender;
use crate::error::Result;

const VERSION: &str = "brain.Event:2";

/// An event file being written. What it is given is with the system when a call returns.
#[derive(Debug)]
pub struct EventWriter(Appender);

impl EventWriter {
    /// Begins a file `events.out.tfevents.<seconds>.<host>` in a folder, which is made if need be.
    ///
    /// A run that resumes gives the step of its checkpoint: TensorBoard then forgets what earlier files of the folder say
    /// about later steps.
    pub fn create(folder: &Path, resumed_at: Option<u64>) -> Result<Self> {
        std::fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
        let now = since_1970();
        // Ten digits: TensorBoard reads files in the order of their names.
        let name = format!("events.out.tfevents.{:010}.{}", now.as_secs(), host());
        let mut path = folder.join(&name);
        let mut n = 0;
        let file = loop {
            match Appender::create_new(&path) {
                // A run resumed within the same second.
                Err(error) if error.kind() == ErrorKind::AlreadyExists && n < 999 => {
                    n += 1;
                    path = folder.join(format!("{name}.{n:03}"));
                }
                result => break result.map_err(Error::io("write", &path))?,
            }
        };
        let mut writer = Self(file);
        let seconds = now.as_secs_f64();
        writer.0.append(&record(&event(seconds, 0, &Content::Version)))?;
        // In a new run's file too: TensorBoard takes only the second start of a folder for a restart.
        let first = resumed_at.map_or(0, |step| step.saturating_add(1));
        writer.0.append(&record(&event(seconds, first, &Content::Start)))?;
        Ok(writer)
    }

    /// Writes values of a step, by tag such as `train/loss`. What is not a number is written as such.
    pub fn scalars<'a>(&mut self, step: u64, values: impl IntoIterator<Item = (&'a str, f64)>) -> Result<()> {
        let values: Vec<(&str, f64)> = values.into_iter().collect();
        self.0.append(&record(&event(since_1970().as_secs_f64(), step, &Content::Scalars(&values))))
    }

    /// Where the file is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The machine's name as far as it can be part of a file name.
fn host() -> String {
    let name = std::env::var("HOSTNAME")
        .ok()
        .or_else(|| std::fs::read_to_string("/proc/sys/kernel/hostname").ok())
        .unwrap_or_default();
    let plain: String =
        name.trim().chars().filter(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c)).collect();
    if plain.is_empty() { "localhost".to_owned() } else { plain }
}

enum Content<'a> {
    Version,
    Start,
    Scalars(&'a [(&'a str, f64)]),
}

fn event(wall_time: f64, step: u64, content: &Content<'_>) -> Vec<u8> {
    let mut event = Vec::new();
    key(&mut event, 1, WireType::Fixed64);
    event.extend(wall_time.to_le_bytes());
    key(&mut event, 2, WireType::Varint);
    varint(&mut event, step);
    match content {
        Content::Version => bytes(&mut event, 3, VERSION.as_bytes()),
        Content::Start => {
            let mut log = Vec::new();
            key(&mut log, 1, WireType::Varint);
            varint(&mut log, 1);
            bytes(&mut event, 7, &log);
        }
        Content::Scalars(values) => {
            let mut summary = Vec::new();
            for (tag, number) in *values {
                let mut value = Vec::new();
                bytes(&mut value, 1, tag.as_bytes());
                key(&mut value, 2, WireType::Fixed32);
                value.extend((*number as f32).to_le_bytes());
                bytes(&mut summary, 1, &value);
            }
            bytes(&mut event, 5, &summary);
        }
    }
    event
}

#[derive(Clone, Copy)]
enum WireType {
    Varint = 0,
    Fixed64 = 1,
    Bytes = 2,
    Fixed32 = 5,
}

fn key(out: &mut Vec<u8>, field: u64, wire_type: WireType) {
    varint(out, field << 3 | wire_type as u64);
}

fn bytes(out: &mut Vec<u8>, field: u64, content: &[u8]) {
    key(out, field, WireType::Bytes);
    varint(out, content.len() as u64);
    out.extend_from_slice(content);
}

/// Seven bits a byte, the lowest first; the top bit says that more follow.
fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn record(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    let mut record = Vec::with_capacity(data.len() + 16);
    record.extend(length);
    record.extend(masked(crc32c(&length)).to_le_bytes());
    record.extend_from_slice(data);
    record.extend(masked(crc32c(data)).to_le_bytes());
    record
}

/// Checksums of data that itself holds checksums are weak; the format therefore turns and shifts them.
fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// CRC-32C (Castagnoli), a bit at a time: the records are short and few.
fn crc32c(data: &[u8]) -> u32 {
    let mut crc = !0_u32;
    for byte in data {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg());
        }
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_the_standard() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        // RFC 3720, B.4.
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        assert_eq!(crc32c(b""), 0);
    }

    #[test]
    fn numbers_take_seven_bits_a_byte() {
        for (value, expected) in [(0, vec![0]), (127, vec![0x7f]), (128, vec![0x80, 1]), (300, vec![0xac, 2])]
        {
            let mut out = Vec::new();
            varint(&mut out, value);
            assert_eq!(out, expected);
        }
        let mut out = Vec::new();
        varint(&mut out, u64::MAX);
        assert_eq!(out, [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]);
    }

    #[test]
    fn a_record_is_length_data_and_their_checksums() {
        let event = event(2.0, 300, &Content::Scalars(&[("loss", 0.5)]));
        let expected: &[u8] = &[
            0x09, 0, 0, 0, 0, 0, 0, 0, 0x40, // wall_time 2.0
            0x10, 0xac, 0x02, // step 300
            0x2a, 13, // summary
            0x0a, 11, // value
            0x0a, 4, b'l', b'o', b's', b's', // tag
            0x15, 0, 0, 0, 0x3f, // simple_value 0.5
        ];
        assert_eq!(event, expected);
        let record = record(&event);
        assert_eq!(record.len(), event.len() + 16);
        assert_eq!(record[..8], 27_u64.to_le_bytes());
        assert_eq!(record[12..39], event);
        // As the record writer of the `tensorboard` package has it.
        assert_eq!(record[8..12], [0x1a, 0x0d, 0x9e, 0x13]);
        assert_eq!(record[39..], [0xdf, 0xc5, 0x2b, 0x60]);
    }

    #[test]
    fn what_is_not_a_number_is_written() {
        let event = event(2.0, 1, &Content::Scalars(&[("loss", f64::NAN)]));
        let last: [u8; 4] = event[event.len() - 4..].try_into().unwrap();
        assert!(f32::from_le_bytes(last).is_nan());
    }

    #[test]
    fn a_file_begins_with_its_version_and_the_step_it_starts_at() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("tb");
        let first = EventWriter::create(&folder, None).unwrap();
        let second = EventWriter::create(&folder, Some(6)).unwrap();
        assert_ne!(first.path(), second.path());
        let name = |writer: &EventWriter| writer.path().file_name().unwrap().to_string_lossy().into_owned();
        assert!(name(&first).starts_with("events.out.tfevents.") && name(&first) < name(&second));
        let (one, two) = (std::fs::read(first.path()).unwrap(), std::fs::read(second.path()).unwrap());
        let version = 16 + 9 + 2 + 2 + VERSION.len();
        assert_eq!(one[version - 4 - VERSION.len()..version - 4], *VERSION.as_bytes());
        assert_eq!(one[version + 12 + 9..one.len() - 4], [0x10, 0, 0x3a, 2, 0x08, 1]);
        assert_eq!(two[version + 12 + 9..two.len() - 4], [0x10, 7, 0x3a, 2, 0x08, 1]);
    }

    /// Writes a folder of events for the real TensorBoard to read, if asked for one.
    #[test]
    fn events_for_tensorboard_to_read() {
        let Some(folder) = std::env::var_os("CLADIST_TEST_EVENTS") else { return };
        let mut writer = EventWriter::create(Path::new(&folder), None).unwrap();
        for step in 0..10 {
            writer
                .scalars(step, [("train/loss", 1.0 / (step + 1) as f64), ("train/rate", f64::NAN)])
                .unwrap();
        }
        let mut writer = EventWriter::create(Path::new(&folder), Some(4)).unwrap();
        for step in 5..8 {
            writer
                .scalars(step, [("train/loss", 100.0 + step as f64), ("dev/micro_f1", f64::INFINITY)])
                .unwrap();
        }
    }
}
