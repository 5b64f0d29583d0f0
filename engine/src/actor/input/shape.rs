//! Shapes: the types of which values can be generated.

use crate::actor::{
    eval::Machine,
    value::{Builtin, Id, Type, Value},
};
use std::sync::Arc;

/// What an author may write, for errors.
pub(in crate::actor) const SUPPORTED: &str = "bool, int, str, None, list[T], dict[K, V], \
                                              tuple[T, U], tuple[T, ...], T | U and records";

/// Maximum number of types within the types of one parameter; each repetition counts.
const MAX_SHAPES: usize = 256;
/// Maximum nesting of types: half of that of data which is checked, so that a test can nest on.
const MAX_TYPE_DEPTH: usize = 32;

/// A type with values that can be generated.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::actor) enum Shape {
    None,
    Bool,
    Int,
    Text,
    List(Box<Shape>),
    Dict(Box<(Shape, Shape)>),
    Tuple(Vec<Shape>),
    TupleOf(Box<Shape>),
    /// The simplest alternative first.
    Union(Vec<Shape>),
    Record(Arc<RecordShape>),
}

/// A record type whose fields can be generated.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::actor) struct RecordShape {
    pub(super) of: Id,
    pub(super) name: String,
    pub(super) fields: Vec<(String, Shape)>,
}

impl Shape {
    /// The shape of an annotation, or the reason why its values cannot be generated.
    pub(in crate::actor) fn of(machine: &Machine<'_>, annotation: Value) -> Result<Self, String> {
        let mut left = MAX_SHAPES;
        Self::within(machine, annotation, (&mut left, 0))
    }

    fn within(
        machine: &Machine<'_>,
        annotation: Value,
        (left, depth): (&mut usize, usize),
    ) -> Result<Self, String> {
        if *left == 0 || depth > MAX_TYPE_DEPTH {
            return Err(format!(
                "it has more than {MAX_SHAPES} types in it, or they nest deeper than {MAX_TYPE_DEPTH}"
            ));
        }
        *left -= 1;
        let mut inner = |of: Value| Self::within(machine, of, (&mut *left, depth + 1));
        let mut all = |parts: &[Value]| -> Result<Vec<Self>, String> {
            parts.iter().map(|of| inner(*of)).collect()
        };
        let without = |name: &str, example: &str| {
            Err(format!("{name} does not say what is in it: write {example}"))
        };
        match annotation {
            Value::None => Ok(Self::None),
            Value::Builtin(Builtin::Bool) => Ok(Self::Bool),
            Value::Builtin(Builtin::Int) => Ok(Self::Int),
            Value::Builtin(Builtin::Str) => Ok(Self::Text),
            Value::Builtin(Builtin::List) => without("list", "list[int]"),
            Value::Builtin(Builtin::Dict) => without("dict", "dict[str, int]"),
            Value::Builtin(Builtin::Tuple) => without("tuple", "tuple[int, str]"),
            Value::RecordType(id) => {
                let record = machine.heap.record_type(id);
                let fields = record.fields.iter().map(|field| {
                    inner(field.annotation).map(|shape| (field.name.to_string(), shape))
                });
                let name = record.name.as_deref().unwrap_or("record").to_owned();
                let fields = fields.collect::<Result<_, _>>()?;
                Ok(Self::Record(Arc::new(RecordShape { of: id, name, fields })))
            }
            Value::Type(id) => match machine.heap.type_(id) {
                Type::List(element) => Ok(Self::List(Box::new(inner(*element)?))),
                Type::TupleOf(element) => Ok(Self::TupleOf(Box::new(inner(*element)?))),
                Type::Tuple(parts) => Ok(Self::Tuple(all(parts)?)),
                Type::Union(parts) => {
                    let mut parts = all(parts)?;
                    parts.sort_by_key(|part| *part != Self::None);
                    Ok(Self::Union(parts))
                }
                Type::Dict(key, value) => {
                    let shape = inner(*key)?;
                    if !shape.is_key() {
                        let key = machine.type_name(*key);
                        return Err(format!("{key} cannot be the type of a dict's keys"));
                    }
                    Ok(Self::Dict(Box::new((shape, inner(*value)?))))
                }
                Type::Any | Type::Callable | Type::Iterable | Type::Context | Type::Field(..) => {
                    unsupported(machine, annotation)
                }
            },
            _ => unsupported(machine, annotation),
        }
    }

    /// Whether its values can be keys of a dict.
    fn is_key(&self) -> bool {
        match self {
            Self::None | Self::Bool | Self::Int | Self::Text => true,
            Self::List(_) | Self::Dict(_) => false,
            Self::Tuple(parts) | Self::Union(parts) => parts.iter().all(Self::is_key),
            Self::TupleOf(element) => element.is_key(),
            Self::Record(record) => record.fields.iter().all(|(_, shape)| shape.is_key()),
        }
    }
}

fn unsupported<T>(machine: &Machine<'_>, annotation: Value) -> Result<T, String> {
    let name = machine.type_name(annotation);
    Err(format!("values of {name} cannot be generated, only of {SUPPORTED}"))
}
