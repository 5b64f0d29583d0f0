//! JSON documents (RFC 8259): runners' results and schemas.
//!
//! Strictly the RFC's grammar in UTF-8, with further rules: names are unique in an object, nesting
//! is limited to [`MAX_NESTING`], and numbers are exact ([`Decimal`]). A tree takes up to a hundred
//! times the memory of its text, so callers that read many results should not keep trees.

use super::decimal::{Decimal, DecimalError};
use crate::primitives::json::{Expected, Scanner};
use std::{borrow::Cow, collections::BTreeMap, fmt};

/// Maximum number of lists and objects around a value, including the value itself.
pub const MAX_NESTING: usize = 64;

/// A JSON value. Equality ignores notation: `1.0` equals `1`, `"\u0061"` equals `"a"`, and an
/// object's names have no order. [`Display`](fmt::Display) writes the canonical text of a value:
/// names ascending by their bytes, no spaces, no unnecessary escapes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Json {
    Null,
    Bool(bool),
    Number(Decimal),
    Text(String),
    List(Vec<Json>),
    Object(BTreeMap<String, Json>),
}

/// Why bytes are not a [`Json`] document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    #[error("not UTF-8 from byte {at} on")]
    Utf8 {
        /// The end of the valid text.
        at: usize,
    },
    #[error("{0}")]
    Syntax(#[from] Expected),
    #[error("nested deeper than {MAX_NESTING} at byte {at}")]
    Nesting {
        /// The start of the first value that is too deep.
        at: usize,
    },
    #[error("a duplicate name before byte {at}")]
    Duplicate {
        /// The end of the name.
        at: usize,
    },
    #[error("{problem}, at byte {at}")]
    Number { at: usize, problem: DecimalError },
}

impl Json {
    pub fn parse(bytes: &[u8]) -> Result<Self, JsonError> {
        let text =
            str::from_utf8(bytes).map_err(|error| JsonError::Utf8 { at: error.valid_up_to() })?;
        let mut scanner = Scanner::new(text);
        let value = read(&mut scanner, 0)?;
        scanner.end()?;
        Ok(value)
    }

    /// The value at a JSON pointer (RFC 6901); `None` if there is no such value, or the pointer is
    /// invalid.
    pub fn pointer(&self, pointer: &str) -> Option<&Self> {
        let pointer = Pointer::parse(pointer).ok()?;
        self.at(&pointer)
    }

    pub fn at(&self, pointer: &Pointer) -> Option<&Self> {
        pointer.0.iter().try_fold(self, |value, token| match value {
            Self::Object(members) => members.get(token),
            Self::List(items) => items.get(position(token)?),
            _ => None,
        })
    }
}

/// Reads the next value, which has `depth` lists and objects around it.
fn read(scanner: &mut Scanner<'_>, depth: usize) -> Result<Json, JsonError> {
    scanner.skip_white();
    match scanner.peek() {
        Some(b'n') => Ok(scanner.word("null").map(|()| Json::Null)?),
        Some(b't') => Ok(scanner.word("true").map(|()| Json::Bool(true))?),
        Some(b'f') => Ok(scanner.word("false").map(|()| Json::Bool(false))?),
        Some(b'"') => Ok(Json::Text(scanner.string()?)),
        Some(b'-' | b'0'..=b'9') => {
            let at = scanner.at();
            match Decimal::scan(scanner) {
                Ok(number) => Ok(Json::Number(number)),
                Err(DecimalError::Syntax(expected)) => Err(expected.into()),
                Err(problem) => Err(JsonError::Number { at, problem }),
            }
        }
        Some(b'[' | b'{') if depth == MAX_NESTING => Err(JsonError::Nesting { at: scanner.at() }),
        Some(b'[') => read_list(scanner, depth + 1).map(Json::List),
        Some(b'{') => read_object(scanner, depth + 1).map(Json::Object),
        _ => Ok(scanner.fail("a value")?),
    }
}

fn read_list(scanner: &mut Scanner<'_>, depth: usize) -> Result<Vec<Json>, JsonError> {
    scanner.expect(b'[', "a list")?;
    let mut items = Vec::new();
    scanner.elements(b']', "a comma or ]", |scanner| {
        items.push(read(scanner, depth)?);
        Ok::<_, JsonError>(())
    })?;
    Ok(items)
}

fn read_object(
    scanner: &mut Scanner<'_>,
    depth: usize,
) -> Result<BTreeMap<String, Json>, JsonError> {
    scanner.expect(b'{', "an object")?;
    let mut members = BTreeMap::new();
    scanner.elements(b'}', "a comma or }", |scanner| {
        scanner.skip_white();
        let name = scanner.string()?;
        if members.contains_key(&name) {
            return Err(JsonError::Duplicate { at: scanner.at() });
        }
        scanner.skip_white();
        scanner.expect(b':', "a colon")?;
        members.insert(name, read(scanner, depth)?);
        Ok(())
    })?;
    Ok(members)
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => write_text(f, text),
            Self::List(items) => {
                f.write_str("[")?;
                for (index, item) in items.iter().enumerate() {
                    f.write_str(if index > 0 { "," } else { "" })?;
                    write!(f, "{item}")?;
                }
                f.write_str("]")
            }
            Self::Object(members) => {
                f.write_str("{")?;
                for (index, (name, value)) in members.iter().enumerate() {
                    f.write_str(if index > 0 { "," } else { "" })?;
                    write_text(f, name)?;
                    write!(f, ":{value}")?;
                }
                f.write_str("}")
            }
        }
    }
}

fn write_text(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    let escaped = |c: char| matches!(c, '"' | '\\') || c < ' ';
    f.write_str("\"")?;
    let mut rest = text;
    while let Some(plain) = rest.find(escaped) {
        f.write_str(&rest[..plain])?;
        match rest.as_bytes()[plain] {
            b'"' => f.write_str("\\\"")?,
            b'\\' => f.write_str("\\\\")?,
            b'\n' => f.write_str("\\n")?,
            b'\r' => f.write_str("\\r")?,
            b'\t' => f.write_str("\\t")?,
            control => write!(f, "\\u{control:04x}")?,
        }
        // All of these are one byte long.
        rest = &rest[plain + 1..];
    }
    write!(f, "{rest}\"")
}

/// A JSON pointer (RFC 6901), split into its tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer(Vec<String>);

/// Why a text is not a pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PointerError {
    #[error("is not a JSON pointer: neither empty nor with a / at its start")]
    Start,
    #[error("is not a JSON pointer: a ~ that is neither ~0 nor ~1")]
    Escape,
}

impl Pointer {
    /// Splits a pointer: empty, or tokens that each follow a `/`, with `~0` for `~` and `~1` for
    /// `/`.
    pub fn parse(text: &str) -> Result<Self, PointerError> {
        let mut parts = text.split('/');
        if parts.next() != Some("") {
            return Err(PointerError::Start);
        }
        let token = |part: &str| {
            if !part.split('~').skip(1).all(|rest| rest.starts_with(['0', '1'])) {
                return Err(PointerError::Escape);
            }
            // The order matters: ~01 is ~1, not a slash.
            Ok(part.replace("~1", "/").replace("~0", "~"))
        };
        parts.map(token).collect::<Result<_, _>>().map(Self)
    }

    pub fn tokens(&self) -> &[String] {
        &self.0
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|name| write!(f, "/{}", token(name)))
    }
}

/// A name, escaped as a token of a pointer.
pub fn token(name: &str) -> Cow<'_, str> {
    if !name.contains(['~', '/']) {
        return Cow::Borrowed(name);
    }
    Cow::Owned(name.replace('~', "~0").replace('/', "~1"))
}

/// The list position that a token names: digits without a leading zero.
pub fn position(token: &str) -> Option<usize> {
    let canonical = token == "0" || !token.starts_with('0');
    let digits = token.bytes().all(|byte| byte.is_ascii_digit());
    if canonical && digits { token.parse().ok() } else { None }
}

#[cfg(test)]
pub(super) mod tests;
