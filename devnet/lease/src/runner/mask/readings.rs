//! The forms in which a secret may appear in a stream.
//!
//! | reading | a byte of a secret appears as |
//! |---|---|
//! | plain | itself |
//! | [`percent`] | itself, `%` and two digits, or `+` for a space: URLs, forms |
//! | [`json`] | itself, or as escaped in JSON strings |
//! | [`Digits`] of [`BASE64`] | four thirds of a digit, of either alphabet |
//! | [`Digits`] of [`HEX`] | two digits, of either case |
//!
//! A text in digits may contain a secret at any position. So digits are read from every position
//! where a byte may begin: four for base64, two for hexadecimal. Programs break long rows of digits
//! into lines or groups, so a little white space between digits is skipped.

use super::secrets::{ByteRun, Cursor, Secrets};
use std::ops::Range;

/// Shortest secret that is looked for in rows of digits, in bytes: a shorter one might be part of
/// any number or word.
const MIN_CODED: usize = 4;
/// Most white space between two digits of a row: a line's end and an indentation.
const MAX_GAP: usize = 8;
/// Shortest beginning of a secret that is held back over the end of a line, in bytes. Any line may
/// end with a digit or two with which a secret begins, and must still be passed on. Such digits
/// stay, and what follows them in the next line is masked.
const MIN_HELD: usize = 2;
/// Longest escape, in bytes: two UTF-16 units in JSON.
const MAX_ESCAPE: usize = 12;

/// Most bytes of the stream that one byte of a secret can take, in any reading.
#[cfg(test)]
pub(super) const MAX_BYTE: usize = {
    // An escape for one byte, or two digits with a gap after each.
    let digits = 2 * (1 + MAX_GAP);
    if digits > MAX_ESCAPE { digits } else { MAX_ESCAPE }
};

/// Ranges of secrets: start and end offsets in the stream.
pub(super) type FoundSecrets = Vec<(usize, usize)>;

#[derive(Debug)]
pub(super) struct Readings {
    plain: Cursor,
    percent: Escapes,
    json: Escapes,
    base64: Digits<6, 4>,
    hex: Digits<4, 2>,
}

impl Readings {
    pub(super) fn new() -> Self {
        Self {
            plain: Cursor::default(),
            percent: Escapes::new(*b"%+", percent),
            json: Escapes::new(*b"\\\\", json),
            base64: Digits::new(&BASE64),
            hex: Digits::new(&HEX),
        }
    }

    /// Takes the bytes at offset `from`, and adds the ranges of secrets that they complete.
    pub(super) fn read(
        &mut self,
        secrets: &Secrets,
        from: usize,
        bytes: &[u8],
        found: &mut FoundSecrets,
    ) {
        let fresh = self.plain.is_fresh();
        for (at, byte) in (from..).zip(bytes) {
            if let Some(run) = self.plain.step(secrets, *byte, at) {
                found.push((run.start, at + 1));
            }
        }
        for escapes in [&mut self.percent, &mut self.json] {
            match fresh && escapes.are_not_in(bytes) {
                // There are no escapes, so this reading equals the plain one.
                true => escapes.cursor.clone_from(&self.plain),
                false => escapes.read(secrets, from, bytes, found),
            }
        }
        self.base64.read(secrets, from, bytes, found);
        self.hex.read(secrets, from, bytes, found);
    }

    /// The offset at which the first incomplete secret may begin.
    pub(super) fn open(&self, secrets: &Secrets) -> Option<usize> {
        let plain = self.plain.open(secrets).map(|run| run.start);
        let others = [
            self.percent.open(secrets),
            self.json.open(secrets),
            self.base64.open(secrets),
            self.hex.open(secrets),
        ];
        others.into_iter().chain([plain]).flatten().min()
    }

    /// Ends the stream, and adds the secrets that are complete without further bytes.
    pub(super) fn end(&mut self, secrets: &Secrets, found: &mut FoundSecrets) {
        self.percent.end(secrets, found);
        self.json.end(secrets, found);
        *self = Self::new();
    }
}

/// The meaning of the first bytes of a stream, by the rules of its escapes.
enum Read {
    More,
    /// An escape of these bytes: the array and its used length.
    Bytes([u8; 4], usize),
    /// Not an escape: the first byte means itself.
    Itself,
}

impl Read {
    const fn byte(byte: u8) -> Self {
        Self::Bytes([byte, 0, 0, 0], 1)
    }

    fn char(char: char) -> Self {
        let mut bytes = [0; 4];
        let length = char.encode_utf8(&mut bytes).len();
        Self::Bytes(bytes, length)
    }
}

/// A reading in which some bytes are escaped.
#[derive(Debug)]
struct Escapes {
    /// The two bytes with which an escape may begin.
    signs: [u8; 2],
    read: fn(&[u8]) -> Read,
    cursor: Cursor,
    /// An incomplete escape and its offset.
    escape: Vec<u8>,
    from: usize,
}

impl Escapes {
    fn new(signs: [u8; 2], read: fn(&[u8]) -> Read) -> Self {
        let escape = Vec::with_capacity(MAX_ESCAPE);
        Self { signs, read, cursor: Cursor::default(), escape, from: 0 }
    }

    /// Whether none of these bytes is escaped or continues a possible secret.
    fn are_not_in(&self, bytes: &[u8]) -> bool {
        self.cursor.is_fresh()
            && self.escape.is_empty()
            && !self.signs.iter().any(|sign| bytes.contains(sign))
    }

    fn read(&mut self, secrets: &Secrets, from: usize, bytes: &[u8], found: &mut FoundSecrets) {
        for (at, byte) in (from..).zip(bytes) {
            self.step(secrets, *byte, at, found);
        }
    }

    #[inline]
    fn step(&mut self, secrets: &Secrets, byte: u8, at: usize, found: &mut FoundSecrets) {
        if self.escape.is_empty() {
            if byte != self.signs[0] && byte != self.signs[1] {
                return self.take(secrets, byte, at..at + 1, found);
            }
            self.from = at;
        }
        self.escape(secrets, byte, at, found);
    }

    fn escape(&mut self, secrets: &Secrets, byte: u8, at: usize, found: &mut FoundSecrets) {
        self.escape.push(byte);
        match (self.read)(&self.escape) {
            Read::More => {}
            Read::Bytes(bytes, length) => {
                self.escape.clear();
                for byte in &bytes[..length] {
                    self.take(secrets, *byte, self.from..at + 1, found);
                }
            }
            Read::Itself => self.give_up(secrets, found),
        }
    }

    /// What looked like an escape is not one: its first byte means itself, the others are read
    /// again.
    fn give_up(&mut self, secrets: &Secrets, found: &mut FoundSecrets) {
        let (bytes, from) = (std::mem::take(&mut self.escape), self.from);
        self.take(secrets, bytes[0], from..from + 1, found);
        for (at, byte) in (from + 1..).zip(&bytes[1..]) {
            self.step(secrets, *byte, at, found);
        }
    }

    #[inline]
    fn take(&mut self, secrets: &Secrets, byte: u8, place: Range<usize>, found: &mut FoundSecrets) {
        if let Some(run) = self.cursor.step(secrets, byte, place.start) {
            found.push((run.start, place.end));
        }
    }

    fn open(&self, secrets: &Secrets) -> Option<usize> {
        let begun = self.cursor.open(secrets).map(|run| run.start);
        let escape = (!self.escape.is_empty()).then_some(self.from);
        begun.into_iter().chain(escape).min()
    }

    fn end(&mut self, secrets: &Secrets, found: &mut FoundSecrets) {
        while !self.escape.is_empty() {
            self.give_up(secrets, found);
        }
    }
}

fn percent(bytes: &[u8]) -> Read {
    match *bytes {
        [b'+'] => Read::byte(b' '),
        [b'%'] => Read::More,
        [b'%', digit] if digit.is_ascii_hexdigit() => Read::More,
        [b'%', high, low] => match (hex(high), hex(low)) {
            (Some(high), Some(low)) => Read::byte(high << 4 | low),
            _ => Read::Itself,
        },
        _ => Read::Itself,
    }
}

fn json(bytes: &[u8]) -> Read {
    let (unit, rest) = match bytes {
        [b'\\'] => return Read::More,
        [b'\\', b'u', rest @ ..] => match unit(rest) {
            Err(read) => return read,
            Ok(unit) => unit,
        },
        [b'\\', sign] => return short(*sign),
        _ => return Read::Itself,
    };
    if let Some(char) = char::from_u32(u32::from(unit)) {
        return Read::char(char);
    }
    let second = match rest {
        [] | [b'\\'] => return Read::More,
        [b'\\', b'u', rest @ ..] => match self::unit(rest) {
            Err(read) => return read,
            Ok((second, _)) => second,
        },
        _ => return Read::Itself,
    };
    match char::decode_utf16([unit, second]).next() {
        Some(Ok(char)) => Read::char(char),
        _ => Read::Itself,
    }
}

fn short(sign: u8) -> Read {
    Read::byte(match sign {
        b'"' | b'\\' | b'/' => sign,
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        _ => return Read::Itself,
    })
}

/// The UTF-16 unit that four digits encode, and the bytes after it.
fn unit(bytes: &[u8]) -> Result<(u16, &[u8]), Read> {
    let (digits, rest) = bytes.split_at(bytes.len().min(4));
    let mut unit = 0;
    for digit in digits {
        unit = unit << 4 | u16::from(hex(*digit).ok_or(Read::Itself)?);
    }
    if digits.len() == 4 { Ok((unit, rest)) } else { Err(Read::More) }
}

/// A reading of digits of `BITS` bits each; a `GROUP` of digits makes whole bytes.
#[derive(Debug)]
struct Digits<const BITS: usize, const GROUP: usize> {
    /// The value of each byte as a digit, or [`NO_DIGIT`].
    values: &'static [u8; 256],
    /// One cursor for each digit of a group at which a byte may begin.
    cursors: [Cursor; GROUP],
    count: usize,
    /// The last digit and its offset.
    last: (u8, usize),
    /// Length of the white space since then.
    gap: usize,
    /// Whether that white space has a line's end.
    cut: bool,
}

impl<const BITS: usize, const GROUP: usize> Digits<BITS, GROUP> {
    fn new(values: &'static [u8; 256]) -> Self {
        let cursors = std::array::from_fn(|_| Cursor::default());
        Self { values, cursors, count: 0, last: (0, 0), gap: 0, cut: false }
    }

    fn read(&mut self, secrets: &Secrets, from: usize, bytes: &[u8], found: &mut FoundSecrets) {
        for (at, byte) in (from..).zip(bytes) {
            match self.values[usize::from(*byte)] {
                NO_DIGIT => self.part(*byte),
                value => self.step(secrets, value, at, found),
            }
        }
    }

    #[inline]
    fn step(&mut self, secrets: &Secrets, value: u8, at: usize, found: &mut FoundSecrets) {
        if self.count > 0 {
            let (last, start) = self.last;
            let both = usize::from(last) << BITS | usize::from(value);
            for (first, cursor) in self.cursors.iter_mut().enumerate() {
                // The byte that ends with this digit begins within the previous one.
                let place = (self.count + GROUP - first) % GROUP;
                if place > 0 {
                    let beyond = (place + 1) * BITS % 8;
                    let byte = (both >> beyond & 0xff) as u8;
                    match cursor.step(secrets, byte, start) {
                        Some(run) if run.length >= MIN_CODED => found.push((run.start, at + 1)),
                        _ => {}
                    }
                }
            }
        }
        self.count += 1;
        self.last = (value, at);
        (self.gap, self.cut) = (0, false);
    }

    /// Any other byte ends a row, unless it is a little white space.
    fn part(&mut self, byte: u8) {
        if self.count == 0 {
            return;
        }
        self.gap += 1;
        self.cut |= matches!(byte, b'\n' | b'\r');
        if !byte.is_ascii_whitespace() || self.gap > MAX_GAP {
            self.cursors.iter_mut().for_each(Cursor::reset);
            (self.count, self.gap, self.cut) = (0, 0, false);
        }
    }

    fn open(&self, secrets: &Secrets) -> Option<usize> {
        let held = |run: &ByteRun| !self.cut || run.length >= MIN_HELD;
        let begun = self.cursors.iter().filter_map(|cursor| cursor.open(secrets)).filter(held);
        let last = (self.count > 0 && !self.cut).then_some(self.last.1);
        begun.map(|run| run.start).chain(last).min()
    }
}

const NO_DIGIT: u8 = u8::MAX;

/// The values of digits, given in their order from 0.
const fn values(digits: &[u8]) -> [u8; 256] {
    let (mut values, mut value) = ([NO_DIGIT; 256], 0);
    while value < digits.len() {
        values[digits[value] as usize] = value as u8;
        value += 1;
    }
    values
}

/// The digits of base64, in both alphabets.
static BASE64: [u8; 256] = {
    let mut values = values(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
    values[b'-' as usize] = values[b'+' as usize];
    values[b'_' as usize] = values[b'/' as usize];
    values
};

/// Hexadecimal digits, in both cases.
static HEX: [u8; 256] = {
    let (mut values, small) = (values(b"0123456789ABCDEF"), values(b"0123456789abcdef"));
    let mut letter = b'a';
    while letter <= b'f' {
        values[letter as usize] = small[letter as usize];
        letter += 1;
    }
    values
};

fn hex(digit: u8) -> Option<u8> {
    Some(HEX[usize::from(digit)]).filter(|value| *value != NO_DIGIT)
}
