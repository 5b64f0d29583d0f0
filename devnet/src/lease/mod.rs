//! Leases over HTTP: the server of the CI runner protocol, a runner of it, and what both speak.
//!
//! `cowboy_engine::lease` decides; here is what waits on the world.
//!
//! | file | subject |
//! |---|---|
//! | [`messages`] | every request and response |
//! | [`schema`] | what their schemas say of texts |
//! | [`template`] | values that have results of needed jobs in them |
//! | [`check`] | what requests must be beyond their shape |
//! | [`clock`] | the time that leases are measured by |
//! | [`tokens`] | ids and tokens, and how they are known again |
//! | [`store`] | the file in which the messages of a turn are a transaction |
//! | [`schedules`] | fires of timers, for runs that go by them |
//! | [`files`] | logs, artifacts and caches on disk |
//! | [`service`] | the owner of all leases |
//! | [`http`] | the routes |
//! | [`server`] | all of it together |
//! | [`folder`] | where a server that stands alone keeps its things |
//! | [`client`] | requests to a server |
//! | [`runner`] | a runner: asks for jobs and does them |
//! | [`pool`] | commands of jobs on the chain, done by lease |
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

/// A time, Unix ms, as messages have it.
fn time(ms: u64) -> String {
    let at = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    format!("{:.3}", at.unwrap_or(Timestamp::MAX))
}
