//! Folders for what is not whole yet, in the folder that it is to be renamed into.

use crate::home::{self, HomeError};
use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};
use tempfile::TempDir;

/// The lock of a folder: who finds it free may remove the folder, its maker is gone.
const LOCK: &str = "lock";

/// A folder of this process, removed with all that is in it when it is dropped.
#[derive(Debug)]
pub(super) struct Scratch {
    folder: TempDir,
    _lock: File,
}

impl Scratch {
    /// A new one in `parent`, whose name begins with `prefix`. Removes those of processes that were
    /// killed.
    pub(super) fn new(parent: &Path, prefix: &str) -> Result<Self, HomeError> {
        sweep(parent, prefix)?;
        let folder = tempfile::Builder::new().prefix(prefix).tempdir_in(parent);
        let folder = folder.map_err(HomeError::io(parent))?;
        let path = folder.path().join(LOCK);
        let lock = home::take_lock(&path)?.ok_or_else(|| HomeError::Malformed {
            path,
            reason: "another process has taken it".to_owned(),
        })?;
        Ok(Self { folder, _lock: lock })
    }

    /// A place in it.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

fn sweep(parent: &Path, prefix: &str) -> Result<(), HomeError> {
    for entry in fs::read_dir(parent).map_err(HomeError::io(parent))? {
        let entry = entry.map_err(HomeError::io(parent))?;
        let path = entry.path();
        let lock = path.join(LOCK);
        // Without a lock it is being made.
        if entry.file_name().to_string_lossy().starts_with(prefix)
            && lock.is_file()
            && !home::is_held(&lock)?
        {
            tracing::info!(path = %path.display(), "removing what a killed process left");
            // Somebody else may be at it, too.
            let _ = fs::remove_dir_all(&path);
        }
    }
    Ok(())
}
