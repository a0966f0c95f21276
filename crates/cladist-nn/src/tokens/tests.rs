//! Tokenizers against `transformers`, and against themselves without cutting.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use cladist_core::Cancel;
use proptest::prelude::*;

use super::*;
use crate::error::Error;

fn minilm() -> Option<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared").into();
    let shared = std::env::var_os("CLADIST_SHARED").map_or(beside, PathBuf::from);
    let folder = shared.join("models/all-MiniLM-L6-v2");
    if !folder.is_dir() {
        // Past the harness, which keeps what a passing test prints.
        let _ = writeln!(std::io::stderr(), "skipped: {} not found", folder.display());
        return None;
    }
    Some(folder)
}

fn trained() -> Tokenizer {
    let text =
        "the bank raised its rate. banks, rates and raising: a rainbow of raw data at 1,200 points (basis)";
    Tokenizer::train(&[text, "Été naïf 東京 the rates"], 120, 1, &Cancel::default()).unwrap()
}

/// Bytes spelled as RoBERTa spells them; a few merges.
fn byte_level() -> Tokenizer {
    let folder = tempfile::tempdir().unwrap();
    let printable = (33..=126).chain(161..=172).chain(174..=255);
    let others = (0..=255u32).filter(|byte| !printable.clone().any(|other| other == *byte)).zip(256..);
    let letters =
        printable.clone().chain(others.map(|(_, code)| code)).map(|code| char::from_u32(code).unwrap());
    let mut tokens: Vec<String> = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"].map(str::to_owned).into();
    tokens.extend(letters.map(String::from));
    let merges = ["t h", "th e", "Ġ the", "r a", "Ġ b", "Ġ Ġ", "n d"];
    tokens.extend(merges.iter().map(|merge| merge.replace(' ', "")));
    let vocabulary: std::collections::BTreeMap<&String, usize> = tokens.iter().zip(0..).collect();
    std::fs::write(folder.path().join("vocab.json"), serde_json::to_vec(&vocabulary).unwrap()).unwrap();
    let merges = format!("#version: 0.2\n{}\n", merges.join("\n"));
    std::fs::write(folder.path().join("merges.txt"), merges).unwrap();
    Tokenizer::from_folder(folder.path()).unwrap()
}

fn config(max_tokens: usize, truncate: Truncate) -> TokensConfig {
    TokensConfig { max_tokens, truncate, ..TokensConfig::default() }
}

fn one(tokenizer: &Tokenizer, text: &str, config: &TokensConfig) -> Sequence {
    let mut documents = tokenizer.encode(&[text], config).unwrap();
    assert_eq!((documents.len(), documents[0].len()), (1, 1));
    documents.remove(0).remove(0)
}

/// `AutoTokenizer.from_pretrained(folder)(text, truncation=True, max_length=24)["input_ids"]`, transformers 5.
#[rustfmt::skip]
const REFERENCE: &[(&str, &[u32])] = &[
    ("Caf\u{e9} na\u{ef}ve, \u{dc}berm\u{e4}\u{df}ig fa\u{e7}ade: S\u{e3}o Tom\u{e9}!", &[101, 7668, 15743, 1010, 19169, 2863, 19310, 8004, 8508, 1024, 7509, 21269, 999, 102]),
    ("cafe\u{301} versus caf\u{e9} \u{2014} e\u{308}\u{323}", &[101, 7668, 6431, 7668, 1517, 1041, 102]),
    ("\u{6771}\u{4eac}\u{90fd}\u{306e}\u{7d4c}\u{6e08} and \u{4e2d}\u{56fd}\u{94f6}\u{884c}\u{3002}", &[101, 1879, 1755, 1961, 1671, 100, 100, 1998, 1746, 1799, 100, 1945, 1636, 102]),
    ("rates \u{1f680}\u{1f4c8} up \u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467} flag \u{1f1e9}\u{1f1ea} \u{2603}\u{fe0f}", &[101, 6165, 100, 2039, 100, 5210, 100, 100, 102]),
    ("nul\u{0}byte tab\u{9}here bell\u{7} soft\u{ad}hyphen zero\u{200b}width \u{fffd} vt\u{b}ff\u{c} nel\u{85}end", &[101, 16371, 14510, 2618, 21628, 2182, 4330, 3730, 10536, 8458, 2368, 5717, 9148, 11927, 2232, 28879, 4246, 11265, 7770, 2094, 102]),
    ("SHOUTING McDonald \u{130}stanbul \u{1c5} \u{3a3}\u{3af}\u{3c3}\u{3c5}\u{3c6}\u{3bf}\u{3c2} \u{fb01}nance", &[101, 11273, 9383, 9960, 100, 1173, 18199, 29733, 29735, 29736, 15297, 1984, 7229, 3401, 102]),
    ("don't [MASK] the [SEP] literal, or [ CLS ] and [unused7]", &[101, 2123, 1005, 1056, 103, 1996, 102, 18204, 1010, 2030, 1031, 18856, 2015, 1033, 1998, 1031, 15171, 2581, 1033, 102]),
    ("$1,234.56 on 03/04/1987; e=mc\u{b2} \u{bd} x<=y && a||b \u{20ac}5", &[101, 1002, 1015, 1010, 22018, 1012, 5179, 2006, 6021, 1013, 5840, 1013, 3055, 1025, 1041, 1027, 11338, 10701, 1092, 1060, 1026, 1027, 1061, 102]),
    ("antidisestablishmentarianism pneumonoultramicroscopicsilicovolcanoconiosis {x} {y}", &[101, 3424, 10521, 4355, 7875, 13602, 3672, 12199, 2964, 1052, 2638, 2819, 17175, 11314, 6444, 2594, 7352, 26461, 27572, 11261, 6767, 15472, 6761, 102]),
    ("\u{410}\u{43b}\u{435}\u{43a}\u{441}\u{430}\u{43d}\u{434}\u{440} \u{5e9}\u{5dc}\u{5d5}\u{5dd} \u{645}\u{631}\u{62d}\u{628}\u{627} \u{e2a}\u{e27}\u{e31}\u{e2a}\u{e14}\u{e35} \u{d55c}\u{ad6d}\u{c5b4} \u{3072}\u{3089}\u{304c}\u{306a}", &[101, 1180, 29436, 15290, 23925, 29747, 28995, 29742, 16856, 1266, 29799, 29792, 29800, 1295, 17149, 29820, 29816, 25573, 100, 1469, 30006, 30021, 29991, 102]),
    ("non\u{a0}breaking\u{2003}em\u{2028}line\u{3000}ideographic", &[101, 2512, 4911, 7861, 2240, 8909, 8780, 14773, 102]),
    ("", &[101, 102]),
];

fn reference_text(text: &str) -> String {
    text.replace("{x}", &"x".repeat(101)).replace("{y}", &"y".repeat(100))
}

#[test]
fn ids_are_those_of_transformers_from_either_file() {
    let Some(folder) = minilm() else { return };
    let whole = Tokenizer::from_folder(&folder).unwrap();
    let words = tempfile::tempdir().unwrap();
    for file in ["vocab.txt", "tokenizer_config.json"] {
        std::fs::copy(folder.join(file), words.path().join(file)).unwrap();
    }
    let words = Tokenizer::from_folder(words.path()).unwrap();
    for tokenizer in [&whole, &words] {
        assert_eq!(
            tokenizer.special(),
            Special { start: 101, end: 102, pad: 0, unknown: Some(100), mask: Some(103) }
        );
        assert_eq!(tokenizer.vocab_size(), 30_522);
        for (text, ids) in REFERENCE {
            let text = reference_text(text);
            let found = one(tokenizer, &text, &config(24, Truncate::Head));
            assert_eq!(found.ids, *ids, "{text}");
            check_spans(&text, &found);
        }
    }
}

#[test]
fn padding_and_truncation_of_the_file_are_put_aside() {
    let Some(folder) = minilm() else { return };
    let tokenizer = Tokenizer::from_folder(&folder).unwrap();
    let sequence = one(&tokenizer, &"word ".repeat(600), &config(512, Truncate::Head));
    assert_eq!(sequence.ids.len(), 512, "not the 128 of the file");
    assert_eq!(one(&tokenizer, "word", &config(512, Truncate::Head)).ids, [101, 2773, 102]);
}

#[test]
fn spans_are_bytes_of_the_original_text() {
    let tokenizer = trained();
    let text = "  ÉTÉ naïf,\u{0}東京 ";
    let sequence = one(&tokenizer, text, &TokensConfig::default());
    let words: Vec<&str> =
        sequence.spans.iter().map(|&(from, to)| &text[from as usize..to as usize]).collect();
    assert_eq!(words.concat().replace('\u{0}', ""), "ÉTÉnaïf,東京");
    assert_eq!(sequence.spans[0], (0, 0));
    assert_eq!(sequence.spans.last(), Some(&(0, 0)));
    assert!(words.contains(&"東") && words.contains(&"京"), "{words:?}");
}

#[test]
fn spans_of_bytes_leave_out_the_space_before() {
    let tokenizer = byte_level();
    let text = "the bé the";
    let sequence = one(&tokenizer, text, &TokensConfig::default());
    let tokens: Vec<String> = sequence.ids.iter().map(|&id| tokenizer.token(id).unwrap()).collect();
    assert_eq!(tokens, ["<s>", "the", "Ġb", "Ã", "©", "Ġthe", "</s>"]);
    assert_eq!(sequence.spans, [(0, 0), (0, 3), (4, 5), (5, 7), (5, 7), (8, 11), (0, 0)]);
    assert_eq!(tokenizer.special(), Special { start: 0, end: 2, pad: 1, unknown: Some(3), mask: Some(4) });
}

#[test]
fn an_empty_document_is_two_tokens() {
    for tokenizer in [trained(), byte_level()] {
        let Special { start, end, .. } = tokenizer.special();
        for truncate in [Truncate::Head, Truncate::Tail, Truncate::HeadTail] {
            assert_eq!(one(&tokenizer, "", &config(8, truncate)).ids, [start, end]);
        }
        let windows = TokensConfig { windows: 3, ..TokensConfig::default() };
        assert_eq!(one(&tokenizer, "", &windows).ids, [start, end]);
    }
}

#[test]
fn what_is_written_is_read_back_byte_by_byte() {
    let text = "The rate of [MASK] rose 1,200 points — naïf";
    let real = minilm().map(|folder| Tokenizer::from_folder(&folder).unwrap());
    for tokenizer in [trained(), byte_level()].into_iter().chain(real) {
        let again = Tokenizer::from_json(tokenizer.to_json()).unwrap();
        assert_eq!(again.to_json(), tokenizer.to_json());
        assert_eq!(again.special(), tokenizer.special());
        assert_eq!(again.vocab_size(), tokenizer.vocab_size());
        let config = TokensConfig::default();
        assert_eq!(one(&again, text, &config), one(&tokenizer, text, &config));
    }
}

#[test]
fn training_gives_the_same_bytes_on_any_number_of_threads() {
    let texts: Vec<String> =
        (0..300).map(|i| format!("word{} of {} and {}ing naïve", i % 37, i * 7919 % 1000, i % 11)).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let train = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| Tokenizer::train(&texts, 200, 2, &Cancel::default()).unwrap())
    };
    let expected = train(1);
    assert!(expected.vocab_size() <= 200 && expected.vocab_size() > 100, "{}", expected.vocab_size());
    for threads in [1, 2, 5] {
        assert!(train(threads).to_json() == expected.to_json(), "{threads} threads");
    }
    let naive = one(&expected, "NAIVE naïve", &TokensConfig::default());
    assert_eq!(naive.ids.len(), 4, "a frequent word is one token");
    assert_eq!(naive.ids[1], naive.ids[2]);
}

#[test]
fn training_on_nothing_gives_a_tokenizer_all_the_same() {
    let tokenizer = Tokenizer::train(&[], 100, 1, &Cancel::default()).unwrap();
    let unknown = tokenizer.special().unknown.unwrap();
    assert_eq!(one(&tokenizer, "any word", &TokensConfig::default()).ids, [2, unknown, unknown, 3]);
}

#[test]
fn windows_overlap_and_end_with_the_document() {
    let tokenizer = trained();
    let text = "a b a b a b a b a b a b a";
    let whole = one(&tokenizer, text, &TokensConfig::default());
    let windows = |windows, stride| {
        let config = TokensConfig { max_tokens: 8, windows, stride, ..TokensConfig::default() };
        let mut documents = tokenizer.encode(&[text], &config).unwrap();
        documents.remove(0).into_iter().map(|window| window.spans).collect::<Vec<_>>()
    };
    let expected = |ranges: &[std::ops::Range<usize>]| -> Vec<Vec<(u32, u32)>> {
        let spans = |range: &std::ops::Range<usize>| &whole.spans[range.start + 1..range.end + 1];
        ranges.iter().map(|range| [&[(0, 0)], spans(range), &[(0, 0)]].concat()).collect()
    };
    assert_eq!(windows(9, 0), expected(&[0..6, 6..12, 12..13]));
    assert_eq!(windows(2, 0), expected(&[0..6, 6..12]));
    assert_eq!(windows(9, 2), expected(&[0..6, 4..10, 8..13]));
    assert_eq!(windows(9, 5)[6..], expected(&[6..12, 7..13]));
}

#[test]
fn head_and_tail_share_the_room() {
    let tokenizer = trained();
    let text = "a b a b a b a b a b a b a";
    let spans = one(&tokenizer, text, &config(9, Truncate::HeadTail)).spans;
    assert_eq!(spans[1..8], [(0, 1), (2, 3), (4, 5), (6, 7), (20, 21), (22, 23), (24, 25)]);
    let spans = one(&tokenizer, text, &config(9, Truncate::Tail)).spans;
    assert_eq!(spans[1..8], [(12, 13), (14, 15), (16, 17), (18, 19), (20, 21), (22, 23), (24, 25)]);
    assert_eq!(one(&tokenizer, text, &config(15, Truncate::HeadTail)).ids.len(), 15, "fits as a whole");
}

#[test]
fn ten_megabytes_cost_no_more_than_a_page() {
    const SIZE: usize = 10_000_000;
    let words = "the rate of the bank ".repeat(SIZE / 21);
    let texts = [
        words.clone(),
        "x".repeat(SIZE),
        " ".repeat(SIZE),
        format!("{}bank", " ".repeat(SIZE)),
        "\u{0}".repeat(SIZE),
        "東".repeat(SIZE / 3),
        "a,b".repeat(SIZE / 3),
        format!("bank {} rate", "é".repeat(SIZE / 2)),
    ];
    for tokenizer in [trained(), byte_level()] {
        for text in &texts {
            let start = &text[..text.chars().take(20).map(char::len_utf8).sum()];
            for truncate in [Truncate::Head, Truncate::Tail, Truncate::HeadTail] {
                let begin = Instant::now();
                let sequence = one(&tokenizer, text, &config(128, truncate));
                let time = begin.elapsed();
                // Far above what is needed, far below the many seconds of tokenising it all.
                assert!(time < Duration::from_millis(900), "{truncate:?} {start}: {time:?}");
                check_spans(text, &sequence);
            }
        }
    }
    let tokenizer = trained();
    let unknown = tokenizer.special().unknown.unwrap();
    let ids = |text: &str, truncate| one(&tokenizer, text, &config(128, truncate)).ids;
    assert_eq!(ids(&words, Truncate::Tail).len(), 128);
    assert_eq!(ids(&texts[1], Truncate::Head), [2, unknown, 3], "one long word");
    assert_eq!(ids(&texts[2], Truncate::Head), [2, 3]);
    assert_eq!(ids(&texts[3], Truncate::Head), ids("bank", Truncate::Head), "white space is free");
    assert_eq!(ids(&texts[5], Truncate::HeadTail).len(), 128);
    for truncate in [Truncate::Head, Truncate::Tail] {
        let expected = ids(&format!("bank {} rate", "é".repeat(101)), truncate);
        assert_eq!(ids(&texts[7], truncate), expected, "text around a long word");
    }
}

#[test]
fn a_folder_without_a_tokenizer_is_told_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let error = Tokenizer::from_folder(folder.path()).unwrap_err();
    assert_eq!(error.kind(), cladist_core::ErrorKind::Encoder);
    let message = error.to_string();
    assert!(message.contains(&folder.path().display().to_string()), "{message}");
    assert!(
        message.contains("`tokenizer.json`, `vocab.txt`, or `vocab.json` with `merges.txt`"),
        "{message}"
    );
}

#[test]
fn damaged_files_are_refused() {
    let refused = |file: &str, content: &str, part: &str| {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("vocab.json"), "{\"a\": 0}").unwrap();
        std::fs::write(folder.path().join(file), content).unwrap();
        let error = Tokenizer::from_folder(folder.path()).unwrap_err();
        assert!(matches!(error, Error::Encoder { .. }), "{error}");
        assert!(error.to_string().contains(part), "{error}");
    };
    refused("tokenizer.json", "{", "not JSON");
    refused("tokenizer.json", "[]", "not a JSON object");
    refused("tokenizer.json", "{\"model\": 3}", "encoder `");
    refused("vocab.txt", "[UNK]\nword\n", "no tokens for start and end");
    refused("vocab.txt", "[CLS]\n[SEP]\nword\n", "[UNK]");
    refused("merges.txt", "#version: 0.2\na b\nab\n", "line 3");
    assert!(Tokenizer::from_json(b"null").is_err());
}

#[test]
fn special_tokens_can_have_names_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("vocab.txt"), "{pad}\n{unk}\n{from}\n{to}\nword\n").unwrap();
    let map = r#"{"cls_token": {"content": "{from}"}, "sep_token": "{to}", "pad_token": "{pad}", "unk_token": "{unk}"}"#;
    std::fs::write(folder.path().join("special_tokens_map.json"), map).unwrap();
    let tokenizer = Tokenizer::from_folder(folder.path()).unwrap();
    let again = Tokenizer::from_json(tokenizer.to_json()).unwrap();
    for tokenizer in [tokenizer, again] {
        assert_eq!(tokenizer.special(), Special { start: 2, end: 3, pad: 0, unknown: Some(1), mask: None });
        assert_eq!(one(&tokenizer, "Word x", &TokensConfig::default()).ids, [2, 4, 1, 3]);
    }
}

#[test]
fn documents_keep_their_order_on_many_threads() {
    let tokenizer = trained();
    let texts: Vec<String> = (0..200).map(|i| "a ".repeat(i % 50)).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let documents = tokenizer.encode(&texts, &TokensConfig::default()).unwrap();
    assert!(documents.iter().enumerate().all(|(i, windows)| windows[0].len() == i % 50 + 2));
}

fn check_spans(text: &str, sequence: &Sequence) {
    assert_eq!(sequence.ids.len(), sequence.spans.len());
    let mut before = 0;
    for &(from, to) in &sequence.spans[1..sequence.spans.len() - 1] {
        assert!(text.get(from as usize..to as usize).is_some(), "{from}..{to} of {text:?}");
        assert!(before <= from, "{from} after {before} in {text:?}");
        before = from;
    }
}

/// Words, numbers, punctuation, several scripts and all sorts of white space.
fn ordinary() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        6 => "[a-zA-Z]{1,9}",
        1 => "[0-9.,]{1,6}",
        1 => "[àéîõüßçñøœÀÉÎ]{1,6}",
        1 => "[东京经济银行日本]{1,9}",
        1 => "[а-яА-Я]{1,8}",
        1 => Just("\u{1f680}".to_owned()),
        1 => Just("[MASK]".to_owned()),
        1 => Just("e\u{301}te\u{301}".to_owned()),
        1 => Just("vt\u{b}x\u{0}y\u{85}z".to_owned()),
    ];
    let after = prop_oneof![
        8 => Just(" "), 1 => Just(""), 1 => Just(", "), 1 => Just("-"), 1 => Just("  \n\t"),
        1 => Just("\u{a0}"), 1 => Just("\u{3000}"), 1 => Just("...\r\n"), 1 => Just("      "),
    ];
    prop::collection::vec((word, after), 0..120)
        .prop_map(|words| words.into_iter().map(|(word, after)| word + after).collect())
}

fn check_cutting(tokenizer: &Tokenizer, text: &str, room: usize, chunk: usize) {
    let whole = tokenizer.pieces(text, 0, text.len()).unwrap();
    let n = whole.len();
    let check = |truncate, expected: &[cut::Piece]| {
        let found = tokenizer.truncated(text, truncate, room, chunk).unwrap();
        let bare = |piece: &cut::Piece| (piece.id, piece.start, piece.end);
        assert!(found.iter().map(bare).eq(expected.iter().map(bare)), "{truncate:?}: {found:?} {expected:?}");
    };
    check(Truncate::Head, &whole[..room.min(n)]);
    check(Truncate::Tail, &whole[n.saturating_sub(room)..]);
    if n <= room {
        check(Truncate::HeadTail, &whole);
    } else {
        check(Truncate::HeadTail, &[&whole[..room - room / 2], &whole[n - room / 2..]].concat());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn cutting_changes_nothing(text in ordinary(), room in 6usize..60, chunk in 64usize..300) {
        for tokenizer in [trained(), byte_level()] {
            check_cutting(&tokenizer, &text, room, chunk);
        }
    }

    #[test]
    fn cutting_changes_nothing_where_there_is_no_white_space(
        text in "([东京经济银行，。]|[a-f]{1,8}[,.-]|\\[MASK\\]){0,200}",
        room in 6usize..60,
        chunk in 64usize..300,
    ) {
        check_cutting(&trained(), &text, room, chunk);
    }

    #[test]
    fn any_text_has_spans_between_characters(text in any::<String>(), more in "\\PC{0,40}", n in 8usize..40) {
        let text = format!("{text}{more}");
        for tokenizer in [trained(), byte_level()] {
            for truncate in [Truncate::Head, Truncate::Tail, Truncate::HeadTail] {
                let sequence = one(&tokenizer, &text, &config(n, truncate));
                prop_assert!(sequence.ids.len() <= n);
                check_spans(&text, &sequence);
            }
        }
    }
}
