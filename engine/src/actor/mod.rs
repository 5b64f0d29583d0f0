//! Actors: modules in a Python dialect, evaluated with every step paid for before it is taken
//! (spec chain.md, "Actors").
//!
//! A module is loaded once: its tokens are scanned against the limits before anything recursive
//! sees them, it is parsed by `ruff_python_parser`, names are resolved to slots and the tree
//! becomes a flat program, its top level is run, and what that leaves is frozen. A call runs one
//! function of a loaded module on an instance of its own, and returns effects; it changes nothing.
//!
//! | file | subject |
//! |---|---|
//! | [`gas`] | charges, limits, the meter |
//! | [`error`] | what can go wrong, and where |
//! | [`effect`] | what a call sees and asks for |
//! | [`envelope`] | payloads of timers that name their handler |
//! | `syntax` | limits of a source, slots, the program |
//! | `value` | values, arenas, freezing |
//! | `eval` | the loop, calls, operators |
//! | `builtin` | functions, methods, the host, what tests call |
//! | [`testing`] | the chain that tests move |
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
pub use effect::{Call, Effect, JobRequest, Outcome, Timer, World};
pub use error::{Error, ErrorKind, Frame, Position};
pub use gas::{Budget, Limits, Params, Schedule, Usage};
pub use module::{Handler, Module, TestReport};

#[cfg(test)]
mod tests;
