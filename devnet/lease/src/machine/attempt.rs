//! One attempt of a job, and the lease that it holds.

use crate::machine::{Config, LeaseKey, LeaseState, RunnerId, Stale, Why, config::ms};
use cowboy_engine::{
    primitives::{
        Hash,
        codec::{Decode, DecodeError, Encode, Reader, Writer},
    },
    record,
};

/// A grant and its progress. Times are the server's, in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    pub runner: RunnerId,
    pub lease: LeaseKey,
    pub granted_at: u64,
    pub acked_at: Option<u64>,
    pub heartbeat_at: Option<u64>,
}
record!(Attempt { runner, lease, granted_at, acked_at, heartbeat_at });

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Past {
    pub(super) attempt: Attempt,
    pub(super) state: LeaseState,
    pub(super) ended_at: u64,
    /// The hash of the message that ended it, if one did.
    pub(super) said: Option<Hash>,
}
record!(Past { attempt, state, ended_at, said });

/// The end of a job as its holder reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    Succeeded,
    Failed,
    TimedOut,
}

/// The answer to a heartbeat. Times are in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beat {
    pub ttl: u64,
    /// The time left to stop the job; present after a cancel request.
    pub cancel: Option<u64>,
    /// The time left to upload and complete; present when the job's time is over.
    pub grace: Option<u64>,
}

/// The stage of a live lease. After `until` comes the configured grace, in which the holder may
/// still report the job's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Granted {
        ack_by: u64,
    },
    /// The holder has acked, and must stop by `until`.
    Starting {
        until: u64,
    },
    /// The holder has sent a heartbeat, and must stop by `until`.
    Running {
        until: u64,
    },
    Canceling {
        deadline: u64,
        why: Why,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Holding {
    pub(super) attempt: Attempt,
    pub(super) expires: u64,
    pub(super) stage: Stage,
}
record!(Holding { attempt, expires, stage });

impl Holding {
    pub(super) const fn state(&self) -> LeaseState {
        match self.stage {
            Stage::Granted { .. } => LeaseState::Granted,
            _ => LeaseState::Active,
        }
    }
}

impl Stage {
    /// The deadline of this stage, without the grace.
    pub(super) const fn until(self) -> u64 {
        match self {
            Self::Granted { ack_by: until }
            | Self::Starting { until }
            | Self::Running { until }
            | Self::Canceling { deadline: until, .. } => until,
        }
    }

    /// When the stage ends without a message.
    pub(super) const fn end(self, config: &Config) -> u64 {
        match self {
            Self::Starting { until } | Self::Running { until } => {
                until.saturating_add(ms(config.grace_seconds))
            }
            other => other.until(),
        }
    }

    pub(super) const fn is_overtime(self, now: u64) -> bool {
        matches!(self, Self::Starting { until } | Self::Running { until } if now >= until)
    }
}

pub(super) const fn ended(state: LeaseState) -> Stale {
    match state {
        LeaseState::Expired => Stale::LeaseExpired,
        LeaseState::Revoked => Stale::LeaseRevoked,
        LeaseState::Completed => Stale::LeaseCompleted,
        LeaseState::Canceled => Stale::LeaseCanceled,
        LeaseState::Granted | LeaseState::Active => Stale::UnknownLease,
    }
}

impl Encode for Stage {
    fn encode(&self, w: &mut Writer) {
        let kind: u64 = match self {
            Self::Granted { .. } => 0,
            Self::Starting { .. } => 1,
            Self::Running { .. } => 2,
            Self::Canceling { why: Why::Superseded, .. } => 4,
            Self::Canceling { .. } => 3,
        };
        (kind, self.until()).encode(w);
    }
}

impl Decode for Stage {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (kind, until) = Decode::decode(r)?;
        match kind {
            0_u64 => Ok(Self::Granted { ack_by: until }),
            1 => Ok(Self::Starting { until }),
            2 => Ok(Self::Running { until }),
            3 => Ok(Self::Canceling { deadline: until, why: Why::Requested }),
            4 => Ok(Self::Canceling { deadline: until, why: Why::Superseded }),
            _ => Err(DecodeError::Invalid("unknown stage of a lease")),
        }
    }
}
