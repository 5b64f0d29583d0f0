//! Values and where they live.

mod arena;
mod dict;
pub(super) mod freeze;
mod range;

pub(super) use arena::{Arena, Bound, Field, Function, Heap, List, Record, RecordType, Text, Type};
pub(super) use dict::{Dict, Hasher};
pub(super) use range::Range;

use super::builtin::{Builtin, Method, Namespace};

/// Where a value's contents are: an index into one of the arena's lists, in the module's frozen
/// arena or in the call's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Id(u32);

impl Id {
    const FROZEN: u32 = 1 << 31;

    const fn own(index: usize) -> Self {
        // Every object takes heap: there are fewer than bytes of it.
        Self(index as u32)
    }

    /// One of the objects that every module's arena begins with.
    pub(super) const fn known(index: u32) -> Self {
        Self(index)
    }

    pub(super) const fn is_frozen(self) -> bool {
        self.0 & Self::FROZEN != 0
    }

    /// Its place in its arena, which freezing does not change.
    pub(super) const fn index(self) -> usize {
        (self.0 & !Self::FROZEN) as usize
    }

    const fn frozen(self) -> Self {
        Self(self.0 | Self::FROZEN)
    }
}

/// A value. Copying one copies no contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// No value: a variable that has not been assigned.
    Unset,
    None,
    Bool(bool),
    /// An integer of at most 64 bits; one that fits is always this.
    Int(i64),
    /// A longer integer.
    Big(Id),
    Text(Id),
    Tuple(Id),
    List(Id),
    Dict(Id),
    Range(Id),
    Function(Id),
    Builtin(Builtin),
    /// A method without its receiver, which is beside it on the stack.
    Method(Method),
    /// A method and its receiver.
    Bound(Id),
    RecordType(Id),
    Record(Id),
    /// A type other than a function that makes its values or a record type.
    Type(Id),
    Namespace(Namespace),
    /// What a call knows of itself.
    Context,
    /// `...`
    Ellipsis,
}

impl Value {
    /// Bytes of heap that a place for a value takes.
    pub(super) const COST: u64 = 16;

    /// The string that it is.
    pub(super) const fn text(self) -> Option<Id> {
        match self {
            Self::Text(id) => Some(id),
            _ => None,
        }
    }

    /// The name that `type` gives, and errors.
    pub(super) const fn kind(self) -> &'static str {
        match self {
            Self::Unset => "unset",
            Self::None => "NoneType",
            Self::Bool(_) => "bool",
            Self::Int(_) | Self::Big(_) => "int",
            Self::Text(_) => "string",
            Self::Tuple(_) => "tuple",
            Self::List(_) => "list",
            Self::Dict(_) => "dict",
            Self::Range(_) => "range",
            Self::Function(_) => "function",
            Self::Builtin(_) | Self::Method(_) | Self::Bound(_) => "builtin_function_or_method",
            Self::RecordType(_) => "record_type",
            Self::Record(_) => "record",
            Self::Type(_) => "type",
            Self::Namespace(_) => "module",
            Self::Context => "Context",
            Self::Ellipsis => "ellipsis",
        }
    }
}

const _: () = assert!(size_of::<Value>() as u64 == Value::COST);
