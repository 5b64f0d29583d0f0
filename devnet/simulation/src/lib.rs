//! Whole devnets on a virtual clock: the validators' own code over simulated links.
//!
//! A run is a function of its seed. The runtime picks the next task and the delay of each message
//! from the seed alone; the validators' code uses no other clock and no other randomness.
//!
//! [`script`] parses scenario files and [`play`] plays them; [`scenario`] is the fixed scenario
//! that tests play with many seeds. [`invariant`] and [`witness`] check what must hold.

pub mod cluster;
pub mod conditions;
pub mod devnet;
pub mod invariant;
pub mod liar;
mod load;
pub mod play;
pub mod scenario;
pub mod script;
pub mod witness;

pub use cluster::{Cluster, Setup};
pub use scenario::{Report, Scenario, ScenarioError};

use commonware_runtime::{Runner as _, deterministic};
use std::time::Duration;

/// The time limit on the simulation's own clock, after which it counts as stuck.
const TIMEOUT: Duration = Duration::from_secs(100_000);

/// Runs a simulation, in which `seed` decides every random draw. Panics when it is stuck.
pub fn run<T>(seed: u64, simulation: impl AsyncFnOnce(deterministic::Context) -> T) -> T {
    let config = deterministic::Config::new().with_seed(seed).with_timeout(Some(TIMEOUT));
    deterministic::Runner::new(config).start(async |context| simulation(context).await)
}
