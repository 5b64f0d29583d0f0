//! `lease`: the terms of the leases that the devnet's lease server grants.

use super::value::{from_text, within};
use cowboy_host::{duration::parse_duration, located::PathStep, within::Within};
use cowboy_lease::machine::{
    Config,
    config::{ConfigError, MAX_ATTEMPTS},
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::{fmt, str::FromStr, time::Duration};

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

/// The durations: each field of the section, and that of the configuration.
macro_rules! durations {
    ($($field:ident = $seconds:ident;)*) => {
        impl LeaseSection {
            /// The section that resolves to this configuration.
            pub(super) fn of(config: &Config, port: Option<u16>) -> Self {
                let default = Config::default();
                let attempts = Within::new(config.max_attempts.into());
                Self {
                    $($field: (config.$seconds != default.$seconds)
                        .then_some(Seconds(config.$seconds)),)*
                    max_attempts: attempts.filter(|_| config.max_attempts != default.max_attempts),
                    port: within(port.unwrap_or(0).into()),
                }
            }

            /// The configuration before checks.
            fn unchecked(&self) -> Config {
                let Config { $($seconds,)* max_attempts } = Config::default();
                Config {
                    $($seconds: self.$field.map_or($seconds, |given| given.0),)*
                    max_attempts: self.max_attempts.map_or(max_attempts, |most| most.get() as u32),
                }
            }
        }
    };
}

durations! {
    ttl = lease_ttl_seconds;
    heartbeat = heartbeat_interval_seconds;
    ack_timeout = ack_timeout_seconds;
    cancel_deadline = cancel_deadline_seconds;
    max_runtime = max_runtime_seconds;
    grace = grace_seconds;
}

impl LeaseSection {
    /// The configuration, or the path of the invalid field and the reason.
    pub(super) fn config(&self) -> Result<Config, (Vec<PathStep>, String)> {
        let config = self.unchecked();
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

impl FromStr for Seconds {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let time = parse_duration(text).map_err(drop)?;
        let is_whole = time.subsec_nanos() == 0 && time >= Duration::from_secs(1);
        is_whole.then_some(Self(time.as_secs())).ok_or(())
    }
}

from_text!(Seconds, deserialize_any, "whole seconds from 1s to 8760h, as 90s or 2m");
