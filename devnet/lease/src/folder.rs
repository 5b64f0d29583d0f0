//! The folder of a standalone lease server, and the lock that shows whether the server runs.
//!
//! ```text
//! <home>/.lease/          0700
//!   lock                  held exclusively by the server's process; its pid
//!   server.json           where it answers; written once it does
//!   token                 0600: the operator's; the same over restarts
//!   lease.db              0600: runs, jobs, leases (`store`)
//!   logs/ artifacts/ caches/ tmp/      what runners leave behind (`files`)
//! ```
//!
//! The lock decides: a record without a lock holder is left over from a killed server.

use super::tokens::{NoRandomness, new_secret};
use cowboy_host::files::{self, FileError};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::{
    fs::File,
    path::{Path, PathBuf},
    process,
};

/// Name of the server's folder among those of devnets; no devnet's name begins with a dot.
const NAME: &str = ".lease";

/// The reason why a folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{path} is in use{}", .pid.map(|pid| format!(" by process {pid}")).unwrap_or_default())]
    InUse {
        path: PathBuf,
        /// The process that holds the lock, if known.
        pid: Option<u32>,
    },
    #[error(transparent)]
    Token(#[from] NoRandomness),
}

/// The folder of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseFolder(PathBuf);

/// A running server's record of itself: `server.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerRecord {
    /// The server's address, such as `http://127.0.0.1:7070`.
    pub url: String,
    pub pid: u32,
    /// RFC 3339 in UTC.
    pub started_at: String,
}

impl LeaseFolder {
    /// The server's default folder.
    pub fn of(home: &Path) -> Self {
        Self(home.join(NAME))
    }

    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn token_path(&self) -> PathBuf {
        self.0.join("token")
    }

    fn lock_path(&self) -> PathBuf {
        self.0.join("lock")
    }

    fn record_path(&self) -> PathBuf {
        self.0.join("server.json")
    }

    /// Locks the folder for this process and creates it if it does not exist.
    pub fn lock(&self) -> Result<LeaseLock, FolderError> {
        files::create_private_dir(&self.0)?;
        match files::take_lock(&self.lock_path())? {
            Some(file) => Ok(LeaseLock { folder: self.clone(), _file: file }),
            None => {
                let pid = files::holder(&self.lock_path());
                Err(FolderError::InUse { path: self.0.clone(), pid })
            }
        }
    }

    /// The running server's record; `None` if no server runs or it does not answer yet.
    pub fn record(&self) -> Result<Option<ServerRecord>, FileError> {
        let lock = self.lock_path();
        if !files::is_held(&lock)? {
            return Ok(None);
        }
        let holder = files::holder(&lock);
        Ok(self.last_record()?.filter(|record| Some(record.pid) == holder))
    }

    /// The record of the last server, which may no longer run.
    pub fn last_record(&self) -> Result<Option<ServerRecord>, FileError> {
        let path = self.record_path();
        let Some(text) = files::read_if_there(&path)? else { return Ok(None) };
        serde_json::from_str(&text)
            .map(Some)
            .map_err(|error| FileError::Malformed { path, reason: error.to_string() })
    }

    /// The operator's token; `None` if no server has ever run here.
    pub fn token(&self) -> Result<Option<String>, FileError> {
        let text = files::read_if_there(&self.token_path())?;
        Ok(text.map(|text| text.trim().to_owned()).filter(|token| !token.is_empty()))
    }
}

/// The lock on a server's folder; while it is held, no other process uses the folder.
#[derive(Debug)]
pub struct LeaseLock {
    folder: LeaseFolder,
    _file: File,
}

impl LeaseLock {
    pub fn folder(&self) -> &LeaseFolder {
        &self.folder
    }

    /// The operator's token, generated at the first call.
    pub fn token(&self) -> Result<String, FolderError> {
        if let Some(token) = self.folder.token()? {
            return Ok(token);
        }
        let token = new_secret("cowboy_operator")?;
        files::write_private(&self.folder.token_path(), &format!("{token}\n"))?;
        Ok(token)
    }

    /// Records where the server answers. Readers see either the whole record or none.
    pub fn announce(&self, url: &str) -> Result<ServerRecord, FileError> {
        let record = ServerRecord {
            url: url.to_owned(),
            pid: process::id(),
            started_at: Timestamp::now().to_string(),
        };
        let json = serde_json::to_string_pretty(&record).expect("a record is plain data");
        files::write_private(&self.folder.record_path(), &format!("{json}\n"))?;
        Ok(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::PermissionsExt as _};

    #[test]
    fn a_record_counts_as_long_as_its_process_holds_the_lock() {
        let home = tempfile::tempdir().unwrap();
        let folder = LeaseFolder::of(home.path());
        assert_eq!((folder.record().unwrap(), folder.token().unwrap()), (None, None));
        let lock = folder.lock().unwrap();
        assert!(matches!(
            folder.lock(),
            Err(FolderError::InUse { pid: Some(pid), .. }) if pid == process::id()
        ));
        assert_eq!(folder.record().unwrap(), None, "it has not said where it answers");
        let record = lock.announce("http://127.0.0.1:7070").unwrap();
        assert_eq!(folder.record().unwrap().as_ref(), Some(&record));
        drop(lock);
        assert_eq!(folder.record().unwrap(), None, "a record without a holder is stale");
        assert_eq!(folder.last_record().unwrap(), Some(record));
    }

    #[test]
    fn the_token_stays_and_is_for_its_owner() {
        let home = tempfile::tempdir().unwrap();
        let folder = LeaseFolder::at(home.path().join("lease"));
        let token = folder.lock().unwrap().token().unwrap();
        assert!(token.starts_with("cowboy_operator_") && token.len() == 16 + 64, "{token}");
        assert_eq!(folder.lock().unwrap().token().unwrap(), token);
        assert_eq!(folder.token().unwrap(), Some(token));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder.token_path()), mode(folder.path())), (0o600, 0o700));
    }
}
