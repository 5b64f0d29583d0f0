//! Functions that every module can use, as the language's specification defines them.

use super::{flag, no_parameter};
use crate::actor::{
    error::{Fault, failed, shorten},
    eval::{Args, MAX_ASSERTION, Machine, cut, require_type},
    value::{Id, Method, Namespace, Range, Type, Value},
};
use num_traits::Signed;
use std::cmp::Ordering;

impl Machine<'_> {
    fn one(&self, args: &Args, function: &str) -> Result<Value, Fault> {
        let [value] = self.parameters(args, function, [""], 1)?;
        Ok(value.unwrap_or(Value::None))
    }

    pub(super) fn abs(&mut self, args: &Args) -> Result<Value, Fault> {
        let value = self.one(args, "abs")?;
        if let Value::Int(int) = value
            && let Some(positive) = int.checked_abs()
        {
            return Ok(Value::Int(positive));
        }
        let Some(integer) = self.heap.big(value) else {
            return failed(format!("abs() takes an int, not {}", value.kind()));
        };
        self.meter.bytes(integer.bits() as usize / 8)?;
        let positive = integer.abs();
        drop(integer);
        self.new_integer(positive)
    }

    /// `all` searches for a false element, `any` for a true one.
    pub(super) fn all_any(
        &mut self,
        args: &Args,
        function: &'static str,
        sought: bool,
    ) -> Result<Value, Fault> {
        let over = self.one(args, function)?;
        let items = self.items(over, function)?;
        let found = items.into_iter().any(|item| self.truth(item) == sought);
        Ok(Value::Bool(found == sought))
    }

    pub(super) fn bool(&mut self, args: &Args) -> Result<Value, Fault> {
        let [value] = self.parameters(args, "bool", [""], 0)?;
        Ok(Value::Bool(value.is_some_and(|value| self.truth(value))))
    }

    pub(super) fn chr(&mut self, args: &Args) -> Result<Value, Fault> {
        let Value::Int(code) = self.one(args, "chr")? else {
            return failed("chr() takes an int that is a code point");
        };
        match u32::try_from(code).ok().and_then(char::from_u32) {
            Some(character) => self.new_text(character.encode_utf8(&mut [0; 4])),
            None => failed("chr() takes an int that is a code point"),
        }
    }

    pub(super) fn ord(&mut self, args: &Args) -> Result<Value, Fault> {
        if let Value::Text(id) = self.one(args, "ord")? {
            let mut characters = self.heap.str(id).chars();
            if let (Some(character), None) = (characters.next(), characters.next()) {
                return Ok(Value::Int(i64::from(u32::from(character))));
            }
        }
        failed("ord() takes a string of one character")
    }

    pub(super) fn dict(&mut self, args: &Args) -> Result<Value, Fault> {
        let (dict, id) = self.new_dict()?;
        self.update(id, args, "dict")?;
        Ok(dict)
    }

    pub(super) fn dir(&mut self, args: &Args) -> Result<Value, Fault> {
        let of = self.one(args, "dir")?;
        let mut names: Vec<String> = match of {
            Value::Record(id) => {
                let fields = &self.heap.record_type(self.heap.record(id).of).fields;
                self.meter.elements(fields.len())?;
                // Each name is copied, and compared with one name per halving of their number.
                let bytes: usize = fields.iter().map(|field| 32 + field.name.len()).sum();
                for _ in 0..=fields.len().checked_ilog2().unwrap_or(0) {
                    self.meter.bytes(bytes)?;
                }
                fields.iter().map(|field| field.name.to_string()).collect()
            }
            Value::Namespace(namespace) => namespace.members().map(str::to_owned).collect(),
            _ => Method::names(of).iter().map(|name| (*name).to_owned()).collect(),
        };
        names.sort_unstable();
        self.take_sequence(names.len())?;
        let mut items = Vec::with_capacity(names.len());
        for name in names {
            items.push(self.new_text(&name)?);
        }
        Ok(self.paid_list(items))
    }

    pub(super) fn enumerate(&mut self, args: &Args) -> Result<Value, Fault> {
        let [over, start] = self.parameters(args, "enumerate", ["", "start"], 1)?;
        let items = self.items(over.unwrap_or(Value::None), "enumerate's argument")?;
        let start = match start {
            None => 0,
            // Small enough that counting on cannot overflow.
            Some(Value::Int(start)) if start.unsigned_abs() < 1 << 62 => start,
            Some(_) => return failed("enumerate() takes an int to start from, of at most 62 bits"),
        };
        self.take_sequence(items.len())?;
        self.meter.objects(items.len())?;
        let mut pairs = Vec::with_capacity(items.len());
        for (index, item) in (start..).zip(items) {
            pairs.push(self.new_tuple(vec![Value::Int(index), item])?);
        }
        Ok(self.paid_list(pairs))
    }

    pub(super) fn fail(&mut self, args: &Args) -> Result<Value, Fault> {
        let text = self.joined(args, None)?;
        failed(format!("fail: {}", cut(&text, MAX_ASSERTION)))
    }

    /// The positional arguments, as `str` writes them, joined by a string or a space.
    fn joined(&mut self, args: &Args, separator: Option<Id>) -> Result<String, Fault> {
        let mut text = String::new();
        for index in 0..args.positional {
            if index > 0 {
                match separator {
                    Some(separator) => self.write_str(&mut text, Value::Text(separator))?,
                    None => self.push(&mut text, " ")?,
                }
            }
            let value = self.argument(args, index).unwrap_or(Value::None);
            self.write_str(&mut text, value)?;
        }
        Ok(text)
    }

    pub(super) fn print(&mut self, args: &Args) -> Result<Value, Fault> {
        let mut separator = None;
        for index in 0..self.named_count(args) {
            match self.named(args, index) {
                ("sep", Value::Text(id)) => separator = Some(id),
                ("sep", other) => {
                    let got = other.kind();
                    return failed(format!("print() got {got} for its parameter sep, want string"));
                }
                (name, _) => return no_parameter("print", name, &["sep"]),
            }
        }
        let line = self.joined(args, separator)?;
        self.log_line(line)?;
        Ok(Value::None)
    }

    pub(super) fn field(&mut self, args: &Args) -> Result<Value, Fault> {
        let [of, default] = self.parameters(args, "field", ["", "default"], 1)?;
        let of = of.unwrap_or(Value::None);
        require_type(of)?;
        if let Some(default) = default {
            self.check(default, of, "the default")?;
        }
        self.new_type(Type::Field(of, default.unwrap_or(Value::Unset)))
    }

    pub(super) fn getattr(&mut self, args: &Args) -> Result<Value, Fault> {
        let [of, name, default] = self.parameters(args, "getattr", ["", "", ""], 2)?;
        let (of, name) = (of.unwrap_or(Value::None), self.name_of(name, "getattr")?);
        match (self.find_attribute(of, &name)?, default) {
            (Some(value), _) | (None, Some(value)) => Ok(value),
            (None, None) => self.attribute(of, shorten(&name)),
        }
    }

    pub(super) fn hasattr(&mut self, args: &Args) -> Result<Value, Fault> {
        let [of, name] = self.parameters(args, "hasattr", ["", ""], 2)?;
        let (of, name) = (of.unwrap_or(Value::None), self.name_of(name, "hasattr")?);
        Ok(Value::Bool(self.find_attribute(of, &name)?.is_some()))
    }

    fn name_of(&mut self, name: Option<Value>, function: &str) -> Result<String, Fault> {
        let Some(Value::Text(id)) = name else {
            return failed(format!("{function}() takes a string for the attribute's name"));
        };
        let len = self.heap.str(id).len();
        self.meter.bytes(len)?;
        Ok(self.heap.str(id).to_owned())
    }

    /// The hash that the language prescribes for strings: Java's, over UTF-16.
    pub(super) fn hash_text(&mut self, args: &Args) -> Result<Value, Fault> {
        let value = self.one(args, "hash")?;
        let Value::Text(id) = value else {
            return failed(format!("hash() takes a string, not {}", value.kind()));
        };
        let len = self.heap.str(id).len();
        self.meter.text(len)?;
        let units = self.heap.str(id).encode_utf16();
        let hash =
            units.fold(0i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)));
        Ok(Value::Int(i64::from(hash)))
    }

    pub(super) fn int(&mut self, args: &Args) -> Result<Value, Fault> {
        let [value, base] = self.parameters(args, "int", ["", "base"], 0)?;
        let base = match base {
            None => None,
            Some(Value::Int(base)) if base == 0 || (2..=36).contains(&base) => Some(base as u32),
            Some(_) => return failed("int(): not a valid base: 0, or from 2 to 36"),
        };
        match value {
            None => Ok(Value::Int(0)),
            Some(Value::Text(id)) => self.int_of_text(id, base.unwrap_or(10)),
            Some(_) if base.is_some() => {
                failed("int() can't convert non-string with explicit base")
            }
            Some(int @ (Value::Int(_) | Value::Big(_))) => Ok(int),
            Some(Value::Bool(truth)) => Ok(Value::Int(i64::from(truth))),
            Some(other) => failed(format!("int() takes no {}", other.kind())),
        }
    }

    fn int_of_text(&mut self, id: Id, base: u32) -> Result<Value, Fault> {
        let len = self.heap.str(id).len();
        self.meter.bytes(len)?;
        let text = self.heap.str(id).to_owned();
        let (negative, unsigned) = match text.as_bytes() {
            [b'-', ..] => (true, &text[1..]),
            [b'+', ..] => (false, &text[1..]),
            _ => (false, &text[..]),
        };
        let prefixed = |prefix: &str| {
            let head = unsigned.get(..2).filter(|head| head.eq_ignore_ascii_case(prefix));
            head.map(|_| &unsigned[2..])
        };
        let of_base = [(16, "0x"), (8, "0o"), (2, "0b")]
            .into_iter()
            .filter(|(radix, _)| base == 0 || base == *radix)
            .find_map(|(radix, prefix)| prefixed(prefix).map(|digits| (radix, digits)));
        let (radix, digits) = match (of_base, base) {
            (Some(found), _) => found,
            // A decimal literal has no leading zero.
            (None, 0) if unsigned.len() > 1 && unsigned.starts_with('0') => (10, ""),
            (None, 0) => (10, unsigned),
            (None, base) => (base, unsigned),
        };
        match self.parse_integer(negative, digits, radix)? {
            Some(value) => Ok(value),
            None => {
                let shown = self.shown(Value::Text(id))?;
                failed(format!("int() cannot parse {shown} in base {base}"))
            }
        }
    }

    pub(super) fn len(&mut self, args: &Args) -> Result<Value, Fault> {
        let value = self.one(args, "len")?;
        let len = match value {
            Value::Text(id) => self.text_len(id)?,
            Value::List(_) | Value::Tuple(_) | Value::Dict(_) | Value::Range(_) => {
                self.length_hint(value)
            }
            other => return failed(format!("{} has no length", other.kind())),
        };
        Ok(Value::Int(len as i64))
    }

    pub(super) fn list(&mut self, args: &Args) -> Result<Value, Fault> {
        let [over] = self.parameters(args, "list", [""], 0)?;
        let items = match over {
            Some(over) => self.items(over, "list's argument")?,
            None => Vec::new(),
        };
        self.new_list(items)
    }

    pub(super) fn tuple(&mut self, args: &Args) -> Result<Value, Fault> {
        let [over] = self.parameters(args, "tuple", [""], 0)?;
        let items = match over {
            Some(over) => self.items(over, "tuple's argument")?,
            None => Vec::new(),
        };
        self.new_tuple(items)
    }

    pub(super) fn reversed(&mut self, args: &Args) -> Result<Value, Fault> {
        let over = self.one(args, "reversed")?;
        let mut items = self.items(over, "reversed's argument")?;
        items.reverse();
        self.new_list(items)
    }

    /// Elements with their keys: the result of `key` for each, or the element itself.
    pub(super) fn keyed(
        &mut self,
        items: Vec<Value>,
        key: Option<Value>,
    ) -> Result<Vec<(Value, Value)>, Fault> {
        let Some(key) = key.filter(|key| *key != Value::None) else {
            return Ok(items.into_iter().map(|item| (item, item)).collect());
        };
        let mut keyed = Vec::with_capacity(items.len());
        for item in items {
            self.meter.step(self.meter.schedule.call)?;
            keyed.push((self.invoke(key, &[item])?, item));
        }
        Ok(keyed)
    }

    pub(super) fn sorted(&mut self, args: &Args) -> Result<Value, Fault> {
        let [over, key, reverse] = self.parameters(args, "sorted", ["", "key", "reverse"], 1)?;
        let items = self.items(over.unwrap_or(Value::None), "sorted's argument")?;
        self.take_sequence(items.len())?;
        let descending = flag(reverse, "sorted", "reverse")?;
        let keyed = self.keyed(items, key)?;
        let sorted = self.sort(keyed, descending)?;
        Ok(self.paid_list(sorted))
    }

    /// `max` or `min`. The first of several equal elements wins.
    pub(super) fn extreme(
        &mut self,
        args: &Args,
        function: &'static str,
        greatest: bool,
    ) -> Result<Value, Fault> {
        let (mut key, mut default) = (None, None);
        for index in 0..self.named_count(args) {
            match self.named(args, index) {
                ("key", value) => key = Some(value),
                ("default", value) => default = Some(value),
                (name, _) => return no_parameter(function, name, &["key", "default"]),
            }
        }
        if default.is_some() && args.positional != 1 {
            return failed(format!("{function}() takes a default only for a single collection"));
        }
        let items = match self.argument(args, 0) {
            Some(over) if args.positional == 1 => self.items(over, function)?,
            _ => self.arguments(args),
        };
        let mut best: Option<(Value, Value)> = None;
        for (rank, item) in self.keyed(items, key)? {
            let better = match best {
                None => true,
                Some((of_best, _)) => match self.order(rank, of_best)? {
                    Some(order) if greatest => order == Ordering::Greater,
                    Some(order) => order == Ordering::Less,
                    None => {
                        let (a, b) = (rank.kind(), of_best.kind());
                        return failed(format!("operation not supported: {a} < {b}"));
                    }
                },
            };
            if better {
                best = Some((rank, item));
            }
        }
        match best.map(|(_, item)| item).or(default) {
            Some(item) => Ok(item),
            None => {
                failed(format!("{function}() of an empty collection: expected at least one item"))
            }
        }
    }

    pub(super) fn range(&mut self, args: &Args) -> Result<Value, Fault> {
        let [first, second, third] = self.parameters(args, "range", ["", "", ""], 1)?;
        let int = |value: Option<Value>, otherwise: i64| match value {
            None => Ok(otherwise),
            Some(Value::Int(int)) => Ok(int),
            Some(Value::Big(_)) => failed("bounds and step of a range have at most 32 bits"),
            Some(other) => failed(format!("range() takes ints, not {}", other.kind())),
        };
        let (first, step) = (int(first, 0)?, int(third, 1)?);
        let (start, stop) = match second {
            None => (0, first),
            second => (first, int(second, 0)?),
        };
        if step == 0 {
            return failed("range() takes a step that is not 0");
        }
        self.new_range(Range { start, stop, step })
    }

    pub(super) fn repr(&mut self, args: &Args) -> Result<Value, Fault> {
        let value = self.one(args, "repr")?;
        let mut text = String::new();
        self.write_repr(&mut text, value, 1)?;
        self.take_text(text.len())?;
        Ok(self.paid_text(text))
    }

    pub(super) fn str(&mut self, args: &Args) -> Result<Value, Fault> {
        let value = self.one(args, "str")?;
        if let Value::Text(_) = value {
            return Ok(value);
        }
        self.repr(args)
    }

    pub(super) fn type_of(&mut self, args: &Args) -> Result<Value, Fault> {
        let value = self.one(args, "type")?;
        self.new_text(value.kind())
    }

    pub(super) fn zip(&mut self, args: &Args) -> Result<Value, Fault> {
        if self.named_count(args) > 0 {
            return failed("zip() has no named parameters");
        }
        let mut columns = Vec::with_capacity(args.positional);
        for over in self.arguments(args) {
            let len = self.count(over)?;
            self.meter.alloc(len as u64 * Value::COST)?;
            columns.push(self.items(over, "zip's argument")?);
        }
        let rows = columns.iter().map(Vec::len).min().unwrap_or(0);
        self.take_sequence(rows)?;
        self.meter.objects(rows)?;
        let mut zipped = Vec::with_capacity(rows);
        for row in 0..rows {
            self.meter.elements(columns.len())?;
            let items = columns.iter().map(|column| column[row]).collect();
            zipped.push(self.new_tuple(items)?);
        }
        Ok(self.paid_list(zipped))
    }
}

impl Namespace {
    pub(in crate::actor) const fn name(self) -> &'static str {
        match self {
            Self::Host => "pvm_host",
            Self::Typing => "typing",
            Self::Mock => "mock",
        }
    }
}
