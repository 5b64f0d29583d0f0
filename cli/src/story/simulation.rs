//! The story of a simulated run, from its trace.

use super::{
    CheckResult, FaultSpan, JobSpan, LaneCounts, NamedRunner, Story, StoryBlock, Verdict,
    to_the_second,
};
use cowboy_devnet::{
    chain::ledger::ExecutedBlock,
    sample::{validator_keys, validator_name},
};
use cowboy_engine::{
    chain::{Event, EventKind},
    fees::meter::MAX_BLOCK_CYCLES,
    primitives::{Address, Hash, Height},
};
use cowboy_simulation::{devnet::runner_key, play::Line, script::Script};
use jiff::Timestamp;
use std::collections::{BTreeMap, HashMap};

/// Blocks that are told, from the end of the run.
const BLOCKS: usize = 10_000;

/// Collects a run while it is played.
pub struct Collector {
    story: Story,
    /// By the key of consensus; committees are ordered by it.
    validators: BTreeMap<[u8; 32], usize>,
    runners: HashMap<Address, usize>,
    /// The validators that each runner connects to; read again when subsets advance.
    subsets: BTreeMap<usize, Vec<usize>>,
    jobs: BTreeMap<Hash, JobSpan>,
    /// By hash, the position of each block.
    blocks: HashMap<Hash, usize>,
    heights: BTreeMap<Height, usize>,
    /// The faults in force: what they are, and their position.
    laid: Vec<(String, usize)>,
    /// The first block's timestamp.
    began: Option<u64>,
    view: Option<u64>,
}

impl Collector {
    pub fn new(title: &str, script: &Script, seed: u64) -> Self {
        let names: Vec<_> = (0..script.validators).map(validator_name).collect();
        let keys = (0..script.validators).map(|i| (validator_keys(i).public().consensus_key, i));
        let runners: Vec<_> = (0..script.runners).map(|i| runner_key(i).address()).collect();
        let named = runners.iter().enumerate().map(|(index, address)| NamedRunner {
            name: runner_name(index),
            address: address.to_string(),
        });
        Self {
            story: Story {
                title: title.to_owned(),
                kind: "simulation",
                version: env!("CARGO_PKG_VERSION"),
                made_at: to_the_second(Timestamp::now()),
                seed: Some(seed),
                validators: names,
                runners: named.collect(),
                cycles_limit: Some(MAX_BLOCK_CYCLES),
                ..Story::default()
            },
            validators: keys.collect(),
            runners: runners.into_iter().enumerate().map(|(index, at)| (at, index)).collect(),
            subsets: BTreeMap::new(),
            jobs: BTreeMap::new(),
            blocks: HashMap::new(),
            heights: BTreeMap::new(),
            laid: Vec::new(),
            began: None,
            view: None,
        }
    }

    pub fn add(&mut self, line: &Line) {
        let elapsed = u64::try_from(line.time.as_millis()).unwrap_or(u64::MAX);
        let time = elapsed.saturating_sub(self.began.unwrap_or(elapsed));
        match (&line.block, line.kind) {
            (Some(executed), _) => self.block(executed, elapsed),
            (None, "fault") => {
                let (kind, target) = line.what.split_once(' ').unwrap_or((&line.what, ""));
                self.laid.push((line.what.clone(), self.story.faults.len()));
                self.story.faults.push(FaultSpan {
                    from: time,
                    to: None,
                    kind: kind.to_owned(),
                    target: target.to_owned(),
                    text: format!("at height {}", line.height),
                });
            }
            (None, "heal") => {
                // It was laid with its duration.
                let at = self.laid.iter().position(|(what, _)| what.starts_with(&line.what));
                if let Some(at) = at {
                    let (_, fault) = self.laid.remove(at);
                    self.story.faults[fault].to = Some(time);
                }
            }
            _ => {}
        }
    }

    fn block(&mut self, executed: &ExecutedBlock, elapsed: u64) {
        let (header, execution) = (&executed.block.header, &executed.execution);
        let began = *self.began.get_or_insert(header.timestamp_ms);
        let view = header.round.view;
        let lane = &execution.lane;
        let cycles = execution.receipts.iter().map(|receipt| receipt.cycles.get());
        let cycles = cycles.chain(execution.fires.iter().map(|fire| fire.cycles.get()));
        let told = StoryBlock {
            height: header.height.get(),
            time: header.timestamp_ms.saturating_sub(began),
            hash: executed.hash.to_string(),
            proposer: self.validators.get(&header.proposer).copied(),
            transactions: execution.receipts.len(),
            cycles: Some(cycles.sum()),
            events: execution.events.len(),
            final_after: elapsed.checked_sub(header.timestamp_ms),
            views_abandoned: self.view.and_then(|before| view.checked_sub(before + 1)),
            timers: Some(LaneCounts::of(lane.fired, lane.deferred, lane.basefee.get())),
            ..StoryBlock::default()
        };
        self.view = Some(view);
        self.blocks.insert(executed.hash, self.story.blocks.len());
        self.heights.insert(header.height, self.story.blocks.len());
        self.story.blocks.push(told);
        self.presence(executed);
        for event in &execution.events {
            self.event(&event.kind, header.height.get());
        }
        for draw in &execution.draws {
            if let Some(job) = self.jobs.get_mut(&draw.job_id) {
                let candidates = draw.verdicts.iter().filter(|it| it.dropped_by.is_none());
                job.candidates = Some(candidates.count() as u64);
            }
        }
    }

    fn read_subsets(&mut self, executed: &ExecutedBlock) {
        let advanced = |event: &Event| matches!(event.kind, EventKind::SubsetEpochAdvanced(_));
        if !self.subsets.is_empty() && !executed.execution.events.iter().any(advanced) {
            return;
        }
        let state = &executed.execution.state;
        for (address, runner) in state.registry().iter() {
            let Some(index) = self.runners.get(address) else { continue };
            let subset = state.subset_of(&runner.pubkey).into_iter();
            let subset = subset.filter_map(|v| self.validators.get(&v.consensus_key).copied());
            self.subsets.insert(*index, subset.collect());
        }
    }

    /// What a block's certificates say about its ancestors.
    fn presence(&mut self, executed: &ExecutedBlock) {
        self.read_subsets(executed);
        let committee: Vec<usize> = self.validators.values().copied().collect();
        for derived in &executed.execution.derived {
            let Some(block) =
                self.heights.get(&derived.height).map(|at| &mut self.story.blocks[*at])
            else {
                continue;
            };
            let order = derived.order.as_slice();
            let runner = |bit: u32| self.runners.get(order.get(bit as usize)?).copied();
            block.present = Some(derived.bitmap.ones().filter_map(runner).collect());
            let Some(certificate) = executed.block.certificates.get(derived.certificate) else {
                continue;
            };
            let mut seen = BTreeMap::<usize, u32>::new();
            for vote in &certificate.votes {
                for runner in vote.presence.ones().filter_map(runner) {
                    *seen.entry(runner).or_default() += 1;
                }
            }
            block.certified_present = Some(seen);
            let voters = certificate.votes.iter();
            let voters: Vec<usize> =
                voters.filter_map(|v| committee.get(v.validator as usize).copied()).collect();
            let could = self.subsets.iter().map(|(runner, subset)| {
                let voted = subset.iter().filter(|validator| voters.contains(validator)).count();
                (*runner, u32::try_from(voted).unwrap_or(u32::MAX))
            });
            block.certified_could = Some(could.collect());
            block.voters = Some(voters);
        }
    }

    fn event(&mut self, kind: &EventKind, height: u64) {
        match kind {
            EventKind::JobSubmitted(job) => {
                let span = JobSpan {
                    id: job.job_id.to_string(),
                    kind: job.kind.to_string(),
                    submitted: height,
                    status: "open".to_owned(),
                    ..JobSpan::default()
                };
                self.jobs.insert(job.job_id, span);
            }
            EventKind::JobAssigned(event) => {
                let names = event.committee.iter().filter_map(|runner| self.runners.get(runner));
                let names = names.map(|index| runner_name(*index)).collect();
                if let Some(job) = self.jobs.get_mut(&event.job_id) {
                    job.runners = names;
                    job.assigned.get_or_insert(height);
                }
            }
            EventKind::JobVerified(event) => self.ended(&event.job_id, height, "verified", None),
            EventKind::JobFailed(event) => {
                self.ended(&event.job_id, height, "failed", Some(event.reason.to_string()));
            }
            _ => {}
        }
    }

    fn ended(&mut self, job: &Hash, height: u64, status: &str, text: Option<String>) {
        if let Some(job) = self.jobs.get_mut(job) {
            (job.ended, job.status, job.text) = (Some(height), status.to_owned(), text);
        }
    }

    /// The whole story. `broken` is the invariant that does not hold, and how; without one, all
    /// `checks` of the scenario do.
    pub fn finish(self, broken: Option<(String, String)>, checks: &[String]) -> Story {
        let mut story = self.story;
        story.jobs = self.jobs.into_values().collect();
        story.length_ms = story.blocks.last().map_or(0, |last| last.time);
        let more = story.blocks.len().saturating_sub(BLOCKS);
        if more > 0 {
            story.blocks.drain(..more);
            story.notes.push(format!("the first {more} blocks are left out"));
        }
        story.verdict = Some(match &broken {
            None => Verdict { passed: true, text: "every invariant and check holds".to_owned() },
            Some((name, _)) => Verdict { passed: false, text: format!("`{name}` does not hold") },
        });
        story.checks = match broken {
            Some((name, text)) => vec![CheckResult { name, passed: false, text }],
            None => checks.iter().map(|check| CheckResult::holds(check)).collect(),
        };
        story
    }
}

fn runner_name(index: usize) -> String {
    format!("runner-{index}")
}
