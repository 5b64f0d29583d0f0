//! A process with its descendants: starting them, asking them to end, killing them, and checking
//! that they are gone.
//!
//! The process leads its own group. The job's directory marks it and its descendants, by
//! [`DIRECTORY_VARIABLE`] in their environment. A descendant that has left the group and dropped
//! the mark is found while the processes in between live. If this process adopts orphans
//! ([`orphans`]), it is found in any case.

use super::{
    DIRECTORY_VARIABLE,
    orphans::{self, Leader},
    stat::{self, KnownProcess, descendants, has_members},
};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use std::{
    ffi::OsStr,
    io,
    os::unix::{ffi::OsStrExt as _, process::ExitStatusExt as _},
    path::Path,
    pin::pin,
    process::ExitStatus,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    process::{Child, Command},
    signal::unix,
    time::{sleep, sleep_until, timeout},
};

const REAP_TIMEOUT: Duration = Duration::from_millis(500);

/// Time limit for killed processes that are not the executor's children to end, so that they no
/// longer write into the directory while it is removed.
const GONE_TIMEOUT: Duration = Duration::from_millis(128);

/// The same limit if this process adopts orphans, because then all of them must end here.
const ORPHANS_TIMEOUT: Duration = Duration::from_secs(5);

/// Minimum time between two searches for orphans to reap.
const REAP_PAUSE: Duration = Duration::from_millis(250);

/// Maximum duration of [`Tree::end`] if this process does not adopt orphans.
pub const END_TIMEOUT: Duration =
    Duration::from_millis((REAP_TIMEOUT.as_millis() + GONE_TIMEOUT.as_millis()) as u64);

/// How often to check whether processes that were asked to end have done so: at first, and after a
/// while.
const LOOK: Duration = Duration::from_millis(4);
const LATER_LOOK: Duration = Duration::from_millis(128);

/// A process and its descendants. They are killed if it is dropped before [`end`](Self::end).
pub struct Tree {
    group: Group,
    pub child: Child,
}

impl Tree {
    /// Starts `command` as the leader of its own process group, marked with `directory`.
    pub fn start(command: &mut Command, directory: &Path) -> io::Result<Self> {
        command.env(DIRECTORY_VARIABLE, directory).process_group(0);
        let (child, leader) = Leader::start(|| {
            let child = command.spawn()?;
            let leader = child
                .id()
                .and_then(|id| i32::try_from(id).ok())
                .and_then(Pid::from_raw)
                .expect("a process that was not waited for has a number");
            Ok((child, leader))
        })?;
        let directory = directory.into();
        Ok(Self { group: Group { leader, alive: true, directory, strays: Vec::new() }, child })
    }

    /// The group's leader, whose process number is the group's.
    pub fn leader(&self) -> Pid {
        self.group.leader.process()
    }

    /// Waits until the leader has exited. It stays a zombie, so that its number is not reused.
    /// `exits` must watch for child exits since before the start, or the exit of a quick command
    /// could be missed.
    pub async fn exited(&self, exits: &mut unix::Signal) -> io::Result<()> {
        let adopts = orphans::are_adopted();
        // The next search for ended orphans: an engine may wait for them to be reaped.
        let (mut look_at, mut due) = (Instant::now() + REAP_PAUSE, false);
        while !self.has_exited()? {
            tokio::select! {
                _ = exits.recv() => due = adopts,
                () = sleep_until(look_at.into()), if due => {
                    tokio::task::spawn_blocking(orphans::reap).await?;
                    (look_at, due) = (Instant::now() + REAP_PAUSE, false);
                }
            }
        }
        Ok(())
    }

    pub fn has_exited(&self) -> io::Result<bool> {
        has_exited(self.leader())
    }

    pub fn kill(&self) {
        self.group.signal(Signal::KILL);
    }

    /// Asks every process to end, waits until `over`, and kills the rest.
    pub async fn stop(mut self, over: impl Future<Output = ()>) -> io::Result<ExitStatus> {
        self.find_strays().await?;
        self.group.signal(Signal::TERM);
        let (leader, directory) = (self.leader(), Arc::clone(&self.group.directory));
        let strays = self.group.strays.clone();
        let look = move |signal: Option<Signal>| {
            let marked = signal_marked(|mark| mark == &*directory, signal);
            let orphans = orphans::signal(leader, signal);
            if let Some(signal) = signal {
                for stray in &*strays {
                    stray.signal(signal);
                }
            }
            marked + orphans > 0 || has_members(leader) || strays.iter().any(|stray| stray.runs())
        };
        let ends = async {
            let (mut signal, mut pause) = (Some(Signal::TERM), LOOK);
            loop {
                let look = look.clone();
                let running = tokio::task::spawn_blocking(move || look(signal)).await;
                if !running.unwrap_or(true) {
                    return;
                }
                sleep(pause).await;
                (signal, pause) = (None, (pause * 2).min(LATER_LOOK));
            }
        };
        let (ends, over) = (pin!(ends), pin!(over));
        tokio::select! {
            () = ends => {}
            () = over => {}
        }
        self.end(|| ()).await
    }

    /// Records the leader's descendants while it lives, because its children get another parent
    /// when it ends.
    async fn find_strays(&mut self) -> io::Result<()> {
        let leader = self.leader();
        if !has_exited(leader)? {
            let strays = tokio::task::spawn_blocking(move || descendants(leader)).await?;
            self.group.strays.extend(strays.into_iter().map(|stat| stat.known));
        }
        Ok(())
    }

    /// Kills the remaining processes, and calls `then`, which may block, once they are gone. Takes
    /// at most [`END_TIMEOUT`], or [`ORPHANS_TIMEOUT`] more, plus the time of `then`.
    pub async fn end(mut self, then: impl FnOnce() + Send + 'static) -> io::Result<ExitStatus> {
        self.find_strays().await?;
        self.kill();
        let status = match timeout(REAP_TIMEOUT, self.child.wait()).await {
            Ok(status) => status?,
            // It is stuck in the kernel, and reaped once it leaves it.
            Err(_) => ExitStatus::from_raw(Signal::KILL.as_raw()),
        };
        self.group.alive = false;
        let group = self.group;
        let cleared = tokio::task::spawn_blocking(move || {
            group.clear();
            then();
        });
        cleared.await?;
        Ok(status)
    }
}

fn has_exited(process: Pid) -> io::Result<bool> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    Ok(rustix::process::waitid(WaitId::Pid(process), options)?.is_some())
}

struct Group {
    leader: Leader,
    /// Whether the leader is unreaped, so that its number is still the group's.
    alive: bool,
    directory: Arc<Path>,
    /// Descendants of the leader that may have left the group and dropped the mark.
    strays: Vec<KnownProcess>,
}

impl Group {
    fn signal(&self, signal: Signal) {
        if self.alive {
            // An error: all are gone, or none may be signalled.
            let _ = rustix::process::kill_process_group(self.leader.process(), signal);
        }
    }

    /// Kills the processes that left the group, and briefly waits until none of them and none of
    /// the group runs.
    fn clear(&self) {
        self.strays.iter().for_each(|stray| stray.signal(Signal::KILL));
        let (leader, adopted) = (self.leader.process(), orphans::are_adopted());
        let limit = if adopted { ORPHANS_TIMEOUT } else { GONE_TIMEOUT };
        let gone = until_gone(limit, || {
            let marked = signal_marked(|mark| mark == &*self.directory, Some(Signal::KILL));
            let orphans = orphans::signal(leader, Some(Signal::KILL));
            marked + orphans == 0
                && !has_members(leader)
                && !self.strays.iter().any(|stray| stray.runs())
        });
        if adopted && !gone {
            let directory = self.directory.display();
            tracing::warn!(%directory, "processes of a job have been killed but do not end");
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.alive {
            let strays = descendants(self.leader.process());
            self.strays.extend(strays.into_iter().map(|stat| stat.known));
            self.signal(Signal::KILL);
            self.clear();
        }
    }
}

/// Polls until killed processes are gone, with pauses of `limit` in total, and returns whether they
/// are. A busy machine is slow to check, and gets as many checks as an idle one.
fn until_gone(limit: Duration, gone: impl Fn() -> bool) -> bool {
    let (mut waited, mut pause) = (Duration::ZERO, Duration::from_millis(1));
    while !gone() {
        if waited + pause > limit {
            return false;
        }
        std::thread::sleep(pause);
        waited += pause;
        pause = (pause * 2).min(LATER_LOOK);
    }
    true
}

/// Kills processes of jobs in matching directories that an earlier process started.
pub(super) fn kill_left(are: impl Fn(&Path) -> bool) {
    until_gone(GONE_TIMEOUT, || signal_marked(&are, Some(Signal::KILL)) == 0);
}

/// Signals the processes of jobs in matching directories, and returns their number. A process whose
/// environment is not readable at this moment counts, because it may be one of them. Other users'
/// environments are never readable, and their processes do not belong to jobs.
fn signal_marked(are: impl Fn(&Path) -> bool, signal: Option<Signal>) -> usize {
    let mark = format!("{DIRECTORY_VARIABLE}=").into_bytes();
    let mut marked = 0;
    for process in stat::numbers().into_iter().flatten() {
        let Some(environment) = stat::environment(process) else {
            marked += 1;
            continue;
        };
        let mut variables = environment.split(|byte| *byte == 0);
        let directory = variables.find_map(|variable| variable.strip_prefix(&*mark));
        if directory.is_some_and(|directory| are(Path::new(OsStr::from_bytes(directory)))) {
            if let Some(signal) = signal {
                // An error means that it has ended since.
                let _ = rustix::process::kill_process(process, signal);
            }
            marked += 1;
        }
    }
    marked
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::{
        fs::{self, Permissions},
        os::unix::fs::PermissionsExt as _,
        process,
    };

    /// Between two programs a process has no environment.
    #[test]
    fn a_process_that_starts_programs_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("again");
        fs::write(&script, "#!/bin/sh\nexec \"$0\"\n").unwrap();
        fs::set_permissions(&script, Permissions::from_mode(0o700)).unwrap();
        let mut started = process::Command::new(&script)
            .env(DIRECTORY_VARIABLE, directory.path())
            .spawn()
            .unwrap();
        let missed =
            (0..500).filter(|_| signal_marked(|mark| mark == directory.path(), None) == 0).count();
        started.kill().unwrap();
        started.wait().unwrap();
        assert_eq!(missed, 0);
    }
}
