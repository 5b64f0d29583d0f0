//! JSON: how values leave a call and enter it. Integers of any length within the limit, no
//! fractions; objects keep their order.

use super::text::text_argument;
use crate::actor::{
    error::{Fault, failed},
    eval::{Args, Machine},
    value::{Id, Value},
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
        let text = self.heap.str(id).to_owned();
        self.decode_json(&text)
    }

    /// A value as JSON.
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
            Value::Big(id) => {
                let integer = self.heap.integer(id).clone();
                let digits = self.decimal(&integer)?;
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
                        return failed(format!("keys of JSON are strings, not {}", key.kind()));
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
                    let name = self.heap.record_type(of).fields[index].name.clone();
                    self.push(to, if index > 0 { ",\"" } else { "" })?;
                    self.push(to, &name)?;
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

    /// The value that a JSON text stands for.
    pub(in crate::actor) fn decode_json(&mut self, text: &str) -> Result<Value, Fault> {
        self.meter.text(text.len())?;
        let mut reader = Reader { text, at: 0 };
        let value = self.read_json(&mut reader, 1)?;
        reader.skip_white();
        if reader.at < text.len() {
            return reader.fail("the end");
        }
        Ok(value)
    }

    fn read_json(&mut self, reader: &mut Reader<'_>, depth: u64) -> Result<Value, Fault> {
        self.meter.elements(1)?;
        reader.skip_white();
        match reader.peek() {
            Some(b'n') => reader.word("null", Value::None),
            Some(b't') => reader.word("true", Value::Bool(true)),
            Some(b'f') => reader.word("false", Value::Bool(false)),
            Some(b'"') => {
                let text = reader.string()?;
                self.take_text(text.len())?;
                Ok(self.paid_text(text))
            }
            Some(b'-' | b'0'..=b'9') => {
                let (negative, digits) = reader.digits()?;
                match self.parse_integer(negative, digits, 10)? {
                    Some(integer) => Ok(integer),
                    None => reader.fail("digits"),
                }
            }
            Some(b'[') => {
                self.meter.depth_fits(depth)?;
                reader.at += 1;
                let mut items = Vec::new();
                reader.skip_white();
                if !reader.eat(b']') {
                    loop {
                        self.meter.entries_fit(items.len() + 1)?;
                        self.meter.alloc(Value::COST)?;
                        items.push(self.read_json(reader, depth + 1)?);
                        reader.skip_white();
                        if reader.eat(b']') {
                            break;
                        }
                        reader.expect(b',', "a comma or ]")?;
                    }
                }
                self.new_list(items)
            }
            Some(b'{') => {
                self.meter.depth_fits(depth)?;
                reader.at += 1;
                let dict = self.new_dict()?;
                let Value::Dict(id) = dict else { unreachable!("it was made here") };
                reader.skip_white();
                if !reader.eat(b'}') {
                    loop {
                        reader.skip_white();
                        let key = reader.string()?;
                        self.take_text(key.len())?;
                        let key = self.paid_text(key);
                        reader.skip_white();
                        reader.expect(b':', "a colon")?;
                        let value = self.read_json(reader, depth + 1)?;
                        if self.dict_put(id, key, value)? {
                            return reader.fail("a key that was not there before");
                        }
                        reader.skip_white();
                        if reader.eat(b'}') {
                            break;
                        }
                        reader.expect(b',', "a comma or }")?;
                    }
                }
                Ok(dict)
            }
            _ => reader.fail("a value"),
        }
    }
}

/// Where reading is.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_white(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn eat(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    fn expect(&mut self, byte: u8, what: &str) -> Result<(), Fault> {
        if self.eat(byte) { Ok(()) } else { self.fail(what) }
    }

    fn fail<T>(&self, expected: &str) -> Result<T, Fault> {
        failed(format!("no JSON: {expected} is expected at byte {}", self.at))
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, Fault> {
        if !self.text[self.at..].starts_with(word) {
            return self.fail("a value");
        }
        self.at += word.len();
        Ok(value)
    }

    fn digits(&mut self) -> Result<(bool, &'a str), Fault> {
        let negative = self.eat(b'-');
        let rest = &self.text[self.at..];
        let len = rest.bytes().take_while(u8::is_ascii_digit).count();
        let digits = &rest[..len];
        if digits.len() > 1 && digits.starts_with('0') {
            return self.fail("a number without leading zeros");
        }
        self.at += len;
        if let Some(b'.' | b'e' | b'E') = self.peek() {
            return failed("there are no floats: JSON here has integers alone");
        }
        Ok((negative, digits))
    }

    fn string(&mut self) -> Result<String, Fault> {
        self.expect(b'"', "a string")?;
        let mut read = String::new();
        loop {
            let rest = &self.text[self.at..];
            let Some(plain) = rest.find(['"', '\\']) else { return self.fail("a closing quote") };
            if rest[..plain].bytes().any(|byte| byte < 0x20) {
                return self.fail("an escape for a control character");
            }
            read.push_str(&rest[..plain]);
            self.at += plain + 1;
            if rest.as_bytes()[plain] == b'"' {
                return Ok(read);
            }
            let Some(escape) = self.peek() else { return self.fail("an escape") };
            self.at += 1;
            read.push(match escape {
                b'"' => '"',
                b'\\' => '\\',
                b'/' => '/',
                b'b' => '\u{8}',
                b'f' => '\u{c}',
                b'n' => '\n',
                b'r' => '\r',
                b't' => '\t',
                b'u' => self.unicode()?,
                _ => return self.fail("an escape"),
            });
        }
    }

    fn unicode(&mut self) -> Result<char, Fault> {
        let high = self.unit()?;
        let code = match high {
            0xd800..0xdc00 => {
                self.expect(b'\\', "the second half of a pair")?;
                self.expect(b'u', "the second half of a pair")?;
                let low = self.unit()?;
                if !(0xdc00..0xe000).contains(&low) {
                    return self.fail("the second half of a pair");
                }
                0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)
            }
            other => other,
        };
        match char::from_u32(code) {
            Some(character) => Ok(character),
            None => self.fail("the first half of a pair"),
        }
    }

    fn unit(&mut self) -> Result<u32, Fault> {
        let digits = self.text.get(self.at..self.at + 4);
        let unit = digits
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .and_then(|digits| u32::from_str_radix(digits, 16).ok());
        match unit {
            Some(unit) => {
                self.at += 4;
                Ok(unit)
            }
            None => self.fail("four hex digits"),
        }
    }
}
