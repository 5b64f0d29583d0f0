//! A runner and its machine: what jobs see and leave behind, and how the runner ends.

use super::{Process, Served};
use crate::support::{Outcome, outcome};
use rustix::process::{Signal, geteuid};
use std::{
    env, fs,
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{ChildStderr, Command, Stdio},
};

/// Set in the process that runs in a separate mount namespace.
const WITHIN: &str = "COWBOYCTL_TEST_NAMESPACE";

fn skipped(why: &str) {
    // Not by macro, because the test harness captures the macros' output of a passing test.
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

fn works(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// Whether this process runs in a separate mount namespace. If not, runs the test again in one.
fn in_a_namespace(test: &str) -> bool {
    if env::var_os(WITHIN).is_some() {
        return true;
    }
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount"]);
        command
    };
    if !works(unshare().arg("true")) {
        skipped("this system allows no mount namespace (unshare)");
        return false;
    }
    let mut again = unshare();
    again.arg(env::current_exe().unwrap()).args([test, "--exact", "--nocapture"]);
    let status = again.env(WITHIN, "yes").status().unwrap();
    assert!(status.success(), "in the namespace: {status}");
    false
}

fn mount(at: &Path) {
    fs::create_dir_all(at).unwrap();
    assert!(works(Command::new("mount").args(["-t", "tmpfs", "none"]).arg(at)), "{}", at.display());
}

/// Runs a runner until it has done `jobs` jobs.
fn worked(served: &Served, jobs: &str) -> Outcome {
    let args = ["lease", "runner", "--name", "worker", "--max-jobs", jobs];
    let outcome = outcome(&mut served.folder.command(&args));
    assert_eq!(outcome.code, 0, "{outcome:?}");
    outcome
}

/// A job's steps, each a script of several lines.
fn steps(scripts: &[&str]) -> String {
    let mut job = "  a:\n    steps:\n".to_owned();
    for script in scripts {
        job += "      - |\n";
        for line in script.trim().lines() {
            job += &format!("        {line}\n");
        }
    }
    job
}

/// The log of a successful job without the lines that echo its steps.
fn said(served: &Served, job: &str) -> String {
    let log = served.folder.prints(&["lease", "logs", job]);
    log.split_inclusive('\n').filter(|line| !line.starts_with("$ ")).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn what_cannot_be_removed_stops_no_runner() {
    if !in_a_namespace("lease::machine::what_cannot_be_removed_stops_no_runner") {
        return;
    }
    let served = Served::new();
    let runners = served.folder.path("home/.lease-runners");
    let left = runners.join("killed/jobs/cowboy-job-left");
    mount(&left.join("mounted"));
    fs::write(runners.join("killed/lock"), "").unwrap();

    let leave = "mkdir busy; mount -t tmpfs none busy; touch busy/file";
    let run = served.submit(&format!(
        "  a: {{ steps: ['{leave}'] }}\n  b: {{ needs: [a], steps: ['echo fine'] }}\n"
    ));
    let first = worked(&served, "2");
    let states = [("a", "SUCCEEDED"), ("b", "SUCCEEDED")];
    assert_eq!(served.states(&run), super::pairs(&states));
    let jobs = fs::read_dir(runners.join("worker/jobs")).unwrap();
    let stay: Vec<_> = jobs.map(|entry| entry.unwrap().path()).collect();
    let [busy] = &stay[..] else { panic!("{stay:?}") };
    let check = |stderr: &str| {
        let warnings = stderr.lines().filter(|line| line.contains("cannot be removed"));
        let warnings: Vec<_> = warnings.collect();
        assert_eq!(warnings.len(), 2, "{stderr}");
        for path in [&left, busy] {
            let path = path.canonicalize().unwrap();
            let named = warnings.iter().filter(|line| line.contains(path.to_str().unwrap()));
            assert_eq!(named.count(), 1, "{path:?}: {stderr}");
        }
    };
    check(&first.stderr);

    // A later runner of the same name also warns once per folder, and works in a fresh folder.
    let run = served.submit("  c: { steps: ['ls -A'] }\n");
    check(&worked(&served, "1").stderr);
    assert_eq!(served.states(&run), super::pairs(&[("c", "SUCCEEDED")]));
    assert_eq!(said(&served, "latest/c"), "");

    for mounted in [left.join("mounted"), busy.join("work/busy")] {
        assert!(works(Command::new("umount").arg(mounted)));
    }
    let run = served.submit("  d: { steps: ['true'] }\n");
    let last = worked(&served, "1");
    assert!(!last.stderr.contains("cannot be removed"), "{}", last.stderr);
    assert_eq!(served.states(&run), super::pairs(&[("d", "SUCCEEDED")]));
    assert!(!left.exists() && !busy.exists());
}

/// A runner that does one job, without root's right to read any process. `None` if this right
/// cannot be dropped.
fn without_rights(served: &Served) -> Option<Command> {
    let args = ["lease", "runner", "--name", "worker", "--once"];
    let command = served.folder.command(&args);
    if !geteuid().is_root() {
        return Some(command);
    }
    let drop = ["--bounding-set", "-sys_ptrace,-perfmon,-sys_admin"];
    if !works(Command::new("setpriv").args(drop).arg("true")) {
        skipped("root can read every process, and there is no setpriv");
        return None;
    }
    let mut bounded = Command::new("setpriv");
    bounded.args(drop).arg(command.get_program()).args(command.get_args()).env_clear();
    let variables = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
    bounded.envs(variables).stdin(Stdio::null());
    bounded.current_dir(command.get_current_dir().unwrap());
    Some(bounded)
}

#[cfg(target_os = "linux")]
const SPY: &str = r#"
could() { what=$1; shift; if ("$@") > /dev/null 2>&1; then echo "could $what"; fi; }
open() { : < "$1"; }
# What the attempts are worth: another process can be read.
sleep 600 & other=$!
could "open another's memory" open /proc/$other/mem
could "open another's environment" cat /proc/$other/environ
for file in environ maps auxv syscall stack; do
    could "read $file" cat /proc/$PPID/$file
done
could 'open its memory' open /proc/$PPID/mem
could 'open its pages' open /proc/$PPID/pagemap
could 'find its program' readlink /proc/$PPID/exe
for file in /proc/$PPID/fd/* /proc/$PPID/map_files/*; do could "open $file" readlink $file; done
echo "cores of $(ulimit -c) blocks"
"#;

#[cfg(target_os = "linux")]
#[test]
fn a_step_reads_nothing_of_its_runners_process() {
    let served = Served::new();
    let Some(mut runner) = without_rights(&served) else { return };
    served.submit(&steps(&[SPY]));
    let runner = outcome(&mut runner);
    assert_eq!(runner.code, 0, "{runner:?}");
    let expected = "could open another's memory\ncould open another's environment\n\
        cores of 0 blocks\n";
    assert_eq!(said(&served, "latest/a"), expected);
}

#[cfg(target_os = "linux")]
const DAEMON: &str = r#"
sh=$(command -v sh)
setsid=$(command -v setsid)
(env -i "$setsid" "$sh" -c 'trap "" TERM HUP; echo $$ > "$0"; exec sleep 600' "$PWD/daemon" &)
until [ -s daemon ]; do sleep 0.02; done
cat daemon
"#;

#[cfg(target_os = "linux")]
#[test]
fn no_daemon_outlives_its_step() {
    let served = Served::new();
    let look = "if kill -0 $(cat daemon) 2> /dev/null; then echo lives; else echo gone; fi";
    let first = steps(&[DAEMON, &format!("{look}; rm daemon"), DAEMON]);
    // The daemons end while the runner goes on, so its exit is not the reason.
    let runner = served.runner(2);
    served.write("run.yaml", &format!("jobs:\n{first}"));
    served.folder.prints(&["-q", "lease", "submit", "run.yaml", "--wait"]);
    let log = said(&served, "latest/a");
    let lines: Vec<_> = log.lines().collect();
    let [one, "gone", two] = lines[..] else { panic!("{log}") };
    for daemon in [one, two] {
        assert!(!Path::new("/proc").join(daemon).exists(), "{log}");
    }

    // Processes that end by themselves during a step leave no zombies either.
    served.submit(&steps(&["
        (sh -c 'echo $$ > first' &)
        until [ -s first ]; do sleep 0.02; done
        while [ -e /proc/$(cat first) ]; do (true &); sleep 0.02; done
        echo reaped
    "]));
    assert_eq!(runner.ended(), 0);
    assert_eq!(said(&served, "latest/a"), "reaped\n");
}

/// Starts a runner, and returns it with its standard error.
fn heard(served: &Served) -> (Process, BufReader<ChildStderr>) {
    let mut command = served.folder.command(&["lease", "runner", "--name", "worker"]);
    let mut runner = Process::start(command.stdout(Stdio::null()).stderr(Stdio::piped()));
    let stderr = runner.0.stderr.take().unwrap();
    (runner, BufReader::new(stderr))
}

/// Reads a runner's standard error until a line contains `what`.
fn until_told(stderr: &mut BufReader<ChildStderr>, what: &str) {
    let mut told = String::new();
    while !told.lines().last().is_some_and(|line| line.contains(what)) {
        assert_ne!(stderr.read_line(&mut told).unwrap(), 0, "{what}: {told}");
    }
}

#[test]
fn the_first_signal_lets_the_job_end_and_takes_no_other() {
    for signal in [Signal::TERM, Signal::INT] {
        let served = Served::new();
        let go = served.folder.path("go");
        served.submit(&format!(
            "  a: {{ steps: ['echo begun; until [ -e {} ]; do sleep 0.02; done', 'echo end'] }}\n  \
             b: {{ steps: ['true'], needs: [a] }}\n",
            go.display()
        ));
        let (runner, mut stderr) = heard(&served);
        let (_, follow, _) = served.until_logged("latest/a", "begun\n");
        runner.signal(signal);
        until_told(&mut stderr, "the runner ends after job a (job_");
        fs::write(&go, "").unwrap();
        assert_eq!(runner.ended(), 0);
        drop(follow);
        let states = [("a", "SUCCEEDED"), ("b", "QUEUED")];
        assert_eq!(served.states("latest"), super::pairs(&states));
        assert!(said(&served, "latest/a").ends_with("end\n"));
    }
    // A runner without a job ends at once.
    let served = Served::new();
    let (runner, mut stderr) = heard(&served);
    until_told(&mut stderr, "asks the lease server for jobs");
    assert_eq!(runner.terminate(), 0);
    until_told(&mut stderr, "the runner ends");
}

#[test]
fn the_second_signal_stops_the_job_and_gives_it_back() {
    let served = Served::new();
    served.submit(
        "  a: { steps: ['test $COWBOY_ATTEMPT = 2 || { echo begun; exec sleep 600; }'] }\n",
    );
    let (runner, mut stderr) = heard(&served);
    let (_, follow, _) = served.until_logged("latest/a", "begun\n");
    runner.signal(Signal::TERM);
    until_told(&mut stderr, "the next signal stops the job");
    runner.signal(Signal::INT);
    until_told(&mut stderr, "it is back in the queue");
    assert_eq!(runner.ended(), 130);
    drop(follow);
    let job = served.json(&["lease", "show", "latest/a"]);
    assert_eq!((&job["state"], &job["attempt"]), (&"QUEUED".into(), &1.into()));
    // The next runner gets the job at once.
    assert_eq!(served.runner(1).ended(), 0);
    assert_eq!(served.states("latest"), super::pairs(&[("a", "SUCCEEDED")]));
}
