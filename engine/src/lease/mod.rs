//! Leases: who may execute a job, and until when (spec leases.md; Delta CI's runner protocol).
//!
//! A job is executed by the runner that holds its lease and by nobody else. Whoever knows the
//! lease's id holds it: only its hash, [`LeaseKey`], is known here.
//!
//! ```text
//!            grant           ack            heartbeat          complete
//!   QUEUED ─────────▶ LEASED ─────▶ STARTING ─────▶ RUNNING ─────────────▶ SUCCEEDED, FAILED
//!     ▲                 │              │               │
//!     └── lease lost ───┴──────────────┴───────────────┤ cancel
//!         (attempts left, else FAILED)                 ▼
//!                                              CANCEL_REQUESTED ─────────▶ CANCELED
//! ```
//!
//! * Upon a request for work: the first job of the queue that asks for nothing the runner lacks is
//!   granted. The grant counts as an attempt.
//! * Upon an ack: the lease is active, and the job's time runs. A repeat changes nothing.
//! * Upon a heartbeat: the lease's time restarts, and the holder is told of a cancel request.
//! * Upon a completion: the job ends, or is queued again where it asks for that. The same
//!   completion again is accepted again; another is stale.
//! * When the job's own time is over, its lease lives on for the grace: uploads and one completion
//!   are accepted, heartbeats extend the lease to the end of the grace at most. The job ends as
//!   timed out, whatever the completion says; without one when the grace or the lease ends.
//! * Upon a request to cancel: a job that nobody works on ends at once; otherwise its runner is
//!   told, and has until the deadline to say that it stopped.
//! * When a deadline passes, an unacked lease is revoked and a silent one expires. Before the end
//!   of its own time the job is then queued again, at the back, while it has attempts left. Past
//!   the cancel deadline the job is canceled.
//! * When a job ends, each job that needs it is queued, waits for its other needs, or is skipped,
//!   as its condition says ([`RunIf`]).
//! * A job that is tried again after a pause joins the queue at the end of the pause.
//! * A job that shares a concurrency group, by itself or by its run, joins the queue when those
//!   before it in the group have ended.
//!
//! Messages are looked at in this order: is the lease known, is it this runner's, is it about this
//! job, is it still good. What is refused changes nothing ([`Refusal`]).
//!
//! [`Board`] is all of it, driven by calls with the server's time in milliseconds; its docs are the
//! contract.
//!
//! | file | subject |
//! |---|---|
//! | [`config`] | times and bounds |
//! | [`fence`] | leases' keys, and why a message is refused |
//! | [`state`] | what jobs and leases are in |
//! | [`attempt`] | one job: its attempts, and how they end |
//! | `queue` | the jobs to be granted, by what they ask of a runner |
//! | `turns` | concurrency groups: which of their members may be worked on |
//! | [`grant`] | all jobs: who gets what, what time does |

pub mod attempt;
pub mod config;
pub mod fence;
pub mod grant;
mod queue;
pub mod state;
#[cfg(test)]
mod tests;
mod turns;

pub use attempt::{Attempt, Beat, Done, Job, NewJob, RetryOn, Rules};
pub use config::{Config, ConfigError};
pub use fence::{LeaseKey, Refusal, Stale};
pub use grant::{Board, Changes, Event, Granted, Request, RestoreError, SubmitError};
pub use queue::MAX_SETS;
pub use state::{JobState, LeaseState, RunIf, Why};
pub use turns::{Concurrency, Member};

use crate::primitives::codec::{Decode, DecodeError, Encode, Reader, Writer};
use std::{borrow::Borrow, fmt};

/// The longest id of a job, a run or a runner, in bytes.
pub const MAX_ID: usize = 128;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub String);

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(id: &str) -> Self {
                Self(id.to_owned())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl Encode for $name {
            fn encode(&self, w: &mut Writer) {
                w.text(&self.0);
            }
        }

        impl Decode for $name {
            fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
                r.text(MAX_ID).map(Self::from)
            }
        }
    };
}

id!(
    /// Names a job among all jobs.
    JobId
);
id!(
    /// Names a run: jobs that were handed in together.
    RunId
);
id!(
    /// Names a runner among all runners.
    RunnerId
);
