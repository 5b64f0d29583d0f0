//! `lease`: the terms of the leases that the devnet's lease server grants.

use super::{Within, locate::PathStep, parse_duration};
use cowboy_engine::lease::{
    Config,
    config::{ConfigError, MAX_ATTEMPTS},
};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, Unexpected, Visitor},
};
use std::{fmt, time::Duration};

/// `lease`: the terms of the leases that the devnet's lease server grants. Defaults are those of
/// [`Config::default`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "the fields of `lease`")]
pub struct LeaseSection {
    /// How long a lease lasts without a heartbeat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Seconds>,
    /// How often the runner should send a heartbeat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heartbeat: Option<Seconds>,
    /// How long a lease may go without an ack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_timeout: Option<Seconds>,
    /// How long a runner may take to stop a canceled job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel_deadline: Option<Seconds>,
    /// The time limit of an attempt, unless the job sets one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_runtime: Option<Seconds>,
    /// How long after a job's time limit its logs, artifacts and completion are still accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace: Option<Seconds>,
    /// The maximum number of attempts, unless the job sets one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<Within<1, { MAX_ATTEMPTS as u64 }>>,
    /// The server's port on the loopback; 0 lets the system choose.
    pub port: Within<0, 65_535>,
}

impl LeaseSection {
    /// The section that resolves to this configuration.
    pub(super) fn of(config: &Config, port: Option<u16>) -> Self {
        let default = Config::default();
        let other = |value: u64, default: u64| (value != default).then_some(Seconds(value));
        let attempts = Within::new(config.max_attempts.into());
        let heartbeat = config.heartbeat_interval_seconds;
        Self {
            ttl: other(config.lease_ttl_seconds, default.lease_ttl_seconds),
            heartbeat: other(heartbeat, default.heartbeat_interval_seconds),
            ack_timeout: other(config.ack_timeout_seconds, default.ack_timeout_seconds),
            cancel_deadline: other(config.cancel_deadline_seconds, default.cancel_deadline_seconds),
            max_runtime: other(config.max_runtime_seconds, default.max_runtime_seconds),
            grace: other(config.grace_seconds, default.grace_seconds),
            max_attempts: attempts.filter(|_| config.max_attempts != default.max_attempts),
            port: Within::new(port.unwrap_or(0).into()).expect("a port is within its range"),
        }
    }

    /// The configuration, or the path of the invalid field and the reason.
    pub(super) fn config(&self) -> Result<Config, (Vec<PathStep>, String)> {
        let default = Config::default();
        let seconds = |given: Option<Seconds>, default: u64| given.map_or(default, |given| given.0);
        let config = Config {
            lease_ttl_seconds: seconds(self.ttl, default.lease_ttl_seconds),
            heartbeat_interval_seconds: seconds(self.heartbeat, default.heartbeat_interval_seconds),
            ack_timeout_seconds: seconds(self.ack_timeout, default.ack_timeout_seconds),
            cancel_deadline_seconds: seconds(self.cancel_deadline, default.cancel_deadline_seconds),
            max_runtime_seconds: seconds(self.max_runtime, default.max_runtime_seconds),
            grace_seconds: seconds(self.grace, default.grace_seconds),
            max_attempts: self.max_attempts.map_or(default.max_attempts, |most| most.get() as u32),
        };
        config.check().map(|()| config).map_err(|error| match error {
            ConfigError::Ttl { ttl, interval } => {
                let path = vec![PathStep::Key("lease"), PathStep::Key("ttl")];
                (path, format!("{ttl}s is not above the heartbeats' {interval}s"))
            }
            other => (vec![PathStep::Key("lease")], other.to_string()),
        })
    }
}

/// Whole seconds, such as `90s` or `2m`; at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seconds(u64);

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}s", self.0))
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct LeaseText;

        impl Visitor<'_> for LeaseText {
            type Value = Seconds;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("whole seconds from 1s to 8760h, as 90s or 2m")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Seconds, E> {
                parse_duration(text)
                    .ok()
                    .filter(|time| time.subsec_nanos() == 0 && *time >= Duration::from_secs(1))
                    .map(|time| Seconds(time.as_secs()))
                    .ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
            }
        }

        deserializer.deserialize_any(LeaseText)
    }
}
