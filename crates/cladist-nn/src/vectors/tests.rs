use super::*;

fn tokenizer() -> Tokenizer {
    Tokenizer::words(&["gold gold gold ore ore mine mine"], 100, 1, &Cancel::default()).unwrap()
}

fn write(name: &str, bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}

fn table(path: &Path) -> Result<(Vec<f32>, usize, Vec<String>)> {
    WordVectors::Pretrained(path.to_owned()).table(&tokenizer(), 1, &Cancel::default())
}

fn npy(kind: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    npy_in("False", kind, shape, data)
}

fn npy_in(order: &str, kind: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{kind}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

#[test]
fn glove_and_word2vec_texts_give_their_rows() {
    for text in ["the 1 1\ngold .5 -2\nore 3 4e-1\n", "3 2\ngold .5 -2\r\nore 3 4e-1\r\n. . 1 2\r\n"] {
        let (_folder, path) = write("vectors.txt", text.as_bytes());
        let (table, width, missing) = table(&path).unwrap();
        let tokenizer = tokenizer();
        let row = |word: &str| &table[tokenizer.id(word).unwrap() as usize * width..][..width];
        assert_eq!((row("gold"), row("ore")), (&[0.5, -2.0][..], &[3.0, 0.4][..]));
        assert!(missing.contains(&"mine".to_owned()), "{missing:?}");
        assert!(row("mine").iter().all(|value| value.is_finite() && *value != 0.0));
    }
}

#[test]
fn numpy_matrices_of_three_types_give_their_rows() {
    let values = [0.5f32, -2.0, 3.0, 0.25];
    let halves = values.iter().flat_map(|&v| half::f16::from_f32(v).to_le_bytes()).collect::<Vec<u8>>();
    let singles = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let doubles = values.iter().flat_map(|&v| f64::from(v).to_le_bytes()).collect();
    for (kind, data) in [("<f2", halves), ("<f4", singles), ("<f8", doubles)] {
        let (folder, path) = write("v.npy", &npy(kind, "(2, 2)", &data));
        std::fs::write(folder.path().join("vocab.txt"), "ore\ngold\n").unwrap();
        let (table, width, _) = table(&path).unwrap();
        let gold = tokenizer().id("gold").unwrap() as usize;
        assert_eq!(table[gold * width..][..width], [3.0, 0.25]);
        // The folder will do as well.
        assert_eq!(self::table(folder.path()).unwrap().0, table);
    }
    let columns: Vec<u8> = [0.5f32, 3.0, -2.0, 0.25].iter().flat_map(|v| v.to_le_bytes()).collect();
    let (folder, path) = write("v.npy", &npy_in("True", "<f4", "(2, 2)", &columns));
    std::fs::write(folder.path().join("vocab.txt"), "ore\ngold\n").unwrap();
    let gold = tokenizer().id("gold").unwrap() as usize;
    assert_eq!(table(&path).unwrap().0[2 * gold..][..2], [3.0, 0.25], "column by column");
}

#[test]
fn bad_files_are_refused_with_what_is_wrong() {
    for (name, bytes, word) in [
        ("v.txt", b"gold 1 2\nore 1 x\n".to_vec(), "line 2"),
        ("v.txt", b"gold 1 2\nore 1\n".to_vec(), "line 2"),
        ("v.txt", b"gold 1 nan\n".to_vec(), "finite"),
        ("v.txt", Vec::new(), "empty"),
        ("v.txt", b"gold\n".to_vec(), "line 1"),
        ("v.txt", b"other 1 2\n".to_vec(), "none of the words"),
        ("v.npy", b"no".to_vec(), "NumPy"),
        ("v.npy", npy("<i8", "(1, 1)", &[0; 8]), "<i8"),
        ("v.npy", npy("<f4", "(2, 2)", &[0; 8]), "do not fit"),
        ("v.npy", npy("<f4", "(2,)", &[0; 8]), "matrix"),
        ("v.npy", npy("<f4", "(1, 2)", &[0; 8]), "2 words"),
    ] {
        let (folder, path) = write(name, &bytes);
        std::fs::write(folder.path().join("vocab.txt"), "iron\ncopper\n").unwrap();
        let message = table(&path).unwrap_err().to_string();
        assert!(message.contains(word), "{name}: {message}");
    }
}

#[test]
fn new_vectors_depend_on_the_seed_alone() {
    let make =
        |seed| WordVectors::Random { width: 3 }.table(&tokenizer(), seed, &Cancel::default()).unwrap().0;
    assert_eq!(make(1), make(1));
    assert_ne!(make(1), make(2));
}

#[test]
fn reading_stops_when_it_is_asked_to() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vectors.txt");
    std::fs::write(&path, "gold 1 2\n").unwrap();
    let cancel = Cancel::default();
    cancel.cancel();
    let table = WordVectors::Pretrained(path).table(&tokenizer(), 1, &cancel);
    assert!(matches!(table, Err(Error::Core(cladist_core::Error::Cancelled))));
}
