//! Blocks, transactions, events, accounts.

use super::{
    ActorParameters, ActorReceipt, AddressText, AmountText, BytesText, ChainIdText, HashText,
    TimeText, TimerStatus,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// The newest finalized and executed block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Head {
    /// Its height.
    pub height: u64,
    /// Its hash.
    pub hash: HashText,
    /// When the answering validator learned that it is final; absent for genesis.
    pub finalized_at: Option<TimeText>,
}

/// Lifts the pace of blocks for a while: the chain runs as fast as consensus does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AdvanceRequest {
    /// Blocks beyond the head that are not paced: 1 to 100000.
    pub blocks: u64,
    /// When the pace returns at the latest, in milliseconds from now: 1 to 3600000.
    pub within_ms: u64,
}

/// Whether transactions get blocks at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Automine {
    /// Whether a transaction that waits gets a block without waiting for the block time.
    pub on: bool,
}

/// Blocks that are not paced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Advance {
    /// The head when the pace was lifted.
    pub from: u64,
    /// The last block that is not paced, unless another request goes further.
    pub to: u64,
}

/// The chain's parameters and limits that a signer has to know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Parameters {
    /// The chain id that every transaction carries.
    pub chain_id: ChainIdText,
    /// The height that the basefees apply to: the next block's.
    pub height: u64,
    /// The hash of the genesis block.
    pub genesis: HashText,
    /// The pace of blocks, in milliseconds.
    pub block_time_ms: u64,
    /// Blocks in a consensus epoch: epoch e begins at block e × `epoch_blocks`. The set of
    /// validators changes only when an epoch begins.
    pub epoch_blocks: u64,
    /// Wei burned per cycle.
    pub cycle_basefee: AmountText,
    /// Wei burned per cell.
    pub cell_basefee: AmountText,
    /// Maximum cycles in a block.
    pub cycle_limit: u64,
    /// Maximum cells in a block.
    pub cell_limit: u64,
    /// How votes become presence: `committee`, `quorum` or `subset`.
    pub threshold_rule: String,
    /// The source of the draws' seeds, fixed at genesis: `parent` or `certificate`. Absent in
    /// recordings of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selection_seed: Option<String>,
    /// The migration phase of that height: `shadow`, `hot-path` or `sunset`.
    pub phase: String,
    /// The first block in that phase.
    pub phase_since: u64,
    /// Validators in the set.
    pub validators: u32,
    /// Runners in the registry.
    pub runners: u32,
    /// The costs and limits of actors' work.
    pub actors: ActorParameters,
    /// The machine of actors in Python; absent if the chain has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub python: Option<PythonParameters>,
    /// How tasks are proved.
    pub proofs: ProofParameters,
    /// How far the timestamps of new blocks are ahead of the clocks of their proposers, in
    /// milliseconds.
    #[serde(default)]
    pub ahead_ms: u64,
}

/// The machine of actors in Python, and what its work costs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PythonParameters {
    /// Its id: keccak256 of everything that results and fuel depend on.
    pub machine: HashText,
    /// Fuel that a cycle buys.
    pub fuel_per_cycle: u64,
    /// Cycles of a fresh instance, which each call pays.
    pub instance: u64,
}

/// How tasks are proved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProofParameters {
    /// The kind of proof: `groth16`, or `mock`, which proves nothing.
    pub generator: String,
    /// keccak256 of the key that verifies proofs; absent for `mock`.
    pub verifying_key: Option<HashText>,
}

/// The basefees of the next block: `GET /basefee`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Basefees {
    /// The height of that block.
    pub height: u64,
    /// Wei burned per cycle.
    pub cycle: AmountText,
    /// Wei burned per cell.
    pub cell: AmountText,
}

/// A finalized block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Block {
    /// Its height; genesis is 0.
    pub height: u64,
    /// Its hash.
    pub hash: HashText,
    /// The parent's hash; zero for genesis.
    pub parent: HashText,
    /// The validator that proposed it; absent for genesis.
    pub proposer: Option<String>,
    /// The proposer's address; absent for genesis.
    pub proposer_address: Option<AddressText>,
    /// The consensus view it was proposed in.
    pub view: u64,
    /// The proposer's time, strictly increasing along the chain.
    pub timestamp: TimeText,
    /// When the answering validator learned that it is final; absent when it does not remember.
    pub finalized_at: Option<TimeText>,
    /// The root of the state after this block.
    pub state_root: HashText,
    /// The newest ancestor whose state root the header commits to.
    pub executed_height: u64,
    /// The subset epoch.
    pub subset_epoch: u64,
    /// The block's transactions, in order.
    pub transactions: Vec<BlockTransaction>,
    /// The timers that fired in it, in order.
    pub fires: Vec<BlockFire>,
    /// The heights whose finalization certificates it embeds, ascending.
    pub certificate_for: Vec<u64>,
    /// The ancestors that still lack a certificate after it, ascending.
    pub open: Vec<u64>,
    /// The events of the block, in order.
    pub events: Vec<Event>,
    /// The cycles its transactions and fires paid for.
    pub cycles_used: u64,
    /// The cells its transactions and fires paid for.
    pub cells_used: u64,
}

/// A transaction as its block shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BlockTransaction {
    /// Its hash.
    pub hash: HashText,
    /// The kind of its payload, as `transfer`.
    pub kind: String,
    /// The account that signed it.
    pub sender: AddressText,
    /// Its status.
    pub status: TransactionStatus,
}

/// A timer's fire as its block shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BlockFire {
    /// The timer.
    pub timer_id: HashText,
    /// Its owner, whose handler ran.
    pub actor: AddressText,
    /// The handler.
    pub handler: String,
    /// The height at which it was due.
    pub due_at: u64,
    /// `fired` or `failed`.
    pub status: TimerStatus,
    /// Cycles paid for.
    pub cycles: u64,
    /// Cells paid for.
    pub cells: u64,
    /// The priority that the proposer got, in wei per cycle.
    pub priority_per_cycle: AmountText,
}

/// The status of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TransactionStatus {
    /// In the mempool.
    Pending,
    /// In a finalized block, with effect.
    Success,
    /// In a finalized block, without effect except that it paid its fee and used its nonce. If it
    /// brought a proof that was refused, the commitment of that proof ended too.
    Failed,
    /// In a finalized block, void: its nonce, signature or balance was no longer valid.
    Skipped,
    /// Dropped from the mempool: replaced or too old.
    Dropped,
}

impl TransactionStatus {
    /// Its name in JSON and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Success => "success",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Dropped => "dropped",
        }
    }
}

/// A state that the chain keeps to return to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StateSnapshot {
    /// Its number.
    pub snapshot: u64,
    /// The block after which the state is kept.
    pub height: u64,
}

/// A transaction and its receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Transaction {
    /// Its hash.
    pub hash: HashText,
    /// Its status.
    pub status: TransactionStatus,
    /// The kind of its payload, as `transfer`.
    pub kind: String,
    /// The account that signed it.
    pub sender: AddressText,
    /// The sender's name, where the devnet knows one.
    pub sender_name: Option<String>,
    /// The account in whose name the sender, a system deployer, acted; absent: its own, or pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acted_as: Option<AddressText>,
    /// The number of the sender's transactions before it.
    pub nonce: u64,
    /// The most wei that timers scheduled under it may ever take from the sender; absent: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer_allowance: Option<AmountText>,
    /// The payload's fields, amounts and byte strings as text.
    #[schema(value_type = Object)]
    pub payload: serde_json::Value,
    /// The block that holds it; absent while pending.
    pub height: Option<u64>,
    /// Its index in the block; absent while pending.
    pub index: Option<u32>,
    /// The fee that it paid; absent while pending and when skipped.
    pub fee: Option<Fee>,
    /// Why it failed, was skipped or dropped: the error's name.
    pub error: Option<String>,
    /// The failure in words.
    pub message: Option<String>,
    /// The work of actors; absent while pending, and when it deployed and called no actor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<ActorReceipt>,
    /// The events it caused.
    pub events: Vec<Event>,
}

/// The fee that a transaction paid, by purpose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Fee {
    /// Cycles paid for.
    pub cycles: u64,
    /// The part of `cycles` that was bought but not used: a deployment or a call pays for a minimum
    /// share of the cycles that it buys.
    pub unused: u64,
    /// Cells used.
    pub cells: u64,
    /// The basefee part, burned.
    pub burned: AmountText,
    /// The priority part, to the proposer.
    pub tip: AmountText,
}

/// Something that happened in a block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// The block's height.
    pub height: u64,
    /// The event's index in the block.
    pub index: u32,
    /// The event's name, as `JobAssigned`.
    pub kind: String,
    /// The transaction that caused it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transaction: Option<HashText>,
    /// The timer whose fire caused it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer: Option<HashText>,
    /// The job it is about, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<HashText>,
    /// The timer it is about, or the timer that caused it by firing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer_id: Option<HashText>,
    /// The event's own fields, amounts and byte strings as text.
    #[schema(value_type = Object)]
    pub data: serde_json::Value,
}

/// Which events `GET /v1/chain/events` lists.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct EventQuery {
    /// The first height (default 0).
    pub from: Option<u64>,
    /// Only events of this name.
    pub kind: Option<String>,
    /// The maximum number of events (default 1,000, at most 10,000; a block's events are never
    /// split).
    pub limit: Option<usize>,
}

/// A run of events in the order they happened. A page never ends within a block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EventPage {
    /// The events.
    pub events: Vec<Event>,
    /// The height to continue from; absent when the page reaches the head.
    pub next: Option<u64>,
}

/// The position at which `GET /v1/events` starts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct StreamQuery {
    /// The first height; without it, and without `Last-Event-ID`, the next block.
    pub from: Option<u64>,
}

/// One message of the event stream: a block that is final and executed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BlockNotice {
    /// Its height.
    pub height: u64,
    /// Its hash.
    pub hash: HashText,
    /// The validator that proposed it.
    pub proposer: Option<String>,
    /// The consensus view it was proposed in.
    pub view: u64,
    /// When the answering validator learned that it is final.
    pub finalized_at: Option<TimeText>,
    /// The number of its transactions.
    pub transactions: u32,
    /// The number of timers that fired in it.
    pub fires: u32,
    /// The heights whose finalization certificates it embeds, ascending.
    pub certificate_for: Vec<u64>,
    /// The number of runners in the block's presence.
    pub present: u32,
    /// The number of registered runners.
    pub registry_len: u32,
    /// The events of the block, in order.
    pub events: Vec<Event>,
}

/// Gives an account a name on this devnet. The chain does not know the name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AccountRequest {
    /// The name.
    pub name: String,
    /// The account.
    pub address: AddressText,
}

/// An account on the chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Account {
    /// Its name on this devnet; absent for an address that only transactions made known.
    pub name: Option<String>,
    /// Its address.
    pub address: AddressText,
    /// Its balance in wei, without escrow and stake.
    pub balance: AmountText,
    /// The number of its transactions in blocks.
    pub nonce: u64,
    /// The nonce for its next transaction, after those in the mempool.
    pub next_nonce: u64,
}

/// A signed transaction for the mempool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TransactionRequest {
    /// The signed transaction in its canonical encoding.
    pub transaction: BytesText,
}

/// The mempool took the transaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TransactionAccepted {
    /// The transaction's hash.
    pub hash: HashText,
    /// Whether it had been accepted before. If it was signed just now, another process has used the
    /// same nonce for the same transaction, which takes effect only once.
    pub known: bool,
}

/// The wei burned since genesis, by purpose. The parts add up to the total.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Burned {
    /// The block after which these are the totals.
    pub height: u64,
    /// The sum of the parts.
    pub total: AmountText,
    /// Basefees of transactions, for cycles and cells.
    pub transactions: AmountText,
    /// Basefees of timers' fires, for cycles and cells.
    pub timers: AmountText,
    /// Payments of timers' owners for questions to their agents.
    pub questions: AmountText,
    /// Payments of actors for callbacks at the ends of jobs.
    pub callbacks: AmountText,
    /// Amounts slashed from stakes, balances and bonds.
    pub penalties: AmountText,
    /// The part of `timers` and `questions` that is the lane's own basefee, which only `eip1559`
    /// has.
    pub lane_basefee: AmountText,
}
