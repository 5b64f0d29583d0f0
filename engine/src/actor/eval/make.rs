//! New values. Each checks its limits and takes its heap before it is made.

use super::{CallFrame, Machine, annotate::require_type};
use crate::actor::{
    error::Fault,
    syntax::Capture,
    value::{Arena, Dict, Function, Id, List, Text, Value},
};
use num_bigint::BigInt;
use num_traits::ToPrimitive;

/// Heap bytes of a list or tuple, without its elements.
const SEQUENCE_COST: u64 = 48;
/// Heap bytes of a function, without its defaults, types and captures.
const FUNCTION_COST: u64 = 64;

impl Machine<'_> {
    /// Pays for the heap of a list or tuple that does not exist yet.
    pub(in crate::actor) fn take_sequence(&mut self, len: usize) -> Result<(), Fault> {
        self.meter.entries_fit(len)?;
        self.meter.alloc(SEQUENCE_COST + len as u64 * Value::COST)
    }

    pub(in crate::actor) fn new_list(&mut self, items: Vec<Value>) -> Result<Value, Fault> {
        self.take_sequence(items.len())?;
        Ok(self.paid_list(items))
    }

    /// A list whose heap was taken by [`take_sequence`](Self::take_sequence).
    pub(in crate::actor) fn paid_list(&mut self, items: Vec<Value>) -> Value {
        self.heap.own.list(List { items, loops: 0 })
    }

    pub(in crate::actor) fn new_tuple(&mut self, items: Vec<Value>) -> Result<Value, Fault> {
        self.take_sequence(items.len())?;
        Ok(self.heap.own.tuple(items.into()))
    }

    /// An empty dict, and its id.
    pub(in crate::actor) fn new_dict(&mut self) -> Result<(Value, Id), Fault> {
        self.meter.alloc(Dict::COST)?;
        let dict = self.heap.own.dict(Dict::default());
        let Value::Dict(id) = dict else { unreachable!("it was made here") };
        Ok((dict, id))
    }

    /// Pays for a string of `bytes` bytes that does not exist yet: its heap, and the bytes moved.
    pub(in crate::actor) fn take_text(&mut self, bytes: usize) -> Result<(), Fault> {
        self.meter.string_fits(bytes)?;
        self.meter.bytes(bytes)?;
        self.meter.alloc(Text::cost(bytes))
    }

    pub(in crate::actor) fn new_text(&mut self, text: &str) -> Result<Value, Fault> {
        self.take_text(text.len())?;
        Ok(self.paid_text(text.to_owned()))
    }

    /// A string whose heap was taken by [`take_text`](Self::take_text).
    pub(in crate::actor) fn paid_text(&mut self, text: String) -> Value {
        self.heap.own.text(Text::new(text))
    }

    /// An integer of any length within the limit.
    pub(in crate::actor) fn new_integer(&mut self, integer: BigInt) -> Result<Value, Fault> {
        if let Some(small) = integer.to_i64() {
            return Ok(Value::Int(small));
        }
        self.meter.bits_fit(integer.bits())?;
        self.meter.alloc(Arena::integer_cost(integer.bits()))?;
        Ok(self.heap.own.integer(integer))
    }

    /// Makes the function that was just defined, whose defaults and types are on the stack.
    pub(super) fn make_function(&mut self, code: u32, frame: &CallFrame) -> Result<(), Fault> {
        let function = &self.program.functions[code as usize];
        let held = function.defaults + function.types + function.captures.len() as u32;
        self.meter.alloc(FUNCTION_COST + u64::from(held) * Value::COST)?;
        let types = self.pop_many(function.types as usize);
        for annotation in &types {
            require_type(*annotation)?;
        }
        let defaults = self.pop_many(function.defaults as usize);
        let captures = function
            .captures
            .iter()
            .map(|capture| match capture {
                Capture::Shared(slot) => match self.stack[frame.base + *slot as usize] {
                    Value::Bound(cell) => cell,
                    _ => unreachable!("a shared slot holds its cell"),
                },
                Capture::Captured(index) => {
                    let around = frame.function.expect("only functions capture");
                    self.heap.function(around).captures[*index as usize]
                }
            })
            .collect::<Box<[Id]>>();
        let (defaults, types) = (defaults.into(), types.into());
        let value = self.heap.own.function(Function { code, defaults, types, captures });
        self.stack.push(value);
        Ok(())
    }
}
