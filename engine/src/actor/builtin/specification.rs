//! Format specifications: `[[fill]align][sign][#][0][width][,|_][.precision][type]`, for f-strings
//! and `format`; `%` has its own form of them.

use super::append;
use crate::actor::{
    error::{Fault, failed, shorten},
    eval::Machine,
    value::{Id, Value},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
    Center,
    /// A number's sign to the left, its digits to the right.
    AfterSign,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Specification {
    pub(super) fill: char,
    pub(super) align: Option<Align>,
    /// Character in front of a number that is not negative.
    pub(super) sign: Option<char>,
    /// Whether digits have the prefix of their base.
    pub(super) prefix: bool,
    /// Whether a number is filled with zeros after its sign.
    pub(super) zeros: bool,
    pub(super) width: u64,
    pub(super) separator: Option<char>,
    pub(super) precision: Option<u64>,
    pub(super) kind: Option<char>,
}

impl Default for Specification {
    fn default() -> Self {
        Self {
            fill: ' ',
            align: None,
            sign: None,
            prefix: false,
            zeros: false,
            width: 0,
            separator: None,
            precision: None,
            kind: None,
        }
    }
}

/// Splits leading digits off a text. Yields their number, if there are any, and the rest.
pub(super) fn number(text: &str) -> (Option<u64>, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    // A number that does not fit is longer than any string, so it counts as the maximum.
    ((!digits.is_empty()).then(|| digits.parse().unwrap_or(u64::MAX)), rest)
}

impl Specification {
    fn parse(text: &str) -> Option<Self> {
        let mut of = Self::default();
        let align = |c: char| match c {
            '<' => Some(Align::Left),
            '>' => Some(Align::Right),
            '^' => Some(Align::Center),
            '=' => Some(Align::AfterSign),
            _ => None,
        };
        let mut characters = text.chars();
        let (first, second) = (characters.next(), characters.next());
        let (mut rest, mut filled) = (text, false);
        if let (Some(fill), Some(found)) = (first, second.and_then(align)) {
            (of.fill, of.align, filled) = (fill, Some(found), true);
            rest = characters.as_str();
        } else if let Some(found) = first.and_then(align) {
            of.align = Some(found);
            rest = &rest[1..];
        }
        if let Some(sign) = rest.chars().next().filter(|c| matches!(c, '+' | '-' | ' ')) {
            of.sign = Some(sign);
            rest = &rest[1..];
        }
        if let Some(after) = rest.strip_prefix('#') {
            (of.prefix, rest) = (true, after);
        }
        if let Some(after) = rest.strip_prefix('0').filter(|_| !filled) {
            (of.zeros, rest) = (true, after);
        }
        let (width, after) = number(rest);
        (of.width, rest) = (width.unwrap_or(0), after);
        if let Some(separator) = rest.chars().next().filter(|c| matches!(c, ',' | '_')) {
            (of.separator, rest) = (Some(separator), &rest[1..]);
        }
        if let Some(after) = rest.strip_prefix('.') {
            let (precision, after) = number(after);
            (of.precision, rest) = (Some(precision?), after);
        }
        let mut kind = rest.chars();
        of.kind = kind.next();
        kind.next().is_none().then_some(of)
    }

    /// Why a value of this kind cannot be written this way; `None` if it can.
    fn misfit(&self, value: Value) -> Option<&'static str> {
        match value {
            Value::Int(_) | Value::Big(_) => match self.kind {
                None | Some('d' | 'x' | 'X' | 'o' | 'b') if self.precision.is_some() => {
                    Some("an int has no precision")
                }
                Some('x' | 'X' | 'o' | 'b') if self.separator == Some(',') => {
                    Some("`,` separates decimal digits; use `_`")
                }
                None | Some('d' | 'x' | 'X' | 'o' | 'b') => None,
                Some('e' | 'E' | 'f' | 'F' | 'g' | 'G' | '%' | 'n') => Some("there are no floats"),
                _ => Some("an int is written as d, x, X, o or b"),
            },
            Value::Text(_) => match self.kind {
                None | Some('s') if self.sign.is_some() => Some("a string has no sign"),
                None | Some('s') if self.prefix => Some("a string has no prefix"),
                None | Some('s') if self.separator.is_some() => Some("a string has no digits"),
                None | Some('s') if self.align == Some(Align::AfterSign) => {
                    Some("a string has no sign to align after")
                }
                None | Some('s') => None,
                _ => Some("a string is written as s"),
            },
            _ => Some("only ints and strings have one; use !s or str() first"),
        }
    }
}

impl Machine<'_> {
    pub(in crate::actor) fn write_specified(
        &mut self,
        to: &mut String,
        value: Value,
        specification: &str,
    ) -> Result<(), Fault> {
        if specification.is_empty() {
            return self.write_str(to, value);
        }
        self.meter.text(specification.len())?;
        let shown = shorten(specification);
        let Some(of) = Specification::parse(specification) else {
            return failed(format!("not a format specification: {shown:?}"));
        };
        if let Some(why) = of.misfit(value) {
            return failed(format!("format specification {shown:?} of {}: {why}", value.kind()));
        }
        match value {
            Value::Text(id) => self.write_within(to, id, &of),
            _ => self.write_number(to, value, &of),
        }
    }

    /// Appends a string, cut to its precision and padded to its width.
    pub(super) fn write_within(
        &mut self,
        to: &mut String,
        id: Id,
        of: &Specification,
    ) -> Result<(), Fault> {
        let mut len = self.text_len(id)?;
        let mut end = self.heap.str(id).len();
        if let Some(precision) = of.precision
            && precision < len as u64
        {
            len = precision as usize;
            end = len;
            if !self.heap.text(id).is_ascii() {
                self.meter.characters(self.heap.text(id))?;
                let starts = self.heap.str(id).char_indices().nth(len);
                end = starts.map_or(end, |(at, _)| at);
            }
        }
        let fill = if of.zeros { '0' } else { of.fill };
        let padding = of.width.saturating_sub(len as u64);
        let before = match of.align {
            None | Some(Align::Left | Align::AfterSign) => 0,
            Some(Align::Right) => padding,
            Some(Align::Center) => padding / 2,
        };
        self.write_padding(to, fill, before)?;
        append(&mut self.meter, to, &self.heap.str(id)[..end])?;
        self.write_padding(to, fill, padding - before)
    }

    /// Appends an integer, padded to its width.
    pub(super) fn write_number(
        &mut self,
        to: &mut String,
        value: Value,
        of: &Specification,
    ) -> Result<(), Fault> {
        let (mut digits, prefix) = match of.kind {
            Some('x') => (self.in_radix(value, 16)?, "0x"),
            Some('X') => (self.in_radix(value, 16)?.to_uppercase(), "0X"),
            Some('o') => (self.in_radix(value, 8)?, "0o"),
            Some('b') => (self.in_radix(value, 2)?, "0b"),
            _ => (self.decimal(value)?, ""),
        };
        let mut head = String::new();
        if digits.starts_with('-') {
            digits.remove(0);
            head.push('-');
        } else if let Some(sign) = of.sign.filter(|sign| *sign != '-') {
            head.push(sign);
        }
        head.push_str(if of.prefix { prefix } else { "" });
        // Zeros in front, for the minimum number of digits that `%` can ask for.
        let least = of.precision.unwrap_or(0).saturating_sub(digits.len() as u64);
        let fill = if of.zeros { '0' } else { of.fill };
        let otherwise = if of.zeros { Align::AfterSign } else { Align::Right };
        let align = of.align.unwrap_or(otherwise);
        if let Some(separator) = of.separator {
            let size = if matches!(of.kind, None | Some('d')) { 3 } else { 4 };
            let within = of.width.saturating_sub(head.len() as u64);
            let padded = fill == '0' && align == Align::AfterSign;
            let least = if padded { within } else { 0 };
            self.meter.string_fits(usize::try_from(least).unwrap_or(usize::MAX))?;
            self.meter.text(least as usize + 2 * digits.len())?;
            digits = grouped(&digits, separator, size, least as i64);
        }
        let len = (head.len() + digits.len()) as u64 + least;
        let padding = of.width.saturating_sub(len);
        let before = match align {
            Align::Left | Align::AfterSign => 0,
            Align::Right => padding,
            Align::Center => padding / 2,
        };
        self.write_padding(to, fill, before)?;
        self.push(to, &head)?;
        if align == Align::AfterSign {
            self.write_padding(to, fill, padding)?;
        }
        self.write_padding(to, '0', least)?;
        self.push(to, &digits)?;
        match align {
            Align::Left | Align::Center => self.write_padding(to, fill, padding - before),
            Align::Right | Align::AfterSign => Ok(()),
        }
    }

    pub(super) fn write_padding(
        &mut self,
        to: &mut String,
        fill: char,
        count: u64,
    ) -> Result<(), Fault> {
        let bytes = count.saturating_mul(fill.len_utf8() as u64);
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        self.meter.string_fits(to.len().saturating_add(bytes))?;
        self.meter.text(bytes)?;
        to.extend(std::iter::repeat_n(fill, count as usize));
        Ok(())
    }
}

/// Digits with a separator between groups of `size`, counted from the right, and with leading zeros
/// up to `least` characters.
fn grouped(digits: &str, separator: char, size: usize, mut least: i64) -> String {
    let mut left = digits.len();
    // From right to left; all characters are ASCII.
    let mut reversed = String::with_capacity(2 * digits.len() + least.max(0) as usize);
    loop {
        let group = (size as i64).min((left as i64).max(least).max(1));
        let taken = (group as usize).min(left);
        reversed.extend(digits[left - taken..left].chars().rev());
        reversed.extend(std::iter::repeat_n('0', group as usize - taken));
        left -= taken;
        least -= group;
        if left == 0 && least <= 0 {
            return reversed.chars().rev().collect();
        }
        reversed.push(separator);
        least -= 1;
    }
}
