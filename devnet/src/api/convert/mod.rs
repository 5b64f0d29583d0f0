//! Conversions from protocol values to the API's types, by hand because the protocol's types do not
//! implement serde.

/// The JSON object of some variables under their names.
macro_rules! fields {
    ($($name:ident),* $(,)?) => {
        serde_json::json!({
            $((stringify!($name)): $crate::api::convert::ToJson::to_json($name)),*
        })
    };
}

/// Shows structs as objects with all their fields.
macro_rules! records {
    ($($name:ident { $($field:ident),* })*) => {
        $(impl $crate::api::convert::ToJson for $name {
            fn to_json(&self) -> serde_json::Value {
                let Self { $($field),* } = self;
                fields!($($field),*)
            }
        })*
    };
}

pub(super) mod actor;
pub(crate) mod draw;
pub(super) mod event;
pub(crate) mod evidence;
pub(crate) mod job;
pub(super) mod timer;
pub(super) mod transaction;

use cowboy_engine::{
    job::spec::{CommandDelivery, FailureReason, SlashReason},
    presence::Phase,
    primitives::{Address, Hash, Height, PublicKey, Signature, Wei},
    proof::Element,
    registry::JobKind,
    speculation::RollbackReason,
    timer::{Policy, Tier},
};
use serde_json::Value;

/// A field of an event, a transaction or a job as JSON: amounts are decimal strings, byte strings
/// 0x-hex, absent values null.
pub(super) trait ToJson {
    fn to_json(&self) -> Value;
}

impl<T: ToJson> ToJson for Option<T> {
    fn to_json(&self) -> Value {
        self.as_ref().map_or(Value::Null, ToJson::to_json)
    }
}

impl<T: ToJson> ToJson for Vec<T> {
    fn to_json(&self) -> Value {
        self.iter().map(ToJson::to_json).collect()
    }
}

macro_rules! shown {
    ($($value:ident: $($ty:ty),+ => $json:expr;)+) => {
        $($(impl ToJson for $ty {
            fn to_json(&self) -> Value {
                let $value = self;
                $json.into()
            }
        })+)+
    };
}

shown! {
    number: u32, u64, bool => *number;
    height: Height => height.get();
    wei: Wei => wei.get().to_string();
    text: String => text.as_str();
    hex: Address, Hash, PublicKey, Element => hex.to_string();
    name: JobKind, Phase, Policy, Tier, CommandDelivery => name.name();
    reason: FailureReason, SlashReason, RollbackReason => reason.name();
    bytes: Vec<u8>, [u8; 32] => format!("0x{}", hex::encode(bytes));
    signature: Signature => format!("0x{}", hex::encode(signature.as_bytes()));
    pair: (String, String) => vec![pair.0.to_json(), pair.1.to_json()];
}

/// A length as `u32`, saturating; the chain's bounds are far below the limit.
pub(crate) fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}
