//! Reports of the provers: proofs that were begun, restarted, made or given up.

use super::{Core, Count};
use crate::{agent::spans::TaskStage, api::types::TaskStatus};
use cowboy_engine::speculation::{RollbackReason, TaskId};

impl Core {
    /// A prover has begun a task's proof.
    pub(in crate::agent) fn proving(&mut self, task: &TaskId, attempt: u32, now: u64) {
        if let Some((number, _)) = self.present(task, attempt, TaskStatus::Proving) {
            match self.machine.proving(*task, now) {
                Ok(()) => self.spans.begin(number, task, TaskStage::Generate, attempt),
                Err(error) => tracing::debug!(%task, %error, "its proof is not expected"),
            }
        }
        self.go_on(now);
    }

    /// The prover of a task's proof died at this attempt. The proof is restarted while attempts are
    /// left.
    pub(in crate::agent) fn prover_lost(
        &mut self,
        task: &TaskId,
        attempt: u32,
        (of, error): (u64, &str),
    ) {
        if let Some(place) = self.present(task, attempt, TaskStatus::Proving) {
            let of_all = self.machine.config().max_retries;
            let reason = format!("{error}, at attempt {of} of {of_all}");
            self.change(place, |task| task.reason = Some(reason));
            self.spans.done(task, TaskStage::Generate, Err(error));
            if of < of_all {
                self.spans.begin(place.0, task, TaskStage::Generate, attempt);
            }
        }
    }

    /// A task's proof is made, or has failed.
    pub(in crate::agent) fn proved(
        &mut self,
        task: &TaskId,
        attempt: u32,
        outcome: Result<(Vec<u8>, u64), String>,
        now: u64,
    ) {
        let Some(place) = self.present(task, attempt, TaskStatus::Proving) else { return };
        let made = outcome.as_ref().map(|_| ()).map_err(|_| "the prover cannot make it");
        self.spans.done(task, TaskStage::Generate, made);
        match outcome {
            Ok((proof, took_ms)) => {
                self.change(place, |task| {
                    task.status = TaskStatus::Proved;
                    task.reason = None;
                    task.times.proved = Some(now);
                    task.proof_ms = Some(took_ms);
                });
                self.counts.push(Count::ProofGenerated { task: *task, took_ms });
                if let Err(error) = self.machine.proved(*task, &proof, now) {
                    tracing::warn!(%task, %error, "proof not taken");
                }
            }
            Err(error) => {
                self.counts.push(Count::ProofFailed { task: *task });
                self.change(place, |task| task.reason = Some(error));
                self.undo(*task, RollbackReason::ProofFailed, now);
            }
        }
        self.go_on(now);
    }
}
