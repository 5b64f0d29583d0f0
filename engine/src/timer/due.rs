//! What ranking reads of a due timer: one entry, small enough that a million of them are read in
//! a few milliseconds.

use crate::primitives::Hash;

/// A timer as the calendar has it. What it says follows from the timer's record; whoever changes
/// the record of a due timer changes its entry with it.
///
/// Accounts are numbers in the calendar's table. Amounts and heights are cut to the width here:
/// one that is wider is read as the most that fits, which orders and compares like the value
/// itself wherever a chain can be (fees beyond 2^64 − 2 wei per cycle are admitted as that, and
/// no chain reaches height 2^32 − 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Due {
    /// The first 6 bytes of the timer's id, big-endian, where most ties end, and below them how
    /// many times [`Due::CELLS`] it may use.
    pub id_and_cells: u64,
    /// Most wei per cycle: the timer's, or its agent's last bid; [`Due::DEFAULT_BID`] where it has
    /// an agent that has not answered yet.
    pub max_fee: u64,
    /// Most wei per cycle for the proposer.
    pub max_priority: u64,
    /// The order of insertion, its low 32 bits.
    pub seq: u32,
    /// When it was to fire.
    pub height: u32,
    /// The last height at which it may fire.
    pub expires_at: u32,
    /// Cycles that it may use; [`Due::DEAD`]: it is gone and to be passed over.
    pub gas_limit: u32,
    /// Its owner's number.
    pub actor: u32,
    /// Its payer's number.
    pub payer: u32,
}

impl Due {
    /// Cells are counted in steps of so many: a timer's limit is a multiple of it.
    pub const CELLS: u64 = 64;
    /// Bytes of an id that an entry has.
    pub const ID_BYTES: usize = 6;

    /// The first bytes of an id, and a limit on cells, as an entry has them.
    pub fn id_and_cells(id: &Hash, cell_limit: u64) -> u64 {
        let [first, ..] = id.0.as_chunks::<8>().0 else { unreachable!("an id has 32 bytes") };
        let steps = cell_limit.div_ceil(Self::CELLS).min(u64::from(u16::MAX));
        u64::from_be_bytes(*first) & Self::ID_BITS | steps
    }

    const ID_BITS: u64 = !(u16::MAX as u64);

    /// The first 6 bytes of the timer's id, big-endian, as the upper ones of 8.
    pub const fn id(&self) -> u64 {
        self.id_and_cells & Self::ID_BITS
    }

    /// Cells that it may use.
    pub const fn cell_limit(&self) -> u64 {
        (self.id_and_cells & !Self::ID_BITS) * Self::CELLS
    }

    /// The gas limit of a timer that fired, expired or was cancelled while due.
    pub const DEAD: u32 = u32::MAX;
    /// The fee cap that stands for the default bid of the block at hand.
    pub const DEFAULT_BID: u64 = u64::MAX;

    /// Whether it is still there.
    pub const fn is_live(&self) -> bool {
        self.gas_limit != Self::DEAD
    }
}
const _: () = assert!(size_of::<Due>() == 48, "a cache line holds more than one");
