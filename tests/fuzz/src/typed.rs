//! Random programs that mostly succeed: every expression is made for a type.

use crate::rng::Rng;
use std::fmt::Write as _;

/// What an expression is to be.
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
    /// How many of 1,000 expressions are of any type instead.
    wild: usize,
    left: usize,
    loops: usize,
    /// Whether strings may be other than ASCII. Then none is printed within another: the full
    /// evaluator escapes in `repr` what is not ASCII.
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

/// A random program whose `f` takes nothing and returns all that it made.
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
                // After one that is left out, those by place would shift.
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
                // A function within, which sees what is around it.
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

    /// A block, whose variables may be unset after it and so are forgotten; now and then one is
    /// read nevertheless.
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
                // A tuple grows by more parts, and so into another type.
                if matches!(of, Type::Tuple(_)) {
                    return self.assignment();
                }
                format!("{name} += {more}")
            }
        };
        self.put(&line);
    }

    /// Changes a list or dict where it is.
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

    fn literal(&mut self, of: &Type) -> String {
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

    fn atom(&mut self, of: &Type) -> String {
        let fitting: Vec<_> =
            self.variables.iter().filter(|(_, t)| t == of).map(|(n, _)| n.clone()).collect();
        if !fitting.is_empty() && self.rng.chance(65) {
            return self.rng.pick(&fitting).clone();
        }
        let literal = self.literal(of);
        if literal.starts_with('-') { format!("({literal})") } else { literal }
    }

    fn expression(&mut self, of: &Type, depth: usize) -> String {
        if self.rng.below(1000) < self.wild {
            let other = self.any_type(1);
            return self.expression(&other, depth.min(1));
        }
        if depth == 0 || self.rng.chance(20) {
            return self.atom(of);
        }
        let d = depth - 1;
        // What every type can be made by.
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

    fn sequence(&mut self, d: usize) -> String {
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

    fn integer(&mut self, d: usize) -> String {
        let text = Type::Str;
        match self.rng.below(24) {
            0..5 => {
                let (a, b) = (self.expression(&Type::Int, d), self.expression(&Type::Int, d));
                let operator = *self.rng.pick(&["+", "-", "*", "&", "|", "^"]);
                // The full evaluator multiplies constants before it runs, of any type and size.
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
            14 => format!("int({})", self.expression(&Type::Bool, d)),
            15 => {
                let (a, b) = (self.expression(&text, d), self.atom(&text));
                let method = *self.rng.pick(&["find", "rfind", "count"]);
                match self.rng.below(3) {
                    0 => format!("{a}.{method}({b}, {})", self.small()),
                    // Of nothing, the full evaluator finds nothing before its end at 0.
                    1 => format!("({a} + \"a\").{method}({b}, {}, {})", self.small(), self.small()),
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

    fn boolean(&mut self, d: usize) -> String {
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
                // What the full evaluator takes for a title where nothing has case.
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

    fn text(&mut self, d: usize) -> String {
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

    fn slice(&mut self) -> String {
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

    fn list(&mut self, element: &Type, d: usize) -> String {
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
    fn clause(&mut self, d: usize) -> String {
        // Some hide names that are there already.
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

    fn comprehension(&mut self, element: &Type, d: usize) -> String {
        let around = self.variables.clone();
        let mut clauses = self.clause(d);
        if self.rng.chance(30) {
            clauses += &self.clause(d);
        }
        let made = self.expression(element, d);
        self.variables = around;
        format!("[{made}{clauses}]")
    }

    fn dict(&mut self, key: &Type, value: &Type, d: usize) -> String {
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
