//! The chain: what a block is, what a transaction is, and what executing them does.

pub mod block;
pub mod event;
pub mod genesis;
pub mod params;
pub mod receipt;
pub mod state;
pub mod transaction;
pub mod transition;

pub use block::{Block, Certificate, Executed, Header, Open, Round, Vote};
pub use event::{Event, EventKind};
pub use genesis::{Endowment, Genesis, GenesisError, GenesisRunner, Validator};
pub use params::Params;
pub use receipt::{Receipt, Status};
pub use state::{Account, KnownPresence, State, Supply};
pub use transaction::{Fees, Payload, SignedTransaction, Transaction};
pub use transition::{Derived, DrawRecord, Execution, ExecutionError, execute};

#[cfg(test)]
mod tests;
