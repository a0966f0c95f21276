use super::*;

fn bundle(folder: &Path) -> PathBuf {
    let target = folder.join("bundle");
    let writer = Writer::create(&target, "model").unwrap();
    writer.write("a.txt", b"alpha").unwrap();
    writer.write("b.bin", &[7; 1000]).unwrap();
    writer.finish().unwrap();
    target
}

#[test]
fn a_finished_bundle_verifies_and_leaves_no_draft() {
    let folder = tempfile::tempdir().unwrap();
    let target = bundle(folder.path());
    verify(&target, "model").unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    // Written again over the old one.
    bundle(folder.path());
    verify(&target, "model").unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn an_unfinished_bundle_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let writer = Writer::create(&folder.path().join("bundle"), "model").unwrap();
    writer.write("a.txt", b"alpha").unwrap();
    drop(writer);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn damage_is_refused_with_the_name_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let target = bundle(folder.path());
    let file = target.join("b.bin");
    let whole = fs::read(&file).unwrap();

    let mut flipped = whole.clone();
    flipped[500] ^= 1;
    fs::write(&file, &flipped).unwrap();
    let error = verify(&target, "model").unwrap_err();
    assert!(matches!(error, Error::Bundle(BundleError::Checksum(_))), "{error}");
    assert!(error.to_string().contains("b.bin"));

    fs::write(&file, &whole[..900]).unwrap();
    let error = verify(&target, "model").unwrap_err();
    assert!(error.to_string().contains("b.bin") && error.to_string().contains("900"), "{error}");

    fs::remove_file(&file).unwrap();
    assert!(matches!(verify(&target, "model").unwrap_err(), Error::Bundle(BundleError::Missing(_))));
}

#[test]
fn a_foreign_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(verify(folder.path(), "model"), Err(Error::Bundle(BundleError::Foreign { .. }))));
    let target = bundle(folder.path());
    assert!(matches!(verify(&target, "checkpoint"), Err(Error::Bundle(BundleError::Manifest { .. }))));
    fs::write(target.join(MANIFEST), "{}").unwrap();
    assert!(matches!(verify(&target, "model"), Err(Error::Bundle(BundleError::Manifest { .. }))));
}

#[test]
fn a_manifest_cannot_point_outside_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let target = bundle(folder.path());
    let text = fs::read_to_string(target.join(MANIFEST)).unwrap().replace("a.txt", "../a.txt");
    fs::write(target.join(MANIFEST), text).unwrap();
    assert!(matches!(verify(&target, "model"), Err(Error::Bundle(BundleError::Manifest { .. }))));
}

#[test]
fn a_file_that_the_manifest_does_not_list_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let target = bundle(folder.path());
    fs::write(target.join("more.json"), "{}").unwrap();
    assert!(matches!(verify(&target, "model"), Err(Error::Bundle(BundleError::Unlisted { .. }))));
}

#[test]
fn publishing_does_not_replace_and_leftovers_of_the_dead_go() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("run");
    let stale = folder.path().join(format!(".run.draft-{}", u32::MAX));
    fs::create_dir(&stale).unwrap();
    drop(Draft::create(&target).unwrap());
    assert!(stale.exists(), "too young to go");
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(4000);
    File::open(&stale).unwrap().set_modified(long_ago).unwrap();
    let draft = Draft::create(&target).unwrap();
    assert!(!Path::new("/proc/self").exists() || !stale.exists());
    draft.write("a", b"a").unwrap();
    fs::create_dir(&target).unwrap();
    fs::write(target.join("b"), b"b").unwrap();
    assert!(matches!(draft.publish(), Err(Error::Bundle(BundleError::Exists(_)))));
    assert_eq!(fs::read(target.join("b")).unwrap(), b"b");
    fs::remove_dir_all(&target).unwrap();
    let draft = Draft::create(&target).unwrap();
    draft.write("a", b"a").unwrap();
    draft.publish().unwrap();
    assert_eq!(fs::read(target.join("a")).unwrap(), b"a");
}

#[test]
fn a_file_is_replaced_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.json");
    write_atomically(&path, b"one").unwrap();
    write_atomically(&path, b"two").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"two");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}
