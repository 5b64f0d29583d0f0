//! A test server and requests to it.

use crate::{
    clock::{Clock, Hands},
    files::FileLimits,
    machine::Config,
    messages::LEASE_HEADER,
    schedules::Schedules,
    server::{Options, Running, Server},
};
use cowboy_host::http::bind;
use reqwest::{Method, RequestBuilder, header::HeaderMap};
use serde_json::{Value, json};
use std::{path::PathBuf, time::Duration};
use tempfile::TempDir;
use tokio::time::timeout;

pub const OPERATOR: &str = "c0ffee-operator-c0ffee";
/// Longer than anything here takes.
pub const LONG: Duration = Duration::from_secs(30);
/// The start of a lab's clock, in seconds.
const START: u64 = 1_000;

/// The parts of an answer that tests check.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
    pub body: Value,
}

impl Answer {
    /// The error code of a refusal.
    pub fn code(&self) -> &str {
        self.body["error"]["code"].as_str().unwrap_or_default()
    }

    /// The field of a refusal.
    pub fn field(&self) -> &str {
        self.body["error"]["field"].as_str().unwrap_or_default()
    }
}

/// A server with its own folder.
pub struct Lab {
    pub folder: TempDir,
    pub keep_runs: usize,
    pub limits: FileLimits,
    clock: Clock,
    hands: Hands,
    running: Option<Running>,
    http: reqwest::Client,
}

impl Lab {
    pub async fn new() -> Self {
        Self::keeping(100).await
    }

    pub async fn keeping(keep_runs: usize) -> Self {
        let limits = FileLimits { log: 64, artifact: 64, artifacts: 100, ..FileLimits::default() };
        let (clock, hands) = Clock::manual(START * 1_000);
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut lab = Self { folder, keep_runs, limits, clock, hands, running: None, http };
        lab.restart().await;
        lab
    }

    /// Starts the server again after it was stopped or killed.
    pub async fn restart(&mut self) {
        let running = Server::start(Options {
            folder: self.folder.path().to_owned(),
            listener: bind(None).await.unwrap(),
            operator_token: OPERATOR.to_owned(),
            config: Config::default(),
            keep_runs: self.keep_runs,
            files: self.limits,
            clock: self.clock.clone(),
            tls: None,
        });
        self.running = Some(running.await.unwrap());
    }

    pub async fn kill(&mut self) {
        self.running.take().unwrap().abort().await;
    }

    /// Stops the server. Returns whether it stopped in time.
    pub async fn stop(&mut self) -> bool {
        self.running.take().unwrap().stop(LONG).await
    }

    /// The reporter of a chain, which the server has from then on.
    pub fn schedules(&self) -> Schedules {
        self.running.as_ref().unwrap().schedules()
    }

    pub fn advance(&self, seconds: u64) {
        self.hands.advance(Duration::from_secs(seconds));
    }

    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.running.as_ref().unwrap().url())
    }

    pub fn request(&self, method: &str, path: &str) -> RequestBuilder {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        self.http.request(method, self.url(path)).timeout(LONG)
    }

    pub async fn send(&self, request: RequestBuilder) -> Answer {
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text().await.unwrap();
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        Answer { status, headers, text, body }
    }

    /// A request below `/api/v1/` with the operator's token.
    pub async fn operator(&self, method: &str, path: &str, body: Option<Value>) -> Answer {
        let request = self.request(method, &format!("/api/v1/{path}")).bearer_auth(OPERATOR);
        self.send(body.into_iter().fold(request, |request, body| request.json(&body))).await
    }

    /// A runner's message.
    pub async fn message(&self, token: &str, path: &str, body: Value) -> Answer {
        let request = self.request("POST", &format!("/api/v1/internal/{path}"));
        self.send(request.bearer_auth(token).json(&body)).await
    }

    /// An upload below `/api/v1/`.
    pub async fn put(&self, path: &str, token: &str, lease_id: &str, body: &str) -> Answer {
        let request = self.request("PUT", &format!("/api/v1/{path}")).bearer_auth(token);
        self.send(request.header(LEASE_HEADER, lease_id).body(body.to_owned())).await
    }

    /// Issues a runner's token.
    pub async fn token(&self, runner: &str) -> String {
        let made = self.operator("POST", "tokens", Some(json!({"runner_id": runner}))).await;
        assert_eq!(made.status, 201);
        made.body["token"].as_str().unwrap().to_owned()
    }

    /// Submits a run. Returns the ids of its jobs.
    pub async fn submit(&self, jobs: Value) -> Vec<String> {
        let run = self.operator("POST", "runs", Some(json!({"jobs": jobs}))).await;
        assert_eq!(run.status, 201, "{}", run.text);
        let jobs = run.body["jobs"].as_array().unwrap().iter();
        jobs.map(|job| job["job"].as_str().unwrap().to_owned()).collect()
    }

    /// Asks for work without waiting.
    pub async fn lease(&self, token: &str, runner: &str) -> Option<Value> {
        let answer = self.message(token, "lease", json!({"runner_id": runner})).await;
        assert!(matches!(answer.status, 200 | 204), "{}", answer.text);
        (answer.status == 200).then_some(answer.body)
    }

    pub async fn ack(&self, token: &str, runner: &str, granted: &Value) -> Answer {
        let message = json!({
            "type": "AckLease", "job_id": granted["job_id"], "lease_id": granted["lease_id"],
            "runner_id": runner, "accepted_at": "2026-01-04T08:00:00Z",
        });
        self.message(token, "ack-lease", message).await
    }

    pub async fn beat(&self, token: &str, runner: &str, granted: &Value) -> Answer {
        let message = json!({
            "type": "Heartbeat", "lease_id": granted["lease_id"], "runner_id": runner,
            "progress": {"percent": 40, "step_index": 0, "message": "on it"},
            "log_cursor": {"bytes_sent": 0}, "ts": "2026-01-04T08:00:00+01:00",
        });
        self.message(token, "heartbeat", message).await
    }

    /// Waits until this many runners wait for work.
    pub async fn until_waiting(&self, runners: u64) {
        let waiting = async {
            while self.operator("GET", "status", None).await.body["waiting_runners"] != runners {
                tokio::task::yield_now().await;
            }
        };
        timeout(LONG, waiting).await.expect("they wait");
    }

    /// Waits until the file or folder is gone.
    pub async fn until_gone(&self, path: &str) {
        let path = self.folder.path().join(path);
        let gone = async {
            while path.exists() {
                self.operator("GET", "status", None).await;
            }
        };
        timeout(LONG, gone).await.expect("it goes");
    }

    /// Every file of the server with its bytes.
    pub fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let (mut files, mut folders) = (Vec::new(), vec![self.folder.path().to_owned()]);
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let bytes = std::fs::read(&path).unwrap();
                    files.push((path, bytes));
                }
            }
        }
        files
    }
}

/// A job with one step.
pub fn one(name: &str) -> Value {
    json!({"name": name, "steps": ["true"]})
}

pub fn report(granted: &Value, runner: &str, status: &str) -> Value {
    json!({
        "type": "Complete", "lease_id": granted["lease_id"], "runner_id": runner,
        "status": status, "exit_code": 0,
        "timings": {"started_at": "2026-01-04T08:00:05Z", "finished_at": "2026-01-04T08:03:12Z"},
        "artifacts": [{"type": "log", "uri": "s3://somewhere/log.txt"}],
        "summary": "done",
    })
}
