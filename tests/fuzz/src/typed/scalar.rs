//! Expressions that are integers or bools, and forms that all types share.

use super::{INTEGERS, Type, Typed, WORDS};

impl Typed<'_> {
    pub(super) fn literal(&mut self, of: &Type) -> String {
        match of {
            Type::Int => (*self.rng.pick(INTEGERS)).to_owned(),
            Type::Bool => (*self.rng.pick(&["True", "False"])).to_owned(),
            Type::Str => {
                let mut word = *self.rng.pick(WORDS);
                while !self.wide && !word.is_ascii() {
                    word = *self.rng.pick(WORDS);
                }
                format!("\"{word}\"")
            }
            Type::List(element) => {
                let count = self.rng.below(5);
                let parts: Vec<_> = (0..count).map(|_| self.literal(element)).collect();
                format!("[{}]", parts.join(", "))
            }
            Type::Tuple(parts) => {
                let parts: Vec<_> = parts.iter().map(|part| self.literal(part)).collect();
                if parts.len() == 1 {
                    format!("({},)", parts[0])
                } else {
                    format!("({})", parts.join(", "))
                }
            }
            Type::Dict(key, value) => {
                let count = self.rng.below(4);
                let mut keys: Vec<String> = Vec::new();
                let mut parts = Vec::new();
                for _ in 0..count {
                    let key = self.literal(key);
                    if !keys.contains(&key) {
                        parts.push(format!("{key}: {}", self.literal(value)));
                        keys.push(key);
                    }
                }
                format!("{{{}}}", parts.join(", "))
            }
        }
    }

    pub(super) fn atom(&mut self, of: &Type) -> String {
        let fitting: Vec<_> =
            self.variables.iter().filter(|(_, t)| t == of).map(|(n, _)| n.clone()).collect();
        if !fitting.is_empty() && self.rng.chance(65) {
            return self.rng.pick(&fitting).clone();
        }
        let literal = self.literal(of);
        if literal.starts_with('-') { format!("({literal})") } else { literal }
    }

    pub(super) fn expression(&mut self, of: &Type, depth: usize) -> String {
        if self.rng.below(1000) < self.wild {
            let other = self.any_type(1);
            return self.expression(&other, depth.min(1));
        }
        if depth == 0 || self.rng.chance(20) {
            return self.atom(of);
        }
        let d = depth - 1;
        // Forms that work for every type.
        if self.rng.chance(12) {
            return match self.rng.below(8) {
                0 | 1 => {
                    let (a, c, b) = (
                        self.expression(of, d),
                        self.expression(&Type::Bool, d),
                        self.expression(of, d),
                    );
                    format!("({a} if {c} else {b})")
                }
                2 => {
                    let (a, i) = (self.expression(of, d), self.expression(of, d));
                    let at = *self.rng.pick(&["0", "1", "-1", "-2"]);
                    format!("[{a}, {i}][{at}]")
                }
                3 => {
                    let (a, k) = (self.expression(of, d), self.atom(&Type::Int));
                    format!("{{1: {a}}}.get({k}, {a})")
                }
                4 => {
                    let name = self.name("p");
                    let argument = self.expression(&Type::Int, d);
                    self.variables.push((name.clone(), Type::Int));
                    let body = self.expression(of, d);
                    self.variables.pop();
                    format!("(lambda {name}: {body})({argument})")
                }
                5 => {
                    let (a, b) = (self.expression(of, d), self.expression(of, d));
                    let operator = *self.rng.pick(&["or", "and"]);
                    format!("({a} {operator} {b})")
                }
                _ => {
                    let fitting: Vec<_> = (0..self.functions.len())
                        .filter(|i| self.functions[*i].returns == *of)
                        .collect();
                    if fitting.is_empty() || self.loops > 0 {
                        return self.atom(of);
                    }
                    let index = *self.rng.pick(&fitting);
                    self.call(index, d)
                }
            };
        }
        match of {
            Type::Int => self.integer(d),
            Type::Bool => self.boolean(d),
            Type::Str => self.text(d),
            Type::List(element) => self.list(element, d),
            Type::Tuple(parts) => {
                let parts: Vec<_> = parts.iter().map(|part| self.expression(part, d)).collect();
                match parts.len() {
                    0 => "()".into(),
                    1 => format!("({},)", parts[0]),
                    2 if self.rng.chance(20) => format!("(({},) + ({},))", parts[0], parts[1]),
                    2 if self.rng.chance(20) => format!("tuple([{}, {}])", parts[0], parts[1]),
                    3 if self.rng.chance(20) => {
                        format!("({}, 0, {}, 0, {})[::2]", parts[0], parts[1], parts[2])
                    }
                    _ => format!("({})", parts.join(", ")),
                }
            }
            Type::Dict(key, value) => self.dict(key, value, d),
        }
    }

    pub(super) fn sequence(&mut self, d: usize) -> String {
        match self.rng.below(4) {
            0 => self.expression(&Type::Str, d),
            1 => {
                let of = self.any_type(1);
                self.expression(&Type::Dict(Box::new(Type::Str), Box::new(of)), d)
            }
            _ => {
                let of = self.any_type(1);
                self.expression(&Type::List(Box::new(of)), d)
            }
        }
    }

    pub(super) fn integer(&mut self, d: usize) -> String {
        let text = Type::Str;
        match self.rng.below(24) {
            0..5 => {
                let (a, b) = (self.expression(&Type::Int, d), self.expression(&Type::Int, d));
                let operator = *self.rng.pick(&["+", "-", "*", "&", "|", "^"]);
                // The full evaluator multiplies constants of any type and size before it runs.
                if operator == "*" && self.wild > 0 {
                    return format!("mul({a}, {b})");
                }
                format!("({a} {operator} {b})")
            }
            5 | 6 => {
                let a = self.expression(&Type::Int, d);
                let b = if self.rng.chance(85) {
                    (*self.rng.pick(&[
                        "2",
                        "-3",
                        "7",
                        "1000",
                        "(-9223372036854775808)",
                        "4294967296",
                        "-1",
                        "98765432109876543210",
                    ]))
                    .to_owned()
                } else {
                    self.expression(&Type::Int, d)
                };
                let operator = *self.rng.pick(&["//", "%"]);
                format!("({a} {operator} {b})")
            }
            7 => format!("shl({}, {})", self.expression(&Type::Int, d), self.rng.below(70)),
            8 => format!("({} >> {})", self.expression(&Type::Int, d), self.rng.below(80)),
            9 => {
                let operator = *self.rng.pick(&["-", "~", "+"]);
                format!("({operator}{})", self.expression(&Type::Int, d))
            }
            10 | 11 => format!("len({})", self.sequence(d)),
            12 => format!("abs({})", self.expression(&Type::Int, d)),
            13 => (*self.rng.pick(&[
                "ord(\"a\")",
                "ord(\"é\")",
                "ord(\"𐐀\")",
                "int(\"12\")",
                "int(\"-0x1F\", 16)",
                "int(\"zz\", 36)",
                "int(\"0b101\", 0)",
                "int(\"123456789012345678901\")",
                "int(\"0o17\", 0)",
                "int(\"+5\")",
                "int(\"\")",
                "int(\" 1\")",
            ]))
            .to_owned(),
            14 => format!("int(bool({}))", self.expression(&Type::Bool, d)),
            15 => {
                let (a, b) = (self.expression(&text, d), self.atom(&text));
                let method = *self.rng.pick(&["find", "rfind", "count"]);
                match self.rng.below(3) {
                    0 => format!("{a}.{method}({b}, {})", self.small()),
                    // The evaluators differ for an empty string between two indexes.
                    1 => format!(
                        "({a} + \"a\").{method}({b} + \"a\", {}, {})",
                        self.small(),
                        self.small()
                    ),
                    _ => format!("{a}.{method}({b})"),
                }
            }
            16 | 17 => {
                let (f, a, b) = (
                    *self.rng.pick(&["min", "max"]),
                    self.expression(&Type::Int, d),
                    self.expression(&Type::Int, d),
                );
                match self.rng.below(3) {
                    0 => format!("{f}({a}, {b})"),
                    1 => format!("{f}([{a}, {b}], key = lambda x: -x)"),
                    _ => format!(
                        "{f}([{a}] + {})",
                        self.expression(&Type::List(Box::new(Type::Int)), d)
                    ),
                }
            }
            18 => {
                let list = self.expression(&Type::List(Box::new(Type::Int)), d);
                format!(
                    "({list} + [1, 2, 3])[{}]",
                    self.rng.pick(&["0", "1", "2", "-1", "-2", "-3"])
                )
            }
            19 => format!(
                "(range({}, {}, {})[{}])",
                self.small(),
                self.small(),
                self.rng.pick(&["1", "2", "-1", "3"]),
                self.rng.pick(&["0", "-1"])
            ),
            20 => format!("[{}, 5, 7].index(7)", self.expression(&Type::Int, d)),
            21 => format!("{}.index(\"\")", self.expression(&text, d)),
            _ => self.atom(&Type::Int),
        }
    }

    pub(super) fn boolean(&mut self, d: usize) -> String {
        match self.rng.below(16) {
            0..4 => {
                let of = self.ordered_type();
                let (a, b) = (self.expression(&of, d), self.expression(&of, d));
                let operator = *self.rng.pick(&["<", "<=", ">", ">=", "==", "!="]);
                format!("({a} {operator} {b})")
            }
            4..6 => {
                let of = self.any_type(2);
                let (a, b) = (self.expression(&of, d), self.expression(&of, d));
                let operator = *self.rng.pick(&["==", "!="]);
                format!("({a} {operator} {b})")
            }
            6 => {
                let (a, b) = (self.any_type(1), self.any_type(1));
                let (a, b) = (self.expression(&a, d), self.expression(&b, d));
                format!("({a} == {b})")
            }
            7 => format!("(not {})", self.expression(&Type::Bool, d)),
            8 => {
                let (a, b) = (self.atom(&Type::Str), self.expression(&Type::Str, d));
                format!("({a} {} {b})", self.rng.pick(&["in", "not in"]))
            }
            9 => {
                let of = self.key_type();
                let (a, b) = (
                    self.expression(&of, d),
                    self.expression(&Type::Dict(Box::new(of), Box::new(Type::Int)), d),
                );
                format!("({a} in {b})")
            }
            10 => {
                let of = self.any_type(1);
                let (a, b) =
                    (self.expression(&of, d), self.expression(&Type::List(Box::new(of)), d));
                format!("({a} in {b})")
            }
            11 => {
                let f = *self.rng.pick(&["all", "any"]);
                let of = self.any_type(1);
                format!("{f}({})", self.expression(&Type::List(Box::new(of)), d))
            }
            12 => {
                let methods =
                    ["isalnum", "isalpha", "isdigit", "islower", "isspace", "isupper", "istitle"];
                // The full evaluator's `istitle` differs for text without case.
                let most = methods.len() - usize::from(self.wide);
                let method = *self.rng.pick(&methods[..most]);
                format!("{}.{method}()", self.expression(&Type::Str, d))
            }
            13 => {
                let (a, b, c) =
                    (self.expression(&Type::Str, d), self.atom(&Type::Str), self.atom(&Type::Str));
                let method = *self.rng.pick(&["startswith", "endswith"]);
                if self.rng.chance(40) {
                    format!("{a}.{method}(({b}, {c}))")
                } else {
                    format!("{a}.{method}({b})")
                }
            }
            14 => {
                let of = self.any_type(1);
                format!("bool({})", self.expression(&of, d))
            }
            _ => format!(
                "({} in range({}, {}, 2))",
                self.atom(&Type::Int),
                self.small(),
                self.small()
            ),
        }
    }
}
