//! The parser, with its errors in terms of this language.

use super::{Lines, absent};
use crate::actor::error::{Error, Fault};
use ruff_python_ast::{ModModule, PythonVersion, token::TokenKind};
use ruff_python_parser::{Mode, ParseError, ParseErrorType, ParseOptions, Parsed, parse};

pub(super) fn parse_module(lines: &Lines) -> Result<Parsed<ModModule>, Fault> {
    // The newest version, so that the parser checks nothing for the sake of older ones.
    let options = ParseOptions::from(Mode::Module).with_target_version(PythonVersion::latest());
    let parsed = parse(lines.source(), options).map_err(|error| {
        let at = lines.position(error.location.start().to_u32());
        Error::refused(explain(&error), at)
    })?;
    Ok(parsed.try_into_module().expect("it was parsed as a module"))
}

/// The parser's error, in this language's terms.
pub(in crate::actor) fn explain(error: &ParseError) -> String {
    match &error.error {
        ParseErrorType::ExpectedToken { expected, found } => {
            format!("expected {}, found {}", named(*expected), named(*found))
        }
        ParseErrorType::ExpectedExpression => "expected an expression".into(),
        ParseErrorType::InvalidAssignmentTarget
        | ParseErrorType::InvalidAugmentedAssignmentTarget
        | ParseErrorType::InvalidAnnotatedAssignmentTarget
        | ParseErrorType::InvalidNamedAssignmentTarget => "this cannot be assigned".into(),
        ParseErrorType::InvalidDeleteTarget => absent::DELETE.into(),
        ParseErrorType::UnexpectedIndentation => {
            "this line is indented, and nothing before it begins a block".into()
        }
        ParseErrorType::SimpleStatementsOnSameLine => {
            "expected the end of the statement: a new line or `;`".into()
        }
        ParseErrorType::SimpleAndCompoundStatementOnSameLine => {
            "a statement with a block must begin a line".into()
        }
        // The other errors are sentences that do not mention the parser's internal names.
        other => {
            let text = other.to_string();
            let mut characters = text.chars();
            let first = characters.next().map(|c| c.to_ascii_lowercase());
            first.into_iter().chain(characters).collect()
        }
    }
}

/// A kind of token as an author knows it.
fn named(kind: TokenKind) -> String {
    match kind {
        TokenKind::Newline | TokenKind::NonLogicalNewline => "the end of the line".into(),
        TokenKind::EndOfFile => "the end of the module".into(),
        TokenKind::Indent => "an indented block".into(),
        TokenKind::Dedent => "the end of the block".into(),
        TokenKind::Name => "a name".into(),
        TokenKind::Int => "an integer".into(),
        TokenKind::String => "a string".into(),
        TokenKind::FStringStart | TokenKind::FStringMiddle | TokenKind::FStringEnd => {
            "an f-string".into()
        }
        other => other.to_string(),
    }
}
