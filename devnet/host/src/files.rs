//! Files that only their owner can read, and files that a process holds as locks.

use rustix::fs::OFlags;
use std::{
    fs::{self, DirBuilder, DirEntry, File, OpenOptions, TryLockError},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    process, thread,
    time::Duration,
};

/// Why a file or folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error("{path}: {reason}")]
    Malformed { path: PathBuf, reason: String },
}

impl FileError {
    pub fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Io { path: path.to_owned(), source }
    }
}

/// Far above the length of any real state file, in bytes.
const FILE_LIMIT: u64 = 16 << 20;

/// Attempts to take a lock and the pause between them. Together they last far longer than a check
/// of the lock ([`is_held`]) holds it, and are short enough to refuse a second start at
/// once.
const LOCK_ATTEMPTS: u32 = 20;

const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// Takes a lock file for this process, creating it if absent, and writes the process id into it.
/// `None` if another process holds it.
pub fn take_lock(path: &Path) -> Result<Option<File>, FileError> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    // The file is truncated, so a link to another file must not be followed. Opening a pipe would
    // wait for its reader.
    options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
    let file = options.open(path).map_err(FileError::io(path))?;
    for _ in 0..LOCK_ATTEMPTS {
        match file.try_lock() {
            Ok(()) => {
                let pid = process::id().to_string();
                file.set_len(0)
                    .and_then(|()| file.write_all_at(pid.as_bytes(), 0))
                    .map_err(FileError::io(path))?;
                return Ok(Some(file));
            }
            Err(TryLockError::WouldBlock) => thread::sleep(LOCK_PAUSE),
            Err(TryLockError::Error(error)) => return Err(FileError::io(path)(error)),
        }
    }
    Ok(None)
}

/// The last process that took a lock.
pub fn holder(lock: &Path) -> Option<u32> {
    read(lock).ok()?.parse().ok()
}

/// Whether the process with this id has the lock's file open, so that a signal meets no other one:
/// an id may belong to another process by now, or be one that a container gives.
pub fn has_open(process: u32, lock: &Path) -> bool {
    #[cfg(not(target_os = "linux"))]
    return process > 1 && lock.exists();
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::fs::MetadataExt as _;

        let id = |path: &Path| fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
        let wanted = id(lock);
        let open = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
        wanted.is_some() && open.map(|entry| id(&entry.path())).any(|file| file == wanted)
    }
}

/// Whether a process holds a lock. The check takes a shared lock for a moment: two checks do not
/// see each other, and [`take_lock`] retries for longer than a check takes.
pub fn is_held(path: &Path) -> Result<bool, FileError> {
    let file = if_there(open_at_once(path)).map_err(FileError::io(path))?;
    let Some(file) = file else { return Ok(false) };
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(FileError::io(path)(error)),
    }
}

/// Creates a folder and its parents, accessible only to its owner.
pub fn create_private_dir(path: &Path) -> Result<(), FileError> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(FileError::io(path))
}

/// Replaces a file atomically and durably by one that only its owner can read.
pub fn write_private(path: &Path, text: &str) -> Result<(), FileError> {
    let fresh = path.with_extension("new");
    remove_file(&fresh)?;
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(&fresh);
    file.and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    })
    .map_err(FileError::io(&fresh))?;
    fs::rename(&fresh, path).map_err(FileError::io(path))
}

/// A file's text; `None` if the file is absent.
pub fn read_if_there(path: &Path) -> Result<Option<String>, FileError> {
    match read(path) {
        Ok(text) => Ok(Some(text)),
        Err(FileError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The text of a file, which must not be a device or a pipe.
pub fn read(path: &Path) -> Result<String, FileError> {
    let mut text = String::new();
    let file = open_at_once(path).and_then(|file| match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a file")),
    });
    let file = file.map_err(FileError::io(path))?;
    file.take(FILE_LIMIT).read_to_string(&mut text).map_err(FileError::io(path))?;
    Ok(text)
}

/// Opens a path for reading, without waiting for a writer if it is a pipe.
fn open_at_once(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Removes a file if it exists.
pub fn remove_file(path: &Path) -> Result<(), FileError> {
    if_there(fs::remove_file(path)).map(drop).map_err(FileError::io(path))
}

/// Removes a folder with its contents if it exists.
pub fn remove_dir(path: &Path) -> Result<(), FileError> {
    if_there(fs::remove_dir_all(path)).map(drop).map_err(FileError::io(path))
}

/// The entries of a folder; none if it does not exist.
pub fn entries(path: &Path) -> Result<Vec<DirEntry>, FileError> {
    let found = if_there(fs::read_dir(path)).map_err(FileError::io(path))?;
    found.into_iter().flatten().collect::<io::Result<_>>().map_err(FileError::io(path))
}

/// The result of a call on a file that need not exist; `None` if it does not.
pub fn if_there<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_has_a_lock_open_as_long_as_it_holds_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let own = process::id();
        assert!(!has_open(own, &path), "it is not there");
        let lock = take_lock(&path).unwrap();
        assert!(has_open(own, &path) && !has_open(1, &path));
        drop(lock);
        assert_eq!((holder(&path), has_open(own, &path)), (Some(own), false));
    }
}
