//! Actors: modules in a Python dialect. Every step of their evaluation is paid for before it is
//! taken (spec chain.md, "Actors").
//!
//! A module is loaded once: its tokens are scanned against the limits before anything recursive
//! sees them, `ruff_python_parser` parses it, names are resolved to slots, the tree becomes a flat
//! program, its top level runs, and the values that remain are frozen. A call runs one function of
//! a loaded module on its own instance and returns effects; it changes nothing.
//!
//! | file | subject |
//! |---|---|
//! | [`gas`] | charges, limits, the meter |
//! | [`error`] | kinds of errors, and their positions |
//! | [`effect`] | the world that a call reads, the effects it asks for |
//! | [`envelope`] | payloads of timers that name their handler |
//! | `syntax` | limits of a source, slots, the program |
//! | `value` | values, arenas, freezing |
//! | `eval` | the loop, calls, operators |
//! | `builtin` | functions, methods, the host, the functions for tests |
//! | [`testing`] | the chain that tests control |
//! | [`Module`] | loading, calling, testing |

mod builtin;
pub mod effect;
pub mod envelope;
pub mod error;
mod eval;
pub mod gas;
mod module;
mod syntax;
pub mod testing;
mod value;

#[doc(hidden)]
pub use builtin::{
    catalog,
    known::{GBA_CONTEXT_FIELDS, TX_FEE_PARAMS_FIELDS},
};
pub use effect::{Call, CallOutcome, Effect, JobRequest, TimerCall, World};
pub use error::{Error, ErrorKind, Frame, Position};
pub use gas::{ActorParams, Budget, Limits, Schedule, Usage};
pub use module::{Handler, Module, TestReport};

#[cfg(test)]
mod tests;
