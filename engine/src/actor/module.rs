//! A loaded module.

use super::{
    effect::{Call, Outcome, World},
    error::{Error, Position},
    gas::{Budget, Params, Usage},
};

/// A function that a transaction, a message or a timer can call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handler {
    /// Its name.
    pub name: String,
    /// Its parameters' names.
    pub parameters: Vec<String>,
    /// Where it is defined.
    pub at: Position,
}

/// A module that deployed: its program and its frozen globals. Cloning shares.
#[derive(Clone, Debug)]
pub struct Module;

impl Module {
    /// Loads a module, or says why it is refused, and what that used.
    pub fn load(_: &str, _: &Params, _: Budget) -> (Usage, Result<Self, Error>) {
        (Usage::default(), Ok(Self))
    }

    /// Bytes of heap that the module's globals keep.
    pub fn retained(&self) -> u64 {
        0
    }

    /// Its handlers by name.
    pub fn handlers(&self) -> Vec<Handler> {
        Vec::new()
    }

    /// Calls a handler.
    pub fn call(&self, _: &Params, _: &Call<'_>, _: &dyn World, _: Budget) -> Outcome {
        let (usage, effects, log) = (Usage::default(), Vec::new(), Vec::new());
        Outcome { usage, result: Ok(b"null".to_vec()), effects, log }
    }
}
