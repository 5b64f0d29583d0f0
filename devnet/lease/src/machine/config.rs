//! Times and limits of leases.

/// Parameters of every lease. Times are in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Time after which a lease without a heartbeat expires.
    pub lease_ttl_seconds: u64,
    pub heartbeat_interval_seconds: u64,
    /// Time after which a granted lease without an ack is revoked.
    pub ack_timeout_seconds: u64,
    pub cancel_deadline_seconds: u64,
    /// Maximum runtime of a job that does not specify one.
    pub max_runtime_seconds: u64,
    /// Time after a job's runtime in which its logs, its artifacts and one completion are still
    /// accepted; 0: none.
    pub grace_seconds: u64,
    /// Maximum number of grants of a job that does not specify one.
    pub max_attempts: u32,
}

/// The longest time of any kind, in seconds: a year.
pub const MAX_SECONDS: u64 = 365 * 24 * 3600;
/// The longest pause before another attempt, in seconds: an hour.
pub const MAX_BACKOFF_SECONDS: u64 = 3_600;
/// The maximum number of attempts of a job.
pub const MAX_ATTEMPTS: u32 = 100;

/// The recommended defaults (Delta CI, Recommended Defaults; spec leases.md, Second round, for the
/// grace).
impl Default for Config {
    fn default() -> Self {
        Self {
            lease_ttl_seconds: 120,
            heartbeat_interval_seconds: 20,
            ack_timeout_seconds: 30,
            cancel_deadline_seconds: 30,
            max_runtime_seconds: 3_600,
            grace_seconds: 15,
            max_attempts: 3,
        }
    }
}

/// The error for values with which no lease can be granted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error("{field}: {got} is not from 1 to {MAX_SECONDS}")]
    Time { field: &'static str, got: u64 },
    #[error("grace_seconds: {0} is not from 0 to {MAX_SECONDS}")]
    Grace(u64),
    #[error("lease_ttl_seconds: {ttl} is not above heartbeat_interval_seconds, {interval}")]
    Ttl { ttl: u64, interval: u64 },
    #[error("max_attempts: {0} is not from 1 to {MAX_ATTEMPTS}")]
    Attempts(u32),
}

impl Config {
    pub fn check(&self) -> Result<(), ConfigError> {
        let times = [
            ("lease_ttl_seconds", self.lease_ttl_seconds),
            ("heartbeat_interval_seconds", self.heartbeat_interval_seconds),
            ("ack_timeout_seconds", self.ack_timeout_seconds),
            ("cancel_deadline_seconds", self.cancel_deadline_seconds),
            ("max_runtime_seconds", self.max_runtime_seconds),
        ];
        for (field, got) in times {
            if !(1..=MAX_SECONDS).contains(&got) {
                return Err(ConfigError::Time { field, got });
            }
        }
        if self.grace_seconds > MAX_SECONDS {
            return Err(ConfigError::Grace(self.grace_seconds));
        }
        let (ttl, interval) = (self.lease_ttl_seconds, self.heartbeat_interval_seconds);
        if ttl <= interval {
            return Err(ConfigError::Ttl { ttl, interval });
        }
        if !(1..=MAX_ATTEMPTS).contains(&self.max_attempts) {
            return Err(ConfigError::Attempts(self.max_attempts));
        }
        Ok(())
    }
}

/// Converts seconds to milliseconds, the unit of all times here; saturates.
pub(super) const fn ms(seconds: u64) -> u64 {
    seconds.saturating_mul(1_000)
}
