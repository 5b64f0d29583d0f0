//! The Cowboy protocol as pure state machines.
//!
//! This crate knows no socket, clock, file, thread, async runtime or operating-system randomness:
//! time and randomness are arguments, and the same inputs give the same bytes on every machine.
//! Code that waits on the outside world lives in `cowboy-devnet`, which pumps these machines over
//! real transports or over a deterministic simulator.
//!
//! A module uses only modules above it:
//!
//! | module | subject |
//! |---|---|
//! | [`primitives`] | identities, quantities, the codec, JSON's tokens, the persistent Merkle map |
//! | [`proof`] | proofs of a task's output: the circuit, Groth16, their format |
//! | [`fees`] | basefees and charges |
//! | [`presence`] | bitmaps, thresholds, subsets, one validator's view |
//! | [`actor`] | modules of actors: limits, evaluation, effects |
//! | [`pvm`] | the interface to a machine that runs actors in Python |
//! | [`registry`] | runners and pools |
//! | [`speculation`] | tasks that run before their ancestors' proofs are confirmed |
//! | [`timer`] | timers: the calendar queue, three policies, fairness |
//! | [`job`] | specs, filters, the draw, MRU records, verification of results |
//! | [`wire`] | frames between runner and validator |
//! | [`chain`] | blocks, transactions, state and its transition |
//! | [`session`] | both ends of a connection between runner and validator |
//!
//! Read [`chain::transition`] first: it gives the order of a block's steps, and everything else is
//! called from there or feeds it.

pub mod actor;
pub mod chain;
pub mod fees;
pub mod job;
pub mod presence;
pub mod primitives;
pub mod proof;
pub mod pvm;
pub mod registry;
pub mod session;
pub mod speculation;
pub mod timer;
pub mod wire;
