//! A process with all that it starts: started, asked to end, killed, and seen to be gone.
//!
//! The process leads a group of its own; the directory that it works for marks it and its
//! descendants, by [`DIRECTORY_VARIABLE`] in their environment. A descendant that has left the
//! group and dropped the mark is found as long as the processes between have not ended; where
//! orphans fall to this process ([`orphans`]), whatever has ended.

use super::{
    DIRECTORY_VARIABLE,
    orphans::{self, Leader},
    stat::{self, Known, descendants, has_members},
};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use std::{
    ffi::OsStr,
    fs, io,
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

/// How long the end of a killed leader is waited for.
const REAP_TIMEOUT: Duration = Duration::from_millis(500);

/// How long killed processes are waited for that are not the executor's children, so that they no
/// longer write where the directory is being removed.
const GONE_TIMEOUT: Duration = Duration::from_millis(128);

/// The same, in a process that orphans fall to: what descends from it has no other way to go.
const ORPHANS_TIMEOUT: Duration = Duration::from_secs(5);

/// How long passes at least between two looks for orphans to reap.
const REAP_PAUSE: Duration = Duration::from_millis(250);

/// How long [`Tree::end`] takes at most, in a process that orphans do not fall to.
pub(crate) const END_TIMEOUT: Duration =
    Duration::from_millis((REAP_TIMEOUT.as_millis() + GONE_TIMEOUT.as_millis()) as u64);

/// How often it is looked whether processes that were asked to end have done so: at first, and
/// after a while.
const LOOK: Duration = Duration::from_millis(4);
const LATER_LOOK: Duration = Duration::from_millis(128);

/// A process and its descendants. Dropped before its [`end`](Self::end), they are killed.
pub(crate) struct Tree {
    group: Group,
    /// The process that leads the group, with its standard streams.
    pub(crate) child: Child,
}

impl Tree {
    /// Starts `command` as the leader of a process group of its own, marked with `directory`.
    pub(crate) fn start(command: &mut Command, directory: &Path) -> io::Result<Self> {
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

    /// The process that leads the group, whose number is the group's.
    pub(crate) fn leader(&self) -> Pid {
        self.group.leader.process()
    }

    /// Waits until the leader has exited; it stays a zombie, so that its number is not given to
    /// another. `exits` watches for children's ends since before the start, or that of a quick one
    /// could be missed.
    pub(crate) async fn exited(&self, exits: &mut unix::Signal) -> io::Result<()> {
        let adopts = orphans::are_adopted();
        // When orphans that ended are looked for next: an engine may wait for them to be reaped.
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

    /// Whether the leader has exited.
    pub(crate) fn has_exited(&self) -> io::Result<bool> {
        has_exited(self.leader())
    }

    /// Kills every process of the group.
    pub(crate) fn kill(&self) {
        self.group.signal(Signal::KILL);
    }

    /// Asks every process to end, gives them until `over`, and kills what is left.
    pub(crate) async fn stop(mut self, over: impl Future<Output = ()>) -> io::Result<ExitStatus> {
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

    /// Notes who descends from the leader while it lives: when it ends, its children get another
    /// parent.
    async fn find_strays(&mut self) -> io::Result<()> {
        let leader = self.leader();
        if !has_exited(leader)? {
            let strays = tokio::task::spawn_blocking(move || descendants(leader)).await?;
            self.group.strays.extend(strays.into_iter().map(|stat| stat.known));
        }
        Ok(())
    }

    /// Kills what still runs, and calls `then`, where it may block, once that is gone. Takes
    /// [`END_TIMEOUT`] at most, or [`ORPHANS_TIMEOUT`] more, and what `then` does.
    pub(crate) async fn end(
        mut self,
        then: impl FnOnce() + Send + 'static,
    ) -> io::Result<ExitStatus> {
        self.find_strays().await?;
        self.kill();
        let status = match timeout(REAP_TIMEOUT, self.child.wait()).await {
            Ok(status) => status?,
            // It is stuck in the kernel, and reaped once it comes out.
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

/// The process group of a command.
struct Group {
    leader: Leader,
    /// The leader was not reaped yet: the number is the group's.
    alive: bool,
    /// What the environment of its processes names.
    directory: Arc<Path>,
    /// Processes that descend from the leader: they may have left the group and dropped the mark.
    strays: Vec<Known>,
}

impl Group {
    /// Sends every process of the group a signal.
    fn signal(&self, signal: Signal) {
        if self.alive {
            // An error: all are gone, or none may be sent any.
            let _ = rustix::process::kill_process_group(self.leader.process(), signal);
        }
    }

    /// Kills what left the group, and waits, for a moment at most, until no process of either runs
    /// any more.
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
            tracing::warn!(%directory, "processes of a job do not end though they were killed");
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

/// Looks again and again, with pauses of `limit` in all, until killed processes are gone, and says
/// whether they are. A busy machine may take long for a look, and gets as many as an idle one.
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

/// Kills the processes of jobs in these directories, which nobody of this process started.
pub(super) fn kill_left(are: impl Fn(&Path) -> bool) {
    until_gone(GONE_TIMEOUT, || signal_marked(&are, Some(Signal::KILL)) == 0);
}

/// Sends the processes of jobs in these directories a signal, and says how many there are. Those of
/// other users cannot be read, and are none of the jobs'.
fn signal_marked(are: impl Fn(&Path) -> bool, signal: Option<Signal>) -> usize {
    let mark = format!("{DIRECTORY_VARIABLE}=").into_bytes();
    let mut marked = 0;
    for process in stat::numbers().into_iter().flatten() {
        let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
        let mut variables = environment.split(|byte| *byte == 0);
        let directory = variables.find_map(|variable| variable.strip_prefix(&*mark));
        if directory.is_some_and(|directory| are(Path::new(OsStr::from_bytes(directory)))) {
            if let Some(signal) = signal {
                // An error: it has ended meanwhile.
                let _ = rustix::process::kill_process(process, signal);
            }
            marked += 1;
        }
    }
    marked
}
