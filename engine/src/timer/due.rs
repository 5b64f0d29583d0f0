//! The entry of a due timer for ranking, small enough that a million of them are read in a few
//! milliseconds.

use crate::primitives::Hash;

/// A timer in the calendar. The entry follows from the timer's record; code that changes the record
/// of a due timer has to change its entry too.
///
/// Accounts are numbers in the calendar's table. Amounts and heights are cut to their width here: a
/// wider value becomes the largest one that fits, which orders and compares like the value itself
/// on every realistic chain (higher fees than 2^64 − 2 wei per cycle are admitted as that, and no
/// chain reaches height 2^32 − 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Due {
    /// The first 6 bytes of the timer's id, big-endian, which decide most ties, and below them its
    /// cell limit in units of [`Due::CELLS`].
    pub id_and_cells: u64,
    /// Maximum wei per cycle: the timer's, or its agent's last bid; [`Due::DEFAULT_BID`] if its
    /// agent has not answered yet.
    pub max_fee: u64,
    /// Maximum wei per cycle for the proposer.
    pub max_priority: u64,
    /// The low 32 bits of the order of insertion.
    pub seq: u32,
    /// The height for which it was scheduled.
    pub height: u32,
    pub expires_at: u32,
    /// Maximum cycles; [`Due::DEAD`] if the timer is gone and the entry must be skipped.
    pub gas_limit: u32,
    /// The number of its owner's account.
    pub actor: u32,
    /// The number of its payer's account.
    pub payer: u32,
}

impl Due {
    /// The unit of cell limits: a timer's limit is a multiple of it.
    pub const CELLS: u64 = 64;
    /// Number of id bytes in an entry.
    pub const ID_BYTES: usize = 6;

    /// The packed form of an id's first bytes and a limit on cells.
    pub fn id_and_cells(id: &Hash, cell_limit: u64) -> u64 {
        let [first, ..] = id.0.as_chunks::<8>().0 else { unreachable!("an id has 32 bytes") };
        let steps = cell_limit.div_ceil(Self::CELLS).min(u64::from(u16::MAX));
        u64::from_be_bytes(*first) & Self::ID_BITS | steps
    }

    const ID_BITS: u64 = !(u16::MAX as u64);

    /// The first 6 bytes of the timer's id, as the upper bytes of a big-endian integer.
    pub const fn id(&self) -> u64 {
        self.id_and_cells & Self::ID_BITS
    }

    pub const fn cell_limit(&self) -> u64 {
        (self.id_and_cells & !Self::ID_BITS) * Self::CELLS
    }

    /// The gas limit of a timer that fired, expired or was cancelled while due.
    pub const DEAD: u32 = u32::MAX;
    /// The value of `max_fee` for the default bid of the current block.
    pub const DEFAULT_BID: u64 = u64::MAX;

    pub const fn is_live(&self) -> bool {
        self.gas_limit != Self::DEAD
    }
}
const _: () = assert!(size_of::<Due>() == 48, "a cache line holds more than one");
