//! `sim run`: plays a scenario with one seed or many, several at a time, and reports them in order.

use crate::story::simulation::Collector;
use crate::{
    commands::assert::Compiled,
    context::Context,
    error::{CliError, Exit},
    output::{Document, Format, Row, columns, fields, millis, or_dash, short, to_ms},
};
use cowboy_devnet::{
    sample::validator_name,
    types::{HashText, Text},
};
use cowboy_engine::primitives::Hash;
use cowboy_simulation::{
    play::{Breach, Line, PlayError, play},
    script::Script,
    witness::{self, Coverage},
};
use serde::Serialize;
use std::{
    cell::RefCell,
    collections::BTreeMap,
    fmt,
    num::NonZeroUsize,
    panic,
    path::Path,
    str::FromStr,
    sync::{
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::Instant,
};

const MAX_SEEDS: u64 = 1_000_000;

/// Seeds from one to another, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seeds {
    from: u64,
    to: u64,
}

impl Seeds {
    pub const fn one(seed: u64) -> Self {
        Self { from: seed, to: seed }
    }

    const fn count(self) -> u64 {
        self.to - self.from + 1
    }
}

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| {
            let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            plain.then(|| text.parse::<u64>().ok()).flatten()
        };
        let (from, to) = text.split_once("..").unwrap_or((text, text));
        match (number(from), number(to)) {
            (Some(from), Some(to)) if from <= to && to - from < MAX_SEEDS => Ok(Self { from, to }),
            _ => Err(format!(
                "`{text}` is not a seed range: expected a number, or A..B of at most {MAX_SEEDS}"
            )),
        }
    }
}

/// The outcome of a seed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Outcome {
    /// The scenario.
    pub scenario: String,
    /// The seed.
    pub seed: u64,
    /// Whether every invariant holds.
    pub ok: bool,
    /// The validators' heights at the end.
    pub heights: Heights,
    /// The block that every validator had to reach.
    pub blocks: u64,
    /// The root of the state after that block; absent if it was not reached.
    pub state_root: Option<HashText>,
    /// Hash over blocks, roots, receipts, fires, events and P; absent after a panic.
    pub digest: Option<HashText>,
    /// Hash over everything that the simulation did; absent after a panic.
    pub audit: Option<String>,
    /// Number of jobs that were taken, and of those with a verified result.
    pub jobs: JobCounts,
    /// How P compares with the runners that validators saw.
    pub presence: PresenceCounts,
    /// Number of events of each kind.
    #[cfg_attr(test, schema(value_type = BTreeMap<String, u64>))]
    pub events: BTreeMap<&'static str, u64>,
    /// The duration on the simulation's clock, in milliseconds.
    pub virtual_ms: u64,
    /// The real duration, in milliseconds.
    pub wall_ms: u64,
    /// The invariant that does not hold; absent if all do.
    pub violation: Option<Violation>,
}

/// Heights of the validators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Heights {
    /// The height of the validator that is farthest behind.
    pub lowest: u64,
    /// The height of the validator that is ahead.
    pub highest: u64,
}

/// The outcome of the jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct JobCounts {
    /// Number of jobs that were taken.
    pub submitted: usize,
    /// Number of jobs with a verified result.
    pub verified: usize,
}

/// How P compares with the runners that validators saw.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct PresenceCounts {
    /// Runners with the votes of all honest validators of their subset whose votes are in the
    /// certificate, counted once per block.
    pub seen: u64,
    /// The number of these that P contains.
    pub present: u64,
    /// Runners that were present only because of liars' votes.
    pub fabricated: Vec<Wrong>,
    /// Runners that were seen but not present.
    pub hidden: Vec<Wrong>,
}

/// A runner for which P was wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Wrong {
    /// Its name.
    pub runner: String,
    /// Number of blocks in which it was wrong.
    pub blocks: u64,
    /// The first of these blocks.
    pub first: u64,
    /// The validators whose lies caused it; empty if it was chance.
    pub by: Vec<String>,
}

impl From<Coverage> for PresenceCounts {
    fn from(coverage: Coverage) -> Self {
        let Coverage { seen, present, fabricated, hidden } = coverage;
        let named = |wrongs: Vec<witness::Wrong>| wrongs.into_iter().map(Wrong::from).collect();
        Self { seen, present, fabricated: named(fabricated), hidden: named(hidden) }
    }
}

impl From<witness::Wrong> for Wrong {
    fn from(wrong: witness::Wrong) -> Self {
        let witness::Wrong { runner, blocks, first, by } = wrong;
        let runner = format!("runner-{runner}");
        Self {
            runner,
            blocks,
            first: first.get(),
            by: by.into_iter().map(validator_name).collect(),
        }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { runner, blocks, first, by } = self;
        let by = if by.is_empty() { "chance".to_owned() } else { by.join(", ") };
        write!(f, "{runner} in {blocks} blocks from {first} on, by {by}")
    }
}

impl PresenceCounts {
    /// The percentage of seen runners that were present.
    fn coverage(&self) -> String {
        let Some(per_mille) = (self.present * 1_000).checked_div(self.seen) else {
            return "no runner was seen".to_owned();
        };
        format!("{}.{} % of {} that were seen", per_mille / 10, per_mille % 10, self.seen)
    }
}

/// An invariant that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Violation {
    /// Its name, such as `fork`.
    pub invariant: String,
    /// The newest height at that time.
    pub height: u64,
    /// The actual and the expected value.
    pub what: String,
    /// The command that reproduces it.
    pub replay: String,
}

thread_local! {
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Keeps the place of a panic instead of printing it, because it is reported as a violation.
pub fn keep_panics() {
    panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(|place| format!("{}:{}", place.file(), place.line()));
        PLACE.with(|kept| *kept.borrow_mut() = place);
    }));
}

pub fn one(
    name: &str,
    script: &Script,
    seed: u64,
    until: Option<u64>,
    trace: &mut dyn FnMut(Line),
) -> Result<Outcome, CliError> {
    let start = Instant::now();
    let mut height = 0;
    let mut observed = |line: Line| {
        height = line.height.get();
        trace(line);
    };
    let played = play(script, seed, until, &mut observed);
    let wall_ms = to_ms(start.elapsed());
    let violation = |invariant: &str, height: u64, what: String| Violation {
        invariant: invariant.to_owned(),
        height,
        what,
        replay: format!("cowboyctl sim replay {name} --seed {seed}"),
    };
    let outcome = Outcome {
        scenario: name.to_owned(),
        seed,
        ok: false,
        heights: Heights { lowest: height, highest: height },
        blocks: script.blocks,
        state_root: None,
        digest: None,
        audit: None,
        jobs: JobCounts { submitted: 0, verified: 0 },
        presence: PresenceCounts::default(),
        events: BTreeMap::new(),
        virtual_ms: 0,
        wall_ms,
        violation: None,
    };
    match played {
        Ok(played) => {
            let (lowest, highest) = (played.heights.0.get(), played.heights.1.get());
            let breach = played
                .breach
                .map(|Breach { invariant, height, what }| violation(invariant, height.get(), what));
            let outcome = Outcome {
                ok: breach.is_none(),
                heights: Heights { lowest, highest },
                state_root: (played.root != Hash::default()).then_some(Text(played.root)),
                digest: Some(Text(played.digest)),
                audit: Some(played.audit),
                jobs: JobCounts { submitted: played.submitted, verified: played.verified },
                presence: played.presence.into(),
                events: played.events,
                virtual_ms: to_ms(played.time),
                violation: breach,
                ..outcome
            };
            // A part of a run has not come to its end.
            if !outcome.ok || until.is_some_and(|until| until < script.blocks) {
                return Ok(outcome);
            }
            let what = unmet(script, &outcome)?;
            let violation = what.map(|what| violation("checks", highest, what));
            Ok(Outcome { ok: violation.is_none(), violation, ..outcome })
        }
        Err(PlayError::Panic(what)) => {
            let place = PLACE.with(|kept| kept.borrow_mut().take());
            let place = place.map(|at| format!(", at {at}")).unwrap_or_default();
            let violation = Some(violation("no_panic", height, what + &place));
            Ok(Outcome { violation, ..outcome })
        }
        Err(PlayError::Scenario(error)) => {
            Err(CliError::failed(format!("{name}: seed {seed}: it cannot be played: {error}")))
        }
    }
}

/// The first of the scenario's own checks that does not hold.
fn unmet(script: &Script, outcome: &Outcome) -> Result<Option<String>, CliError> {
    if script.checks.is_empty() {
        return Ok(None);
    }
    let document = serde_json::to_string(outcome);
    let document = document.map_err(|error| CliError::failed(error.to_string()))?;
    for check in &script.checks {
        // What cannot be worked out does not hold either.
        match Compiled::of(check)?.holds(&document) {
            Ok(true) => {}
            Ok(false) => return Ok(Some(format!("`{check}` is not true of the outcome"))),
            Err(error) => return Ok(Some(error.what)),
        }
    }
    Ok(None)
}

/// Plays one seed, and writes its story, however it ends.
pub fn told(
    cx: &Context,
    name: &str,
    script: &Script,
    seed: u64,
    page: &Path,
) -> Result<(), CliError> {
    keep_panics();
    let progress = cx.ui.progress(format!("playing {name}"));
    let mut collector = Collector::new(name, script, seed);
    let outcome = one(name, script, seed, None, &mut |line| collector.add(&line))?;
    let broken = outcome.violation.as_ref().map(|it| (it.invariant.clone(), it.what.clone()));
    collector.finish(broken, &script.checks).write(page, true)?;
    drop(progress);
    cx.ui.document(&outcome)?;
    match &outcome.violation {
        None => Ok(()),
        Some(violation) => Err(violated_error(violation, seed, None)),
    }
}

/// Plays every seed, and reports each one when it and those before it are done.
pub fn all(
    cx: &Context,
    name: &str,
    script: &Script,
    seeds: Seeds,
    parallel: NonZeroUsize,
) -> Result<(), CliError> {
    keep_panics();
    let count = seeds.count();
    let progress = cx.ui.progress(format!("playing {name}"));
    let streams = matches!(cx.ui.format(), Format::Table | Format::Jsonl);
    let (mut kept, mut violated, mut first) = (Vec::new(), 0, None);
    each(script, name, seeds, parallel, |outcome| {
        progress.show(format!("playing {name}: seed {} of {}", outcome.seed, seeds.to));
        if let Some(violation) = &outcome.violation {
            violated += 1;
            first.get_or_insert((outcome.seed, violation.clone()));
        }
        match count {
            1 => cx.ui.document(&outcome),
            _ if streams => cx.ui.record(&outcome),
            _ => {
                kept.push(outcome);
                Ok(())
            }
        }
    })?;
    drop(progress);
    if count > 1 && !streams {
        cx.ui.list(&kept)?;
    }
    match first {
        None => Ok(()),
        Some((seed, violation)) => {
            Err(violated_error(&violation, seed, (count > 1).then_some((violated, count))))
        }
    }
}

pub fn violated_error(violation: &Violation, seed: u64, of: Option<(u64, u64)>) -> CliError {
    let Violation { invariant, height, what, replay } = violation;
    let broken = format!("{invariant} does not hold at {height}: {what}");
    let error = match of {
        None => CliError::new(Exit::Invalid, broken),
        Some((violated, count)) => {
            let sum = format!("{violated} of {count} seeds violate an invariant");
            CliError::new(Exit::Invalid, sum).detail(format!("seed {seed}: {broken}"))
        }
    };
    error.hint(format!("replay it: {replay}"))
}

/// Plays seeds, several at a time, and calls `tell` with the outcomes in order. An error ends all
/// of it.
fn each(
    script: &Script,
    name: &str,
    seeds: Seeds,
    parallel: NonZeroUsize,
    mut tell: impl FnMut(Outcome) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let workers = parallel.get().min(usize::try_from(seeds.count()).unwrap_or(usize::MAX));
    let (next, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let (done, finished) = mpsc::sync_channel(workers);
    thread::scope(|scope| {
        for _ in 0..workers {
            let (next, over, done) = (&next, &over, done.clone());
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    let taken = next.fetch_add(1, Ordering::Relaxed);
                    if taken >= seeds.count() {
                        return;
                    }
                    let seed = seeds.from + taken;
                    if done.send((seed, one(name, script, seed, None, &mut |_| ()))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(done);
        let mut told = || {
            let (mut early, mut due) = (BTreeMap::new(), seeds.from);
            for (seed, outcome) in &finished {
                early.insert(seed, outcome?);
                while let Some(outcome) = early.remove(&due) {
                    tell(outcome)?;
                    due += 1;
                }
            }
            Ok(())
        };
        let outcome = told();
        // Workers that wait to deliver an outcome then see that the receiver is gone.
        over.store(true, Ordering::Relaxed);
        while finished.recv().is_ok() {}
        outcome
    })
}

impl Outcome {
    fn verdict(&self) -> String {
        match &self.violation {
            None => "ok".to_owned(),
            Some(violation) => format!("violates {}", violation.invariant),
        }
    }

    fn at(&self) -> String {
        match self.heights {
            Heights { lowest, highest } if lowest == highest => highest.to_string(),
            Heights { lowest, highest } => format!("{lowest}..{highest}"),
        }
    }
}

impl Row for Outcome {
    columns! { self;
        ">seed" => format!("{:>4}", self.seed),
        "outcome" => self.verdict(),
        ">height" => format!("{} of {}", self.at(), self.blocks),
        ">jobs" => format!("{}/{} jobs", self.jobs.verified, self.jobs.submitted),
        "digest" => self.digest.as_ref().map_or_else(|| "-".to_owned(), short),
        ">simulated" => millis(self.virtual_ms),
        ">took" => millis(self.wall_ms),
    }

    fn id(&self) -> String {
        match self.ok {
            true => format!("{} ok", self.seed),
            false => format!("{} violated", self.seed),
        }
    }
}

impl Document for Outcome {
    fn text(&self) -> String {
        let mut lines = vec![
            ("scenario", self.scenario.clone()),
            ("seed", self.seed.to_string()),
            ("outcome", self.verdict()),
            ("heights", format!("{} of {}", self.at(), self.blocks)),
            ("state root", or_dash(self.state_root)),
            ("digest", or_dash(self.digest)),
            ("jobs", format!("{} verified of {}", self.jobs.verified, self.jobs.submitted)),
            ("presence", self.presence.coverage()),
            ("simulated", millis(self.virtual_ms)),
            ("took", millis(self.wall_ms)),
        ];
        lines.extend(self.presence.fabricated.iter().map(|it| ("fabricated", it.to_string())));
        lines.extend(self.presence.hidden.iter().map(|it| ("hidden", it.to_string())));
        if let Some(violation) = &self.violation {
            lines.push(("violation", format!("at {}: {}", violation.height, violation.what)));
            lines.push(("replay", violation.replay.clone()));
        }
        fields(&lines)
    }

    fn id(&self) -> String {
        self.digest.map_or_else(String::new, |digest| digest.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_parse() {
        let check = |text: &str, expected: Option<(u64, u64)>| {
            let expected = expected.map(|(from, to)| Seeds { from, to });
            assert_eq!(text.parse().ok(), expected, "{text}");
        };
        check("7", Some((7, 7)));
        check("1..20", Some((1, 20)));
        check("0..999999", Some((0, 999_999)));
        for bad in ["", "..", "1..", "20..1", "a", "-1", "0..1000000", "1...2"] {
            check(bad, None);
        }
    }
}
