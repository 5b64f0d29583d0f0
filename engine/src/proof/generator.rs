//! Which kind of proof a chain asks for.

use crate::names;

/// A way of making proofs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Generator {
    /// Real ones: Groth16 over BN254.
    #[default]
    Groth16,
    /// Hashes in their shape, which prove nothing ([`super::mock`]).
    Mock,
    /// Not available.
    Plonk,
    /// Not available.
    Stark,
}

names!(Generator: Groth16 = "groth16", Mock = "mock", Plonk = "plonk", Stark = "stark");

impl Generator {
    /// How many of [`ALL`](Self::ALL), the first, are available.
    pub const AVAILABLE: usize = 2;
}
