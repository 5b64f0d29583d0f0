//! Tasks that depend on one another (spec speculation.md, "On the chain"; AgenC §4.6).
//!
//! A creator offers a reward for a task. An agent claims it until a height, commits to its output
//! with a bond and, once all tasks it depends on are completed, completes it with a proof of that
//! output. The agent then gets the reward. The bond is returned when the commitment is resolved; if
//! the work failed, a share of the bond is burned and the task can be claimed again.
//!
//! A commitment covers the commitments of the task's parents ([`inputs_digest`]), and the proved
//! statement covers that digest ([`statement_task`]). An output made from another output of a
//! parent than the completed one therefore cannot complete its task. The chain cannot see whether
//! an agent's digest is honest, because the circuit does not execute tasks.
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
//! [`TaskError`](super::TaskError) lists the conditions of each step, which
//! [`transition`](super::transition) checks.

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

/// Maximum number of tasks that a task depends on: all are checked when it is created and
/// completed.
pub const MAX_PARENTS: usize = 16;
/// Maximum number of blocks from a task's creation to its deadline: about six days at two blocks a
/// second.
pub const MAX_DEADLINE_BLOCKS: u64 = 1_000_000;
/// Maximum number of tasks that expire in one block; the rest expire in later blocks.
pub const MAX_EXPIRED_PER_BLOCK: usize = 256;
/// Maximum number of requirements of a task.
pub const MAX_REQUIREMENTS: usize = 8;
/// Maximum length of a requirement, in bytes.
pub const MAX_REQUIREMENT_BYTES: usize = 64;
/// Maximum number of tasks visited to compute a commitment's depth. If more tasks are above it, the
/// depth counts only those visited, and the least bond follows that depth.
pub const MAX_DEPTH_LOOKUPS: usize = 128;

record! {
    /// A transaction that creates a task and puts up its reward.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct CreateTask {
        /// Any 32 bytes that no task has yet.
        pub task_id: Hash,
        /// Tasks that must be completed first, at most [`MAX_PARENTS`].
        pub depends_on: Vec<Hash>,
        /// The tasks in `depends_on` whose outputs it does not read: only their completion matters.
        pub order_only: Vec<Hash>,
        /// hash_4 of the required output; absent: any output will do.
        pub constraint_hash: Option<Element>,
        /// Labels for agents to read, at most [`MAX_REQUIREMENTS`].
        pub requirements: Vec<String>,
        pub reward: Wei,
        /// The last block in which the task can be completed.
        pub deadline: Height,
    }
}

/// A transaction that reserves a task for the sender, until a height.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimTask {
    pub task_id: Hash,
    /// The last block in which the claim counts, at most the task's deadline.
    pub expires_at: Height,
}
record!(ClaimTask { task_id, expires_at });

/// A transaction that binds the sender to an output of a task it has claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateCommitment {
    pub task_id: Hash,
    /// hash_2 of the output's hash and a salt.
    pub output_commitment: Element,
    /// [`inputs_digest`] of the inputs that the output was made from.
    pub inputs: Hash,
    /// Locked until the commitment is resolved; at least
    /// [`State::least_bond`](super::State::least_bond).
    pub bond: Wei,
    /// The last block in which it can complete the task; absent: that of the claim.
    pub expires_at: Option<Height>,
}
record!(CreateCommitment { task_id, output_commitment, inputs, bond, expires_at });

/// A transaction that proves that the sender has the output it committed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompleteTask {
    pub task_id: Hash,
    /// All tasks that the task depends on, in any order.
    pub parents: Vec<Hash>,
    /// The proof, of [`PROOF_BYTES`](crate::proof::PROOF_BYTES) bytes.
    pub proof: Vec<u8>,
}
record!(CompleteTask { task_id, parents, proof });

/// A transaction that ends a commitment or gives up a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolveCommitment {
    pub task_id: Hash,
    /// Why the work failed; absent if the task is completed.
    pub reason: Option<RollbackReason>,
}
record!(ResolveCommitment { task_id, reason });

names! {
    /// The lifecycle state of a task.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum TaskStatus {
        Open = "open",
        /// An agent has claimed it. Stays so after the claim expires, until a transaction ends it.
        Claimed = "claimed",
        /// Proved, and its reward paid.
        Completed = "completed",
        /// Not completed by its deadline.
        Expired = "expired",
    }
}

/// The agent that alone may complete a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskClaim {
    pub agent: Address,
    /// The last block in which the claim counts.
    pub expires_at: Height,
}
record!(TaskClaim { agent, expires_at });

impl TaskClaim {
    /// Whether the claim no longer counts in the block at `height`.
    pub const fn is_past(&self, height: Height) -> bool {
        self.expires_at.get() < height.get()
    }
}

/// An agent's commitment to a task's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskCommitment {
    pub agent: Address,
    /// hash_2 of the output's hash and a salt.
    pub output_commitment: Element,
    /// [`inputs_digest`] of the inputs that the output was made from.
    pub inputs: Hash,
    pub bond: Wei,
    /// Number of uncompleted tasks on the longest path above the task when the commitment was made,
    /// within [`MAX_DEPTH_LOOKUPS`].
    pub depth: u32,
    pub created_at: Height,
    /// The last block in which it can complete the task; absent: that of the claim.
    pub expires_at: Option<Height>,
}
record!(TaskCommitment { agent, output_commitment, inputs, bond, depth, created_at, expires_at });

impl TaskCommitment {
    /// Whether the commitment has expired in the block at `height`, by an expiry of its own.
    pub fn is_past(&self, height: Height) -> bool {
        self.expires_at.is_some_and(|last| last < height)
    }
}

record! {
    /// A task on the chain (spec speculation.md).
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Task {
        pub creator: Address,
        /// Tasks that must be completed first, in the creator's order.
        pub depends_on: Vec<Hash>,
        /// The tasks in `depends_on` whose outputs it does not read.
        pub order_only: Vec<Hash>,
        /// Number of uncompleted tasks on the longest path above it when it was created. A parent
        /// counts with the depth it had at its own creation, even if tasks above it were completed
        /// later.
        pub speculation_depth: u32,
        /// hash_4 of the required output; absent: any output will do.
        pub constraint_hash: Option<Element>,
        pub requirements: Vec<String>,
        pub reward: Wei,
        /// The last block in which the task can be completed.
        pub deadline: Height,
        pub status: TaskStatus,
        /// The agent that works on the task, or has completed it.
        pub claim: Option<TaskClaim>,
        /// That agent's commitment. It stays on a completed task until it is resolved.
        pub commitment: Option<TaskCommitment>,
        /// The commitment to the proved output; set on completion.
        pub output: Option<Element>,
        /// The last block in which a commitment to the task failed.
        pub failed_at: Option<Height>,
        pub created_at: Height,
        pub completed_at: Option<Height>,
    }
}

impl Task {
    pub const fn has_ended(&self) -> bool {
        matches!(self.status, TaskStatus::Completed | TaskStatus::Expired)
    }

    /// The commitment to the proved output, or the agent's open commitment.
    pub fn output_commitment(&self) -> Option<Element> {
        self.output.or_else(|| self.commitment.map(|commitment| commitment.output_commitment))
    }

    /// The tasks whose outputs it reads, in the order of [`Self::depends_on`].
    pub fn reads(&self) -> impl Iterator<Item = &Hash> {
        self.depends_on.iter().filter(|parent| !self.order_only.contains(parent))
    }
}

/// The digest of an output's inputs: keccak256("cowboy/task-inputs/v1" ‖ for each task read, in the
/// order of [`Task::depends_on`], its id (32 bytes) ‖ its output commitment (32 bytes,
/// big-endian)).
pub fn inputs_digest(parents: impl IntoIterator<Item = (Hash, Element)>) -> Hash {
    let mut bytes = Vec::new();
    for (task_id, output_commitment) in parents {
        bytes.extend_from_slice(&task_id.0);
        bytes.extend_from_slice(&output_commitment.to_bytes());
    }
    keccak256(&[b"cowboy/task-inputs/v1", &bytes])
}

/// The first public input of a statement, which names a task and its inputs:
/// keccak256("cowboy/task-statement/v1" ‖ task id ‖ inputs digest).
pub fn statement_task(task_id: &Hash, inputs: &Hash) -> [u8; 32] {
    keccak256(&[b"cowboy/task-statement/v1", &task_id.0, &inputs.0]).0
}

impl Task {
    /// The same task, with the times that are still ahead of it `blocks` later.
    fn later(self, blocks: u64) -> Self {
        if self.has_ended() {
            return self;
        }
        let claim = self
            .claim
            .map(|claim| TaskClaim { expires_at: claim.expires_at.after(blocks), ..claim });
        let commitment = self.commitment.map(|commitment| TaskCommitment {
            expires_at: commitment.expires_at.map(|last| last.after(blocks)),
            ..commitment
        });
        Self { deadline: self.deadline.after(blocks), claim, commitment, ..self }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Tasks {
    pub by_id: Map<Hash, Task>,
    /// Tasks that have not ended, by deadline, with the escrow held for them.
    pub open: Map<(Height, Hash), Wei>,
}
record!(Tasks { by_id, open });

impl Tasks {
    /// The same, `blocks` later.
    pub fn later(self, blocks: u64) -> Self {
        let mut open = Map::new();
        for ((deadline, id), reward) in self.open.iter() {
            open.insert((deadline.after(blocks), *id), *reward);
        }
        Self { by_id: self.by_id.map_values(|task| task.later(blocks)), open }
    }
}

/// How tasks are proved, fixed at genesis, and the initial values of the governed bond parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskParams {
    pub scheme: Scheme,
    pub bonds: Bonds,
}
record!(TaskParams { scheme, bonds });

/// Hashes in place of proofs, under a publicly known key.
impl Default for TaskParams {
    fn default() -> Self {
        Self { scheme: Scheme::Mock([0; 32]), bonds: Bonds::DEFAULT }
    }
}

/// A proof system and its verification key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scheme {
    Groth16(VerifyingKey),
    /// Hashes under this key, which prove nothing.
    Mock([u8; 32]),
}

impl Scheme {
    pub const fn generator(&self) -> Generator {
        match self {
            Self::Groth16(_) => Generator::Groth16,
            Self::Mock(_) => Generator::Mock,
        }
    }

    pub fn key_id(&self) -> Hash {
        match self {
            Self::Groth16(key) => key.id(),
            Self::Mock(key) => keccak256(&[b"cowboy/mock-key/v1", key]),
        }
    }

    pub fn verify(&self, statement: &Statement, bytes: &[u8]) -> Result<(), ProofError> {
        match self {
            Self::Groth16(key) => key.verify(statement, bytes),
            Self::Mock(key) => mock::verify(key, statement, bytes),
        }
    }

    /// Checks each proof, all at once if that is cheaper. Returns the verdicts of [`Self::verify`].
    pub fn verify_batch(&self, batch: &[(Statement, &[u8])]) -> Vec<Result<(), ProofError>> {
        match self {
            Self::Groth16(key) => key.verify_batch(batch),
            Self::Mock(_) => {
                batch.iter().map(|(statement, bytes)| self.verify(statement, bytes)).collect()
            }
        }
    }
}

/// Encodes the pair of the proof system's name and its key.
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

/// The 32 bytes that represent an account in a statement: twelve zeros, then its address.
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
    use std::collections::BTreeSet;

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
        // Computed independently from the documented bytes.
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
