//! A runner's folder, and the lock that shows whether the runner runs.
//!
//! ```text
//! <home>/.lease-runners/NAME/         0700
//!   lock                              held exclusively by the runner; its pid
//!   jobs/                             the directories of its jobs; emptied when it starts
//!   containers/                       the names of its jobs' containers; the same
//! ```
//!
//! The kernel drops the lock with its holder: files in a folder whose lock is free were left by a
//! killed runner. Files that cannot be removed stay, and do not keep another runner from starting.

use super::container::left;
use cowboy_host::{
    files::{self, FileError},
    process::Directories,
};
use std::{
    fs::{self, File},
    io::ErrorKind::{DirectoryNotEmpty, NotFound},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

const RUNNERS: &str = ".lease-runners";

/// How often taking a lock is retried after a sweep has just removed it.
const LOCK_ATTEMPTS: u32 = 8;

/// The folder of one runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunnerFolder(PathBuf);

/// The reason why a folder cannot be used for a runner.
#[derive(Debug, thiserror::Error)]
pub enum RunnerFolderError {
    #[error("{}: it has files that are not a runner's", .0.display())]
    Strange(PathBuf),
    #[error("{}: a runner has it{}", .path.display(), holder(*.pid))]
    InUse {
        path: PathBuf,
        /// The process that holds the lock, if known.
        pid: Option<u32>,
    },
    #[error(transparent)]
    File(#[from] FileError),
}

fn holder(pid: Option<u32>) -> String {
    pid.map(|pid| format!(", process {pid}")).unwrap_or_default()
}

impl RunnerFolder {
    /// The folder in a home for the runner with this name, which must not be a path.
    pub fn of(home: &Path, name: &str) -> Self {
        // A name may begin with a dot, such as `..`, but a folder must not.
        let folder = if name.starts_with('.') { format!("_{name}") } else { name.to_owned() };
        Self(home.join(RUNNERS).join(folder))
    }

    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    fn lock_path(&self) -> PathBuf {
        self.0.join("lock")
    }

    pub fn jobs_path(&self) -> PathBuf {
        self.0.join("jobs")
    }

    /// Locks the folder for this process and creates it if it does not exist.
    pub fn lock(&self) -> Result<RunnerLock, RunnerFolderError> {
        let path = self.lock_path();
        let mut refused = RunnerFolderError::InUse { path: self.0.clone(), pid: None };
        for _ in 0..LOCK_ATTEMPTS {
            files::create_private_dir(&self.0)?;
            let mut entries = fs::read_dir(&self.0).map_err(FileError::io(&self.0))?;
            if !path.exists() && entries.next().is_some() {
                // Or a sweep has made its lock between the two looks.
                refused = RunnerFolderError::Strange(self.0.clone());
                continue;
            }
            let file = match files::take_lock(&path) {
                Ok(Some(file)) => file,
                Ok(None) => match files::holder(&path) {
                    // A sweep is about to take the lock, or has removed it.
                    None => continue,
                    pid => {
                        return Err(RunnerFolderError::InUse { path: self.0.clone(), pid });
                    }
                },
                // A sweep has just removed the folder.
                Err(FileError::Io { source, .. }) if source.kind() == NotFound => continue,
                Err(error) => return Err(error.into()),
            };
            // A sweep may have held the lock until now and removed its file.
            let identity = |meta: fs::Metadata| (meta.dev(), meta.ino());
            let held = file.metadata().map(identity).map_err(FileError::io(&path))?;
            if fs::metadata(&path).map(identity).is_ok_and(|there| there == held) {
                return Ok(RunnerLock { folder: self.clone(), _file: file });
            }
        }
        Err(refused)
    }

    /// Removes what killed runners left in a home: containers, processes and folders.
    pub async fn sweep(home: &Path) -> Result<(), FileError> {
        for entry in files::entries(&home.join(RUNNERS))? {
            let folder = Self(entry.path());
            // A locked folder's runner is running; other errors are for its own runner to report.
            if let Ok(lock) = folder.lock()
                && let Err(error) = lock.remove().await
            {
                tracing::warn!(
                    %error,
                    "what a killed runner left cannot be removed: remove its folder by hand"
                );
            }
        }
        Ok(())
    }
}

/// The lock on a runner's folder; while it is held, no other runner uses the folder.
#[derive(Debug)]
pub struct RunnerLock {
    folder: RunnerFolder,
    _file: File,
}

impl RunnerLock {
    pub fn folder(&self) -> &RunnerFolder {
        &self.folder
    }

    /// Removes the folder with everything in it, and the containers and processes that work there.
    /// If something cannot be removed, the folder stays and the log says why.
    pub async fn remove(self) -> Result<(), FileError> {
        let jobs = self.folder.jobs_path();
        let cleared = left::clear(&self.folder.0, &jobs).await;
        let no_container = cleared.map_err(FileError::io(&self.folder.0))?;
        Directories::in_folder(&jobs).map_err(FileError::io(&jobs))?;
        match fs::remove_dir(&jobs) {
            Err(error) if error.kind() == DirectoryNotEmpty => return Ok(()),
            other => other.map_err(FileError::io(&jobs))?,
        }
        if !no_container {
            return Ok(());
        }
        // The lock ends with its file: files that appear from then on belong to another runner,
        // which has waited for the lock.
        files::remove_file(&self.folder.lock_path())?;
        match fs::remove_dir(&self.folder.0) {
            Err(error) if matches!(error.kind(), NotFound | DirectoryNotEmpty) => Ok(()),
            other => other.map_err(FileError::io(&self.folder.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_folder_has_one_runner() {
        let home = tempfile::tempdir().unwrap();
        let folder = RunnerFolder::of(home.path(), "..");
        assert!(folder.path().starts_with(home.path().join(RUNNERS)));
        let lock = folder.lock().unwrap();
        let error = folder.lock().unwrap_err();
        let mine = Some(std::process::id());
        assert!(matches!(error, RunnerFolderError::InUse { pid, .. } if pid == mine), "{error}");
        drop(lock);
        folder.lock().unwrap().remove().await.unwrap();
        assert!(!folder.path().exists());
    }

    #[test]
    fn a_folder_with_something_else_in_it_is_left_alone() {
        let home = tempfile::tempdir().unwrap();
        let photos = home.path().join("photos");
        fs::create_dir_all(photos.join("jobs")).unwrap();
        let error = RunnerFolder::at(&photos).lock().unwrap_err();
        assert!(matches!(error, RunnerFolderError::Strange(_)), "{error}");
        assert_eq!(fs::read_dir(&photos).unwrap().count(), 1);
        // A folder that a runner has used is recognized by its lock.
        fs::write(photos.join("lock"), "").unwrap();
        RunnerFolder::at(&photos).lock().unwrap();
    }

    #[tokio::test]
    async fn a_sweep_takes_what_no_runner_has() {
        let home = tempfile::tempdir().unwrap();
        RunnerFolder::sweep(home.path()).await.unwrap();
        let [mine, killed, strange] =
            ["mine", "killed", "strange"].map(|name| RunnerFolder::of(home.path(), name));
        let lock = mine.lock().unwrap();
        drop(killed.lock().unwrap());
        for folder in [&mine, &killed, &strange] {
            fs::create_dir_all(folder.jobs_path().join("cowboy-job-left")).unwrap();
        }
        RunnerFolder::sweep(home.path()).await.unwrap();
        assert!(mine.jobs_path().join("cowboy-job-left").exists());
        assert!(!killed.path().exists());
        assert!(strange.jobs_path().join("cowboy-job-left").exists());
        drop(lock);
    }

    #[test]
    fn runners_that_start_while_others_sweep_have_their_folders() {
        let home = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for name in 0..8 {
                let folder = RunnerFolder::of(home.path(), &name.to_string());
                let home = home.path();
                scope.spawn(move || {
                    let runtime = tokio::runtime::Runtime::new().unwrap();
                    let sweep = || runtime.block_on(RunnerFolder::sweep(home)).unwrap();
                    sweep();
                    let lock = folder.lock().unwrap();
                    sweep();
                    assert!(lock.folder().lock_path().exists());
                });
            }
        });
    }
}
