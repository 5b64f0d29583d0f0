//! A devnet's folder on disk, and the lock that shows whether the devnet runs.
//!
//! ```text
//! <home>/<name>/          0700
//!   lock                  held exclusively by the process that runs the devnet; its pid
//!   topology.yaml         the resolved topology of this chain
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

use crate::{
    api::types::{ChainId, Text},
    nofollow,
    topology::{Name, NameError},
};
use cowboy_engine::primitives::SecretKey;
use jiff::Timestamp;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use std::{
    env,
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    process, thread,
    time::Duration,
};

/// Maximum length of a state file that is read, far above any real one.
const FILE_LIMIT: u64 = 16 << 20;

/// Attempts to take a lock and the pause between them. Together they last far longer than a check
/// of the lock ([`DevnetHome::state`]) holds it, and are short enough to refuse a second start at
/// once.
const LOCK_ATTEMPTS: u32 = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// Why a devnet's folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// No environment variable names a home.
    #[error("no place for devnets: set COWBOYCTL_HOME, XDG_STATE_HOME or HOME to an absolute path")]
    NoHome,
    /// `COWBOYCTL_HOME` is a relative path.
    #[error("COWBOYCTL_HOME is {}, a relative path", .0.display())]
    Relative(PathBuf),
    /// A file or folder cannot be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file has invalid contents.
    #[error("{path}: {reason}")]
    Malformed {
        path: PathBuf,
        /// The contents found and the contents expected.
        reason: String,
    },
    /// The devnet's folder contains a link, a device, a pipe or a socket, or a file in place of a
    /// folder.
    #[error("{}: a link, or not the kind of file that a devnet keeps there", .0.display())]
    NotFolder(PathBuf),
    /// Another process runs the devnet.
    #[error("devnet `{name}` is in use{}", .pid.map(|pid| format!(" by process {pid}")).unwrap_or_default())]
    InUse {
        name: Name,
        /// That process, if known.
        pid: Option<u32>,
    },
}

impl HomeError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Io { path: path.to_owned(), source }
    }
}

/// The subfolder for devnets that are being removed.
const REMOVED: &str = ".removed";

/// The file with the name of the devnet that commands use when none is named.
const CURRENT: &str = ".current";

/// The folder that contains all devnets of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home(PathBuf);

impl Home {
    /// The home that the environment names.
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

    /// The home in this folder.
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
        let malformed = |error: NameError| HomeError::Malformed { path, reason: error.to_string() };
        text.trim_end().parse().map(Some).map_err(malformed)
    }

    /// Sets or clears the devnet that commands use when none is named.
    pub fn set_current(&self, name: Option<&Name>) -> Result<(), HomeError> {
        let path = self.0.join(CURRENT);
        match name {
            Some(name) => write_private(&path, &format!("{name}\n")),
            None => remove_file(&path),
        }
    }

    /// The devnets that have a folder, by name.
    pub fn list(&self) -> Result<Vec<DevnetHome>, HomeError> {
        let entries = match fs::read_dir(&self.0) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(HomeError::io(&self.0)(error)),
        };
        let mut devnets = Vec::new();
        for entry in entries {
            let entry = entry.map_err(HomeError::io(&self.0))?;
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
    /// The devnet's name.
    pub name: Name,
    /// The process that runs it.
    pub pid: u32,
    /// When that process began to run it.
    pub started_at: Text<Timestamp>,
    /// The URL of its control API, for example `http://127.0.0.1:20123`.
    pub rpc_url: String,
    /// The chain id in its transactions.
    pub chain_id: Text<ChainId>,
    /// The URL of its lease server, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_url: Option<String>,
}

/// The state of a devnet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DevnetState {
    /// It has no folder.
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
    /// Whether no process runs the devnet.
    pub const fn is_down(&self) -> bool {
        matches!(self, Self::Absent | Self::Stopped | Self::Died(_))
    }
}

/// One devnet's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DevnetHome {
    path: PathBuf,
    name: Name,
}

impl DevnetHome {
    /// The devnet's name.
    pub fn name(&self) -> &Name {
        &self.name
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder of all devnets.
    pub fn home(&self) -> Home {
        Home(self.path.parent().expect("a devnet's folder lies in its home").to_owned())
    }

    /// The path that no job may open: the folder of all devnets, or this devnet's folder if that is
    /// the file system's root.
    pub fn private_path(&self) -> &Path {
        self.path.parent().filter(|home| home.parent().is_some()).unwrap_or(&self.path)
    }

    /// `lock`: held exclusively by the process that runs the devnet; contains its pid.
    pub fn lock_path(&self) -> PathBuf {
        self.path.join("lock")
    }

    /// `resetting`: exists while the devnet is being reset.
    fn resetting_path(&self) -> PathBuf {
        self.path.join("resetting")
    }

    /// `devnet.json`: a [`DevnetRecord`].
    pub fn record_path(&self) -> PathBuf {
        self.path.join("devnet.json")
    }

    /// `topology.yaml`: the resolved topology of this chain.
    pub fn topology_path(&self) -> PathBuf {
        self.path.join("topology.yaml")
    }

    /// `token`: the token that requests must carry to change state.
    pub fn token_path(&self) -> PathBuf {
        self.path.join("token")
    }

    /// `log/devnet.log`: the process's log, without the older part in [`part_before`].
    pub fn log_path(&self) -> PathBuf {
        self.path.join("log/devnet.log")
    }

    /// `accounts/NAME.key`: an account's secret key.
    pub fn account_key_path(&self, account: &Name) -> PathBuf {
        self.accounts_path().join(format!("{account}.key"))
    }

    /// `accounts`: the accounts' secret keys.
    pub fn accounts_path(&self) -> PathBuf {
        self.path.join("accounts")
    }

    /// `validators`: a folder for each validator.
    pub fn validators_path(&self) -> PathBuf {
        self.path.join("validators")
    }

    /// `validators/NAME`: a validator's keys and chain.
    pub fn validator_path(&self, validator: &Name) -> PathBuf {
        self.validators_path().join(validator.as_str())
    }

    /// `runners`: a folder for each runner.
    pub fn runners_path(&self) -> PathBuf {
        self.path.join("runners")
    }

    /// `runners/NAME`: a runner's key and work.
    pub fn runner_path(&self, runner: &Name) -> PathBuf {
        self.runners_path().join(runner.as_str())
    }

    /// `data`: the devnet's own state that outlives restarts, such as its ports.
    pub fn data_path(&self) -> PathBuf {
        self.path.join("data")
    }

    /// `data/speculation.db`: the agent's record of pipelines.
    pub fn speculation_path(&self) -> PathBuf {
        self.data_path().join("speculation.db")
    }

    /// `data/names.json`: the names that users gave to actors, timers and jobs.
    pub fn names_path(&self) -> PathBuf {
        self.data_path().join("names.json")
    }

    /// `lease`: the lease server's state.
    pub fn lease_path(&self) -> PathBuf {
        self.path.join("lease")
    }

    /// `jobs`: directories of the jobs of runners in the devnet's process.
    pub fn jobs_path(&self) -> PathBuf {
        self.path.join("jobs")
    }

    /// `processes`: a folder for each runner in a separate process.
    pub fn processes_path(&self) -> PathBuf {
        self.path.join("processes")
    }

    /// Whether the devnet has a folder with a lock in it.
    pub fn exists(&self) -> bool {
        self.lock_path().is_file()
    }

    /// Whether the chain has begun, so that a validator has a folder. A chain that is being reset
    /// does not count.
    pub fn has_chain(&self) -> bool {
        !self.is_resetting()
            && fs::read_dir(self.validators_path())
                .is_ok_and(|mut entries| entries.next().is_some())
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
            Err((path, source)) => Err(HomeError::Io { path, source }),
        }
    }

    /// Checks only that the devnet's folder and its fixed subfolders are not links.
    fn check_folders(&self) -> Result<(), HomeError> {
        let folders =
            ["accounts", "log", "validators", "runners", "data", "lease", "jobs", "processes"];
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

    /// The devnet's current state.
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
        serde_json::from_str(&text)
            .map(Some)
            .map_err(|error| HomeError::Malformed { path, reason: error.to_string() })
    }

    /// The token of the control API.
    pub fn token(&self) -> Result<String, HomeError> {
        read(&self.token_path()).map(|text| text.trim().to_owned())
    }

    /// The saved topology; `None` if the devnet never started.
    pub fn topology(&self) -> Result<Option<String>, HomeError> {
        read_if_there(&self.topology_path())
    }

    /// The text of `data/names.json`; empty when the file does not exist.
    pub fn names(&self) -> Result<String, HomeError> {
        Ok(read_if_there(&self.names_path())?.unwrap_or_default())
    }

    /// The names of the accounts that have a key here, sorted.
    pub fn accounts(&self) -> Result<Vec<Name>, HomeError> {
        let path = self.accounts_path();
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(HomeError::io(&path)(error)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let file = entry.map_err(HomeError::io(&path))?.file_name();
            names.extend(
                file.to_str().and_then(|f| f.strip_suffix(".key")).and_then(|n| n.parse().ok()),
            );
        }
        names.sort();
        Ok(names)
    }

    /// Saves the key of a new account, whether or not a process runs the devnet. Returns false if
    /// an account of this name exists.
    pub fn add_account(&self, account: &Name, key: &SecretKey) -> Result<bool, HomeError> {
        self.check_folders()?;
        let (folder, path) = (self.accounts_path(), self.account_key_path(account));
        let fresh = tempfile::NamedTempFile::new_in(&folder).and_then(|mut file| {
            writeln!(file, "{}", hex::encode(key.to_bytes()))?;
            file.as_file().sync_all()?;
            Ok(file)
        });
        // The file appears with its whole contents, and never replaces another key.
        match fresh.map_err(HomeError::io(&folder))?.persist_noclobber(&path) {
            Ok(_) => Ok(true),
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(HomeError::io(&path)(error.error)),
        }
    }

    /// Deletes the key of an account.
    pub fn remove_account(&self, account: &Name) -> Result<(), HomeError> {
        self.check_folders()?;
        remove_file(&self.account_key_path(account))
    }

    /// The secret key of an account; `None` if no account has that name.
    pub fn account_key(&self, account: &Name) -> Result<Option<SecretKey>, HomeError> {
        let path = self.account_key_path(account);
        let Some(text) = read_if_there(&path)? else { return Ok(None) };
        let mut bytes = [0; 32];
        hex::decode_to_slice(text.trim(), &mut bytes)
            .ok()
            .and_then(|()| SecretKey::from_bytes(&bytes).ok())
            .map(Some)
            .ok_or(HomeError::Malformed {
                path,
                reason: "not a secret key: expected 64 hex digits on one line".to_owned(),
            })
    }
}

/// A devnet taken by this process: no other process runs or changes it until this is dropped.
#[derive(Debug)]
pub struct Lock {
    home: DevnetHome,
    _file: File,
}

impl Lock {
    /// The folder of the devnet.
    pub fn home(&self) -> &DevnetHome {
        &self.home
    }

    /// Removes the `devnet.json` of a killed devnet.
    pub fn clean(&self) -> Result<(), HomeError> {
        remove_file(&self.home.record_path())
    }

    /// Writes the devnet's record. Readers see either the whole record or no record.
    pub fn write_record(&self, record: &DevnetRecord) -> Result<(), HomeError> {
        let json = serde_json::to_string_pretty(record).expect("a record is plain data");
        write_private(&self.home.record_path(), &format!("{json}\n"))
    }

    /// Saves the topology that the chain was begun with.
    pub fn write_topology(&self, yaml: &str) -> Result<(), HomeError> {
        write_private(&self.home.topology_path(), yaml)
    }

    /// Sets the token of the API.
    pub fn write_token(&self, token: &str) -> Result<(), HomeError> {
        write_private(&self.home.token_path(), &format!("{token}\n"))
    }

    /// Saves an account's secret key.
    pub fn write_account_key(&self, account: &Name, key: &SecretKey) -> Result<(), HomeError> {
        let text = format!("{}\n", hex::encode(key.to_bytes()));
        write_private(&self.home.account_key_path(account), &text)
    }

    /// Deletes the devnet's folder with all its contents. If this process is killed meanwhile, the
    /// devnet is either intact or gone, and the next removal deletes the rest.
    pub fn remove(self) -> Result<(), HomeError> {
        let home = self.home.home();
        let removed = home.path().join(REMOVED);
        create_private_dir(&removed)?;
        let path = removed.join(format!("{}.{}", self.home.name, process::id()));
        remove_dir(&path)?;
        fs::rename(&self.home.path, &path).map_err(HomeError::io(&self.home.path))?;
        remove_dir(&removed)
    }

    /// Deletes the chain, the runners' work and the logs. The topology and the accounts' keys stay.
    /// If this process is killed meanwhile, the next process that takes the lock deletes the rest.
    pub fn reset(&self) -> Result<(), HomeError> {
        write_private(&self.home.resetting_path(), "")?;
        self.finish_reset()
    }

    /// Finishes a reset that has begun.
    fn finish_reset(&self) -> Result<(), HomeError> {
        let home = &self.home;
        if !home.is_resetting() {
            return Ok(());
        }
        self.clean()?;
        let chain = [home.validators_path(), home.data_path(), home.lease_path()];
        let work = [home.runners_path(), home.jobs_path()];
        for folder in chain.into_iter().chain(work) {
            remove_dir(&folder)?;
        }
        remove_file(&part_before(&home.log_path()))?;
        remove_file(&home.log_path())?;
        remove_file(&home.resetting_path())
    }
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
    // Artifacts have names chosen by a job, below its run, its id and its attempt.
    matches!(parts[..], ["jobs"] | ["processes", _, "jobs"] | ["lease", "artifacts", _, _, _])
}

/// Refuses a path that exists and is not a real folder.
pub(crate) fn refuse_other_than_folder(path: &Path) -> Result<(), HomeError> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.is_dir() => Err(HomeError::NotFolder(path.to_owned())),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(HomeError::io(path)(error)),
        _ => Ok(()),
    }
}

/// Takes a lock file for this process, creating it if absent, and writes the process id into it.
/// `None` if another process holds it.
pub(crate) fn take_lock(path: &Path) -> Result<Option<File>, HomeError> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    // The file is truncated, so a link to another file must not be followed. Opening a pipe would
    // wait for its reader.
    options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
    let file = options.open(path).map_err(HomeError::io(path))?;
    for _ in 0..LOCK_ATTEMPTS {
        match file.try_lock() {
            Ok(()) => {
                let pid = process::id().to_string();
                file.set_len(0)
                    .and_then(|()| file.write_all_at(pid.as_bytes(), 0))
                    .map_err(HomeError::io(path))?;
                return Ok(Some(file));
            }
            Err(TryLockError::WouldBlock) => thread::sleep(LOCK_PAUSE),
            Err(TryLockError::Error(error)) => return Err(HomeError::io(path)(error)),
        }
    }
    Ok(None)
}

/// The last process that took a lock.
pub(crate) fn holder(lock: &Path) -> Option<u32> {
    read(lock).ok()?.parse().ok()
}

/// Whether a process holds a lock. The check takes a shared lock for a moment: two checks do not
/// see each other, and [`take_lock`] retries for longer than a check takes.
pub(crate) fn is_held(path: &Path) -> Result<bool, HomeError> {
    let file = match open_at_once(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(HomeError::io(path)(error)),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(HomeError::io(path)(error)),
    }
}

/// Creates a folder and its parents, accessible only to its owner.
pub fn create_private_dir(path: &Path) -> Result<(), HomeError> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(HomeError::io(path))
}

/// Replaces a file atomically and durably by one that only its owner can read.
pub fn write_private(path: &Path, text: &str) -> Result<(), HomeError> {
    let fresh = path.with_extension("new");
    remove_file(&fresh)?;
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(&fresh);
    file.and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    })
    .map_err(HomeError::io(&fresh))?;
    fs::rename(&fresh, path).map_err(HomeError::io(path))
}

/// A file's text; `None` if the file is absent.
pub(crate) fn read_if_there(path: &Path) -> Result<Option<String>, HomeError> {
    match read(path) {
        Ok(text) => Ok(Some(text)),
        Err(HomeError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn read(path: &Path) -> Result<String, HomeError> {
    let mut text = String::new();
    let file = open_at_once(path).and_then(|file| match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a file")),
    });
    let file = file.map_err(HomeError::io(path))?;
    file.take(FILE_LIMIT).read_to_string(&mut text).map_err(HomeError::io(path))?;
    Ok(text)
}

/// Opens a path for reading, without waiting for a writer if it is a pipe.
fn open_at_once(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Removes a file if it exists.
pub(crate) fn remove_file(path: &Path) -> Result<(), HomeError> {
    absent_is_fine(fs::remove_file(path)).map_err(HomeError::io(path))
}

fn remove_dir(path: &Path) -> Result<(), HomeError> {
    absent_is_fine(fs::remove_dir_all(path)).map_err(HomeError::io(path))
}

fn absent_is_fine(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests;
