//! The calls that drive the machine; [`Speculation`] says in which order.

use super::{
    CommitmentStatus, DependencyStatus, Opening, OutputCommitment, PROOF_BYTES, ParentLink,
    ProofStatus, Speculation, TaskId,
    config::{Config, ConfigError},
    event::SpeculationEventKind,
    output::{
        Answered, CompletionError, ConfirmError, Confirmation, EngineOutput, FailError,
        StaleResult, SubmissionResult,
    },
    reason::RollbackReason,
    scheduler::{Refused, RunRequest, Scheduled},
    table::TaskIndex,
};
use crate::primitives::Wei;

impl Speculation {
    /// The next output, oldest first.
    pub fn poll_output(&mut self) -> Option<EngineOutput> {
        self.outputs.pop_front()
    }

    /// Advances the clock and handles everything that is due.
    pub fn advance(&mut self, now: u64) {
        self.now = self.now.max(now);
        if self.away.is_some() {
            self.try_chain();
        } else if self.deadlines.first().is_some_and(|&(at, _)| at <= self.now) {
            self.expire();
        }
        if !self.triggers.is_empty() {
            self.settle();
        }
        if self.now - self.pruned_at >= self.config.gc_interval_ms {
            self.prune();
        }
    }

    /// Accepts a task and locks its bond, or returns the rule that it breaks.
    pub fn schedule(&mut self, request: RunRequest<'_>, now: u64) -> Result<Scheduled, Refused> {
        self.advance(now);
        self.accept_or_refuse(request)
    }

    /// Takes a task's output: its commitment is made, and its proof requested. Returns its bond.
    pub fn executed(
        &mut self,
        task: TaskId,
        opening: Opening,
        now: u64,
    ) -> Result<Wei, CompletionError> {
        self.advance(now);
        let at = self.pending(task)?;
        self.commit(at, opening);
        self.ask_for_proof(at);
        Ok(self.bond(at))
    }

    /// A prover begins with a task's proof: `proof.timeoutMs` starts.
    pub fn proving(&mut self, task: TaskId, now: u64) -> Result<(), CompletionError> {
        self.advance(now);
        let at = self.graph.find(&task).ok_or(CompletionError::UnknownTask(task))?;
        match (self.graph.status_of(at), self.deferral.get(at).status) {
            (DependencyStatus::Speculative, ProofStatus::Queued) => {
                let until = self.now.saturating_add(self.config.proof_timeout_ms);
                self.move_proof(at, ProofStatus::Proving, until);
                self.watch(at);
                Ok(())
            }
            (DependencyStatus::Pending, _) => Err(CompletionError::NoOutput(task)),
            (DependencyStatus::Speculative | DependencyStatus::Confirmed, _) => {
                Err(CompletionError::AlreadyCompleted(task))
            }
            (DependencyStatus::Failed | DependencyStatus::RolledBack, _) => {
                Err(CompletionError::TaskNotActive(task))
            }
        }
    }

    pub fn proved(&mut self, task: TaskId, proof: &[u8], now: u64) -> Result<(), CompletionError> {
        self.advance(now);
        let at = self.graph.find(&task).ok_or(CompletionError::UnknownTask(task))?;
        match (self.graph.status_of(at), self.deferral.get(at).status) {
            (DependencyStatus::Pending, _) => return Err(CompletionError::NoOutput(task)),
            (
                DependencyStatus::Speculative,
                ProofStatus::Queued | ProofStatus::Proving | ProofStatus::Held,
            ) => {}
            (DependencyStatus::Speculative | DependencyStatus::Confirmed, _) => {
                return Err(CompletionError::AlreadyCompleted(task));
            }
            (DependencyStatus::Failed | DependencyStatus::RolledBack, _) => {
                return Err(CompletionError::TaskNotActive(task));
            }
        }
        let proof = sized(task, proof)?;
        self.queue(at, proof);
        Ok(())
    }

    /// Takes a task's output and its proof at once; returns its bond.
    pub fn complete(
        &mut self,
        task: TaskId,
        opening: Opening,
        proof: &[u8],
        now: u64,
    ) -> Result<Wei, CompletionError> {
        self.advance(now);
        let at = self.pending(task)?;
        let proof = sized(task, proof)?;
        self.commit(at, opening);
        self.queue(at, proof);
        Ok(self.bond(at))
    }

    /// A submission has reached the chain: `confirmationTimeoutMs` restarts.
    pub fn submitted(
        &mut self,
        task: TaskId,
        submission: u64,
        now: u64,
    ) -> Result<(), StaleResult> {
        self.advance(now);
        let at = self.in_flight(task, submission)?;
        self.move_commitment(at, CommitmentStatus::Submitted);
        let until = self.now.saturating_add(self.config.confirmation_timeout_ms);
        self.deferral.set(at, ProofStatus::Submitting, until);
        let attempt = self.deferral.get(at).attempts;
        self.tell(at, SpeculationEventKind::ProofSubmitted { attempt });
        self.watch(at);
        Ok(())
    }

    pub fn answer(
        &mut self,
        task: TaskId,
        submission: u64,
        answer: SubmissionResult,
        now: u64,
    ) -> Result<Answered, StaleResult> {
        self.advance(now);
        let at = match self.in_flight(task, submission) {
            Ok(at) => at,
            Err(stale) => {
                let undone = matches!(
                    self.graph.status(&task),
                    Some(DependencyStatus::Failed | DependencyStatus::RolledBack)
                );
                if answer == SubmissionResult::Confirmed && undone {
                    self.outputs.push_back(EngineOutput::LateSuccess { task });
                }
                return Err(stale);
            }
        };
        let mut retry_in_ms = None;
        match answer {
            SubmissionResult::Confirmed => self.confirm_from(at),
            // It is submitted when the chain is back.
            SubmissionResult::Lost if self.away.is_some() => self.hold_back(at),
            SubmissionResult::Lost
                if u64::from(self.deferral.get(at).attempts) < self.config.max_retries =>
            {
                retry_in_ms = Some(self.back_off(at));
            }
            SubmissionResult::Lost | SubmissionResult::Rejected => {
                self.counters.proofs_failed += 1;
                self.tell(at, SpeculationEventKind::ProofFailed);
                self.triggers.push_back((task, RollbackReason::ProofFailed));
            }
        }
        self.settle();
        Ok(Answered { retry_in_ms })
    }

    /// A task was confirmed on the chain, by any submission.
    pub fn confirm(&mut self, task: TaskId, now: u64) -> Result<Confirmation, ConfirmError> {
        self.advance(now);
        let at = self.graph.find(&task).ok_or(ConfirmError::UnknownTask(task))?;
        match self.graph.status_of(at) {
            DependencyStatus::Confirmed => return Ok(Confirmation::Duplicate),
            DependencyStatus::Failed | DependencyStatus::RolledBack => {
                self.outputs.push_back(EngineOutput::LateSuccess { task });
                return Err(ConfirmError::TaskNotActive(task));
            }
            DependencyStatus::Pending | DependencyStatus::Speculative => {}
        }
        if !self.graph.is_clear(at) {
            // The chain has it: its own deadlines no longer count.
            self.terms[at].held = true;
            self.watch(at);
            return Ok(Confirmation::Held);
        }
        self.confirm_from(at);
        self.settle();
        Ok(Confirmation::Applied)
    }

    /// Requests a rollback, which the next call that takes the time carries out.
    pub fn request_rollback(
        &mut self,
        task: TaskId,
        reason: RollbackReason,
    ) -> Result<(), FailError> {
        match self.graph.status(&task) {
            None => Err(FailError::UnknownTask(task)),
            Some(DependencyStatus::Confirmed) => Err(FailError::AlreadyConfirmed(task)),
            Some(DependencyStatus::Failed | DependencyStatus::RolledBack) => Ok(()),
            Some(DependencyStatus::Pending | DependencyStatus::Speculative) => {
                self.triggers.push_back((task, reason));
                Ok(())
            }
        }
    }

    /// Rolls a task back, with the tasks that depend on it; returns the number of tasks undone, 0
    /// if it had been undone before.
    pub fn fail(
        &mut self,
        task: TaskId,
        reason: RollbackReason,
        now: u64,
    ) -> Result<u64, FailError> {
        self.advance(now);
        self.request_rollback(task, reason)?;
        let before = self.counters.tasks_rolled_back;
        self.settle();
        Ok(self.counters.tasks_rolled_back - before)
    }

    /// Marks a task's output to be kept if a rollback undoes the task, under the policy
    /// `checkpoint`; returns whether there is an output.
    pub fn checkpoint(&mut self, task: &TaskId) -> bool {
        let known = self.graph.find(task).filter(|&at| self.graph.status_of(at).is_live());
        let with_output = known.filter(|&at| self.ledger.get(at).is_some());
        with_output.inspect(|&at| self.ledger.set_checkpoint(at)).is_some()
    }

    /// Sets the agent's stake after all slashes so far.
    pub const fn set_stake(&mut self, amount: Wei) {
        self.stake.set(amount);
    }

    /// Changes options of the running machine: all of them, or none if there are errors. Accepted
    /// tasks keep their bonds and deadlines.
    pub fn configure<'a>(
        &mut self,
        settings: impl IntoIterator<Item = (&'a str, &'a str)>,
        now: u64,
    ) -> Result<(), Vec<ConfigError>> {
        let config = self.config.with(settings)?;
        self.set_config(config, now);
        Ok(())
    }

    /// Replaces the configuration of the running machine, like [`configure`](Self::configure).
    pub fn set_config(&mut self, config: Config, now: u64) {
        self.advance(now);
        let before = self.breaker_state();
        self.config = config;
        let state = self.breaker_state();
        if state != before {
            self.outputs.push_back(EngineOutput::Breaker(state));
            self.tell_of(None, SpeculationEventKind::BreakerChanged { state });
        }
        self.settle();
    }

    pub(super) fn bond(&self, at: TaskIndex) -> Wei {
        Wei::new(self.terms[at].bond.into())
    }

    fn pending(&self, task: TaskId) -> Result<TaskIndex, CompletionError> {
        let at = self.graph.find(&task).ok_or(CompletionError::UnknownTask(task))?;
        match self.graph.status_of(at) {
            DependencyStatus::Pending => Ok(at),
            DependencyStatus::Speculative | DependencyStatus::Confirmed => {
                Err(CompletionError::AlreadyCompleted(task))
            }
            DependencyStatus::Failed | DependencyStatus::RolledBack => {
                Err(CompletionError::TaskNotActive(task))
            }
        }
    }

    fn in_flight(&self, task: TaskId, submission: u64) -> Result<TaskIndex, StaleResult> {
        let at = self.graph.find(&task).filter(|&at| {
            let entry = self.deferral.get(at);
            entry.status == ProofStatus::Submitting && entry.submission == submission
        });
        at.ok_or(StaleResult { task, submission })
    }

    fn commit(&mut self, at: TaskIndex, opening: Opening) {
        let output_commitment = opening.output_commitment;
        let commitment = OutputCommitment {
            opening,
            created_at: self.now,
            expires_at: self.now.saturating_add(self.config.commitment_ttl_ms),
            depth: self.graph.counted_depth(at).into(),
            status: CommitmentStatus::Created,
            checkpoint: false,
            proof: None,
        };
        let expires_at = commitment.expires_at;
        self.ledger.create(at, commitment);
        self.tell(at, SpeculationEventKind::CommitmentCreated { output_commitment, expires_at });
        self.graph.speculate(at);
        self.tell(at, SpeculationEventKind::NodeChanged { status: DependencyStatus::Speculative });
        self.tell(at, SpeculationEventKind::TaskCompleted { output_commitment });
    }

    fn queue(&mut self, at: TaskIndex, proof: &[u8; PROOF_BYTES]) {
        self.ledger.set_proof(at, proof);
        let status = CommitmentStatus::ProofGenerated;
        self.tell(at, SpeculationEventKind::CommitmentUpdated { status });
        self.deferral.queue(at, self.graph.counted_depth(at).into(), self.graph.is_clear(at));
        self.tell_proof(at);
        self.watch(at);
        self.settle();
    }
}

fn sized(task: TaskId, proof: &[u8]) -> Result<&[u8; PROOF_BYTES], CompletionError> {
    let got = proof.len();
    proof.try_into().map_err(|_| CompletionError::BadProofSize { task, got })
}

/// Links to parents whose outputs are all read.
pub fn reads(parents: &[TaskId]) -> Vec<(TaskId, ParentLink)> {
    parents.iter().map(|&parent| (parent, ParentLink::Reads)).collect()
}
