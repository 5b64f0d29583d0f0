//! Random programs that mostly succeed: every expression is made for a type.

mod collection;
mod scalar;

use crate::rng::Rng;
use std::fmt::Write as _;

/// The type that an expression is made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    Int,
    Bool,
    Str,
    List(Box<Type>),
    Tuple(Vec<Type>),
    Dict(Box<Type>, Box<Type>),
}

struct Function {
    name: String,
    /// Arguments of a call, as a template of types in their order, with a name where one is used.
    parameters: Vec<(Option<String>, Type, bool)>,
    /// Type of the elements of `*rest`, and of the values of `**named`.
    rest: bool,
    named: bool,
    returns: Type,
}

struct Typed<'a> {
    rng: &'a mut Rng,
    out: String,
    variables: Vec<(String, Type)>,
    functions: Vec<Function>,
    next: usize,
    indent: usize,
    in_loop: bool,
    /// Number of expressions in 1,000 that have any type instead.
    wild: usize,
    left: usize,
    loops: usize,
    /// Whether strings may be other than ASCII. Then none is printed within another, because the
    /// full evaluator escapes non-ASCII characters in `repr`.
    wide: bool,
}

const WORDS: &[&str] = &[
    "",
    "a",
    "b",
    "ab",
    "abc",
    "Hello World",
    "a,b,,c",
    " x y  z ",
    "aXbXc",
    "banana",
    "12",
    "-7",
    "0x1f",
    "é",
    "naïve",
    "漢字",
    "𐐀b",
    "ÀÉ",
    "line\\none",
    "tab\\there",
    "q\\\"uote",
    "it's",
    "back\\\\slash",
    "r\\r\\nn",
    "A1",
    "UPPER",
    "Title Case",
    "%s",
    "{}",
    "aaa",
    "Straße",
    "\\x07",
    "z",
];
const INTEGERS: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "5",
    "7",
    "10",
    "-1",
    "-2",
    "-7",
    "100",
    "255",
    "1000",
    "65536",
    "2147483647",
    "2147483648",
    "-2147483648",
    "-2147483649",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "123456789012345678901234567890",
    "-98765432109876543210987654321",
    "0xffffffffffffffff",
    "0o17",
    "0b1011",
];

/// A random program whose `f` takes no arguments and returns all values that it made.
pub fn program(rng: &mut Rng) -> String {
    let left = 40 + rng.below(160);
    let wide = rng.chance(40);
    let wild = if !wide && rng.chance(40) { 20 } else { 0 };
    let mut typed = Typed {
        rng,
        out: String::new(),
        variables: Vec::new(),
        functions: Vec::new(),
        next: 0,
        indent: 0,
        in_loop: false,
        wild,
        left,
        loops: 0,
        wide,
    };
    for _ in 0..typed.rng.below(4) {
        typed.function();
    }
    typed.out.push_str("def f():\n");
    typed.indent = 1;
    for _ in 0..2 + typed.rng.below(9) {
        typed.statement();
    }
    let names: Vec<_> = typed.variables.iter().map(|(name, _)| name.clone()).collect();
    let _ = writeln!(typed.out, "  return [{}]", names.join(", "));
    typed.out
}

impl Typed<'_> {
    fn any_type(&mut self, depth: usize) -> Type {
        match self.rng.below(if depth == 0 { 6 } else { 10 }) {
            0..3 => Type::Int,
            3 => Type::Bool,
            4 | 5 => Type::Str,
            6 | 7 => Type::List(Box::new(self.any_type(depth - 1))),
            8 => {
                let count = self.rng.below(4);
                Type::Tuple((0..count).map(|_| self.any_type(depth - 1)).collect())
            }
            _ => Type::Dict(Box::new(self.key_type()), Box::new(self.any_type(depth - 1))),
        }
    }

    fn key_type(&mut self) -> Type {
        match self.rng.below(5) {
            0 | 1 => Type::Int,
            2 | 3 => Type::Str,
            _ => Type::Tuple(vec![Type::Int, Type::Str]),
        }
    }

    /// A type whose values have an order.
    fn ordered_type(&mut self) -> Type {
        match self.rng.below(6) {
            0..3 => Type::Int,
            3 | 4 => Type::Str,
            _ => Type::Tuple(vec![Type::Int, Type::Str]),
        }
    }

    fn name(&mut self, prefix: &str) -> String {
        self.next += 1;
        format!("{prefix}{}", self.next)
    }

    fn pad(&mut self) {
        self.out.push_str(&"  ".repeat(self.indent));
    }

    fn put(&mut self, line: &str) {
        self.pad();
        self.out.push_str(line);
        self.out.push('\n');
    }

    fn function(&mut self) {
        let name = self.name("g");
        let count = self.rng.below(4);
        let mut parameters = Vec::new();
        let mut texts = Vec::new();
        let outer = std::mem::take(&mut self.variables);
        let mut defaults = false;
        for _ in 0..count {
            let (parameter, of) = (self.name("p"), self.any_type(1));
            defaults = defaults || self.rng.chance(30);
            texts.push(if defaults {
                format!("{parameter} = {}", self.literal(&of))
            } else {
                parameter.clone()
            });
            parameters.push((parameter, of, defaults, false));
        }
        let rest = self.rng.chance(25);
        if rest {
            texts.push("*rest".into());
        }
        if self.rng.chance(25) {
            if !rest {
                texts.push("*".into());
            }
            let (parameter, of) = (self.name("p"), self.any_type(1));
            let default = self.rng.chance(50);
            texts.push(if default {
                format!("{parameter} = {}", self.literal(&of))
            } else {
                parameter.clone()
            });
            parameters.push((parameter, of, default, true));
        }
        let named = self.rng.chance(25);
        if named {
            texts.push("**named".into());
        }
        let header = format!("def {name}({}):", texts.join(", "));
        self.put(&header);
        for (parameter, of, ..) in &parameters {
            self.variables.push((parameter.clone(), of.clone()));
        }
        if named {
            self.variables
                .push(("named".into(), Type::Dict(Box::new(Type::Str), Box::new(Type::Int))));
        }
        let returns = self.any_type(1);
        self.indent += 1;
        let was_loop = std::mem::replace(&mut self.in_loop, false);
        for _ in 0..self.rng.below(4) {
            self.statement();
        }
        if rest && self.rng.chance(50) {
            let list = self.name("v");
            let line = format!("{list} = list(rest)");
            self.put(&line);
            self.variables.push((list, Type::List(Box::new(Type::Int))));
        }
        let value = self.expression(&returns, 3);
        let line = format!("return {value}");
        self.put(&line);
        self.indent -= 1;
        self.in_loop = was_loop;
        self.variables = outer;
        let parameters = parameters
            .into_iter()
            .map(|(name, of, default, only)| {
                let by_name = only || self.rng.chance(20);
                (by_name.then_some(name), of, default)
            })
            .collect();
        self.functions.push(Function { name, parameters, rest, named, returns });
    }

    fn call(&mut self, index: usize, depth: usize) -> String {
        let Function { name, parameters, rest, named, .. } = &self.functions[index];
        let (name, parameters, rest, named) = (name.clone(), parameters.clone(), *rest, *named);
        let mut texts = Vec::new();
        let mut by_name = Vec::new();
        let mut places = true;
        for (known, of, default) in parameters {
            if default && self.rng.chance(50) {
                places = false;
                continue;
            }
            match known {
                Some(known) => {
                    let value = self.expression(&of, depth);
                    by_name.push(format!("{known} = {value}"));
                    places = false;
                }
                None if places => texts.push(self.expression(&of, depth)),
                // Positional arguments after an omitted one would shift.
                None => return self.atom(&self.functions[index].returns.clone()),
            }
        }
        if rest && places {
            if self.rng.chance(50) {
                for _ in 0..self.rng.below(3) {
                    texts.push(self.expression(&Type::Int, depth));
                }
            } else {
                let list = self.expression(&Type::List(Box::new(Type::Int)), depth);
                by_name.push(format!("*{list}"));
            }
        }
        if named {
            if self.rng.chance(50) {
                by_name.insert(0, format!("extra = {}", self.expression(&Type::Int, depth)));
            }
            if self.rng.chance(40) {
                let value = self.expression(&Type::Int, depth);
                by_name.push(format!("**{{\"other\": {value}, \"k\": 1}}"));
            }
        }
        texts.extend(by_name);
        format!("{name}({})", texts.join(", "))
    }

    fn statement(&mut self) {
        self.left = self.left.saturating_sub(1);
        let simple = self.left == 0 || self.indent > 4;
        match self.rng.below(100) {
            0..40 => self.assignment(),
            40..50 => self.augment(),
            50..58 => self.change(),
            58..63 => {
                let (a, b, c) = (self.name("v"), self.name("v"), self.name("v"));
                let (p, q, r) = (self.any_type(1), self.any_type(1), self.any_type(1));
                let (x, y, z) =
                    (self.expression(&p, 2), self.expression(&q, 2), self.expression(&r, 2));
                let line = match self.rng.below(3) {
                    0 => format!("{a}, {b}, {c} = {x}, {y}, {z}"),
                    1 => format!("[{a}, ({b}, {c})] = [{x}, ({y}, {z})]"),
                    _ => format!("({a}, {b}), {c} = ({x}, {y}), {z}"),
                };
                self.put(&line);
                self.variables.extend([(a, p), (b, q), (c, r)]);
            }
            63..73 if !simple => {
                let condition = self.expression(&Type::Bool, 3);
                let line = format!("if {condition}:");
                self.put(&line);
                self.block(3);
                if self.rng.chance(40) {
                    let condition = self.expression(&Type::Bool, 2);
                    let line = format!("elif {condition}:");
                    self.put(&line);
                    self.block(2);
                }
                if self.rng.chance(50) {
                    self.put("else:");
                    self.block(2);
                }
            }
            73..85 if !simple && self.loops < 2 => {
                let of = self.any_type(1);
                let name = self.name("v");
                let (over, of) = match self.rng.below(4) {
                    0 => {
                        let stop = self.rng.below(8);
                        (format!("range({stop})"), Type::Int)
                    }
                    1 => {
                        let of = self.key_type();
                        let dict = Type::Dict(Box::new(of.clone()), Box::new(Type::Int));
                        (self.expression(&dict, 2), of)
                    }
                    _ => (self.expression(&Type::List(Box::new(of.clone())), 2), of),
                };
                let line = format!("for {name} in {over}:");
                self.put(&line);
                let known = self.variables.len();
                self.variables.push((name, of));
                let was = std::mem::replace(&mut self.in_loop, true);
                self.loops += 1;
                self.block(3);
                self.loops -= 1;
                self.in_loop = was;
                self.variables.truncate(known);
            }
            85..89 if self.in_loop => {
                let condition = self.expression(&Type::Bool, 2);
                let word = *self.rng.pick(&["break", "continue"]);
                let line = format!("if {condition}: {word}");
                self.put(&line);
            }
            89..94 if !simple => {
                // An inner function, which sees the names around it.
                let name = self.name("h");
                let parameter = self.name("p");
                let line = format!("def {name}({parameter}):");
                self.put(&line);
                let known = self.variables.len();
                self.variables.push((parameter, Type::Int));
                self.indent += 1;
                let was = std::mem::replace(&mut self.in_loop, false);
                if self.rng.chance(40) {
                    self.assignment();
                }
                let returns = self.any_type(1);
                let value = self.expression(&returns, 3);
                let line = format!("return {value}");
                self.put(&line);
                self.in_loop = was;
                self.indent -= 1;
                self.variables.truncate(known);
                let (argument, into) = (self.expression(&Type::Int, 2), self.name("v"));
                let line = format!("{into} = {name}({argument})");
                self.put(&line);
                self.variables.push((into, returns));
            }
            _ => self.assignment(),
        }
    }

    /// A block. Its variables may be unset afterwards, so they are forgotten; sometimes one is read
    /// nevertheless.
    fn block(&mut self, most: usize) {
        self.indent += 1;
        let known = self.variables.len();
        for _ in 0..1 + self.rng.below(most) {
            self.statement();
        }
        if self.wild == 0 || !self.rng.chance(20) {
            self.variables.truncate(known);
        }
        self.indent -= 1;
    }

    fn assignment(&mut self) {
        let of = self.any_type(2);
        let value = self.expression(&of, 4);
        let reused: Vec<_> = self
            .variables
            .iter()
            .filter(|(n, t)| *t == of && n.starts_with('v'))
            .map(|(n, _)| n.clone())
            .collect();
        if !reused.is_empty() && self.rng.chance(30) {
            let name = self.rng.pick(&reused).clone();
            let line = format!("{name} = {value}");
            return self.put(&line);
        }
        let name = self.name("v");
        let line = format!("{name} = {value}");
        self.put(&line);
        self.variables.push((name, of));
    }

    fn own(&mut self, wanted: impl Fn(&Type) -> bool) -> Option<(String, Type)> {
        let fitting: Vec<_> = self
            .variables
            .iter()
            .filter(|(n, t)| n.starts_with('v') && wanted(t))
            .cloned()
            .collect();
        if fitting.is_empty() { None } else { Some(self.rng.pick(&fitting).clone()) }
    }

    fn augment(&mut self) {
        let Some((name, of)) = self.own(|t| !matches!(t, Type::Bool)) else {
            return self.assignment();
        };
        let line = match &of {
            Type::Int => {
                let operator =
                    *self.rng.pick(&["+=", "-=", "*=", "//=", "%=", "&=", "|=", "^=", ">>="]);
                let value = match operator {
                    ">>=" => self.rng.below(40).to_string(),
                    "//=" | "%=" if self.rng.chance(90) => "3".into(),
                    _ => self.expression(&Type::Int, 2),
                };
                format!("{name} {operator} {value}")
            }
            Type::Dict(..) => format!("{name} |= {}", self.expression(&of, 2)),
            Type::Str if self.rng.chance(20) => format!("{name} *= {}", self.rng.below(3)),
            Type::List(_) if self.rng.chance(20) => format!("{name} *= {}", self.rng.below(3)),
            _ => {
                let more = self.expression(&of.clone(), 2);
                // A tuple that grows has another type.
                if matches!(of, Type::Tuple(_)) {
                    return self.assignment();
                }
                format!("{name} += {more}")
            }
        };
        self.put(&line);
    }

    /// Changes a list or dict in place.
    fn change(&mut self) {
        let Some((name, of)) = self.own(|t| matches!(t, Type::List(_) | Type::Dict(..))) else {
            return self.assignment();
        };
        let line = match of {
            Type::List(element) => {
                let value = self.expression(&element, 2);
                match self.rng.below(8) {
                    0..3 => format!("{name}.append({value})"),
                    3 => format!("{name}.insert({}, {value})", self.small()),
                    4 => format!("{name}.extend([{value}, {}])", self.literal(&element)),
                    5 => format!(
                        "if {name}: {name}[{}] = {value}",
                        self.rng.pick(&["0", "-1", "len(X) - 1"]).replace('X', &name)
                    ),
                    6 => {
                        let into = self.name("v");
                        let line = format!("{into} = {name}.pop() if {name} else {value}");
                        self.variables.push((into, *element));
                        line
                    }
                    _ => format!("if {value} in {name}: {name}.remove({value})"),
                }
            }
            Type::Dict(key, value) => {
                let (k, v) = (self.expression(&key, 2), self.expression(&value, 2));
                match self.rng.below(8) {
                    0..3 => format!("{name}[{k}] = {v}"),
                    3 => format!("{name}.setdefault({k}, {v})"),
                    4 => format!("{name}.update([({k}, {v})])"),
                    5 => format!("{name}.update({{{k}: {v}}})"),
                    6 => {
                        let into = self.name("v");
                        let line = format!("{into} = {name}.pop({k}, {v})");
                        self.variables.push((into, *value));
                        line
                    }
                    _ => format!("if {name}: {name}.popitem()"),
                }
            }
            _ => return self.assignment(),
        };
        self.put(&line);
    }

    fn small(&mut self) -> String {
        (*self.rng.pick(&["0", "1", "2", "3", "-1", "-2", "-3", "5", "7", "-9"])).to_owned()
    }
}
