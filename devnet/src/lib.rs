//! Drivers of the Cowboy protocol: what waits on the world.
//!
//! `cowboy-engine` decides what happens; this crate moves bytes, keeps files, watches clocks and
//! starts processes. Everything below the API runs on a runtime that is a parameter: in real time,
//! or in a deterministic simulator (the package `cowboy-simulation`).
//!
//! A module uses only modules above it:
//!
//! | module | subject |
//! |---|---|
//! | [`duration`] | durations as people read them |
//! | [`spelling`] | names that were probably meant |
//! | [`nofollow`] | files and directories opened without following links |
//! | [`last_words`] | what panicking tasks said last |
//! | [`log`] | logs that end nothing when they cannot be written |
//! | [`open_files`] | the limit of open files |
//! | [`sse`] | the text of event streams, read |
//! | [`openmetrics`] | metrics as Prometheus reads them: their text, rows of series |
//! | [`telemetry`] | spans for a collector of OpenTelemetry |
//! | [`http`] | servers: connections, their places, TLS |
//! | [`executor`] | the work of jobs: commands, HTTP requests, language models |
//! | [`storage`] | what a validator keeps beside consensus' archives |
//! | [`topology`] | the YAML file, resolved into a plan |
//! | [`faults`] | what goes wrong on purpose between nodes, and what becomes of a message |
//! | [`chain`] | one validator's executed chain, mempool and gossip |
//! | [`consensus`] | Simplex with votes that carry presence |
//! | [`transport`] | authenticated connections: QUIC, and simulated links |
//! | [`validator`] | a validator, as it is started and stopped; its side of the runners |
//! | [`sample`] | the chain that tests and simulations begin with |
//! | [`speculation`] | pipelines of tasks as files, and what is counted of them |
//! | [`api`] | the control API: types, server, events |
//! | [`home`] | a devnet's folder, and the lock that says whether it runs |
//! | [`snapshot`] | a devnet's folder, saved and brought back |
//! | [`client`] | typed requests to a running devnet |
//! | [`verification`] | what a devnet says, verified from genesis by its client |
//! | [`report`] | what helps to find out what went wrong, in one archive |
//! | [`lease`] | jobs by lease: the server, a runner, what they speak |
//! | [`agent`] | runs pipelines of tasks ahead of the chain |
//! | [`runner`] | a runner: its connections, its jobs, its heartbeats |
//! | [`orchestrator`] | a devnet's whole life in one process |

pub mod agent;
pub mod api;
pub mod chain;
pub mod client;
pub mod consensus;
pub mod duration;
pub mod executor;
pub mod faults;
pub mod home;
pub mod http;
mod last_words;
pub mod lease;
pub mod log;
mod nofollow;
mod open_files;
mod openmetrics;
pub mod orchestrator;
pub mod report;
pub mod runner;
pub mod sample;
pub mod snapshot;
pub mod speculation;
pub mod spelling;
mod sse;
pub mod storage;
pub mod telemetry;
pub mod topology;
pub mod transport;
pub mod validator;
pub mod verification;
