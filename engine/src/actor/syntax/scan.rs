//! Limits of a module, checked on its tokens before anything recursive sees it.

use super::Lines;
use crate::actor::{
    error::{Error, ErrorKind, Fault, Position},
    gas::{Cause, Limits, Meter},
};
use starlark_syntax::{
    codemap::CodeMap,
    eval_exception::EvalException,
    lexer::{Lexer, Token, TokenInt},
    syntax::{Dialect, DialectTypes},
};
use std::collections::VecDeque;

/// The dialect: standard, with type annotations and named-only parameters, without load.
pub(super) fn dialect() -> Dialect {
    Dialect {
        enable_load: false,
        enable_types: DialectTypes::Enable,
        enable_keyword_only_arguments: true,
        ..Dialect::Standard
    }
}

/// Checks the tokens of a module against the limits and pays for each.
pub(in crate::actor) fn scan(lines: &Lines, meter: &mut Meter) -> Result<(), Fault> {
    let source = lines.source();
    let limits = meter.limits;
    meter.pay(Cause::Loading, (source.len() as u64).div_ceil(meter.schedule.text_bytes))?;
    meter.pay(Cause::Loading, lines.count() as u64)?;
    let codemap = CodeMap::new("actor".into(), source.to_owned());
    let mut nesting = Nesting::new(limits);
    let mut long = LongDigits::new(source, limits.bits);
    let (mut count, mut read) = (0, 0);
    let mut lexer = Lexer::new(source, &dialect(), codemap.clone());
    loop {
        // The lexer converts a number before it can be asked how long that is.
        if let Some(start) = long.next_after(read) {
            let (limit, at) = (limits.bits, lines.position(start as u32));
            return Err(Error::refused(format!("an integer literal has at most {limit} bits"), at));
        }
        let Some(token) = lexer.next() else { return Ok(()) };
        let (start, token, end) = token.map_err(|error| unlexable(error, lines))?;
        (count, read) = (count + 1, end);
        let at = || lines.position(start as u32);
        meter.pay(Cause::Loading, meter.schedule.token)?;
        too_much("tokens", count, limits.tokens).map_err(|kind| kind.at(at()))?;
        admit(&token, limits.bits).map_err(|reason| Error::refused(reason, at()))?;
        nesting.enter(&token).map_err(|kind| kind.at(at()))?;
    }
}

/// Runs of more digits than any integer within the limit has bits, in strings and comments or not.
struct LongDigits(VecDeque<LongRun>);

struct LongRun {
    /// Where what is before it ends, white space aside.
    after: usize,
    start: usize,
}

impl LongDigits {
    fn new(source: &str, bits: u64) -> Self {
        let mut runs = VecDeque::new();
        let mut start = 0;
        for run in source.split_inclusive(|c: char| !c.is_ascii_digit()) {
            if run.len() as u64 > bits {
                let before = source[..start].trim_end_matches([' ', '\t', '\r', '\n', '\\']);
                runs.push_back(LongRun { after: before.len(), start });
            }
            start += run.len();
        }
        Self(runs)
    }

    /// Where a run begins that the token after what was read would be.
    fn next_after(&mut self, read: usize) -> Option<usize> {
        while self.0.front().is_some_and(|run| run.start < read) {
            self.0.pop_front();
        }
        self.0.front().filter(|run| run.after <= read).map(|run| run.start)
    }
}

fn unlexable(error: EvalException, lines: &Lines) -> Fault {
    super::compile::syntax_error(&error.into_error(), lines)
}

fn too_much(what: &'static str, got: u64, limit: u64) -> Result<(), ErrorKind> {
    if got > limit {
        return Err(ErrorKind::TooMuch { what, limit, got });
    }
    Ok(())
}

/// Refuses what the lexer knows and this dialect does not have.
fn admit(token: &Token, bits: u64) -> Result<(), String> {
    match token {
        Token::Float(_) => Err("there are no floats".into()),
        Token::FStringStart(_) => Err("there are no f-strings; use format()".into()),
        Token::Bytes(_) => Err("there are no bytes literals; use text or 0x-hex".into()),
        Token::Load => Err("there is no load; a module stands alone".into()),
        Token::Int(TokenInt::BigInt(int)) if int.bits() > bits => {
            Err(format!("an integer literal has at most {bits} bits, this one has {}", int.bits()))
        }
        _ => Ok(()),
    }
}

/// How deep the tree would be. Within an expression that is bounded by the operators on the way
/// down: those since the last comma of each open bracket, and what the brackets closed since then
/// had within.
struct Nesting {
    limits: Limits,
    /// Per open bracket, the outermost being the statement.
    open: Vec<Open>,
    /// Sum of `depth` over `open`.
    depth: u64,
    /// Per open block, the branches of the `if` that it is in.
    branches: Vec<u64>,
    statement_begins: bool,
}

#[derive(Default)]
struct Open {
    /// Of the element that is being read.
    depth: u64,
    /// The deepest of the elements before it.
    deepest: u64,
}

impl Nesting {
    fn new(limits: Limits) -> Self {
        let (open, branches) = (vec![Open::default()], vec![0]);
        Self { limits, open, depth: 0, branches, statement_begins: true }
    }

    fn innermost(&mut self) -> &mut Open {
        self.open.last_mut().expect("the statement stays open")
    }

    fn deepen(&mut self, by: u64) -> Result<(), ErrorKind> {
        self.innermost().depth += by;
        self.depth += by;
        too_much("operators in an expression", self.depth, self.limits.operators)
    }

    fn enter(&mut self, token: &Token) -> Result<(), ErrorKind> {
        if self.statement_begins {
            let branches = self.branches.last_mut().expect("the module is a block");
            match token {
                Token::Elif => *branches += 1,
                Token::Else | Token::Dedent | Token::Newline | Token::Comment(_) => {}
                _ => *branches = 0,
            }
            let sum = self.branches.iter().sum();
            too_much("branches of an if, within one another", sum, self.limits.operators)?;
        }
        self.statement_begins =
            matches!(token, Token::Newline | Token::Indent | Token::Dedent | Token::Semicolon)
                || (self.statement_begins && matches!(token, Token::Comment(_)));
        match token {
            Token::OpeningCurly | Token::OpeningRound | Token::OpeningSquare => {
                self.deepen(1)?;
                self.open.push(Open::default());
                too_much("open brackets", self.open.len() as u64 - 1, self.limits.brackets)
            }
            Token::ClosingCurly | Token::ClosingRound | Token::ClosingSquare => {
                // One too many is the parser's to refuse.
                if self.open.len() == 1 {
                    return Ok(());
                }
                let closed = self.open.pop().expect("more than one is open");
                self.depth -= closed.depth;
                self.deepen(closed.deepest.max(closed.depth))
            }
            Token::Comma => {
                let element = self.innermost();
                let depth = std::mem::take(&mut element.depth);
                element.deepest = element.deepest.max(depth);
                self.depth -= depth;
                Ok(())
            }
            Token::Newline | Token::Semicolon => {
                self.depth -= std::mem::take(self.innermost()).depth;
                Ok(())
            }
            Token::Indent => {
                self.branches.push(0);
                too_much(
                    "blocks within one another",
                    self.branches.len() as u64 - 1,
                    self.limits.blocks,
                )
            }
            Token::Dedent => {
                if self.branches.len() > 1 {
                    self.branches.pop();
                }
                Ok(())
            }
            Token::Identifier(_)
            | Token::Int(_)
            | Token::String(_)
            | Token::Colon
            | Token::Ellipsis
            | Token::Comment(_)
            | Token::Def
            | Token::Elif
            | Token::Pass
            | Token::Break
            | Token::Continue
            | Token::Return => Ok(()),
            // Names are looked for in every function around: lambdas nest less deep.
            Token::Lambda => self.deepen(8),
            _ => self.deepen(1),
        }
    }
}

/// Where a position is wanted and there is none: the module's beginning.
pub(super) const START: Position = Position { line: 1, column: 1 };
