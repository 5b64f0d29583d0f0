//! Text typed at a prompt: whether it goes on, its statements, and where it is not Python.
//!
//! No rule of the chain depends on this. The syntax is that of Python in full, because actors in
//! both languages have prompts; a module in the dialect refuses the rest of it when it is loaded.

use super::{
    error::Position,
    syntax::{Lines, explain, on_known_stack, plain},
};
use ruff_python_ast::{
    Expr, PythonVersion, Stmt,
    token::{Token, TokenKind},
    visitor::{Visitor, walk_expr, walk_stmt},
};
use ruff_python_parser::{
    InterpolatedStringErrorType, LexicalErrorType, Mode, ParseErrorType, ParseOptions,
    parse_unchecked,
};
use ruff_text_size::Ranged;
use std::{collections::BTreeSet, ops::Range};

/// Maximum length of a typed text, in bytes. It bounds the depth of the tree, too.
pub const MAX_TYPED_BYTES: usize = 8 << 10;

/// What the lines typed so far are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Typed {
    /// A bracket, a string or a block is open, or the last line ends in a backslash.
    Unfinished,
    Finished(TypedText),
}

/// A text whose blocks, brackets and strings are closed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypedText {
    /// Empty if there are only comments.
    pub statements: Vec<TypedStatement>,
    /// The lines, from 0, that begin inside a string, where indentation is text.
    pub in_strings: BTreeSet<usize>,
    /// Names that occur other than after a dot.
    pub names: BTreeSet<String>,
}

/// A statement outside of blocks and functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedStatement {
    /// Its bytes, with the brackets around it.
    pub range: Range<usize>,
    pub kind: TypedKind,
}

/// What a statement means for a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypedKind {
    Expression,
    /// `pass`, `assert` and others that bind no name and change no value.
    Passing,
    Other,
}

/// Why a text cannot be evaluated, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} (line {}, column {})", .at.line, .at.column)]
pub struct TypedError {
    pub what: String,
    pub at: Position,
}

/// Reads the lines typed so far, with a line feed between each. A block is finished by an empty
/// line; if `ended` is set, no line follows and everything is finished.
pub fn read(text: &str, ended: bool) -> Result<Typed, TypedError> {
    let start = Position { line: 1, column: 1 };
    if text.len() > MAX_TYPED_BYTES {
        let what = format!("at most {MAX_TYPED_BYTES} bytes at once, these are {}", text.len());
        return Err(TypedError { what, at: start });
    }
    let text = plain(text).map_err(|fault| {
        let error = fault.into_error();
        TypedError { what: error.kind.to_string(), at: error.at.unwrap_or(start) }
    })?;
    on_known_stack(|| parsed(&text, ended))
}

fn parsed(text: &str, ended: bool) -> Result<Typed, TypedError> {
    let options = ParseOptions::from(Mode::Module).with_target_version(PythonVersion::latest());
    let parsed = parse_unchecked(text, options);
    let errors = parsed.errors();
    let cut = errors.iter().any(|error| is_cut(text, &error.error, error.location.start().into()));
    if !ended && (cut || goes_on(text, parsed.tokens())) {
        return Ok(Typed::Unfinished);
    }
    let lines = Lines::new(text);
    let refused = |what: String, at: u32| TypedError { what, at: lines.position(at) };
    if let Some(error) = errors.iter().min_by_key(|error| error.location.start()) {
        return Err(refused(explain(error), error.location.start().to_u32()));
    }
    let (in_strings, names) = (in_strings(text, parsed.tokens()), names(text, parsed.tokens()));
    let module = parsed.try_into_module().expect("it was parsed as a module");
    let body = &module.syntax().body;
    let mut outside = Outside(None);
    outside.visit_body(body);
    if let Some((what, at)) = outside.0 {
        return Err(refused(format!("`{what}` is only possible inside a function"), at));
    }
    let statements = body.iter().map(|statement| TypedStatement {
        range: statement.range().into(),
        kind: match statement {
            Stmt::Expr(_) => TypedKind::Expression,
            Stmt::Pass(_) | Stmt::Assert(_) | Stmt::Raise(_) => TypedKind::Passing,
            _ => TypedKind::Other,
        },
    });
    Ok(Typed::Finished(TypedText { statements: statements.collect(), in_strings, names }))
}

/// Whether an error is a string in three quotes that is not closed.
fn is_cut(text: &str, error: &ParseErrorType, at: usize) -> bool {
    let ParseErrorType::Lexical(error) = error else {
        use InterpolatedStringErrorType::UnterminatedTripleQuotedString as Unterminated;
        let (ParseErrorType::FStringError(error) | ParseErrorType::TStringError(error)) = error
        else {
            return false;
        };
        return *error == Unterminated;
    };
    match error {
        LexicalErrorType::UnclosedStringError => {
            let opened = text.get(at..).unwrap_or_default();
            let quotes = opened.trim_start_matches(|c: char| c.is_ascii_alphabetic());
            quotes.starts_with("\"\"\"") || quotes.starts_with("'''")
        }
        LexicalErrorType::FStringError(error) | LexicalErrorType::TStringError(error) => {
            *error == InterpolatedStringErrorType::UnterminatedTripleQuotedString
        }
        _ => false,
    }
}

/// Whether more lines belong to the text: a bracket is open, or a block without an empty line.
fn goes_on(text: &str, tokens: &[Token]) -> bool {
    let (mut open, mut block, mut last, mut is_first) = (0_i32, false, None, true);
    let mut comment = false;
    for token in tokens {
        match token.kind() {
            TokenKind::Lpar | TokenKind::Lsqb | TokenKind::Lbrace => open += 1,
            TokenKind::Rpar | TokenKind::Rsqb | TokenKind::Rbrace => open -= 1,
            TokenKind::Newline => block |= last == Some(TokenKind::Colon),
            TokenKind::At => block |= is_first,
            _ => {}
        }
        comment = token.kind() == TokenKind::Comment
            || (comment && matches!(token.kind(), TokenKind::NonLogicalNewline));
        if !token.kind().is_trivia() {
            (last, is_first) = (Some(token.kind()), false);
        }
    }
    let line = text.rsplit('\n').next().unwrap_or_default();
    open > 0
        || (block && !line.trim().is_empty())
        || (line.ends_with('\\') && !comment && !line.contains('#'))
}

/// The lines, from 0, that begin inside a string.
fn in_strings(text: &str, tokens: &[Token]) -> BTreeSet<usize> {
    let (mut found, mut open) = (BTreeSet::new(), Vec::new());
    for token in tokens {
        let range: Range<usize> = token.range().into();
        let within = match token.kind() {
            TokenKind::String => range,
            TokenKind::FStringStart | TokenKind::TStringStart => {
                open.push(range.start);
                continue;
            }
            TokenKind::FStringEnd | TokenKind::TStringEnd => {
                open.pop().map_or(range.clone(), |start| start..range.end)
            }
            _ => continue,
        };
        let before = text[..within.start].matches('\n').count();
        found.extend((1..=text[within].matches('\n').count()).map(|line| before + line));
    }
    found
}

fn names(text: &str, tokens: &[Token]) -> BTreeSet<String> {
    let mut after_dot = false;
    let mut found = BTreeSet::new();
    for token in tokens {
        if token.kind() == TokenKind::Name && !after_dot {
            found.insert(text[Range::<usize>::from(token.range())].to_owned());
        }
        after_dot = token.kind() == TokenKind::Dot;
    }
    found
}

/// The first word outside of functions that only a function can have, and its place.
struct Outside(Option<(&'static str, u32)>);

impl Outside {
    fn found(&mut self, word: &'static str, at: &impl Ranged) {
        self.0.get_or_insert((word, at.start().to_u32()));
    }
}

impl<'a> Visitor<'a> for Outside {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(_) | Stmt::ClassDef(_) => {}
            Stmt::Return(found) => self.found("return", found),
            other => walk_stmt(self, other),
        }
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Lambda(_) => {}
            Expr::Yield(found) => self.found("yield", found),
            Expr::YieldFrom(found) => self.found("yield", found),
            Expr::Await(found) => self.found("await", found),
            other => walk_expr(self, other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(text: &str) -> TypedText {
        match read(text, false) {
            Ok(Typed::Finished(typed)) => typed,
            other => panic!("{text:?}: {other:?}"),
        }
    }

    #[test]
    fn a_text_goes_on_until_its_brackets_strings_and_blocks_end() {
        let check = |text: &str, goes_on: bool| {
            assert_eq!(read(text, false) == Ok(Typed::Unfinished), goes_on, "{text:?}");
        };
        check("1 + 1", false);
        check("", false);
        check("# only a comment \\", false);
        check("f(1,", true);
        check("f(1,\n", true);
        check("f(1,\n2)", false);
        check("[{", true);
        check("x = \"\"\"a", true);
        check("x = \"\"\"a\n\n", true);
        check("x = \"\"\"a\nb\"\"\"", false);
        check("x = f'''a{", true);
        check("x = f'''a{1}", true);
        check("x = f'''a{1}\n'''", false);
        check("1 + \\", true);
        check("1 + \\\n2", false);
        check("if x:", true);
        check("if x: # why", true);
        check("if x:\n    y", true);
        check("if x:\n    y\n", false);
        check("if x:\n    y\n    ", false);
        check("for x in y:\n    f(\n", true);
        check("if x: y", false);
        check("x[1:\n", true);
        check("@d", true);
        check("@d\ndef f(): pass", true);
        check("@d\ndef f(): pass\n", false);
        check("lambda: 1", false);
        check("{1: 2}", false);
    }

    #[test]
    fn what_is_no_python_is_refused_where_it_is() {
        let check = |text: &str, line, column, what: &str| {
            let error = read(text, true).unwrap_err();
            assert_eq!(error.at, Position { line, column }, "{text:?}: {error}");
            assert!(error.what.contains(what), "{text:?}: {error}");
        };
        check("1 + ", 1, 5, "expected an expression");
        check("x = = 2", 1, 5, "expected an expression");
        check("a = 1\nb = (", 2, 6, "unexpected EOF");
        check("x = 'a", 1, 5, "missing closing quote");
        check("return 1", 1, 1, "`return` is only possible inside a function");
        check("if x:\n    return 1\n", 2, 5, "`return`");
        check("x = (yield)", 1, 6, "`yield`");
        check("await f()", 1, 1, "`await`");
        check("if x:\n", 1, 6, "indented block");
        check("  x", 1, 1, "indented");
        check(&"x".repeat(MAX_TYPED_BYTES + 1), 1, 1, "at most 8192 bytes");
        finished("def f():\n    return 1\n");
        finished("f = lambda: (yield)");
        let deep = format!("{}1{}", "(".repeat(4_000), ")".repeat(4_000));
        assert_eq!(finished(&deep).statements.len(), 1);
        for prefix in ["-", "not ", "lambda:", "1 if 1 else ", "1**", "[", "f(", "x."] {
            // Whatever it is, it ends.
            let _ = read(&prefix.repeat(MAX_TYPED_BYTES / prefix.len()), true);
        }
    }

    #[test]
    fn statements_strings_and_names_are_found() {
        let typed = finished("x = 1; (x + pvm_host.get_state('a')) # end");
        let found: Vec<_> = typed.statements.iter().map(|s| (s.range.clone(), s.kind)).collect();
        assert_eq!(found, [(0..5, TypedKind::Other), (7..36, TypedKind::Expression)]);
        let names: Vec<_> = typed.names.iter().map(String::as_str).collect();
        assert_eq!(names, ["pvm_host", "x"]);
        assert_eq!(finished("assert x; pass").statements[1].kind, TypedKind::Passing);
        assert!(finished("# nothing").statements.is_empty());
        let strings = finished("x = \"\"\"a\nb\n\"\"\" + f(\n1) + f'''{\ny}\n'''");
        assert_eq!(strings.in_strings.into_iter().collect::<Vec<_>>(), [1, 2, 4, 5]);
        assert!(strings.names.contains("y"));
    }
}
