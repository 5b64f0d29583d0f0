//! Bringing a snapshot back: into the devnet that it is of, or into a new one.

use super::{
    MANIFEST, SnapshotError, Snapshots,
    copy::{settle, sync},
    rename_new,
    scratch::Scratch,
    sums::Sums,
};
use crate::{
    api::types::Snapshot,
    home::{self, DevnetHome, HomeError, Lock, State, create_private_dir},
    topology::{Name, Overrides, Topology},
};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// What devnets that are not whole yet are called.
pub(super) const UNFINISHED: &str = ".loading-";

/// A devnet that was brought back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// The devnet.
    pub devnet: DevnetHome,
    /// What it was brought back from.
    pub snapshot: Snapshot,
    /// Whether a chain that was there is gone.
    pub replaced: bool,
}

impl Snapshots {
    /// Brings a snapshot back, into the devnet that it is of or into `to`. That devnet may not run,
    /// and may have a chain only with `force`: what was in its folder is gone then, but for its
    /// log, its token, and keys of accounts that are not in the snapshot.
    pub fn load(
        &self,
        name: &Name,
        to: Option<&Name>,
        force: bool,
    ) -> Result<Loaded, SnapshotError> {
        let (snapshot, text) = self.read(name)?;
        let of: Name = snapshot.devnet.parse().map_err(|_| {
            SnapshotError::damaged(name, format!("`{}` is no devnet's name", snapshot.devnet))
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

/// Refuses what may not be loaded into; says whether there is a chain.
fn check(devnet: &DevnetHome, force: bool) -> Result<bool, SnapshotError> {
    let name = devnet.name().clone();
    match devnet.state()? {
        State::Absent => return Ok(false),
        State::Stopped | State::Died(_) => {}
        State::Starting { pid } => return Err(SnapshotError::Running { name, pid }),
        State::Running(record) => {
            return Err(SnapshotError::Running { name, pid: Some(record.pid) });
        }
    }
    let processes = devnet.processes_path();
    for entry in fs::read_dir(&processes).into_iter().flatten() {
        let entry = entry.map_err(HomeError::io(&processes))?;
        if home::is_held(&entry.path().join("lock"))? {
            let runner = entry.file_name().to_string_lossy().into_owned();
            return Err(SnapshotError::RunnerRuns { name, runner });
        }
    }
    match devnet.has_chain() {
        true if !force => Err(SnapshotError::HasChain(name)),
        has_chain => Ok(has_chain),
    }
}

/// Gives the devnet in a folder another name, and its chain the old one. Its ports are the other
/// devnet's.
fn rename_devnet(folder: &Path, name: &Name) -> Result<(), SnapshotError> {
    let path = folder.join("topology.yaml");
    let text = home::read_if_there(&path)?.unwrap_or_default();
    let file = path.display().to_string();
    let mut plan = Topology::parse(&text, &file)?.resolve(&Overrides::default(), &text, &file)?;
    plan.name = name.clone();
    home::write_private(&path, &plan.to_yaml())?;
    Ok(home::remove_file(&folder.join("data/ports.json"))?)
}

/// Puts the folder where there is none.
fn create(devnet: &DevnetHome, fresh: &Path) -> Result<(), SnapshotError> {
    // What makes a folder a devnet's.
    drop(home::take_lock(&fresh.join("lock"))?);
    rename_new(fresh, devnet.path()).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty => {
            SnapshotError::HasChain(devnet.name().clone())
        }
        _ => HomeError::io(devnet.path())(error).into(),
    })
}

/// Puts the folder in the place of the devnet's own, which goes to `old`.
fn replace(devnet: &DevnetHome, fresh: &Path, old: &Path) -> Result<(), SnapshotError> {
    // Held until it is done, and the same lock for who waits for it: it moves to the new folder.
    let lock = devnet.lock()?;
    keep(&lock, fresh)?;
    let swapped = renameat_with(CWD, fresh, CWD, devnet.path(), RenameFlags::EXCHANGE);
    match swapped {
        Ok(()) => {}
        // A file system that cannot do it at once.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
            fs::rename(devnet.path(), old).map_err(HomeError::io(devnet.path()))?;
            fs::rename(fresh, devnet.path()).map_err(HomeError::io(devnet.path()))?;
        }
        Err(error) => return Err(HomeError::io(devnet.path())(error.into()).into()),
    }
    Ok(())
}

/// Takes over what a snapshot has not: the lock, the token, the logs, and keys that nobody else
/// has.
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
            // A key of the snapshot is the one that its chain knows; and there may be no token.
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
