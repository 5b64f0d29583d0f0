//! JSON: the form of values that leave or enter a call. Integers have any length within the limit;
//! there are no fractions; objects keep their order.

use super::{append, text::text_argument};
use crate::{
    actor::{
        error::{ErrorKind, Fault, failed},
        eval::{Args, Machine},
        value::{Id, Value},
    },
    primitives::json::{Expected, Scanner},
};

impl Machine<'_> {
    pub(super) fn json_encode(&mut self, args: &Args) -> Result<Value, Fault> {
        let [value] = self.parameters(args, "json_encode", [""], 1)?;
        let text = self.encoded(value.unwrap_or(Value::None))?;
        self.take_text(text.len())?;
        Ok(self.paid_text(text))
    }

    pub(super) fn json_decode(&mut self, args: &Args) -> Result<Value, Fault> {
        let [text] = self.parameters(args, "json_decode", [""], 1)?;
        let id = text_argument(text, "json_decode")?;
        self.meter.text(self.heap.str(id).len())?;
        let text = self.heap.str(id).to_owned();
        self.paid_json(&text)
    }

    pub(in crate::actor) fn encoded(&mut self, value: Value) -> Result<String, Fault> {
        let mut text = String::new();
        self.write_json(&mut text, value, 1)?;
        Ok(text)
    }

    fn write_json(&mut self, to: &mut String, value: Value, depth: u64) -> Result<(), Fault> {
        self.meter.elements(1)?;
        match value {
            Value::None => self.push(to, "null"),
            Value::Bool(true) => self.push(to, "true"),
            Value::Bool(false) => self.push(to, "false"),
            Value::Int(int) => self.push(to, &int.to_string()),
            Value::Big(_) => {
                let digits = self.decimal(value)?;
                self.push(to, &digits)
            }
            Value::Text(id) => self.write_json_text(to, id),
            Value::List(_) | Value::Tuple(_) => {
                self.meter.depth_fits(depth)?;
                self.push(to, "[")?;
                let mut index = 0;
                while let Some(item) = self.sequence(value).get(index).copied() {
                    self.push(to, if index > 0 { "," } else { "" })?;
                    self.write_json(to, item, depth + 1)?;
                    index += 1;
                }
                self.push(to, "]")
            }
            Value::Dict(id) => {
                self.meter.depth_fits(depth)?;
                self.push(to, "{")?;
                let (mut place, mut first) = (0, true);
                while let Some((at, key, value)) = self.heap.dict(id).from(place) {
                    let Value::Text(key) = key else {
                        return failed(format!("keys of JSON must be strings, not {}", key.kind()));
                    };
                    self.push(to, if first { "" } else { "," })?;
                    self.write_json_text(to, key)?;
                    self.push(to, ":")?;
                    self.write_json(to, value, depth + 1)?;
                    (place, first) = (at + 1, false);
                }
                self.push(to, "}")
            }
            Value::Record(id) => {
                self.meter.depth_fits(depth)?;
                let of = self.heap.record(id).of;
                self.push(to, "{\"")?;
                for index in 0..self.heap.record(id).values.len() {
                    self.push(to, if index > 0 { ",\"" } else { "" })?;
                    let name = &self.heap.record_type(of).fields[index].name;
                    append(&mut self.meter, to, name)?;
                    self.push(to, "\":")?;
                    let value = self.heap.record(id).values[index];
                    self.write_json(to, value, depth + 1)?;
                }
                self.push(to, if self.heap.record(id).values.is_empty() { "\"}" } else { "}" })
            }
            other => failed(format!("{} is not JSON", other.kind())),
        }
    }

    fn write_json_text(&mut self, to: &mut String, id: Id) -> Result<(), Fault> {
        self.write_escaped(to, id, |byte| byte < 0x20, "\\u00")
    }

    pub(in crate::actor) fn decode_json(&mut self, text: &str) -> Result<Value, Fault> {
        self.meter.text(text.len())?;
        self.paid_json(text)
    }

    /// Decodes a JSON text whose characters were paid for.
    fn paid_json(&mut self, text: &str) -> Result<Value, Fault> {
        let mut reader = Scanner::new(text);
        let value = self.read_json(&mut reader, 1)?;
        reader.end()?;
        Ok(value)
    }

    fn read_json(&mut self, reader: &mut Scanner<'_>, depth: u64) -> Result<Value, Fault> {
        self.meter.elements(1)?;
        reader.skip_white();
        match reader.peek() {
            Some(b'n') => reader.word("null").map(|()| Value::None).map_err(Fault::from),
            Some(b't') => reader.word("true").map(|()| Value::Bool(true)).map_err(Fault::from),
            Some(b'f') => reader.word("false").map(|()| Value::Bool(false)).map_err(Fault::from),
            Some(b'"') => {
                let text = reader.string()?;
                self.take_text(text.len())?;
                Ok(self.paid_text(text))
            }
            Some(b'-' | b'0'..=b'9') => {
                let (negative, digits) = integer(reader)?;
                match self.parse_integer(negative, digits, 10)? {
                    Some(integer) => Ok(integer),
                    None => Ok(reader.fail("digits")?),
                }
            }
            Some(b'[') => {
                self.meter.depth_fits(depth)?;
                reader.eat(b'[');
                let mut items = Vec::new();
                reader.elements(b']', "a comma or ]", |reader| {
                    self.meter.entries_fit(items.len() + 1)?;
                    self.meter.alloc(Value::COST)?;
                    items.push(self.read_json(reader, depth + 1)?);
                    Ok::<_, Fault>(())
                })?;
                self.new_list(items)
            }
            Some(b'{') => {
                self.meter.depth_fits(depth)?;
                reader.eat(b'{');
                let (dict, id) = self.new_dict()?;
                reader.elements(b'}', "a comma or }", |reader| {
                    reader.skip_white();
                    let key = reader.string()?;
                    self.take_text(key.len())?;
                    let key = self.paid_text(key);
                    reader.skip_white();
                    reader.expect(b':', "a colon")?;
                    let value = self.read_json(reader, depth + 1)?;
                    if self.dict_put(id, key, value)? {
                        reader.fail::<()>("a new key")?;
                    }
                    Ok::<_, Fault>(())
                })?;
                Ok(dict)
            }
            _ => Ok(reader.fail("a value")?),
        }
    }
}

/// The sign and the digits of a number that must be an integer.
fn integer<'a>(reader: &mut Scanner<'a>) -> Result<(bool, &'a str), Fault> {
    let negative = reader.eat(b'-');
    let digits = reader.whole()?;
    if let Some(b'.' | b'e' | b'E') = reader.peek() {
        return failed("there are no floats: JSON here has only integers");
    }
    Ok((negative, digits))
}

impl From<Expected> for Fault {
    fn from(expected: Expected) -> Self {
        ErrorKind::Failed(format!("no JSON: {expected}")).into()
    }
}
