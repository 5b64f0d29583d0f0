//! The cases of the lease protocol, each played twice: against the machine on a virtual clock, and
//! over HTTP against a server whose clock the test moves.
//!
//! A case names jobs and leases; each world chooses their ids.

mod http;
mod machine;

use crate::cases::{self, Cases};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Answers that the spec's second round has changed since the cases were written: case, operation,
/// field, new value. A lease that is not acked yet, or whose job is being stopped, is live and not
/// stale.
const SUPERSEDED: [(&str, usize, &str, &str); 3] = [
    ("H07", 2, "verdict", "refused"),
    ("C05", 2, "verdict", "refused"),
    ("X13", 5, "verdict", "refused"),
];

pub type Vectors = Cases<Op, Then>;
pub type Case = cases::Case<Op, Then>;

#[derive(Deserialize, Clone, Default)]
#[serde(deny_unknown_fields, default)]
pub struct Op {
    op: String,
    job: Option<String>,
    steps: Option<Vec<String>>,
    max_runtime_seconds: Option<u64>,
    lease_ttl_seconds: Option<i64>,
    heartbeat_interval_seconds: Option<i64>,
    ack_timeout_seconds: Option<i64>,
    cancel_deadline_seconds: Option<i64>,
    max_attempts: Option<i64>,
    runner: String,
    #[serde(rename = "as")]
    alias: String,
    lease: String,
    accepted_at_skew_s: i64,
    ts_skew_s: i64,
    finished_at_skew_s: i64,
    progress: Option<Value>,
    status: String,
    exit_code: Option<i32>,
    artifacts: Option<Value>,
    summary: Option<String>,
    final_status: Option<String>,
    s: u64,
    down_s: u64,
    method: String,
    path: String,
    body: Value,
    headers: BTreeMap<String, String>,
    http: u16,
    expect_body: Option<Value>,
    expect_body_excludes: Vec<String>,
    ops: Vec<Self>,
    expect: Map<String, Value>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct Then {
    job: BTreeMap<String, String>,
    lease: BTreeMap<String, String>,
    attempt: BTreeMap<String, u32>,
    finalized: BTreeMap<String, u32>,
    queue: Option<Vec<String>>,
}

/// The result of an operation.
#[derive(Clone, Debug, PartialEq)]
struct Answer {
    /// The cases' name for it.
    verdict: &'static str,
    /// The fields that cases compare.
    fields: Map<String, Value>,
}

impl Answer {
    fn new(verdict: &'static str, fields: Value) -> Self {
        let fields = fields.as_object().cloned().unwrap_or_default();
        Self { verdict, fields }
    }
}

/// A job as a client sees it.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    state: String,
    attempt: u32,
    finalized: u32,
    /// The state of each attempt's lease, from the first attempt.
    leases: Vec<String>,
}

/// A runner's message.
struct Message<'a> {
    op: &'a Op,
    /// The lease's id, or the case's own text in its place.
    lease: String,
    /// The world's id of the job.
    job: String,
    /// Offset of the message's times from the clock, in seconds.
    skew: i64,
}

/// An implementation that cases are played against.
trait World {
    /// Puts a job into the queue.
    fn enqueue(&mut self, name: &str, op: &Op) -> Answer;
    /// Changes the configuration, which applies to new leases.
    fn configure(&mut self, fields: &Map<String, Value>) -> Answer;
    /// Runners ask for work, all at the same time.
    fn lease(&mut self, runners: &[&str]) -> Vec<(Answer, Option<Grant>)>;
    /// Runners send messages, all at the same time.
    fn send(&mut self, messages: &[Message<'_>]) -> Vec<Answer>;
    fn cancel(&mut self, job: &str) -> Answer;
    fn advance(&mut self, seconds: u64);
    /// Kills it, and restarts it `down` seconds later from its stored state.
    fn restart(&mut self, down: u64);
    /// Sends a request verbatim, if there is HTTP.
    fn raw(&mut self, op: &Op, names: &Names) -> Result<(), String>;
    /// Whether any listing contains one of these lease ids.
    fn mentions(&mut self, leases: &BTreeSet<String>) -> bool;
    fn see(&mut self, job: &str) -> Seen;
    /// The world's ids of the waiting jobs.
    fn queue(&mut self) -> Vec<String>;
}

struct Grant {
    lease: String,
    job: String,
    attempt: usize,
}

/// The world's ids by the case's names.
#[derive(Default)]
struct Names {
    jobs: BTreeMap<String, String>,
    leases: BTreeMap<String, Grant>,
}

impl Names {
    fn lease(&self, alias: &str) -> String {
        self.leases.get(alias).map_or_else(|| alias.to_owned(), |grant| grant.lease.clone())
    }

    fn job(&self, name: &str) -> String {
        self.jobs.get(name).cloned().unwrap_or_else(|| name.to_owned())
    }

    /// The case's name for a job.
    fn of(&self, job: &str) -> String {
        let named = self.jobs.iter().find(|(_, known)| *known == job);
        named.map_or_else(|| job.to_owned(), |(name, _)| name.clone())
    }
}

/// Plays a case in both worlds.
pub fn check(vectors: &Vectors, case: &Case) -> Result<(), String> {
    let mut config = vectors.defaults.clone();
    // The cases have no grace period: a lease is revoked as soon as its job's time is over.
    config.insert("grace_seconds".to_owned(), json!(0));
    config.extend(case.given.config.clone());
    let machine = machine::Machine::new(&config)?;
    play(machine, case).map_err(|why| format!("{} on the machine: {why}", case.id))?;
    let server = http::Server::new(&config)?;
    play(server, case).map_err(|why| format!("{} over HTTP: {why}", case.id))
}

fn play(mut world: impl World, case: &Case) -> Result<(), String> {
    let mut names = Names::default();
    let mut ended = BTreeMap::new();
    for (i, op) in case.given.ops.iter().enumerate() {
        let mut op = op.clone();
        for (id, at, field, now) in SUPERSEDED {
            if (id, at) == (case.id.as_str(), i) {
                op.expect.insert(field.to_owned(), json!(now));
            }
        }
        let op = &op;
        step(&mut world, &mut names, op).map_err(|why| format!("op {i}, {}: {why}", op.op))?;
        for (name, job) in &names.jobs {
            let seen = world.see(job);
            hold(&seen, ended.entry(name.clone()).or_default())
                .map_err(|why| format!("after op {i}, {}: job {name}: {why}", op.op))?;
        }
    }
    then(&mut world, &names, &case.then)
}

/// Checks a job's invariants.
fn hold(seen: &Seen, ended: &mut Option<String>) -> Result<(), String> {
    let usable = |state: &&String| matches!(state.as_str(), "GRANTED" | "ACTIVE");
    if seen.leases.iter().filter(usable).count() > 1 {
        return Err(format!("several leases can be used: {:?}", seen.leases));
    }
    let terminal = matches!(seen.state.as_str(), "SUCCEEDED" | "FAILED" | "CANCELED" | "TIMED_OUT");
    if seen.finalized != u32::from(terminal) {
        return Err(format!("{} and finalized {} times", seen.state, seen.finalized));
    }
    match ended {
        Some(state) if *state != seen.state => Err(format!("was {state}, is {}", seen.state)),
        _ => {
            *ended = terminal.then(|| seen.state.clone());
            Ok(())
        }
    }
}

fn then(world: &mut impl World, names: &Names, then: &Then) -> Result<(), String> {
    let mut see = |name: &str| world.see(&names.job(name));
    for (name, state) in &then.job {
        super::equal(&format!("job {name}"), &see(name).state, state)?;
    }
    for (name, attempt) in &then.attempt {
        super::equal(&format!("attempt of {name}"), see(name).attempt, *attempt)?;
    }
    for (name, finalized) in &then.finalized {
        super::equal(&format!("finalized of {name}"), see(name).finalized, *finalized)?;
    }
    for (alias, expected) in &then.lease {
        let grant = names.leases.get(alias).ok_or_else(|| format!("{alias} was not granted"))?;
        let seen = see(&names.of(&grant.job));
        super::equal(&format!("lease {alias}"), &seen.leases[grant.attempt - 1], expected)?;
    }
    if let Some(expected) = &then.queue {
        let queue: Vec<_> = world.queue().iter().map(|job| names.of(job)).collect();
        super::equal("queue", &queue, expected)?;
    }
    Ok(())
}

fn step(world: &mut impl World, names: &mut Names, op: &Op) -> Result<(), String> {
    let answer = match op.op.as_str() {
        "enqueue" => {
            let name = op.job.as_deref().ok_or("no job")?;
            let answer = world.enqueue(name, op);
            if let Some(job) = answer.fields.get("job").and_then(Value::as_str) {
                names.jobs.insert(name.to_owned(), job.to_owned());
            }
            answer
        }
        "configure" => {
            let fields = [
                ("lease_ttl_seconds", op.lease_ttl_seconds),
                ("heartbeat_interval_seconds", op.heartbeat_interval_seconds),
                ("ack_timeout_seconds", op.ack_timeout_seconds),
                ("cancel_deadline_seconds", op.cancel_deadline_seconds),
                ("max_attempts", op.max_attempts),
            ];
            let given = fields.into_iter().filter_map(|(name, value)| Some((name, value?)));
            world.configure(&given.map(|(name, value)| (name.to_owned(), json!(value))).collect())
        }
        "cancel" => world.cancel(&names.job(op.job.as_deref().ok_or("no job")?)),
        "advance_s" => {
            world.advance(op.s);
            Answer::new("ok", Value::Null)
        }
        "restart" => {
            world.restart(op.down_s);
            Answer::new("ok", Value::Null)
        }
        "list" => {
            let leases = names.leases.values().map(|grant| grant.lease.clone()).collect();
            Answer::new("ok", json!({"mentions_lease_id": world.mentions(&leases)}))
        }
        "http" => {
            world.raw(op, names)?;
            Answer::new("ok", Value::Null)
        }
        "simultaneously" => {
            let mut verdicts: Vec<_> =
                several(world, names, &op.ops)?.iter().map(|answer| answer.verdict).collect();
            verdicts.sort_unstable();
            Answer::new("ok", json!({"verdicts": verdicts}))
        }
        _ => several(world, names, std::slice::from_ref(op))?.remove(0),
    };
    for (field, expected) in &op.expect {
        let got = match field.as_str() {
            "verdict" => json!(answer.verdict),
            "job" => {
                let job = answer.fields.get("job").and_then(Value::as_str);
                json!(names.of(job.unwrap_or_default()))
            }
            other => answer.fields.get(other).cloned().unwrap_or_default(),
        };
        super::equal(field, &got, expected)?;
    }
    Ok(())
}

/// Sends messages of several runners at the same time, all of one kind.
fn several(world: &mut impl World, names: &mut Names, ops: &[Op]) -> Result<Vec<Answer>, String> {
    let first = ops.first().ok_or("nothing to do")?;
    if first.op == "lease" {
        let runners: Vec<_> = ops.iter().map(|op| op.runner.as_str()).collect();
        let answers = world.lease(&runners);
        return Ok(ops
            .iter()
            .zip(answers)
            .map(|(op, (answer, grant))| {
                names.leases.extend(grant.map(|grant| (op.alias.clone(), grant)));
                answer
            })
            .collect());
    }
    let messages: Result<Vec<_>, String> = ops
        .iter()
        .map(|op| {
            let skew = match op.op.as_str() {
                "ack" => op.accepted_at_skew_s,
                "heartbeat" | "cancel_ack" => op.ts_skew_s,
                "complete" => op.finished_at_skew_s,
                other => return Err(format!("unknown operation `{other}`")),
            };
            let own = names.leases.get(&op.lease).map(|grant| grant.job.clone());
            let named = op.job.as_ref().map(|name| names.job(name));
            let job = named.or(own).unwrap_or_else(|| "none".to_owned());
            Ok(Message { op, lease: names.lease(&op.lease), job, skew })
        })
        .collect();
    Ok(world.send(&messages?))
}
