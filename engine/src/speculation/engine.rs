//! All machines of speculation as one.

use super::{
    Bonds, CommitmentStatus, Config, ConfigError, FailError, Link, PROOF_BYTES, ProofStatus,
    Refused, Request, RollbackReason, Scheduled, Stake, Status, TaskId,
    away::Away,
    breaker::{Breaker, BreakerState},
    deferral::Deferral,
    event::{Event, EventKind},
    graph::Graph,
    ledger::{Checkpoint, Commitment, Ledger, Opening},
    rollback::{Plan, Summary},
    settle::NEVER,
    table::{Table, Task, tree_bytes},
};
use crate::{
    primitives::{Hash, Wei},
    record,
};
use std::collections::{BTreeSet, VecDeque};

/// Rollbacks that are remembered.
pub const HISTORY: usize = 64;

/// What the machine wants of whoever drives it, or tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Make the proof of a task whose output was given: call [`Speculation::proving`] when a prover
    /// begins with it, then [`Speculation::proved`].
    Prove {
        /// The task.
        task: TaskId,
    },
    /// Bring [`Speculation::proof`] of a task onto the chain, then call [`Speculation::answer`].
    /// The same proof may be asked for twice, after a restore.
    Submit {
        /// The task.
        task: TaskId,
        /// What the answer is to name.
        submission: u64,
        /// Which attempt this is, from 1.
        attempt: u32,
    },
    /// A task is confirmed, its bond released.
    Confirmed {
        /// The task.
        task: TaskId,
        /// The bond.
        released: Wei,
    },
    /// A rollback was carried out.
    RolledBack(Plan),
    /// The chain accepted what had been rolled back here; it stays so.
    LateSuccess {
        /// The task.
        task: TaskId,
    },
    /// The circuit breaker opened or closed.
    Breaker(BreakerState),
    /// Try to reach the chain that is away, then call [`Speculation::chain_back`] if it is there.
    /// After the last attempt no task is accepted until it is.
    TryChain {
        /// Which try this is, from 1 to [`TRIES`](super::away::TRIES).
        attempt: u32,
    },
    /// The chain can be reached again.
    ChainBack {
        /// How long it was away, in milliseconds.
        away_ms: u64,
    },
}

/// What became of a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The chain accepted the proof.
    Confirmed,
    /// The chain refused the proof, for good.
    Rejected,
    /// The proof may not have reached the chain.
    Lost,
}

/// What follows from an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// When the proof goes out again, in milliseconds from now.
    pub retry_in_ms: Option<u64>,
}

/// An answer to what is not in flight: its task was undone or confirmed meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("submission {submission} of task {task} is not in flight: its answer changes nothing")]
pub struct StaleResult {
    /// The task.
    pub task: TaskId,
    /// The submission.
    pub submission: u64,
}

/// What a confirmation did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confirmation {
    /// The task is confirmed.
    Applied,
    /// An ancestor is not confirmed yet: it counts from then on.
    Held,
    /// The task was confirmed already.
    Duplicate,
}

/// Why a confirmation does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfirmError {
    /// A task that nobody knows.
    #[error("task {0} is not known: it was never scheduled, or was pruned")]
    UnknownTask(TaskId),
    /// A task that failed or was rolled back.
    #[error("task {0} was rolled back: a confirmation does not revive it, schedule it again")]
    TaskNotActive(TaskId),
}

impl ConfirmError {
    /// Its name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::UnknownTask(_) => "unknown_task",
            Self::TaskNotActive(_) => "task_not_active",
        }
    }
}

/// Why an output or a proof is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompletionError {
    /// A task that nobody knows.
    #[error("task {0} is not known: schedule it first")]
    UnknownTask(TaskId),
    /// A task whose output, or proof, is there already.
    #[error("task {0} is complete already")]
    AlreadyCompleted(TaskId),
    /// A task that failed or was rolled back.
    #[error("task {0} was rolled back: schedule it again")]
    TaskNotActive(TaskId),
    /// A proof before the output.
    #[error("task {0} has no output yet: a proof is of one")]
    NoOutput(TaskId),
    /// A proof of another length.
    #[error("a proof of {got} bytes for task {task}: expected {PROOF_BYTES}")]
    BadProofSize {
        /// The task.
        task: TaskId,
        /// The length.
        got: usize,
    },
}

impl CompletionError {
    /// Its name.
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

/// What a task was accepted on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    /// In the smallest unit; no bond is beyond that range.
    pub(super) bond: u64,
    /// The digest of the outputs that it reads.
    pub(super) inputs: Hash,
    /// When it was accepted, in milliseconds.
    pub(super) accepted_at: u64,
    pub(super) claim_expires_at: u64,
    /// The earliest time at which something ends by itself; [`NEVER`] if nothing does.
    pub(super) deadline: u64,
    pub(super) attempt: u32,
    /// Whether its confirmation came before its parents'.
    pub(super) held: bool,
}

impl Default for Terms {
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

/// What happened since the start, under the names of the metrics (AgenC §8.1).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Counters {
    /// Tasks accepted.
    pub tasks_scheduled: u64,
    /// Tasks refused, in the order of [`Reason::ALL`](super::Reason::ALL); one that asks again and
    /// is refused for the same reason counts once ([`Request::refused`]).
    pub tasks_rejected: Vec<u64>,
    /// Proofs handed out for submission, repetitions included.
    pub proofs_submitted: u64,
    /// Tasks confirmed.
    pub proofs_confirmed: u64,
    /// Proofs that the chain refused or that were not delivered.
    pub proofs_failed: u64,
    /// Rollbacks, in the order of [`RollbackReason::ALL`].
    pub rollbacks: Vec<u64>,
    /// Tasks undone.
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
    /// Adds one to a row of counts.
    pub(super) fn count(row: &mut Vec<u64>, at: usize) {
        if row.len() <= at {
            row.resize(at + 1, 0);
        }
        row[at] += 1;
    }
}

/// What stands at the moment, under the names of the metrics (AgenC §8.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gauges {
    /// Commitments whose proofs may still be confirmed.
    pub active_commitments: u64,
    /// Proofs that are queued, being made, wait, are ready or in flight.
    pub pending_proofs: u64,
    /// Those of them that no prover has begun with.
    pub queued_proofs: u64,
    /// Those that are being made.
    pub proving: u64,
    /// Those that wait until every ancestor is confirmed.
    pub waiting_proofs: u64,
    /// Those that may go out, at once or when they have backed off.
    pub ready_proofs: u64,
    /// Those in flight.
    pub submitting_proofs: u64,
    /// Bonds of live tasks.
    pub locked_stake: Wei,
    /// Depth of the deepest live task.
    pub max_depth_current: u32,
}

/// A task as it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskView {
    /// The task.
    pub id: TaskId,
    /// Its status.
    pub status: Status,
    /// Its depth now.
    pub depth: u32,
    /// Its bond, locked while it is live.
    pub bond: Wei,
    /// When its claim expires, in milliseconds.
    pub claim_expires_at: u64,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// Whether its confirmation waits for its parents'.
    pub held: bool,
    /// Where its proof is.
    pub proof: ProofStatus,
    /// Submissions of its proof so far.
    pub submissions: u32,
}

/// Speculative execution of one agent's tasks.
///
/// Every call that may change something takes the time in milliseconds, from any origin; a time
/// before the latest one counts as that. What is due by then happens first. After each call:
///
/// * drain [`poll_output`](Self::poll_output) until there is none, and do what it says;
/// * set a timer for [`next_deadline`](Self::next_deadline) and call [`advance`](Self::advance)
///   then. What is due at once is taken roots first, so a late call undoes no less, and no more.
///
/// A refused call changes nothing but the time. A snapshot is to be taken with no output pending:
/// outputs are not part of it, except that proofs in flight are handed out again.
#[derive(Clone, Debug)]
pub struct Speculation {
    pub(super) config: Config,
    pub(super) now: u64,
    pub(super) graph: Graph,
    pub(super) ledger: Ledger,
    pub(super) deferral: Deferral,
    pub(super) terms: Table<Terms>,
    pub(super) stake: Stake,
    pub(super) bonds: Bonds,
    pub(super) breaker: Breaker,
    /// The chain, while it cannot be reached.
    pub(super) away: Option<Away>,
    pub(super) cooldown_until: u64,
    /// When each task's earliest deadline is.
    pub(super) deadlines: BTreeSet<(u64, Task)>,
    pub(super) triggers: VecDeque<(TaskId, RollbackReason)>,
    pub(super) checkpoints: VecDeque<Checkpoint>,
    pub(super) history: VecDeque<Summary>,
    pub(super) counters: Counters,
    pub(super) pruned_at: u64,
    /// Bytes that whoever drives it uses for its tasks.
    pub(super) elsewhere: u64,
    pub(super) outputs: VecDeque<Output>,
    /// What happened, where it is asked for.
    pub(super) events: Option<VecDeque<Event>>,
}

impl Speculation {
    /// A machine without tasks and without stake, at `now`.
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

    /// What is to be done, oldest first.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Accepts a task and locks its bond, or says which rule it breaks.
    pub fn schedule(&mut self, request: Request<'_>, now: u64) -> Result<Scheduled, Refused> {
        self.advance(now);
        let accepted = self.accept(request);
        match &accepted {
            Ok(Scheduled { depth, bond, attempt, .. }) => {
                self.counters.tasks_scheduled += 1;
                let (depth, bond, attempt) = (*depth, *bond, *attempt);
                let kind = EventKind::TaskScheduled { depth, bond, attempt };
                self.tell_of(Some(request.task), kind);
            }
            Err(refused) if request.refused == Some(refused.reason) => {}
            Err(Refused { reason, depth, bond, .. }) => {
                Counters::count(&mut self.counters.tasks_rejected, *reason as usize);
                let (reason, depth, bond) = (*reason, *depth, *bond);
                let kind = EventKind::TaskRejected { reason, depth, bond };
                self.tell_of(Some(request.task), kind);
            }
        }
        accepted
    }

    /// Takes a task's output: from now on its commitment stands, and its proof is asked for. Yields
    /// its bond.
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

    /// A prover begins with a task's proof: `proof.timeoutMs` runs from now on.
    pub fn proving(&mut self, task: TaskId, now: u64) -> Result<(), CompletionError> {
        self.advance(now);
        let at = self.graph.find(&task).ok_or(CompletionError::UnknownTask(task))?;
        match (self.graph.status_of(at), self.deferral.get(at).status) {
            (Status::Speculative, ProofStatus::Queued) => {
                let until = self.now.saturating_add(self.config.proof_timeout_ms);
                self.move_proof(at, ProofStatus::Proving, until);
                self.watch(at);
                Ok(())
            }
            (Status::Pending, _) => Err(CompletionError::NoOutput(task)),
            (Status::Speculative | Status::Confirmed, _) => {
                Err(CompletionError::AlreadyCompleted(task))
            }
            (Status::Failed | Status::RolledBack, _) => Err(CompletionError::TaskNotActive(task)),
        }
    }

    /// Takes the proof of a task whose output is known.
    pub fn proved(&mut self, task: TaskId, proof: &[u8], now: u64) -> Result<(), CompletionError> {
        self.advance(now);
        let at = self.graph.find(&task).ok_or(CompletionError::UnknownTask(task))?;
        match (self.graph.status_of(at), self.deferral.get(at).status) {
            (Status::Pending, _) => return Err(CompletionError::NoOutput(task)),
            (
                Status::Speculative,
                ProofStatus::Queued | ProofStatus::Proving | ProofStatus::Held,
            ) => {}
            (Status::Speculative | Status::Confirmed, _) => {
                return Err(CompletionError::AlreadyCompleted(task));
            }
            (Status::Failed | Status::RolledBack, _) => {
                return Err(CompletionError::TaskNotActive(task));
            }
        }
        let proof = sized(task, proof)?;
        self.queue(at, proof);
        Ok(())
    }

    /// Takes a task's output and its proof at once; yields its bond.
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

    /// A submission has reached the chain: `confirmationTimeoutMs` begins anew.
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
        self.tell(at, EventKind::ProofSubmitted { attempt });
        self.watch(at);
        Ok(())
    }

    /// Takes the answer to a submission.
    pub fn answer(
        &mut self,
        task: TaskId,
        submission: u64,
        answer: Answer,
        now: u64,
    ) -> Result<Answered, StaleResult> {
        self.advance(now);
        let at = match self.in_flight(task, submission) {
            Ok(at) => at,
            Err(stale) => {
                let undone =
                    matches!(self.graph.status(&task), Some(Status::Failed | Status::RolledBack));
                if answer == Answer::Confirmed && undone {
                    self.outputs.push_back(Output::LateSuccess { task });
                }
                return Err(stale);
            }
        };
        let mut retry_in_ms = None;
        match answer {
            Answer::Confirmed => self.confirm_from(at),
            // It goes out when the chain is back.
            Answer::Lost if self.away.is_some() => self.hold_back(at),
            Answer::Lost if u64::from(self.deferral.get(at).attempts) < self.config.max_retries => {
                retry_in_ms = Some(self.back_off(at));
            }
            Answer::Lost | Answer::Rejected => {
                self.counters.proofs_failed += 1;
                self.tell(at, EventKind::ProofFailed);
                self.triggers.push_back((task, RollbackReason::ProofFailed));
            }
        }
        self.settle();
        Ok(Answered { retry_in_ms })
    }

    /// A task was confirmed on the chain, whoever submitted it.
    pub fn confirm(&mut self, task: TaskId, now: u64) -> Result<Confirmation, ConfirmError> {
        self.advance(now);
        let at = self.graph.find(&task).ok_or(ConfirmError::UnknownTask(task))?;
        match self.graph.status_of(at) {
            Status::Confirmed => return Ok(Confirmation::Duplicate),
            Status::Failed | Status::RolledBack => {
                self.outputs.push_back(Output::LateSuccess { task });
                return Err(ConfirmError::TaskNotActive(task));
            }
            Status::Pending | Status::Speculative => {}
        }
        if !self.graph.is_clear(at) {
            // The chain has it: nothing of its own can expire any more.
            self.terms[at].held = true;
            self.watch(at);
            return Ok(Confirmation::Held);
        }
        self.confirm_from(at);
        self.settle();
        Ok(Confirmation::Applied)
    }

    /// Asks for a rollback, to be carried out by the next call that takes the time.
    pub fn request_rollback(
        &mut self,
        task: TaskId,
        reason: RollbackReason,
    ) -> Result<(), FailError> {
        match self.graph.status(&task) {
            None => Err(FailError::UnknownTask(task)),
            Some(Status::Confirmed) => Err(FailError::AlreadyConfirmed(task)),
            Some(Status::Failed | Status::RolledBack) => Ok(()),
            Some(Status::Pending | Status::Speculative) => {
                self.triggers.push_back((task, reason));
                Ok(())
            }
        }
    }

    /// Rolls a task back with what depends on it; yields how many tasks that undid, which is none
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

    /// Keeps a task's output should a rollback take it, under the policy `checkpoint`; says whether
    /// there is one.
    pub fn checkpoint(&mut self, task: &TaskId) -> bool {
        let known = self.graph.find(task).filter(|&at| self.graph.status_of(at).is_live());
        let with_output = known.filter(|&at| self.ledger.get(at).is_some());
        with_output.inspect(|&at| self.ledger.set_checkpoint(at)).is_some()
    }

    /// Sets the agent's stake, as it is after all that was slashed so far.
    pub const fn set_stake(&mut self, amount: Wei) {
        self.stake.set(amount);
    }

    /// Changes options of the running machine: all, or none and what is wrong with them. What was
    /// accepted stays so, at the bond and with the times it was given.
    pub fn configure<'a>(
        &mut self,
        settings: impl IntoIterator<Item = (&'a str, &'a str)>,
        now: u64,
    ) -> Result<(), Vec<ConfigError>> {
        let config = self.config.with(settings)?;
        self.set_config(config, now);
        Ok(())
    }

    /// Gives the running machine another configuration, as [`configure`](Self::configure) does.
    pub fn set_config(&mut self, config: Config, now: u64) {
        self.advance(now);
        let before = self.breaker_state();
        self.config = config;
        let state = self.breaker_state();
        if state != before {
            self.outputs.push_back(Output::Breaker(state));
            self.tell_of(None, EventKind::BreakerChanged { state });
        }
        self.settle();
    }

    /// The configuration.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The latest time it was told.
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

    /// The circuit breaker.
    pub const fn breaker(&self) -> &Breaker {
        &self.breaker
    }

    /// What the circuit breaker lets through.
    pub fn breaker_state(&self) -> BreakerState {
        self.breaker.state(self.config.breaker, self.now)
    }

    /// Whether tasks may speculate now, as far as the breaker is concerned.
    pub fn can_proceed(&self) -> bool {
        self.breaker.can_proceed(self.config.breaker, self.now)
    }

    /// A task as it stands.
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
    pub fn commitment(&self, id: &TaskId) -> Option<&Commitment> {
        self.ledger.get(self.graph.find(id)?)
    }

    /// The tasks that committed to an output, by age of their places.
    pub fn committed_to(&self, output: Hash) -> Vec<TaskId> {
        self.ledger.by_output(output).map(|at| self.graph.id(at)).collect()
    }

    /// A task's proof, from when it is there until it is resolved.
    pub fn proof(&self, id: &TaskId) -> Option<&[u8; PROOF_BYTES]> {
        self.commitment(id)?.proof.as_deref()
    }

    /// The outputs that checkpoints kept, oldest first.
    pub fn checkpoints(&self) -> impl Iterator<Item = &Checkpoint> {
        self.checkpoints.iter()
    }

    /// The last rollbacks, oldest first, [`HISTORY`] at most.
    pub fn history(&self) -> impl Iterator<Item = &Summary> {
        self.history.iter()
    }

    /// What happened since the start.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// What stands at the moment.
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

    /// Proofs that may go out as soon as there is a slot, and those in flight.
    pub fn proofs(&self) -> (usize, usize) {
        (self.deferral.ready(), self.deferral.in_flight())
    }

    /// Says how much memory is used for its tasks elsewhere, in bytes: it counts for
    /// `limits.maxMemoryMb`, and is no part of a snapshot.
    pub const fn set_memory_elsewhere(&mut self, bytes: u64) {
        self.elsewhere = bytes;
    }

    /// Bytes of memory in use, by its own books and as it was told.
    pub fn memory(&self) -> u64 {
        let lists = self.checkpoints.capacity() * size_of::<Checkpoint>()
            + self.history.capacity() * size_of::<Summary>()
            + self.outputs.capacity() * size_of::<Output>();
        let bytes = self.graph.bytes()
            + self.ledger.bytes()
            + self.deferral.bytes()
            + self.terms.bytes()
            + tree_bytes::<(u64, Task)>(self.deadlines.len())
            + lists;
        (bytes as u64).saturating_add(self.elsewhere)
    }

    pub(super) fn bond(&self, at: Task) -> Wei {
        Wei::new(self.terms[at].bond.into())
    }

    /// The place of a task that waits for its output.
    fn pending(&self, task: TaskId) -> Result<Task, CompletionError> {
        let at = self.graph.find(&task).ok_or(CompletionError::UnknownTask(task))?;
        match self.graph.status_of(at) {
            Status::Pending => Ok(at),
            Status::Speculative | Status::Confirmed => Err(CompletionError::AlreadyCompleted(task)),
            Status::Failed | Status::RolledBack => Err(CompletionError::TaskNotActive(task)),
        }
    }

    fn in_flight(&self, task: TaskId, submission: u64) -> Result<Task, StaleResult> {
        let at = self.graph.find(&task).filter(|&at| {
            let entry = self.deferral.get(at);
            entry.status == ProofStatus::Submitting && entry.submission == submission
        });
        at.ok_or(StaleResult { task, submission })
    }

    fn commit(&mut self, at: Task, opening: Opening) {
        let output_commitment = opening.output_commitment;
        let commitment = Commitment {
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
        self.tell(at, EventKind::CommitmentCreated { output_commitment, expires_at });
        self.graph.speculate(at);
        self.tell(at, EventKind::NodeChanged { status: Status::Speculative });
        self.tell(at, EventKind::TaskCompleted { output_commitment });
    }

    fn queue(&mut self, at: Task, proof: &[u8; PROOF_BYTES]) {
        self.ledger.set_proof(at, proof);
        let status = CommitmentStatus::ProofGenerated;
        self.tell(at, EventKind::CommitmentUpdated { status });
        self.deferral.queue(at, self.graph.counted_depth(at), self.graph.is_clear(at));
        self.tell_proof(at);
        self.watch(at);
        self.settle();
    }
}

/// A proof of the right length.
fn sized(task: TaskId, proof: &[u8]) -> Result<&[u8; PROOF_BYTES], CompletionError> {
    let got = proof.len();
    proof.try_into().map_err(|_| CompletionError::BadProofSize { task, got })
}

/// What a request names as parents, where it reads all of their outputs.
pub fn reads(parents: &[TaskId]) -> Vec<(TaskId, Link)> {
    parents.iter().map(|&parent| (parent, Link::Reads)).collect()
}
