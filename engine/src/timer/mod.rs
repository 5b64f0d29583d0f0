//! Timers: calls that the chain makes by itself (spec timers.md; CIP-1 in both of its forms).
//!
//! Upon a timer scheduled for height H, where it stands until then is a matter of how far away H
//! is: the ring of the next [`RING_BUFFER_SIZE`] blocks, a bucket per epoch for the next
//! [`EPOCH_QUEUE_LEN`] epochs, or tier 3, a range of the tree of all timers by height. At H it
//! is due, and stays so until it fires, expires, is cancelled, or its payer cannot pay.
//!
//! Two things say the same twice, for two reasons:
//!
//! * the [`Queue`] is what the chain agrees on: every timer by its id and by its height, with one
//!   hash over all of them. It is part of a state: cheap to fork, to hash and to prove from.
//! * the [`Calendar`] is what finds timers by height, in a few nanoseconds each. It follows from
//!   the queue, belongs to nobody's state, moves from each state to its child, and is made anew
//!   from the queue where it is not at hand.
//!
//! | file | subject |
//! |---|---|
//! | [`params`] | policies, limits, what a genesis says of them |
//! | [`governed`] | keys and bounds of what is governed, of connections too |
//! | [`proposals`] | other values of it, from a height on |
//! | [`record`] | a timer, its id, what is wrong with one |
//! | [`schedule`] | from a request to a timer: defaults, bounds, ids |
//! | [`pages`] | records by key: a persistent Merkle trie in little memory |
//! | [`book`] | timers by id, as such records |
//! | [`heights`] | ids by height |
//! | [`journal`] | what happened to the queue, for the calendar |
//! | [`queue`] | all of these: what the chain agrees on |
//! | [`calendar`] | ring, epoch buckets, the carry-over |
//! | [`due`] | what ranking reads of a due timer |
//! | [`lane`] | which due timers go, in which order, for each policy |
//! | [`eip1559`] | prices, bids and tips |
//! | [`fairness`] | fires per actor over a window, and the weight that follows |
//! | [`auction`] | weights and slices of the original CIP-1 |

pub mod auction;
pub mod book;
pub mod calendar;
pub mod due;
pub mod eip1559;
pub mod fairness;
pub mod governed;
pub mod heights;
mod journal;
pub mod lane;
pub mod pages;
pub mod params;
pub mod proposals;
pub mod queue;
pub mod record;
pub mod schedule;

pub use auction::Auction;
pub use calendar::Calendar;
pub use due::Due;
pub use fairness::Fairness;
pub use governed::{Governed, Key, ParameterError, Relation};
pub use journal::{Change, Notice, Position};
pub use params::{Activation, Config, Params, Policy, Scope, Tier, Tiers};
pub use proposals::{Proposal, Setting};
pub use queue::{Commitment, Place, Queue};
pub use record::{Bid, Timer, TimerError};
pub use schedule::{Admitted, Ids, Request, Terms};

/// Buckets of the ring, one per block (timers.md §2).
pub const RING_BUFFER_SIZE: u64 = 4_096;
/// Blocks of an epoch (timers.md §2).
pub const EPOCH_BLOCKS: u64 = 3_600;
/// Epochs after the current one that have a bucket: 30 days at a block a second (timers.md §2).
pub const EPOCH_QUEUE_LEN: u64 = 720;
const _: () = assert!(EPOCH_BLOCKS < RING_BUFFER_SIZE, "an epoch's timers fit the ring");

/// Cells that a fire may use where its timer does not say.
pub const DEFAULT_CELL_LIMIT: u64 = 50_000;
/// Cycles of the GC budget that removing one timer takes (timers.md §1).
pub const GC_CYCLES: u64 = 200;
/// Cycles that one call of a gas bidding agent may use (timers.md §4).
pub const BID_CYCLES: u64 = 20_000;
/// Cycles that all bids of a block may use (timers.md §4).
pub const BLOCK_BID_CYCLES: u64 = 2_000_000;
/// What asking an agent takes of the block's budget at the least, so that agents which fail at
/// once have a bound too.
pub const MIN_BID_CYCLES: u64 = 1_000;
