//! One validator's chain: executed blocks, waiting transactions, and gossip to other validators.

pub mod anchor;
#[cfg(test)]
mod fixture;
pub mod gossip;
pub mod known;
pub mod ledger;
pub mod mempool;
pub mod reveals;
