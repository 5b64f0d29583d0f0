//! Loops, and other iteration over collections.

use super::Machine;
use crate::actor::{
    error::{Fault, failed},
    value::{Id, Value},
};

/// A running loop. A list or dict does not change while it is looped over.
#[derive(Clone, Copy, Debug)]
pub(in crate::actor) enum Loop {
    List {
        of: Id,
        next: usize,
    },
    Tuple {
        of: Id,
        next: usize,
    },
    Range {
        next: i64,
        step: i64,
        left: i64,
    },
    Dict {
        of: Id,
        place: u32,
    },
    /// The characters of a string; the next one begins at byte `at`.
    Text {
        of: Id,
        at: usize,
    },
}

fn not_iterable<T>(value: Value) -> Result<T, Fault> {
    failed(format!("operation not supported: {} is not iterable", value.kind()))
}

impl Machine<'_> {
    pub(super) fn begin_loop(&mut self, over: Value) -> Result<Loop, Fault> {
        Ok(match over {
            Value::List(of) => {
                if let Some(list) = self.heap.list_mut(of) {
                    list.loops += 1;
                }
                Loop::List { of, next: 0 }
            }
            Value::Dict(of) => {
                if let Some(dict) = self.heap.dict_mut(of) {
                    dict.loops += 1;
                }
                Loop::Dict { of, place: 0 }
            }
            Value::Tuple(of) => Loop::Tuple { of, next: 0 },
            Value::Text(of) => Loop::Text { of, at: 0 },
            Value::Range(of) => {
                let range = self.heap.range(of);
                Loop::Range { next: range.start, step: range.step, left: range.len() }
            }
            other => return not_iterable(other),
        })
    }

    /// The next element of the innermost loop.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<Value>, Fault> {
        let heap = &self.heap;
        Ok(match self.loops.last_mut().expect("a loop was begun") {
            Loop::Range { left: 0, .. } => None,
            Loop::Range { next, step, left } => {
                let element = *next;
                *next += *step;
                *left -= 1;
                Some(Value::Int(element))
            }
            Loop::List { of, next } => {
                *next += 1;
                heap.list(*of).items.get(*next - 1).copied()
            }
            Loop::Tuple { of, next } => {
                *next += 1;
                heap.tuple(*of).get(*next - 1).copied()
            }
            Loop::Dict { of, place } => heap.dict(*of).from(*place).map(|(at, key, _)| {
                *place = at + 1;
                key
            }),
            Loop::Text { of, at } => {
                let Some(character) = heap.str(*of)[*at..].chars().next() else { return Ok(None) };
                *at += character.len_utf8();
                return self.character(character).map(Some);
            }
        })
    }

    pub(in crate::actor) fn character(&mut self, character: char) -> Result<Value, Fault> {
        self.meter.objects(1)?;
        self.new_text(character.encode_utf8(&mut [0; 4]))
    }

    /// Ends the innermost loops until `left` remain.
    pub(super) fn end_loops(&mut self, left: usize) {
        for ended in self.loops.drain(left..) {
            match ended {
                Loop::List { of, .. } => {
                    if let Some(list) = self.heap.list_mut(of) {
                        list.loops -= 1;
                    }
                }
                Loop::Dict { of, .. } => {
                    if let Some(dict) = self.heap.dict_mut(of) {
                        dict.loops -= 1;
                    }
                }
                Loop::Tuple { .. } | Loop::Range { .. } | Loop::Text { .. } => {}
            }
        }
    }

    /// Number of elements of a collection, or of characters of a string; 0 for other values.
    pub(in crate::actor) fn count(&mut self, of: Value) -> Result<usize, Fault> {
        match of {
            Value::Text(id) => self.text_len(id),
            _ => Ok(self.length_hint(of)),
        }
    }

    /// Number of elements of a list, tuple or dict; 0 for other values, strings among them.
    pub(in crate::actor) fn length_hint(&self, of: Value) -> usize {
        match of {
            Value::List(_) | Value::Tuple(_) => self.sequence(of).len(),
            Value::Dict(id) => self.heap.dict(id).len(),
            Value::Range(id) => self.heap.range(id).len() as usize,
            _ => 0,
        }
    }

    /// The elements of a collection, paid for one by one and bounded like a list. The caller pays
    /// for the place that they are put into.
    pub(in crate::actor) fn items(
        &mut self,
        of: Value,
        what: &'static str,
    ) -> Result<Vec<Value>, Fault> {
        let len = self.count(of)?;
        self.meter.entries_fit(len)?;
        self.meter.elements(len)?;
        Ok(match of {
            Value::Text(id) => self.characters(id, len)?,
            Value::List(_) | Value::Tuple(_) => self.sequence(of).to_vec(),
            Value::Dict(id) => self.heap.dict(id).iter().map(|(key, _)| key).collect(),
            Value::Range(id) => {
                let range = *self.heap.range(id);
                (0..range.len()).map(|index| Value::Int(range.at(index))).collect()
            }
            other => {
                return failed(format!(
                    "operation not supported: {what}: {} is not iterable",
                    other.kind()
                ));
            }
        })
    }

    /// The characters of a string, each a string.
    fn characters(&mut self, text: Id, count: usize) -> Result<Vec<Value>, Fault> {
        let (mut at, mut characters) = (0, Vec::with_capacity(count));
        while let Some(character) = self.heap.str(text)[at..].chars().next() {
            at += character.len_utf8();
            characters.push(self.character(character)?);
        }
        Ok(characters)
    }

    /// Puts exactly `count` elements on the stack, the first on top.
    pub(super) fn unpack(&mut self, of: Value, count: usize) -> Result<(), Fault> {
        let got = match of {
            Value::List(_)
            | Value::Tuple(_)
            | Value::Dict(_)
            | Value::Range(_)
            | Value::Text(_) => self.count(of)?,
            other => return not_iterable(other),
        };
        if got != count {
            let few = if got < count { "few" } else { "many" };
            return failed(format!("too {few} values to unpack: got {got}, expected {count}"));
        }
        let items = self.items(of, "unpacking")?;
        self.stack.extend(items.into_iter().rev());
        Ok(())
    }

    /// Like [`Self::unpack`], but a starred target takes a list of the elements in the middle.
    pub(super) fn unpack_rest(
        &mut self,
        of: Value,
        first: usize,
        last: usize,
    ) -> Result<(), Fault> {
        let mut items = self.items(of, "unpacking")?;
        let (got, least) = (items.len(), first + last);
        if got < least {
            return failed(format!(
                "too few values to unpack: got {got}, expected at least {least}"
            ));
        }
        self.stack.extend(items.drain(got - last..).rev());
        let rest = items.split_off(first);
        self.meter.elements(rest.len())?;
        let rest = self.new_list(rest)?;
        self.stack.push(rest);
        self.stack.extend(items.into_iter().rev());
        Ok(())
    }
}
