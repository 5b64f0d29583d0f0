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
//! # Speed
//!
//! arkworks has the field, the curve and the reference; prover and batch verifier are our own
//! because a devnet proves on the same two cores that run its validators. The target is a proof in
//! a third of arkworks' time, measured in one run by `benches/proof.rs`: 31.7 ms against 97.8 ms
//! when it was measured last (docs/performance.md).
//!
//! # Unfit for anything but a devnet
//!
//! Anyone who knows the numbers that a setup draws can prove anything. Here they follow from a seed
//! in the devnet's configuration, so that every start of it has the same keys, and anyone who can
//! read the configuration can forge proofs. A real chain draws them in a ceremony with many
//! participants, at least one of whom has to forget them.

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
