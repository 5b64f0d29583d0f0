//! Every option, its range, the presets (AgenC §7.1, §7.3, §12.2).
//!
//! Options have their names in the schema of §12.2 (`stake.minStake`), with or without the prefix
//! `speculation.`; for some, the shorter names of the table in §7.1 work too. Values are texts as
//! in a file or on a command line. [`Config::with`] takes any number of them and returns either a
//! configuration that satisfies all rules, or every error.
//!
//! `mode` sets the options in which the presets differ; options that were set explicitly keep their
//! values, whatever the mode.
//!
//! Amounts are in the smallest unit, times in milliseconds. Fractions are stored in units of their
//! last decimal: `features.rolloutPercentage: 0.1` is 10. The chain defines the cost of failures
//! ([`Bonds`](super::Bonds)); AgenC's options for it are refused by name.

#[cfg(test)]
mod tests;

use super::{
    breaker::{self, Override},
    stake::WHOLE,
};
use crate::{defaults, names, proof::Generator};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

/// The maximum of `maxDepth` (§7.1).
pub const MAX_DEPTH: u64 = 20;

/// The maximum of `claimBufferMs`: half a day, so that no claim has to last longer than a day.
pub const MAX_CLAIM_BUFFER_MS: u64 = 43_200_000;

names! {
    /// A named set of options (§7.3; speculation.md, presets).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
    pub enum Mode {
        /// Depth 2, two branches, five times the stake.
        Conservative = "conservative",
        #[default]
        Balanced = "balanced",
        /// Depth 10, eight branches, half the stake.
        Aggressive = "aggressive",
        /// Changes no option.
        Custom = "custom",
    }
}

impl Mode {
    /// The options that it sets: `maxDepth`, `maxParallelBranches`, `stake.minStake`,
    /// `stake.stakePerDepth`.
    const fn preset(self) -> Option<[(&'static str, u64); 4]> {
        let [depth, branches, min, per_depth] = match self {
            Self::Conservative => [2, 2, 500_000_000_000, 250_000_000_000],
            Self::Balanced => [5, 4, 100_000_000_000, 50_000_000_000],
            Self::Aggressive => [10, 8, 50_000_000_000, 25_000_000_000],
            Self::Custom => return None,
        };
        Some([
            ("maxDepth", depth),
            ("maxParallelBranches", branches),
            ("stake.minStake", min),
            ("stake.stakePerDepth", per_depth),
        ])
    }
}

/// The descendants that a rollback undoes (§7.1; speculation.md, policies).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum RollbackPolicy {
    #[default]
    Cascade,
    /// Descendants that read an undone output; those that only come after it wait.
    Selective,
    /// All descendants, but outputs with a checkpoint are kept for the next attempt.
    Checkpoint,
}

names!(RollbackPolicy: Cascade = "cascade", Selective = "selective", Checkpoint = "checkpoint");

defaults! {
    /// The options of speculation. [`Default`] is the preset `balanced`, switched off.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Config {
        /// Whether tasks may run before their ancestors are confirmed.
        pub enabled: bool = false,
        pub mode: Mode = Mode::Balanced,
        pub max_depth: u64 = 5,
        /// Maximum number of live tips.
        pub max_parallel_branches: u64 = 4,
        pub confirmation_timeout_ms: u64 = 30_000,
        pub rollback_policy: RollbackPolicy = RollbackPolicy::Cascade,
        /// Time that must remain of a claim at scheduling.
        pub claim_buffer_ms: u64 = 60_000,
        pub commitment_ttl_ms: u64 = 300_000,
        /// Maximum number of submissions in flight.
        pub max_concurrent: u64 = 5,
        /// Maximum number of attempts at a submission.
        pub max_retries: u64 = 3,
        /// The wait before the second attempt; it doubles before each further one.
        pub retry_delay_ms: u64 = 1_000,
        /// Bond of a task at depth 0, unless the chain requires more.
        pub min_stake: u64 = 100_000_000_000,
        pub max_stake: u64 = 100_000_000_000_000,
        /// Addition to the bond per level, unless the chain requires more.
        pub stake_per_depth: u64 = 50_000_000_000,
        /// Time after a slash in which no task speculates.
        pub cooldown_period_ms: u64 = 0,
        /// The kind of prover; read by the prover.
        pub generator: Generator = Generator::Groth16,
        /// Number of proofs made in parallel; read by the prover.
        pub worker_threads: u64 = 4,
        /// Maximum number of proofs that are not confirmed; at the limit no task is accepted.
        pub queue_size: u64 = 1_000,
        /// Maximum time that a proof waits for a prover.
        pub proof_queue_timeout_ms: u64 = 240_000,
        /// Maximum time for making a proof, from when a prover begins.
        pub proof_timeout_ms: u64 = 60_000,
        /// Maximum memory, in units of 2^20 bytes; at the limit no task is accepted.
        pub max_memory_mb: u64 = 4_096,
        /// Maximum number of live tasks.
        pub max_pending_operations: u64 = 10_000,
        /// Maximum number of outputs kept by checkpoints; the oldest is dropped first.
        pub max_state_snapshots: u64 = 100,
        pub gc_interval_ms: u64 = 30_000,
        /// Number of resolved tasks that are kept, besides those that live ones depend on.
        pub retained_tasks: u64 = 10_000,
        pub enable_parallel_speculation: bool = true,
        pub enable_cross_agent_speculation: bool = false,
        /// Whether proofs are made before ancestors are confirmed.
        pub enable_optimistic_proofs: bool = true,
        pub enable_stake_delegation: bool = false,
        /// Share of the tasks that may speculate, in basis points, selected by their ids.
        pub rollout: u64 = WHOLE,
        pub breaker: breaker::BreakerLimits = breaker::BreakerLimits::DEFAULT,
        /// Options that were set explicitly, which presets do not change.
        explicit: BTreeSet<&'static str> = BTreeSet::new(),
    }
}

/// The error for an option.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("speculation.{option}: {problem}")]
pub struct ConfigError {
    pub option: String,
    pub problem: Problem,
}

/// The problem with an option's value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Problem {
    #[error("there is no such option")]
    UnknownOption,
    #[error("`{value}` is out of range: expected {range}")]
    OutOfRange { value: String, range: String },
    #[error("`{value}` is not available: expected {range}")]
    NotAvailable { value: String, range: String },
    #[error(
        "the chain says that, not its agents: `chain params get {field}` shows it; a topology has it \
         as `tasks: {{{field}: …}}`, in basis points"
    )]
    OfTheChain {
        /// The field of `tasks`, and the last part of the governed parameter's key.
        field: &'static str,
    },
    #[error("is given twice")]
    Twice,
    #[error("`{value}` does not go with `{other}`, which is `{is}`: expected {expected}")]
    Contradicts {
        value: String,
        other: &'static str,
        /// The other option's value.
        is: String,
        expected: &'static str,
    },
}

impl Problem {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::UnknownOption => "unknown_option",
            Self::OutOfRange { .. } => "out_of_range",
            Self::NotAvailable { .. } => "not_available",
            Self::OfTheChain { .. } => "of_the_chain",
            Self::Twice => "twice",
            Self::Contradicts { .. } => "contradicts",
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Flag,
    /// An integer in this range, both included.
    Whole(u64, u64),
    /// A decimal with this many places in this range, both included, in units of the last place.
    Decimal(u32, u64, u64),
    /// A name; only the first few are available.
    Name(&'static [&'static str], usize),
}

/// The kind of an option without bounds.
const ANY: Kind = Kind::Whole(0, u64::MAX);

/// Options of AgenC that are parameters of the chain here, and the parameters' names.
const OF_THE_CHAIN: [(&str, &str); 7] = [
    ("stake.slashPercentage", "slash_proof_failed"),
    ("slash.proofFailed", "slash_proof_failed"),
    ("slash.proofTimeout", "slash_proof_timeout"),
    ("slash.ancestorFailed", "slash_ancestor_failed"),
    ("slash.claimExpired", "slash_claim_expired"),
    ("slash.manualCancel", "slash_manual_cancel"),
    ("slash.commitmentExpired", "slash_commitment_expired"),
];

struct Choice {
    name: &'static str,
    /// Its name in §7.1, if that differs.
    other: Option<&'static str>,
    kind: Kind,
    get: fn(&Config) -> u64,
    set: fn(&mut Config, u64),
}

/// A row of the table: an option's name, kind and field.
macro_rules! row {
    ($name:literal $(or $other:literal)?, $kind:expr, $($field:ident).+) => {
        Choice {
            name: $name,
            other: [$($other,)?].first().copied(),
            kind: $kind,
            get: |config| config.$($field).+,
            set: |config, value| config.$($field).+ = value,
        }
    };
    (flag $name:literal $(or $other:literal)?, $kind:expr, $field:ident) => {
        Choice {
            name: $name,
            other: [$($other,)?].first().copied(),
            kind: $kind,
            get: |config| config.$field.into(),
            set: |config, value| config.$field = value != 0,
        }
    };
    (name $name:literal, $available:expr => $ty:ident, $($field:ident).+) => {
        Choice {
            name: $name,
            other: None,
            kind: Kind::Name(
                &const {
                    let mut names = [""; $ty::ALL.len()];
                    let mut at = 0;
                    while at < names.len() {
                        names[at] = $ty::ALL[at].name();
                        at += 1;
                    }
                    names
                },
                $available,
            ),
            get: |config| config.$($field).+ as u64,
            set: |config, value| config.$($field).+ = $ty::ALL[value as usize],
        }
    };
}

/// Kinds of flags: those that may be on or off, and those that may only be off.
const FLAG: Kind = Kind::Flag;
const OFF: Kind = Kind::Name(&["false", "true"], 1);

/// All options, in the order of §12.2, then those of §3.2.5, §4.2 and §4.3, then ours.
static OPTIONS: [Choice; 34] = [
    row!(flag "enabled", FLAG, enabled),
    row!(name "mode", 4 => Mode, mode),
    row!("maxDepth", Kind::Whole(1, MAX_DEPTH), max_depth),
    row!("maxParallelBranches", Kind::Whole(1, 16), max_parallel_branches),
    row!("confirmationTimeoutMs", Kind::Whole(5_000, 300_000), confirmation_timeout_ms),
    row!(name "rollbackPolicy", 3 => RollbackPolicy, rollback_policy),
    row!("stake.minStake", ANY, min_stake),
    row!("stake.maxStake", ANY, max_stake),
    row!("stake.stakePerDepth", ANY, stake_per_depth),
    row!("stake.cooldownPeriodMs", ANY, cooldown_period_ms),
    row!(name "proof.generator", Generator::AVAILABLE => Generator, generator),
    row!("proof.workerThreads", Kind::Whole(1, 32), worker_threads),
    row!("proof.queueSize", Kind::Whole(100, 10_000), queue_size),
    row!("proof.timeoutMs", Kind::Whole(1, u64::MAX), proof_timeout_ms),
    row!("proof.queueTimeoutMs", Kind::Whole(1, u64::MAX), proof_queue_timeout_ms),
    row!("limits.maxMemoryMb", Kind::Whole(512, u64::MAX), max_memory_mb),
    row!("limits.maxPendingOperations" or "limits.maxPendingOps", ANY, max_pending_operations),
    row!("limits.maxStateSnapshots", ANY, max_state_snapshots),
    row!("limits.gcIntervalMs", Kind::Whole(1, u64::MAX), gc_interval_ms),
    row!(
        flag "features.enableParallelSpeculation" or "features.enableParallel",
        FLAG, enable_parallel_speculation
    ),
    row!(
        flag "features.enableCrossAgentSpeculation" or "features.enableCrossAgent",
        OFF, enable_cross_agent_speculation
    ),
    row!(flag "features.enableOptimisticProofs", FLAG, enable_optimistic_proofs),
    row!(flag "features.enableStakeDelegation", OFF, enable_stake_delegation),
    row!("features.rolloutPercentage", Kind::Decimal(2, 0, WHOLE), rollout),
    row!("claimBufferMs", Kind::Whole(0, MAX_CLAIM_BUFFER_MS), claim_buffer_ms),
    row!("commitmentTtlMs" or "defaultTtlMs", Kind::Whole(1, u64::MAX), commitment_ttl_ms),
    row!("maxConcurrent", Kind::Whole(1, 1_000), max_concurrent),
    row!("maxRetries", Kind::Whole(1, 20), max_retries),
    row!("retryDelayMs", Kind::Whole(1, 3_600_000), retry_delay_ms),
    row!("limits.retainedTasks", ANY, retained_tasks),
    row!("breaker.threshold", Kind::Whole(1, breaker::MAX_THRESHOLD), breaker.threshold),
    row!("breaker.resetMs", ANY, breaker.reset_ms),
    row!("breaker.slashLimit", ANY, breaker.slash_limit),
    row!(name "breaker.override", 3 => Override, breaker.held),
];

/// An option with its value in a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    pub option: &'static str,
    pub value: String,
    pub range: String,
    /// Whether it was set explicitly, not by the mode.
    pub explicit: bool,
}

impl Config {
    /// Returns this configuration with `settings` applied, or all errors. The configuration itself
    /// does not change.
    pub fn with<'a>(
        &self,
        settings: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, Vec<ConfigError>> {
        let mut wrong = Vec::new();
        let mut chosen: BTreeMap<&'static str, (&Choice, u64)> = BTreeMap::new();
        for (name, value) in settings {
            let name = name.strip_prefix("speculation.").unwrap_or(name);
            let error = |problem| ConfigError { option: name.to_owned(), problem };
            let known = |one: &&Choice| one.name == name || one.other == Some(name);
            let Some(choice) = OPTIONS.iter().find(known) else {
                let governed = OF_THE_CHAIN.iter().find(|(option, _)| *option == name);
                let problem = governed.map(|(_, field)| Problem::OfTheChain { field });
                wrong.push(error(problem.unwrap_or(Problem::UnknownOption)));
                continue;
            };
            match choice.kind.read(value) {
                Ok(value) if chosen.insert(choice.name, (choice, value)).is_none() => {}
                Ok(_) => wrong.push(error(Problem::Twice)),
                Err(problem) => wrong.push(error(problem)),
            }
        }
        if !wrong.is_empty() {
            wrong.sort();
            return Err(wrong);
        }
        let mut config = self.clone();
        config.explicit.extend(chosen.keys());
        for (choice, value) in chosen.into_values() {
            (choice.set)(&mut config, value);
        }
        if config.mode == Mode::Custom {
            config.explicit.extend(Mode::Balanced.preset().into_iter().flatten().map(|one| one.0));
        }
        for (option, value) in config.mode.preset().into_iter().flatten() {
            let choice = OPTIONS.iter().find(|one| one.name == option);
            if let Some(choice) = choice.filter(|_| !config.explicit.contains(option)) {
                (choice.set)(&mut config, value);
            }
        }
        config.contradiction().map_or(Ok(config), |wrong| Err(vec![wrong]))
    }

    /// Two options that together would prevent all tasks from being accepted.
    fn contradiction(&self) -> Option<ConfigError> {
        (self.min_stake > self.max_stake).then(|| ConfigError {
            option: "stake.minStake".to_owned(),
            problem: Problem::Contradicts {
                value: self.min_stake.to_string(),
                other: "stake.maxStake",
                is: self.max_stake.to_string(),
                expected: "no more than that",
            },
        })
    }

    /// The value of one option, by any of its names.
    pub fn get(&self, option: &str) -> Option<String> {
        let option = option.strip_prefix("speculation.").unwrap_or(option);
        let known = |one: &&Choice| one.name == option || one.other == Some(option);
        OPTIONS.iter().find(known).map(|choice| choice.kind.write((choice.get)(self)))
    }

    pub fn settings(&self) -> impl Iterator<Item = Setting> {
        OPTIONS.iter().map(|choice| Setting {
            option: choice.name,
            value: choice.kind.write((choice.get)(self)),
            range: choice.kind.to_string(),
            explicit: self.explicit.contains(choice.name),
        })
    }

    /// The mode and the options that were set explicitly: applied to the defaults, they produce
    /// this configuration.
    pub fn explicit(&self) -> impl Iterator<Item = (&'static str, String)> {
        let set = |choice: &&Choice| self.explicit.contains(choice.name);
        OPTIONS.iter().filter(set).map(|one| (one.name, one.kind.write((one.get)(self))))
    }

    pub fn is_explicit(&self, option: &str) -> bool {
        self.explicit.contains(option)
    }

    /// Maximum number of live tips.
    pub const fn branches(&self) -> u64 {
        if self.enable_parallel_speculation { self.max_parallel_branches } else { 1 }
    }
}

impl Kind {
    fn read(self, text: &str) -> Result<u64, Problem> {
        let out_of_range =
            || Problem::OutOfRange { value: text.to_owned(), range: self.to_string() };
        match self {
            Self::Flag => match text {
                "false" => Some(0),
                "true" => Some(1),
                _ => None,
            },
            Self::Whole(from, to) => whole(text).filter(|value| (from..=to).contains(value)),
            Self::Decimal(places, from, to) => {
                decimal(text, places).filter(|value| (from..=to).contains(value))
            }
            Self::Name(names, available) => match names.iter().position(|name| *name == text) {
                Some(at) if at >= available => {
                    let range = self.to_string();
                    return Err(Problem::NotAvailable { value: text.to_owned(), range });
                }
                at => at.map(|at| at as u64),
            },
        }
        .ok_or_else(out_of_range)
    }

    fn write(self, value: u64) -> String {
        match self {
            Self::Flag => (value != 0).to_string(),
            Self::Whole(..) => value.to_string(),
            Self::Decimal(places, ..) => point(value, places),
            Self::Name(names, _) => names[value as usize].to_owned(),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Flag => f.write_str("true or false"),
            Self::Whole(from, u64::MAX) => write!(f, "{from} or more"),
            Self::Whole(from, to) => write!(f, "{from} to {to}"),
            Self::Decimal(places, from, to) => {
                write!(f, "{} to {}", point(from, places), point(to, places))?;
                write!(f, ", at most {places} decimals")
            }
            Self::Name(names, available) => f.write_str(&names[..available].join(", ")),
        }
    }
}

fn whole(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// Parses digits with or without a point, in units of the last of `places` decimals.
fn decimal(text: &str, places: u32) -> Option<u64> {
    let (units, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > places as usize {
        return None;
    }
    let scale = 10u64.checked_pow(places)?;
    let rest = match fraction {
        "" if text.ends_with('.') => return None,
        "" => 0,
        digits => whole(digits)? * 10u64.checked_pow(places - digits.len() as u32)?,
    };
    whole(units)?.checked_mul(scale)?.checked_add(rest)
}

/// Formats a decimal without trailing zeros.
fn point(value: u64, places: u32) -> String {
    let scale = 10u64.pow(places);
    let width = places as usize;
    let text = format!("{}.{:0width$}", value / scale, value % scale);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
