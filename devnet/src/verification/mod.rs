//! What a devnet says, verified by whoever asks: nothing but the chain's genesis is believed.
//!
//! ```text
//! evidence over the API -> walk -> replay (pure) -> steps: final blocks, executed here
//!                                                     |
//!       presence, selection, blocks, task: what follows from the steps, against what was said
//! ```
//!
//! * [`replay`]: the chain, executed again from genesis; which blocks are final.
//! * [`walk`]: the evidence of consecutive blocks, page by page.
//! * [`presence`], [`selection`], [`blocks`], [`task`]: one question each, answered as a
//!   [`report`].
//! * [`difference`], [`names`]: where documents differ, and what nodes are called.
//!
//! Blocks come in pages and are dropped once they are executed: memory does not grow with the
//! chain's length, time does.

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
pub use replay::{Replay, Step};
pub use report::{
    BlocksCheck, Filters, Mismatch, MismatchKind, PresenceCheck, SelectionCheck, TaskCheck,
    TaskVerdict,
};
pub use root::Root;
pub use walk::{VerificationError, Walk};

#[cfg(test)]
mod tests;
