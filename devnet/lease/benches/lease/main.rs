//! Throughput of a lease server over HTTP, with every message on disk before its answer.
//!
//! `cargo bench -p cowboy-lease --bench lease [bare] [heartbeats] [cycles] [grants] [queue]`
//!
//! * `bare`: appends of 4 KiB, each synced, and round trips of `GET /api/v1/health` on one warm
//!   connection: the baseline for the other results;
//! * `heartbeats`: heartbeats of 2,000 live leases, at their interval of 20 s, and from 64
//!   connections as fast as they are answered;
//! * `cycles`: lease, ack, heartbeat and completion of 1,000 jobs by 1, 16 and 64 runners;
//! * `grants`: the time from submitting a job until the waiting runner has its lease;
//! * `queue`: requests for work at the rate of 10,000 idle runners, and heartbeats of live leases,
//!   while 98,000 jobs are queued that none of these runners can do.
//!
//! Server and clients share a process. Files are in `$TMPDIR`.

#[path = "../../../benches/figures.rs"]
mod figures;

use cowboy_host::http::bind;
use cowboy_lease::server::{Options, Running, Server};
use figures::times;
use futures::future::join_all;
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use std::{
    fs::OpenOptions,
    io::{self, Write as _},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tokio::{runtime::Runtime, sync::oneshot, time::interval};

const OPERATOR: &str = "operator";
const PAGE: usize = 4 << 10;
const LEASES: usize = 2_000;
/// Heartbeat interval of each lease, as the server requests it.
const INTERVAL: Duration = Duration::from_secs(20);
/// Number of heartbeats at that rate.
const PACED: usize = 1_000;
const CONNECTIONS: usize = 64;
/// Number of heartbeats at full speed.
const FAST: usize = 10_000;
const JOBS: usize = 1_000;
const RUNNERS: [usize; 3] = [1, 16, 64];
const GRANTS: usize = 300;
/// Queued jobs that no runner can do, and the live leases at that time.
const STUCK: usize = 98_000;
const LIVE: usize = 200;
/// Heartbeats measured at that time, and the pause between two.
const BEATS: usize = 1_000;
const PAUSE: Duration = Duration::from_millis(10);
/// Pause between a connection's requests: together as many as from 10,000 runners that wait 30 s
/// each.
const ASKS: Duration = Duration::from_millis(30_000 * CONNECTIONS as u64 / 10_000);
const BARE: usize = 1_000;

fn main() -> io::Result<()> {
    let chosen: Vec<String> =
        std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let wanted = |name: &str| chosen.is_empty() || chosen.iter().any(|chosen| chosen == name);
    let runtime = Runtime::new()?;
    if wanted("bare") {
        times("append of 4 KiB, synced", &mut appends()?)?;
        times("idle round trip", &mut runtime.block_on(round_trips()))?;
    }
    if wanted("heartbeats") {
        let (mut paced, mut fast, took) = runtime.block_on(heartbeats());
        times(&format!("heartbeats of {LEASES} leases"), &mut paced)?;
        times(&format!("heartbeats, {CONNECTIONS} connections"), &mut fast)?;
        rate("heartbeats", FAST, took)?;
    }
    if wanted("cycles") {
        for runners in RUNNERS {
            let took = runtime.block_on(cycles(runners));
            rate(&format!("cycles of {runners} runners"), JOBS, took)?;
        }
    }
    if wanted("queue") {
        let (mut asked, mut beats) = runtime.block_on(queue());
        times(&format!("requests, {STUCK} jobs queued"), &mut asked)?;
        times(&format!("heartbeats, {STUCK} jobs queued"), &mut beats)?;
    }
    if wanted("grants") {
        times("handed in to granted", &mut runtime.block_on(grants()))?;
    }
    Ok(())
}

fn rate(name: &str, count: usize, took: Duration) -> io::Result<()> {
    let rate = count as f64 / took.as_secs_f64();
    writeln!(io::stdout(), "{name:<31} {count:>5} in {took:.2?}: {rate:.0}/s")
}

fn appends() -> io::Result<Vec<Duration>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("file");
    let mut file = OpenOptions::new().append(true).create_new(true).open(path)?;
    let page = vec![7; PAGE];
    (0..BARE)
        .map(|_| {
            let begun = Instant::now();
            file.write_all(&page)?;
            file.sync_data()?;
            Ok(begun.elapsed())
        })
        .collect()
}

/// A server and its clients.
struct Lab {
    _folder: TempDir,
    running: Running,
    http: Client,
}

impl Lab {
    async fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let listener = bind(None).await.expect("a port");
        let options = Options::new(folder.path().to_owned(), listener, OPERATOR.to_owned());
        let running = Server::start(options).await.expect("a server");
        let http = Client::builder().no_proxy().tcp_nodelay(true).build().expect("a client");
        Self { _folder: folder, running, http }
    }

    async fn post(&self, path: &str, token: &str, body: &Value) -> Value {
        let url = format!("{}/api/v1/{path}", self.running.url());
        let response = self.http.post(url).bearer_auth(token).json(body).send().await;
        let response = response.expect("an answer");
        assert!(response.status().is_success(), "{path}: {}", response.status());
        if response.status() == StatusCode::NO_CONTENT {
            return Value::Null;
        }
        response.json().await.expect("JSON")
    }

    async fn token(&self, runner: &str) -> String {
        let made = self.post("tokens", OPERATOR, &json!({"runner_id": runner})).await;
        made["token"].as_str().expect("a token").to_owned()
    }

    async fn submit(&self, jobs: usize) {
        self.submit_for(jobs, &[]).await;
    }

    /// Submits jobs that require these abilities of a runner.
    async fn submit_for(&self, jobs: usize, requires: &[&str]) {
        let job = |n| {
            let (name, steps) = (format!("job-{n}"), ["make test"]);
            json!({"name": name, "steps": steps, "requires": requires})
        };
        let jobs: Vec<_> = (0..jobs).map(job).collect();
        self.post("runs", OPERATOR, &json!({"jobs": jobs})).await;
    }

    /// Leases the next job and acks it; `None` when there is no job.
    async fn lease(&self, runner: &str, token: &str) -> Option<String> {
        let granted = self.post("internal/lease", token, &json!({"runner_id": runner})).await;
        let lease_id = granted["lease_id"].as_str()?.to_owned();
        let job_id = &granted["job_id"];
        let ack = json!({"runner_id": runner, "lease_id": lease_id, "job_id": job_id});
        self.post("internal/ack-lease", token, &ack).await;
        Some(lease_id)
    }

    async fn heartbeat(&self, runner: &str, token: &str, lease_id: &str) -> Duration {
        let message = json!({
            "runner_id": runner, "lease_id": lease_id,
            "progress": {"percent": 40, "step_index": 0, "current_step": "make test"},
            "log_cursor": {"bytes_sent": 4_096},
        });
        let begun = Instant::now();
        self.post("internal/heartbeat", token, &message).await;
        begun.elapsed()
    }
}

async fn round_trips() -> Vec<Duration> {
    let lab = Lab::new().await;
    let url = format!("{}/api/v1/health", lab.running.url());
    let mut times = Vec::new();
    for _ in 0..BARE {
        let begun = Instant::now();
        let response = lab.http.get(&url).send().await;
        response.expect("an answer").bytes().await.expect("a body");
        times.push(begun.elapsed());
    }
    times
}

async fn heartbeats() -> (Vec<Duration>, Vec<Duration>, Duration) {
    let lab = Arc::new(Lab::new().await);
    let token: Arc<str> = lab.token("r").await.into();
    for _ in 0..LEASES / JOBS {
        lab.submit(JOBS).await;
    }
    let leased = join_all((0..CONNECTIONS).map(async |_| {
        let mut leases = Vec::new();
        while let Some(lease_id) = lab.lease("r", &token).await {
            leases.push(lease_id);
        }
        leases
    }));
    let leases: Arc<[String]> = leased.await.concat().into();
    assert_eq!(leases.len(), LEASES);

    let mut tick = interval(INTERVAL / u32::try_from(LEASES).expect("a few thousand"));
    let mut beats = Vec::new();
    for n in 0..PACED {
        tick.tick().await;
        let (lab, token, leases) = (lab.clone(), token.clone(), leases.clone());
        beats.push(tokio::spawn(
            async move { lab.heartbeat("r", &token, &leases[n % LEASES]).await },
        ));
    }
    let paced = join_all(beats).await.into_iter().map(|beat| beat.expect("no panic")).collect();

    let next = Arc::new(AtomicUsize::new(0));
    let begun = Instant::now();
    let clients = (0..CONNECTIONS).map(|_| {
        let (lab, token, leases, next) = (lab.clone(), token.clone(), leases.clone(), next.clone());
        tokio::spawn(async move {
            let mut times = Vec::new();
            loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                if n >= FAST {
                    return times;
                }
                times.push(lab.heartbeat("r", &token, &leases[n % LEASES]).await);
            }
        })
    });
    let fast = join_all(clients).await.into_iter().flat_map(|times| times.expect("no panic"));
    (paced, fast.collect(), begun.elapsed())
}

/// The time that this number of runners takes for all jobs.
async fn cycles(runners: usize) -> Duration {
    let lab = Arc::new(Lab::new().await);
    lab.submit(JOBS).await;
    let mut tokens = Vec::new();
    for n in 0..runners {
        let runner = format!("r{n}");
        tokens.push((lab.token(&runner).await, runner));
    }
    let begun = Instant::now();
    let clients = tokens.into_iter().map(|(token, runner)| {
        let lab = lab.clone();
        tokio::spawn(async move {
            while let Some(lease_id) = lab.lease(&runner, &token).await {
                lab.heartbeat(&runner, &token, &lease_id).await;
                let done = json!({
                    "runner_id": runner, "lease_id": lease_id, "status": "SUCCEEDED",
                    "exit_code": 0, "summary": "done",
                });
                lab.post("internal/complete", &token, &done).await;
            }
        })
    });
    for client in join_all(clients).await {
        client.expect("no panic");
    }
    begun.elapsed()
}

async fn queue() -> (Vec<Duration>, Vec<Duration>) {
    let lab = Arc::new(Lab::new().await);
    let token: Arc<str> = lab.token("r").await.into();
    lab.submit(LIVE).await;
    let mut leases = Vec::new();
    while let Some(lease_id) = lab.lease("r", &token).await {
        leases.push(lease_id);
    }
    for _ in 0..STUCK / JOBS {
        lab.submit_for(JOBS, &["gpu"]).await;
    }
    let mut runners = Vec::new();
    for n in 0..CONNECTIONS {
        let runner = format!("idle-{n}");
        runners.push((lab.token(&runner).await, runner));
    }
    let over = Arc::new(AtomicBool::new(false));
    let asking = runners.into_iter().map(|(token, runner)| {
        let (lab, over) = (lab.clone(), over.clone());
        tokio::spawn(async move {
            let (mut times, mut tick) = (Vec::new(), interval(ASKS));
            while !over.load(Ordering::Relaxed) {
                tick.tick().await;
                let begun = Instant::now();
                assert!(lab.lease(&runner, &token).await.is_none(), "it cannot do any");
                times.push(begun.elapsed());
            }
            times
        })
    });
    let asking: Vec<_> = asking.collect();
    let (mut tick, mut beats) = (interval(PAUSE), Vec::new());
    for n in 0..BEATS {
        tick.tick().await;
        beats.push(lab.heartbeat("r", &token, &leases[n % LIVE]).await);
    }
    over.store(true, Ordering::Relaxed);
    let asked = join_all(asking).await.into_iter().flat_map(|times| times.expect("no panic"));
    (asked.collect(), beats)
}

async fn grants() -> Vec<Duration> {
    let lab = Arc::new(Lab::new().await);
    let token = lab.token("r").await;
    let (waits, url) = (
        json!({"runner_id": "r", "wait_seconds": 30}),
        format!("{}/api/v1/status", lab.running.url()),
    );
    let mut times = Vec::new();
    for _ in 0..GRANTS {
        let (granted, answer) = oneshot::channel();
        tokio::spawn({
            let (lab, token, waits) = (lab.clone(), token.clone(), waits.clone());
            async move {
                let lease = lab.post("internal/lease", &token, &waits).await;
                assert!(lease["lease_id"].is_string(), "granted");
                // An error means that the bench is over.
                let _ = granted.send(Instant::now());
            }
        });
        loop {
            let status = lab.http.get(&url).bearer_auth(OPERATOR).send().await.expect("an answer");
            let status: Value = status.json().await.expect("JSON");
            if status["waiting_runners"] == 1 {
                break;
            }
        }
        let begun = Instant::now();
        lab.submit(1).await;
        times.push(answer.await.expect("a lease") - begun);
    }
    times
}
