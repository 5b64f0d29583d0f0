//! One accepted job: the work on it, what it tells of its progress, what it comes to.

use super::{
    node::{Activity, Core},
    worker::{Progress, Worker},
};
use commonware_runtime::{Clock, Spawner};
use cowboy_engine::{job::spec::JobSpec, primitives::Hash};
use std::{pin::pin, sync::Arc, time::Duration};
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
        let started = || core.say(Activity::Started { job_id, at: context.current() });
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
            Ok(bytes) => core.finished(job_id, bytes, in_committee),
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
