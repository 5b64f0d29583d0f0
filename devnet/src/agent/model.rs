//! Forecasts how long a pipeline takes, and which tasks wait and why, without running it.
//!
//! The agent's rules are simulated in virtual time with the agent's own speculation machine. A task
//! asks to be accepted as soon as its parents have outputs: tasks with parents before roots, each
//! group in topological order. Its work takes its cost; its proof waits for a free prover and takes
//! the proof's cost; it is submitted when the machine says so. The chain includes it in the first
//! block made after a validator has it. Blocks come at a fixed pace, and at most as many
//! transactions are in flight as the sender allows. With `enabled: false` this is the synchronous
//! pipeline.

use super::{CLAIM_MS, REFUSALS, WINDOW, run::Run};
use crate::speculation::pipeline::{Checked, TaskFault};
use cowboy_engine::{
    primitives::{Address, Wei, keccak256},
    proof::PROOF_BYTES,
    speculation::{
        Bonds, Config, EngineOutput, Opening, ParentLink, Plan, Reason, Refused, RollbackReason,
        RunRequest, Slashing, Speculation, TaskId, breaker::BreakerState,
    },
};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque},
    mem,
    ops::Bound,
};

/// Transactions that precede a task's work: its creation and its claim.
const BEFORE_WORK: usize = 2;
/// Waits of a task that are told apart; later ones are added to the last.
const WAITS: usize = 16;

/// The time that a task takes, in ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// From acceptance to its output.
    pub work_ms: u64,
    pub proof_ms: u64,
    /// Delay of its confirmation beyond the chain's own.
    pub late_ms: u64,
}

impl Cost {
    /// The time that a fault adds to a task's proof and to its confirmation, in ms.
    pub const fn added(fault: Option<TaskFault>) -> (u64, u64) {
        match fault {
            Some(TaskFault::Slow(ms)) => (ms, 0),
            Some(TaskFault::LateEvent(ms)) => (0, ms),
            _ => (0, 0),
        }
    }
}

/// The devnet that the forecast is for.
#[derive(Debug, Clone)]
pub struct Devnet {
    pub config: Config,
    pub bonds: Bonds,
    pub stake: Wei,
    /// Minimum time from a submission to its confirmation, in ms.
    pub latency_ms: u64,
    /// Time between two blocks, in ms.
    pub block_ms: u64,
    /// From the making of a block, with what a validator has by then, until it is seen, in ms.
    pub lag_ms: u64,
    /// How long the circuit breaker stays open, in ms; `None` if it is closed.
    pub breaker_ms: Option<u64>,
    pub expires: bool,
}

impl Devnet {
    /// A devnet with speculation off that confirms everything: stake, time and memory do not limit
    /// it.
    pub(super) fn synchronous(config: &Config, latency_ms: u64, pace: (u64, u64)) -> Self {
        let mut config = config.clone();
        config.enabled = false;
        config.max_stake = u64::MAX;
        config.proof_timeout_ms = u64::MAX;
        config.proof_queue_timeout_ms = u64::MAX;
        config.confirmation_timeout_ms = u64::MAX;
        config.commitment_ttl_ms = u64::MAX;
        config.max_pending_operations = u64::MAX;
        config.queue_size = u64::MAX;
        config.max_memory_mb = u64::MAX;
        Self {
            config,
            bonds: Bonds::UNBOUND,
            stake: Wei::new(u64::MAX.into()),
            latency_ms,
            block_ms: pace.0,
            lag_ms: pace.1,
            breaker_ms: None,
            expires: false,
        }
    }
}

/// The forecast of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forecast {
    /// From its submission to its last confirmation, in ms; `None` if a task is not confirmed.
    pub length_ms: Option<u64>,
    pub peak: Wei,
    /// Its tasks, in the order of its file.
    pub tasks: Vec<TaskForecast>,
}

/// The forecast of a task. Times are ms from its pipeline's submission; `None` if the task does not
/// get that far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskForecast {
    /// Unconfirmed ancestors when it is accepted.
    pub depth: Option<u32>,
    pub bond: Option<Wei>,
    /// Refusals before it is accepted, in order.
    pub waits: Vec<Wait>,
    pub failed: Option<RollbackReason>,
    /// All parents have outputs.
    pub ready_ms: Option<u64>,
    pub scheduled_ms: Option<u64>,
    pub executed_ms: Option<u64>,
    pub proving_ms: Option<u64>,
    pub proved_ms: Option<u64>,
    pub submitted_ms: Option<u64>,
    pub confirmed_ms: Option<u64>,
}

/// A time during which a task is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    pub reason: Reason,
    pub from_ms: u64,
    /// The end, in ms; `None` if it does not end.
    pub until_ms: Option<u64>,
}

/// Forecasts a pipeline that an agent would accept under this number.
pub fn forecast(
    pipeline: Checked,
    (agent, number): (&Address, u64),
    costs: &[Cost],
    devnet: &Devnet,
) -> Forecast {
    of_run(&Run::new(agent, number, pipeline, 0), costs, devnet)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ModelEvent {
    Worked(usize),
    Proved(usize),
    Confirmed(usize),
    Block,
    HalfOpen,
}

struct Play<'a> {
    run: &'a Run,
    costs: &'a [Cost],
    devnet: &'a Devnet,
    machine: Speculation,
    places: BTreeMap<TaskId, usize>,
    /// The machine's time when the pipeline is submitted.
    start: u64,
    now: u64,
    /// By time, then by the order in which they were added.
    events: BinaryHeap<Reverse<(u64, u64, ModelEvent)>>,
    begun: u64,
    missing: Vec<usize>,
    /// Tasks that ask to be accepted, by rank: those with parents, and roots.
    ready: [BTreeSet<(usize, usize)>; 2],
    refused: [Option<Reason>; 2],
    stirred: bool,
    proving: BTreeSet<usize>,
    to_prove: VecDeque<usize>,
    submissions: Vec<u64>,
    /// Transactions that wait for the sender; one with a proof names its task.
    messages: VecDeque<Option<usize>>,
    /// Transactions that a validator has, and since when.
    flying: VecDeque<(u64, Option<usize>)>,
    awaited: bool,
    tasks: Vec<TaskForecast>,
    peak: Wei,
}

pub(super) fn of_run(run: &Run, costs: &[Cost], devnet: &Devnet) -> Forecast {
    let mut play = Play::new(run, costs, devnet);
    play.fill();
    while play.step() {}
    let tasks = play.tasks;
    let confirmed: Option<Vec<u64>> = tasks.iter().map(|task| task.confirmed_ms).collect();
    let length_ms = confirmed.and_then(|all| all.into_iter().max());
    Forecast { length_ms, peak: play.peak, tasks }
}

impl<'a> Play<'a> {
    fn new(run: &'a Run, costs: &'a [Cost], devnet: &'a Devnet) -> Self {
        let tasks = costs.len();
        let parents = |at: usize| run.pipeline.tasks[at].parents.len();
        let mut machine = Speculation::new(devnet.config.clone(), 0);
        machine.set_bonds(Bonds { slashing: Slashing::NONE, ..devnet.bonds });
        let mut start = 0;
        let mut events = BinaryHeap::new();
        if let Some(left) = devnet.breaker_ms {
            open(&mut machine);
            start = devnet.config.breaker.reset_ms.saturating_add(1).saturating_sub(left);
            events.push(Reverse((left, 0, ModelEvent::HalfOpen)));
        }
        machine.set_stake(devnet.stake);
        let mut play = Self {
            run,
            costs,
            devnet,
            machine,
            places: run.tasks.iter().enumerate().map(|(at, task)| (task.id, at)).collect(),
            start,
            now: 0,
            events,
            begun: 0,
            missing: (0..tasks).map(parents).collect(),
            ready: Default::default(),
            refused: [None; 2],
            stirred: true,
            proving: BTreeSet::new(),
            to_prove: VecDeque::new(),
            submissions: vec![0; tasks],
            messages: VecDeque::new(),
            flying: VecDeque::new(),
            awaited: false,
            tasks: vec![TaskForecast::default(); tasks],
            peak: Wei::ZERO,
        };
        for at in (0..tasks).filter(|at| parents(*at) == 0) {
            play.asks(at);
        }
        play
    }

    /// Performs the next event; false when none is left.
    fn step(&mut self) -> bool {
        let live = self.machine.graph().live() > 0;
        let due = self.machine.next_deadline().filter(|_| live);
        let due = due.map(|at| at.saturating_sub(self.start));
        let next = self.events.peek().map(|Reverse((at, ..))| *at);
        match due.filter(|due| next.is_none_or(|at| *due < at)) {
            Some(due) => {
                self.now = self.now.max(due);
                self.machine.advance(self.time());
                self.heed();
            }
            None => {
                let Some(Reverse((at, _, event))) = self.events.pop() else { return false };
                self.now = at;
                self.happens(event);
            }
        }
        self.fill();
        true
    }

    const fn time(&self) -> u64 {
        self.start.saturating_add(self.now)
    }

    fn id(&self, task: usize) -> TaskId {
        self.run.tasks[task].id
    }

    fn is_undone(&self, task: usize) -> bool {
        self.tasks[task].failed.is_some()
    }

    /// All parents of a task have outputs, so it asks to be accepted.
    fn asks(&mut self, task: usize) {
        let kind = usize::from(self.run.pipeline.tasks[task].parents.is_empty());
        self.ready[kind].insert((self.run.rank[task], task));
        self.tasks[task].ready_ms = Some(self.now);
        self.stirred = true;
    }

    fn happens(&mut self, event: ModelEvent) {
        let time = self.time();
        match event {
            ModelEvent::Worked(task) => {
                if self.is_undone(task) {
                    return;
                }
                self.messages.push_back(None);
                let id = self.id(task);
                let opening = Opening { output_commitment: id, constraint_hash: id, salt: [0; 32] };
                if self.machine.executed(id, opening, time).is_ok() {
                    self.tasks[task].executed_ms = Some(self.now);
                }
                self.heed();
                let run = self.run;
                for child in &run.children[task] {
                    self.missing[*child] -= 1;
                    if self.missing[*child] == 0 && !self.is_undone(*child) {
                        self.asks(*child);
                    }
                }
            }
            ModelEvent::Proved(task) => {
                if !self.proving.remove(&task) {
                    return;
                }
                if self.machine.proved(self.id(task), &[0; PROOF_BYTES], time).is_ok() {
                    self.tasks[task].proved_ms = Some(self.now);
                }
                self.heed();
            }
            ModelEvent::Confirmed(task) => {
                // An undone task stays undone.
                let _ = self.machine.confirm(self.id(task), time);
                self.heed();
            }
            ModelEvent::Block => {
                self.awaited = false;
                self.stirred = true;
                let made = self.now.saturating_sub(self.devnet.lag_ms);
                while let Some((_, message)) = self.flying.pop_front_if(|(since, _)| *since <= made)
                {
                    let Some(task) = message else { continue };
                    let submitted = self.tasks[task].submitted_ms.unwrap_or(0);
                    let least = submitted.saturating_add(self.devnet.latency_ms);
                    let at = self.now.max(least).saturating_add(self.costs[task].late_ms);
                    self.ends(at, ModelEvent::Confirmed(task));
                }
            }
            ModelEvent::HalfOpen => self.stirred = true,
        }
    }

    fn heed(&mut self) {
        while let Some(output) = self.machine.poll_output() {
            let at = |task: &TaskId| self.places.get(task).copied();
            match output {
                EngineOutput::Prove { task } => self.to_prove.extend(at(&task)),
                EngineOutput::Submit { task, submission, .. } => {
                    let Some(at) = at(&task) else { continue };
                    self.tasks[at].submitted_ms.get_or_insert(self.now);
                    self.submissions[at] = submission;
                    self.messages.push_back(Some(at));
                }
                EngineOutput::Confirmed { task, .. } => {
                    let Some(at) = at(&task) else { continue };
                    self.tasks[at].confirmed_ms = Some(self.now);
                    self.messages.push_back(None);
                    self.stirred = true;
                }
                EngineOutput::RolledBack(plan) => self.rolled_back(&plan),
                EngineOutput::LateSuccess { .. }
                | EngineOutput::Breaker(_)
                | EngineOutput::TryChain { .. }
                | EngineOutput::ChainBack { .. } => {}
            }
        }
    }

    fn rolled_back(&mut self, plan: &Plan) {
        let tasks = plan.tasks.iter().filter_map(|id| self.places.get(id).copied());
        for at in tasks.collect::<Vec<_>>() {
            let reason = match self.id(at) == plan.summary.trigger {
                true => plan.summary.reason,
                false => RollbackReason::AncestorFailed,
            };
            self.undo(at, reason);
            self.messages.push_back(None);
        }
    }

    fn undo(&mut self, task: usize, reason: RollbackReason) {
        let mut left = vec![(task, reason)];
        while let Some((at, reason)) = left.pop() {
            if self.is_undone(at) || self.tasks[at].confirmed_ms.is_some() {
                continue;
            }
            self.tasks[at].failed = Some(reason);
            self.proving.remove(&at);
            for kind in &mut self.ready {
                kind.remove(&(self.run.rank[at], at));
            }
            let children = self.run.children[at].iter();
            let waiting = children.filter(|child| self.tasks[**child].scheduled_ms.is_none());
            left.extend(waiting.map(|child| (*child, RollbackReason::AncestorFailed)));
        }
        self.stirred = true;
    }

    fn fill(&mut self) {
        while mem::take(&mut self.stirred) {
            self.schedule_ready();
        }
        let provers = self.devnet.config.worker_threads;
        while (self.proving.len() as u64) < provers
            && let Some(task) = self.to_prove.pop_front()
        {
            let time = self.time();
            if self.is_undone(task) || self.machine.proving(self.id(task), time).is_err() {
                continue;
            }
            self.proving.insert(task);
            self.tasks[task].proving_ms = Some(self.now);
            self.ends(self.now.saturating_add(self.costs[task].proof_ms), ModelEvent::Proved(task));
        }
        while self.flying.len() < WINDOW
            && let Some(message) = self.messages.pop_front()
        {
            self.flying.push_back((self.now, message));
            if let Some(task) = message {
                let (id, submission, time) = (self.id(task), self.submissions[task], self.time());
                // Stale if the task was undone since.
                let _ = self.machine.submitted(id, submission, time);
            }
        }
        if let Some((since, _)) = self.flying.front().filter(|_| !self.awaited) {
            // The pipeline is submitted halfway between two blocks.
            let (pace, half) = (self.devnet.block_ms, self.devnet.block_ms / 2);
            let least = since.saturating_add(self.devnet.lag_ms).max(self.now + 1);
            let at = least.saturating_sub(half).div_ceil(pace).saturating_mul(pace) + half;
            self.ends(at, ModelEvent::Block);
            self.awaited = true;
        }
    }

    fn schedule_ready(&mut self) {
        for kind in 0..self.ready.len() {
            let (mut refusals, mut from) = (0, Bound::Unbounded);
            while refusals < REFUSALS {
                let next = self.ready[kind].range((from, Bound::Unbounded)).next().copied();
                let Some((rank, task)) = next else { break };
                from = Bound::Excluded((rank, task));
                match self.schedule(task) {
                    Ok(()) => {
                        self.ready[kind].remove(&(rank, task));
                        self.accepted(task, self.refused[kind]);
                    }
                    Err(Refused { reason, .. }) => {
                        refusals += 1;
                        self.refused[kind] = Some(reason);
                        self.waits(task, reason);
                        if reason == Reason::ClaimTooSoon {
                            self.undo(task, RollbackReason::ClaimExpired);
                        } else if self.run.pipeline.tasks[task].parents.is_empty() {
                            // All roots would be refused for the same reason.
                            break;
                        }
                    }
                }
            }
        }
    }

    fn schedule(&mut self, task: usize) -> Result<(), Refused> {
        let written = &self.run.pipeline.tasks[task];
        let parent = |(parent, order_only): &(usize, bool)| {
            let link = if *order_only { ParentLink::OrderOnly } else { ParentLink::Reads };
            let id = self.run.tasks[*parent].id;
            // The machine may have forgotten confirmed tasks.
            self.machine.graph().status(&id).map(|_| (id, link))
        };
        let parents: Vec<_> = written.parents.iter().filter_map(parent).collect();
        let long = CLAIM_MS.max(self.devnet.config.claim_buffer_ms.saturating_mul(2));
        let claim = written.entry.claim_ms.unwrap_or(long);
        let until = match self.devnet.expires {
            true => self.time().saturating_add(claim),
            false => u64::MAX,
        };
        let request = RunRequest::new(self.run.tasks[task].id, &parents, until);
        let scheduled = self.machine.schedule(request, self.time())?;
        self.heed();
        let locked = self.machine.stake().locked;
        self.peak = if locked > self.peak { locked } else { self.peak };
        let forecast = &mut self.tasks[task];
        (forecast.depth, forecast.bond) = (Some(scheduled.depth), Some(scheduled.bond));
        forecast.scheduled_ms = Some(self.now);
        self.messages.extend([None; BEFORE_WORK]);
        self.ends(self.now.saturating_add(self.costs[task].work_ms), ModelEvent::Worked(task));
        Ok(())
    }

    /// A task is refused for this reason, newly or still.
    fn waits(&mut self, task: usize, reason: Reason) {
        let (now, task) = (self.now, &mut self.tasks[task]);
        let count = task.waits.len();
        let from_ms = match task.waits.last_mut() {
            Some(last) if last.reason == reason || count >= WAITS => return,
            Some(last) => *last.until_ms.insert(now),
            None => task.ready_ms.unwrap_or(now),
        };
        task.waits.push(Wait { reason, from_ms, until_ms: None });
    }

    /// Ends a task's wait. A task that never got a turn waited for the reason that stopped the
    /// others.
    fn accepted(&mut self, task: usize, others: Option<Reason>) {
        let (now, task) = (self.now, &mut self.tasks[task]);
        let ready = task.ready_ms.unwrap_or(now);
        if let Some(last) = task.waits.last_mut() {
            last.until_ms = Some(now);
        } else if let Some(reason) = others.filter(|_| ready < now) {
            task.waits.push(Wait { reason, from_ms: ready, until_ms: Some(now) });
        }
    }

    fn ends(&mut self, at: u64, event: ModelEvent) {
        self.begun += 1;
        self.events.push(Reverse((at, self.begun, event)));
    }
}

/// Opens a machine's circuit breaker at time 0 with failures of invented tasks.
fn open(machine: &mut Speculation) {
    machine.set_stake(Wei::new(u64::MAX.into()));
    for n in 0..=machine.config().breaker.threshold {
        let id = keccak256(&[b"cowboy/model-failure/v1", &n.to_be_bytes()]);
        if machine.schedule(RunRequest::new(id, &[], u64::MAX), 0).is_err()
            || machine.fail(id, RollbackReason::ProofFailed, 0).is_err()
            || machine.breaker_state() != BreakerState::Closed
        {
            break;
        }
    }
    while machine.poll_output().is_some() {}
}

#[cfg(test)]
mod tests;
