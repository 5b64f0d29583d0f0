//! Consensus' times.

use std::time::Duration;

/// When to propose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Time between a parent's timestamp and its child; zero: as fast as it goes.
    pub block_time: Duration,
    /// How long a proposer waits for its parent's certificate. Well below the leader timeout.
    pub cert_wait: Duration,
}

/// Consensus' times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// When to propose.
    pub pace: Pace,
    /// How long a view waits for its proposal.
    pub leader_timeout: Duration,
    /// How long a view waits to be over.
    pub certification_timeout: Duration,
    /// Pause between votes to give a view up.
    pub timeout_retry: Duration,
    /// How long a leader is silent before its views are skipped.
    pub skip_timeout: Duration,
    /// How long a peer has to answer a request.
    pub fetch_timeout: Duration,
}

impl Timing {
    /// The times for a chain of this block time: they grow with it, so that a view waits for a
    /// proposal half a second longer than the pace lets it take.
    pub fn new(block_time: Duration) -> Self {
        let leader_timeout = block_time + Duration::from_millis(500);
        let certification_timeout = leader_timeout + Duration::from_secs(1);
        Self {
            pace: Pace { block_time, cert_wait: Duration::from_millis(200) },
            leader_timeout,
            certification_timeout,
            timeout_retry: Duration::from_secs(1),
            // Simplex wants it longer than the two before.
            skip_timeout: Duration::from_secs(5).max(certification_timeout * 2),
            fetch_timeout: Duration::from_millis(500),
        }
    }
}
