//! The lease commands, against a server and runners in separate processes.

mod containers;
mod machine;
mod protocol;
mod tls;

use crate::{
    shape,
    support::{Folder, Outcome, outcome},
    terminal::on_terminal,
};
use serde_json::Value;
use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
};

/// A process that is killed on drop.
struct Process(Child);

impl Process {
    fn start(command: &mut Command) -> Self {
        Self(command.stdin(Stdio::null()).spawn().unwrap())
    }

    /// Waits until it exits by itself, and returns its exit code.
    fn ended(mut self) -> i32 {
        self.0.wait().unwrap().code().unwrap_or(-1)
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Sends SIGTERM and waits; returns the exit code.
    fn terminate(self) -> i32 {
        self.signal(rustix::process::Signal::TERM);
        self.ended()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ended = self.0.kill();
        let _ended = self.0.wait();
    }
}

/// A home in which a lease server runs.
struct Served {
    folder: Folder,
    url: String,
    process: Process,
}

impl Served {
    fn new() -> Self {
        Self::with(&[])
    }

    fn with(args: &[&str]) -> Self {
        Self::in_folder(Folder::new(), args)
    }

    fn in_folder(folder: Folder, args: &[&str]) -> Self {
        let mut command = folder.command(&["lease", "serve", "-o", "jsonl"]);
        command.args(args).env("COWBOYCTL_LOG", "off").stdout(Stdio::piped());
        let mut process = Process::start(&mut command);
        let mut line = String::new();
        let stdout = process.0.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        shape::check(&["lease", "serve", "-o", "jsonl"], &line);
        let said: Value = serde_json::from_str(&line).unwrap();
        Self { folder, url: said["url"].as_str().unwrap().to_owned(), process }
    }

    fn json(&self, args: &[&str]) -> Value {
        let out = self.folder.prints(&[&["-o", "json"], args].concat());
        serde_json::from_str(&out).unwrap()
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.path(name), text).unwrap();
    }

    /// Submits a run and returns its id.
    fn submit(&self, jobs: &str) -> String {
        self.write("run.yaml", &format!("jobs:\n{jobs}"));
        let outcome = self.folder.run(&["--quiet", "lease", "submit", "run.yaml"]);
        assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "{outcome:?}");
        outcome.stdout.trim().to_owned()
    }

    /// Starts a runner that exits after `jobs` jobs.
    fn runner(&self, jobs: u32) -> Process {
        let jobs = jobs.to_string();
        let args = ["lease", "runner", "--name", "worker", "--max-jobs", &jobs];
        Process::start(self.folder.command(&args).stdout(Stdio::null()).stderr(Stdio::null()))
    }

    /// Follows a job's log until it ends with `end`; returns the text read, the process that keeps
    /// following and its output.
    fn until_logged(&self, job: &str, end: &str) -> (String, Process, BufReader<ChildStdout>) {
        let mut follow = self.folder.command(&["lease", "logs", job, "--follow"]);
        let mut follow = Process::start(follow.stdout(Stdio::piped()).stderr(Stdio::null()));
        let mut log = BufReader::new(follow.0.stdout.take().unwrap());
        let mut read = String::new();
        while !read.ends_with(end) {
            assert_ne!(log.read_line(&mut read).unwrap(), 0, "{read}");
        }
        (read, follow, log)
    }

    /// The states of a run's jobs, by name.
    fn states(&self, run: &str) -> Vec<(String, String)> {
        let run = self.json(&["lease", "show", run]);
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let jobs = run["jobs"].as_array().unwrap().iter();
        jobs.map(|job| (text(&job["name"]), text(&job["state"]))).collect()
    }
}

fn pairs(of: &[(&str, &str)]) -> Vec<(String, String)> {
    of.iter().map(|(name, state)| ((*name).to_owned(), (*state).to_owned())).collect()
}

/// Whether any file below a folder contains `needle`.
fn is_below(folder: &Path, needle: &str) -> bool {
    fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => is_below(&path, needle),
            false => {
                let bytes = fs::read(&path).unwrap();
                bytes.windows(needle.len()).any(|part| part == needle.as_bytes())
            }
        }
    })
}

#[test]
fn a_run_from_its_file_to_what_it_leaves() {
    let served = Served::new();
    let folder = &served.folder;
    served.write(
        "ci.yaml",
        "name: ci\njobs:\n  \
         build:\n    steps: ['mkdir -p out/deep; echo made > out/deep/product', \
         'printf two > out/two']\n    \
         artifacts: [{ type: build, path_glob: 'out/**' }]\n  \
         greet:\n    needs: [build]\n    env: { WORD: { secret_env: WORD } }\n    \
         steps: ['echo \"$WORD, world\"; echo attempt $COWBOY_ATTEMPT']\n  \
         flaky:\n    needs: [build]\n    steps: ['test $COWBOY_ATTEMPT = 2']\n    \
         retry: { on: [failure], max_attempts: 2 }\n",
    );
    let runner = served.runner(4);
    let submit = ["-o", "json", "lease", "submit", "ci.yaml", "--wait"];
    let submitted = outcome(folder.command(&submit).env("WORD", "hunter2"));
    assert_eq!(submitted.code, 0, "{submitted:?}");
    shape::check(&submit, &submitted.stdout);
    assert_eq!(runner.ended(), 0);
    let run: Value = serde_json::from_str(&submitted.stdout).unwrap();
    assert_eq!((&run["state"], &run["name"]), (&"SUCCEEDED".into(), &"ci".into()));
    let states = pairs(&[("build", "SUCCEEDED"), ("greet", "SUCCEEDED"), ("flaky", "SUCCEEDED")]);
    assert_eq!(served.states("latest"), states);

    let log = folder.prints(&["lease", "logs", "latest/greet"]);
    assert!(log.contains("***, world\nattempt 1\n"), "{log}");
    assert_eq!(folder.prints(&["lease", "logs", "latest/greet", "--follow"]), log);
    let flaky = served.json(&["lease", "show", "latest/flaky"]);
    assert_eq!(flaky["attempts"][0]["exit_code"], 1);
    assert_eq!((&flaky["attempt"], &flaky["finalized"]), (&2.into(), &1.into()));

    // A job is found by its run and name, by its id, and by the beginning of that.
    let id = flaky["job"].as_str().unwrap();
    assert_eq!(served.json(&["lease", "show", id]), flaky);
    assert_eq!(served.json(&["lease", "show", &id[..id.len() - 3]]), flaky);
    assert_eq!(served.json(&["lease", "show", id.trim_start_matches("job_")]), flaky);

    let artifacts = served.json(&["lease", "artifacts", "latest/build"]);
    let names = artifacts.as_array().unwrap().iter().map(|of| of["name"].as_str().unwrap());
    assert_eq!(names.collect::<Vec<_>>(), ["out/deep/product", "out/two"]);
    folder.prints(&["lease", "artifacts", "latest/build", "out/two", "--download", "here"]);
    assert_eq!(fs::read_to_string(folder.path("here/out/two")).unwrap(), "two");
    assert!(!folder.path("here/out/deep").exists());
    let paths = folder.prints(&["-q", "lease", "artifacts", "latest/build", "--download", "here"]);
    assert_eq!(paths, "here/out/deep/product\nhere/out/two\n");
    assert_eq!(fs::read_to_string(folder.path("here/out/deep/product")).unwrap(), "made\n");

    // The secret is nowhere: not in output, and after the run's end not in the files either.
    for args in [["lease", "show", "latest/greet"], ["lease", "logs", "latest/greet"]] {
        let shown = folder.prints(&args) + &folder.prints(&[&["-o", "json"], &args[..]].concat());
        assert!(!shown.contains("hunter2") && !shown.contains("lease_id"), "{shown}");
    }
    assert!(!is_below(&folder.path("home/.lease/logs"), "hunter2"));
    shape::seen(&["lease serve", "lease submit", "lease show", "lease artifacts"]);
}

#[test]
fn lists_have_the_fields_that_scripts_rely_on() {
    let served = Served::new();
    let run = served.submit("  a: { steps: ['true'] }\n  b: { steps: ['true'], needs: [a] }\n");
    let runner = served.runner(1);
    assert_eq!(runner.ended(), 0);
    let jobs = served.json(&["lease", "ls", "--run", &run, "--state", "SUCCEEDED"]);
    let [job] = jobs.as_array().unwrap().as_slice() else { panic!("{jobs}") };
    let fields: Vec<_> = job.as_object().unwrap().keys().map(String::as_str).collect();
    // `expires_at` is absent because the lease has ended.
    assert_eq!(fields, ["attempt", "job", "lease_state", "name", "run", "runner", "state"]);
    assert_eq!((&job["lease_state"], &job["runner"]), (&"COMPLETED".into(), &"worker".into()));
    let runs = served.json(&["lease", "ls", "--runs"]);
    assert_eq!((&runs[0]["run_id"], &runs[0]["ended"]), (&run.as_str().into(), &1.into()));
    let ids = served.folder.prints(&["-q", "lease", "ls", "--limit", "1"]);
    assert!(ids.starts_with("job_") && ids.lines().count() == 1, "{ids}");
    let table = served.folder.prints(&["lease", "ls"]);
    assert!(table.starts_with("JOB") && table.contains("SUCCEEDED"), "{table}");
    let events = served.json(&["lease", "show", "--events", &format!("{run}/a")]);
    assert_eq!(events[0]["state"], "QUEUED", "{events}");
    assert_eq!(events[2]["lease_state"], "ACTIVE", "{events}");
    shape::seen(&["lease ls"]);
}

#[test]
fn a_run_is_tried_again_with_what_its_jobs_left_and_secrets_from_here() {
    let served = Served::new();
    let jobs = "  build: { steps: ['echo built > it'], artifacts: [{ type: x, path_glob: it }] }
  unit: { needs: [build], env: { KEY: { secret: first } }, steps: ['test $KEY = second && cat it'] }
  then: { needs: [unit], steps: ['true'] }
";
    let run = served.submit(jobs);
    let (first, second) = (served.runner(1), served.folder.fails(8, &["lease", "retry", &run]));
    assert!(second.contains("has not ended"), "{second}");
    assert_eq!(first.ended(), 0);
    assert_eq!(served.runner(1).ended(), 0);
    let states = pairs(&[("build", "SUCCEEDED"), ("unit", "FAILED"), ("then", "SKIPPED")]);
    assert_eq!(served.states(&run), states);
    let missing = served.folder.fails(2, &["lease", "retry", &run, "--failed"]);
    assert!(missing.contains("jobs that have ended: KEY"), "{missing}");
    let runner = served.runner(2);
    let args = ["lease", "retry", &run, "--failed", "--env", "KEY=second", "--wait"];
    let again = served.json(&args)["run_id"].as_str().unwrap().to_owned();
    assert_eq!(runner.ended(), 0);
    let states = pairs(&[("unit", "SUCCEEDED"), ("then", "SUCCEEDED")]);
    assert_eq!(served.states(&again), states);
    let log = served.folder.prints(&["lease", "logs", &format!("{again}/unit")]);
    assert!(log.contains("\nbuilt\n"), "{log}");
    let none = served.folder.fails(8, &["lease", "retry", &again, "--failed"]);
    assert!(none.contains("every job succeeded"), "{none}");
    shape::seen(&["lease retry"]);
}

#[test]
fn what_waits_is_canceled_at_once_with_what_needs_it() {
    let served = Served::new();
    let run = served.submit(
        "  a: { steps: ['true'] }\n  b: { steps: ['true'], needs: [a] }\n  c: { steps: ['true'] }\n",
    );
    assert_eq!(served.json(&["lease", "cancel", "latest/a"])["state"], "CANCELED");
    let states = pairs(&[("a", "CANCELED"), ("b", "SKIPPED"), ("c", "QUEUED")]);
    assert_eq!(served.states(&run), states);
    // A second cancel has the same result.
    assert_eq!(served.json(&["lease", "cancel", "latest/a"])["state"], "CANCELED");
    let canceled = served.json(&["lease", "cancel", &run, "--wait"]);
    assert_eq!(canceled["state"], "CANCELED");
    served.folder.fails(8, &["lease", "revoke", "latest/c"]);
    shape::seen(&["lease cancel"]);
}

#[test]
fn what_runs_is_stopped_and_its_log_is_kept() {
    // A runner learns of the cancel with its next heartbeat.
    let served = Served::with(&["--heartbeat", "1s"]);
    served.submit("  long: { steps: ['echo begun; sleep 600'] }\n");
    let runner = served.runner(1);
    let (mut read, follow, mut log) = served.until_logged("latest/long", "begun\n");
    let running = served.folder.prints(&["-q", "lease", "ls", "--state", "running"]);
    assert_eq!(running.lines().count(), 1);
    let runners = served.json(&["lease", "runners"]);
    assert_eq!(runners[0]["runner_id"], "worker", "{runners}");
    assert_eq!(runners[0]["job"]["name"], "long", "{runners}");
    shape::seen(&["lease runners"]);
    let canceled = served.json(&["lease", "cancel", "latest/long", "--wait", "--timeout", "60s"]);
    assert_eq!(canceled["state"], "CANCELED");
    assert_eq!(runner.ended(), 0);
    log.read_to_string(&mut read).unwrap();
    assert_eq!(follow.ended(), 0, "a log ends with its job");
    assert_eq!(served.folder.prints(&["lease", "logs", "latest/long"]), read);
}

#[test]
fn a_terminal_is_shown_the_text_of_a_log_and_its_colours() {
    let served = Served::new();
    let step = r"printf '\033[31mred\033[0m \033]0;title\007\033[2Jtext\n'";
    served.submit(&format!("  a:\n    steps:\n      - |\n        {step}\n"));
    assert_eq!(served.runner(1).ended(), 0);
    let logs = ["lease", "logs", "latest/a"];
    let written = "\u{1b}[31mred\u{1b}[0m \u{1b}]0;title\u{7}\u{1b}[2Jtext\n";
    // A program that reads the log gets every byte.
    assert!(served.folder.prints(&logs).ends_with(written));
    let shown = |more: &[&str], variable: (&str, &str)| {
        let mut command = served.folder.command(&[&logs[..], more].concat());
        command.env("TERM", "xterm").env(variable.0, variable.1);
        let shown = on_terminal(&mut command, 80, false);
        assert_eq!(shown.code, 0, "{}", shown.text);
        let (_, text) = shown.text.split_once("'\n").unwrap();
        text.to_owned()
    };
    assert_eq!(shown(&[], ("A", "B")), "\u{1b}[31mred\u{1b}[0m text\n");
    assert_eq!(shown(&["--follow"], ("A", "B")), "\u{1b}[31mred\u{1b}[0m text\n");
    assert_eq!(shown(&[], ("NO_COLOR", "1")), "red text\n");
    assert_eq!(shown(&["--raw"], ("A", "B")), written);
}

#[test]
fn a_lease_that_is_taken_back_ends_what_its_runner_does() {
    let served = Served::with(&["--heartbeat", "1s"]);
    served.submit("  long: { steps: ['echo begun; sleep 600'] }\n");
    let runner = served.runner(1);
    let (_, follow, _) = served.until_logged("latest/long", "begun\n");
    let revoked = served.json(&["lease", "revoke", "latest/long"]);
    assert_eq!(revoked["state"], "QUEUED", "the next runner gets it: {revoked}");
    shape::seen(&["lease revoke"]);
    drop(follow);
    assert_eq!(runner.ended(), 0);
}

#[test]
fn a_run_that_fails_is_told_with_the_job_that_did() {
    let served = Served::new();
    let runner = served.runner(1);
    served.write(
        "run.yaml",
        "jobs:\n  a: { steps: ['exit 7'] }\n  b: { steps: ['true'], needs: [a] }\n",
    );
    let outcome = served.folder.run(&["-q", "lease", "submit", "run.yaml", "--wait"]);
    assert_eq!(outcome.code, 1, "{outcome:?}");
    assert!(outcome.stderr.contains("ended as FAILED: job `a` FAILED, 0 of 2 succeeded"));
    assert_eq!(runner.ended(), 0);
    let job = served.json(&["lease", "show", "latest/a"]);
    assert_eq!(job["attempts"][0]["exit_code"], 7);
    served.folder.fails(8, &["lease", "cancel", "latest/a"]);
}

#[test]
fn a_wait_ends_in_time_and_says_what_it_saw() {
    let served = Served::new();
    served.write("run.yaml", "jobs: { a: { steps: ['true'] } }");
    let said =
        served.folder.fails(5, &["-q", "lease", "submit", "run.yaml", "--wait", "--timeout", "1s"]);
    assert!(said.contains("last seen: 0 of 1 ended; QUEUED: a"), "{said}");
    assert!(said.contains("cowboyctl lease show run_"), "{said}");
    let said =
        served.folder.fails(5, &["lease", "logs", "latest/a", "--follow", "--timeout", "1s"]);
    assert!(said.contains("last seen: 0 bytes of attempt 1"), "{said}");
    let outcome = served.folder.run(&["lease", "logs", "latest/a"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (0, ""));
    assert!(outcome.stderr.contains("is QUEUED: it has no log yet"), "{outcome:?}");
}

#[test]
fn a_server_without_a_chain_takes_no_schedule() {
    let served = Served::new();
    served.write("run.yaml", "jobs: {a: {steps: ['true']}}\n");
    let add = ["lease", "schedule", "add", "run.yaml", "--actor"];
    let address = format!("0x{}", "12".repeat(20));
    let said = served.folder.fails(8, &[&add[..], &[&address]].concat());
    assert!(said.contains("timers of a chain") && said.contains("cowboyctl devnet up"), "{said}");
    let said = served.folder.fails(4, &[&add[..], &["0x12"]].concat());
    assert!(said.contains("no devnet is running"), "{said}");
    let said = served.folder.fails(3, &["lease", "schedule", "add", "none.yaml", "--actor", "0x"]);
    assert!(said.contains("none.yaml"), "{said}");
    assert_eq!(served.json(&["lease", "schedule", "ls"]), serde_json::json!([]));
    let said = served.folder.fails(3, &["lease", "schedule", "rm", "12"]);
    assert!(said.contains("no schedule `12`") && said.contains("lease schedule ls"), "{said}");
    shape::seen(&["lease schedule ls"]);
}

#[test]
fn tokens_are_told_once_and_are_for_their_owner() {
    let served = Served::new();
    let folder = &served.folder;
    let issued = served.json(&["lease", "token", "issue", "r1", "--file", "r1.token"]);
    assert_eq!(issued, serde_json::json!({ "runner_id": "r1", "file": "r1.token" }));
    let token = fs::read_to_string(folder.path("r1.token")).unwrap();
    assert!(token.starts_with("cowboy_runner_") && token.ends_with('\n'), "it is one");
    let mode = fs::metadata(folder.path("r1.token")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let printed = folder.prints(&["-q", "lease", "token", "issue", "r2"]);
    assert!(printed.starts_with("cowboy_runner_"), "it is one");
    assert_eq!(folder.prints(&["-q", "lease", "token", "ls"]), "r1\nr2\n");
    for secret in [token.trim(), printed.trim()] {
        assert!(!folder.prints(&["-o", "json", "lease", "token", "ls"]).contains(secret));
        assert!(!is_below(&folder.path("home"), secret), "the server keeps hashes");
    }
    assert_eq!(folder.prints(&["-q", "lease", "token", "revoke", "r2"]), "r2\n");
    served.json(&["lease", "token", "issue", "r3"]);
    served.json(&["lease", "token", "revoke", "r3"]);
    folder.fails(3, &["lease", "token", "revoke", "r2"]);
    folder.fails(2, &["lease", "token", "issue", "no spaces"]);
    let said = folder.fails(2, &["lease", "token", "issue", "r1", "--file", "no/such/folder/t"]);
    assert!(said.contains("--file no/such/folder/t"), "{said}");
    // A runner's token has no operator rights.
    let said = folder.fails(1, &["lease", "ls", "--token-file", "r1.token"]);
    assert!(said.contains("--token-file FILE"), "{said}");
    shape::seen(&["lease token issue", "lease token ls", "lease token revoke"]);
}

#[test]
fn a_name_is_one_runners_until_another_takes_it() {
    let served = Served::with(&["--heartbeat", "1s"]);
    let start = |dir: &str, more: &[&str]| {
        let args = [&["lease", "runner", "--name", "worker", "--dir", dir], more].concat();
        let mut command = served.folder.command(&args);
        Process::start(command.stdout(Stdio::null()).stderr(Stdio::piped()))
    };
    served.submit("  a: { steps: ['echo begun; sleep 600'] }\n");
    let mut first = start("one", &[]);
    let (_, follow, _) = served.until_logged("latest/a", "begun\n");
    drop(follow);
    let said = served.folder.fails(8, &["lease", "runner", "--name", "worker", "--dir", "two"]);
    assert!(said.contains("a runner of this name made a request") && said.contains("--replace"));
    let running = served.folder.prints(&["-q", "lease", "ls", "--state", "running"]);
    assert_eq!(running.lines().count(), 1, "the first goes on");

    let second = start("two", &["--replace", "--once"]);
    let mut said = String::new();
    first.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("another runner took the name worker"), "{said}");
    assert_eq!(first.ended(), 8);
    served.submit("  b: { steps: ['true'] }\n");
    assert_eq!(second.ended(), 0, "it has a good token after the first has left");
    assert_eq!(served.states("latest"), pairs(&[("b", "SUCCEEDED")]));
    served.folder.fails(3, &["lease", "token", "revoke", "worker"]);
}

#[test]
fn which_server_is_meant() {
    let folder = Folder::new();
    let said = folder.fails(4, &["lease", "ls"]);
    insta::assert_snapshot!(said, @r"
    error: there is no lease server: no devnet runs, no `lease serve` runs
      start one: cowboyctl lease serve; or name one: --server URL --token-file FILE
    ");
    folder.fails(4, &["lease", "ls", "--devnet", "none"]);
    let served = Served::in_folder(folder, &["--dir", "elsewhere"]);
    let folder = &served.folder;
    folder.fails(4, &["lease", "ls"]);
    // A server with another folder needs its token as well.
    let said = folder.fails(2, &["lease", "ls", "--server", &served.url]);
    assert!(said.contains("--token-file FILE"), "{said}");
    let named = ["lease", "ls", "--server", &served.url, "--token-file", "elsewhere/token"];
    folder.prints(&named);
    folder.fails(2, &["lease", "ls", "--server", "ftp://x", "--token-file", "elsewhere/token"]);
    fs::write(folder.path("empty"), "\n").unwrap();
    folder.fails(2, &["lease", "ls", "--server", &served.url, "--token-file", "empty"]);
    let url = served.url.clone();
    let Served { folder, process, .. } = served;
    assert_eq!(process.terminate(), 0);
    let said = folder.fails(4, &named);
    assert!(said.contains(&format!("nothing answers at {url}")), "{said}");
}

#[test]
fn a_server_comes_back_where_it_was_with_what_it_had() {
    let served = Served::new();
    let run = served.submit("  a: { steps: ['true'] }\n");
    let token = fs::read_to_string(served.folder.path("home/.lease/token")).unwrap();
    let second = served.folder.fails(8, &["lease", "serve"]);
    assert!(second.contains("in use by process") && second.contains("--dir FOLDER"), "{second}");
    let port = served.url.rsplit_once(':').unwrap().1.to_owned();
    let taken = served.folder.fails(8, &["lease", "serve", "--dir", "other", "--port", &port]);
    assert!(taken.contains(&format!("port {port} is taken")), "{taken}");
    let Served { folder, url, process } = served;
    drop(process);
    folder.fails(4, &["lease", "show", &run]);
    let served = Served::in_folder(folder, &[]);
    assert_eq!(served.url, url, "runners know it");
    assert_eq!(fs::read_to_string(served.folder.path("home/.lease/token")).unwrap(), token);
    assert_eq!(served.states(&run), pairs(&[("a", "QUEUED")]));
}

#[test]
fn a_server_that_cannot_be_is_refused() {
    let folder = Folder::new();
    let said = folder.fails(2, &["lease", "serve", "--ttl", "20s", "--heartbeat", "20s"]);
    assert!(said.contains("lease_ttl_seconds: 20 is not above"), "{said}");
    let said = folder.fails(2, &["lease", "serve", "--bind", "0.0.0.0"]);
    insta::assert_snapshot!(said, @r"
    error: --bind 0.0.0.0: tokens would travel in the open
      give it a certificate: --tls-cert FILE --tls-key FILE
    ");
    folder.fails(2, &["lease", "serve", "--ttl", "1.5s"]);
    folder.fails(2, &["lease", "serve", "--tls-cert", "cert.pem"]);
    fs::write(folder.path("no.pem"), "nothing").unwrap();
    let said = folder.fails(2, &["lease", "serve", "--tls-cert", "no.pem", "--tls-key", "no.pem"]);
    assert!(said.contains("TLS: the server's are not certificates in PEM"), "{said}");
}

#[test]
fn what_is_asked_for_and_is_not_there() {
    let served = Served::new();
    let folder = &served.folder;
    let said = folder.fails(3, &["lease", "show", "latest"]);
    assert!(said.contains("there is no run yet"), "{said}");
    served.submit("  a: { steps: ['true'] }\n  lint: { steps: ['true'] }\n");
    folder.fails(3, &["lease", "show", "zzzz"]);
    // No id has this prefix.
    let said = folder.fails(3, &["lease", "show", "lint"]);
    assert!(said.contains("/lint`?") && said.contains("did you mean `run_"), "{said}");
    folder.fails(3, &["lease", "show", "job_0000000000000000"]);
    folder.fails(3, &["lease", "logs", "job_0000000000000000"]);
    folder.fails(3, &["lease", "logs", "latest/a", "--attempt", "1"]);
    let said = folder.fails(3, &["lease", "logs", "latest/c"]);
    assert!(said.contains("has no job `c`") && said.contains("it has a, lint"), "{said}");
    folder.fails(3, &["lease", "artifacts", "latest/a", "report.xml"]);
    assert_eq!(served.json(&["lease", "artifacts", "latest/a"]), serde_json::json!([]));
}

#[test]
fn a_run_file_is_checked_before_any_server_is_asked() {
    // No server runs.
    let folder = Folder::new();
    let check = |text: &str, args: &[&str], code: i32, wanted: &str| {
        fs::write(folder.path("run.yaml"), text).unwrap();
        let said = folder.fails(code, &[&["lease", "submit", "run.yaml"], args].concat());
        assert!(said.contains(wanted), "{said}");
    };
    check("jobs:\n  a:\n    step: [x]\n", &[], 2, "run.yaml:3:5: jobs.a: unknown field `step`");
    check("jobs:\n  a:\n    step: [x]\n", &[], 2, "did you mean `steps`?");
    check("jobs: { a: { steps: [x], needs: [b] } }", &[], 2, "job `a`: it needs `b`");
    let secret = "jobs: { a: { steps: [x], env: { A: { secret_env: NO_SUCH } } } }";
    check(secret, &[], 2, "job `a`: A: NO_SUCH is not in the environment");
    check(secret, &["--env", "A=b"], 4, "there is no lease server");
    check("jobs: { a: { steps: [x] } }", &["--job", "b"], 3, "there is no job `b`: the file has a");
    check("jobs: { a: { steps: [x] } }", &["--env", "1=b"], 2, "env: `1`: expected a variable");
    folder.fails(3, &["lease", "submit", "no-such.yaml"]);
    let Outcome { stderr, .. } = folder.run(&["lease", "submit", "-"]);
    assert!(stderr.contains("standard input: missing field `jobs`"), "{stderr}");
}

#[test]
fn help_is_as_people_see_it() {
    let folder = Folder::new();
    let help = folder.prints(&["lease", "--help"]);
    insta::assert_snapshot!(help);
}
