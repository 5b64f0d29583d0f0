//! Operators on values of each kind.

use super::{Machine, annotate::is_type};
use crate::actor::{
    error::{Fault, failed},
    syntax::{BinOp, Op},
    value::{Id, Type, Value},
};
use memchr::memmem;
use std::cmp::Ordering;

impl Machine<'_> {
    #[inline]
    pub(in crate::actor) fn truth(&self, value: Value) -> bool {
        match value {
            Value::Bool(truth) => truth,
            Value::None | Value::Unset => false,
            Value::Int(int) => int != 0,
            Value::Text(id) => !self.heap.str(id).is_empty(),
            Value::Tuple(id) => !self.heap.tuple(id).is_empty(),
            Value::List(id) => !self.heap.list(id).items.is_empty(),
            Value::Dict(id) => self.heap.dict(id).len() > 0,
            Value::Range(id) => self.heap.range(id).len() > 0,
            _ => true,
        }
    }

    pub(super) fn unary(&mut self, op: Op, value: Value) -> Result<Value, Fault> {
        let sign = match op {
            Op::Minus => "-",
            Op::Plus => "+",
            _ => "~",
        };
        match (op, value) {
            (Op::Plus, Value::Int(_) | Value::Big(_)) => Ok(value),
            (Op::Minus, Value::Int(_) | Value::Big(_)) => {
                self.arithmetic(BinOp::Subtract, Value::Int(0), value)
            }
            (Op::Invert, Value::Int(_) | Value::Big(_)) => {
                self.arithmetic(BinOp::Subtract, Value::Int(-1), value)
            }
            _ => failed(format!("operation not supported: {sign}{}", value.kind())),
        }
    }

    /// `left op right`; the caller has paid for its node.
    pub(in crate::actor) fn binary(
        &mut self,
        op: BinOp,
        left: Value,
        right: Value,
    ) -> Result<Value, Fault> {
        match op {
            BinOp::Equal => return self.equal(left, right).map(Value::Bool),
            BinOp::NotEqual => return self.equal(left, right).map(|same| Value::Bool(!same)),
            BinOp::Less => return self.ordered(op, left, right, Ordering::is_lt),
            BinOp::LessOrEqual => return self.ordered(op, left, right, Ordering::is_le),
            BinOp::Greater => return self.ordered(op, left, right, Ordering::is_gt),
            BinOp::GreaterOrEqual => return self.ordered(op, left, right, Ordering::is_ge),
            BinOp::In => return self.contains(right, left).map(Value::Bool),
            BinOp::NotIn => return self.contains(right, left).map(|is| Value::Bool(!is)),
            BinOp::Is => return Ok(Value::Bool(left == right)),
            BinOp::IsNot => return Ok(Value::Bool(left != right)),
            _ => {}
        }
        match (op, left, right) {
            (_, Value::Int(_) | Value::Big(_), Value::Int(_) | Value::Big(_)) => {
                self.arithmetic(op, left, right)
            }
            (BinOp::Add, Value::Text(a), Value::Text(b)) => {
                let len = self.heap.str(a).len() + self.heap.str(b).len();
                self.take_text(len)?;
                let joined = [self.heap.str(a), self.heap.str(b)].concat();
                Ok(self.paid_text(joined))
            }
            (BinOp::Add, Value::List(_), Value::List(_))
            | (BinOp::Add, Value::Tuple(_), Value::Tuple(_)) => {
                let len = self.sequence(left).len() + self.sequence(right).len();
                self.take_sequence(len)?;
                self.meter.elements(len)?;
                let joined = [self.sequence(left), self.sequence(right)].concat();
                Ok(self.paid_sequence(left, joined))
            }
            (BinOp::Multiply, Value::Text(id), Value::Int(count))
            | (BinOp::Multiply, Value::Int(count), Value::Text(id)) => {
                let count = count.max(0) as u64;
                let len = (self.heap.str(id).len() as u64).saturating_mul(count);
                self.take_text(usize::try_from(len).unwrap_or(usize::MAX))?;
                if len == 0 {
                    return Ok(self.paid_text(String::new()));
                }
                let repeated = self.heap.str(id).repeat(count as usize);
                Ok(self.paid_text(repeated))
            }
            (BinOp::Multiply, Value::List(_) | Value::Tuple(_), Value::Int(count)) => {
                self.repeat(left, count)
            }
            (BinOp::Multiply, Value::Int(count), Value::List(_) | Value::Tuple(_)) => {
                self.repeat(right, count)
            }
            (BinOp::Percent, Value::Text(format), _) => self.interpolate(format, right),
            (BinOp::BitOr, Value::Dict(a), Value::Dict(b)) => {
                let (merged, into) = self.new_dict()?;
                self.dict_update(into, a)?;
                self.dict_update(into, b)?;
                Ok(merged)
            }
            (BinOp::BitOr, a, b) if is_type(a) && is_type(b) => {
                self.new_type(Type::Union(Box::new([a, b])))
            }
            _ => failed(format!("operation not supported: {}{op}{}", left.kind(), right.kind())),
        }
    }

    /// `left op= right`. Lists and dicts grow in place.
    pub(super) fn augment(&mut self, op: BinOp, left: Value, right: Value) -> Result<Value, Fault> {
        match (op, left, right) {
            (
                BinOp::Add,
                Value::List(list),
                Value::List(_)
                | Value::Tuple(_)
                | Value::Dict(_)
                | Value::Range(_)
                | Value::Text(_),
            ) => {
                self.list_extend(list, right)?;
                Ok(left)
            }
            (BinOp::BitOr, Value::Dict(into), Value::Dict(from)) => {
                self.dict_update(into, from)?;
                Ok(left)
            }
            _ => self.binary(op, left, right),
        }
    }

    pub(in crate::actor) fn sequence(&self, value: Value) -> &[Value] {
        match value {
            Value::List(id) => &self.heap.list(id).items,
            Value::Tuple(id) => self.heap.tuple(id),
            _ => &[],
        }
    }

    /// A list or tuple, the same kind as `like`, whose heap was taken.
    pub(super) fn paid_sequence(&mut self, like: Value, items: Vec<Value>) -> Value {
        match like {
            Value::Tuple(_) => self.heap.own.tuple(items.into()),
            _ => self.paid_list(items),
        }
    }

    fn repeat(&mut self, value: Value, count: i64) -> Result<Value, Fault> {
        let len = (self.sequence(value).len() as u64).saturating_mul(count.max(0) as u64);
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        self.take_sequence(len)?;
        self.meter.elements(len)?;
        let items = if len == 0 { Vec::new() } else { self.sequence(value).repeat(count as usize) };
        Ok(self.paid_sequence(value, items))
    }

    fn ordered(
        &mut self,
        op: BinOp,
        left: Value,
        right: Value,
        holds: fn(Ordering) -> bool,
    ) -> Result<Value, Fault> {
        match self.order(left, right)? {
            Some(order) => Ok(Value::Bool(holds(order))),
            None => failed(format!("operation not supported: {}{op}{}", left.kind(), right.kind())),
        }
    }

    fn contains(&mut self, collection: Value, value: Value) -> Result<bool, Fault> {
        match (collection, value) {
            (Value::Text(text), Value::Text(part)) => {
                let len = self.heap.str(text).len() + self.heap.str(part).len();
                self.meter.search(len)?;
                let (text, part) = (self.heap.str(text), self.heap.str(part));
                Ok(memmem::find(text.as_bytes(), part.as_bytes()).is_some())
            }
            (Value::Text(_), other) => {
                failed(format!("`in` requires string as left operand, not {}", other.kind()))
            }
            (Value::Dict(dict), _) => Ok(self.dict_find(dict, value)?.is_some()),
            (Value::List(_) | Value::Tuple(_), _) => {
                let mut index = 0;
                while let Some(element) = self.sequence(collection).get(index).copied() {
                    if self.equal(element, value)? {
                        return Ok(true);
                    }
                    index += 1;
                }
                Ok(false)
            }
            (Value::Range(range), Value::Int(int)) => Ok(self.heap.range(range).contains(int)),
            // A value that is not an integer, or that is too long for a range, is in no range.
            (Value::Range(_), _) => Ok(false),
            _ => {
                let (value, collection) = (value.kind(), collection.kind());
                failed(format!("operation not supported: {value} in {collection}"))
            }
        }
    }

    /// The number of characters of a string. Counting them is paid for.
    pub(in crate::actor) fn text_len(&mut self, text: Id) -> Result<usize, Fault> {
        let text = self.heap.text(text);
        if !text.is_ascii() {
            let bytes = text.as_str().len();
            self.meter.bytes(bytes)?;
        }
        Ok(text.len())
    }
}
