//! The governed parameters of connections between runners and validators, and of the preference
//! for the runner used last (CIP-11 §13).

use crate::record;

record! {
    /// Parameters of CIP-11 §13, all in blocks except the multiplier.
    ///
    /// A chain's state holds those of its next block; system deployers change them. Their ranges,
    /// and the conditions between them, are those of the governed `system:cip11:` keys.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Connectivity {
        /// `SUBSET_EPOCH_BLOCKS`: length of a subset epoch, unless the committee changes by more
        /// than a tenth earlier. A consensus epoch uses the value at its first block.
        pub subset_epoch_blocks: u64,
        /// `OVERLAP_BLOCKS`: blocks after an advance of the subset epoch during which the previous
        /// subsets count too.
        pub overlap_blocks: u64,
        /// `HEARTBEAT_BLOCKS`: interval at which a validator announces its head and its runners
        /// answer with a ping.
        pub heartbeat_blocks: u64,
        /// `PRESENCE_TIMEOUT_BLOCKS`: maximum age of evidence of presence. A vote counts a runner
        /// whose last ping is at most this old; a draw uses a P(h) that is at most this old.
        pub presence_timeout_blocks: u64,
        /// `ACK_TIMEOUT_BLOCKS`: blocks within which a runner must answer an assignment.
        pub ack_timeout_blocks: u64,
        /// `STALE_HEARTBEAT_BLOCKS`: a last on-chain heartbeat older than this makes a runner
        /// unhealthy, except in phase `sunset`.
        pub stale_heartbeat_blocks: u64,
        /// `MRU_TTL_BLOCKS`: blocks during which an MRU record counts, including the last.
        pub mru_ttl_blocks: u64,
        /// `MRU_WEIGHT_MULTIPLIER`: factor on the MRU runner's weight in draw 0.
        pub mru_multiplier: u64,
    }
}

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

    /// Maximum of [`Self::presence_timeout_blocks`]: no older P(h) ever counts.
    pub const MAX_PRESENCE_TIMEOUT: u64 = 60;
    /// Maximum of [`Self::mru_multiplier`]: a draw's weights have room for it.
    pub const MAX_MULTIPLIER: u64 = 100;
}

impl Default for Connectivity {
    fn default() -> Self {
        Self::DEFAULT
    }
}
