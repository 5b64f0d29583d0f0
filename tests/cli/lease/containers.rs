//! Jobs with an image on a real podman with separate storage and an image that is built here,
//! without a network. Skipped if podman, a container runtime or a static busybox is missing or does
//! not work, unless `COWBOYCTL_CONTAINER_ENGINE_TESTS=1` says that they were installed for this.

use super::{Process, Served, pairs};
use crate::support::{Folder, Outcome, outcome};
use rustix::process::{Resource, Signal, geteuid, getrlimit};
use std::{
    env, fs,
    io::Write as _,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// The image, which is in no registry.
const IMAGE: &str = "localhost/cowboyctl-tests:1";
/// The busybox applets in the image.
const TOOLS: [&str; 10] =
    ["cat", "chmod", "env", "id", "ls", "mkdir", "rm", "sh", "sleep", "touch"];
/// The limits of files and processes in a container, unless those of the tests are lower.
const LIMITS: [(&str, Resource, u64); 2] =
    [("nofile", Resource::Nofile, 4096), ("nproc", Resource::Nproc, 4096)];

/// A lease server, and an engine for its runners.
struct Site {
    served: Served,
    /// The folder of the engine's configuration and storage.
    engine: PathBuf,
}

impl Site {
    /// `None` if no engine works; standard error says why.
    fn new() -> Option<Self> {
        let folder = Folder::new();
        let engine = folder.path("engine");
        let made = make(&engine);
        let smoke = made.and_then(|()| {
            let smoke = [&["run", "--rm"], &["--", IMAGE, "/bin/sh", "-c", "exit 0"][..]].concat();
            done(podman(&engine).args(smoke))
        });
        match smoke {
            Ok(()) => Some(Self { served: Served::in_folder(folder, &[]), engine }),
            Err(why) => {
                let installed = env::var_os("COWBOYCTL_CONTAINER_ENGINE_TESTS");
                assert!(installed.is_none_or(|set| set != "1"), "the engine does not work: {why}");
                let _ = writeln!(std::io::stderr(), "skipped: no container engine works: {why}");
                None
            }
        }
    }

    fn podman(&self) -> Command {
        podman(&self.engine)
    }

    /// A runner that exits after `jobs` jobs, with the engine.
    fn command(&self, name: &str, jobs: &str) -> Command {
        let args = ["lease", "runner", "--name", name, "--max-jobs", jobs];
        let mut command = self.served.folder.command(&args);
        command.envs(variables(&self.engine)).env("COWBOYCTL_CONTAINERS", "podman");
        command
    }

    fn runner(&self) -> Process {
        let mut command = self.command("worker", "1");
        Process::start(command.stdout(Stdio::null()).stderr(Stdio::null()))
    }

    /// Runs a runner until it has done `jobs` jobs.
    fn worked(&self, jobs: &str) -> Outcome {
        let outcome = outcome(&mut self.command("worker", jobs));
        assert_eq!(outcome.code, 0, "{outcome:?}");
        assert!(outcome.stderr.contains("; containers: podman "), "{outcome:?}");
        outcome
    }

    /// A job's log without the lines that echo its steps.
    fn said(&self, job: &str) -> String {
        let log = self.served.folder.prints(&["lease", "logs", job]);
        let own = ["$ ", "[runner] processes that end may stay zombies"];
        let said = |line: &&str| !own.iter().any(|own| line.starts_with(own));
        log.split_inclusive('\n').filter(said).collect()
    }

    /// The names of all containers, running or not.
    fn containers(&self) -> Vec<String> {
        let output = self.podman().args(["ps", "--all", "--format", "{{.Names}}"]).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // A failed test may leave containers.
        let _ = self.podman().args(["rm", "--all", "--force", "--volumes"]).output();
        if !geteuid().is_root() {
            // Ends the process that keeps a user's namespace for the next command.
            let _ = self.podman().args(["system", "migrate"]).output();
        }
    }
}

fn variables(engine: &Path) -> [(&'static str, PathBuf); 4] {
    [
        ("CONTAINERS_CONF", engine.join("containers.conf")),
        ("CONTAINERS_STORAGE_CONF", engine.join("storage.conf")),
        ("HOME", engine.to_owned()),
        ("XDG_RUNTIME_DIR", engine.join("run")),
    ]
}

fn podman(engine: &Path) -> Command {
    let mut command = Command::new("podman");
    command.envs(variables(engine)).current_dir("/").stdin(Stdio::null());
    command
}

/// Runs a command that has to succeed.
fn done(command: &mut Command) -> Result<(), String> {
    let what = command.get_program().display().to_string();
    let output = command.output().map_err(|error| format!("{what}: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{what}: {}: {}", output.status, said.trim())),
    }
}

fn program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Makes an engine's folder with an image that contains only busybox.
fn make(engine: &Path) -> Result<(), String> {
    let busybox = program("busybox").ok_or("no busybox")?;
    let runtime = if program("runc").is_some() { "runtime = \"runc\"\n" } else { "" };
    let limits = LIMITS.map(|(name, resource, enough)| {
        let most = getrlimit(resource).maximum.unwrap_or(enough).min(enough);
        format!("\"{name}={most}:{most}\"")
    });
    let at = engine.display();
    let bin = engine.join("root/bin");
    fs::create_dir_all(&bin).unwrap();
    fs::create_dir(engine.join("run")).unwrap();
    let own = format!(
        "[containers]\ndefault_ulimits = [{}]\nnetns = \"none\"\n[engine]\n{runtime}\
         cgroup_manager = \"cgroupfs\"\nevents_logger = \"none\"\nlock_type = \"file\"\n\
         tmp_dir = \"{at}/tmp\"\n",
        limits.join(", ")
    );
    fs::write(engine.join("containers.conf"), own).unwrap();
    let storage = format!(
        "[storage]\ndriver = \"vfs\"\ngraphroot = \"{at}/graph\"\nrunroot = \"{at}/run/storage\"\n"
    );
    fs::write(engine.join("storage.conf"), storage).unwrap();
    fs::copy(&busybox, bin.join("busybox")).map_err(|error| error.to_string())?;
    for tool in TOOLS {
        symlink("busybox", bin.join(tool)).unwrap();
    }
    let tar = engine.join("image.tar");
    let folder = engine.join("root");
    done(Command::new(busybox).args(["tar", "-cf"]).arg(&tar).arg("-C").arg(folder).arg("."))?;
    done(podman(engine).args(["import", "--quiet"]).arg(&tar).arg(IMAGE))
}

/// Whether a process has this on its command line.
fn is_an_argument(text: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.map(|process| fs::read(process.path().join("cmdline")));
    lines.flatten().any(|bytes| String::from_utf8_lossy(&bytes).contains(text))
}

#[test]
fn a_job_with_an_image_leaves_what_any_job_leaves() {
    let Some(site) = Site::new() else { return };
    let run = site.served.submit(&format!(
        r#"  build:
    image: {IMAGE}
    workdir: deep
    env: {{ LINES: "one\ntwo 'three'\n", GREETING: hello }}
    steps:
      - echo kept > /outside; echo "$HOME $PWD $COWBOY_JOB_DIRECTORY $COWBOY_JOB_NAME"
      - |
        cat /outside; echo "$LINES"; mkdir out; echo "$GREETING" > out/greeting; touch ~/mine
        (sleep 600; echo never > /late) &
        echo "$$ $(id -u)" > /numbers
      - test ! -e /late; for p in /proc/[0-9]*; do cat $p/cmdline; done; ls ~
      - 'echo "progress: 50 half" >&2; ls /root /home 2> /dev/null; env > out/env'
    artifacts: [{{ type: x, path_glob: "out/*" }}]
  use:
    needs: [build]
    workdir: deep
    steps: [cat out/greeting]
  fail:
    image: {IMAGE}
    needs: [use]
    steps: ["exit 7", "echo never"]
  gone:
    image: {IMAGE}
    if: always()
    needs: [fail]
    steps: ["rm -r ../work", "true"]
"#
    ));
    site.worked("4");
    let states = [("build", "SUCCEEDED"), ("use", "SUCCEEDED"), ("fail", "FAILED")];
    let expected = [pairs(&states), pairs(&[("gone", "FAILED")])].concat();
    assert_eq!(site.served.states(&run), expected, "{}", site.said("latest/build"));
    let said = site.said("latest/build");
    let begin = "/cowboy/home /cowboy/work/deep /cowboy build\nkept\none\ntwo 'three'\n\n";
    assert!(said.starts_with(begin), "{said}");
    assert!(!said.contains("sleep\u{0}600"), "what a step left running is gone: {said}");
    assert!(said.ends_with("mine\nprogress: 50 half\n"), "{said}");
    assert_eq!(site.said("latest/use").lines().last(), Some("hello"));
    let job = site.served.json(&["lease", "show", "latest/fail"]);
    assert_eq!(job["attempts"][0]["exit_code"], 7, "{job}");
    assert!(site.said("latest/gone").contains("step 2 of 2 failed"), "it had no directory");

    let out = site.served.folder.path("out");
    let download = ["lease", "artifacts", "latest/build", "--download", out.to_str().unwrap()];
    site.served.folder.prints(&[&["-q"], &download[..]].concat());
    let env = fs::read_to_string(out.join("out/env")).unwrap();
    // The image's variables, not the runner's.
    let path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n";
    assert!(env.contains(path) && env.contains("COWBOY_ATTEMPT=1\n"), "{env}");
    assert!(!env.contains("COWBOYCTL") && !env.contains("lease_"), "{env}");
    assert!(site.containers().is_empty());
    let left = site.served.folder.path("home/.lease-runners");
    let left: Vec<_> = fs::read_dir(left).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_cancel_ends_what_runs_in_a_container() {
    let Some(site) = Site::new() else { return };
    site.served
        .submit(&format!("  a:\n    image: {IMAGE}\n    steps: ['echo ready; sleep 600']\n"));
    let runner = site.runner();
    let (_, follow, _) = site.served.until_logged("latest/a", "ready\n");
    site.served.folder.prints(&["-q", "lease", "cancel", "latest/a", "--wait"]);
    drop(follow);
    assert_eq!(runner.ended(), 0);
    assert_eq!(site.served.states("latest"), pairs(&[("a", "CANCELED")]));
    assert!(site.containers().is_empty());

    // A step and its children have time to end.
    let step =
        "(trap 'sleep 0.5; echo child; exit' TERM; echo ready; while :; do sleep 0.1; done) &
        trap 'echo parent; exit 3' TERM; while :; do sleep 0.1; done";
    site.served
        .submit(&format!("  b:\n    image: {IMAGE}\n    steps:\n      - |\n        {step}\n"));
    let runner = site.runner();
    let (_, follow, _) = site.served.until_logged("latest/b", "ready\n");
    site.served.folder.prints(&["-q", "lease", "cancel", "latest/b", "--wait"]);
    drop(follow);
    assert_eq!(runner.ended(), 0);
    let said = site.said("latest/b");
    assert!(said.contains("parent\n") && said.contains("child\n"), "{said}");
    assert!(site.containers().is_empty());
}

#[test]
fn what_takes_too_long_in_a_container_keeps_its_artifacts() {
    let Some(site) = Site::new() else { return };
    site.served.submit(&format!(
        r"  a:
    image: {IMAGE}
    max_runtime: 3s
    steps:
      - |
        trap 'echo cleaned; exit 3' TERM; echo part > part; while :; do sleep 0.1; done
    artifacts: [{{ type: x, path_glob: part }}]
"
    ));
    site.worked("1");
    assert_eq!(site.served.states("latest"), pairs(&[("a", "TIMED_OUT")]));
    let job = site.served.json(&["lease", "show", "latest/a"]);
    assert_eq!(job["attempts"][0]["exit_code"], 3, "{job}");
    let log = site.said("latest/a");
    // In between, the shell may report that its own command was terminated.
    assert!(log.contains("cleaned\n") && log.contains("\n[runner] Not done within 3 s"), "{log}");
    let artifacts = site.served.json(&["lease", "artifacts", "latest/a"]);
    assert!(artifacts.to_string().contains("\"part\""), "{artifacts}");
    assert!(site.containers().is_empty());
}

#[test]
fn the_next_runner_removes_the_container_of_one_that_was_killed() {
    let Some(site) = Site::new() else { return };
    site.served
        .submit(&format!("  a:\n    image: {IMAGE}\n    steps: ['echo ready; sleep 600']\n"));
    let runner = site.runner();
    let (_, follow, _) = site.served.until_logged("latest/a", "ready\n");
    let [name] = &site.containers()[..] else { panic!("{:?}", site.containers()) };
    assert!(name.starts_with("cowboyctl-"), "{name}");
    let killed = Instant::now();
    runner.signal(Signal::KILL);
    let _killed = runner.ended();
    drop(follow);
    // Without its runner the container stops; the next runner removes it.
    let running = || {
        let output = site.podman().args(["ps", "--quiet"]).output().unwrap();
        !output.stdout.is_empty()
    };
    while running() {
        assert!(killed.elapsed() < Duration::from_secs(60), "it goes on without its runner");
    }
    assert_eq!(site.containers(), std::slice::from_ref(name));
    site.served.submit("  b: { steps: ['echo fine'] }\n");
    let outcome = outcome(&mut site.command("other", "1"));
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert!(site.containers().is_empty(), "{}", outcome.stderr);
    assert_eq!(site.said("latest/b"), "fine\n");
    let left = fs::read_dir(site.served.folder.path("home/.lease-runners")).unwrap();
    assert_eq!(left.count(), 0);
}

#[test]
fn secrets_of_a_job_with_an_image_are_nowhere_to_be_seen() {
    let Some(site) = Site::new() else { return };
    let secret = "hunter2-that-is-secret";
    site.served.write("secret", secret);
    site.served.submit(&format!(
        r#"  a:
    image: {IMAGE}
    env: {{ PASSWORD: {{ secret_file: secret }} }}
    steps:
      - 'echo "have $PASSWORD"; echo ready; while [ ! -e ~/go ]; do sleep 0.1; done'
"#
    ));
    let runner = site.runner();
    let (log, follow, _) = site.served.until_logged("latest/a", "ready\n");
    assert!(log.contains("have ***\n"), "{log}");
    assert!(is_an_argument("container-env") && !is_an_argument(secret));
    let inspect = site.podman().args(["container", "inspect", "--latest"]).output().unwrap();
    let inspect = String::from_utf8(inspect.stdout).unwrap();
    assert!(inspect.contains("/cowboy") && !inspect.contains(secret), "{inspect}");
    assert!(!inspect.contains("cowboy_runner_") && !inspect.contains("lease_"), "{inspect}");
    let jobs = site.served.folder.path("home/.lease-runners/worker/jobs");
    let job = fs::read_dir(jobs).unwrap().next().unwrap().unwrap().path();
    fs::write(job.join("home/go"), "").unwrap();
    assert_eq!(runner.ended(), 0);
    drop(follow);
    assert_eq!(site.served.states("latest"), pairs(&[("a", "SUCCEEDED")]));
}

#[test]
fn an_image_that_cannot_be_pulled_fails_the_job_with_the_reason() {
    let Some(site) = Site::new() else { return };
    site.served.submit("  a: { image: 'localhost:1/nowhere:1', steps: ['echo never'] }\n");
    site.worked("1");
    let job = site.served.json(&["lease", "show", "latest/a"]);
    assert_eq!(job["state"], "FAILED", "{job}");
    let summary = job["attempts"][0]["summary"].as_str().unwrap();
    assert!(summary.starts_with("image localhost:1/nowhere:1 cannot be pulled: "), "{summary}");
    assert!(summary.contains("connection refused"), "{summary}");
    let log = site.said("latest/a");
    assert!(log.starts_with("[runner] pulling image localhost:1/nowhere:1\n"), "{log}");
    assert!(!log.contains("never") && site.containers().is_empty(), "{log}");
}

#[test]
fn an_engine_that_does_not_work_is_told_before_the_runner_has_a_name() {
    let served = Served::new();
    let refused = |engine: &str, path: &Path| {
        let args = ["lease", "runner", "--name", "worker", "--containers", engine];
        outcome(served.folder.command(&args).env("PATH", path))
    };
    let empty = served.folder.path("empty");
    fs::create_dir(&empty).unwrap();
    let told = refused("docker", &empty);
    assert_eq!(told.code, 1, "{told:?}");
    assert!(told.stderr.contains("docker does not work: not found in PATH"), "{told:?}");
    assert!(told.stderr.contains("--containers off"), "{told:?}");
    // A docker client without a daemon.
    let docker = empty.join("docker");
    let script = "#!/bin/sh\ncase $1 in --version) echo Docker version 28.2.2 ;; *)\n\
        echo ';[]'; echo 'Cannot connect to the Docker daemon.' >&2; exit 1 ;; esac\n";
    fs::write(&docker, script).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&docker, mode).unwrap();
    let told = refused("docker", &empty);
    assert_eq!(told.code, 1, "{told:?}");
    assert!(told.stderr.contains("Cannot connect to the Docker daemon."), "{told:?}");
    assert_eq!(served.json(&["lease", "runners"]), serde_json::json!([]));
    // With `auto`, a runner works without an engine.
    served.submit("  a: { steps: ['true'] }\n");
    let args = ["lease", "runner", "--name", "worker", "--once", "--containers", "auto"];
    let worked = outcome(served.folder.command(&args).env("PATH", &empty));
    assert_eq!((worked.code, worked.stderr.contains("containers:")), (0, false), "{worked:?}");
    let runners = served.json(&["lease", "runners"]);
    assert!(!runners.to_string().contains("container"), "{runners}");
}
