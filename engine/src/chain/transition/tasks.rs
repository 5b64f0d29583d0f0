//! Transactions about tasks, and task deadlines (spec speculation.md, "On the chain").
//!
//! A block's proofs are checked together, before its first transaction runs, each against the
//! statement that it carries. Whether that is the required statement is checked when its
//! transaction runs. A completion with a refused proof is the one failing transaction that changes
//! more than fee and nonce: its commitment ends, for the reason `proof_failed`.

use super::{Run, TransactionFailure};
use crate::{
    chain::{
        block::Block,
        event::{
            CommitmentCreated, CommitmentResolved, TaskClaimed, TaskCompleted, TaskCreated,
            TaskExpired,
        },
        state::{MoneyError, State},
        tasks::{
            ClaimTask, CompleteTask, CreateCommitment, CreateTask, MAX_DEADLINE_BLOCKS,
            MAX_EXPIRED_PER_BLOCK, MAX_PARENTS, MAX_REQUIREMENT_BYTES, MAX_REQUIREMENTS,
            ResolveCommitment, Task, TaskClaim, TaskCommitment, TaskStatus, inputs_digest,
            statement_agent, statement_task,
        },
        transaction::Payload,
    },
    fees::meter::MAX_BLOCK_PROOFS,
    primitives::{Address, Hash, Height, InCby, Wei},
    proof::{Element, ProofError, Statement},
    speculation::RollbackReason,
};
use std::collections::{BTreeMap, BTreeSet};

/// Why a transaction about a task fails. The text begins with the variant's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskError {
    /// A task with this id exists.
    #[error("TaskExists: {0} was created before; choose another id")]
    Exists(Hash),
    /// The chain has no such task.
    #[error("UnknownTask: no task {0}")]
    Unknown(Hash),
    /// More parents than the chain checks.
    #[error("TooManyParents: {got} tasks to depend on, a task has at most {MAX_PARENTS}")]
    TooManyParents { got: usize },
    /// The task lists itself as a parent.
    #[error("DependsOnItself: {0} can only depend on tasks created before it")]
    DependsOnItself(Hash),
    /// The same parent appears twice in one list.
    #[error("RepeatedParent: {0} appears twice in the list of parents")]
    RepeatedParent(Hash),
    /// A parent does not exist.
    #[error("UnknownParent: no task {0} to depend on; create it first")]
    UnknownParent(Hash),
    /// A parent has expired and can never be completed.
    #[error("ParentExpired: {0} was not completed by its deadline and never will be")]
    ParentExpired(Hash),
    /// The deadline has passed, or is too far away.
    #[error("DeadlineOutOfRange: {got}, expected a height from {first} to {last}")]
    DeadlineOutOfRange { got: Height, first: Height, last: Height },
    /// The task is completed or expired.
    #[error("TaskEnded: {task_id} is {status}")]
    Ended { task_id: Hash, status: TaskStatus },
    /// The task has too many requirements.
    #[error("TooManyRequirements: {got}, a task has at most {MAX_REQUIREMENTS}")]
    TooManyRequirements { got: usize },
    /// The label is empty, too long, or has characters that are not allowed.
    #[error(
        "BadRequirement: `{0}`, expected 1 to {MAX_REQUIREMENT_BYTES} visible ASCII characters, no \
         comma"
    )]
    BadRequirement(String),
    /// Another agent's claim counts.
    #[error("AlreadyClaimed: {task_id} is claimed by {agent} until block {expires_at}")]
    AlreadyClaimed { task_id: Hash, agent: Address, expires_at: Height },
    /// The claim would already be past, end after the deadline, or be shorter than before.
    #[error("ClaimOutOfRange: until {got}, expected a height from {first} to {last}")]
    ClaimOutOfRange {
        got: Height,
        first: Height,
        /// The task's deadline.
        last: Height,
    },
    /// No agent has claimed the task.
    #[error("NotClaimed: {0} is open; claim it first")]
    NotClaimed(Hash),
    /// Another agent has claimed the task.
    #[error("NotClaimant: {task_id} is claimed by {agent}")]
    NotClaimant { task_id: Hash, agent: Address },
    /// The claim no longer counts.
    #[error("ClaimPast: the claim on {task_id} counted until block {expires_at}; claim it again")]
    ClaimPast { task_id: Hash, expires_at: Height },
    /// A claim has at most one open commitment.
    #[error("CommitmentExists: {0} has an open commitment; resolve it first")]
    CommitmentExists(Hash),
    /// The bond is below the minimum.
    #[error(
        "BondTooLow: {} for {task_id} at depth {depth}, the minimum is {}; its parameters are \
         system:tasks:bond_base and system:tasks:bond_per_depth",
        InCby(*bond),
        InCby(*least)
    )]
    BondTooLow {
        task_id: Hash,
        /// The bond offered.
        bond: Wei,
        /// Uncompleted tasks on the longest path above it.
        depth: u32,
        least: Wei,
    },
    /// A parent has no output to build on yet.
    #[error(
        "ParentNotCommitted: {task_id} reads the output of {parent}, which has no commitment; make \
         one first"
    )]
    ParentNotCommitted {
        task_id: Hash,
        /// The parent whose output the task reads.
        parent: Hash,
    },
    /// The commitment was made from parent outputs that have changed since.
    #[error(
        "StaleInputs: {task_id} was made from inputs {got}, but the present outputs of its parents \
         give {expected}; give it up for ancestor_failed and do its work again"
    )]
    StaleInputs {
        task_id: Hash,
        /// The committed digest.
        got: Hash,
        /// The digest of the parents' present outputs.
        expected: Hash,
    },
    /// The commitment would already be past, or outlive the claim.
    #[error("CommitmentOutOfRange: until {got}, expected a height from {first} to {last}")]
    CommitmentOutOfRange {
        got: Height,
        first: Height,
        /// The end of the claim.
        last: Height,
    },
    /// The commitment no longer counts.
    #[error(
        "CommitmentPast: the commitment to {task_id} counted until block {expires_at}; resolve it \
         for commitment_expired"
    )]
    CommitmentPast { task_id: Hash, expires_at: Height },
    /// There is nothing to complete or to resolve.
    #[error("NoCommitment: {0} has no open commitment")]
    NoCommitment(Hash),
    /// A listed parent is not a parent of the task.
    #[error("StrangeParent: {task_id} does not depend on {parent}")]
    StrangeParent { task_id: Hash, parent: Hash },
    /// A parent is missing from the list.
    #[error("MissingParent: {task_id} depends on {parent} too, which is not in the list")]
    MissingParent { task_id: Hash, parent: Hash },
    /// A parent is not completed yet.
    #[error("ParentNotCompleted: {task_id} depends on {parent}, which is {status}")]
    ParentNotCompleted { task_id: Hash, parent: Hash, status: TaskStatus },
    /// The proof is malformed, proves another statement, or does not verify.
    #[error("BadProof: {0}")]
    BadProof(#[from] ProofError),
    /// The commitment is to be confirmed before the task is completed.
    #[error(
        "NotCompleted: {task_id} is {status}; its commitment is confirmed once it is completed"
    )]
    NotCompleted { task_id: Hash, status: TaskStatus },
    #[error("Unauthorized: the claim on {task_id} is {agent}'s, the task {creator}'s")]
    Unauthorized {
        task_id: Hash,
        /// The agent that claimed the task.
        agent: Address,
        /// The account that created the task.
        creator: Address,
    },
    /// Only the agent can give this reason.
    #[error(
        "NotForCreator: only the agent can give the reason {0}; a creator gives claim_expired or \
         commitment_expired"
    )]
    NotForCreator(RollbackReason),
    /// The claim has not expired, so the creator cannot end it.
    #[error("ClaimCounts: the claim on {task_id} counts until block {expires_at}")]
    ClaimCounts { task_id: Hash, expires_at: Height },
    /// The commitment has not expired, so the creator cannot end it.
    #[error("CommitmentCounts: the commitment to {task_id} has not passed an expiry of its own")]
    CommitmentCounts { task_id: Hash },
    /// No ancestor has failed.
    #[error(
        "NoAncestorFailed: nothing that {task_id} depends on has failed since block {since}; give \
         it up for manual_cancel"
    )]
    NoAncestorFailed {
        task_id: Hash,
        /// The block of the commitment, or else that of the task's creation.
        since: Height,
    },
    /// The reward or the bond cannot be taken.
    #[error(transparent)]
    Money(#[from] MoneyError),
}

/// The verdict on each of a block's proofs against the statement that it carries, by transaction.
pub(super) type Verdicts = BTreeMap<Hash, Result<(), ProofError>>;

/// Checks the proofs of a block's completions, as many as a valid block may have. A block with more
/// does not pass consensus; if it ran, the others would be checked one by one.
pub(super) fn verify_proofs(state: &State, block: &Block) -> Verdicts {
    let completions = block.transactions.iter().filter_map(|signed| {
        let transaction = &signed.transaction;
        let Payload::CompleteTask(complete) = &transaction.payload else { return None };
        let statement = Statement::carried(&complete.proof).ok()?;
        let here = transaction.chain_id == state.chain_id;
        here.then_some((signed.hash(), (statement, complete.proof.as_slice())))
    });
    let (hashes, batch): (Vec<Hash>, Vec<_>) = completions.take(MAX_BLOCK_PROOFS as usize).unzip();
    hashes.into_iter().zip(state.params.tasks.scheme.verify_batch(&batch)).collect()
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
fn pending<'a>(state: &'a State, task_id: &Hash) -> Result<&'a Task, TaskError> {
    let task = state.task(task_id).ok_or(TaskError::Unknown(*task_id))?;
    match task.has_ended() {
        true => Err(TaskError::Ended { task_id: *task_id, status: task.status }),
        false => Ok(task),
    }
}

/// The task, if `agent` has claimed it and the claim counts.
fn claimed<'a>(
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
fn completes(
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
fn check_inputs(state: &State, task_id: Hash, task: &Task, got: Hash) -> Result<(), TaskError> {
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
fn has_failed_ancestor(state: &State, task: &Task) -> bool {
    let since = task.commitment.map(|commitment| commitment.created_at);
    task.depends_on.iter().filter_map(|parent| state.task(parent)).any(|parent| {
        let failed = parent.failed_at.is_some_and(|at| since.is_none_or(|since| at >= since));
        let missing = since.is_none() && parent.output_commitment().is_none();
        failed || missing || parent.status == TaskStatus::Expired
    })
}

/// Whether a label is a valid requirement.
fn is_requirement(label: &str) -> bool {
    (1..=MAX_REQUIREMENT_BYTES).contains(&label.len())
        && label.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',')
}

/// The beginning of a label, escaped for terminals.
fn shown(label: &str) -> String {
    label.escape_debug().take(MAX_REQUIREMENT_BYTES).collect()
}

impl Run<'_> {
    /// Records a task and takes its reward.
    pub(super) fn create_task(
        &mut self,
        creator: Address,
        create: &CreateTask,
    ) -> Result<(), TransactionFailure> {
        let CreateTask { task_id, constraint_hash, reward, deadline, .. } = *create;
        let CreateTask { depends_on, order_only, requirements, .. } = create;
        if self.state.task(&task_id).is_some() {
            return Err(TaskError::Exists(task_id).into());
        }
        if depends_on.len() > MAX_PARENTS {
            return Err(TaskError::TooManyParents { got: depends_on.len() }.into());
        }
        for (at, parent) in depends_on.iter().enumerate() {
            if *parent == task_id {
                return Err(TaskError::DependsOnItself(task_id).into());
            }
            if depends_on[..at].contains(parent) {
                return Err(TaskError::RepeatedParent(*parent).into());
            }
            match self.state.task(parent).map(|parent| parent.status) {
                None => return Err(TaskError::UnknownParent(*parent).into()),
                Some(TaskStatus::Expired) => return Err(TaskError::ParentExpired(*parent).into()),
                Some(_) => {}
            }
        }
        for (at, parent) in order_only.iter().enumerate() {
            if !depends_on.contains(parent) {
                return Err(TaskError::StrangeParent { task_id, parent: *parent }.into());
            }
            if order_only[..at].contains(parent) {
                return Err(TaskError::RepeatedParent(*parent).into());
            }
        }
        if requirements.len() > MAX_REQUIREMENTS {
            return Err(TaskError::TooManyRequirements { got: requirements.len() }.into());
        }
        if let Some(bad) = requirements.iter().find(|label| !is_requirement(label)) {
            return Err(TaskError::BadRequirement(shown(bad)).into());
        }
        let height = self.height();
        let (first, last) = (height.next(), height.after(MAX_DEADLINE_BLOCKS));
        if deadline < first || deadline > last {
            return Err(TaskError::DeadlineOutOfRange { got: deadline, first, last }.into());
        }
        self.state.debit(creator, reward).map_err(TaskError::from)?;
        let depth = self.state.task_depth(depends_on);
        let task = Task {
            creator,
            depends_on: depends_on.clone(),
            order_only: order_only.clone(),
            speculation_depth: depth,
            constraint_hash,
            requirements: requirements.clone(),
            reward,
            deadline,
            status: TaskStatus::Open,
            claim: None,
            commitment: None,
            output: None,
            failed_at: None,
            created_at: height,
            completed_at: None,
        };
        self.state.tasks.by_id.insert(task_id, task);
        self.state.tasks.open.insert((deadline, task_id), reward);
        self.emit(TaskCreated {
            task_id,
            creator,
            depends_on: depends_on.clone(),
            order_only: order_only.clone(),
            depth,
            constraint_hash,
            requirements: requirements.clone(),
            reward,
            deadline,
        });
        Ok(())
    }

    /// Assigns a task to an agent: an open one, one with an expired claim, or its own for longer.
    pub(super) fn claim_task(
        &mut self,
        agent: Address,
        claim: &ClaimTask,
    ) -> Result<(), TransactionFailure> {
        let ClaimTask { task_id, expires_at } = *claim;
        let (height, mut task) = (self.height(), pending(&self.state, &task_id)?.clone());
        let mut first = height.next();
        match task.claim {
            Some(former) if former.is_past(height) => {
                self.end_commitment(task_id, &mut task, Some(RollbackReason::ClaimExpired));
            }
            Some(TaskClaim { agent: claimant, expires_at }) if claimant != agent => {
                let claimed = TaskError::AlreadyClaimed { task_id, agent: claimant, expires_at };
                return Err(claimed.into());
            }
            Some(own) => first = first.max(own.expires_at),
            None => {}
        }
        let last = task.deadline;
        if expires_at < first || expires_at > last {
            return Err(TaskError::ClaimOutOfRange { got: expires_at, first, last }.into());
        }
        task.claim = Some(TaskClaim { agent, expires_at });
        task.status = TaskStatus::Claimed;
        self.state.tasks.by_id.insert(task_id, task);
        self.emit(TaskClaimed { task_id, agent, expires_at });
        Ok(())
    }

    /// Locks a bond for an agent's commitment to an output and its inputs.
    pub(super) fn create_commitment(
        &mut self,
        agent: Address,
        create: &CreateCommitment,
    ) -> Result<(), TransactionFailure> {
        let CreateCommitment { task_id, output_commitment, inputs, bond, expires_at } = *create;
        let height = self.height();
        let mut task = claimed(&self.state, height, &agent, &task_id)?.clone();
        if task.commitment.is_some() {
            return Err(TaskError::CommitmentExists(task_id).into());
        }
        let last = task.claim.map_or(height, |claim| claim.expires_at);
        if let Some(got) = expires_at.filter(|got| *got <= height || *got > last) {
            let first = height.next();
            return Err(TaskError::CommitmentOutOfRange { got, first, last }.into());
        }
        check_inputs(&self.state, task_id, &task, inputs)?;
        let depth = self.state.depth_now(&task);
        let least = self.parent.bonds.least(depth);
        if bond < least {
            return Err(TaskError::BondTooLow { task_id, bond, depth, least }.into());
        }
        self.state.debit(agent, bond).map_err(TaskError::from)?;
        let commitment = TaskCommitment {
            agent,
            output_commitment,
            inputs,
            bond,
            depth,
            created_at: height,
            expires_at,
        };
        task.commitment = Some(commitment);
        self.state.tasks.by_id.insert(task_id, task);
        self.emit(CommitmentCreated {
            task_id,
            agent,
            output_commitment,
            inputs,
            bond,
            expires_at,
        });
        Ok(())
    }

    /// Completes a task whose proof is accepted, and pays its reward.
    pub(super) fn complete_task(
        &mut self,
        agent: Address,
        complete: &CompleteTask,
    ) -> Result<(), TransactionFailure> {
        let (height, task_id) = (self.height(), complete.task_id);
        let verdict = self.transaction.and_then(|hash| self.proofs.get(&hash)).cloned();
        completes(&self.state, height, &agent, complete, verdict)?;
        let mut task = self.state.task(&task_id).expect("it was just read").clone();
        let paid = task.reward;
        self.state.credit(agent, paid).map_err(TaskError::from)?;
        self.state.tasks.open.remove(&(task.deadline, task_id));
        task.status = TaskStatus::Completed;
        task.output = task.output_commitment();
        task.completed_at = Some(height);
        self.state.tasks.by_id.insert(task_id, task);
        self.emit(TaskCompleted { task_id, agent, paid });
        Ok(())
    }

    /// Ends a task's commitment and claim after a proof was refused, without a request by the
    /// agent.
    pub(super) fn refuse_proof(&mut self, task_id: Hash) {
        let Some(task) = self.state.task(&task_id) else { return };
        let mut task = task.clone();
        self.end_commitment(task_id, &mut task, Some(RollbackReason::ProofFailed));
        task.claim = None;
        task.status = TaskStatus::Open;
        self.state.tasks.by_id.insert(task_id, task);
    }

    /// Confirms the commitment to a completed task, or gives up a claim and its commitment.
    pub(super) fn resolve_commitment(
        &mut self,
        sender: Address,
        resolve: &ResolveCommitment,
    ) -> Result<(), TransactionFailure> {
        let ResolveCommitment { task_id, reason } = *resolve;
        let Some(reason) = reason else { return self.confirm_commitment(task_id) };
        let mut task = pending(&self.state, &task_id)?.clone();
        let claim = task.claim.ok_or(TaskError::NotClaimed(task_id))?;
        let height = self.height();
        let past = task.commitment.filter(|commitment| commitment.is_past(height));
        let past = past.and_then(|commitment| commitment.expires_at);
        if sender != claim.agent {
            let (agent, expires_at) = (claim.agent, claim.expires_at);
            if sender != task.creator {
                return Err(
                    TaskError::Unauthorized { task_id, agent, creator: task.creator }.into()
                );
            }
            match reason {
                RollbackReason::ClaimExpired if !claim.is_past(height) => {
                    return Err(TaskError::ClaimCounts { task_id, expires_at }.into());
                }
                RollbackReason::CommitmentExpired if past.is_none() => {
                    return Err(TaskError::CommitmentCounts { task_id }.into());
                }
                RollbackReason::ClaimExpired | RollbackReason::CommitmentExpired => {}
                other => return Err(TaskError::NotForCreator(other).into()),
            }
        }
        if claim.is_past(height) {
            if reason != RollbackReason::ClaimExpired {
                return Err(TaskError::ClaimPast { task_id, expires_at: claim.expires_at }.into());
            }
        } else if let Some(expires_at) = past
            && reason != RollbackReason::CommitmentExpired
        {
            return Err(TaskError::CommitmentPast { task_id, expires_at }.into());
        }
        let blames = reason == RollbackReason::AncestorFailed;
        if blames && !has_failed_ancestor(&self.state, &task) {
            let since = task.commitment.map_or(task.created_at, |commitment| commitment.created_at);
            return Err(TaskError::NoAncestorFailed { task_id, since }.into());
        }
        if task.commitment.is_some() {
            self.end_commitment(task_id, &mut task, Some(reason));
        } else {
            self.emit(CommitmentResolved {
                task_id,
                agent: claim.agent,
                reason: Some(reason),
                released: Wei::ZERO,
                slashed: Wei::ZERO,
            });
        }
        task.claim = None;
        task.status = TaskStatus::Open;
        self.state.tasks.by_id.insert(task_id, task);
        Ok(())
    }

    /// Returns the bond of a completed task to its agent. Any account may ask for it.
    fn confirm_commitment(&mut self, task_id: Hash) -> Result<(), TransactionFailure> {
        let task = self.state.task(&task_id).ok_or(TaskError::Unknown(task_id))?;
        if task.status != TaskStatus::Completed {
            return Err(TaskError::NotCompleted { task_id, status: task.status }.into());
        }
        if task.commitment.is_none() {
            return Err(TaskError::NoCommitment(task_id).into());
        }
        let mut task = task.clone();
        self.end_commitment(task_id, &mut task, None);
        self.state.tasks.by_id.insert(task_id, task);
        Ok(())
    }

    /// Takes the commitment off a task, if it has one: the reason's share of its bond is burned,
    /// the rest is returned. The caller must store the task.
    fn end_commitment(&mut self, task_id: Hash, task: &mut Task, reason: Option<RollbackReason>) {
        let Some(TaskCommitment { agent, bond, .. }) = task.commitment.take() else { return };
        let bonds = &self.parent.bonds;
        let slashed = reason.map_or(Wei::ZERO, |reason| bonds.slashed(bond, reason));
        if reason.is_some() {
            task.failed_at = Some(self.height());
        }
        let released = bond.saturating_sub(slashed);
        self.state.credit(agent, released).expect("what was debited fits again");
        self.state.burned.penalties = self.state.burned.penalties.saturating_add(slashed);
        self.emit(CommitmentResolved { task_id, agent, reason, released, slashed });
    }

    /// Ends tasks whose deadline has passed, oldest first, at most [`MAX_EXPIRED_PER_BLOCK`].
    pub(super) fn expire_tasks(&mut self) {
        let height = self.height();
        let open = self.state.tasks.open.iter().map(|(key, _)| *key);
        let due: Vec<(Height, Hash)> = open
            .take_while(|(deadline, _)| *deadline < height)
            .take(MAX_EXPIRED_PER_BLOCK)
            .collect();
        for (deadline, task_id) in due {
            let mut task = self.state.task(&task_id).expect("an open task has a record").clone();
            self.end_commitment(task_id, &mut task, Some(RollbackReason::ClaimExpired));
            let refunded = task.reward;
            self.state.credit(task.creator, refunded).expect("what was debited fits again");
            task.claim = None;
            task.status = TaskStatus::Expired;
            self.state.tasks.open.remove(&(deadline, task_id));
            self.state.tasks.by_id.insert(task_id, task);
            self.emit(TaskExpired { task_id, refunded });
        }
    }
}
