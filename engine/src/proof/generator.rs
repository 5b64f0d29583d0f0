//! The kind of proof that a chain asks for.

use crate::names;

/// A way of making proofs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Generator {
    /// Real proofs: Groth16 over BN254.
    #[default]
    Groth16,
    /// Hashes in the shape of proofs, which prove nothing ([`super::mock`]).
    Mock,
    Plonk,
    Stark,
}

names!(Generator: Groth16 = "groth16", Mock = "mock", Plonk = "plonk", Stark = "stark");

impl Generator {
    /// The number of available generators, which are the first of [`ALL`](Self::ALL).
    pub const AVAILABLE: usize = 2;
}
