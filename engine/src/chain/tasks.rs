//! Tasks that depend on one another (spec speculation.md, "On the chain"; AgenC §4.6).
//!
//! A creator puts a reward up for a task. An agent claims it until a height, commits to its output
//! with a bond, and completes it with a proof of that output, once all tasks that it depends on are
//! completed: the reward is the agent's. The bond goes back when the commitment is resolved; where
//! the work came to nothing, a share of it is burned, and the task can be claimed anew.
//!
//! ```text
//!          claim           proof
//!  open ──────────▶ claimed ──────▶ completed
//!   ▲ │                │ │
//!   │ │   given up, or │ │
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
        merkle::Map,
    },
    proof::{Element, Generator, ProofError, Statement, VerifyingKey, mock},
    record,
    speculation::RollbackReason,
};

/// Tasks that one task depends on, at most: what is checked at its creation and its completion.
pub const MAX_PARENTS: usize = 16;
/// Blocks from a task's creation to its deadline, at most: some six days of half seconds.
pub const MAX_DEADLINE_BLOCKS: u64 = 1_000_000;
/// Tasks that expire in one block, at most; the others do in the next ones.
pub const MAX_EXPIRED_PER_BLOCK: usize = 256;

/// A transaction that puts a task up, its reward with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateTask {
    /// What it is called from now on: any 32 bytes that no task has yet.
    pub task_id: Hash,
    /// Tasks that must be completed before it, at most [`MAX_PARENTS`].
    pub depends_on: Vec<Hash>,
    /// hash_4 of the output that is asked for; absent: any output will do.
    pub constraint_hash: Option<Element>,
    /// What whoever completes it gets.
    pub reward: Wei,
    /// The last block that may complete it.
    pub deadline: Height,
}
record!(CreateTask { task_id, depends_on, constraint_hash, reward, deadline });

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
    /// What is locked until the commitment is resolved.
    pub bond: Wei,
}
record!(CreateCommitment { task_id, output_commitment, bond });

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
    /// What is locked.
    pub bond: Wei,
    /// How deep the task stood when it was made, counted as [`Task::speculation_depth`] is.
    pub depth: u32,
    /// The block it was made in.
    pub created_at: Height,
}
record!(TaskCommitment { agent, output_commitment, bond, depth, created_at });

/// A task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Whose reward it is.
    pub creator: Address,
    /// Tasks that must be completed before it, as they were listed.
    pub depends_on: Vec<Hash>,
    /// Tasks on the longest path above it that were not completed when it was created. A parent
    /// counts as deep as it stood at its own creation, whatever was completed above it since.
    pub speculation_depth: u32,
    /// hash_4 of the output that is asked for; absent: any output will do.
    pub constraint_hash: Option<Element>,
    /// What whoever completes it gets.
    pub reward: Wei,
    /// The last block that may complete it.
    pub deadline: Height,
    /// Where it stands.
    pub status: TaskStatus,
    /// Who works on it, or has completed it.
    pub claim: Option<TaskClaim>,
    /// What that agent has committed to; it stays, the task completed, until it is resolved.
    pub commitment: Option<TaskCommitment>,
    /// The block it was created in.
    pub created_at: Height,
    /// The block it was completed in.
    pub completed_at: Option<Height>,
}
record!(Task {
    creator,
    depends_on,
    speculation_depth,
    constraint_hash,
    reward,
    deadline,
    status,
    claim,
    commitment,
    created_at,
    completed_at,
});

impl Task {
    /// Whether it can be completed no more: it was, or its deadline passed.
    pub const fn has_ended(&self) -> bool {
        matches!(self.status, TaskStatus::Completed | TaskStatus::Expired)
    }
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
}

/// How tasks are proved, fixed at genesis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    /// What proofs are checked with.
    pub scheme: Scheme,
}
record!(Params { scheme });

/// Hashes in place of proofs, under a key that everybody knows.
impl Default for Params {
    fn default() -> Self {
        Self { scheme: Scheme::Mock([0; 32]) }
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

/// Basis points of a bond that a reason costs (AgenC §4.4).
pub const fn slash_points(reason: RollbackReason) -> u64 {
    match reason {
        RollbackReason::ProofFailed => 1_000,
        RollbackReason::ProofTimeout
        | RollbackReason::ClaimExpired
        | RollbackReason::CommitmentExpired => 500,
        RollbackReason::AncestorFailed | RollbackReason::ManualCancel => 0,
    }
}

/// What of a bond is burned for a reason, rounded down.
pub const fn slashed(bond: Wei, reason: RollbackReason) -> Wei {
    /// Basis points of the whole.
    const WHOLE: u128 = crate::speculation::stake::WHOLE as u128;
    let points = slash_points(reason) as u128;
    // Whole ten-thousandths first: no bond is too large.
    let (shares, rest) = (bond.get() / WHOLE, bond.get() % WHOLE);
    Wei::new(shares * points + rest * points / WHOLE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        primitives::codec::{from_slice, to_vec},
        proof::ProvingKey,
        speculation::Config,
    };

    #[test]
    fn reasons_cost_here_what_they_cost_a_node_by_default() {
        let config = Config::default();
        for reason in RollbackReason::ALL {
            assert_eq!(slash_points(*reason), config.slash_points(*reason), "{reason}");
        }
    }

    #[test]
    fn a_share_is_rounded_down_and_no_bond_is_too_large() {
        let check = |bond: u128, reason, expected: u128| {
            assert_eq!(slashed(Wei::new(bond), reason), Wei::new(expected), "{bond} {reason}");
        };
        check(999, RollbackReason::ClaimExpired, 49);
        check(999, RollbackReason::ProofFailed, 99);
        check(10_001, RollbackReason::ProofFailed, 1_000);
        check(u128::MAX, RollbackReason::ProofFailed, u128::MAX / 10);
        check(u128::MAX, RollbackReason::ManualCancel, 0);
        check(0, RollbackReason::ProofFailed, 0);
    }

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
    fn an_address_is_a_number_in_a_statement() {
        let bytes = statement_agent(&Address([0xff; 20]));
        assert_eq!(bytes[..12], [0; 12]);
        assert_eq!(bytes[12..], [0xff; 20]);
        assert_eq!(Element::reduce(&bytes).to_bytes(), bytes, "below the modulus");
    }
}
