//! Files and folders that take their place whole: written under a hidden name beside it, then moved in.
//!
//! Only regular files, folders and free places are replaced. A link stays, and what it points to is replaced; a
//! device, a pipe or an open file of a process is written through.

use std::borrow::Cow;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use super::BundleError;
use crate::error::{Error, Result};

/// Links that are followed before they count as a cycle, as on Linux.
const MAX_LINKS: usize = 40;

/// What stands at a path, links followed.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    /// Nothing yet.
    Free(PathBuf),
    /// A regular file.
    File(PathBuf),
    /// A folder.
    Folder(PathBuf),
    /// A device, a pipe, or an open file of a process: nothing that another file can stand for.
    Stream(PathBuf),
}

impl Place {
    fn of(path: &Path) -> io::Result<Self> {
        let mut place = path.to_owned();
        for _ in 0..MAX_LINKS {
            // Links such as `/dev/stdout` lead here; what they stand for is open, so that its name is not what counts.
            if place.starts_with("/proc") {
                return Ok(Self::Stream(place));
            }
            let kind = match fs::symlink_metadata(&place) {
                Ok(metadata) => metadata.file_type(),
                Err(source) if source.kind() == ErrorKind::NotFound => return Ok(Self::Free(place)),
                Err(source) => return Err(source),
            };
            if kind.is_symlink() {
                let link = fs::read_link(&place)?;
                place = parent_of(&place).join(link);
            } else if kind.is_file() {
                return Ok(Self::File(place));
            } else if kind.is_dir() {
                return Ok(Self::Folder(place));
            } else {
                return Ok(Self::Stream(place));
            }
        }
        Err(io::Error::new(ErrorKind::InvalidInput, "too many links"))
    }
}

/// A folder being written beside its place. Dropped before [`Draft::commit`], it leaves nothing.
#[derive(Debug)]
pub struct Draft {
    target: PathBuf,
    folder: PathBuf,
}

impl Draft {
    /// Starts a folder that will stand at `target`, replacing what is there only when it is committed. A link at
    /// `target` stays and its folder is replaced; anything else but a folder is refused.
    pub fn create(target: &Path) -> Result<Self> {
        let target = match Place::of(target).map_err(Error::io("create", target))? {
            Place::Free(place) | Place::Folder(place) => place,
            Place::File(place) | Place::Stream(place) => {
                return Err(Error::io("create", &place)(ErrorKind::NotADirectory.into()));
            }
        };
        let parent = parent_of(&target);
        fs::create_dir_all(parent).map_err(Error::io("create", parent))?;
        remove_stale(&target);
        let folder = sibling(&target, "draft");
        fs::create_dir(&folder).map_err(Error::io("create", &folder))?;
        Ok(Self { target, folder })
    }

    /// The hidden folder.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where a file of the folder is to be written.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes a whole file.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.path(name);
        fs::write(&path, bytes).map_err(Error::io("write", &path))
    }

    /// Moves the folder into a place that is free or an empty folder; refused if another process was quicker.
    pub fn publish(self) -> Result<()> {
        sync_dir(&self.folder);
        if let Err(source) = fs::rename(&self.folder, &self.target) {
            if fs::symlink_metadata(&self.target).is_ok() {
                return Err(BundleError::Exists(self.target.clone()).into());
            }
            return Err(Error::io("create", &self.target)(source));
        }
        sync_dir(parent_of(&self.target));
        Ok(())
    }

    /// Moves the folder into place, replacing what is there.
    pub fn commit(self) -> Result<()> {
        sync_dir(&self.folder);
        let old = sibling(&self.target, "old");
        let replaced = fs::symlink_metadata(&self.target).is_ok();
        if replaced {
            fs::rename(&self.target, &old).map_err(Error::io("replace", &self.target))?;
        }
        if let Err(source) = fs::rename(&self.folder, &self.target) {
            if replaced {
                // Put the old one back: better than none.
                let _ = fs::rename(&old, &self.target);
            }
            return Err(Error::io("create", &self.target)(source));
        }
        sync_dir(parent_of(&self.target));
        if replaced {
            let _ = fs::remove_dir_all(&old);
        }
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A file being written under a hidden name beside its place. Dropped before [`DraftFile::commit`], it leaves nothing.
///
/// At a link, what it points to is replaced. Devices, pipes and open files of a process (`/dev/stdout`) are written
/// through: what was written before a failure stays written there.
#[derive(Debug)]
pub struct DraftFile {
    target: PathBuf,
    /// The hidden name; none if the target is written through.
    draft: Option<PathBuf>,
    file: BufWriter<File>,
}

impl DraftFile {
    /// Starts a file that will stand at `target`.
    pub fn create(target: &Path) -> Result<Self> {
        let refuse = Error::io("write", target);
        let started = Place::of(target).and_then(|place| match place {
            Place::Free(target) | Place::File(target) => {
                remove_stale(&target);
                let draft = sibling(&target, "draft");
                let file = File::create(&draft)?;
                Ok((target, Some(draft), file))
            }
            Place::Folder(_) => Err(ErrorKind::IsADirectory.into()),
            // At the end of what an open file holds already: it may be shared.
            Place::Stream(target) => {
                let file = OpenOptions::new().append(true).open(&target)?;
                Ok((target, None, file))
            }
        });
        let (target, draft, file) = started.map_err(refuse)?;
        Ok(Self { target, draft, file: BufWriter::new(file) })
    }

    /// Moves the file into place, whole.
    pub fn commit(mut self) -> Result<()> {
        let written = self.file.flush().and_then(|()| match &self.draft {
            Some(draft) => {
                self.file.get_ref().sync_all()?;
                fs::rename(draft, &self.target)
            }
            None => Ok(()),
        });
        written.map_err(Error::io("write", &self.target))
    }
}

impl Write for DraftFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for DraftFile {
    fn drop(&mut self) {
        // Gone already if it was committed.
        if let Some(draft) = &self.draft {
            let _ = fs::remove_file(draft);
        }
    }
}

/// Writes a file so that it is either the old or the new one, never half of it. Links and what is no regular file are
/// treated as by [`DraftFile`].
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut draft = DraftFile::create(path)?;
    draft.write_all(bytes).map_err(Error::io("write", path))?;
    draft.commit()
}

fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Removes drafts that were left behind an hour ago or more by processes which are no more, where the system tells.
/// The hour is for folders that several machines share, where a process may live elsewhere.
fn remove_stale(target: &Path) {
    let prefix = format!(".{}.draft-", name_of(target));
    let Ok(entries) = fs::read_dir(parent_of(target)) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(rest) = name.strip_prefix(&prefix) else { continue };
        let mut numbers = rest.split('-');
        let Some(process) = numbers.next().and_then(|id| id.parse::<u32>().ok()) else { continue };
        let Ok(metadata) = entry.metadata() else { continue };
        let age = metadata.modified().ok().and_then(|time| time.elapsed().ok());
        let old = age.is_some_and(|age| age.as_secs() >= 3600);
        if old && is_gone(process, numbers.next()) {
            let path = entry.path();
            let _ = if metadata.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        }
    }
}

/// Whether the process that started a draft is no more. Numbers of processes come again, in containers at every start,
/// so a draft with our number is ours only if it also has our time.
fn is_gone(process: u32, started: Option<&str>) -> bool {
    if process == std::process::id() {
        return started != Some(STARTED.as_str());
    }
    Path::new("/proc/self").exists() && !Path::new("/proc").join(process.to_string()).exists()
}

fn name_of(path: &Path) -> Cow<'_, str> {
    path.file_name().map_or_else(|| "bundle".into(), |name| name.to_string_lossy())
}

/// When this process named its first draft.
static STARTED: LazyLock<String> = LazyLock::new(|| {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{:x}", time.as_nanos())
});

/// A hidden name beside `path` that no other process and no other thread uses.
fn sibling(path: &Path, what: &str) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let process = std::process::id();
    parent_of(path).join(format!(".{}.{what}-{process}-{}-{count}", name_of(path), STARTED.as_str()))
}

fn sync_dir(path: &Path) {
    // Some file systems cannot sync a folder; the rename is then as durable as they make it.
    let _ = File::open(path).and_then(|folder| folder.sync_all());
}

#[cfg(test)]
mod tests;
