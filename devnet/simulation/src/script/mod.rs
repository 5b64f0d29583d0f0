//! The file format of scenarios: a devnet, its load, and its faults.
//!
//! ```yaml
//! about: one validator crashes and returns while a runner is cut off
//! validators: 4
//! runners: 8
//! blocks: 120
//! load: { transfers: 1, jobs: 1 }
//! faults:
//!   - { at: 20..60, for: 10..40, kill: any-validator }
//!   - { at: 30, for: 12s, pause: runner-3 }
//! ```
//!
//! The seed draws from each range. `docs/simulation.md` describes every field.

mod library;
mod value;

pub use library::{LibraryScenario, all, named};
pub use value::{Groups, Node, Place, Range, Share, Span, Who};

use crate::liar::Lie;
use cowboy_devnet::{faults, topology::PresenceRule};
use cowboy_host::{duration::parse_duration, located::Located};
use serde::{Deserialize, Deserializer, de::Error as _};
use std::{collections::BTreeMap, fmt, str::FromStr, time::Duration};

/// The maximum number of validators in a scenario, because a simulation runs on one core.
pub const MAX_VALIDATORS: usize = 16;
/// The maximum number of runners.
pub const MAX_RUNNERS: usize = 64;
/// The maximum number of blocks.
pub const MAX_BLOCKS: u64 = 20_000;
/// The maximum number of faults; a repeating one counts once.
pub const MAX_FAULTS: usize = 256;
/// The maximum number of checks.
pub const MAX_CHECKS: usize = 64;
/// The maximum number of transfers, and of jobs, per block.
pub const MAX_LOAD: u32 = 16;
/// The maximum number of timers.
pub const MAX_TIMERS: usize = 2_000;
/// The maximum length of a scenario in seconds of its own clock, below the limit for stuck
/// simulations.
pub const MAX_SECS: u64 = 30_000;
/// The longest wait in it, in seconds.
pub const MAX_SPAN_SECS: u64 = 3_600;
/// The maximum size of a scenario file, in bytes.
pub const MAX_BYTES: u64 = 64 << 10;

/// Why a text is not a scenario: the line if it is known, and what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{}{}",
    .0.place.as_ref().map(|place| format!("{}: ", place.line)).unwrap_or_default(),
    .0.message
)]
pub struct ScriptError(pub Located);

/// A scenario as written in YAML.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Script {
    /// A one-line summary.
    pub about: String,
    /// Number of validators, named `validator-0` and so on.
    pub validators: usize,
    /// Number of registered runners, named `runner-0` and so on, which take jobs of kind custom.
    pub runners: usize,
    /// The height that all validators have to reach.
    pub blocks: u64,
    #[serde(deserialize_with = "duration")]
    pub block_time: Duration,
    pub rule: PresenceRule,
    /// Links between validators.
    pub links: Links,
    /// Links between runners and validators.
    pub runner_links: Links,
    pub load: Load,
    /// Validators whose votes lie about presence.
    pub liars: BTreeMap<Node, Named<Lie>>,
    pub faults: Vec<Fault>,
    /// The maximum time without a block while no fault prevents blocks.
    #[serde(deserialize_with = "duration")]
    pub patience: Duration,
    /// Expressions in the language of jq about the run's outcome, which have to hold at its end.
    pub checks: Vec<String>,
}

/// The properties of links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Links {
    #[serde(deserialize_with = "duration")]
    pub latency: Duration,
    /// The random part, added to the latency or around it.
    #[serde(default, deserialize_with = "duration")]
    pub jitter: Duration,
    /// The percentage of messages that are lost.
    #[serde(default)]
    pub loss: Share,
}

/// The load on the chain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Load {
    /// Transfers per block.
    pub transfers: u32,
    /// Jobs per block, except in the last forty.
    pub jobs: u32,
    /// A job's timeout in blocks.
    pub job_timeout: Option<u64>,
    /// Number of timers that schedule their successors.
    pub timers: usize,
}

/// A fault, usually temporary.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// The height at which it begins.
    pub at: Range,
    /// Its duration in blocks or time; permanent if absent.
    #[serde(rename = "for")]
    pub lasting: Option<Span>,
    /// Blocks until it repeats.
    pub every: Option<Range>,
    /// A node stops, and restarts from its disk.
    pub kill: Option<Who>,
    /// A node receives and sends nothing.
    pub pause: Option<Who>,
    /// No messages pass between groups; nodes outside all groups form another group.
    pub partition: Option<Groups>,
    /// Messages take longer.
    pub latency: Option<Slow>,
    pub loss: Option<Lossy>,
    /// A validator's votes lie about who is present.
    pub lie: Option<Lying>,
}

/// A lying validator.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lying {
    pub on: Node,
    /// Its votes: ones, zeros or flip.
    #[serde(deserialize_with = "parsed")]
    pub votes: faults::Lie,
    /// The runner that the votes are about; all runners if absent.
    pub of: Option<Node>,
}

/// A delay of messages.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slow {
    pub on: Place,
    /// The additional latency.
    #[serde(deserialize_with = "duration")]
    pub delay: Duration,
    /// A random addition to that.
    #[serde(default, deserialize_with = "duration")]
    pub jitter: Duration,
}

/// A loss of messages.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lossy {
    pub on: Place,
    pub percent: Share,
}

/// A value that is written as its name, such as a lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named<T>(pub T);

impl<'de, T: FromStr<Err = String>> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parsed(deserializer).map(Self)
    }
}

fn parsed<'de, D: Deserializer<'de>, T: FromStr<Err = String>>(
    deserializer: D,
) -> Result<T, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_duration(&text).map_err(D::Error::custom)
}

impl Default for Script {
    fn default() -> Self {
        Self {
            about: String::new(),
            validators: 4,
            runners: 4,
            blocks: 100,
            block_time: Duration::from_millis(250),
            rule: PresenceRule::default(),
            links: Links {
                latency: Duration::from_millis(50),
                jitter: Duration::from_millis(15),
                loss: Share::per_cent(2),
            },
            runner_links: Links {
                latency: Duration::from_millis(20),
                jitter: Duration::from_millis(60),
                loss: Share::per_cent(2),
            },
            load: Load::default(),
            liars: BTreeMap::new(),
            faults: Vec::new(),
            patience: Duration::from_secs(60),
            checks: Vec::new(),
        }
    }
}

impl Script {
    pub fn parse(yaml: &str) -> Result<Self, ScriptError> {
        let wrong = |error| ScriptError(Located::yaml(&error, yaml));
        let script: Self = serde_yaml::from_str(yaml).map_err(wrong)?;
        script.check().map_err(|message| ScriptError(message.into()))?;
        Ok(script)
    }

    fn check(&self) -> Result<(), String> {
        within("validators", self.validators as u64, 1, MAX_VALIDATORS as u64)?;
        within("runners", self.runners as u64, 0, MAX_RUNNERS as u64)?;
        within("blocks", self.blocks, 1, MAX_BLOCKS)?;
        within("load.transfers", self.load.transfers.into(), 0, MAX_LOAD.into())?;
        within("load.jobs", self.load.jobs.into(), 0, MAX_LOAD.into())?;
        within("load.timers", self.load.timers as u64, 0, MAX_TIMERS as u64)?;
        within("load.job_timeout", self.load.job_timeout.unwrap_or(60), 1, 10_000)?;
        within("faults", self.faults.len() as u64, 0, MAX_FAULTS as u64)?;
        within("checks", self.checks.len() as u64, 0, MAX_CHECKS as u64)?;
        let pace = u64::try_from(self.block_time.as_millis()).unwrap_or(u64::MAX);
        within("block_time in ms", pace, 1, 60_000)?;
        let whole = pace.saturating_mul(self.blocks) / 1_000;
        within("blocks times block_time in s", whole, 0, MAX_SECS)?;
        within("patience in s", self.patience.as_secs(), 1, MAX_SPAN_SECS)?;
        for validator in self.liars.keys() {
            self.known("liars", *validator)?;
            if matches!(validator, Node::Runner(_)) {
                return Err(format!("liars: {validator} is not a validator: only their votes lie"));
            }
        }
        for (index, fault) in self.faults.iter().enumerate() {
            self.check_fault(&format!("faults[{index}]"), fault)?;
        }
        Ok(())
    }

    fn check_fault(&self, field: &str, fault: &Fault) -> Result<(), String> {
        let kinds = [
            fault.kill.is_some(),
            fault.pause.is_some(),
            fault.partition.is_some(),
            fault.latency.is_some(),
            fault.loss.is_some(),
            fault.lie.is_some(),
        ];
        if kinds.iter().filter(|there| **there).count() != 1 {
            return Err(format!(
                "{field}: expected one of kill, pause, partition, latency, loss and lie"
            ));
        }
        if let Some(Span::Time(span)) = fault.lasting {
            within(&format!("{field}.for in s"), span.as_secs(), 0, MAX_SPAN_SECS)?;
        }
        if fault.every.is_some() && fault.lasting.is_none() {
            return Err(format!("{field}: a repeating fault has to end: expected `for`"));
        }
        if fault.every.is_some_and(|every| every.from == 0) {
            return Err(format!("{field}.every: expected at least 1 block"));
        }
        for who in [&fault.kill, &fault.pause].into_iter().flatten() {
            match who {
                Who::Node(node) => self.known(field, *node)?,
                Who::AnyRunner if self.runners == 0 => {
                    return Err(format!("{field}: there are no runners"));
                }
                Who::AnyRunner | Who::AnyValidator => {}
            }
        }
        let places =
            [fault.latency.as_ref().map(|slow| slow.on), fault.loss.as_ref().map(|l| l.on)];
        for place in places.into_iter().flatten() {
            place.nodes().try_for_each(|node| self.known(field, node))?;
        }
        if let Some(Lying { on, of, .. }) = &fault.lie {
            self.known(field, *on)?;
            if matches!(on, Node::Runner(_)) {
                return Err(format!("{field}.lie: {on} is not a validator: only their votes lie"));
            }
            if let Some(of) = of {
                self.known(field, *of)?;
                if matches!(of, Node::Validator(_)) {
                    return Err(format!(
                        "{field}.lie: {of} is not a runner: votes are about those"
                    ));
                }
            }
        }
        let mut seen = Vec::new();
        for node in fault.partition.iter().flat_map(|groups| groups.0.iter().flatten()) {
            self.known(field, *node)?;
            if seen.contains(node) {
                return Err(format!("{field}.partition: {node} is in it twice"));
            }
            seen.push(*node);
        }
        Ok(())
    }

    fn known(&self, field: &str, node: Node) -> Result<(), String> {
        let (index, count) = match node {
            Node::Validator(index) => (index, self.validators),
            Node::Runner(index) => (index, self.runners),
        };
        if index < count {
            return Ok(());
        }
        let kind = if matches!(node, Node::Validator(_)) { "validator" } else { "runner" };
        Err(match count.checked_sub(1) {
            Some(last) => format!("{field}: there is no {node}: the last is {kind}-{last}"),
            None => format!("{field}: there is no {node}: there are no {kind}s"),
        })
    }
}

fn within(field: &str, got: u64, least: u64, most: u64) -> Result<(), String> {
    if (least..=most).contains(&got) {
        return Ok(());
    }
    Err(format!("{field}: {got} is not from {least} to {most}"))
}

/// A short description: the fault and its place.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self { kill: Some(who), .. } => write!(f, "kill {who}"),
            Self { pause: Some(who), .. } => write!(f, "pause {who}"),
            Self { partition: Some(groups), .. } => write!(f, "partition {groups}"),
            Self { latency: Some(slow), .. } => {
                write!(f, "latency +{} ms on {}", slow.delay.as_millis(), slow.on)
            }
            Self { loss: Some(lossy), .. } => {
                write!(f, "loss {} on {}", lossy.percent, lossy.on)
            }
            Self { lie: Some(Lying { on, votes, of }), .. } => {
                let of = of.map(|runner| format!(" of {runner}")).unwrap_or_default();
                write!(f, "lie {votes}{of} by {on}")
            }
            _ => f.write_str("nothing"),
        }
    }
}
