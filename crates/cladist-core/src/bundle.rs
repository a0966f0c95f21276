//! Folders that are either whole or absent: written beside their place, checksummed, then moved in.
//!
//! Used for model bundles and checkpoints. `MANIFEST.json` lists every file with its size and BLAKE3 hash and is
//! written last; a folder without a valid manifest is not a bundle.

mod draft;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Component, Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

pub use draft::{Draft, DraftFile, write_atomically};

/// The name of the list of files.
pub const MANIFEST: &str = "MANIFEST.json";
const FORMAT: &str = "cladist";
const VERSION: u32 = 1;

/// The folder of a run folder that holds its bundle.
pub const BUNDLE: &str = "bundle";

/// How a file begins that Git LFS left in place of the real one.
const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";

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
        /// The error that says so, where there is one; `reason` has its words.
        source: Option<Cause>,
    },
    /// A folder that a later version of the program wrote.
    #[error("`{}` is of version {version}, which needs a newer cladist: this one reads up to {VERSION}", path.display())]
    Newer {
        /// The manifest.
        path: PathBuf,
        /// The version of its format.
        version: u32,
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
        /// The error that says so, where there is one; `reason` has its words.
        source: Option<Cause>,
    },
    /// A file that the manifest does not list.
    #[error("`{}` does not belong to the {kind}: {MANIFEST} does not list it", path.display())]
    Unlisted {
        /// The file.
        path: PathBuf,
        /// What the folder is.
        kind: String,
    },
    /// A file that Git LFS has not fetched.
    #[error("`{}` is a Git LFS pointer, not the file itself", .0.display())]
    LfsPointer(PathBuf),
    /// The place is taken.
    #[error("`{}` already exists and is not empty", .0.display())]
    Exists(PathBuf),
}

/// The error behind another.
type Cause = Box<dyn std::error::Error + Send + Sync>;

impl BundleError {
    /// A file whose bytes are as written but make no sense, and why.
    pub fn content(path: impl Into<PathBuf>, reason: impl Into<String>) -> Self {
        Self::Content { path: path.into(), reason: reason.into(), source: None }
    }

    /// The same by an error, which is kept.
    pub fn content_by(path: impl Into<PathBuf>, source: impl Into<Cause>) -> Self {
        let source = source.into();
        Self::Content { path: path.into(), reason: source.to_string(), source: Some(source) }
    }
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
        let folder = self.draft.folder();
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

/// The bundle of a run folder, or the folder itself if it has none. A bundle that cannot be looked at is an error, not
/// absent.
pub fn find(folder: &Path) -> Result<PathBuf> {
    let inner = folder.join(BUNDLE);
    let manifest = inner.join(MANIFEST);
    match fs::metadata(&manifest) {
        Ok(_) => Ok(inner),
        Err(source) if matches!(source.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(folder.to_owned())
        }
        Err(source) => Err(Error::io("read", &manifest)(source)),
    }
}

/// Reads a file of a bundle whole; a pointer that Git LFS left in its place is refused.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    let bytes = fs::read(path).map_err(Error::io("read", path))?;
    if is_lfs_pointer(&bytes) {
        return Err(BundleError::LfsPointer(path.to_owned()).into());
    }
    Ok(bytes)
}

/// Reads a JSON file of a bundle.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    serde_json::from_slice(&read(path)?).map_err(|error| BundleError::content_by(path, error).into())
}

/// Whether these are the first bytes of a file that Git LFS left in place of the real one.
#[must_use]
pub fn is_lfs_pointer(bytes: &[u8]) -> bool {
    bytes.starts_with(LFS_POINTER)
}

/// The error for a file whose bytes are as written but make no sense.
pub(crate) fn content(path: &Path, reason: impl Into<String>) -> Error {
    BundleError::content(path, reason).into()
}

/// Checks every file of a bundle against its manifest; afterwards its files can be trusted to be as written.
pub fn verify(folder: &Path, kind: &str) -> Result<()> {
    let path = folder.join(MANIFEST);
    let bytes = match read(&path) {
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound && folder.is_dir() => {
            return Err(BundleError::Foreign { path: folder.to_owned(), kind: kind.to_owned() }.into());
        }
        bytes => bytes?,
    };
    let refuse = |reason: String| {
        let (path, kind) = (path.clone(), kind.to_owned());
        BundleError::Manifest { path, kind, reason, source: None }
    };
    let manifest: Manifest = serde_json::from_slice(&bytes).map_err(|error| {
        let (path, kind, reason) = (path.clone(), kind.to_owned(), error.to_string());
        BundleError::Manifest { path, kind, reason, source: Some(error.into()) }
    })?;
    if manifest.format != FORMAT || manifest.kind != kind {
        return Err(refuse(format!("it describes a `{} {}`", manifest.format, manifest.kind)).into());
    }
    if manifest.version > VERSION {
        return Err(BundleError::Newer { path, version: manifest.version }.into());
    }
    for (name, expected) in &manifest.files {
        let plain = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        if !plain {
            return Err(refuse(format!("`{name}` is not the name of a file in the folder")).into());
        }
        let path = folder.join(name);
        let size = match fs::metadata(&path) {
            Ok(metadata) => metadata.len(),
            Err(source) if source.kind() == ErrorKind::NotFound => {
                return Err(BundleError::Missing(path).into());
            }
            Err(source) => return Err(Error::io("read", &path)(source)),
        };
        if size != expected.size {
            if begins_as_lfs_pointer(&path)? {
                return Err(BundleError::LfsPointer(path).into());
            }
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

fn begins_as_lfs_pointer(path: &Path) -> Result<bool> {
    let file = File::open(path).map_err(Error::io("read", path))?;
    let mut start = Vec::new();
    file.take(LFS_POINTER.len() as u64).read_to_end(&mut start).map_err(Error::io("read", path))?;
    Ok(is_lfs_pointer(&start))
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

#[cfg(test)]
mod tests;
