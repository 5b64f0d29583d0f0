//! Proofs that an agent knows a task's output (spec speculation.md, Proofs).
//!
//! A proof of the generator `groth16` states: for this task, this agent has an output with this
//! hash (`constraint_hash`) and this commitment. It is 388 bytes and takes a millisecond to check.
//! A proof of `mock` has the same length, consists of hashes and proves nothing.
//!
//! The proof itself reveals nothing about the output, but the public inputs do: `constraint_hash`
//! has no salt because a task asks for an output by this hash. So equal outputs are linkable across
//! tasks and agents, and a guess at an output can be tested. `output_commitment` is salted and
//! permits neither.
//!
//! | file | subject |
//! |---|---|
//! | [`generator`] | the kinds of proof |
//! | [`poseidon2`], `constants` | the permutation, generic over arithmetic, and its parameters |
//! | [`statement`] | field elements, their hashes, statements and witnesses |
//! | [`circuit`] | the same as constraints |
//! | [`points`] | points of the curves as bytes |
//! | [`format`](mod@format) | proofs as bytes |
//! | [`groth16`] | keys, proving, verifying |
//! | [`mock`] | hashes that prove nothing |
//!
//! Randomness is an argument, everywhere; nothing here starts a thread.

pub mod circuit;
mod constants;
pub mod format;
pub mod generator;
pub mod groth16;
pub mod mock;
pub mod points;
mod poseidon2;
pub mod statement;

pub use format::{FormatError, PROOF_BYTES, Proof};
pub use generator::Generator;
pub use groth16::{ProofError, Prover, ProvingKey, VerifyingKey};
pub use points::PointError;
pub use statement::{Element, Statement, Witness, hash_2, hash_4, permute};

#[cfg(test)]
mod tests;
