//! The story of a simulated run, from its trace.

use super::{
    CheckResult, FaultSpan, JobSpan, LINES, LaneCounts, NamedRunner, Story, StoryBlock, StoryLine,
    Verdict, to_the_second,
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
use cowboy_simulation::{devnet::runner_key, invariant::INVARIANTS, play::Line, script::Script};
use jiff::Timestamp;
use std::collections::{BTreeMap, HashMap, VecDeque};

/// Blocks that are told, from the end of the run.
const BLOCKS: usize = 10_000;

const NO_AGENT: &str = "A simulated devnet has validators and runners, but no agent that runs \
    pipelines, so no task runs ahead of the chain.";

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
    /// The trace, without what is older than its last lines.
    trace: VecDeque<StoryLine>,
    /// Number of lines that are left out of it.
    forgotten: u64,
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
                speculations_absent: Some(NO_AGENT.to_owned()),
                ..Story::default()
            },
            validators: keys.collect(),
            runners: runners.into_iter().enumerate().map(|(index, at)| (at, index)).collect(),
            subsets: BTreeMap::new(),
            jobs: BTreeMap::new(),
            blocks: HashMap::new(),
            heights: BTreeMap::new(),
            laid: Vec::new(),
            trace: VecDeque::new(),
            forgotten: 0,
            began: None,
            view: None,
        }
    }

    pub fn add(&mut self, line: &Line) {
        let elapsed = u64::try_from(line.time.as_millis()).unwrap_or(u64::MAX);
        if let Some(executed) = &line.block {
            self.block(executed, elapsed);
        }
        let time = elapsed.saturating_sub(self.began.unwrap_or(elapsed));
        match line.kind {
            "fault" => self.fault(line, time),
            "heal" => self.heal(&line.what, time),
            _ => {}
        }
        self.tell(line, time);
    }

    fn fault(&mut self, line: &Line, time: u64) {
        let (what, lasting) = parts(&line.what);
        let (kind, target) = what.split_once(' ').unwrap_or((what, ""));
        self.laid.push((what.to_owned(), self.story.faults.len()));
        self.story.faults.push(FaultSpan {
            from: time,
            to: None,
            kind: kind.to_owned(),
            target: target.to_owned(),
            text: format!("from height {} {lasting}", line.height),
        });
    }

    fn heal(&mut self, what: &str, time: u64) {
        if let Some(at) = self.laid.iter().position(|(laid, _)| laid == what) {
            let (_, fault) = self.laid.remove(at);
            self.story.faults[fault].to = Some(time);
        }
    }

    /// Adds a line of the trace to the log.
    fn tell(&mut self, line: &Line, time: u64) {
        let (level, text) = match line.kind {
            "block" => ("INFO", format!("block {}: {}", line.height, line.what)),
            "heal" => ("INFO", format!("healed: {}", line.what)),
            kind => ("WARN", format!("{kind}: {}", line.what)),
        };
        let node = match &line.block {
            Some(executed) => {
                let proposer = self.validators.get(&executed.block.header.proposer).copied();
                proposer.map(validator_name)
            }
            None => node_of(line.kind, &line.what),
        };
        if self.trace.len() == LINES {
            self.trace.pop_front();
            self.forgotten += 1;
        }
        self.trace.push_back(StoryLine { time, node, level: level.to_owned(), text });
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
        if self.forgotten > 0 {
            let count = self.forgotten;
            story.notes.push(format!("the first {count} lines of the log are left out"));
        }
        story.logs = self.trace.into();
        if let Some((name, text)) = &broken {
            story.logs.push(StoryLine {
                time: story.logs.last().map_or(0, |last| last.time),
                node: None,
                level: "ERROR".to_owned(),
                text: format!("{name} does not hold: {text}"),
            });
        }
        story.verdict = Some(match &broken {
            None => Verdict { passed: true, text: "every invariant and check holds".to_owned() },
            Some((name, _)) => Verdict { passed: false, text: format!("`{name}` does not hold") },
        });
        story.checks = match broken {
            Some((name, text)) => vec![CheckResult { name, passed: false, text }],
            None => {
                let held = INVARIANTS.iter().map(|(name, text)| CheckResult::holds(name, text));
                let true_of_it =
                    checks.iter().map(|check| CheckResult::holds(check, "true of the outcome"));
                held.chain(true_of_it).collect()
            }
        };
        story
    }
}

/// What a fault is, and how long it lasts.
fn parts(what: &str) -> (&str, String) {
    match what.rsplit_once(" for ") {
        Some((what, span)) => (what, format!("for {span}")),
        None => (what, "until the end".to_owned()),
    }
}

/// The one node that a line of the trace is about.
fn node_of(kind: &str, what: &str) -> Option<String> {
    let mut words = parts(what).0.split(' ');
    let first = words.next()?;
    let name = match (kind, first) {
        (_, "partition") => return None,
        ("fabricated", runner) => runner,
        _ => words.next_back()?,
    };
    let number = name.strip_prefix("validator-").or_else(|| name.strip_prefix("runner-"))?;
    number.bytes().all(|digit| digit.is_ascii_digit()).then(|| name.to_owned())
}

fn runner_name(index: usize) -> String {
    format!("runner-{index}")
}

#[cfg(test)]
mod tests {
    use super::{Collector, node_of};
    use cowboy_engine::primitives::Height;
    use cowboy_simulation::{
        invariant::INVARIANTS,
        play::{Line, play},
        script::Script,
    };
    use std::{collections::BTreeSet, time::Duration};

    #[test]
    fn a_run_has_its_blocks_jobs_faults_and_log() {
        let script = "{validators: 4, runners: 2, blocks: 50, load: {jobs: 1}, \
                      faults: [{at: 8, for: 4, kill: validator-3}]}";
        let script = Script::parse(script).unwrap();
        let mut collector = Collector::new("a run", &script, 1);
        play(&script, 1, None, &mut |line| collector.add(&line)).unwrap();
        let story = collector.finish(None, &[".heights.lowest > 0".to_owned()]);

        assert!(story.blocks.len() >= 50, "{} blocks", story.blocks.len());
        assert!(story.jobs.iter().any(|job| job.status == "verified"));
        let [fault] = story.faults.as_slice() else { panic!("{:?}", story.faults) };
        assert_eq!((fault.kind.as_str(), fault.target.as_str()), ("kill", "validator-3"));
        let text = &fault.text;
        assert!(text.starts_with("from height ") && text.ends_with(" for 4 blocks"), "{text}");
        assert!(fault.to.is_some_and(|to| to > fault.from));
        let names: Vec<_> = story.checks.iter().map(|check| check.name.as_str()).collect();
        assert_eq!(names.len(), INVARIANTS.len() + 1);
        assert_eq!((names[0], *names.last().unwrap()), ("fork", ".heights.lowest > 0"));
        let of_blocks = story.logs.iter().filter(|line| line.text.starts_with("block "));
        assert_eq!(of_blocks.count(), story.blocks.len());
        let others: Vec<_> = story
            .logs
            .iter()
            .filter(|line| !line.text.starts_with("block "))
            .map(|line| (line.node.as_deref(), line.text.as_str()))
            .collect();
        let struck = Some("validator-3");
        let expected = [
            (struck, "fault: kill validator-3 for 4 blocks"),
            (struck, "healed: kill validator-3"),
        ];
        assert_eq!(others, expected);
        assert!(story.speculations.is_empty());
        assert!(story.speculations_absent.is_some());
    }

    #[test]
    fn a_fault_ends_with_its_own_heal() {
        let script = Script::parse("validators: 16").unwrap();
        let mut collector = Collector::new("a run", &script, 1);
        let mut tell = |kind, what: &str| {
            let (time, height) = (Duration::ZERO, Height::new(1));
            collector.add(&Line { time, height, kind, what: what.to_owned(), block: None });
        };
        tell("fault", "kill validator-15 for 8 blocks");
        tell("fault", "kill validator-1 for 9000 ms");
        tell("heal", "kill validator-1");
        let story = collector.finish(None, &[]);
        let ended: Vec<_> =
            story.faults.iter().map(|fault| (fault.target.as_str(), fault.to)).collect();
        assert_eq!(ended, [("validator-15", None), ("validator-1", Some(0))]);
    }

    #[test]
    fn a_broken_invariant_is_the_last_line() {
        let script = Script::parse("validators: 4").unwrap();
        let broken = ("liveness".to_owned(), "stuck at 7".to_owned());
        let story = Collector::new("a run", &script, 1).finish(Some(broken), &[]);
        let last = story.logs.last().unwrap();
        let expected = ("ERROR", "liveness does not hold: stuck at 7");
        assert_eq!((last.level.as_str(), last.text.as_str()), expected);
        assert_eq!(story.checks.len(), 1);
    }

    #[test]
    fn lines_name_their_node() {
        let cases = [
            ("fault", "kill validator-3 for 8 blocks", Some("validator-3")),
            ("heal", "pause runner-0", Some("runner-0")),
            ("fault", "lie ones of runner-0 by validator-2", Some("validator-2")),
            ("fabricated", "runner-5 is present in P(3) by validator-0 alone", Some("runner-5")),
            ("fault", "partition validator-0,runner-1 | validator-2 for 10000 ms", None),
            ("fault", "loss 20 % on runner-1..validator-0", None),
        ];
        for (kind, what, expected) in cases {
            assert_eq!(node_of(kind, what).as_deref(), expected, "{what}");
        }
    }

    #[test]
    fn the_documented_invariants_are_those_of_the_page() {
        let text = include_str!("../../../docs/simulation.md");
        let (_, text) = text.split_once("\n## Invariants\n").unwrap();
        let (text, _) = text.split_once("\n## ").unwrap();
        let documented: BTreeSet<_> =
            text.split("(`").skip(1).filter_map(|part| part.split('`').next()).collect();
        let known: BTreeSet<_> = INVARIANTS.iter().map(|(name, _)| *name).collect();
        assert_eq!(known.difference(&documented).count(), 0, "{documented:?}");
        assert_eq!(documented.difference(&known).collect::<Vec<_>>(), [&"presence feasibility"]);
    }
}
