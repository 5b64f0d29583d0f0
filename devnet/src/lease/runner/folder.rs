//! A runner's folder, and the lock that says whether it runs.
//!
//! ```text
//! <home>/.lease-runners/NAME/         0700
//!   lock                              held exclusively by the runner; its pid
//!   jobs/                             the directories of its jobs; emptied when it starts
//!   containers/                       the names of its jobs' containers; the same
//! ```
//!
//! The kernel drops the lock with its holder: what lies in a folder whose lock is free was left by
//! a runner that was killed. What cannot be removed stays, and stops no other runner.

use super::container::left;
use crate::{
    executor::command::Directories,
    home::{self, HomeError},
};
use std::{
    fs::{self, File},
    io::ErrorKind::{DirectoryNotEmpty, NotFound},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// The folder of all runners, in a home.
const RUNNERS: &str = ".lease-runners";

/// How often a lock is taken that a sweep had just removed.
const LOCK_ATTEMPTS: u32 = 8;

/// The folder of one runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunnerFolder(PathBuf);

/// Why a folder cannot be a runner's.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// It holds something else.
    #[error("{}: there are files in it that are no runner's", .0.display())]
    Strange(PathBuf),
    /// Another runner has it.
    #[error("{}: a runner has it{}", .path.display(), holder(*.pid))]
    InUse {
        /// The folder.
        path: PathBuf,
        /// That runner's process, where it is known.
        pid: Option<u32>,
    },
    /// It cannot be read or written.
    #[error(transparent)]
    Home(#[from] HomeError),
}

fn holder(pid: Option<u32>) -> String {
    pid.map(|pid| format!(", process {pid}")).unwrap_or_default()
}

impl RunnerFolder {
    /// That of the runner of this name, which is no path, in a home.
    pub fn of(home: &Path, name: &str) -> Self {
        // A name may be `..`, and a folder's may not.
        let folder = if name.starts_with('.') { format!("_{name}") } else { name.to_owned() };
        Self(home.join(RUNNERS).join(folder))
    }

    /// This one.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    fn lock_path(&self) -> PathBuf {
        self.0.join("lock")
    }

    /// `jobs`: the directories of its jobs.
    pub fn jobs_path(&self) -> PathBuf {
        self.0.join("jobs")
    }

    /// Takes the folder for this process, and makes it where there is none.
    pub fn lock(&self) -> Result<RunnerLock, FolderError> {
        let path = self.lock_path();
        for _ in 0..LOCK_ATTEMPTS {
            home::create_private_dir(&self.0)?;
            let mut entries = fs::read_dir(&self.0).map_err(HomeError::io(&self.0))?;
            if !path.exists() && entries.next().is_some() {
                return Err(FolderError::Strange(self.0.clone()));
            }
            let file = match home::take_lock(&path) {
                Ok(Some(file)) => file,
                Ok(None) => match home::holder(&path) {
                    Some(pid) => {
                        return Err(FolderError::InUse { path: self.0.clone(), pid: Some(pid) });
                    }
                    // A sweep is about to take it, or has removed it.
                    None => continue,
                },
                // A sweep has removed the folder just now.
                Err(HomeError::Io { source, .. }) if source.kind() == NotFound => continue,
                Err(error) => return Err(error.into()),
            };
            // Or it had the lock until now, and removed that.
            let identity = |meta: fs::Metadata| (meta.dev(), meta.ino());
            let held = file.metadata().map(identity).map_err(HomeError::io(&path))?;
            if fs::metadata(&path).map(identity).is_ok_and(|there| there == held) {
                return Ok(RunnerLock { folder: self.clone(), _file: file });
            }
        }
        Err(FolderError::InUse { path: self.0.clone(), pid: None })
    }

    /// Clears away what killed runners left in a home: their containers, processes and folders.
    pub async fn sweep(home: &Path) -> Result<(), HomeError> {
        let runners = home.join(RUNNERS);
        let entries = match fs::read_dir(&runners) {
            Ok(entries) => entries,
            Err(error) if error.kind() == NotFound => return Ok(()),
            Err(error) => return Err(HomeError::io(&runners)(error)),
        };
        for entry in entries {
            let folder = Self(entry.map_err(HomeError::io(&runners))?.path());
            // Whoever holds a lock runs; whatever else is wrong is that runner's to say.
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

/// A folder taken for this process: until it is dropped no other runner has it.
#[derive(Debug)]
pub struct RunnerLock {
    folder: RunnerFolder,
    _file: File,
}

impl RunnerLock {
    /// The folder that is taken.
    pub fn folder(&self) -> &RunnerFolder {
        &self.folder
    }

    /// Clears away what is in the folder, with containers and processes that work there, and the
    /// folder itself. If something in it cannot be removed, which the log tells, it stays.
    pub async fn remove(self) -> Result<(), HomeError> {
        let jobs = self.folder.jobs_path();
        let cleared = left::clear(&self.folder.0, &jobs).await;
        let no_container = cleared.map_err(HomeError::io(&self.folder.0))?;
        Directories::in_folder(&jobs).map_err(HomeError::io(&jobs))?;
        match fs::remove_dir(&jobs) {
            Err(error) if error.kind() == DirectoryNotEmpty => return Ok(()),
            other => other.map_err(HomeError::io(&jobs))?,
        }
        if !no_container {
            return Ok(());
        }
        // With its file the lock goes: what is there from then on is another runner's, which has
        // waited for it.
        home::remove_file(&self.folder.lock_path())?;
        match fs::remove_dir(&self.folder.0) {
            Err(error) if matches!(error.kind(), NotFound | DirectoryNotEmpty) => Ok(()),
            other => other.map_err(HomeError::io(&self.folder.0)),
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
        assert!(matches!(error, FolderError::InUse { pid, .. } if pid == mine), "{error}");
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
        assert!(matches!(error, FolderError::Strange(_)), "{error}");
        assert_eq!(fs::read_dir(&photos).unwrap().count(), 1);
        // One that a runner has had is known by its lock.
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
