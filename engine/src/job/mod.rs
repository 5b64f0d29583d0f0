//! System actors 0x02 and 0x03: jobs, their candidates, the draw of committees, and which result
//! counts (spec jobs.md §2–5).

pub mod decimal;
pub mod document;
pub mod filter;
pub mod json;
pub mod mru;
pub mod needs;
pub mod odds;
pub mod schema;
pub mod seed;
pub mod selection;
pub mod specification;
pub mod state;
pub mod verification;
pub mod work;

pub use mru::{MruRead, MruRecord};
pub use seed::{SeedCertificate, SeedRule};
pub use selection::{Favoured, Selection};

/// A job in full: its specification, its work, its verification, its state.
pub mod spec {
    pub use super::{
        specification::*,
        state::{
            Assignment, Cancellation, Closing, Commitment, CommitteeRound, Failure, FailureReason,
            Job, JobAttempt, JobStatus, Outcome, Reported, SlashReason, Withheld,
        },
        verification::{Agreement, Check, Similarity, Verification, VerificationMode},
        work::{
            CommandDelivery, CommandWork, EthSendWork, HttpWork, LlmMessage, LlmWork, McpWork, Work,
        },
    };
}
