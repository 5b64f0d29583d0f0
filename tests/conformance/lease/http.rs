//! A real server over HTTP, on a clock that the test moves.

use super::{Answer, Grant, Message, Names, Op, Seen, World, machine::configured};
use cowboy_lease::{
    self,
    clock::{Clock, Hands},
    machine::Config,
    server::{Options, Running},
};
use futures::future::join_all;
use jiff::Timestamp;
use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::{Map, Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    time::Duration,
};
use tempfile::TempDir;
use tokio::{net::TcpListener, runtime::Runtime};

/// The operator's token.
const OPERATOR: &str = "operator";
/// When the clock begins, in milliseconds since the Unix epoch.
const BEGIN: u64 = 1_767_513_600_000;

pub struct Server {
    folder: TempDir,
    config: Config,
    clock: Clock,
    hands: Hands,
    client: Client,
    running: Option<Running>,
    url: String,
    tokens: BTreeMap<String, String>,
    /// The last field, so that its tasks are dropped before it.
    runtime: Runtime,
}

impl Server {
    pub fn new(config: &Map<String, Value>) -> Result<Self, String> {
        let config = configured(Config::default(), config).ok_or("no configuration")?;
        let (clock, hands) = Clock::manual(BEGIN);
        let client = Client::builder().no_proxy().timeout(Duration::from_secs(20)).build();
        let mut server = Self {
            folder: tempfile::tempdir().map_err(|error| error.to_string())?,
            config,
            clock,
            hands,
            client: client.map_err(|error| error.to_string())?,
            running: None,
            url: String::new(),
            tokens: BTreeMap::new(),
            runtime: Runtime::new().map_err(|error| error.to_string())?,
        };
        server.start();
        Ok(server)
    }

    fn start(&mut self) {
        self.runtime.block_on(async {
            let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
            let folder = self.folder.path().to_owned();
            let options = Options {
                config: self.config,
                clock: self.clock.clone(),
                ..Options::new(folder, listener, OPERATOR.to_owned())
            };
            let running = cowboy_lease::server::Server::start(options).await.expect("a server");
            self.url = running.url().to_owned();
            self.running = Some(running);
        });
    }

    /// Aborts the server, as a kill does.
    fn kill(&mut self) {
        if let Some(running) = self.running.take() {
            self.runtime.block_on(running.abort());
        }
    }

    fn request(&self, method: Method, path: &str, token: &str) -> RequestBuilder {
        self.client.request(method, format!("{}/api/v1/{path}", self.url)).bearer_auth(token)
    }

    /// Sends a request as the operator; returns the status and the JSON of the answer.
    fn ask(&self, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
        self.runtime.block_on(async {
            let request = self.request(method, path, OPERATOR);
            let request = body.iter().fold(request, |request, body| request.json(body));
            let response = request.send().await.expect("an answer");
            let status = response.status().as_u16();
            (status, response.json().await.unwrap_or_default())
        })
    }

    /// A runner's token, issued at its first use.
    fn token(&mut self, runner: &str) -> String {
        if let Some(token) = self.tokens.get(runner) {
            return token.clone();
        }
        let (status, made) = self.ask(Method::POST, "tokens", Some(json!({"runner_id": runner})));
        assert_eq!(status, 201, "{made}");
        let token = made["token"].as_str().expect("a token").to_owned();
        self.tokens.insert(runner.to_owned(), token.clone());
        token
    }

    /// Sends all requests at the same time, and returns their answers.
    fn post(&self, requests: Vec<RequestBuilder>) -> Vec<(u16, Value)> {
        let answers = requests.into_iter().map(|request| async {
            let response = request.send().await.expect("an answer");
            (response.status().as_u16(), response.json::<Value>().await.unwrap_or_default())
        });
        self.runtime.block_on(join_all(answers))
    }

    /// A client's timestamp: the clock's time plus `skew` seconds.
    fn time(&self, skew: i64) -> String {
        let now = i64::try_from(self.clock.now()).expect("a time");
        Timestamp::from_millisecond(now + skew * 1_000).expect("a time").to_string()
    }
}

/// The cases' name for an answer.
fn verdict(status: u16, body: &Value) -> &'static str {
    match status {
        200 | 201 if body["type"] == "LeaseGranted" => "granted",
        200 | 201 => "ok",
        204 => "none",
        409 if body["type"] == "StaleLease" => "stale",
        403 | 409 => "refused",
        400 => "invalid",
        401 => "unauthorized",
        404 => "not_found",
        other => panic!("status {other}: {body}"),
    }
}

fn answer((status, body): (u16, Value)) -> Answer {
    Answer::new(verdict(status, &body), body)
}

impl World for Server {
    fn enqueue(&mut self, name: &str, op: &Op) -> Answer {
        let steps = op.steps.clone().unwrap_or_else(|| vec!["true".to_owned()]);
        let mut job = json!({"name": name, "steps": steps});
        if let Some(seconds) = op.max_runtime_seconds {
            job["max_runtime_seconds"] = json!(seconds);
        }
        let (status, run) = self.ask(Method::POST, "runs", Some(json!({"jobs": [job]})));
        Answer::new(verdict(status, &run), json!({"job": run["jobs"][0]["job"]}))
    }

    fn configure(&mut self, fields: &Map<String, Value>) -> Answer {
        match configured(self.config, fields) {
            Some(config) => {
                self.config = config;
                self.kill();
                self.start();
                Answer::new("ok", Value::Null)
            }
            None => Answer::new("invalid", Value::Null),
        }
    }

    fn lease(&mut self, runners: &[&str]) -> Vec<(Answer, Option<Grant>)> {
        let requests = runners.iter().map(|runner| {
            let token = self.token(runner);
            let body = json!({"type": "Lease", "runner_id": runner});
            self.request(Method::POST, "internal/lease", &token).json(&body)
        });
        let requests = requests.collect();
        let answers = self.post(requests).into_iter().map(|(status, body)| {
            let verdict = verdict(status, &body);
            let text = |field: &str| body[field].as_str().expect("a text").to_owned();
            let grant = (verdict == "granted").then(|| Grant {
                lease: text("lease_id"),
                job: text("job_id"),
                attempt: body["attempt"].as_u64().expect("a number") as usize,
            });
            let mut answer = Answer::new(verdict, body.clone());
            answer.fields.insert("job".to_owned(), body["job_id"].clone());
            (answer, grant)
        });
        answers.collect()
    }

    fn send(&mut self, messages: &[Message<'_>]) -> Vec<Answer> {
        let requests = messages.iter().map(|message| {
            let Message { op, lease, job, skew } = message;
            let (time, runner) = (self.time(*skew), &op.runner);
            let (path, body) = match op.op.as_str() {
                "ack" => (
                    "ack-lease",
                    json!({"type": "AckLease", "job_id": job, "lease_id": lease,
                        "runner_id": runner, "accepted_at": time}),
                ),
                "heartbeat" => (
                    "heartbeat",
                    json!({"type": "Heartbeat", "lease_id": lease, "runner_id": runner,
                        "progress": op.progress, "log_cursor": {"bytes_sent": 0}, "ts": time}),
                ),
                "complete" => (
                    "complete",
                    json!({"type": "Complete", "lease_id": lease, "runner_id": runner,
                        "status": op.status, "exit_code": op.exit_code,
                        "timings": {"started_at": time, "finished_at": time},
                        "artifacts": op.artifacts.clone().unwrap_or_else(|| json!([])),
                        "summary": op.summary}),
                ),
                _ => (
                    "cancel-ack",
                    json!({"type": "CancelAck", "lease_id": lease, "runner_id": runner,
                        "final_status": op.final_status.as_deref().unwrap_or("CANCELED"),
                        "ts": time}),
                ),
            };
            let token = self.token(runner);
            self.request(Method::POST, &format!("internal/{path}"), &token).json(&body)
        });
        let requests = requests.collect();
        self.post(requests).into_iter().map(answer).collect()
    }

    fn cancel(&mut self, job: &str) -> Answer {
        answer(self.ask(Method::POST, &format!("jobs/{job}/cancel"), None))
    }

    fn advance(&mut self, seconds: u64) {
        self.hands.advance(Duration::from_secs(seconds));
    }

    fn restart(&mut self, down: u64) {
        self.kill();
        self.advance(down);
        self.start();
    }

    fn raw(&mut self, op: &Op, names: &Names) -> Result<(), String> {
        let body = match &op.body {
            Value::String(text) => written(text, names),
            body => known(body.clone(), names, &self.time(0)).to_string(),
        };
        let parsed: Value = serde_json::from_str(&body).unwrap_or_default();
        let runner = parsed["runner_id"].as_str().unwrap_or("r1").to_owned();
        let bearer = format!("Bearer {}", self.token(&runner));
        let method: Method = op.method.parse().map_err(|_| format!("method {}", op.method))?;
        let url = format!("{}/api/v1/internal/{}", self.url, op.path);
        let mut request = self.client.request(method, url).body(body);
        if !op.headers.contains_key("Authorization") {
            request = request.header("Authorization", bearer);
        }
        for (name, value) in &op.headers {
            request = request.header(name, value);
        }
        let (status, text) = self.runtime.block_on(async {
            let response: Response = request.send().await.map_err(|error| error.to_string())?;
            let status = response.status().as_u16();
            Ok::<_, String>((status, response.text().await.unwrap_or_default()))
        })?;
        crate::equal("status", status, op.http).map_err(|why| format!("{why}: {text}"))?;
        if let Some(expected) = &op.expect_body {
            let got: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
            for (field, expected) in expected.as_object().into_iter().flatten() {
                crate::equal(field, &got[field], expected)?;
            }
        }
        match op.expect_body_excludes.iter().find(|part| text.contains(*part)) {
            Some(part) => Err(format!("the answer has {part:?}: {text}")),
            None => Ok(()),
        }
    }

    fn mentions(&mut self, leases: &BTreeSet<String>) -> bool {
        let mut shown = String::new();
        let mut paths: Vec<String> = ["status", "runs", "jobs", "tokens"].map(str::to_owned).into();
        let (_, jobs) = self.ask(Method::GET, "jobs", None);
        for job in jobs.as_array().expect("a list") {
            let (job, run) = (job["job"].as_str(), job["run"].as_str());
            let (job, run) = (job.expect("an id"), run.expect("an id"));
            paths.push(format!("runs/{run}"));
            for view in ["", "/log", "/artifacts"] {
                paths.push(format!("jobs/{job}{view}"));
            }
        }
        for path in paths {
            shown += &self.runtime.block_on(async {
                let response = self.request(Method::GET, &path, OPERATOR).send().await;
                response.expect("an answer").text().await.expect("a text")
            });
        }
        leases.iter().any(|lease| shown.contains(lease) || written_down(self.folder.path(), lease))
    }

    fn see(&mut self, job: &str) -> Seen {
        let (status, job) = self.ask(Method::GET, &format!("jobs/{job}"), None);
        assert_eq!(status, 200, "{job}");
        let number = |field: &str| job[field].as_u64().expect("a number") as u32;
        let attempts = job["attempts"].as_array().expect("a list");
        let state = |attempt: &Value| attempt["lease_state"].as_str().expect("a state").to_owned();
        Seen {
            state: job["state"].as_str().expect("a state").to_owned(),
            attempt: number("attempt"),
            finalized: number("finalized"),
            leases: attempts.iter().map(state).collect(),
        }
    }

    fn queue(&mut self) -> Vec<String> {
        let (_, jobs) = self.ask(Method::GET, "jobs?state=QUEUED", None);
        let jobs = jobs.as_array().expect("a list").iter().filter_map(|job| {
            let id = job["job"].as_str().expect("an id");
            let (_, job) = self.ask(Method::GET, &format!("jobs/{id}"), None);
            Some((job["queue_position"].as_u64()?, id.to_owned()))
        });
        let queue: BTreeMap<u64, String> = jobs.collect();
        queue.into_values().collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A body's text with the case's names replaced by ids, or a body of the length that it describes.
fn written(text: &str, names: &Names) -> String {
    if let Some((kind, length, field)) = described(text) {
        let mut body = json!({"type": kind, "lease_id": names.lease("L1"), "runner_id": "r1",
            "status": "SUCCEEDED", "exit_code": 0});
        body[field] = json!("x".repeat(length));
        return body.to_string();
    }
    let mut text = text.to_owned();
    for (alias, grant) in &names.leases {
        text = text.replace(&format!("${alias}"), &grant.lease);
    }
    for (name, job) in &names.jobs {
        let of = |job: &str| format!("\"job_id\":\"{job}\"");
        text = text.replace(&of(name), &of(job));
    }
    text
}

/// `<Complete with a 4,000,000 byte summary>`: the message, the length, the field.
fn described(text: &str) -> Option<(&str, usize, &str)> {
    let (kind, rest) = text.strip_prefix('<')?.strip_suffix('>')?.split_once(" with a ")?;
    let (length, field) = rest.split_once(" byte ")?;
    Some((kind, length.replace(',', "").parse().ok()?, field))
}

/// A JSON body with the case's names replaced by ids.
fn known(mut body: Value, names: &Names, now: &str) -> Value {
    if let Some(fields) = body.as_object_mut() {
        for (field, value) in fields {
            let text = match value.as_str() {
                Some("$now") => now.to_owned(),
                Some(text) if field == "job_id" => names.job(text),
                Some(text) => match text.strip_prefix('$') {
                    Some(alias) => names.lease(alias),
                    None => continue,
                },
                None => continue,
            };
            *value = json!(text);
        }
    }
    body
}

/// Whether any file below a folder contains a text.
fn written_down(folder: &Path, text: &str) -> bool {
    fs::read_dir(folder).expect("a folder").any(|entry| {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            return written_down(&path, text);
        }
        let bytes = fs::read(&path).expect("a file");
        bytes.windows(text.len()).any(|part| part == text.as_bytes())
    })
}
