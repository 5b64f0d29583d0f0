//! Money and gas. Arithmetic is checked or saturating by name; nothing wraps, nothing panics.

use super::codec::{Decode, DecodeError, Encode, Reader, Writer, transparent};
use std::{fmt, str::FromStr};

/// One CBY in wei.
pub const CBY: u128 = 1_000_000_000;

/// An amount of money in wei; 1 CBY = 10^9 wei.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Wei(u128);

impl Wei {
    pub const ZERO: Self = Self(0);

    pub const fn new(wei: u128) -> Self {
        Self(wei)
    }

    /// An amount from whole CBY; saturates beyond the range of a u128.
    pub const fn cby(cby: u128) -> Self {
        Self(cby.saturating_mul(CBY))
    }

    pub const fn get(self) -> u128 {
        self.0
    }

    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(sum) => Some(Self(sum)),
            None => None,
        }
    }

    pub const fn checked_sub(self, other: Self) -> Option<Self> {
        match self.0.checked_sub(other.0) {
            Some(rest) => Some(Self(rest)),
            None => None,
        }
    }

    /// This price per unit times `units`; `None` on overflow.
    pub const fn checked_mul(self, units: u128) -> Option<Self> {
        match self.0.checked_mul(units) {
            Some(product) => Some(Self(product)),
            None => None,
        }
    }

    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    pub const fn saturating_mul(self, units: u128) -> Self {
        Self(self.0.saturating_mul(units))
    }
}

/// The reason why a text is not an amount.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not an amount: expected wei (`1500000000`) or CBY with up to 9 decimals (`1.5cby`)"
)]
pub struct AmountError(String);

impl FromStr for Wei {
    type Err = AmountError;

    fn from_str(text: &str) -> Result<Self, AmountError> {
        let refused = || AmountError(text.to_owned());
        let digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
        let number = |t: &str| -> Option<u128> { digits(t).then(|| t.parse().ok()).flatten() };
        let lower = text.to_ascii_lowercase();
        let Some(cby) = lower.strip_suffix("cby") else {
            let wei = lower.strip_suffix("wei").unwrap_or(&lower);
            return number(wei).map(Self).ok_or_else(refused);
        };
        let (whole, fraction) = cby.split_once('.').unwrap_or((cby, "0"));
        if fraction.len() > 9 {
            return Err(refused());
        }
        let scale = 10u128.pow(9 - fraction.len() as u32);
        number(whole)
            .and_then(|w| w.checked_mul(CBY))
            .zip(number(fraction))
            .and_then(|(w, f)| w.checked_add(f * scale))
            .map(Self)
            .ok_or_else(refused)
    }
}

impl fmt::Display for Wei {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An amount as people pay it: `2.5 CBY`, `0.000000007 CBY`, without trailing zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InCby(pub Wei);

impl fmt::Display for InCby {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, fraction) = (self.0.get() / CBY, self.0.get() % CBY);
        match format!("{fraction:09}").trim_end_matches('0') {
            "" => write!(f, "{whole} CBY"),
            digits => write!(f, "{whole}.{digits} CBY"),
        }
    }
}

impl fmt::Debug for Wei {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} wei", self.0)
    }
}

/// A byte string without leading zeros, big-endian: one form per amount.
impl Encode for u128 {
    fn encode(&self, w: &mut Writer) {
        let zeros = (self.leading_zeros() / 8) as usize;
        w.bytes(&self.to_be_bytes()[zeros..]);
    }
}

impl Decode for u128 {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let bytes = r.bytes(16)?;
        let mut wide = [0; 16];
        wide[16 - bytes.len()..].copy_from_slice(bytes);
        Ok(Self::from_be_bytes(wide))
    }
}

transparent!(Wei);

macro_rules! gas {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
        pub struct $name(u64);

        impl $name {
            pub const ZERO: Self = Self(0);

            pub const fn new(units: u64) -> Self {
                Self(units)
            }

            pub const fn get(self) -> u64 {
                self.0
            }

            pub const fn saturating_add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        transparent!($name);
    };
}

gas!(
    /// Computation, the first of the two gases (CIP-3).
    Cycles
);
gas!(
    /// Bytes and storage, the second of the two gases (CIP-3).
    Cells
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_parse_in_wei_and_cby() {
        let check = |text: &str, wei: Option<u128>| {
            assert_eq!(text.parse::<Wei>().ok().map(Wei::get), wei, "{text}");
        };
        check("0", Some(0));
        check("1500", Some(1_500));
        check("1500wei", Some(1_500));
        check("1cby", Some(CBY));
        check("1.5cby", Some(1_500_000_000));
        check("0.000000001CBY", Some(1));
        check("0.0000000001cby", None);
        check("-1", None);
        check("+1", None);
        check("1.5", None);
        check(".5cby", None);
        check("1.cby", None);
        check("", None);
        check("cby", None);
        check("340282366920938463463374607431768211456", None);
        check("340282366920938463463374607432cby", None);
    }
}
