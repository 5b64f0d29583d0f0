//! One accepted job: its work, its progress reports, its outcome.

use super::{
    core::{Activity, RunnerCommand, RunnerCore, RunnerShared},
    worker::{TaskProgress, Worker},
};
use crate::api::steer::HandAnswer;
use commonware_runtime::{Clock, Spawner};
use cowboy_engine::{
    job::spec::JobSpec,
    primitives::Hash,
    session::jobs::{Decided, JobReport, Offer, Pledge},
    wire::{Body, JobCommit, JobFailure, JobResult, Reason},
};
use std::{io, pin::pin, sync::Arc, time::Duration};
use tokio::sync::{oneshot, watch};

/// The shortest time between two progress frames of one job. Progress that comes sooner waits, and
/// only the newest is sent.
pub(super) const PROGRESS_PAUSE: Duration = Duration::from_millis(250);

fn work<E, W>(
    core: &Arc<RunnerCore>,
    jobs: &Arc<E>,
    worker: &Arc<W>,
    (job_id, spec): (Hash, JobSpec),
    cancelled: oneshot::Receiver<()>,
) where
    E: Clock + Spawner,
    W: Worker,
{
    let (core, worker) = (core.clone(), worker.clone());
    jobs.child("job").spawn(move |context| async move {
        // The validator that assigned the job is told at once.
        let started = || {
            core.progressed(job_id, TaskProgress { percent: 0, detail: None });
            core.say(Activity::Started { job_id, at: context.current() });
        };
        let limit = spec.bounds.max_return_bytes as usize;
        let in_committee = spec.verification.runners > 1;
        let (progress, mut newest) = watch::channel(None);
        let tell = |state| drop(progress.send_replace(Some(state)));
        let outcome = {
            let mut working = pin!(async {
                match core.by_hand {
                    false => {
                        let work = worker.work(&spec, cancelled, started, tell);
                        work.await.map_err(|error| error.to_string())
                    }
                    true => {
                        started();
                        core.answered(job_id, cancelled).await
                    }
                }
            });
            let mut telling = pin!(report(&context, &core, job_id, &mut newest));
            tokio::select! {
                biased;
                outcome = &mut working => outcome,
                // It reports for as long as there is work.
                () = &mut telling => working.await,
            }
        };
        // Completion is reported without a pause: the result comes next.
        if newest.has_changed().is_ok_and(|changed| changed) {
            let state = newest.borrow().clone().filter(|state: &TaskProgress| state.percent >= 100);
            if let Some(state) = state {
                core.progressed(job_id, state);
            }
        }
        match outcome {
            Ok(bytes) if bytes.len() > limit => {
                let got = bytes.len();
                core.failed(job_id, format!("a result of {got} bytes, limit {limit}"));
            }
            Ok(bytes) => core.finished(job_id, bytes, in_committee).await,
            Err(error) => core.failed(job_id, error),
        }
    });
}

/// Reports a job's progress: the first report at once, then at most one per [`PROGRESS_PAUSE`],
/// until the sender is gone.
async fn report(
    clock: &impl Clock,
    core: &RunnerCore,
    job_id: Hash,
    newest: &mut watch::Receiver<Option<TaskProgress>>,
) {
    while newest.changed().await.is_ok() {
        let state = newest.borrow_and_update().clone();
        if let Some(state) = state {
            core.progressed(job_id, state);
            clock.sleep(PROGRESS_PAUSE).await;
        }
    }
}

impl RunnerCore {
    /// Waits for a job's result by hand. The job's deadline on the chain cancels it.
    async fn answered(&self, job_id: Hash, cancelled: oneshot::Receiver<()>) -> HandAnswer {
        let (give, mut given) = oneshot::channel();
        self.shared.lock().unanswered.insert(job_id, give);
        let answer = tokio::select! {
            biased;
            answer = &mut given => answer.ok(),
            _ = cancelled => None,
        };
        answer.unwrap_or_else(|| Err("cancelled before it was answered".to_owned()))
    }

    /// Starts work on a job that was taken from any peer, and has the other validators that wait
    /// for an answer answered.
    pub(super) fn start<E, W>(
        self: &Arc<Self>,
        (jobs, worker): (&Arc<E>, &Arc<W>),
        shared: &mut RunnerShared,
        decided: &Decided,
        (job_id, spec): (Hash, Option<JobSpec>),
    ) where
        E: Clock + Spawner,
        W: Worker,
    {
        for link in decided.others.iter().filter_map(|validator| shared.links.get(validator)) {
            link.command(RunnerCommand::Answer(job_id, decided.others_status()));
        }
        match (&decided.offer, spec) {
            (Offer::Accept, Some(spec)) => {
                let (cancel, cancelled) = oneshot::channel();
                shared.running.insert(job_id, cancel);
                work(self, jobs, worker, (job_id, spec), cancelled);
            }
            (Offer::Reject(reason), _) => {
                tracing::debug!(runner = %self.public.address(), %job_id, %reason, "job rejected");
            }
            _ => {}
        }
        shared.tell_load();
    }

    /// Takes a finished result. A committee member's commitment is on disk before it is sent.
    pub(super) async fn finished(&self, job_id: Hash, bytes: Vec<u8>, in_committee: bool) {
        let length = bytes.len();
        let body = match Body::new(bytes) {
            Ok(body) => body,
            Err(error) => return self.failed(job_id, error.to_string()),
        };
        let (chain_id, key) = (self.chain_id, &self.key);
        let result = JobResult::signed(chain_id, key, job_id, body);
        // One commitment at a time, so that the disk and the table agree.
        let _turn = self.committing.lock().await;
        let running = self.shared.lock().table.deadline(&job_id);
        let commit = match running {
            Some(deadline) if in_committee => {
                let commitment = result.commitment();
                let commit = JobCommit::signed(chain_id, key, job_id, deadline, commitment);
                let pledge = Pledge { result: result.clone(), commit: commit.clone(), deadline };
                if let Err(error) = self.keep(pledge).await {
                    return self.failed(job_id, format!("the commitment is not kept: {error}"));
                }
                Some(commit)
            }
            _ => None,
        };
        let mut shared = self.shared.lock();
        shared.running.remove(&job_id);
        let delivery = match commit {
            Some(commit) => {
                let delivery = shared.table.commit(result, commit).map(JobReport::Commit);
                if delivery.is_none() {
                    // The job was cancelled in the meantime, and the commitment was not sent.
                    if let Some(pledges) = &self.pledges {
                        pledges.remove(&job_id);
                    }
                }
                delivery
            }
            // The job had been cancelled.
            None if in_committee => None,
            None => shared.table.finish(result).map(JobReport::Result),
        };
        if let Some(delivery) = delivery {
            self.say(Activity::Finished { job_id, bytes: length });
            shared.deliver(delivery);
        }
        self.clear(&mut shared);
        shared.tell_load();
    }

    /// Removes the commitments of forgotten jobs from the disk. Call it under the same lock under
    /// which they were forgotten: another attempt's commitment must not be removed.
    pub(super) fn clear(&self, shared: &mut RunnerShared) {
        let forgotten = shared.table.take_forgotten();
        if let Some(pledges) = &self.pledges {
            for job_id in &forgotten {
                pledges.remove(job_id);
            }
        }
    }

    async fn keep(&self, pledge: Pledge) -> io::Result<()> {
        let Some(pledges) = self.pledges.clone() else { return Ok(()) };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            // Not within tokio: this is a simulation.
            return pledges.write(&pledge);
        };
        // The write blocks, so it runs apart from the connections.
        match runtime.spawn_blocking(move || pledges.write(&pledge)).await {
            Ok(written) => written,
            Err(error) => Err(io::Error::other(error)),
        }
    }

    /// Reports that there will be no result, except for a job that was cancelled or is past its
    /// deadline.
    pub(super) fn failed(&self, job_id: Hash, reason: String) {
        let told = Reason::truncated(&reason);
        let failure = JobFailure::signed(self.chain_id, &self.key, job_id, told);
        let mut shared = self.shared.lock();
        shared.running.remove(&job_id);
        if let Some(failure) = shared.table.fail(failure) {
            // The chain only keeps the beginning of the reason; the log has all of it.
            tracing::warn!(runner = %self.public.address(), %job_id, reason, "job failed");
            self.say(Activity::Failed { job_id, reason });
            shared.deliver(JobReport::Failure(failure));
        }
        self.clear(&mut shared);
        shared.tell_load();
    }
}
