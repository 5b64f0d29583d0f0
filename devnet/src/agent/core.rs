//! The agent's state and decisions: all pipelines over one speculation machine. The core never
//! waits. Its work for the outside world comes out as [`AgentAction`]s, and their results come back
//! in as calls with the current time.

mod misproof;
mod onchain;
mod proofs;
mod reach;
mod told;
mod undo;

use self::reach::Reach;
use super::{
    chain_message::{ChainMessage, MessageKind},
    journal::Journal,
    run::{Run, StageTimes, TaskRun},
    spans::{Spans, TaskStage},
};
use crate::{
    api::types::{HashText, TASK_EXECUTING, TaskStatus},
    speculation::pipeline::{Checked, TaskFault, elements},
    topology::Options,
};
use cowboy_engine::{
    chain::{inputs_digest, statement_task},
    job::spec::JobSpec,
    primitives::{Address, Hash, Height, Wei, keccak256},
    proof::{Element, Statement, Witness},
    speculation::{
        Bonds, ConfigError, EngineOutput, Opening, ParentLink, Reason, Refused, RollbackReason,
        RunRequest, Slashing, Speculation, Summary, TaskId, away::TRIES,
    },
};
use serde_json::json;
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    mem,
    ops::Bound,
    sync::Arc,
};

/// Ended pipelines that are kept; the oldest is forgotten first.
pub(super) const ENDED_PIPELINES: usize = 256;
/// Maximum tasks of all ended pipelines together; the newest pipeline is kept whatever its size.
const ENDED_TASKS: usize = 20_000;
/// Maximum bytes of all their outputs together, with the same exception.
const ENDED_BYTES: u64 = 64 << 20;
/// Maximum number of tasks that are not final, over all pipelines.
pub(super) const MAX_OPEN: usize = 100_000;
/// Rollbacks that are kept.
pub(super) const ROLLBACKS: usize = 1_000;
/// Maximum number of undone tasks that a rollback lists.
const NAMED: usize = 100;
/// Tasks that may be refused in a row before the rest wait for the next round.
pub(super) const REFUSALS: usize = 64;
/// Length of a task's claim when its pipeline sets none, in ms; twice `claimBufferMs` if that is
/// longer.
pub(super) const CLAIM_MS: u64 = 600_000;
const MIB: u64 = 1 << 20;

/// Work for the outside world.
pub(super) enum AgentAction {
    /// Have a runner do a task's work.
    Execute { task: TaskId, attempt: u32, spec: Box<JobSpec>, until: u64 },
    /// Make a task's proof.
    Prove { task: TaskId, attempt: u32, what: Box<ToProve>, latency_ms: u64, crash: bool },
    /// Stop all work for the task's attempts up to this one.
    Stop { task: TaskId, attempt: u32 },
    /// Tell the chain something.
    Send(ChainMessage),
    /// Report the chain's confirmation to the machine at this time, Unix ms.
    ConfirmAt { task: TaskId, at: u64 },
}

/// The inputs of a proof.
pub(super) struct ToProve {
    /// The statement's id for the task and its inputs.
    pub(super) task: [u8; 32],
    pub(super) witness: Witness,
    /// Public inputs that replace the proof's own to make it false.
    pub(super) says: Option<Statement>,
}

/// Events to count in metrics.
pub(super) enum Count {
    Scheduled {
        depth: u32,
    },
    Rejected {
        reason: Reason,
    },
    ProofGenerated {
        task: TaskId,
        took_ms: u64,
    },
    ProofSubmitted {
        task: TaskId,
        attempt: u32,
    },
    ProofDelivered {
        task: TaskId,
        took_ms: u64,
    },
    ProofFailed {
        task: TaskId,
    },
    Confirmed {
        waited_ms: Option<u64>,
    },
    RolledBack(Summary),
    /// The chain has slashed part of a bond.
    Slashed {
        task: TaskId,
        reason: Option<RollbackReason>,
        amount: Wei,
    },
}

/// The record of a rollback.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Undone {
    /// Counts up from 1.
    pub(super) number: u64,
    pub(super) at: u64,
    pub(super) pipeline: u64,
    pub(super) task: String,
    pub(super) task_id: HashText,
    pub(super) reason: String,
    pub(super) tasks: u64,
    pub(super) undone: Vec<String>,
    /// Bonds that the chain has slashed so far, in wei.
    pub(super) slashed: u64,
    /// Bonds that the chain has released so far, in wei.
    pub(super) released: u64,
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum AskError {
    #[error("there is no pipeline {0}")]
    NoPipeline(u64),
    #[error("pipeline {0} has no task `{1}`")]
    NoTask(u64, String),
    #[error("task `{0}` is already {1} and cannot be cancelled")]
    Final(String, TaskStatus),
    #[error("pipeline {0} has no failed task: nothing can be retried")]
    NothingFailed(u64),
    #[error("task `{0}` is {1}: the pipeline still runs it")]
    StillRuns(String, TaskStatus),
    #[error("task `{0}` is {1}: only failed or rolled-back tasks can be retried")]
    NotFailed(String, TaskStatus),
    #[error("task `{task}` depends on `{parent}`, which is {status} and has to succeed first")]
    ParentEnded { task: String, parent: String, status: TaskStatus },
    #[error("task `{task}`: claim_ms is {ms}: expected more than claimBufferMs, which is {buffer}")]
    ShortClaim { task: String, ms: u64, buffer: u64 },
    #[error("{0} tasks are unfinished and at most {MAX_OPEN} are allowed: wait until some finish")]
    Full(usize),
}

pub(super) struct Core {
    pub(super) agent: Address,
    secret: [u8; 32],
    pub(super) machine: Speculation,
    pub(super) options: Options,
    pub(super) runs: BTreeMap<u64, Run>,
    places: BTreeMap<TaskId, (u64, usize)>,
    /// Waiting tasks whose parents all have outputs, by pipeline and rank: tasks with parents, and
    /// roots, which open branches.
    ready: [BTreeSet<(u64, usize, usize)>; 2],
    pub(super) next: u64,
    pub(super) rollbacks: VecDeque<Undone>,
    /// Rollbacks that are new or changed since the last write.
    pub(super) new_rollbacks: Vec<Undone>,
    actions: Vec<AgentAction>,
    counts: Vec<Count>,
    pub(super) spans: Spans,
    pub(super) journal: Journal,
    /// Bytes of all kept outputs.
    output_bytes: u64,
    /// Tasks to be stored at the next write.
    pub(super) dirty: BTreeSet<(u64, usize)>,
    pub(super) dirty_outputs: BTreeSet<(u64, usize)>,
    pub(super) dirty_runs: BTreeSet<u64>,
    pub(super) forgotten: Vec<u64>,
    /// The last block whose slashes are in the books.
    pub(super) booked: Height,
    /// Whether the books have changed and are not stored yet.
    pub(super) dirty_books: bool,
    /// Whether waiting tasks should be tried again.
    stirred: bool,
    /// The reason of each waiting task's last refusal.
    refused: BTreeMap<TaskId, Reason>,
    reach: Reach,
    /// Live tasks below one that has failed for good; the chain will never accept them.
    doomed: Vec<TaskId>,
    /// Whether it is unknown which transactions an earlier process sent.
    resuming: bool,
}

impl Core {
    /// A core without pipelines, over a chain with a block every `block_ms`.
    pub(super) fn new(
        agent: Address,
        secret: [u8; 32],
        options: Options,
        block_ms: u64,
        now: u64,
    ) -> Self {
        let mut machine = Speculation::new(options.config.clone(), now);
        machine.set_stake(Wei::new(options.deposit.into()));
        Self {
            agent,
            secret,
            machine,
            options,
            runs: BTreeMap::new(),
            places: BTreeMap::new(),
            ready: Default::default(),
            next: 1,
            rollbacks: VecDeque::new(),
            new_rollbacks: Vec::new(),
            actions: Vec::new(),
            counts: Vec::new(),
            spans: Spans::new(0, agent, None),
            journal: Journal::new(now),
            output_bytes: 0,
            dirty: BTreeSet::new(),
            dirty_outputs: BTreeSet::new(),
            dirty_runs: BTreeSet::new(),
            forgotten: Vec::new(),
            booked: Height::GENESIS,
            dirty_books: false,
            stirred: false,
            refused: BTreeMap::new(),
            reach: Reach::new(block_ms),
            doomed: Vec::new(),
            resuming: false,
        }
    }

    /// Takes the chain's bond terms, if they have changed. The machine's books follow the chain's
    /// events for slashes, so slashing in the machine itself is off.
    pub(super) fn set_bonds(&mut self, bonds: &Bonds) {
        let bonds = Bonds { slashing: Slashing::NONE, ..*bonds };
        if *self.machine.bonds() != bonds {
            self.machine.set_bonds(bonds);
            self.stirred = true;
        }
    }

    /// The actions and counts since the last call.
    pub(super) fn take(&mut self) -> (Vec<AgentAction>, Vec<Count>) {
        self.tell();
        (mem::take(&mut self.actions), mem::take(&mut self.counts))
    }

    pub(super) fn open(&self) -> usize {
        self.runs.values().map(|run| run.open).sum()
    }

    pub(super) fn waiting(&self) -> usize {
        let waits =
            |run: &Run| run.tasks.iter().filter(|t| t.status == TaskStatus::Waiting).count();
        self.runs.values().filter(|run| run.open > 0).map(waits).sum()
    }

    pub(super) fn place(&self, task: &TaskId) -> Option<(u64, usize)> {
        self.places.get(task).copied()
    }

    pub(super) fn task(&self, task: &TaskId) -> Option<(&Run, usize)> {
        let (number, at) = self.place(task)?;
        Some((self.runs.get(&number)?, at))
    }

    fn change(&mut self, (number, at): (u64, usize), change: impl FnOnce(&mut TaskRun)) {
        if let Some(run) = self.runs.get_mut(&number) {
            let was = run.tasks[at].status.is_final();
            change(&mut run.tasks[at]);
            match (was, run.tasks[at].status.is_final()) {
                (false, true) => run.open -= 1,
                (true, false) => run.open += 1,
                _ => {}
            }
            self.dirty.insert((number, at));
        }
    }

    /// Accepts a pipeline.
    pub(super) fn submit(&mut self, pipeline: Checked, now: u64) -> Result<u64, AskError> {
        let open = self.open();
        if open + pipeline.tasks.len() > MAX_OPEN {
            return Err(AskError::Full(open));
        }
        let buffer = self.machine.config().claim_buffer_ms;
        let short = pipeline.tasks.iter().map(|task| &task.entry);
        let short = short.filter_map(|entry| Some((&entry.id, entry.claim_ms?)));
        if let Some((task, ms)) = short.clone().find(|(_, ms)| *ms <= buffer) {
            return Err(AskError::ShortClaim { task: task.clone(), ms, buffer });
        }
        let number = self.next;
        self.next += 1;
        self.adopt(Run::new(&self.agent, number, pipeline, now));
        self.dirty_runs.insert(number);
        let tasks = self.runs[&number].tasks.len();
        self.dirty.extend((0..tasks).map(|at| (number, at)));
        self.forget();
        self.go_on(now);
        Ok(number)
    }

    /// Registers a pipeline.
    pub(super) fn adopt(&mut self, run: Run) {
        let number = run.number;
        let mut ready = Vec::new();
        for (at, task) in run.tasks.iter().enumerate() {
            self.places.insert(task.id, (number, at));
            self.output_bytes += task.output.as_ref().map_or(0, |output| output.len() as u64);
            if task.status == TaskStatus::Waiting && run.can_run(at) {
                ready.push(at);
            }
        }
        self.next = self.next.max(number + 1);
        self.runs.insert(number, run);
        self.trace(number);
        for at in ready {
            self.set_ready(number, at, true);
        }
        self.stirred = true;
    }

    /// Forgets the oldest ended pipelines beyond the limits.
    pub(super) fn forget(&mut self) {
        let ended = self.runs.values().filter(|run| run.open == 0);
        let size = |run: &Run| (run.tasks.len(), run.output_bytes());
        let ended: Vec<_> = ended.map(|run| (run.number, size(run))).collect();
        let (mut pipelines, mut tasks, mut bytes) = (0, 0, 0);
        // The newest one always stays.
        for (number, size) in ended.into_iter().rev() {
            (pipelines, tasks, bytes) = (pipelines + 1, tasks + size.0, bytes + size.1);
            let within =
                pipelines <= ENDED_PIPELINES && tasks <= ENDED_TASKS && bytes <= ENDED_BYTES;
            if pipelines == 1 || within {
                continue;
            }
            let Some(run) = self.runs.remove(&number) else { continue };
            self.output_bytes -= run.output_bytes();
            for task in run.tasks {
                self.places.remove(&task.id);
            }
            self.forgotten.push(number);
        }
    }

    /// Advances to `now`: passed deadlines, their consequences, and tasks that can be scheduled.
    pub(super) fn advance(&mut self, now: u64) {
        self.machine.advance(now);
        self.stirred = true;
        self.go_on(now);
    }

    /// Follows the machine's outputs and schedules what it accepts, until nothing changes.
    fn go_on(&mut self, now: u64) {
        loop {
            self.heed_all(now);
            while let Some(task) = self.doomed.pop() {
                self.undo(task, RollbackReason::AncestorFailed, now);
            }
            if !mem::take(&mut self.stirred) {
                return;
            }
            self.machine.set_memory_elsewhere(self.memory_elsewhere());
            self.schedule_ready(now);
        }
    }

    /// Memory in bytes that the machine does not count itself: outputs and memory faults.
    fn memory_elsewhere(&self) -> u64 {
        let open = self.runs.values().filter(|run| run.open > 0);
        let faults = open.flat_map(|run| {
            run.memory_faults.iter().filter(|(at, _)| {
                let task = &run.tasks[*at];
                let waits = task.status == TaskStatus::Waiting;
                task.attempt == 1 && !waits && !task.status.is_final()
            })
        });
        let faults = faults.map(|(_, mb)| mb.saturating_mul(MIB));
        faults.fold(self.output_bytes, u64::saturating_add)
    }

    fn schedule_ready(&mut self, now: u64) {
        // A limit on new branches need not stop tasks that open none.
        for kind in 0..self.ready.len() {
            let (mut refused, mut from) = (0, Bound::Unbounded);
            while refused < REFUSALS {
                let next = self.ready[kind].range((from, Bound::Unbounded)).next().copied();
                let Some((number, rank, at)) = next else { break };
                from = Bound::Excluded((number, rank, at));
                // If it fails at once, it may be ready again by then.
                self.ready[kind].remove(&(number, rank, at));
                let Err(error) = self.schedule(number, at, now) else { continue };
                refused += 1;
                self.refuse((number, at), &error);
                if error.reason == Reason::ClaimTooSoon {
                    // A retry would fail too: its claim never gets longer.
                    self.ended(number, at, TaskStatus::Failed, now);
                } else {
                    self.ready[kind].insert((number, rank, at));
                }
            }
        }
    }

    fn refuse(&mut self, place: (u64, usize), error: &Refused) {
        let run = &self.runs[&place.0];
        let task = &run.tasks[place.1];
        let (id, text) = (task.id, error.to_string());
        let told = task.reason.as_ref() == Some(&text);
        // Only a new reason counts.
        if self.refused.insert(id, error.reason) != Some(error.reason) {
            self.counts.push(Count::Rejected { reason: error.reason });
        }
        if !told {
            self.change(place, |task| task.reason = Some(text));
        }
    }

    /// Marks a task as ready to be scheduled, or no longer.
    fn set_ready(&mut self, number: u64, at: usize, ready: bool) {
        let run = &self.runs[&number];
        let kind = usize::from(run.pipeline.tasks[at].parents.is_empty());
        let key = (number, run.rank[at], at);
        if ready {
            self.ready[kind].insert(key);
        } else {
            self.ready[kind].remove(&key);
        }
    }

    fn schedule(&mut self, number: u64, at: usize, now: u64) -> Result<(), Refused> {
        let run = &self.runs[&number];
        let (id, written) = (run.tasks[at].id, &run.pipeline.tasks[at]);
        let parent = |(parent, order_only): &(usize, bool)| {
            let link = if *order_only { ParentLink::OrderOnly } else { ParentLink::Reads };
            let task = &run.tasks[*parent];
            // The machine may have forgotten confirmed tasks.
            let known = task.status != TaskStatus::Confirmed
                || self.machine.graph().status(&task.id).is_some();
            known.then_some((task.id, link))
        };
        let parents: Vec<_> = written.parents.iter().filter_map(parent).collect();
        let buffer = self.machine.config().claim_buffer_ms;
        let long = CLAIM_MS.max(buffer.saturating_mul(2));
        let until = now.saturating_add(written.entry.claim_ms.unwrap_or(long));
        let inputs = self.inputs_of(number, at);
        let refused = self.refused.get(&id).copied();
        let request = RunRequest { inputs, refused, ..RunRequest::new(id, &parents, until) };
        let span = self.spans.schedule(number, &id);
        let scheduled = match self.machine.schedule(request, now) {
            Ok(scheduled) => scheduled,
            Err(error) => {
                let news = refused != Some(error.reason);
                self.spans.refused(span, news.then(|| names(&parents)).as_deref(), &error);
                return Err(error);
            }
        };
        self.spans.accepted(span, &names(&parents), scheduled.depth, scheduled.bond);
        self.refused.remove(&id);
        // An output made from other inputs is not reused.
        let task = &self.runs[&number].tasks[at];
        let usable = task.may_have_landed() || scheduled.checkpoint.is_some();
        let again = task.output.clone();
        let again = again.filter(|_| usable && task.inputs.map(|one| one.0) == Some(inputs));
        // The machine has forgotten the attempts of a task resolved long ago.
        let attempt = scheduled.attempt.max(task.attempt.saturating_add(1));
        self.counts.push(Count::Scheduled { depth: scheduled.depth });
        self.change((number, at), |task| {
            task.status = TaskStatus::Running;
            task.reason = None;
            task.attempt = attempt;
            task.depth = scheduled.depth;
            task.bond = u64::try_from(scheduled.bond.get()).ok();
            task.claim_expires_at = until;
            task.runner = None;
            task.proof_ms = None;
            task.times = StageTimes { scheduled: Some(now), ..StageTimes::default() };
        });
        if scheduled.depth > 0
            && let Some(run) = self.runs.get_mut(&number)
            && !mem::replace(&mut run.speculated, true)
        {
            self.dirty_runs.insert(number);
        }
        self.send(id, attempt, MessageKind::Create);
        self.send(id, attempt, MessageKind::Claim { until });
        if let Some(output) = again {
            // Its inputs stay as recorded, whatever its parents have put out since.
            self.executed(number, at, output, now);
            return Ok(());
        }
        self.drop_output((number, at));
        self.change((number, at), |task| task.inputs = Some(inputs.into()));
        let run = &self.runs[&number];
        match run.pipeline.tasks[at].work(&run.inputs(at)) {
            Ok(spec) => {
                let spec = Box::new(spec);
                self.actions.push(AgentAction::Execute { task: id, attempt, spec, until });
            }
            Err(error) => {
                self.fails((number, at), format!("its job cannot be built: {error}"), now);
            }
        }
        Ok(())
    }

    fn send(&mut self, task: TaskId, attempt: u32, kind: MessageKind) {
        let doubtful = self.resuming
            || match kind {
                // An earlier attempt may have sent it.
                MessageKind::Create | MessageKind::Commit => attempt > 1,
                // The chain may have ended the commitment by itself.
                MessageKind::Resolve(reason) => reason.is_some(),
                MessageKind::Claim { .. } | MessageKind::Complete { .. } => false,
            };
        self.actions.push(AgentAction::Send(ChainMessage { task, attempt, kind, doubtful }));
    }

    /// The place of a task if `attempt` is the current one and the task has this status.
    fn present(&self, task: &TaskId, attempt: u32, status: TaskStatus) -> Option<(u64, usize)> {
        let (number, at) = self.place(task)?;
        let run = self.runs.get(&number)?;
        let task = &run.tasks[at];
        (task.attempt == attempt && task.status == status).then_some((number, at))
    }

    /// A runner has begun a task's work, or (`None`) no suitable runner is free.
    pub(super) fn given(&mut self, task: &TaskId, attempt: u32, runner: Option<String>, now: u64) {
        if let Some(place) = self.present(task, attempt, TaskStatus::Running) {
            if let Some(runner) = &runner {
                let data = json!({ "attempt": attempt, "runner": runner });
                self.tell_of(task, TASK_EXECUTING, data, now);
            }
            let none = || "no runner that can do it is there and free: it waits for one".to_owned();
            let reason = runner.is_none().then(none);
            self.change(place, |task| (task.runner, task.reason) = (runner, reason));
        }
    }

    /// A task's work has ended.
    pub(super) fn worked(
        &mut self,
        task: &TaskId,
        attempt: u32,
        outcome: Result<Vec<u8>, String>,
        now: u64,
    ) {
        self.machine.advance(now);
        self.heed_all(now);
        let Some((number, at)) = self.present(task, attempt, TaskStatus::Running) else { return };
        match outcome {
            Ok(output) => self.executed(number, at, Arc::new(output), now),
            Err(error) => self.fails((number, at), error, now),
        }
        self.stirred = true;
        self.go_on(now);
    }

    fn heed_all(&mut self, now: u64) {
        while let Some(output) = self.machine.poll_output() {
            self.stirred = true;
            self.heed(output, now);
        }
    }

    /// The witness of a task's output: its salt follows from the agent's secret, so that the same
    /// output always has the same commitment.
    fn witness(&self, task: &TaskId, output: &[u8]) -> Witness {
        let digest = keccak256(&[output]);
        let salt = keccak256(&[b"cowboy/salt/v1", &self.secret, &task.0, &digest.0]);
        Witness { output: elements(output), salt: Element::reduce(&salt.0) }
    }

    /// The digest of the inputs that a task would have now.
    pub(super) fn inputs_of(&self, number: u64, at: usize) -> Hash {
        let run = &self.runs[&number];
        let reads = run.pipeline.tasks[at].parents.iter().filter(|(_, order_only)| !order_only);
        inputs_digest(reads.map(|(parent, _)| {
            let task = &run.tasks[*parent];
            let output = task.output.as_deref().map_or(&[][..], Vec::as_slice);
            (task.id, self.witness(&task.id, output).output_commitment())
        }))
    }

    /// The seed of the randomness that blinds a task's proof.
    pub(super) fn proof_seed(&self, task: &TaskId) -> [u8; 32] {
        keccak256(&[b"cowboy/proof-seed/v1", &self.secret, &task.0]).0
    }

    fn executed(&mut self, number: u64, at: usize, output: Arc<Vec<u8>>, now: u64) {
        let id = self.runs[&number].tasks[at].id;
        let witness = self.witness(&id, &output);
        let opening = Opening {
            output_commitment: Hash(witness.output_commitment().to_bytes()),
            constraint_hash: Hash(witness.constraint_hash().to_bytes()),
            salt: witness.salt.to_bytes(),
        };
        let taken = self.runs[&number].tasks[at].taken;
        if taken.is_some_and(|taken| taken.0 != opening.output_commitment) {
            return self.is_another((number, at), now);
        }
        if let Err(error) = self.machine.executed(id, opening, now) {
            tracing::warn!(task = %id, %error, "output not taken");
            return;
        }
        let before = self.runs[&number].tasks[at].output.as_ref().map_or(0, |o| o.len() as u64);
        self.output_bytes = self.output_bytes - before + output.len() as u64;
        let attempt = self.runs[&number].tasks[at].attempt;
        self.dirty_outputs.insert((number, at));
        self.change((number, at), |task| {
            task.status = TaskStatus::Proving;
            task.reason = None;
            task.times.executed = Some(now);
            task.output = Some(output);
        });
        if self.runs[&number].entry(at).checkpoint {
            self.machine.checkpoint(&id);
        }
        self.send(id, attempt, MessageKind::Commit);
        let run = &self.runs[&number];
        let waits = |child: &usize| run.tasks[*child].status == TaskStatus::Waiting;
        let children = run.children[at].iter().copied();
        let able: Vec<_> = children.filter(waits).filter(|child| run.can_run(*child)).collect();
        for child in able {
            self.set_ready(number, child, true);
        }
        self.stirred = true;
    }

    /// Changes options: all of them, or none on an error.
    pub(super) fn configure(
        &mut self,
        settings: &BTreeMap<String, String>,
        now: u64,
    ) -> Result<(), Vec<ConfigError>> {
        let all = || settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let options = self.options.with(all())?;
        if options.deposit != self.options.deposit {
            let slashed = self.machine.stake().slashed;
            self.machine.set_stake(Wei::new(options.deposit.into()).saturating_sub(slashed));
        }
        self.machine.set_config(options.config.clone(), now);
        self.options = options;
        self.stirred = true;
        self.go_on(now);
        Ok(())
    }

    fn heed(&mut self, output: EngineOutput, now: u64) {
        match output {
            EngineOutput::Prove { task } => self.prove(task),
            EngineOutput::Submit { task, submission, attempt } => {
                let Some(place) = self.place(&task) else { return };
                let run = &self.runs[&place.0];
                let first = run.tasks[place.1].attempt == 1;
                let fault = run.pipeline.tasks[place.1].fault;
                let wrong = first && fault == Some(TaskFault::WrongProof);
                let of = run.tasks[place.1].attempt;
                let landed = run.tasks[place.1].landed;
                self.change(place, |task| {
                    task.status = TaskStatus::Submitted;
                    task.times.submitted = task.times.submitted.or(Some(now));
                });
                self.counts.push(Count::ProofSubmitted { task, attempt });
                let stage = if landed { TaskStage::Wait } else { TaskStage::Submit };
                self.spans.begin(place.0, &task, stage, attempt);
                if landed {
                    // The chain has had the proof since an earlier attempt.
                    self.actions.push(AgentAction::ConfirmAt { task, at: now });
                } else {
                    self.send(task, of, MessageKind::Complete { submission, wrong });
                }
            }
            EngineOutput::Confirmed { task, .. } => {
                let Some(place) = self.place(&task) else { return };
                let task_run = &self.runs[&place.0].tasks[place.1];
                let (attempt, times) = (task_run.attempt, task_run.times);
                let waited_ms = times.delivered.map(|at| now.saturating_sub(at));
                let brought = task_run.sent.iter().rev();
                let brought = brought.clone().find(|(kind, _)| kind == "complete_task_private");
                let transaction = brought.map(|(_, hash)| *hash);
                self.change(place, |task| {
                    task.status = TaskStatus::Confirmed;
                    task.reason = None;
                    task.times.submitted = task.times.submitted.or(Some(now));
                    task.times.proved = task.times.proved.or(Some(now));
                    task.proof_ms = task.proof_ms.or(Some(0));
                    task.times.confirmed = Some(now);
                });
                self.counts.push(Count::Confirmed { waited_ms });
                self.spans.confirmed(&task, transaction, waited_ms);
                self.actions.push(AgentAction::Stop { task, attempt });
                self.send(task, attempt, MessageKind::Resolve(None));
                self.end_run(place.0, now);
            }
            EngineOutput::RolledBack(plan) => self.rolled_back(&plan, now),
            EngineOutput::LateSuccess { task } => {
                tracing::info!(%task, "the chain has confirmed what was rolled back here");
            }
            EngineOutput::Breaker(state) => tracing::warn!(%state, "circuit breaker"),
            EngineOutput::TryChain { attempt } => {
                tracing::warn!(attempt, of = TRIES, "the chain cannot be reached: tried again");
                if attempt == TRIES {
                    tracing::error!("speculation is paused until the chain can be reached");
                }
            }
            EngineOutput::ChainBack { away_ms } => self.prolonged(away_ms),
        }
    }

    fn prove(&mut self, task: TaskId) {
        let Some((number, at)) = self.place(&task) else { return };
        let run = &self.runs[&number];
        let (attempt, fault) = (run.tasks[at].attempt, run.pipeline.tasks[at].fault);
        let fault = fault.filter(|_| attempt == 1);
        let Some(output) = run.tasks[at].output.clone() else { return };
        let more = match fault {
            Some(TaskFault::Slow(ms)) => ms,
            _ => 0,
        };
        let latency_ms = self.options.proof_latency_ms.saturating_add(more);
        let inputs = run.tasks[at].inputs.map_or(Hash::ZERO, |inputs| inputs.0);
        let witness = self.witness(&task, &output);
        let honest = ToProve { task: statement_task(&task, &inputs), witness, says: None };
        let false_one = fault.and_then(|fault| self.misproof((number, at), fault, &honest));
        let what = Box::new(false_one.unwrap_or(honest));
        let crash = fault == Some(TaskFault::Crash);
        self.actions.push(AgentAction::Prove { task, attempt, what, latency_ms, crash });
    }
}

/// Parents in the format of log lines.
fn names(parents: &[(TaskId, ParentLink)]) -> String {
    parents.iter().map(|(id, _)| id.to_string()).collect::<Vec<_>>().join(",")
}
