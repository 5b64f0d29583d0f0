//! The channels between validators: their numbers, quotas and sizes.

use super::{
    Digest,
    block::{Block, BlockConfig},
    scheme::{MAX_PARTICIPANTS, Scheme},
    start_barrier,
};
use crate::chain::{gossip, known::Known, reveals};
use commonware_consensus::{
    marshal::{self, standard::Standard},
    simplex,
};
use commonware_p2p::utils::mux;
use commonware_runtime::Quota;
use commonware_utils::NZU32;
use std::num::NonZeroU32;

/// The network's channels, numbered as they are registered.
pub struct Channels<S, R> {
    /// 0: single votes; this and the next two are split by epoch (see [`super::epochs`]).
    pub votes: (S, R),
    /// 1: certificates of all kinds.
    pub certificates: (S, R),
    /// 2: requests for missing certificates.
    pub resolver: (S, R),
    /// 3: requests for missing blocks.
    pub backfill: (S, R),
    /// 4: proposed blocks.
    pub blocks: (S, R),
    /// 5: announcements (see [`super::start_barrier`]).
    pub start_barrier: (S, R),
    /// 6: transactions (see [`crate::chain::gossip`]).
    pub gossip: (S, R),
    /// 7: revealed results of committees (see [`crate::chain::reveals`]).
    pub reveals: (S, R),
}

/// The number of channels.
pub const CHANNELS: u64 = 8;

impl<S, R> Channels<S, R> {
    /// Registers every channel by calling `register` with its number.
    pub fn register(mut register: impl FnMut(u64) -> (S, R)) -> Self {
        Self {
            votes: register(0),
            certificates: register(1),
            resolver: register(2),
            backfill: register(3),
            blocks: register(4),
            start_barrier: register(5),
            gossip: register(6),
            reveals: register(7),
        }
    }

    pub fn map_receivers<T>(self, mut map: impl FnMut(R) -> T) -> Channels<S, T> {
        let mut map = |(sender, receiver)| (sender, map(receiver));
        Channels {
            votes: map(self.votes),
            certificates: map(self.certificates),
            resolver: map(self.resolver),
            backfill: map(self.backfill),
            blocks: map(self.blocks),
            start_barrier: map(self.start_barrier),
            gossip: map(self.gossip),
            reveals: map(self.reveals),
        }
    }
}

/// A validator's end of the network.
pub struct Endpoint<S, R, B, P> {
    pub channels: Channels<S, R>,
    pub blocker: B,
    pub peers: P,
}

/// Messages per second that a peer may send on each channel. A mailbox has room for `burst`
/// messages of every peer and channel, so the burst stays small.
pub fn quota() -> Quota {
    const BURST: NonZeroU32 = NZU32!(64);
    // A chain may run as fast as possible; at 128/s votes would be dropped above 60 blocks/s.
    Quota::per_second(NZU32!(1024)).allow_burst(BURST)
}

/// The maximum length of a message on any channel.
pub fn max_message_size() -> u32 {
    let blocks = BlockConfig { validators: MAX_PARTICIPANTS, known: Known::default() };
    commonware_p2p::max_message_size(&[
        mux::prefixed(simplex::max_payload_size::<Scheme, Digest>(MAX_PARTICIPANTS)),
        marshal::max_payload_size::<Standard<Block>, Scheme>(MAX_PARTICIPANTS, &blocks),
        start_barrier::MAX_MESSAGE,
        gossip::MAX_MESSAGE,
        reveals::MAX_MESSAGE,
    ])
}
