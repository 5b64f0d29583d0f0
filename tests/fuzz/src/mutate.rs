//! Token soups, mutations of modules, bytes.

use crate::rng::Rng;

const TOKENS: &[&str] = &[
    "def",
    "lambda",
    "if",
    "elif",
    "else",
    "for",
    "in",
    "not",
    "and",
    "or",
    "return",
    "pass",
    "break",
    "continue",
    "load",
    "while",
    "assert",
    "del",
    "is",
    "class",
    "None",
    "True",
    "False",
    "f",
    "g",
    "x",
    "y",
    "_",
    "ctx",
    "payload",
    "pvm_host",
    "mock",
    "typing",
    "record",
    "field",
    "int",
    "str",
    "list",
    "dict",
    "tuple",
    "len",
    "range",
    "sorted",
    "zip",
    "print",
    "fail",
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "**",
    "&",
    "|",
    "^",
    "~",
    "<<",
    ">>",
    "=",
    "==",
    "!=",
    "<",
    ">",
    "<=",
    ">=",
    "+=",
    "-=",
    "*=",
    "//=",
    "%=",
    "|=",
    "<<=",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    ";",
    ".",
    "->",
    "...",
    "@",
    "!",
    "$",
    "?",
    "`",
    "\\",
    "#",
    "0",
    "1",
    "-1",
    "7",
    "0x1f",
    "0o17",
    "0b1",
    "9223372036854775807",
    "9223372036854775808",
    "1e5",
    "1.5",
    "08",
    "0x",
    "''",
    "'a'",
    "\"b\"",
    "'é'",
    "'''c\n'''",
    "r'\\d'",
    "b'x'",
    "f'{x}'",
    "f'",
    "{x!r:>5}",
    "f\"{f'{x}'}\"",
    "f'''{x:{y}}'''",
    "'\\x41'",
    "'\\u00e9'",
    "'",
    "\"",
    "'''",
    "\n",
    "\n",
    "\n",
    "\n  ",
    "\n  ",
    "\n    ",
    "\n\t",
    " ",
    " ",
    "\r\n",
    "\u{feff}",
    "é",
    "𐐀",
    "\0",
    "append",
    "items",
    "join",
    "format",
    "%s",
    "key",
    "f(",
    "(x)",
    "[0]",
    "x = ",
    "def f():\n  ",
    "def g(ctx, payload):\n  ",
    "for x in range(9):\n    ",
    "if x:\n    ",
    "return x\n",
];

/// Tokens in any order.
pub fn tokens(rng: &mut Rng) -> String {
    let most = if rng.chance(10) { 2000 } else { 60 };
    let count = 1 + rng.below(most);
    let spaced = rng.chance(70);
    let narrow = rng.chance(30).then(|| (0..6).map(|_| *rng.pick(TOKENS)).collect::<Vec<_>>());
    let mut source = if rng.chance(50) { "def f():\n  return ".to_owned() } else { String::new() };
    for _ in 0..count {
        let token = match &narrow {
            Some(few) => rng.pick(few),
            None => rng.pick(TOKENS),
        };
        source.push_str(token);
        if spaced {
            source.push(' ');
        }
    }
    source
}

/// Random bytes or characters, as text.
pub fn bytes(rng: &mut Rng) -> String {
    let most = if rng.chance(5) { 70_000 } else { 200 };
    let count = rng.below(most);
    if rng.chance(50) {
        let bytes: Vec<u8> = (0..count).map(|_| rng.next() as u8).collect();
        return String::from_utf8_lossy(&bytes).into_owned();
    }
    let ascii = rng.below(100);
    (0..count)
        .map(|_| {
            if rng.chance(ascii) {
                char::from(rng.below(128) as u8)
            } else {
                char::from_u32(rng.below(0x11_0000) as u32).unwrap_or('\u{2028}')
            }
        })
        .collect()
}

/// Splits a source at likely ends of tokens.
fn split(source: &str) -> Vec<&str> {
    let kind = |c: char| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => 0,
        ' ' => 1,
        _ => 2,
    };
    let mut parts = Vec::new();
    let mut start = 0;
    let mut last = None;
    for (at, c) in source.char_indices() {
        if last.is_some_and(|last| kind(c) == 2 || last != kind(c)) {
            parts.push(&source[start..at]);
            start = at;
        }
        last = Some(kind(c));
    }
    parts.push(&source[start..]);
    parts
}

/// A source with parts deleted, duplicated, swapped, or taken from another one.
pub fn mutate(rng: &mut Rng, base: &str, other: &str) -> String {
    let by_line = rng.chance(30);
    let cut = |text| -> Vec<String> {
        if by_line {
            let lines: Vec<&str> = str::split_inclusive(text, '\n').collect();
            lines.into_iter().map(str::to_owned).collect()
        } else {
            split(text).into_iter().map(str::to_owned).collect()
        }
    };
    let (mut parts, others) = (cut(base), cut(other));
    for _ in 0..1 + rng.below(8) {
        if parts.is_empty() {
            break;
        }
        let at = rng.below(parts.len());
        match rng.below(7) {
            0 => drop(parts.remove(at)),
            1 => {
                let part = parts[at].clone();
                parts.insert(at, part);
            }
            2 => {
                let with = rng.below(parts.len());
                parts.swap(at, with);
            }
            3 if !others.is_empty() => {
                let from = rng.below(others.len());
                let to = (from + 1 + rng.below(12)).min(others.len());
                parts.splice(at..at, others[from..to].iter().cloned());
            }
            4 => parts[at] = (*rng.pick(TOKENS)).to_owned(),
            5 => {
                let to = (at + 1 + rng.below(12)).min(parts.len());
                let run = parts[at..to].concat();
                let times = if rng.chance(5) { 300 } else { 1 + rng.below(5) };
                parts.insert(at, run.repeat(times));
            }
            _ => {
                let to = (at + 1 + rng.below(6)).min(parts.len());
                parts.drain(at..to);
            }
        }
    }
    let mut source = parts.concat();
    let mut end = source.len().min(70_000);
    while !source.is_char_boundary(end) {
        end -= 1;
    }
    source.truncate(end);
    source
}
