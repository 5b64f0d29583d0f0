//! Fee markets: what a unit of gas costs in the next block, and what uses how much of it (spec
//! chain.md, "Fees").

pub mod basefee;
pub mod meter;
