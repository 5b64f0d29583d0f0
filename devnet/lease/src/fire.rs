//! Fires of timers of the chain, which submit runs.

use cowboy_engine::primitives::{Address, Hash};

/// A fire of a timer whose handler succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fire {
    pub height: u64,
    /// Index of the fire within the block.
    pub position: u32,
    pub timer: Hash,
    /// The timer's owner.
    pub actor: Address,
    pub handler: String,
}

impl Fire {
    pub(crate) const fn place(&self) -> FirePlace {
        (self.height, self.position)
    }
}

/// A block's height and the index of a fire in it.
pub(crate) type FirePlace = (u64, u32);
