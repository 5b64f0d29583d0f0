//! Actors: deployments, effects of calls, logs.
//!
//! The JSON that actors store, return and emit is passed through unchanged, except that integers
//! beyond ±(2^53 − 1), which most readers of JSON would round, become decimal strings. The keys of
//! an object are sorted by name.

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
    pub deployer: Option<String>,
    /// The maximum number of actors (default 100, at most 10,000).
    pub limit: Option<usize>,
}

/// An actor in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ActorSummary {
    /// Its address.
    pub actor: AddressText,
    /// Its name, where it was given one.
    pub name: Option<String>,
    /// The account that deployed it.
    pub deployer: AddressText,
    /// That account's name, where the devnet knows one.
    pub deployer_name: Option<String>,
    /// keccak256 of its source; actors with equal source share it.
    pub code: HashText,
    /// The height that deployed it.
    pub deployed_at: u64,
    /// Its balance in wei.
    pub balance: AmountText,
}

/// The part of an actor's store that `GET /v1/actors/{actor}` shows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct StoreQuery {
    /// Only keys with this prefix.
    pub prefix: Option<String>,
    /// The first key.
    pub from: Option<String>,
    /// The maximum number of keys (default 100, at most 10,000).
    pub limit: Option<usize>,
    /// The block after which the actor is shown, one of the last 256 (default: the newest).
    pub at: Option<u64>,
}

/// A deployed actor, with a page of its store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Actor {
    /// Its address.
    pub actor: AddressText,
    /// Its name, where it was given one.
    pub name: Option<String>,
    /// The account that deployed it.
    pub deployer: AddressText,
    /// That account's name, where the devnet knows one.
    pub deployer_name: Option<String>,
    /// keccak256 of its source; actors with equal source share it.
    pub code: HashText,
    /// Its language: starlark or python.
    pub language: String,
    /// The account that owns it: the deployer, unless an actor in Python was handed over.
    pub owner: AddressText,
    /// The height that deployed it.
    pub deployed_at: u64,
    /// Its balance in wei.
    pub balance: AmountText,
    /// Bytes of heap that its module's constants and globals keep; its deployment paid a cell for
    /// each.
    pub retained: u64,
    /// Its handlers, by name.
    pub handlers: Vec<Handler>,
    /// The continuations that wait for a job, if it is in Python: at most 100, by job.
    #[serde(default)]
    pub continuations: Vec<WaitingContinuation>,
    /// Part of its store, by key.
    pub state: Vec<StateEntry>,
    /// The key to continue from; absent on the last page.
    pub next: Option<String>,
    /// Its module.
    pub source: String,
}

/// A continuation of an actor in Python that waits for a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WaitingContinuation {
    /// Its id. The store has its record under `__continuation:` and the id.
    pub cid: BytesText,
    /// The handler that the job's end calls.
    pub handler: String,
    /// The job.
    pub job_id: HashText,
    /// The height that recorded the job.
    pub submitted_at: u64,
    /// The height at which the job's current attempt ends.
    pub deadline: u64,
}

/// A page of an actor's store: `GET /actors/{actor}/storage`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Storage {
    /// The actor.
    pub actor: AddressText,
    /// The block after which this is stored.
    pub height: u64,
    /// Entries by key.
    pub state: Vec<StateEntry>,
    /// The key to continue from; absent on the last page.
    pub next: Option<String>,
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

/// An entry in an actor's store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StateEntry {
    /// The key.
    pub key: String,
    /// The value.
    pub value: Value,
    /// The value's bytes, if the actor is in Python.
    #[serde(default)]
    pub value_bytes: Option<BytesText>,
}

/// A call to try: `POST /v1/actors/{actor}/dry-run`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DryRunRequest {
    /// The caller, by name or address.
    pub sender: String,
    /// The handler.
    pub handler: String,
    /// The handler's argument (default: empty).
    #[serde(default)]
    pub payload: BytesText,
    /// Wei transferred with the call from the sender's balance (default: 0).
    #[serde(default)]
    pub value: AmountText,
    /// Cycles that it may use in addition to the intrinsic ones (default: the limit of a block).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycles: Option<u64>,
    /// Cells that it may use in addition to those for the transaction's bytes (default: the limit
    /// of a block).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cells: Option<u64>,
    /// The most wei that timers scheduled under it may ever take from the sender (default:
    /// unlimited, so that the events `TimerScheduled` show how much they need).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer_allowance: Option<AmountText>,
    /// The block on whose state it runs, one of the last 256 (default: the newest).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
    /// Whether to call `getGasBid` the way the chain asks a gas bidding agent, unless the actor has
    /// a handler of that name (default: yes). The payload is then a JSON object with the fields of
    /// its `GBAContext` that differ from the next block's, as numbers or strings, and the sender
    /// counts as the timer's owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask_agent: Option<bool>,
    /// Whether to tell every call (default: no).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<bool>,
    /// Whether to tell every call with what each line of its module spent (default: no). Actors in
    /// Python have no profile by line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<bool>,
    /// A module to run in place of the actor's own, in the actor's language and within the limits
    /// of a deployment; all else of the actor stays, `init` does not run, and loading the module is
    /// not part of the usage, except in Python, where every call loads it (default: its own).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// The call to try of `GET /actor/{actor}/read_handler`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ReadQuery {
    /// The handler.
    pub handler: String,
    /// Its argument: JSON, which becomes CBOR for an actor in Python, or bytes as 0x-hex (default:
    /// empty).
    pub payload: Option<String>,
    /// The caller, by name or address (default: the zero address).
    pub sender: Option<String>,
}

/// The effects that a call would have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DryRun {
    /// The actor.
    pub actor: AddressText,
    /// The handler.
    pub handler: String,
    /// The caller.
    pub sender: AddressText,
    /// The block on whose state it ran.
    pub at: u64,
    /// Whether it would succeed.
    pub success: bool,
    /// The handler's return value.
    pub result: Option<Value>,
    /// The same as bytes, if the actor is in Python and returned any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_bytes: Option<BytesText>,
    /// Why it would fail: the error's name.
    pub error: Option<String>,
    /// The failure in words, with its place and stack.
    pub message: Option<String>,
    /// Its usage, without the intrinsic part of a transaction.
    pub usage: Usage,
    /// The number of calls started: its own and one per message.
    pub deliveries: u32,
    /// The lines that actors logged, in order; kept even if it fails.
    pub log: Vec<LogLine>,
    /// The events that it would cause, in order.
    pub events: Vec<Event>,
    /// The changes that it would make to stores.
    pub changes: Vec<StateChange>,
    /// Every call in the order in which they began, at most 2,048, if the request asks for them;
    /// kept even if it fails.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<TracedCall>,
}

/// A call in a dry run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TracedCall {
    /// The index of the call that made it; absent for the first one.
    pub by: Option<u64>,
    /// Whether it ran inside that call; otherwise it was a message, delivered afterwards.
    pub inside: bool,
    /// The caller.
    pub sender: AddressText,
    /// The actor.
    pub actor: AddressText,
    /// The handler.
    pub handler: String,
    /// The handler's argument; of a long one, the beginning.
    pub payload: Value,
    /// Wei transferred with the call.
    pub value: AmountText,
    /// Its usage, with that of the calls inside it.
    pub usage: Usage,
    /// What it returned; of a long value, the beginning. Absent if it failed.
    pub result: Option<Value>,
    /// Why it failed.
    pub error: Option<String>,
    /// The changes to the actor's own store; empty if the call failed, or ran inside one
    /// that failed. A failure of the whole transaction undoes all of them.
    pub changes: Vec<StateChange>,
    /// What each of its lines spent, if the request asks for it; absent for an actor in Python, and
    /// for calls after those with 16,384 entries in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<CallProfile>,
}

/// What the lines of a call spent. Together with the cycles for loading they add up to its usage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CallProfile {
    /// Lines by call stack, in the order in which they were first reached.
    pub spots: Vec<ProfileSpot>,
    /// Cycles that belong to no line: finding the handler, and its result as JSON.
    pub outside_cycles: u64,
    /// Cells that belong to no line: those of the result.
    pub outside_cells: u64,
}

/// A line of a function, as part of a call stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProfileSpot {
    /// The index of the line that called the function, which is lower than this one's; absent for
    /// the handler itself.
    pub by: Option<u64>,
    /// The function.
    pub function: String,
    /// The line of the source, from 1.
    pub line: u32,
    /// How often the line's first operation ran.
    pub times: u64,
    /// Cycles spent in it, without functions of the module that it called.
    pub cycles: u64,
    /// Likewise cells.
    pub cells: u64,
}

impl From<actor::Handler> for Handler {
    fn from(handler: actor::Handler) -> Self {
        let actor::Handler { name, parameters, at } = handler;
        Self { name, parameters, line: at.line }
    }
}

/// The usage of actors, without the intrinsic part of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Usage {
    /// The total number of cycles.
    pub cycles: u64,
    /// Bytes that the chain keeps.
    pub cells: u64,
    /// The cycles by cause.
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

/// The causes of cycles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CyclesByCause {
    /// Reading and compiling a module.
    pub loading: u64,
    /// Syntax nodes, calls, steps of loops.
    pub evaluation: u64,
    /// Bytes and elements moved, compared, searched; large integers.
    pub data: u64,
    /// Memory allocated.
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

/// The work of actors for a transaction, whether or not it succeeded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ActorReceipt {
    /// The actor deployed or called.
    pub actor: AddressText,
    /// The handler's return value.
    pub result: Option<Value>,
    /// The same as bytes, if the actor is in Python and returned any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_bytes: Option<BytesText>,
    /// The usage, without the intrinsic part of the transaction.
    pub usage: Usage,
    /// The number of calls started: the transaction's own and one per message.
    pub deliveries: u32,
    /// The lines that actors logged, in order; kept even if the transaction failed.
    pub log: Vec<LogLine>,
}

/// Which lines `GET /v1/actors/{actor}/logs` lists.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct LogQuery {
    /// The first height (default: the last lines are listed).
    pub from: Option<u64>,
    /// The maximum number of lines (default 100, at most 10,000; with `from`, a block's lines are
    /// never split).
    pub limit: Option<usize>,
}

/// Lines of an actor's log, the oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ActorLog {
    /// The lines.
    pub lines: Vec<ActorLine>,
    /// The height to continue from: all current lines below it have been listed.
    pub next: u64,
}

/// A line or an event from an actor, or the error that ended a call of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ActorLine {
    /// The block.
    pub height: u64,
    /// The transaction that caused it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transaction: Option<HashText>,
    /// The timer whose fire caused it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer: Option<HashText>,
    /// The job whose callback caused it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<HashText>,
    /// The kind of the line.
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

/// The kind of a line in an actor's log.
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

/// A chain's parameters for actors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ActorParameters {
    /// The costs of work, in cycles unless stated otherwise.
    pub schedule: ActorSchedule,
    /// The limits of a module and of a call.
    pub limits: ActorLimits,
}

impl From<actor::ActorParams> for ActorParameters {
    fn from(params: actor::ActorParams) -> Self {
        Self { schedule: params.schedule.into(), limits: params.limits.into() }
    }
}

impl From<ActorParameters> for actor::ActorParams {
    fn from(parameters: ActorParameters) -> Self {
        Self { schedule: parameters.schedule.into(), limits: parameters.limits.into() }
    }
}

/// Defines a struct of numbers and its conversions from and to the engine's, field by field.
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
    /// The cost of each kind of an actor's work, in cycles unless stated otherwise.
    ActorSchedule of actor::Schedule {
        /// The version of the table.
        version,
        /// Per syntax node evaluated.
        node,
        /// Per call, of a function or of a builtin.
        call,
        /// Per step of a loop or a comprehension.
        step,
        /// Bytes that one cycle moves, compares (of both sides) or hashes.
        data_bytes,
        /// Bytes of a string that one cycle searches for another string.
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
        /// Per key of the store written or deleted, in addition to a cell per byte.
        storage_write,
        /// Per message or transfer sent.
        message,
        /// Per timer scheduled, cancelled or extended.
        timer,
        /// Per job submitted.
        job,
        /// Per event or line of log, in addition to a cell per byte.
        emit,
        /// Per 32 bytes hashed with keccak256, padding included.
        keccak_word,
        /// Per module loaded, before any of it is read.
        module,
        /// Per token of a module that is parsed.
        token,
    }
}

table! {
    /// The limits of a module and of a call of it.
    ActorLimits of actor::Limits {
        /// Heap of one call, in bytes.
        heap,
        /// A string, in bytes.
        string,
        /// Entries of a list, tuple or dict.
        entries,
        /// An integer, in bits.
        bits,
        /// Nested function calls.
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
