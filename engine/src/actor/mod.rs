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
//! | `value` | values, arenas, freezing, the names that every module can use |
//! | [`profile`] | what each line spends, and how much of a module ran |
//! | `host` | the chain and the effects of a call, as its functions see them |
//! | `eval` | the loop, calls, operators |
//! | `builtin` | what functions, methods, the host and `mock` do |
//! | `input` | arguments that are generated for tests with parameters |
//! | [`catalog`] | their names, for tests that sweep over all |
//! | [`typed`] | what is typed at a prompt, as its statements |
//! | [`testing`] | the chain that tests control |
//! | [`Module`] | loading, calling, testing |
//! | [`Property`] | tests that run on many inputs, and the shrinking of those that fail |

mod builtin;
#[doc(hidden)]
pub mod catalog;
pub mod effect;
pub mod envelope;
pub mod error;
mod eval;
pub mod gas;
mod host;
mod input;
mod module;
pub mod profile;
mod property;
mod syntax;
pub mod testing;
pub mod typed;
mod value;

pub use effect::{Call, CallOutcome, Effect, JobRequest, Seed, TimerCall, World};
pub use error::{Error, ErrorKind, Frame, Position};
pub use gas::{ActorParams, Budget, Limits, Schedule, Spent, Usage};
pub use input::TestInput;
pub use module::{Handler, Module, TestReport};
pub use profile::{Coverage, Profile};
pub use property::{Campaign, Property, PropertyReport};
#[doc(hidden)]
pub use value::known::{GBA_CONTEXT_FIELDS, TX_FEE_PARAMS_FIELDS};

#[cfg(test)]
mod tests;
