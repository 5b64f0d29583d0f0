//! Times and bounds.

/// What every lease is granted with, and how long the rest may take. Times are in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How long a lease holds without a heartbeat.
    pub lease_ttl_seconds: u64,
    /// How often the holder says that it lives.
    pub heartbeat_interval_seconds: u64,
    /// How long a granted lease may go without an ack.
    pub ack_timeout_seconds: u64,
    /// How long a runner has to stop what is canceled.
    pub cancel_deadline_seconds: u64,
    /// How long a job may run, where it does not say.
    pub max_runtime_seconds: u64,
    /// How long after a job's time its logs, its artifacts and one completion are taken; 0: not at
    /// all.
    pub grace_seconds: u64,
    /// How often a job is granted at most, where it does not say.
    pub max_attempts: u32,
}

/// The longest time of any kind, in seconds: a year.
pub const MAX_SECONDS: u64 = 365 * 24 * 3600;
/// The longest pause before another attempt: an hour.
pub const MAX_BACKOFF_SECONDS: u64 = 3_600;
/// The most attempts a job can have.
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

/// Why no lease can be granted with these values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A time that is none, or without end.
    #[error("{field}: {got} is not from 1 to {MAX_SECONDS}")]
    Time {
        /// Which.
        field: &'static str,
        /// What was got.
        got: u64,
    },
    /// A grace without end.
    #[error("grace_seconds: {0} is not from 0 to {MAX_SECONDS}")]
    Grace(u64),
    /// Leases would expire between heartbeats.
    #[error("lease_ttl_seconds: {ttl} is not above heartbeat_interval_seconds, {interval}")]
    Ttl {
        /// The lease's time.
        ttl: u64,
        /// The heartbeats'.
        interval: u64,
    },
    /// No attempt, or too many.
    #[error("max_attempts: {0} is not from 1 to {MAX_ATTEMPTS}")]
    Attempts(u32),
}

impl Config {
    /// Whether leases can be granted with these values.
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

/// Seconds as the milliseconds that time is counted in.
pub(super) const fn ms(seconds: u64) -> u64 {
    seconds.saturating_mul(1_000)
}
