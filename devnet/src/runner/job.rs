//! One accepted job: the work on it, what it tells of its progress, what it comes to.

use super::{
    node::{Activity, Core, Shared},
    worker::{Progress, Worker},
};
use commonware_runtime::{Clock, Spawner};
use cowboy_engine::{
    job::spec::JobSpec,
    primitives::Hash,
    session::jobs::{Delivery, Pledge},
    wire::{Body, JobCommit, JobFailure, JobResult, Reason},
};
use std::{io, pin::pin, sync::Arc, time::Duration};
use tokio::sync::{oneshot, watch};

/// The shortest time between two frames that tell of a job's progress. What comes sooner waits, and
/// only the newest of it is told.
pub(super) const PROGRESS_PAUSE: Duration = Duration::from_millis(250);

/// Works on an accepted job in a task of its own.
pub(super) fn work<E, W>(
    core: &Arc<Core>,
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
        // Who gave it the job is told at once.
        let started = || {
            core.progressed(job_id, Progress { percent: 0, detail: None });
            core.say(Activity::Started { job_id, at: context.current() });
        };
        let limit = spec.bounds.max_return_bytes as usize;
        let in_committee = spec.verification.runners > 1;
        let (progress, mut newest) = watch::channel(None);
        let tell = |state| drop(progress.send_replace(Some(state)));
        let outcome = {
            let mut working = pin!(worker.work(&spec, cancelled, started, tell));
            let mut telling = pin!(report(&context, &core, job_id, &mut newest));
            tokio::select! {
                biased;
                outcome = &mut working => outcome,
                // It reports as long as there is work.
                () = &mut telling => working.await,
            }
        };
        // The end of it waits for nothing: the result is next.
        if newest.has_changed().is_ok_and(|changed| changed) {
            let state = newest.borrow().clone().filter(|state: &Progress| state.percent >= 100);
            if let Some(state) = state {
                core.progressed(job_id, state);
            }
        }
        match outcome {
            Ok(bytes) if bytes.len() > limit => {
                let got = bytes.len();
                core.failed(job_id, format!("a result of {got} bytes, {limit} may be"));
            }
            Ok(bytes) => core.finished(job_id, bytes, in_committee).await,
            Err(error) => core.failed(job_id, error.to_string()),
        }
    });
}

/// Tells of a job's progress, the first at once and then no more often than every
/// [`PROGRESS_PAUSE`], until nothing can come any more.
async fn report(
    clock: &impl Clock,
    core: &Core,
    job_id: Hash,
    newest: &mut watch::Receiver<Option<Progress>>,
) {
    while newest.changed().await.is_ok() {
        let state = newest.borrow_and_update().clone();
        if let Some(state) = state {
            core.progressed(job_id, state);
            clock.sleep(PROGRESS_PAUSE).await;
        }
    }
}

impl Core {
    /// There is a result. The commitment to a committee's is on the disk before it is sent.
    pub(super) async fn finished(&self, job_id: Hash, bytes: Vec<u8>, in_committee: bool) {
        let length = bytes.len();
        let body = match Body::new(bytes) {
            Ok(body) => body,
            Err(error) => return self.failed(job_id, error.to_string()),
        };
        let (chain_id, key) = (self.chain_id, &self.key);
        let result = JobResult::signed(chain_id, key, job_id, body);
        // What is on the disk is what the table gets: one commitment at a time.
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
                let delivery = shared.table.commit(result, commit).map(Delivery::Commit);
                if delivery.is_none() {
                    // It was taken back meanwhile, and the commitment was not sent.
                    if let Some(pledges) = &self.pledges {
                        pledges.remove(&job_id);
                    }
                }
                delivery
            }
            // It was taken back before.
            None if in_committee => None,
            None => shared.table.finish(result).map(Delivery::Result),
        };
        if let Some(delivery) = delivery {
            self.say(Activity::Finished { job_id, bytes: length });
            shared.deliver(delivery);
        }
        self.clear(&mut shared);
        shared.tell_load();
    }

    /// Removes commitments that are over from the disk. To be called with the lock that they were
    /// forgotten under: another attempt's must not be removed.
    pub(super) fn clear(&self, shared: &mut Shared) {
        let forgotten = shared.table.take_forgotten();
        if let Some(pledges) = &self.pledges {
            for job_id in &forgotten {
                pledges.remove(job_id);
            }
        }
    }

    /// Writes a commitment to the disk, where the runner keeps them.
    async fn keep(&self, pledge: Pledge) -> io::Result<()> {
        let Some(pledges) = self.pledges.clone() else { return Ok(()) };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            // A simulation.
            return pledges.write(&pledge);
        };
        // It waits for the disk; connections do not.
        match runtime.spawn_blocking(move || pledges.write(&pledge)).await {
            Ok(written) => written,
            Err(error) => Err(io::Error::other(error)),
        }
    }

    /// There will be no result. A job that was taken back, or is past its deadline, is known to be
    /// over: of it nothing is said.
    pub(super) fn failed(&self, job_id: Hash, reason: String) {
        let told = Reason::truncated(&reason);
        let failure = JobFailure::signed(self.chain_id, &self.key, job_id, told);
        let mut shared = self.shared.lock();
        shared.running.remove(&job_id);
        if let Some(failure) = shared.table.fail(failure) {
            // The chain has the beginning of the reason: here all of it can be read.
            tracing::warn!(runner = %self.public.address(), %job_id, reason, "job failed");
            self.say(Activity::Failed { job_id, reason });
            shared.deliver(Delivery::Failure(failure));
        }
        self.clear(&mut shared);
        shared.tell_load();
    }
}
