//! Block heights.

use super::codec::transparent;
use std::fmt;

/// The number of a block; genesis is 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Height(u64);

impl Height {
    pub const GENESIS: Self = Self(0);

    pub const fn new(height: u64) -> Self {
        Self(height)
    }

    pub const fn get(self) -> u64 {
        self.0
    }

    /// The height of a child; saturates at the end of the range, which no chain reaches.
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// The height of the parent; `None` for genesis.
    pub const fn previous(self) -> Option<Self> {
        match self.0.checked_sub(1) {
            Some(height) => Some(Self(height)),
            None => None,
        }
    }

    /// The height `blocks` later, saturating.
    pub const fn after(self, blocks: u64) -> Self {
        Self(self.0.saturating_add(blocks))
    }

    /// Blocks from `earlier` to this height; 0 if `earlier` is not earlier.
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Big-endian bytes, as in signed messages and keys.
    pub const fn to_be_bytes(self) -> [u8; 8] {
        self.0.to_be_bytes()
    }
}

impl fmt::Display for Height {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Height {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

transparent!(Height);
