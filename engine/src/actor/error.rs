//! Why a module is refused and how a call fails. Errors name limits, types, places in the author's
//! file, and short keys and values.

use std::{
    fmt,
    ops::{Deref, DerefMut},
};

/// A line and a column of a module, both from 1; a column counts characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub line: u32,
    pub column: u32,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// One function under evaluation when an error arose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The function's name; `<module>` for code outside functions.
    pub function: String,
    pub at: Position,
}

/// The kind of nesting that went too deep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    Calls,
    Data,
}

/// The kind of an error. Receipts and scripts rely on [`ErrorKind::name`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ErrorKind {
    #[error("OutOfCycles: the limit is {limit} cycles, the next step needs {short} more")]
    OutOfCycles { limit: u64, short: u64 },
    #[error("OutOfCells: the limit is {limit} cells, the next write needs {short} more")]
    OutOfCells { limit: u64, short: u64 },
    #[error("OutOfMemory: a call's heap is {limit} bytes, the next value needs {short} more")]
    OutOfMemory { limit: u64, short: u64 },
    #[error("StackOverflow: {} nest at most {limit} deep", match what {
        Depth::Calls => "calls",
        Depth::Data => "values that are compared, hashed, printed or encoded",
    })]
    StackOverflow { what: Depth, limit: u64 },
    #[error("ValueTooLarge: {what} has at most {limit} {}, this one has {got}", match *what {
        "a list, tuple or dict" => "entries",
        _ => "bytes",
    })]
    ValueTooLarge {
        what: &'static str,
        /// Maximum size, in entries or bytes.
        limit: u64,
        got: u64,
    },
    #[error("IntegerTooLarge: an integer has at most {limit} bits, this one has {got}")]
    IntegerTooLarge { limit: u64, got: u64 },
    /// The module does not deploy: it is too large or too deep somewhere.
    #[error("ModuleRefused: {what}: at most {limit}, got {got}")]
    TooMuch {
        /// The unit that exceeds its limit.
        what: &'static str,
        limit: u64,
        /// Counted as far as the source was read.
        got: u64,
    },
    /// The module does not deploy: it is not written in the language.
    #[error("ModuleRefused: {0}")]
    Refused(String),
    /// An ordinary error of the language or of a host function.
    #[error("{0}")]
    Failed(String),
    /// In a test: the chain undid a call for a reason that the evaluator does not know. The text
    /// begins with the name of the reason.
    #[error("{0}")]
    Undone(String),
}

impl ErrorKind {
    /// The error's name, such as `OutOfCycles`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::OutOfCycles { .. } => "OutOfCycles",
            Self::OutOfCells { .. } => "OutOfCells",
            Self::OutOfMemory { .. } => "OutOfMemory",
            Self::StackOverflow { .. } => "StackOverflow",
            Self::ValueTooLarge { .. } => "ValueTooLarge",
            Self::IntegerTooLarge { .. } => "IntegerTooLarge",
            Self::TooMuch { .. } | Self::Refused(_) => "ModuleRefused",
            Self::Failed(_) => "ActorError",
            Self::Undone(_) => "CallUndone",
        }
    }

    pub(super) const fn at(self, at: Position) -> Error {
        Error { kind: self, at: Some(at), stack: Vec::new() }
    }

    /// Whether the module is refused, which its author can fix before any call.
    pub const fn is_refusal(&self) -> bool {
        matches!(self, Self::TooMuch { .. } | Self::Refused(_))
    }
}

/// The reason why a module is refused or a call failed, and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub kind: ErrorKind,
    /// Absent if no place in the module is to blame.
    pub at: Option<Position>,
    /// The call stack, innermost function last.
    pub stack: Vec<Frame>,
}

impl Error {
    pub(super) fn refused(message: impl Into<String>, at: Position) -> Fault {
        ErrorKind::Refused(message.into()).at(at).into()
    }

    pub fn name(&self) -> &'static str {
        self.kind.name()
    }
}

pub(super) fn failed<T>(message: impl Into<String>) -> Result<T, Fault> {
    Err(ErrorKind::Failed(message.into()).into())
}

/// An error on its way up: boxed, so that results on the hot path stay small.
#[derive(Debug)]
pub(super) struct Fault(Box<Error>);

impl Fault {
    pub(super) fn into_error(self) -> Error {
        *self.0
    }
}

impl Deref for Fault {
    type Target = Error;

    fn deref(&self) -> &Error {
        &self.0
    }
}

impl DerefMut for Fault {
    fn deref_mut(&mut self) -> &mut Error {
        &mut self.0
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self(Box::new(error))
    }
}

impl From<ErrorKind> for Fault {
    fn from(kind: ErrorKind) -> Self {
        Error::from(kind).into()
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Self { kind, at: None, stack: Vec::new() }
    }
}

/// The first line has the error and its position, each further line a caller, innermost first.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            ErrorKind::Failed(message) => write!(f, "ActorError: {message}")?,
            kind => write!(f, "{kind}")?,
        }
        if let Some(at) = self.at {
            write!(f, " (at {at})")?;
        }
        for frame in self.stack.iter().rev() {
            write!(f, "\n  in {} at {}", frame.function, frame.at)?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

/// A name for an error, cut at 64 characters because an author's data may make it long.
pub(in crate::actor) fn shorten(name: &str) -> &str {
    let end = name.char_indices().nth(64).map_or(name.len(), |(at, _)| at);
    &name[..end]
}
