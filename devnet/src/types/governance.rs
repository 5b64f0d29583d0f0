//! Governed parameters.

use super::AddressText;
use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// The value of a governed parameter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Setting {
    /// A number.
    Number(u64),
    /// One of a few words.
    Word(String),
}

impl Setting {
    /// The number; `None` for a word.
    pub const fn number(&self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Word(_) => None,
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Word(word) => word.fmt(f),
        }
    }
}

/// A governed parameter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GovernedParameter {
    /// Its key on the chain, as `system:cip5:lane_timer_cycles`.
    pub key: String,
    /// The topology field that sets its genesis value, as `timers.lane_timer_cycles`.
    #[serde(default)]
    pub name: String,
    /// Its value from the next block on.
    pub value: Setting,
    /// Its value at genesis.
    pub genesis: Setting,
    /// The unit of its value; `word` for a word.
    pub unit: String,
    /// The document that defines it.
    pub source: String,
    /// The minimum; absent for a word.
    pub min: Option<u64>,
    /// The maximum; absent for a word.
    pub max: Option<u64>,
    /// The allowed words; empty for a number, and for a parameter that is fixed at genesis, which
    /// has no bounds either.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// The first block with this value, if the chain stores it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
    /// Other values proposed, by height.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<PendingSetting>,
    /// Its meaning and unit.
    pub about: String,
}

/// Another value of a governed parameter, from a height on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PendingSetting {
    /// The first block with the value.
    pub height: u64,
    /// The value.
    pub value: Setting,
    /// The last proposer for that height; absent: the genesis document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<AddressText>,
}
