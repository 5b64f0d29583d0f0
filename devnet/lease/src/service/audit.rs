//! The server's log lines and metrics about leases.
//!
//! There is a line for each grant, each lost lease and each end of a job, and at most one per
//! second for requests without a valid token. None of them contains a lease's id or a token.

use super::Counts;
use crate::{
    machine::{self, Board, LeaseEvent, LeaseState, Why},
    messages::JobState,
};
use cowboy_host::openmetrics::{self, CountGauge, Row};
use prometheus_client::{metrics::counter::Counter, registry::Registry};
use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Minimum time between two lines about requests without a valid token.
const UNAUTHORIZED_PAUSE: Duration = Duration::from_secs(1);

pub(crate) struct Audit {
    registry: Registry,
    jobs: Row<CountGauge>,
    queued: CountGauge,
    waiting: CountGauge,
    granted: Counter,
    ended: Row<Counter>,
    lost: Row<Counter>,
    unauthorized: Counter,
    told: Mutex<Told>,
}

#[derive(Default)]
struct Told {
    last: Option<Instant>,
    /// Number of requests without a valid token since then.
    since: u64,
}

/// The lease states in which a lease is lost, in the order of `lost`.
const LOST: [LeaseState; 2] = [LeaseState::Expired, LeaseState::Revoked];

impl Default for Audit {
    fn default() -> Self {
        let states = || machine::JobState::ALL.iter().map(|state| state.name());
        let mut audit = Self {
            registry: Registry::with_prefix("lease"),
            jobs: Row::new("state", states()),
            queued: CountGauge::default(),
            waiting: CountGauge::default(),
            granted: Counter::default(),
            ended: Row::new("state", states()),
            lost: Row::new("lease_state", LOST.iter().map(|state| state.name())),
            unauthorized: Counter::default(),
            told: Mutex::default(),
        };
        let registry = &mut audit.registry;
        registry.register("jobs", "Jobs that are kept, by state", audit.jobs.clone());
        registry.register("queued", "Jobs that can be granted", audit.queued.clone());
        let waiting = audit.waiting.clone();
        registry.register("waiting_runners", "Runners that wait for work", waiting);
        let granted = audit.granted.clone();
        registry.register("granted", "Leases granted since the server started", granted);
        let help = "Jobs ended since the server started, by state";
        registry.register("ended", help, audit.ended.clone());
        let help = "Leases lost since the server started: expired or revoked";
        registry.register("lost", help, audit.lost.clone());
        let help = "Requests without a valid token since the server started";
        registry.register("unauthorized", help, audit.unauthorized.clone());
        audit
    }
}

impl Audit {
    pub fn entered(&self, events: &[LeaseEvent], board: &Board) {
        for event in events {
            // An ended run may be forgotten already.
            let Some(job) = board.job(&event.job.0) else { continue };
            let (id, run, attempt) = (job.id(), job.run(), event.attempt);
            let why = job.end().map(|(_, why)| why);
            let lost = match event.state {
                machine::JobState::Queued => event.lease,
                _ => event.lease.filter(|_| why == Some(Why::LeaseLost)),
            };
            if let Some(place) = lost.and_then(|lost| LOST.iter().position(|at| *at == lost)) {
                self.lost.at(place).inc();
                let lease = LOST[place].name();
                tracing::info!(job = %id, %run, attempt, lease, "lease lost");
            }
            if event.state == machine::JobState::Leased {
                self.granted.inc();
                let held = job.attempts().nth((attempt.max(1) - 1) as usize);
                let runner = held.map(|(held, ..)| held.runner.0.clone()).unwrap_or_default();
                tracing::info!(job = %id, %run, attempt, runner, "lease granted");
            } else if event.state.is_terminal() {
                if let Some(place) = machine::JobState::ALL.iter().position(|at| *at == event.state)
                {
                    self.ended.at(place).inc();
                }
                let (state, why) = (event.state.name(), why.map(|why| why.name()));
                tracing::info!(job = %id, %run, attempt, state, why, "job ended");
            }
        }
    }

    pub fn unauthorized(&self, path: &str) {
        self.unauthorized.inc();
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.since += 1;
        if told.last.is_none_or(|last| last.elapsed() >= UNAUTHORIZED_PAUSE) {
            let count = told.since;
            *told = Told { last: Some(Instant::now()), since: 0 };
            tracing::warn!(path, count, "requests without a valid token, 401; this is the last");
        }
    }

    pub fn metrics(&self, counts: &Counts, waiting: u64) -> String {
        for (place, state) in machine::JobState::ALL.iter().enumerate() {
            let count = counts.states.get(&JobState::from(*state).to_string());
            self.jobs.at(place).set(count.copied().unwrap_or(0));
        }
        self.queued.set(counts.queued);
        self.waiting.set(waiting);
        openmetrics::whole(&[openmetrics::part(&self.registry)])
    }
}
