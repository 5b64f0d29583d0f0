//! Payloads and results as text for people. They are bytes to the chain, and nothing tells their
//! format:
//!
//! | input | output |
//! |---|---|
//! | a JSON object or list | itself |
//! | other text | the text in quotes |
//! | CBOR (RFC 8949) of a map, a list or a text | the same as JSON, byte strings as 0x-hex |
//! | anything else | 0x-hex |

use cowboy_devnet::types::{Bytes, Text};
use serde_json::{Map, Number, Value};

/// The maximum nesting of lists and maps.
const DEPTH: u32 = 32;

/// Bytes as text for people, on one line.
pub fn decoded(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if is_printable(text) => match serde_json::from_str(text) {
            Ok(json @ (Value::Object(_) | Value::Array(_))) => json.to_string(),
            _ => Value::from(text).to_string(),
        },
        _ => cbor(bytes)
            .filter(|value| value.is_object() || value.is_array() || value.is_string())
            .map_or_else(|| hex(bytes), |value| value.to_string()),
    }
}

fn is_printable(text: &str) -> bool {
    text.chars().all(|char| !char.is_control() || matches!(char, '\n' | '\r' | '\t'))
}

/// The value of one CBOR item, if that is all that the bytes contain.
pub fn cbor(bytes: &[u8]) -> Option<Value> {
    let mut input = Input(bytes);
    let value = input.item(DEPTH)?;
    input.0.is_empty().then_some(value)
}

fn hex(bytes: &[u8]) -> String {
    Text(Bytes(bytes.to_vec())).to_string()
}

/// CBOR with definite lengths, read from the front.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, length: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some(taken)
    }

    /// An item's kind, its number (a value, or the length of what follows), and the number's size
    /// in bytes.
    fn head(&mut self) -> Option<(u8, u64, u8)> {
        let first = *self.take(1)?.first()?;
        let (number, bytes) = match first & 31 {
            small @ 0..=23 => (u64::from(small), 0),
            long @ 24..=27 => {
                let bytes = self.take(1 << (long - 24))?;
                let number = bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
                (number, 1 << (long - 24))
            }
            _ => return None,
        };
        Some((first >> 5, number, bytes))
    }

    fn item(&mut self, depth: u32) -> Option<Value> {
        let below = depth.checked_sub(1)?;
        let (kind, number, bytes) = self.head()?;
        Some(match kind {
            0 => number.into(),
            1 => match i64::try_from(number) {
                Ok(number) => (-1 - number).into(),
                Err(_) => (-1 - i128::from(number)).to_string().into(),
            },
            2 => hex(self.take(number)?).into(),
            3 => std::str::from_utf8(self.take(number)?).ok()?.into(),
            4 => {
                let mut items = Vec::new();
                for _ in 0..number {
                    items.push(self.item(below)?);
                }
                items.into()
            }
            5 => {
                let mut fields = Map::new();
                for _ in 0..number {
                    let name = match self.item(below)? {
                        Value::String(name) => name,
                        other => other.to_string(),
                    };
                    fields.insert(name, self.item(below)?);
                }
                fields.into()
            }
            // A tag tells how to interpret the next item.
            6 => self.item(below)?,
            _ => match (number, bytes) {
                (20 | 21, 0) => (number == 21).into(),
                (22 | 23, 0) => Value::Null,
                (_, 2) => float(half(u16::try_from(number).ok()?)),
                (_, 4) => float(f32::from_bits(u32::try_from(number).ok()?).into()),
                (_, 8) => float(f64::from_bits(number)),
                _ => return None,
            },
        })
    }
}

/// A number, or its name if JSON cannot represent it.
fn float(number: f64) -> Value {
    Number::from_f64(number).map_or_else(|| number.to_string().into(), Value::from)
}

/// A number of 16 bits (IEEE 754), as RFC 8949 §D reads it.
fn half(bits: u16) -> f64 {
    let (exponent, mantissa) = (i32::from(bits >> 10 & 31), f64::from(bits & 1_023));
    let size = match exponent {
        0 => mantissa * 2f64.powi(-24),
        31 if mantissa == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (mantissa + 1_024.0) * 2f64.powi(exponent - 25),
    };
    if bits >> 15 == 1 { -size } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], expected: &str) {
        assert_eq!(decoded(bytes), expected);
    }

    fn of_hex(text: &str) -> Vec<u8> {
        let Text(Bytes(bytes)) = format!("0x{text}").parse().unwrap();
        bytes
    }

    #[test]
    fn text_is_in_quotes_and_json_is_itself() {
        check(b"", r#""""#);
        check(b"hello", r#""hello""#);
        check(b"say \"hi\"\n", r#""say \"hi\"\n""#);
        check("größer".as_bytes(), r#""größer""#);
        check(b"42", r#""42""#);
        check(b"{\"to\": 1,\n \"n\": [1, 2]}", r#"{"n":[1,2],"to":1}"#);
        check(b"[]", "[]");
    }

    #[test]
    fn cbor_is_shown_as_json() {
        let check = |hex: &str, expected: &str| check(&of_hex(hex), expected);
        // RFC 8949, appendix A.
        check("83010203", "[1,2,3]");
        check("a26161016162820203", r#"{"a":1,"b":[2,3]}"#);
        check("a201020304", r#"{"1":2,"3":4}"#);
        check("8244010203041903e8", r#"["0x01020304",1000]"#);
        check("8520f4f5f6f7", "[-1,false,true,null,null]");
        check("823903e73bffffffffffffffff", r#"[-1000,"-18446744073709551616"]"#);
        check("84f93c00f9c400fa47c35000fb3ff199999999999a", "[1.0,-4.0,100000.0,1.1]");
        check("83f97c00f97e00f90001", r#"["inf","NaN",5.960464477539063e-8]"#);
        check("81c11a514b67b0", "[1363896240]");
    }

    #[test]
    fn other_bytes_are_hex() {
        for hex in
            ["00", "ff", "c3", "0001", "1b00000000000000ff", "9f01ff", "8301", "a2", "8100ff"]
        {
            check(&of_hex(hex), &format!("0x{hex}"));
        }
        check(b"\x1b[2J", "0x1b5b324a");
        let deep = [vec![0x81; DEPTH as usize], vec![0]].concat();
        assert!(decoded(&deep).starts_with("0x81"));
    }
}
