//! Speculation in a devnet (spec speculation.md): the file format of pipelines, and metrics.
//! [`cowboy_engine::speculation`] decides; [`crate::agent`] runs the pipelines.
//!
//! | file | subject |
//! |---|---|
//! | [`pipeline`] | pipelines as files |
//! | [`metrics`] | counters, gauges and histograms, as Prometheus reads them |
//! | [`workload`] | settings for a kind of workload |

pub mod metrics;
pub mod pipeline;
pub mod workload;
