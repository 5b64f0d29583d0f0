//! How a result becomes the verified one (spec jobs.md §5).

use crate::{
    primitives::codec::{Decode, DecodeError, Encode, Reader, Writer},
    record,
};

/// How a result becomes the verified one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerificationMode {
    /// The one runner's result is taken.
    None,
    /// The one runner's result is taken; a wrong one is slashable.
    EconomicBond,
}

impl VerificationMode {
    /// The mode's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::EconomicBond => "economic_bond",
        }
    }
}

impl Encode for VerificationMode {
    fn encode(&self, w: &mut Writer) {
        w.text(self.name());
    }
}

impl Decode for VerificationMode {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match r.text(32)? {
            "none" => Ok(Self::None),
            "economic_bond" => Ok(Self::EconomicBond),
            _ => Err(DecodeError::Invalid("unknown verification mode")),
        }
    }
}

/// Verification asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verification {
    /// How.
    pub mode: VerificationMode,
    /// M, the size of the committee. Both modes here take exactly 1.
    pub runners: u32,
}
record!(Verification { mode, runners });
