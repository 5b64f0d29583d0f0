//! `chain.python`: the machine of actors in Python.

use super::value::from_text;
use crate::machines;
use cowboy_engine::primitives::Hash;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::{fmt, str::FromStr};

/// The machine that a chain's genesis names for actors in Python.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PythonMachine {
    /// The one that was installed last, if there is one when the chain is made.
    #[default]
    Auto,
    /// None: the chain refuses actors in Python.
    Off,
    /// The one with this tuple.
    Tuple(Hash),
}

impl PythonMachine {
    /// The tuple that this names on this host now.
    pub fn settled(self) -> Option<Hash> {
        match self {
            Self::Auto => machines::newest().unwrap_or_else(|error| {
                tracing::warn!(%error, "the new chain has no actors in Python");
                None
            }),
            Self::Off => None,
            Self::Tuple(tuple) => Some(tuple),
        }
    }
}

const EXPECTED: &str = "auto, off, or the 0x-hex id of a machine";

impl FromStr for PythonMachine {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "off" => Ok(Self::Off),
            _ => {
                let mut id = [0; 32];
                let digits = text.strip_prefix("0x");
                digits
                    .filter(|digits| hex::decode_to_slice(digits, &mut id).is_ok())
                    .map(|_| Self::Tuple(Hash(id)))
                    .ok_or_else(|| format!("expected {EXPECTED}"))
            }
        }
    }
}

impl fmt::Display for PythonMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Off => f.write_str("off"),
            Self::Tuple(id) => write!(f, "{id}"),
        }
    }
}

impl Serialize for PythonMachine {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

from_text!(PythonMachine, deserialize_str, "{EXPECTED}");
