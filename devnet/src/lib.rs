//! Drivers of the Cowboy protocol: everything that does I/O.
//!
//! `cowboy-engine` decides what happens; this crate moves bytes, stores files, watches clocks and
//! starts processes. Everything below the API runs on a runtime that is a parameter: in real time,
//! or in a deterministic simulator (the package `cowboy-simulation`).
//!
//! A module uses only modules above it:
//!
//! | module | subject |
//! |---|---|
//! | [`telemetry`] | spans for an OpenTelemetry collector, and tables of metrics |
//! | [`speculation`] | pipelines of tasks as files, and their metrics |
//! | [`types`] | the control API's documents: every request and answer |
//! | [`executor`] | execution of jobs: commands, HTTP requests, language models |
//! | [`storage`] | a validator's database, separate from consensus' archives |
//! | [`machines`] | machines of actors in Python: installed artifacts, open machines |
//! | [`topology`] | the YAML file, resolved into a plan |
//! | [`faults`] | injected faults between nodes, and their effect on a message |
//! | [`chain`] | one validator's executed chain, mempool and gossip |
//! | [`consensus`] | Simplex with votes that carry presence |
//! | [`transport`] | authenticated connections: QUIC, and simulated links |
//! | [`validator`] | a validator's life cycle, and its side of the runners' connections |
//! | [`sample`] | the chain that tests and simulations begin with |
//! | [`api`] | the control API: server, routes, events |
//! | [`home`] | a devnet's folder, and the lock that shows whether it runs |
//! | [`rotating`] | a log file with a maximum length |
//! | [`snapshot`] | saving and restoring a devnet's folder |
//! | [`client`] | typed requests to a running devnet |
//! | [`testing`] | a devnet for a test in Rust |
//! | [`verification`] | a client's verification of a devnet's answers, from genesis |
//! | [`handout`] | files for nodes in processes of their own: genesis document and peers |
//! | [`report`] | diagnostics in one archive |
//! | [`pool`] | commands of jobs on the chain, run by runners of leases |
//! | [`agent`] | runs pipelines of tasks ahead of the chain |
//! | [`runner`] | a runner: its connections, its jobs, its heartbeats |
//! | [`orchestrator`] | a devnet's whole life in one process |

pub mod agent;
pub mod api;
pub mod chain;
pub mod client;
pub mod consensus;
pub mod executor;
pub mod faults;
pub mod handout;
pub mod home;
pub mod machines;
pub mod orchestrator;
pub mod pool;
pub mod report;
pub mod rotating;
pub mod runner;
pub mod sample;
pub mod snapshot;
pub mod speculation;
pub mod storage;
pub mod telemetry;
pub mod testing;
pub mod topology;
pub mod transport;
pub mod types;
pub mod validator;
pub mod verification;
