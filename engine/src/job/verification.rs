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
    /// Equal bytes.
    Deterministic,
}

impl VerificationMode {
    /// The mode's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::EconomicBond => "economic_bond",
            Self::Deterministic => "deterministic",
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
            "deterministic" => Ok(Self::Deterministic),
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

/// Which results agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreement {
    /// The verified one.
    pub winner: usize,
    /// All that agree with it, itself included.
    pub agreeing: Vec<usize>,
}

impl Verification {
    /// The one runner's result is taken.
    pub const fn none() -> Self {
        Self { mode: VerificationMode::None, runners: 1 }
    }

    /// What cannot stand.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let single = self.mode != VerificationMode::Deterministic;
        match single && self.runners != 1 || self.runners == 0 {
            true => Err(("verification.runners", format!("is {}", self.runners))),
            false => Ok(()),
        }
    }

    /// How many have to agree.
    pub const fn needed(&self) -> usize {
        self.runners as usize / 2 + 1
    }

    /// Which results agree; `None`: too few.
    pub fn agree(&self, results: &[&[u8]]) -> Option<Agreement> {
        (0..results.len()).find_map(|winner| {
            let same = |i: &usize| results[*i] == results[winner];
            let agreeing: Vec<usize> = (0..results.len()).filter(same).collect();
            (agreeing.len() >= self.needed()).then_some(Agreement { winner, agreeing })
        })
    }
}
