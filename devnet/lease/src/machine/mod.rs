//! Leases: who may execute a job, and until when (spec leases.md; Delta CI's runner protocol).
//!
//! Only the runner that holds a job's lease executes it. To know the lease's id is to hold the
//! lease; the server stores only its hash, [`LeaseKey`].
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
//! * On a request for work, the first job in the queue that requires only capabilities the runner
//!   has is granted. The grant counts as an attempt.
//! * On an ack, the lease becomes active and the job's time starts. A repeat changes nothing.
//! * On a heartbeat, the lease is renewed, and the holder learns of a cancel request.
//! * On a completion, the job ends, or is queued again if its rules ask for that. A repeat of the
//!   same completion is accepted; another completion is stale.
//! * When the job's own time is over, its lease lives on for the grace: uploads and one completion
//!   are accepted, and heartbeats extend the lease to the end of the grace at most. The job ends as
//!   timed out, whatever the completion says; without a completion it ends when the grace or the
//!   lease ends.
//! * On a cancel request, a job without a runner ends at once; otherwise its runner is told, and
//!   has until the deadline to report that it stopped.
//! * When a deadline passes, an unacked lease is revoked and a silent one expires. If the job's own
//!   time is not over, the job is then queued again, at the back, while it has attempts left. Past
//!   the cancel deadline the job is canceled.
//! * When a job ends, each job that needs it is queued, waits for its other needs, or is skipped,
//!   as its condition says ([`RunIf`]).
//! * A job that is tried again after a pause joins the queue at the end of the pause.
//! * A job that shares a concurrency group, by itself or through its run, joins the queue when the
//!   earlier members of the group have ended.
//!
//! Messages are checked in this order: the lease is known, it is this runner's, it is for this job,
//! it is still valid. A refused message changes nothing ([`Refusal`]).
//!
//! [`Board`] is the whole state machine, driven by calls with the server's time in milliseconds;
//! its docs are the contract.
//!
//! | file | subject |
//! |---|---|
//! | [`config`] | times and limits |
//! | [`fence`] | leases' keys |
//! | `refusal` | the reasons why a message is refused |
//! | [`state`] | states of jobs and leases |
//! | [`attempt`] | one attempt of a job, and the lease that it holds |
//! | [`job`] | one job: its attempts, and how they end |
//! | `queue` | the jobs that can be granted, by requirements |
//! | `turns` | concurrency groups: which of their members may run |
//! | [`board`] | all jobs: grants to runners, deadlines of leases |

pub mod attempt;
pub mod board;
pub mod config;
pub mod fence;
pub mod job;
mod queue;
mod refusal;
pub mod state;
#[cfg(test)]
mod tests;
mod turns;

pub use attempt::{Attempt, Beat, Done};
pub use board::{Board, Changes, Granted, LeaseEvent, RestoreError, SubmitError, WorkRequest};
pub use config::{Config, ConfigError};
pub use fence::LeaseKey;
pub use job::{LeaseJob, NewJob, RetryOn, Rules};
pub use queue::MAX_SETS;
pub use refusal::{Refusal, Stale};
pub use state::{JobState, LeaseState, RunIf, Why};
pub use turns::{Concurrency, Member};

use cowboy_engine::primitives::codec::{Decode, DecodeError, Encode, Reader, Writer};
use std::{borrow::Borrow, fmt};

/// The maximum length of the id of a job, a run or a runner, in bytes.
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
    /// Names a run: jobs that were submitted together.
    RunId
);
id!(
    /// Names a runner among all runners.
    RunnerId
);
