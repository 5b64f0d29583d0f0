//! Orphans: processes whose parents have ended, if this process adopts them.
//!
//! On Linux a process can become the parent of all processes that its descendants leave behind
//! (`PR_SET_CHILD_SUBREAPER`). Then nothing that a command starts gets out of reach, whatever its
//! group, session and environment: all of it descends from this process and ends with the command.
//! On other systems, and in a process that has not asked for it, the system adopts orphans.
//!
//! After [`adopt`]:
//!
//! * This process only starts [`Tree`](super::Tree)s: every other child is an orphan.
//! * An orphan that ends while a tree lives is reaped soon after ([`reap`]), because a command may
//!   leave more orphans behind than the system allows processes.
//! * When the only tree ends, all descendants of this process are killed ([`signal`]). With several
//!   trees an orphan cannot be attributed to one, so orphans are killed when the last tree ends.

use super::stat::{self, Stat};
use rustix::process::{Pid, Signal, WaitOptions};
use std::{
    io,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

static ADOPTS: AtomicBool = AtomicBool::new(false);

/// The leaders of trees, which other code waits for.
static LEADERS: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// Makes this process adopt orphans, if the system supports that.
pub fn adopt() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        // Any number except 0 means yes.
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        ADOPTS.store(true, Ordering::Relaxed);
    }
    Ok(())
}

pub(super) fn are_adopted() -> bool {
    ADOPTS.load(Ordering::Relaxed)
}

fn leaders() -> MutexGuard<'static, Vec<Pid>> {
    LEADERS.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
pub(super) struct Leader(Pid);

impl Leader {
    pub(super) fn process(&self) -> Pid {
        self.0
    }

    pub(super) fn start<T>(start: impl FnOnce() -> io::Result<(T, Pid)>) -> io::Result<(T, Self)> {
        // Until it is registered as a leader, it looks like an orphan.
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

/// Signals all descendants of this process except the leader of its only tree, and returns how many
/// remain. Returns 0 if there are other trees, or if this process does not adopt orphans.
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
                // This process adopts it when its parent ends.
                false => running += 1,
            }
            continue;
        }
        let sent = match signal {
            Some(signal) => rustix::process::kill_process(process, signal),
            None => rustix::process::test_kill_process(process),
        };
        // An error: it has ended since, or belongs to another user, like a process started by
        // `sudo`.
        running += usize::from(sent.is_ok());
    }
    running
}

pub(super) fn reap() {
    let (leaders, own) = (leaders(), rustix::process::getpid().as_raw_pid());
    for Stat { known, parent, dead, .. } in Stat::all().into_iter().flatten() {
        if dead && parent == own && !leaders.contains(&known.process()) {
            reap_one(known.process());
        }
    }
}

fn reap_one(orphan: Pid) {
    // An error means that it was reaped already.
    let _ = rustix::process::waitpid(Some(orphan), WaitOptions::NOHANG);
}
