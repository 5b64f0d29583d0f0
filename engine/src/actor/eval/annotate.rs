//! Type annotations, and records with annotated fields.
//!
//! A type is a value: `int`, `list[int]`, `int | None`, a record type. Checking one costs a cycle
//! per value visited, elements included.

use super::{Args, Machine};
use crate::actor::{
    error::{Fault, failed, shorten},
    value::{Builtin, Field, Id, Record, RecordType, Type, Value},
};

/// Length in bytes at which an error cuts the name of a type.
const MAX_TYPE_NAME: usize = 256;

pub(super) const fn is_type(value: Value) -> bool {
    match value {
        Value::None | Value::RecordType(_) | Value::Type(_) => true,
        Value::Builtin(builtin) => builtin.is_type(),
        _ => false,
    }
}

pub(in crate::actor) fn require_type(value: Value) -> Result<(), Fault> {
    if is_type(value) {
        return Ok(());
    }
    failed(format!("an annotation must be a type, not {}", value.kind()))
}

impl Machine<'_> {
    /// `of[index]` for a type: `list[int]`, `dict[str, int]`, `tuple[int, …]`.
    pub(super) fn parameterize(&mut self, of: Value, index: Value) -> Result<Value, Fault> {
        self.take_sequence(self.length_hint(index))?;
        self.meter.elements(self.length_hint(index))?;
        let parts: Vec<Value> = match index {
            Value::Tuple(id) => self.heap.tuple(id).to_vec(),
            other => vec![other],
        };
        let of = match (of, parts.as_slice()) {
            (Value::Builtin(Builtin::List), [element]) => Type::List(*element),
            (Value::Builtin(Builtin::Dict), [key, value]) => Type::Dict(*key, *value),
            (Value::Builtin(Builtin::Tuple), [element, Value::Ellipsis]) => Type::TupleOf(*element),
            (Value::Builtin(Builtin::Tuple), parts) => Type::Tuple(parts.into()),
            _ => {
                return failed("only list[T], dict[K, V] and tuple[T, …] have parameters");
            }
        };
        for part in parts.into_iter().filter(|part| *part != Value::Ellipsis) {
            require_type(part)?;
        }
        self.new_type(of)
    }

    /// Checks that a value is of a type; the error names it as `what`.
    pub(in crate::actor) fn check(
        &mut self,
        value: Value,
        annotation: Value,
        what: &str,
    ) -> Result<(), Fault> {
        require_type(annotation)?;
        if self.is_of(value, annotation, 1)? {
            return Ok(());
        }
        let (what, expected, got) = (shorten(what), self.type_name(annotation), value.kind());
        failed(format!("{what} has the wrong type: expected {expected}, got {got}"))
    }

    pub(in crate::actor) fn is_of(
        &mut self,
        value: Value,
        of: Value,
        depth: u64,
    ) -> Result<bool, Fault> {
        self.meter.elements(1)?;
        Ok(match (of, value) {
            (Value::None, _) => value == Value::None,
            (Value::Builtin(builtin), _) => builtin.makes(value),
            (Value::RecordType(id), Value::Record(record)) => self.heap.record(record).of == id,
            (Value::RecordType(_), _) => false,
            (Value::Type(id), _) => {
                self.meter.depth_fits(depth)?;
                self.meter.elements(match self.heap.type_(id) {
                    Type::Tuple(parts) | Type::Union(parts) => parts.len(),
                    _ => 0,
                })?;
                let of = self.heap.type_(id).clone();
                self.is_of_type(value, &of, depth)?
            }
            _ => return failed("an annotation must be a type"),
        })
    }

    fn is_of_type(&mut self, value: Value, of: &Type, depth: u64) -> Result<bool, Fault> {
        match (of, value) {
            (Type::Any, _) | (Type::Context, Value::Context) => Ok(true),
            (Type::Callable, _) => Ok(matches!(
                value,
                Value::Function(_) | Value::Builtin(_) | Value::Bound(_) | Value::RecordType(_)
            )),
            (Type::Iterable, _) => Ok(matches!(
                value,
                Value::List(_)
                    | Value::Tuple(_)
                    | Value::Dict(_)
                    | Value::Range(_)
                    | Value::Text(_)
            )),
            (Type::List(element), Value::List(_)) | (Type::TupleOf(element), Value::Tuple(_)) => {
                for index in 0..self.sequence(value).len() {
                    let item = self.sequence(value)[index];
                    if !self.is_of(item, *element, depth + 1)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Type::Dict(key, item), Value::Dict(id)) => {
                let mut place = 0;
                while let Some((at, k, v)) = self.heap.dict(id).from(place) {
                    if !self.is_of(k, *key, depth + 1)? || !self.is_of(v, *item, depth + 1)? {
                        return Ok(false);
                    }
                    place = at + 1;
                }
                Ok(true)
            }
            (Type::Tuple(parts), Value::Tuple(id)) => {
                if self.heap.tuple(id).len() != parts.len() {
                    return Ok(false);
                }
                for (index, part) in parts.iter().enumerate() {
                    let item = self.heap.tuple(id)[index];
                    if !self.is_of(item, *part, depth + 1)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Type::Union(parts), _) => {
                for part in parts {
                    if self.is_of(value, *part, depth + 1)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            (Type::Field(..), _) => failed("field() is for the fields of records"),
            _ => Ok(false),
        }
    }

    /// A type as an author writes it, shortened for an error.
    pub(in crate::actor) fn type_name(&self, of: Value) -> String {
        let mut name = String::new();
        self.write_type(&mut name, of, 0);
        name
    }

    fn write_type(&self, to: &mut String, of: Value, depth: u32) {
        if depth > 3 || to.len() > MAX_TYPE_NAME {
            to.push('…');
            return;
        }
        let mut parts = |open: &str, parts: &[Value], between: &str, close: &str| {
            to.push_str(open);
            for (index, part) in parts.iter().take(8).enumerate() {
                to.push_str(if index > 0 { between } else { "" });
                self.write_type(to, *part, depth + 1);
            }
            to.push_str(close);
        };
        match of {
            Value::None => to.push_str("None"),
            Value::Builtin(builtin) => to.push_str(builtin.name()),
            Value::RecordType(id) => {
                let name = self.heap.record_type(id).name.as_deref();
                to.push_str(shorten(name.unwrap_or("record")));
            }
            Value::Type(id) => match self.heap.type_(id) {
                Type::Any => to.push_str("Any"),
                Type::Callable => to.push_str("Callable"),
                Type::Iterable => to.push_str("Iterable"),
                Type::Context => to.push_str("Context"),
                Type::List(element) => parts("list[", &[*element], "", "]"),
                Type::Dict(key, value) => parts("dict[", &[*key, *value], ", ", "]"),
                Type::Tuple(of) => parts("tuple[", of, ", ", "]"),
                Type::TupleOf(element) => parts("tuple[", &[*element], "", ", ...]"),
                Type::Union(of) => parts("", of, " | ", ""),
                Type::Field(of, _) => self.write_type(to, *of, depth + 1),
            },
            other => to.push_str(other.kind()),
        }
    }

    /// `record(name = type, …)`
    pub(in crate::actor) fn new_record_type(&mut self, args: &Args) -> Result<Value, Fault> {
        let count = self.named_count(args);
        if args.positional > 0 {
            return failed("fields of a record are given by name: record(x = int)");
        }
        self.take_sequence(4 * count)?;
        let mut fields = Vec::with_capacity(count);
        for index in 0..count {
            self.meter.alloc(self.named(args, index).0.len() as u64)?;
            let (name, value) = self.named(args, index);
            let name: Box<str> = name.into();
            let field = match value {
                Value::Type(id) => match self.heap.type_(id) {
                    Type::Field(annotation, default) => {
                        Field { name, annotation: *annotation, default: *default }
                    }
                    _ => Field { name, annotation: value, default: Value::Unset },
                },
                _ => Field { name, annotation: value, default: Value::Unset },
            };
            require_type(field.annotation)?;
            fields.push(field);
        }
        let fields = fields.into();
        Ok(self.heap.own.record_type(RecordType { name: None, fields }))
    }

    /// Makes a record of type `of` from fields given by name.
    pub(super) fn make_record(&mut self, of: Id, args: &Args) -> Result<Value, Fault> {
        let count = self.named_count(args);
        if args.positional > 0 {
            return failed("fields of a record are given by name");
        }
        let fields = self.heap.record_type(of).fields.len();
        self.take_sequence(fields)?;
        // Arguments are mostly in the order of the fields; any other is searched for.
        let mut values = vec![Value::Unset; fields];
        for index in 0..count {
            let (name, value) = self.named(args, index);
            let len = name.len();
            self.meter.bytes(len)?;
            self.meter.elements(1)?;
            let (name, fields) = (self.named(args, index).0, &self.heap.record_type(of).fields);
            let mut at = fields.get(index).filter(|field| *field.name == *name).map(|_| index);
            if at.is_none() {
                // Only names of the same length are compared.
                let alike = fields.iter().filter(|field| field.name.len() == len).count();
                self.meter.elements(fields.len())?;
                self.meter.bytes(len.saturating_mul(alike))?;
                let (name, fields) = (self.named(args, index).0, &self.heap.record_type(of).fields);
                at = fields.iter().position(|field| *field.name == *name);
            }
            let Some(at) = at else {
                let name = shorten(self.named(args, index).0);
                let of = self.type_name(Value::RecordType(of));
                return failed(format!("{of} has no field {name}"));
            };
            values[at] = value;
        }
        for (index, slot) in values.iter_mut().enumerate() {
            let field = &self.heap.record_type(of).fields[index];
            let (annotation, default) = (field.annotation, field.default);
            if *slot == Value::Unset {
                *slot = default;
            }
            let value = *slot;
            if value == Value::Unset || !self.is_of(value, annotation, 1)? {
                let field = shorten(&self.heap.record_type(of).fields[index].name).to_owned();
                if value == Value::Unset {
                    let of = self.type_name(Value::RecordType(of));
                    return failed(format!("{of} lacks the field {field}"));
                }
                let (expected, got) = (self.type_name(annotation), value.kind());
                return failed(format!(
                    "field {field} has the wrong type: expected {expected}, got {got}"
                ));
            }
        }
        Ok(self.heap.own.record(Record { of, values: values.into() }))
    }

    /// A record of a built-in type, from values in the order of its fields.
    pub(in crate::actor) fn known_record(
        &mut self,
        of: Id,
        values: Vec<Value>,
    ) -> Result<Value, Fault> {
        self.take_sequence(values.len())?;
        Ok(self.heap.own.record(Record { of, values: values.into() }))
    }
}
