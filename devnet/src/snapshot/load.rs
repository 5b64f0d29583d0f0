//! Loading a snapshot, either into the devnet that it was saved from or into a new one.

use super::{
    MANIFEST, SnapshotError, Snapshots,
    copy::{settle, sync},
    rename_new,
    scratch::Scratch,
    sums::Sums,
};
use crate::{
    home::{DevnetHome, DevnetState, HomeError, Lock},
    topology::{Name, Overrides, Topology},
    types::Snapshot,
};
use cowboy_host::files::{self, create_private_dir};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The name prefix of devnets that are not complete yet.
pub(super) const UNFINISHED: &str = ".loading-";

/// A devnet that was loaded from a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    pub devnet: DevnetHome,
    pub snapshot: Snapshot,
    pub replaced: bool,
}

impl Snapshots {
    /// Loads a snapshot into the devnet that it was saved from, or into `to`. That devnet must not
    /// be running, and may have a chain only with `force`. Its folder is then replaced, except for
    /// its log, its token, and account keys that the snapshot lacks.
    pub fn load(
        &self,
        name: &Name,
        to: Option<&Name>,
        force: bool,
    ) -> Result<Loaded, SnapshotError> {
        let (snapshot, text) = self.read(name)?;
        let of: Name = snapshot.devnet.parse().map_err(|_| {
            SnapshotError::damaged(name, format!("`{}` is not a devnet's name", snapshot.devnet))
        })?;
        let devnet = self.home.devnet(to.unwrap_or(&of));
        let replaced = check(&devnet, force)?;
        create_private_dir(self.home.path())?;
        let scratch = Scratch::new(self.home.path(), UNFINISHED)?;
        let fresh = scratch.path("devnet");
        let folder = self.path(name);
        let brought = Sums::read(&folder).and_then(|sums| {
            sums.check(MANIFEST, &text)?;
            sums.bring(&folder, &fresh)
        });
        brought.map_err(|error| error.of(name))?;
        if *devnet.name() != of {
            rename_devnet(&fresh, devnet.name())?;
        }
        create_private_dir(&fresh.join("log"))?;
        settle(&fresh)?;
        match devnet.exists() {
            true => replace(&devnet, &fresh, &scratch.path("old"))?,
            false => create(&devnet, &fresh)?,
        }
        sync(self.home.path())?;
        Ok(Loaded { devnet, snapshot, replaced })
    }
}

/// Fails if the devnet may not be loaded into; returns whether it has a chain.
fn check(devnet: &DevnetHome, force: bool) -> Result<bool, SnapshotError> {
    let name = devnet.name().clone();
    match devnet.state()? {
        DevnetState::Absent => return Ok(false),
        DevnetState::Stopped | DevnetState::Died(_) => {}
        DevnetState::Starting { pid } => return Err(SnapshotError::Running { name, pid }),
        DevnetState::Running(record) => {
            return Err(SnapshotError::Running { name, pid: Some(record.pid) });
        }
    }
    let processes = devnet.processes_path();
    for entry in fs::read_dir(&processes).into_iter().flatten() {
        let entry = entry.map_err(HomeError::io(&processes))?;
        if files::is_held(&entry.path().join("lock"))? {
            let runner = entry.file_name().to_string_lossy().into_owned();
            return Err(SnapshotError::RunnerRuns { name, runner });
        }
    }
    match devnet.has_chain() {
        true if !force => Err(SnapshotError::HasChain(name)),
        has_chain => Ok(has_chain),
    }
}

/// Drops the saved ports, because they are those of the original devnet.
fn rename_devnet(folder: &Path, name: &Name) -> Result<(), SnapshotError> {
    let path = folder.join("topology.yaml");
    let text = files::read_if_there(&path)?.unwrap_or_default();
    let file = path.display().to_string();
    let mut plan = Topology::parse(&text, &file)?.resolve(&Overrides::default(), &text, &file)?;
    plan.name = name.clone();
    files::write_private(&path, &plan.to_yaml())?;
    Ok(files::remove_file(&folder.join("data/ports.json"))?)
}

fn create(devnet: &DevnetHome, fresh: &Path) -> Result<(), SnapshotError> {
    // The lock file marks a folder as a devnet's.
    drop(files::take_lock(&fresh.join("lock"))?);
    rename_new(fresh, devnet.path()).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty => {
            SnapshotError::HasChain(devnet.name().clone())
        }
        _ => HomeError::io(devnet.path())(error).into(),
    })
}

/// Replaces the devnet's folder with `fresh`. The old folder goes to `old`.
fn replace(devnet: &DevnetHome, fresh: &Path, old: &Path) -> Result<(), SnapshotError> {
    // Held until the end. The lock file moves to the new folder, so waiting processes share the
    // lock.
    let lock = devnet.lock()?;
    keep(&lock, fresh)?;
    let swapped = renameat_with(CWD, fresh, CWD, devnet.path(), RenameFlags::EXCHANGE);
    match swapped {
        Ok(()) => {}
        // This file system cannot swap two folders atomically.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
            fs::rename(devnet.path(), old).map_err(HomeError::io(devnet.path()))?;
            fs::rename(fresh, devnet.path()).map_err(HomeError::io(devnet.path()))?;
        }
        Err(error) => return Err(HomeError::io(devnet.path())(error.into()).into()),
    }
    Ok(())
}

/// Keeps what a snapshot lacks: the lock, the token, the logs, and account keys that exist nowhere
/// else.
fn keep(lock: &Lock, fresh: &Path) -> Result<(), SnapshotError> {
    let devnet = lock.home();
    let mut kept: Vec<PathBuf> = vec![devnet.lock_path(), devnet.token_path()];
    for folder in ["log", "accounts"] {
        let path = devnet.path().join(folder);
        for entry in fs::read_dir(&path).into_iter().flatten() {
            kept.push(entry.map_err(HomeError::io(&path))?.path());
        }
    }
    for path in kept {
        let relative = path.strip_prefix(devnet.path()).expect("it lies in the devnet's folder");
        let target = fresh.join(relative);
        if let Some(parent) = target.parent() {
            create_private_dir(parent)?;
        }
        match fs::hard_link(&path, &target) {
            Ok(()) => {}
            // The snapshot's key wins because its chain knows it; and there may be no token.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound
                ) => {}
            Err(error) => return Err(HomeError::io(&path)(error).into()),
        }
    }
    Ok(())
}
