//! Actors: what is deployed, what calls did or would do, what their logs say.
//!
//! What actors store, return and emit is JSON of their own making and stands there as such, but
//! for integers beyond ±(2^53 − 1), which most readers of JSON would round: they are decimal
//! strings. Keys of an object stand in the order of their names.

use super::{AddressText, AmountText, BytesText, Event, HashText};
use cowboy_engine::actor;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

/// Which actors `GET /v1/actors` lists.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ActorQuery {
    /// Only actors that this account deployed, by name or address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployer: Option<String>,
    /// How many at most (default 100, at most 10,000).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// An actor in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ActorSummary {
    /// Its address.
    pub actor: AddressText,
    /// Its name, where it was given one.
    #[serde(default)]
    pub name: Option<String>,
    /// The account that deployed it.
    pub deployer: AddressText,
    /// That account's name, where the devnet knows one.
    pub deployer_name: Option<String>,
    /// keccak256 of its source; actors with equal source share it.
    pub code: HashText,
    /// The height that deployed it.
    pub deployed_at: u64,
    /// What it holds.
    pub balance: AmountText,
}

/// Which part of an actor's store `GET /v1/actors/{actor}` shows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct StoreQuery {
    /// Only keys that begin so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// The key to start from, itself included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// How many keys at most (default 100, at most 10,000).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// An actor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Actor {
    /// Its address.
    pub actor: AddressText,
    /// Its name, where it was given one.
    #[serde(default)]
    pub name: Option<String>,
    /// The account that deployed it.
    pub deployer: AddressText,
    /// That account's name, where the devnet knows one.
    pub deployer_name: Option<String>,
    /// keccak256 of its source; actors with equal source share it.
    pub code: HashText,
    /// The height that deployed it.
    pub deployed_at: u64,
    /// What it holds.
    pub balance: AmountText,
    /// Bytes that its module's globals keep: the cells that its deployment paid for them.
    pub retained: u64,
    /// What can be called, by name.
    pub handlers: Vec<Handler>,
    /// Part of its store, by key.
    pub state: Vec<StateEntry>,
    /// The key to go on from; absent where no more is stored.
    pub next: Option<String>,
    /// Its module as it was deployed.
    pub source: String,
}

/// A function of an actor that transactions and messages can call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Handler {
    /// Its name.
    pub name: String,
    /// Its parameters' names.
    pub parameters: Vec<String>,
    /// The line that defines it, from 1.
    pub line: u32,
}

/// What an actor keeps under a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StateEntry {
    /// The key.
    pub key: String,
    /// The value.
    pub value: Value,
}

/// A call to try: `POST /v1/actors/{actor}/dry-run`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DryRunRequest {
    /// Who calls, by name or address.
    pub sender: String,
    /// The handler.
    pub handler: String,
    /// What it is given; nothing where absent.
    #[serde(default)]
    pub payload: BytesText,
    /// What goes with it from the sender's balance; nothing where absent.
    #[serde(default)]
    pub value: AmountText,
    /// Cycles that it may use beside the intrinsic ones; as many as a block holds where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycles: Option<u64>,
    /// Cells that it may use beside those for the transaction's bytes; as many as a block holds
    /// where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cells: Option<u64>,
    /// The most that timers scheduled under it may ever take from the sender; without a bound where
    /// absent, so that the events `TimerScheduled` show what they would need.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer_allowance: Option<AmountText>,
    /// On the state after this block, one of the last 256; after the newest where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
    /// Whether `getGasBid` is asked as the chain asks a gas bidding agent, unless the actor has a
    /// handler of that name (default: yes). The payload is then a JSON object of the fields of its
    /// `GBAContext` that are to be others than the next block's, as numbers or strings, and the
    /// sender is taken as the timer's owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask_agent: Option<bool>,
}

/// What a call would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DryRun {
    /// The actor.
    pub actor: AddressText,
    /// The handler.
    pub handler: String,
    /// Who called.
    pub sender: AddressText,
    /// The block on whose state it ran.
    pub at: u64,
    /// Whether it would succeed.
    pub success: bool,
    /// What the handler returned.
    pub result: Option<Value>,
    /// Why it would fail: the error's name.
    pub error: Option<String>,
    /// The failure in words, with its place and stack.
    pub message: Option<String>,
    /// What it used beside the intrinsic part of a transaction.
    pub usage: Usage,
    /// Calls begun: its own and one per message.
    pub deliveries: u32,
    /// What actors logged, in order; kept where it fails.
    pub log: Vec<LogLine>,
    /// What would happen, in order.
    pub events: Vec<Event>,
    /// What would be stored differently.
    pub changes: Vec<StateChange>,
}

impl From<actor::Handler> for Handler {
    fn from(handler: actor::Handler) -> Self {
        let actor::Handler { name, parameters, at } = handler;
        Self { name, parameters, line: at.line }
    }
}

/// What actors used beside the intrinsic part of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Usage {
    /// All cycles.
    pub cycles: u64,
    /// Bytes that the chain keeps.
    pub cells: u64,
    /// What the cycles were spent on.
    pub by_cause: CyclesByCause,
}

impl From<actor::Usage> for Usage {
    fn from(usage: actor::Usage) -> Self {
        let actor::Usage { loading, evaluation, data, heap, storage, effects, hashing, cells } =
            usage;
        let by_cause = CyclesByCause { loading, evaluation, data, heap, storage, effects, hashing };
        Self { cycles: usage.cycles(), cells, by_cause }
    }
}

/// What cycles were spent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CyclesByCause {
    /// Reading and compiling a module.
    pub loading: u64,
    /// Syntax nodes, calls, steps of loops.
    pub evaluation: u64,
    /// Bytes and elements moved, compared, searched; large integers.
    pub data: u64,
    /// Memory taken.
    pub heap: u64,
    /// Stores read and written.
    pub storage: u64,
    /// Messages, transfers, events, logs.
    pub effects: u64,
    /// keccak256.
    pub hashing: u64,
}

/// A line that an actor printed or logged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogLine {
    /// The actor.
    pub actor: AddressText,
    /// The line.
    pub text: String,
}

/// A key of an actor's store before and after a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StateChange {
    /// The actor.
    pub actor: AddressText,
    /// The key.
    pub key: String,
    /// Its value before; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// Its value after; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// What actors did for a transaction, whether or not it succeeded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ActorReceipt {
    /// The actor deployed or called.
    pub actor: AddressText,
    /// What the handler returned.
    pub result: Option<Value>,
    /// What was used beside the intrinsic part of the transaction.
    pub usage: Usage,
    /// Calls begun: the transaction's own and one per message.
    pub deliveries: u32,
    /// What actors logged, in order; kept where the transaction failed.
    pub log: Vec<LogLine>,
}

/// Which lines `GET /v1/actors/{actor}/logs` lists.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct LogQuery {
    /// The first height; the last lines where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// How many lines at most (default 100, at most 10,000; from a height on, a block's lines are
    /// never split).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// Lines of an actor's log, the oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ActorLog {
    /// The lines.
    pub lines: Vec<ActorLine>,
    /// The height to go on from: what is there now has all been seen up to it.
    pub next: u64,
}

/// Something that an actor logged or emitted, or the error that ended a call of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ActorLine {
    /// The block.
    pub height: u64,
    /// The transaction that caused it, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transaction: Option<HashText>,
    /// The timer whose fire caused it, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer: Option<HashText>,
    /// The job whose end the actor was told of, where that caused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<HashText>,
    /// Which of the three.
    pub kind: ActorLineKind,
    /// The line, or the error with its place and stack; absent for an event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The event's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The event's data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

/// What a line of an actor's log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActorLineKind {
    /// Printed or logged.
    Log,
    /// Emitted.
    Event,
    /// The error that ended a transaction's call, or a timer's.
    Error,
}

/// What a chain says about actors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ActorParameters {
    /// What work costs, in cycles unless said.
    pub schedule: ActorSchedule,
    /// How far a module and a call go.
    pub limits: ActorLimits,
}

impl From<actor::Params> for ActorParameters {
    fn from(params: actor::Params) -> Self {
        Self { schedule: params.schedule.into(), limits: params.limits.into() }
    }
}

impl From<ActorParameters> for actor::Params {
    fn from(parameters: ActorParameters) -> Self {
        Self { schedule: parameters.schedule.into(), limits: parameters.limits.into() }
    }
}

/// A table of numbers and the engine's, field by field.
macro_rules! table {
    ($(#[$doc:meta])* $name:ident of $engine:ty {
        $($(#[$field_doc:meta])* $field:ident),* $(,)?
    }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: u64,)*
        }

        impl From<$engine> for $name {
            fn from(table: $engine) -> Self {
                Self { $($field: table.$field),* }
            }
        }

        impl From<$name> for $engine {
            fn from(table: $name) -> Self {
                Self { $($field: table.$field),* }
            }
        }
    };
}

table! {
    /// What each kind of an actor's work costs, in cycles unless said.
    ActorSchedule of actor::Schedule {
        /// Which table this is.
        version,
        /// Per syntax node evaluated.
        node,
        /// Per call, of a function or of a builtin.
        call,
        /// Per step of a loop or a comprehension.
        step,
        /// Bytes that one cycle moves, compares (of both sides) or hashes.
        data_bytes,
        /// Bytes of a string that one cycle searches for another one.
        search_bytes,
        /// Bytes of text that one cycle reads character by character.
        text_bytes,
        /// Products of two 64-bit words that one cycle buys.
        word_products,
        /// Per KiB of heap.
        heap_kib,
        /// Per character that becomes a string, and per pair of `items`, `enumerate` or `zip`.
        object,
        /// Per key of the store read.
        storage_read,
        /// Per key of the store written or deleted, beside a cell per byte.
        storage_write,
        /// Per message or transfer sent.
        message,
        /// Per timer scheduled, cancelled or extended.
        timer,
        /// Per job submitted.
        job,
        /// Per event or line of log, beside a cell per byte.
        emit,
        /// Per 32 bytes hashed with keccak256, and for the padding.
        keccak_word,
        /// Per module loaded, before anything of it is read.
        module,
        /// Per token of a module that is parsed.
        token,
    }
}

table! {
    /// How far a module and a call of it may go.
    ActorLimits of actor::Limits {
        /// Heap of one call, in bytes.
        heap,
        /// A string, in bytes.
        string,
        /// Entries of a list, tuple or dict.
        entries,
        /// An integer, in bits.
        bits,
        /// Functions that are being called at once.
        call_depth,
        /// Nesting of data that is compared, hashed, printed or turned into JSON.
        data_depth,
        /// A key of the store, in bytes.
        key,
        /// A value of the store, in bytes.
        value,
        /// Effects of one call: messages, transfers, events.
        effects,
        /// A module's source, in bytes.
        source,
        /// A module's tokens.
        tokens,
        /// Open brackets.
        brackets,
        /// Open blocks.
        blocks,
        /// Operators nested in an expression, and branches of one `if`.
        operators,
    }
}
