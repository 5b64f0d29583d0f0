//! Proofs: their orders, and the provers' reports that one was begun, restarted, made or given up.

use super::{AgentAction, Core, Count, ToProve};
use crate::{agent::spans::TaskStage, speculation::pipeline::TaskFault, types::TaskStatus};
use cowboy_engine::{
    chain::statement_task,
    primitives::{Hash, keccak256},
    speculation::{RollbackReason, TaskId},
};

impl Core {
    pub(in crate::agent) fn proof_seed(&self, task: &TaskId) -> [u8; 32] {
        keccak256(&[b"cowboy/proof-seed/v1", &self.secret, &task.0]).0
    }

    /// Asks for a task's proof, or for a false one if a fault says so.
    pub(super) fn prove(&mut self, task: TaskId) {
        let Some((number, at)) = self.place(&task) else { return };
        let run = &self.runs[&number];
        let (attempt, fault) = (run.tasks[at].attempt, run.pipeline.tasks[at].fault);
        let fault = fault.filter(|_| attempt == 1);
        let Some(output) = run.tasks[at].output.clone() else { return };
        let more = match fault {
            Some(TaskFault::Slow(ms)) => ms,
            _ => 0,
        };
        let latency_ms = self.options.proof_latency_ms.saturating_add(more);
        let inputs = run.tasks[at].inputs.map_or(Hash::ZERO, |inputs| inputs.0);
        let witness = self.witness(&task, &output);
        let honest = ToProve { task: statement_task(&task, &inputs), witness, says: None };
        let false_one = fault.and_then(|fault| self.misproof((number, at), fault, &honest));
        let what = Box::new(false_one.unwrap_or(honest));
        let crash = fault == Some(TaskFault::Crash);
        self.actions.push(AgentAction::Prove { task, attempt, what, latency_ms, crash });
    }

    pub(in crate::agent) fn proving(&mut self, task: &TaskId, attempt: u32, now: u64) {
        if let Some((number, _)) = self.present(task, attempt, TaskStatus::Proving) {
            match self.machine.proving(*task, now) {
                Ok(()) => self.spans.begin(number, task, TaskStage::Generate, attempt),
                Err(error) => tracing::debug!(%task, %error, "its proof is not expected"),
            }
        }
        self.go_on(now);
    }

    /// The proof is restarted while attempts are left.
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
