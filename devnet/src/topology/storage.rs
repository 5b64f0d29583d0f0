//! `storage`: disk usage of validators.

use crate::storage::Keep;
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, Unexpected, Visitor},
};
use std::{fmt, str::FromStr};

/// `storage`: disk usage of validators.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "the fields of `storage`")]
pub struct StorageSection {
    /// How much of its chain each validator keeps.
    pub keep: Keep,
    /// Free disk space below which validators pause, or a twentieth of the disk if that is smaller;
    /// 0: they continue until the disk is full.
    pub reserve: Reserve,
}

/// `storage.reserve`: free disk space below which validators pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reserve(pub Size);

impl Default for Reserve {
    /// Enough for some minutes of blocks and for the writes of databases as they close.
    fn default() -> Self {
        Self(Size(256_000_000))
    }
}

impl Serialize for Reserve {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Size(0) => serializer.serialize_u64(0),
            size => serializer.collect_str(&size),
        }
    }
}

impl<'de> Deserialize<'de> for Reserve {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reserved;

        impl Visitor<'_> for Reserved {
            type Value = Reserve;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size, as `256MB`, or 0")
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Reserve, E> {
                let other = || E::invalid_value(Unexpected::Unsigned(number), &self);
                (number == 0).then_some(Reserve(Size(0))).ok_or_else(other)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Reserve, E> {
                text.parse().map(Reserve).map_err(E::custom)
            }
        }

        deserializer.deserialize_any(Reserved)
    }
}

/// Units of sizes, and their bytes.
const UNITS: [(&str, u64); 6] = [
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

/// A number of bytes, written with a unit: `500MB`, `4GB`, `1TiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

/// Why a text is not a size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a size: expected a whole number and MB, GB, TB, MiB, GiB or TiB, as `500MB` or `4GB`"
)]
pub struct SizeError(String);

impl FromStr for Size {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        let refused = || SizeError(text.chars().take(40).collect());
        let unit_at = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(refused)?;
        let (number, unit) = text.split_at(unit_at);
        let (_, bytes) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(refused)?;
        let number: u64 = number.parse().map_err(|_| refused())?;
        number.checked_mul(*bytes).map(Self).ok_or_else(refused)
    }
}

impl fmt::Display for Size {
    /// Uses the largest unit that divides it evenly. A parsed size always has one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |(_, bytes): &&(&str, u64)| self.0.is_multiple_of(*bytes);
        match UNITS.iter().filter(fits).max_by_key(|(_, bytes)| bytes) {
            Some((unit, bytes)) => write!(f, "{}{unit}", self.0 / bytes),
            None => write!(f, "{} bytes", self.0),
        }
    }
}

/// The value of `storage.keep` with which no block is dropped.
const ALL: &str = "all";

impl Serialize for Keep {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::All => serializer.serialize_str(ALL),
            Self::Blocks(blocks) => serializer.serialize_u64(blocks),
            Self::Bytes(bytes) => serializer.collect_str(&Size(bytes)),
        }
    }
}

impl<'de> Deserialize<'de> for Keep {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeptBlocks;

        impl Visitor<'_> for KeptBlocks {
            type Value = Keep;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(
                    f,
                    "a number of blocks, {} or more, a size for each validator, {} or more, as \
                     `4GB`, or `{ALL}`",
                    Keep::MIN_BLOCKS,
                    Size(Keep::MIN_BYTES)
                )
            }

            fn visit_u64<E: Error>(self, blocks: u64) -> Result<Keep, E> {
                let other = || E::invalid_value(Unexpected::Unsigned(blocks), &self);
                (blocks >= Keep::MIN_BLOCKS).then_some(Keep::Blocks(blocks)).ok_or_else(other)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Keep, E> {
                if text == ALL {
                    return Ok(Keep::All);
                }
                match text.parse() {
                    Ok(Size(bytes)) if bytes >= Keep::MIN_BYTES => Ok(Keep::Bytes(bytes)),
                    _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
                }
            }
        }

        deserializer.deserialize_any(KeptBlocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_written() {
        for (text, bytes) in [("64MB", 64_000_000), ("4GB", 4_000_000_000), ("1GiB", 1 << 30)] {
            assert_eq!(text.parse(), Ok(Size(bytes)));
            assert_eq!(Size(bytes).to_string(), text);
        }
        for text in ["", "4", "GB", "4 GB", "4gb", "-4GB", "1.5GB", "20000000TB"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }
}
