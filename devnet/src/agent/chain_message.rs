//! The agent's messages to the chain about tasks, each sent as a transaction.

use super::{core::Core, run::TaskRun};
use crate::speculation::pipeline::{TaskEntry, elements};
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

/// A message to be sent as a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChainMessage {
    pub(super) task: TaskId,
    pub(super) attempt: u32,
    pub(super) kind: MessageKind,
    /// Whether it may have been sent before, by this process or an earlier one: the chain is
    /// checked first.
    pub(super) doubtful: bool,
}

/// The instruction of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageKind {
    Create,
    /// The claim's end, Unix ms.
    Claim {
        until: u64,
    },
    Commit,
    Complete {
        submission: u64,
        wrong: bool,
    },
    /// `None` releases the bond.
    Resolve(Option<RollbackReason>),
}

/// The time and pace of a chain.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChainPace {
    pub(super) now: u64,
    pub(super) block_ms: u64,
}

impl MessageKind {
    /// The instruction's name on the chain.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Create => "create_task",
            Self::Claim { .. } => "claim_task",
            Self::Commit => "create_commitment",
            Self::Complete { .. } => "complete_task_private",
            Self::Resolve(_) => "resolve_commitment",
        }
    }
}

impl ChainMessage {
    /// Whether the chain's state already contains this message's effect, so that it need not be
    /// sent.
    pub(super) fn is_answered(&self, state: &State, agent: &Address, core: &Core) -> bool {
        let task = state.task(&self.task);
        let completed = task.is_some_and(|task| task.status == TaskStatus::Completed);
        match self.kind {
            MessageKind::Create => task.is_some(),
            MessageKind::Claim { .. } => {
                let claim = task.and_then(|task| task.claim.as_ref());
                let holds = claim.filter(|claim| claim.expires_at > state.height());
                completed || holds.is_some_and(|claim| claim.agent == *agent)
            }
            MessageKind::Commit => {
                completed || task.is_some_and(|there| Commitment::of(core, &self.task).is(there))
            }
            MessageKind::Complete { .. } => completed,
            MessageKind::Resolve(_) => task.is_none_or(|task| {
                let of_agent = task.claim.as_ref().is_some_and(|claim| claim.agent == *agent);
                task.commitment.is_none() && (completed || !of_agent)
            }),
        }
    }

    /// The instruction as of now; `None` if it is obsolete.
    pub(super) fn payload(
        &self,
        core: &Core,
        (run, entry, parents): (&TaskRun, &TaskEntry, &[(Hash, bool)]),
        state: &State,
        pace: ChainPace,
    ) -> Option<Payload> {
        let (task_id, machine) = (self.task, &core.machine);
        let all = || parents.iter().map(|(parent, _)| *parent).collect();
        let head = state.height();
        let later = |blocks: u64| Height::new(head.get().saturating_add(blocks));
        let now_valid = run.attempt == self.attempt;
        Some(match self.kind {
            MessageKind::Create => {
                let expected = entry.expect.as_ref();
                let claim = run.claim_expires_at.saturating_sub(pace.now) / pace.block_ms.max(1);
                let attempts = claim.saturating_mul(entry.attempts.into());
                let waits = attempts.saturating_add(DEADLINE_MARGIN_BLOCKS).min(DEADLINE_BLOCKS);
                Payload::CreateTask(CreateTask {
                    task_id,
                    depends_on: all(),
                    order_only: parents.iter().filter(|(_, only)| *only).map(|(p, _)| *p).collect(),
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
                let Commitment { output, inputs, .. } = Commitment::of(core, &task_id);
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
}

/// The agent's commitment to a task's output.
pub(super) struct Commitment {
    agent: Address,
    /// `None` before the task has an output.
    output: Option<Hash>,
    /// The digest of the inputs that the output was made from.
    inputs: Option<Hash>,
}

impl Commitment {
    pub(super) fn of(core: &Core, task: &TaskId) -> Self {
        let output = core.machine.commitment(task).map(|one| one.opening.output_commitment);
        let inputs = core.task(task).and_then(|(run, at)| run.tasks[at].inputs);
        Self { agent: core.agent, output, inputs: inputs.map(|inputs| inputs.0) }
    }

    /// Whether the chain has this commitment.
    pub(super) fn is(&self, task: &Task) -> bool {
        let Some(there) = task.commitment else { return false };
        there.agent == self.agent
            && Some(Hash(there.output_commitment.to_bytes())) == self.output
            && Some(there.inputs) == self.inputs
    }
}
