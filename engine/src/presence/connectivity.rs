//! The governed parameters of connections between runners and validators, and of the preference
//! for the runner used last (CIP-11 §13).

use crate::record;

/// Parameters of CIP-11 §13, all in blocks but for the multiplier.
///
/// A chain's state has those of its next block; a system deployer changes them. Their ranges and
/// what has to hold between them are those of the `system:cip11:` keys that are governed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connectivity {
    /// `SUBSET_EPOCH_BLOCKS`: blocks of a subset epoch, unless the committee changes by more than a
    /// tenth before. A consensus epoch goes by the value that its first block finds.
    pub subset_epoch_blocks: u64,
    /// `OVERLAP_BLOCKS`: blocks after an advance of the subset epoch during which the subsets of
    /// before count too.
    pub overlap_blocks: u64,
    /// `HEARTBEAT_BLOCKS`: a validator tells its head, and its runners answer with a ping, once in
    /// this many blocks.
    pub heartbeat_blocks: u64,
    /// `PRESENCE_TIMEOUT_BLOCKS`: how old a sign of presence may be. A vote counts a runner whose
    /// last ping is at most this old; a draw counts those of a P(h) that is at most this old.
    pub presence_timeout_blocks: u64,
    /// `ACK_TIMEOUT_BLOCKS`: blocks within which a runner has to answer an assignment.
    pub ack_timeout_blocks: u64,
    /// `STALE_HEARTBEAT_BLOCKS`: a last on-chain heartbeat older than this makes a runner
    /// unhealthy, except in phase `sunset`.
    pub stale_heartbeat_blocks: u64,
    /// `MRU_TTL_BLOCKS`: blocks through which an MRU record counts, the last included.
    pub mru_ttl_blocks: u64,
    /// `MRU_WEIGHT_MULTIPLIER`: by how much the MRU runner's weight is multiplied in draw 0.
    pub mru_multiplier: u64,
}
record!(Connectivity {
    subset_epoch_blocks,
    overlap_blocks,
    heartbeat_blocks,
    presence_timeout_blocks,
    ack_timeout_blocks,
    stale_heartbeat_blocks,
    mru_ttl_blocks,
    mru_multiplier,
});

impl Connectivity {
    /// The defaults of CIP-11 §13.
    pub const DEFAULT: Self = Self {
        subset_epoch_blocks: 8_192,
        overlap_blocks: 32,
        heartbeat_blocks: 1,
        presence_timeout_blocks: 3,
        ack_timeout_blocks: 3,
        stale_heartbeat_blocks: 1_024,
        mru_ttl_blocks: 256,
        mru_multiplier: 4,
    };

    /// The most that [`Self::presence_timeout_blocks`] may be: no older P(h) ever counts.
    pub const MAX_PRESENCE_TIMEOUT: u64 = 60;
    /// The most that [`Self::mru_multiplier`] may be: a draw's weights have room for it.
    pub const MAX_MULTIPLIER: u64 = 100;
}

impl Default for Connectivity {
    fn default() -> Self {
        Self::DEFAULT
    }
}
