//! The topology file: what a devnet is made of.
//!
//! [`Topology`] is the YAML as written, every part optional; [`Plan`] is what it resolves to, with
//! every name, amount and default decided. Reading goes text → [`Topology::parse`] →
//! [`Topology::resolve`] (with the command line's [`Overrides`]) → [`Plan`], and whatever is wrong
//! is a [`TopologyError`] that names file, line, field and the allowed values. [`TEMPLATE`] is a
//! commented topology with every default; [`mod@reference`] lists the fields for those who ask.
//!
//! A devnet's keys derive from its seed and the node's name ([`Plan::key`]), so that the same
//! topology has the same addresses everywhere.

mod connectivity;
mod feasibility;
mod file;
mod governed;
mod lease;
mod locate;
mod plan;
pub mod reference;
mod speculation;
mod storage;
mod tasks;
mod timers;
mod value;

pub use connectivity::ConnectivitySection;
pub use feasibility::{Feasibility, Visibility};
pub use file::{
    AccountsSection, ApiSection, ChainSection, ExtraAccount, MigrationSection, Nodes, PhaseName,
    PresenceSection, Rule, RunnerSection, SeedName, SelectionSection, TelemetrySection, Topology,
    ValidatorSection, load_executors,
};
pub use governed::field_of;
pub use lease::{LeaseSection, Seconds};
pub use plan::{
    AGENT, AccountPlan, FAUCET, GOVERNANCE, Overrides, Plan, RunnerPlan, ValidatorPlan,
};
pub use speculation::{Options, SpeculationSection, Standing};
pub use storage::{Reserve, Size, SizeError, StorageSection};
pub use tasks::TasksSection;
pub use timers::{ActivationSection, FairnessSection, Policy, Scope, TiersSection, TimersSection};
pub use value::{Amount, BlockTime, DurationError, Kind, Name, NameError, Within, parse_duration};

use std::fmt;

/// Validators of a devnet at most. Each is a consensus engine, a p2p endpoint and a QUIC listener
/// in one process; the default rule of presence ends at 15 anyway.
pub const MAX_VALIDATORS: u64 = 64;

/// Runners of a devnet at most: what a vote's bitmap can carry.
pub const MAX_RUNNERS: u64 = cowboy_engine::presence::CAPACITY as u64;

/// Named accounts of a devnet at most, besides the faucet and the one that governs.
pub const MAX_ACCOUNTS: u64 = 1_000;

/// Jobs that a runner takes at a time at most.
pub const MAX_CONCURRENT_JOBS: u64 = 1_024;

/// The slowest pace of blocks.
pub const MAX_BLOCK_TIME_SECS: u64 = 60;

/// The longest topology file, in bytes.
pub const MAX_FILE_BYTES: u64 = 1 << 20;

/// A commented topology: every field with its default.
pub const TEMPLATE: &str = include_str!("template.yaml");

/// Why a topology, or a part of one in a file of its own, cannot be had: where, which field, what
/// was got and what is allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopologyError {
    /// The file's name, as the user gave it.
    pub file: String,
    /// Where in the file; absent where the fault has no place in it.
    pub place: Option<Place>,
    /// The field's path, as `chain.block_time`; empty for the document as a whole.
    pub field: String,
    /// What was got and what is allowed; one line.
    pub message: String,
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// The whole line.
    pub text: String,
}

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(Place { line, column, .. }) = self.place {
            write!(f, ":{line}:{column}")?;
        }
        f.write_str(": ")?;
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for TopologyError {}

#[cfg(test)]
mod tests;
