//! The world as a call reads it, and the effects that a call asks for. The evaluator changes
//! nothing: its caller applies the effects or drops them.

use super::{envelope, error::Error, gas::Usage};
use crate::primitives::{Address, Hash, Height, Wei, keccak256};

/// The chain as a call reads it. Every read gives the state before the call; the call's own writes
/// are kept separately.
pub trait World {
    fn state(&self, key: &str) -> Option<Vec<u8>>;
    /// Length in bytes of a value of the actor's store. A call pays for the bytes before it reads
    /// them, so a world that can tell the length without copying the value should.
    fn state_len(&self, key: &str) -> Option<usize> {
        self.state(key).map(|value| value.len())
    }
    fn balance(&self, account: &Address) -> Wei;
    /// The runner that last served `submitter` with work of this kind, while the record lives.
    fn mru(&self, submitter: &Address, kind: &str) -> Option<Address>;
    /// The id that a timer gets, or why it cannot be scheduled.
    fn timer(&self, timer: &TimerCall, index: u64) -> Result<Hash, String>;
    /// The id and the nonce that a job gets, or why it cannot be submitted.
    fn job(&self, job: &JobRequest, index: u64) -> Result<(Hash, u64), String>;
}

/// The longest name of a handler, in bytes: as long as a key of an actor's store.
pub const MAX_HANDLER_BYTES: usize = 256;
/// The longest payload of a handler, in bytes: as long as a string. No transaction is as large, but
/// messages may be.
pub const MAX_PAYLOAD_BYTES: usize = 1 << 20;

/// Bytes that the chain keeps of a message or transfer: its event.
pub const EVENT_BYTES: usize = 64;

/// A call of a handler.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    pub handler: &'a str,
    /// The handler's second argument: text as is, other bytes as 0x-hex.
    pub payload: &'a [u8],
    /// The caller: an account, or an actor by message.
    pub sender: Address,
    pub this: Address,
    /// Wei sent with the call; already part of the actor's balance.
    pub value: Wei,
    pub height: Height,
    /// Timestamp of the block, Unix ms.
    pub timestamp_ms: u64,
    pub seed: Seed,
}

/// The seed of a call's `randomness`, different between any two calls of a chain. It is hashed only
/// when a call asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seed {
    /// The parent of the block, the transaction or timer that caused the call, and the number of
    /// the call among those that it caused.
    OfCall { parent: Hash, cause: Hash, index: u32 },
    /// A fixed one, for tests of actors.
    Fixed(Hash),
}

impl Seed {
    pub fn hash(&self) -> Hash {
        match self {
            Self::OfCall { parent, cause, index } => keccak256(&[
                b"cowboy-randomness/v1",
                &parent.0,
                &cause.0,
                &u64::from(*index).to_be_bytes(),
            ]),
            Self::Fixed(seed) => *seed,
        }
    }
}

/// A timer that a call asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimerCall {
    pub height: Height,
    pub payload: Vec<u8>,
    /// Absent: the default handler.
    pub handler: Option<String>,
    /// Absent: the actor pays.
    pub fee_payer: Option<Address>,
    pub gas_limit: Option<u64>,
    pub cell_limit: Option<u64>,
    /// Height after which it is dropped.
    pub expires_at: Option<Height>,
    pub max_fee_per_cycle: Option<Wei>,
    pub max_priority_fee_per_cycle: Option<Wei>,
    /// The gas bidding agent: the actor asked for fees when the timer is due.
    pub gba: Option<Address>,
    /// Urgency by name, from which the proposer's fee follows.
    pub tier: Option<String>,
    /// Whether the withdrawn argument `bid` was given.
    pub bid: bool,
}

impl TimerCall {
    /// The handler that it calls, and the handler's payload.
    pub fn call(&self) -> (String, Vec<u8>) {
        called(self.handler.as_deref(), &self.payload)
    }
}

/// The handler of a timer that names none (timers.md §1).
pub const DEFAULT_HANDLER: &str = "handle_timer";

/// The handler that a timer calls and the handler's payload: from the timer, otherwise from its
/// payload's envelope, otherwise [`DEFAULT_HANDLER`].
pub fn called(handler: Option<&str>, payload: &[u8]) -> (String, Vec<u8>) {
    by_envelope(handler, payload, envelope::open)
}

/// As [`called`], for an actor in Python.
pub fn called_in_python(handler: Option<&str>, payload: &[u8]) -> (String, Vec<u8>) {
    by_envelope(handler, payload, envelope::open_in_python)
}

fn by_envelope(
    handler: Option<&str>,
    payload: &[u8],
    open: impl Fn(&[u8]) -> Option<(String, Vec<u8>)>,
) -> (String, Vec<u8>) {
    match handler {
        Some(handler) => (handler.to_owned(), payload.to_vec()),
        None => open(payload).unwrap_or_else(|| (DEFAULT_HANDLER.to_owned(), payload.to_vec())),
    }
}

/// A job that a call asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRequest {
    /// The kind of work and its parameters, as JSON.
    pub spec: Vec<u8>,
    pub callback: Option<String>,
}

/// One effect that a call asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Stores a value, or removes the key.
    SetState {
        key: String,
        /// The value, JSON; absent: removed.
        value: Option<Vec<u8>>,
    },
    /// Pays from the actor's balance.
    Transfer {
        to: Address,
        amount: Wei,
    },
    /// Calls another actor once this call has ended.
    Message {
        to: Address,
        handler: String,
        payload: Vec<u8>,
        /// Wei sent from the actor's balance.
        value: Wei,
    },
    Emit {
        name: String,
        /// JSON.
        data: Vec<u8>,
    },
    ScheduleTimer {
        id: Hash,
        timer: TimerCall,
    },
    CancelTimer(Hash),
    ExtendTimer {
        id: Hash,
        expires_at: Height,
    },
    /// Submits a job, paid by the actor.
    SubmitJob {
        id: Hash,
        /// The nonce in its id.
        nonce: u64,
        job: JobRequest,
    },
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallOutcome {
    /// Counted whether the call succeeded or failed.
    pub usage: Usage,
    /// The handler's return value as JSON, or why the call failed. A failed call has no effects.
    pub result: Result<Vec<u8>, Error>,
    pub effects: Vec<Effect>,
    /// Lines printed and logged, also by a call that failed.
    pub log: Vec<String>,
}
