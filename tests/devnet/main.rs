//! Real devnets in real processes, driven through the command line as a user would.

#![expect(clippy::unwrap_used, reason = "a step that fails is a test that fails")]

mod abilities;
mod accounts;
mod actors;
mod advance;
mod agents;
mod asserting;
mod assigned;
mod bonds;
mod book;
mod chain;
mod committee;
mod damage;
mod dashboard;
mod evidence;
mod exec;
mod faults;
mod folders;
mod governance;
mod harmed;
mod hosts;
mod jobs;
mod kill;
mod leases;
mod liar;
mod liars;
mod memory;
mod migration;
mod mixed;
mod names;
mod no_space;
mod nodes;
mod on_purpose;
mod parameters;
mod payers;
mod policies;
mod powers;
mod presence;
#[path = "../../examples/price_feed.rs"]
mod price_feed;
mod processes;
mod proofs;
mod provers;
mod pvm;
mod python;
mod refusals;
mod repl;
mod report;
mod room;
mod runners;
mod schedules;
mod scripts;
mod selection;
#[path = "../shape/mod.rs"]
mod shape;
mod snapshots;
mod space;
mod speculation;
mod storm;
mod support;
mod surroundings;
mod tasks;
mod terminal;
#[path = "../../examples/timeline.rs"]
mod timeline;
mod timers;
mod traces;
mod trust;
mod watch;
