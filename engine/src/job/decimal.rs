//! Exact decimal numbers in JSON's notation.
//!
//! A binary float rounds a number before it is compared, and its printed form depends on the
//! library. A [`Decimal`] keeps the digits: two texts of one number are equal values, and all
//! validators agree on the order and the difference of two numbers.

use crate::primitives::json::{Expected, Scanner};
use num_bigint::BigInt;
use num_traits::{Pow, Signed, Zero};
use std::{cmp::Ordering, fmt, str::FromStr};

/// Maximum number of significant digits: leading and trailing zeros do not count. An IEEE double
/// prints 17, a 128-bit integer has 39.
pub const MAX_DIGITS: usize = 40;
/// The largest power of ten of the first significant digit; its negative is the smallest.
pub const MAX_EXPONENT: i16 = 64;

/// The powers of ten that JavaScript, too, writes without an exponent.
const PLAIN: std::ops::RangeInclusive<i16> = -6..=20;

/// An exact decimal number of at most [`MAX_DIGITS`] significant digits: 0, or at least 10^-64 and
/// below 10^65 in magnitude. `1`, `1.0` and `10e-1` are one value, as are `0` and `-0`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Decimal {
    negative: bool,
    /// The first digit's power of ten; 0 for zero.
    lead: i16,
    /// Two digits per byte, first digit first, padded with zeros.
    digits: [u8; MAX_DIGITS / 2],
}

/// Why a text is not a [`Decimal`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecimalError {
    #[error("not a number: {0}")]
    Syntax(#[from] Expected),
    #[error("a number of {0} significant digits; at most {MAX_DIGITS} are allowed")]
    Digits(usize),
    #[error("a number beyond 10^{MAX_EXPONENT}, or below 10^-{MAX_EXPONENT} and not 0")]
    Exponent,
}

impl Decimal {
    pub const ZERO: Self = Self { negative: false, lead: 0, digits: [0; MAX_DIGITS / 2] };

    /// Reads the next number, in the grammar of RFC 8259.
    pub fn scan(scanner: &mut Scanner<'_>) -> Result<Self, DecimalError> {
        let negative = scanner.eat(b'-');
        let whole = scanner.whole()?;
        if whole.is_empty() {
            return Ok(scanner.fail("a digit")?);
        }
        let fraction = if scanner.eat(b'.') { some_digits(scanner)? } else { "" };
        let exponent = match scanner.peek() {
            Some(b'e' | b'E') => exponent(scanner)?,
            _ => 0,
        };
        let digits = || whole.bytes().chain(fraction.bytes()).map(|digit| digit - b'0');
        let Some(first) = digits().position(|digit| digit != 0) else { return Ok(Self::ZERO) };
        let lead = exponent + whole.len() as i64 - 1 - first as i64;
        let lead = i16::try_from(lead).map_err(|_| DecimalError::Exponent)?;
        if !(-MAX_EXPONENT..=MAX_EXPONENT).contains(&lead) {
            return Err(DecimalError::Exponent);
        }
        let zeros = digits().rev().take_while(|digit| *digit == 0).count();
        let count = whole.len() + fraction.len() - first - zeros;
        if count > MAX_DIGITS {
            return Err(DecimalError::Digits(count));
        }
        let mut number = Self { negative, lead, ..Self::ZERO };
        for (place, digit) in digits().skip(first).take(count).enumerate() {
            number.digits[place / 2] += if place % 2 == 0 { digit * 10 } else { digit };
        }
        Ok(number)
    }

    pub const fn abs(self) -> Self {
        Self { negative: false, ..self }
    }

    pub fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }

    pub const fn is_negative(&self) -> bool {
        self.negative
    }

    /// Whether it has no fraction; 1.0 is an integer.
    pub fn is_integer(&self) -> bool {
        self.significant() as i16 <= self.lead + 1
    }

    /// The value as an integer; `None` if it has a fraction or is out of range.
    pub fn to_u64(&self) -> Option<u64> {
        if !self.is_integer() {
            return None;
        }
        self.truncated(0).and_then(|integer| u64::try_from(integer).ok())
    }

    /// Whether it differs from `other` by at most `most`, computed exactly.
    pub fn is_within(&self, other: &Self, most: &Self) -> bool {
        let least = self.lead.min(other.lead).min(most.lead);
        (self.units(least) - other.units(least)).abs() <= most.units(least)
    }

    /// Whether it is an integer times `step`; only 0 is a multiple of 0.
    pub fn is_multiple_of(&self, step: &Self) -> bool {
        if step.is_zero() {
            return self.is_zero();
        }
        let least = self.lead.min(step.lead);
        (self.units(least) % step.units(least)).is_zero()
    }

    /// The number times 10^`places`, rounded towards zero; `None` beyond 37 digits.
    pub fn truncated(&self, places: u8) -> Option<i128> {
        let count = i32::from(self.lead) + 1 + i32::from(places);
        let count = usize::try_from(count).unwrap_or(0);
        if count > 37 {
            return None;
        }
        let size =
            (0..count).fold(0, |size: i128, place| size * 10 + i128::from(self.digit(place)));
        Some(if self.negative { -size } else { size })
    }

    /// The number in units of the last digit of a number with lead `least`, which is at most its
    /// own lead.
    fn units(&self, least: i16) -> BigInt {
        // Ten bytes are 20 digits, which 128 bits hold.
        let digits = self.digits.chunks(10).fold(BigInt::ZERO, |sum, pairs| {
            let chunk = pairs.iter().fold(0_u128, |sum, pair| sum * 100 + u128::from(*pair));
            sum * 10_u128.pow(20) + chunk
        });
        let units = digits * BigInt::from(10).pow((self.lead - least).unsigned_abs());
        if self.negative { -units } else { units }
    }

    /// The digit at this place, counted from 0 for the first one.
    fn digit(&self, place: usize) -> u8 {
        let Some(pair) = self.digits.get(place / 2) else { return 0 };
        if place.is_multiple_of(2) { pair / 10 } else { pair % 10 }
    }

    /// Number of digits up to the last that is not 0; 0 for zero.
    fn significant(&self) -> usize {
        (0..MAX_DIGITS).rposition(|place| self.digit(place) != 0).map_or(0, |last| last + 1)
    }
}

fn some_digits<'a>(scanner: &mut Scanner<'a>) -> Result<&'a str, Expected> {
    match scanner.digits() {
        "" => scanner.fail("a digit"),
        digits => Ok(digits),
    }
}

/// The exponent with its letter and sign. Values beyond every number's range are clamped so that a
/// mantissa of any length may precede them.
fn exponent(scanner: &mut Scanner<'_>) -> Result<i64, Expected> {
    const BEYOND: i64 = i64::MAX / 4;
    let letter = scanner.eat(b'e') || scanner.eat(b'E');
    debug_assert!(letter, "the caller saw it");
    let negative = scanner.eat(b'-');
    if !negative {
        scanner.eat(b'+');
    }
    let digits = some_digits(scanner)?.trim_start_matches('0');
    let size = match digits {
        "" => 0,
        digits => digits.parse().map_or(BEYOND, |size: i64| size.min(BEYOND)),
    };
    Ok(if negative { -size } else { size })
}

impl FromStr for Decimal {
    type Err = DecimalError;

    fn from_str(text: &str) -> Result<Self, DecimalError> {
        let mut scanner = Scanner::new(text);
        let number = Self::scan(&mut scanner)?;
        if scanner.at() < text.len() {
            return Ok(scanner.fail("the end")?);
        }
        Ok(number)
    }
}

impl From<u32> for Decimal {
    fn from(integer: u32) -> Self {
        integer.to_string().parse().expect("an integer of ten digits is a number")
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let size = |number: &Self| (!number.is_zero(), number.lead, number.digits);
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => size(self).cmp(&size(other)),
            (true, true) => size(other).cmp(&size(self)),
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The canonical text of a value, valid as JSON: without redundant zeros, with an exponent only
/// below 10^-6 and from 10^21 on.
impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let significant = self.significant().max(1);
        let plain = PLAIN.contains(&self.lead);
        // The number of digits between the first digit and the decimal point.
        let point = if plain { i32::from(self.lead) } else { 0 };
        if self.negative {
            f.write_str("-")?;
        }
        let last = (significant as i32 - 1).max(point);
        for place in point.min(0)..=last {
            let digit = usize::try_from(place).map_or(0, |place| self.digit(place));
            write!(f, "{digit}")?;
            if place == point && place < last {
                f.write_str(".")?;
            }
        }
        if !plain {
            write!(f, "e{}", self.lead)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests;
