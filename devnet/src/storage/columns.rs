//! Values in the columns of the store's tables.

use super::StorageError;
use cowboy_engine::primitives::{
    Hash, Height,
    codec::{Decode, Encode, from_slice},
};
use rusqlite::Row;

pub(super) fn decode<T: Encode + Decode>(
    record: &'static str,
    height: Height,
    bytes: &[u8],
) -> Result<T, StorageError> {
    from_slice(bytes).map_err(|error| StorageError::Corrupt { record, height: height.get(), error })
}

/// Clamps a height to SQLite's integers, which end at 2^63 − 1: no block has a higher one.
pub(super) fn signed(height: Height) -> i64 {
    i64::try_from(height.get()).unwrap_or(i64::MAX)
}

pub(super) fn height(row: &Row<'_>, column: usize) -> rusqlite::Result<Height> {
    row.get(column).map(Height::new)
}

pub(super) fn hash(row: &Row<'_>, column: usize) -> rusqlite::Result<Hash> {
    row.get(column).map(Hash)
}

/// The first 8 bytes of a hash, such that the order of integers is that of hashes.
pub(super) fn prefix(hash: &Hash) -> i64 {
    let (first, _) = hash.0.split_first_chunk().expect("a hash has 32 bytes");
    i64::from_be_bytes(*first) ^ i64::MIN
}
