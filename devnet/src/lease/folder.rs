//! The folder of a lease server that stands alone, and the lock that says whether it runs.
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
//! The lock decides: a record without its holder is a killed server's.

use super::tokens::{NoRandomness, new_secret};
use crate::{
    api::types::{Text, TimeText},
    home::{self, Home, HomeError},
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::{
    fs::File,
    path::{Path, PathBuf},
    process,
};

/// What a server's folder is called among those of devnets: no devnet's name begins so.
const NAME: &str = ".lease";

/// Why a folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// Its files.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// Another process has it.
    #[error("{path} is in use{}", .pid.map(|pid| format!(" by process {pid}")).unwrap_or_default())]
    InUse {
        /// The folder.
        path: PathBuf,
        /// That process, where it is known.
        pid: Option<u32>,
    },
    /// There is no token to be made.
    #[error(transparent)]
    Token(#[from] NoRandomness),
}

/// The folder of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseFolder(PathBuf);

/// What a running server has said about itself: `server.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerRecord {
    /// Where it answers, as `http://127.0.0.1:7070`.
    pub url: String,
    /// The process that runs it.
    pub pid: u32,
    /// Since when.
    pub started_at: TimeText,
}

impl LeaseFolder {
    /// Where a server keeps its things unless it is told another place.
    pub fn of(home: &Home) -> Self {
        Self(home.path().join(NAME))
    }

    /// The folder at this place, whether it exists or not.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// `token`: the operator's token.
    pub fn token_path(&self) -> PathBuf {
        self.0.join("token")
    }

    fn lock_path(&self) -> PathBuf {
        self.0.join("lock")
    }

    fn record_path(&self) -> PathBuf {
        self.0.join("server.json")
    }

    /// Takes the folder for this process, making it where there is none.
    pub fn lock(&self) -> Result<LeaseLock, FolderError> {
        home::create_private_dir(&self.0)?;
        match home::take_lock(&self.lock_path())? {
            Some(file) => Ok(LeaseLock { folder: self.clone(), _file: file }),
            None => {
                let pid = home::holder(&self.lock_path());
                Err(FolderError::InUse { path: self.0.clone(), pid })
            }
        }
    }

    /// What the running server says of itself; `None` where none runs, or it does not answer yet.
    pub fn record(&self) -> Result<Option<ServerRecord>, HomeError> {
        let lock = self.lock_path();
        if !home::is_held(&lock)? {
            return Ok(None);
        }
        let holder = home::holder(&lock);
        Ok(self.last_record()?.filter(|record| Some(record.pid) == holder))
    }

    /// What the last server said of itself, which may run no more.
    pub fn last_record(&self) -> Result<Option<ServerRecord>, HomeError> {
        let path = self.record_path();
        let Some(text) = home::read_if_there(&path)? else { return Ok(None) };
        serde_json::from_str(&text)
            .map(Some)
            .map_err(|error| HomeError::Malformed { path, reason: error.to_string() })
    }

    /// The operator's token; `None` where no server has ever run here.
    pub fn token(&self) -> Result<Option<String>, HomeError> {
        let text = home::read_if_there(&self.token_path())?;
        Ok(text.map(|text| text.trim().to_owned()).filter(|token| !token.is_empty()))
    }
}

/// A server's folder taken for this process: until it is dropped, nobody else uses it.
#[derive(Debug)]
pub struct LeaseLock {
    folder: LeaseFolder,
    _file: File,
}

impl LeaseLock {
    /// The folder that is taken.
    pub fn folder(&self) -> &LeaseFolder {
        &self.folder
    }

    /// The operator's token, made where there is none yet.
    pub fn token(&self) -> Result<String, FolderError> {
        if let Some(token) = self.folder.token()? {
            return Ok(token);
        }
        let token = new_secret("cowboy_operator")?;
        home::write_private(&self.folder.token_path(), &format!("{token}\n"))?;
        Ok(token)
    }

    /// Says where the server answers. Readers see the whole record or none.
    pub fn announce(&self, url: &str) -> Result<ServerRecord, HomeError> {
        let record = ServerRecord {
            url: url.to_owned(),
            pid: process::id(),
            started_at: Text(Timestamp::now()),
        };
        let json = serde_json::to_string_pretty(&record).expect("a record is plain data");
        home::write_private(&self.folder.record_path(), &format!("{json}\n"))?;
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
        let folder = LeaseFolder::of(&Home::at(home.path()));
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
        assert!(Home::at(home.path()).list().unwrap().is_empty(), "it is no devnet");
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
