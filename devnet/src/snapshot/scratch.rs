//! Temporary folders for things that are incomplete or being deleted, placed in the folder that the
//! result is renamed into.
//!
//! The process that makes a folder holds its lock until the folder is gone. The lock is removed
//! last, so a folder that a killed process left has a lock that no process holds, or no lock at
//! all. Before a sweep removes a folder, it takes the lock, and creates the lock if it is missing.
//! A process whose new folder is swept before it has the lock makes another.

use crate::home::HomeError;
use cowboy_host::files::{self, FileError};
use std::{
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

const LOCK: &str = "lock";

/// Attempts to create a folder, if each is swept before its lock is taken. Four threads that do
/// nothing else have needed more than eight on a busy machine.
const ATTEMPTS: u32 = 64;

/// A folder of this process. Dropping it removes the folder with its contents.
#[derive(Debug)]
pub(super) struct Scratch {
    folder: PathBuf,
    _lock: File,
}

impl Scratch {
    /// Creates a folder in `parent` whose name begins with `prefix`. First removes those of killed
    /// processes.
    pub(super) fn new(parent: &Path, prefix: &str) -> Result<Self, HomeError> {
        sweep(parent, prefix)?;
        for _ in 0..ATTEMPTS {
            let folder = tempfile::Builder::new().prefix(prefix).tempdir_in(parent);
            let folder = folder.map_err(HomeError::io(parent))?.keep();
            if let Some(lock) = take(&folder)? {
                return Ok(Self { folder, _lock: lock });
            }
        }
        Err(FileError::Malformed {
            path: parent.to_owned(),
            reason: "other processes remove the folders that are made in it".to_owned(),
        }
        .into())
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        clear(&self.folder);
    }
}

/// The folders in `parent` whose names begin with `prefix` and that no process holds.
pub(super) fn abandoned(parent: &Path, prefix: &str) -> Result<Vec<PathBuf>, HomeError> {
    let mut found = Vec::new();
    for entry in files::entries(parent)? {
        let path = entry.path();
        // A link is not ours, whatever its name.
        if entry.file_name().to_string_lossy().starts_with(prefix)
            && entry.file_type().is_ok_and(|kind| kind.is_dir())
            && !files::is_held(&path.join(LOCK)).unwrap_or(false)
        {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Removes the [`abandoned`] folders. One that cannot be removed is left.
pub(super) fn sweep(parent: &Path, prefix: &str) -> Result<(), HomeError> {
    for path in abandoned(parent, prefix)? {
        match take(&path) {
            Ok(Some(_lock)) => {
                tracing::info!(path = %path.display(), "removing what a killed process left");
                clear(&path);
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "left behind"),
        }
    }
    Ok(())
}

/// Locks a folder for this process, and creates its lock if it is missing. Returns `None` when
/// another process holds it or has just removed it.
fn take(folder: &Path) -> Result<Option<File>, HomeError> {
    let path = folder.join(LOCK);
    let lock = match files::take_lock(&path) {
        Ok(Some(lock)) => lock,
        Ok(None) => return Ok(None),
        Err(FileError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
    };
    // Another process may have held the lock until it removed the folder.
    let identity = |found: fs::Metadata| (found.dev(), found.ino());
    let held = lock.metadata().map(identity).map_err(HomeError::io(&path))?;
    let named = fs::symlink_metadata(&path).map(identity);
    Ok(named.is_ok_and(|named| named == held).then_some(lock))
}

/// Removes a folder whose lock this process holds. Anything that cannot be removed stays, together
/// with the lock, and the next sweep finds it.
fn clear(folder: &Path) {
    if let Err(error) = remove(folder) {
        tracing::warn!(path = %folder.display(), %error, "left behind");
    }
}

fn remove(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name() == LOCK {
            continue;
        }
        match entry.file_type()?.is_dir() {
            true => fs::remove_dir_all(entry.path())?,
            false => fs::remove_file(entry.path())?,
        }
    }
    fs::remove_file(folder.join(LOCK))?;
    // Another sweeping process may have created a lock; it then removes the rest.
    match fs::remove_dir(folder) {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::DirectoryNotEmpty
            ) =>
        {
            Ok(())
        }
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{os::unix::fs::symlink, thread};

    #[test]
    fn what_is_left_goes_however_far_its_removal_came() {
        let parent = tempfile::tempdir().unwrap();
        let held = Scratch::new(parent.path(), ".x-").unwrap();
        let photos = parent.path().join("photos");
        fs::create_dir(&photos).unwrap();
        fs::write(photos.join("winter.jpg"), "snow").unwrap();
        symlink(&photos, parent.path().join(".x-link")).unwrap();
        let check = |files: &[&str]| {
            let left = parent.path().join(".x-left");
            fs::create_dir_all(left.join("deep")).unwrap();
            for file in files {
                fs::write(left.join(file), "").unwrap();
            }
            assert_eq!(abandoned(parent.path(), ".x-").unwrap(), std::slice::from_ref(&left));
            sweep(parent.path(), ".x-").unwrap();
            assert!(!left.exists(), "{files:?}");
        };
        check(&["lock", "deep/file"]);
        check(&["deep/file"]);
        check(&[]);
        assert!(held.path("lock").exists());
        assert_eq!(fs::read_to_string(photos.join("winter.jpg")).unwrap(), "snow");
        drop(held);
        let left: Vec<_> = fs::read_dir(parent.path()).unwrap().collect();
        assert_eq!(left.len(), 2, "the photos and the link to them: {left:?}");
    }

    #[test]
    fn those_who_make_and_those_who_sweep_do_not_disturb_each_other() {
        let parent = tempfile::tempdir().unwrap();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let scratch = Scratch::new(parent.path(), ".x-").unwrap();
                        fs::write(scratch.path("file"), "").unwrap();
                    }
                });
            }
        });
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
