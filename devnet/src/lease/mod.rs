//! Leases over HTTP: the server of the CI runner protocol, a runner of it, and what both speak.
//!
//! `cowboy_engine::lease` decides; here is what waits on the world.
//!
//! | file | subject |
//! |---|---|
//! | [`messages`] | every request and response |
//! | [`client`] | requests to a server |
//! | [`pool`] | commands of jobs on the chain, done by lease |
//! | [`files`] | logs, artifacts and caches on disk |
//! | [`runfile`] | runs as people write them |

pub mod client;
pub mod files;
pub mod messages;
pub mod pool;
pub mod runfile;
