use super::*;
use crate::job::Cancel;

fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        fs::write(folder.path().join(name), content).unwrap();
    }
    folder
}

#[test]
fn the_file_of_names_wins_and_its_other_rows_are_counted() {
    let folder = folder(&[
        ("hierarchy.tsv", b"ROOT\ta\told\na\tb\tB\n"),
        ("labels.tsv", b"id\tname\nROOT\tAll\na\tnew\tA thing.\nz\tZ\n"),
    ]);
    let (hierarchy, names) = (folder.path().join("hierarchy.tsv"), folder.path().join("labels.tsv"));
    let loaded =
        read_vocabulary(Some(&hierarchy), Some(&names), &ReadOptions::default(), &Cancel::default()).unwrap();
    let label = |id: &str| loaded.taxonomy.label(loaded.taxonomy.get(id).unwrap());
    assert_eq!(
        (label("a").name.as_deref(), label("a").description.as_deref()),
        (Some("new"), Some("A thing."))
    );
    assert_eq!(label("b").name.as_deref(), Some("B"));
    let expected = [
        Warning::ExtraNames { count: 1, example: "z".into() },
        Warning::ReplacedNames { count: 1, example: "a".into() },
    ];
    assert_eq!(loaded.warnings, expected);
    let options = ReadOptions { names: Some(names), ..ReadOptions::default() };
    assert_eq!(read(&hierarchy, &options).unwrap(), loaded);
}

#[test]
fn names_alone_are_the_label_list() {
    let folder = folder(&[("labels.tsv", b"b\tB\na\tA\n")]);
    let loaded = read_vocabulary(
        None,
        Some(&folder.path().join("labels.tsv")),
        &ReadOptions::default(),
        &Cancel::default(),
    )
    .unwrap();
    assert_eq!(ids(&loaded.taxonomy, loaded.taxonomy.roots()), ["a", "b"]);
    assert!(read_vocabulary(None, None, &ReadOptions::default(), &Cancel::default()).is_err());
}

#[test]
fn problems_of_both_files_are_found_together_and_named() {
    let folder = folder(&[("hierarchy.tsv", b"ROOT\ta\nx\tb\n"), ("labels.tsv", b"a\tA\na\tA\n\tC\n")]);
    let (hierarchy, names) = (folder.path().join("hierarchy.tsv"), folder.path().join("labels.tsv"));
    let error = read_vocabulary(Some(&hierarchy), Some(&names), &ReadOptions::default(), &Cancel::default())
        .unwrap_err();
    assert_eq!(error.kind(), crate::ErrorKind::Data);
    let place = |name: &str| folder.path().join(name).display().to_string();
    let (hierarchy, names) = (place("hierarchy.tsv"), place("labels.tsv"));
    let expected = format!(
        "{hierarchy}:2: unknown parent `x` of `b`\n{names}:2: duplicate id `a`, first declared at {names}:1\n{names}:3: empty label id"
    );
    assert_eq!(error.to_string(), expected);
}

#[test]
fn packed_files_are_read_and_told_by_the_name_inside() {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, b"Root\ta\tb\n").unwrap();
    let folder = folder(&[("x.taxonomy.gz", &packed.finish().unwrap())]);
    let loaded = read(&folder.path().join("x.taxonomy.gz"), &ReadOptions::default()).unwrap();
    assert_eq!(ids(&loaded.taxonomy, loaded.taxonomy.roots()), ["a", "b"]);
}

#[test]
fn a_file_that_is_not_there_is_no_bad_data() {
    let error = read(&PathBuf::from("no/such/file.tsv"), &ReadOptions::default()).unwrap_err();
    assert_eq!(error.kind(), crate::ErrorKind::NotFound);
}

#[test]
fn the_format_asked_for_wins_over_the_ending() {
    let folder = folder(&[("x.json", b"a\tb\n")]);
    let options = ReadOptions { format: Some(Format::Tsv), ..ReadOptions::default() };
    assert_eq!(read(&folder.path().join("x.json"), &options).unwrap().taxonomy.n_labels(), 2);
}
