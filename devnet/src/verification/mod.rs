//! Verification of a devnet's answers, for any client: only the chain's genesis is trusted.
//!
//! ```text
//! evidence over the API -> walk -> replay (pure) -> steps: final blocks, executed here
//!                                                     |
//!       presence, selection, blocks, task: results of the steps, compared with the node's answers
//! ```
//!
//! * [`replay`]: executes the chain again from genesis and determines the final blocks.
//! * [`walk`]: fetches the evidence of consecutive blocks, page by page.
//! * [`presence`], [`selection`], [`blocks`], [`task`]: one question each, answered by a
//!   [`report`].
//! * [`difference`], [`names`]: differences between documents, and the names of nodes.
//!
//! Blocks come in pages and are dropped once they are executed: memory does not grow with the
//! chain's length, but time does.

pub mod blocks;
mod difference;
mod fault;
mod names;
pub mod presence;
pub mod replay;
pub mod report;
mod root;
pub mod selection;
pub mod task;
mod walk;

pub use fault::{Fault, FaultKind};
pub use replay::{ROOTS, Replay, ReplayedBlock};
pub use report::{
    BlocksCheck, Filters, Mismatch, MismatchKind, PresenceCheck, SelectionCheck, TaskCheck,
    TaskVerdict,
};
pub use root::Root;
pub use walk::{VerificationError, Walk};

#[cfg(test)]
mod tests;
