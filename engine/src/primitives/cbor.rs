//! The CBOR that actors speak (spec pvm.md §5): canonical RFC 8949 with floats of 64 bits.
//!
//! [`decode`] accepts and [`encode`] makes exactly what the SDK's `codec` does. Map keys are those
//! that a Python `dict` can have: no lists and no maps, and of `1`, `true` and `1.0` only one,
//! because Python takes them for equal.

use super::json::{Expected, Scanner, quoted};
use minicbor::data::{Tag, Type};
use minicbor::{Decoder, Encoder};
use num_bigint::{BigInt, BigUint, Sign};
use num_traits::{FromPrimitive as _, ToPrimitive as _};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Lists, maps and big integers that may be around a value: `_MAX_DEPTH` of the SDK.
const MAX_DEPTH: usize = 256;

const BIG_POSITIVE: u64 = 2;
const BIG_NEGATIVE: u64 = 3;

/// A value that an actor in Python can have.
#[derive(Clone, Debug, PartialEq)]
pub enum CborValue {
    Null,
    Bool(bool),
    Int(BigInt),
    /// Finite. Zero has one sign.
    Float(f64),
    Bytes(Vec<u8>),
    Text(String),
    List(Vec<Self>),
    /// In canonical order after [`decode`], in any order before [`encode`].
    Map(Vec<(Self, Self)>),
}

/// The reason why bytes are no value, or a value or a text has no bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CborError {
    #[error("malformed CBOR: {0}")]
    Malformed(String),
    #[error("{0} bytes follow the value")]
    Trailing(usize),
    #[error("byte {0}: an integer or a length is not in its shortest form")]
    NotShortest(usize),
    #[error("byte {at}: {what} is not allowed")]
    NotAllowed { at: usize, what: &'static str },
    #[error("a map's keys are not in canonical order")]
    Misordered,
    #[error("a map has the key {0} twice")]
    Duplicate(String),
    #[error("a list or a map is a map's key")]
    Unhashable,
    #[error("a float is not finite")]
    NotFinite,
    #[error("nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    #[error("not JSON: {0}")]
    Json(#[from] Expected),
}

impl From<minicbor::decode::Error> for CborError {
    fn from(error: minicbor::decode::Error) -> Self {
        Self::Malformed(error.to_string())
    }
}

/// Decodes a value that fills `bytes`.
pub fn decode(bytes: &[u8]) -> Result<CborValue, CborError> {
    let mut reader = Decoder::new(bytes);
    let value = item(&mut reader, 0)?;
    match bytes.len() - reader.position() {
        0 => Ok(value),
        left => Err(CborError::Trailing(left)),
    }
}

/// Checks that the head that begins at `at` and ends `after` is the shortest for its number.
fn shortest(at: usize, after: usize, number: u64) -> Result<(), CborError> {
    let expected = match number {
        0..=23 => 1,
        24..=0xff => 2,
        0x100..=0xffff => 3,
        0x1_0000..=0xffff_ffff => 5,
        _ => 9,
    };
    if after - at == expected { Ok(()) } else { Err(CborError::NotShortest(at)) }
}

fn item(reader: &mut Decoder<'_>, depth: usize) -> Result<CborValue, CborError> {
    let at = reader.position();
    let nested = |depth| if depth < MAX_DEPTH { Ok(depth + 1) } else { Err(CborError::TooDeep) };
    let refuse = |what| Err(CborError::NotAllowed { at, what });
    let definite = |length: Option<u64>| {
        length.ok_or(CborError::NotAllowed { at, what: "an indefinite length" })
    };
    // A number above the input's length is found out when its items are missing.
    let bounded = |reader: &Decoder<'_>, length: u64| {
        let left = reader.input().len() - reader.position();
        usize::try_from(length).unwrap_or(left).min(left)
    };
    match reader.datatype()? {
        Type::Null => {
            reader.null()?;
            Ok(CborValue::Null)
        }
        Type::Bool => Ok(CborValue::Bool(reader.bool()?)),
        Type::U8 | Type::U16 | Type::U32 | Type::U64 => {
            let number = reader.u64()?;
            shortest(at, reader.position(), number)?;
            Ok(CborValue::Int(number.into()))
        }
        Type::I8 | Type::I16 | Type::I32 | Type::I64 | Type::Int => {
            let number = i128::from(reader.int()?);
            shortest(at, reader.position(), (-1 - number) as u64)?;
            Ok(CborValue::Int(number.into()))
        }
        Type::F64 => float(reader.f64()?).map(CborValue::Float),
        Type::F16 | Type::F32 => refuse("a float of fewer than 64 bits"),
        Type::Bytes => {
            let bytes = reader.bytes()?;
            shortest(at, reader.position() - bytes.len(), bytes.len() as u64)?;
            Ok(CborValue::Bytes(bytes.to_vec()))
        }
        Type::String => {
            let text = reader.str()?;
            shortest(at, reader.position() - text.len(), text.len() as u64)?;
            Ok(CborValue::Text(text.to_owned()))
        }
        Type::Array => {
            let depth = nested(depth)?;
            let length = definite(reader.array()?)?;
            shortest(at, reader.position(), length)?;
            let mut list = Vec::with_capacity(bounded(reader, length).min(1_024));
            for _ in 0..length {
                list.push(item(reader, depth)?);
            }
            Ok(CborValue::List(list))
        }
        Type::Map => {
            let depth = nested(depth)?;
            let length = definite(reader.map()?)?;
            shortest(at, reader.position(), length)?;
            map(reader, length, depth).map(CborValue::Map)
        }
        Type::Tag => {
            let depth = nested(depth)?;
            let tag = reader.tag()?.as_u64();
            shortest(at, reader.position(), tag)?;
            if tag != BIG_POSITIVE && tag != BIG_NEGATIVE {
                return refuse("a tag other than those of big integers");
            }
            match item(reader, depth)? {
                CborValue::Bytes(bytes) if bytes.len() > 8 && bytes[0] != 0 => {
                    let magnitude = BigInt::from(BigUint::from_bytes_be(&bytes));
                    let negative = tag == BIG_NEGATIVE;
                    Ok(CborValue::Int(if negative { -1 - magnitude } else { magnitude }))
                }
                _ => refuse("a big integer that is not in its shortest form"),
            }
        }
        _ => refuse("such an item"),
    }
}

fn map(
    reader: &mut Decoder<'_>,
    length: u64,
    depth: usize,
) -> Result<Vec<(CborValue, CborValue)>, CborError> {
    let mut entries = Vec::new();
    let mut keys = BTreeSet::new();
    let mut previous: &[u8] = &[];
    for _ in 0..length {
        let start = reader.position();
        let key = item(reader, depth)?;
        let encoded = &reader.input()[start..reader.position()];
        if (previous.len(), previous) >= (encoded.len(), encoded) {
            return Err(CborError::Misordered);
        }
        previous = encoded;
        distinct(&key, &mut keys)?;
        entries.push((key, item(reader, depth)?));
    }
    Ok(entries)
}

/// A map's key as Python compares it.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum PythonKey {
    Null,
    Number(BigInt),
    /// The bits of a float that is no integer.
    Fraction(u64),
    Bytes(Vec<u8>),
    Text(String),
}

/// Adds a key to those of a map.
fn distinct(key: &CborValue, keys: &mut BTreeSet<PythonKey>) -> Result<(), CborError> {
    let python = match key {
        CborValue::Null => PythonKey::Null,
        CborValue::Bool(bool) => PythonKey::Number(i32::from(*bool).into()),
        CborValue::Int(number) => PythonKey::Number(number.clone()),
        CborValue::Float(float) if float.fract() == 0.0 => {
            PythonKey::Number(BigInt::from_f64(*float).ok_or(CborError::NotFinite)?)
        }
        CborValue::Float(float) => PythonKey::Fraction(float.to_bits()),
        CborValue::Bytes(bytes) => PythonKey::Bytes(bytes.clone()),
        CborValue::Text(text) => PythonKey::Text(text.clone()),
        CborValue::List(_) | CborValue::Map(_) => return Err(CborError::Unhashable),
    };
    if keys.insert(python) { Ok(()) } else { Err(CborError::Duplicate(key.to_string())) }
}

fn float(float: f64) -> Result<f64, CborError> {
    match float {
        _ if !float.is_finite() => Err(CborError::NotFinite),
        // Either sign.
        0.0 => Ok(0.0),
        _ => Ok(float),
    }
}

/// Encodes a value in its only form.
pub fn encode(value: &CborValue) -> Result<Vec<u8>, CborError> {
    let mut writer = Encoder::new(Vec::new());
    write(&mut writer, value, 0)?;
    Ok(writer.into_writer())
}

/// A vector takes everything that is written to it.
fn written<T>(result: Result<T, minicbor::encode::Error<std::convert::Infallible>>) {
    assert!(result.is_ok(), "a vector takes what is written to it");
}

fn write(writer: &mut Encoder<Vec<u8>>, value: &CborValue, depth: usize) -> Result<(), CborError> {
    let nests = match value {
        CborValue::List(_) | CborValue::Map(_) => true,
        CborValue::Int(number) => magnitude(number).1.bits() > 64,
        _ => false,
    };
    if nests && depth >= MAX_DEPTH {
        return Err(CborError::TooDeep);
    }
    match value {
        CborValue::Null => written(writer.null()),
        CborValue::Bool(bool) => written(writer.bool(*bool)),
        CborValue::Int(number) => integer(writer, number),
        CborValue::Float(value) => written(writer.f64(float(*value)?)),
        CborValue::Bytes(bytes) => written(writer.bytes(bytes)),
        CborValue::Text(text) => written(writer.str(text)),
        CborValue::List(list) => {
            written(writer.array(list.len() as u64));
            for item in list {
                write(writer, item, depth + 1)?;
            }
        }
        CborValue::Map(entries) => {
            let mut keys = BTreeSet::new();
            let mut encoded = Vec::new();
            for (key, value) in entries {
                distinct(key, &mut keys)?;
                let mut one = Encoder::new(Vec::new());
                write(&mut one, key, depth + 1)?;
                encoded.push((one.into_writer(), value));
            }
            encoded.sort_by(|(a, _), (b, _)| (a.len(), a).cmp(&(b.len(), b)));
            written(writer.map(encoded.len() as u64));
            for (key, value) in encoded {
                writer.writer_mut().extend(key);
                write(writer, value, depth + 1)?;
            }
        }
    }
    Ok(())
}

/// The tag that a big integer has, and the number that goes into its bytes.
fn magnitude(number: &BigInt) -> (u64, BigInt) {
    match number.sign() {
        Sign::Minus => (BIG_NEGATIVE, BigInt::from(-1) - number),
        _ => (BIG_POSITIVE, number.clone()),
    }
}

fn integer(writer: &mut Encoder<Vec<u8>>, number: &BigInt) {
    let (tag, magnitude) = magnitude(number);
    match (tag, magnitude.to_u64()) {
        (BIG_POSITIVE, Some(small)) => written(writer.u64(small)),
        (_, Some(small)) => {
            let number = -1 - i128::from(small);
            let number = minicbor::data::Int::try_from(number);
            written(writer.int(number.expect("-1 - u64 is an integer of CBOR")));
        }
        (tag, None) => {
            written(writer.tag(Tag::new(tag)));
            written(writer.bytes(&magnitude.magnitude().to_bytes_be()));
        }
    }
}

/// Reads JSON. Integers are exact; numbers with a fraction or an exponent are floats.
pub fn from_json(text: &str) -> Result<CborValue, CborError> {
    let mut scanner = Scanner::new(text);
    let value = json(&mut scanner, 0)?;
    scanner.end()?;
    Ok(value)
}

fn json(scanner: &mut Scanner<'_>, depth: usize) -> Result<CborValue, CborError> {
    scanner.skip_white();
    if matches!(scanner.peek(), Some(b'[' | b'{')) && depth >= MAX_DEPTH {
        return Err(CborError::TooDeep);
    }
    match scanner.peek() {
        Some(b'n') => scanner.word("null").map(|()| CborValue::Null).map_err(CborError::from),
        Some(b't') => scanner.word("true").map(|()| CborValue::Bool(true)).map_err(CborError::from),
        Some(b'f') => {
            scanner.word("false").map(|()| CborValue::Bool(false)).map_err(CborError::from)
        }
        Some(b'"') => Ok(CborValue::Text(scanner.string()?)),
        Some(b'[') => {
            scanner.eat(b'[');
            let mut list = Vec::new();
            scanner.elements(b']', "a comma or the list's end", |scanner| {
                list.push(json(scanner, depth + 1)?);
                Ok::<_, CborError>(())
            })?;
            Ok(CborValue::List(list))
        }
        Some(b'{') => {
            scanner.eat(b'{');
            let mut entries = Vec::new();
            let mut keys = BTreeSet::new();
            scanner.elements(b'}', "a comma or the object's end", |scanner| {
                scanner.skip_white();
                let key = CborValue::Text(scanner.string()?);
                distinct(&key, &mut keys)?;
                scanner.skip_white();
                scanner.expect(b':', "a colon")?;
                entries.push((key, json(scanner, depth + 1)?));
                Ok::<_, CborError>(())
            })?;
            Ok(CborValue::Map(entries))
        }
        _ => number(scanner),
    }
}

fn number(scanner: &mut Scanner<'_>) -> Result<CborValue, CborError> {
    let mut text = String::new();
    if scanner.eat(b'-') {
        text.push('-');
    }
    let whole = scanner.whole()?;
    if whole.is_empty() {
        return Ok(scanner.fail("a value")?);
    }
    text.push_str(whole);
    let mut exact = true;
    if scanner.eat(b'.') {
        exact = false;
        text.push('.');
        text.push_str(some_digits(scanner)?);
    }
    if scanner.eat(b'e') || scanner.eat(b'E') {
        exact = false;
        text.push('e');
        if scanner.eat(b'-') {
            text.push('-');
        } else {
            scanner.eat(b'+');
        }
        text.push_str(some_digits(scanner)?);
    }
    if exact {
        return Ok(CborValue::Int(text.parse().expect("a sign and digits are an integer")));
    }
    float(text.parse().expect("these are the parts of a float")).map(CborValue::Float)
}

fn some_digits<'a>(scanner: &mut Scanner<'a>) -> Result<&'a str, Expected> {
    let digits = scanner.digits();
    if digits.is_empty() { scanner.fail("a digit") } else { Ok(digits) }
}

impl CborValue {
    /// Compact JSON with keys in the order of their bytes; `None` for bytes, and for keys that are
    /// no text, which JSON has not.
    pub fn to_json(&self) -> Option<String> {
        let joined = |items: Vec<String>| items.join(",");
        Some(match self {
            Self::Bytes(_) => return None,
            Self::List(list) => {
                let items = list.iter().map(Self::to_json).collect::<Option<_>>()?;
                format!("[{}]", joined(items))
            }
            Self::Map(entries) => {
                let entry = |(key, value): &(Self, Self)| match key {
                    Self::Text(name) => Some((name.clone(), value.to_json()?)),
                    _ => None,
                };
                let sorted = entries.iter().map(entry).collect::<Option<BTreeMap<_, _>>>()?;
                let items = sorted.iter().map(|(name, value)| format!("{}:{value}", quoted(name)));
                format!("{{{}}}", joined(items.collect()))
            }
            other => other.to_string(),
        })
    }
}

/// For people: JSON, with byte strings as `h'00ff'` and keys of any kind.
impl fmt::Display for CborValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(bool) => write!(f, "{bool}"),
            Self::Int(number) => write!(f, "{number}"),
            // With a point or an exponent, so that it does not look like an integer.
            Self::Float(float) => write!(f, "{float:?}"),
            Self::Bytes(bytes) => write!(f, "h'{}'", hex::encode(bytes)),
            Self::Text(text) => f.write_str(&quoted(text)),
            Self::List(list) => {
                f.write_str("[")?;
                for (at, item) in list.iter().enumerate() {
                    write!(f, "{}{item}", if at == 0 { "" } else { ", " })?;
                }
                f.write_str("]")
            }
            Self::Map(entries) => {
                f.write_str("{")?;
                for (at, (key, value)) in entries.iter().enumerate() {
                    write!(f, "{}{key}: {value}", if at == 0 { "" } else { ", " })?;
                }
                f.write_str("}")
            }
        }
    }
}

#[cfg(test)]
mod tests;
