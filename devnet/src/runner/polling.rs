//! Jobs and results over HTTP, for when connections fail (spec connectivity.md §6, §7).
//!
//! | phase | jobs are fetched | results are handed in |
//! |---|---|---|
//! | `shadow` | once a block | when no connection takes them |
//! | `hot-path` | while a connection is missing or a result is stuck | the same |
//! | `sunset` | never | never |
//!
//! A result, a commitment or a failure reason goes over a connection if one is up. It is stuck when
//! no connection has taken it for three blocks, and is then handed in over HTTP as well. A
//! committed result is handed in once the list says that it is wanted. A fetched job goes through
//! the same table as a pushed one, so it runs once; it starts when the list has a valid proof of
//! it. If the runner cannot take it, it hands in the reason. Polling does not count as presence,
//! and no runner is asked to aggregate by polling: when the aggregator only polls, the committee's
//! results are revealed one by one.

use super::{
    REQUEST_TIMEOUT,
    core::{Activity, RunnerCore},
    worker::Worker,
};
use crate::{
    client::{Client, ClientError},
    types::{
        Bytes, BytesText, CommitRequest, ErrorCode, FailureRequest, PolledJob, ResultRequest, Text,
        Wanted,
    },
};
use commonware_runtime::{Clock, Spawner};
use cowboy_engine::{
    presence::Phase,
    primitives::{Hash, Height, Signature},
    session::jobs::{JobReport, Offer},
    wire::{CancelReason, JobFailure, Reason},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use tokio::sync::watch;

/// The shortest pause between two requests.
const AT_LEAST: Duration = Duration::from_millis(100);
/// Blocks that a result waits for a connection to take it, and blocks that a shown result has to
/// reach the chain.
const PATIENCE: u32 = 3;

/// Where, when and how often a runner polls.
#[derive(Debug, Clone)]
pub struct Polling {
    pub client: Client,
    pub phase: watch::Receiver<Phase>,
    pub interval: Duration,
}

/// The pause between two requests, for a chain with this block time.
pub fn interval(block_time: Duration) -> Duration {
    block_time.max(AT_LEAST)
}

/// Follows the chain's migration phase for all runners of a process, for as long as the future is
/// polled.
pub async fn follow_phase(
    clock: impl Clock,
    client: Client,
    interval: Duration,
    told: watch::Sender<Phase>,
) {
    let client = client.with_timeout(REQUEST_TIMEOUT);
    loop {
        clock.sleep(interval).await;
        match client.parameters().await.map(|parameters| parameters.phase.parse()) {
            Ok(Ok(phase)) => {
                told.send_if_modified(|known| std::mem::replace(known, phase) != phase);
            }
            Ok(Err(error)) => tracing::warn!(%error, "unknown migration phase"),
            Err(error) => tracing::debug!(%error, "no migration phase; asking again"),
        }
    }
}

/// Starts jobs, whether they were pushed or fetched.
pub(super) struct PollingDesk<E, W> {
    pub core: Arc<RunnerCore>,
    pub jobs: Arc<E>,
    pub worker: Arc<W>,
}

/// Polls for as long as the future is polled.
pub(super) async fn keep<E, W>(clock: E, desk: PollingDesk<E, W>, polling: Polling)
where
    E: Clock + Spawner,
    W: Worker,
{
    let Polling { client, mut phase, interval } = polling;
    let mut poller = Poller {
        runner: desk.core.public.address().to_string(),
        client: client.with_timeout(REQUEST_TIMEOUT),
        desk,
        newest: 0,
        fetched: BTreeSet::new(),
        refused: BTreeSet::new(),
        waiting: BTreeMap::new(),
        shown: BTreeMap::new(),
    };
    while !poller.desk.core.shared.lock().closing {
        let now = *phase.borrow_and_update();
        if !now.polls() {
            poller.waiting.clear();
            // An error means that the phase can no longer change.
            if phase.changed().await.is_err() {
                return;
            }
            continue;
        }
        let stuck = poller.hand_in().await;
        let missing = poller.desk.core.shared.lock().misses_connections();
        if !now.pushes() || missing || stuck {
            poller.fetch().await;
        }
        clock.sleep(interval).await;
    }
}

struct Poller<E, W> {
    desk: PollingDesk<E, W>,
    client: Client,
    runner: String,
    newest: u64,
    fetched: BTreeSet<Hash>,
    refused: BTreeSet<Hash>,
    /// Rounds that each result has waited for a connection.
    waiting: BTreeMap<Hash, u32>,
    /// Rounds since each result that the chain wants to see was first shown.
    shown: BTreeMap<Hash, u32>,
}

impl<E: Clock + Spawner, W: Worker> Poller<E, W> {
    /// Hands in results that no connection takes; returns whether any waited for too long.
    async fn hand_in(&mut self) -> bool {
        let (connected, deliveries) = {
            let shared = self.desk.core.shared.lock();
            (!shared.links.is_empty(), shared.table.undelivered().collect::<Vec<_>>())
        };
        let before = std::mem::take(&mut self.waiting);
        let mut stuck = false;
        for delivery in deliveries {
            let job_id = delivery.job_id();
            let rounds = before.get(&job_id).map_or(0, |rounds| rounds.saturating_add(1));
            self.waiting.insert(job_id, rounds);
            let late = rounds >= PATIENCE;
            stuck |= late;
            if (late || !connected) && self.deliver(&delivery).await {
                self.desk.core.shared.lock().table.delivered(&job_id, None);
            }
        }
        stuck
    }

    /// Posts a result, a commitment or a report; returns false when it has to be sent again.
    async fn deliver(&self, delivery: &JobReport) -> bool {
        let answer = match delivery {
            JobReport::Result(result) => {
                let request = ResultRequest {
                    job_id: Text(result.job_id),
                    result: Text(Bytes(result.result_data.as_bytes().to_vec())),
                    runner_signature: signature(&result.runner_signed),
                };
                self.client.hand_in(&self.runner, &request).await
            }
            JobReport::Commit(commit) => {
                let request = CommitRequest {
                    job_id: Text(commit.job_id),
                    commitment: Text(commit.commitment),
                    runner_signature: signature(&commit.runner_signed),
                };
                self.client.commit(&self.runner, &request).await
            }
            JobReport::Failure(failure) => {
                let request = FailureRequest {
                    job_id: Text(failure.job_id),
                    reason: failure.reason.to_string(),
                    runner_signature: signature(&failure.runner_signed),
                };
                self.client.report_failure(&self.runner, &request).await
            }
        };
        let job_id = delivery.job_id();
        match answer {
            Ok(_) => tracing::debug!(runner = %self.runner, %job_id, "result handed in"),
            Err(error) if is_final(&error) => {
                tracing::debug!(runner = %self.runner, %job_id, %error, "result not wanted");
            }
            Err(error) => {
                tracing::warn!(runner = %self.runner, %job_id, %error, "result not handed in");
                return false;
            }
        }
        true
    }

    /// Shows the committed results that the chain wants to see: each at once, and again every few
    /// rounds while it is still wanted.
    async fn show(&mut self, jobs: &[PolledJob]) {
        let before = std::mem::take(&mut self.shown);
        for job in jobs.iter().filter(|job| job.wants == Wanted::Reveal) {
            let job_id = job.job_id.0;
            let result = self.desk.core.shared.lock().table.reveal(&job_id, None);
            let Some(result) = result else { continue };
            let rounds = before.get(&job_id).map_or(0, |rounds| rounds.saturating_add(1));
            let due = rounds.is_multiple_of(PATIENCE);
            let shown = !due || self.deliver(&JobReport::Result(result)).await;
            if shown {
                self.shown.insert(job_id, rounds);
            }
        }
    }

    /// Takes jobs that the chain assigns to the runner, and abandons those that are no longer
    /// listed.
    async fn fetch(&mut self) {
        let answer = match self.client.polled_jobs(&self.runner).await {
            // From a validator that is behind the one asked before.
            Ok(answer) if answer.height < self.newest => return,
            Ok(answer) => answer,
            Err(error) => {
                tracing::debug!(runner = %self.runner, %error, "no jobs fetched");
                return;
            }
        };
        self.newest = answer.height;
        if !answer.more {
            let listed: BTreeSet<Hash> = answer.jobs.iter().map(|job| job.job_id.0).collect();
            self.refused.retain(|job_id| listed.contains(job_id));
            let fetched = std::mem::take(&mut self.fetched);
            for job_id in fetched {
                match listed.contains(&job_id) {
                    true => {
                        self.fetched.insert(job_id);
                    }
                    false => self.desk.give_up(&job_id),
                }
            }
        }
        for job in &answer.jobs {
            let open = matches!(job.wants, Wanted::Result | Wanted::Commitment);
            let job_id = job.job_id.0;
            let taken = open.then(|| self.desk.take(job, Height::new(self.newest)));
            match taken.flatten() {
                Some(Offer::Accept) => {
                    self.fetched.insert(job_id);
                }
                Some(Offer::Reject(reason))
                    if reason.is_excuse() && !self.refused.contains(&job_id) =>
                {
                    let (core, reason) = (&self.desk.core, Reason::truncated(reason.as_str()));
                    let failure = JobFailure::signed(core.chain_id, &core.key, job_id, reason);
                    if self.deliver(&JobReport::Failure(failure)).await {
                        self.refused.insert(job_id);
                    }
                }
                _ => {}
            }
        }
        self.show(&answer.jobs).await;
    }
}

fn signature(signature: &Signature) -> BytesText {
    Text(Bytes(signature.as_bytes().to_vec()))
}

fn is_final(error: &ClientError) -> bool {
    let code = error.code();
    matches!(code, Some(ErrorCode::Rejected | ErrorCode::NotFound | ErrorCode::BadRequest))
}

impl<E: Clock + Spawner, W: Worker> PollingDesk<E, W> {
    /// Starts a fetched job, with the chain at `height`. Returns `None` when no valid proof shows
    /// that it is assigned.
    fn take(&self, job: &PolledJob, height: Height) -> Option<Offer> {
        let Self { core, jobs, worker } = self;
        let job_id = job.job_id.0;
        // The proof may only be possible a block later.
        let shown = job.proof.as_ref()?;
        let shown = core.read_proof(&job_id, &shown.0.0);
        let (attempt, encoded) = match shown.and_then(|shown| shown.assignment(&job_id)) {
            Ok(read) => read,
            Err(error) => {
                let runner = core.public.address();
                tracing::warn!(%runner, %job_id, %error, "no proof of the fetched job");
                return None;
            }
        };
        let mut spec = None;
        let mut guard = core.shared.lock();
        let shared = &mut *guard;
        if shared.closing {
            return None;
        }
        let head = shared.head.max(height);
        let decided = shared.table.offer_proved(attempt, head, || {
            spec = Some(core.check(&encoded)?);
            Ok(())
        });
        core.start((jobs, worker), shared, &decided, (job_id, spec));
        Some(decided.offer)
    }

    fn give_up(&self, job_id: &Hash) {
        let mut shared = self.core.shared.lock();
        let stopped = shared.table.give_up(job_id);
        self.core.clear(&mut shared);
        shared.abandon(job_id);
        if stopped {
            let reason = Some(CancelReason::Reassigned);
            self.core.say(Activity::Stopped { job_id: *job_id, reason });
        }
        shared.tell_load();
    }
}

#[cfg(test)]
mod tests;
