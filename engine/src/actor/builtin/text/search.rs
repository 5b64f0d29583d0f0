//! Methods that find parts of a string, replace them, and split a string at them.

use super::text_argument;
use crate::actor::{
    builtin::flag,
    error::{Fault, failed},
    eval::{Args, Machine},
    gas::Meter,
    value::{Id, Method, Value},
};
use memchr::memmem;

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

impl Machine<'_> {
    pub(super) fn replace(&mut self, text: Id, args: &Args) -> Result<Value, Fault> {
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

    pub(super) fn split(&mut self, method: Method, text: Id, args: &Args) -> Result<Value, Fault> {
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

    pub(super) fn split_lines(&mut self, text: Id, args: &Args) -> Result<Value, Fault> {
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
    pub(super) fn sub_range(
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

    pub(super) fn find_in(
        &mut self,
        method: Method,
        text: Id,
        args: &Args,
    ) -> Result<Value, Fault> {
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

    pub(super) fn no_part<T>(&mut self, method: &str, part: Id) -> Result<T, Fault> {
        let part = self.shown(Value::Text(part))?;
        failed(format!("{method}: substring not found: {part}"))
    }

    pub(super) fn strip(
        &mut self,
        method: Method,
        text: Id,
        cut: Option<Value>,
    ) -> Result<Value, Fault> {
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

    pub(super) fn partition(
        &mut self,
        method: Method,
        text: Id,
        separator: Id,
    ) -> Result<Value, Fault> {
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
}
