//! Options that fit a workload (AgenC §7.3). Amounts are at the scale of the modes: the source's
//! 0.001 SOL are 100 CBY here.

use cowboy_engine::names;

/// What a pipeline's tasks are for, as far as it decides how they speculate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Workload {
    /// Deep and wide, with small bonds.
    LowLatencyPipelines,
    /// The defaults.
    ProductionDefault,
    /// Shallow and narrow, with large bonds.
    SafetyCritical,
    /// As deep and wide as options allow, with the least bonds and proofs that prove nothing.
    Testing,
}

names!(Workload:
    LowLatencyPipelines = "low-latency-pipelines",
    ProductionDefault = "production-default",
    SafetyCritical = "safety-critical",
    Testing = "testing",
);

impl Workload {
    /// Its options. Of the source's ranges the upper end: depth 10 of 8 to 10, and 20, the most
    /// that there may be, of 10 and more; of 2 to 3 the mode's 2.
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
