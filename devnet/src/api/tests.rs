//! The API over a real listener, asked by the typed client and by hand.

mod actors;
mod chain;
mod control;
mod fixture;
mod jobs;
mod limits;
mod openapi;
mod presence;
mod stream;
mod timers;
