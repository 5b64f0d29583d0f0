//! Integers of any length within the limit.

use super::Machine;
use crate::actor::{
    error::{ErrorKind, Fault, failed},
    gas::Meter,
    syntax::BinOp,
    value::{Heap, Value},
};
use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{Signed, ToPrimitive, Zero};
use std::borrow::Cow;

/// 64-bit words of an integer.
fn words(integer: &BigInt) -> u64 {
    integer.bits().div_ceil(64).max(1)
}

impl Heap<'_> {
    /// The value as an integer of any length; a long one is not copied.
    pub(in crate::actor) fn big(&self, value: Value) -> Option<Cow<'_, BigInt>> {
        match value {
            Value::Int(small) => Some(Cow::Owned(small.into())),
            Value::Big(id) => Some(Cow::Borrowed(self.integer(id))),
            _ => None,
        }
    }
}

impl Machine<'_> {
    pub(super) fn arithmetic(&mut self, op: BinOp, a: Value, b: Value) -> Result<Value, Fault> {
        if let (Value::Int(a), Value::Int(b)) = (a, b) {
            let small = match op {
                BinOp::Add => a.checked_add(b),
                BinOp::Subtract => a.checked_sub(b),
                BinOp::Multiply => a.checked_mul(b),
                BinOp::FloorDivide | BinOp::Percent if b == 0 => return division_by_zero(),
                // The only overflow is the least integer divided by -1.
                BinOp::FloorDivide => {
                    if b == -1 {
                        a.checked_neg()
                    } else {
                        Some(Integer::div_floor(&a, &b))
                    }
                }
                BinOp::Percent => Some(if b == -1 { 0 } else { Integer::mod_floor(&a, &b) }),
                BinOp::Power => u32::try_from(b).ok().and_then(|b| a.checked_pow(b)),
                BinOp::BitAnd => Some(a & b),
                BinOp::BitOr => Some(a | b),
                BinOp::BitXor => Some(a ^ b),
                BinOp::RightShift if b >= 0 => Some(a >> b.min(63)),
                BinOp::LeftShift if (0..63).contains(&b) => a.checked_mul(1 << b),
                _ => None,
            };
            if let Some(small) = small {
                return Ok(Value::Int(small));
            }
        }
        let result = self.long_arithmetic(op, a, b)?;
        self.new_integer(result)
    }

    /// Arithmetic on two integers of any length. Each operation is paid for before it is done.
    fn long_arithmetic(&mut self, op: BinOp, a: Value, b: Value) -> Result<BigInt, Fault> {
        let (Some(a), Some(b)) = (self.heap.big(a), self.heap.big(b)) else {
            unreachable!("the caller has looked at the kinds")
        };
        let (a, b) = (&*a, &*b);
        let (wa, wb) = (words(a), words(b));
        let linear = (wa + wb) as usize * 8;
        Ok(match op {
            BinOp::Add => {
                self.meter.bytes(linear)?;
                a + b
            }
            BinOp::Subtract => {
                self.meter.bytes(linear)?;
                a - b
            }
            BinOp::Multiply => {
                // A product has as many bits as both factors together, or one less.
                self.meter.bits_fit((a.bits() + b.bits()).saturating_sub(1))?;
                self.meter.words(wa, wb)?;
                a * b
            }
            BinOp::FloorDivide | BinOp::Percent => {
                if b.is_zero() {
                    return division_by_zero();
                }
                self.meter.words(wa, wb)?;
                let (quotient, rest) = a.div_mod_floor(b);
                if op == BinOp::Percent { rest } else { quotient }
            }
            BinOp::BitAnd => {
                self.meter.bytes(linear)?;
                a & b
            }
            BinOp::BitOr => {
                self.meter.bytes(linear)?;
                a | b
            }
            BinOp::BitXor => {
                self.meter.bytes(linear)?;
                a ^ b
            }
            BinOp::LeftShift => {
                if b.is_negative() {
                    return failed("a shift count must not be negative");
                }
                if a.is_zero() {
                    return Ok(BigInt::ZERO);
                }
                let limit = self.meter.limits.bits;
                let count = b.to_u64().filter(|count| *count <= limit);
                let got = a.bits().saturating_add(b.to_u64().unwrap_or(u64::MAX));
                let Some(count) = count else {
                    return Err(ErrorKind::IntegerTooLarge { limit, got }.into());
                };
                self.meter.bits_fit(got)?;
                self.meter.bytes(got as usize / 8)?;
                a << count
            }
            BinOp::RightShift => {
                if b.is_negative() {
                    return failed("a shift count must not be negative");
                }
                self.meter.bytes(linear)?;
                // A shift beyond the length leaves only the sign.
                a >> b.to_u64().unwrap_or(u64::MAX).min(self.meter.limits.bits + 1)
            }
            BinOp::Power => return power(&mut self.meter, a, b),
            _ => unreachable!("the caller has looked at the operator"),
        })
    }

    pub(in crate::actor) fn decimal(&mut self, integer: Value) -> Result<String, Fault> {
        let integer = self.heap.big(integer).expect("the caller has looked at the kind");
        let words = words(&integer);
        self.meter.words(words, words)?;
        Ok(integer.to_i128().map_or_else(|| integer.to_string(), |small| small.to_string()))
    }

    /// An integer written in `radix`, 2 to 36, without prefix.
    pub(in crate::actor) fn in_radix(
        &mut self,
        integer: Value,
        radix: u32,
    ) -> Result<String, Fault> {
        let integer = self.heap.big(integer).expect("the caller has looked at the kind");
        let words = words(&integer);
        self.meter.words(words, words)?;
        let sign = if integer.is_negative() { "-" } else { "" };
        Ok(match (radix, integer.magnitude().to_u128()) {
            (8, Some(small)) => format!("{sign}{small:o}"),
            (16, Some(small)) => format!("{sign}{small:x}"),
            _ => integer.to_str_radix(radix),
        })
    }

    /// Reads digits of `radix`; `None` if there is a character that is not one. Refuses more digits
    /// than an integer within the limit can have before it reads them.
    pub(in crate::actor) fn parse_integer(
        &mut self,
        negative: bool,
        digits: &str,
        radix: u32,
    ) -> Result<Option<Value>, Fault> {
        self.meter.text(digits.len())?;
        let valid = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
        if !valid {
            return Ok(None);
        }
        let digits = match digits.trim_start_matches('0') {
            "" => "0",
            digits => digits,
        };
        // Every digit but the first carries at least floor(log2(radix)) bits.
        let bits_each = u64::from(radix.ilog2());
        self.meter.bits_fit((digits.len() as u64 - 1) * bits_each + 1)?;
        let words = (digits.len() as u64 * (bits_each + 1)).div_ceil(64);
        self.meter.words(words, words)?;
        let Some(integer) = BigInt::parse_bytes(digits.as_bytes(), radix) else { return Ok(None) };
        self.new_integer(if negative { -integer } else { integer }).map(Some)
    }
}

fn division_by_zero<T>() -> Result<T, Fault> {
    failed("division by zero")
}

/// `base ** exponent`. Its size is checked and paid for before it is computed.
fn power(meter: &mut Meter, base: &BigInt, exponent: &BigInt) -> Result<BigInt, Fault> {
    if exponent.is_negative() {
        return failed("an exponent must not be negative: there are no floats");
    }
    let bits = base.bits();
    if bits <= 1 {
        // Powers of 0, 1 and -1 are among 0, 1 and -1.
        let odd = exponent.is_odd();
        let same = exponent.is_zero() || (base.is_negative() && !odd);
        return Ok(if same { BigInt::from(1) } else { base.clone() });
    }
    let limit = meter.limits.bits;
    // The minimum number of bits of the power; the maximum is twice that.
    let got = exponent.to_u64().unwrap_or(u64::MAX).saturating_mul(bits - 1).saturating_add(1);
    meter.bits_fit(got)?;
    let Some(exponent) = exponent.to_u32() else {
        return Err(ErrorKind::IntegerTooLarge { limit, got }.into());
    };
    let words = (bits * u64::from(exponent)).div_ceil(64).max(1);
    // Each square has half as many words as the next one, and a product may follow each.
    meter.words(2 * words, words)?;
    Ok(base.pow(exponent))
}

impl Machine<'_> {
    /// `base ** exponent % modulus` without computing the power itself.
    pub(in crate::actor) fn power_modulo(
        &mut self,
        [base, exponent, modulus]: [Value; 3],
    ) -> Result<Value, Fault> {
        let all = [base, exponent, modulus].map(|value| self.heap.big(value));
        let [Some(base), Some(exponent), Some(modulus)] = all else {
            unreachable!("the caller has looked at the kinds")
        };
        if exponent.is_negative() {
            return failed("an exponent must not be negative: there are no floats");
        }
        if modulus.is_zero() {
            return division_by_zero();
        }
        // Two products and two remainders for each bit of the exponent. A table of powers is made
        // first, however short the exponent is.
        let width = words(&modulus);
        self.meter.words(words(&base), width)?;
        self.meter.words(4 * width * width, exponent.bits() + 8)?;
        let result = base.modpow(&exponent, &modulus);
        drop((base, exponent, modulus));
        self.new_integer(result)
    }
}
