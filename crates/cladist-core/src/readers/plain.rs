//! Plain text: one document per line, without labels. What `predict` reads when nothing else fits.

use std::path::PathBuf;
use std::sync::Arc;

use super::bad_line::Fault;
use super::lines::{LineFormat, LineRecords};
use super::{Parsed, ReadOptions, Records, Stream};
use crate::document::Document;

struct Plain(ReadOptions);

pub(super) fn open(path: Arc<PathBuf>, stream: Stream, options: &ReadOptions) -> Box<dyn Records> {
    LineRecords::boxed(path, stream, options.max_record, Plain(options.clone()))
}

impl LineFormat for Plain {
    fn parse(&mut self, line: &str, number: usize) -> Result<Parsed, Fault> {
        Ok(Parsed::Document(Document::from_text(self.0.id_of_line(number), line)))
    }
}
