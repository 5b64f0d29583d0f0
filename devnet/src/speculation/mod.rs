//! Speculation in a devnet (spec speculation.md): pipelines of tasks as they are written, and what
//! is counted of them. [`cowboy_engine::speculation`] decides, [`crate::agent`] runs them.
//!
//! | file | subject |
//! |---|---|
//! | [`pipeline`] | pipelines as files |
//! | [`metrics`] | counters, gauges and histograms, as Prometheus reads them |
//! | [`workload`] | options that fit a workload |

pub mod metrics;
pub mod pipeline;
pub mod workload;
