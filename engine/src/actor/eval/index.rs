//! Indexes, slices and attributes.

use super::{Machine, annotate::is_type};
use crate::actor::{
    error::{Fault, failed, shorten},
    value::{Bound, Id, Method, Range, Type, Value},
};
use num_traits::Signed;

/// Attributes of `ctx`, for errors.
const CONTEXT_FIELDS: [&str; 6] =
    ["cycles_left", "height", "self", "sender", "timestamp_ms", "value"];

impl Machine<'_> {
    /// The offset of an index in a sequence of `len`; a negative index counts from the end.
    pub(in crate::actor) fn within(&mut self, index: Value, len: usize) -> Result<usize, Fault> {
        let at = match index {
            Value::Int(index) if index < 0 => usize::try_from(index + len as i64),
            Value::Int(index) => usize::try_from(index),
            Value::Big(_) => Ok(len),
            other => return failed(format!("an index must be an int, not {}", other.kind())),
        };
        match at {
            Ok(at) if at < len => Ok(at),
            _ => {
                let index = self.shown(index)?;
                failed(format!("index {index} is out of range: {len} elements"))
            }
        }
    }

    /// `of[index]`; the caller has paid for its node.
    pub(super) fn index(&mut self, of: Value, index: Value) -> Result<Value, Fault> {
        match of {
            Value::List(_) | Value::Tuple(_) => {
                let len = self.sequence(of).len();
                let at = self.within(index, len)?;
                Ok(self.sequence(of)[at])
            }
            Value::Dict(id) => match self.dict_get(id, index)? {
                Some(value) => Ok(value),
                None => self.no_key(index),
            },
            Value::Text(id) => {
                let len = self.text_len(id)?;
                let at = self.within(index, len)?;
                let text = self.heap.text(id);
                let character = if text.is_ascii() {
                    char::from(text.as_str().as_bytes()[at])
                } else {
                    self.meter.bytes(text.as_str().len())?;
                    text.as_str().chars().nth(at).expect("it is within")
                };
                self.new_text(character.encode_utf8(&mut [0; 4]))
            }
            Value::Range(id) => {
                let range = *self.heap.range(id);
                let at = self.within(index, range.len() as usize)?;
                Ok(Value::Int(range.at(at as i64)))
            }
            _ if is_type(of) => self.parameterize(of, index),
            other => failed(format!("{} has no elements", other.kind())),
        }
    }

    /// `of[index] = value`
    pub(super) fn store_index(
        &mut self,
        of: Value,
        index: Value,
        value: Value,
    ) -> Result<(), Fault> {
        match of {
            Value::List(id) => {
                let len = self.heap.list(id).items.len();
                let at = self.within(index, len)?;
                self.list_mut(id)?[at] = value;
                Ok(())
            }
            Value::Dict(id) => self.dict_put(id, index, value).map(drop),
            other => failed(format!("elements of {} cannot be assigned", other.kind())),
        }
    }

    pub(in crate::actor) fn no_key<T>(&mut self, key: Value) -> Result<T, Fault> {
        let key = self.shown(key)?;
        failed(format!("key not found: {key}"))
    }

    /// `del of[index]`
    pub(super) fn delete_index(&mut self, of: Value, index: Value) -> Result<(), Fault> {
        match of {
            Value::List(id) => {
                let len = self.list_mut(id)?.len();
                let at = self.within(index, len)?;
                self.meter.elements(len - at)?;
                self.list_mut(id)?.remove(at);
                Ok(())
            }
            Value::Dict(id) => match self.dict_remove(id, index)? {
                Some(_) => Ok(()),
                None => self.no_key(index),
            },
            other => failed(format!("elements of {} cannot be deleted", other.kind())),
        }
    }

    /// `of[start:stop:step]`; the caller has paid for its node.
    pub(super) fn slice(&mut self, of: Value, parts: [Option<Value>; 3]) -> Result<Value, Fault> {
        let len = match of {
            Value::List(_) | Value::Tuple(_) | Value::Range(_) => self.length_hint(of),
            Value::Text(id) => self.text_len(id)?,
            other => return failed(format!("{} cannot be sliced", other.kind())),
        };
        // An integer beyond 64 bits is beyond every index.
        let parts = parts.map(|part| match part {
            Some(Value::Big(id)) if self.heap.integer(id).is_negative() => {
                Some(Value::Int(i64::MIN))
            }
            Some(Value::Big(_)) => Some(Value::Int(i64::MAX)),
            part => part,
        });
        let range = bounds(len as i64, parts)?;
        let count = range.len() as usize;
        match of {
            Value::Text(id) => self.slice_text(id, range),
            Value::Range(id) => {
                let own = *self.heap.range(id);
                let (start, stop) =
                    (own.start + range.start * own.step, own.start + range.stop * own.step);
                self.new_range(Range { start, stop, step: own.step.saturating_mul(range.step) })
            }
            _ => {
                self.take_sequence(count)?;
                self.meter.elements(count)?;
                let from = self.sequence(of);
                let items = if range.step == 1 {
                    from[range.start as usize..range.start as usize + count].to_vec()
                } else {
                    (0..count as i64).map(|i| from[range.at(i) as usize]).collect()
                };
                Ok(self.paid_sequence(of, items))
            }
        }
    }

    fn slice_text(&mut self, id: Id, range: Range) -> Result<Value, Fault> {
        let count = range.len() as usize;
        let text = self.heap.text(id);
        let (ascii, bytes) = (text.is_ascii(), text.as_str().len());
        if ascii {
            self.take_text(count)?;
            let text = self.heap.str(id);
            let part = if range.step == 1 {
                text[range.start as usize..range.start as usize + count].to_owned()
            } else {
                self.meter.text(count)?;
                (0..count as i64)
                    .map(|i| char::from(text.as_bytes()[range.at(i) as usize]))
                    .collect()
            };
            return Ok(self.paid_text(part));
        }
        // The whole string is read to find where characters begin.
        self.meter.text(bytes)?;
        let characters: Vec<char> = self.heap.str(id).chars().collect();
        let chosen = (0..count as i64).map(|i| characters[range.at(i) as usize]);
        let len: usize = chosen.clone().map(char::len_utf8).sum();
        self.take_text(len)?;
        let mut part = String::with_capacity(len);
        part.extend(chosen);
        Ok(self.paid_text(part))
    }

    /// `of.name`; the caller has paid for its node.
    pub(in crate::actor) fn attribute(&mut self, of: Value, name: &str) -> Result<Value, Fault> {
        match self.find_attribute(of, name)? {
            Some(value) => Ok(value),
            None => {
                let has = self.alternatives(of, name)?;
                let of = match of {
                    Value::Namespace(namespace) => namespace.name(),
                    other => other.kind(),
                };
                let name = shorten(name);
                failed(format!("{of} has no field or method {name}{has}"))
            }
        }
    }

    /// The attributes that a value has, for an error about a missing one: all if there are few,
    /// otherwise those with the same first letter.
    fn alternatives(&mut self, of: Value, name: &str) -> Result<String, Fault> {
        const FEW: usize = 12;
        let names: Vec<&str> = match of {
            Value::Record(id) => {
                let fields = &self.heap.record_type(self.heap.record(id).of).fields;
                self.meter.elements(fields.len())?;
                fields.iter().map(|field| shorten(&field.name)).collect()
            }
            Value::Namespace(namespace) => namespace.members().collect(),
            Value::Context => CONTEXT_FIELDS.to_vec(),
            _ => Method::names(of).to_vec(),
        };
        let alike = |known: &&&str| names.len() <= FEW || known.get(..1) == name.get(..1);
        let chosen: Vec<&str> = names.iter().filter(alike).take(FEW).copied().collect();
        if chosen.is_empty() {
            return Ok(String::new());
        }
        Ok(format!("; it has {}", chosen.join(", ")))
    }

    pub(in crate::actor) fn find_attribute(
        &mut self,
        of: Value,
        name: &str,
    ) -> Result<Option<Value>, Fault> {
        if let Some(method) = Method::find(of, name) {
            self.meter.alloc(Bound::COST)?;
            return Ok(Some(self.heap.own.bound(Bound { method, receiver: of })));
        }
        match of {
            Value::Record(id) => {
                let record = self.heap.record(id);
                let fields = &self.heap.record_type(record.of).fields;
                self.meter.elements(fields.len())?;
                // Only names of the same length are compared.
                let alike = fields.iter().filter(|field| field.name.len() == name.len()).count();
                self.meter.bytes(name.len().saturating_mul(alike))?;
                let at = fields.iter().position(|field| *field.name == *name);
                Ok(at.map(|at| self.heap.record(id).values[at]))
            }
            Value::Namespace(namespace) => {
                Ok(namespace.member(name).map(|value| self.as_seen(value)))
            }
            Value::Context => self.context(name),
            _ => Ok(None),
        }
    }

    /// The method of that name and its receiver, or the attribute and [`Value::Unset`].
    pub(super) fn method_of(&mut self, of: Value, name: &str) -> Result<(Value, Value), Fault> {
        if let Some(method) = Method::find(of, name) {
            return Ok((Value::Method(method), of));
        }
        Ok((self.attribute(of, name)?, Value::Unset))
    }

    pub(in crate::actor) fn new_range(&mut self, range: Range) -> Result<Value, Fault> {
        const BOUND: i64 = 1 << 31;
        let within = |bound: i64| (-BOUND..=BOUND).contains(&bound);
        if !(within(range.start) && within(range.stop) && within(range.step)) {
            return failed("bounds and step of a range have at most 32 bits");
        }
        self.meter.alloc(Range::COST)?;
        Ok(self.heap.own.range(range))
    }

    pub(in crate::actor) fn new_type(&mut self, of: Type) -> Result<Value, Fault> {
        self.meter.alloc(Type::COST)?;
        Ok(self.heap.own.type_(of))
    }
}

impl Range {
    const COST: u64 = 32;
}

impl Type {
    const COST: u64 = 64;
}

impl Bound {
    const COST: u64 = 40;
}

/// The indices that a slice selects in a sequence of `len`.
fn bounds(len: i64, [start, stop, step]: [Option<Value>; 3]) -> Result<Range, Fault> {
    let part = |value: Option<Value>| match value {
        None | Some(Value::None) => Ok(None),
        Some(Value::Int(int)) => Ok(Some(int)),
        Some(other) => failed(format!("slice bounds of type {} are not supported", other.kind())),
    };
    let (start, stop, step) = (part(start)?, part(stop)?, part(step)?.unwrap_or(1));
    if step == 0 {
        return failed("zero is not a valid slice step");
    }
    // All steps longer than the sequence have the same effect.
    let step = step.clamp(-len - 1, len + 1);
    let from_end = |index: i64| if index < 0 { index.saturating_add(len) } else { index };
    let (first, last) = if step > 0 { (0, len) } else { (-1, len - 1) };
    let clamp = |index: Option<i64>, otherwise: i64| {
        index.map_or(otherwise, |index| from_end(index).clamp(first, last))
    };
    let (start, stop) = if step > 0 {
        (clamp(start, 0), clamp(stop, len))
    } else {
        (clamp(start, len - 1), clamp(stop, -1))
    };
    Ok(Range { start, stop, step })
}
