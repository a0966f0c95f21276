//! Checkpoints are whole, few, and survive what goes wrong beside them.

use cladist_core::bundle::MANIFEST;

use super::*;

fn save(checkpoints: &Checkpoints, step: u64) -> PathBuf {
    checkpoints
        .save(step, |writer| {
            writer.write("model.safetensors", &[7; 100])?;
            Ok(writer.write("state.json", step.to_string().as_bytes())?)
        })
        .unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn latest_step(checkpoints: &Checkpoints) -> Option<u64> {
    checkpoints.latest().unwrap().checkpoint.map(|found| found.step)
}

#[test]
fn the_newest_checkpoint_is_found_and_old_ones_go() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("run").join("checkpoints");
    let checkpoints = Checkpoints::open(&folder, 2).unwrap();
    assert_eq!(latest_step(&checkpoints), None);
    for step in [9, 10, 123, 100_000_000] {
        let path = save(&checkpoints, step);
        let found = checkpoints.latest().unwrap();
        assert_eq!(found.checkpoint, Some(Checkpoint { step, path }));
        assert!(found.passed_over.is_empty());
    }
    assert_eq!(names(&folder), ["step-00000123", "step-100000000"]);
    let state = fs::read_to_string(folder.join("step-100000000").join("state.json")).unwrap();
    assert_eq!(state, "100000000");
}

#[test]
fn a_damaged_or_unfinished_checkpoint_is_passed_over_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints::open(folder.path(), 9).unwrap();
    for step in [1, 2, 3] {
        save(&checkpoints, step);
    }
    fs::write(folder.path().join("step-00000003").join("model.safetensors"), [8; 100]).unwrap();
    fs::remove_file(folder.path().join("step-00000002").join(MANIFEST)).unwrap();
    let found = checkpoints.latest().unwrap();
    assert_eq!(found.checkpoint.unwrap().step, 1);
    let reasons: Vec<String> = found.passed_over.iter().map(ToString::to_string).collect();
    assert_eq!(reasons.len(), 2);
    assert!(reasons[0].contains("step-00000003") && reasons[0].contains("checksum"), "{reasons:?}");
    assert!(reasons[1].contains("step-00000002") && reasons[1].contains(MANIFEST), "{reasons:?}");
}

#[test]
fn a_damaged_later_checkpoint_does_not_push_out_the_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints::open(folder.path(), 1).unwrap();
    save(&checkpoints, 5);
    fs::create_dir(folder.path().join("step-00000200")).unwrap();
    assert_eq!(latest_step(&checkpoints), Some(5));
    save(&checkpoints, 6);
    assert_eq!(names(folder.path()), ["step-00000006"]);
}

#[test]
fn the_same_step_can_be_saved_again() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints::open(folder.path(), 1).unwrap();
    save(&checkpoints, 5);
    checkpoints.save(5, |writer| Ok(writer.write("state.json", b"again")?)).unwrap();
    let path = checkpoints.latest().unwrap().checkpoint.unwrap().path;
    assert_eq!(fs::read(path.join("state.json")).unwrap(), b"again");
    assert_eq!(names(folder.path()), ["step-00000005"]);
}

#[test]
fn a_failed_save_leaves_the_earlier_checkpoint_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints::open(folder.path(), 1).unwrap();
    save(&checkpoints, 1);
    let error = checkpoints
        .save(2, |writer| {
            writer.write("model.safetensors", &[7; 100])?;
            let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
            Err(CoreError::io("write", &writer.path("optimizer.safetensors"))(full).into())
        })
        .unwrap_err();
    assert_eq!(error.kind(), cladist_core::ErrorKind::Io);
    assert_eq!(names(folder.path()), ["step-00000001"]);
    assert_eq!(latest_step(&checkpoints), Some(1));
    // The same step that is there already: it must not be lost either.
    checkpoints.save(1, |_| Err(CoreError::Cancelled.into())).unwrap_err();
    assert_eq!(latest_step(&checkpoints), Some(1));
}

#[test]
fn a_folder_that_became_read_only_keeps_its_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints::open(folder.path(), 1).unwrap();
    save(&checkpoints, 1);
    let writable = fs::metadata(folder.path()).unwrap().permissions();
    let mut read_only = writable.clone();
    read_only.set_readonly(true);
    fs::set_permissions(folder.path(), read_only).unwrap();
    let all_powerful = fs::write(folder.path().join("x"), "").is_ok();
    let checked = check_writable(folder.path());
    let saved = checkpoints.save(2, |writer| Ok(writer.write("state.json", b"2")?));
    fs::set_permissions(folder.path(), writable).unwrap();
    if all_powerful {
        // Past the harness, which keeps what a passing test prints.
        let _ = writeln!(std::io::stderr(), "skipped: this user may write to read-only folders");
        return;
    }
    assert_eq!(checked.unwrap_err().kind(), cladist_core::ErrorKind::Io);
    assert_eq!(saved.unwrap_err().kind(), cladist_core::ErrorKind::Io);
    assert_eq!(latest_step(&checkpoints), Some(1));
}

#[test]
fn a_place_that_cannot_hold_checkpoints_is_refused_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("checkpoints");
    fs::write(&file, "a file").unwrap();
    let error = Checkpoints::open(&file, 1).unwrap_err();
    assert_eq!(error.kind(), cladist_core::ErrorKind::Io);
    assert!(error.to_string().contains("checkpoints"), "{error}");
    let error = Checkpoints::open(folder.path(), 0).unwrap_err();
    assert!(error.to_string().contains("`checkpoints.keep`"), "{error}");
    check_writable(folder.path()).unwrap();
    assert_eq!(names(folder.path()), ["checkpoints"], "the probe is gone");
}

#[test]
fn opening_tidies_up_after_a_killed_process() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints::open(folder.path(), 3).unwrap();
    for step in [1, 2] {
        save(&checkpoints, step);
    }
    let place = |name: &str| folder.path().join(name);
    // Killed while writing step 3, even by a process of our own number, as happens in containers …
    fs::create_dir(place(&format!(".step-00000003.draft-{}", std::process::id()))).unwrap();
    fs::write(place(&format!(".step-00000003.draft-{}", std::process::id())).join("half"), "ha").unwrap();
    // … between the two moves of saving step 2 again, while removing step 0, and what is none of ours.
    fs::rename(place("step-00000002"), place(".step-00000002.old-77")).unwrap();
    fs::create_dir(place(".step-00000000.gone")).unwrap();
    fs::write(place(".step-00000001.swp"), "mine").unwrap();
    fs::write(place("step-one"), "mine").unwrap();

    let checkpoints = Checkpoints::open(folder.path(), 3).unwrap();
    assert_eq!(names(folder.path()), [".step-00000001.swp", "step-00000001", "step-00000002", "step-one"]);
    assert_eq!(latest_step(&checkpoints), Some(2));
    save(&checkpoints, 3);
    assert_eq!(latest_step(&checkpoints), Some(3));
}

#[test]
fn looking_does_not_make_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let none = folder.path().join("none");
    assert!(latest(&none).unwrap().checkpoint.is_none());
    assert!(!none.exists());
}

#[test]
fn a_checkpoint_is_not_mistaken_for_a_model() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints::open(folder.path(), 1).unwrap();
    let path = save(&checkpoints, 1);
    bundle::verify(&path, KIND).unwrap();
    assert!(bundle::verify(&path, "model").is_err());
}
