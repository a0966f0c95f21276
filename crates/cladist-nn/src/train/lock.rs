//! One training at a time in a run folder.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::path::Path;

use cladist_core::Error as CoreError;

use crate::error::{Error, Result};

/// The name of the lock file in a run folder.
pub const LOCK: &str = ".lock";

/// The right to train in a folder, held until dropped.
///
/// The system holds the lock, not the file: when a process ends, however it ends, its lock is gone. The file stays,
/// because removing it would let two processes lock two files of the same name.
#[derive(Debug)]
pub struct RunLock {
    file: File,
    exclusive: bool,
}

impl RunLock {
    /// Takes the lock of an existing folder, or says which process holds it.
    pub fn take(folder: &Path) -> Result<Self> {
        let path = folder.join(LOCK);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(CoreError::io("lock", &path))?;
        let exclusive = match file.try_lock() {
            Ok(()) => true,
            Err(TryLockError::WouldBlock) => {
                return Err(Error::Busy { folder: folder.to_owned(), process: holder(&mut file) });
            }
            // Some network file systems know no locks; that is no reason not to train there.
            Err(TryLockError::Error(source)) if source.kind() == ErrorKind::Unsupported => false,
            Err(TryLockError::Error(source)) => return Err(CoreError::io("lock", &path)(source).into()),
        };
        file.set_len(0)
            .and_then(|()| writeln!(file, "{}", std::process::id()))
            .map_err(CoreError::io("write", &path))?;
        Ok(Self { file, exclusive })
    }

    /// Whether others are kept out: not on file systems without locks.
    #[must_use]
    pub fn is_exclusive(&self) -> bool {
        self.exclusive
    }
}

impl Drop for RunLock {
    fn drop(&mut self) {
        // While the lock is still held, so that it is not the next holder's number that goes.
        let _ = self.file.set_len(0);
    }
}

/// The process that wrote the lock file, where that can be read while it is locked.
fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(64).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_second_trainer_is_refused_with_folder_and_process() {
        let folder = tempfile::tempdir().unwrap();
        let lock = RunLock::take(folder.path()).unwrap();
        assert!(lock.is_exclusive());
        let error = RunLock::take(folder.path()).unwrap_err();
        assert_eq!(error.kind(), cladist_core::ErrorKind::Busy);
        let message = error.to_string();
        assert!(message.contains(&folder.path().display().to_string()), "{message}");
        assert!(message.contains(&format!(": process {}", std::process::id())), "{message}");
        drop(lock);
        RunLock::take(folder.path()).unwrap();
    }

    #[test]
    fn the_file_of_a_dead_process_does_not_block() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(LOCK), "4294967295 and more than a number\n").unwrap();
        let lock = RunLock::take(folder.path()).unwrap();
        let text = std::fs::read_to_string(folder.path().join(LOCK)).unwrap();
        assert_eq!(text, format!("{}\n", std::process::id()));
        drop(lock);
        assert_eq!(std::fs::read(folder.path().join(LOCK)).unwrap(), b"");
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error_of_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let error = RunLock::take(&folder.path().join("none")).unwrap_err();
        assert_eq!(error.kind(), cladist_core::ErrorKind::Io);
    }

    const FOLDER: &str = "CLADIST_TEST_LOCK_FOLDER";

    /// The other process of the test below; alone it has nothing to do.
    #[test]
    fn hold_the_lock_for_another_test() {
        let Some(folder) = std::env::var_os(FOLDER) else { return };
        let _lock = RunLock::take(Path::new(&folder)).unwrap();
        println!("\nlocked");
        // Until the other side kills this process or goes away.
        let _ = std::io::stdin().read(&mut [0]);
    }

    #[test]
    fn a_killed_process_leaves_the_folder_free() {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "train::lock::tests::hold_the_lock_for_another_test", "--nocapture"])
            .env(FOLDER, folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap() == "locked"));
        let refused = RunLock::take(folder.path());
        child.kill().unwrap();
        child.wait().unwrap();
        let Err(Error::Busy { process, .. }) = refused else { panic!("{refused:?}") };
        assert_eq!(process, Some(child.id()));
        RunLock::take(folder.path()).unwrap();
    }
}
