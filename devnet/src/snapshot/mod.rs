//! Snapshots: the whole state of a devnet, saved and brought back.
//!
//! ```text
//! <home>/.snapshots/NAME/     0700
//!   snapshot.json             0600: what it is
//!   SHA256SUMS                0600: the hash of every other file ([`sums`])
//!   devnet/                   the devnet's folder, without what belongs to a process
//! ```
//!
//! Saving takes a folder that no validator writes to: that of a stopped devnet, or of one whose
//! validators were stopped for it. SQLite files are copied through SQLite, so that others may go on
//! writing: the agent's and the lease server's, before the files that they name. Not taken are the
//! lock, the record, the API's token, logs, directories of jobs, and runners in processes of their
//! own.
//!
//! Whatever is made is made in a folder beside ([`scratch`]) and renamed when it is whole and on
//! the disk: a process that is killed, or a machine that fails, leaves a snapshot, or a devnet, as
//! it was before or as it is to be. What such a process leaves is removed by the next one that
//! needs a folder there.
//!
//! A snapshot may come from a stranger: it is read without following links, what is read into
//! memory is bounded, and nothing waits for the other end of a pipe.

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
    api::types::{ChainId, Snapshot, Text},
    home::{self, DevnetHome, Home, HomeError},
    storage::{self, StorageError},
    topology::{Name, TopologyError},
};

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

/// The layout that this program writes and reads.
pub const FORMAT: u32 = 2;

/// What the folder of snapshots is called among those of devnets: no devnet's name begins so.
const FOLDER: &str = ".snapshots";
/// What a snapshot is.
const MANIFEST: &str = "snapshot.json";
/// The hash of every other file.
const SUMS: &str = "SHA256SUMS";
/// What is in it.
const DEVNET: &str = "devnet";
/// What snapshots that are not whole yet are called.
const UNFINISHED: &str = ".unfinished-";

/// The longest [`MANIFEST`], in bytes: its fields take less than a thousand.
const MAX_MANIFEST: u64 = 64 << 10;

/// What of a devnet's folder is saved.
const SAVED: [&str; 6] = ["topology.yaml", "accounts", "validators", "runners", "data", "lease"];

/// Why a snapshot is not made, found, or brought back.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// A file or folder.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// A validator's file.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The saved topology.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// An SQLite file cannot be copied.
    #[error("{path}: {source}")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        source: rusqlite::Error,
    },
    /// There is none of this name.
    #[error("there is no snapshot `{0}`")]
    Missing(Name),
    /// There is one of this name already.
    #[error("there is a snapshot `{0}` already")]
    Exists(Name),
    /// Devnet and height together are no name.
    #[error("`{0}` is too long for a snapshot's name")]
    Unnamed(String),
    /// A devnet that never began a chain.
    #[error("devnet `{0}` has no chain to save")]
    NoChain(Name),
    /// Of another version.
    #[error("snapshot `{name}` has format {got}, this program reads {}", FORMAT)]
    Format {
        /// Which.
        name: Name,
        /// What it says.
        got: u32,
    },
    /// A devnet's folder has a link, a device, or a name that cannot be listed.
    #[error("{}: a snapshot has only files and folders, with names in UTF-8 of one line", .0.display())]
    Strange(PathBuf),
    /// It is not what was saved.
    #[error("snapshot `{name}` is damaged: {reason}")]
    Damaged {
        /// Which.
        name: Name,
        /// How.
        reason: String,
        /// What was not saved with it and would not be missed, where that is all.
        stray: Option<PathBuf>,
    },
    /// The devnet that it should be loaded into runs.
    #[error("devnet `{name}` is running{}", .pid.map(|p| format!(" (process {p})")).unwrap_or_default())]
    Running {
        /// The devnet.
        name: Name,
        /// Its process, where it is known.
        pid: Option<u32>,
    },
    /// It has a runner in a process of its own.
    #[error("runner `{runner}` of devnet `{name}` runs in a process of its own")]
    RunnerRuns {
        /// The devnet.
        name: Name,
        /// The runner.
        runner: String,
    },
    /// It has a chain, which would be gone.
    #[error("devnet `{0}` has a chain already")]
    HasChain(Name),
}

/// All snapshots of a user.
#[derive(Debug, Clone)]
pub struct Snapshots {
    home: Home,
    folder: PathBuf,
}

/// A snapshot that is whole but has no name yet; gone when it is dropped.
#[derive(Debug)]
pub struct Draft {
    snapshots: Snapshots,
    scratch: Scratch,
    name: Name,
    snapshot: Snapshot,
}

impl Snapshots {
    /// Those beside the devnets of a home.
    pub fn of(home: &Home) -> Self {
        Self { home: home.clone(), folder: home.path().join(FOLDER) }
    }

    /// Those beside a devnet.
    pub fn beside(devnet: &DevnetHome) -> Self {
        Self::of(&devnet.home())
    }

    /// The folder of the snapshot of this name, whether it exists or not.
    pub fn path(&self, name: &Name) -> PathBuf {
        self.folder.join(name.as_str())
    }

    /// Refuses a devnet whose folder has what a snapshot cannot have. [`Self::copy`] looks itself;
    /// this says so before anything is stopped or locked for it.
    pub fn check_source(&self, devnet: &DevnetHome) -> Result<(), SnapshotError> {
        match devnet.check() {
            Err(HomeError::NotFolder(path)) => Err(SnapshotError::Strange(path)),
            checked => Ok(checked?),
        }
    }

    /// What killed processes left, sorted: snapshots and devnets that were not whole yet, or were
    /// being deleted.
    pub fn leftovers(&self) -> Result<Vec<PathBuf>, SnapshotError> {
        self.check()?;
        let mut left = scratch::abandoned(&self.folder, UNFINISHED)?;
        left.extend(scratch::abandoned(self.home.path(), load::UNFINISHED)?);
        Ok(left)
    }

    /// Removes the [`Self::leftovers`].
    pub fn sweep(&self) -> Result<(), SnapshotError> {
        self.check()?;
        scratch::sweep(&self.folder, UNFINISHED)?;
        Ok(scratch::sweep(self.home.path(), load::UNFINISHED)?)
    }

    /// Refuses a link in the place of the folder of snapshots.
    fn check(&self) -> Result<(), SnapshotError> {
        Ok(home::refuse_other_than_folder(&self.folder)?)
    }

    /// Copies a devnet that no process runs, or whose validators are stopped. `name`: what to call
    /// it, else devnet and height.
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
        home::create_private_dir(&self.folder)?;
        let scratch = Scratch::new(&self.folder, UNFINISHED)?;
        let target = scratch.path("snapshot");
        home::create_private_dir(&target)?;
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

    /// Every snapshot, by name, and why some cannot be read.
    pub fn list(&self) -> Result<(Vec<Snapshot>, Vec<SnapshotError>), SnapshotError> {
        self.check()?;
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok((Vec::new(), Vec::new()));
            }
            Err(error) => return Err(HomeError::io(&self.folder)(error).into()),
        };
        let mut names: Vec<Name> = Vec::new();
        for entry in entries {
            let file = entry.map_err(HomeError::io(&self.folder))?.file_name();
            names.extend(file.to_str().and_then(|name| name.parse().ok()));
        }
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

    /// The snapshot of this name.
    pub fn get(&self, name: &Name) -> Result<Snapshot, SnapshotError> {
        Ok(self.read(name)?.0)
    }

    /// The snapshot of this name, and the text that says so.
    fn read(&self, name: &Name) -> Result<(Snapshot, String), SnapshotError> {
        self.check()?;
        let folder = self.path(name);
        match fs::symlink_metadata(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(SnapshotError::Missing(name.clone()));
            }
            found => found.map_err(HomeError::io(&folder))?,
        };
        let damaged = |reason| SnapshotError::damaged(name, reason);
        let text = manifest(&folder).map_err(|error| error.of(name))?;
        let value: serde_json::Value =
            serde_json::from_str(&text).map_err(|e| damaged(format!("{MANIFEST}: {e}")))?;
        // Looked at first: the rest of another format may be anything.
        match value["format"].as_u64().and_then(|format| u32::try_from(format).ok()) {
            Some(FORMAT) => {}
            Some(got) => return Err(SnapshotError::Format { name: name.clone(), got }),
            None => return Err(damaged(format!("{MANIFEST} names no format"))),
        }
        let snapshot: Snapshot =
            serde_json::from_value(value).map_err(|e| damaged(format!("{MANIFEST}: {e}")))?;
        // It may have been renamed by hand.
        Ok((Snapshot { snapshot: name.to_string(), ..snapshot }, text))
    }

    /// Deletes the snapshot of this name, whatever is in it.
    pub fn remove(&self, name: &Name) -> Result<(), SnapshotError> {
        self.check()?;
        let folder = self.path(name);
        let scratch = match fs::symlink_metadata(&folder) {
            Ok(_) => Scratch::new(&self.folder, UNFINISHED)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(SnapshotError::Missing(name.clone()));
            }
            Err(error) => return Err(HomeError::io(&folder)(error).into()),
        };
        fs::rename(&folder, scratch.path("snapshot")).map_err(HomeError::io(&folder))?;
        Ok(())
    }

    fn vacant(&self, name: &Name) -> Result<(), SnapshotError> {
        match fs::symlink_metadata(self.path(name)) {
            Ok(_) => Err(SnapshotError::Exists(name.clone())),
            Err(_) => Ok(()),
        }
    }
}

impl Draft {
    /// Gives it its name. `halted`: how long the chain stood still for it.
    pub fn finish(self, halted: Option<Duration>) -> Result<Snapshot, SnapshotError> {
        let halted_ms = halted.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        let snapshot = Snapshot { halted_ms, ..self.snapshot };
        let folder = self.scratch.path("snapshot");
        let json = serde_json::to_string_pretty(&snapshot).expect("a snapshot is plain data");
        home::write_private(&folder.join(MANIFEST), &format!("{json}\n"))?;
        let summed = Sums::of(&folder).and_then(|sums| sums.write(&folder));
        summed.map_err(|error| error.of(&self.name))?;
        // Its name promises that it is whole, whatever happens to the machine.
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

/// The text of [`MANIFEST`] in a snapshot's folder.
fn manifest(folder: &Path) -> Result<String, SumsError> {
    let top = sums::open_folder(CWD, folder, "its folder", folder)?;
    let path = folder.join(MANIFEST);
    let file = sums::open_file(&top, MANIFEST, MANIFEST, &path)?;
    let mut text = Vec::new();
    file.take(MAX_MANIFEST + 1).read_to_end(&mut text).map_err(HomeError::io(&path))?;
    let text = String::from_utf8(text).ok().filter(|text| text.len() as u64 <= MAX_MANIFEST);
    text.ok_or_else(|| SumsError::Refused(format!("{MANIFEST} is not as it was written")))
}

/// Renames to a name that nothing has.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // A file system that cannot: a folder that is not empty is not replaced either.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => fs::rename(from, to),
        other => Ok(other?),
    }
}

/// The newest block that any validator has stored.
fn newest(devnet: &Path) -> Result<Option<StoredHead>, SnapshotError> {
    Ok(heads(devnet)?.into_values().max_by_key(|head| head.height))
}

/// The newest block that each validator has stored, by the validator's name. One without a block is
/// not there.
pub fn heads(devnet: &Path) -> Result<BTreeMap<String, StoredHead>, SnapshotError> {
    let validators = devnet.join("validators");
    let entries = match fs::read_dir(&validators) {
        // Only what has files was copied.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        entries => entries.map_err(HomeError::io(&validators))?,
    };
    let mut heads = BTreeMap::new();
    for entry in entries {
        let entry = entry.map_err(HomeError::io(&validators))?;
        let file = entry.path().join("index.db");
        if file.is_file()
            && let Some(head) = storage::head_of(&file)?
        {
            heads.insert(entry.file_name().to_string_lossy().into_owned(), head);
        }
    }
    Ok(heads)
}
