//! A devnet's folder on disk, and the lock that shows whether the devnet runs.
//!
//! ```text
//! <home>/<name>/          0700
//!   lock                  held exclusively by the process that runs the devnet; its pid
//!   topology.yaml         the resolved topology of this chain
//!   genesis.json          only in the folder of a single node: the chain that it belongs to
//!   devnet.json           the addresses of a running devnet; written once it is up
//!   resetting             a reset has begun and is not finished
//!   token                 0600: required by requests that change state
//!   accounts/NAME.key     0600: 64 hex digits, one line
//!   log/devnet.log        the process's log; its older part is log/devnet.log.1
//!   validators/NAME/      a validator's keys and chain
//!   runners/NAME/         a runner's key, work and commitments (`runner::pledges`)
//!   data/                 the devnet's own state that outlives restarts
//!   lease/                the lease server's state: `docs/leases.md`
//!   jobs/                 directories of job commands, for runners in the devnet's process
//!   processes/NAME/       a runner in a separate process (`runner::folder`)
//!   nodes/NAME/           a validator in a process of its own: like a devnet's folder
//!   handout/              what such validators are started with: genesis, peers, keys
//! ```
//!
//! The lock is authoritative. A process that can take it knows that no process runs the devnet,
//! whatever `devnet.json` says, because the kernel drops a lock with its holder. A killed devnet
//! leaves its `devnet.json` behind, which shows that it was killed; the next start or stop removes
//! it ([`Lock::clean`]).
//!
//! `<home>/.current` contains the name of the devnet that commands use when none is named.
//!
//! `<home>` is `$COWBOYCTL_HOME`, else `$XDG_STATE_HOME/cowboyctl`, else
//! `~/.local/state/cowboyctl`.

mod accounts;

use crate::{
    topology::{Name, NameError},
    types::{ChainId, Text},
};
use cowboy_engine::primitives::SecretKey;
use cowboy_host::{
    files::{
        FileError, create_private_dir, entries, holder, if_there, is_held, read, read_if_there,
        remove_dir, remove_file, take_lock, write_private,
    },
    nofollow,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    env,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process,
};

/// Why a devnet's folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    #[error("no place for devnets: set COWBOYCTL_HOME, XDG_STATE_HOME or HOME to an absolute path")]
    NoHome,
    #[error("COWBOYCTL_HOME is {}, a relative path", .0.display())]
    Relative(PathBuf),
    #[error(transparent)]
    File(#[from] FileError),
    /// The devnet's folder contains a link, a device, a pipe or a socket, or a file in place of a
    /// folder.
    #[error("{}: a link, or not the kind of file that a devnet keeps there", .0.display())]
    NotFolder(PathBuf),
    #[error("devnet `{name}` is in use{}", .pid.map(|pid| format!(" by process {pid}")).unwrap_or_default())]
    InUse { name: Name, pid: Option<u32> },
}

impl HomeError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        |source| FileError::io(path)(source).into()
    }
}

/// Refuses a path that exists and is not a real folder.
pub(crate) fn refuse_other_than_folder(path: &Path) -> Result<(), HomeError> {
    match if_there(fs::symlink_metadata(path)).map_err(HomeError::io(path))? {
        Some(found) if !found.is_dir() => Err(HomeError::NotFolder(path.to_owned())),
        _ => Ok(()),
    }
}

const REMOVED: &str = ".removed";

/// The file with the name of the devnet that commands use when none is named.
const CURRENT: &str = ".current";

/// The folder that contains all devnets of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home(PathBuf);

impl Home {
    pub fn from_env() -> Result<Self, HomeError> {
        let variable = |name| env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
        if let Some(home) = env::var_os("COWBOYCTL_HOME").filter(|home| !home.is_empty()) {
            // A relative path would mean another folder for each working directory.
            let path = PathBuf::from(home);
            return match path.is_absolute() {
                true => Ok(Self(path)),
                false => Err(HomeError::Relative(path)),
            };
        }
        variable("XDG_STATE_HOME")
            .or_else(|| variable("HOME").map(|home| home.join(".local/state")))
            .map(|state| Self(state.join("cowboyctl")))
            .ok_or(HomeError::NoHome)
    }

    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The devnet of this name, which need not exist.
    pub fn devnet(&self, name: &Name) -> DevnetHome {
        DevnetHome { path: self.0.join(name.as_str()), name: name.clone() }
    }

    /// The devnet that commands use when none is named, as set by [`Self::set_current`]. It may no
    /// longer exist.
    pub fn current(&self) -> Result<Option<Name>, HomeError> {
        let path = self.0.join(CURRENT);
        let Some(text) = read_if_there(&path)? else { return Ok(None) };
        let malformed = |error: NameError| FileError::Malformed { path, reason: error.to_string() };
        Ok(text.trim_end().parse().map(Some).map_err(malformed)?)
    }

    /// Sets or clears the devnet that commands use when none is named.
    pub fn set_current(&self, name: Option<&Name>) -> Result<(), HomeError> {
        let path = self.0.join(CURRENT);
        let done = match name {
            Some(name) => write_private(&path, &format!("{name}\n")),
            None => remove_file(&path),
        };
        Ok(done?)
    }

    /// The devnets that have a folder, by name.
    pub fn list(&self) -> Result<Vec<DevnetHome>, HomeError> {
        let mut devnets = Vec::new();
        for entry in entries(&self.0)? {
            let name = entry.file_name().to_str().and_then(|name| name.parse::<Name>().ok());
            let devnet = name.map(|name| self.devnet(&name)).filter(DevnetHome::exists);
            devnets.extend(devnet);
        }
        devnets.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(devnets)
    }
}

/// The record of a running devnet, in `devnet.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DevnetRecord {
    pub name: Name,
    pub pid: u32,
    pub started_at: Text<Timestamp>,
    /// The URL of its control API, for example `http://127.0.0.1:20123`.
    pub rpc_url: String,
    pub chain_id: Text<ChainId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_url: Option<String>,
}

/// The state of a devnet, as its folder and its lock show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DevnetState {
    Absent,
    /// It has a folder, but no process runs it: it never ran, or it was stopped.
    Stopped,
    /// It has a folder, and the process that ran it was killed: its record remains.
    Died(DevnetRecord),
    /// A process holds the lock but has not written its record yet.
    Starting {
        /// That process; `None` for the moment between taking the lock and writing the pid.
        pid: Option<u32>,
    },
    /// A process runs it and has written its record.
    Running(DevnetRecord),
}

impl DevnetState {
    pub const fn is_down(&self) -> bool {
        matches!(self, Self::Absent | Self::Stopped | Self::Died(_))
    }
}

/// One devnet's folder, which need not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DevnetHome {
    path: PathBuf,
    name: Name,
}

macro_rules! paths {
    ($($(#[$doc:meta])* $vis:vis $name:ident = $path:literal;)*) => {
        impl DevnetHome {$(
            $(#[$doc])*
            $vis fn $name(&self) -> PathBuf {
                self.path.join($path)
            }
        )*}
    };
}

paths! {
    /// Held exclusively by the process that runs the devnet; contains its pid.
    pub lock_path = "lock";
    /// Exists while the devnet is being reset.
    resetting_path = "resetting";
    /// The genesis document ([`crate::handout`]), if the folder is that of a single node.
    pub genesis_path = "genesis.json";
    /// A [`DevnetRecord`].
    pub record_path = "devnet.json";
    /// The resolved topology of this chain.
    pub topology_path = "topology.yaml";
    /// The token that requests must carry to change state.
    pub token_path = "token";
    /// The process's log, without the older part in [`part_before`].
    pub log_path = "log/devnet.log";
    /// The accounts' secret keys.
    pub accounts_path = "accounts";
    /// A folder for each validator.
    pub validators_path = "validators";
    /// A folder for each runner.
    pub runners_path = "runners";
    /// The devnet's own state that outlives restarts, such as its ports.
    pub data_path = "data";
    /// The journals and archives of consensus.
    pub consensus_path = "data/consensus";
    /// The agent's record of pipelines.
    pub speculation_path = "data/speculation.db";
    /// The names that users gave to actors, timers and jobs.
    pub names_path = "data/names.json";
    /// The lease server's state.
    pub lease_path = "lease";
    /// Directories of the jobs of runners in the devnet's process.
    pub jobs_path = "jobs";
    /// A folder for each runner in a separate process.
    pub processes_path = "processes";
    /// A home with a folder for each validator in a process of its own.
    pub nodes_path = "nodes";
    /// The files that such validators are started with.
    pub handout_path = "handout";
    /// The files that nodes in containers are started with.
    pub compose_path = "compose";
    /// The manifests of nodes in a cluster, and what they are made of.
    pub kubernetes_path = "kubernetes";
    /// The chain of such validators, as the devnet's process follows it.
    pub followed_path = "data/followed";
}

impl DevnetHome {
    pub fn name(&self) -> &Name {
        &self.name
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn home(&self) -> Home {
        Home(self.path.parent().expect("a devnet's folder lies in its home").to_owned())
    }

    /// The path that no job may open: the folder of all devnets, or this devnet's folder if that is
    /// the file system's root.
    pub fn private_path(&self) -> &Path {
        self.path.parent().filter(|home| home.parent().is_some()).unwrap_or(&self.path)
    }

    /// `accounts/NAME.key`: an account's secret key.
    pub fn account_key_path(&self, account: &Name) -> PathBuf {
        self.accounts_path().join(format!("{account}.key"))
    }

    /// `validators/NAME`: a validator's keys and chain. Those of one in a process of its own are in
    /// its own folder.
    pub fn validator_path(&self, validator: &Name) -> PathBuf {
        let apart = self.nodes_path().join(validator.as_str()).join("validators");
        let folder = if apart.is_dir() { apart } else { self.validators_path() };
        folder.join(validator.as_str())
    }

    /// `runners/NAME`: a runner's key and work.
    pub fn runner_path(&self, runner: &Name) -> PathBuf {
        self.runners_path().join(runner.as_str())
    }

    /// Whether the devnet has a folder with a lock in it.
    pub fn exists(&self) -> bool {
        self.lock_path().is_file()
    }

    /// Whether the chain has begun, so that a validator has a folder. A chain that is being reset
    /// does not count.
    pub fn has_chain(&self) -> bool {
        let has_entries =
            |path: PathBuf| fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
        !self.is_resetting()
            && (has_entries(self.validators_path()) || has_entries(self.nodes_path()))
    }

    /// Whether a reset has begun and is not finished: it is running, or was killed.
    pub fn is_resetting(&self) -> bool {
        self.resetting_path().exists()
    }

    /// Refuses links, devices, pipes and sockets in the devnet's folder, and a link in place of the
    /// folder. The folder's contents are removed, replaced and made private, which must not happen
    /// to files elsewhere. Jobs' directories and artifacts of lease jobs are not checked, because
    /// their contents belong to the jobs.
    pub fn check(&self) -> Result<(), HomeError> {
        self.check_folders()?;
        match nofollow::stranger(&self.path, is_of_jobs) {
            Ok(None) => Ok(()),
            Ok(Some(path)) => Err(HomeError::NotFolder(path)),
            Err((path, source)) => Err(FileError::Io { path, source }.into()),
        }
    }

    /// Checks only that the devnet's folder and its fixed subfolders are not links.
    fn check_folders(&self) -> Result<(), HomeError> {
        let folders = [
            "accounts",
            "log",
            "validators",
            "runners",
            "data",
            "lease",
            "jobs",
            "processes",
            "nodes",
            "handout",
            "compose",
            "kubernetes",
        ];
        let folders = folders.map(|folder| self.path.join(folder));
        let mut all = [&self.path].into_iter().chain(&folders);
        all.try_for_each(|path| refuse_other_than_folder(path))
    }

    /// Takes the devnet for this process, creating its folder if it is absent, and finishes an
    /// interrupted reset. A folder that fails [`Self::check`] is refused.
    pub fn lock(&self) -> Result<Lock, HomeError> {
        self.check_folders()?;
        for folder in [self.path.clone(), self.accounts_path(), self.path.join("log")] {
            create_private_dir(&folder)?;
        }
        match take_lock(&self.lock_path())? {
            Some(file) => {
                let lock = Lock { home: self.clone(), _file: file };
                // The previous holder of the lock may have removed the folder.
                if !self.exists() {
                    return Err(HomeError::InUse { name: self.name.clone(), pid: None });
                }
                self.check()?;
                lock.finish_reset()?;
                Ok(lock)
            }
            None => Err(HomeError::InUse { name: self.name.clone(), pid: self.holder() }),
        }
    }

    /// The last process that took the lock; it still holds it if [`Self::state`] says so.
    fn holder(&self) -> Option<u32> {
        holder(&self.lock_path())
    }

    pub fn state(&self) -> Result<DevnetState, HomeError> {
        if !self.exists() {
            return Ok(DevnetState::Absent);
        }
        if !is_held(&self.lock_path())? {
            // An unreadable record is ignored here; `doctor` reports it.
            let record = self.record().ok().flatten();
            return Ok(record.map_or(DevnetState::Stopped, DevnetState::Died));
        }
        let pid = self.holder();
        // A record of another process was left by a killed one and is not cleaned up yet.
        let record = self.record()?.filter(|record| pid == Some(record.pid));
        Ok(record.map_or(DevnetState::Starting { pid }, DevnetState::Running))
    }

    /// The contents of `devnet.json`; `None` if the file is absent. They may be a killed devnet's.
    pub fn record(&self) -> Result<Option<DevnetRecord>, HomeError> {
        let path = self.record_path();
        let Some(text) = read_if_there(&path)? else { return Ok(None) };
        Ok(serde_json::from_str(&text)
            .map(Some)
            .map_err(|error| FileError::Malformed { path, reason: error.to_string() })?)
    }

    /// Whether the folder is that of a single node and not of a whole devnet.
    pub fn is_of_node(&self) -> bool {
        self.genesis_path().exists()
    }

    pub fn token(&self) -> Result<String, HomeError> {
        Ok(read(&self.token_path())?.trim().to_owned())
    }

    /// The saved topology; `None` if the devnet never started.
    pub fn topology(&self) -> Result<Option<String>, HomeError> {
        Ok(read_if_there(&self.topology_path())?)
    }

    /// The text of `data/names.json`; empty when the file does not exist.
    pub fn names(&self) -> Result<String, HomeError> {
        Ok(read_if_there(&self.names_path())?.unwrap_or_default())
    }
}

/// A devnet taken by this process: no other process runs or changes it until this is dropped.
#[derive(Debug)]
pub struct Lock {
    home: DevnetHome,
    _file: File,
}

impl Lock {
    pub fn home(&self) -> &DevnetHome {
        &self.home
    }

    /// Removes the `devnet.json` of a killed devnet.
    pub fn clean(&self) -> Result<(), HomeError> {
        Ok(remove_file(&self.home.record_path())?)
    }

    /// Writes the devnet's record. Readers see either the whole record or no record.
    pub fn write_record(&self, record: &DevnetRecord) -> Result<(), HomeError> {
        let json = serde_json::to_string_pretty(record).expect("a record is plain data");
        Ok(write_private(&self.home.record_path(), &format!("{json}\n"))?)
    }

    /// Makes the folder that of a node of the chain with this genesis document.
    pub fn write_genesis(&self, json: &str) -> Result<(), HomeError> {
        Ok(write_private(&self.home.genesis_path(), json)?)
    }

    pub fn write_topology(&self, yaml: &str) -> Result<(), HomeError> {
        Ok(write_private(&self.home.topology_path(), yaml)?)
    }

    pub fn write_token(&self, token: &str) -> Result<(), HomeError> {
        Ok(write_private(&self.home.token_path(), &format!("{token}\n"))?)
    }

    pub fn write_account_key(&self, account: &Name, key: &SecretKey) -> Result<(), HomeError> {
        let text = format!("{}\n", hex::encode(key.to_bytes()));
        Ok(write_private(&self.home.account_key_path(account), &text)?)
    }

    /// Deletes the devnet's folder with all its contents. If this process is killed meanwhile, the
    /// devnet is either intact or gone, and the next removal deletes the rest.
    pub fn remove(self) -> Result<(), HomeError> {
        let home = self.home.home();
        let removed = home.path().join(REMOVED);
        let path = removed.join(format!("{}.{}", self.home.name, process::id()));
        loop {
            create_private_dir(&removed)?;
            remove_dir(&path)?;
            match fs::rename(&self.home.path, &path) {
                // Another process has removed a devnet and this folder meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound && self.home.exists() => {}
                renamed => break renamed.map_err(HomeError::io(&self.home.path))?,
            }
        }
        Ok(remove_dir(&removed)?)
    }

    /// Deletes the chain, the runners' work and the logs. The topology and the accounts' keys stay.
    /// If this process is killed meanwhile, the next process that takes the lock deletes the rest.
    pub fn reset(&self) -> Result<(), HomeError> {
        write_private(&self.home.resetting_path(), "")?;
        self.finish_reset()
    }

    fn finish_reset(&self) -> Result<(), HomeError> {
        let home = &self.home;
        if !home.is_resetting() {
            return Ok(());
        }
        self.clean()?;
        let chain = [home.validators_path(), home.data_path(), home.lease_path()];
        let work = [
            home.runners_path(),
            home.jobs_path(),
            home.nodes_path(),
            home.handout_path(),
            home.compose_path(),
            home.kubernetes_path(),
        ];
        for folder in chain.into_iter().chain(work) {
            remove_dir(&folder)?;
        }
        // The devnet's own runners go with its chain; others find out that it is another one.
        for entry in entries(&home.processes_path())? {
            if entry.path().join("supervised").is_file() {
                remove_dir(&entry.path())?;
            }
        }
        remove_file(&part_before(&home.log_path()))?;
        remove_file(&home.log_path())?;
        Ok(remove_file(&home.resetting_path())?)
    }
}

/// The folders of the validators that have stored something in a devnet's folder or in a copy of
/// one, by their names: those in the devnet's process, and those in processes of their own.
pub fn stored_validators(devnet: &Path) -> BTreeMap<String, PathBuf> {
    let below = |folder: PathBuf| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| path.is_dir())
    };
    let apart = below(devnet.join("nodes")).flat_map(|node| below(node.join("validators")));
    let folders = below(devnet.join("validators")).chain(apart);
    let named = |path: PathBuf| Some((path.file_name()?.to_string_lossy().into_owned(), path));
    folders.filter_map(named).collect()
}

/// A new random token.
pub fn new_token() -> String {
    hex::encode(rand::random::<[u8; 32]>())
}

/// The path of a log's older part, for example `devnet.log.1`.
pub fn part_before(log: &Path) -> PathBuf {
    let mut name = log.as_os_str().to_owned();
    name.push(".1");
    name.into()
}

/// Whether a directory, by its path in a devnet's folder, contains jobs' own files.
fn is_of_jobs(path: &Path) -> bool {
    let parts: Vec<_> = path.iter().map(|part| part.to_str().unwrap_or_default()).collect();
    // A runner in a container has a home among the nodes. Artifacts have names chosen by a job,
    // below its run, its id and its attempt.
    matches!(
        parts[..],
        ["jobs"]
            | ["processes" | "nodes", _, "jobs"]
            | ["nodes", _, _, "processes", _, "jobs"]
            | ["lease", "artifacts", _, _, _]
    )
}

#[cfg(test)]
mod tests;
