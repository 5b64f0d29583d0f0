//! Freezing: the values left by a module's top level become immutable and shared by all its calls.

use super::{Arena, Type, Value};

impl Value {
    /// The value as calls of the module see it.
    pub(in crate::actor) const fn freeze(self) -> Self {
        match self {
            Self::Big(id) => Self::Big(id.frozen()),
            Self::Text(id) => Self::Text(id.frozen()),
            Self::Tuple(id) => Self::Tuple(id.frozen()),
            Self::List(id) => Self::List(id.frozen()),
            Self::Dict(id) => Self::Dict(id.frozen()),
            Self::Range(id) => Self::Range(id.frozen()),
            Self::Function(id) => Self::Function(id.frozen()),
            Self::Bound(id) => Self::Bound(id.frozen()),
            Self::RecordType(id) => Self::RecordType(id.frozen()),
            Self::Record(id) => Self::Record(id.frozen()),
            Self::Type(id) => Self::Type(id.frozen()),
            Self::Unset
            | Self::None
            | Self::Bool(_)
            | Self::Int(_)
            | Self::Builtin(_)
            | Self::Method(_)
            | Self::Namespace(_)
            | Self::Context
            | Self::Ellipsis => self,
        }
    }
}

pub(in crate::actor) fn all<'a>(values: impl IntoIterator<Item = &'a mut Value>) {
    for value in values {
        *value = value.freeze();
    }
}

impl Arena {
    /// Freezes the values that the objects refer to.
    pub(in crate::actor) fn freeze(&mut self) {
        all(self.tuples.iter_mut().flatten());
        all(self.lists.iter_mut().flat_map(|list| &mut list.items));
        let entries = self.dicts.iter_mut().flat_map(|dict| dict.values_mut());
        all(entries.flat_map(|(key, value)| [key, value]));
        for function in &mut self.functions {
            all(function.defaults.iter_mut().chain(&mut function.types));
            for cell in &mut function.captures {
                *cell = cell.frozen();
            }
        }
        all(self.bounds.iter_mut().map(|bound| &mut bound.receiver));
        for record_type in &mut self.record_types {
            let fields = record_type.fields.iter_mut();
            all(fields.flat_map(|field| [&mut field.annotation, &mut field.default]));
        }
        for record in &mut self.records {
            record.of = record.of.frozen();
            all(&mut record.values);
        }
        for of in &mut self.types {
            match of {
                Type::Any | Type::Callable | Type::Iterable | Type::Context => {}
                Type::List(element) | Type::TupleOf(element) => all([element]),
                Type::Dict(a, b) | Type::Field(a, b) => all([a, b]),
                Type::Tuple(parts) | Type::Union(parts) => all(parts.iter_mut()),
            }
        }
    }
}
