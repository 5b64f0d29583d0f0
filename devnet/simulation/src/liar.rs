//! Validators whose votes lie about presence.

use commonware_utils::sync::Mutex;
use cowboy_devnet::{consensus::presence::RunnerView, validator::gateway::Gateway};
use cowboy_engine::{
    chain::State,
    names,
    presence::{Bitmap, CAPACITY},
    primitives::{Hash, Height, keccak256},
    registry::Order,
};
use std::{collections::BTreeMap, str::FromStr};

/// The votes of a dishonest validator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    Ones,
    Zeros,
    /// Random bits for each block.
    Random,
    /// The bitmap from [`STALE`] blocks ago.
    Stale,
    /// A bitmap without any bits.
    Empty,
    /// Ones for the first half of the registry.
    Shorter,
    /// Ones for more runners than are registered.
    Longer,
    /// Ones for the maximum number of runners in a vote.
    Longest,
}

/// The age of a stale bitmap, in blocks.
pub const STALE: u64 = 4;

// The names in scenarios.
names!(Lie:
    Ones = "ones",
    Zeros = "zeros",
    Random = "random",
    Stale = "stale",
    Empty = "empty",
    Shorter = "shorter",
    Longer = "longer",
    Longest = "longest",
);

impl FromStr for Lie {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::named(text).ok_or_else(|| {
            format!(
                "`{text}` is not a lie: expected ones, zeros, random, stale, empty, shorter, \
                 longer or longest"
            )
        })
    }
}

/// A validator whose votes differ from what its gateway sees.
pub struct Liar {
    lie: Lie,
    /// The seed of its random bits.
    noise: Hash,
    gateway: Gateway,
    seen: Mutex<BTreeMap<Height, Bitmap>>,
}

impl Liar {
    pub fn new(lie: Lie, noise: Hash, gateway: Gateway) -> Self {
        Self { lie, noise, gateway, seen: Mutex::default() }
    }
}

impl RunnerView for Liar {
    fn presence(&self, height: Height, state: &State, order: &Order) -> Bitmap {
        let ones = |len| Bitmap::from_fn(len, |_| true);
        let len = order.len();
        match self.lie {
            Lie::Ones => ones(len),
            Lie::Zeros => Bitmap::new(len),
            Lie::Random => {
                let noise = keccak256(&[&self.noise.0, &height.get().to_be_bytes()]);
                Bitmap::from_fn(len, |i| noise.0[i as usize / 8 % 32] >> (i % 8) & 1 == 1)
            }
            Lie::Stale => {
                let mut seen = self.seen.lock();
                seen.insert(height, self.gateway.presence_at(height, state, order.as_slice()));
                let then = Height::new(height.get().saturating_sub(STALE));
                let newest = seen.range(..=then).next_back();
                let Some((at, bitmap)) = newest.map(|(at, bitmap)| (*at, bitmap.clone())) else {
                    return Bitmap::new(len);
                };
                // Older bitmaps are not needed.
                *seen = seen.split_off(&at);
                bitmap
            }
            Lie::Empty => Bitmap::new(0),
            Lie::Shorter => ones(len / 2),
            Lie::Longer => ones(len + 9),
            Lie::Longest => ones(CAPACITY),
        }
    }
}
