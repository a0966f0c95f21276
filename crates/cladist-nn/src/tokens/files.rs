//! The files that a tokenizer comes in, all brought into the form of `tokenizer.json`.

use std::collections::BTreeMap;
use std::path::Path;

use cladist_core::Error as CoreError;
use serde_json::{Map, Value, json};

use crate::error::{Error, Result};

/// What special tokens are called. Names that are not in the vocabulary do no harm.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Names {
    pub(super) start: Vec<String>,
    pub(super) end: Vec<String>,
    pub(super) pad: Vec<String>,
    pub(super) unknown: Vec<String>,
    pub(super) mask: Vec<String>,
}

impl Names {
    /// Names that files give, and after them the usual ones.
    pub(super) fn new(given: &[&Value]) -> Self {
        let names = |keys: &[&str], usual: [&str; 2]| {
            let given = keys.iter().flat_map(|key| given.iter().filter_map(|file| name(file, key)));
            given.chain(usual.into_iter().map(str::to_owned)).collect()
        };
        Self {
            start: names(&["cls_token", "bos_token"], ["[CLS]", "<s>"]),
            end: names(&["sep_token", "eos_token"], ["[SEP]", "</s>"]),
            pad: names(&["pad_token"], ["[PAD]", "<pad>"]),
            unknown: names(&["unk_token"], ["[UNK]", "<unk>"]),
            mask: names(&["mask_token"], ["[MASK]", "<mask>"]),
        }
    }

    fn all(&self) -> impl Iterator<Item = &String> {
        [&self.pad, &self.unknown, &self.start, &self.end, &self.mask].into_iter().flatten()
    }
}

/// A token's name is a string, or an object that holds it beside how the token is matched.
fn name(file: &Value, key: &str) -> Option<String> {
    let value = file.get(key)?;
    value.as_str().or_else(|| value.get("content")?.as_str()).map(str::to_owned)
}

/// Reads the tokenizer of a folder, with the names it gives to special tokens.
pub(super) fn read_folder(folder: &Path) -> Result<(Value, Names)> {
    let (config, map) = (folder.join("tokenizer_config.json"), folder.join("special_tokens_map.json"));
    let optional = |path: &Path| if path.is_file() { read_json(path) } else { Ok(Value::Null) };
    let (config, map) = (optional(&config)?, optional(&map)?);
    let names = Names::new(&[&map, &config]);

    let whole = folder.join("tokenizer.json");
    let words = folder.join("vocab.txt");
    let (pieces, merges) = (folder.join("vocab.json"), folder.join("merges.txt"));
    let json = if whole.is_file() {
        read_json(&whole)?
    } else if words.is_file() {
        word_piece(read_vocabulary(&words)?, &Bert::from_config(&config), &names)
    } else if pieces.is_file() && merges.is_file() {
        let vocabulary: BTreeMap<String, u32> = serde_json::from_value(read_json(&pieces)?)
            .map_err(|error| refuse_by(&pieces, "not a vocabulary", error))?;
        byte_level(vocabulary, &read_text(&merges)?, &config, &names)
            .map_err(|line| refuse(&merges, &format!("line {line}: not two pieces with a space between")))?
    } else {
        let problem =
            "no tokenizer: `tokenizer.json`, `vocab.txt`, or `vocab.json` with `merges.txt` is needed";
        return Err(refuse(folder, problem));
    };
    Ok((json, names))
}

fn refuse(path: &Path, problem: &str) -> Error {
    Error::encoder(path, problem)
}

fn refuse_by(path: &Path, what: &str, error: serde_json::Error) -> Error {
    let problem = format!("{what}: {error}");
    Error::Encoder { path: path.to_owned(), problem, remedy: None, source: Some(error.into()) }
}

fn read_text(path: &Path) -> Result<String> {
    let bytes = std::fs::read(path).map_err(CoreError::io("read", path))?;
    String::from_utf8(bytes).map_err(|_| refuse(path, "not UTF-8"))
}

fn read_json(path: &Path) -> Result<Value> {
    let bytes = std::fs::read(path).map_err(CoreError::io("read", path))?;
    serde_json::from_slice(&bytes).map_err(|error| refuse_by(path, "not JSON", error))
}

/// One token per line, numbered by line. Only the line end is cut off: white space may be a token.
fn read_vocabulary(path: &Path) -> Result<BTreeMap<String, u32>> {
    let text = read_text(path)?;
    let lines = text.strip_suffix('\n').unwrap_or(&text).split('\n');
    let tokens = lines.map(|line| line.strip_suffix('\r').unwrap_or(line).to_owned());
    Ok(tokens.zip(0u32..).filter(|(token, _)| !token.is_empty()).collect())
}

/// How a BERT tokenizer treats text before it looks up pieces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bert {
    pub(super) lower_case: bool,
    /// Not given: as `lower_case`.
    pub(super) strip_accents: Option<bool>,
    pub(super) chinese_characters: bool,
}

impl Default for Bert {
    fn default() -> Self {
        Self { lower_case: true, strip_accents: None, chinese_characters: true }
    }
}

impl Bert {
    fn from_config(config: &Value) -> Self {
        let flag = |key| config.get(key).and_then(Value::as_bool);
        let default = Self::default();
        Self {
            lower_case: flag("do_lower_case").unwrap_or(default.lower_case),
            strip_accents: flag("strip_accents").or(default.strip_accents),
            chinese_characters: flag("tokenize_chinese_chars").unwrap_or(default.chinese_characters),
        }
    }
}

/// BERT's tokenizer over a vocabulary: white space, punctuation, then the longest pieces of each word.
pub(super) fn word_piece(vocabulary: BTreeMap<String, u32>, bert: &Bert, names: &Names) -> Value {
    let model = json!({
        "type": "WordPiece",
        "unk_token": unknown(&vocabulary, names),
        "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100,
        "vocab": vocabulary,
    });
    let decoder = json!({ "type": "WordPiece", "prefix": "##", "cleanup": true });
    of_words(&vocabulary, bert, names, model, decoder)
}

/// Whole words, told apart as BERT does; what is not in the vocabulary is unknown.
pub(super) fn word_level(vocabulary: &BTreeMap<String, u32>, names: &Names) -> Value {
    let unknown = unknown(vocabulary, names);
    let model = json!({ "type": "WordLevel", "unk_token": unknown, "vocab": vocabulary });
    of_words(vocabulary, &Bert::default(), names, model, Value::Null)
}

fn unknown<'a>(vocabulary: &BTreeMap<String, u32>, names: &'a Names) -> &'a str {
    let known = names.unknown.iter().find(|name| vocabulary.contains_key(*name));
    known.map_or("[UNK]", String::as_str)
}

fn of_words(
    vocabulary: &BTreeMap<String, u32>,
    bert: &Bert,
    names: &Names,
    model: Value,
    decoder: Value,
) -> Value {
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": added_tokens(vocabulary, names, &[]),
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": true,
            "handle_chinese_chars": bert.chinese_characters,
            "strip_accents": bert.strip_accents,
            "lowercase": bert.lower_case,
        },
        "pre_tokenizer": { "type": "BertPreTokenizer" },
        "post_processor": null,
        "decoder": decoder,
        "model": model,
    })
}

/// RoBERTa's tokenizer: merges of bytes. Fails with the number of a line of `merges` that cannot be read.
fn byte_level(
    vocabulary: BTreeMap<String, u32>,
    merges: &str,
    config: &Value,
    names: &Names,
) -> Result<Value, usize> {
    let prefix = config.get("add_prefix_space").and_then(Value::as_bool).unwrap_or(false);
    let mut pairs = Vec::new();
    for (line, number) in merges.lines().zip(1usize..) {
        if line.is_empty() || line.starts_with("#version") {
            continue;
        }
        pairs.push(line.split_once(' ').filter(|(_, right)| !right.contains(' ')).ok_or(number)?);
    }
    let bytes = json!({
        "type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": true, "use_regex": true,
    });
    Ok(json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": added_tokens(&vocabulary, names, &names.mask),
        "normalizer": null,
        "pre_tokenizer": bytes,
        "post_processor": null,
        "decoder": bytes,
        "model": {
            "type": "BPE",
            "dropout": null,
            "unk_token": null,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": false,
            "byte_fallback": false,
            "merges": pairs,
            "vocab": vocabulary,
        },
    }))
}

/// Special tokens of the vocabulary; those of `after_space` take the white space before them along.
fn added_tokens(vocabulary: &BTreeMap<String, u32>, names: &Names, after_space: &[String]) -> Value {
    let mut tokens: Vec<(u32, &String)> =
        names.all().filter_map(|name| Some((*vocabulary.get(name)?, name))).collect();
    tokens.sort_unstable();
    tokens.dedup();
    let token = |(id, name): (u32, &String)| {
        Value::Object(Map::from_iter([
            ("id".to_owned(), json!(id)),
            ("content".to_owned(), json!(name)),
            ("single_word".to_owned(), json!(false)),
            ("lstrip".to_owned(), json!(after_space.contains(name))),
            ("rstrip".to_owned(), json!(false)),
            ("normalized".to_owned(), json!(false)),
            ("special".to_owned(), json!(true)),
        ]))
    };
    tokens.into_iter().map(token).collect()
}
