//! The API over a real listener, with requests from the typed client and by hand.

mod actors;
mod agents;
mod chain;
mod comparison;
mod compat;
mod control;
mod explanations;
mod faults;
mod fixture;
mod jobs;
mod limits;
mod metrics;
mod openapi;
mod outside;
mod parameters;
mod polling;
mod presence;
mod pruned;
mod stream;
mod timers;
