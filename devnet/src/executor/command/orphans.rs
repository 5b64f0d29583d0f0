//! Orphans: processes whose parents have ended, where this process is the one that they fall to.
//!
//! On Linux a process can be the parent of whatever its descendants leave behind
//! (`PR_SET_CHILD_SUBREAPER`). Then nothing that a command starts gets out of reach, whatever
//! group, session and environment it has: all of it descends from this process, and ends with the
//! command. Elsewhere, and in a process that did not ask for it, orphans fall to the system.
//!
//! Upon [`adopt`]:
//!
//! * This process starts no processes but [`Tree`](super::Tree)s: every other child is an orphan.
//! * An orphan that ends while a tree lives is reaped soon after ([`reap`]): a command may leave
//!   more of them behind than there may be processes.
//! * When a tree ends and is the only one, all that descends from this process is killed
//!   ([`signal`]). Of several trees it cannot be told whose an orphan is: the last one's end is
//!   theirs too.

use super::stat::{self, Stat};
use rustix::process::{Pid, Signal, WaitOptions};
use std::{
    io,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

/// Whether orphans fall to this process.
static ADOPTS: AtomicBool = AtomicBool::new(false);

/// The processes that lead trees: others wait for them.
static LEADERS: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// Has orphans fall to this process, where the system can do that.
pub(crate) fn adopt() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        // Any number but 0 means yes.
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        ADOPTS.store(true, Ordering::Relaxed);
    }
    Ok(())
}

/// Whether orphans fall to this process.
pub(super) fn are_adopted() -> bool {
    ADOPTS.load(Ordering::Relaxed)
}

fn leaders() -> MutexGuard<'static, Vec<Pid>> {
    LEADERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A process that leads a tree, as long as the tree is there.
#[derive(Debug)]
pub(super) struct Leader(Pid);

impl Leader {
    /// Its number.
    pub(super) fn process(&self) -> Pid {
        self.0
    }

    /// Has `start` start one.
    pub(super) fn start<T>(start: impl FnOnce() -> io::Result<(T, Pid)>) -> io::Result<(T, Self)> {
        // Until it is known for a leader, it looks like an orphan.
        let mut leaders = leaders();
        let (started, leader) = start()?;
        leaders.push(leader);
        Ok((started, Self(leader)))
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        leaders().retain(|leader| *leader != self.0);
    }
}

/// Sends all that descends from this process a signal, but for the leader of its only tree, and
/// says how many there are. 0 where there are other trees, or orphans fall elsewhere.
pub(super) fn signal(leader: Pid, signal: Option<Signal>) -> usize {
    let leaders = leaders();
    if !are_adopted() || leaders.iter().any(|other| *other != leader) {
        return 0;
    }
    let own = rustix::process::getpid();
    let mut running = 0;
    for Stat { known, parent, dead, .. } in stat::descendants(own) {
        let process = known.process();
        if process == leader {
            continue;
        }
        if dead {
            match parent == own.as_raw_pid() {
                true => reap_one(process),
                // It falls to this process when its parent ends.
                false => running += 1,
            }
            continue;
        }
        let sent = match signal {
            Some(signal) => rustix::process::kill_process(process, signal),
            None => rustix::process::test_kill_process(process),
        };
        // An error: it has ended meanwhile, or is another user's, as what `sudo` starts is.
        running += usize::from(sent.is_ok());
    }
    running
}

/// Reaps the orphans that have ended.
pub(super) fn reap() {
    let (leaders, own) = (leaders(), rustix::process::getpid().as_raw_pid());
    for Stat { known, parent, dead, .. } in Stat::all().into_iter().flatten() {
        if dead && parent == own && !leaders.contains(&known.process()) {
            reap_one(known.process());
        }
    }
}

fn reap_one(orphan: Pid) {
    // An error: it was reaped already.
    let _ = rustix::process::waitpid(Some(orphan), WaitOptions::NOHANG);
}
