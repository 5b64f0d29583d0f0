//! Groth16 over BN254 (Groth 2016, <https://eprint.iacr.org/2016/260>), for this one circuit.
//!
//! | file | subject |
//! |---|---|
//! | [`keys`] | the setup, keys and their forms |
//! | [`prover`] | from a witness to a proof |
//! | [`quotient`] | the quotient polynomial, over a domain that fits the circuit |
//! | `sums` | sums of multiples of a key's points, fast |
//! | `tables` | a prover as bytes, for another process |
//! | [`verifier`] | one proof, and all of a block's at once |
//!
//! # Unfit for anything but a devnet
//!
//! Whoever knows the numbers that a setup draws can prove whatever they like. Here they follow from
//! a seed that stands in the devnet's configuration, so that every start of it has the same keys,
//! and anybody who can read that can forge. A real chain draws them in a ceremony of many, of whom
//! one has to forget.

pub mod keys;
pub mod prover;
pub mod quotient;
mod sums;
mod tables;
pub mod verifier;

pub use keys::{ProvingKey, VerifyingKey};
pub use prover::Prover;
pub use quotient::Reduction;
pub use verifier::ProofError;
