//! The directories that jobs work in: fresh, private, and removed with all that is in them.

use super::tree;
use std::{
    fs::{self, DirBuilder, Permissions},
    io,
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::Arc,
};
use tempfile::TempDir;

/// Where the directories of jobs are made: among the system's temporary files, unless they have a
/// folder of their own.
#[derive(Debug, Clone, Default)]
pub(crate) struct Directories(Option<Arc<Path>>);

impl Directories {
    /// In `folder`, which nobody else uses. What is there is of jobs whose runner was killed: the
    /// processes are killed too, and the directories removed.
    pub(crate) fn in_folder(folder: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        // The same whichever way leads there: processes are known by it.
        let folder = fs::canonicalize(folder)?;
        tree::kill_left(|directory| directory.starts_with(&folder));
        for left in fs::read_dir(&folder)? {
            let path = left?.path();
            tracing::info!(path = %path.display(), "job directory of a killed runner removed");
            remove(&path);
        }
        Ok(Self(Some(folder.into())))
    }
}

/// A job's directory, removed with all that is in it.
pub(crate) struct Directory(Option<TempDir>);

impl Directory {
    /// An empty one, which nobody but this user can look into.
    pub(crate) fn new(directories: &Directories) -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        let builder = builder.prefix("cowboy-job-").permissions(Permissions::from_mode(0o700));
        let made = match &directories.0 {
            Some(folder) => builder.tempdir_in(folder),
            None => builder.tempdir(),
        };
        made.map(|made| Self(Some(made)))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        self.0.as_ref().expect("there until it is dropped").path()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if let Some(path) = self.0.take().map(TempDir::keep) {
            remove(&path);
        }
    }
}

/// Removes a job's directory.
fn remove(path: &Path) {
    let removed = fs::remove_dir_all(path).or_else(|_| {
        // The command may have taken away its own permissions.
        open_up(path.to_owned());
        fs::remove_dir_all(path)
    });
    if let Err(error) = removed {
        tracing::warn!(path = %path.display(), %error, "job directory left behind");
    }
}

/// Makes all directories below `top` writable. Links are not followed.
fn open_up(top: PathBuf) {
    let mut closed = vec![top];
    while let Some(directory) = closed.pop() {
        // Errors show when the directory is removed.
        let _ = fs::set_permissions(&directory, Permissions::from_mode(0o700));
        let Ok(entries) = fs::read_dir(&directory) else { continue };
        let below =
            entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        closed.extend(below.map(|entry| entry.path()));
    }
}
