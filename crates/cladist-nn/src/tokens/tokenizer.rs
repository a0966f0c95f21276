//! From texts to sequences of token ids.

use std::path::Path;

use cladist_core::{Cancel, Error as CoreError};
use rayon::prelude::*;
use serde_json::{Value, json};
use tokenizers::Encoding;

use super::batch::Sequence;
use super::config::{TokensConfig, Truncate};
use super::cut::{Piece, ceil, floor, is_space};
use super::files::{Names, read_folder};
use super::vocabulary;
use crate::error::{Error, Result};

/// Texts tokenised between two looks at whether to stop.
const AT_ONCE: usize = 256;

/// The ids of tokens with a meaning of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Special {
    /// Put before every sequence: `[CLS]` or `<s>`.
    pub start: u32,
    /// Put after every sequence: `[SEP]` or `</s>`.
    pub end: u32,
    /// Fills up sequences where that is needed; the end token if the vocabulary has none for it.
    pub pad: u32,
    /// Stands for what cannot be spelled, if there is such a token.
    pub unknown: Option<u32>,
    /// Stands for what is to be guessed, if there is such a token.
    pub mask: Option<u32>,
}

/// Turns texts into tokens, as a pretrained encoder expects them or as learnt from a corpus.
///
/// Names of special tokens in a text become these tokens, as in the `transformers` library.
#[derive(Debug, Clone)]
pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    /// What `inner` was read from, which is what is written: it has no truncation, and its padding section says
    /// only which token pads.
    json: Vec<u8>,
    special: Special,
    vocab_size: usize,
    /// White space gives no pieces.
    pub(super) skips_spaces: bool,
    /// No token that was added to the vocabulary has more bytes.
    pub(super) margin: usize,
}

impl Tokenizer {
    /// Refuses an encoder that has fewer pieces, or takes fewer tokens than documents are to have.
    pub(crate) fn fits(&self, vocab_size: usize, max_tokens: usize, tokens: &TokensConfig) -> Result<()> {
        if self.vocab_size() > vocab_size {
            let pieces = self.vocab_size();
            let problem = format!("the tokenizer has {pieces} pieces but the encoder only {vocab_size}");
            return Err(Error::Tokenizer { problem });
        }
        if tokens.max_tokens > max_tokens {
            let expected = format!("at most {max_tokens} with this encoder");
            return Err(CoreError::setting("tokens.max_tokens", expected, tokens.max_tokens).into());
        }
        Ok(())
    }

    /// Reads the tokenizer of an encoder's folder: `tokenizer.json`, else `vocab.txt` (BERT), else `vocab.json`
    /// with `merges.txt` (RoBERTa).
    ///
    /// The names of special tokens are taken from `special_tokens_map.json` and `tokenizer_config.json`, the
    /// latter also saying how BERT treats case, accents and Chinese characters.
    pub fn from_folder(folder: &Path) -> Result<Self> {
        let (json, names) = read_folder(folder)?;
        Self::build(json, None, &names).map_err(|error| match error {
            Error::Tokenizer { problem } => Error::encoder(folder, problem),
            other => other,
        })
    }

    /// Reads what [`Tokenizer::to_json`] wrote, or any `tokenizer.json`.
    pub fn from_json(bytes: &[u8]) -> Result<Self> {
        Self::build(serde_json::from_slice(bytes).map_err(refuse)?, Some(bytes), &Names::new(&[]))
    }

    /// Learns a lower-casing BERT tokenizer of at most `vocab_size` tokens. Pieces that are together fewer than
    /// `min_frequency` times are not joined. The same texts give the same tokenizer, byte by byte.
    pub fn train(texts: &[&str], vocab_size: usize, min_frequency: usize, cancel: &Cancel) -> Result<Self> {
        let names = Names::new(&[]);
        Self::build(vocabulary::learn(texts, vocab_size, min_frequency, &names, cancel)?, None, &names)
    }

    /// Whole words instead of pieces: at most `n_words`, each at least `min_frequency` times in the texts.
    pub fn words(texts: &[&str], n_words: usize, min_frequency: usize, cancel: &Cancel) -> Result<Self> {
        let names = Names::new(&[]);
        Self::build(vocabulary::words(texts, n_words, min_frequency, &names, cancel)?, None, &names)
    }

    /// The tokenizer as a `tokenizer.json`.
    #[must_use]
    pub fn to_json(&self) -> &[u8] {
        &self.json
    }

    /// The tokens with a meaning of their own.
    #[must_use]
    pub fn special(&self) -> Special {
        self.special
    }

    /// The token that pads.
    #[must_use]
    pub fn pad_id(&self) -> u32 {
        self.special.pad
    }

    /// One more than the highest id: the rows that a table of embeddings must have.
    #[must_use]
    pub fn vocab_size(&self) -> usize {
        self.vocab_size
    }

    /// A token as it is written in the vocabulary.
    #[must_use]
    pub fn token(&self, id: u32) -> Option<String> {
        self.inner.id_to_token(id)
    }

    /// The id of a token of the vocabulary.
    #[must_use]
    pub fn id(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }

    /// Tokenises texts: for each its windows in order, at least one, at most `config.windows`.
    ///
    /// An empty text is a single window of the two special tokens. No more of a text is looked at than is needed,
    /// whatever its length.
    pub fn encode(&self, texts: &[&str], config: &TokensConfig) -> Result<Vec<Vec<Sequence>>> {
        config.validate()?;
        texts.par_iter().map(|text| self.windows(text, config)).collect()
    }

    /// The same of many texts, unless somebody asks to stop.
    pub(crate) fn encode_unless(
        &self,
        texts: &[&str],
        config: &TokensConfig,
        cancel: &Cancel,
    ) -> Result<Vec<Vec<Sequence>>> {
        let mut all = Vec::with_capacity(texts.len());
        for chunk in texts.chunks(AT_ONCE) {
            cancel.check()?;
            all.extend(self.encode(chunk, config)?);
        }
        Ok(all)
    }

    fn windows(&self, text: &str, config: &TokensConfig) -> Result<Vec<Sequence>> {
        let text = &text[..floor(text, u32::MAX as usize)];
        let (room, step) = (config.room(), config.step());
        if config.windows == 1 {
            let pieces = self.truncated(text, config.truncate, room, self.chunk(room))?;
            return Ok(vec![self.sequence(text, &pieces)]);
        }
        let n = room + (config.windows - 1) * step;
        let (mut pieces, _) = self.head(text, n, self.chunk(n))?;
        pieces.truncate(n);
        let mut windows = vec![self.sequence(text, &pieces[..room.min(pieces.len())])];
        let mut from = step;
        while from + room - step < pieces.len() {
            windows.push(self.sequence(text, &pieces[from..(from + room).min(pieces.len())]));
            from += step;
        }
        Ok(windows)
    }

    /// At most `room` pieces of a text, looked for in chunks.
    pub(super) fn truncated(
        &self,
        text: &str,
        truncate: Truncate,
        room: usize,
        chunk: usize,
    ) -> Result<Vec<Piece>> {
        match truncate {
            Truncate::Head => {
                let (mut pieces, _) = self.head(text, room, chunk)?;
                pieces.truncate(room);
                Ok(pieces)
            }
            Truncate::Tail => Ok(last(self.tail(text, room, chunk)?, room)),
            Truncate::HeadTail => {
                let (mut pieces, complete) = self.head(text, room + 1, chunk)?;
                if complete && pieces.len() <= room {
                    return Ok(pieces);
                }
                let n_tail = room / 2;
                let tail = if complete { pieces.clone() } else { self.tail(text, n_tail, chunk)? };
                pieces.truncate(room - n_tail);
                // Only a text that is mostly passed over has too few pieces for two halves that do not meet.
                let met = if complete { 0 } else { pieces.last().map_or(0, |piece| piece.end) };
                pieces.extend(last(tail, n_tail).into_iter().filter(|piece| piece.start >= met));
                Ok(pieces)
            }
        }
    }

    /// The pieces of a part of a text.
    pub(super) fn pieces(&self, text: &str, from: usize, to: usize) -> Result<Vec<Piece>> {
        let encoding = self.inner.encode(&text[from..to], false).map_err(refuse)?;
        let words = encoding.get_word_ids().iter();
        let pieces = encoding.get_ids().iter().zip(encoding.get_offsets()).zip(words);
        Ok(pieces
            .map(|((&id, &(start, end)), word)| Piece {
                id,
                start: floor(text, from + start),
                end: ceil(text, from + end),
                word: word.unwrap_or(u32::MAX),
            })
            .collect())
    }

    fn sequence(&self, text: &str, pieces: &[Piece]) -> Sequence {
        let ids = pieces.iter().map(|piece| piece.id);
        let spans = pieces.iter().map(|piece| span(text, piece));
        Sequence {
            ids: [self.special.start].into_iter().chain(ids).chain([self.special.end]).collect(),
            spans: [(0, 0)].into_iter().chain(spans).chain([(0, 0)]).collect(),
        }
    }

    fn build(mut json: Value, given: Option<&[u8]>, names: &Names) -> Result<Self> {
        let original = json.clone();
        let Some(object) = json.as_object_mut() else {
            return Err(refuse("not a JSON object"));
        };
        let padding = object.insert("padding".to_owned(), Value::Null).unwrap_or_default();
        object.insert("truncation".to_owned(), Value::Null);
        let mut inner = parse(&serde_json::to_vec(&json).map_err(refuse)?)?;

        let id = |names: &[String]| -> Option<(String, u32)> {
            names.iter().find_map(|name| Some((name.clone(), inner.token_to_id(name)?)))
        };
        let template = inner.post_process(Encoding::default(), None, true).map_err(refuse)?;
        let (start, end) = match *template.get_ids() {
            [start, end] => (start, end),
            _ => {
                let (Some((start_name, start)), Some((end_name, end))) = (id(&names.start), id(&names.end))
                else {
                    return Err(refuse("no tokens for start and end, like `[CLS]` and `[SEP]`"));
                };
                json["post_processor"] =
                    json!({ "type": "BertProcessing", "sep": [end_name, end], "cls": [start_name, start] });
                (start, end)
            }
        };
        let padded = padding["pad_token"].as_str().and_then(|name| inner.token_to_id(name));
        let pad = padded.or_else(|| Some(id(&names.pad)?.1)).unwrap_or(end);
        let model = &json["model"];
        let unknown = match model["unk_id"].as_u64() {
            Some(id) => u32::try_from(id).ok(),
            None => model["unk_token"].as_str().and_then(|name| inner.token_to_id(name)),
        };
        let special = Special {
            start,
            end,
            pad,
            unknown: unknown.or_else(|| Some(id(&names.unknown)?.1)),
            mask: id(&names.mask).map(|(_, id)| id),
        };
        json["padding"] = json!({
            "strategy": "BatchLongest",
            "direction": "Right",
            "pad_to_multiple_of": null,
            "pad_id": pad,
            "pad_type_id": 0,
            "pad_token": inner.id_to_token(pad),
        });

        // Numbers can change in their last digit each time they are parsed: what is in order stays as it is.
        let json = match given {
            Some(bytes) if json == original => bytes.to_vec(),
            _ => serde_json::to_vec(&json).map_err(refuse)?,
        };
        inner = parse(&json)?;
        inner.with_padding(None).with_post_processor(None::<tokenizers::PostProcessorWrapper>);
        let spaces = inner.encode(" \t\r\n\u{a0}\u{2003}\u{2028}\u{3000} ", false).map_err(refuse)?;
        // A vocabulary that lacks its token for the unknown should be refused now, not at some later text.
        inner.encode("a\u{e000}\u{10fffd} \u{16a0}", false).map_err(refuse)?;
        let longest = inner.get_added_tokens_decoder().values().map(|token| token.content.len()).max();
        let vocabulary = inner.get_vocab(true);
        let highest = vocabulary.values().copied().chain([start, end, pad]).max();
        Ok(Self {
            special,
            vocab_size: highest.map_or(0, |id| id as usize + 1),
            skips_spaces: spaces.is_empty(),
            margin: longest.unwrap_or(0).clamp(16, 256),
            inner,
            json,
        })
    }
}

fn parse(json: &[u8]) -> Result<tokenizers::Tokenizer> {
    tokenizers::Tokenizer::from_bytes(json).map_err(refuse)
}

fn refuse(problem: impl ToString) -> Error {
    Error::Tokenizer { problem: problem.to_string() }
}

fn last(mut pieces: Vec<Piece>, n: usize) -> Vec<Piece> {
    pieces.drain(..pieces.len().saturating_sub(n));
    pieces
}

/// The bytes of a piece without the white space around, unless it is all white space.
fn span(text: &str, piece: &Piece) -> (u32, u32) {
    let whole = &text[piece.start..piece.end];
    let after = whole.trim_start_matches(is_space);
    let bare = after.trim_end_matches(is_space);
    let (start, len) = match bare.len() {
        0 => (piece.start, whole.len()),
        len => (piece.end - after.len(), len),
    };
    // Texts are cut at `u32::MAX` bytes beforehand.
    (start as u32, (start + len) as u32)
}
