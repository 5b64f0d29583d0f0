//! Expressions that are strings, lists and dicts.

use super::{Type, Typed};
use std::fmt::Write as _;

impl Typed<'_> {
    pub(super) fn text(&mut self, d: usize) -> String {
        let s = Type::Str;
        match self.rng.below(30) {
            0..3 => format!("({} + {})", self.expression(&s, d), self.expression(&s, d)),
            3 => format!("({} * {})", self.expression(&s, d), self.rng.below(4)),
            4 => format!(
                "({} + \"xyz\")[{}]",
                self.expression(&s, d),
                self.rng.pick(&["0", "1", "2", "-1", "-3"])
            ),
            5..8 => {
                let a = self.expression(&s, d);
                let slice = self.slice();
                format!("{a}[{slice}]")
            }
            8..11 => {
                let method = *self.rng.pick(&[
                    "lower",
                    "upper",
                    "title",
                    "capitalize",
                    "strip",
                    "lstrip",
                    "rstrip",
                ]);
                format!("{}.{method}()", self.expression(&s, d))
            }
            11 => {
                let method =
                    *self.rng.pick(&["strip", "lstrip", "rstrip", "removeprefix", "removesuffix"]);
                format!("{}.{method}({})", self.expression(&s, d), self.atom(&s))
            }
            12 | 13 => {
                let (a, b, c) = (self.expression(&s, d), self.atom(&s), self.atom(&s));
                if self.rng.chance(30) {
                    format!("{a}.replace({b}, {c}, {})", self.rng.below(3))
                } else {
                    format!("{a}.replace({b}, {c})")
                }
            }
            14 | 15 => {
                let of = if self.wide { Type::Int } else { self.any_type(2) };
                let f = *self.rng.pick(&["str", "repr"]);
                format!("{f}({})", self.expression(&of, d))
            }
            16 => {
                let of = self.any_type(1);
                format!("type({})", self.expression(&of, d))
            }
            17 | 18 => {
                let (p, q) = if self.wide {
                    (Type::Int, Type::Bool)
                } else {
                    (self.any_type(1), self.any_type(1))
                };
                let (a, b) = (self.expression(&p, d), self.expression(&q, d));
                match self.rng.below(6) {
                    0 => format!("\"<%s %r>\" % ({a}, {b})"),
                    1 => format!("\"{{}}-{{!r}}\".format({a}, {b})"),
                    2 => format!("\"{{1}} {{0!r}} {{{{}}}}\".format({a}, {b})"),
                    3 => format!("\"{{x}} {{y}}\".format(x = {a}, y = {b})"),
                    4 => format!("\"%s%%\" % ({a},)"),
                    _ => format!("\"{{}} {{k!s}}\".format({a}, k = {b})"),
                }
            }
            19 => {
                let conversion = *self.rng.pick(&["d", "x", "X", "o", "s", "r"]);
                format!("(\"[%{conversion}]\" % {})", self.expression(&Type::Int, d))
            }
            20..22 => format!(
                "{}.join({})",
                self.atom(&s),
                self.expression(&Type::List(Box::new(Type::Str)), d)
            ),
            22 => {
                let codes = if self.wide { [97, 8364, 66_560] } else { [97, 0, 126] };
                format!("chr({})", self.rng.pick(&codes))
            }
            23 => format!(
                "{}.{}({})[{}]",
                self.expression(&s, d),
                self.rng.pick(&["partition", "rpartition"]),
                self.rng.pick(&["\"a\"", "\",\"", "\" \"", "\"X\""]),
                self.rng.below(3)
            ),
            24 => {
                let f = *self.rng.pick(&["min", "max"]);
                format!("{f}({}, {})", self.expression(&s, d), self.expression(&s, d))
            }
            25 => format!("\"\".join(list({}.elems()))", self.expression(&s, d)),
            _ => self.atom(&s),
        }
    }

    pub(super) fn slice(&mut self) -> String {
        let mut text = String::new();
        if self.rng.chance(60) {
            text += &self.small();
        }
        text.push(':');
        if self.rng.chance(60) {
            text += &self.small();
        }
        if self.rng.chance(40) {
            text.push(':');
            if self.rng.chance(80) {
                text += *self.rng.pick(&["1", "2", "-1", "-2", "3"]);
            }
        }
        text
    }

    pub(super) fn list(&mut self, element: &Type, d: usize) -> String {
        let of = Type::List(Box::new(element.clone()));
        match self.rng.below(20) {
            0..3 => {
                let count = self.rng.below(5);
                let parts: Vec<_> = (0..count).map(|_| self.expression(element, d)).collect();
                format!("[{}]", parts.join(", "))
            }
            3 | 4 => format!("({} + {})", self.expression(&of, d), self.expression(&of, d)),
            5 => format!("({} * {})", self.expression(&of, d), self.rng.below(3)),
            6 | 7 => {
                let list = self.expression(&of, d);
                let slice = self.slice();
                format!("{list}[{slice}]")
            }
            8 => format!("{}({})", self.rng.pick(&["list", "reversed"]), self.expression(&of, d)),
            9..14 => self.comprehension(element, d),
            14 | 15 => match element {
                Type::Int => {
                    let list = self.expression(&of, d);
                    match self.rng.below(5) {
                        0 => format!("sorted({list})"),
                        1 => format!("sorted({list}, reverse = True)"),
                        2 => format!("sorted({list}, key = lambda x: x % 7)"),
                        3 => format!(
                            "sorted({list}, key = abs, reverse = {})",
                            self.expression(&Type::Bool, 1)
                        ),
                        _ => format!(
                            "list(range({}, {}, {}))",
                            self.small(),
                            self.small(),
                            self.rng.pick(&["1", "2", "-1", "-3"])
                        ),
                    }
                }
                Type::Str => {
                    let text = self.expression(&Type::Str, d);
                    match self.rng.below(7) {
                        0 => format!("{text}.split()"),
                        1 => format!(
                            "{text}.split({})",
                            self.rng.pick(&["\",\"", "\"a\"", "\" \"", "\"ab\""])
                        ),
                        2 => format!(
                            "{text}.rsplit({}, {})",
                            self.rng.pick(&["\",\"", "\"a\"", "None", "\" \""]),
                            self.rng.below(3)
                        ),
                        3 => format!(
                            "{text}.split({}, {})",
                            self.rng.pick(&["\",\"", "\"a\"", "None", "\" \""]),
                            self.rng.below(3)
                        ),
                        4 => format!("{text}.splitlines({})", self.expression(&Type::Bool, 0)),
                        5 => format!("sorted({}, key = len)", self.expression(&of, d)),
                        _ => format!("sorted({})", self.expression(&of, d)),
                    }
                }
                Type::Tuple(parts) if parts.len() == 2 => {
                    let (a, b) = (
                        Type::List(Box::new(parts[0].clone())),
                        Type::List(Box::new(parts[1].clone())),
                    );
                    if parts[0] == Type::Int && self.rng.chance(50) {
                        return format!("enumerate({}, {})", self.expression(&b, d), self.small());
                    }
                    format!("zip({}, {})", self.expression(&a, d), self.expression(&b, d))
                }
                _ => self.atom(&of),
            },
            16 | 17 if matches!(element, Type::Int | Type::Str) => {
                let value = self.any_type(0);
                let dict =
                    self.expression(&Type::Dict(Box::new(element.clone()), Box::new(value)), d);
                match self.rng.below(3) {
                    0 => format!("{dict}.keys()"),
                    1 => format!("list({dict})"),
                    _ => format!("[k for k, _ in {dict}.items()]"),
                }
            }
            16 | 17 => {
                let dict =
                    self.expression(&Type::Dict(Box::new(Type::Int), Box::new(element.clone())), d);
                format!("{dict}.values()")
            }
            _ => self.atom(&of),
        }
    }

    /// A clause, and the name it binds.
    pub(super) fn clause(&mut self, d: usize) -> String {
        // Some hide existing names.
        let hides = !self.variables.is_empty() && self.rng.chance(15);
        let name = if hides { self.rng.pick(&self.variables).0.clone() } else { self.name("c") };
        let (over, of) = if self.rng.chance(50) {
            (format!("range({})", self.rng.below(6)), Type::Int)
        } else {
            let of = self.any_type(1);
            (self.expression(&Type::List(Box::new(of.clone())), d.min(1)), of)
        };
        self.variables.retain(|(known, _)| *known != name);
        self.variables.push((name.clone(), of));
        let mut text = format!(" for {name} in {over}");
        if self.rng.chance(35) {
            let _ = write!(text, " if {}", self.expression(&Type::Bool, d.min(2)));
        }
        text
    }

    pub(super) fn comprehension(&mut self, element: &Type, d: usize) -> String {
        let around = self.variables.clone();
        let mut clauses = self.clause(d);
        if self.rng.chance(30) {
            clauses += &self.clause(d);
        }
        let made = self.expression(element, d);
        self.variables = around;
        format!("[{made}{clauses}]")
    }

    pub(super) fn dict(&mut self, key: &Type, value: &Type, d: usize) -> String {
        let of = Type::Dict(Box::new(key.clone()), Box::new(value.clone()));
        match self.rng.below(10) {
            0 | 1 => {
                let (k, v) = (self.expression(key, d), self.expression(value, d));
                format!("{{{k}: {v}}}")
            }
            2 | 3 => format!("({} | {})", self.expression(&of, d), self.expression(&of, d)),
            4 | 5 => {
                let around = self.variables.clone();
                let clauses = self.clause(d);
                let (k, v) = (self.expression(key, d), self.expression(value, d));
                self.variables = around;
                format!("{{{k}: {v}{clauses}}}")
            }
            6 => {
                let pairs = Type::List(Box::new(Type::Tuple(vec![key.clone(), value.clone()])));
                format!("dict({})", self.expression(&pairs, d))
            }
            7 if *key == Type::Str => {
                format!("dict({}, a = {})", self.expression(&of, d), self.expression(value, d))
            }
            8 => format!("dict({})", self.expression(&of, d)),
            _ => self.atom(&of),
        }
    }
}
