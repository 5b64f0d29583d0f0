//! The machine that combines all parts of speculation.

use super::{
    Bonds, CommitmentStatus, Config, ConfigError, DependencyStatus, FailError, PROOF_BYTES,
    ParentLink, ProofStatus, Refused, RollbackReason, RunRequest, Scheduled, Stake, TaskId,
    away::Away,
    breaker::{Breaker, BreakerState},
    deferral::Deferral,
    event::{Event, SpeculationEventKind},
    graph::Graph,
    ledger::{Checkpoint, Ledger, Opening, OutputCommitment},
    rollback::{Plan, Summary},
    settle::NEVER,
    table::{Table, TaskIndex, tree_bytes},
};
use crate::{
    primitives::{Hash, Wei},
    record,
};
use std::collections::{BTreeSet, VecDeque};

/// Maximum number of rollbacks that are remembered.
pub const HISTORY: usize = 64;

/// An instruction or a notice to the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineOutput {
    /// Make the proof of a task whose output is known: call [`Speculation::proving`] when a prover
    /// begins with it, then [`Speculation::proved`].
    Prove { task: TaskId },
    /// Submit [`Speculation::proof`] of a task to the chain, then call [`Speculation::answer`].
    /// After a restore the same proof may be requested twice.
    Submit {
        task: TaskId,
        /// The number to be passed with the answer.
        submission: u64,
        /// The number of the attempt, from 1.
        attempt: u32,
    },
    /// A task is confirmed, and its bond released.
    Confirmed { task: TaskId, released: Wei },
    /// A rollback was carried out.
    RolledBack(Plan),
    /// The chain accepted a task that had been rolled back here; it stays rolled back.
    LateSuccess { task: TaskId },
    /// The circuit breaker opened or closed.
    Breaker(BreakerState),
    /// Try to reach the lost chain, then call [`Speculation::chain_back`] if that succeeds. After
    /// the last attempt no task is accepted until it does.
    TryChain {
        /// The number of the try, from 1 to [`TRIES`](super::away::TRIES).
        attempt: u32,
    },
    /// The chain can be reached again.
    ChainBack {
        /// Duration of the outage, in milliseconds.
        away_ms: u64,
    },
}

/// The outcome of a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubmissionResult {
    /// The chain accepted the proof.
    Confirmed,
    /// The chain refused the proof, for good.
    Rejected,
    /// The proof may not have reached the chain.
    Lost,
}

/// The consequence of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// Time until the proof is submitted again, in milliseconds from now.
    pub retry_in_ms: Option<u64>,
}

/// An answer to a submission that is no longer in flight, because its task was undone or confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("submission {submission} of task {task} is not in flight: its answer changes nothing")]
pub struct StaleResult {
    pub task: TaskId,
    pub submission: u64,
}

/// The effect of a confirmation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confirmation {
    /// The task is confirmed.
    Applied,
    /// An ancestor is not confirmed yet: the confirmation is held until it is.
    Held,
    /// The task had already been confirmed.
    Duplicate,
}

/// Why a confirmation is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfirmError {
    /// The task is unknown.
    #[error("task {0} is not known: it was never scheduled, or was pruned")]
    UnknownTask(TaskId),
    /// The task failed or was rolled back.
    #[error("task {0} was rolled back: a confirmation does not revive it, schedule it again")]
    TaskNotActive(TaskId),
}

impl ConfirmError {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::UnknownTask(_) => "unknown_task",
            Self::TaskNotActive(_) => "task_not_active",
        }
    }
}

/// Why an output or a proof is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompletionError {
    /// The task is unknown.
    #[error("task {0} is not known: schedule it first")]
    UnknownTask(TaskId),
    /// The task already has its output, or its proof.
    #[error("task {0} is complete already")]
    AlreadyCompleted(TaskId),
    /// The task failed or was rolled back.
    #[error("task {0} was rolled back: schedule it again")]
    TaskNotActive(TaskId),
    /// The proof arrived before the output.
    #[error("task {0} has no output yet: give its output before its proof")]
    NoOutput(TaskId),
    /// The proof has the wrong length.
    #[error("a proof of {got} bytes for task {task}: expected {PROOF_BYTES}")]
    BadProofSize { task: TaskId, got: usize },
}

impl CompletionError {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::UnknownTask(_) => "unknown_task",
            Self::AlreadyCompleted(_) => "already_completed",
            Self::TaskNotActive(_) => "task_not_active",
            Self::NoOutput(_) => "no_output",
            Self::BadProofSize { .. } => "bad_proof_size",
        }
    }
}

/// The terms on which a task was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TaskTerms {
    /// In the smallest unit; bonds fit this range.
    pub(super) bond: u64,
    /// The digest of the outputs that it reads.
    pub(super) inputs: Hash,
    /// Time of acceptance, in milliseconds.
    pub(super) accepted_at: u64,
    pub(super) claim_expires_at: u64,
    /// The earliest of the task's deadlines; [`NEVER`] without one.
    pub(super) deadline: u64,
    pub(super) attempt: u32,
    /// Whether its confirmation arrived before its parents'.
    pub(super) held: bool,
}

impl Default for TaskTerms {
    fn default() -> Self {
        Self {
            bond: 0,
            inputs: Hash::ZERO,
            accepted_at: 0,
            claim_expires_at: NEVER,
            deadline: NEVER,
            attempt: 0,
            held: false,
        }
    }
}

/// Counts since the start, named like the metrics (AgenC §8.1).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Counters {
    pub tasks_scheduled: u64,
    /// Tasks refused, in the order of [`Reason::ALL`](super::Reason::ALL). A repeated request that
    /// is refused for the same reason counts once ([`Request::refused`]).
    pub tasks_rejected: Vec<u64>,
    /// Proofs handed out for submission, including repetitions.
    pub proofs_submitted: u64,
    pub proofs_confirmed: u64,
    /// Proofs that the chain refused or that were not delivered.
    pub proofs_failed: u64,
    /// Rollbacks, in the order of [`RollbackReason::ALL`].
    pub rollbacks: Vec<u64>,
    pub tasks_rolled_back: u64,
}
record!(Counters {
    tasks_scheduled,
    tasks_rejected,
    proofs_submitted,
    proofs_confirmed,
    proofs_failed,
    rollbacks,
    tasks_rolled_back,
});

impl Counters {
    /// Increments one entry of a row of counts.
    pub(super) fn count(row: &mut Vec<u64>, at: usize) {
        if row.len() <= at {
            row.resize(at + 1, 0);
        }
        row[at] += 1;
    }
}

/// Current values, named like the metrics (AgenC §8.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gauges {
    /// Commitments whose proofs may still be confirmed.
    pub active_commitments: u64,
    /// Proofs that are queued, being made, waiting, ready or in flight.
    pub pending_proofs: u64,
    /// Pending proofs that no prover has begun with.
    pub queued_proofs: u64,
    /// Proofs that are being made.
    pub proving: u64,
    /// Proofs that wait until every ancestor is confirmed.
    pub waiting_proofs: u64,
    /// Proofs that may be submitted, at once or after a back-off.
    pub ready_proofs: u64,
    /// Proofs in flight.
    pub submitting_proofs: u64,
    /// Sum of the bonds of live tasks.
    pub locked_stake: Wei,
    /// Depth of the deepest live task.
    pub max_depth_current: u32,
}

/// The current state of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskView {
    pub id: TaskId,
    pub status: DependencyStatus,
    pub depth: u32,
    /// Its bond, locked while it is live.
    pub bond: Wei,
    /// When its claim expires, in milliseconds.
    pub claim_expires_at: u64,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// Whether its confirmation waits for its parents'.
    pub held: bool,
    /// The status of its proof.
    pub proof: ProofStatus,
    /// Number of submissions of its proof so far.
    pub submissions: u32,
}

/// Speculative execution of one agent's tasks.
///
/// Every call that may change something takes the time in milliseconds, from any origin; a time
/// before the latest one counts as the latest. Everything that is due by then happens first. After
/// each call:
///
/// * drain [`poll_output`](Self::poll_output) until it is empty, and follow the outputs;
/// * set a timer for [`next_deadline`](Self::next_deadline) and call [`advance`](Self::advance)
///   then. Deadlines that pass at the same time are handled roots first, so a late call undoes the
///   same tasks.
///
/// A refused call changes nothing but the time. Take a snapshot only when no output is pending:
/// outputs are not part of it, except that proofs in flight are handed out again.
#[derive(Clone, Debug)]
pub struct Speculation {
    pub(super) config: Config,
    pub(super) now: u64,
    pub(super) graph: Graph,
    pub(super) ledger: Ledger,
    pub(super) deferral: Deferral,
    pub(super) terms: Table<TaskTerms>,
    pub(super) stake: Stake,
    pub(super) bonds: Bonds,
    pub(super) breaker: Breaker,
    /// Present while the chain cannot be reached.
    pub(super) away: Option<Away>,
    pub(super) cooldown_until: u64,
    /// Every task's earliest deadline.
    pub(super) deadlines: BTreeSet<(u64, TaskIndex)>,
    pub(super) triggers: VecDeque<(TaskId, RollbackReason)>,
    pub(super) checkpoints: VecDeque<Checkpoint>,
    pub(super) history: VecDeque<Summary>,
    pub(super) counters: Counters,
    pub(super) pruned_at: u64,
    /// Bytes that the driver uses for the machine's tasks.
    pub(super) elsewhere: u64,
    pub(super) outputs: VecDeque<EngineOutput>,
    /// Events to be taken, if they are enabled.
    pub(super) events: Option<VecDeque<Event>>,
}

impl Speculation {
    /// A machine at `now`, without tasks or stake.
    pub fn new(config: Config, now: u64) -> Self {
        Self {
            config,
            now,
            graph: Graph::default(),
            ledger: Ledger::default(),
            deferral: Deferral::default(),
            terms: Table::default(),
            stake: Stake::default(),
            bonds: Bonds::UNBOUND,
            breaker: Breaker::default(),
            away: None,
            cooldown_until: 0,
            deadlines: BTreeSet::new(),
            triggers: VecDeque::new(),
            checkpoints: VecDeque::new(),
            history: VecDeque::new(),
            counters: Counters::default(),
            pruned_at: now,
            elsewhere: 0,
            outputs: VecDeque::new(),
            events: None,
        }
    }

    /// The next output, oldest first.
    pub fn poll_output(&mut self) -> Option<EngineOutput> {
        self.outputs.pop_front()
    }

    /// Accepts a task and locks its bond, or returns the rule that it breaks.
    pub fn schedule(&mut self, request: RunRequest<'_>, now: u64) -> Result<Scheduled, Refused> {
        self.advance(now);
        let accepted = self.accept(request);
        match &accepted {
            Ok(Scheduled { depth, bond, attempt, .. }) => {
                self.counters.tasks_scheduled += 1;
                let (depth, bond, attempt) = (*depth, *bond, *attempt);
                let kind = SpeculationEventKind::TaskScheduled { depth, bond, attempt };
                self.tell_of(Some(request.task), kind);
            }
            Err(refused) if request.refused == Some(refused.reason) => {}
            Err(Refused { reason, depth, bond, .. }) => {
                Counters::count(&mut self.counters.tasks_rejected, *reason as usize);
                let (reason, depth, bond) = (*reason, *depth, *bond);
                let kind = SpeculationEventKind::TaskRejected { reason, depth, bond };
                self.tell_of(Some(request.task), kind);
            }
        }
        accepted
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

    /// Takes the proof of a task whose output is known.
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

    /// Takes the chain's answer to a submission.
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

    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The latest time passed to a call, in milliseconds.
    pub const fn now(&self) -> u64 {
        self.now
    }

    /// The graph of its tasks.
    pub const fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The agent's stake.
    pub const fn stake(&self) -> &Stake {
        &self.stake
    }

    /// The circuit breaker's state and history.
    pub const fn breaker(&self) -> &Breaker {
        &self.breaker
    }

    /// The circuit breaker's current state.
    pub fn breaker_state(&self) -> BreakerState {
        self.breaker.state(self.config.breaker, self.now)
    }

    /// Whether the breaker lets tasks speculate now.
    pub fn can_proceed(&self) -> bool {
        self.breaker.can_proceed(self.config.breaker, self.now)
    }

    /// The current state of a task.
    pub fn task(&self, id: &TaskId) -> Option<TaskView> {
        let at = self.graph.find(id)?;
        let (terms, entry) = (&self.terms[at], self.deferral.get(at));
        Some(TaskView {
            id: *id,
            status: self.graph.status_of(at),
            depth: self.graph.depth(id)?,
            bond: self.bond(at),
            claim_expires_at: terms.claim_expires_at,
            attempt: terms.attempt,
            held: terms.held,
            proof: entry.status,
            submissions: entry.attempts,
        })
    }

    /// A task's commitment.
    pub fn commitment(&self, id: &TaskId) -> Option<&OutputCommitment> {
        self.ledger.get(self.graph.find(id)?)
    }

    /// The tasks that committed to an output, in order of their places in the table.
    pub fn committed_to(&self, output: Hash) -> Vec<TaskId> {
        self.ledger.by_output(output).map(|at| self.graph.id(at)).collect()
    }

    /// A task's proof, from when it is made until the task is resolved.
    pub fn proof(&self, id: &TaskId) -> Option<&[u8; PROOF_BYTES]> {
        self.commitment(id)?.proof.as_deref()
    }

    /// The outputs that checkpoints kept, oldest first.
    pub fn checkpoints(&self) -> impl Iterator<Item = &Checkpoint> {
        self.checkpoints.iter()
    }

    /// The last rollbacks, oldest first, at most [`HISTORY`].
    pub fn history(&self) -> impl Iterator<Item = &Summary> {
        self.history.iter()
    }

    /// Counts since the start.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The current values of the gauges.
    pub fn gauges(&self) -> Gauges {
        let proofs = |status| self.deferral.count(status) as u64;
        Gauges {
            active_commitments: self.ledger.open() as u64,
            pending_proofs: self.deferral.pending() as u64,
            queued_proofs: proofs(ProofStatus::Queued),
            proving: proofs(ProofStatus::Proving),
            waiting_proofs: proofs(ProofStatus::Waiting),
            ready_proofs: proofs(ProofStatus::Ready) + proofs(ProofStatus::BackOff),
            submitting_proofs: proofs(ProofStatus::Submitting),
            locked_stake: self.stake.locked,
            max_depth_current: self.graph.max_depth(),
        }
    }

    /// Number of proofs that wait for a slot, and of those in flight.
    pub fn proofs(&self) -> (usize, usize) {
        (self.deferral.ready(), self.deferral.in_flight())
    }

    /// Sets the memory used elsewhere for the machine's tasks, in bytes: it counts towards
    /// `limits.maxMemoryMb`, and is not part of a snapshot.
    pub const fn set_memory_elsewhere(&mut self, bytes: u64) {
        self.elsewhere = bytes;
    }

    /// Bytes of memory in use, by the machine and as set for elsewhere.
    pub fn memory(&self) -> u64 {
        let lists = self.checkpoints.capacity() * size_of::<Checkpoint>()
            + self.history.capacity() * size_of::<Summary>()
            + self.outputs.capacity() * size_of::<EngineOutput>();
        let bytes = self.graph.bytes()
            + self.ledger.bytes()
            + self.deferral.bytes()
            + self.terms.bytes()
            + tree_bytes::<(u64, TaskIndex)>(self.deadlines.len())
            + lists;
        (bytes as u64).saturating_add(self.elsewhere)
    }

    pub(super) fn bond(&self, at: TaskIndex) -> Wei {
        Wei::new(self.terms[at].bond.into())
    }

    /// The place of a task that has no output yet.
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
            depth: self.graph.counted_depth(at),
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
        self.deferral.queue(at, self.graph.counted_depth(at), self.graph.is_clear(at));
        self.tell_proof(at);
        self.watch(at);
        self.settle();
    }
}

/// Checks the length of a proof.
fn sized(task: TaskId, proof: &[u8]) -> Result<&[u8; PROOF_BYTES], CompletionError> {
    let got = proof.len();
    proof.try_into().map_err(|_| CompletionError::BadProofSize { task, got })
}

/// Links to parents whose outputs are all read.
pub fn reads(parents: &[TaskId]) -> Vec<(TaskId, ParentLink)> {
    parents.iter().map(|&parent| (parent, ParentLink::Reads)).collect()
}
