//! Methods of strings. A string is a sequence of code points.

use super::{Method, flag, format::append};
use crate::actor::{
    error::{Fault, failed},
    eval::{Args, Machine},
    gas::Meter,
    value::{Id, Text, Value},
};
use memchr::memmem;
use num_traits::Signed;

/// The string passed as an argument.
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

    /// A part of a string, as a new string.
    fn part(&mut self, text: Id, range: std::ops::Range<usize>) -> Result<Value, Fault> {
        self.take_text(range.len())?;
        let part = self.heap.str(text)[range].to_owned();
        Ok(self.paid_text(part))
    }

    /// A string padded to a width.
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

    fn replace(&mut self, text: Id, args: &Args) -> Result<Value, Fault> {
        let [old, new, count] = self.parameters(args, "replace", ["", "", ""], 2)?;
        let (old, new) = (text_argument(old, "replace")?, text_argument(new, "replace")?);
        let most = match count {
            None => usize::MAX,
            Some(Value::Int(count)) => usize::try_from(count).unwrap_or(usize::MAX),
            Some(other) => return failed(format!("a count must be an int, not {}", other.kind())),
        };
        let (whole, part) = (self.heap.str(text).len(), self.heap.str(old).len());
        self.meter.search(whole + part)?;
        let mut places = Vec::new();
        if part == 0 {
            // Between any two characters, before the first and after the last.
            let text = self.heap.str(text);
            for at in text.char_indices().map(|(at, _)| at).chain([text.len()]).take(most) {
                self.meter.elements(1)?;
                places.push(at);
            }
        } else {
            let (text, old) = (self.heap.str(text), self.heap.str(old));
            for at in memmem::find_iter(text.as_bytes(), old.as_bytes()).take(most) {
                self.meter.elements(1)?;
                places.push(at);
            }
        }
        let put = self.heap.str(new).len();
        let len = (whole - places.len() * part).saturating_add(places.len().saturating_mul(put));
        self.take_text(len)?;
        let (text, new) = (self.heap.str(text), self.heap.str(new));
        let mut replaced = String::with_capacity(len);
        let mut done = 0;
        for at in places {
            replaced.push_str(&text[done..at]);
            replaced.push_str(new);
            done = at + part;
        }
        replaced.push_str(&text[done..]);
        Ok(self.paid_text(replaced))
    }

    fn split(&mut self, method: Method, text: Id, args: &Args) -> Result<Value, Fault> {
        let name = method.name();
        let [separator, most] = self.parameters(args, name, ["", ""], 0)?;
        let most = match most {
            None | Some(Value::None) => usize::MAX,
            Some(Value::Int(most)) => usize::try_from(most).unwrap_or(usize::MAX),
            Some(other) => {
                return failed(format!("the split limit must be an int, not {}", other.kind()));
            }
        };
        let from_right = method == Method::RightSplit;
        let whole = self.heap.str(text).len();
        let limit = self.meter.limits.entries as usize + 1;
        let ranges = match separator {
            None | Some(Value::None) => {
                self.meter.characters(self.heap.text(text))?;
                split_white(&mut self.meter, self.heap.str(text), most, from_right, limit)?
            }
            separator => {
                let separator = text_argument(separator, name)?;
                let len = self.heap.str(separator).len();
                if len == 0 {
                    return failed(format!("{name}(): empty separator"));
                }
                self.meter.search(whole + len)?;
                let (text, separator) = (self.heap.str(text), self.heap.str(separator));
                split_at(&mut self.meter, text, separator, most, from_right, limit)?
            }
        };
        self.parts(text, ranges)
    }

    fn split_lines(&mut self, text: Id, args: &Args) -> Result<Value, Fault> {
        let [keep] = self.parameters(args, "splitlines", ["keepends"], 0)?;
        let keep = flag(keep, "splitlines", "keepends")?;
        let whole = self.heap.str(text);
        self.meter.characters(self.heap.text(text))?;
        let limit = self.meter.limits.entries as usize + 1;
        let mut ranges: Vec<std::ops::Range<usize>> = Vec::new();
        let mut start = 0;
        for line in whole.split_inclusive(['\n', '\r']).take(2 * limit) {
            // "\r\n" is a single line ending.
            let end = start + line.len();
            if line == "\n" && start > 0 && whole.as_bytes()[start - 1] == b'\r' {
                if keep && let Some(last) = ranges.last_mut() {
                    last.end = end;
                }
                start = end;
                continue;
            }
            let kept = if keep { line.len() } else { line.trim_end_matches(['\n', '\r']).len() };
            self.meter.elements(1)?;
            ranges.push(start..start + kept);
            start = end;
        }
        self.parts(text, ranges)
    }

    /// The byte range between two character positions, which are read as in a slice; absent if the
    /// start is after the end, so that not even an empty string is found there.
    fn sub_range(
        &mut self,
        text: Id,
        start: Option<Value>,
        end: Option<Value>,
    ) -> Result<Option<std::ops::Range<usize>>, Fault> {
        if start.is_none() && end.is_none() {
            return Ok(Some(0..self.heap.str(text).len()));
        }
        let len = self.text_len(text)?;
        let position = |index: Option<Value>, otherwise: i64| match index {
            None | Some(Value::None) => Ok(otherwise),
            Some(Value::Int(index)) => {
                Ok(if index < 0 { index.saturating_add(len as i64).max(0) } else { index })
            }
            Some(other) => failed(format!("an index must be an int, not {}", other.kind())),
        };
        let (start, end) = (position(start, 0)?, position(end, len as i64)?.min(len as i64));
        if end < start {
            return Ok(None);
        }
        let (start, end) = (start as usize, end as usize);
        if self.heap.text(text).is_ascii() {
            return Ok(Some(start..end));
        }
        let bytes = self.heap.str(text).len();
        self.meter.text(bytes)?;
        let text = self.heap.str(text);
        let mut starts = text.char_indices().map(|(at, _)| at).chain([bytes]);
        let first = starts.by_ref().nth(start).unwrap_or(bytes);
        let last = if end == start { first } else { starts.nth(end - start - 1).unwrap_or(bytes) };
        Ok(Some(first..last))
    }

    fn find_in(&mut self, method: Method, text: Id, args: &Args) -> Result<Value, Fault> {
        let name = method.name();
        let [part, start, end] = self.parameters(args, name, ["", "", ""], 1)?;
        let part = text_argument(part, name)?;
        let Some(range) = self.sub_range(text, start, end)? else {
            return match method {
                Method::Count => Ok(Value::Int(0)),
                Method::IndexOf | Method::RightIndex => self.no_part(name, part),
                _ => Ok(Value::Int(-1)),
            };
        };
        let sought = self.heap.str(part).len();
        self.meter.search(range.len() + sought)?;
        let within = self.heap.str(text)[range.clone()].as_bytes();
        let sought = self.heap.str(part).as_bytes();
        let found = match method {
            Method::Count if sought.is_empty() => {
                self.meter.text(range.len())?;
                let count = self.heap.str(text)[range].chars().count() + 1;
                return Ok(Value::Int(count as i64));
            }
            Method::Count => {
                let mut count = 0;
                for _ in memmem::find_iter(within, sought) {
                    self.meter.elements(1)?;
                    count += 1;
                }
                return Ok(Value::Int(count));
            }
            Method::RightFind | Method::RightIndex => memmem::rfind(within, sought),
            _ => memmem::find(within, sought),
        };
        match found {
            Some(at) => {
                let before = range.start + at;
                if self.heap.text(text).is_ascii() {
                    return Ok(Value::Int(before as i64));
                }
                self.meter.bytes(before)?;
                Ok(Value::Int(self.heap.str(text)[..before].chars().count() as i64))
            }
            None if matches!(method, Method::IndexOf | Method::RightIndex) => {
                self.no_part(name, part)
            }
            None => Ok(Value::Int(-1)),
        }
    }

    fn no_part<T>(&mut self, method: &str, part: Id) -> Result<T, Fault> {
        let part = self.shown(Value::Text(part))?;
        failed(format!("{method}: substring not found: {part}"))
    }

    fn strip(&mut self, method: Method, text: Id, cut: Option<Value>) -> Result<Value, Fault> {
        let cut: Option<Vec<char>> = match cut {
            None | Some(Value::None) => None,
            cut => {
                let cut = text_argument(cut, method.name())?;
                self.meter.characters(self.heap.text(cut))?;
                let mut characters: Vec<char> = self.heap.str(cut).chars().collect();
                characters.sort_unstable();
                characters.dedup();
                Some(characters)
            }
        };
        // Each character is searched for among the characters to strip.
        for _ in 0..=cut.as_ref().and_then(|cut| cut.len().checked_ilog2()).unwrap_or(0) {
            self.meter.characters(self.heap.text(text))?;
        }
        let cuts = |c: char| match &cut {
            None => c.is_whitespace(),
            Some(cut) => cut.binary_search(&c).is_ok(),
        };
        let whole = self.heap.str(text);
        let start = match method {
            Method::RightStrip => 0,
            _ => whole.len() - whole.trim_start_matches(cuts).len(),
        };
        let end = match method {
            Method::LeftStrip => whole.len(),
            _ => start + whole[start..].trim_end_matches(cuts).len(),
        };
        self.part(text, start..end)
    }

    fn partition(&mut self, method: Method, text: Id, separator: Id) -> Result<Value, Fault> {
        let (whole, len) = (self.heap.str(text).len(), self.heap.str(separator).len());
        if len == 0 {
            return failed(format!("{}(): empty separator", method.name()));
        }
        self.meter.search(whole + len)?;
        let (within, sought) =
            (self.heap.str(text).as_bytes(), self.heap.str(separator).as_bytes());
        let right = method == Method::RightPartition;
        let found =
            if right { memmem::rfind(within, sought) } else { memmem::find(within, sought) };
        let ranges = match found {
            Some(at) => [0..at, at..at + len, at + len..whole],
            None if right => [0..0, 0..0, 0..whole],
            None => [0..whole, 0..0, 0..0],
        };
        let mut items = Vec::with_capacity(3);
        for range in ranges {
            items.push(self.part(text, range)?);
        }
        self.new_tuple(items)
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

/// The parts between separators, at most `limit` of them.
fn split_at(
    meter: &mut Meter,
    text: &str,
    separator: &str,
    most: usize,
    from_right: bool,
    limit: usize,
) -> Result<Vec<std::ops::Range<usize>>, Fault> {
    let (bytes, sought) = (text.as_bytes(), separator.as_bytes());
    let most = most.min(limit);
    let mut ranges = Vec::new();
    // The last part costs an element too.
    meter.elements(1)?;
    if from_right {
        let mut end = text.len();
        for at in memmem::rfind_iter(bytes, sought).take(most) {
            meter.elements(1)?;
            ranges.push(at + sought.len()..end);
            end = at;
        }
        ranges.push(0..end);
        ranges.reverse();
    } else {
        let mut start = 0;
        for at in memmem::find_iter(bytes, sought).take(most) {
            meter.elements(1)?;
            ranges.push(start..at);
            start = at + sought.len();
        }
        ranges.push(start..text.len());
    }
    Ok(ranges)
}

/// The parts between runs of white space, at most `limit` of them.
fn split_white(
    meter: &mut Meter,
    text: &str,
    most: usize,
    from_right: bool,
    limit: usize,
) -> Result<Vec<std::ops::Range<usize>>, Fault> {
    let most = most.min(limit);
    let mut ranges = Vec::new();
    let (mut start, mut end) = (0, text.len());
    loop {
        let rest = &text[start..end];
        let trimmed = rest.trim_start();
        start += rest.len() - trimmed.len();
        end = start + trimmed.trim_end().len();
        let rest = &text[start..end];
        if rest.is_empty() {
            break;
        }
        meter.elements(1)?;
        if ranges.len() == most {
            // The remainder keeps the white space on its far side.
            let (first, last) = if from_right { (0, end) } else { (start, text.len()) };
            ranges.push(first..last);
            break;
        }
        if from_right {
            let cut = rest.rfind(char::is_whitespace).map_or(start, |at| {
                let width = rest[at..].chars().next().map_or(0, char::len_utf8);
                start + at + width
            });
            ranges.push(cut..end);
            end = cut;
        } else {
            let cut = rest.find(char::is_whitespace).map_or(end, |at| start + at);
            ranges.push(start..cut);
            start = cut;
        }
    }
    if from_right {
        ranges.reverse();
    }
    Ok(ranges)
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
