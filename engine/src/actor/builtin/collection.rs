//! Methods of lists and dicts.

use super::flag;
use crate::actor::{
    error::{Fault, failed},
    eval::{Args, Machine},
    value::{Id, Method, Value},
};

/// The offset of an index in a sequence of `len`, clamped to the nearest end, as in slices.
fn clamp(index: Option<Value>, len: usize, otherwise: usize) -> Result<usize, Fault> {
    match index {
        None | Some(Value::None) => Ok(otherwise),
        Some(Value::Int(index)) => {
            let at = if index < 0 { index.saturating_add(len as i64) } else { index };
            Ok(at.clamp(0, len as i64) as usize)
        }
        Some(other) => failed(format!("an index must be an int, not {}", other.kind())),
    }
}

impl Machine<'_> {
    pub(super) fn list_method(
        &mut self,
        method: Method,
        list: Id,
        args: &Args,
    ) -> Result<Value, Fault> {
        let name = method.name();
        match method {
            Method::ListAppend => {
                let [value] = self.parameters(args, name, [""], 1)?;
                self.list_append(list, value.unwrap_or(Value::None))?;
            }
            Method::ListClear => {
                let [] = self.parameters(args, name, [], 0)?;
                self.list_mut(list)?.clear();
            }
            Method::ListCopy => {
                let [] = self.parameters(args, name, [], 0)?;
                let items = self.items(Value::List(list), name)?;
                return self.new_list(items);
            }
            Method::ListCount => {
                let [value] = self.parameters(args, name, [""], 1)?;
                return self.count_in(Value::List(list), value.unwrap_or(Value::None));
            }
            Method::ListReverse => {
                let [] = self.parameters(args, name, [], 0)?;
                let len = self.list_mut(list)?.len();
                self.meter.elements(len)?;
                self.list_mut(list)?.reverse();
            }
            Method::ListSort => self.sort_list(list, args)?,
            Method::ListExtend => {
                let [with] = self.parameters(args, name, [""], 1)?;
                self.list_extend(list, with.unwrap_or(Value::None))?;
            }
            Method::ListIndex => {
                let [value, start, end] = self.parameters(args, name, ["", "", ""], 1)?;
                let value = value.unwrap_or(Value::None);
                return self.index_in(Value::List(list), value, start, end);
            }
            Method::ListInsert => {
                let [at, value] = self.parameters(args, name, ["", ""], 2)?;
                let len = self.list_mut(list)?.len();
                let at = clamp(at, len, len)?;
                self.meter.entries_fit(len + 1)?;
                self.meter.elements(len - at)?;
                self.meter.alloc(Value::COST)?;
                self.list_mut(list)?.insert(at, value.unwrap_or(Value::None));
            }
            Method::ListPop => {
                let [at] = self.parameters(args, name, [""], 0)?;
                let len = self.list_mut(list)?.len();
                let at = match at {
                    Some(at) => self.within(at, len)?,
                    None if len > 0 => len - 1,
                    None => return failed("pop from an empty list"),
                };
                self.meter.elements(len - at)?;
                return Ok(self.list_mut(list)?.remove(at));
            }
            Method::ListRemove => {
                let [value] = self.parameters(args, name, [""], 1)?;
                self.list_mut(list)?;
                let value = value.unwrap_or(Value::None);
                let found = self.index_in(Value::List(list), value, None, None)?;
                if let Value::Int(at) = found {
                    let len = self.list_mut(list)?.len();
                    self.meter.elements(len - at as usize)?;
                    self.list_mut(list)?.remove(at as usize);
                }
            }
            _ => unreachable!("{name} is not a method of lists"),
        }
        Ok(Value::None)
    }

    /// Sorts a list in place. Nothing else can change it during the sort.
    fn sort_list(&mut self, list: Id, args: &Args) -> Result<(), Fault> {
        let [key, reverse] = self.parameters(args, "sort", ["key", "reverse"], 0)?;
        if args.positional > 0 {
            return failed("sort() takes key and reverse by name");
        }
        let descending = flag(reverse, "sort", "reverse")?;
        self.list_mut(list)?;
        let items = self.items(Value::List(list), "sort")?;
        self.meter.alloc(items.len() as u64 * Value::COST)?;
        self.hold(list, true);
        let sorted = match self.keyed(items, key) {
            Ok(keyed) => self.sort(keyed, descending),
            Err(fault) => Err(fault),
        };
        self.hold(list, false);
        *self.list_mut(list)? = sorted?;
        Ok(())
    }

    /// Makes a list immutable, as a loop does, or ends that.
    fn hold(&mut self, list: Id, held: bool) {
        if let Some(list) = self.heap.list_mut(list) {
            list.loops = if held { list.loops + 1 } else { list.loops.saturating_sub(1) };
        }
    }

    pub(super) fn tuple_method(
        &mut self,
        method: Method,
        tuple: Value,
        args: &Args,
    ) -> Result<Value, Fault> {
        let name = method.name();
        if method == Method::TupleCount {
            let [value] = self.parameters(args, name, [""], 1)?;
            return self.count_in(tuple, value.unwrap_or(Value::None));
        }
        let [value, start, end] = self.parameters(args, name, ["", "", ""], 1)?;
        self.index_in(tuple, value.unwrap_or(Value::None), start, end)
    }

    fn count_in(&mut self, of: Value, value: Value) -> Result<Value, Fault> {
        let (mut index, mut count) = (0, 0);
        while let Some(item) = self.sequence(of).get(index).copied() {
            count += i64::from(self.equal(item, value)?);
            index += 1;
        }
        Ok(Value::Int(count))
    }

    fn index_in(
        &mut self,
        of: Value,
        value: Value,
        start: Option<Value>,
        end: Option<Value>,
    ) -> Result<Value, Fault> {
        let len = self.sequence(of).len();
        let (start, end) = (clamp(start, len, 0)?, clamp(end, len, len)?);
        for at in start..end {
            let item = self.sequence(of)[at];
            if self.equal(item, value)? {
                return Ok(Value::Int(at as i64));
            }
        }
        let (value, of) = (self.shown(value)?, of.kind());
        failed(format!("not found in the {of}: {value}"))
    }

    /// A dict of keys that all have one value.
    pub(super) fn dict_from_keys(&mut self, args: &Args) -> Result<Value, Fault> {
        let [keys, value] = self.parameters(args, "fromkeys", ["", ""], 1)?;
        let keys = self.items(keys.unwrap_or(Value::None), "fromkeys' argument")?;
        let (dict, id) = self.new_dict()?;
        for key in keys {
            self.dict_put(id, key, value.unwrap_or(Value::None))?;
        }
        Ok(dict)
    }

    pub(super) fn dict_method(
        &mut self,
        method: Method,
        dict: Id,
        args: &Args,
    ) -> Result<Value, Fault> {
        let name = method.name();
        match method {
            Method::DictClear => {
                let [] = self.parameters(args, name, [], 0)?;
                self.dict_clear(dict)?;
                Ok(Value::None)
            }
            Method::DictCopy => {
                let [] = self.parameters(args, name, [], 0)?;
                let (copy, into) = self.new_dict()?;
                self.dict_update(into, dict)?;
                Ok(copy)
            }
            Method::DictGet => {
                let [key, default] = self.parameters(args, name, ["", ""], 1)?;
                let found = self.dict_get(dict, key.unwrap_or(Value::None))?;
                Ok(found.or(default).unwrap_or(Value::None))
            }
            Method::DictItems => {
                let [] = self.parameters(args, name, [], 0)?;
                let len = self.heap.dict(dict).len();
                self.take_sequence(len)?;
                self.meter.elements(2 * len)?;
                self.meter.objects(len)?;
                let entries: Vec<_> = self.heap.dict(dict).iter().collect();
                let mut items = Vec::with_capacity(len);
                for (key, value) in entries {
                    items.push(self.new_tuple(vec![key, value])?);
                }
                Ok(self.paid_list(items))
            }
            Method::DictKeys => {
                let [] = self.parameters(args, name, [], 0)?;
                let keys = self.items(Value::Dict(dict), name)?;
                self.new_list(keys)
            }
            Method::DictValues => {
                let [] = self.parameters(args, name, [], 0)?;
                let len = self.heap.dict(dict).len();
                self.take_sequence(len)?;
                self.meter.elements(len)?;
                let values = self.heap.dict(dict).iter().map(|(_, value)| value).collect();
                Ok(self.paid_list(values))
            }
            Method::DictPop => {
                let [key, default] = self.parameters(args, name, ["", ""], 1)?;
                let key = key.unwrap_or(Value::None);
                let removed = self.dict_remove(dict, key)?;
                match removed.or(default) {
                    Some(value) => Ok(value),
                    None => self.no_key(key),
                }
            }
            Method::DictPopItem => {
                let [] = self.parameters(args, name, [], 0)?;
                match self.dict_pop_first(dict)? {
                    Some((key, value)) => self.new_tuple(vec![key, value]),
                    None => failed("popitem: this dict is empty"),
                }
            }
            Method::DictSetDefault => {
                let [key, default] = self.parameters(args, name, ["", ""], 1)?;
                let (key, default) = (key.unwrap_or(Value::None), default.unwrap_or(Value::None));
                if let Some(value) = self.dict_get(dict, key)? {
                    return Ok(value);
                }
                self.dict_put(dict, key, default)?;
                Ok(default)
            }
            Method::DictUpdate => {
                self.update(dict, args, "update")?;
                Ok(Value::None)
            }
            _ => unreachable!("{name} is not a method of dicts"),
        }
    }

    /// Adds the entries of a dict, or pairs, and then the named arguments to a dict.
    pub(super) fn update(
        &mut self,
        into: Id,
        args: &Args,
        function: &'static str,
    ) -> Result<(), Fault> {
        let got = args.positional;
        if got > 1 {
            return failed(format!("{function}() takes at most 1 positional argument, got {got}"));
        }
        match self.argument(args, 0) {
            None => {}
            Some(Value::Dict(from)) => self.dict_update(into, from)?,
            Some(pairs) => {
                for pair in self.items(pairs, "building a dict")? {
                    let (len, pair_kind) = (self.count(pair)?, pair.kind());
                    if len != 2 {
                        return failed(format!(
                            "{function}() takes pairs, not a {pair_kind} of {len}"
                        ));
                    }
                    let parts = self.items(pair, "a pair")?;
                    self.dict_put(into, parts[0], parts[1])?;
                }
            }
        }
        for index in 0..self.named_count(args) {
            let (key, value) = (self.named_text(args, index)?, self.named(args, index).1);
            self.dict_put(into, key, value)?;
        }
        Ok(())
    }
}
