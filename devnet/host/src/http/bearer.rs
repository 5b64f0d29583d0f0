//! Tokens that requests show as `Authorization: Bearer TOKEN`.

use axum::http::{HeaderMap, header::AUTHORIZATION};
use sha3::{Digest as _, Keccak256};

const SCHEME: &[u8] = b"bearer ";

/// The token that a request shows; `None` without a header of this form.
pub fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.as_bytes().split_at_checked(SCHEME.len())?;
    scheme.eq_ignore_ascii_case(SCHEME).then_some(token)
}

/// Whether a token is the expected one. Compares digests, so that the time of the comparison
/// reveals nothing about the token.
pub fn is_token(expected: &str, got: &[u8]) -> bool {
    same_hash(&Keccak256::digest(got).into(), &Keccak256::digest(expected).into())
}

/// Whether two hashes are equal, in constant time.
pub fn same_hash(a: &[u8; 32], b: &[u8; 32]) -> bool {
    a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}
