//! The agent's state and decisions: all pipelines over one speculation machine. The core never
//! waits. Its work for the outside world comes out as [`AgentAction`]s, and their results come back
//! in as calls with the current time.
//!
//! | file | subject |
//! |---|---|
//! | `schedule` | which waiting tasks start |
//! | `work` | runners' work and its outputs |
//! | `proofs`, `misproof` | orders to the provers, and their reports |
//! | `onchain` | the chain's answers, and resuming after a restart |
//! | `payload` | what messages say to the chain |
//! | `undo` | failures, cancellations, retries |
//! | `reach` | whether the chain can be reached |
//! | `told` | events for the journal |

mod misproof;
mod onchain;
mod payload;
mod proofs;
mod reach;
mod schedule;
mod told;
mod undo;
mod work;

use self::reach::Reach;
use super::{
    chain_message::{ChainMessage, MessageKind},
    journal::Journal,
    run::{Run, TaskRun},
    spans::{Spans, TaskStage},
};
use crate::{
    speculation::pipeline::{Checked, TaskFault},
    topology::Options,
    types::{HashText, TaskStatus},
};
use cowboy_engine::{
    job::spec::JobSpec,
    primitives::{Address, Height, Wei},
    proof::{Statement, Witness},
    speculation::{
        Bonds, ConfigError, EngineOutput, Reason, RollbackReason, Slashing, Speculation, Summary,
        TaskId, away::TRIES,
    },
};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    mem,
};

/// Ended pipelines that are kept; the oldest is forgotten first.
pub(super) const ENDED_PIPELINES: usize = 256;
/// Maximum tasks of all ended pipelines together; the newest pipeline is kept whatever its size.
const ENDED_TASKS: usize = 20_000;
/// Maximum bytes of all their outputs together, with the same exception.
const ENDED_BYTES: u64 = 64 << 20;
/// Maximum number of tasks that are not final, over all pipelines.
pub(super) const MAX_OPEN: usize = 100_000;
pub(super) const ROLLBACKS: usize = 1_000;
/// Maximum number of undone tasks that a rollback lists.
const NAMED: usize = 100;
const MIB: u64 = 1 << 20;

pub(super) enum AgentAction {
    Execute {
        task: TaskId,
        attempt: u32,
        spec: Box<JobSpec>,
        until: u64,
    },
    Prove {
        task: TaskId,
        attempt: u32,
        what: Box<ToProve>,
        latency_ms: u64,
        crash: bool,
    },
    /// Stop all work for the task's attempts up to this one.
    Stop {
        task: TaskId,
        attempt: u32,
    },
    Send(ChainMessage),
    /// Report the chain's confirmation to the machine at this time, Unix ms.
    ConfirmAt {
        task: TaskId,
        at: u64,
    },
}

pub(super) struct ToProve {
    /// The statement's id for the task and its inputs.
    pub(super) task: [u8; 32],
    pub(super) witness: Witness,
    /// Public inputs that replace the proof's own to make it false.
    pub(super) says: Option<Statement>,
}

/// Events to count in metrics; `Slashed`: by the chain, a part of a bond.
pub(super) enum Count {
    Scheduled { depth: u32 },
    Rejected { reason: Reason },
    ProofGenerated { task: TaskId, took_ms: u64 },
    ProofSubmitted { task: TaskId, attempt: u32 },
    ProofDelivered { task: TaskId, took_ms: u64 },
    ProofFailed { task: TaskId },
    Confirmed { waited_ms: Option<u64> },
    RolledBack(Summary),
    Slashed { task: TaskId, reason: Option<RollbackReason>, amount: Wei },
}

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
    pub(super) new_rollbacks: Vec<Undone>,
    actions: Vec<AgentAction>,
    counts: Vec<Count>,
    pub(super) spans: Spans,
    pub(super) journal: Journal,
    output_bytes: u64,
    pub(super) dirty: BTreeSet<(u64, usize)>,
    pub(super) dirty_outputs: BTreeSet<(u64, usize)>,
    pub(super) dirty_runs: BTreeSet<u64>,
    pub(super) forgotten: Vec<u64>,
    /// The last block whose slashes are in the books.
    pub(super) booked: Height,
    pub(super) dirty_books: bool,
    stirred: bool,
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

    fn heed_all(&mut self, now: u64) {
        while let Some(output) = self.machine.poll_output() {
            self.stirred = true;
            self.heed(output, now);
        }
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
}
