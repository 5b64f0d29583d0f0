//! Settings for kinds of workloads (AgenC §7.3). Amounts are scaled like those of the modes: 0.001
//! SOL in the source are 100 CBY here.

use cowboy_engine::names;

/// The purpose of a pipeline's tasks, as far as it decides how they speculate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Workload {
    LowLatencyPipelines,
    ProductionDefault,
    SafetyCritical,
    /// As deep and wide as the options allow, with minimal bonds and proofs that prove nothing.
    Testing,
}

names!(Workload:
    LowLatencyPipelines = "low-latency-pipelines",
    ProductionDefault = "production-default",
    SafetyCritical = "safety-critical",
    Testing = "testing",
);

impl Workload {
    /// Its settings. They are the upper ends of the source's ranges: depth 10 for "8 to 10", and
    /// the maximum 20 for "10 and more". The exception is "2 to 3", for which the mode's 2 is used.
    pub const fn settings(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::LowLatencyPipelines => &[
                ("enabled", "true"),
                ("mode", "aggressive"),
                ("maxDepth", "10"),
                ("maxParallelBranches", "8"),
                ("stake.minStake", "50000000000"),
                ("stake.stakePerDepth", "25000000000"),
            ],
            Self::ProductionDefault => &[
                ("enabled", "true"),
                ("mode", "balanced"),
                ("maxDepth", "5"),
                ("maxParallelBranches", "4"),
                ("stake.minStake", "100000000000"),
                ("stake.stakePerDepth", "50000000000"),
            ],
            Self::SafetyCritical => &[
                ("enabled", "true"),
                ("mode", "conservative"),
                ("maxDepth", "2"),
                ("maxParallelBranches", "2"),
                ("stake.minStake", "500000000000"),
                ("stake.stakePerDepth", "250000000000"),
            ],
            Self::Testing => &[
                ("enabled", "true"),
                ("mode", "aggressive"),
                ("maxDepth", "20"),
                ("maxParallelBranches", "16"),
                ("stake.minStake", "1000000000"),
                ("stake.stakePerDepth", "500000000"),
                ("proof.generator", "mock"),
            ],
        }
    }
}
