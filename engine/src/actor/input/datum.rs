//! Generated values, before they are in a machine, and as an author writes them.

use super::shape::RecordShape;
use crate::actor::{error::Fault, eval::Machine, value::Value};
use num_bigint::BigInt;
use std::{fmt, sync::Arc};

/// A generated value. It displays as an expression of the language.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Datum {
    None,
    Bool(bool),
    Int(BigInt),
    Text(String),
    List(Vec<Datum>),
    Tuple(Vec<Datum>),
    /// Keys differ.
    Dict(Vec<(Datum, Datum)>),
    Record(Arc<RecordShape>, Vec<Datum>),
}

/// Arguments of a property test, in the order of its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestInput(pub(super) Vec<Datum>);

impl TestInput {
    /// Each argument as an expression that can be pasted into a module.
    pub(in crate::actor) fn literals(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(ToString::to_string)
    }

    /// Makes the arguments in a machine, which pays for them.
    pub(in crate::actor) fn values(&self, machine: &mut Machine<'_>) -> Result<Vec<Value>, Fault> {
        all(&self.0, machine)
    }
}

fn all(data: &[Datum], machine: &mut Machine<'_>) -> Result<Vec<Value>, Fault> {
    data.iter().map(|datum| datum.value(machine)).collect()
}

impl Datum {
    fn value(&self, machine: &mut Machine<'_>) -> Result<Value, Fault> {
        match self {
            Self::None => Ok(Value::None),
            Self::Bool(truth) => Ok(Value::Bool(*truth)),
            Self::Int(integer) => machine.new_integer(integer.clone()),
            Self::Text(text) => machine.new_text(text),
            Self::List(items) => {
                let items = all(items, machine)?;
                machine.new_list(items)
            }
            Self::Tuple(items) => {
                let items = all(items, machine)?;
                machine.new_tuple(items)
            }
            Self::Dict(entries) => {
                let (dict, id) = machine.new_dict()?;
                for (key, value) in entries {
                    let (key, value) = (key.value(machine)?, value.value(machine)?);
                    machine.dict_put(id, key, value)?;
                }
                Ok(dict)
            }
            Self::Record(of, values) => {
                let values = all(values, machine)?;
                machine.known_record(of.of, values)
            }
        }
    }
}

impl fmt::Display for Datum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listed = |f: &mut fmt::Formatter<'_>, items: &[Self]| {
            for (index, item) in items.iter().enumerate() {
                write!(f, "{}{item}", if index > 0 { ", " } else { "" })?;
            }
            Ok(())
        };
        match self {
            Self::None => f.write_str("None"),
            Self::Bool(true) => f.write_str("True"),
            Self::Bool(false) => f.write_str("False"),
            Self::Int(integer) => write!(f, "{integer}"),
            Self::Text(text) => quoted(text, f),
            Self::List(items) => {
                f.write_str("[")?;
                listed(f, items)?;
                f.write_str("]")
            }
            Self::Tuple(items) => {
                f.write_str("(")?;
                listed(f, items)?;
                f.write_str(if items.len() == 1 { ",)" } else { ")" })
            }
            Self::Dict(entries) => {
                f.write_str("{")?;
                for (index, (key, value)) in entries.iter().enumerate() {
                    write!(f, "{}{key}: {value}", if index > 0 { ", " } else { "" })?;
                }
                f.write_str("}")
            }
            Self::Record(of, values) => {
                write!(f, "{}(", of.name)?;
                for (index, ((name, _), value)) in of.fields.iter().zip(values).enumerate() {
                    write!(f, "{}{name} = {value}", if index > 0 { ", " } else { "" })?;
                }
                f.write_str(")")
            }
        }
    }
}

/// A string in double quotes, with an escape for each character that a reader could not tell from
/// others or that changes how a terminal shows the rest.
fn quoted(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("\"")?;
    for character in text.chars() {
        match character {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            ' '..='~' => write!(f, "{character}")?,
            _ if character.is_ascii() => write!(f, "\\x{:02x}", u32::from(character))?,
            // Letters and digits alone; marks join with their neighbours.
            _ if character.is_alphanumeric() && character.escape_debug().len() == 1 => {
                write!(f, "{character}")?;
            }
            '\u{80}'..='\u{ffff}' => write!(f, "\\u{:04x}", u32::from(character))?,
            _ => write!(f, "\\U{:08x}", u32::from(character))?,
        }
    }
    f.write_str("\"")
}
