//! Fields of f-strings and their concatenation, and assertions.

use super::Machine;
use crate::actor::{
    error::{Fault, failed},
    syntax::Conversion,
    value::{Id, Value},
};

/// Longest message that an assertion keeps, in bytes.
pub(in crate::actor) const MAX_ASSERTION: usize = 1024;

/// Length in bytes at which an error cuts a value.
const MAX_SHOWN: usize = 128;

impl Machine<'_> {
    /// A value as the string that a field of an f-string asks for.
    pub(super) fn field_text(
        &mut self,
        value: Value,
        conversion: Conversion,
        specification: Option<Value>,
    ) -> Result<Value, Fault> {
        let value = match (conversion, value) {
            (Conversion::None, _) if specification.is_some() => value,
            (Conversion::None | Conversion::Str, Value::Text(_)) => value,
            _ => {
                let mut text = String::new();
                if conversion == Conversion::Repr {
                    self.write_repr(&mut text, value, 1)?;
                } else {
                    self.write_str(&mut text, value)?;
                }
                self.take_text(text.len())?;
                self.paid_text(text)
            }
        };
        let Some(Value::Text(specification)) = specification else { return Ok(value) };
        let len = self.heap.str(specification).len();
        self.meter.bytes(len)?;
        let specification = self.heap.str(specification).to_owned();
        let mut text = String::new();
        self.write_specified(&mut text, value, &specification)?;
        self.take_text(text.len())?;
        Ok(self.paid_text(text))
    }

    pub(super) fn concat(&mut self, parts: &[Value]) -> Result<Value, Fault> {
        if let [text @ Value::Text(_)] = parts {
            return Ok(*text);
        }
        self.meter.elements(parts.len())?;
        let texts: Vec<Id> = parts.iter().filter_map(|part| part.text()).collect();
        let len: usize = texts.iter().map(|id| self.heap.str(*id).len()).sum();
        self.take_text(len)?;
        let mut joined = String::with_capacity(len);
        for id in texts {
            joined.push_str(self.heap.str(id));
        }
        Ok(self.paid_text(joined))
    }

    /// A value for an error: its `repr`, cut if it is long or deep.
    pub(in crate::actor) fn shown(&mut self, value: Value) -> Result<String, Fault> {
        let mut text = String::new();
        self.show(&mut text, value, 0)?;
        text.truncate(text.floor_char_boundary(2 * MAX_SHOWN));
        Ok(text)
    }

    fn show(&mut self, to: &mut String, value: Value, depth: u32) -> Result<(), Fault> {
        self.meter.elements(1)?;
        if to.len() > MAX_SHOWN || depth > 3 {
            to.push('…');
            return Ok(());
        }
        let [open, close] = match value {
            Value::Text(id) if self.heap.str(id).len() > MAX_SHOWN => {
                self.meter.text(MAX_SHOWN)?;
                to.push_str(&format!("{:?}", cut(self.heap.str(id), MAX_SHOWN)));
                to.pop();
                to.push('…');
                return Ok(());
            }
            Value::Big(_) => {
                let digits = self.decimal(value)?;
                to.push_str(cut(&digits, MAX_SHOWN));
                to.push_str(if digits.len() > MAX_SHOWN { "…" } else { "" });
                return Ok(());
            }
            Value::List(_) => ["[", "]"],
            Value::Tuple(_) => ["(", ")"],
            Value::Dict(_) | Value::Record(_) => {
                to.push_str(value.kind());
                return Ok(());
            }
            _ => return self.write_repr(to, value, 1),
        };
        to.push_str(open);
        let mut index = 0;
        while let Some(item) = self.sequence(value).get(index).copied() {
            to.push_str(if index > 0 { ", " } else { "" });
            self.show(to, item, depth + 1)?;
            if to.len() > MAX_SHOWN {
                break;
            }
            index += 1;
        }
        let alone = index == 1 && matches!(value, Value::Tuple(_));
        to.push_str(if alone { "," } else { "" });
        to.push_str(close);
        Ok(())
    }

    pub(super) fn assertion_failed<T>(&mut self, message: Option<Value>) -> Result<T, Fault> {
        let Some(message) = message else { return failed("assertion failed") };
        let mut text = String::new();
        self.write_str(&mut text, message)?;
        failed(format!("assertion failed: {}", cut(&text, MAX_ASSERTION)))
    }
}

/// The longest prefix of whole characters that has at most `most` bytes.
pub(in crate::actor) fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}
