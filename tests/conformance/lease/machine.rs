//! The machine itself, with a number as its clock.

use super::{Answer, Grant, Message, Names, Op, Seen, World};
use cowboy_engine::primitives::{
    codec::{from_slice, to_vec},
    keccak256,
};
use cowboy_lease::machine::{
    Board, Config, Done, JobId, LeaseJob, LeaseKey, NewJob, Refusal, RetryOn, Rules, RunId,
    RunnerId, WorkRequest,
};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

pub struct Machine {
    board: Board,
    now: u64,
    leases: u32,
}

/// A configuration with some fields changed; `None` if it is invalid.
pub fn configured(config: Config, fields: &Map<String, Value>) -> Option<Config> {
    let mut config = config;
    for (field, value) in fields {
        let value = value.as_u64()?;
        match field.as_str() {
            "lease_ttl_seconds" => config.lease_ttl_seconds = value,
            "heartbeat_interval_seconds" => config.heartbeat_interval_seconds = value,
            "ack_timeout_seconds" => config.ack_timeout_seconds = value,
            "cancel_deadline_seconds" => config.cancel_deadline_seconds = value,
            "max_runtime_seconds" => config.max_runtime_seconds = value,
            "grace_seconds" => config.grace_seconds = value,
            "max_attempts" => config.max_attempts = u32::try_from(value).ok()?,
            _ => return None,
        }
    }
    config.check().ok().map(|()| config)
}

impl Machine {
    pub fn new(config: &Map<String, Value>) -> Result<Self, String> {
        let config = configured(Config::default(), config).ok_or("no configuration")?;
        let board = Board::new(config).map_err(|error| error.to_string())?;
        Ok(Self { board, now: 1_000_000, leases: 0 })
    }

    fn again(&mut self, config: Config) {
        let stored = self.board.jobs().map(to_vec);
        let jobs: Vec<LeaseJob> = stored.map(|job| from_slice(&job).expect("a job")).collect();
        self.board = Board::restore(config, jobs).expect("a board");
    }

    fn message(&mut self, message: &Message<'_>) -> Result<Answer, Refusal> {
        let Message { op, lease, job, .. } = message;
        let (key, runner) = (LeaseKey::of(lease), RunnerId::from(op.runner.as_str()));
        let now = self.now;
        let said = keccak256(&[format!(
            "{} {:?} {:?} {:?}",
            op.status, op.exit_code, op.artifacts, op.summary
        )
        .as_bytes()]);
        let fields = match op.op.as_str() {
            "ack" => {
                self.board.ack(&key, &runner, job, now)?;
                Value::Null
            }
            "heartbeat" => {
                let left = self.board.heartbeat(&key, &runner, now)?.cancel;
                let seconds = left.unwrap_or(0) / 1_000;
                json!({"cancel_requested": left.is_some(), "cancel_deadline_seconds": seconds})
            }
            "complete" => {
                let done = match op.status.as_str() {
                    "SUCCEEDED" => Done::Succeeded,
                    "FAILED" => Done::Failed,
                    _ => return Ok(Answer::new("invalid", Value::Null)),
                };
                self.board.complete(&key, &runner, done, said, now)?;
                Value::Null
            }
            _ => {
                if op.final_status.as_deref().unwrap_or("CANCELED") != "CANCELED" {
                    return Ok(Answer::new("invalid", Value::Null));
                }
                self.board.cancel_ack(&key, &runner, said, now)?;
                Value::Null
            }
        };
        Ok(Answer::new("ok", fields))
    }
}

fn refused(refusal: Refusal) -> Answer {
    match refusal {
        Refusal::Stale(reason) => Answer::new("stale", json!({"reason": reason.name()})),
        Refusal::WrongJob => Answer::new("invalid", Value::Null),
        Refusal::NotFound => Answer::new("not_found", Value::Null),
        _ => Answer::new("refused", Value::Null),
    }
}

impl World for Machine {
    fn enqueue(&mut self, name: &str, op: &Op) -> Answer {
        // The server refuses a job without steps before the machine sees it.
        if op.steps.as_ref().is_some_and(Vec::is_empty) {
            return Answer::new("invalid", Value::Null);
        }
        let config = *self.board.config();
        let rules = Rules {
            requires: Vec::new(),
            max_runtime_seconds: op.max_runtime_seconds.unwrap_or(config.max_runtime_seconds),
            max_attempts: config.max_attempts,
            retry_on: RetryOn::default(),
            backoff_seconds: None,
            run_if: None,
            allow_failure: None,
            concurrency: None,
        };
        let job = NewJob { id: name.into(), rules, needs: BTreeSet::new() };
        match self.board.submit(RunId(format!("run of {name}")), None, vec![job], self.now) {
            Ok(()) => Answer::new("ok", json!({"job": name})),
            Err(_) => Answer::new("invalid", Value::Null),
        }
    }

    fn configure(&mut self, fields: &Map<String, Value>) -> Answer {
        match configured(*self.board.config(), fields) {
            Some(config) => {
                self.again(config);
                Answer::new("ok", Value::Null)
            }
            None => Answer::new("invalid", Value::Null),
        }
    }

    fn lease(&mut self, runners: &[&str]) -> Vec<(Answer, Option<Grant>)> {
        let mut answers = Vec::new();
        for runner in runners {
            self.leases += 1;
            let lease = format!("lease_{}", self.leases);
            let (runner, capabilities) = (RunnerId::from(*runner), BTreeSet::new());
            let key = LeaseKey::of(&lease);
            let request = WorkRequest { runner: &runner, capabilities: &capabilities, lease: key };
            let config = *self.board.config();
            answers.push(match self.board.lease(request, self.now) {
                None => (Answer::new("none", Value::Null), None),
                Some(granted) => {
                    let JobId(job) = granted.job;
                    let fields = json!({
                        "job": job,
                        "attempt": granted.attempt,
                        "lease_ttl_seconds": config.lease_ttl_seconds,
                        "heartbeat_interval_seconds": config.heartbeat_interval_seconds,
                        "max_runtime_seconds": granted.max_runtime_seconds,
                    });
                    (
                        Answer::new("granted", fields),
                        Some(Grant { lease, job, attempt: granted.attempt as usize }),
                    )
                }
            });
        }
        answers
    }

    fn send(&mut self, messages: &[Message<'_>]) -> Vec<Answer> {
        messages.iter().map(|message| self.message(message).unwrap_or_else(refused)).collect()
    }

    fn cancel(&mut self, job: &str) -> Answer {
        match self.board.cancel(job, self.now) {
            Ok(state) => Answer::new("ok", json!({"state": state.name()})),
            Err(refusal) => refused(refusal),
        }
    }

    fn advance(&mut self, seconds: u64) {
        self.now += seconds * 1_000;
        self.board.advance(self.now);
    }

    fn restart(&mut self, down: u64) {
        self.now += down * 1_000;
        self.again(*self.board.config());
        self.board.advance(self.now);
    }

    fn raw(&mut self, _: &Op, _: &Names) -> Result<(), String> {
        Ok(())
    }

    fn mentions(&mut self, leases: &BTreeSet<String>) -> bool {
        let stored: Vec<u8> = self.board.jobs().flat_map(to_vec).collect();
        let shown = format!("{:?}", self.board);
        leases.iter().any(|lease| {
            shown.contains(lease)
                || stored.windows(lease.len()).any(|part| part == lease.as_bytes())
        })
    }

    fn see(&mut self, job: &str) -> Seen {
        let job = self.board.job(job).expect("a job that was enqueued");
        Seen {
            state: job.state().to_string(),
            attempt: job.attempt(),
            finalized: job.finalized(),
            leases: job.attempts().map(|(_, state, _)| state.to_string()).collect(),
        }
    }

    fn queue(&mut self) -> Vec<String> {
        let queue: BTreeMap<_, _> = self.board.queue().collect();
        queue.into_values().map(ToString::to_string).collect()
    }
}
