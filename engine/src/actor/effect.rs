//! What a call sees of the world, and what it asks of it. The evaluator changes nothing: whoever
//! runs a call applies its effects, or drops them.

use super::{envelope, error::Error, gas::Usage};
use crate::primitives::{Address, Hash, Height, Wei};

/// What a call can read of the chain. Every read gives what stood before the call; the call's own
/// writes are kept beside it.
pub trait World {
    /// A value of the actor's store.
    fn state(&self, key: &str) -> Option<Vec<u8>>;
    /// How many bytes a value of the actor's store has: a call pays for them before it reads them,
    /// so a world that can say without copying the value does.
    fn state_len(&self, key: &str) -> Option<usize> {
        self.state(key).map(|value| value.len())
    }
    /// What an account can spend.
    fn balance(&self, account: &Address) -> Wei;
    /// The runner that last served `submitter` with work of this kind, while the record lives.
    fn mru(&self, submitter: &Address, kind: &str) -> Option<Address>;
    /// The id that a timer gets, or why it cannot be scheduled.
    fn timer(&self, timer: &Timer, index: u64) -> Result<Hash, String>;
    /// The id and the nonce that a job gets, or why it cannot be submitted.
    fn job(&self, job: &JobRequest, index: u64) -> Result<(Hash, u64), String>;
}

/// A call of a handler.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The function called.
    pub handler: &'a str,
    /// Its second argument: text as it is, other bytes as 0x-hex.
    pub payload: &'a [u8],
    /// Who calls: an account, or an actor by message.
    pub sender: Address,
    /// The actor.
    pub this: Address,
    /// Wei that came with the call; already part of the actor's balance.
    pub value: Wei,
    /// Height of the block.
    pub height: Height,
    /// Timestamp of the block, Unix ms.
    pub timestamp_ms: u64,
    /// What `randomness` is drawn from: fixed for a call, different between any two.
    pub seed: Hash,
}

/// A timer that a call asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timer {
    /// When it is due.
    pub height: Height,
    /// What its handler is given.
    pub payload: Vec<u8>,
    /// The handler; absent: the default.
    pub handler: Option<String>,
    /// Who pays; absent: the actor.
    pub fee_payer: Option<Address>,
    /// Cycles that a fire may use.
    pub gas_limit: Option<u64>,
    /// Cells that a fire may use.
    pub cell_limit: Option<u64>,
    /// Height after which it is dropped.
    pub expires_at: Option<Height>,
    /// Most wei per cycle.
    pub max_fee_per_cycle: Option<Wei>,
    /// Most wei per cycle for the proposer.
    pub max_priority_fee_per_cycle: Option<Wei>,
    /// The actor asked for fees when the timer is due.
    pub gba: Option<Address>,
    /// How urgent it is, by name: what the proposer gets follows from it.
    pub tier: Option<String>,
    /// Whether the withdrawn argument `bid` was given.
    pub bid: bool,
}

impl Timer {
    /// The handler that it calls, and what that is given.
    pub fn call(&self) -> (String, Vec<u8>) {
        called(self.handler.as_deref(), &self.payload)
    }
}

/// The handler of a timer that names none (timers.md §1).
pub const DEFAULT_HANDLER: &str = "handle_timer";

/// The handler that a timer calls and what that is given: as the timer says, else as its payload
/// says, else [`DEFAULT_HANDLER`].
pub fn called(handler: Option<&str>, payload: &[u8]) -> (String, Vec<u8>) {
    match handler {
        Some(handler) => (handler.to_owned(), payload.to_vec()),
        None => envelope::open(payload)
            .unwrap_or_else(|| (DEFAULT_HANDLER.to_owned(), payload.to_vec())),
    }
}

/// A job that a call asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRequest {
    /// The kind of work and its parameters, as JSON.
    pub spec: Vec<u8>,
    /// Handler that is given the result.
    pub callback: Option<String>,
}

/// One thing that a call asks for, in the order in which it asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Stores a value, or removes the key.
    SetState {
        /// The key.
        key: String,
        /// The value, JSON; absent: removed.
        value: Option<Vec<u8>>,
    },
    /// Pays from the actor's balance.
    Transfer {
        /// Whom.
        to: Address,
        /// How much.
        amount: Wei,
    },
    /// Calls another actor once this call has ended.
    Message {
        /// Whom.
        to: Address,
        /// Which handler.
        handler: String,
        /// Its second argument.
        payload: Vec<u8>,
        /// Wei that go with it, from the actor's balance.
        value: Wei,
    },
    /// Tells those who watch.
    Emit {
        /// The event's name.
        name: String,
        /// Its data, JSON.
        data: Vec<u8>,
    },
    /// Schedules a timer.
    ScheduleTimer {
        /// Its id.
        id: Hash,
        /// What was asked for.
        timer: Timer,
    },
    /// Cancels a timer of the actor.
    CancelTimer(Hash),
    /// Moves a timer's expiry.
    ExtendTimer {
        /// Which.
        id: Hash,
        /// Its new expiry.
        expires_at: Height,
    },
    /// Submits a job, paid by the actor.
    SubmitJob {
        /// Its id.
        id: Hash,
        /// The nonce in its id.
        nonce: u64,
        /// What was asked for.
        job: JobRequest,
    },
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What it used, however it ended.
    pub usage: Usage,
    /// What the handler returned, as JSON; or why the call failed, and then it has no effects.
    pub result: Result<Vec<u8>, Error>,
    /// What it asks for.
    pub effects: Vec<Effect>,
    /// What it printed and logged, also where it failed.
    pub log: Vec<String>,
}
