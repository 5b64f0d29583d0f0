//! JSON documents (RFC 8259): what runners return and what a schema is written in.
//!
//! Strictly the RFC's grammar in UTF-8. On top: a name stands once in an object, nesting ends at
//! [`MAX_NESTING`], numbers are exact ([`Decimal`]). A tree takes up to a hundred times the memory
//! of its text, so whoever reads many results keeps no tree.

use super::decimal::{Decimal, DecimalError};
use crate::primitives::json::{Expected, Scanner};
use std::{borrow::Cow, collections::BTreeMap, fmt};

/// Lists and objects around a value at most, those that it is itself included.
pub const MAX_NESTING: usize = 64;

/// A JSON value. Equal values are equal here, however they were written: `1.0` is `1`, `"\u0061"`
/// is `"a"`, and names of an object have no order. [`Display`](fmt::Display) writes a value's one
/// text: names ascending by their bytes, no spaces, nothing escaped that need not be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(Decimal),
    /// A string.
    Text(String),
    /// A list.
    List(Vec<Json>),
    /// An object.
    Object(BTreeMap<String, Json>),
}

/// Why bytes are no [`Json`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// No UTF-8.
    #[error("no UTF-8 from byte {at} on")]
    Utf8 {
        /// Where valid text ends.
        at: usize,
    },
    /// Not the grammar.
    #[error("{0}")]
    Syntax(#[from] Expected),
    /// Lists and objects in one another beyond the limit.
    #[error("nested deeper than {MAX_NESTING} at byte {at}")]
    Nesting {
        /// Where the first too deep one begins.
        at: usize,
    },
    /// A name that its object already has.
    #[error("a name for the second time before byte {at}")]
    Duplicate {
        /// Where the name ends.
        at: usize,
    },
    /// A number that is no [`Decimal`].
    #[error("{problem}, at byte {at}")]
    Number {
        /// Where it begins.
        at: usize,
        /// Why it is none.
        problem: DecimalError,
    },
}

impl Json {
    /// Reads a document, all of it.
    pub fn parse(bytes: &[u8]) -> Result<Self, JsonError> {
        let text =
            str::from_utf8(bytes).map_err(|error| JsonError::Utf8 { at: error.valid_up_to() })?;
        let mut scanner = Scanner::new(text);
        let value = read(&mut scanner, 0)?;
        scanner.end()?;
        Ok(value)
    }

    /// The value that a JSON pointer (RFC 6901) leads to; `None`: nothing is there, or it is no
    /// pointer.
    pub fn pointer(&self, pointer: &str) -> Option<&Self> {
        let pointer = Pointer::parse(pointer).ok()?;
        self.at(&pointer)
    }

    /// The value that a pointer leads to; `None`: nothing is there.
    pub fn at(&self, pointer: &Pointer) -> Option<&Self> {
        pointer.0.iter().try_fold(self, |value, token| match value {
            Self::Object(members) => members.get(token),
            Self::List(items) => items.get(position(token)?),
            _ => None,
        })
    }
}

/// Reads the value that comes next, with `depth` lists and objects around it.
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
    scanner.skip_white();
    if scanner.eat(b']') {
        return Ok(items);
    }
    loop {
        items.push(read(scanner, depth)?);
        scanner.skip_white();
        if scanner.eat(b']') {
            return Ok(items);
        }
        scanner.expect(b',', "a comma or ]")?;
    }
}

fn read_object(
    scanner: &mut Scanner<'_>,
    depth: usize,
) -> Result<BTreeMap<String, Json>, JsonError> {
    scanner.expect(b'{', "an object")?;
    let mut members = BTreeMap::new();
    scanner.skip_white();
    if scanner.eat(b'}') {
        return Ok(members);
    }
    loop {
        scanner.skip_white();
        let name = scanner.string()?;
        if members.contains_key(&name) {
            return Err(JsonError::Duplicate { at: scanner.at() });
        }
        scanner.skip_white();
        scanner.expect(b':', "a colon")?;
        members.insert(name, read(scanner, depth)?);
        scanner.skip_white();
        if scanner.eat(b'}') {
            return Ok(members);
        }
        scanner.expect(b',', "a comma or }")?;
    }
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

/// Why a text is no pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PointerError {
    /// Not empty, and without a slash at its start.
    #[error("is no JSON pointer: neither empty nor with a / at its start")]
    Start,
    /// A tilde that escapes nothing.
    #[error("is no JSON pointer: a ~ that is neither ~0 nor ~1")]
    Escape,
}

impl Pointer {
    /// Splits a pointer: empty, or tokens each with a `/` before it, `~0` for `~`, `~1` for `/`.
    pub fn parse(text: &str) -> Result<Self, PointerError> {
        let mut parts = text.split('/');
        if parts.next() != Some("") {
            return Err(PointerError::Start);
        }
        let token = |part: &str| {
            if !part.split('~').skip(1).all(|rest| rest.starts_with(['0', '1'])) {
                return Err(PointerError::Escape);
            }
            // In this order: ~01 is ~1, not a slash.
            Ok(part.replace("~1", "/").replace("~0", "~"))
        };
        parts.map(token).collect::<Result<_, _>>().map(Self)
    }

    /// The names and positions on the way, without escapes.
    pub fn tokens(&self) -> &[String] {
        &self.0
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|name| write!(f, "/{}", token(name)))
    }
}

/// A name as a pointer has it.
pub fn token(name: &str) -> Cow<'_, str> {
    if !name.contains(['~', '/']) {
        return Cow::Borrowed(name);
    }
    Cow::Owned(name.replace('~', "~0").replace('/', "~1"))
}

/// The position that a token names in a list: digits without a zero before them.
pub fn position(token: &str) -> Option<usize> {
    let canonical = token == "0" || !token.starts_with('0');
    let digits = token.bytes().all(|byte| byte.is_ascii_digit());
    if canonical && digits { token.parse().ok() } else { None }
}

#[cfg(test)]
pub(super) mod tests;
