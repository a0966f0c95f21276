//! SKOS in Turtle; N-Triples is a part of it.

use std::io::Write;

use oxrdf::vocab::rdf;
use oxrdf::{LiteralRef, NamedNode, NamedNodeRef, TermRef, TripleRef};
use oxttl::{TurtleParser, TurtleSerializer};

use super::skos::{self, Concepts};
use super::source::Source;
use super::{ReadOptions, Reading, WriteError};
use crate::taxonomy::{Label, ProblemKind, Taxonomy};

/// Syntax errors after which the rest of a file is not worth reading.
const MAX_ERRORS: usize = 100;
/// Lines without a statement after which more than one line is read at once: long literals.
const PATIENCE: usize = 64;

/// Whether the first lines look like Turtle or N-Triples.
pub(super) fn looks_like(head: &[&str]) -> bool {
    let start = head.iter().map(|line| line.trim_start()).find(|line| !line.starts_with('#')).unwrap_or("");
    let lower = start.to_lowercase();
    ["@prefix", "@base", "prefix ", "base ", "<http", "<urn:"].iter().any(|tag| lower.starts_with(tag))
}

pub(super) fn read(source: &Source<'_>, options: &ReadOptions, reading: &mut Reading) {
    let mut concepts = Concepts::default();
    let mut parser = TurtleParser::new().low_level();
    let mut lines = source.bytes.split_inclusive(|&byte| byte == b'\n');
    // Fed line by line, the parser gives each triple at the line that completes it.
    let (mut line, mut idle, mut errors) = (0, 0, 0);
    while !parser.is_end() {
        let mut fed = 0;
        for text in lines.by_ref().take(1 + idle / PATIENCE) {
            parser.extend_from_slice(text);
            fed += 1;
        }
        line += fed;
        idle += fed;
        if fed == 0 {
            parser.end();
        }
        while let Some(next) = parser.parse_next() {
            idle = 0;
            match next {
                Ok(triple) => concepts.add(&triple, line),
                Err(error) => {
                    let at = error.location().start.line as usize + 1;
                    let kind =
                        ProblemKind::Syntax { language: "Turtle", message: error.message().to_owned() };
                    reading.builder.problem(&source.origin(at), kind);
                    errors += 1;
                    if errors == MAX_ERRORS {
                        return;
                    }
                }
            }
        }
    }
    if errors == 0 {
        concepts.finish(source, options, reading);
    }
}

pub(super) fn write(taxonomy: &Taxonomy, out: &mut dyn Write) -> Result<(), WriteError> {
    let scheme = NamedNodeRef::new_unchecked("urn:cladist:taxonomy");
    let concepts: Vec<NamedNode> = taxonomy.labels().map(|label| skos::iri_of(taxonomy.id(label))).collect();
    let mut writer = TurtleSerializer::new()
        .with_prefix("skos", skos::NAMESPACE)
        .map_err(std::io::Error::other)?
        .for_writer(out);
    writer.serialize_triple(TripleRef::new(scheme, rdf::TYPE, skos::CONCEPT_SCHEME))?;
    for label in taxonomy.labels() {
        let concept = concepts[label.index()].as_ref();
        let mut say = |predicate: NamedNodeRef<'_>, object: TermRef<'_>| {
            writer.serialize_triple(TripleRef::new(concept, predicate, object))
        };
        let Label { name, description, alternatives, .. } = taxonomy.label(label);
        say(rdf::TYPE, skos::CONCEPT.into())?;
        say(skos::IN_SCHEME, scheme.into())?;
        if taxonomy.is_root_child(label) {
            say(skos::TOP_CONCEPT_OF, scheme.into())?;
        }
        for &parent in taxonomy.parents(label) {
            say(skos::BROADER, concepts[parent.index()].as_ref().into())?;
        }
        let texts = name
            .iter()
            .map(|text| (skos::PREF_LABEL, text))
            .chain(alternatives.iter().map(|text| (skos::ALT_LABEL, text)))
            .chain(description.iter().map(|text| (skos::DEFINITION, text)));
        for (predicate, text) in texts {
            say(predicate, LiteralRef::new_simple_literal(text).into())?;
        }
    }
    writer.finish()?;
    Ok(())
}
