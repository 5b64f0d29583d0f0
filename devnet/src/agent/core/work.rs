//! A task's work: the runner that does it, its output, and the commitment to that output.

use super::Core;
use crate::{
    agent::chain_message::MessageKind,
    speculation::pipeline::elements,
    types::{TASK_EXECUTING, TaskStatus},
};
use cowboy_engine::{
    chain::inputs_digest,
    primitives::{Hash, keccak256},
    proof::{Element, Witness},
    speculation::{Opening, TaskId},
};
use serde_json::json;
use std::sync::Arc;

impl Core {
    /// A runner has begun a task's work, or (`None`) no suitable runner is free.
    pub(in crate::agent) fn given(
        &mut self,
        task: &TaskId,
        attempt: u32,
        runner: Option<String>,
        now: u64,
    ) {
        if let Some(place) = self.present(task, attempt, TaskStatus::Running) {
            if let Some(runner) = &runner {
                let data = json!({ "attempt": attempt, "runner": runner });
                self.tell_of(task, TASK_EXECUTING, data, now);
            }
            let none = || "no runner that can do it is there and free: it waits for one".to_owned();
            let reason = runner.is_none().then(none);
            self.change(place, |task| (task.runner, task.reason) = (runner, reason));
        }
    }

    pub(in crate::agent) fn worked(
        &mut self,
        task: &TaskId,
        attempt: u32,
        outcome: Result<Vec<u8>, String>,
        now: u64,
    ) {
        self.machine.advance(now);
        self.heed_all(now);
        let Some((number, at)) = self.present(task, attempt, TaskStatus::Running) else { return };
        match outcome {
            Ok(output) => self.executed(number, at, Arc::new(output), now),
            Err(error) => self.fails((number, at), error, now),
        }
        self.stirred = true;
        self.go_on(now);
    }

    /// The witness of a task's output: its salt follows from the agent's secret, so that the same
    /// output always has the same commitment.
    pub(super) fn witness(&self, task: &TaskId, output: &[u8]) -> Witness {
        let digest = keccak256(&[output]);
        let salt = keccak256(&[b"cowboy/salt/v1", &self.secret, &task.0, &digest.0]);
        Witness { output: elements(output), salt: Element::reduce(&salt.0) }
    }

    pub(super) fn inputs_of(&self, number: u64, at: usize) -> Hash {
        let run = &self.runs[&number];
        let reads = run.pipeline.tasks[at].parents.iter().filter(|(_, order_only)| !order_only);
        inputs_digest(reads.map(|(parent, _)| {
            let task = &run.tasks[*parent];
            let output = task.output.as_deref().map_or(&[][..], Vec::as_slice);
            (task.id, self.witness(&task.id, output).output_commitment())
        }))
    }

    pub(super) fn executed(&mut self, number: u64, at: usize, output: Arc<Vec<u8>>, now: u64) {
        let id = self.runs[&number].tasks[at].id;
        let witness = self.witness(&id, &output);
        let opening = Opening {
            output_commitment: Hash(witness.output_commitment().to_bytes()),
            constraint_hash: Hash(witness.constraint_hash().to_bytes()),
            salt: witness.salt.to_bytes(),
        };
        let taken = self.runs[&number].tasks[at].taken;
        if taken.is_some_and(|taken| taken.0 != opening.output_commitment) {
            return self.is_another((number, at), now);
        }
        if let Err(error) = self.machine.executed(id, opening, now) {
            tracing::warn!(task = %id, %error, "output not taken");
            return;
        }
        let before = self.runs[&number].tasks[at].output.as_ref().map_or(0, |o| o.len() as u64);
        self.output_bytes = self.output_bytes - before + output.len() as u64;
        let attempt = self.runs[&number].tasks[at].attempt;
        self.dirty_outputs.insert((number, at));
        self.change((number, at), |task| {
            task.status = TaskStatus::Proving;
            task.reason = None;
            task.times.executed = Some(now);
            task.output = Some(output);
        });
        if self.runs[&number].entry(at).checkpoint {
            self.machine.checkpoint(&id);
        }
        self.send(id, attempt, MessageKind::Commit);
        let run = &self.runs[&number];
        let waits = |child: &usize| run.tasks[*child].status == TaskStatus::Waiting;
        let children = run.children[at].iter().copied();
        let able: Vec<_> = children.filter(waits).filter(|child| run.can_run(*child)).collect();
        for child in able {
            self.set_ready(number, child, true);
        }
        self.stirred = true;
    }
}
