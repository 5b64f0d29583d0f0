//! Random modules, mostly grammatical, with hostile values: huge, deep, of any type anywhere.

use crate::rng::Rng;
use std::fmt::Write as _;

const BUILTINS: &[&str] = &[
    "abs",
    "all",
    "any",
    "bool",
    "chr",
    "dict",
    "dir",
    "divmod",
    "enumerate",
    "field",
    "format",
    "getattr",
    "hasattr",
    "hash",
    "int",
    "isinstance",
    "json_decode",
    "json_encode",
    "keccak256",
    "len",
    "list",
    "max",
    "min",
    "ord",
    "pow",
    "print",
    "range",
    "record",
    "repr",
    "reversed",
    "sorted",
    "str",
    "sum",
    "tuple",
    "type",
    "zip",
];
const METHODS: &[&str] = &[
    "capitalize",
    "center",
    "copy",
    "count",
    "elems",
    "endswith",
    "find",
    "format",
    "index",
    "isalnum",
    "isalpha",
    "isdigit",
    "islower",
    "isspace",
    "istitle",
    "isupper",
    "join",
    "ljust",
    "lower",
    "lstrip",
    "partition",
    "removeprefix",
    "removesuffix",
    "replace",
    "rfind",
    "rindex",
    "rjust",
    "rpartition",
    "rsplit",
    "rstrip",
    "split",
    "splitlines",
    "startswith",
    "strip",
    "swapcase",
    "title",
    "upper",
    "zfill",
    "reverse",
    "sort",
    "fromkeys",
    "append",
    "clear",
    "extend",
    "insert",
    "pop",
    "remove",
    "get",
    "items",
    "keys",
    "popitem",
    "setdefault",
    "update",
    "values",
    "a",
    "b",
    "nothing",
];
const HOST: &[&str] = &[
    "cancel_timer",
    "delete_state",
    "emit",
    "extend_timer",
    "get_balance",
    "get_block_height",
    "get_mru",
    "get_state",
    "get_timestamp_ms",
    "log",
    "randomness",
    "schedule_timer",
    "schedule_timer_ex",
    "send_message",
    "set_state",
    "set_timeout",
    "submit_job",
    "transfer",
    "json_encode",
    "json_decode",
    "keccak256",
];
const MOCK: &[&str] = &[
    "account",
    "advance",
    "assume",
    "bound",
    "call",
    "events",
    "fails",
    "fund",
    "jobs",
    "log",
    "messages",
    "timers",
    "transfers",
];
const NAMED: &[&str] = &[
    "key",
    "reverse",
    "default",
    "start",
    "base",
    "sep",
    "keepends",
    "a",
    "b",
    "c",
    "to",
    "amount",
    "handler",
    "payload",
    "value",
    "height",
    "fee_payer",
    "gas_limit",
    "expires_at",
    "account",
    "spec",
    "callback",
];
const BINARY: &[&str] = &[
    "+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>", "==", "!=", "<", ">", "<=", ">=", "in",
    "not in", "and", "or",
];
const TYPES: &[&str] = &[
    "int",
    "str",
    "bool",
    "list",
    "dict",
    "tuple",
    "range",
    "None",
    "typing.Any",
    "typing.Callable",
    "typing.Iterable",
    "list[int]",
    "list[typing.Any]",
    "dict[str, int]",
    "tuple[int, ...]",
    "tuple[int, str]",
    "int | None",
    "R",
    "f",
    "list[list[int]]",
];
const INTEGERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "3",
    "7",
    "16",
    "32",
    "63",
    "64",
    "65",
    "100",
    "255",
    "1000",
    "65535",
    "65536",
    "1000000",
    "2147483647",
    "2147483648",
    "-2147483648",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775807 - 1",
    "9223372036854775808",
    "(1 << 100)",
    "(1 << 4095)",
    "-(1 << 4095)",
    "((1 << 4095) - 1)",
    "0xffffffffffffffffffff",
    "4096",
    "8192",
    "0b101",
    "0o777",
];
const STRINGS: &[&str] = &[
    "''",
    "'a'",
    "'ab'",
    "'abc' * 3",
    "'a' * 1000",
    "'é'",
    "'é' * 50",
    "'漢字'",
    "'𐐀'",
    "'Σ'",
    "'ﬃ'",
    "'İ'",
    "'ǆ'",
    "' '",
    "'\\n'",
    "'\\r\\n'",
    "'\\t x \\u2003'",
    "'%s'",
    "'%d %s %r'",
    "'{}'",
    "'{0} {a}'",
    "'{} {}'",
    "'%%'",
    "'%c'",
    "'%x %o'",
    "'\\x00'",
    "'\\\"'",
    "'[1, 2]'",
    "'{\"a\": [null]}'",
    "'12'",
    "'-0x1f'",
    "'0b1'",
    "'1,2,3'",
    "'a b  c'",
    "'A1 b2'",
    "'0x' + '00' * 32",
    "'0x' + '01' * 20",
    "'f0'",
    "'handler'",
    "'k'",
    "'http'",
    "'x' * 100000",
    "'ab' * 500000",
    "'\u{301}'",
    "'{a!r}'",
    "'{:}'",
    "'%(a)s'",
    "'\\\\u0041'",
    "'\"\\\\ud800\\\\udc00\"'",
];

struct Grammar<'a> {
    rng: &'a mut Rng,
    out: String,
    names: Vec<String>,
    functions: Vec<String>,
    indent: usize,
    in_loop: bool,
    in_function: bool,
    /// Nodes that may still be made.
    left: usize,
}

/// A random module.
pub fn module(rng: &mut Rng) -> String {
    let left = if rng.chance(10) { 600 } else { 30 + rng.below(120) };
    let mut grammar = Grammar {
        rng,
        out: String::new(),
        names: Vec::new(),
        functions: Vec::new(),
        indent: 0,
        in_loop: false,
        in_function: false,
        left,
    };
    if grammar.rng.chance(30) {
        grammar.out.push_str("R = record(a = int, b = field(typing.Any, None))\n");
        grammar.names.push("R".into());
    }
    for _ in 0..1 + grammar.rng.below(4) {
        if grammar.rng.chance(60) { grammar.function() } else { grammar.statement() }
    }
    if grammar.functions.is_empty() {
        grammar.function();
    }
    grammar.out
}

impl Grammar<'_> {
    fn line(&mut self) {
        self.out.push_str(&"  ".repeat(self.indent));
    }

    fn spend(&mut self) -> bool {
        let left = self.left > 0;
        self.left = self.left.saturating_sub(1);
        left
    }

    fn new_name(&mut self) -> String {
        if !self.names.is_empty() && self.rng.chance(40) {
            return self.rng.pick(&self.names).clone();
        }
        let name = format!("v{}", self.rng.below(12));
        self.names.push(name.clone());
        name
    }

    fn parameters(&mut self, typed: bool) -> Vec<String> {
        let mut names = Vec::new();
        let (mut defaults, count) = (false, {
            let most = if self.rng.chance(3) { 300 } else { 4 };
            self.rng.below(most)
        });
        for index in 0..count {
            if !names.is_empty() {
                self.out.push_str(", ");
            }
            let name = format!("p{index}");
            self.out.push_str(&name);
            names.push(name);
            if typed && self.rng.chance(15) {
                self.annotation(": ");
            }
            if defaults || self.rng.chance(20) {
                defaults = true;
                self.out.push_str(" = ");
                self.expression(2);
            }
        }
        if self.rng.chance(15) {
            self.out.push_str(if names.is_empty() { "*r" } else { ", *r" });
            names.push("r".into());
        }
        if self.rng.chance(15) {
            self.out.push_str(if names.is_empty() { "**k" } else { ", **k" });
            names.push("k".into());
        }
        names
    }

    fn annotation(&mut self, before: &str) {
        self.out.push_str(before);
        let annotation = *self.rng.pick(TYPES);
        self.out.push_str(annotation);
    }

    fn function(&mut self) {
        let name = format!("f{}", self.functions.len());
        self.line();
        let _ = write!(self.out, "def {name}(");
        let known = self.names.len();
        let parameters = match self.rng.below(4) {
            0 | 1 => Vec::new(),
            2 => {
                self.out.push_str("ctx, payload");
                vec!["ctx".to_owned(), "payload".to_owned()]
            }
            _ => self.parameters(true),
        };
        self.names.extend(parameters);
        self.out.push(')');
        if self.rng.chance(10) {
            self.annotation(" -> ");
        }
        self.out.push_str(":\n");
        let (was_loop, was_function) = (self.in_loop, self.in_function);
        (self.in_loop, self.in_function) = (false, true);
        // Functions call themselves and each other.
        self.functions.push(name);
        self.block();
        (self.in_loop, self.in_function) = (was_loop, was_function);
        self.names.truncate(known);
    }

    fn block(&mut self) {
        self.indent += 1;
        let count = 1 + self.rng.below(5);
        for _ in 0..count {
            self.statement();
        }
        self.indent -= 1;
    }

    fn statement(&mut self) {
        let deep = !self.spend() || self.indent > 8;
        let choice = self.rng.below(100);
        match choice {
            0..25 => {
                self.line();
                let name = self.new_name();
                self.out.push_str(&name);
                if self.rng.chance(5) {
                    self.annotation(": ");
                }
                self.out.push_str(" = ");
                self.expression(4);
                self.out.push('\n');
            }
            25..30 => {
                self.line();
                let name = self.new_name();
                let operator = *self
                    .rng
                    .pick(&["+=", "-=", "*=", "//=", "%=", "&=", "|=", "^=", "<<=", ">>=", "**="]);
                let _ = write!(self.out, "{name} {operator} ");
                self.expression(3);
                self.out.push('\n');
            }
            30..35 => {
                self.line();
                let (a, b) = (self.new_name(), self.new_name());
                let _ = write!(self.out, "{a}, {b} = ");
                self.expression(3);
                self.out.push('\n');
            }
            35..40 => {
                self.line();
                let name = self.new_name();
                let _ = write!(self.out, "{name}[");
                self.expression(2);
                self.out.push_str(if self.rng.chance(70) { "] = " } else { "] += " });
                self.expression(3);
                self.out.push('\n');
            }
            40..50 if !deep && self.in_function => {
                self.line();
                self.out.push_str("if ");
                self.expression(3);
                self.out.push_str(":\n");
                self.block();
                if self.rng.chance(30) {
                    self.line();
                    self.out.push_str("else:\n");
                    self.block();
                }
            }
            50..65 if !deep && self.in_function => {
                self.line();
                let name = self.new_name();
                let _ = write!(self.out, "for {name} in ");
                if self.rng.chance(60) {
                    let count = *self.rng.pick(&[1, 2, 5, 10, 20, 100, 1000, 1_000_000]);
                    let _ = write!(self.out, "range({count})");
                } else {
                    self.expression(3);
                }
                self.out.push_str(":\n");
                let was = std::mem::replace(&mut self.in_loop, true);
                self.block();
                self.in_loop = was;
            }
            65..70 if !deep && self.functions.len() < 6 => self.function(),
            70..76 if self.in_function => {
                self.line();
                self.out.push_str("return ");
                self.expression(3);
                self.out.push('\n');
            }
            76..78 => {
                self.line();
                let word = if self.in_loop && self.rng.chance(70) { "continue" } else { "pass" };
                let _ = writeln!(self.out, "{word}");
            }
            78..80 if self.in_loop => {
                self.line();
                self.out.push_str("break\n");
            }
            // Doubling, which is how small programs become large.
            80..84 if self.in_function => {
                let name = self.new_name();
                self.line();
                let form = *self.rng.pick(&[
                    "[X, X]",
                    "(X, X)",
                    "X + X",
                    "X * 2",
                    "{1: X}",
                    "[X]",
                    "X * X",
                    "[X, X, X, X]",
                ]);
                let count = *self.rng.pick(&[3, 10, 20, 60, 70, 200]);
                let _ = writeln!(
                    self.out,
                    "for i in range({count}): {name} = {}",
                    form.replace('X', &name)
                );
            }
            84..87 if !deep && self.in_function => {
                self.line();
                self.out.push_str("while ");
                self.expression(3);
                self.out.push_str(":\n");
                let was = std::mem::replace(&mut self.in_loop, true);
                self.block();
                self.in_loop = was;
            }
            87..90 => {
                self.line();
                let head = *self.rng.pick(&["assert ", "a, *b = ", "x = y = "]);
                self.out.push_str(head);
                self.expression(3);
                self.out.push('\n');
            }
            90..91 => {
                self.line();
                let name = self.new_name();
                let _ = writeln!(self.out, "del {name}[0]");
            }
            _ => {
                self.line();
                self.expression(4);
                self.out.push('\n');
            }
        }
    }

    fn arguments(&mut self, depth: usize) {
        let many = self.rng.chance(2);
        let count = if many { 1 + self.rng.below(200) } else { self.rng.below(4) };
        for index in 0..count {
            if index > 0 {
                self.out.push_str(", ");
            }
            self.expression(if many { 0 } else { depth });
        }
        let mut begun = count > 0;
        let mut comma = |out: &mut String| {
            if begun {
                out.push_str(", ");
            }
            begun = true;
        };
        if self.rng.chance(10) {
            comma(&mut self.out);
            let name = *self.rng.pick(NAMED);
            let _ = write!(self.out, "{name} = ");
            self.expression(depth);
        }
        if self.rng.chance(6) {
            comma(&mut self.out);
            self.out.push('*');
            self.expression(depth);
        }
        if self.rng.chance(6) {
            comma(&mut self.out);
            self.out.push_str("**");
            self.expression(depth);
        }
    }

    fn expressions(&mut self, depth: usize, most: usize) {
        for index in 0..self.rng.below(most) {
            if index > 0 {
                self.out.push_str(", ");
            }
            self.expression(depth);
        }
    }

    fn expression(&mut self, depth: usize) {
        if depth == 0 || !self.spend() {
            return self.atom();
        }
        let below = depth - 1;
        match self.rng.below(100) {
            0..22 => self.atom(),
            22..37 => {
                self.out.push('(');
                self.expression(below);
                let operator = *self.rng.pick(BINARY);
                let _ = write!(self.out, " {operator} ");
                self.expression(below);
                self.out.push(')');
            }
            37..41 => {
                let operator = *self.rng.pick(&["-", "+", "~", "not "]);
                let _ = write!(self.out, "({operator}");
                self.expression(below);
                self.out.push(')');
            }
            41..53 => {
                let name = *self.rng.pick(BUILTINS);
                let _ = write!(self.out, "{name}(");
                self.arguments(below);
                self.out.push(')');
            }
            53..67 => {
                self.out.push('(');
                self.expression(below);
                let name = *self.rng.pick(METHODS);
                let _ = write!(self.out, ").{name}");
                if self.rng.chance(92) {
                    self.out.push('(');
                    self.arguments(below);
                    self.out.push(')');
                }
            }
            67..71 => {
                let (space, names) =
                    if self.rng.chance(75) { ("pvm_host", HOST) } else { ("mock", MOCK) };
                let name = *self.rng.pick(names);
                let _ = write!(self.out, "{space}.{name}(");
                self.arguments(below);
                self.out.push(')');
            }
            71..75 if !self.functions.is_empty() => {
                let name = self.rng.pick(&self.functions).clone();
                let _ = write!(self.out, "{name}(");
                self.arguments(below);
                self.out.push(')');
            }
            75..79 => {
                self.expression(below);
                self.out.push('[');
                self.expression(below);
                self.out.push(']');
            }
            79..82 => {
                self.expression(below);
                self.out.push('[');
                for part in 0..2 + self.rng.below(2) {
                    if part > 0 {
                        self.out.push(':');
                    }
                    if self.rng.chance(60) {
                        self.expression(below.min(1));
                    }
                }
                self.out.push(']');
            }
            82..85 => {
                self.out.push('[');
                self.expressions(below, 5);
                self.out.push(']');
            }
            85..87 => {
                self.out.push('(');
                self.expression(below);
                self.out.push_str(", ");
                self.expressions(below, 4);
                self.out.push(')');
            }
            87..89 => {
                self.out.push('{');
                for index in 0..self.rng.below(4) {
                    if index > 0 {
                        self.out.push_str(", ");
                    }
                    self.expression(below);
                    self.out.push_str(": ");
                    self.expression(below);
                }
                self.out.push('}');
            }
            89..93 => self.comprehension(below),
            93..96 => {
                self.out.push_str("(lambda ");
                let known = self.names.len();
                let parameters = self.parameters(false);
                self.names.extend(parameters);
                self.out.push_str(": ");
                self.expression(below);
                self.names.truncate(known);
                self.out.push(')');
                if self.rng.chance(50) {
                    self.out.push('(');
                    self.arguments(below);
                    self.out.push(')');
                }
            }
            96..98 => {
                self.out.push('(');
                self.expression(below);
                self.out.push_str(" if ");
                self.expression(below);
                self.out.push_str(" else ");
                self.expression(below);
                self.out.push(')');
            }
            98 => {
                let specification =
                    *self.rng.pick(&["", "!r", ":05", ":*^{3}", ":,", ":99999999", ":{x}"]);
                self.out.push_str("f'a{(");
                self.expression(below);
                let _ = write!(self.out, "){specification}}}b'");
            }
            _ => {
                let inner = self.rng.below(40);
                self.out.push_str(&"[".repeat(inner));
                self.atom();
                self.out.push_str(&"]".repeat(inner));
            }
        }
    }

    fn comprehension(&mut self, depth: usize) {
        let is_dict = self.rng.chance(30);
        self.out.push(if is_dict { '{' } else { '[' });
        // The element is written before the clauses that bind its names, and made after them.
        let known = self.names.len();
        let before = std::mem::take(&mut self.out);
        for index in 0..1 + self.rng.below(3) {
            let _ = write!(self.out, " for c{index} in ");
            if self.rng.chance(60) {
                let count = *self.rng.pick(&[1, 3, 10, 100, 1000, 1_000_000]);
                let _ = write!(self.out, "range({count})");
            } else {
                self.expression(depth.min(1));
            }
            self.names.push(format!("c{index}"));
            if self.rng.chance(25) {
                self.out.push_str(" if ");
                self.expression(depth.min(1));
            }
        }
        let clauses = std::mem::replace(&mut self.out, before);
        self.expression(depth);
        if is_dict {
            self.out.push_str(": ");
            self.expression(depth);
        }
        self.out.push_str(&clauses);
        self.names.truncate(known);
        self.out.push(if is_dict { '}' } else { ']' });
    }

    fn atom(&mut self) {
        let text = match self.rng.below(100) {
            0..40 if !self.names.is_empty() => self.rng.pick(&self.names).clone(),
            0..60 => (*self.rng.pick(INTEGERS)).to_owned(),
            60..80 => (*self.rng.pick(STRINGS)).to_owned(),
            80..88 => (*self.rng.pick(&["None", "True", "False", "[]", "{}", "()", "range(10)"]))
                .to_owned(),
            88..91 => (*self.rng.pick(&[
                "[0] * 1000",
                "(1,) * 60000",
                "range(60000)",
                "[''] * 30000",
                "[1, 2, 3]",
            ]))
            .to_owned(),
            91..94 => {
                let name = *self.rng.pick(&[
                    "height",
                    "sender",
                    "value",
                    "self",
                    "cycles_left",
                    "timestamp_ms",
                ]);
                if self.names.iter().any(|known| known == "ctx") {
                    format!("ctx.{name}")
                } else {
                    "1".into()
                }
            }
            94..96 => (*self.rng.pick(BUILTINS)).to_owned(),
            96..97 => (*self.rng.pick(TYPES)).replace('R', "int").replace('f', "int"),
            _ => match self.functions.last() {
                Some(_) => self.rng.pick(&self.functions).clone(),
                None => "'f'".to_owned(),
            },
        };
        // An expression needs brackets if operators around it would bind.
        if text.contains(' ') && !text.starts_with(['\'', '[', '(']) || text.contains(" * ") {
            let _ = write!(self.out, "({text})");
        } else {
            self.out.push_str(&text);
        }
    }
}
