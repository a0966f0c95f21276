use super::*;

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn a_file_is_replaced_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.json");
    write_atomically(&path, b"one").unwrap();
    write_atomically(&path, b"two").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"two");
    assert_eq!(names(folder.path()), ["x.json"]);
}

#[test]
fn a_folder_is_no_place_for_a_file_and_a_file_none_for_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let error = DraftFile::create(folder.path()).unwrap_err();
    assert!(matches!(error, Error::Io { action: "write", .. }), "{error}");
    let file = folder.path().join("file");
    fs::write(&file, "kept").unwrap();
    assert!(Draft::create(&file).is_err());
    assert_eq!(fs::read(&file).unwrap(), b"kept");
    assert_eq!(names(folder.path()), ["file"]);
}

#[test]
fn publishing_does_not_replace_and_leftovers_of_the_dead_go() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("run");
    let stale = folder.path().join(format!(".run.draft-{}", u32::MAX));
    fs::create_dir(&stale).unwrap();
    drop(Draft::create(&target).unwrap());
    assert!(stale.exists(), "too young to go");
    let long_ago = SystemTime::now() - std::time::Duration::from_secs(4000);
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
fn drafts_of_files_that_the_dead_left_go_too() {
    let folder = tempfile::tempdir().unwrap();
    let stale = folder.path().join(format!(".x.json.draft-{}", u32::MAX));
    fs::write(&stale, "half").unwrap();
    let long_ago = SystemTime::now() - std::time::Duration::from_secs(4000);
    File::options().write(true).open(&stale).unwrap().set_modified(long_ago).unwrap();
    write_atomically(&folder.path().join("x.json"), b"whole").unwrap();
    assert!(!Path::new("/proc/self").exists() || !stale.exists());
}

#[test]
fn two_threads_write_the_same_file_and_one_of_them_wins() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.json");
    let (mut first, mut second) = (DraftFile::create(&path).unwrap(), DraftFile::create(&path).unwrap());
    first.write_all(b"first").unwrap();
    second.write_all(b"second").unwrap();
    first.commit().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"first");
    second.commit().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"second");
    assert_eq!(names(folder.path()), ["x.json"]);
}

#[test]
fn a_draft_of_an_earlier_process_with_our_number_is_not_in_the_way() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("run");
    let left = [
        folder.path().join(format!(".run.draft-{}", std::process::id())),
        folder.path().join(format!(".run.draft-{}-1f-0", std::process::id())),
    ];
    let long_ago = SystemTime::now() - std::time::Duration::from_secs(4000);
    for path in &left {
        fs::create_dir(path).unwrap();
        File::open(path).unwrap().set_modified(long_ago).unwrap();
    }
    let ours = Draft::create(&target).unwrap();
    File::open(ours.folder()).unwrap().set_modified(long_ago).unwrap();
    let other = Draft::create(&target).unwrap();
    assert!(left.iter().all(|path| !path.exists()));
    assert!(ours.folder().exists(), "a thread is at work on it");
    drop((ours, other));
    assert_eq!(names(folder.path()), [""; 0]);
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::{FileTypeExt, symlink};
    use std::process::Command;

    use super::*;

    #[test]
    fn a_pipe_is_written_through_and_stays_a_pipe() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read_to_string(pipe).unwrap()
        });
        let written = write_atomically(&pipe, b"through");
        let is_pipe = fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo();
        if !is_pipe {
            // The reader waits for a writer that never came; the test fails without it.
            panic!("the pipe was replaced");
        }
        written.unwrap();
        assert_eq!(reader.join().unwrap(), "through");
        assert_eq!(names(folder.path()), ["pipe"]);
    }

    #[test]
    fn what_is_no_regular_file_is_a_stream() {
        assert_eq!(Place::of(Path::new("/dev/null")).unwrap(), Place::Stream("/dev/null".into()));
        if Path::new("/proc/self/fd/1").exists() {
            assert!(matches!(Place::of(Path::new("/proc/self/fd/1")).unwrap(), Place::Stream(_)));
        }
    }

    #[test]
    fn a_link_stays_and_its_file_is_replaced_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let (inner, link) = (folder.path().join("inner"), folder.path().join("link"));
        fs::create_dir(&inner).unwrap();
        fs::write(inner.join("file"), "old").unwrap();
        symlink("inner/file", &link).unwrap();
        let mut draft = DraftFile::create(&link).unwrap();
        draft.write_all(b"new").unwrap();
        draft.flush().unwrap();
        assert_eq!(fs::read(inner.join("file")).unwrap(), b"old", "before it is whole");
        draft.commit().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(inner.join("file")).unwrap(), b"new");
        assert_eq!(
            (names(folder.path()), names(&inner)),
            (vec!["inner".into(), "link".into()], vec!["file".into()])
        );
    }

    #[test]
    fn a_link_to_nothing_makes_its_file_and_one_to_itself_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (link, circle) = (folder.path().join("link"), folder.path().join("circle"));
        symlink("not-yet", &link).unwrap();
        write_atomically(&link, b"made").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(folder.path().join("not-yet")).unwrap(), b"made");
        symlink("circle", &circle).unwrap();
        assert!(write_atomically(&circle, b"never").is_err());
        assert!(fs::symlink_metadata(&circle).unwrap().is_symlink());
    }

    #[test]
    fn a_link_to_a_folder_stays_and_the_folder_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::create_dir(&real).unwrap();
        fs::write(real.join("old"), "").unwrap();
        symlink(&real, &link).unwrap();
        let draft = Draft::create(&link).unwrap();
        draft.write("new", b"").unwrap();
        draft.commit().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(
            (names(&real), names(folder.path())),
            (vec!["new".into()], vec!["link".into(), "real".into()])
        );
    }

    /// Runs itself again in a process that may write files of four kilobytes at most.
    #[test]
    fn a_draft_that_fails_in_the_middle_leaves_nothing() {
        const FOLDER: &str = "CLADIST_TEST_DRAFT_FOLDER";
        if let Some(folder) = std::env::var_os(FOLDER) {
            let folder = Path::new(&folder);
            let error = write_atomically(&folder.join("file"), &[7; 1 << 16]).unwrap_err();
            assert!(matches!(error, Error::Io { action: "write", .. }), "{error}");
            let draft = Draft::create(&folder.join("folder")).unwrap();
            draft.write("small", b"fits").unwrap();
            draft.write("large", &[7; 1 << 16]).unwrap_err();
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let script = "trap '' XFSZ; ulimit -f 8; exec \"$0\" --exact --quiet \
                      bundle::draft::tests::unix::a_draft_that_fails_in_the_middle_leaves_nothing";
        let child = Command::new("sh")
            .args(["-c", script])
            .arg(std::env::current_exe().unwrap())
            .env(FOLDER, folder.path())
            .output()
            .unwrap();
        let report = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success() && report.contains("1 passed"), "{report}");
        assert_eq!(names(folder.path()), [] as [String; 0]);
    }
}
