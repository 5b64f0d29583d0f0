//! The basis of every other module: identities, hashes, quantities, the codec, JSON's tokens,
//! Python's CBOR and the persistent Merkle map. Nothing here knows a rule of the protocol beyond
//! its units.

pub mod address;
pub mod amount;
pub mod cbor;
pub mod codec;
pub mod hash;
pub mod height;
pub mod json;
pub mod key;
pub mod merkle;
pub mod shortfall;

pub use address::Address;
pub use amount::{CBY, Cells, Cycles, InCby, Wei};
pub use hash::{Hash, keccak256};
pub use height::Height;
pub use key::{KeyError, PublicKey, SecretKey, Signature};
pub use shortfall::Shortfall;
