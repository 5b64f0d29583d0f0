//! The chain: blocks, transactions, and the effects of executing them.

pub mod actors;
pub mod admission;
pub mod block;
pub mod committee;
pub mod dry_run;
pub mod event;
pub mod genesis;
pub mod outlook;
pub mod params;
pub mod receipt;
pub mod state;
pub mod state_proof;
pub mod tasks;
pub mod testing;
pub mod timers;
pub mod transaction;
pub mod transition;

pub use actors::{Actor, ActorCode, Language, StoreKey};
pub use block::{Block, Certificate, Executed, Header, OpenAncestor, Round, Vote};
pub use committee::{GenesisValidator, MAX_VALIDATORS, Roster, SubsetEpoch};
pub use dry_run::{
    AgentTrial, DryRun, StoreChange, Traced, TracedCall, Trial, dry_run, dry_run_agent, dry_run_on,
};
pub use event::{Event, EventKind};
pub use genesis::{Endowment, Genesis, GenesisError, GenesisRunner};
pub use outlook::{Fate, Outlook, Prospect, Quote, QuoteError, Unasked, outlook, quote};
pub use params::Params;
pub use receipt::{ActorReceipt, Charged, Fire, LaneReport, Receipt, ReceiptStatus};
pub use state::{Account, Burned, KnownPresence, MoneyError, PARTS, State, Supply};
pub use state_proof::{
    Evidence, Found, MAX_PROOF_BYTES, ProvedEntry, ProvedStatement, StateProof, StateProofError,
    Subject,
};
pub use tasks::{
    ClaimTask, CompleteTask, CreateCommitment, CreateTask, ResolveCommitment, Scheme, Task,
    TaskClaim, TaskCommitment, TaskParams, TaskStatus, inputs_digest, statement_agent,
    statement_task,
};
pub use testing::{Setup, Suite};
pub use timers::Lane;
pub use transaction::{Fees, Payload, SignedTransaction, Transaction};
pub use transition::{
    CallFailure, Derived, DrawRecord, Execution, ExecutionError, FailedMessage, FailureKind,
    MAX_DELIVERIES, MAX_WAITING_BYTES, TaskError, check_completion, execute, execute_on,
};

#[cfg(test)]
mod tests;
