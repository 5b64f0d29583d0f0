//! A process with all that it starts: started, asked to end, killed, and seen to be gone.
//!
//! The process leads a group of its own; the directory that it works for marks it and its
//! descendants, by [`DIRECTORY_VARIABLE`] in their environment.

use super::DIRECTORY_VARIABLE;
use rustix::{
    io::Errno,
    process::{Pid, Signal, WaitId, WaitIdOptions},
};
use std::{
    ffi::OsStr,
    fs, io,
    os::unix::{ffi::OsStrExt as _, process::ExitStatusExt as _},
    path::Path,
    pin::pin,
    process::ExitStatus,
    sync::Arc,
    time::Duration,
};
use tokio::{
    process::{Child, Command},
    signal::unix,
    time::{sleep, timeout},
};

/// How long the end of a killed leader is waited for.
const REAP_TIMEOUT: Duration = Duration::from_millis(500);

/// How long killed processes are waited for that are not the executor's children, so that they no
/// longer write where the directory is being removed.
const GONE_TIMEOUT: Duration = Duration::from_millis(128);

/// How long [`Tree::end`] takes at most.
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
        let child = command.env(DIRECTORY_VARIABLE, directory).process_group(0).spawn()?;
        let leader = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw)
            .expect("a process that was not waited for has a number");
        Ok(Self { group: Group { leader, alive: true, directory: directory.into() }, child })
    }

    /// The process that leads the group, whose number is the group's.
    pub(crate) fn leader(&self) -> Pid {
        self.group.leader
    }

    /// Waits until the leader has exited; it stays a zombie, so that its number is not given to
    /// another. `exits` watches for children's ends since before the start, or that of a quick one
    /// could be missed.
    pub(crate) async fn exited(&self, exits: &mut unix::Signal) -> io::Result<()> {
        while !has_exited(self.leader())? {
            exits.recv().await;
        }
        Ok(())
    }

    /// Kills every process of the group.
    pub(crate) fn kill(&self) {
        self.group.signal(Signal::KILL);
    }

    /// Asks every process to end, gives them until `over`, and kills what is left.
    pub(crate) async fn stop(self, over: impl Future<Output = ()>) -> io::Result<ExitStatus> {
        let (leader, directory) = (self.leader(), self.group.directory.clone());
        let is_marked = move |mark: &Path| mark == &*directory;
        self.group.signal(Signal::TERM);
        let marked = is_marked.clone();
        tokio::task::spawn_blocking(move || signal_marked(marked, Some(Signal::TERM))).await?;
        let ends = async {
            let mut pause = LOOK;
            loop {
                let marked = is_marked.clone();
                let running = move || signal_marked(marked, None) > 0 || has_members(leader);
                if !tokio::task::spawn_blocking(running).await.unwrap_or(true) {
                    return;
                }
                sleep(pause).await;
                pause = (pause * 2).min(LATER_LOOK);
            }
        };
        let (ends, over) = (pin!(ends), pin!(over));
        tokio::select! {
            () = ends => {}
            () = over => {}
        }
        self.end(|| ()).await
    }

    /// Kills what still runs, and calls `then`, where it may block, once that is gone. Takes
    /// [`END_TIMEOUT`] at most, and what `then` does.
    pub(crate) async fn end(
        mut self,
        then: impl FnOnce() + Send + 'static,
    ) -> io::Result<ExitStatus> {
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
    leader: Pid,
    /// The leader was not reaped yet: the number is the group's.
    alive: bool,
    /// What the environment of its processes names.
    directory: Arc<Path>,
}

impl Group {
    /// Sends every process of the group a signal.
    fn signal(&self, signal: Signal) {
        if self.alive {
            // An error: all are gone, or none may be sent any.
            let _ = rustix::process::kill_process_group(self.leader, signal);
        }
    }

    /// Kills what left the group, and waits, for a moment at most, until no process of either runs
    /// any more. Most are no children of this process: all that can be done is to look.
    fn clear(&self) {
        until_gone(|| {
            let strays = signal_marked(|mark| mark == &*self.directory, Some(Signal::KILL));
            strays == 0 && !has_members(self.leader)
        });
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.alive {
            self.signal(Signal::KILL);
            self.clear();
        }
    }
}

/// Looks again and again, for [`GONE_TIMEOUT`] at most, until killed processes are gone.
fn until_gone(gone: impl Fn() -> bool) {
    let mut pause = Duration::from_millis(1);
    while pause < GONE_TIMEOUT && !gone() {
        std::thread::sleep(pause);
        pause *= 2;
    }
}

/// Kills the processes of jobs in these directories, which nobody of this process started.
pub(super) fn kill_left(are: impl Fn(&Path) -> bool) {
    until_gone(|| signal_marked(&are, Some(Signal::KILL)) == 0);
}

/// Sends the processes of jobs in these directories a signal, and says how many there are. Those of
/// other users cannot be read, and are none of the jobs'.
fn signal_marked(are: impl Fn(&Path) -> bool, signal: Option<Signal>) -> usize {
    let Ok(processes) = fs::read_dir("/proc") else { return 0 };
    let mark = format!("{DIRECTORY_VARIABLE}=").into_bytes();
    let mut marked = 0;
    for entry in processes.flatten() {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        let mut variables = environment.split(|byte| *byte == 0);
        let directory = variables.find_map(|variable| variable.strip_prefix(&*mark));
        if directory.is_some_and(|directory| are(Path::new(OsStr::from_bytes(directory))))
            && let Some(process) = Pid::from_raw(process)
        {
            if let Some(signal) = signal {
                // An error: it has ended meanwhile.
                let _ = rustix::process::kill_process(process, signal);
            }
            marked += 1;
        }
    }
    marked
}

/// Whether a process of the group runs. The dead that nobody has reaped, which may take long in a
/// container, count only where the system does not tell them apart.
pub(in crate::executor) fn has_members(group: Pid) -> bool {
    if rustix::process::test_kill_process_group(group) == Err(Errno::SRCH) {
        return false;
    }
    let Ok(processes) = fs::read_dir("/proc") else { return true };
    let group = group.as_raw_pid().to_string();
    processes
        .flatten()
        .filter_map(|process| fs::read_to_string(process.path().join("stat")).ok())
        .any(|stat| {
            // The name before the parenthesis may hold anything; after it: state, parent, group.
            let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
            let mut fields = fields.split_ascii_whitespace();
            let state = fields.next();
            fields.nth(1) == Some(&group) && !matches!(state, Some("Z" | "X"))
        })
}
