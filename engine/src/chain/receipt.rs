//! What became of each transaction of a block.

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
pub enum Status {
    /// It did what it says.
    Success,
    /// It changed nothing but its fee and nonce; the error's name comes first in the text.
    Failed(String),
    /// It changed nothing at all: nonce, fee cap, chain or signature did not stand when its turn
    /// came.
    Skipped(String),
}

impl Status {
    /// The status's name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failed(_) => "failed",
            Self::Skipped(_) => "skipped",
        }
    }

    /// Why it did not succeed.
    pub fn error(&self) -> Option<&str> {
        match self {
            Self::Success => None,
            Self::Failed(error) | Self::Skipped(error) => Some(error),
        }
    }
}

impl Encode for Status {
    fn encode(&self, w: &mut Writer) {
        w.list(2);
        w.text(self.name());
        w.text(self.error().unwrap_or_default());
    }
}

impl Decode for Status {
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

/// What became of one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The transaction.
    pub transaction: Hash,
    /// Who signed it; zero where nobody did.
    pub sender: Address,
    /// How it ended.
    pub status: Status,
    /// Cycles paid for.
    pub cycles: Cycles,
    /// Those of them that were not used: a call or deployment pays for a part of what it buys at
    /// least.
    pub unused: Cycles,
    /// Cells paid for.
    pub cells: Cells,
    /// Basefees, in wei: gone.
    pub burned: Wei,
    /// Priority fees, in wei: the proposer's.
    pub tip: Wei,
    /// What actors did; absent where none was deployed or called.
    pub actor: Option<ActorReceipt>,
}
record!(Receipt { transaction, sender, status, cycles, unused, cells, burned, tip, actor });

/// What became of one timer that fired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fire {
    /// The timer.
    pub timer_id: Hash,
    /// Its owner, whose handler ran.
    pub actor: Address,
    /// Who paid.
    pub fee_payer: Address,
    /// The handler.
    pub handler: String,
    /// When it was to fire; what lies between this and the block is how late it was.
    pub due_at: Height,
    /// How it ended: [`Status::Success`] or [`Status::Failed`].
    pub status: Status,
    /// Cycles paid for, those of its gas bidding agent's last answer included.
    pub cycles: Cycles,
    /// Cells paid for.
    pub cells: Cells,
    /// What the proposer got, wei per cycle.
    pub priority_per_cycle: Wei,
    /// Where the payer's money went.
    pub charged: Charged,
    /// What the actor did.
    pub outcome: ActorReceipt,
}
record!(Fire {
    timer_id,
    actor,
    fee_payer,
    handler,
    due_at,
    status,
    cycles,
    cells,
    priority_per_cycle,
    charged,
    outcome,
});

/// Where the money went that was set aside for a fire, in wei.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Charged {
    /// The cycle basefee: gone.
    pub burned_cycle: Wei,
    /// The lane basefee: gone.
    pub burned_lane: Wei,
    /// Priority: the proposer's.
    pub tip: Wei,
    /// The cell basefee: gone.
    pub cells: Wei,
    /// Set aside and not used: the payer's again.
    pub refunded: Wei,
}
record!(Charged { burned_cycle, burned_lane, tip, cells, refunded });

impl Charged {
    /// What the payer paid.
    pub const fn total(&self) -> Wei {
        self.burned().saturating_add(self.tip)
    }

    /// What is gone.
    pub const fn burned(&self) -> Wei {
        self.burned_cycle.saturating_add(self.burned_lane).saturating_add(self.cells)
    }
}

/// What a block's timer lane did (timers.md §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneReport {
    /// The policy.
    pub policy: Policy,
    /// What a cycle of the lane cost beside the cycle basefee; zero where the policy has no lane
    /// basefee.
    pub basefee: Wei,
    /// Cycles that the lane has.
    pub capacity: u64,
    /// Cycles that fires used.
    pub consumed: u64,
    /// Cells that the lane has.
    pub cell_capacity: u64,
    /// Cells that fires used.
    pub cells: u64,
    /// Gas bidding agents that were asked for a bid.
    pub asked: u64,
    /// What their timers' owners paid for that.
    pub questions: Wei,
    /// Timers that fired.
    pub fired: u64,
    /// Timers that are due and wait, for whichever reason.
    pub deferred: u64,
    /// Of them, those whose cap does not cover the price.
    pub priced_out: u64,
    /// Of them, those that ask for more cycles or cells than a fire gets.
    pub over_cap: u64,
    /// Timers removed past their time.
    pub expired: u64,
    /// Timers removed since their payer could not pay.
    pub insolvent: u64,
    /// Median priority of the timers that fired, wei per cycle.
    pub p50: Wei,
    /// The least priority of the timers that fired, wei per cycle.
    pub least_priority: Option<Wei>,
}
record!(LaneReport {
    policy,
    basefee,
    capacity,
    consumed,
    cell_capacity,
    cells,
    asked,
    questions,
    fired,
    deferred,
    priced_out,
    over_cap,
    expired,
    insolvent,
    p50,
    least_priority,
});

/// What a transaction or a timer made actors do, whether or not it succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActorReceipt {
    /// The actor deployed or called.
    pub actor: Address,
    /// What the deployment or all calls used beside the intrinsic part: cycles by cause, cells.
    pub usage: Usage,
    /// What the handler called by the transaction returned, JSON; empty for a deployment and for
    /// a failure.
    pub result: Vec<u8>,
    /// What actors printed and logged, each line with its actor, in order; kept on failure.
    pub log: Vec<(Address, String)>,
    /// Calls begun: the transaction's own and one per message.
    pub deliveries: u32,
}
record!(ActorReceipt { actor, usage, result, log, deliveries });

impl ActorReceipt {
    /// Of an actor that did nothing.
    pub fn none(actor: Address) -> Self {
        let usage = Usage::default();
        Self { actor, usage, result: Vec::new(), log: Vec::new(), deliveries: 0 }
    }
}
