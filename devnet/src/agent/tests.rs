//! The core in a simulated world: runners, provers and a chain that a seed drives.

mod broken;
mod timed;

use super::{
    chain_message::{ChainMessage, MessageKind},
    core::{AgentAction, Core, Undone},
    store::{Change, Store},
};
use crate::{
    speculation::pipeline::{Checked, Pipeline},
    topology::Options,
    types::{PipelineStatus, TaskStatus},
};
use cowboy_engine::{
    chain::event::CommitmentResolved,
    primitives::{Address, Hash, Wei},
    proof::PROOF_BYTES,
    speculation::{Bonds, RollbackReason, Slashing, TaskId},
};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet};

const AGENT: Address = Address([7; 20]);
const START: u64 = 1_000_000;

fn checked(yaml: &str) -> Checked {
    serde_yaml::from_str::<Pipeline>(yaml).unwrap().check().unwrap()
}

fn options(settings: &[(&str, &str)]) -> Options {
    let defaults = Options::default().with([("enabled", "true")]).unwrap();
    defaults.with(settings.iter().copied()).unwrap()
}

/// Work in progress in the simulated world.
enum Doing {
    Work { task: TaskId, attempt: u32 },
    Proof { task: TaskId, attempt: u32 },
    Confirmation { task: TaskId },
    ChainMessage(ChainMessage),
}

/// A chain's record of bonds, by the rules of the real one.
struct Bonded {
    terms: Bonds,
    /// Open commitments: the bond, the message that brought it, and the output's commitment.
    bonds: BTreeMap<TaskId, (Wei, u64, Hash)>,
    /// The message by which the last commitment to a task failed.
    failed: BTreeMap<TaskId, u64>,
    messages: u64,
    events: Vec<CommitmentResolved>,
    /// The number of events that the agent has heard of.
    told: usize,
    /// Number of cascades that the chain refused.
    disbelieved: u64,
}

impl Bonded {
    /// Ends a commitment if there is one.
    fn end(&mut self, task_id: TaskId, reason: Option<RollbackReason>) {
        let Some((bond, ..)) = self.bonds.remove(&task_id) else { return };
        let slashed = reason.map_or(Wei::ZERO, |reason| self.terms.slashed(bond, reason));
        let released = bond.saturating_sub(slashed);
        if reason.is_some() {
            self.failed.insert(task_id, self.messages);
        }
        self.events.push(CommitmentResolved { task_id, agent: AGENT, reason, released, slashed });
    }

    /// The slashed total, and the total released from failed commitments.
    fn sums(&self) -> (u128, u128) {
        let failed = self.events.iter().filter(|event| event.reason.is_some());
        let failed: Vec<_> = failed.collect();
        let sum = |of: fn(&CommitmentResolved) -> Wei| failed.iter().map(|e| of(e).get()).sum();
        (sum(|event| event.slashed), sum(|event| event.released))
    }
}

struct World {
    core: Core,
    now: u64,
    doing: Vec<Doing>,
    completed: BTreeSet<TaskId>,
    chain: Bonded,
    rng: ChaCha8Rng,
    /// Percentage of work and messages that fail.
    unlucky: u32,
}

impl World {
    fn new(settings: &[(&str, &str)], seed: u64, unlucky: u32) -> Self {
        let slashing = Slashing {
            proof_failed: 1_237,
            proof_timeout: 411,
            ancestor_failed: 3,
            claim_expired: 777,
            manual_cancel: 199,
            commitment_expired: 1,
        };
        let terms = Bonds { base: 100_000_000_003, per_depth: 49_999_999_999, slashing };
        let mut core = Core::new(AGENT, [1; 32], options(settings), 100, START);
        core.set_bonds(&terms);
        let (bonds, failed, events) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        let chain = Bonded { terms, bonds, failed, messages: 0, events, told: 0, disbelieved: 0 };
        Self {
            core,
            now: START,
            doing: Vec::new(),
            completed: BTreeSet::new(),
            chain,
            rng: ChaCha8Rng::seed_from_u64(seed),
            unlucky,
        }
    }

    fn is_unlucky(&mut self) -> bool {
        self.rng.random_range(0..100) < self.unlucky
    }

    /// Carries out the core's actions.
    fn take_up(&mut self) {
        for action in self.core.take().0 {
            match action {
                AgentAction::Execute { task, attempt, .. } => {
                    self.doing.push(Doing::Work { task, attempt });
                }
                AgentAction::Prove { crash: true, .. } => {}
                AgentAction::Prove { task, attempt, .. } => {
                    self.doing.push(Doing::Proof { task, attempt });
                }
                AgentAction::Stop { task, attempt } => self.doing.retain(|doing| match doing {
                    Doing::Work { task: of, attempt: at }
                    | Doing::Proof { task: of, attempt: at } => *of != task || *at > attempt,
                    Doing::Confirmation { .. } | Doing::ChainMessage(_) => true,
                }),
                AgentAction::Send(message) => self.doing.push(Doing::ChainMessage(message)),
                AgentAction::ConfirmAt { task, .. } => {
                    self.doing.push(Doing::Confirmation { task });
                }
            }
        }
    }

    /// Performs one random event; messages arrive in order. False if nothing is in progress.
    fn step(&mut self) -> bool {
        self.take_up();
        self.now += self.rng.random_range(0..50);
        if self.doing.is_empty() {
            return false;
        }
        let message = |doing: &Doing| matches!(doing, Doing::ChainMessage(_));
        let mut at = self.rng.random_range(0..self.doing.len());
        if message(&self.doing[at]) {
            at = self.doing.iter().position(message).unwrap();
        }
        match self.doing.remove(at) {
            Doing::Work { task, attempt } => {
                let outcome = match self.is_unlucky() {
                    true => Err("unlucky".to_owned()),
                    false => Ok(task.0.to_vec()),
                };
                self.core.worked(&task, attempt, outcome, self.now);
            }
            Doing::Proof { task, attempt } => {
                self.core.proving(&task, attempt, self.now);
                let proof = Ok((vec![1; PROOF_BYTES], 5));
                self.core.proved(&task, attempt, proof, self.now);
            }
            Doing::Confirmation { task } => self.core.confirm(&task, self.now),
            Doing::ChainMessage(message) => self.deliver(&message),
        }
        true
    }

    /// Delivers a message, then reports what the chain resolved because of it.
    fn deliver(&mut self, message: &ChainMessage) {
        self.chain.messages += 1;
        self.accept(message);
        self.tell();
    }

    /// Tells the agent what the chain has resolved since the last call.
    fn tell(&mut self) {
        for event in &self.chain.events[self.chain.told..] {
            self.core.resolved(event, self.now);
        }
        self.chain.told = self.chain.events.len();
    }

    fn accept(&mut self, message: &ChainMessage) {
        let now = self.now;
        match message.kind {
            MessageKind::Commit => {
                let Some((run, at)) = self.core.task(&message.task) else { return };
                let task = &run.tasks[at];
                // An obsolete message is not sent.
                let present = task.attempt == message.attempt;
                let commitment = self.core.machine.commitment(&message.task);
                let output = commitment.map(|one| one.opening.output_commitment);
                let taken = self.completed.contains(&message.task);
                let bond = Wei::new(task.bond.unwrap_or(0).into());
                if let Some(output) = output.filter(|_| present && !taken)
                    && !self.chain.bonds.contains_key(&message.task)
                {
                    assert!(bond >= self.chain.terms.least(task.depth));
                    self.chain.bonds.insert(message.task, (bond, self.chain.messages, output));
                }
            }
            MessageKind::Resolve(reason) => {
                let reason = reason.filter(|_| !self.completed.contains(&message.task));
                if reason == Some(RollbackReason::AncestorFailed)
                    && let Some((_, since, _)) = self.chain.bonds.get(&message.task)
                    && let Some((run, at)) = self.core.task(&message.task)
                {
                    let mut parents = run.pipeline.tasks[at].parents.iter();
                    let failed = parents.any(|(parent, _)| {
                        let failed = self.chain.failed.get(&run.tasks[*parent].id);
                        failed.is_some_and(|at| at >= since)
                    });
                    if !failed {
                        self.chain.disbelieved += 1;
                        return self.core.refused(message, "NoAncestorFailed: made up", now);
                    }
                }
                self.chain.end(message.task, reason);
            }
            MessageKind::Complete { submission, wrong } => {
                let there = self.core.machine.proof(&message.task).is_some();
                if !there {
                    return;
                }
                if self.is_unlucky() {
                    return self.core.lost(message.task, submission, now);
                }
                self.core.sent(message, message.task, now);
                let parents_done = self.core.task(&message.task).is_some_and(|(run, at)| {
                    let parents = run.pipeline.tasks[at].parents.iter();
                    parents.map(|(at, _)| run.tasks[*at].id).all(|id| self.completed.contains(&id))
                });
                assert!(parents_done, "a proof went out before its parents were confirmed");
                if wrong {
                    self.chain.end(message.task, Some(RollbackReason::ProofFailed));
                    // A process that was killed meanwhile hears of the end first, and of the
                    // refusal when it sends the proof again.
                    if self.is_unlucky() {
                        self.tell();
                        return self.core.refused(message, "NotClaimed: made up", now);
                    }
                    return self.core.refused(message, "BadProof: made up", now);
                }
                self.completed.insert(message.task);
                let commitment = self.chain.bonds.get(&message.task).map(|(.., output)| *output);
                self.core.completed(&message.task, commitment, now);
            }
            MessageKind::Create | MessageKind::Claim { .. } => {}
        }
    }

    /// Runs until everything has ended.
    fn finish(&mut self) {
        for _ in 0..1_000_000 {
            if self.step() {
                continue;
            }
            if self.core.open() == 0 {
                return;
            }
            // Only time can help now.
            self.now = self.core.machine.next_deadline().unwrap_or(self.now).max(self.now) + 1_000;
            self.core.advance(self.now);
        }
        let open = self.core.runs.values().flat_map(|run| &run.tasks);
        let open: Vec<_> = open.filter(|task| !task.status.is_final()).collect();
        panic!("it does not end: {open:#?} {:?}", self.core.machine.breaker_state());
    }

    fn statuses(&self, number: u64) -> Vec<(&str, TaskStatus, u32)> {
        let run = &self.core.runs[&number];
        let tasks = run.tasks.iter().enumerate();
        tasks.map(|(at, task)| (run.entry(at).id.as_str(), task.status, task.attempt)).collect()
    }

    /// Checks the invariants that hold after every run.
    fn holds(&self) {
        let stake = self.core.machine.stake();
        assert_eq!(stake.locked, Wei::ZERO);
        assert!(self.chain.bonds.is_empty(), "bonds are left: {:?}", self.chain.bonds);
        // The agent's books equal the sum of the chain's events, to the wei.
        let (slashed, released) = self.chain.sums();
        assert_eq!(stake.slashed.get(), slashed);
        assert_eq!(stake.available.get() + slashed, u128::from(self.core.options.deposit));
        let rows = self.core.rollbacks.iter();
        let sum = |of: fn(&Undone) -> u64| rows.clone().map(|row| u128::from(of(row))).sum();
        let (in_rows, back): (u128, u128) = (sum(|row| row.slashed), sum(|row| row.released));
        assert_eq!((in_rows, back), (slashed, released));
        for run in self.core.runs.values() {
            assert_ne!(run.status(), PipelineStatus::Running);
            assert!(run.ended_at.is_some());
            for (at, task) in run.tasks.iter().enumerate() {
                let parents = run.pipeline.tasks[at].parents.iter();
                let parents: Vec<_> = parents.map(|(at, _)| run.tasks[*at].status).collect();
                let confirmed = task.status == TaskStatus::Confirmed;
                if confirmed {
                    assert!(parents.iter().all(|status| *status == TaskStatus::Confirmed));
                    assert!(self.completed.contains(&task.id));
                }
                assert!(confirmed || task.reason.is_some(), "{task:?}");
            }
        }
    }
}

#[test]
fn a_pipeline_is_confirmed_whole() {
    let mut world = World::new(&[], 1, 0);
    let number = world.core.submit(
        checked(
            "name: p\ntasks:\n- { id: a, command: [x] }\n- { id: b, depends_on: [a], command: [x] }\n\
             - { id: c, depends_on: [a, b], command: [x], fault: wrong_proof, attempts: 2 }\n\
             - { id: d, depends_on: [c], command: [x] }\n",
        ),
        START,
    );
    world.finish();
    world.holds();
    let confirmed = TaskStatus::Confirmed;
    let wanted = [("a", confirmed, 1), ("b", confirmed, 1), ("c", confirmed, 2)];
    let statuses = world.statuses(number.unwrap());
    assert_eq!(statuses[..3], wanted);
    assert_eq!(statuses[3].1, confirmed);
    assert_eq!(world.core.rollbacks[0].task, "c");
    assert!(world.core.runs[&1].synchronous_ms.is_some());
}

#[test]
fn what_waits_for_a_failure_ends_with_it() {
    let mut world = World::new(&[], 1, 0);
    let pipeline = checked(
        "name: p\ntasks:\n- { id: a, command: [x], fault: wrong_proof }\n\
         - { id: b, depends_on: [a], command: [x] }\n- { id: c, depends_on: [b], command: [x] }\n\
         - { id: d, command: [x] }\n",
    );
    world.core.submit(pipeline, START).unwrap();
    world.finish();
    world.holds();
    let ends: Vec<_> = world.statuses(1).into_iter().map(|(_, status, _)| status).collect();
    let (failed, undone) = (TaskStatus::Failed, TaskStatus::RolledBack);
    assert_eq!(ends, [failed, undone, undone, TaskStatus::Confirmed]);
    assert_eq!(world.core.runs[&1].status(), PipelineStatus::Failed);

    // A retry confirms it together with what was rolled back below it.
    let retry = |world: &mut World, names: &[&str]| {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        world.core.retry(1, &names, world.now).map_err(|error| error.to_string())
    };
    let refused = "task `b` depends on `a`, which is failed and has to succeed first";
    assert_eq!(retry(&mut world, &["b"]).unwrap_err(), refused);
    let refused = "task `d` is confirmed: only failed or rolled-back tasks can be retried";
    assert_eq!(retry(&mut world, &["a", "d"]).unwrap_err(), refused);
    assert_eq!(retry(&mut world, &["a"]).unwrap(), ["a", "b", "c"]);
    let refused = "task `c` is waiting: the pipeline still runs it";
    assert_eq!(retry(&mut world, &["c"]).unwrap_err(), refused);
    world.finish();
    world.holds();
    assert_eq!(world.core.runs[&1].status(), PipelineStatus::Completed);
    assert_eq!(world.statuses(1)[0].2, 2, "a second attempt");
    assert_eq!(world.core.runs[&1].synchronous_ms, None);
    assert!(retry(&mut world, &[]).unwrap_err().contains("pipeline 1 has no failed task"));
}

#[test]
fn a_cancelled_pipeline_ends_at_once() {
    let mut world = World::new(&[], 1, 0);
    let pipeline = checked(
        "name: p\ntasks:\n- { id: a, command: [x] }\n- { id: b, depends_on: [a], command: [x] }\n\
         - { id: c, command: [x] }\n",
    );
    world.core.submit(pipeline, START).unwrap();
    assert_eq!(world.core.cancel(1, Some("a"), START).unwrap(), 2);
    let error = world.core.cancel(1, Some("a"), START).unwrap_err();
    assert_eq!(error.to_string(), "task `a` is already cancelled and cannot be cancelled");
    assert_eq!(world.core.cancel(1, None, START).unwrap(), 1);
    assert_eq!(world.core.runs[&1].status(), PipelineStatus::Cancelled);
    assert!(world.core.cancel(2, None, START).is_err());
    world.finish();
    world.holds();
}

#[test]
fn memory_that_a_fault_takes_stops_new_tasks_alone() {
    let mut world = World::new(&[("limits.maxMemoryMb", "512")], 1, 0);
    let pipeline = checked(
        "name: p\ntasks:\n- { id: a, command: [x], fault: { memory_mb: 600 } }\n\
         - { id: b, depends_on: [a], command: [x] }\n",
    );
    world.core.submit(pipeline, START).unwrap();
    world.take_up();
    let Doing::Work { task, attempt } = world.doing.remove(2) else {
        panic!("work is asked for after two messages")
    };
    world.core.worked(&task, attempt, Ok(b"1".to_vec()), START);
    let refused = world.core.runs[&1].tasks[1].reason.clone().unwrap();
    assert!(refused.contains("maxMemoryMb"), "{refused}");
    world.finish();
    world.holds();
    assert_eq!(world.core.runs[&1].status(), PipelineStatus::Completed);
}

/// A pipeline whose tasks depend on earlier ones at random.
fn random(rng: &mut ChaCha8Rng) -> Checked {
    let tasks = rng.random_range(1..20);
    let faults = ["wrong_proof", "crash", "{ memory_mb: 5000 }", "{ late_event_ms: 100 }"];
    let mut yaml = "name: random\ntasks:\n".to_owned();
    for at in 0..tasks {
        let mut parents = BTreeSet::new();
        for _ in 0..rng.random_range(0..3) {
            parents.extend((at > 0).then(|| rng.random_range(0..at)));
        }
        let link = |parent: &usize| match parent % 3 {
            0 => format!("{{ task: t{parent}, order_only: true }}"),
            _ => format!("t{parent}"),
        };
        let parents: Vec<_> = parents.iter().map(link).collect();
        let fault = match rng.random_range(0..8) {
            n if n < faults.len() => format!(", fault: {}", faults[n]),
            _ => String::new(),
        };
        let attempts = rng.random_range(1..4);
        let checkpoint = rng.random::<bool>();
        yaml += &format!(
            "- {{ id: t{at}, depends_on: [{}], command: [x], attempts: {attempts}, checkpoint: \
             {checkpoint}{fault} }}\n",
            parents.join(", ")
        );
    }
    checked(&yaml)
}

/// Pipelines end whatever goes wrong, cancelled or not, under each policy, and leave no bond.
#[test]
fn whatever_happens_everything_ends() {
    let (mut slashed, mut cascades, mut disbelieved) = (0, 0, 0);
    for seed in 0..300 {
        let policy = ["cascade", "selective", "checkpoint"][seed as usize % 3];
        let settings = [
            ("rollbackPolicy", policy),
            ("enabled", if seed % 10 == 9 { "false" } else { "true" }),
            ("breaker.resetMs", "1000"),
        ];
        let mut world = World::new(&settings, seed, 10);
        for _ in 0..3 {
            let pipeline = random(&mut world.rng);
            world.core.submit(pipeline, world.now).unwrap();
            for _ in 0..world.rng.random_range(0..60) {
                world.step();
            }
        }
        if seed % 4 == 0 {
            let _ = world.core.cancel(2, Some("t0"), world.now);
        }
        world.finish();
        world.holds();
        // Retries, without the faults that apply only to a first attempt.
        for number in (1..=3).filter(|_| seed % 4 == 1) {
            let again = world.core.retry(number, &[], world.now);
            assert!(again.is_ok_and(|tasks| !tasks.is_empty()) == (world.core.open() > 0));
            world.finish();
            world.holds();
        }
        slashed += world.chain.sums().0;
        disbelieved += world.chain.disbelieved;
        let cascade = Some(RollbackReason::AncestorFailed);
        cascades += world.chain.events.iter().filter(|event| event.reason == cascade).count();
    }
    assert!(slashed > 0 && cascades > 50, "{slashed} wei, {cascades} cascades");
    // These are cases in which the chain has accepted the proof of an undone task.
    assert!(disbelieved * 10 < cascades as u64, "{disbelieved} of {cascades}");
}

/// A child with a checkpoint whose inputs are gone is run again, whatever the policy keeps. One
/// whose inputs are the same is not.
#[test]
fn a_kept_output_serves_only_what_reads_the_same() {
    for (root, expected) in [("same", 1), ("other", 2)] {
        let mut world = World::new(&[("rollbackPolicy", "checkpoint")], 1, 0);
        let pipeline = checked(
            "name: p\ntasks:\n- { id: root, command: [x], fault: wrong_proof, attempts: 2 }\n\
             - { id: child, depends_on: [root], command: [x], checkpoint: true }\n",
        );
        world.core.submit(pipeline, START).unwrap();
        let mut made = BTreeMap::new();
        for _ in 0..10_000 {
            world.take_up();
            // All work ends before anything is confirmed; each child's output contains its root's.
            let work = |doing: &Doing| matches!(doing, Doing::Work { .. });
            let Some(at) = world.doing.iter().position(work) else {
                if !world.step() {
                    break;
                }
                continue;
            };
            let Doing::Work { task, attempt } = world.doing.remove(at) else { unreachable!() };
            let (run, place) = world.core.task(&task).unwrap();
            let name = run.entry(place).id.clone();
            let output = match (name.as_str(), root) {
                ("root", "same") => b"root".to_vec(),
                ("root", _) => format!("root {attempt}").into_bytes(),
                _ => [b"child of ", run.inputs(place)["root"].as_slice()].concat(),
            };
            *made.entry(name).or_insert(0) += 1;
            world.core.worked(&task, attempt, Ok(output), world.now);
        }
        world.holds();
        let run = &world.core.runs[&1];
        assert_eq!(run.status(), PipelineStatus::Completed, "{root}");
        let output = |at: usize| run.tasks[at].output.as_deref().unwrap().clone();
        assert_eq!(output(1), [b"child of ", output(0).as_slice()].concat(), "{root}");
        assert_eq!((made["root"], made["child"]), (2, expected), "{root}");
    }
}

/// The chain accepts a proof that was rolled back here while in flight: its output is the valid
/// one.
#[test]
fn an_output_that_may_be_on_the_chain_is_the_one_that_is_used_again() {
    let mut world = World::new(&[("confirmationTimeoutMs", "5000")], 1, 0);
    let pipeline = checked("name: p\ntasks:\n- { id: a, command: [x], attempts: 2 }\n");
    world.core.submit(pipeline, START).unwrap();
    let mut complete = None;
    while complete.is_none() {
        world.take_up();
        let proof = |doing: &Doing| match doing {
            Doing::ChainMessage(message) => matches!(message.kind, MessageKind::Complete { .. }),
            _ => false,
        };
        match world.doing.iter().position(proof) {
            Some(at) => complete = Some(world.doing.remove(at)),
            None => assert!(world.step()),
        }
    }
    let Some(Doing::ChainMessage(message)) = complete else { unreachable!() };
    let id = message.task;
    world.core.sent(&message, id, world.now);
    let first = world.core.machine.commitment(&id).unwrap().opening.output_commitment;
    world.now += 5_000;
    world.core.advance(world.now);
    assert_eq!(world.core.rollbacks[0].reason, "proof_timeout");
    assert_eq!(world.core.runs[&1].tasks[0].status, TaskStatus::Proving);
    world.completed.insert(id);
    world.core.completed(&id, Some(first), world.now);
    world.finish();
    world.holds();
    assert_eq!(world.core.runs[&1].status(), PipelineStatus::Completed);

    // An output other than the chain's is never confirmed.
    let mut world = World::new(&[], 1, 0);
    let pipeline = checked(
        "name: p\ntasks:\n- { id: a, command: [x], attempts: 3 }\n\
         - { id: b, depends_on: [a], command: [x] }\n",
    );
    world.core.submit(pipeline, START).unwrap();
    let a = world.core.runs[&1].tasks[0].id;
    world.core.completed(&a, Some(Hash([9; 32])), world.now);
    world.finish();
    world.holds();
    let task = &world.core.runs[&1].tasks[0];
    assert_eq!((task.status, task.attempt), (TaskStatus::Failed, 1));
    assert!(task.reason.as_ref().unwrap().contains("another output"), "{task:?}");
}

#[test]
fn a_claim_within_the_buffer_is_refused_before_anything_runs() {
    let mut world = World::new(&[("claimBufferMs", "1000")], 1, 0);
    let of = |ms: u64| {
        checked(&format!("name: p\ntasks:\n- {{ id: a, command: [x], claim_ms: {ms} }}\n"))
    };
    let refused = world.core.submit(of(1_000), START).unwrap_err().to_string();
    assert_eq!(
        refused,
        "task `a`: claim_ms is 1000: expected more than claimBufferMs, which is 1000"
    );
    // When the buffer grows while it waits, it fails with a reason.
    let two = checked(
        "name: p\ntasks:\n- { id: a, command: [x] }\n\
         - { id: b, depends_on: [a], command: [x], claim_ms: 1001 }\n",
    );
    world.core.submit(two, START).unwrap();
    let settings = BTreeMap::from([("claimBufferMs".to_owned(), "2000".to_owned())]);
    world.core.configure(&settings, START).unwrap();
    world.finish();
    world.holds();
    let b = &world.core.runs[&1].tasks[1];
    assert_eq!(b.status, TaskStatus::Failed);
    assert!(b.reason.as_ref().unwrap().contains("claim_too_soon"), "{b:?}");
    // The status counts a refusal once, as the metrics do.
    assert_eq!(world.core.machine.counters().tasks_rejected.iter().sum::<u64>(), 1);
}

/// However long the process is down, nothing expires, because the chain is down too.
#[test]
fn a_restart_after_a_long_time_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("speculation.db");
    let mut world = World::new(&[], 3, 0);
    let pipeline = checked(
        "name: p\ntasks:\n- { id: a, command: [x] }\n- { id: b, depends_on: [a], command: [x] }\n\
         - { id: c, depends_on: [b], command: [x] }\n- { id: d, command: [x] }\n",
    );
    world.core.submit(pipeline, START).unwrap();
    for _ in 0..12 {
        world.step();
    }
    assert!(world.core.open() > 0 && world.core.machine.graph().live() > 0);
    let store = Store::open(&path, 9).unwrap();
    store.write(&Change::of(&mut world.core).unwrap()).unwrap();
    let later = world.now + 3_600_000;
    let mut again = Core::new(AGENT, [1; 32], options(&[]), 100, later);
    store.load(&mut again, later).unwrap();
    let live = again.machine.graph().live();
    for (running, now) in [(false, later), (true, later + 1), (true, later + 30_000)] {
        again.look(running, now);
        again.advance(now);
    }
    let claims = |core: &Core| -> Vec<u64> {
        let open = core.runs[&1].tasks.iter().filter(|task| !task.status.is_final());
        open.map(|task| task.claim_expires_at).collect()
    };
    let before = claims(&again);
    again.seen(later + 30_000, later + 30_000);
    again.advance(later + 30_000);
    assert_eq!(again.machine.graph().live(), live);
    assert!(again.rollbacks.is_empty() && again.machine.stake().slashed.is_zero());
    let longer = claims(&again);
    assert!(longer.iter().zip(&before).any(|(longer, before)| *longer >= before + 3_600_000));
}

/// After a restart the deposit is again the topology's, less the slashes.
#[test]
fn a_restart_brings_the_topologys_deposit_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("speculation.db");
    let mut world = World::new(&[], 1, 0);
    let settings = BTreeMap::from([("stake.deposit".to_owned(), "200000000000000".to_owned())]);
    world.core.configure(&settings, START).unwrap();
    let bad = checked("name: p\ntasks:\n- { id: a, command: [x], fault: wrong_proof }\n");
    world.core.submit(bad, START).unwrap();
    world.finish();
    let slashed = world.core.machine.stake().slashed.get();
    assert_eq!(world.core.machine.stake().available.get(), 200_000_000_000_000 - slashed);
    assert!(slashed > 0);
    let store = Store::open(&path, 9).unwrap();
    store.write(&Change::of(&mut world.core).unwrap()).unwrap();
    let mut again = Core::new(AGENT, [1; 32], options(&[]), 100, world.now);
    store.load(&mut again, world.now).unwrap();
    assert_eq!(again.options.deposit, 100_000_000_000_000);
    assert_eq!(again.machine.stake().available.get(), 100_000_000_000_000 - slashed);
    assert_eq!(again.machine.stake().slashed.get(), slashed);
}

/// The state reads back unchanged at any moment.
#[test]
fn what_is_stored_is_what_there_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("speculation.db");
    let mut world = World::new(&[("rollbackPolicy", "checkpoint")], 5, 10);
    let store = Store::open(&path, 9).unwrap();
    for _ in 0..12 {
        let pipeline = random(&mut world.rng);
        world.core.submit(pipeline, world.now).unwrap();
        for _ in 0..world.rng.random_range(0..100) {
            world.step();
        }
        store.write(&Change::of(&mut world.core).unwrap()).unwrap();
        let mut again = Core::new(AGENT, [1; 32], world.core.options.clone(), 100, world.now);
        Store::open(&path, 9).unwrap().load(&mut again, world.now).unwrap();
        assert_eq!(again.runs.len(), world.core.runs.len());
        for (one, other) in again.runs.values().zip(world.core.runs.values()) {
            assert_eq!((&one.tasks, one.open), (&other.tasks, other.open));
            assert_eq!((one.written(), one.course()), (other.written(), other.course()));
        }
        assert_eq!(again.rollbacks, world.core.rollbacks);
        assert_eq!(again.machine.stake(), world.core.machine.stake());
        assert_eq!(again.next, world.core.next);
    }
    let other = Store::open(&path, 10).map(drop).unwrap_err().to_string();
    assert!(other.contains("has chain 0x9, expected chain 0xa"), "{other}");
    use std::os::unix::fs::PermissionsExt as _;

    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}
