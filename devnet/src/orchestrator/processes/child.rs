//! One node's process: its start, its limits, and its end.

#[cfg(target_os = "linux")]
use super::cgroup;
use super::{cgroup::Cgroup, containers::Container};
use crate::{
    handout::{SUPERVISED, Versions},
    machines,
    topology::ProcessPlan,
};
use cowboy_host::{
    duration::Plain,
    files::{create_private_dir, has_open, holder, is_held},
};
use rustix::process::{self, Pid, Signal};
use serde::{Deserialize, de::DeserializeOwned};
use std::{
    env,
    fs::{File, OpenOptions},
    io::{Read, Seek as _, SeekFrom},
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader},
    process::{ChildStdin, ChildStdout, Command},
    time::{sleep, timeout},
};

/// How long a node may take from its start until its API answers: it may execute many blocks again.
/// A request to start one waits for longer.
pub(super) const START_TIMEOUT: Duration = Duration::from_secs(25);
/// How long a node that was asked to end may take before it is killed.
pub(super) const END_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a program may take to tell its versions.
const ASK_TIMEOUT: Duration = Duration::from_secs(10);
/// How long to wait for a process that was killed.
pub(super) const KILL_TIMEOUT: Duration = Duration::from_secs(5);
/// How often to check whether the process of an earlier devnet has ended: it is no child of this
/// one, so the system does not tell.
const LOOK: Duration = Duration::from_millis(10);
/// The longest line that a node prints about itself, in bytes.
pub(super) const MAX_LINE: u64 = 64 << 10;
/// Bytes at the end of a log that are searched for a node's last words, and characters shown.
const LAST_BYTES: u64 = 8 << 10;
const LAST_CHARS: usize = 300;

/// A node's own folder, and its log in there.
#[derive(Debug, Clone)]
pub(super) struct NodePlace {
    pub(super) folder: PathBuf,
    pub(super) log: PathBuf,
}

/// What a node prints once its API answers.
#[derive(Debug, Clone, Deserialize)]
pub(in crate::orchestrator) struct NodeReport {
    pub(super) rpc_url: String,
    pub(super) versions: Versions,
}

/// What a runner prints once it runs.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct RunnerReport {
    pub(super) pid: u32,
}

/// How a process has ended, with its last words.
pub(in crate::orchestrator) struct ProcessEnd {
    pub(in crate::orchestrator) how: String,
    /// As its operator wished.
    pub(in crate::orchestrator) orderly: bool,
    /// Its pod has ended or been deleted, and the cluster starts another one.
    pub(in crate::orchestrator) replaced: bool,
}

/// A node's process, or the client that is attached to its container. A process is killed when this
/// is dropped, and ends by itself if this process does; a container does neither.
pub(in crate::orchestrator) struct Child {
    process: tokio::process::Child,
    pid: Pid,
    container: Option<Container>,
    /// Its memory limit, where it has one and this process may make a cgroup.
    cgroup: Option<Cgroup>,
    log: PathBuf,
    /// Length of its log when it was started.
    log_from: u64,
    stdout: BufReader<ChildStdout>,
    /// Open as long as the node shall run.
    _alive: ChildStdin,
}

/// The command that runs a node in a process of its own: `words` begin with the subcommand. Its
/// files are in `home`.
pub(super) fn command(program: &Path, words: &[&str], home: &Path, plan: &ProcessPlan) -> Command {
    let mut command = Command::new(plan.binary.as_deref().unwrap_or(program));
    for (variable, _) in env::vars_os() {
        let text = variable.to_string_lossy();
        let kept = ["COWBOYCTL_LOG", machines::FOLDER].contains(&text.as_ref());
        if text.starts_with("COWBOYCTL_") && !kept {
            command.env_remove(&variable);
        }
    }
    command
        .args(words)
        .args([SUPERVISED, "--output", "jsonl"])
        .env("COWBOYCTL_HOME", home)
        .env("COWBOYCTL_CONFIG", "/dev/null")
        .envs(&plan.env);
    command
}

impl Child {
    /// Starts a node's process in its folder, which must not be in use.
    pub(super) fn start(
        command: Command,
        place: &NodePlace,
        plan: &ProcessPlan,
    ) -> Result<Self, String> {
        let mut child = Self::spawn(command, place, None)?;
        child.limit(&place.folder, plan)?;
        Ok(child)
    }

    /// Starts a node's container, which has its folder.
    pub(super) fn attach(container: &Container, place: &NodePlace) -> Result<Self, String> {
        Self::spawn(container.attached(), place, Some(container.clone()))
    }

    fn spawn(
        mut command: Command,
        place: &NodePlace,
        container: Option<Container>,
    ) -> Result<Self, String> {
        let program = command.as_std().get_program().to_owned();
        let program = Path::new(&program).display();
        let NodePlace { folder, log: path } = place;
        for folder in [folder.as_path(), path.parent().unwrap_or(folder)] {
            create_private_dir(folder).map_err(|error| error.to_string())?;
        }
        let options = OpenOptions::new().append(true).create(true).open(path);
        let log = options.map_err(|error| format!("{}: {error}", path.display()))?;
        let log_from = log.metadata().map_or(0, |metadata| metadata.len());
        command
            // A core dump is written there.
            .current_dir(folder)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .kill_on_drop(true);
        let mut process = command.spawn().map_err(|error| format!("{program}: {error}"))?;
        let pid = process.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let (Some(pid), Some(alive), Some(stdout)) =
            (pid, process.stdin.take(), process.stdout.take())
        else {
            return Err(format!("{program}: it has ended at once"));
        };
        let (log, stdout) = (path.clone(), BufReader::new(stdout));
        let cgroup = None;
        Ok(Self { process, pid, container, cgroup, log, log_from, stdout, _alive: alive })
    }

    #[cfg(not(target_os = "linux"))]
    fn limit(&mut self, _: &Path, plan: &ProcessPlan) -> Result<(), String> {
        let limited = plan.memory.is_some() || plan.cpus.is_some() || plan.core_dumps;
        let message = "`memory`, `cpus` and `core_dumps` work on Linux only";
        if limited { Err(message.to_owned()) } else { Ok(()) }
    }

    #[cfg(target_os = "linux")]
    fn limit(&mut self, folder: &Path, plan: &ProcessPlan) -> Result<(), String> {
        use rustix::process::{Resource, Rlimit};

        let failed = |what: &str| {
            let what = what.to_owned();
            move |error: rustix::io::Errno| format!("{what}: {error}")
        };
        let most = process::getrlimit(Resource::Core).maximum;
        let limit = Rlimit { current: if plan.core_dumps { most } else { Some(0) }, maximum: most };
        process::prlimit(Some(self.pid), Resource::Core, limit).map_err(failed("core_dumps"))?;
        self.cgroup = plan.memory.and_then(|size| cgroup::limit(self.pid, folder, size));
        if let (None, Some(crate::topology::Size(bytes))) = (&self.cgroup, plan.memory) {
            let limit = Rlimit { current: Some(bytes), maximum: Some(bytes) };
            process::prlimit(Some(self.pid), Resource::Data, limit).map_err(failed("memory"))?;
        }
        if let Some(cpus) = &plan.cpus {
            bind(self.pid, cpus).map_err(failed(&format!("cpus: {cpus}")))?;
        }
        Ok(())
    }

    /// The id of a node's own process.
    pub(super) fn id(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Waits until the node says that it runs.
    pub(super) async fn ready<T: DeserializeOwned>(&mut self) -> Result<T, String> {
        let mut line = String::new();
        let mut stdout = (&mut self.stdout).take(MAX_LINE);
        let read = timeout(START_TIMEOUT, stdout.read_line(&mut line)).await;
        match read {
            Ok(Ok(0)) => Err(self.ended().await.how),
            Ok(Ok(_)) => {
                let malformed = |error| format!("what it prints is no report of a node: {error}");
                serde_json::from_str(&line).map_err(malformed)
            }
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("it does not run within {}", Plain(START_TIMEOUT))),
        }
    }

    /// Resolves when the process has ended. Dropping the future loses nothing.
    pub(super) async fn ended(&mut self) -> ProcessEnd {
        let (how, orderly) = match self.process.wait().await {
            Ok(status) => (told(status), status.success()),
            Err(error) => (format!("its end is not known: {error}"), false),
        };
        let how = match self.cgroup.as_ref().filter(|cgroup| cgroup.has_killed()) {
            Some(cgroup) => format!("{how}: its memory limit of {} ended it", cgroup.size()),
            None => how,
        };
        let how = match last_words(&self.log, self.log_from) {
            Some(words) => format!("{how}; last words: {words}"),
            None => how,
        };
        ProcessEnd { how, orderly, replaced: false }
    }

    /// Ends it as a crash would.
    pub(super) async fn kill(mut self) {
        match &self.container {
            Some(container) => container.kill().await,
            None => self.signal(Signal::KILL),
        }
        let _ = timeout(KILL_TIMEOUT, self.process.wait()).await;
    }

    /// Asks it to end, and kills it if it does not.
    pub(super) async fn stop(mut self) {
        if let Some(container) = &self.container {
            container.stop().await;
        } else {
            // A frozen process does not hear.
            self.signal(Signal::CONT);
            self.signal(Signal::TERM);
        }
        if timeout(END_TIMEOUT, self.process.wait()).await.is_err() {
            let (log, within) = (self.log.display(), Plain(END_TIMEOUT));
            tracing::warn!(%log, "a node did not end within {within}: killed");
            self.kill().await;
        }
    }

    /// Stops it in its tracks, or lets it go on.
    pub(super) async fn freeze(&self, frozen: bool) {
        match &self.container {
            Some(container) => container.freeze(frozen).await,
            None => self.signal(if frozen { Signal::STOP } else { Signal::CONT }),
        }
    }

    fn signal(&self, signal: Signal) {
        // Not waited for yet, so the number is still its own. An error: it has ended.
        if self.process.id().is_some() {
            let _ = process::kill_process(self.pid, signal);
        }
    }
}

/// Lets a process that has just been started run on these processors only.
#[cfg(target_os = "linux")]
fn bind(pid: Pid, cpus: &crate::topology::Cpus) -> rustix::io::Result<()> {
    use rustix::thread::{CpuSet, sched_setaffinity};

    let mut set = CpuSet::new();
    for cpu in &cpus.0 {
        set.set(*cpu);
    }
    sched_setaffinity(Some(pid), &set)
}

fn told(status: ExitStatus) -> String {
    let dumped = if status.core_dumped() { ", core dumped" } else { "" };
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("its process ended with code {code}"),
        (None, Some(signal)) => format!("its process was ended by signal {signal}{dumped}"),
        (None, None) => "its process ended".to_owned(),
    }
}

/// The last line of a log that is not about an orderly life, shortened; of what it has had since it
/// had this length, or of all if it is shorter now.
pub(super) fn last_words(log: &Path, from: u64) -> Option<String> {
    let mut file = File::open(log).ok()?;
    let length = file.metadata().ok()?.len();
    let from = if from > length { 0 } else { from };
    let start = from.max(length.saturating_sub(LAST_BYTES));
    file.seek(SeekFrom::Start(start)).ok()?;
    let mut bytes = Vec::new();
    Read::take(file, LAST_BYTES).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    // It begins within a line.
    let whole = if start > from { text.split_once('\n')?.1 } else { &text };
    let mut lines = whole.lines().rev();
    let line = lines.find(|line| !line.trim().is_empty() && !line.contains(" INFO "))?;
    let words = line.trim().chars().map(|char| if char.is_control() { ' ' } else { char });
    Some(words.take(LAST_CHARS).collect())
}

/// The versions of a program, which it prints when asked.
pub(super) async fn versions_of(program: &Path) -> Result<Versions, String> {
    let mut command = Command::new(program);
    command
        .args(["node", "version", "--output", "json"])
        .env("COWBOYCTL_CONFIG", "/dev/null")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    let mut process = command.spawn().map_err(|error| error.to_string())?;
    let mut text = String::new();
    let answer = async {
        if let Some(stdout) = process.stdout.take() {
            stdout.take(MAX_LINE).read_to_string(&mut text).await?;
        }
        process.wait().await
    };
    match timeout(ASK_TIMEOUT, answer).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => return Err(error.to_string()),
        Err(_) => return Err(format!("it does not answer within {}", Plain(ASK_TIMEOUT))),
    }
    let malformed = |_| "it tells no versions, as `cowboyctl node version` does".to_owned();
    serde_json::from_str(&text).map_err(malformed)
}

/// Ends the process of an earlier devnet that still runs the node: it was frozen when that devnet
/// was killed, or is just ending.
pub(super) async fn end_left(lock: &Path, node: &str) -> Result<(), String> {
    let held = || is_held(lock).map_err(|error| error.to_string());
    let gone = async |within| {
        let gone = async {
            while held()? {
                sleep(LOOK).await;
            }
            Ok(())
        };
        timeout(within, gone)
            .await
            .map_or(Ok(false), |gone: Result<(), String>| gone.map(|()| true))
    };
    for (signal, within) in [(Signal::TERM, END_TIMEOUT), (Signal::KILL, KILL_TIMEOUT)] {
        if !held()? {
            return Ok(());
        }
        let holder = holder(lock).filter(|id| has_open(*id, lock));
        let Some(pid) = holder.and_then(|id| Pid::from_raw(id.cast_signed())) else {
            return Err(format!("{}: held by an unknown process", lock.display()));
        };
        // An error: it has ended. A frozen process does not hear before it goes on.
        let _ = process::kill_process(pid, Signal::CONT);
        let _ = process::kill_process(pid, signal);
        if gone(within).await? {
            tracing::warn!(%node, pid = pid.as_raw_nonzero(), "left by an earlier devnet: ended");
            return Ok(());
        }
    }
    Err(format!("{}: the process that holds it does not end", lock.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn last_words_are_those_of_this_run_and_whole() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let check = |text: &str, from: u64, expected: Option<&str>| {
            fs::write(&log, text).unwrap();
            assert_eq!(last_words(&log, from).as_deref(), expected, "{text}");
        };
        let before = "2026  WARN an earlier run\n";
        let (orderly, bad) = ("2026  INFO running\n", "2026 ERROR the disk is full\n");
        check(&format!("{before}{bad}{orderly}"), 0, Some(bad.trim_end()));
        check(&format!("{before}{orderly}"), before.len() as u64, None);
        // The log was rotated since.
        check(&format!("{bad}{orderly}"), 1_000, Some(bad.trim_end()));
        let long = orderly.repeat(LAST_BYTES as usize / orderly.len() + 1);
        check(&format!("{bad}{long}"), 0, None);
        check("thread 'main' panicked\n\n", 0, Some("thread 'main' panicked"));
        check("", 0, None);
    }
}
