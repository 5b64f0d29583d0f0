//! The values of a topology file. Each type rejects invalid input with an error that states what is
//! valid.

use super::MAX_BLOCK_TIME_SECS;
use cowboy_engine::{primitives::Wei, registry::JobKind};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, Unexpected, Visitor},
};
use std::{fmt, str::FromStr, time::Duration};

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

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = Name;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a name: {NAME}")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Name, E> {
                text.parse().map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
            }
        }

        deserializer.deserialize_str(Text)
    }
}

/// Why a text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a duration: expected a number and ms, s, m or h, as `250ms` or `2m`, from 0ms to \
     10000h"
)]
pub struct DurationError(String);

/// A duration such as `250ms`, `1s`, `1.5s`, `2m` or `1h`; never more than 10,000 hours.
///
/// jiff's parser also takes signs, several units, names of units and ISO 8601; a topology has one
/// form.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let refused = || DurationError(text.chars().take(40).collect());
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(refused)?;
    let (number, unit) = text.split_at(unit_at);
    let unit_ms: u64 = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(refused()),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |t: &str| !t.is_empty() && t.len() <= 9 && t.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return Err(refused());
    }
    let parse = |t: &str| t.parse::<u64>().expect("at most nine digits");
    let scale = 10u64.pow(fraction.len() as u32);
    let nanos = u128::from(parse(whole)) * u128::from(unit_ms) * 1_000_000
        + u128::from(parse(fraction)) * u128::from(unit_ms) * 1_000_000 / u128::from(scale);
    let limit = Duration::from_secs(10_000 * 3_600);
    u64::try_from(nanos)
        .map(Duration::from_nanos)
        .ok()
        .filter(|duration| *duration <= limit)
        .ok_or_else(refused)
}

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

impl<'de> Deserialize<'de> for BlockTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = BlockTime;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a duration from 0ms to {MAX_BLOCK_TIME_SECS}s, as 250ms or 1s")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<BlockTime, E> {
                text.parse().map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
            }
        }

        deserializer.deserialize_any(Text)
    }
}

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

/// A whole number from `MIN` to `MAX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Within<const MIN: u64, const MAX: u64>(u64);

impl<const MIN: u64, const MAX: u64> Within<MIN, MAX> {
    /// The number, where it lies in the range.
    pub const fn new(number: u64) -> Option<Self> {
        if number >= MIN && number <= MAX { Some(Self(number)) } else { None }
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl<const MIN: u64, const MAX: u64> Serialize for Within<MIN, MAX> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for Within<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number<const MIN: u64, const MAX: u64>;

        impl<const MIN: u64, const MAX: u64> Visitor<'_> for Number<MIN, MAX> {
            type Value = Within<MIN, MAX>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a whole number from {MIN} to {MAX}")
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
                Within::new(number)
                    .ok_or_else(|| E::invalid_value(Unexpected::Unsigned(number), &self))
            }
        }

        deserializer.deserialize_any(Number)
    }
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

impl From<RunnerKind> for JobKind {
    fn from(kind: RunnerKind) -> Self {
        match kind {
            RunnerKind::Custom => Self::Custom,
            RunnerKind::Http => Self::Http,
            RunnerKind::Llm => Self::Llm,
            RunnerKind::Mcp => Self::Mcp,
            RunnerKind::EthSend => Self::EthSend,
        }
    }
}

impl fmt::Display for RunnerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(JobKind::from(*self).name())
    }
}
