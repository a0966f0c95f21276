//! From triples to labels: the SKOS model, whatever it was written in.
//!
//! A label is a resource of type `skos:Concept`. `broader` and `narrower` say the same thing in two directions and
//! are merged. Relations to anything else (other vocabularies, deprecated entries) are counted and ignored.

use std::collections::{BTreeSet, HashMap};

use oxrdf::vocab::rdf;
use oxrdf::{NamedNode, NamedNodeRef, NamedOrBlankNode, Term, Triple};

use super::source::Source;
use super::{IdStyle, ReadOptions, Reading, Warning};
use crate::taxonomy::Label;

/// Where the SKOS words live.
pub(super) const NAMESPACE: &str = "http://www.w3.org/2004/02/skos/core#";

macro_rules! skos {
    ($($name:ident = $word:literal;)*) => {
        $(pub(super) const $name: NamedNodeRef<'_> =
            NamedNodeRef::new_unchecked(concat!("http://www.w3.org/2004/02/skos/core#", $word));)*
    };
}
skos! {
    CONCEPT = "Concept";
    CONCEPT_SCHEME = "ConceptScheme";
    IN_SCHEME = "inScheme";
    BROADER = "broader";
    NARROWER = "narrower";
    HAS_TOP_CONCEPT = "hasTopConcept";
    TOP_CONCEPT_OF = "topConceptOf";
    PREF_LABEL = "prefLabel";
    ALT_LABEL = "altLabel";
    DEFINITION = "definition";
}
const DEPRECATED: NamedNodeRef<'_> = NamedNodeRef::new_unchecked("http://www.w3.org/2002/07/owl#deprecated");

/// Ids that are no IRIs are written behind this, percent-encoded.
const ENCODED: &str = "urn:cladist:label:";

/// The IRI that stands for an id.
pub(super) fn iri_of(id: &str) -> NamedNode {
    if !id.starts_with(ENCODED)
        && let Ok(iri) = NamedNode::new(id)
    {
        return iri;
    }
    let mut iri = ENCODED.to_owned();
    for byte in id.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            iri.push(char::from(byte));
        } else {
            iri.push_str(&format!("%{byte:02X}"));
        }
    }
    NamedNode::new_unchecked(iri)
}

/// The id that [`iri_of`] encoded.
fn decoded(iri: &str) -> Option<String> {
    let mut bytes = iri.strip_prefix(ENCODED)?.bytes();
    let mut id = Vec::new();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let mut digit = || char::from(bytes.next()?).to_digit(16);
            id.push((digit()? * 16 + digit()?) as u8);
        } else {
            id.push(byte);
        }
    }
    String::from_utf8(id).ok()
}

/// Literals with their languages, in file order.
type Texts = Vec<(String, String)>;

#[derive(Debug, Default)]
struct Node {
    iri: String,
    /// The line of the type statement.
    concept: Option<usize>,
    deprecated: bool,
    top: Option<usize>,
    names: Texts,
    alternatives: Texts,
    definitions: Texts,
}

/// What a file says of its concepts.
#[derive(Debug, Default)]
pub(super) struct Concepts {
    nodes: Vec<Node>,
    index: HashMap<String, usize>,
    /// Parent, child, line.
    relations: Vec<(usize, usize, usize)>,
}

impl Concepts {
    fn slot(&mut self, iri: &str) -> usize {
        if let Some(&slot) = self.index.get(iri) {
            return slot;
        }
        self.nodes.push(Node { iri: iri.to_owned(), ..Node::default() });
        self.index.insert(iri.to_owned(), self.nodes.len() - 1);
        self.nodes.len() - 1
    }

    /// Takes note of a triple that completes on a line.
    pub(super) fn add(&mut self, triple: &Triple, line: usize) {
        let NamedOrBlankNode::NamedNode(subject) = &triple.subject else {
            // A scheme without a name can still say what its top concepts are.
            if let (HAS_TOP_CONCEPT, Term::NamedNode(object)) = (triple.predicate.as_ref(), &triple.object) {
                let slot = self.slot(object.as_str());
                self.nodes[slot].top.get_or_insert(line);
            }
            return;
        };
        let subject = subject.as_str();
        match (triple.predicate.as_ref(), &triple.object) {
            (rdf::TYPE, Term::NamedNode(class)) if class.as_ref() == CONCEPT => {
                let slot = self.slot(subject);
                self.nodes[slot].concept.get_or_insert(line);
            }
            (BROADER, Term::NamedNode(object)) => {
                let edge = (self.slot(object.as_str()), self.slot(subject), line);
                self.relations.push(edge);
            }
            (NARROWER, Term::NamedNode(object)) => {
                let edge = (self.slot(subject), self.slot(object.as_str()), line);
                self.relations.push(edge);
            }
            (TOP_CONCEPT_OF, _) => {
                let slot = self.slot(subject);
                self.nodes[slot].top.get_or_insert(line);
            }
            (HAS_TOP_CONCEPT, Term::NamedNode(object)) => {
                let slot = self.slot(object.as_str());
                self.nodes[slot].top.get_or_insert(line);
            }
            (predicate, Term::Literal(literal)) => {
                let language = literal.language().unwrap_or("").to_lowercase();
                let text = (language, literal.value().to_owned());
                match predicate {
                    PREF_LABEL => self.node(subject).names.push(text),
                    ALT_LABEL => self.node(subject).alternatives.push(text),
                    DEFINITION => self.node(subject).definitions.push(text),
                    DEPRECATED => self.node(subject).deprecated |= matches!(literal.value(), "true" | "1"),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn node(&mut self, iri: &str) -> &mut Node {
        let slot = self.slot(iri);
        &mut self.nodes[slot]
    }

    /// Turns everything noted into labels and edges.
    pub(super) fn finish(self, source: &Source<'_>, options: &ReadOptions, reading: &mut Reading) {
        let ids = self.ids(options.id_style, reading);
        let Self { nodes, relations, .. } = self;
        let language = options.language.to_lowercase();
        let mut deprecated = 0;
        let mut tops = Vec::new();
        let is_concept: Vec<bool> = nodes.iter().map(|node| node.concept.is_some()).collect();
        for (slot, node) in nodes.into_iter().enumerate() {
            let Some(line) = node.concept else {
                deprecated += usize::from(node.deprecated);
                continue;
            };
            let name = best(&node.names, &language).min().map(str::to_owned);
            let mut alternatives: Vec<String> = Vec::new();
            for text in best(&node.alternatives, &language) {
                if name.as_deref() != Some(text) && !alternatives.iter().any(|other| other == text) {
                    alternatives.push(text.to_owned());
                }
            }
            let description = best(&node.definitions, &language).min().map(str::to_owned);
            let label = Label { id: ids[slot].clone(), name, description, alternatives };
            reading.builder.declare(label, &source.origin(line));
            tops.extend(node.top.map(|line| (slot, line)));
        }
        for (slot, line) in tops {
            reading.builder.edge(None, &ids[slot], &source.origin(line));
        }
        // Said in both directions, a relation counts once.
        let mut outside = BTreeSet::new();
        let mut first_outside = None;
        for &(parent, child, line) in &relations {
            let (concept, other) = match (is_concept[parent], is_concept[child]) {
                (true, true) => {
                    reading.builder.edge(Some(&ids[parent]), &ids[child], &source.origin(line));
                    continue;
                }
                (false, true) => (child, parent),
                (true, false) => (parent, child),
                (false, false) => continue,
            };
            outside.insert((parent, child));
            first_outside.get_or_insert((concept, other));
        }
        if let Some((concept, other)) = first_outside {
            let (concept, other) = (ids[concept].clone(), ids[other].clone());
            reading.warnings.push(Warning::OutsideConcepts { count: outside.len(), concept, other });
        }
        if deprecated > 0 {
            reading.warnings.push(Warning::Deprecated { count: deprecated });
        }
    }

    /// The id of every node, concept or not.
    fn ids(&self, style: IdStyle, reading: &mut Reading) -> Vec<String> {
        let whole = |node: &Node| decoded(&node.iri).unwrap_or_else(|| node.iri.clone());
        if style == IdStyle::Iri {
            return self.nodes.iter().map(whole).collect();
        }
        let local = |node: &Node| {
            decoded(&node.iri).or_else(|| {
                let name = node.iri.trim_end_matches(['/', '#']).rsplit(['/', '#']).next()?;
                (!name.is_empty()).then(|| name.to_owned())
            })
        };
        let mut uses: HashMap<String, usize> = HashMap::new();
        for name in self.nodes.iter().filter(|node| node.concept.is_some()).filter_map(local) {
            *uses.entry(name).or_default() += 1;
        }
        let mut shared = Vec::new();
        let mut ids = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            match local(node).filter(|name| uses.get(name) == Some(&1)) {
                Some(name) if node.concept.is_some() => ids.push(name),
                _ => {
                    if node.concept.is_some() {
                        shared.push(whole(node));
                    }
                    ids.push(whole(node));
                }
            }
        }
        if let Some(example) = shared.first().cloned() {
            reading.warnings.push(Warning::SharedLocalNames { count: shared.len(), example });
        }
        ids
    }
}

/// The texts in the best language that has any: the asked one, a variety of it (`de-AT` for `de`), none, English,
/// the first in sort order.
fn best<'a>(texts: &'a Texts, asked: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    let rank = |language: &str| {
        let is = |wanted: &str| !wanted.is_empty() && language == wanted;
        let is_variety = |wanted: &str| {
            !wanted.is_empty() && language.strip_prefix(wanted).is_some_and(|rest| rest.starts_with('-'))
        };
        [is(asked), is_variety(asked), language.is_empty(), is("en"), is_variety("en")]
            .iter()
            .position(|&fits| fits)
            .unwrap_or(usize::MAX)
    };
    let chosen = texts
        .iter()
        .map(|(language, _)| language.as_str())
        .min_by_key(|language| (rank(language), *language));
    texts.iter().filter(move |(language, _)| Some(language.as_str()) == chosen).map(|(_, text)| text.as_str())
}
