//! The folder of a runner in a process of its own, and the lock that says whether it runs.
//!
//! ```text
//! <home>/<devnet>/processes/NAME/     0700
//!   lock                              held exclusively by the process; its pid
//!   runner.json                       where the process answers; written once it listens
//!   token                             0600: the token that requests to the process must carry
//!   jobs/                             working directories of jobs' commands; emptied at each start
//!   commitments/                      commitments that it has signed (`runner::pledges`)
//!   validators.json                   the validators it trusted last (`runner::trust`)
//!   log                               its log, when it runs in the background
//!   supervised                        only there if the devnet itself starts the process
//! ```
//!
//! As with a devnet, only the lock shows that the process runs: a record without a lock holder was
//! left by a killed process.

use crate::{
    client::{Client, ClientError},
    home::{self, DevnetHome, Home, HomeError},
    topology::Name,
    types::{AddressText, Text, TimeText},
};
use cowboy_host::files::{self, FileError};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::{
    fs::File,
    path::{Path, PathBuf},
    process,
};

/// A file that marks the folder of a runner that a devnet starts: it goes with the devnet's chain.
const SUPERVISED: &str = "supervised";

/// The folder of one runner process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunnerFolder {
    path: PathBuf,
    name: Name,
    devnet: DevnetHome,
}

/// The record that a running process writes: `runner.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunnerRecord {
    pub name: Name,
    pub devnet: Name,
    pub address: AddressText,
    pub pid: u32,
    pub started_at: TimeText,
    /// The base URL of its control server, such as `http://127.0.0.1:20123`.
    pub control_url: String,
}

impl RunnerFolder {
    /// The folder of this name, whether it exists or not.
    pub fn of(devnet: &DevnetHome, name: &Name) -> Self {
        let path = devnet.processes_path().join(name.as_str());
        Self { path, name: name.clone(), devnet: devnet.clone() }
    }

    /// The folder of a runner of the devnet's in a container, whose home is among the nodes.
    pub fn contained(devnet: &DevnetHome, name: &Name) -> Self {
        let home = Home::at(devnet.nodes_path().join(name.as_str()));
        Self::of(&home.devnet(devnet.name()), name)
    }

    /// The folders of the runners that the devnet itself has started, in processes or containers of
    /// their own.
    pub fn supervised_at(devnet: &DevnetHome) -> Result<Vec<Self>, HomeError> {
        let names = |folder: PathBuf| -> Result<Vec<Name>, HomeError> {
            let entries = files::entries(&folder)?;
            let names = entries.iter().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
            Ok(names.collect())
        };
        let own = names(devnet.processes_path())?.into_iter().map(|name| Self::of(devnet, &name));
        let own = own.filter(Self::is_supervised);
        let contained = names(devnet.nodes_path())?.into_iter();
        let contained = contained.map(|name| Self::contained(devnet, &name));
        Ok(own.chain(contained.filter(|folder| folder.path.is_dir())).collect())
    }

    /// Whether the devnet itself starts the process.
    pub fn is_supervised(&self) -> bool {
        self.path.join(SUPERVISED).is_file()
    }

    /// Makes the folder, as that of a runner that the devnet starts.
    pub fn supervise(&self) -> Result<(), HomeError> {
        files::create_private_dir(&self.path)?;
        Ok(files::write_private(&self.path.join(SUPERVISED), "")?)
    }

    /// The records of a devnet's running runner processes, in order of their names.
    pub fn running_at(devnet: &DevnetHome) -> Result<Vec<RunnerRecord>, HomeError> {
        let mut records = Vec::new();
        for entry in files::entries(&devnet.processes_path())? {
            if let Some(name) = entry.file_name().to_str().and_then(|name| name.parse().ok()) {
                records.extend(Self::of(devnet, &name).record()?);
            }
        }
        records.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(records)
    }

    pub fn name(&self) -> &Name {
        &self.name
    }

    pub fn devnet(&self) -> &Name {
        self.devnet.name()
    }

    pub fn private_path(&self) -> &Path {
        self.devnet.private_path()
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// `log`: the output of the process.
    pub fn log_path(&self) -> PathBuf {
        self.path.join("log")
    }

    /// `jobs`: the working directories of its jobs.
    pub fn jobs_path(&self) -> PathBuf {
        self.path.join("jobs")
    }

    /// `commitments`: signed commitments with their results.
    pub fn commitments_path(&self) -> PathBuf {
        self.path.join("commitments")
    }

    /// `validators.json`: the validators it trusted last.
    pub fn validators_path(&self) -> PathBuf {
        self.path.join("validators.json")
    }

    /// `lock`: held by the process.
    pub fn lock_path(&self) -> PathBuf {
        self.path.join("lock")
    }

    fn record_path(&self) -> PathBuf {
        self.path.join("runner.json")
    }

    fn token_path(&self) -> PathBuf {
        self.path.join("token")
    }

    /// Locks the runner for this process and creates its folder if it is missing. Returns `None`
    /// when another process holds the lock. Refuses a symbolic link anywhere on the path.
    pub fn lock(&self) -> Result<Option<RunnerLock>, HomeError> {
        // The devnet's folder, the folder of all runner processes, and this runner's folder.
        for folder in self.path.ancestors().take(3) {
            home::refuse_other_than_folder(folder)?;
        }
        files::create_private_dir(&self.path)?;
        let file = files::take_lock(&self.lock_path())?;
        Ok(file.map(|file| RunnerLock { folder: self.clone(), _file: file }))
    }

    /// The process id of the lock's holder; `None` when no process runs or it has not written its
    /// id yet.
    pub fn holder(&self) -> Result<Option<u32>, HomeError> {
        let lock = self.lock_path();
        Ok(if files::is_held(&lock)? { files::holder(&lock) } else { None })
    }

    /// The record of the running process; `None` when none runs or it does not answer yet.
    pub fn record(&self) -> Result<Option<RunnerRecord>, HomeError> {
        let path = self.record_path();
        let Some(holder) = self.holder()? else { return Ok(None) };
        let Some(text) = files::read_if_there(&path)? else { return Ok(None) };
        let record: RunnerRecord = serde_json::from_str(&text)
            .map_err(|error| FileError::Malformed { path, reason: error.to_string() })?;
        Ok(Some(record).filter(|record| record.pid == holder))
    }

    pub fn client(&self, record: &RunnerRecord) -> Result<Client, ClientError> {
        let token = files::read_if_there(&self.token_path()).map_err(HomeError::from)?;
        let token = token.unwrap_or_default();
        Ok(Client::new(&record.control_url)?.with_token(token.trim().to_owned()))
    }
}

/// The lock on a runner's name: no other process can run a runner of this name until it is dropped.
#[derive(Debug)]
pub struct RunnerLock {
    folder: RunnerFolder,
    _file: File,
}

impl RunnerLock {
    pub fn folder(&self) -> &RunnerFolder {
        &self.folder
    }

    /// Writes the record and the token. Readers see the whole record or nothing.
    pub fn announce(
        &self,
        address: AddressText,
        control_url: String,
        token: &str,
    ) -> Result<RunnerRecord, HomeError> {
        let record = RunnerRecord {
            name: self.folder.name.clone(),
            devnet: self.folder.devnet().clone(),
            address,
            pid: process::id(),
            started_at: Text(Timestamp::now()),
            control_url,
        };
        files::write_private(&self.folder.token_path(), &format!("{token}\n"))?;
        let json = serde_json::to_string_pretty(&record).expect("a record is plain data");
        files::write_private(&self.folder.record_path(), &format!("{json}\n"))?;
        Ok(record)
    }

    /// Removes record and token, once the process no longer answers.
    pub fn clean(&self) -> Result<(), HomeError> {
        files::remove_file(&self.folder.record_path())?;
        Ok(files::remove_file(&self.folder.token_path())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::home::Home;
    use cowboy_engine::primitives::SecretKey;

    #[test]
    fn a_record_counts_as_long_as_its_process_holds_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let devnet = Home::at(folder.path()).devnet(&"one".parse().unwrap());
        let runner = RunnerFolder::of(&devnet, &"own".parse().unwrap());
        assert_eq!((runner.holder().unwrap(), runner.record().unwrap()), (None, None));
        let lock = runner.lock().unwrap().unwrap();
        assert!(runner.lock().unwrap().is_none(), "taken");
        assert_eq!(runner.holder().unwrap(), Some(process::id()));
        assert_eq!(runner.record().unwrap(), None, "it has not said where it answers");
        let address = SecretKey::derive(b"seed", "own").address();
        let url = "http://127.0.0.1:20123".to_owned();
        let record = lock.announce(address.into(), url, "secret").unwrap();
        assert_eq!(runner.record().unwrap().as_ref(), Some(&record));
        assert_eq!(RunnerFolder::running_at(&devnet).unwrap(), [record]);
        assert!(!devnet.exists(), "the folder of a runner makes no devnet");

        drop(lock);
        assert_eq!(runner.record().unwrap(), None, "a record without a holder is stale");
        let lock = runner.lock().unwrap().unwrap();
        assert_eq!(RunnerFolder::running_at(&devnet).unwrap().len(), 1, "the same process again");
        lock.clean().unwrap();
        assert!(RunnerFolder::running_at(&devnet).unwrap().is_empty());
    }
}
