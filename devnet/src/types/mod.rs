//! Every request and response of the control API: the one place where protocol values become JSON.
//!
//! Amounts are decimal strings of wei, byte strings (addresses, hashes, keys, bitmaps, results)
//! 0x-hex, heights and counts numbers, times RFC 3339. Where a field names a node (`validator`,
//! `runner`, `proposer`) it is the node's name, or its address where the devnet does not know a
//! name for it; accounts (`submitter`, `sender`) are addresses, with the name in a second field.
//!
//! # Routes
//!
//! A devnet lists its routes, with the request and the answer of each, at `GET /openapi.json`; the
//! files in `api::routes` have a table each.
//!
//! Every `GET` takes `?node=NAME` ([`NodeQuery`]): that validator answers from its own state; by
//! default, the validator with the highest head answers. So does a dry run, which changes nothing
//! and is a `POST` only because it has a body. A transaction with `?node=NAME` goes only to the
//! mempool of that validator, otherwise to the mempools of all running validators.
//!
//! Routes that change state need `Authorization: Bearer <token>`; the token is in the devnet's
//! `token` file. A runner's heartbeat, commitment and result need no token because the runner
//! signed them. Every failure is answered with an [`ErrorBody`].
//!
//! Every answer has the headers [`API_HEADER`] and [`PROTOCOL_HEADER`]. A client refuses an answer
//! of an API of another version; a runner also refuses one of another protocol.
//!
//! # Events
//!
//! `GET /v1/events` sends one message per finalized and executed block, with `event: block`, the
//! height as `id` and a [`BlockNotice`] as data, as soon as any validator, or the one of
//! `?node=NAME`, has the block. With the header `Last-Event-ID: H` it starts at H + 1, else at
//! `from`, else with the next block. A comment line is sent at least every [`KEEP_ALIVE_SECS`]
//! seconds, so that a reader can tell a quiet chain from a dead connection.
//!
//! When all places for streams are taken, a new stream replaces another one. The replaced stream
//! ends with `event: replaced`, a reason as data and `retry:` [`RETURN_MS`]; its reader returns
//! with the last id that it saw. A request may show the token. Streams with the token and streams
//! without it each have a quarter of the places that the other kind cannot take.

/// The version of the control API, as in its paths.
pub const API: u32 = 1;

/// The header of every answer with [`API`].
pub const API_HEADER: &str = "cowboy-api";

/// The header of every answer with [`PROTOCOL`](crate::consensus::PROTOCOL).
pub const PROTOCOL_HEADER: &str = "cowboy-protocol";

mod actor;
mod chain;
mod connection;
mod error;
mod evidence;
mod fault;
mod governance;
mod job;
mod lane;
mod node;
mod pool;
mod presence;
mod proof;
mod snapshot;
mod speculation;
mod task;
mod timer;
mod value;

/// The body of `POST /v1/speculation/pipelines`: a pipeline in the format of its file.
pub use crate::speculation::pipeline::Pipeline as PipelineRequest;
pub use actor::*;
pub use chain::*;
pub use connection::*;
pub use error::*;
pub use evidence::*;
pub use fault::*;
pub use governance::*;
pub use job::*;
pub use lane::*;
pub use node::*;
pub use pool::*;
pub use presence::*;
pub use proof::*;
pub use snapshot::*;
pub use speculation::*;
pub use task::*;
pub use timer::*;
pub(crate) use value::same;
pub use value::*;

/// The longest silence of the event stream, in seconds.
pub const KEEP_ALIVE_SECS: u64 = 5;

/// The type of the event that ends a replaced stream.
pub const REPLACED: &str = "replaced";

/// The time that the reader of a replaced stream waits before it returns, in milliseconds. With
/// more readers than places, this bounds how often they replace each other.
pub const RETURN_MS: u64 = 1_000;

/// Default number of events in a page.
pub const EVENT_PAGE: usize = 1_000;

/// Maximum number of events in a page, unless a single block has more.
pub const EVENT_PAGE_LIMIT: usize = 10_000;

/// Default number of blocks in a page of evidence.
pub const EVIDENCE_PAGE: usize = 64;

/// Maximum number of blocks in a page of evidence.
pub const EVIDENCE_PAGE_LIMIT: usize = 256;

/// Maximum bytes of blocks in a page of evidence, unless a single block has more.
pub const EVIDENCE_PAGE_BYTES: usize = 4 << 20;

/// Default number of actors in a list.
pub const ACTOR_PAGE: usize = 100;

/// Maximum number of actors in a list.
pub const ACTOR_PAGE_LIMIT: usize = 10_000;

/// Default number of keys of an actor's store in a page.
pub const STORE_PAGE: usize = 100;

/// Maximum number of keys of an actor's store in a page.
pub const STORE_PAGE_LIMIT: usize = 10_000;

/// Default number of lines of an actor's log in a page.
pub const LOG_PAGE: usize = 100;

/// Maximum number of lines of an actor's log in a page, unless a single block has more.
pub const LOG_PAGE_LIMIT: usize = 10_000;

/// Default number of jobs in a list.
pub const JOB_PAGE: usize = 100;

/// Maximum number of jobs in a list.
pub const JOB_PAGE_LIMIT: usize = 10_000;

/// Default number of blocks in a comparison of draws.
pub const COMPARED_BLOCKS: u64 = 64;

/// Maximum number of draws in a comparison.
pub const COMPARED_DRAWS: u32 = 1_000;

/// Maximum number of jobs in the answer to a runner's poll.
pub const POLLED_JOBS: usize = 256;

/// Maximum bytes of job specifications in the answer to a runner's poll, unless a single one has
/// more.
pub const POLLED_BYTES: usize = 4 << 20;

/// Default number of timers in a list.
pub const TIMER_PAGE: usize = 100;

/// Maximum number of timers in a list.
pub const TIMER_PAGE_LIMIT: usize = 10_000;

/// Default number of due timers in a page.
pub const DUE_PAGE: usize = 20;

/// Maximum number of due timers in a page.
pub const DUE_PAGE_LIMIT: usize = 1_000;

/// Default number of blocks in a list of the timer lane's fees.
pub const LANE_PAGE: usize = 60;

/// Maximum number of blocks in a list of the timer lane's fees.
pub const LANE_PAGE_LIMIT: usize = 10_000;
