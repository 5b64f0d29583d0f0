//! The source that evaluates what is typed: the actor's module and one more function; and the way
//! back from positions in it to what was typed.
//!
//! ```python
//! def repl__(ctx, repl___payload):
//!     get_state = pvm_host.get_state      # host functions by their own names
//!     x = 1                               # what was typed before
//!     return (x + get_state("n"))         # what is typed now
//! ```

use cowboy_engine::{
    actor::{
        Position, catalog,
        typed::{Typed, TypedError, TypedKind, TypedText, read},
    },
    chain::Language,
};
use std::{collections::BTreeSet, ops::Range};

const INDENT: &str = "    ";

/// Characters that are shown of something typed before.
const LABEL_CHARS: usize = 40;

/// What the lines typed so far are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    /// More lines belong to them.
    Unfinished,
    /// Comments alone.
    Nothing,
    Piece(TypedPiece),
}

/// Statements, and maybe an expression at their end, which has the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedPiece {
    text: String,
    /// The expression's bytes.
    value: Option<Range<usize>>,
    /// The end of the statements before it that have an effect on later ones.
    bound: Option<usize>,
    /// The lines, from 0, that begin inside a string.
    in_strings: BTreeSet<usize>,
    names: BTreeSet<String>,
}

impl TypedPiece {
    /// Reads the lines typed so far, with a line feed between each; if `ended` is set, no line
    /// follows.
    pub fn read(text: &str, ended: bool) -> Result<Reading, TypedError> {
        let TypedText { mut statements, in_strings, names } = match read(text, ended)? {
            Typed::Unfinished => return Ok(Reading::Unfinished),
            Typed::Finished(typed) => typed,
        };
        if statements.is_empty() {
            return Ok(Reading::Nothing);
        }
        let is_value = |kind| kind == TypedKind::Expression;
        let value = statements.pop_if(|last| is_value(last.kind)).map(|last| last.range);
        let binds = statements.iter().any(|statement| statement.kind == TypedKind::Other);
        let bound = statements.last().filter(|_| binds).map(|last| last.range.end);
        Ok(Reading::Piece(Self { text: text.to_owned(), value, bound, in_strings, names }))
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub const fn has_value(&self) -> bool {
        self.value.is_some()
    }

    /// What later lines need of it, without the expression.
    pub fn kept(self) -> Option<Self> {
        let end = self.bound?;
        Some(Self { text: self.text[..end].to_owned(), value: None, ..self })
    }

    fn label(&self) -> String {
        let first = self.text.lines().next().unwrap_or_default();
        match first.char_indices().nth(LABEL_CHARS) {
            Some((end, _)) => format!("{}…", &first[..end]),
            None => first.to_owned(),
        }
    }
}

/// A module with the function that evaluates a piece.
#[derive(Debug)]
pub struct Assembly {
    pub source: String,
    /// The function's name.
    pub handler: String,
    /// The number of lines of the actor's module.
    before: usize,
    /// The origin of each line after it.
    lines: Vec<LineOrigin>,
    /// The beginnings of what was typed before.
    labels: Vec<String>,
}

/// The origin of a line of the function.
#[derive(Debug, Clone, Copy)]
struct LineOrigin {
    /// The number of the piece that was typed before; `None` for the one that is typed now.
    earlier: Option<usize>,
    /// From 1.
    line: usize,
    /// Characters before those typed.
    indent: usize,
    /// The place in the line, in typed characters, at which characters were inserted, and how many.
    inserted: (usize, usize),
    /// The number of typed characters.
    length: usize,
}

impl Assembly {
    pub fn new(module: &str, language: Language, kept: &[TypedPiece], typed: &TypedPiece) -> Self {
        let pieces = || kept.iter().chain([typed]);
        let is_taken =
            |name: &str| module.contains(name) || pieces().any(|piece| piece.text.contains(name));
        let numbered = (1..).map(|number| format!("repl{number}__"));
        let mut names = ["repl__".to_owned()].into_iter().chain(numbered);
        let handler = names.find(|name| !is_taken(name)).expect("there are many numbers");
        let mut source = module.to_owned();
        if !source.is_empty() && !source.ends_with(['\n', '\r']) {
            source.push('\n');
        }
        let before = source.replace("\r\n", "\n").matches(['\n', '\r']).count();
        let labels = kept.iter().map(TypedPiece::label).collect();
        let mut assembly = Self { source, handler, before, lines: Vec::new(), labels };
        let name = assembly.handler.clone();
        match language {
            Language::Starlark => {
                assembly.push(&format!("def {name}(ctx, {name}_payload):"));
                let names: BTreeSet<_> = pieces().flat_map(|piece| &piece.names).collect();
                for function in host_functions() {
                    if names.contains(&function) && !mentions(module, &function) {
                        assembly.push(&format!("{INDENT}{function} = pvm_host.{function}"));
                    }
                }
            }
            Language::Python => assembly.push(&format!("def {name}({name}_payload):")),
        }
        for (number, piece) in kept.iter().enumerate() {
            assembly.piece(piece, Some(number), ["", ""]);
        }
        match language {
            Language::Starlark => assembly.piece(typed, None, ["return (", ")"]),
            Language::Python => {
                assembly.piece(typed, None, [&format!("{name}_value = ("), ")"]);
                if typed.has_value() {
                    // The text of any value, which a module cannot replace as it can `repr`.
                    let text = format!("f\"{{{name}_value!r}}\"");
                    let code = "\"utf-8\", \"backslashreplace\"";
                    assembly.push(&format!("{INDENT}return {text}.encode({code})"));
                }
            }
        }
        assembly
    }

    /// Adds a line that was not typed.
    fn push(&mut self, line: &str) {
        let origin = LineOrigin { earlier: None, line: 1, indent: 0, inserted: (0, 0), length: 0 };
        self.lines.push(origin);
        self.source += line;
        self.source.push('\n');
    }

    fn piece(&mut self, piece: &TypedPiece, earlier: Option<usize>, [open, close]: [&str; 2]) {
        let TypedPiece { text, value, in_strings, .. } = piece;
        let end = value.as_ref().map_or(text.len(), |value| value.end);
        let mut from = 0;
        for (number, line) in text[..end].split('\n').enumerate() {
            let indent = if in_strings.contains(&number) { "" } else { INDENT };
            self.source += indent;
            let start = value.as_ref().map(|value| value.start);
            let start =
                start.and_then(|start| start.checked_sub(from)).filter(|at| *at <= line.len());
            let (before, after) = line.split_at(start.unwrap_or(line.len()));
            self.source += before;
            let mut inserted = (before.chars().count(), 0);
            if start.is_some() {
                self.source += open;
                inserted.1 = open.len();
            }
            self.source += after;
            let (indent, length) = (indent.len(), line.chars().count());
            self.lines.push(LineOrigin { earlier, line: number + 1, indent, inserted, length });
            from += line.len() + 1;
            if from > end && value.is_some() {
                self.source += close;
            }
            self.source.push('\n');
        }
    }

    /// The place in what was typed, if a line of the source is from there.
    fn typed(&self, line: usize, column: Option<usize>) -> Option<String> {
        let index = line.checked_sub(self.before + 1)?;
        let origin = self.lines.get(index).or(self.lines.last())?;
        let LineOrigin { earlier, line, indent, inserted: (at, count), length } = *origin;
        let mut place = format!("line {line}");
        if let Some(column) = column {
            let before = column.saturating_sub(1).saturating_sub(indent);
            let before = match before > at {
                true => before.saturating_sub(count).max(at),
                false => before,
            };
            place += &format!(", column {}", before.min(length) + 1);
        }
        if let Some(label) = earlier.and_then(|earlier| self.labels.get(earlier)) {
            place += &format!(" of the earlier `{label}`");
        }
        Some(place)
    }

    /// An error's text with places in what was typed, in place of those in the source. Places in
    /// the actor's module stay, because it is at the beginning. `own` is the actor's address.
    pub fn relocated(&self, message: &str, own: &str) -> String {
        let elsewhere = |line: &str| {
            line.trim_start().starts_with("in message ") && !line.contains(&format!(" to {own},"))
        };
        if message.lines().any(elsewhere) {
            // The places are in the module of another actor.
            return message.to_owned();
        }
        let frames = message.lines().filter(|line| line.starts_with("  in ")).count();
        let lines = message.lines().filter_map(|line| self.relocated_line(line, frames == 1));
        lines.collect::<Vec<_>>().join("\n")
    }

    /// A line of an error's text; `None` for the only frame of the stack, if that is the function.
    fn relocated_line(&self, line: &str, is_only: bool) -> Option<String> {
        let unchanged = || Some(line.to_owned());
        if let Some((head, at)) = line.strip_suffix(')').and_then(|line| line.rsplit_once(" (at "))
        {
            let place = position(at).and_then(|at| self.of(at));
            return place.map(|place| format!("{head} ({place})")).or_else(unchanged);
        }
        let of_python = "(<actor>, line ";
        if let Some((head, rest)) = line.rsplit_once(of_python)
            && let Some((number, rest)) = rest.split_once(')')
        {
            let place = number.parse().ok().and_then(|number| self.typed(number, None));
            return place.map(|place| format!("{head}({place}){rest}")).or_else(unchanged);
        }
        if let Some((name, at)) = line.strip_prefix("  in ").and_then(|l| l.rsplit_once(" at ")) {
            let Some(place) = position(at).and_then(|at| self.of(at)) else { return unchanged() };
            return match name == self.handler {
                true if is_only => None,
                true => Some(format!("  in {place}")),
                false => Some(format!("  in {name} at {place}")),
            };
        }
        if let Some(frame) = line.trim_start().strip_prefix("at <actor>:")
            && let Some((number, function)) = frame.split_once(" in ")
        {
            let place = number.parse().ok().and_then(|number| self.typed(number, None));
            let Some(place) = place else { return unchanged() };
            let name = function.split_once(": ").map_or(function, |(name, _)| name);
            let is_own = name == self.handler || name == "<module>";
            return Some(match is_own {
                true => format!("  at {place}"),
                false => format!("  at {place} in {name}"),
            });
        }
        unchanged()
    }

    fn of(&self, at: Position) -> Option<String> {
        self.typed(at.line as usize, Some(at.column as usize))
    }
}

fn position(text: &str) -> Option<Position> {
    let (line, column) = text.split_once(':')?;
    Some(Position { line: line.parse().ok()?, column: column.parse().ok()? })
}

/// The functions of `pvm_host`.
pub fn host_functions() -> Vec<String> {
    let functions = catalog::functions();
    functions.iter().filter_map(|name| name.strip_prefix("pvm_host.")).map(str::to_owned).collect()
}

/// Whether a module has a word other than after a dot: it may define it.
fn mentions(module: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    module.match_indices(word).any(|(at, _)| {
        let before = module[..at].chars().next_back();
        let after = module[at + word.len()..].chars().next();
        before.is_none_or(|c| !is_part(c) && c != '.') && after.is_none_or(|c| !is_part(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "0xac";

    fn piece(text: &str) -> TypedPiece {
        match TypedPiece::read(text, true) {
            Ok(Reading::Piece(piece)) => piece,
            other => panic!("{text:?}: {other:?}"),
        }
    }

    fn added(module: &str, language: Language, kept: &[&str], typed: &str) -> String {
        let kept: Vec<_> = kept.iter().filter_map(|text| piece(text).kept()).collect();
        let assembly = Assembly::new(module, language, &kept, &piece(typed));
        assembly.source.strip_prefix(module).unwrap().trim_start_matches('\n').to_owned()
    }

    #[test]
    fn a_function_after_the_module_has_what_is_typed() {
        let check = |kept: &[&str], typed: &str, body: &str| {
            let expected = format!("def repl__(ctx, repl___payload):\n{body}");
            assert_eq!(added("N = 1\n", Language::Starlark, kept, typed), expected);
        };
        check(&[], "1 + N", "    return (1 + N)\n");
        check(&[], "f(1,\n2) # end", "    return (f(1,\n    2))\n");
        check(&["x = 1", "y = 2; x"], "x", "    x = 1\n    y = 2\n    return (x)\n");
        check(&["x", "pass", "assert N"], "N", "    return (N)\n");
        check(&[], "x = 1; x", "    x = 1; return (x)\n");
        check(&[], "if N:\n    f()\n", "    if N:\n        f()\n    \n");
        check(&[], "x = '''a\n b'''\nx", "    x = '''a\n b'''\n    return (x)\n");
        let alias = "    get_state = pvm_host.get_state\n    return (get_state('n'))\n";
        check(&[], "get_state('n')", alias);
        check(&[], "pvm_host.get_state('n')", "    return (pvm_host.get_state('n'))\n");
    }

    #[test]
    fn names_of_the_module_are_not_replaced() {
        let module = "def log(text):\n    pvm_host.log(text)\ndef repl__(ctx, payload):\n    pass";
        let added = added(module, Language::Starlark, &[], "log(emit)");
        let function = "def repl1__(ctx, repl1___payload):\n    emit = pvm_host.emit";
        let expected = format!("{function}\n    return (log(emit))\n");
        assert_eq!(added, expected);
    }

    #[test]
    fn in_python_the_value_is_a_text() {
        let check = |typed: &str, body: &str| {
            let expected = format!("def repl__(repl___payload):\n{body}");
            assert_eq!(added("N = 1\n", Language::Python, &[], typed), expected);
        };
        let text = "    return f\"{repl___value!r}\".encode(\"utf-8\", \"backslashreplace\")\n";
        check("get_state", &format!("    repl___value = (get_state)\n{text}"));
        check("import math", "    import math\n");
    }

    #[test]
    fn places_are_those_of_what_was_typed() {
        let module = "def f(ctx, payload):\n    return 1 // 0";
        let kept = [piece("total = 1 // 0"), piece("b = 2")];
        let typed = piece("x = 1; f(x,\n  y)");
        let assembly = Assembly::new(module, Language::Starlark, &kept, &typed);
        let check = |message: &str, expected: &str| {
            assert_eq!(assembly.relocated(message, OWN), expected, "{message}");
        };
        // Line 3 is the function's, 4 and 5 are earlier ones, 6 and 7 those typed.
        check(
            "E: no (at 2:12)\n  in f at 2:12\n  in repl__ at 6:20",
            "E: no (at 2:12)\n  in f at 2:12\n  in line 1, column 8",
        );
        check("E: no (at 7:7)\n  in repl__ at 7:7", "E: no (line 2, column 3)");
        check("E: no (at 6:5)", "E: no (line 1, column 1)");
        check("E: no (at 6:9)", "E: no (line 1, column 5)");
        check("E: no (at 6:12)", "E: no (line 1, column 8)");
        check("E: no (at 6:22)", "E: no (line 1, column 10)");
        check("E: no (at 7:99)", "E: no (line 2, column 5)");
        check("E: no (at 99:1)", "E: no (line 2, column 1)");
        check(
            "E: no (at 4:13)\n  in repl__ at 4:13",
            "E: no (line 1, column 9 of the earlier `total = 1 // 0`)",
        );
        check(
            "E: no (at 6:9)\n  in g at 6:9\n  in repl__ at 6:9",
            "E: no (line 1, column 5)\n  in g at line 1, column 5\n  in line 1, column 5",
        );
        let other = "E: no (at 6:9)\n  in message 1 from 0xac to 0xad, handler \"f\"";
        check(other, other);
        check(
            "E: no (at 6:9)\n  in message 1 from 0xac to 0xac, handler \"f\"",
            "E: no (line 1, column 5)\n  in message 1 from 0xac to 0xac, handler \"f\"",
        );
        check("E: (at noon)", "E: (at noon)");
    }

    #[test]
    fn places_of_python_are_lines() {
        let typed = piece("def g():\n    return 1 / 0\ng()");
        let assembly = Assembly::new("import math\n", Language::Python, &[], &typed);
        let check = |message: &str, expected: &str| {
            assert_eq!(assembly.relocated(message, OWN), expected, "{message}");
        };
        check(
            "E: no\n  at <actor>:5 in repl__: repl___value = (g())\n  at <actor>:4 in g: return",
            "E: no\n  at line 3\n  at line 2 in g",
        );
        check("E: no\n  at <actor>:1 in f: return 1", "E: no\n  at <actor>:1 in f: return 1");
        check(
            "SyntaxError: 'break' outside loop (<actor>, line 3)",
            "SyntaxError: 'break' outside loop (line 1)",
        );
    }
}
