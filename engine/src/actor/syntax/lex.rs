//! Tokens of a source, as far as its limits need them, and checks for text that no module can have.
//!
//! The parser reads the source again on its own. This pass does not recurse, and the parser never
//! sees what it refuses: words and literals that the language does not have, brackets that do not
//! match, escapes without a character.

use super::absent;

/// The kind of a token, as far as the limits need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Newline,
    Comment,
    Indent,
    Dedent,
    Comma,
    Semicolon,
    /// A bracket, or the brace of a replacement field.
    Open,
    Close,
    /// The start, the text between the fields, and the end of an f-string.
    TextBegin,
    TextPart,
    TextEnd,
    Lambda,
    Int,
    /// A name, a string, or a word that nests nothing.
    Leaf,
    /// An operator, or a word that is one.
    Operator,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lexeme {
    pub(super) token: Token,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// The reason why a source is not a module, and the offset of the byte to blame.
#[derive(Debug)]
pub(super) struct Unlexable {
    pub(super) why: String,
    pub(super) at: usize,
}

type Lexed<T> = Result<T, Unlexable>;

fn refused<T>(at: usize, why: impl Into<String>) -> Lexed<T> {
    Err(Unlexable { why: why.into(), at })
}

/// An f-string that is being read.
struct OpenText {
    begin: usize,
    quote: u8,
    triple: bool,
    raw: bool,
    /// Brackets that were open outside of it.
    nesting: usize,
    specifications: usize,
}

impl OpenText {
    /// Whether the next token belongs to an expression in one of its fields.
    const fn in_field(&self, open: usize) -> bool {
        open.saturating_sub(self.nesting) > self.specifications
    }
}

pub(super) struct Lexer<'a> {
    source: &'a str,
    at: usize,
    /// Spaces before each open block, except the module.
    indents: Vec<usize>,
    dedents: usize,
    /// Open brackets and their positions.
    open: Vec<(u8, usize)>,
    texts: Vec<OpenText>,
    /// Whether the line has nothing but white space so far.
    line_begins: bool,
    ended: bool,
}

impl<'a> Lexer<'a> {
    pub(super) const fn new(source: &'a str) -> Self {
        Self {
            source,
            at: 0,
            indents: Vec::new(),
            dedents: 0,
            open: Vec::new(),
            texts: Vec::new(),
            line_begins: true,
            ended: false,
        }
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.source.as_bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    const fn at_end(&self) -> bool {
        self.at >= self.source.len()
    }

    fn lexeme(&self, token: Token, start: usize) -> Lexed<Option<Lexeme>> {
        Ok(Some(Lexeme { token, start, end: self.at }))
    }

    /// The next token; `None` after the last one.
    pub(super) fn next(&mut self) -> Lexed<Option<Lexeme>> {
        loop {
            if self.dedents > 0 {
                self.dedents -= 1;
                return self.lexeme(Token::Dedent, self.at);
            }
            if let Some(text) = self.texts.last()
                && !text.in_field(self.open.len())
            {
                return self.text();
            }
            if self.line_begins && self.open.is_empty() && !self.at_end() {
                match self.indentation()? {
                    Some(lexeme) => return Ok(Some(lexeme)),
                    None if self.dedents > 0 => continue,
                    None => {}
                }
            }
            self.white_space()?;
            let start = self.at;
            if self.at_end() {
                return self.end();
            }
            return match self.peek(0) {
                b'\n' => {
                    self.at += 1;
                    if !self.open.is_empty() {
                        continue;
                    }
                    self.line_begins = true;
                    self.lexeme(Token::Newline, start)
                }
                b'#' => {
                    let len = self.rest().find('\n').unwrap_or(self.rest().len());
                    self.at += len;
                    let lexeme = self.lexeme(Token::Comment, start);
                    // The end of a line that is only a comment does not end a statement.
                    if self.line_begins && self.open.is_empty() && !self.at_end() {
                        self.at += 1;
                    }
                    lexeme
                }
                b'0'..=b'9' => self.number(),
                b'.' if self.peek(1).is_ascii_digit() => self.number(),
                b'\'' | b'"' => self.string(start, false),
                b'_' | b'a'..=b'z' | b'A'..=b'Z' => self.word(),
                byte if byte.is_ascii() => self.operator(),
                _ => {
                    let c = self.rest().chars().next().unwrap_or_default();
                    if c.is_alphabetic() {
                        let why = format!(
                            "names are ASCII letters, digits and _: {c} is allowed in strings and \
                            comments alone"
                        );
                        return refused(start, why);
                    }
                    let code = u32::from(c);
                    refused(start, format!("U+{code:04X} is allowed only in strings and comments"))
                }
            };
        }
    }

    fn end(&mut self) -> Lexed<Option<Lexeme>> {
        if let Some((bracket, at)) = self.open.last() {
            let bracket = char::from(*bracket);
            return refused(*at, format!("this {bracket} is never closed"));
        }
        if self.ended {
            return Ok(None);
        }
        self.ended = true;
        self.dedents = self.indents.len();
        self.indents.clear();
        self.lexeme(Token::Newline, self.at)
    }

    /// Reads the indentation of a line. A blank line or a comment line has none.
    fn indentation(&mut self) -> Lexed<Option<Lexeme>> {
        let start = self.at;
        let spaces = self.rest().bytes().take_while(|byte| *byte == b' ').count();
        let white = self.rest().bytes().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        match self.peek(white) {
            b'\n' | b'#' => {
                self.at += white;
                return Ok(None);
            }
            _ if start + white == self.source.len() => {
                self.at += white;
                return Ok(None);
            }
            _ => {}
        }
        self.line_begins = false;
        if white > spaces {
            return refused(
                start + spaces,
                "a tab in the indentation: blocks are indented by spaces",
            );
        }
        self.at += spaces;
        let current = self.indents.last().copied().unwrap_or(0);
        if spaces > current {
            self.indents.push(spaces);
            return self.lexeme(Token::Indent, start);
        }
        while self.indents.last().is_some_and(|indent| *indent > spaces) {
            self.indents.pop();
            self.dedents += 1;
        }
        if self.indents.last().copied().unwrap_or(0) != spaces {
            return refused(self.at, "this line's indentation matches no block around it");
        }
        Ok(None)
    }

    fn white_space(&mut self) -> Lexed<()> {
        loop {
            match self.peek(0) {
                b' ' | b'\t' => self.at += 1,
                b'\\' if self.peek(1) == b'\n' => {
                    self.at += 2;
                    self.line_begins = false;
                    if self.at_end() {
                        return refused(self.at, "the module ends after a \\");
                    }
                }
                b'\\' => {
                    return refused(self.at, "a \\ outside of a string must end its line");
                }
                _ => return Ok(()),
            }
        }
    }

    fn word(&mut self) -> Lexed<Option<Lexeme>> {
        let start = self.at;
        let of_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        self.at += self.rest().bytes().take_while(of_name).count();
        let word = &self.source[start..self.at];
        self.line_begins = false;
        if matches!(self.peek(0), b'\'' | b'"') && word.len() <= 2 {
            let lower = word.to_ascii_lowercase();
            match lower.as_str() {
                "r" => return self.string(start, true),
                "u" => return self.string(start, false),
                "f" | "fr" | "rf" => return self.text_begins(start, lower.len() == 2),
                "b" | "br" | "rb" => return refused(start, absent::BYTES),
                "t" | "tr" | "rt" => return refused(start, absent::TEMPLATES),
                _ => {}
            }
        }
        if self.rest().chars().next().is_some_and(|c| !c.is_ascii() && c.is_alphanumeric()) {
            return refused(start, "names are ASCII letters, digits and _");
        }
        if let Some(why) = absent::word(word) {
            return refused(start, why);
        }
        let token = match word {
            "lambda" => Token::Lambda,
            "and" | "as" | "assert" | "del" | "else" | "for" | "if" | "in" | "is" | "not"
            | "or" | "while" => Token::Operator,
            _ => Token::Leaf,
        };
        self.lexeme(token, start)
    }

    fn number(&mut self) -> Lexed<Option<Lexeme>> {
        let start = self.at;
        self.line_begins = false;
        let of_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let len = self.rest().bytes().take_while(of_word).count();
        let word = &self.rest()[..len];
        self.at += len;
        let prefix = word.get(..2).unwrap_or_default().to_ascii_lowercase();
        let (digits, radix) = match prefix.as_str() {
            "0x" => (&word[2..], 16),
            "0o" => (&word[2..], 8),
            "0b" => (&word[2..], 2),
            _ => (word, 10),
        };
        let valid = |run: &str| !run.is_empty() && run.chars().all(|c| c.is_digit(radix));
        // A `_` may precede the first digit after a prefix.
        let runs = if radix == 10 { digits } else { digits.strip_prefix('_').unwrap_or(digits) };
        let well_formed = runs.split('_').all(valid);
        if radix == 10 {
            let whole = word.trim_end_matches(['j', 'J']);
            let exponent = whole.split_once(['e', 'E']);
            let is_float = self.peek(0) == b'.'
                || exponent.is_some_and(|(whole, _)| whole.split('_').all(valid));
            if whole.len() < word.len() && whole.split('_').all(valid) {
                return refused(start, absent::COMPLEX);
            }
            if is_float && (well_formed || word.is_empty() || exponent.is_some()) {
                return refused(start, absent::FLOATS);
            }
            if well_formed
                && digits.starts_with('0')
                && digits.contains(|c| ('1'..='9').contains(&c))
            {
                return refused(start, "an integer has no leading 0; octal digits follow 0o");
            }
        }
        if !well_formed {
            let word: String = word.chars().take(32).collect();
            return refused(start, format!("not a number: {word}"));
        }
        self.lexeme(Token::Int, start)
    }

    /// A string without replacement fields. The lexer is at its first quote.
    fn string(&mut self, start: usize, raw: bool) -> Lexed<Option<Lexeme>> {
        self.line_begins = false;
        let quote = self.peek(0);
        let triple = self.peek(1) == quote && self.peek(2) == quote;
        self.at += if triple { 3 } else { 1 };
        loop {
            if self.at_end() {
                return refused(start, "this string is never closed");
            }
            match self.peek(0) {
                b'\n' if !triple => return refused(start, "this string is not closed on its line"),
                b'\\' => self.escape(raw)?,
                byte if byte == quote => {
                    let closes = !triple || self.peek(1) == quote && self.peek(2) == quote;
                    self.at += if triple && closes { 3 } else { 1 };
                    if closes {
                        return self.lexeme(Token::Leaf, start);
                    }
                }
                _ => self.at += 1,
            }
        }
    }

    fn escape(&mut self, raw: bool) -> Lexed<()> {
        let start = self.at;
        self.at += 1;
        let Some(c) = self.rest().chars().next() else { return Ok(()) };
        self.at += c.len_utf8();
        let digits = match c {
            _ if raw => return Ok(()),
            'N' => return refused(start, "there are no names of characters: write \\u and hex"),
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ => return Ok(()),
        };
        let code = self.rest().get(..digits).filter(|code| {
            let hex = |c: char| c.is_ascii_hexdigit();
            code.chars().all(hex)
        });
        let Some(code) = code else {
            return refused(start, format!("\\{c} is followed by {digits} hex digits"));
        };
        if u32::from_str_radix(code, 16).ok().and_then(char::from_u32).is_none() {
            return refused(start, format!("\\{c}{code} is not a character"));
        }
        self.at += digits;
        Ok(())
    }

    fn text_begins(&mut self, start: usize, raw: bool) -> Lexed<Option<Lexeme>> {
        let quote = self.peek(0);
        let triple = self.peek(1) == quote && self.peek(2) == quote;
        self.at += if triple { 3 } else { 1 };
        let nesting = self.open.len();
        self.texts.push(OpenText { begin: start, quote, triple, raw, nesting, specifications: 0 });
        self.lexeme(Token::TextBegin, start)
    }

    /// The text of an f-string up to a field or its end; or else its end, or a field's brace.
    fn text(&mut self) -> Lexed<Option<Lexeme>> {
        let Some(text) = self.texts.last() else { unreachable!("the caller has looked") };
        let (begin, quote, triple, raw) = (text.begin, text.quote, text.triple, text.raw);
        let in_specification = self.open.len() > text.nesting;
        let start = self.at;
        loop {
            if self.at_end() {
                return refused(begin, "this string is never closed");
            }
            let (byte, next) = (self.peek(0), self.peek(1));
            match byte {
                b'\n' if !triple => return refused(begin, "this string is not closed on its line"),
                b'\\' if matches!(next, b'{' | b'}') => self.at += 1,
                b'\\' => self.escape(raw)?,
                b'{' | b'}' if next == byte && !in_specification => self.at += 2,
                b'{' | b'}' => break,
                _ if byte == quote && (!triple || next == quote && self.peek(2) == quote) => break,
                _ => self.at += 1,
            }
        }
        if self.at > start {
            return self.lexeme(Token::TextPart, start);
        }
        match self.peek(0) {
            b'{' => self.open(),
            b'}' => {
                if let Some(text) = self.texts.last_mut()
                    && in_specification
                {
                    text.specifications -= 1;
                    return self.close();
                }
                refused(start, "a single } in an f-string: write }}")
            }
            _ if in_specification => refused(begin, "a field of this f-string is never closed"),
            _ => {
                self.at += if triple { 3 } else { 1 };
                self.texts.pop();
                self.lexeme(Token::TextEnd, start)
            }
        }
    }

    fn open(&mut self) -> Lexed<Option<Lexeme>> {
        let start = self.at;
        self.open.push((self.peek(0), start));
        self.at += 1;
        self.lexeme(Token::Open, start)
    }

    fn close(&mut self) -> Lexed<Option<Lexeme>> {
        let (start, closing) = (self.at, self.peek(0));
        let outside = self.texts.last().map_or(0, |text| text.nesting);
        let fits =
            |opening| matches!((opening, closing), (b'(', b')') | (b'[', b']') | (b'{', b'}'));
        match self.open.last() {
            Some((opening, _)) if self.open.len() > outside && fits(*opening) => {}
            Some((opening, _)) if self.open.len() > outside => {
                let (opening, closing) = (char::from(*opening), char::from(closing));
                return refused(start, format!("{closing} does not close {opening}"));
            }
            _ => {
                let closing = char::from(closing);
                return refused(start, format!("{closing} closes nothing"));
            }
        }
        self.open.pop();
        self.at += 1;
        self.lexeme(Token::Close, start)
    }

    fn operator(&mut self) -> Lexed<Option<Lexeme>> {
        const LONG: [&str; 23] = [
            "**=", "//=", "<<=", ">>=", "...", "**", "//", "<<", ">>", "==", "!=", "<=", ">=",
            "->", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", ":=",
        ];
        let start = self.at;
        self.line_begins = false;
        let byte = self.peek(0);
        let in_field = self
            .texts
            .last()
            .is_some_and(|text| self.open.len() == text.nesting + text.specifications + 1);
        match byte {
            b'(' | b'[' | b'{' => return self.open(),
            b')' | b']' | b'}' => return self.close(),
            b':' if in_field => {
                if let Some(text) = self.texts.last_mut() {
                    text.specifications += 1;
                }
                self.at += 1;
                return self.lexeme(Token::Leaf, start);
            }
            b'!' if in_field && self.peek(1) != b'=' => {
                self.at += 1;
                return self.lexeme(Token::Leaf, start);
            }
            b'@' => return refused(start, absent::AT),
            _ => {}
        }
        let long = LONG.iter().find(|long| self.rest().starts_with(**long));
        let (token, len) = match (long, byte) {
            (Some(&":="), _) => return refused(start, absent::WALRUS),
            (Some(&"..."), _) => (Token::Leaf, 3),
            (Some(long), _) => (Token::Operator, long.len()),
            (None, b',') => (Token::Comma, 1),
            (None, b';') => (Token::Semicolon, 1),
            (None, b':') => (Token::Leaf, 1),
            (None, b'+' | b'-' | b'*' | b'/' | b'%' | b'&' | b'|' | b'^' | b'~') => {
                (Token::Operator, 1)
            }
            (None, b'<' | b'>' | b'=' | b'.') => (Token::Operator, 1),
            (None, byte) => {
                let shown = char::from(byte).escape_default();
                return refused(start, format!("{shown} is allowed only in strings and comments"));
            }
        };
        self.at += len;
        self.lexeme(token, start)
    }
}

#[cfg(test)]
mod tests;
