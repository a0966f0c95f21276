//! SKOS in RDF/XML.

use oxrdfxml::RdfXmlParser;

use super::skos::Concepts;
use super::source::Source;
use super::{ReadOptions, Reading};
use crate::taxonomy::ProblemKind;

pub(super) fn read(source: &Source<'_>, options: &ReadOptions, reading: &mut Reading) {
    let mut concepts = Concepts::default();
    let mut parser = RdfXmlParser::new().for_slice(source.bytes);
    let (mut line, mut counted) = (1, 0);
    loop {
        let next = parser.next();
        let offset = usize::try_from(parser.buffer_position()).unwrap_or(usize::MAX);
        let offset = offset.clamp(counted, source.bytes.len());
        line += source.bytes[counted..offset].iter().filter(|&&byte| byte == b'\n').count();
        counted = offset;
        match next {
            Some(Ok(triple)) => concepts.add(&triple, line),
            Some(Err(error)) => {
                // XML has no way to go on after an error.
                let kind = ProblemKind::Syntax { language: "RDF/XML", message: error.to_string() };
                return reading.builder.problem(&source.origin(line), kind);
            }
            None => break,
        }
    }
    concepts.finish(source, options, reading);
}
