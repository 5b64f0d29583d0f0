//! Whole devnets on a virtual clock: the validators' own code over simulated links.
//!
//! A run is a function of its seed. The runtime picks which task goes next and how long a message
//! takes from the seed alone; the validators' code asks no other clock and no other randomness.
//!
//! [`script`] has scenarios as they are written, [`play`] plays one; [`scenario`] is the one that
//! tests play with many seeds. [`invariant`] and [`witness`] say what must hold.

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

/// A simulation that takes longer than this on its own clock is stuck.
const TIMEOUT: Duration = Duration::from_secs(100_000);

/// Runs a simulation to its end.
pub fn run<T>(seed: u64, simulation: impl AsyncFnOnce(deterministic::Context) -> T) -> T {
    let config = deterministic::Config::new().with_seed(seed).with_timeout(Some(TIMEOUT));
    deterministic::Runner::new(config).start(async |context| simulation(context).await)
}
