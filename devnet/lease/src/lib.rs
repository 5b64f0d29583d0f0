//! CI by lease: the server of the CI runner protocol, a runner of it, and what both speak.
//!
//! [`machine`] decides; everything else does the waiting and the I/O. A module uses only modules
//! above it:
//!
//! | module | subject |
//! |---|---|
//! | [`machine`] | who may execute a CI job, and until when |
//! | [`messages`] | every request and response |
//! | [`template`] | values that contain results of needed jobs |
//! | [`check`] | limits on requests that their types do not express |
//! | [`clock`] | the clock that leases use |
//! | [`tokens`] | ids and tokens, and how tokens are verified |
//! | [`fire`] | fires of timers of the chain |
//! | [`files`] | logs, artifacts and caches on disk |
//! | [`store`] | the database, one transaction per turn |
//! | [`service`] | the owner of all leases |
//! | [`schedules`] | fires of timers, for the runs that they trigger |
//! | [`http`] | the routes |
//! | [`server`] | the server as a whole |
//! | [`folder`] | the folder of a standalone server |
//! | [`client`] | requests to a server |
//! | [`runner`] | a runner: asks for jobs and runs them |
//! | [`runfile`] | runs as people write them |

pub mod check;
pub mod client;
pub mod clock;
pub mod files;
pub mod fire;
pub mod folder;
mod http;
pub mod machine;
pub mod messages;
pub mod runfile;
pub mod runner;
pub mod schedules;
pub mod server;
mod service;
mod store;
pub mod template;
pub mod tokens;

use jiff::Timestamp;

fn time(ms: u64) -> String {
    let at = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    format!("{:.3}", at.unwrap_or(Timestamp::MAX))
}
