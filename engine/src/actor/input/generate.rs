//! The generator: reads values from choices, and suggests the choices of new inputs.
//!
//! | type | its choices |
//! |---|---|
//! | `bool` | 0 or 1 |
//! | `int` | halves of its magnitude of 256 bits, the high one first; then 1 if it is negative |
//! | `str`, `list`, `dict`, `tuple[T, ...]` | 1 and the element, for each; then 0 |
//! | a character | its place in [`character`]'s order |
//! | `tuple[T, U]`, records | those of their parts |
//! | `T \| U` | the number of the alternative, then its own |

use super::{
    choices::{Choices, Recorded, Splitmix},
    datum::Datum,
    shape::Shape,
};
use num_bigint::BigInt;
use num_traits::{One as _, Signed as _, ToPrimitive as _, Zero as _};
use std::collections::BTreeSet;

/// Bits of half of an integer's magnitude.
const HALF: u32 = u128::BITS;
/// Widths of integer types and of the exact integers of JavaScript: an integer near one of these
/// powers of two is a limit somewhere.
const WIDTHS: [u32; 14] = [7, 8, 15, 16, 31, 32, 53, 63, 64, 127, 128, 160, 255, 256];
/// Texts that programs take for something else.
const TEXTS: [&str; 18] = [
    " ", "0", "-1", "00", "1e3", "0x", "null", "None", "true", "{}", "[]", "\"", "'", "\\", "\n",
    "\0", "%s", "{0}",
];
/// Characters that change length with their case, join with their neighbours, or need escapes.
const CHARACTERS: [char; 20] = [
    '"',
    '\'',
    '\\',
    '\n',
    '\t',
    '\0',
    '\u{7f}',
    '{',
    '%',
    'é',
    'ß',
    'İ',
    '漢',
    '\u{301}',
    '\u{200d}',
    '\u{202e}',
    '\u{feff}',
    '\u{ffff}',
    '😀',
    '\u{10ffff}',
];
/// Number of code points that are ASCII.
const ASCII: u128 = 128;
const SURROGATES: u128 = 0x800;
const FIRST_SURROGATE: u128 = 0xd800;
/// The place of the last character.
const LAST: u128 = 0x10_ffff - SURROGATES;
/// Maximum number of earlier values of a kind that an input remembers to repeat.
const REMEMBERED: usize = 64;
/// Maximum number of constants of a kind that a module contributes, and of bytes in one.
const MAX_CONSTANTS: usize = 256;

/// Values that a module's source mentions: tests often depend on exactly these.
#[derive(Clone, Debug, Default)]
pub(in crate::actor) struct Vocabulary {
    integers: Vec<BigInt>,
    texts: Vec<String>,
}

impl Vocabulary {
    pub(in crate::actor) fn add_integer(&mut self, integer: BigInt) {
        if self.integers.len() < MAX_CONSTANTS && integer.bits() <= u64::from(2 * HALF) {
            self.integers.push(integer);
        }
    }

    pub(in crate::actor) fn add_text(&mut self, text: &str) {
        if self.texts.len() < MAX_CONSTANTS && text.len() <= MAX_CONSTANTS {
            self.texts.push(text.to_owned());
        }
    }
}

/// Makes the values of one input.
#[derive(Debug)]
pub(super) struct InputGenerator<'a> {
    choices: Choices<'a>,
    vocabulary: &'a Vocabulary,
    size: u64,
    /// Collections around the present value.
    depth: u32,
    integers: Vec<BigInt>,
    texts: Vec<String>,
}

impl<'a> InputGenerator<'a> {
    pub(super) const fn new(choices: Choices<'a>, vocabulary: &'a Vocabulary, size: u64) -> Self {
        Self { choices, vocabulary, size, depth: 0, integers: Vec::new(), texts: Vec::new() }
    }

    pub(super) fn made(self) -> Recorded {
        self.choices.made
    }

    pub(super) fn datum(&mut self, shape: &Shape) -> Datum {
        match shape {
            Shape::None => Datum::None,
            Shape::Bool => {
                let suggested = self.random(|random| random.below(2));
                Datum::Bool(self.choices.choose(1, suggested.into()) == 1)
            }
            Shape::Int => Datum::Int(self.integer()),
            Shape::Text => Datum::Text(self.text()),
            Shape::List(element) => Datum::List(self.elements(|it| it.datum(element))),
            Shape::TupleOf(element) => Datum::Tuple(self.elements(|it| it.datum(element))),
            Shape::Tuple(parts) => Datum::Tuple(parts.iter().map(|of| self.datum(of)).collect()),
            Shape::Record(record) => {
                let values = record.fields.iter().map(|(_, of)| self.datum(of)).collect();
                Datum::Record(record.clone(), values)
            }
            Shape::Dict(of) => {
                let mut known = BTreeSet::new();
                let mut entries = self.elements(|it| (it.datum(&of.0), it.datum(&of.1)));
                entries.retain(|(key, _)| known.insert(key.clone()));
                Datum::Dict(entries)
            }
            Shape::Union(parts) => {
                let last = parts.len().saturating_sub(1) as u64;
                let suggested = self.random(|random| random.below(last + 1));
                let index = self.choices.choose(last.into(), suggested.into()) as usize;
                parts.get(index).map_or(Datum::None, |of| self.datum(of))
            }
        }
    }

    /// What randomness suggests; zero if choices are repeated.
    fn random(&mut self, suggest: impl FnOnce(&mut Splitmix) -> u64) -> u64 {
        self.choices.random().map_or(0, suggest)
    }

    fn elements<T>(&mut self, mut element: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let size = self.size >> (2 * self.depth).min(u64::BITS - 1);
        let count = self.random(|random| match random.below(20) {
            0..=2 => 0,
            3..=5 => 1,
            6..=18 => 1 + random.below(2 + size / 4),
            _ => random.below(1 + size),
        });
        self.depth += 1;
        let mut made = Vec::new();
        loop {
            let from = self.choices.count();
            if self.choices.choose(1, ((made.len() as u64) < count).into()) == 0 {
                break;
            }
            made.push(element(self));
            self.choices.made.elements.push(from..self.choices.count());
        }
        self.depth -= 1;
        made
    }

    fn integer(&mut self) -> BigInt {
        let (size, words, earlier) = (self.size, self.vocabulary, &self.integers);
        let suggested = self.choices.random().map(|random| {
            let picked = an_integer(random, size, (&words.integers, earlier));
            capped(picked)
        });
        let (high, low, negative) = suggested.as_ref().map_or((0, 0, false), halves);
        let at = self.choices.count();
        let high = self.choices.choose(u128::MAX, high);
        let low = self.choices.choose(u128::MAX, low);
        let negative = self.choices.choose(1, negative.into()) == 1;
        if self.choices.count() == at + 3 {
            self.choices.made.integers.push(at);
        }
        let magnitude = (BigInt::from(high) << HALF) + BigInt::from(low);
        let integer = if negative { -magnitude } else { magnitude };
        if suggested.is_some() && self.integers.len() < REMEMBERED {
            self.integers.push(integer.clone());
        }
        integer
    }

    fn text(&mut self) -> String {
        let (size, words, earlier, depth) = (self.size, self.vocabulary, &self.texts, self.depth);
        let suggested = self
            .choices
            .random()
            .map(|random| a_text(random, (size, depth), (&words.texts, earlier)));
        let mut suggestions = suggested.as_deref().unwrap_or_default().chars();
        let mut text = String::new();
        loop {
            let (from, next) = (self.choices.count(), suggestions.next());
            if self.choices.choose(1, next.is_some().into()) == 0 {
                break;
            }
            let place = self.choices.choose(LAST, next.map_or(0, place_of));
            text.push(character(place));
            self.choices.made.elements.push(from..self.choices.count());
        }
        if suggested.is_some() && self.texts.len() < REMEMBERED {
            self.texts.push(text.clone());
        }
        text
    }
}

fn an_integer(
    random: &mut Splitmix,
    size: u64,
    (words, earlier): (&[BigInt], &[BigInt]),
) -> BigInt {
    let signed = |random: &mut Splitmix, integer: BigInt, of: u64| {
        if random.below(of) == 0 { -integer } else { integer }
    };
    let near = |random: &mut Splitmix, integer: BigInt| integer + random.below(3) - 1;
    match random.below(20) {
        0 | 1 if !earlier.is_empty() => random.of(earlier).cloned().unwrap_or_default(),
        2 | 3 if !words.is_empty() => {
            let word = random.of(words).cloned().unwrap_or_default();
            let word = near(random, word);
            signed(random, word, 8)
        }
        4..=6 => {
            let integer = BigInt::from(random.below(3));
            signed(random, integer, 2)
        }
        7..=11 => {
            let width = random.of(&WIDTHS).copied().unwrap_or(HALF);
            let edge = near(random, BigInt::one() << width);
            signed(random, edge, 4)
        }
        12..=15 => {
            let bits = random.below(u64::from(2 * HALF) + 1) as u32;
            let words = (0..4).map(|_| random.next());
            let whole = words.fold(BigInt::zero(), |whole, word| (whole << 64) + word);
            signed(random, whole >> (2 * HALF - bits), 4)
        }
        _ => {
            let integer = BigInt::from(random.below(2 + size * size));
            signed(random, integer, 4)
        }
    }
}

/// The nearest integer with a magnitude that fits both halves.
fn capped(integer: BigInt) -> BigInt {
    if integer.bits() <= u64::from(2 * HALF) {
        return integer;
    }
    let most: BigInt = (BigInt::one() << (2 * HALF)) - 1;
    if integer.is_negative() { -most } else { most }
}

/// High and low half of the magnitude, and whether the integer is negative.
fn halves(integer: &BigInt) -> (u128, u128, bool) {
    let magnitude = integer.abs();
    let high = &magnitude >> HALF;
    let low = magnitude - (&high << HALF);
    let half = |half: &BigInt| half.to_u128().unwrap_or(u128::MAX);
    (half(&high), half(&low), integer.is_negative())
}

fn a_text(
    random: &mut Splitmix,
    (size, depth): (u64, u32),
    (words, earlier): (&[String], &[String]),
) -> String {
    let kind = random.below(20);
    match kind {
        0 | 1 if !earlier.is_empty() => return random.of(earlier).cloned().unwrap_or_default(),
        2 | 3 if !words.is_empty() => return random.of(words).cloned().unwrap_or_default(),
        4 => return String::new(),
        5 | 6 => return random.of(&TEXTS).copied().unwrap_or_default().to_owned(),
        _ => {}
    }
    let len = match random.below(20) {
        0..=3 => 1,
        // Long texts only where there are few of them.
        4 if depth == 0 => random.below(1 + 10 * size),
        _ => 1 + random.below(2 + size / 4),
    };
    (0..len)
        .map(|_| match (kind, random.below(20)) {
            (7..=11, _) => char::from(b'a' + random.below(26) as u8),
            (12..=16, _) | (_, 0..=9) => char::from(b' ' + random.below(95) as u8),
            (_, 10..=16) => random.of(&CHARACTERS).copied().unwrap_or('a'),
            _ => character(u128::from(random.next()) % (LAST + 1)),
        })
        .collect()
}

/// The character at a place in the order from simple to strange: letters, digits, other printable
/// characters of ASCII, its control characters, and all others by code point, without surrogates.
pub(super) fn character(place: u128) -> char {
    let code = match place {
        0..26 => u128::from(b'a') + place,
        26..36 => u128::from(b'0') + place - 26,
        36..62 => u128::from(b'A') + place - 36,
        62..78 => u128::from(b' ') + place - 62,
        78..85 => u128::from(b':') + place - 78,
        85..91 => u128::from(b'[') + place - 85,
        91..95 => u128::from(b'{') + place - 91,
        95 => 127,
        96..ASCII => place - 96,
        ASCII..FIRST_SURROGATE => place,
        _ => place + SURROGATES,
    };
    char::from_u32(code as u32).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// The place of a character in [`character`]'s order.
pub(super) fn place_of(character: char) -> u128 {
    let code = u128::from(u32::from(character));
    match character {
        'a'..='z' => code - u128::from(b'a'),
        '0'..='9' => code - u128::from(b'0') + 26,
        'A'..='Z' => code - u128::from(b'A') + 36,
        ' '..='/' => code - u128::from(b' ') + 62,
        ':'..='@' => code - u128::from(b':') + 78,
        '['..='`' => code - u128::from(b'[') + 85,
        '{'..='~' => code - u128::from(b'{') + 91,
        '\u{7f}' => 95,
        '\0'..='\u{1f}' => code + 96,
        _ if code < FIRST_SURROGATE => code,
        _ => code - SURROGATES,
    }
}
