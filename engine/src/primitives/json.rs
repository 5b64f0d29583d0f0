//! JSON's tokens (RFC 8259), read one after the other.
//!
//! The caller builds values from them: actors build values that they pay for, jobs a tree of exact
//! decimals.

/// The token that was expected where reading stopped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} is expected at byte {at}")]
pub struct Expected {
    /// A noun: `a colon`.
    pub what: &'static str,
    /// Bytes from the text's beginning.
    pub at: usize,
}

/// A text and the reading position in it.
pub struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    pub const fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Bytes read so far.
    pub const fn at(&self) -> usize {
        self.at
    }

    /// The byte that comes next; `None` at the end.
    pub fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub fn skip_white(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// Reads `byte` if it comes next. Returns whether it did.
    pub fn eat(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    /// Reads `byte`, which the error names as `what`.
    pub fn expect(&mut self, byte: u8, what: &'static str) -> Result<(), Expected> {
        if self.eat(byte) { Ok(()) } else { self.fail(what) }
    }

    /// Reads the elements of a list or an object, each with `element`, and the bracket `close`
    /// after them; `expected` names what follows an element.
    pub fn elements<E: From<Expected>>(
        &mut self,
        close: u8,
        expected: &'static str,
        mut element: impl FnMut(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        self.skip_white();
        if self.eat(close) {
            return Ok(());
        }
        loop {
            element(self)?;
            self.skip_white();
            if self.eat(close) {
                return Ok(());
            }
            self.expect(b',', expected)?;
        }
    }

    pub const fn fail<T>(&self, what: &'static str) -> Result<T, Expected> {
        Err(Expected { what, at: self.at })
    }

    /// Reads white space up to the end of the text, which must follow.
    pub fn end(&mut self) -> Result<(), Expected> {
        self.skip_white();
        if self.at < self.text.len() { self.fail("the end") } else { Ok(()) }
    }

    /// Reads `null`, `true` or `false`.
    pub fn word(&mut self, word: &str) -> Result<(), Expected> {
        if !self.text[self.at..].starts_with(word) {
            return self.fail("a value");
        }
        self.at += word.len();
        Ok(())
    }

    pub fn digits(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let len = rest.bytes().take_while(u8::is_ascii_digit).count();
        self.at += len;
        &rest[..len]
    }

    /// Reads the whole part of a number, which has no leading zeros; it may be empty.
    pub fn whole(&mut self) -> Result<&'a str, Expected> {
        let at = self.at;
        let digits = self.digits();
        if digits.len() > 1 && digits.starts_with('0') {
            return Err(Expected { what: "a number without leading zeros", at });
        }
        Ok(digits)
    }

    /// Reads a string with its quotes and yields its value.
    pub fn string(&mut self) -> Result<String, Expected> {
        self.expect(b'"', "a string")?;
        let mut read = String::new();
        loop {
            let rest = &self.text[self.at..];
            let Some(plain) = rest.find(['"', '\\']) else { return self.fail("a closing quote") };
            if rest[..plain].bytes().any(|byte| byte < 0x20) {
                return self.fail("an escape for a control character");
            }
            read.push_str(&rest[..plain]);
            self.at += plain + 1;
            if rest.as_bytes()[plain] == b'"' {
                return Ok(read);
            }
            let Some(escape) = self.peek() else { return self.fail("an escape") };
            self.at += 1;
            read.push(match escape {
                b'"' => '"',
                b'\\' => '\\',
                b'/' => '/',
                b'b' => '\u{8}',
                b'f' => '\u{c}',
                b'n' => '\n',
                b'r' => '\r',
                b't' => '\t',
                b'u' => self.unicode()?,
                _ => return self.fail("an escape"),
            });
        }
    }

    fn unicode(&mut self) -> Result<char, Expected> {
        let high = self.unit()?;
        let code = match high {
            0xd800..0xdc00 => {
                self.expect(b'\\', "the second half of a pair")?;
                self.expect(b'u', "the second half of a pair")?;
                let low = self.unit()?;
                if !(0xdc00..0xe000).contains(&low) {
                    return self.fail("the second half of a pair");
                }
                0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)
            }
            other => other,
        };
        match char::from_u32(code) {
            Some(character) => Ok(character),
            None => self.fail("the first half of a pair"),
        }
    }

    fn unit(&mut self) -> Result<u32, Expected> {
        let digits = self.text.get(self.at..self.at + 4);
        let unit = digits
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .and_then(|digits| u32::from_str_radix(digits, 16).ok());
        match unit {
            Some(unit) => {
                self.at += 4;
                Ok(unit)
            }
            None => self.fail("four hex digits"),
        }
    }
}

/// A text as a JSON string. Only what must be escaped is.
pub fn quoted(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    json.push('"');
    for c in text.chars() {
        match c {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            c if c < ' ' => json.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => json.push(c),
        }
    }
    json.push('"');
    json
}
