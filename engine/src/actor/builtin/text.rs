//! Methods of strings. A string is a sequence of code points.

mod search;

use super::append;
use crate::actor::{
    error::{Fault, failed},
    eval::{Args, Machine},
    value::{Id, Method, Text, Value},
};
use num_traits::Signed;

pub(super) fn text_argument(value: Option<Value>, function: &str) -> Result<Id, Fault> {
    match value {
        Some(Value::Text(id)) => Ok(id),
        Some(other) => failed(format!(
            "{function}(): type of parameter doesn't match: expected string, got {}",
            other.kind()
        )),
        None => failed(format!("{function}() takes a string")),
    }
}

impl Machine<'_> {
    pub(super) fn text_method(
        &mut self,
        method: Method,
        text: Id,
        args: &Args,
    ) -> Result<Value, Fault> {
        let name = method.name();
        match method {
            Method::Format => return self.format(text, args),
            Method::Join => return self.join(text, args),
            Method::EndsWith | Method::StartsWith => return self.affix(method, text, args),
            Method::Replace => return self.replace(text, args),
            Method::Split | Method::RightSplit => return self.split(method, text, args),
            Method::SplitLines => return self.split_lines(text, args),
            Method::Count
            | Method::Find
            | Method::IndexOf
            | Method::RightFind
            | Method::RightIndex => return self.find_in(method, text, args),
            Method::Strip | Method::LeftStrip | Method::RightStrip => {
                let [cut] = self.parameters(args, name, [""], 0)?;
                return self.strip(method, text, cut);
            }
            Method::RemovePrefix | Method::RemoveSuffix => {
                let [affix] = self.parameters(args, name, [""], 1)?;
                let affix = text_argument(affix, name)?;
                let len = self.heap.str(affix).len();
                self.meter.bytes(len)?;
                let (whole, affix) = (self.heap.str(text), self.heap.str(affix));
                let rest = match method {
                    Method::RemovePrefix => whole.strip_prefix(affix),
                    _ => whole.strip_suffix(affix),
                };
                let rest = rest.map(str::len).map(|len| match method {
                    Method::RemovePrefix => whole.len() - len..whole.len(),
                    _ => 0..len,
                });
                let Some(range) = rest else { return Ok(Value::Text(text)) };
                return self.part(text, range);
            }
            Method::Center | Method::LeftJustify | Method::RightJustify => {
                let [width, fill] = self.parameters(args, name, ["", ""], 1)?;
                return self.justify(method, text, width, fill);
            }
            Method::FillZeros => {
                let [width] = self.parameters(args, name, [""], 1)?;
                return self.fill_zeros(text, width);
            }
            Method::IsAscii => {
                let [] = self.parameters(args, name, [], 0)?;
                return Ok(Value::Bool(self.heap.text(text).is_ascii()));
            }
            Method::Partition | Method::RightPartition => {
                let [separator] = self.parameters(args, name, [""], 1)?;
                let separator = text_argument(separator, name)?;
                return self.partition(method, text, separator);
            }
            _ => {}
        }
        let [] = self.parameters(args, name, [], 0)?;
        self.meter.characters(self.heap.text(text))?;
        if method == Method::Elems {
            return self.elems(text);
        }
        // Case and classes of characters are looked up in tables, which is paid for.
        self.meter.characters(self.heap.text(text))?;
        let whole = self.heap.str(text);
        let len = whole.len();
        let cased = |c: char| c.is_uppercase() || c.is_lowercase();
        Ok(match method {
            Method::IsAlnum => Value::Bool(len > 0 && whole.chars().all(char::is_alphanumeric)),
            Method::IsAlpha => Value::Bool(len > 0 && whole.chars().all(char::is_alphabetic)),
            Method::IsDigit => Value::Bool(len > 0 && whole.chars().all(char::is_numeric)),
            Method::IsSpace => Value::Bool(len > 0 && whole.chars().all(char::is_whitespace)),
            Method::IsLower => {
                Value::Bool(whole.chars().any(cased) && !whole.chars().any(char::is_uppercase))
            }
            Method::IsUpper => {
                Value::Bool(whole.chars().any(cased) && !whole.chars().any(char::is_lowercase))
            }
            Method::IsTitle => Value::Bool(is_title(whole)),
            Method::Lower => self.recased(text, str::to_lowercase)?,
            Method::Upper => self.recased(text, str::to_uppercase)?,
            Method::Capitalize => self.recased(text, capitalize)?,
            Method::SwapCase => self.recased(text, swap_case)?,
            Method::Title => self.recased(text, title)?,
            _ => unreachable!("{name} is not a method of strings"),
        })
    }

    /// A string with its case changed; a character can grow to three times its bytes.
    fn recased(&mut self, text: Id, change: fn(&str) -> String) -> Result<Value, Fault> {
        let changed = change(self.heap.str(text));
        self.take_text(changed.len())?;
        Ok(self.paid_text(changed))
    }

    fn part(&mut self, text: Id, range: std::ops::Range<usize>) -> Result<Value, Fault> {
        self.take_text(range.len())?;
        let part = self.heap.str(text)[range].to_owned();
        Ok(self.paid_text(part))
    }

    fn justify(
        &mut self,
        method: Method,
        text: Id,
        width: Option<Value>,
        fill: Option<Value>,
    ) -> Result<Value, Fault> {
        let width = self.width(width)?;
        let fill = match fill {
            None => Some(' '),
            Some(fill) => {
                let mut characters =
                    self.heap.str(text_argument(Some(fill), method.name())?).chars();
                let first = characters.next();
                first.filter(|_| characters.next().is_none())
            }
        };
        let Some(fill) = fill else {
            return failed(format!("{}() fills with one character", method.name()));
        };
        let padding = width.saturating_sub(self.text_len(text)? as u64);
        let before = match method {
            Method::LeftJustify => 0,
            Method::RightJustify => padding,
            _ => padding / 2 + (padding & width & 1),
        };
        let mut justified = String::new();
        self.write_padding(&mut justified, fill, before)?;
        self.write_str(&mut justified, Value::Text(text))?;
        self.write_padding(&mut justified, fill, padding - before)?;
        self.take_text(justified.len())?;
        Ok(self.paid_text(justified))
    }

    /// A string padded with zeros after its sign.
    fn fill_zeros(&mut self, text: Id, width: Option<Value>) -> Result<Value, Fault> {
        let padding = self.width(width)?.saturating_sub(self.text_len(text)? as u64);
        let signed = usize::from(self.heap.str(text).starts_with(['+', '-']));
        let mut filled = String::new();
        self.push_part(&mut filled, text, 0..signed)?;
        self.write_padding(&mut filled, '0', padding)?;
        let len = self.heap.str(text).len();
        self.push_part(&mut filled, text, signed..len)?;
        self.take_text(filled.len())?;
        Ok(self.paid_text(filled))
    }

    fn push_part(
        &mut self,
        to: &mut String,
        text: Id,
        range: std::ops::Range<usize>,
    ) -> Result<(), Fault> {
        append(&mut self.meter, to, &self.heap.str(text)[range])
    }

    /// A width in characters. Any width beyond 64 bits counts as the maximum.
    fn width(&self, width: Option<Value>) -> Result<u64, Fault> {
        match width {
            Some(Value::Int(width)) => Ok(u64::try_from(width).unwrap_or(0)),
            Some(Value::Big(id)) if self.heap.integer(id).is_positive() => Ok(u64::MAX),
            Some(Value::Big(_)) => Ok(0),
            other => {
                let got = other.unwrap_or(Value::None).kind();
                failed(format!("a width must be an int, not {got}"))
            }
        }
    }

    /// A list of parts of a string. Each part was paid for when it was found.
    fn parts(&mut self, text: Id, ranges: Vec<std::ops::Range<usize>>) -> Result<Value, Fault> {
        self.take_sequence(ranges.len())?;
        let mut items = Vec::with_capacity(ranges.len());
        for range in ranges {
            items.push(self.part(text, range)?);
        }
        Ok(self.paid_list(items))
    }

    fn elems(&mut self, text: Id) -> Result<Value, Fault> {
        let characters = self.items(Value::Text(text), "elems")?;
        self.new_list(characters)
    }

    fn join(&mut self, separator: Id, args: &Args) -> Result<Value, Fault> {
        let [over] = self.parameters(args, "join", [""], 1)?;
        let items = self.items(over.unwrap_or(Value::None), "join's argument")?;
        let mut len = self.heap.str(separator).len() * items.len().saturating_sub(1);
        for item in &items {
            let Value::Text(id) = item else {
                return failed(format!("join(): expected string elements, got {}", item.kind()));
            };
            len = len.saturating_add(self.heap.str(*id).len());
        }
        self.take_text(len)?;
        let mut joined = String::with_capacity(len);
        for (index, item) in items.into_iter().enumerate() {
            if index > 0 {
                joined.push_str(self.heap.str(separator));
            }
            if let Value::Text(id) = item {
                joined.push_str(self.heap.str(id));
            }
        }
        Ok(self.paid_text(joined))
    }

    fn affix(&mut self, method: Method, text: Id, args: &Args) -> Result<Value, Fault> {
        let name = method.name();
        let [affix, start, end] = self.parameters(args, name, ["", "", ""], 1)?;
        let Some(range) = self.sub_range(text, start, end)? else { return Ok(Value::Bool(false)) };
        let affixes = match affix {
            Some(tuple @ Value::Tuple(_)) => self.items(tuple, "affixes")?,
            other => vec![other.unwrap_or(Value::None)],
        };
        for affix in affixes {
            let affix = text_argument(Some(affix), name)?;
            let len = self.heap.str(affix).len();
            self.meter.bytes(len)?;
            let part = &self.heap.str(text)[range.clone()];
            let affix = self.heap.str(affix);
            let found = match method {
                Method::StartsWith => part.starts_with(affix),
                _ => part.ends_with(affix),
            };
            if found {
                return Ok(Value::Bool(true));
            }
        }
        Ok(Value::Bool(false))
    }

    /// Bytes from outside as a string: text as is, other bytes as 0x-hex.
    pub(in crate::actor) fn text_of(&mut self, bytes: &[u8]) -> Result<Value, Fault> {
        // Reading them costs as much as reading text.
        self.take_text(bytes.len())?;
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(self.paid_text(text.to_owned())),
            Err(_) => {
                self.take_text(2 + 2 * bytes.len())?;
                let text = format!("0x{}", hex::encode(bytes));
                Ok(self.heap.own.text(Text::new(text)))
            }
        }
    }
}

fn capitalize(text: &str) -> String {
    let mut characters = text.chars();
    match characters.next() {
        Some(first) => {
            first.to_uppercase().chain(characters.flat_map(char::to_lowercase)).collect()
        }
        None => String::new(),
    }
}

fn swap_case(text: &str) -> String {
    let mut swapped = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_uppercase() {
            swapped.extend(character.to_lowercase());
        } else {
            swapped.extend(character.to_uppercase());
        }
    }
    swapped
}

fn title(text: &str) -> String {
    let mut titled = String::with_capacity(text.len());
    let mut begins = true;
    for character in text.chars() {
        if begins {
            titled.extend(character.to_uppercase());
        } else {
            titled.extend(character.to_lowercase());
        }
        begins = !character.is_alphabetic();
    }
    titled
}

fn is_title(text: &str) -> bool {
    let (mut begins, mut any) = (true, false);
    for character in text.chars() {
        if character.is_uppercase() && !begins || character.is_lowercase() && begins {
            return false;
        }
        any |= character.is_uppercase() || character.is_lowercase();
        begins = !character.is_alphabetic();
    }
    any
}
