//! Arenas: every object of a kind in one list, never moved, freed together.

use super::{Dict, Id, Method, Range, Value};
use num_bigint::BigInt;

#[derive(Clone, Debug)]
pub(in crate::actor) struct Text {
    text: Box<str>,
    /// Whether each character is one byte.
    ascii: bool,
}

impl Text {
    pub(in crate::actor) fn new(text: String) -> Self {
        Self { ascii: text.is_ascii(), text: text.into_boxed_str() }
    }

    /// Heap bytes of a string of `bytes` bytes.
    pub(in crate::actor) const fn cost(bytes: usize) -> u64 {
        32 + bytes as u64
    }

    pub(in crate::actor) fn as_str(&self) -> &str {
        &self.text
    }

    pub(in crate::actor) const fn is_ascii(&self) -> bool {
        self.ascii
    }

    pub(in crate::actor) fn len(&self) -> usize {
        if self.ascii { self.text.len() } else { self.text.chars().count() }
    }
}

#[derive(Clone, Debug, Default)]
pub(in crate::actor) struct List {
    pub(in crate::actor) items: Vec<Value>,
    /// Running loops over it.
    pub(in crate::actor) loops: u32,
}

#[derive(Clone, Debug)]
pub(in crate::actor) struct Function {
    pub(in crate::actor) code: u32,
    pub(in crate::actor) defaults: Box<[Value]>,
    pub(in crate::actor) types: Box<[Value]>,
    /// Cells of variables shared with enclosing functions.
    pub(in crate::actor) captures: Box<[Id]>,
}

#[derive(Clone, Copy, Debug)]
pub(in crate::actor) struct Bound {
    pub(in crate::actor) method: Method,
    pub(in crate::actor) receiver: Value,
}

#[derive(Clone, Debug)]
pub(in crate::actor) struct Field {
    pub(in crate::actor) name: Box<str>,
    pub(in crate::actor) annotation: Value,
    /// Absent: unset.
    pub(in crate::actor) default: Value,
}

#[derive(Clone, Debug)]
pub(in crate::actor) struct RecordType {
    /// The name it was first assigned to in its module.
    pub(in crate::actor) name: Option<Box<str>>,
    pub(in crate::actor) fields: Box<[Field]>,
}

/// A record: values in the order of its type's fields.
#[derive(Clone, Debug)]
pub(in crate::actor) struct Record {
    pub(in crate::actor) of: Id,
    pub(in crate::actor) values: Box<[Value]>,
}

/// A type for annotations that is neither a builtin function nor a record type.
#[derive(Clone, Debug)]
pub(in crate::actor) enum Type {
    Any,
    Callable,
    Iterable,
    /// The type of `ctx`.
    Context,
    List(Value),
    Dict(Value, Value),
    /// A tuple of exactly these types.
    Tuple(Box<[Value]>),
    /// A tuple of any length with elements of the type.
    TupleOf(Value),
    Union(Box<[Value]>),
    /// A field with a default, which only a record type takes.
    Field(Value, Value),
}

macro_rules! arena {
    ($($list:ident, $of:ty, $name:ident, $value:expr;)*) => {
        #[derive(Clone, Debug, Default)]
        pub(in crate::actor) struct Arena {
            $(pub(super) $list: Vec<$of>,)*
        }

        impl Arena {
            $(pub(in crate::actor) fn $name(&mut self, object: $of) -> Value {
                self.$list.push(object);
                $value(Id::own(self.$list.len() - 1))
            })*
        }

        impl Heap<'_> {
            $(pub(in crate::actor) fn $name(&self, id: Id) -> &$of {
                let arena = if id.is_frozen() { self.frozen } else { &self.own };
                &arena.$list[id.index()]
            })*
        }
    };
}

arena! {
    texts, Text, text, Value::Text;
    integers, BigInt, integer, Value::Big;
    tuples, Box<[Value]>, tuple, Value::Tuple;
    lists, List, list, Value::List;
    dicts, Dict, dict, Value::Dict;
    ranges, Range, range, Value::Range;
    functions, Function, function, Value::Function;
    bounds, Bound, bound, Value::Bound;
    record_types, RecordType, record_type, Value::RecordType;
    records, Record, record, Value::Record;
    types, Type, type_, Value::Type;
}

impl Arena {
    /// Heap bytes of an integer of `bits` bits.
    pub(in crate::actor) const fn integer_cost(bits: u64) -> u64 {
        40 + bits / 8
    }
}

/// The objects that a call can reach: its own, and the frozen ones of its module.
#[derive(Debug)]
pub(in crate::actor) struct Heap<'a> {
    frozen: &'a Arena,
    frozen_cells: &'a [Value],
    pub(in crate::actor) own: Arena,
    cells: Vec<Value>,
}

impl<'a> Heap<'a> {
    pub(in crate::actor) const fn new(frozen: &'a Arena, cells: &'a [Value], own: Arena) -> Self {
        Self { frozen, frozen_cells: cells, own, cells: Vec::new() }
    }

    pub(in crate::actor) fn new_cell(&mut self, value: Value) -> Id {
        self.cells.push(value);
        Id::own(self.cells.len() - 1)
    }

    pub(in crate::actor) fn cell(&self, id: Id) -> Value {
        if id.is_frozen() { self.frozen_cells[id.index()] } else { self.cells[id.index()] }
    }

    /// Sets a shared variable. The cell is never frozen because only the enclosing function assigns
    /// it.
    pub(in crate::actor) fn set_cell(&mut self, id: Id, value: Value) {
        if let Some(cell) = self.cells.get_mut(id.index()) {
            *cell = value;
        }
    }

    /// A list to change; `None` if it is frozen.
    pub(in crate::actor) fn list_mut(&mut self, id: Id) -> Option<&mut List> {
        if id.is_frozen() { None } else { self.own.lists.get_mut(id.index()) }
    }

    /// A dict to change; `None` if it is frozen.
    pub(in crate::actor) fn dict_mut(&mut self, id: Id) -> Option<&mut Dict> {
        if id.is_frozen() { None } else { self.own.dicts.get_mut(id.index()) }
    }

    /// A record type to name; `None` if it is frozen.
    pub(in crate::actor) fn record_type_mut(&mut self, id: Id) -> Option<&mut RecordType> {
        if id.is_frozen() { None } else { self.own.record_types.get_mut(id.index()) }
    }

    pub(in crate::actor) fn into_parts(self) -> (Arena, Vec<Value>) {
        (self.own, self.cells)
    }

    pub(in crate::actor) fn str(&self, id: Id) -> &str {
        self.text(id).as_str()
    }
}
