//! Conversions from protocol values to the API's types, by hand because the protocol's types do not
//! implement serde.

pub(super) mod actor;
pub(crate) mod draw;
pub(super) mod event;
pub(crate) mod evidence;
pub(crate) mod job;
pub(super) mod timer;
pub(super) mod transaction;

use cowboy_engine::primitives::{Address, Height, Wei};
use serde_json::Value;

pub(super) fn hex(bytes: &[u8]) -> Value {
    format!("0x{}", hex::encode(bytes)).into()
}

pub(super) fn optional_hex(bytes: Option<&Vec<u8>>) -> Value {
    bytes.map_or(Value::Null, |bytes| hex(bytes))
}

pub(super) fn amount(wei: Wei) -> Value {
    wei.get().to_string().into()
}

pub(super) fn address(address: &Address) -> Value {
    address.to_string().into()
}

pub(super) fn height(height: Height) -> Value {
    height.get().into()
}

/// A length as `u32`, saturating; the chain's bounds are far below the limit.
pub(crate) fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}
