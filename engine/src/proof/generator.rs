//! Which kind of proof a devnet asks for.

use std::{fmt, str::FromStr};

/// A way of making proofs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generator {
    /// Real ones: Groth16 over BN254.
    Groth16,
    /// Hashes in their shape, which prove nothing ([`super::mock`]).
    Mock,
}

/// Why a name is no generator's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GeneratorError {
    /// One that is spoken of, and that nobody has built.
    #[error(
        "proof generator `{0}` is not available: use `groth16`, or `mock`, which proves nothing"
    )]
    NotAvailable(&'static str),
    /// No generator.
    #[error("no proof generator `{0}`: there are `groth16` and `mock`, which proves nothing")]
    Unknown(String),
}

impl Generator {
    /// All that there are.
    pub const ALL: [Self; 2] = [Self::Groth16, Self::Mock];

    /// The generator's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Groth16 => "groth16",
            Self::Mock => "mock",
        }
    }
}

impl fmt::Display for Generator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Generator {
    type Err = GeneratorError;

    fn from_str(name: &str) -> Result<Self, GeneratorError> {
        match name {
            "groth16" => Ok(Self::Groth16),
            "mock" => Ok(Self::Mock),
            "plonk" => Err(GeneratorError::NotAvailable("plonk")),
            "stark" => Err(GeneratorError::NotAvailable("stark")),
            other => Err(GeneratorError::Unknown(other.to_owned())),
        }
    }
}
