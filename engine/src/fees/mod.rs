//! Fee markets: the price of a unit of gas in the next block, and the gas that each kind of
//! transaction uses (spec chain.md, "Fees").

pub mod basefee;
pub mod meter;
