//! Votes that say something else about the runners than their validator sees.

use cowboy_engine::{presence::Bitmap, primitives::Address, registry::Order};
use std::{fmt, str::FromStr};

/// What a dishonest validator says of each runner that it lies about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    /// It is present.
    Ones,
    /// It is absent.
    Zeros,
    /// The opposite of what the validator sees.
    Flip,
}

impl Lie {
    /// Every lie.
    pub const ALL: [Self; 3] = [Self::Ones, Self::Zeros, Self::Flip];

    /// What commands, requests and scenarios call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ones => "ones",
            Self::Zeros => "zeros",
            Self::Flip => "flip",
        }
    }

    /// What it makes of the bits that a validator sees: of all, or of one runner's.
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
        named.ok_or_else(|| format!("`{text}` is no lie: expected ones, zeros or flip"))
    }
}
