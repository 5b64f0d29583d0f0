//! How a module is refused and how a call fails. Errors name limits, types, places in the author's
//! file, and keys and values as far as they are short.

use std::{
    fmt,
    ops::{Deref, DerefMut},
};

/// A line and a column of a module, both from 1; a column counts characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The column.
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
    /// Its name; `<module>` for what is outside functions.
    pub function: String,
    /// Where in it.
    pub at: Position,
}

/// What went too deep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Functions that call functions.
    Calls,
    /// Data within data.
    Data,
}

/// What went wrong. [`ErrorKind::name`] is what receipts and scripts rely on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ErrorKind {
    /// The cycles bought do not reach.
    #[error("OutOfCycles: of {limit} cycles the next step lacks {short}")]
    OutOfCycles {
        /// Cycles bought.
        limit: u64,
        /// How many more the next step needed.
        short: u64,
    },
    /// The cells bought do not reach.
    #[error("OutOfCells: of {limit} cells the next byte kept lacks {short}")]
    OutOfCells {
        /// Cells bought.
        limit: u64,
        /// How many more were needed.
        short: u64,
    },
    /// More memory than a call may take.
    #[error("OutOfMemory: the heap of a call is {limit} bytes, the next value lacks {short}")]
    OutOfMemory {
        /// Bytes a call may take.
        limit: u64,
        /// How many more were needed.
        short: u64,
    },
    /// Calls or data nested too deep.
    #[error("StackOverflow: {} nest at most {limit} deep", match what {
        Depth::Calls => "calls",
        Depth::Data => "values that are compared, hashed, printed or encoded",
    })]
    StackOverflow {
        /// What nests.
        what: Depth,
        /// How deep it may.
        limit: u64,
    },
    /// A value larger than its kind may be.
    #[error("ValueTooLarge: {what} has at most {limit} {}, this one has {got}", match *what {
        "a list, tuple or dict" => "entries",
        _ => "bytes",
    })]
    ValueTooLarge {
        /// The kind of value.
        what: &'static str,
        /// What it may be.
        limit: u64,
        /// What it would be.
        got: u64,
    },
    /// An integer longer than integers may be.
    #[error("IntegerTooLarge: an integer has at most {limit} bits, this one has {got}")]
    IntegerTooLarge {
        /// Bits it may have.
        limit: u64,
        /// Bits it would have.
        got: u64,
    },
    /// The module does not deploy: it is too large or too deep somewhere.
    #[error("ModuleRefused: {what}: at most {limit}, got {got}")]
    TooMuch {
        /// What there is too much of.
        what: &'static str,
        /// How much there may be.
        limit: u64,
        /// How much there is, counted as far as was read.
        got: u64,
    },
    /// The module does not deploy: it is not written in the language.
    #[error("ModuleRefused: {0}")]
    Refused(String),
    /// An ordinary error of the language or of a host function.
    #[error("{0}")]
    Failed(String),
    /// In a test: the chain undid a call, for a reason that the evaluator does not know. The
    /// reason's name opens the text.
    #[error("{0}")]
    Undone(String),
}

impl ErrorKind {
    /// The error's name.
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

    /// The error at a place of the module.
    pub(super) const fn at(self, at: Position) -> Error {
        Error { kind: self, at: Some(at), stack: Vec::new() }
    }

    /// Whether the module could be corrected by its author before any call.
    pub const fn is_refusal(&self) -> bool {
        matches!(self, Self::TooMuch { .. } | Self::Refused(_))
    }
}

/// Why a module is refused or a call failed, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What went wrong.
    pub kind: ErrorKind,
    /// Where; absent where no place in the module is to blame.
    pub at: Option<Position>,
    /// Who called whom, the innermost last.
    pub stack: Vec<Frame>,
}

impl Error {
    pub(super) fn refused(message: impl Into<String>, at: Position) -> Fault {
        ErrorKind::Refused(message.into()).at(at).into()
    }

    /// The error's name.
    pub fn name(&self) -> &'static str {
        self.kind.name()
    }
}

/// An ordinary error.
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

/// The first line says what and where, each further one who called, the innermost first.
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
