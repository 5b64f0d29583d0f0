//! A million random operations, with snapshots and restores at random.

use super::{
    super::{
        Config, DependencyStatus, EngineOutput, ParentLink, Reason, RollbackPolicy, RollbackReason,
        RunRequest, Speculation, SubmissionResult, TaskId, away::TRIES, breaker::Breaker,
        view::Counters,
    },
    PROOF, opening, oracle,
};
use crate::primitives::{Hash, Wei};
use std::collections::{BTreeMap, BTreeSet};

const SEEDS: u64 = 400;
const OPERATIONS: u64 = 2_500;
const _: () = assert!(SEEDS * OPERATIONS >= 1_000_000);
/// Number of ids in the operations.
const TASKS: u64 = 20;

/// Pseudo-random numbers (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    fn task(&mut self) -> TaskId {
        let mut id = [0; 32];
        id[31] = self.below(TASKS) as u8;
        // The first bytes decide whether a task may speculate.
        id[0] = id[31].wrapping_mul(13);
        Hash(id)
    }
}

struct World {
    random: Random,
    machine: Speculation,
    past: oracle::Past,
    flying: BTreeMap<TaskId, u64>,
    deposited: u128,
    /// Whether order-only links may keep tasks waiting for failed ones.
    waits: bool,
    confirmed: u64,
    undone: u64,
    restored: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed << 32);
        let mut machine = Speculation::new(config(&mut random), 0);
        machine.set_stake(Wei::new(40_000_000));
        Self {
            waits: machine.config().rollback_policy == RollbackPolicy::Selective,
            random,
            machine,
            past: oracle::Past::default(),
            flying: BTreeMap::new(),
            deposited: 40_000_000,
            confirmed: 0,
            undone: 0,
            restored: 0,
        }
    }

    /// Performs a random operation at `now`; returns whether it was refused.
    fn step(&mut self, now: u64) -> bool {
        let (random, machine) = (&mut self.random, &mut self.machine);
        let task = random.task();
        match random.below(100) {
            0..30 => {
                let dead = |status| {
                    matches!(status, DependencyStatus::Failed | DependencyStatus::RolledBack)
                };
                let good = machine.graph().tasks().filter(|&(_, status)| !dead(status));
                let good: Vec<TaskId> = good.map(|(id, _)| *id).collect();
                let parents: Vec<_> = (0..random.below(4))
                    .map(|_| {
                        let parent = match random.below(8) {
                            1.. if !good.is_empty() => random.pick(&good),
                            _ => random.task(),
                        };
                        (parent, random.pick(&[ParentLink::Reads, ParentLink::OrderOnly]))
                    })
                    .collect();
                let lasts = random.pick(&[1_000, 60_001, 70_000, 400_000, 400_000, 400_000]);
                let claim_expires_at = now + lasts;
                let request = RunRequest {
                    inputs: Hash([random.below(2) as u8; 32]),
                    ..RunRequest::new(task, &parents, claim_expires_at)
                };
                machine.schedule(request, now).is_err()
            }
            30..43 => {
                let proof = &PROOF[random.below(10).min(1) as usize ^ 1..];
                machine.complete(task, opening(random.task()), proof, now).is_err()
            }
            43..49 => machine.executed(task, opening(task), now).is_err(),
            49..51 => machine.proving(task, now).is_err(),
            51..56 => machine.proved(task, &PROOF, now).is_err(),
            56..75 => {
                let known: Vec<_> = self.flying.iter().map(|(&task, &at)| (task, at)).collect();
                let (task, submission) =
                    if known.is_empty() { (task, 0) } else { random.pick(&known) };
                let good = random.below(4) > 0;
                let bad = random.pick(&[
                    SubmissionResult::Lost,
                    SubmissionResult::Lost,
                    SubmissionResult::Rejected,
                ]);
                let answer = if good { SubmissionResult::Confirmed } else { bad };
                if random.below(4) == 0 {
                    machine.submitted(task, submission, now).is_err()
                } else {
                    machine.answer(task, submission, answer, now).is_err()
                }
            }
            75..80 => machine.confirm(task, now).is_err(),
            80..84 => machine.fail(task, random.pick(RollbackReason::ALL), now).is_err(),
            84..86 => machine.request_rollback(task, random.pick(RollbackReason::ALL)).is_err(),
            86 => {
                let amount = u128::from(random.below(60_000_000));
                machine.set_stake(Wei::new(amount));
                self.deposited = amount + machine.stake().slashed.get();
                false
            }
            87 => {
                let settings = [
                    ("maxDepth", random.pick(&["1", "5", "20", "21"])),
                    ("maxConcurrent", random.pick(&["1", "2", "5"])),
                    ("stake.stakePerDepth", random.pick(&["0", "500000", "900000"])),
                    ("enabled", random.pick(&["true", "true", "true", "true", "true", "false"])),
                ];
                let one = random.pick(&settings);
                machine.configure([one], now).is_err()
            }
            88 => !machine.checkpoint(&task),
            89 => {
                match random.below(8) {
                    0 => machine.chain_lost(now.saturating_sub(random.below(5_000)), now),
                    _ => machine.chain_back(now),
                }
                if random.below(200) == 0 {
                    machine.chain_lost(now, now);
                    while machine.away().is_some_and(|away| away.tries < TRIES) {
                        machine.advance(machine.next_deadline().expect("a try is due"));
                    }
                }
                false
            }
            90..98 => {
                let due = machine.next_deadline().unwrap_or(now);
                let later = random.pick(&[10, 100, 1_000, 1_000, 2_000, 10_000, 70_000]);
                machine.advance(if random.below(4) == 0 { due } else { now + later });
                false
            }
            _ => {
                self.restore(now);
                false
            }
        }
    }

    fn restore(&mut self, now: u64) {
        self.drain();
        let image = self.machine.snapshot();
        let later = self.random.pick(&[0, 0, 0, 1, 1_000, 30_000, 300_000]);
        let restored = Speculation::restore(&image, now + later).expect("a snapshot is sound");
        self.machine = restored;
        self.restored += 1;
    }

    fn drain(&mut self) {
        while let Some(output) = self.machine.poll_output() {
            match output {
                EngineOutput::Submit { task, submission, .. } => {
                    self.flying.insert(task, submission);
                }
                EngineOutput::Confirmed { .. } => self.confirmed += 1,
                EngineOutput::RolledBack(plan) => {
                    self.undone += plan.tasks.len() as u64;
                    let graph = self.machine.graph();
                    let place: BTreeMap<_, _> = plan.tasks.iter().zip(0..).collect();
                    assert_eq!(place.len(), plan.tasks.len());
                    assert_eq!(plan.tasks.last(), Some(&plan.summary.trigger));
                    for (task, at) in &place {
                        for (parent, _) in graph.parents(task) {
                            assert!(place.get(&parent).is_none_or(|parent_at| parent_at > at));
                        }
                    }
                }
                EngineOutput::Prove { .. }
                | EngineOutput::LateSuccess { .. }
                | EngineOutput::Breaker(_)
                | EngineOutput::TryChain { .. }
                | EngineOutput::ChainBack { .. } => {}
            }
        }
        let live = |task: &TaskId| {
            self.machine.graph().status(task).is_some_and(DependencyStatus::is_live)
        };
        self.flying.retain(|task, _| live(task) || task.0[31] == 0);
    }
}

impl Speculation {
    /// The state that a refusal must not change.
    fn but_counters(&self) -> Vec<u8> {
        let mut machine = self.clone();
        machine.counters = Counters::default();
        machine.snapshot()
    }
}

fn config(random: &mut Random) -> Config {
    let settings = [
        ("enabled", "true"),
        ("rollbackPolicy", random.pick(&["cascade", "cascade", "selective", "checkpoint"])),
        ("maxParallelBranches", random.pick(&["2", "4", "16"])),
        ("maxConcurrent", random.pick(&["1", "3"])),
        ("maxRetries", random.pick(&["1", "3"])),
        ("commitmentTtlMs", random.pick(&["20000", "300000"])),
        ("breaker.threshold", random.pick(&["5", "1000"])),
        ("breaker.resetMs", random.pick(&["1000", "60000"])),
        ("limits.retainedTasks", random.pick(&["0", "3", "8"])),
        ("limits.gcIntervalMs", random.pick(&["1", "5000"])),
        ("limits.maxStateSnapshots", random.pick(&["0", "2"])),
        ("limits.maxPendingOperations", random.pick(&["6", "100"])),
        ("features.enableOptimisticProofs", random.pick(&["true", "false"])),
        ("features.rolloutPercentage", random.pick(&["100", "100", "80"])),
        ("stake.cooldownPeriodMs", random.pick(&["0", "0", "500"])),
        ("stake.maxStake", random.pick(&["1000000000", "8000000"])),
        ("stake.minStake", "1000000"),
        ("stake.stakePerDepth", "500000"),
    ];
    Config::default().with(settings).unwrap()
}

#[test]
fn invariants_hold_over_a_million_random_operations() {
    let (mut confirmed, mut undone, mut restored) = (0, 0, 0);
    let mut refusals = BTreeSet::new();
    for seed in 0..SEEDS {
        let mut world = World::new(seed);
        for at in 0..OPERATIONS {
            let now = world.machine.now() + world.random.below(50);
            // Handles first what is due or was requested before, which does not depend on the
            // operation.
            world.machine.advance(now);
            world.drain();
            if seed % 2 == 0 {
                // With this many failures, the breaker would block most operations.
                world.machine.breaker = Breaker::default();
            }
            world.past.check(&world.machine, world.waits);
            let before = (at % 16 == 0).then(|| world.machine.but_counters());
            if world.step(now)
                && let Some(before) = before
            {
                let same = before == world.machine.but_counters();
                assert!(same, "seed {seed}, operation {at}: a refusal changed something");
            }
            world.drain();
            let stake = world.machine.stake();
            assert_eq!(stake.available.get() + stake.slashed.get(), world.deposited);
            oracle::check(&world.machine);
            world.past.check(&world.machine, world.waits);
        }
        confirmed += world.confirmed;
        undone += world.undone;
        restored += world.restored;
        let rejected = &world.machine.counters().tasks_rejected;
        refusals.extend((0..).zip(rejected).filter(|(_, count)| **count > 0).map(|(at, _)| at));
    }
    // The operations make progress.
    let enough = confirmed > 10_000 && undone > 20_000 && restored > 10_000;
    assert!(enough, "{confirmed} confirmed, {undone} undone, {restored} restored");
    let missing: Vec<_> = Reason::ALL
        .iter()
        .enumerate()
        .filter(|(at, _)| !refusals.contains(at))
        .map(|(_, reason)| reason.name())
        .collect();
    assert_eq!(missing, ["queueSize", "maxMemoryMb"]);
}
