//! Values as text: `str`, `repr`, `%` and `format`.

use crate::actor::{
    error::{Fault, failed},
    eval::{Args, Machine, shorten},
    gas::Meter,
    value::{Id, Value},
};

/// Appends text that is there, within the limit of a string.
pub(super) fn append(meter: &mut Meter, to: &mut String, text: &str) -> Result<(), Fault> {
    meter.bytes(text.len())?;
    meter.string_fits(to.len() + text.len())?;
    to.push_str(text);
    Ok(())
}

impl Machine<'_> {
    /// Appends text that is not on the heap; see [`append`].
    pub(super) fn push(&mut self, to: &mut String, text: &str) -> Result<(), Fault> {
        append(&mut self.meter, to, text)
    }

    /// Appends a value as `str` has it.
    pub(in crate::actor) fn write_str(
        &mut self,
        to: &mut String,
        value: Value,
    ) -> Result<(), Fault> {
        let Value::Text(id) = value else { return self.write_repr(to, value, 1) };
        append(&mut self.meter, to, self.heap.str(id))
    }

    /// Appends a value as `repr` has it.
    pub(super) fn write_repr(
        &mut self,
        to: &mut String,
        value: Value,
        depth: u64,
    ) -> Result<(), Fault> {
        self.meter.elements(1)?;
        match value {
            Value::None => self.push(to, "None"),
            Value::Bool(true) => self.push(to, "True"),
            Value::Bool(false) => self.push(to, "False"),
            Value::Int(int) => self.push(to, &int.to_string()),
            Value::Big(_) => {
                let digits = self.decimal(value)?;
                self.push(to, &digits)
            }
            Value::Text(id) => self.write_quoted(to, id),
            Value::List(_) => self.write_all(to, value, ["[", "]"], depth),
            Value::Tuple(_) => self.write_all(to, value, ["(", ")"], depth),
            Value::Dict(id) => {
                self.meter.depth_fits(depth)?;
                self.push(to, "{")?;
                let (mut place, mut first) = (0, true);
                while let Some((at, key, value)) = self.heap.dict(id).from(place) {
                    self.push(to, if first { "" } else { ", " })?;
                    self.write_repr(to, key, depth + 1)?;
                    self.push(to, ": ")?;
                    self.write_repr(to, value, depth + 1)?;
                    (place, first) = (at + 1, false);
                }
                self.push(to, "}")
            }
            Value::Record(id) => {
                self.meter.depth_fits(depth)?;
                let of = self.heap.record(id).of;
                let name = self.heap.record_type(of).name.as_deref();
                append(&mut self.meter, to, name.unwrap_or("record"))?;
                self.push(to, "(")?;
                for index in 0..self.heap.record(id).values.len() {
                    self.push(to, if index > 0 { ", " } else { "" })?;
                    let name = &self.heap.record_type(of).fields[index].name;
                    append(&mut self.meter, to, name)?;
                    self.push(to, "=")?;
                    let value = self.heap.record(id).values[index];
                    self.write_repr(to, value, depth + 1)?;
                }
                self.push(to, ")")
            }
            Value::Range(id) => {
                let range = *self.heap.range(id);
                let text = match (range.start, range.step) {
                    (0, 1) => format!("range({})", range.stop),
                    (start, 1) => format!("range({start}, {})", range.stop),
                    (start, step) => format!("range({start}, {}, {step})", range.stop),
                };
                self.push(to, &text)
            }
            Value::Function(id) => {
                let code = &self.program.functions[self.heap.function(id).code as usize];
                let name = self.name(code.name);
                self.push(to, "<function ")?;
                self.push(to, name)?;
                self.push(to, ">")
            }
            Value::Builtin(builtin) => {
                self.push(to, &format!("<built-in function {}>", builtin.name()))
            }
            Value::Method(method) => self.push(to, &format!("<built-in method {}>", method.name())),
            Value::Bound(id) => {
                let method = self.heap.bound(id).method;
                self.push(to, &format!("<built-in method {}>", method.name()))
            }
            Value::Namespace(namespace) => self.push(to, &format!("<module {}>", namespace.name())),
            Value::RecordType(_)
            | Value::Type(_)
            | Value::Context
            | Value::Ellipsis
            | Value::Unset => self.push(to, &format!("<{}>", value.kind())),
        }
    }

    fn write_all(
        &mut self,
        to: &mut String,
        value: Value,
        [open, close]: [&str; 2],
        depth: u64,
    ) -> Result<(), Fault> {
        self.meter.depth_fits(depth)?;
        self.push(to, open)?;
        let mut index = 0;
        while let Some(item) = self.sequence(value).get(index).copied() {
            self.push(to, if index > 0 { ", " } else { "" })?;
            self.write_repr(to, item, depth + 1)?;
            index += 1;
        }
        let alone = index == 1 && matches!(value, Value::Tuple(_));
        self.push(to, if alone { "," } else { "" })?;
        self.push(to, close)
    }

    fn write_quoted(&mut self, to: &mut String, id: Id) -> Result<(), Fault> {
        self.write_escaped(to, id, |byte| byte.is_ascii_control(), "\\x")
    }

    /// Appends a string in double quotes; what `is_control` but has no escape of its own is
    /// written as `prefix` and two hex digits.
    pub(super) fn write_escaped(
        &mut self,
        to: &mut String,
        id: Id,
        is_control: fn(u8) -> bool,
        prefix: &str,
    ) -> Result<(), Fault> {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let text = self.heap.str(id);
        self.meter.text(text.len())?;
        let own = |byte| matches!(byte, b'"' | b'\\' | b'\n' | b'\r' | b'\t');
        let extra = |byte| match byte {
            _ if own(byte) => 1,
            _ if is_control(byte) => prefix.len() + 1,
            _ => 0,
        };
        let extra: usize = text.bytes().map(extra).sum();
        self.meter.text(extra)?;
        self.meter.string_fits(to.len() + text.len() + extra + 2)?;
        to.push('"');
        let mut plain = 0;
        for (at, byte) in text.bytes().enumerate() {
            if !own(byte) && !is_control(byte) {
                continue;
            }
            to.push_str(&text[plain..at]);
            plain = at + 1;
            match byte {
                b'"' => to.push_str("\\\""),
                b'\\' => to.push_str("\\\\"),
                b'\n' => to.push_str("\\n"),
                b'\r' => to.push_str("\\r"),
                b'\t' => to.push_str("\\t"),
                _ => {
                    to.push_str(prefix);
                    to.push(char::from(DIGITS[usize::from(byte >> 4)]));
                    to.push(char::from(DIGITS[usize::from(byte & 15)]));
                }
            }
        }
        to.push_str(&text[plain..]);
        to.push('"');
        Ok(())
    }

    /// `format % arguments`
    pub(in crate::actor) fn interpolate(
        &mut self,
        format: Id,
        arguments: Value,
    ) -> Result<Value, Fault> {
        self.meter.text(self.heap.str(format).len())?;
        let format = self.heap.str(format).to_owned();
        let all = match arguments {
            Value::Tuple(_) => self.items(arguments, "arguments of %")?,
            other => vec![other],
        };
        let mut given = all.into_iter();
        let mut text = String::new();
        let mut rest = format.as_str();
        while let Some((plain, conversion)) = rest.split_once('%') {
            self.meter.elements(1)?;
            self.push(&mut text, plain)?;
            let mut characters = conversion.chars();
            let letter = characters.next();
            rest = characters.as_str();
            if letter == Some('%') {
                self.push(&mut text, "%")?;
                continue;
            }
            let value = match letter {
                // A name in parentheses picks from a dict.
                Some('(') => {
                    let Some((name, after)) = rest.split_once(')') else {
                        return failed("incomplete format key");
                    };
                    let Value::Dict(dict) = arguments else {
                        return failed("a format with names takes a dict");
                    };
                    let key = self.new_text(name)?;
                    let Some(value) = self.dict_get(dict, key)? else {
                        return failed(format!("key {} is not in the dict", shorten(name)));
                    };
                    given = Vec::new().into_iter();
                    let mut characters = after.chars();
                    let letter = characters.next();
                    rest = characters.as_str();
                    self.convert(&mut text, letter, value)?;
                    continue;
                }
                _ => match given.next() {
                    Some(value) => value,
                    None => return failed("not enough arguments for format string"),
                },
            };
            self.convert(&mut text, letter, value)?;
        }
        self.push(&mut text, rest)?;
        if given.next().is_some() {
            return failed("too many arguments for format string");
        }
        self.take_text(text.len())?;
        Ok(self.paid_text(text))
    }

    fn convert(
        &mut self,
        to: &mut String,
        letter: Option<char>,
        value: Value,
    ) -> Result<(), Fault> {
        match letter {
            Some('s') => self.write_str(to, value),
            Some('r') => self.write_repr(to, value, 1),
            Some(letter @ ('d' | 'i' | 'o' | 'x' | 'X')) => {
                if !matches!(value, Value::Int(_) | Value::Big(_)) {
                    return failed(format!("%{letter} takes an int, not {}", value.kind()));
                }
                let digits = match letter {
                    'o' => self.in_radix(value, 8)?,
                    'x' => self.in_radix(value, 16)?,
                    'X' => self.in_radix(value, 16)?.to_uppercase(),
                    _ => self.decimal(value)?,
                };
                self.push(to, &digits)
            }
            Some('c') => match value {
                Value::Text(id) if self.text_len(id)? == 1 => self.write_str(to, value),
                Value::Int(code) => {
                    let character = u32::try_from(code).ok().and_then(char::from_u32);
                    match character {
                        Some(character) => self.push(to, character.encode_utf8(&mut [0; 4])),
                        None => failed("%c takes a code point"),
                    }
                }
                other => failed(format!("%c takes a character, not {}", other.kind())),
            },
            Some(other) => failed(format!("unknown conversion %{other}")),
            None => failed("incomplete format: it ends in %"),
        }
    }

    /// `text.format(…)`
    pub(super) fn format(&mut self, text: Id, args: &Args) -> Result<Value, Fault> {
        self.meter.text(self.heap.str(text).len())?;
        let format = self.heap.str(text).to_owned();
        let mut text = String::new();
        let (mut automatic, mut manual) = (0, false);
        let mut rest = format.as_str();
        while let Some(at) = rest.find(['{', '}']) {
            self.meter.elements(1)?;
            self.push(&mut text, &rest[..at])?;
            let brace = &rest[at..=at];
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix(brace) {
                self.push(&mut text, brace)?;
                rest = after;
                continue;
            }
            if brace == "}" {
                return failed("single '}' in format");
            }
            let Some((field, after)) = rest.split_once('}') else {
                return failed("unmatched '{' in format");
            };
            rest = after;
            if field.contains('{') {
                return failed("nested replacement fields are not supported");
            }
            let (field, specification) = field.split_once(':').unwrap_or((field, ""));
            if !specification.is_empty() {
                return failed("format spec features are not supported");
            }
            let (name, conversion) = field.split_once('!').unwrap_or((field, "s"));
            let value = if name.is_empty() {
                if manual {
                    return failed(
                        "cannot switch from manual field specification to automatic field numbering",
                    );
                }
                automatic += 1;
                self.argument(args, automatic - 1)
            } else if name.bytes().all(|byte| byte.is_ascii_digit()) {
                if automatic > 0 {
                    return failed(
                        "cannot switch from automatic field numbering to manual field specification",
                    );
                }
                manual = true;
                // A number too long for any argument is none's.
                name.parse().ok().and_then(|index| self.argument(args, index))
            } else if name.contains(['.', '[', ']', ',']) {
                return failed("attributes and elements are not supported in format");
            } else {
                self.meter.elements(self.named_count(args))?;
                // Names of one length are compared.
                let names = 0..self.named_count(args);
                let alike = |index: &usize| self.named(args, *index).0.len() == name.len();
                let alike = names.clone().filter(alike).count();
                self.meter.bytes(name.len().saturating_mul(alike))?;
                names
                    .map(|index| self.named(args, index))
                    .find(|(known, _)| *known == name)
                    .map(|(_, value)| value)
            };
            let Some(value) = value else {
                return failed(format!(
                    "format has no argument {}",
                    match name {
                        "" => automatic.to_string(),
                        name => shorten(name).to_owned(),
                    }
                ));
            };
            match conversion {
                "s" => self.write_str(&mut text, value)?,
                "r" => self.write_repr(&mut text, value, 1)?,
                _ => return failed("unknown conversion in format: !s and !r are known"),
            }
        }
        self.push(&mut text, rest)?;
        self.take_text(text.len())?;
        Ok(self.paid_text(text))
    }
}
