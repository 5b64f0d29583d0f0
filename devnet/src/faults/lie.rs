//! Votes that do not match their validator's view of the runners.

use cowboy_engine::{names, presence::Bitmap, primitives::Address, registry::Order};
use std::str::FromStr;

/// A dishonest validator's claim about each runner that it lies about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    /// The runner is present.
    Ones,
    /// The runner is absent.
    Zeros,
    /// The opposite of what the validator sees.
    Flip,
}

// The names in commands, requests and scenarios.
names!(Lie: Ones = "ones", Zeros = "zeros", Flip = "flip");

impl Lie {
    /// Falsifies a validator's bits: all of them, or one runner's.
    pub fn tell(self, of: Option<&Address>, order: &Order, seen: &Bitmap) -> Bitmap {
        let runners = order.as_slice();
        Bitmap::from_fn(order.len(), |i| {
            let seen = seen.get(i);
            if of.is_some_and(|of| *of != runners[i as usize]) {
                return seen;
            }
            match self {
                Self::Ones => true,
                Self::Zeros => false,
                Self::Flip => !seen,
            }
        })
    }
}

impl FromStr for Lie {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::named(text)
            .ok_or_else(|| format!("`{text}` is not a lie: expected ones, zeros or flip"))
    }
}
