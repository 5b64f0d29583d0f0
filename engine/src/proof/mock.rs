//! `mock`: a hash in the shape of a proof, for devnets that would rather not wait for proving.
//!
//! It proves nothing: anyone who has the key, as every validator does, can make one for any
//! statement. Its first 256 bytes are keccak256 hashes over their own domain name, the key, the
//! statement and a counter; the rest is that of a proof.

use super::{
    format::{FormatError, POINTS_BYTES, PROOF_BYTES, frame},
    groth16::ProofError,
    statement::Statement,
};
use crate::primitives::{codec::to_vec, keccak256};

/// Separates these hashes from all others.
const DOMAIN: &[u8] = b"cowboy/proof/mock/v1";

/// The mock proof of the statement, under this key.
pub fn prove(key: &[u8; 32], statement: &Statement) -> [u8; PROOF_BYTES] {
    let statement_bytes = to_vec(statement);
    let hashes = 0..(POINTS_BYTES / 32) as u32;
    let points: Vec<u8> = hashes
        .flat_map(|i| keccak256(&[DOMAIN, key, &statement_bytes, &i.to_be_bytes()]).0)
        .collect();
    frame(&points, statement)
}

/// Checks that `bytes` are the mock proof of the statement, under this key.
pub fn verify(key: &[u8; 32], statement: &Statement, bytes: &[u8]) -> Result<(), ProofError> {
    if bytes.len() != PROOF_BYTES {
        return Err(FormatError::Length { got: bytes.len() }.into());
    }
    if bytes == prove(key, statement) { Ok(()) } else { Err(ProofError::Invalid) }
}
