//! Whether the chain can be reached, and its pace.
//!
//! Every block shows that it can. When no block has come for a while, or no validator runs, the
//! machine is told that the chain is away; no time limit runs until the next block.

use super::Core;
use crate::agent::{
    model::{self, Cost, Devnet},
    run::Run,
};
use std::collections::VecDeque;

/// Missing blocks, at the nominal pace, after which the chain is away.
const SILENT_BLOCKS: u64 = 4;
/// Minimum silence before the chain is away, in ms: shorter than any `confirmationTimeoutMs`.
const SILENT_MS: u64 = 2_000;
/// Maximum number of block times kept.
const BLOCKS: usize = 1_024;

#[derive(Default)]
pub(super) struct Reach {
    /// Time between blocks as the topology sets it, in ms.
    block_ms: u64,
    /// When each block was seen (Unix ms), and how long after it was made (ms), oldest first.
    blocks: VecDeque<(u64, u64)>,
    /// When the last block was seen, or else when this process began, Unix ms.
    last: Option<u64>,
}

impl Reach {
    pub(super) fn new(block_ms: u64) -> Self {
        Self { block_ms: block_ms.max(1), ..Self::default() }
    }

    const fn silence_ms(&self) -> u64 {
        let blocks = self.block_ms.saturating_mul(SILENT_BLOCKS);
        if blocks > SILENT_MS { blocks } else { SILENT_MS }
    }

    /// The time between blocks seen in this span, and the delay from making a block to seeing it,
    /// in ms: medians, or the nominal pace and 0 if too few blocks were seen.
    fn pace(&self, from: u64, to: u64) -> (u64, u64) {
        let within = self.blocks.iter().filter(|(at, _)| (from..=to).contains(at));
        let within: Vec<(u64, u64)> = within.copied().collect();
        let gaps = within.windows(2).map(|pair| pair[1].0.saturating_sub(pair[0].0)).collect();
        let lags = within.iter().map(|(_, lag)| *lag).collect();
        (median(gaps).unwrap_or(self.block_ms).max(1), median(lags).unwrap_or(0))
    }
}

/// The median; the upper one of two.
fn median(mut all: Vec<u64>) -> Option<u64> {
    all.sort_unstable();
    all.get(all.len() / 2).copied()
}

impl Core {
    /// Checks whether the chain is away at `now`; called before any other event of that time.
    /// `running`: whether a validator runs.
    pub(in crate::agent) fn look(&mut self, running: bool, now: u64) {
        let last = *self.reach.last.get_or_insert(now);
        if self.machine.away().is_some() {
            return;
        }
        if !running || now.saturating_sub(last) > self.reach.silence_ms() {
            self.machine.chain_lost(last.saturating_add(self.reach.block_ms), now);
        }
    }

    /// A block made at `made` (Unix ms) was seen.
    pub(in crate::agent) fn seen(&mut self, made: u64, now: u64) {
        let reach = &mut self.reach;
        reach.last = Some(now);
        if reach.blocks.len() >= BLOCKS {
            reach.blocks.pop_front();
        }
        reach.blocks.push_back((now, now.saturating_sub(made)));
        self.machine.chain_back(now);
        self.go_on(now);
    }

    /// The chain is back: extends claims by the time that it was away.
    pub(super) fn prolonged(&mut self, away_ms: u64) {
        tracing::info!(away_ms, "the chain can be reached again");
        let open = self.runs.values().filter(|run| run.open > 0);
        let all = open.flat_map(|run| (0..run.tasks.len()).map(|at| (run.number, at)));
        for place in all.collect::<Vec<_>>() {
            let task = &self.runs[&place.0].tasks[place.1];
            let until = self.machine.task(&task.id).filter(|live| live.status.is_live());
            let until = until.map_or(task.claim_expires_at, |live| live.claim_expires_at);
            if until != task.claim_expires_at {
                self.change(place, |task| task.claim_expires_at = until);
            }
        }
    }

    /// The next deadline, Unix ms.
    pub(in crate::agent) fn due(&self) -> Option<u64> {
        let busy = self.machine.graph().live() > 0 && self.machine.away().is_none();
        let silent = self.reach.last.filter(|_| busy);
        let silent = silent.map(|last| last.saturating_add(self.reach.silence_ms() + 1));
        self.machine.next_deadline().into_iter().chain(silent).min()
    }

    /// How long this devnet would take for a fully confirmed pipeline with speculation off, in ms.
    /// `None` if a task is not confirmed, or was retried: that pipeline waited for a person.
    pub(super) fn synchronous_ms(&self, run: &Run, ended_at: u64) -> Option<u64> {
        if run.tasks.iter().any(|task| task.retried_at.is_some()) {
            return None;
        }
        let added = |at: usize| {
            Cost::added(run.pipeline.tasks[at].fault.filter(|_| run.tasks[at].attempt == 1))
        };
        // All proofs use one circuit, so slower ones only shared the processors with others.
        let proofs = run.tasks.iter().enumerate();
        let proofs = proofs.filter_map(|(at, task)| {
            task.proof_ms.map(|ms| ms.saturating_sub(added(at).0)).filter(|ms| *ms > 0)
        });
        let proof = proofs.min().unwrap_or(0);
        let cost = |at: usize| {
            let task = &run.tasks[at];
            let times = task.times;
            times.confirmed?;
            let (slow_ms, late_ms) = added(at);
            let work_ms = times.executed?.saturating_sub(times.scheduled?);
            let work_ms = work_ms.saturating_add(task.lost_ms);
            Some(Cost { work_ms, proof_ms: proof.saturating_add(slow_ms), late_ms })
        };
        let costs = (0..run.tasks.len()).map(cost).collect::<Option<Vec<_>>>()?;
        if !run.speculated {
            return Some(ended_at.saturating_sub(run.submitted_at));
        }
        let pace = self.reach.pace(run.submitted_at, ended_at);
        let latency_ms = self.options.confirmation_latency_ms;
        let devnet = Devnet::synchronous(self.machine.config(), latency_ms, pace);
        model::of_run(run, &costs, &devnet).length_ms
    }
}
