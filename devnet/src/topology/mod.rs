//! The topology file, which describes a devnet.
//!
//! [`Topology`] is the YAML form, in which every part is optional; [`Plan`] is the resolved form,
//! with every name, amount and default decided. Reading goes text → [`Topology::parse`] →
//! [`Topology::resolve`] (with the command line's [`Overrides`]) → [`Plan`]. Any fault becomes a
//! [`TopologyError`] that names file, line, field and the allowed values. [`TEMPLATE`] is a
//! commented topology with every default; [`mod@reference`] lists the fields for `explain` and the
//! docs.
//!
//! A devnet's keys are derived from its seed and the node's name ([`Plan::key`]), so the same
//! topology has the same addresses on every machine.

mod connectivity;
mod feasibility;
mod fields;
mod governed;
mod hosts;
mod lease;
mod plan;
mod python;
pub mod reference;
mod speculation;
mod storage;
mod tasks;
mod timers;
mod value;

pub use connectivity::ConnectivitySection;
pub use feasibility::{Feasibility, Visibility};
pub use fields::{
    AccountsSection, ApiSection, ChainSection, ExtraAccount, MigrationSection, NodeList, PhaseName,
    PresenceRule, PresenceSection, RunnerSection, SeedName, SelectionSection, TelemetrySection,
    Topology, ValidatorSection, load_executors,
};
pub use governed::field_of;
pub use hosts::{Cpus, CpusError, Hosts, Image, ImageError, ProcessPlan};
pub use lease::{LeaseSection, Seconds};
pub use plan::{
    AGENT, AccountPlan, FAUCET, GOVERNANCE, Overrides, Plan, RunnerPlan, ValidatorPlan,
};
pub use python::PythonMachine;
pub use speculation::{Options, SpeculationSection};
pub use storage::{Reserve, Size, SizeError, StorageSection};
pub use tasks::TasksSection;
pub use timers::{ActivationSection, FairnessSection, Policy, Scope, TiersSection, TimersSection};
pub use value::{Amount, BlockTime, Name, NameError, RunnerKind};

use cowboy_host::located::{FilePlace, Located};
use std::fmt;

/// The maximum number of validators. Each is a consensus engine, a p2p endpoint and a QUIC listener
/// in one process; the default presence rule ends at 15 anyway.
pub const MAX_VALIDATORS: u64 = 64;

/// The maximum number of runners: the capacity of a vote's bitmap.
pub const MAX_RUNNERS: u64 = cowboy_engine::presence::CAPACITY as u64;

/// The maximum number of named accounts, in addition to the devnet's own.
pub const MAX_ACCOUNTS: u64 = 1_000;

/// The maximum number of concurrent jobs of a runner.
pub const MAX_CONCURRENT_JOBS: u64 = 1_024;

/// The longest block time.
pub const MAX_BLOCK_TIME_SECS: u64 = 60;

/// The longest topology file, in bytes.
pub const MAX_FILE_BYTES: u64 = 1 << 20;

/// A commented topology: every field with its default.
pub const TEMPLATE: &str = include_str!("template.yaml");

/// An error in a topology or in a file with a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopologyError {
    /// The file's name as the user gave it.
    pub file: String,
    /// The position, and after the field's path the actual and the allowed value.
    pub located: Located,
}

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(FilePlace { line, column, .. }) = self.located.place {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", self.located.message)
    }
}

impl std::error::Error for TopologyError {}

#[cfg(test)]
mod tests;
