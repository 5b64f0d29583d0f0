//! Limits of a module, checked on its tokens before anything recursive sees it.

use super::{
    Lines,
    lex::{Lexer, Token, Unlexable},
};
use crate::actor::{
    error::{Error, ErrorKind, Fault},
    gas::{Cause, Limits, Meter},
};
use num_bigint::BigInt;
use std::borrow::Cow;

/// The text of a module, with all line endings as line feeds.
pub(in crate::actor) fn plain(source: &str) -> Result<Cow<'_, str>, Fault> {
    let refused =
        |why: &str, at: usize| Err(Error::refused(why, Lines::new(source).position(at as u32)));
    if source.starts_with('\u{feff}') {
        return refused("U+FEFF byte order mark at the start: remove it", 0);
    }
    if let Some(at) = source.find('\0') {
        return refused("U+0000 in the source: write \\0 in a string", at);
    }
    if !source.contains('\r') {
        return Ok(source.into());
    }
    let plain = source.replace("\r\n", "\n");
    if let Some(lone) = plain.find('\r') {
        let at = Lines::new(&plain).position(lone as u32);
        return Err(Error::refused("a carriage return without a line feed", at));
    }
    Ok(plain.into())
}

/// Checks the tokens of a module against the limits and pays for each. `bytes` is the length of the
/// source before its line endings were changed.
pub(in crate::actor) fn scan(lines: &Lines, bytes: usize, meter: &mut Meter) -> Result<(), Fault> {
    let source = lines.source();
    let limits = meter.limits;
    meter.pay(Cause::Loading, (bytes as u64).div_ceil(meter.schedule.text_bytes))?;
    meter.pay(Cause::Loading, lines.count() as u64)?;
    let mut nesting = Nesting::new(limits);
    let mut lexer = Lexer::new(source);
    let mut count = 0;
    loop {
        let lexeme = lexer.next();
        let lexeme = lexeme
            .map_err(|Unlexable { why, at }| Error::refused(why, lines.position(at as u32)))?;
        let Some(lexeme) = lexeme else { return Ok(()) };
        count += 1;
        let at = || lines.position(lexeme.start as u32);
        meter.pay(Cause::Loading, meter.schedule.token)?;
        too_much("tokens", count, limits.tokens).map_err(|kind| kind.at(at()))?;
        if lexeme.token == Token::Int {
            let digits = &source[lexeme.start..lexeme.end];
            integer(digits, limits.bits).map_err(|why| Error::refused(why, at()))?;
        }
        nesting.enter(lexeme.token).map_err(|kind| kind.at(at()))?;
    }
}

/// The value of an integer literal. Refuses one with more digits than an integer of `bits` bits can
/// have before it reads the digits.
pub(super) fn integer(literal: &str, bits: u64) -> Result<BigInt, String> {
    let digits = literal.replace('_', "");
    let prefix = digits.get(..2).unwrap_or_default().to_ascii_lowercase();
    let (digits, radix) = match prefix.as_str() {
        "0x" => (&digits[2..], 16),
        "0o" => (&digits[2..], 8),
        "0b" => (&digits[2..], 2),
        _ => (digits.as_str(), 10),
    };
    let significant = digits.trim_start_matches('0').len() as u64;
    // The minimum, in thousandths of a bit, that each digit except the first carries.
    let each = match radix {
        16 => 4_000,
        8 => 3_000,
        2 => 1_000,
        _ => 3_321,
    };
    if significant > 0 && (significant - 1) * each / 1_000 + 1 > bits {
        return Err(format!("an integer literal has at most {bits} bits"));
    }
    let integer = BigInt::parse_bytes(digits.as_bytes(), radix).unwrap_or_default();
    let got = integer.bits();
    if got > bits {
        return Err(format!("an integer literal has at most {bits} bits, this one has {got}"));
    }
    Ok(integer)
}

fn too_much(what: &'static str, got: u64, limit: u64) -> Result<(), ErrorKind> {
    if got > limit {
        return Err(ErrorKind::TooMuch { what, limit, got });
    }
    Ok(())
}

/// The depth of the syntax tree. Within an expression, the operators on the way down bound it:
/// those since the last comma of each open bracket, plus the depth of the brackets closed since
/// then.
struct Nesting {
    limits: Limits,
    /// Per open bracket; the first is the statement.
    open: Vec<OpenBracket>,
    /// Sum of `depth` over `open`.
    depth: u64,
    blocks: u64,
}

#[derive(Default)]
struct OpenBracket {
    /// Whether the bracket is an f-string, whose fields are its elements.
    text: bool,
    /// Depth of the element that is being read.
    depth: u64,
    /// Depth of the deepest element before it.
    deepest: u64,
}

impl Nesting {
    fn new(limits: Limits) -> Self {
        Self { limits, open: vec![OpenBracket::default()], depth: 0, blocks: 0 }
    }

    fn innermost(&mut self) -> &mut OpenBracket {
        self.open.last_mut().expect("the statement stays open")
    }

    fn deepen(&mut self, by: u64) -> Result<(), ErrorKind> {
        self.innermost().depth += by;
        self.depth += by;
        too_much("operators in an expression", self.depth, self.limits.operators)
    }

    /// Begins another element of the innermost bracket.
    fn next_element(&mut self) {
        let element = self.innermost();
        let depth = std::mem::take(&mut element.depth);
        element.deepest = element.deepest.max(depth);
        self.depth -= depth;
    }

    fn enter(&mut self, token: Token) -> Result<(), ErrorKind> {
        match token {
            Token::Open | Token::TextBegin => {
                self.deepen(1)?;
                self.open.push(OpenBracket {
                    text: token == Token::TextBegin,
                    ..OpenBracket::default()
                });
                too_much("open brackets", self.open.len() as u64 - 1, self.limits.brackets)
            }
            Token::Close | Token::TextEnd => {
                if self.open.len() == 1 {
                    return Ok(());
                }
                let closed = self.open.pop().expect("more than one is open");
                self.depth -= closed.depth;
                self.deepen(closed.deepest.max(closed.depth))?;
                if self.innermost().text {
                    self.next_element();
                }
                Ok(())
            }
            Token::Comma => {
                self.next_element();
                Ok(())
            }
            Token::Newline | Token::Semicolon => {
                self.depth -= std::mem::take(self.innermost()).depth;
                Ok(())
            }
            Token::Indent => {
                self.blocks += 1;
                too_much("nested blocks", self.blocks, self.limits.blocks)
            }
            Token::Dedent => {
                self.blocks = self.blocks.saturating_sub(1);
                Ok(())
            }
            Token::Leaf | Token::Int | Token::Comment | Token::TextPart => Ok(()),
            // Names are searched for in all enclosing functions, so lambdas may nest less deep.
            Token::Lambda => self.deepen(8),
            Token::Operator => self.deepen(1),
        }
    }
}
