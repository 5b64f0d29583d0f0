//! The values of a topology file. Each type rejects invalid input with an error that states what is
//! valid.

use super::MAX_BLOCK_TIME_SECS;
use crate::types::same;
use cowboy_engine::{primitives::Wei, registry::JobKind};
use cowboy_host::{duration::parse_duration, within::Within};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, Error, Unexpected, Visitor},
};
use std::{fmt, str::FromStr, time::Duration};

/// Reads a value from a text with its [`FromStr`]; errors say what is expected.
macro_rules! from_text {
    ($name:ident, $deserialize:ident, $expected:literal) => {
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;

                impl de::Visitor<'_> for Text {
                    type Value = $name;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        write!(f, $expected)
                    }

                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$name, E> {
                        let other = |_| E::invalid_value(de::Unexpected::Str(text), &self);
                        text.parse().map_err(other)
                    }
                }

                deserializer.$deserialize(Text)
            }
        }
    };
}

/// Converts both ways between a section of numbers and the parameters that they set.
macro_rules! numbers {
    ($section:ident, $params:ident: $engine:ident = $($field:ident: $($place:ident).+),*) => {
        impl Default for $section {
            fn default() -> Self {
                Self::of(&$engine::DEFAULT)
            }
        }

        impl $section {
            /// The section for a genesis' parameters. Its values lie in the ranges of the file.
            pub fn of(params: &$engine) -> Self {
                Self { $($field: super::value::within(params.$($place).+)),* }
            }

            /// The parameters for the genesis.
            pub const fn $params(&self) -> $engine {
                let mut params = $engine::DEFAULT;
                $(params.$($place).+ = self.$field.get();)*
                params
            }
        }
    };
}

pub(super) use {from_text, numbers};

/// The name of a devnet, node or account: 1 to 32 of `a-z`, `0-9` and `-`, the first not `-`.
/// It names folders and derives keys.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

impl Name {
    /// The name of number `index` in a numbered series: `prefix-index`. The prefix is a short
    /// constant of the program.
    pub fn numbered(prefix: &str, index: usize) -> Self {
        Self(format!("{prefix}-{index}"))
    }

    /// The name's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Why a text is not a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a name: expected {NAME}")]
pub struct NameError(String);

const NAME: &str = "1 to 32 of a-z, 0-9 and -, the first not -";

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let fits = (1..=32).contains(&text.len())
            && text.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-'))
            && !text.starts_with('-');
        fits.then(|| Self(text.to_owned()))
            .ok_or_else(|| NameError(text.chars().take(40).collect()))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

from_text!(Name, deserialize_str, "a name: {NAME}");

/// The pace of blocks, in whole milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockTime(Duration);

impl BlockTime {
    /// The pace as a duration.
    pub const fn get(self) -> Duration {
        self.0
    }
}

impl Default for BlockTime {
    /// 1 s (spec chain.md, "Blocks and consensus").
    fn default() -> Self {
        Self(Duration::from_secs(1))
    }
}

impl FromStr for BlockTime {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let duration = parse_duration(text).map_err(|error| error.to_string())?;
        let whole = duration.subsec_nanos().is_multiple_of(1_000_000);
        if !whole || duration > Duration::from_secs(MAX_BLOCK_TIME_SECS) {
            return Err(format!(
                "`{text}` is not a block time: expected whole milliseconds from 0ms to \
                 {MAX_BLOCK_TIME_SECS}s"
            ));
        }
        Ok(Self(duration))
    }
}

impl fmt::Display for BlockTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ms", self.0.as_millis())
    }
}

impl Serialize for BlockTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

from_text!(
    BlockTime,
    deserialize_any,
    "a duration from 0ms to {MAX_BLOCK_TIME_SECS}s, as 250ms or 1s"
);

/// An amount of money: wei, or CBY as `1.5cby`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Amount(pub Wei);

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}wei", self.0))
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = Amount;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an amount: wei as 1500, or CBY as 1.5cby")
            }

            fn visit_u64<E: Error>(self, wei: u64) -> Result<Amount, E> {
                Ok(Amount(Wei::new(wei.into())))
            }

            fn visit_u128<E: Error>(self, wei: u128) -> Result<Amount, E> {
                Ok(Amount(Wei::new(wei)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Amount, E> {
                text.parse().map(Amount).map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
            }
        }

        deserializer.deserialize_any(Text)
    }
}

/// A number of a plan.
pub(super) fn within<const MIN: u64, const MAX: u64>(number: u64) -> Within<MIN, MAX> {
    Within::new(number).expect("a plan's numbers lie in the ranges of the file")
}

/// A kind of job that a runner of a devnet takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunnerKind {
    /// A command run in a fresh directory.
    Custom,
    /// An HTTP request.
    Http,
    /// A language model's answer.
    Llm,
    /// A call of a tool through the Model Context Protocol.
    Mcp,
    /// A signed Ethereum transaction that is sent.
    EthSend,
}

impl RunnerKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::Custom, Self::Http, Self::Llm, Self::Mcp, Self::EthSend];
}

same!(RunnerKind = JobKind: Custom, Http, Llm, Mcp, EthSend);

impl fmt::Display for RunnerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(JobKind::from(*self).name())
    }
}
