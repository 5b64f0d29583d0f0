//! Transactions about tasks, and task deadlines (spec speculation.md, "On the chain").
//!
//! A block's proofs are checked together, before its first transaction runs, each against the
//! statement that it carries. Whether that is the required statement is checked when its
//! transaction runs. A completion with a refused proof is the one failing transaction that changes
//! more than fee and nonce: its commitment ends, for the reason `proof_failed`.

mod check;

pub use check::{TaskError, check_completion};

use super::{Run, TransactionFailure};
use crate::{
    chain::{
        block::Block,
        event::{
            CommitmentCreated, CommitmentResolved, TaskClaimed, TaskCompleted, TaskCreated,
            TaskExpired,
        },
        state::State,
        tasks::{
            ClaimTask, CompleteTask, CreateCommitment, CreateTask, MAX_DEADLINE_BLOCKS,
            MAX_EXPIRED_PER_BLOCK, MAX_PARENTS, MAX_REQUIREMENTS, ResolveCommitment, Task,
            TaskClaim, TaskCommitment, TaskStatus,
        },
        transaction::Payload,
    },
    fees::meter::MAX_BLOCK_PROOFS,
    primitives::{Address, Hash, Height, Wei},
    proof::{ProofError, Statement},
    speculation::RollbackReason,
};
use check::{
    check_inputs, claimed, completes, has_failed_ancestor, is_requirement, pending, shown,
};
use std::collections::BTreeMap;

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

impl Run<'_> {
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
