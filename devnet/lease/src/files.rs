//! Files that runners leave behind: logs, artifacts, caches.
//!
//! ```text
//! logs/<run>/<job>/<attempt>.log
//! artifacts/<run>/<job>/<attempt>/<name>
//! caches/<hash of the key>
//! tmp/                                  uploads under way; cleared at the start
//! ```
//!
//! Every upload has a size limit and gets its name only when it is complete and synced
//! ([`upload`]). Names given by runners cannot leave their attempt's folder ([`ArtifactName`]); ids
//! of runs and jobs are made by the server. Logs are written, not synced.

mod upload;

pub use upload::Ready;

use cowboy_engine::primitives::keccak256;
use cowboy_host::files::if_there;
use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    str::FromStr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};
use tokio::{fs::File, sync::watch, task::JoinError};
use upload::Reservations;

const CACHE_DOMAIN: &[u8] = b"cowboy/lease/cache/v1";
/// Longest name of an artifact, and longest part between slashes, in bytes.
const MAX_NAME: usize = 512;
const MAX_PART: usize = 200;

/// Limits of the stored files, in bytes unless stated otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileLimits {
    pub log: u64,
    pub artifact: u64,
    /// Size of all artifacts of an attempt together.
    pub artifacts: u64,
    pub artifact_count: usize,
    pub cache: u64,
    /// Size of all caches together; the least recently used ones are evicted.
    pub caches: u64,
}

impl Default for FileLimits {
    fn default() -> Self {
        Self {
            log: 64 << 20,
            artifact: 256 << 20,
            artifacts: 1 << 30,
            artifact_count: 1_000,
            cache: 2 << 30,
            caches: 8 << 30,
        }
    }
}

/// An attempt of a job.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AttemptPlace {
    pub run: String,
    pub job: String,
    /// Number of the attempt, from 1.
    pub attempt: u32,
}

/// The reason why a file is not stored or not found.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("longer than {limit} bytes")]
    TooLarge { limit: u64 },
    #[error("there is no room: {limit} is the limit")]
    Full {
        /// In bytes or in files.
        limit: u64,
    },
    #[error("the log has {length} bytes")]
    Gap { length: u64 },
    #[error("another artifact has a part of this name")]
    Clash,
    #[error("there is no such file")]
    NotFound,
    #[error("the body ended early")]
    Broken,
    #[error("files: {0}")]
    Io(#[from] io::Error),
}

impl From<JoinError> for FileError {
    fn from(error: JoinError) -> Self {
        Self::Io(error.into())
    }
}

/// The name of an artifact: a relative path that stays below its folder on every system.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ArtifactName(String);

/// The reason why an artifact's name is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("a name has from 1 to {MAX_NAME} bytes, its parts up to {MAX_PART}")]
    Length,
    #[error("a name is a relative path without empty parts, `.` and `..`")]
    Part,
    #[error("a name has no control characters and no backslash")]
    Character,
}

impl FromStr for ArtifactName {
    type Err = NameError;

    fn from_str(name: &str) -> Result<Self, NameError> {
        if name.is_empty() || name.len() > MAX_NAME {
            return Err(NameError::Length);
        }
        if name.chars().any(|c| c.is_control() || c == '\\') {
            return Err(NameError::Character);
        }
        for part in name.split('/') {
            if matches!(part, "" | "." | "..") {
                return Err(NameError::Part);
            }
            if part.len() > MAX_PART {
                return Err(NameError::Length);
            }
        }
        Ok(Self(name.to_owned()))
    }
}

impl ArtifactName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The files of one server. Clones share their state.
#[derive(Debug, Clone)]
pub struct Files(Arc<FilesShared>);

#[derive(Debug)]
struct FilesShared {
    folder: PathBuf,
    limits: FileLimits,
    /// Held while a log grows, so that its measured length stays right.
    logging: Mutex<()>,
    /// Artifacts that are complete but not yet named.
    reserved: Mutex<Reservations>,
    evicting: Mutex<()>,
    watched: Mutex<BTreeMap<AttemptPlace, watch::Sender<()>>>,
}

impl Files {
    /// Opens the files in `folder`, which only this server may use.
    pub fn open(folder: &Path, limits: FileLimits) -> io::Result<Self> {
        let temporary = folder.join("tmp");
        if_there(fs::remove_dir_all(&temporary))?;
        for name in ["logs", "artifacts", "caches", "tmp"] {
            make_folder(&folder.join(name))?;
        }
        let folder = folder.to_owned();
        Ok(Self(Arc::new(FilesShared {
            folder,
            limits,
            logging: Mutex::default(),
            reserved: Mutex::default(),
            evicting: Mutex::default(),
            watched: Mutex::default(),
        })))
    }

    pub fn limits(&self) -> &FileLimits {
        &self.0.limits
    }

    fn log_path(&self, at: &AttemptPlace) -> PathBuf {
        let mut path = self.0.folder.join("logs");
        path.extend([&at.run, &at.job, &format!("{}.log", at.attempt)]);
        path
    }

    fn artifacts_path(&self, at: &AttemptPlace) -> PathBuf {
        let mut path = self.0.folder.join("artifacts");
        path.extend([&at.run, &at.job, &at.attempt.to_string()]);
        path
    }

    fn cache_path(&self, key: &str) -> PathBuf {
        let hash = keccak256(&[CACHE_DOMAIN, key.as_bytes()]);
        self.0.folder.join("caches").join(hex::encode(hash.0))
    }

    /// Appends to a log the part of `bytes`, which start at `offset`, that it does not have yet.
    /// Returns the log's new length in bytes. A log that gets too long is kept up to its limit.
    pub fn append_log(
        &self,
        at: &AttemptPlace,
        offset: u64,
        bytes: &[u8],
    ) -> Result<u64, FileError> {
        let path = self.log_path(at);
        let length = {
            let _logging = lock(&self.0.logging);
            make_parent(&path)?;
            let mut options = fs::OpenOptions::new();
            let mut file = options.append(true).create(true).mode(0o600).open(&path)?;
            let length = file.metadata()?.len();
            let known = length.checked_sub(offset).ok_or(FileError::Gap { length })?;
            let fresh = usize::try_from(known).ok().and_then(|known| bytes.get(known..));
            let fresh = fresh.unwrap_or_default();
            let limit = self.0.limits.log;
            let room = usize::try_from(limit.saturating_sub(length)).unwrap_or(usize::MAX);
            file.write_all(&fresh[..fresh.len().min(room)])?;
            if fresh.len() > room {
                return Err(FileError::TooLarge { limit });
            }
            length + fresh.len() as u64
        };
        let mut watched = lock(&self.0.watched);
        if watched.get(at).is_some_and(|watchers| watchers.send(()).is_err()) {
            watched.remove(at);
        }
        Ok(length)
    }

    pub fn log_bytes(&self, at: &AttemptPlace) -> u64 {
        fs::metadata(self.log_path(at)).map_or(0, |meta| meta.len())
    }

    /// At most `most` bytes of a log, and the log's length. A log that has not begun is empty.
    pub fn read_log(
        &self,
        at: &AttemptPlace,
        offset: u64,
        most: usize,
    ) -> Result<(Vec<u8>, u64), FileError> {
        let opened = if_there(fs::File::open(self.log_path(at)))?;
        let Some(mut file) = opened else { return Ok((Vec::new(), 0)) };
        let length = file.metadata()?.len();
        let mut bytes = Vec::new();
        if offset < length {
            file.seek(SeekFrom::Start(offset))?;
            file.take((most as u64).min(length - offset)).read_to_end(&mut bytes)?;
        }
        Ok((bytes, length))
    }

    pub fn watch_log(&self, at: &AttemptPlace) -> watch::Receiver<()> {
        let mut watched = lock(&self.0.watched);
        watched.retain(|_, watchers| watchers.receiver_count() > 0);
        watched.entry(at.clone()).or_insert_with(|| watch::channel(()).0).subscribe()
    }

    /// The stored artifacts of a job: attempt, name and length in bytes.
    pub fn artifacts(
        &self,
        run: &str,
        job: &str,
    ) -> Result<Vec<(u32, ArtifactName, u64)>, FileError> {
        let mut folder = self.0.folder.join("artifacts");
        folder.extend([run, job]);
        let mut artifacts = Vec::new();
        for attempt in entries(&folder)? {
            let name = attempt.file_name();
            let Some(number) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
            let found = artifacts_in(&attempt.path())?;
            artifacts.extend(found.into_iter().map(|(name, bytes)| (number, name, bytes)));
        }
        artifacts.sort();
        Ok(artifacts)
    }

    /// The stored artifacts of an attempt, sorted by name, and the length of each in bytes.
    pub fn artifacts_of(&self, at: &AttemptPlace) -> Result<Vec<(ArtifactName, u64)>, FileError> {
        let mut artifacts = artifacts_in(&self.artifacts_path(at))?;
        artifacts.sort();
        Ok(artifacts)
    }

    /// Opens an artifact; returns its length in bytes too.
    pub async fn open_artifact(
        &self,
        at: &AttemptPlace,
        name: &ArtifactName,
    ) -> Result<(File, u64), FileError> {
        open(&self.artifacts_path(at).join(name.as_str())).await
    }

    /// Opens the cache with this key and marks it as used; returns its length in bytes too.
    pub async fn open_cache(&self, key: &str) -> Result<Option<(File, u64)>, FileError> {
        match open(&self.cache_path(key)).await {
            Ok((file, length)) => {
                let file = file.into_std().await;
                // If this fails, the cache may be evicted too early.
                let _ = file.set_modified(SystemTime::now());
                Ok(Some((File::from_std(file), length)))
            }
            Err(FileError::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub fn forget(&self, run: &str) -> io::Result<()> {
        let removed = ["logs", "artifacts"]
            .map(|kind| if_there(fs::remove_dir_all(self.0.folder.join(kind).join(run))));
        removed.into_iter().try_for_each(|removed| removed.map(drop))
    }
}

/// A panic while the lock was held leaves the files as a crash would, so poisoning is ignored.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn open(path: &Path) -> Result<(File, u64), FileError> {
    let file = match File::open(path).await {
        Ok(file) => file,
        Err(error) if is_absent(&error) => return Err(FileError::NotFound),
        Err(error) => return Err(error.into()),
    };
    let meta = file.metadata().await?;
    if !meta.is_file() {
        return Err(FileError::NotFound);
    }
    Ok((file, meta.len()))
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn clash(error: io::Error) -> FileError {
    match error.kind() {
        io::ErrorKind::NotADirectory
        | io::ErrorKind::IsADirectory
        | io::ErrorKind::AlreadyExists
        | io::ErrorKind::DirectoryNotEmpty => FileError::Clash,
        _ => error.into(),
    }
}

fn make_folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn make_parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), make_folder)
}

/// The entries of a folder; empty if it does not exist.
fn entries(folder: &Path) -> io::Result<Vec<fs::DirEntry>> {
    match fs::read_dir(folder) {
        Ok(entries) => entries.collect(),
        Err(error) if is_absent(&error) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn artifacts_in(folder: &Path) -> io::Result<Vec<(ArtifactName, u64)>> {
    let mut found = Vec::new();
    let mut folders = vec![(folder.to_owned(), String::new())];
    while let Some((folder, prefix)) = folders.pop() {
        for entry in entries(&folder)? {
            let Ok(part) = entry.file_name().into_string() else { continue };
            let name = format!("{prefix}{part}");
            let meta = entry.metadata()?;
            if meta.is_dir() {
                folders.push((entry.path(), format!("{name}/")));
            } else if let Ok(name) = name.parse() {
                found.push((name, meta.len()));
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
