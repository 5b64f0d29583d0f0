//! Deterministic CBOR (RFC 8949 §4.2), bounded.
//!
//! Every record is a map from its field names to their values, keys in the order of their encoded
//! bytes, integers in their shortest form, all lengths definite. [`from_slice`] accepts exactly the
//! output of [`to_vec`]: it decodes, encodes again and compares, so that a value has one form and
//! no bytes follow it. Decoding allocates no more than the input is long.
//!
//! [`record!`](crate::record) writes both directions for a struct.

mod names;

pub(crate) use names::words;

use minicbor::{Decoder, Encoder};
use std::sync::Arc;

/// The reason why bytes cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Not the CBOR item that was expected there, or cut short.
    #[error("malformed: {0}")]
    Malformed(String),
    /// A byte string, text or list above its bound.
    #[error("length {got} exceeds the limit of {limit}")]
    TooLong { got: u64, limit: u64 },
    #[error("{got} bytes where {expected} are expected")]
    WrongLength { got: usize, expected: usize },
    #[error("field `{0}` is missing")]
    MissingField(&'static str),
    #[error("unknown field `{0}`")]
    UnknownField(String),
    #[error("not in deterministic form (RFC 8949 §4.2)")]
    NotDeterministic,
    /// Well formed, but not a value of the type.
    #[error("{0}")]
    Invalid(&'static str),
}

impl From<minicbor::decode::Error> for DecodeError {
    fn from(error: minicbor::decode::Error) -> Self {
        Self::Malformed(error.to_string())
    }
}

/// A value with exactly one CBOR form.
pub trait Encode {
    fn encode(&self, w: &mut Writer);

    /// Whether a record leaves the field out. Only `None` is left out.
    fn is_absent(&self) -> bool {
        false
    }
}

/// A value that can be read back from its form.
pub trait Decode: Sized {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError>;

    /// The value of the field in a record that leaves it out.
    fn absent(field: &'static str) -> Result<Self, DecodeError> {
        Err(DecodeError::MissingField(field))
    }
}

/// Encodes `value` in its only form.
pub fn to_vec<T: Encode + ?Sized>(value: &T) -> Vec<u8> {
    let mut w = Writer::new();
    value.encode(&mut w);
    w.finish()
}

/// Decodes a value that fills `bytes` in its only form.
pub fn from_slice<T: Encode + Decode>(bytes: &[u8]) -> Result<T, DecodeError> {
    let mut r = Reader::new(bytes);
    let value = T::decode(&mut r)?;
    if to_vec(&value) != bytes {
        return Err(DecodeError::NotDeterministic);
    }
    Ok(value)
}

/// Appends CBOR items to a buffer.
pub struct Writer(Encoder<Vec<u8>>);

/// Writing to a `Vec` cannot fail.
macro_rules! infallible {
    ($e:expr) => {
        match $e {
            Ok(_) => {}
            Err(error) => unreachable!("a Vec takes every write: {error}"),
        }
    };
}

impl Default for Writer {
    fn default() -> Self {
        Self::new()
    }
}

impl Writer {
    pub fn new() -> Self {
        Self(Encoder::new(Vec::new()))
    }

    pub fn finish(self) -> Vec<u8> {
        self.0.into_writer()
    }

    pub fn u64(&mut self, value: u64) {
        infallible!(self.0.u64(value));
    }

    pub fn bool(&mut self, value: bool) {
        infallible!(self.0.bool(value));
    }

    pub fn bytes(&mut self, value: &[u8]) {
        infallible!(self.0.bytes(value));
    }

    pub fn text(&mut self, value: &str) {
        infallible!(self.0.str(value));
    }

    /// An item that is encoded already.
    pub fn raw(&mut self, item: &[u8]) {
        self.0.writer_mut().extend_from_slice(item);
    }

    /// The head of a list; `len` items follow.
    pub fn list(&mut self, len: usize) {
        infallible!(self.0.array(len as u64));
    }

    /// A record: fields in the order of [`key_order`], of which absent ones are left out.
    pub fn record(&mut self, fields: &[(&'static str, &dyn Encode)]) {
        debug_assert!(fields.is_sorted_by_key(|(name, _)| (name.len(), *name)));
        let present = fields.iter().filter(|(_, value)| !value.is_absent());
        infallible!(self.0.map(present.clone().count() as u64));
        for (name, value) in present {
            self.text(name);
            value.encode(self);
        }
    }
}

/// The positions of a record's keys in the order of their encoded bytes. An encoded text starts
/// with its length, so shorter keys come first.
pub const fn key_order<const N: usize>(names: [&str; N]) -> [usize; N] {
    const fn is_before(a: &[u8], b: &[u8]) -> bool {
        if a.len() != b.len() {
            return a.len() < b.len();
        }
        let mut at = 0;
        while at < a.len() && a[at] == b[at] {
            at += 1;
        }
        at < a.len() && a[at] < b[at]
    }
    let mut order = [0; N];
    let mut next = 0;
    while next < N {
        let mut at = next;
        while at > 0 && is_before(names[next].as_bytes(), names[order[at - 1]].as_bytes()) {
            order[at] = order[at - 1];
            at -= 1;
        }
        order[at] = next;
        next += 1;
    }
    order
}

/// Reads CBOR items from a buffer.
pub struct Reader<'a>(Decoder<'a>);

impl<'a> Reader<'a> {
    /// A reader for bytes that the program itself wrote. Bytes from elsewhere go through
    /// [`from_slice`].
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(Decoder::new(bytes))
    }

    pub fn u64(&mut self) -> Result<u64, DecodeError> {
        Ok(self.0.u64()?)
    }

    pub fn bool(&mut self) -> Result<bool, DecodeError> {
        Ok(self.0.bool()?)
    }

    pub fn bytes(&mut self, limit: usize) -> Result<&'a [u8], DecodeError> {
        let bytes = self.0.bytes()?;
        bounded(bytes.len(), limit)?;
        Ok(bytes)
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let bytes = self.0.bytes()?;
        bytes.try_into().map_err(|_| DecodeError::WrongLength { got: bytes.len(), expected: N })
    }

    /// A text of at most `limit` bytes.
    /// Whether the next item is text.
    pub fn is_text(&self) -> bool {
        matches!(self.0.datatype(), Ok(minicbor::data::Type::String))
    }

    pub fn text(&mut self, limit: usize) -> Result<&'a str, DecodeError> {
        let text = self.0.str()?;
        bounded(text.len(), limit)?;
        Ok(text)
    }

    /// The head of a list of at most `limit` items.
    pub fn list(&mut self, limit: usize) -> Result<usize, DecodeError> {
        let len = self.0.array()?.ok_or(DecodeError::NotDeterministic)?;
        bounded(usize::try_from(len).unwrap_or(usize::MAX), limit)
    }

    /// A list of at most `limit` items.
    pub fn items<T: Decode>(&mut self, limit: usize) -> Result<Vec<T>, DecodeError> {
        let len = self.list(limit)?;
        // Items may be larger in memory than on the wire, so the list grows as they arrive.
        let mut items = Vec::new();
        for _ in 0..len {
            items.push(T::decode(self)?);
        }
        Ok(items)
    }

    /// A record: `field` is called with each key, at its value.
    pub fn record(
        &mut self,
        mut field: impl FnMut(&str, &mut Self) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        let len = self.0.map()?.ok_or(DecodeError::NotDeterministic)?;
        for _ in 0..len {
            let key = self.0.str()?;
            field(key, self)?;
        }
        Ok(())
    }

    /// The number of bytes left to read, an upper bound for the items of a list.
    pub(crate) fn remaining(&self) -> usize {
        self.rest().len()
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.0.input().get(self.0.position()..).unwrap_or_default()
    }

    /// Skips an item if it has exactly these bytes, which are a whole item.
    pub(crate) fn skip_if(&mut self, item: &[u8]) -> bool {
        let equal = self.rest().starts_with(item);
        if equal {
            self.0.set_position(self.0.position() + item.len());
        }
        equal
    }
}

fn bounded(got: usize, limit: usize) -> Result<usize, DecodeError> {
    if got > limit {
        return Err(DecodeError::TooLong { got: got as u64, limit: limit as u64 });
    }
    Ok(got)
}

/// Implements [`Encode`] and [`Decode`] for a struct as the map of the named fields. Takes their
/// names, or, if they are many, the struct's definition, which may have the values of
/// [`defaults!`](crate::defaults).
#[macro_export]
macro_rules! record {
    ($(#[$attribute:meta])* $visible:vis struct $name:ident {
        $($(#[$about:meta])* $shown:vis $field:ident: $ty:ty),* $(,)?
    }) => {
        $(#[$attribute])*
        $visible struct $name {
            $($(#[$about])* $shown $field: $ty,)*
        }

        $crate::record!($name { $($field),* });
    };
    ($(#[$attribute:meta])* $visible:vis struct $name:ident {
        $($(#[$about:meta])* $shown:vis $field:ident: $ty:ty = $default:expr),* $(,)?
    }) => {
        $crate::defaults! {
            $(#[$attribute])*
            $visible struct $name {
                $($(#[$about])* $shown $field: $ty = $default),*
            }
        }

        $crate::record!($name { $($field),* });
    };
    ($name:ty { $($field:ident),* $(,)? }) => {
        impl $crate::primitives::codec::Encode for $name {
            fn encode(&self, w: &mut $crate::primitives::codec::Writer) {
                use $crate::primitives::codec::{Encode, key_order};

                const NAMES: &[&str] = &[$(stringify!($field)),*];
                const ORDER: [usize; NAMES.len()] = key_order([$(stringify!($field)),*]);
                let fields = [$((stringify!($field), &self.$field as &dyn Encode)),*];
                w.record(&ORDER.map(|at| fields[at]));
            }
        }

        impl $crate::primitives::codec::Decode for $name {
            fn decode(
                r: &mut $crate::primitives::codec::Reader<'_>,
            ) -> Result<Self, $crate::primitives::codec::DecodeError> {
                use $crate::primitives::codec::{Decode, DecodeError};

                $(let mut $field = None;)*
                r.record(|key, _r| match key {
                    $(stringify!($field) => {
                        $field = Some(Decode::decode(_r)?);
                        Ok(())
                    })*
                    other => Err(DecodeError::UnknownField(other.to_owned())),
                })?;
                Ok(Self {
                    $($field: match $field {
                        Some(value) => value,
                        None => Decode::absent(stringify!($field))?,
                    },)*
                })
            }
        }
    };
}

/// Defines a struct; the value after each field's type is that of [`Default`].
#[macro_export]
macro_rules! defaults {
    ($(#[$attribute:meta])* $visible:vis struct $name:ident {
        $($(#[$about:meta])* $shown:vis $field:ident: $ty:ty = $default:expr),* $(,)?
    }) => {
        $(#[$attribute])*
        $visible struct $name {
            $($(#[$about])* $shown $field: $ty,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default),* }
            }
        }
    };
}

/// Encodes types with one unnamed field as that field.
macro_rules! transparent {
    ($($ty:ident),*) => {$(
        impl $crate::primitives::codec::Encode for $ty {
            fn encode(&self, w: &mut $crate::primitives::codec::Writer) {
                self.0.encode(w);
            }
        }

        impl $crate::primitives::codec::Decode for $ty {
            fn decode(
                r: &mut $crate::primitives::codec::Reader<'_>,
            ) -> Result<Self, $crate::primitives::codec::DecodeError> {
                $crate::primitives::codec::Decode::decode(r).map(Self)
            }
        }
    )*};
}
pub(crate) use transparent;

macro_rules! unsigned {
    ($($int:ty),*) => {$(
        impl Encode for $int {
            fn encode(&self, w: &mut Writer) {
                w.u64(u64::from(*self));
            }
        }

        impl Decode for $int {
            fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
                <$int>::try_from(r.u64()?)
                    .map_err(|_| DecodeError::Invalid(concat!("beyond the range of ", stringify!($int))))
            }
        }
    )*};
}

unsigned!(u16, u32, u64);

impl Encode for bool {
    fn encode(&self, w: &mut Writer) {
        w.bool(*self);
    }
}

impl Decode for bool {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.bool()
    }
}

impl Encode for String {
    fn encode(&self, w: &mut Writer) {
        w.text(self);
    }
}

impl Decode for String {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.text(usize::MAX).map(str::to_owned)
    }
}

impl<const N: usize> Encode for [u8; N] {
    fn encode(&self, w: &mut Writer) {
        w.bytes(self);
    }
}

impl<const N: usize> Decode for [u8; N] {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.array()
    }
}

impl Encode for Vec<u8> {
    fn encode(&self, w: &mut Writer) {
        w.bytes(self);
    }
}

impl Decode for Vec<u8> {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.bytes(usize::MAX).map(<[u8]>::to_vec)
    }
}

impl<T: Encode> Encode for Vec<T> {
    fn encode(&self, w: &mut Writer) {
        w.list(self.len());
        for item in self {
            item.encode(w);
        }
    }
}

impl<T: Decode> Decode for Vec<T> {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.items(r.remaining())
    }
}

impl<A: Encode, B: Encode> Encode for (A, B) {
    fn encode(&self, w: &mut Writer) {
        w.list(2);
        self.0.encode(w);
        self.1.encode(w);
    }
}

impl<A: Decode, B: Decode> Decode for (A, B) {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match r.list(2)? {
            2 => Ok((A::decode(r)?, B::decode(r)?)),
            _ => Err(DecodeError::Invalid("expected a pair")),
        }
    }
}

macro_rules! pointers {
    ($($pointer:ident),*) => {$(
        impl<T: Encode> Encode for $pointer<T> {
            fn encode(&self, w: &mut Writer) {
                self.as_ref().encode(w);
            }
        }

        impl<T: Decode> Decode for $pointer<T> {
            fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
                T::decode(r).map(Self::new)
            }
        }
    )*};
}

pointers!(Arc, Box);

impl<T: Encode> Encode for Option<T> {
    fn encode(&self, w: &mut Writer) {
        match self {
            Some(value) => value.encode(w),
            None => unreachable!("a record leaves an absent field out"),
        }
    }

    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

impl<T: Decode> Decode for Option<T> {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        T::decode(r).map(Some)
    }

    fn absent(_: &'static str) -> Result<Self, DecodeError> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    struct Sample {
        zebra: u64,
        ant: Vec<u8>,
        bee: Option<String>,
    }
    record!(Sample { zebra, ant, bee });

    fn sample() -> Sample {
        Sample { zebra: 24, ant: vec![1, 2], bee: None }
    }

    #[test]
    fn keys_stand_shorter_first_and_absent_fields_are_left_out() {
        let bytes = to_vec(&sample());
        assert_eq!(hex::encode(&bytes), "a263616e74420102657a656272611818");
        assert_eq!(from_slice::<Sample>(&bytes), Ok(sample()));
    }

    #[test]
    fn only_the_deterministic_form_is_accepted() {
        let check = |hex_text: &str, expected: DecodeError| {
            assert_eq!(from_slice::<Sample>(&hex::decode(hex_text).unwrap()), Err(expected));
        };
        // Keys out of order.
        check("a2657a65627261181863616e74420102", DecodeError::NotDeterministic);
        // 24 written in two bytes.
        check("a263616e74420102657a65627261190018", DecodeError::NotDeterministic);
        // An indefinite map.
        check("bf63616e74420102657a656272611818ff", DecodeError::NotDeterministic);
        // A byte after the end.
        check("a263616e74420102657a65627261181800", DecodeError::NotDeterministic);
        check("a163616e74420102", DecodeError::MissingField("zebra"));
        check("a163666f7801", DecodeError::UnknownField("fox".into()));
    }

    #[test]
    fn a_claimed_length_allocates_nothing() {
        let claim = hex::decode("9affffffff").unwrap();
        assert!(matches!(from_slice::<Vec<u64>>(&claim), Err(DecodeError::TooLong { .. })));
        let claim = hex::decode("5affffffff").unwrap();
        assert!(matches!(from_slice::<Vec<u8>>(&claim), Err(DecodeError::Malformed(_))));
    }
}
