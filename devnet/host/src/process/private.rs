//! Keeps commands of jobs out of a folder: the one with the devnets' tokens, keys and databases,
//! which belong to the user that runs the commands.
//!
//! Landlock, on Linux, takes a list of what a thread and its children may open, and refuses the
//! rest. The list contains the entries of each folder above the private one, except the entry that
//! leads to it, and the job's own directory inside. As a result, an entry added to one of those
//! folders after the command's start is refused, and those folders themselves cannot be listed or
//! added to, because a rule for a folder covers everything in it.
//!
//! A thread cannot undo its list, so each command is started by a separate thread.
//!
//! The first version of Landlock does not let files move between directories, so the second is
//! required (Linux 5.19). The third can refuse to truncate a file by its path (Linux 6.2).

use super::Directory;
use std::{fs, io, path::Path, sync::Arc, thread};
use tokio::{runtime::Handle, task::spawn_blocking};

/// A folder that commands are kept out of. Clones share it.
#[derive(Debug, Clone)]
pub struct Private(Arc<Path>);

impl Private {
    /// Keeps commands out of `folder`, which must exist and not be the root of the file system.
    /// `None` if this system does not support it, which is logged.
    pub fn new(folder: &Path) -> io::Result<Option<Self>> {
        // The canonical path, because the file that is reached counts, not the path to it.
        let folder = fs::canonicalize(folder)?;
        match alone(|| restrict(&folder, None)) {
            Ok(()) => Ok(Some(Self(folder.into()))),
            Err(reason) => {
                tracing::warn!(
                    folder = %folder.display(), %reason,
                    "commands of jobs can open the devnets' files: no Landlock of Linux 5.19"
                );
                Ok(None)
            }
        }
    }

    /// Calls `start` to start a process that can only open `own` inside the folder.
    pub async fn start<T: Send + 'static>(
        self,
        own: Directory,
        start: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
    ) -> io::Result<(T, Directory)> {
        // If the caller is dropped, the started process is dropped here, before its directory, on a
        // thread that may block for the removal.
        let started = spawn_blocking(move || {
            let (runtime, path) = (Handle::current(), own.path());
            let started = alone(|| {
                restrict(&self.0, Some(path)).map_err(|reason| {
                    let what = "cannot keep the command out of the devnets' folder";
                    io::Error::new(reason.kind(), format!("{what}: {reason}"))
                })?;
                let _runtime = runtime.enter();
                start(path)
            })?;
            Ok((started, own))
        });
        started.await?
    }
}

/// Whether this system can keep commands out of a folder; the error says why not.
pub fn can_be_kept_out() -> io::Result<()> {
    alone(|| restrict(Path::new("/proc"), None))
}

fn alone<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let thread =
            thread::Builder::new().name("job-start".to_owned()).spawn_scoped(scope, work)?;
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that starts it failed")))
    })
}

/// Permanently denies this thread everything in `folder` except `own`.
#[cfg(target_os = "linux")]
fn restrict(folder: &Path, own: Option<&Path>) -> io::Result<()> {
    use landlock::{
        ABI, Access as _, AccessFs, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
        RulesetCreatedAttr as _, RulesetStatus,
    };
    use std::path::Component;

    let mut list = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V2))
        .map_err(io::Error::other)?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(list::KNOWN))
        .and_then(Ruleset::create)
        .map_err(io::Error::other)?;
    let mut above = std::path::PathBuf::new();
    for part in folder.components() {
        if let Component::Normal(next) = part {
            list::add_others(&mut list, &above, next);
        }
        above.push(part);
    }
    if let Some(own) = own {
        let own = list::open(rustix::fs::CWD, own)?;
        let rule = list::rule(own)?.ok_or_else(|| io::Error::other("not a directory"))?;
        (&mut list).add_rule(rule).map_err(io::Error::other)?;
    }
    match list.restrict_self().map_err(io::Error::other)?.ruleset {
        RulesetStatus::NotEnforced => Err(io::ErrorKind::Unsupported.into()),
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
    }
}

#[cfg(not(target_os = "linux"))]
fn restrict(_: &Path, _: Option<&Path>) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(target_os = "linux")]
mod list {
    use crate::nofollow;
    use landlock::{
        ABI, Access as _, AccessFs, PathBeneath, RulesetCreated, RulesetCreatedAttr as _,
    };
    use rustix::{
        fd::{AsFd, OwnedFd},
        fs::{CWD, FileType, Mode, OFlags},
        path::Arg,
    };
    use std::{ffi::OsStr, io, os::unix::ffi::OsStrExt as _, path::Path};

    /// The Landlock version to request; an older kernel enforces the rights that it knows.
    pub(super) const KNOWN: ABI = ABI::V5;

    /// Adds the entries of `folder` except this one. Entries that cannot be opened are skipped.
    pub(super) fn add_others(list: &mut RulesetCreated, folder: &Path, name: &OsStr) {
        let opened = match nofollow::directory(CWD, folder) {
            Ok(opened) => opened,
            Err(error) => {
                tracing::debug!(folder = %folder.display(), %error, "not for commands of jobs");
                return;
            }
        };
        for (other, _) in nofollow::entries(&opened).into_iter().flatten().flatten() {
            if other.to_bytes() != name.as_bytes()
                && let Ok(entry) = open(&opened, &*other)
                && let Ok(Some(rule)) = rule(entry)
                && let Err(error) = (&mut *list).add_rule(rule)
            {
                tracing::debug!(?other, %error, "not for commands of jobs");
            }
        }
    }

    /// Opens an entry itself and not its target, because a link's target has its own entry or is
    /// private.
    pub(super) fn open(at: impl AsFd, name: impl Arg) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(at, name, flags, Mode::empty())
    }

    /// Grants all rights to an opened entry and its contents. A link gets no rule.
    pub(super) fn rule(opened: OwnedFd) -> io::Result<Option<PathBeneath<OwnedFd>>> {
        let rights = match FileType::from_raw_mode(rustix::fs::fstat(&opened)?.st_mode) {
            FileType::Symlink => return Ok(None),
            FileType::Directory => AccessFs::from_all(KNOWN),
            _ => AccessFs::from_file(KNOWN),
        };
        Ok(Some(PathBeneath::new(opened, rights)))
    }
}
