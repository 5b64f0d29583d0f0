//! Timers: calls that the chain makes on its own (spec timers.md; CIP-1 in both of its forms).
//!
//! The place of a timer for height H depends on the distance to H: the ring of the next
//! [`RING_BUFFER_SIZE`] blocks, a bucket per epoch for the next [`EPOCH_QUEUE_LEN`] epochs, or tier
//! 3, a range of the tree of all timers by height. At H it becomes due, and stays due until it
//! fires, expires, is cancelled, or its payer cannot pay.
//!
//! Two structures contain the same timers, for two purposes:
//!
//! * the [`Queue`] is the consensus state: every timer by its id and by its height, with one hash
//!   over all of them. It is cheap to fork, to hash and to prove from.
//! * the [`Calendar`] finds timers by height, in a few nanoseconds each. It is derived from the
//!   queue and belongs to no state: it moves from each state to its child, and is rebuilt from the
//!   queue when it is missing.
//!
//! | file | subject |
//! |---|---|
//! | [`params`] | policies, limits, and their values in a genesis document |
//! | [`governed`] | keys and bounds of governed parameters, including those of connections |
//! | [`proposals`] | changes of governed parameters from a height on |
//! | [`record`] | a timer, its id, its errors |
//! | [`schedule`] | from a request to a timer: defaults, bounds, ids |
//! | [`pages`] | records by key: a persistent Merkle trie in little memory |
//! | [`book`] | timers by id, as such records |
//! | [`heights`] | ids by height |
//! | [`journal`] | changes to the queue, for the calendar |
//! | [`queue`] | all of these: the consensus state |
//! | [`calendar`] | ring, epoch buckets, the carry-over |
//! | [`due`] | a due timer's entry for ranking |
//! | [`lane`] | which due timers fire, and in which order, for each policy |
//! | [`eip1559`] | prices, bids and tips |
//! | [`fairness`] | fires per actor over a window, and the resulting weight |
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
pub use journal::{Notice, PlaceOf, TimerChange};
pub use params::{Activation, FairnessScope, Params, Policy, Tier, Tiers, TimerConfig};
pub use proposals::{Proposal, ProposedValue};
pub use queue::{Queue, QueueCommitment, TimerPlace};
pub use record::{Bid, Timer, TimerError};
pub use schedule::{Admitted, Ids, ScheduleTerms, TimerRequest};

/// Number of buckets in the ring, one per block (timers.md §2).
pub const RING_BUFFER_SIZE: u64 = 4_096;
/// Blocks per epoch (timers.md §2).
pub const EPOCH_BLOCKS: u64 = 3_600;
/// Number of epochs after the current one with a bucket: 30 days at one block per second (timers.md
/// §2).
pub const EPOCH_QUEUE_LEN: u64 = 720;
const _: () = assert!(EPOCH_BLOCKS < RING_BUFFER_SIZE, "an epoch's timers fit the ring");

/// Maximum cells of a fire if its timer does not specify them.
pub const DEFAULT_CELL_LIMIT: u64 = 50_000;
/// Cycles of the GC budget for removing one timer (timers.md §1).
pub const GC_CYCLES: u64 = 200;
/// Maximum cycles of one call of a gas bidding agent (timers.md §4).
pub const BID_CYCLES: u64 = 20_000;
/// Maximum cycles of all bids in a block (timers.md §4).
pub const BLOCK_BID_CYCLES: u64 = 2_000_000;
/// Minimum cycles that a call of an agent takes from the block's budget, so that agents which fail
/// at once are bounded too.
pub const MIN_BID_CYCLES: u64 = 1_000;
