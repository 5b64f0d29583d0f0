//! Conditions of each step of a task.

use crate::{
    chain::{
        state::{MoneyError, State},
        tasks::{
            CompleteTask, MAX_PARENTS, MAX_REQUIREMENT_BYTES, MAX_REQUIREMENTS, Task, TaskStatus,
            inputs_digest, statement_agent, statement_task,
        },
    },
    primitives::{Address, Hash, Height, InCby, Wei},
    proof::{Element, ProofError, Statement},
    speculation::RollbackReason,
};
use std::collections::BTreeSet;

/// Why a transaction about a task fails. The text begins with the variant's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskError {
    #[error("TaskExists: {0} was created before; choose another id")]
    Exists(Hash),
    #[error("UnknownTask: no task {0}")]
    Unknown(Hash),
    #[error("TooManyParents: {got} tasks to depend on, a task has at most {MAX_PARENTS}")]
    TooManyParents { got: usize },
    #[error("DependsOnItself: {0} can only depend on tasks created before it")]
    DependsOnItself(Hash),
    #[error("RepeatedParent: {0} appears twice in the list of parents")]
    RepeatedParent(Hash),
    #[error("UnknownParent: no task {0} to depend on; create it first")]
    UnknownParent(Hash),
    #[error("ParentExpired: {0} was not completed by its deadline and never will be")]
    ParentExpired(Hash),
    #[error("DeadlineOutOfRange: {got}, expected a height from {first} to {last}")]
    DeadlineOutOfRange { got: Height, first: Height, last: Height },
    #[error("TaskEnded: {task_id} is {status}")]
    Ended { task_id: Hash, status: TaskStatus },
    #[error("TooManyRequirements: {got}, a task has at most {MAX_REQUIREMENTS}")]
    TooManyRequirements { got: usize },
    #[error(
        "BadRequirement: `{0}`, expected 1 to {MAX_REQUIREMENT_BYTES} visible ASCII characters, no \
         comma"
    )]
    BadRequirement(String),
    #[error("AlreadyClaimed: {task_id} is claimed by {agent} until block {expires_at}")]
    AlreadyClaimed { task_id: Hash, agent: Address, expires_at: Height },
    /// The claim would already be past, end after the deadline, or be shorter than before.
    #[error("ClaimOutOfRange: until {got}, expected a height from {first} to {last}")]
    ClaimOutOfRange { got: Height, first: Height, last: Height },
    #[error("NotClaimed: {0} is open; claim it first")]
    NotClaimed(Hash),
    #[error("NotClaimant: {task_id} is claimed by {agent}")]
    NotClaimant { task_id: Hash, agent: Address },
    #[error("ClaimPast: the claim on {task_id} counted until block {expires_at}; claim it again")]
    ClaimPast { task_id: Hash, expires_at: Height },
    #[error("CommitmentExists: {0} has an open commitment; resolve it first")]
    CommitmentExists(Hash),
    #[error(
        "BondTooLow: {} for {task_id} at depth {depth}, the minimum is {}; its parameters are \
         system:tasks:bond_base and system:tasks:bond_per_depth",
        InCby(*bond),
        InCby(*least)
    )]
    BondTooLow { task_id: Hash, bond: Wei, depth: u32, least: Wei },
    #[error(
        "ParentNotCommitted: {task_id} reads the output of {parent}, which has no commitment; make \
         one first"
    )]
    ParentNotCommitted { task_id: Hash, parent: Hash },
    #[error(
        "StaleInputs: {task_id} was made from inputs {got}, but the present outputs of its parents \
         give {expected}; give it up for ancestor_failed and do its work again"
    )]
    StaleInputs { task_id: Hash, got: Hash, expected: Hash },
    /// The commitment would already be past, or outlive the claim.
    #[error("CommitmentOutOfRange: until {got}, expected a height from {first} to {last}")]
    CommitmentOutOfRange {
        got: Height,
        first: Height,
        /// The end of the claim.
        last: Height,
    },
    #[error(
        "CommitmentPast: the commitment to {task_id} counted until block {expires_at}; resolve it \
         for commitment_expired"
    )]
    CommitmentPast { task_id: Hash, expires_at: Height },
    #[error("NoCommitment: {0} has no open commitment")]
    NoCommitment(Hash),
    #[error("StrangeParent: {task_id} does not depend on {parent}")]
    StrangeParent { task_id: Hash, parent: Hash },
    #[error("MissingParent: {task_id} depends on {parent} too, which is not in the list")]
    MissingParent { task_id: Hash, parent: Hash },
    #[error("ParentNotCompleted: {task_id} depends on {parent}, which is {status}")]
    ParentNotCompleted { task_id: Hash, parent: Hash, status: TaskStatus },
    /// The proof is malformed, proves another statement, or does not verify.
    #[error("BadProof: {0}")]
    BadProof(#[from] ProofError),
    #[error(
        "NotCompleted: {task_id} is {status}; its commitment is confirmed once it is completed"
    )]
    NotCompleted { task_id: Hash, status: TaskStatus },
    #[error("Unauthorized: the claim on {task_id} is {agent}'s, the task {creator}'s")]
    Unauthorized { task_id: Hash, agent: Address, creator: Address },
    #[error(
        "NotForCreator: only the agent can give the reason {0}; a creator gives claim_expired or \
         commitment_expired"
    )]
    NotForCreator(RollbackReason),
    #[error("ClaimCounts: the claim on {task_id} counts until block {expires_at}")]
    ClaimCounts { task_id: Hash, expires_at: Height },
    #[error("CommitmentCounts: the commitment to {task_id} has not passed an expiry of its own")]
    CommitmentCounts { task_id: Hash },
    #[error(
        "NoAncestorFailed: nothing that {task_id} depends on has failed since block {since}; give \
         it up for manual_cancel"
    )]
    NoAncestorFailed {
        task_id: Hash,
        /// The block of the commitment, or else that of the task's creation.
        since: Height,
    },
    #[error(transparent)]
    Money(#[from] MoneyError),
}

/// Checks whether a transaction of `agent` would complete the task in the block after `state`'s
/// head.
pub fn check_completion(
    state: &State,
    agent: &Address,
    complete: &CompleteTask,
) -> Result<(), TaskError> {
    completes(state, state.height().next(), agent, complete, None)
}

/// The task, unless it has ended.
pub(super) fn pending<'a>(state: &'a State, task_id: &Hash) -> Result<&'a Task, TaskError> {
    let task = state.task(task_id).ok_or(TaskError::Unknown(*task_id))?;
    match task.has_ended() {
        true => Err(TaskError::Ended { task_id: *task_id, status: task.status }),
        false => Ok(task),
    }
}

/// The task, if `agent` has claimed it and the claim counts.
pub(super) fn claimed<'a>(
    state: &'a State,
    height: Height,
    agent: &Address,
    task_id: &Hash,
) -> Result<&'a Task, TaskError> {
    let (task, task_id) = (pending(state, task_id)?, *task_id);
    let claim = task.claim.ok_or(TaskError::NotClaimed(task_id))?;
    if claim.agent != *agent {
        return Err(TaskError::NotClaimant { task_id, agent: claim.agent });
    }
    if claim.is_past(height) {
        return Err(TaskError::ClaimPast { task_id, expires_at: claim.expires_at });
    }
    Ok(task)
}

/// Checks a completion in the block at `height`. `verdict` is the result of checking its proof
/// against the statement that it carries, if known.
pub(super) fn completes(
    state: &State,
    height: Height,
    agent: &Address,
    complete: &CompleteTask,
    verdict: Option<Result<(), ProofError>>,
) -> Result<(), TaskError> {
    let CompleteTask { task_id, parents, proof } = complete;
    let task = claimed(state, height, agent, task_id)?;
    let commitment = task.commitment.ok_or(TaskError::NoCommitment(*task_id))?;
    if let Some(expires_at) = commitment.expires_at.filter(|_| commitment.is_past(height)) {
        return Err(TaskError::CommitmentPast { task_id: *task_id, expires_at });
    }
    check_parents(state, *task_id, task, parents)?;
    check_inputs(state, *task_id, task, commitment.inputs)?;
    let carried = Statement::carried(proof).map_err(ProofError::from)?;
    carried.expect(&Statement {
        task_id: Element::reduce(&statement_task(task_id, &commitment.inputs)),
        agent: Element::reduce(&statement_agent(agent)),
        constraint_hash: task.constraint_hash.unwrap_or(carried.constraint_hash),
        output_commitment: commitment.output_commitment,
    })?;
    let verify = || state.params.tasks.scheme.verify(&carried, proof);
    Ok(verdict.unwrap_or_else(verify)?)
}

/// Checks that `parents` are exactly the task's parents, each once, and that all are completed.
fn check_parents(
    state: &State,
    task_id: Hash,
    task: &Task,
    parents: &[Hash],
) -> Result<(), TaskError> {
    let mut named = BTreeSet::new();
    for parent in parents {
        if !task.depends_on.contains(parent) {
            return Err(TaskError::StrangeParent { task_id, parent: *parent });
        }
        if !named.insert(*parent) {
            return Err(TaskError::RepeatedParent(*parent));
        }
    }
    for parent in &task.depends_on {
        if !named.contains(parent) {
            return Err(TaskError::MissingParent { task_id, parent: *parent });
        }
        let status = state.task(parent).map(|parent| parent.status);
        let status = status.expect("parents are created before a task and never removed");
        if status != TaskStatus::Completed {
            return Err(TaskError::ParentNotCompleted { task_id, parent: *parent, status });
        }
    }
    Ok(())
}

/// Checks that `got` is the digest of the present output commitments of the parents that the task
/// reads.
pub(super) fn check_inputs(
    state: &State,
    task_id: Hash,
    task: &Task,
    got: Hash,
) -> Result<(), TaskError> {
    let mut parents = Vec::with_capacity(task.depends_on.len());
    for parent in task.reads() {
        let output = state.task(parent).and_then(Task::output_commitment);
        let output = output.ok_or(TaskError::ParentNotCommitted { task_id, parent: *parent })?;
        parents.push((*parent, output));
    }
    let expected = inputs_digest(parents);
    if got == expected { Ok(()) } else { Err(TaskError::StaleInputs { task_id, got, expected }) }
}

/// Whether a parent of a task has failed since the task's commitment. Without a commitment nothing
/// is at stake, so a parent without an output to build on is enough.
pub(super) fn has_failed_ancestor(state: &State, task: &Task) -> bool {
    let since = task.commitment.map(|commitment| commitment.created_at);
    task.depends_on.iter().filter_map(|parent| state.task(parent)).any(|parent| {
        let failed = parent.failed_at.is_some_and(|at| since.is_none_or(|since| at >= since));
        let missing = since.is_none() && parent.output_commitment().is_none();
        failed || missing || parent.status == TaskStatus::Expired
    })
}

pub(super) fn is_requirement(label: &str) -> bool {
    (1..=MAX_REQUIREMENT_BYTES).contains(&label.len())
        && label.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',')
}

/// The beginning of a label, escaped for terminals.
pub(super) fn shown(label: &str) -> String {
    label.escape_debug().take(MAX_REQUIREMENT_BYTES).collect()
}
