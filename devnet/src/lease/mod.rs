//! Leases over HTTP: the server of the CI runner protocol, a runner of it, and what both speak.
//!
//! `cowboy_engine::lease` decides; this module does the waiting and the I/O.
//!
//! | file | subject |
//! |---|---|
//! | [`messages`] | every request and response |
//! | [`schema`] | constraints on strings in their schemas |
//! | [`template`] | values that contain results of needed jobs |
//! | [`check`] | limits on requests that their types do not express |
//! | [`clock`] | the clock that leases use |
//! | [`tokens`] | ids and tokens, and how tokens are verified |
//! | [`store`] | the database, one transaction per turn |
//! | [`schedules`] | fires of timers, for the runs that they trigger |
//! | [`files`] | logs, artifacts and caches on disk |
//! | [`service`] | the owner of all leases |
//! | [`http`] | the routes |
//! | [`server`] | the server as a whole |
//! | [`folder`] | the folder of a standalone server |
//! | [`client`] | requests to a server |
//! | [`runner`] | a runner: asks for jobs and runs them |
//! | [`pool`] | commands of jobs on the chain, run by runners |
//! | [`runfile`] | runs as people write them |

pub mod check;
pub mod client;
pub mod clock;
pub mod files;
pub mod folder;
mod http;
pub mod messages;
pub mod pool;
pub mod runfile;
pub mod runner;
pub mod schedules;
pub mod schema;
pub mod server;
mod service;
mod store;
pub mod template;
pub mod tokens;

use jiff::Timestamp;

/// An RFC 3339 time from Unix milliseconds.
fn time(ms: u64) -> String {
    let at = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    format!("{:.3}", at.unwrap_or(Timestamp::MAX))
}
