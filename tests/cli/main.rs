//! The command line without a devnet: commands that need none, and commands against prepared
//! answers.

#![expect(clippy::unwrap_used, reason = "a step that fails is a test that fails")]

mod actors;
mod answers;
mod choosing;
mod completing;
mod doctor;
mod errors;
mod explain;
mod faults;
mod lease;
mod offline;
mod online;
mod output;
mod plans;
mod properties;
#[path = "../shape/mod.rs"]
mod shape;
mod sim;
mod speculation;
mod support;
mod terminal;
mod timers;
mod watching;
