//! Values, and the objects that hold their contents.

mod arena;
mod dict;
pub(super) mod freeze;
mod names;
mod range;

pub(super) use arena::{Arena, Bound, Field, Function, Heap, List, Record, RecordType, Text, Type};
pub(super) use dict::{Dict, Hasher};
pub(super) use names::{Builtin, Method, Namespace, known, universe};
pub(super) use range::Range;

/// The place of a value's contents: an index into one of the arena's lists, in the module's frozen
/// arena or in the call's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Id(u32);

impl Id {
    const FROZEN: u32 = 1 << 31;

    const fn own(index: usize) -> Self {
        // Every object takes heap, so there are fewer objects than bytes of heap.
        Self(index as u32)
    }

    /// One of the objects that every module's arena begins with.
    pub(super) const fn known(index: u32) -> Self {
        Self(index)
    }

    pub(super) const fn is_frozen(self) -> bool {
        self.0 & Self::FROZEN != 0
    }

    /// The index in its arena, which freezing does not change.
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
    /// A variable that has not been assigned.
    Unset,
    None,
    Bool(bool),
    /// An integer of at most 64 bits; an integer that fits always has this form.
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
    /// A method whose receiver is next to it on the stack.
    Method(Method),
    Bound(Id),
    RecordType(Id),
    Record(Id),
    /// A type that is neither a builtin function nor a record type.
    Type(Id),
    Namespace(Namespace),
    /// `ctx`
    Context,
    Ellipsis,
}

impl Value {
    /// Heap bytes of a place for a value.
    pub(super) const COST: u64 = 16;

    pub(super) const fn text(self) -> Option<Id> {
        match self {
            Self::Text(id) => Some(id),
            _ => None,
        }
    }

    /// The name of its kind, for `type` and errors.
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
