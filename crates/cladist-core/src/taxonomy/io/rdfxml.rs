//! SKOS in RDF/XML.

use oxrdfxml::RdfXmlParser;

use super::skos::Concepts;
use super::source::Source;
use super::{ReadOptions, Reading};
use crate::taxonomy::ProblemKind;

/// Longer entities are no abbreviations.
const MAX_ENTITY: usize = 2000;

/// The place of an entity that makes a small file large: one that is long, or made of other entities. The parser
/// expands all of them, so these must not reach it.
fn greedy_entity(bytes: &[u8]) -> Option<usize> {
    const DECLARATION: &[u8] = b"<!ENTITY";
    const PLAIN: [&[u8]; 6] = [b"#", b"amp;", b"lt;", b"gt;", b"quot;", b"apos;"];
    bytes.windows(DECLARATION.len()).enumerate().filter(|(_, window)| *window == DECLARATION).find_map(
        |(start, _)| {
            let value = bytes[start..].splitn(3, |&byte| byte == b'"').nth(1)?;
            let mut references = value.split(|&byte| byte == b'&').skip(1);
            let nested = references.any(|rest| !PLAIN.iter().any(|plain| rest.starts_with(plain)));
            (nested || value.len() > MAX_ENTITY).then_some(start)
        },
    )
}

pub(super) fn read(source: &Source<'_>, options: &ReadOptions, reading: &mut Reading) {
    if let Some(start) = greedy_entity(source.bytes) {
        let line = source.bytes[..start].iter().filter(|&&byte| byte == b'\n').count() + 1;
        let message = format!("an entity that is made of others or longer than {MAX_ENTITY} bytes");
        let kind = ProblemKind::Syntax { language: "RDF/XML", message };
        return reading.builder.problem(&source.origin(line), kind);
    }
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
