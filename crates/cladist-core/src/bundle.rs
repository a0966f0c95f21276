//! Folders that are either whole or absent: written beside their place, checksummed, then moved in.
//!
//! Used for model bundles and checkpoints. `MANIFEST.json` lists every file with its size and BLAKE3 hash and is
//! written last; a folder without a valid manifest is not a bundle.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Read, Write};
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The name of the list of files.
pub const MANIFEST: &str = "MANIFEST.json";
const FORMAT: &str = "cladist";
const VERSION: u32 = 1;

/// Why a folder cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BundleError {
    /// No manifest: not ours, or never finished.
    #[error("`{}` is not a cladist {kind}: it has no {MANIFEST}", path.display())]
    Foreign {
        /// The folder.
        path: PathBuf,
        /// What was expected.
        kind: String,
    },
    /// A manifest that does not parse or speaks of something else.
    #[error("`{}` is not the manifest of a cladist {kind}: {reason}", path.display())]
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// What was expected.
        kind: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A file of the manifest is gone.
    #[error("`{}` is missing", .0.display())]
    Missing(PathBuf),
    /// A file is shorter or longer than the manifest says.
    #[error("`{}` is damaged: {actual} bytes instead of {expected}", path.display())]
    Size {
        /// The file.
        path: PathBuf,
        /// Bytes by the manifest.
        expected: u64,
        /// Bytes on disk.
        actual: u64,
    },
    /// A file's content changed.
    #[error("`{}` is damaged: its checksum does not match {MANIFEST}", .0.display())]
    Checksum(PathBuf),
    /// A file whose bytes are as written but that this program does not understand.
    #[error("`{}` cannot be used: {reason}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A file that the manifest does not list.
    #[error("`{}` does not belong to the {kind}: {MANIFEST} does not list it", path.display())]
    Unlisted {
        /// The file.
        path: PathBuf,
        /// What the folder is.
        kind: String,
    },
    /// The place is taken.
    #[error("`{}` already exists and is not empty", .0.display())]
    Exists(PathBuf),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    size: u64,
    blake3: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Manifest {
    format: String,
    version: u32,
    kind: String,
    files: BTreeMap<String, Entry>,
}

/// A folder being written beside its place. Dropped before [`Draft::commit`], it leaves nothing.
#[derive(Debug)]
pub struct Draft {
    target: PathBuf,
    folder: PathBuf,
}

impl Draft {
    /// Starts a folder that will stand at `target`, replacing what is there only when it is committed.
    pub fn create(target: &Path) -> Result<Self> {
        let parent = parent_of(target);
        fs::create_dir_all(parent).map_err(Error::io("create", parent))?;
        remove_stale(target);
        let folder = sibling(target, "draft");
        fs::create_dir(&folder).map_err(Error::io("create", &folder))?;
        Ok(Self { target: target.to_owned(), folder })
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

/// A bundle being written: a [`Draft`] that ends with a manifest.
#[derive(Debug)]
pub struct Writer {
    draft: Draft,
    kind: String,
}

impl Writer {
    /// Starts a bundle that will stand at `target`, replacing what is there only when it is finished.
    pub fn create(target: &Path, kind: &str) -> Result<Self> {
        Ok(Self { draft: Draft::create(target)?, kind: kind.to_owned() })
    }

    /// Where a file of the bundle is to be written.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.draft.path(name)
    }

    /// Writes a whole file.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.draft.write(name, bytes)
    }

    /// Copies a whole bundle into a folder of this one.
    pub fn include(&self, name: &str, bundle: &Path) -> Result<()> {
        let folder = self.path(name);
        fs::create_dir(&folder).map_err(Error::io("create", &folder))?;
        let mut open = vec![(bundle.to_owned(), folder)];
        while let Some((from, to)) = open.pop() {
            for entry in fs::read_dir(&from).map_err(Error::io("read", &from))? {
                let source = entry.map_err(Error::io("read", &from))?.path();
                let target = to.join(source.file_name().unwrap_or_default());
                if source.is_dir() {
                    fs::create_dir(&target).map_err(Error::io("create", &target))?;
                    open.push((source, target));
                } else {
                    fs::copy(&source, &target).map_err(Error::io("copy", &source))?;
                    File::open(&target)
                        .and_then(|file| file.sync_all())
                        .map_err(Error::io("sync", &target))?;
                }
            }
        }
        Ok(())
    }

    /// Checksums and syncs every file, writes the manifest and moves the folder into place.
    pub fn finish(self) -> Result<()> {
        let mut files = BTreeMap::new();
        let folder = &self.draft.folder;
        for entry in fs::read_dir(folder).map_err(Error::io("read", folder))? {
            let mut path = entry.map_err(Error::io("read", folder))?.path();
            let mut name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            // A bundle in the bundle answers for its own files.
            if path.is_dir() {
                path = path.join(MANIFEST);
                name = within(&name);
            }
            File::open(&path).and_then(|file| file.sync_all()).map_err(Error::io("sync", &path))?;
            files.insert(name, fingerprint(&path)?);
        }
        let names: Vec<String> = files.keys().cloned().collect();
        let manifest = Manifest { format: FORMAT.to_owned(), version: VERSION, kind: self.kind, files };
        let path = self.draft.path(MANIFEST);
        serde_json::to_vec_pretty(&manifest)
            .map_err(std::io::Error::from)
            .and_then(|json| fs::write(&path, json))
            .and_then(|()| File::open(&path)?.sync_all())
            .map_err(Error::io("write", &path))?;
        // Whoever may read the manifest may read the rest, whatever wrote it.
        let permissions = fs::metadata(&path).map_err(Error::io("read", &path))?.permissions();
        for name in names {
            let path = self.draft.path(&name);
            fs::set_permissions(&path, permissions.clone()).map_err(Error::io("write", &path))?;
        }
        self.draft.commit()
    }
}

/// The manifest of a bundle in a bundle, as the outer manifest names it.
fn within(folder: &str) -> String {
    format!("{folder}/{MANIFEST}")
}

/// Checks every file of a bundle against its manifest; afterwards its files can be trusted to be as written.
pub fn verify(folder: &Path, kind: &str) -> Result<()> {
    let path = folder.join(MANIFEST);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(source) if source.kind() == std::io::ErrorKind::NotFound && folder.is_dir() => {
            return Err(BundleError::Foreign { path: folder.to_owned(), kind: kind.to_owned() }.into());
        }
        Err(source) => return Err(Error::io("read", &path)(source)),
    };
    let refuse = |reason: String| BundleError::Manifest { path: path.clone(), kind: kind.to_owned(), reason };
    let manifest: Manifest = serde_json::from_slice(&bytes).map_err(|error| refuse(error.to_string()))?;
    if manifest.format != FORMAT || manifest.kind != kind {
        return Err(refuse(format!("it describes a `{} {}`", manifest.format, manifest.kind)).into());
    }
    if manifest.version > VERSION {
        return Err(refuse(format!("version {} needs a newer cladist", manifest.version)).into());
    }
    for (name, expected) in &manifest.files {
        let plain = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        if !plain {
            return Err(refuse(format!("`{name}` is not the name of a file in the folder")).into());
        }
        let path = folder.join(name);
        let size = match fs::metadata(&path) {
            Ok(metadata) => metadata.len(),
            Err(source) if source.kind() == std::io::ErrorKind::NotFound => {
                return Err(BundleError::Missing(path).into());
            }
            Err(source) => return Err(Error::io("read", &path)(source)),
        };
        if size != expected.size {
            return Err(BundleError::Size { path, expected: expected.size, actual: size }.into());
        }
        if fingerprint(&path)?.blake3 != expected.blake3 {
            return Err(BundleError::Checksum(path).into());
        }
    }
    for entry in fs::read_dir(folder).map_err(Error::io("read", folder))? {
        let path = entry.map_err(Error::io("read", folder))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let listed = if path.is_dir() {
            manifest.files.contains_key(&within(&name))
        } else {
            name == MANIFEST || manifest.files.contains_key(&*name)
        };
        if !listed {
            return Err(BundleError::Unlisted { path, kind: kind.to_owned() }.into());
        }
    }
    Ok(())
}

/// A file being written under a hidden name beside its place. Dropped before [`DraftFile::commit`], it leaves nothing.
#[derive(Debug)]
pub struct DraftFile {
    target: PathBuf,
    draft: PathBuf,
    file: BufWriter<File>,
}

impl DraftFile {
    /// Starts a file that will stand at `target`.
    pub fn create(target: &Path) -> Result<Self> {
        let draft = sibling(target, "draft");
        let file = File::create(&draft).map_err(Error::io("write", target))?;
        Ok(Self { target: target.to_owned(), draft, file: BufWriter::new(file) })
    }

    /// Moves the file into place, whole.
    pub fn commit(mut self) -> Result<()> {
        self.file
            .flush()
            .and_then(|()| self.file.get_ref().sync_all())
            .and_then(|()| fs::rename(&self.draft, &self.target))
            .map_err(Error::io("write", &self.target))
    }
}

impl Write for DraftFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

impl Drop for DraftFile {
    fn drop(&mut self) {
        // Gone already if it was committed.
        let _ = fs::remove_file(&self.draft);
    }
}

/// Writes a file so that it is either the old or the new one, never half of it.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut draft = DraftFile::create(path)?;
    draft.write_all(bytes).map_err(Error::io("write", path))?;
    draft.commit()
}

fn fingerprint(path: &Path) -> Result<Entry> {
    let mut file = File::open(path).map_err(Error::io("read", path))?;
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; 1 << 20];
    let mut size = 0;
    loop {
        let n = file.read(&mut buffer).map_err(Error::io("read", path))?;
        if n == 0 {
            break;
        }
        size += n as u64;
        hasher.update(&buffer[..n]);
    }
    Ok(Entry { size, blake3: hasher.finalize().to_hex().to_string() })
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
        let Some(process) = name.strip_prefix(&prefix).filter(|id| id.parse::<u32>().is_ok()) else {
            continue;
        };
        let age = entry.metadata().and_then(|data| data.modified()).ok().and_then(|time| time.elapsed().ok());
        let old = age.is_some_and(|age| age.as_secs() >= 3600);
        if old && Path::new("/proc/self").exists() && !Path::new("/proc").join(process).exists() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn name_of(path: &Path) -> std::borrow::Cow<'_, str> {
    path.file_name().map_or_else(|| "bundle".into(), |name| name.to_string_lossy())
}

/// A hidden name beside `path` that no other process uses.
fn sibling(path: &Path, what: &str) -> PathBuf {
    parent_of(path).join(format!(".{}.{what}-{}", name_of(path), std::process::id()))
}

fn sync_dir(path: &Path) {
    // Some file systems cannot sync a folder; the rename is then as durable as they make it.
    let _ = File::open(path).and_then(|folder| folder.sync_all());
}

#[cfg(test)]
mod tests;
