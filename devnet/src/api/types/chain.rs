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
    /// When the answering validator learnt that it is final; absent for genesis.
    pub finalized_at: Option<TimeText>,
}

/// Has the chain go as fast as consensus goes for a while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AdvanceRequest {
    /// Blocks beyond the head that are not paced: 1 to 100000.
    pub blocks: u64,
    /// When the pace is back at the latest, in milliseconds from now: 1 to 3600000.
    pub within_ms: u64,
}

/// Blocks that are not paced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Advance {
    /// The head when the pace was lifted.
    pub from: u64,
    /// The last block that is not paced, unless another request goes further.
    pub to: u64,
}

/// What a signer has to know about the chain, and its limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Parameters {
    /// What every transaction names.
    pub chain_id: ChainIdText,
    /// The height that the basefees hold for: the next block's.
    pub height: u64,
    /// The hash of the genesis block.
    pub genesis: HashText,
    /// The pace of blocks, in milliseconds.
    pub block_time_ms: u64,
    /// Blocks in a consensus epoch: epoch e begins at e times as many, and only then the set of
    /// validators changes.
    pub epoch_blocks: u64,
    /// Wei per cycle that is burned.
    pub cycle_basefee: AmountText,
    /// Wei per cell that is burned.
    pub cell_basefee: AmountText,
    /// Cycles in a block at most.
    pub cycle_limit: u64,
    /// Cells in a block at most.
    pub cell_limit: u64,
    /// How votes become presence: `committee`, `quorum` or `subset`.
    pub threshold_rule: String,
    /// What the seeds of draws are made of, fixed at genesis: `parent` or `certificate`. Absent in
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
    /// What actors' work costs, and how far it goes.
    pub actors: ActorParameters,
    /// How tasks are proved.
    pub proofs: ProofParameters,
}

/// How tasks are proved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProofParameters {
    /// The kind of proof: `groth16`, or `mock`, which proves nothing.
    pub generator: String,
    /// keccak256 of the key that proofs are checked with; absent for `mock`.
    pub verifying_key: Option<HashText>,
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
    /// When the answering validator learnt that it is final; absent where it does not remember.
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
    /// What happened in it, in order.
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
    /// What it does, as `transfer`.
    pub kind: String,
    /// The account that signed it.
    pub sender: AddressText,
    /// What came of it.
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
    /// When it was due.
    pub due_at: u64,
    /// `fired` or `failed`.
    pub status: TimerStatus,
    /// Cycles paid for.
    pub cycles: u64,
    /// Cells paid for.
    pub cells: u64,
    /// What the proposer got, in wei per cycle.
    pub priority_per_cycle: AmountText,
}

/// What came of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TransactionStatus {
    /// In the mempool.
    Pending,
    /// In a finalized block, with effect.
    Success,
    /// In a finalized block, without effect but for its fee and nonce, and the end of the
    /// commitment whose proof it brought if that was refused.
    Failed,
    /// In a finalized block, void: its nonce, signature or balance did not hold any more.
    Skipped,
    /// Dropped from the mempool, replaced or too old.
    Dropped,
}

/// A transaction and its receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Transaction {
    /// Its hash.
    pub hash: HashText,
    /// What came of it.
    pub status: TransactionStatus,
    /// What it does, as `transfer`.
    pub kind: String,
    /// The account that signed it.
    pub sender: AddressText,
    /// The sender's name, where the devnet knows one.
    pub sender_name: Option<String>,
    /// The sender's count of transactions before it.
    pub nonce: u64,
    /// The most that timers scheduled under it may ever take from the sender; absent: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer_allowance: Option<AmountText>,
    /// The payload's fields, amounts and byte strings as text.
    #[schema(value_type = Object)]
    pub payload: serde_json::Value,
    /// The block that holds it; absent while pending.
    pub height: Option<u64>,
    /// Its place in the block; absent while pending.
    pub index: Option<u32>,
    /// What it cost; absent while pending and when skipped.
    pub fee: Option<Fee>,
    /// Why it failed, was skipped or dropped: the error's name.
    pub error: Option<String>,
    /// The failure in words.
    pub message: Option<String>,
    /// What actors did; absent where it deployed and called none, and while pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<ActorReceipt>,
    /// The events it caused.
    pub events: Vec<Event>,
}

/// What a transaction paid, and for what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Fee {
    /// Cycles paid for.
    pub cycles: u64,
    /// Those of them that were bought and not used: a deployment or a call pays for a part of what
    /// it buys at least.
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
    /// The event's place among the block's events.
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
    /// The timer it is about, or whose fire caused it.
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// Only events of this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// How many at most (default 1,000, at most 10,000; a block's events are never split).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// A run of events in the order they happened. A page never ends within a block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EventPage {
    /// The events.
    pub events: Vec<Event>,
    /// The height to go on from; absent where the page reaches the head.
    pub next: Option<u64>,
}

/// Where `GET /v1/events` starts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct StreamQuery {
    /// The first height; without it, and without `Last-Event-ID`, the next block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
    /// When the answering validator learnt that it is final.
    pub finalized_at: Option<TimeText>,
    /// How many transactions it holds.
    pub transactions: u32,
    /// How many timers fired in it.
    pub fires: u32,
    /// The heights whose finalization certificates it embeds, ascending.
    pub certificate_for: Vec<u64>,
    /// How many runners the block's presence has.
    pub present: u32,
    /// How many runners are registered.
    pub registry_len: u32,
    /// What happened in it, in order.
    pub events: Vec<Event>,
}

/// Gives an account a name on this devnet. The chain knows nothing of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AccountRequest {
    /// The name.
    pub name: String,
    /// The account.
    pub address: AddressText,
}

/// An account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Account {
    /// Its name on this devnet; absent for an address that only transactions made known.
    pub name: Option<String>,
    /// Its address.
    pub address: AddressText,
    /// What it holds, without escrow and stake.
    pub balance: AmountText,
    /// How many of its transactions are in blocks.
    pub nonce: u64,
    /// The nonce that its next transaction has to carry, after those in the mempool.
    pub next_nonce: u64,
}

/// A signed transaction for the mempool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TransactionRequest {
    /// The signed transaction in its one encoded form.
    pub transaction: BytesText,
}

/// The mempool took the transaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TransactionAccepted {
    /// The transaction's hash.
    pub hash: HashText,
    /// Whether it had been accepted before. Who has signed it anew has used a nonce that somebody
    /// else used for the same: it happens once.
    pub known: bool,
}

/// What was burned since genesis, in wei, by what it was paid for. The parts add up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Burned {
    /// The block after which these are the totals.
    pub height: u64,
    /// All of it.
    pub total: AmountText,
    /// Basefees of transactions, for cycles and cells.
    pub transactions: AmountText,
    /// Basefees of timers' fires, for cycles and cells.
    pub timers: AmountText,
    /// What owners of timers paid for questions to their agents.
    pub questions: AmountText,
    /// What actors paid for being told of the ends of jobs.
    pub callbacks: AmountText,
    /// What was slashed of stakes, balances and bonds.
    pub penalties: AmountText,
    /// Of `timers` and `questions` together, the lane's own basefee, which `eip1559` alone has.
    pub lane_basefee: AmountText,
}
