//! The runner against its own test server, which misbehaves where a test says so; and, in `real`,
//! against a lease server.

mod containers;
mod fake;
mod files;
mod lease;
mod real;
mod steps;

use super::*;
use crate::client::Tls;
use fake::{Fake, Fault, LIMIT};
use serde_json::{Value, json};
use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
};
use tempfile::TempDir;
use tokio::{task::JoinHandle, time::timeout};

/// A lease id like the server's, different for each job.
fn lease_id(number: u32) -> String {
    format!("lease_{number:064x}")
}

/// A grant of a job with these fields in addition to those that every job has.
fn grant(number: u32, spec: Value) -> Value {
    let mut job = json!({ "name": format!("job-{number}"), "workdir": ".", "steps": [] });
    for (name, value) in spec.as_object().unwrap() {
        job[name] = value.clone();
    }
    json!({
        "type": "LeaseGranted",
        "job_id": format!("job_{number}"),
        "run_id": "run_1",
        "lease_id": lease_id(number),
        "attempt": 1,
        "lease_ttl_seconds": 30,
        "heartbeat_interval_seconds": 1,
        "max_runtime_seconds": 600,
        "grace_seconds": 15,
        "job_spec": job,
    })
}

/// A runner with its own test server.
struct Bench {
    fake: Fake,
    home: TempDir,
    engine: Option<Engine>,
    notices: Arc<Mutex<Vec<Notice>>>,
}

/// A started runner.
struct Running {
    stopper: Stopper,
    task: JoinHandle<Result<(), RunnerError>>,
}

impl Bench {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        Self { fake: Fake::start(), home, engine: None, notices: Arc::default() }
    }

    fn jobs_path(&self) -> PathBuf {
        folder::RunnerFolder::of(self.home.path(), "tested").jobs_path()
    }

    /// Starts a runner that ends after `jobs` jobs.
    fn start(&self, jobs: u64) -> Running {
        let config = RunnerConfig {
            name: "tested".to_owned(),
            capabilities: capabilities(),
            max_jobs: Some(jobs),
            engine: self.engine.clone(),
            lock: folder::RunnerFolder::of(self.home.path(), "tested").lock().unwrap(),
        };
        let client = Client::new(&self.fake.url(), "a token", &Tls::default()).unwrap();
        let (stopper, stop) = Stop::new();
        let notices = Arc::clone(&self.notices);
        let tell = move |notice| notices.lock().unwrap().push(notice);
        let work = async move { Runner::new(config, client).await?.run(stop, tell).await };
        Running { stopper, task: tokio::spawn(work) }
    }

    /// Runs these jobs one after the other.
    async fn run(&self, grants: impl IntoIterator<Item = Value>) -> Vec<Outcome> {
        let jobs = self.fake.change(|world| {
            world.queue.extend(grants);
            world.queue.len() as u64
        });
        self.start(jobs).end().await.unwrap();
        self.outcomes()
    }

    /// The outcomes of the jobs so far. Checks that nothing of the jobs is left.
    fn outcomes(&self) -> Vec<Outcome> {
        assert_eq!(std::fs::read_dir(self.jobs_path()).unwrap().count(), 0);
        let notices = self.notices.lock().unwrap();
        let ended = notices.iter().filter_map(|notice| match notice {
            Notice::Ended { outcome, .. } => Some(outcome.clone()),
            _ => None,
        });
        ended.collect()
    }

    /// The only message of this kind.
    fn message(&self, kind: &str) -> Value {
        let world = self.fake.world.borrow();
        let of = world.of(kind);
        assert_eq!(of.len(), 1, "{kind}: {of:?}");
        of[0].clone()
    }

    fn log(&self) -> String {
        self.fake.world.borrow().log()
    }
}

impl Running {
    async fn end(self) -> Result<(), RunnerError> {
        timeout(LIMIT, self.task).await.expect("the runner ends").unwrap()
    }
}

/// Whether a process has this text in its environment or its command line.
fn is_anywhere(text: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let texts = processes.flat_map(|process| {
        ["environ", "cmdline"].map(|file| std::fs::read(process.path().join(file)))
    });
    texts.flatten().any(|bytes| String::from_utf8_lossy(&bytes).contains(text))
}

#[tokio::test]
async fn what_is_no_runner_is_refused_before_it_asks() {
    let bench = Bench::new();
    let check = async |name: &str, capabilities: &[&str], expected: &str| {
        let config = RunnerConfig {
            name: name.to_owned(),
            capabilities: capabilities.iter().map(|&text| text.to_owned()).collect(),
            max_jobs: None,
            engine: None,
            lock: folder::RunnerFolder::of(bench.home.path(), "tested").lock().unwrap(),
        };
        let client = Client::new(&bench.fake.url(), "a token", &Tls::default()).unwrap();
        let error = Runner::new(config, client).await.map(drop).unwrap_err().to_string();
        assert_eq!(error, expected);
    };
    let expected = "expected letters, digits and . _ : -, at most 128";
    check("", &[], &format!("name ``: {expected}")).await;
    check("a b", &[], &format!("name `a b`: {expected}")).await;
    check("a", &["linux", "ä"], &format!("capability `ä`: {expected}")).await;
    let reason = "this runner has no container engine";
    check("a", &["container"], &format!("capability `container`: {reason}")).await;
    check("a", &["x"; 33], "capability `x`: at most 32 are allowed").await;
}

#[tokio::test]
async fn a_runner_without_a_good_token_ends() {
    let bench = Bench::new();
    let code = crate::messages::ErrorCode::Unauthorized;
    let fault = Fault::Code(reqwest::StatusCode::UNAUTHORIZED, code);
    bench.fake.change(|world| world.faults.push(("lease", fault)));
    let error = bench.start(1).end().await.unwrap_err();
    assert!(matches!(error, RunnerError::Refused { .. }), "{error}");
    assert!(!error.to_string().contains("a token"), "{error}");
}

#[tokio::test]
async fn a_runner_that_drains_while_it_waits_ends_at_once() {
    let bench = Bench::new();
    let running = bench.start(1);
    bench.fake.until("a request for work", |world| !world.of("lease").is_empty()).await;
    running.stopper.drain();
    running.end().await.unwrap();
    let request = bench.message("lease");
    let expected = json!({
        "type": "Lease",
        "runner_id": "tested",
        "capabilities": [consts::OS, consts::ARCH],
        "wait_seconds": 30,
    });
    assert_eq!(request, expected);
}
