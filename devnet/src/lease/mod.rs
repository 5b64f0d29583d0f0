//! Leases over HTTP: the server of the CI runner protocol, a runner of it, and what both speak.
//!
//! `cowboy_engine::lease` decides; here is what waits on the world.
//!
//! | file | subject |
//! |---|---|
//! | [`messages`] | every request and response |
//! | [`client`] | requests to a server |
//! | [`runner`] | a runner: asks for jobs and does them |

pub mod client;
pub mod messages;
pub mod runner;
