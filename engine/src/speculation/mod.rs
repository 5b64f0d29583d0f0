//! Speculative execution: tasks run before their ancestors' proofs are confirmed on the chain,
//! proofs go out in the order of dependency, and what was built on a failed proof is undone
//! (spec speculation.md; AgenC's design document, §§ 4 to 9, 11, 12).
//!
//! A task is scheduled with the tasks it depends on, executed, proved, submitted and confirmed:
//!
//! ```text
//!  schedule        executed          proved         Submit         answer, confirm
//!     │               │                │              │                  │
//!     ▼   pending     ▼   proving      ▼   waiting    ▼   submitting     ▼   confirmed
//!     ├───────────────┼────────────────┼──────────────┼──────────────────┤
//!     └── bond locked └── commitment: its TTL runs    └── every ancestor is confirmed
//! ```
//!
//! * Upon a request: it is refused by the first rule that it breaks, and then nothing has changed
//!   ([`Reason`]); or its bond is locked, as it is priced at that moment.
//! * Upon an output: a commitment to it enters the ledger, and its proof is asked for. How long
//!   that may take counts from when a prover begins; before, it waits in a queue.
//! * Upon a proof: it waits until every ancestor is confirmed. Ready proofs go out by the depth
//!   they were queued at, then in order; a slot that comes free is taken at once.
//! * Upon a confirmation: the bond is released, the tasks below stand less deep. One that comes
//!   before its parent's is held until that one's.
//! * Upon the loss of the chain: nothing expires and nothing goes out until it is back; after ten
//!   tries to reach it no task is accepted ([`away`]).
//! * Upon a failure, an expiry, a timeout: one rollback at a time, leaves first. The one that
//!   failed loses its reason's share of its own bond, all others get theirs back.
//! * A task that failed or was rolled back may be scheduled again, as a new attempt. An output that
//!   a checkpoint kept serves it only if it reads what that was made from.
//! * Upon too many failures the [`Breaker`] opens: tasks with unconfirmed ancestors are refused
//!   until it lets one through again, which decides; those that run are left to finish.
//!
//! [`Speculation`] is all of it, driven by calls with the time in milliseconds, drained by
//! [`Speculation::poll_output`]; its docs are the contract. Nothing recurses over the graph.
//!
//! | file | subject |
//! |---|---|
//! | [`config`] | every option, its range, the presets |
//! | [`table`] | records by dense index |
//! | [`graph`] | tasks, what they depend on, how deep they stand |
//! | [`walk`] | ancestors, descendants, orders |
//! | [`ledger`] | commitments, by task and by output |
//! | [`deferral`] | proofs, until they may go out |
//! | [`stake`] | what is available, locked, slashed |
//! | [`bonds`] | what a chain asks of bonds, and what reasons cost |
//! | [`rollback`] | reasons, what is undone, one plan at a time |
//! | [`breaker`] | when not to speculate |
//! | [`away`] | the chain, while it cannot be reached |
//! | [`scheduler`] | who is accepted, and why not |
//! | [`engine`] | all of these as one machine |
//! | [`event`] | what happens in each of them, as it happens |
//! | [`settle`] | what follows from a call: confirmations, rollbacks, deadlines |
//! | [`snapshot`] | the machine as bytes |

pub mod away;
pub mod bonds;
pub mod breaker;
pub mod config;
pub mod deferral;
pub mod engine;
pub mod event;
pub mod graph;
pub mod ledger;
pub mod rollback;
pub mod scheduler;
mod settle;
pub mod snapshot;
pub mod stake;
mod table;
#[cfg(test)]
mod tests;
mod walk;

pub use bonds::{Bonds, Slashing};
pub use breaker::{Breaker, BreakerState, Override};
pub use config::{Config, ConfigError, Mode, Policy};
pub use deferral::ProofStatus;
pub use engine::{
    Answer, Answered, CompletionError, ConfirmError, Confirmation, Output, Speculation, StaleResult,
};
pub use event::{Event, EventKind};
pub use graph::{Graph, GraphError, Link, Status};
pub use ledger::{Commitment, CommitmentStatus, Ledger, Opening};
pub use rollback::{FailError, Plan, RollbackReason, Summary};
pub use scheduler::{Reason, Refused, Request, Scheduled};
pub use snapshot::SnapshotError;
pub use stake::Stake;

pub use crate::proof::{Generator, PROOF_BYTES};

use crate::primitives::Hash;

/// A task's identity, the same as on the chain.
pub type TaskId = Hash;
