//! The instructions of messages to the chain, as of the moment in which they are sent.

use super::Core;
use crate::{
    agent::chain_message::{ChainMessage, ChainPace, MessageKind},
    speculation::pipeline::elements,
};
use cowboy_engine::{
    chain::{
        Payload, State, Task, TaskStatus,
        tasks::{ClaimTask, CompleteTask, CreateCommitment, CreateTask, ResolveCommitment},
    },
    primitives::{Address, Hash, Height, Wei},
    proof::{Element, PROOF_BYTES, hash_4},
    speculation::{RollbackReason, TaskId},
};

/// Longest wait of the chain for a task, and its margin beyond the time of all attempts, in blocks.
const DEADLINE_BLOCKS: u64 = 500_000;
const DEADLINE_MARGIN_BLOCKS: u64 = 10_000;
/// How many blocks longer a claim lasts on the chain than for the agent, so that the agent acts
/// first when it expires.
const CLAIM_MARGIN_BLOCKS: u64 = 4;

impl Core {
    /// Whether the chain's state already contains a message's effect, so that it need not be sent.
    pub(in crate::agent) fn is_answered(&self, message: &ChainMessage, state: &State) -> bool {
        let task = state.task(&message.task);
        let completed = task.is_some_and(|task| task.status == TaskStatus::Completed);
        match message.kind {
            MessageKind::Create => task.is_some(),
            MessageKind::Claim { .. } => {
                let claim = task.and_then(|task| task.claim.as_ref());
                let holds = claim.filter(|claim| claim.expires_at > state.height());
                completed || holds.is_some_and(|claim| claim.agent == self.agent)
            }
            MessageKind::Commit => {
                completed || task.is_some_and(|there| self.commitment(&message.task).is(there))
            }
            MessageKind::Complete { .. } => completed,
            MessageKind::Resolve(_) => task.is_none_or(|task| {
                let of_agent = task.claim.as_ref().is_some_and(|claim| claim.agent == self.agent);
                task.commitment.is_none() && (completed || !of_agent)
            }),
        }
    }

    /// A message's instruction as of now; `None` if it is obsolete.
    pub(in crate::agent) fn payload(
        &self,
        message: &ChainMessage,
        state: &State,
        pace: ChainPace,
    ) -> Option<Payload> {
        let (task_id, machine) = (message.task, &self.machine);
        let (pipeline, at) = self.task(&task_id)?;
        let (run, entry) = (&pipeline.tasks[at], pipeline.entry(at));
        let parents = pipeline.pipeline.tasks[at].parents.iter();
        let parents = parents.map(|(parent, only)| (pipeline.tasks[*parent].id, *only));
        let all = || parents.clone().map(|(parent, _)| parent).collect();
        let head = state.height();
        let later = |blocks: u64| Height::new(head.get().saturating_add(blocks));
        let now_valid = run.attempt == message.attempt;
        Some(match message.kind {
            MessageKind::Create => {
                let expected = entry.expect.as_ref();
                let claim = run.claim_expires_at.saturating_sub(pace.now) / pace.block_ms.max(1);
                let attempts = claim.saturating_mul(entry.attempts.into());
                let waits = attempts.saturating_add(DEADLINE_MARGIN_BLOCKS).min(DEADLINE_BLOCKS);
                Payload::CreateTask(CreateTask {
                    task_id,
                    depends_on: all(),
                    order_only: parents.clone().filter(|(_, only)| *only).map(|(p, _)| p).collect(),
                    constraint_hash: expected.map(|text| hash_4(elements(text.as_bytes()))),
                    requirements: Vec::new(),
                    reward: Wei::new(entry.reward.into()),
                    deadline: later(waits),
                })
            }
            MessageKind::Claim { until } => {
                // The claim has been extended if the chain was away since.
                let live = machine.task(&task_id).filter(|_| now_valid);
                let until = live.map_or(until, |live| until.max(live.claim_expires_at));
                let blocks = until.saturating_sub(pace.now).div_ceil(pace.block_ms.max(1));
                let blocks = blocks.saturating_add(CLAIM_MARGIN_BLOCKS);
                let deadline = state.task(&task_id).map_or(later(blocks), |task| task.deadline);
                Payload::ClaimTask(ClaimTask { task_id, expires_at: later(blocks).min(deadline) })
            }
            MessageKind::Commit => {
                let Commitment { output, inputs, .. } = self.commitment(&task_id);
                let output_commitment = Element::from_bytes(&output.filter(|_| now_valid)?.0)?;
                Payload::CreateCommitment(CreateCommitment {
                    task_id,
                    output_commitment,
                    inputs: inputs?,
                    bond: Wei::new(run.bond?.into()),
                    expires_at: None,
                })
            }
            MessageKind::Complete { wrong, .. } => {
                let mut proof = *machine.proof(&task_id).filter(|_| now_valid)?;
                if wrong {
                    proof[PROOF_BYTES / 2] ^= 1;
                }
                let proof = proof.to_vec();
                Payload::CompleteTask(CompleteTask { task_id, parents: all(), proof })
            }
            MessageKind::Resolve(reason) => {
                let completed =
                    state.task(&task_id).is_some_and(|t| t.status == TaskStatus::Completed);
                let past = state.task(&task_id).and_then(|task| task.claim.as_ref());
                let past = past.is_some_and(|claim| claim.is_past(head.next()));
                let expired = RollbackReason::ClaimExpired;
                let reason = reason.filter(|_| !completed);
                let reason = reason.map(|reason| if past { expired } else { reason });
                Payload::ResolveCommitment(ResolveCommitment { task_id, reason })
            }
        })
    }

    pub(super) fn commitment(&self, task: &TaskId) -> Commitment {
        let output = self.machine.commitment(task).map(|one| one.opening.output_commitment);
        let inputs = self.task(task).and_then(|(run, at)| run.tasks[at].inputs);
        Commitment { agent: self.agent, output, inputs: inputs.map(|inputs| inputs.0) }
    }
}

pub(super) struct Commitment {
    agent: Address,
    /// `None` before the task has an output.
    output: Option<Hash>,
    inputs: Option<Hash>,
}

impl Commitment {
    pub(super) fn is(&self, task: &Task) -> bool {
        let Some(there) = task.commitment else { return false };
        there.agent == self.agent
            && Some(Hash(there.output_commitment.to_bytes())) == self.output
            && Some(there.inputs) == self.inputs
    }
}
