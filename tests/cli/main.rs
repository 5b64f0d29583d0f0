//! The command line without a devnet: what needs none, and what it makes of prepared answers.

#![expect(clippy::unwrap_used, reason = "a step that fails is a test that fails")]

mod actors;
mod answers;
mod lease;
mod offline;
mod online;
mod speculation;
mod support;
mod timers;
