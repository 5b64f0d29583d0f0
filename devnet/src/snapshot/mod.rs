//! Snapshots: the whole state of a devnet, saved and loaded.
//!
//! ```text
//! <home>/.snapshots/NAME/     0700
//!   snapshot.json             0600: its description
//!   SHA256SUMS                0600: the hash of every other file ([`sums`])
//!   devnet/                   the devnet's folder, without the files of a process
//! ```
//!
//! The saved folder must have no validator that writes to it: the devnet is stopped, or its
//! validators were stopped for the snapshot. SQLite files are copied through SQLite because the
//! agent and the lease server may go on writing; each is copied before the files that it names. The
//! lock, the record, the API's token, logs, job directories and the folders of runner processes are
//! left out.
//!
//! Everything is built in a temporary folder next to its destination ([`scratch`]) and renamed once
//! it is complete and on disk. After a killed process or a machine failure, a snapshot or devnet is
//! therefore either the old one or the new one. The next process that needs a folder there removes
//! what the killed one left.
//!
//! A snapshot may come from a stranger: links are not followed, memory is bounded, and no read
//! waits for the other end of a pipe.

mod copy;
mod load;
mod scratch;
mod sums;

#[cfg(test)]
mod tests;

pub use crate::storage::StoredHead;
pub use copy::faults_of;
pub use load::Loaded;

use crate::{
    home::{self, DevnetHome, Home, HomeError, stored_validators},
    storage::{self, StorageError},
    topology::{Name, TopologyError},
    types::{ChainId, Snapshot, Text},
};
use cowboy_host::files::{self, FileError};

use copy::Copied;
use jiff::Timestamp;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use scratch::Scratch;
use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
    time::Duration,
};
use sums::{Sums, SumsError};

/// The snapshot format that this program writes and reads.
pub const FORMAT: u32 = 2;

/// The snapshots' folder among the devnets' folders: no devnet's name begins with a dot.
const FOLDER: &str = ".snapshots";
const MANIFEST: &str = "snapshot.json";
const SUMS: &str = "SHA256SUMS";
const DEVNET: &str = "devnet";
/// The name prefix of snapshots that are not complete yet.
const UNFINISHED: &str = ".unfinished-";

/// The longest [`MANIFEST`], in bytes: its fields take less than a thousand.
const MAX_MANIFEST: u64 = 64 << 10;

const SAVED: [&str; 7] =
    ["topology.yaml", "accounts", "validators", "nodes", "runners", "data", "lease"];

/// Why a snapshot cannot be made, found or loaded.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error(transparent)]
    Home(#[from] HomeError),
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Topology(#[from] TopologyError),
    #[error("{path}: {source}")]
    Sqlite { path: PathBuf, source: rusqlite::Error },
    #[error("there is no snapshot `{0}`")]
    Missing(Name),
    #[error("there is a snapshot `{0}` already")]
    Exists(Name),
    #[error("`{0}` is too long for a snapshot's name")]
    Unnamed(String),
    #[error("devnet `{0}` has no chain to save")]
    NoChain(Name),
    #[error("snapshot `{name}` has format {got}, this program reads {}", FORMAT)]
    Format { name: Name, got: u32 },
    /// A devnet's folder has a link, a device, or a name that cannot be listed.
    #[error("{}: a snapshot has only files and folders, with names in UTF-8 of one line", .0.display())]
    Strange(PathBuf),
    #[error("snapshot `{name}` is damaged: {reason}")]
    Damaged {
        name: Name,
        reason: String,
        /// An unlisted file, if that is the only fault: the snapshot can do without it.
        stray: Option<PathBuf>,
    },
    #[error("devnet `{name}` is running{}", .pid.map(|p| format!(" (process {p})")).unwrap_or_default())]
    Running { name: Name, pid: Option<u32> },
    #[error("runner `{runner}` of devnet `{name}` runs in a process of its own")]
    RunnerRuns { name: Name, runner: String },
    /// The devnet has a chain, which loading would delete.
    #[error("devnet `{0}` has a chain already")]
    HasChain(Name),
}

impl From<FileError> for SnapshotError {
    fn from(error: FileError) -> Self {
        Self::Home(error.into())
    }
}

/// A user's snapshots.
#[derive(Debug, Clone)]
pub struct Snapshots {
    home: Home,
    folder: PathBuf,
}

/// A complete snapshot without a name. It is removed when it is dropped.
#[derive(Debug)]
pub struct Draft {
    snapshots: Snapshots,
    scratch: Scratch,
    name: Name,
    snapshot: Snapshot,
}

impl Snapshots {
    pub fn of(home: &Home) -> Self {
        Self { home: home.clone(), folder: home.path().join(FOLDER) }
    }

    pub fn next_to(devnet: &DevnetHome) -> Self {
        Self::of(&devnet.home())
    }

    /// The folder of the snapshot of this name, whether it exists or not.
    pub fn path(&self, name: &Name) -> PathBuf {
        self.folder.join(name.as_str())
    }

    /// Fails if a devnet's folder has entries that a snapshot cannot hold. [`Self::copy`] checks
    /// that too; this check comes before anything is stopped or locked.
    pub fn check_source(&self, devnet: &DevnetHome) -> Result<(), SnapshotError> {
        match devnet.check() {
            Err(HomeError::NotFolder(path)) => Err(SnapshotError::Strange(path)),
            checked => Ok(checked?),
        }
    }

    /// The remains of killed processes, sorted: snapshots and devnets that were incomplete or being
    /// deleted.
    pub fn leftovers(&self) -> Result<Vec<PathBuf>, SnapshotError> {
        self.check()?;
        let mut left = scratch::abandoned(&self.folder, UNFINISHED)?;
        left.extend(scratch::abandoned(self.home.path(), load::UNFINISHED)?);
        Ok(left)
    }

    pub fn sweep(&self) -> Result<(), SnapshotError> {
        self.check()?;
        scratch::sweep(&self.folder, UNFINISHED)?;
        Ok(scratch::sweep(self.home.path(), load::UNFINISHED)?)
    }

    /// Refuses a link in place of the snapshots' folder.
    fn check(&self) -> Result<(), SnapshotError> {
        Ok(home::refuse_other_than_folder(&self.folder)?)
    }

    /// Copies a devnet that is not running or whose validators are stopped. Without `name`, the
    /// snapshot is named after devnet and height.
    pub fn copy(
        &self,
        devnet: &DevnetHome,
        name: Option<&Name>,
        now: Timestamp,
    ) -> Result<Draft, SnapshotError> {
        self.check()?;
        if let Some(name) = name {
            self.vacant(name)?;
        }
        if !devnet.has_chain() {
            return Err(SnapshotError::NoChain(devnet.name().clone()));
        }
        files::create_private_dir(&self.folder)?;
        let scratch = Scratch::new(&self.folder, UNFINISHED)?;
        let target = scratch.path("snapshot");
        files::create_private_dir(&target)?;
        let mut copied = Copied::default();
        for part in SAVED {
            copied.live(devnet.path(), part, &target.join(DEVNET))?;
        }
        let head = newest(&target.join(DEVNET))?;
        let StoredHead { chain_id, height, hash } =
            head.ok_or_else(|| SnapshotError::NoChain(devnet.name().clone()))?;
        let name = match name {
            Some(name) => name.clone(),
            None => {
                let text = format!("{}-{height}", devnet.name());
                text.parse().map_err(|_| SnapshotError::Unnamed(text))?
            }
        };
        self.vacant(&name)?;
        let snapshot = Snapshot {
            format: FORMAT,
            snapshot: name.to_string(),
            devnet: devnet.name().to_string(),
            chain_id: Text(ChainId(chain_id)),
            height: height.get(),
            hash: hash.into(),
            created_at: Text(now),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            files: copied.files,
            bytes: copied.bytes,
            halted_ms: None,
        };
        Ok(Draft { snapshots: self.clone(), scratch, name, snapshot })
    }

    /// All readable snapshots, by name, and the errors of the others.
    pub fn list(&self) -> Result<(Vec<Snapshot>, Vec<SnapshotError>), SnapshotError> {
        self.check()?;
        let entries = files::entries(&self.folder)?;
        let mut names: Vec<Name> =
            entries.iter().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        names.sort();
        let (mut snapshots, mut unreadable) = (Vec::new(), Vec::new());
        for name in names {
            match self.get(&name) {
                Ok(snapshot) => snapshots.push(snapshot),
                Err(error) => unreadable.push(error),
            }
        }
        Ok((snapshots, unreadable))
    }

    pub fn get(&self, name: &Name) -> Result<Snapshot, SnapshotError> {
        Ok(self.read(name)?.0)
    }

    fn read(&self, name: &Name) -> Result<(Snapshot, String), SnapshotError> {
        self.check()?;
        let folder = self.path(name);
        self.found(name)?;
        let damaged = |reason| SnapshotError::damaged(name, reason);
        let text = manifest(&folder).map_err(|error| error.of(name))?;
        let value: serde_json::Value =
            serde_json::from_str(&text).map_err(|e| damaged(format!("{MANIFEST}: {e}")))?;
        // Checked first, because another format may have other fields.
        match value["format"].as_u64().and_then(|format| u32::try_from(format).ok()) {
            Some(FORMAT) => {}
            Some(got) => return Err(SnapshotError::Format { name: name.clone(), got }),
            None => return Err(damaged(format!("{MANIFEST} has no format"))),
        }
        let snapshot: Snapshot =
            serde_json::from_value(value).map_err(|e| damaged(format!("{MANIFEST}: {e}")))?;
        // It may have been renamed by hand.
        Ok((Snapshot { snapshot: name.to_string(), ..snapshot }, text))
    }

    pub fn remove(&self, name: &Name) -> Result<(), SnapshotError> {
        self.check()?;
        let folder = self.path(name);
        self.found(name)?;
        let scratch = Scratch::new(&self.folder, UNFINISHED)?;
        fs::rename(&folder, scratch.path("snapshot")).map_err(HomeError::io(&folder))?;
        Ok(())
    }

    fn found(&self, name: &Name) -> Result<(), SnapshotError> {
        let folder = self.path(name);
        let found =
            files::if_there(fs::symlink_metadata(&folder)).map_err(HomeError::io(&folder))?;
        found.map(drop).ok_or_else(|| SnapshotError::Missing(name.clone()))
    }

    fn vacant(&self, name: &Name) -> Result<(), SnapshotError> {
        match fs::symlink_metadata(self.path(name)) {
            Ok(_) => Err(SnapshotError::Exists(name.clone())),
            Err(_) => Ok(()),
        }
    }
}

impl Draft {
    /// Names the snapshot. `halted` is how long the chain was paused for it.
    pub fn finish(self, halted: Option<Duration>) -> Result<Snapshot, SnapshotError> {
        let halted_ms = halted.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        let snapshot = Snapshot { halted_ms, ..self.snapshot };
        let folder = self.scratch.path("snapshot");
        let json = serde_json::to_string_pretty(&snapshot).expect("a snapshot is plain data");
        files::write_private(&folder.join(MANIFEST), &format!("{json}\n"))?;
        let summed = Sums::of(&folder).and_then(|sums| sums.write(&folder));
        summed.map_err(|error| error.of(&self.name))?;
        // A snapshot with a name is complete, even after a crash of the machine.
        copy::settle(&folder)?;
        rename_new(&folder, &self.snapshots.path(&self.name)).map_err(|error| {
            match error.kind() {
                io::ErrorKind::AlreadyExists => SnapshotError::Exists(self.name.clone()),
                _ => HomeError::io(&folder)(error).into(),
            }
        })?;
        copy::sync(&self.snapshots.folder)?;
        Ok(snapshot)
    }
}

impl SumsError {
    fn of(self, name: &Name) -> SnapshotError {
        match self {
            Self::Home(error) => error.into(),
            Self::Refused(reason) => SnapshotError::damaged(name, reason),
            Self::Stray { what: reason, path } => {
                SnapshotError::Damaged { name: name.clone(), reason, stray: Some(path) }
            }
        }
    }
}

impl SnapshotError {
    fn damaged(name: &Name, reason: String) -> Self {
        Self::Damaged { name: name.clone(), reason, stray: None }
    }
}

fn manifest(folder: &Path) -> Result<String, SumsError> {
    let top = sums::open_folder(CWD, folder, "its folder", folder)?;
    let path = folder.join(MANIFEST);
    let file = sums::open_file(&top, MANIFEST, MANIFEST, &path)?;
    let mut text = Vec::new();
    file.take(MAX_MANIFEST + 1).read_to_end(&mut text).map_err(HomeError::io(&path))?;
    let text = String::from_utf8(text).ok().filter(|text| text.len() as u64 <= MAX_MANIFEST);
    text.ok_or_else(|| SumsError::Refused(format!("{MANIFEST} is not as it was written")))
}

fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // This file system lacks the flag; but a rename does not replace a non-empty folder either.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => fs::rename(from, to),
        other => Ok(other?),
    }
}

fn newest(devnet: &Path) -> Result<Option<StoredHead>, SnapshotError> {
    Ok(heads(devnet)?.into_values().max_by_key(|head| head.height))
}

/// The newest block that each validator has stored, by the validator's name. Validators without a
/// block are left out.
pub fn heads(devnet: &Path) -> Result<BTreeMap<String, StoredHead>, SnapshotError> {
    let mut heads = BTreeMap::new();
    for (name, folder) in stored_validators(devnet) {
        let file = folder.join("index.db");
        if file.is_file()
            && let Some(head) = storage::head_of(&file)?
        {
            heads.insert(name, head);
        }
    }
    Ok(heads)
}
