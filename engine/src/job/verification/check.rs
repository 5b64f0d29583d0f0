//! The checks that a submitter can ask of `structured_match`.

use super::MAX_POINTER;
use crate::{
    job::json::Pointer,
    primitives::codec::{Decode, DecodeError, Encode, Reader, Writer},
};

/// One check. Fields are JSON pointers (RFC 6901), numbers are decimals in JSON's notation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// Every result passes this JSON Schema, in the subset of [`schema`](crate::job::schema).
    Schema(String),
    /// Results that agree have equal values at this field.
    Equal(String),
    /// Results that agree have numbers at `field` that differ by at most `within`.
    Tolerance {
        field: String,
        /// The maximum difference, 0 or more.
        within: String,
    },
    /// Every result has a number at `field`, from `least` to `most`.
    Range { field: String, least: String, most: String },
    /// Results that agree have, at this field, the value of more than half of the results that
    /// pass.
    Majority(String),
}

impl Check {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Schema(_) => "schema",
            Self::Equal(_) => "equal",
            Self::Tolerance { .. } => "tolerance",
            Self::Range { .. } => "range",
            Self::Majority(_) => "majority",
        }
    }
}

/// A list of the check's name and its parameters.
impl Encode for Check {
    fn encode(&self, w: &mut Writer) {
        let texts: &[&String] = match self {
            Self::Schema(text) | Self::Equal(text) | Self::Majority(text) => &[text],
            Self::Tolerance { field, within } => &[field, within],
            Self::Range { field, least, most } => &[field, least, most],
        };
        w.list(1 + texts.len());
        w.text(self.name());
        for text in texts {
            w.text(text);
        }
    }
}

impl Decode for Check {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let len = r.list(4)?;
        Ok(match (r.text(16)?, len) {
            ("schema", 2) => Self::Schema(Decode::decode(r)?),
            ("equal", 2) => Self::Equal(Decode::decode(r)?),
            ("majority", 2) => Self::Majority(Decode::decode(r)?),
            ("tolerance", 3) => {
                Self::Tolerance { field: Decode::decode(r)?, within: Decode::decode(r)? }
            }
            ("range", 4) => Self::Range {
                field: Decode::decode(r)?,
                least: Decode::decode(r)?,
                most: Decode::decode(r)?,
            },
            _ => return Err(DecodeError::Invalid("unknown check")),
        })
    }
}

pub(super) fn pointer(text: &str) -> Result<Pointer, String> {
    if text.len() > MAX_POINTER {
        return Err(format!("is a pointer of {} bytes; {MAX_POINTER} at most", text.len()));
    }
    Pointer::parse(text).map_err(|error| error.to_string())
}
