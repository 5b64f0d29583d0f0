//! Speculation in a devnet: pipelines of tasks as files, and what is counted of them.
//!
//! `cowboy_engine::speculation` decides; what stands here reads its files and counts what it did.
//!
//! | file | subject |
//! |---|---|
//! | [`metrics`] | counters, gauges and histograms, as Prometheus reads them |

pub mod metrics;
