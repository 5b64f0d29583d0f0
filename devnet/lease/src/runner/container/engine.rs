//! The program that runs containers: how to find one that works, and its commands. Every command
//! has a time limit.

use super::LastLine;
use cowboy_host::process::{Tree, locate, shown};
use std::{
    env,
    ffi::OsStr,
    io,
    path::{Path, PathBuf},
    pin::pin,
    process::Stdio,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    process::Command,
    signal::unix::{SignalKind, signal},
    time::timeout,
};

/// Time limit for checking that an engine works; one with a stuck daemon does not answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The same for an engine that was requested by name.
const LONG_PATIENCE: Duration = Duration::from_secs(20);
const REMOVE_LIMIT: Duration = Duration::from_secs(30);
/// How long to wait, after a command's end, for output that another process may hold open.
const DRAIN: Duration = Duration::from_millis(100);
/// How much of a command's output is kept, in bytes.
const MAX_SAID: usize = 64 << 10;

/// The engine that a runner should use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// podman or docker, the first that works, or none.
    Auto,
    Docker,
    Podman,
    Off,
}

/// The kind of an engine, whatever its program is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Docker,
    Podman,
}

/// An engine that is known to work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Engine {
    program: PathBuf,
    kind: Kind,
    version: String,
    user: Vec<String>,
}

/// The reason why a runner does not have the requested engine.
#[derive(Debug, thiserror::Error)]
#[error("{name} does not work: {reason}")]
pub struct EngineError {
    pub name: &'static str,
    pub reason: String,
}

/// Why a command of an engine has no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    #[error("{0}")]
    Local(#[from] io::Error),
    #[error("no answer in time")]
    Silent,
    #[error("{0}")]
    Failed(String),
}

impl Engine {
    /// Finds a working engine for this choice. `runner` is the runner's folder, which marks its
    /// processes. `None` if no engine works and the choice names none.
    pub async fn find(choice: Choice, runner: &Path) -> Result<Option<Self>, EngineError> {
        let (names, patience): (&[&'static str], _) = match choice {
            Choice::Off => return Ok(None),
            Choice::Auto => (&["podman", "docker"], PATIENCE),
            Choice::Docker => (&["docker"], LONG_PATIENCE),
            Choice::Podman => (&["podman"], LONG_PATIENCE),
        };
        for name in names {
            let path = env::var_os("PATH").unwrap_or_default();
            let found = match locate(name, &path) {
                None => Err("not found in PATH".to_owned()),
                Some(program) => Self::at(&program, runner, patience).await,
            };
            match found {
                Ok(engine) => return Ok(Some(engine)),
                Err(reason) if choice == Choice::Auto => {
                    tracing::debug!(engine = name, %reason, "not for containers");
                }
                Err(reason) => return Err(EngineError { name, reason }),
            }
        }
        Ok(None)
    }

    /// The engine with this program. Errors: the reason why it does not work.
    pub(in crate::runner) async fn at(
        program: &Path,
        runner: &Path,
        patience: Duration,
    ) -> Result<Self, String> {
        // So that it does not depend on a command's working directory.
        let program = std::path::absolute(program).map_err(|error| error.to_string())?;
        let mark = mark(runner);
        let say = async |args: &[&str]| {
            let said = ask(&mut command(&program, args), &mark, patience).await;
            said.map_err(|error| error.to_string())
        };
        // The program `docker` may be podman.
        let kind = match say(&["--version"]).await?.to_ascii_lowercase().contains("podman") {
            true => Kind::Podman,
            false => Kind::Docker,
        };
        let format = match kind {
            Kind::Podman => "{{.Version.Version}};{{.Host.Security.Rootless}}",
            Kind::Docker => "{{.ServerVersion}};{{.SecurityOptions}}",
        };
        let info = say(&["info", "--format", format]).await?;
        let (version, security) = info.split_once(';').unwrap_or((&info, ""));
        if version.is_empty() {
            return Err("it has no server".to_owned());
        }
        let user = user(kind, security)?;
        Ok(Self { program, kind, version: shown(version.as_bytes()), user })
    }

    pub fn name(&self) -> String {
        let kind = match self.kind {
            Kind::Docker => "docker",
            Kind::Podman => "podman",
        };
        format!("{kind} {}", self.version)
    }

    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The options with which its containers have the rights of this process' user.
    pub fn user(&self) -> &[String] {
        &self.user
    }

    /// Runs a program that uses the engine, in a process tree that `mark` names, and returns its
    /// standard output, trimmed.
    pub async fn run(
        program: &Path,
        args: &[&str],
        mark: &Path,
        limit: Duration,
    ) -> Result<String, AskError> {
        ask(&mut command(program, args), mark, limit).await
    }

    pub(super) fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        command(&self.program, args)
    }

    pub(super) async fn ask<S: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = S>,
        mark: &Path,
        limit: Duration,
    ) -> Result<String, AskError> {
        ask(&mut self.command(args), mark, limit).await
    }

    pub(super) fn options(&self, job: &Path, inside: &str) -> Result<Vec<String>, String> {
        let at = job.to_str().filter(|at| !at.contains([',', '"', '\n', '\r']));
        let Some(at) = at else {
            return Err(format!(
                "the runner's folder cannot be mounted, because its path has a comma, a quote or \
                 no UTF-8: {}",
                job.display()
            ));
        };
        let mut mount = format!("type=bind,source={at},target={inside}");
        let mut options = self.user.clone();
        if self.kind == Kind::Podman {
            // If the system uses SELinux labels, this gives the directory the container's label.
            mount += ",relabel=private";
            // Steps get the job's environment and nothing of the runner's.
            options.push("--http-proxy=false".to_owned());
        }
        options.extend(["--mount".to_owned(), mount]);
        Ok(options)
    }
}

/// The options that run a container's processes as the runner's user, so that the runner can read
/// and remove their files. Errors: the engine cannot do that.
fn user(kind: Kind, security: &str) -> Result<Vec<String>, String> {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let own = format!("{}:{}", user.as_raw(), group.as_raw());
    let options: &[&str] = match kind {
        Kind::Podman if security == "true" => &["--userns", "keep-id", "--user", &own],
        Kind::Docker if security.contains("name=userns") => {
            return Err("its containers have other users than this machine (userns-remap), and \
                        could not write what the runner reads"
                .to_owned());
        }
        // In rootless mode, root in a container is the user that runs the engine.
        Kind::Docker if security.contains("name=rootless") => &["--user", "0:0"],
        Kind::Docker | Kind::Podman => &["--user", &own],
    };
    Ok(options.iter().map(|&option| option.to_owned()).collect())
}

fn command<S: AsRef<OsStr>>(program: &Path, args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(program);
    command.args(args).current_dir("/");
    command
}

fn mark(runner: &Path) -> PathBuf {
    runner.join("engine")
}

/// Removes a container with its volumes, whether it runs or not. A container that does not exist
/// counts as removed.
pub(super) async fn remove(program: &Path, name: &str, runner: &Path) -> Result<(), AskError> {
    let mark = mark(runner);
    let say = async |args: &[&str]| ask(&mut command(program, args), &mark, REMOVE_LIMIT).await;
    let Err(error) = say(&["rm", "--force", "--volumes", name]).await else { return Ok(()) };
    if let AskError::Silent = error {
        return Err(error);
    }
    let filter = format!("name={name}");
    match say(&["ps", "--all", "--quiet", "--filter", &filter]).await {
        Ok(there) if there.is_empty() => Ok(()),
        _ => Err(error),
    }
}

/// Runs a command in a process tree, marked with a path of its own below `mark`, and returns its
/// standard output, trimmed.
pub(super) async fn ask(
    command: &mut Command,
    mark: &Path,
    limit: Duration,
) -> Result<String, AskError> {
    static ASKED: AtomicU64 = AtomicU64::new(0);
    // The end of a tree ends all that has its mark.
    let mark = &mark.join(ASKED.fetch_add(1, Ordering::Relaxed).to_string());
    // Registered before the start, because the exit of a quick command could be missed otherwise.
    let mut exits = signal(SignalKind::child())?;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut tree = Tree::start(command, mark)?;
    let (stdout, stderr) = (tree.child.stdout.take(), tree.child.stderr.take());
    let (mut said, mut complaint) = (Vec::new(), LastLine::default());
    let ended = {
        let mut read = pin!(async {
            tokio::join!(
                pump(stdout, |bytes| {
                    let room = MAX_SAID.saturating_sub(said.len());
                    said.extend_from_slice(&bytes[..bytes.len().min(room)]);
                }),
                pump(stderr, |bytes| complaint.push(bytes)),
            )
        });
        let exited = async {
            let (mut exited, mut drained) = (pin!(tree.exited(&mut exits)), false);
            loop {
                tokio::select! {
                    biased;
                    _ = &mut read, if !drained => drained = true,
                    exited = &mut exited => {
                        exited?;
                        break;
                    }
                }
            }
            if !drained {
                // A timeout means that another process holds the output open.
                let _ = timeout(DRAIN, &mut read).await;
            }
            io::Result::Ok(())
        };
        timeout(limit, exited).await
    };
    let status = tree.end(|| ()).await?;
    let Ok(ended) = ended else { return Err(AskError::Silent) };
    ended?;
    match status.success() {
        true => Ok(String::from_utf8_lossy(&said).trim().to_owned()),
        false => Err(AskError::Failed(complaint.or(status))),
    }
}

/// Passes on data until the end or a read error.
pub(super) async fn pump(from: Option<impl AsyncRead + Unpin>, mut take: impl FnMut(&[u8])) {
    let Some(mut from) = from else { return };
    let mut buffer = vec![0; 4096];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        take(&buffer[..length]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each ends only its own processes.
    #[tokio::test]
    async fn commands_at_the_same_time_do_not_end_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let pipes = ["one", "two"].map(|name| folder.path().join(name).display().to_string());
        assert!(std::process::Command::new("mkfifo").args(&pipes).status().unwrap().success());
        let say = async |script: &str| {
            let args = ["-c", script, "sh", &pipes[0], &pipes[1]];
            Engine::run(Path::new("/bin/sh"), &args, folder.path(), REMOVE_LIMIT).await
        };
        // The first still waits when the second has ended.
        let others = async { (say("echo a > \"$1\"").await, say("echo b > \"$2\"").await) };
        let first = say("read a < \"$1\"; read b < \"$2\"; echo $a $b");
        let (first, (second, third)) = tokio::join!(first, others);
        assert_eq!(first.unwrap(), "a b");
        assert!(second.is_ok() && third.is_ok());
    }

    #[test]
    fn a_containers_processes_are_the_runners_user() {
        let (user_id, group) = (rustix::process::geteuid(), rustix::process::getegid());
        let own = format!("{}:{}", user_id.as_raw(), group.as_raw());
        let check = |kind, security, expected: &[&str]| {
            assert_eq!(user(kind, security).unwrap(), expected, "{kind:?} {security}");
        };
        check(Kind::Podman, "false", &["--user", &own]);
        check(Kind::Podman, "true", &["--userns", "keep-id", "--user", &own]);
        check(Kind::Docker, "[name=seccomp,profile=default]", &["--user", &own]);
        check(Kind::Docker, "[name=seccomp,profile=default name=rootless]", &["--user", "0:0"]);
        let error = user(Kind::Docker, "[name=seccomp,profile=default name=userns]").unwrap_err();
        assert!(error.contains("userns-remap"), "{error}");
    }

    #[test]
    fn a_folder_that_would_be_two_options_is_not_mounted() {
        let engine = Engine {
            program: "/usr/bin/podman".into(),
            kind: Kind::Podman,
            version: "4.3.1".to_owned(),
            user: Vec::new(),
        };
        let options = engine.options(Path::new("/jobs/a b/job:1"), "/cowboy").unwrap();
        let mount = "type=bind,source=/jobs/a b/job:1,target=/cowboy,relabel=private";
        assert_eq!(options, ["--http-proxy=false", "--mount", mount]);
        let docker = Engine { kind: Kind::Docker, ..engine };
        let options = docker.options(Path::new("/job"), "/cowboy").unwrap();
        assert_eq!(options, ["--mount", "type=bind,source=/job,target=/cowboy"]);
        for path in ["/a,target=/etc", "/a\"b", "/a\nb"] {
            let error = docker.options(Path::new(path), "/cowboy").unwrap_err();
            assert!(error.starts_with("the runner's folder cannot be mounted"), "{error}");
        }
    }
}
