//! How long a pipeline takes with speculation off, from what its tasks took with it on.
//!
//! The agent's rules are played through in made-up time: a task begins when its parents are
//! confirmed and a branch is free, those with parents before roots, each in topological order; its
//! work takes what it took; its proof waits for a prover and takes what one takes; it goes out when
//! a submission is free; the chain has it in the first block that is made after a validator has it,
//! of blocks at the pace they had, and no more transactions are on their way than the post lets.

use super::{post::WINDOW, run::Run};
use std::{
    cmp::Reverse,
    collections::{BTreeSet, BinaryHeap, VecDeque},
};

/// Transactions that come before a task's work: its creation and its claim.
const BEFORE_WORK: usize = 2;

/// What a task takes, in ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cost {
    /// From being accepted to its output.
    pub(super) work_ms: u64,
    /// The prover's time.
    pub(super) proof_ms: u64,
    /// How much later than by the chain its confirmation is told.
    pub(super) late_ms: u64,
}

/// Where it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Devnet {
    /// Live tasks at most, none of which has a live parent.
    pub(super) branches: usize,
    /// Proofs made at a time.
    pub(super) provers: usize,
    /// Submissions in flight at most.
    pub(super) submissions: usize,
    /// From a submission to the confirmation at least, in ms.
    pub(super) latency_ms: u64,
    /// Between two blocks, in ms.
    pub(super) block_ms: u64,
    /// From when a block is made, with what a validator has by then, until it is seen, in ms.
    pub(super) lag_ms: u64,
}

/// What ends at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Worked(usize),
    Proved(usize),
    Confirmed(usize),
    Block,
}

struct Play<'a> {
    run: &'a Run,
    costs: &'a [Cost],
    devnet: Devnet,
    now: u64,
    /// By time, then by the order of their beginnings.
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    begun: u64,
    /// Per task, its parents that are not confirmed.
    missing: Vec<usize>,
    /// Tasks that may begin by rank: those with parents, and roots.
    ready: [BTreeSet<(usize, usize)>; 2],
    live: usize,
    proving: usize,
    to_prove: VecDeque<usize>,
    to_submit: VecDeque<usize>,
    submitted: Vec<u64>,
    in_flight: usize,
    /// Transactions that wait for the post; one that brings a proof names its task.
    letters: VecDeque<Option<usize>>,
    /// Those that a validator has, and since when.
    flying: VecDeque<(u64, Option<usize>)>,
    /// Whether the next block is among the events.
    awaited: bool,
}

/// The time from a pipeline's submission to its last confirmation, in ms.
pub(super) fn length(run: &Run, costs: &[Cost], devnet: Devnet) -> u64 {
    let tasks = costs.len();
    let parents = |at: usize| run.pipeline.tasks[at].parents.len();
    let mut play = Play {
        run,
        costs,
        devnet,
        now: 0,
        events: BinaryHeap::new(),
        begun: 0,
        missing: (0..tasks).map(parents).collect(),
        ready: Default::default(),
        live: 0,
        proving: 0,
        to_prove: VecDeque::new(),
        to_submit: VecDeque::new(),
        submitted: vec![0; tasks],
        in_flight: 0,
        letters: VecDeque::new(),
        flying: VecDeque::new(),
        awaited: false,
    };
    for at in (0..tasks).filter(|at| parents(*at) == 0) {
        play.ready[1].insert((run.rank[at], at));
    }
    let (mut confirmed, mut last) = (0, 0);
    play.fill();
    while confirmed < tasks {
        let Some(Reverse((at, _, event))) = play.events.pop() else { break };
        play.now = at;
        if let Event::Confirmed(_) = event {
            (confirmed, last) = (confirmed + 1, at);
        }
        play.happens(event);
        play.fill();
    }
    last
}

impl Play<'_> {
    fn happens(&mut self, event: Event) {
        match event {
            Event::Worked(task) => {
                self.letters.push_back(None);
                self.to_prove.push_back(task);
            }
            Event::Proved(task) => {
                self.proving -= 1;
                self.to_submit.push_back(task);
            }
            Event::Confirmed(task) => {
                self.live -= 1;
                self.in_flight -= 1;
                self.letters.push_back(None);
                for child in &self.run.children[task] {
                    self.missing[*child] -= 1;
                    if self.missing[*child] == 0 {
                        self.ready[0].insert((self.run.rank[*child], *child));
                    }
                }
            }
            Event::Block => {
                self.awaited = false;
                let made = self.now.saturating_sub(self.devnet.lag_ms);
                while let Some((_, letter)) = self.flying.pop_front_if(|(since, _)| *since <= made)
                {
                    let Some(task) = letter else { continue };
                    let least = self.submitted[task].saturating_add(self.devnet.latency_ms);
                    let at = self.now.max(least).saturating_add(self.costs[task].late_ms);
                    self.ends(at, Event::Confirmed(task));
                }
            }
        }
    }

    /// Begins whatever there is room for.
    fn fill(&mut self) {
        while self.live < self.devnet.branches {
            let [below, roots] = &mut self.ready;
            let Some((_, task)) = below.pop_first().or_else(|| roots.pop_first()) else { break };
            self.live += 1;
            self.letters.extend([None; BEFORE_WORK]);
            self.ends(self.now.saturating_add(self.costs[task].work_ms), Event::Worked(task));
        }
        while self.proving < self.devnet.provers
            && let Some(task) = self.to_prove.pop_front()
        {
            self.proving += 1;
            self.ends(self.now.saturating_add(self.costs[task].proof_ms), Event::Proved(task));
        }
        while self.in_flight < self.devnet.submissions
            && let Some(task) = self.to_submit.pop_front()
        {
            self.in_flight += 1;
            self.submitted[task] = self.now;
            self.letters.push_back(Some(task));
        }
        while self.flying.len() < WINDOW
            && let Some(letter) = self.letters.pop_front()
        {
            self.flying.push_back((self.now, letter));
        }
        if let Some((since, _)) = self.flying.front().filter(|_| !self.awaited) {
            // The pipeline came in the middle between two blocks.
            let (pace, half) = (self.devnet.block_ms, self.devnet.block_ms / 2);
            let least = since.saturating_add(self.devnet.lag_ms).max(self.now + 1);
            let at = least.saturating_sub(half).div_ceil(pace).saturating_mul(pace) + half;
            self.ends(at, Event::Block);
            self.awaited = true;
        }
    }

    fn ends(&mut self, at: u64, event: Event) {
        self.begun += 1;
        self.events.push(Reverse((at, self.begun, event)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::speculation::pipeline::Pipeline;
    use cowboy_engine::primitives::Address;

    /// Blocks each 100 ms, of which one is seen 20 ms after it was made.
    const DEVNET: Devnet = Devnet {
        branches: 4,
        provers: 4,
        submissions: 5,
        latency_ms: 0,
        block_ms: 100,
        lag_ms: 20,
    };
    const COST: Cost = Cost { work_ms: 10, proof_ms: 1_000, late_ms: 0 };

    fn check(tasks: &str, cost: Cost, devnet: Devnet, expected: u64) {
        let text = format!("name: p\ntasks:\n{tasks}");
        let pipeline = serde_yaml::from_str::<Pipeline>(&text).unwrap().check().unwrap();
        let run = Run::new(&Address([1; 20]), 1, pipeline, 0);
        let costs = vec![cost; run.tasks.len()];
        assert_eq!(length(&run, &costs, devnet), expected, "{tasks}");
    }

    fn chain(tasks: u32) -> String {
        let parents = |n: u32| n.checked_sub(1).map_or(String::new(), |n| format!("t{n}"));
        let task = |n| format!("- {{ id: t{n}, command: [x], depends_on: [{}] }}\n", parents(n));
        (0..tasks).map(task).collect()
    }

    fn wide(tasks: u32) -> String {
        let task = |n| format!("- {{ id: t{n}, command: [x] }}\n");
        (0..tasks).map(task).collect()
    }

    #[test]
    fn a_chain_is_one_after_the_other() {
        // 1,010 ms and the first block at 50 ms after a tenth of a second that is late enough.
        check(&chain(1), COST, DEVNET, 1_050);
        check(&chain(2), COST, DEVNET, 2_150);
        check(&chain(2), Cost { late_ms: 7, ..COST }, DEVNET, 2_157);
        check(&chain(2), COST, Devnet { latency_ms: 500, ..DEVNET }, 3_020);
    }

    #[test]
    fn a_wide_pipeline_waits_for_branches_provers_and_submissions() {
        let many = Devnet { branches: 16, provers: 16, submissions: 16, ..DEVNET };
        check(&wide(8), COST, many, 1_050);
        check(&wide(8), COST, Devnet { branches: 4, ..many }, 2_150);
        check(&wide(8), COST, Devnet { provers: 4, ..many }, 2_050);
        check(&wide(8), COST, Devnet { submissions: 4, ..many }, 1_150);
        // The post lets 32 transactions go at once: proofs wait for a block behind claims.
        check(&wide(16), Cost { proof_ms: 0, ..COST }, many, 150);
        check(&wide(8), Cost { proof_ms: 0, ..COST }, many, 50);
    }

    #[test]
    fn a_diamond_is_as_long_as_its_longest_path() {
        let tasks = "- { id: a, command: [x] }\n- { id: b, command: [x], depends_on: [a] }\n\
                     - { id: c, command: [x], depends_on: [a] }\n\
                     - { id: d, command: [x], depends_on: [b, c] }\n";
        check(tasks, COST, DEVNET, 3_250);
    }
}
