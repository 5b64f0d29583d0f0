//! Values as text: `str`, `repr`, `%` and `format`.

use super::{
    append,
    specification::{Align, Specification, number},
};
use crate::actor::{
    error::{Fault, failed, shorten},
    eval::{Args, Machine},
    value::{Id, Value},
};

impl Machine<'_> {
    /// Appends text that is not on the heap; see [`append`].
    pub(super) fn push(&mut self, to: &mut String, text: &str) -> Result<(), Fault> {
        append(&mut self.meter, to, text)
    }

    pub(in crate::actor) fn write_str(
        &mut self,
        to: &mut String,
        value: Value,
    ) -> Result<(), Fault> {
        let Value::Text(id) = value else { return self.write_repr(to, value, 1) };
        append(&mut self.meter, to, self.heap.str(id))
    }

    pub(in crate::actor) fn write_repr(
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

    /// Appends a string in double quotes. A character that `is_control` and has no short escape is
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
            if let Some(after) = conversion.strip_prefix('%') {
                self.push(&mut text, "%")?;
                rest = after;
                continue;
            }
            let value;
            // A name in parentheses picks from a dict.
            if let Some(named) = conversion.strip_prefix('(') {
                let Some((name, after)) = named.split_once(')') else {
                    return failed("incomplete format key");
                };
                let Value::Dict(dict) = arguments else {
                    return failed("a format with names takes a dict");
                };
                let key = self.new_text(name)?;
                let Some(found) = self.dict_get(dict, key)? else { return self.no_key(key) };
                given = Vec::new().into_iter();
                (value, rest) = (found, after);
            } else {
                let Some(next) = given.next() else {
                    return failed("not enough arguments for format string");
                };
                (value, rest) = (next, conversion);
            }
            let (of, after) = percent(rest)?;
            let mut letter = after.chars();
            let kind = letter.next();
            rest = letter.as_str();
            self.convert(&mut text, kind, value, of)?;
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
        mut of: Specification,
    ) -> Result<(), Fault> {
        let whole = of.width == 0 && of.precision.is_none();
        match letter {
            Some('s') if whole => self.write_str(to, value),
            Some('r') if whole => self.write_repr(to, value, 1),
            Some(letter @ ('s' | 'r')) => {
                let text = match value {
                    Value::Text(id) if letter == 's' => id,
                    _ => {
                        let mut text = String::new();
                        if letter == 's' {
                            self.write_str(&mut text, value)?;
                        } else {
                            self.write_repr(&mut text, value, 1)?;
                        }
                        self.take_text(text.len())?;
                        let text = self.paid_text(text).text();
                        text.expect("it is a string")
                    }
                };
                // Only numbers are filled with zeros.
                of.zeros = false;
                of.align = of.align.or(Some(Align::Right));
                self.write_within(to, text, &of)
            }
            Some(letter @ ('d' | 'i' | 'o' | 'x' | 'X')) => {
                if !matches!(value, Value::Int(_) | Value::Big(_)) {
                    return failed(format!("%{letter} takes an int, not {}", value.kind()));
                }
                of.kind = (letter != 'i').then_some(letter);
                self.write_number(to, value, &of)
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
            Some('e' | 'E' | 'f' | 'F' | 'g' | 'G') => {
                failed("there are no floats: %d writes an int")
            }
            Some(other) => failed(format!("unknown conversion %{other}")),
            None => failed("incomplete format: it ends in %"),
        }
    }

    /// `text.format(…)`
    pub(super) fn format(&mut self, text: Id, args: &Args) -> Result<Value, Fault> {
        self.meter.text(self.heap.str(text).len())?;
        let format = self.heap.str(text).to_owned();
        let mut text = String::new();
        let mut fields = FormatFields::default();
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
            let Some(end) = closing(rest) else {
                return failed("unmatched '{' in format");
            };
            let (field, after) = (&rest[..end], &rest[end + 1..]);
            rest = after;
            let (field, specification) = field.split_once(':').unwrap_or((field, ""));
            if field.contains('{') {
                return failed("a field of a format has fields only in its specification");
            }
            let value = self.named_field(args, field, &mut fields)?;
            let (value, converted) = self.converted(value, field)?;
            if specification.is_empty() {
                match converted {
                    Some(repr) => self.push(&mut text, &repr)?,
                    None => self.write_str(&mut text, value)?,
                }
                continue;
            }
            let value = match converted {
                Some(repr) => {
                    self.take_text(repr.len())?;
                    self.paid_text(repr)
                }
                None => value,
            };
            let specification = self.specification(args, specification, &mut fields)?;
            self.write_specified(&mut text, value, &specification)?;
        }
        self.push(&mut text, rest)?;
        self.take_text(text.len())?;
        Ok(self.paid_text(text))
    }

    fn named_field(
        &mut self,
        args: &Args,
        field: &str,
        fields: &mut FormatFields,
    ) -> Result<Value, Fault> {
        let name = field.split_once('!').map_or(field, |(name, _)| name);
        let value = if name.is_empty() {
            if fields.manual {
                return failed(
                    "cannot switch from manual field specification to automatic field numbering",
                );
            }
            fields.automatic += 1;
            self.argument(args, fields.automatic - 1)
        } else if name.bytes().all(|byte| byte.is_ascii_digit()) {
            if fields.automatic > 0 {
                return failed(
                    "cannot switch from automatic field numbering to manual field specification",
                );
            }
            fields.manual = true;
            // A number that does not fit matches no argument.
            name.parse().ok().and_then(|index| self.argument(args, index))
        } else if name.contains(['.', '[', ']', ',']) {
            return failed("attributes and elements are not supported in format");
        } else {
            self.meter.elements(self.named_count(args))?;
            // Only names of the same length are compared.
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
                    "" => fields.automatic.to_string(),
                    name => shorten(name).to_owned(),
                }
            ));
        };
        Ok(value)
    }

    fn converted(&mut self, value: Value, field: &str) -> Result<(Value, Option<String>), Fault> {
        let mut text = String::new();
        match (field.split_once('!').map(|(_, conversion)| conversion), value) {
            (None, _) | (Some("s"), Value::Text(_)) => return Ok((value, None)),
            (Some("s"), _) => self.write_str(&mut text, value)?,
            (Some("r"), _) => self.write_repr(&mut text, value, 1)?,
            _ => return failed("unknown conversion in format: !s and !r are known"),
        }
        Ok((value, Some(text)))
    }

    /// A field's specification, with the fields in it replaced.
    fn specification(
        &mut self,
        args: &Args,
        specification: &str,
        fields: &mut FormatFields,
    ) -> Result<String, Fault> {
        self.meter.text(specification.len())?;
        let mut text = String::new();
        let mut rest = specification;
        while let Some((plain, after)) = rest.split_once('{') {
            self.push(&mut text, plain)?;
            let Some((field, after)) = after.split_once('}') else {
                return failed("unmatched '{' in format");
            };
            if field.contains(['{', ':']) {
                return failed("a field of a specification must be a plain argument");
            }
            let value = self.named_field(args, field, fields)?;
            match self.converted(value, field)? {
                (_, Some(repr)) => self.push(&mut text, &repr)?,
                (value, None) => self.write_str(&mut text, value)?,
            }
            rest = after;
        }
        self.push(&mut text, rest)?;
        Ok(text)
    }
}

/// How the fields of a format have named their arguments so far.
#[derive(Default)]
struct FormatFields {
    automatic: usize,
    manual: bool,
}

/// The end of a field that began before `text`; fields within it are skipped.
fn closing(text: &str) -> Option<usize> {
    let mut open = 0;
    text.bytes().position(|byte| match byte {
        b'}' if open == 0 => true,
        b'}' => {
            open -= 1;
            false
        }
        b'{' => {
            open += 1;
            false
        }
        _ => false,
    })
}

/// Flags, width and precision of a conversion of `%`, and the text after them.
fn percent(text: &str) -> Result<(Specification, &str), Fault> {
    let mut of = Specification::default();
    let mut rest = text;
    while let Some(flag) = rest.chars().next().filter(|c| "-+ 0#".contains(*c)) {
        match flag {
            '-' => of.align = Some(Align::Left),
            '0' => of.zeros = true,
            '#' => of.prefix = true,
            // A plus takes precedence over a space.
            sign => of.sign = of.sign.filter(|sign| *sign == '+').or(Some(sign)),
        }
        rest = &rest[1..];
    }
    // Left-aligned text has no zeros to fill in after its sign.
    of.zeros &= of.align.is_none();
    let (width, after) = number(rest);
    (of.width, rest) = (width.unwrap_or(0), after);
    if let Some(after) = rest.strip_prefix('.') {
        let (precision, after) = number(after);
        (of.precision, rest) = (Some(precision.unwrap_or(0)), after);
    }
    if rest.starts_with('*') {
        return failed("a width of % is written in the format: use an f-string");
    }
    Ok((of, rest))
}
