//! Receipts: the outcome of each transaction of a block.

use super::actors::Language;
use crate::{
    actor::Usage,
    primitives::{
        Address, Cells, Cycles, Hash, Height, Wei,
        codec::{Decode, DecodeError, Encode, Reader, Writer},
    },
    record,
    timer::Policy,
};

/// How a transaction ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReceiptStatus {
    /// The payload took effect.
    Success,
    /// Only the fee and the nonce took effect. The text begins with the error's name.
    Failed(String),
    /// Nothing took effect: nonce, fee cap, chain or signature was invalid when its turn came.
    Skipped(String),
}

impl ReceiptStatus {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failed(_) => "failed",
            Self::Skipped(_) => "skipped",
        }
    }

    pub fn error(&self) -> Option<&str> {
        match self {
            Self::Success => None,
            Self::Failed(error) | Self::Skipped(error) => Some(error),
        }
    }
}

impl Encode for ReceiptStatus {
    fn encode(&self, w: &mut Writer) {
        w.list(2);
        w.text(self.name());
        w.text(self.error().unwrap_or_default());
    }
}

impl Decode for ReceiptStatus {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        if r.list(2)? != 2 {
            return Err(DecodeError::Invalid("a status is a pair of name and error"));
        }
        let (name, error) = (r.text(16)?, r.text(usize::MAX)?.to_owned());
        match name {
            "success" if error.is_empty() => Ok(Self::Success),
            "failed" => Ok(Self::Failed(error)),
            "skipped" => Ok(Self::Skipped(error)),
            _ => Err(DecodeError::Invalid("unknown transaction status")),
        }
    }
}

/// The outcome of one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    pub transaction: Hash,
    /// The signer; zero if the signature recovers no account.
    pub sender: Address,
    /// The account in whose name the signer acted, by a [power](super::Payload::ActAs).
    pub acted_as: Option<Address>,
    pub status: ReceiptStatus,
    /// Cycles paid for.
    pub cycles: Cycles,
    /// The part of `cycles` that was not used: a call or deployment pays at least for a share of
    /// the cycles it buys.
    pub unused: Cycles,
    pub cells: Cells,
    /// Basefees, burned.
    pub burned: Wei,
    /// Priority fees, paid to the proposer.
    pub tip: Wei,
    /// Absent unless the transaction deploys or calls an actor.
    pub actor: Option<ActorReceipt>,
}
record!(Receipt {
    transaction,
    sender,
    acted_as,
    status,
    cycles,
    unused,
    cells,
    burned,
    tip,
    actor
});

record! {
    /// The outcome of one timer that fired.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Fire {
        pub timer_id: Hash,
        /// The owner, whose handler ran.
        pub actor: Address,
        pub fee_payer: Address,
        pub handler: String,
        /// The height at which the timer was due; the block's height minus this is the delay.
        pub due_at: Height,
        /// Either [`ReceiptStatus::Success`] or [`ReceiptStatus::Failed`].
        pub status: ReceiptStatus,
        /// Cycles paid for, including those of the gas bidding agent's last answer.
        pub cycles: Cycles,
        pub cells: Cells,
        /// Paid to the proposer, in wei per cycle.
        pub priority_per_cycle: Wei,
        pub charged: Charged,
        pub outcome: ActorReceipt,
    }
}

/// How the money set aside for a fire was spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Charged {
    pub burned_cycle: Wei,
    pub burned_lane: Wei,
    /// Priority, paid to the proposer.
    pub tip: Wei,
    /// The cell basefee, burned.
    pub cells: Wei,
    /// The unused rest, returned to the payer.
    pub refunded: Wei,
}
record!(Charged { burned_cycle, burned_lane, tip, cells, refunded });

impl Charged {
    /// The total the payer paid.
    pub const fn total(&self) -> Wei {
        self.burned().saturating_add(self.tip)
    }

    pub const fn burned(&self) -> Wei {
        self.burned_cycle.saturating_add(self.burned_lane).saturating_add(self.cells)
    }
}

record! {
    /// The report on a block's timer lane (timers.md §3).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct LaneReport {
        pub policy: Policy,
        /// Price of a cycle of the lane, on top of the cycle basefee; zero if the policy has no
        /// lane basefee.
        pub basefee: Wei,
        /// Cycles available in the lane.
        pub capacity: u64,
        /// Cycles used by fires.
        pub consumed: u64,
        pub cell_capacity: u64,
        pub cells: u64,
        /// Number of gas bidding agents that were asked for a bid.
        pub asked: u64,
        /// What the timers' owners paid for those questions.
        pub questions: Wei,
        pub fired: u64,
        /// Number of due timers that wait, for any reason.
        pub deferred: u64,
        /// The deferred timers whose cap does not cover the price.
        pub priced_out: u64,
        /// The deferred timers that ask for more cycles or cells than a fire gets.
        pub over_cap: u64,
        pub expired: u64,
        /// Number of timers removed because their payer could not pay.
        pub insolvent: u64,
        /// Median priority of the timers that fired, in wei per cycle.
        pub p50: Wei,
        /// The lowest priority of the timers that fired, in wei per cycle.
        pub least_priority: Option<Wei>,
    }
}

/// What actors did for a transaction or a timer, whether or not it succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActorReceipt {
    pub actor: Address,
    /// Usage of the deployment or of all calls, on top of the intrinsic part: cycles by cause,
    /// cells.
    pub usage: Usage,
    /// The language of that actor.
    pub language: Language,
    /// The return value of the handler that the transaction called, as JSON, or any bytes in
    /// Python; empty for a failure and a deployment in Starlark.
    pub result: Vec<u8>,
    /// Lines that actors printed and logged, each with its actor, in order; kept on failure.
    pub log: Vec<(Address, String)>,
    /// Number of calls begun: the transaction's own and one per message.
    pub deliveries: u32,
}
record!(ActorReceipt { actor, usage, language, result, log, deliveries });

impl ActorReceipt {
    pub fn none(actor: Address) -> Self {
        let usage = Usage::default();
        let language = Language::Starlark;
        Self { actor, usage, language, result: Vec::new(), log: Vec::new(), deliveries: 0 }
    }
}
