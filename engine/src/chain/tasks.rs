//! Tasks that depend on one another (spec speculation.md, "On the chain"; AgenC §4.6).
//!
//! A creator puts a reward up for a task. An agent claims it until a height, commits to its output
//! with a bond, and completes it with a proof of that output, once all tasks that it depends on are
//! completed: the reward is the agent's. The bond goes back when the commitment is resolved; where
//! the work came to nothing, a share of it is burned, and the task can be claimed again.
//!
//! A commitment covers what its parents have committed to ([`inputs_digest`]), and the statement
//! proved covers that digest ([`statement_task`]). An output that was made from another output of
//! a parent than the one completed therefore completes nothing. What the chain cannot see is
//! whether an agent's digest is honest: the circuit does not execute tasks.
//!
//! ```text
//!          claim           proof
//!  open ──────────▶ claimed ──────▶ completed
//!   ▲ │                │ │
//!   │ │   given up, or │ │
//!   │ │  proof refused │ │
//!   └─┼────────────────┘ │ deadline
//!     └──────────────────┴─────────▶ expired
//! ```
//!
//! What each step asks for stands with [`TaskError`](super::TaskError), in
//! [`transition`](super::transition).

use super::state::State;
use crate::{
    names,
    primitives::{
        Address, Hash, Height, Wei,
        codec::{Decode, DecodeError, Encode, Reader, Writer},
        keccak256,
        merkle::Map,
    },
    proof::{Element, Generator, ProofError, Statement, VerifyingKey, mock},
    record,
    speculation::{Bonds, RollbackReason},
};
use std::collections::BTreeSet;

/// Tasks that one task depends on, at most: what is checked at its creation and its completion.
pub const MAX_PARENTS: usize = 16;
/// Blocks from a task's creation to its deadline, at most: some six days of half seconds.
pub const MAX_DEADLINE_BLOCKS: u64 = 1_000_000;
/// Tasks that expire in one block, at most; the others do in the next ones.
pub const MAX_EXPIRED_PER_BLOCK: usize = 256;
/// What a task may ask of agents, at most.
pub const MAX_REQUIREMENTS: usize = 8;
/// Bytes of one of these, at most.
pub const MAX_REQUIREMENT_BYTES: usize = 64;
/// Tasks that are looked at to count a commitment's depth, at most. With more above it, the depth
/// counted is what was found by then, and so is the least bond.
pub const MAX_DEPTH_LOOKUPS: usize = 128;

/// A transaction that puts a task up, its reward with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateTask {
    /// What it is called from now on: any 32 bytes that no task has yet.
    pub task_id: Hash,
    /// Tasks that must be completed before it, at most [`MAX_PARENTS`].
    pub depends_on: Vec<Hash>,
    /// Those of them whose outputs it does not read: it only comes after them.
    pub order_only: Vec<Hash>,
    /// hash_4 of the output that is asked for; absent: any output will do.
    pub constraint_hash: Option<Element>,
    /// What an agent needs, for agents to read: labels, at most [`MAX_REQUIREMENTS`].
    pub requirements: Vec<String>,
    /// What completing it is paid.
    pub reward: Wei,
    /// The last block that may complete it.
    pub deadline: Height,
}
record!(CreateTask {
    task_id,
    depends_on,
    order_only,
    constraint_hash,
    requirements,
    reward,
    deadline,
});

/// A transaction by which the sender alone may complete a task, until a height.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimTask {
    /// Which.
    pub task_id: Hash,
    /// The last block in which the claim counts, at most the task's deadline.
    pub expires_at: Height,
}
record!(ClaimTask { task_id, expires_at });

/// A transaction that binds the sender, who has claimed the task, to an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateCommitment {
    /// The task.
    pub task_id: Hash,
    /// hash_2 of the output's hash and a salt.
    pub output_commitment: Element,
    /// [`inputs_digest`] of what the output was made from.
    pub inputs: Hash,
    /// What is locked until the commitment is resolved, [`State::least_bond`] at least.
    pub bond: Wei,
    /// The last block that may complete the task with it; absent: that of the claim.
    pub expires_at: Option<Height>,
}
record!(CreateCommitment { task_id, output_commitment, inputs, bond, expires_at });

/// A transaction that proves that the sender has the output it committed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompleteTask {
    /// The task.
    pub task_id: Hash,
    /// All tasks that it depends on, in any order.
    pub parents: Vec<Hash>,
    /// The proof, [`PROOF_BYTES`](crate::proof::PROOF_BYTES) long.
    pub proof: Vec<u8>,
}
record!(CompleteTask { task_id, parents, proof });

/// A transaction that ends a commitment, or gives a claim up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolveCommitment {
    /// The task.
    pub task_id: Hash,
    /// Why the work came to nothing; absent: it did not, the task is completed.
    pub reason: Option<RollbackReason>,
}
record!(ResolveCommitment { task_id, reason });

/// Where a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TaskStatus {
    /// Nobody has claimed it.
    Open,
    /// An agent works on it, or its claim is past and nobody has said so yet.
    Claimed,
    /// Proved and paid.
    Completed,
    /// Its deadline passed before.
    Expired,
}

names!(TaskStatus:
    Open = "open",
    Claimed = "claimed",
    Completed = "completed",
    Expired = "expired",
);

/// Who may complete a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskClaim {
    /// Who.
    pub agent: Address,
    /// The last block in which the claim counts.
    pub expires_at: Height,
}
record!(TaskClaim { agent, expires_at });

impl TaskClaim {
    /// Whether it counts no longer in the block at `height`.
    pub const fn is_past(&self, height: Height) -> bool {
        self.expires_at.get() < height.get()
    }
}

/// What an agent has committed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskCommitment {
    /// Who.
    pub agent: Address,
    /// hash_2 of the output's hash and a salt.
    pub output_commitment: Element,
    /// [`inputs_digest`] of what the output was made from.
    pub inputs: Hash,
    /// What is locked.
    pub bond: Wei,
    /// Tasks on the longest path above it that were not completed when it was made, as far as
    /// [`MAX_DEPTH_LOOKUPS`] shows.
    pub depth: u32,
    /// The block it was made in.
    pub created_at: Height,
    /// The last block that may complete the task with it; absent: that of the claim.
    pub expires_at: Option<Height>,
}
record!(TaskCommitment { agent, output_commitment, inputs, bond, depth, created_at, expires_at });

impl TaskCommitment {
    /// Whether it completes nothing any more in the block at `height`, by a time of its own.
    pub fn is_past(&self, height: Height) -> bool {
        self.expires_at.is_some_and(|last| last < height)
    }
}

/// A task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Whose reward it is.
    pub creator: Address,
    /// Tasks that must be completed before it, as they were listed.
    pub depends_on: Vec<Hash>,
    /// Those of them whose outputs it does not read.
    pub order_only: Vec<Hash>,
    /// Tasks on the longest path above it that were not completed when it was created. A parent
    /// counts as deep as it stood at its own creation, whatever was completed above it since.
    pub speculation_depth: u32,
    /// hash_4 of the output that is asked for; absent: any output will do.
    pub constraint_hash: Option<Element>,
    /// What an agent needs, in the creator's words.
    pub requirements: Vec<String>,
    /// What completing it is paid.
    pub reward: Wei,
    /// The last block that may complete it.
    pub deadline: Height,
    /// Where it stands.
    pub status: TaskStatus,
    /// Who works on it, or has completed it.
    pub claim: Option<TaskClaim>,
    /// What that agent has committed to; it stays, the task completed, until it is resolved.
    pub commitment: Option<TaskCommitment>,
    /// The commitment to the output that was proved, from its completion on.
    pub output: Option<Element>,
    /// The last block in which a commitment to it came to nothing.
    pub failed_at: Option<Height>,
    /// The block it was created in.
    pub created_at: Height,
    /// The block it was completed in.
    pub completed_at: Option<Height>,
}
record!(Task {
    creator,
    depends_on,
    order_only,
    speculation_depth,
    constraint_hash,
    requirements,
    reward,
    deadline,
    status,
    claim,
    commitment,
    output,
    failed_at,
    created_at,
    completed_at,
});

impl Task {
    /// Whether it can be completed no more: it was, or its deadline passed.
    pub const fn has_ended(&self) -> bool {
        matches!(self.status, TaskStatus::Completed | TaskStatus::Expired)
    }

    /// What was proved of its output, or else what its agent has committed to.
    pub fn output_commitment(&self) -> Option<Element> {
        self.output.or_else(|| self.commitment.map(|commitment| commitment.output_commitment))
    }

    /// The tasks whose outputs it reads, in the order of [`Self::depends_on`].
    pub fn reads(&self) -> impl Iterator<Item = &Hash> {
        self.depends_on.iter().filter(|parent| !self.order_only.contains(parent))
    }
}

/// What an output was made from: keccak256("cowboy/task-inputs/v1" ‖ for each task that is read, in
/// the order of [`Task::depends_on`], its id (32 bytes) ‖ its output commitment (32 bytes,
/// big-endian)).
pub fn inputs_digest(parents: impl IntoIterator<Item = (Hash, Element)>) -> Hash {
    let mut bytes = Vec::new();
    for (task_id, output_commitment) in parents {
        bytes.extend_from_slice(&task_id.0);
        bytes.extend_from_slice(&output_commitment.to_bytes());
    }
    keccak256(&[b"cowboy/task-inputs/v1", &bytes])
}

/// The 32 bytes that name a task and what its output was made from in a statement, as its first
/// public input: keccak256("cowboy/task-statement/v1" ‖ task id ‖ inputs digest).
pub fn statement_task(task_id: &Hash, inputs: &Hash) -> [u8; 32] {
    keccak256(&[b"cowboy/task-statement/v1", &task_id.0, &inputs.0]).0
}

/// The tasks of a state.
#[derive(Clone, Debug, Default)]
pub(super) struct Tasks {
    /// All of them.
    pub by_id: Map<Hash, Task>,
    /// Those that have not ended, by deadline, with what is held for them.
    pub open: Map<(Height, Hash), Wei>,
}
record!(Tasks { by_id, open });

impl State {
    /// A task.
    pub fn task(&self, id: &Hash) -> Option<&Task> {
        self.tasks.by_id.get(id)
    }

    /// Every task, by id.
    pub fn tasks(&self) -> impl Iterator<Item = (&Hash, &Task)> {
        self.tasks.by_id.iter()
    }

    /// Tasks that have not ended, by deadline, then id.
    pub fn open_tasks(&self) -> impl Iterator<Item = (&Hash, &Task)> {
        self.tasks.open.iter().filter_map(|((_, id), _)| Some((id, self.task(id)?)))
    }

    /// Tasks on the longest path above one that depends on `parents`, as far as they are not
    /// completed: see [`Task::speculation_depth`].
    pub(super) fn task_depth(&self, parents: &[Hash]) -> u32 {
        let parents = parents.iter().filter_map(|parent| self.task(parent));
        let waiting = parents.filter(|parent| parent.status != TaskStatus::Completed);
        waiting.map(|parent| parent.speculation_depth.saturating_add(1)).max().unwrap_or(0)
    }

    /// Tasks on the longest path above a task that are not completed now: level by level, until
    /// [`MAX_DEPTH_LOOKUPS`] tasks were looked at. No more than there are.
    pub(super) fn depth_now(&self, task: &Task) -> u32 {
        let (mut depth, mut looked_at) = (0, 0);
        let mut level: BTreeSet<Hash> = task.depends_on.iter().copied().collect();
        loop {
            let mut above = BTreeSet::new();
            let mut waits = false;
            for parent in level {
                if looked_at == MAX_DEPTH_LOOKUPS {
                    return if waits { depth + 1 } else { depth };
                }
                looked_at += 1;
                let parent = self.task(&parent).filter(|task| !task.has_ended());
                if let Some(parent) = parent {
                    waits = true;
                    // No more than can be looked at.
                    if looked_at + above.len() < MAX_DEPTH_LOOKUPS {
                        above.extend(&parent.depends_on);
                    }
                }
            }
            if !waits {
                return depth;
            }
            depth += 1;
            level = above;
        }
    }

    /// What is governed of bonds, as the next block finds it.
    pub const fn bonds(&self) -> &Bonds {
        &self.bonds
    }

    /// The least bond of a commitment to a task in the next block; `None`: there is no such task.
    pub fn least_bond(&self, task_id: &Hash) -> Option<Wei> {
        Some(self.bonds.least(self.depth_now(self.task(task_id)?)))
    }
}

/// How tasks are proved, fixed at genesis, and the first values of what is governed of bonds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    /// What proofs are checked with.
    pub scheme: Scheme,
    /// Least bonds, and what reasons cost.
    pub bonds: Bonds,
}
record!(Params { scheme, bonds });

/// Hashes in place of proofs, under a key that everybody knows.
impl Default for Params {
    fn default() -> Self {
        Self { scheme: Scheme::Mock([0; 32]), bonds: Bonds::DEFAULT }
    }
}

/// A kind of proof, and what it is checked with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Real proofs.
    Groth16(VerifyingKey),
    /// Hashes under this key, which prove nothing.
    Mock([u8; 32]),
}

impl Scheme {
    /// The kind of proof.
    pub const fn generator(&self) -> Generator {
        match self {
            Self::Groth16(_) => Generator::Groth16,
            Self::Mock(_) => Generator::Mock,
        }
    }

    /// The name of the key that proofs are checked with.
    pub fn key_id(&self) -> Hash {
        match self {
            Self::Groth16(key) => key.id(),
            Self::Mock(key) => keccak256(&[b"cowboy/mock-key/v1", key]),
        }
    }

    /// Checks that `bytes` are a proof of `statement`.
    pub fn verify(&self, statement: &Statement, bytes: &[u8]) -> Result<(), ProofError> {
        match self {
            Self::Groth16(key) => key.verify(statement, bytes),
            Self::Mock(key) => mock::verify(key, statement, bytes),
        }
    }

    /// Checks each, all at once where that is cheaper: the verdicts of [`Self::verify`].
    pub fn verify_batch(&self, batch: &[(Statement, &[u8])]) -> Vec<Result<(), ProofError>> {
        match self {
            Self::Groth16(key) => key.verify_batch(batch),
            Self::Mock(_) => {
                batch.iter().map(|(statement, bytes)| self.verify(statement, bytes)).collect()
            }
        }
    }
}

/// A pair of the kind's name and its key.
impl Encode for Scheme {
    fn encode(&self, w: &mut Writer) {
        w.list(2);
        w.text(self.generator().name());
        match self {
            Self::Groth16(key) => key.encode(w),
            Self::Mock(key) => key.encode(w),
        }
    }
}

impl Decode for Scheme {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let unknown = DecodeError::Invalid("a scheme is a pair of `groth16` or `mock` and a key");
        if r.list(2)? != 2 {
            return Err(unknown);
        }
        match Generator::named(r.text(32)?) {
            Some(Generator::Groth16) => Decode::decode(r).map(Self::Groth16),
            Some(Generator::Mock) => Decode::decode(r).map(Self::Mock),
            Some(Generator::Plonk | Generator::Stark) | None => Err(unknown),
        }
    }
}

/// The 32 bytes by which an account stands in a statement: twelve zeros, then its address.
pub fn statement_agent(agent: &Address) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[12..].copy_from_slice(&agent.0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        primitives::codec::{from_slice, to_vec},
        proof::ProvingKey,
    };

    #[test]
    fn a_scheme_has_one_form() {
        let key = ProvingKey::setup(&[1; 32]).verifying_key().clone();
        for scheme in [Scheme::Groth16(key), Scheme::Mock([7; 32])] {
            assert_eq!(from_slice(&to_vec(&scheme)), Ok(scheme));
        }
        let mut w = Writer::new();
        w.list(2);
        w.text("plonk");
        w.bytes(&[7; 32]);
        let unknown = from_slice::<Scheme>(&w.finish());
        assert!(matches!(unknown, Err(DecodeError::Invalid(_))), "{unknown:?}");
    }

    #[test]
    fn inputs_are_told_apart_by_task_order_and_output() {
        let parent = |id: u8, output: u64| (Hash([id; 32]), Element::from(output));
        let digests = [
            inputs_digest([]),
            inputs_digest([parent(1, 5)]),
            inputs_digest([parent(1, 6)]),
            inputs_digest([parent(2, 5)]),
            inputs_digest([parent(1, 5), parent(2, 6)]),
            inputs_digest([parent(2, 6), parent(1, 5)]),
        ];
        let distinct: BTreeSet<_> = digests.iter().collect();
        assert_eq!(distinct.len(), digests.len());
        // Restated from the documented bytes.
        let bytes = [&[1; 32][..], &Element::from(5).to_bytes()].concat();
        assert_eq!(digests[1], keccak256(&[b"cowboy/task-inputs/v1", &bytes]));
        let all = [&b"cowboy/task-statement/v1"[..], &[7; 32], &digests[1].0].concat();
        assert_eq!(statement_task(&Hash([7; 32]), &digests[1]), keccak256(&[&all]).0);
    }

    #[test]
    fn an_address_is_a_number_in_a_statement() {
        let bytes = statement_agent(&Address([0xff; 20]));
        assert_eq!(bytes[..12], [0; 12]);
        assert_eq!(bytes[12..], [0xff; 20]);
        assert_eq!(Element::reduce(&bytes).to_bytes(), bytes, "below the modulus");
    }
}
