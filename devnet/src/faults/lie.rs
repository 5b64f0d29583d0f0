//! Votes that do not match their validator's view of the runners.

use cowboy_engine::{presence::Bitmap, primitives::Address, registry::Order};
use std::{fmt, str::FromStr};

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

impl Lie {
    pub const ALL: [Self; 3] = [Self::Ones, Self::Zeros, Self::Flip];

    /// The name in commands, requests and scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ones => "ones",
            Self::Zeros => "zeros",
            Self::Flip => "flip",
        }
    }

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

impl fmt::Display for Lie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Lie {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = Self::ALL.into_iter().find(|lie| lie.name() == text);
        named.ok_or_else(|| format!("`{text}` is not a lie: expected ones, zeros or flip"))
    }
}
