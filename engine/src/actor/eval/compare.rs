//! Equality, order and hashes. They cost one cycle per element visited and one per 32 bytes; a
//! comparison counts the bytes of both sides.

use super::Machine;
use crate::actor::{
    error::{Fault, failed},
    value::{Hasher, Value},
};
use std::{
    cmp::Ordering,
    hash::{Hash, Hasher as _},
};

impl Machine<'_> {
    pub(in crate::actor) fn equal(&mut self, a: Value, b: Value) -> Result<bool, Fault> {
        self.equal_at(a, b, 1)
    }

    fn equal_at(&mut self, a: Value, b: Value, depth: u64) -> Result<bool, Fault> {
        self.meter.elements(1)?;
        if a == b {
            return Ok(true);
        }
        match (a, b) {
            (Value::Big(x), Value::Big(y)) => {
                let (x, y) = (self.heap.integer(x), self.heap.integer(y));
                self.meter.bytes(x.bits() as usize / 8)?;
                Ok(x == y)
            }
            (Value::Text(x), Value::Text(y)) => {
                let (x, y) = (self.heap.str(x), self.heap.str(y));
                if x.len() != y.len() {
                    return Ok(false);
                }
                self.meter.bytes(2 * x.len())?;
                Ok(x.is_empty() || x == y)
            }
            (Value::Tuple(_), Value::Tuple(_)) | (Value::List(_), Value::List(_)) => {
                let len = self.sequence(a).len();
                if len != self.sequence(b).len() {
                    return Ok(false);
                }
                self.meter.depth_fits(depth)?;
                for index in 0..len {
                    let (x, y) = (self.sequence(a)[index], self.sequence(b)[index]);
                    if !self.equal_at(x, y, depth + 1)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Value::Dict(x), Value::Dict(y)) => {
                if self.heap.dict(x).len() != self.heap.dict(y).len() {
                    return Ok(false);
                }
                self.meter.depth_fits(depth)?;
                let mut place = 0;
                while let Some((at, key, value)) = self.heap.dict(x).from(place) {
                    let Some(other) = self.dict_get(y, key)? else { return Ok(false) };
                    if !self.equal_at(value, other, depth + 1)? {
                        return Ok(false);
                    }
                    place = at + 1;
                }
                Ok(true)
            }
            (Value::Record(x), Value::Record(y)) => {
                if self.heap.record(x).of != self.heap.record(y).of {
                    return Ok(false);
                }
                self.meter.depth_fits(depth)?;
                for index in 0..self.heap.record(x).values.len() {
                    let (p, q) =
                        (self.heap.record(x).values[index], self.heap.record(y).values[index]);
                    if !self.equal_at(p, q, depth + 1)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Value::Range(x), Value::Range(y)) => Ok(self.heap.range(x).same(self.heap.range(y))),
            _ => Ok(false),
        }
    }

    /// The order of two values; `None` if they have none.
    pub(in crate::actor) fn order(
        &mut self,
        a: Value,
        b: Value,
    ) -> Result<Option<Ordering>, Fault> {
        self.order_at(a, b, 1)
    }

    fn order_at(&mut self, a: Value, b: Value, depth: u64) -> Result<Option<Ordering>, Fault> {
        self.meter.elements(1)?;
        match (a, b) {
            (Value::Int(x), Value::Int(y)) => Ok(Some(x.cmp(&y))),
            (Value::Int(_) | Value::Big(_), Value::Int(_) | Value::Big(_)) => {
                self.meter.bytes(self.meter.limits.bits as usize / 8)?;
                Ok(self.heap.big(a).zip(self.heap.big(b)).map(|(x, y)| x.cmp(&y)))
            }
            (Value::Bool(x), Value::Bool(y)) => Ok(Some(x.cmp(&y))),
            (Value::Text(x), Value::Text(y)) => {
                let (x, y) = (self.heap.str(x), self.heap.str(y));
                self.meter.bytes(2 * x.len().min(y.len()))?;
                // Comparing zero bytes can be slow: an empty string has no address.
                if x.is_empty() || y.is_empty() {
                    return Ok(Some(x.len().cmp(&y.len())));
                }
                // The order of UTF-8 bytes is the order of their characters.
                Ok(Some(x.cmp(y)))
            }
            (Value::Tuple(_), Value::Tuple(_)) | (Value::List(_), Value::List(_)) => {
                self.meter.depth_fits(depth)?;
                let (left, right) = (self.sequence(a).len(), self.sequence(b).len());
                for index in 0..left.min(right) {
                    let (x, y) = (self.sequence(a)[index], self.sequence(b)[index]);
                    if !self.equal_at(x, y, depth + 1)? {
                        return self.order_at(x, y, depth + 1);
                    }
                }
                Ok(Some(left.cmp(&right)))
            }
            _ => Ok(None),
        }
    }

    pub(super) fn hash(&mut self, key: Value) -> Result<u64, Fault> {
        let mut hasher = Hasher::new();
        self.hash_into(key, &mut hasher, 1)?;
        Ok(hasher.finish())
    }

    fn hash_into(&mut self, key: Value, hasher: &mut Hasher, depth: u64) -> Result<(), Fault> {
        self.meter.elements(1)?;
        match key {
            Value::None => 0u8.hash(hasher),
            Value::Bool(x) => (1u8, x).hash(hasher),
            Value::Int(x) => (2u8, x).hash(hasher),
            Value::Big(id) => {
                self.meter.bytes(self.meter.limits.bits as usize / 8)?;
                (3u8, self.heap.integer(id)).hash(hasher);
            }
            Value::Text(id) => {
                let text = self.heap.str(id);
                self.meter.bytes(text.len())?;
                (4u8, text).hash(hasher);
            }
            Value::Tuple(id) => {
                self.meter.depth_fits(depth)?;
                let len = self.heap.tuple(id).len();
                (5u8, len).hash(hasher);
                for index in 0..len {
                    let element = self.heap.tuple(id)[index];
                    self.hash_into(element, hasher, depth + 1)?;
                }
            }
            Value::Record(id) => {
                self.meter.depth_fits(depth)?;
                (6u8, self.heap.record(id).of.index()).hash(hasher);
                for index in 0..self.heap.record(id).values.len() {
                    let value = self.heap.record(id).values[index];
                    self.hash_into(value, hasher, depth + 1)?;
                }
            }
            // These are equal only if they are identical. Freezing does not change an index.
            Value::Function(id) => (7u8, id.index()).hash(hasher),
            Value::RecordType(id) => (9u8, id.index()).hash(hasher),
            Value::Builtin(builtin) => (8u8, builtin).hash(hasher),
            other => {
                return failed(format!("unhashable type: {}", other.kind()));
            }
        }
        Ok(())
    }

    /// Whether two keys with the same hash are equal. Hashing them has paid for this.
    pub(super) fn same_key(&self, a: Value, b: Value) -> bool {
        let all = |x: &[Value], y: &[Value]| {
            x.len() == y.len() && x.iter().zip(y).all(|(p, q)| self.same_key(*p, *q))
        };
        match (a, b) {
            (Value::Text(x), Value::Text(y)) => {
                let (x, y) = (self.heap.str(x), self.heap.str(y));
                x.len() == y.len() && (x.is_empty() || x == y)
            }
            (Value::Big(x), Value::Big(y)) => self.heap.integer(x) == self.heap.integer(y),
            (Value::Tuple(x), Value::Tuple(y)) => all(self.heap.tuple(x), self.heap.tuple(y)),
            (Value::Record(x), Value::Record(y)) => {
                let (x, y) = (self.heap.record(x), self.heap.record(y));
                x.of == y.of && all(&x.values, &y.values)
            }
            _ => a == b,
        }
    }

    /// Merge sort, so that the number of comparisons depends on this code alone. Stable, in
    /// descending order too.
    pub(in crate::actor) fn sort(
        &mut self,
        keyed: Vec<(Value, Value)>,
        descending: bool,
    ) -> Result<Vec<Value>, Fault> {
        let len = keyed.len();
        self.meter.alloc(len as u64 * 4 * Value::COST)?;
        let (mut from, mut into) = (keyed, Vec::with_capacity(len));
        let mut width = 1;
        while width < len {
            into.clear();
            for start in (0..len).step_by(2 * width) {
                let (middle, end) = ((start + width).min(len), (start + 2 * width).min(len));
                let (mut a, mut b) = (start, middle);
                while a < middle && b < end {
                    let (left, right) = (from[a].0, from[b].0);
                    self.meter.elements(1)?;
                    let Some(order) = self.order(right, left)? else {
                        let (left, right) = (left.kind(), right.kind());
                        return failed(format!("operation not supported: {left} < {right}"));
                    };
                    let take_right = if descending { order.is_gt() } else { order.is_lt() };
                    if take_right {
                        into.push(from[b]);
                        b += 1;
                    } else {
                        into.push(from[a]);
                        a += 1;
                    }
                }
                self.meter.elements(middle - a + end - b)?;
                into.extend_from_slice(&from[a..middle]);
                into.extend_from_slice(&from[b..end]);
            }
            std::mem::swap(&mut from, &mut into);
            width *= 2;
        }
        Ok(from.into_iter().map(|(_, item)| item).collect())
    }
}
