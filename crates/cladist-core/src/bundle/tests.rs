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
fn the_bundle_of_a_run_folder_is_found_and_one_that_cannot_be_seen_is_no_missing_one() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(find(folder.path()).unwrap(), folder.path());
    let inner = bundle(folder.path());
    assert_eq!(find(folder.path()).unwrap(), inner);
    assert_eq!(find(&inner).unwrap(), inner);
    // A name that the system refuses to look up stands for a folder without permission, which root may read.
    let error = find(&folder.path().join("x".repeat(5000))).unwrap_err();
    assert!(matches!(error, Error::Io { action: "read", .. }), "{error}");
    #[cfg(unix)]
    {
        use std::io::Write as _;
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&inner, fs::Permissions::from_mode(0o000)).unwrap();
        if fs::read(inner.join(MANIFEST)).is_ok() {
            // Past the harness, which keeps what a passing test prints.
            let _ = writeln!(std::io::stderr(), "skipped: permissions, which this user does not need");
        } else {
            let error = find(folder.path()).unwrap_err().to_string();
            assert!(error.contains(MANIFEST) && error.starts_with("cannot read"), "{error}");
        }
        fs::set_permissions(&inner, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

#[test]
fn a_folder_below_a_file_says_what_the_system_says() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = verify(&file.join("bundle"), "model").unwrap_err();
    assert!(matches!(error, Error::Io { action: "read", .. }), "{error}");
}

#[test]
fn a_pointer_of_git_lfs_is_named_as_such() {
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 1000\n";
    for name in ["b.bin", MANIFEST] {
        let folder = tempfile::tempdir().unwrap();
        let target = bundle(folder.path());
        fs::write(target.join(name), pointer).unwrap();
        let error = verify(&target, "model").unwrap_err();
        assert!(matches!(error, Error::Bundle(BundleError::LfsPointer(_))), "{error}");
        assert!(error.to_string().contains(name), "{error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.json");
    fs::write(&path, pointer).unwrap();
    let error = read_json::<u32>(&path).unwrap_err();
    assert!(matches!(error, Error::Bundle(BundleError::LfsPointer(_))), "{error}");
}
