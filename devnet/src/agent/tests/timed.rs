//! The core in a simulated world in which everything takes time: runners, few provers, and a chain
//! that makes blocks at a pace and may stop.

use super::{AGENT, START, checked, options};
use crate::{
    agent::{
        WINDOW,
        chain_message::{ChainMessage, MessageKind},
        core::{AgentAction, Core},
        model::{self, Cost, Devnet},
    },
    types::{PipelineStatus, TaskStatus},
};
use cowboy_engine::{
    primitives::{Hash, Wei, keccak256},
    proof::PROOF_BYTES,
    speculation::{TaskId, away::TRIES},
};
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

/// Time between blocks, and from making a block to seeing it, in ms.
const BLOCK_MS: u64 = 500;
const SEEN_MS: u64 = 150;
/// Time of a task's work, in ms.
const WORK_MS: u64 = 40;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Worked(TaskId, u32),
    Begun(TaskId, u32),
    Proved(TaskId, u32, u64),
    Confirmed(TaskId),
    Block,
}

struct Timed {
    core: Core,
    now: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    begun: u64,
    places: usize,
    to_prove: VecDeque<(TaskId, u32, u64)>,
    /// Letters that no validator has, and messages that one has, with the time it got them.
    waiting: VecDeque<ChainMessage>,
    flying: VecDeque<(u64, ChainMessage)>,
    /// The period in which no validator runs.
    stopped: (u64, u64),
}

impl Timed {
    fn new(settings: &[(&str, &str)]) -> Self {
        let options = options(settings);
        let places = options.config.worker_threads as usize;
        let mut world = Self {
            core: Core::new(AGENT, [1; 32], options, BLOCK_MS, START),
            now: START,
            events: BinaryHeap::new(),
            begun: 0,
            places,
            to_prove: VecDeque::new(),
            waiting: VecDeque::new(),
            flying: VecDeque::new(),
            stopped: (u64::MAX, u64::MAX),
        };
        world.at(START + BLOCK_MS / 2, Event::Block);
        world
    }

    fn at(&mut self, at: u64, event: Event) {
        self.begun += 1;
        self.events.push(Reverse((at, self.begun, event)));
    }

    fn is_running(&self) -> bool {
        !(self.stopped.0..self.stopped.1).contains(&self.now)
    }

    fn act<T>(&mut self, call: impl FnOnce(&mut Core, u64) -> T) -> T {
        self.core.look(self.is_running(), self.now);
        let out = call(&mut self.core, self.now);
        loop {
            for action in self.core.take().0 {
                self.take_up(action);
            }
            if !self.is_running() || self.flying.len() >= WINDOW {
                break;
            }
            let Some(message) = self.waiting.pop_front() else { break };
            self.flying.push_back((self.now, message));
            self.core.sent(&message, Self::hash(&message), self.now);
        }
        while self.places > 0
            && let Some((task, attempt, latency_ms)) = self.to_prove.pop_front()
        {
            self.places -= 1;
            self.at(self.now, Event::Begun(task, attempt));
            self.at(self.now + latency_ms, Event::Proved(task, attempt, latency_ms));
        }
        out
    }

    fn take_up(&mut self, action: AgentAction) {
        match action {
            AgentAction::Execute { task, attempt, .. } => {
                self.at(self.now + WORK_MS, Event::Worked(task, attempt));
            }
            AgentAction::Prove { task, attempt, latency_ms, .. } => {
                self.to_prove.push_back((task, attempt, latency_ms));
            }
            AgentAction::Send(message) => self.waiting.push_back(message),
            AgentAction::ConfirmAt { task, at } => self.at(at, Event::Confirmed(task)),
            AgentAction::Stop { task, attempt } => {
                self.to_prove.retain(|(of, at, _)| *of != task || *at > attempt);
            }
        }
    }

    fn hash(message: &ChainMessage) -> Hash {
        let label = format!("{message:?}");
        keccak256(&[label.as_bytes()])
    }

    /// Performs the next event; false if no event comes before `until`.
    fn step(&mut self, until: u64) -> bool {
        let due = self.core.due().unwrap_or(u64::MAX).max(self.now);
        let next = self.events.peek().map_or(u64::MAX, |Reverse((at, ..))| *at);
        if next.min(due) > until {
            return false;
        }
        if due < next {
            self.now = due;
            self.act(Core::advance);
            return true;
        }
        let Some(Reverse((at, _, event))) = self.events.pop() else { return false };
        self.now = at;
        match event {
            Event::Worked(task, attempt) => {
                self.act(|core, now| core.worked(&task, attempt, Ok(task.0.to_vec()), now));
            }
            Event::Begun(task, attempt) => {
                self.act(|core, now| core.proving(&task, attempt, now));
            }
            Event::Proved(task, attempt, took) => {
                self.places += 1;
                let proof = Ok((vec![1; PROOF_BYTES], took));
                self.act(|core, now| core.proved(&task, attempt, proof, now));
            }
            Event::Confirmed(task) => self.act(|core, now| core.confirm(&task, now)),
            Event::Block => {
                self.at(at + BLOCK_MS, Event::Block);
                if self.is_running() {
                    self.block();
                }
            }
        }
        true
    }

    fn block(&mut self) {
        let made = self.now - SEEN_MS;
        let in_time = self.flying.partition_point(|(since, _)| *since <= made);
        let landed: Vec<ChainMessage> = self.flying.drain(..in_time).map(|(_, one)| one).collect();
        self.act(|core, now| {
            core.seen(made, now);
            for message in landed {
                if matches!(message.kind, MessageKind::Complete { .. }) {
                    core.completed(&message.task, None, now);
                }
            }
            core.advance(now);
        });
    }

    /// Submits a pipeline and runs until it has ended; returns its number.
    fn run(&mut self, yaml: &str) -> u64 {
        let pipeline = checked(yaml);
        let number = self.act(|core, now| core.submit(pipeline, now)).unwrap();
        while self.core.runs[&number].open > 0 {
            assert!(self.now < START + 10_000_000, "it does not end");
            assert!(self.step(u64::MAX));
        }
        number
    }

    /// The time that a pipeline took.
    fn took(&self, number: u64) -> u64 {
        let run = &self.core.runs[&number];
        assert_eq!(run.status(), PipelineStatus::Completed);
        run.ended_at.unwrap() - run.submitted_at
    }
}

fn chains(chains: u32, length: u32) -> String {
    let mut yaml = "name: chains\ntasks:\n".to_owned();
    for chain in 0..chains {
        for at in 0..length {
            let parent = at.checked_sub(1).map_or(String::new(), |at| format!("c{chain}-{at}"));
            yaml += &format!("- {{ id: c{chain}-{at}, depends_on: [{parent}], command: [x] }}\n");
        }
    }
    yaml
}

const DIAMONDS: &str = "name: diamonds\ntasks:\n- { id: a, command: [x] }\n\
    - { id: b, depends_on: [a], command: [x] }\n- { id: c, depends_on: [a], command: [x] }\n\
    - { id: d, depends_on: [b, c], command: [x] }\n\
    - { id: e, depends_on: [d], command: [x] }\n- { id: f, depends_on: [d], command: [x] }\n\
    - { id: g, depends_on: [e, f], command: [x] }\n";

/// Eight chains of eleven tasks with the source's 5 s proofs, four made at a time: the last proof
/// waits for a prover longer than the proof timeout.
#[test]
fn proofs_that_wait_for_a_prover_are_not_late() {
    let mut world = Timed::new(&[("mode", "aggressive"), ("proof.latency", "5s")]);
    let number = world.run(&chains(8, 11));
    let run = &world.core.runs[&number];
    let confirmed = run.tasks.iter().filter(|task| task.status == TaskStatus::Confirmed);
    assert_eq!(confirmed.count(), 88);
    assert!(world.core.rollbacks.is_empty());
    assert!(world.core.machine.stake().slashed.is_zero());
    let last = run.tasks.iter().map(|task| task.times.proved.unwrap()).max().unwrap();
    let waited = last - run.submitted_at - 5_000;
    assert!(waited > world.core.machine.config().proof_timeout_ms, "{waited} ms");
}

/// The reported synchronous time is the time with speculation off.
#[test]
fn synchronously_is_what_the_same_devnet_takes_without_speculation() {
    let task = |n| format!("- {{ id: t{n}, command: [x] }}\n");
    let wide: String = (0..40).map(task).collect();
    let wide = format!("name: wide\ntasks:\n{wide}");
    let pipelines = [chains(1, 6), chains(6, 4), chains(20, 2), DIAMONDS.to_owned(), wide];
    for settings in [
        &[("proof.latency", "1s")][..],
        &[("proof.latency", "3s"), ("proof.workerThreads", "2")],
        &[("mode", "aggressive"), ("confirmation.latency", "2s"), ("maxConcurrent", "2")],
        &[("proof.latency", "900ms"), ("maxParallelBranches", "2")],
    ] {
        let mut world = Timed::new(settings);
        let figures: Vec<u64> = pipelines
            .iter()
            .map(|pipeline| {
                let number = world.run(pipeline);
                world.core.runs[&number].synchronous_ms.unwrap()
            })
            .collect();
        let off = [settings, &[("enabled", "false")]].concat();
        let mut world = Timed::new(&off);
        for (pipeline, figure) in pipelines.iter().zip(figures) {
            let number = world.run(pipeline);
            let took = world.took(number);
            assert_eq!(world.core.runs[&number].synchronous_ms, Some(took));
            let within = figure.abs_diff(took) * 10 <= took;
            assert!(within, "{settings:?}: {figure} ms, took {took} ms: {pipeline}");
        }
    }
}

/// The agent does what the forecast says: bonds exactly, time up to where in a block it begins.
#[test]
fn a_forecast_is_what_then_happens() {
    let task = |n| format!("- {{ id: t{n}, command: [x] }}\n");
    let wide: String = (0..40).map(task).collect();
    let wide = format!("name: wide\ntasks:\n{wide}");
    let pipelines = [chains(1, 6), chains(6, 4), chains(20, 2), DIAMONDS.to_owned(), wide];
    for (settings, proof_ms) in [
        (&[("proof.latency", "1s")][..], 1_000),
        (&[("proof.latency", "3s"), ("proof.workerThreads", "2")], 3_000),
        (&[("mode", "aggressive"), ("proof.latency", "1s"), ("maxConcurrent", "2")], 1_000),
        (&[("proof.latency", "900ms"), ("maxDepth", "1")], 900),
        (&[("proof.latency", "900ms"), ("stake.maxStake", "400000000000")], 900),
        (&[("proof.latency", "900ms"), ("features.enableOptimisticProofs", "false")], 900),
    ] {
        let mut world = Timed::new(settings);
        for pipeline in &pipelines {
            let number = world.run(pipeline);
            let took = world.took(number);
            let options = &world.core.options;
            let devnet = Devnet {
                config: options.config.clone(),
                bonds: *world.core.machine.bonds(),
                stake: world.core.machine.stake().available,
                latency_ms: options.confirmation_latency_ms,
                block_ms: BLOCK_MS,
                lag_ms: SEEN_MS,
                breaker_ms: None,
                expires: true,
            };
            let run = &world.core.runs[&number];
            let cost = Cost { work_ms: WORK_MS, proof_ms, late_ms: 0 };
            let costs = vec![cost; run.tasks.len()];
            let forecast = model::of_run(run, &costs, &devnet);
            let length = forecast.length_ms.unwrap();
            let within = length.abs_diff(took) <= BLOCK_MS.max(took / 10);
            assert!(within, "{settings:?}: {length} ms, took {took} ms: {pipeline}");
            let bonds = run.tasks.iter().map(|task| task.bond.map(|bond| Wei::new(bond.into())));
            let planned: Vec<_> = forecast.tasks.iter().map(|task| task.bond).collect();
            assert_eq!(bonds.collect::<Vec<_>>(), planned, "{settings:?}: {pipeline}");
        }
    }
}

/// Validators stop while proofs are due, for longer than any time limit.
#[test]
fn a_lost_chain_is_no_failed_proof() {
    let settings = [
        ("confirmationTimeoutMs", "5000"),
        ("commitmentTtlMs", "20000"),
        ("proof.latency", "2s"),
        ("claimBufferMs", "0"),
    ];
    let pipeline = chains(3, 5).replace("[x]", "[x], claim_ms: 25000");
    for stopped_after in [100, 1_900, 2_050, 2_300, 4_000, 6_000] {
        let mut world = Timed::new(&settings);
        world.stopped = (START + stopped_after, START + stopped_after + 30_000);
        let number = world.run(&pipeline);
        let took = world.took(number);
        assert!(took > 30_000, "{took} ms");
        assert!(world.core.rollbacks.is_empty(), "{:?}", world.core.rollbacks);
        assert!(world.core.machine.stake().slashed.is_zero());
    }
}

/// After ten tries nothing is accepted until the first block.
#[test]
fn a_chain_that_stays_away_pauses_speculation() {
    let mut world = Timed::new(&[("proof.latency", "2s")]);
    world.stopped = (START + 1_000, START + 500_000);
    let first = world.act(|core, now| core.submit(checked(&chains(1, 8)), now)).unwrap();
    while world.step(START + 120_000) {}
    let away = *world.core.machine.away().unwrap();
    assert_eq!((away.tries, away.is_paused()), (TRIES, true));
    let second = world.act(|core, now| core.submit(checked(&chains(1, 1)), now)).unwrap();
    let task = &world.core.runs[&second].tasks[0];
    assert_eq!(task.status, TaskStatus::Waiting);
    assert!(task.reason.as_ref().unwrap().contains("paused"), "{task:?}");
    while world.core.open() > 0 {
        assert!(world.step(START + 1_000_000), "it does not end");
    }
    assert!(world.core.machine.away().is_none());
    for number in [first, second] {
        assert_eq!(world.core.runs[&number].status(), PipelineStatus::Completed);
    }
    assert!(world.core.rollbacks.is_empty());
}
