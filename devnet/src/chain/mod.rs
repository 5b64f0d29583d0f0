//! One validator's chain: what it has executed, what waits to be, and what it tells others of it.

pub mod anchor;
#[cfg(test)]
mod fixture;
pub mod gossip;
pub mod known;
pub mod ledger;
pub mod mempool;
pub mod reveals;
