//! Values that JSON carries as text: amounts, byte strings, times.

use cowboy_engine::primitives::{Address, Hash, PublicKey, Wei};
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::{borrow::Cow, fmt, ops::Deref, str::FromStr};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        ObjectBuilder, RefOr, Schema,
        schema::{SchemaType, Type},
    },
};

/// Converts between two enums with the same variants.
macro_rules! same {
    ($mine:ident = $engine:ty: $($variant:ident),*) => {
        impl From<$mine> for $engine {
            fn from(value: $mine) -> Self {
                match value {
                    $($mine::$variant => Self::$variant),*
                }
            }
        }

        impl From<$engine> for $mine {
            fn from(value: $engine) -> Self {
                match value {
                    $(<$engine>::$variant => Self::$variant),*
                }
            }
        }
    };
}

pub(crate) use same;

/// A text that is not a value of its type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{got}` is not {expected}")]
pub struct ParseError {
    /// The text found, shortened to 80 characters.
    pub got: String,
    /// The expected form, in words.
    pub expected: &'static str,
}

/// A value with one text form in JSON.
pub trait Textual: Sized {
    /// The schema's name in the OpenAPI document.
    const NAME: &'static str;
    /// A regular expression of the form, for the OpenAPI document.
    const PATTERN: &'static str;
    /// The form in words, for errors.
    const EXPECTED: &'static str;

    /// Formats the value.
    fn to_text(&self) -> String;

    /// Parses the form; `None` when `text` is not one.
    fn from_text(text: &str) -> Option<Self>;
}

/// A value that JSON carries as text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Text<T>(pub T);

/// A hash, 0x-hex.
pub type HashText = Text<Hash>;
/// An address, 0x-hex.
pub type AddressText = Text<Address>;
/// A compressed public key, 0x-hex.
pub type KeyText = Text<PublicKey>;
/// An amount of wei, decimal.
pub type AmountText = Text<Wei>;
/// A time, RFC 3339.
pub type TimeText = Text<Timestamp>;
/// A byte string, 0x-hex.
pub type BytesText = Text<Bytes>;
/// A chain id, 0x-hex.
pub type ChainIdText = Text<ChainId>;

impl<T> Deref for Text<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> From<T> for Text<T> {
    fn from(value: T) -> Self {
        Self(value)
    }
}

impl<T: Textual> fmt::Display for Text<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0.to_text())
    }
}

impl<T: Textual> fmt::Debug for Text<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<T: Textual> FromStr for Text<T> {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        T::from_text(text)
            .map(Self)
            .ok_or_else(|| ParseError { got: shortened(text), expected: T::EXPECTED })
    }
}

impl<T: Textual> Serialize for Text<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.to_text())
    }
}

impl<'de, T: Textual> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<str>::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl<T: Textual> PartialSchema for Text<T> {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(SchemaType::Type(Type::String))
            .pattern(Some(T::PATTERN))
            .description(Some(T::EXPECTED))
            .into()
    }
}

impl<T: Textual> ToSchema for Text<T> {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed(T::NAME)
    }
}

/// The first 80 characters of a refused text, so that an error fits on one line.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    hex::decode(text.strip_prefix("0x")?).ok()
}

/// A byte string of any length.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub Vec<u8>);

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// The first 8 bytes of the genesis document's keccak256. JSON carries it as a byte string: as a
/// number it would lose digits in most readers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ChainId(pub u64);

/// Rows of a type: the schema's name, the pattern, the form in words, its text and its parser.
macro_rules! textual {
    ($($name:literal, $pattern:literal, $expected:literal:
        $ty:ty = |$value:ident| $show:expr, |$text:ident| $parse:expr;)*) => {
        $(impl Textual for $ty {
            const NAME: &'static str = $name;
            const PATTERN: &'static str = $pattern;
            const EXPECTED: &'static str = $expected;

            fn to_text(&self) -> String {
                let $value = self;
                $show
            }

            fn from_text($text: &str) -> Option<Self> {
                $parse
            }
        })*
    };
}

textual! {
    "Amount", "^[0-9]+$", "an amount: wei as a decimal number":
        Wei = |wei| wei.get().to_string(), |text| {
            let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            digits.then(|| text.parse().ok()).flatten().map(Self::new)
        };
    "Address", "^0x[0-9a-f]{40}$", "an address: 0x and 40 hex digits":
        Address = |address| address.to_string(), |text| text.parse().ok();
    "Hash", "^0x[0-9a-f]{64}$", "a hash: 0x and 64 hex digits":
        Hash = |hash| hash.to_string(), |text| unhex(text)?.try_into().ok().map(Self);
    "PublicKey", "^0x0[23][0-9a-f]{64}$",
    "a compressed secp256k1 public key: 0x and 66 hex digits":
        PublicKey = |key| key.to_string(), |text| {
            let bytes: [u8; 33] = unhex(text)?.try_into().ok()?;
            Self::from_bytes(&bytes).ok()
        };
    "Time", r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z$", "a time: RFC 3339 in UTC":
        Timestamp = |time| time.to_string(), |text| text.parse().ok();
    "Bytes", "^0x([0-9a-f]{2})*$", "a byte string: 0x and an even number of hex digits":
        Bytes = |bytes| format!("0x{}", hex::encode(&bytes.0)), |text| unhex(text).map(Self);
    "ChainId", "^0x[0-9a-f]{16}$", "a chain id: 0x and 16 hex digits":
        ChainId = |id| format!("0x{:016x}", id.0),
        |text| unhex(text)?.try_into().ok().map(u64::from_be_bytes).map(Self);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round<T: Textual + PartialEq + Clone>(value: T, json: &str) {
        assert_eq!(serde_json::to_string(&Text(value.clone())).unwrap(), json);
        let back: Text<T> = serde_json::from_str(json).unwrap();
        assert!(back.0 == value, "{json}");
    }

    #[test]
    fn each_value_has_one_form() {
        round(Wei::new(u128::MAX), "\"340282366920938463463374607431768211455\"");
        round(Address([0xab; 20]), &format!("\"0x{}\"", "ab".repeat(20)));
        round(Hash([1; 32]), &format!("\"0x{}\"", "01".repeat(32)));
        round(Bytes(vec![]), "\"0x\"");
        round(Bytes(vec![0, 255]), "\"0x00ff\"");
        round(ChainId(1), "\"0x0000000000000001\"");
        round(
            "2026-11-20T09:53:01.25Z".parse::<Timestamp>().unwrap(),
            "\"2026-11-20T09:53:01.25Z\"",
        );
    }

    #[test]
    fn errors_say_what_was_got_and_expected() {
        let check = |json: &str, message: &str| {
            let error = serde_json::from_str::<Text<Hash>>(json).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        };
        check("\"0x12\"", "`0x12` is not a hash: 0x and 64 hex digits");
        check("\"\"", "`` is not a hash");
        check(&format!("\"{}\"", "é".repeat(1000)), &format!("`{}…` is not", "é".repeat(80)));
        assert!("+5".parse::<Text<Wei>>().is_err());
        assert!("1.5cby".parse::<Text<Wei>>().is_err());
        assert!("0x0".parse::<Text<Bytes>>().is_err());
    }
}
