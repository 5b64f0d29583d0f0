//! Calls: the callee, its arguments, and how arguments become parameters.

use super::{CallFrame, Machine};
use crate::actor::{
    error::{Depth, ErrorKind, Fault, failed, shorten},
    syntax::{FunctionCode, Parameter, ParameterKind, Symbol},
    value::{Id, Value},
};

/// Slots of a frame that the call's own charge pays for. Further slots are paid for as bytes moved.
const PAID_SLOTS: usize = 64;

/// A call's arguments on the stack: the positional ones from `at` on, then the named ones.
#[derive(Clone, Debug, Default)]
pub(in crate::actor) struct Args {
    pub(in crate::actor) at: usize,
    pub(in crate::actor) positional: usize,
    /// The call site, whose names come first.
    site: Option<u32>,
    /// Names from `**named`, after those of the site.
    extra: Vec<Id>,
}

impl Args {
    pub(in crate::actor) fn positional(at: usize, positional: usize) -> Self {
        Self { at, positional, ..Self::default() }
    }

    pub(in crate::actor) fn without_first(&self) -> Self {
        Self { at: self.at + 1, positional: self.positional - 1, ..self.clone() }
    }
}

pub(super) enum Called {
    /// A function's frame was entered and has to run.
    Entered,
    /// A builtin has returned; its result is on the stack.
    Returned,
}

impl<'a> Machine<'a> {
    /// Makes the call of a site. Returns whether a frame was entered.
    pub(super) fn call_site(&mut self, index: u32, method: bool) -> Result<bool, Fault> {
        self.meter.step(self.meter.schedule.node + self.meter.schedule.call)?;
        let site = &self.program.sites[index as usize];
        let mut at = self.stack.len() - site.width();
        let mut args = Args {
            at,
            positional: site.positional as usize,
            site: (!site.names.is_empty()).then_some(index),
            extra: Vec::new(),
        };
        if site.rest || site.named_rest {
            self.spread(&mut args, site.names.len(), site.rest, site.named_rest)?;
        }
        let callee = if method {
            // [method, receiver, …]: the receiver is an argument of a method, but not of a
            // function.
            at -= 1;
            let callee = self.stack[at - 1];
            if matches!(callee, Value::Method(_)) {
                args.at = at;
                args.positional += 1;
            } else {
                self.stack.remove(at);
                args.at = at;
            }
            callee
        } else {
            self.stack[at - 1]
        };
        self.call(callee, args).map(|called| matches!(called, Called::Entered))
    }

    /// Spreads the elements of `*rest` and `**named` into the arguments.
    fn spread(
        &mut self,
        args: &mut Args,
        names: usize,
        rest: bool,
        named_rest: bool,
    ) -> Result<(), Fault> {
        let named = named_rest.then(|| self.pop());
        if rest {
            let rest = self.pop();
            let elements = self.items(rest, "the argument after *")?;
            self.pay_stack(elements.len())?;
            let at = args.at + args.positional;
            args.positional += elements.len();
            self.stack.splice(at..at, elements);
        }
        let Some(named) = named else { return Ok(()) };
        let Value::Dict(id) = named else {
            return failed(format!("the argument after ** must be a dict, not {}", named.kind()));
        };
        let len = self.heap.dict(id).len();
        self.meter.elements(len)?;
        self.pay_stack(len)?;
        let entries: Vec<_> = self.heap.dict(id).iter().collect();
        let mut given = self.site_names(args).to_vec();
        given.sort_unstable();
        debug_assert_eq!(given.len(), names, "a site's names are its own");
        for (key, value) in entries {
            let Value::Text(key) = key else {
                return failed(format!("keys after ** must be strings, not {}", key.kind()));
            };
            self.meter.bytes(self.heap.str(key).len())?;
            if !given.is_empty()
                && let Some(symbol) = self.symbol_of(key)?
                && given.binary_search(&symbol).is_ok()
            {
                return failed("an argument is given both by name and after **");
            }
            args.extra.push(key);
            self.stack.push(value);
        }
        Ok(())
    }

    /// Calls `callee`, which is below the arguments on the stack.
    pub(super) fn call(&mut self, callee: Value, args: Args) -> Result<Called, Fault> {
        let result = match callee {
            Value::Function(id) => {
                let code = self.heap.function(id).code;
                self.bind(id, code, &args)?;
                return Ok(Called::Entered);
            }
            Value::Builtin(builtin) => self.builtin(builtin, &args)?,
            Value::Method(method) => self.method(method, &args)?,
            Value::Bound(id) => {
                let bound = *self.heap.bound(id);
                self.stack.insert(args.at, bound.receiver);
                let args = Args { positional: args.positional + 1, ..args };
                let at = args.at;
                let result = self.method(bound.method, &args)?;
                self.stack.truncate(at - 1);
                self.stack.push(result);
                return Ok(Called::Returned);
            }
            Value::RecordType(id) => self.make_record(id, &args)?,
            other => {
                return failed(format!(
                    "operation not supported: {} is not callable",
                    other.kind()
                ));
            }
        };
        self.stack.truncate(args.at - 1);
        self.stack.push(result);
        Ok(Called::Returned)
    }

    pub(in crate::actor) fn argument(&self, args: &Args, index: usize) -> Option<Value> {
        (index < args.positional).then(|| self.stack[args.at + index])
    }

    pub(in crate::actor) fn arguments(&self, args: &Args) -> Vec<Value> {
        self.stack[args.at..args.at + args.positional].to_vec()
    }

    fn site_names(&self, args: &Args) -> &'a [Symbol] {
        match args.site {
            Some(site) => &self.program.sites[site as usize].names,
            None => &[],
        }
    }

    pub(in crate::actor) fn named_count(&self, args: &Args) -> usize {
        self.site_names(args).len() + args.extra.len()
    }

    /// The name of a named argument, as a value: a key given after `**` already is one.
    pub(in crate::actor) fn named_text(
        &mut self,
        args: &Args,
        index: usize,
    ) -> Result<Value, Fault> {
        let names = self.site_names(args);
        match names.get(index) {
            Some(symbol) => self.new_text(self.name(*symbol)),
            None => Ok(Value::Text(args.extra[index - names.len()])),
        }
    }

    /// The module's symbol for the name of an argument; absent if the module does not use the name.
    fn named_symbol(&mut self, args: &Args, index: usize) -> Result<Option<Symbol>, Fault> {
        let names = self.site_names(args);
        match names.get(index) {
            Some(symbol) => Ok(Some(*symbol)),
            None => self.symbol_of(args.extra[index - names.len()]),
        }
    }

    /// The module's symbol for a string, which is searched for among all its names.
    fn symbol_of(&mut self, text: Id) -> Result<Option<Symbol>, Fault> {
        // No name is longer than the source. Each halving of the names takes up to four comparisons
        // because a node of the tree has 5 to 11 keys, each of which may be compared.
        let compared = (self.heap.str(text).len() as u64).min(self.meter.limits.source);
        for _ in 0..=self.program.names.len().checked_ilog2().unwrap_or(0) {
            self.meter.bytes(4 * compared as usize)?;
        }
        Ok(self.program.symbol(self.heap.str(text)))
    }

    /// A named argument, in the order in which they are given.
    pub(in crate::actor) fn named<'s>(&'s self, args: &Args, index: usize) -> (&'s str, Value) {
        let names = self.site_names(args);
        let name = match names.get(index) {
            Some(symbol) => self.name(*symbol),
            None => self.heap.str(args.extra[index - names.len()]),
        };
        (name, self.stack[args.at + args.positional + index])
    }

    /// Opens a frame at `base`: its parameters are already there, its other slots follow.
    pub(super) fn enter(
        &mut self,
        code: u32,
        function: Option<Id>,
        base: usize,
    ) -> Result<(), Fault> {
        let limit = self.meter.limits.call_depth;
        if self.frames.len() as u64 >= limit {
            return Err(ErrorKind::StackOverflow { what: Depth::Calls, limit }.into());
        }
        let function_code = &self.program.functions[code as usize];
        let slots = base + function_code.slots as usize;
        let beyond = (function_code.slots as usize).saturating_sub(PAID_SLOTS);
        if beyond > 0 {
            self.meter.bytes(beyond * Value::COST as usize)?;
        }
        self.pay_stack((slots + function_code.stack as usize).saturating_sub(self.stack.len()))?;
        self.stack.resize(slots, Value::Unset);
        for slot in &function_code.shared {
            self.meter.alloc(Value::COST)?;
            let slot = base + *slot as usize;
            let cell = self.heap.new_cell(self.stack[slot]);
            self.stack[slot] = Value::Bound(cell);
        }
        let (pc, loops) = (function_code.entry as usize, self.loops.len());
        self.frames.push(CallFrame { code, function, pc, base, loops });
        Ok(())
    }

    /// Pays for the stack when it grows higher than ever before.
    fn pay_stack(&mut self, more: usize) -> Result<(), Fault> {
        let height = self.stack.len() + more;
        if height > self.paid {
            self.meter.alloc((height - self.paid) as u64 * Value::COST)?;
            self.paid = height;
        }
        Ok(())
    }

    /// Turns arguments into the parameters of a function and enters it.
    fn bind(&mut self, id: Id, code: u32, args: &Args) -> Result<(), Fault> {
        let function = &self.program.functions[code as usize];
        let named = self.named_count(args);
        self.meter.elements(args.positional + named)?;
        if function.simple && args.positional == function.positional as usize && named == 0 {
            // The values on the stack are the parameters.
            return self.enter_over(code, id, args.at);
        }
        self.meter.elements(function.parameters.len())?;
        self.meter.alloc(function.parameters.len() as u64 * Value::COST)?;
        let placed = args.positional.min(function.positional as usize);
        let takes_rest = function.parameters.iter().any(|p| p.kind == ParameterKind::Rest);
        if placed < args.positional && !takes_rest {
            let (name, got) = (shorten(self.name(function.name)), args.positional);
            let expected = function.positional;
            return failed(format!(
                "{name} takes at most {expected} positional arguments, got {got}"
            ));
        }
        let mut slots = vec![Value::Unset; function.parameters.len()];
        slots[..placed].copy_from_slice(&self.stack[args.at..args.at + placed]);
        let mut named_rest = None;
        for (slot, parameter) in slots.iter_mut().zip(&function.parameters) {
            match parameter.kind {
                ParameterKind::Rest => {
                    let rest = args.at + placed..args.at + args.positional;
                    *slot = self.new_tuple(self.stack[rest].to_vec())?;
                }
                ParameterKind::NamedRest => {
                    let (dict, id) = self.new_dict()?;
                    (*slot, named_rest) = (dict, Some(id));
                }
                ParameterKind::Normal | ParameterKind::Named => {}
            }
        }
        for index in 0..named {
            let (symbol, value) = (self.named_symbol(args, index)?, self.named(args, index).1);
            let known = symbol.and_then(|symbol| {
                let found = function.by_name.binary_search_by_key(&symbol, |(s, _)| *s).ok()?;
                Some(function.by_name[found].1 as usize)
            });
            match (known, named_rest) {
                (Some(slot), _) if slots[slot] != Value::Unset => {
                    let name = shorten(self.named(args, index).0);
                    return failed(format!("parameter {name} is given more than once"));
                }
                (Some(slot), _) => slots[slot] = value,
                (None, Some(dict)) => {
                    let key = self.named_text(args, index)?;
                    self.dict_put(dict, key, value)?;
                }
                (None, _) => {
                    let function_code = function;
                    let function = shorten(self.name(function.name));
                    let name = shorten(self.named(args, index).0);
                    let has = self.parameters_shown(function_code);
                    return failed(format!("{function} has no parameter {name}; it has {has}"));
                }
            }
        }
        self.complete(id, function, &mut slots)?;
        self.stack.truncate(args.at);
        self.stack.extend(slots);
        self.enter_over(code, id, args.at)
    }

    /// Names of the parameters that can be given by name, shortened for an error.
    fn parameters_shown(&self, function: &FunctionCode) -> String {
        const MOST: usize = 12;
        let single = |parameter: &&Parameter| {
            matches!(parameter.kind, ParameterKind::Normal | ParameterKind::Named)
        };
        let names = function.parameters.iter().filter(single).take(MOST);
        let names: Vec<_> = names.map(|parameter| shorten(self.name(parameter.name))).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    }

    /// Enters a function and removes its value, which was called, from the stack.
    fn enter_over(&mut self, code: u32, id: Id, at: usize) -> Result<(), Fault> {
        self.stack.remove(at - 1);
        self.enter(code, Some(id), at - 1)
    }

    /// Fills in defaults and checks types.
    fn complete(
        &mut self,
        id: Id,
        function: &'a FunctionCode,
        slots: &mut [Value],
    ) -> Result<(), Fault> {
        for (slot, parameter) in slots.iter_mut().zip(&function.parameters) {
            if *slot == Value::Unset {
                let Some(default) = parameter.default else {
                    let name = shorten(self.name(parameter.name));
                    let of = shorten(self.name(function.name));
                    return failed(format!("{of} lacks an argument for its parameter {name}"));
                };
                *slot = self.heap.function(id).defaults[default as usize];
            }
            let Some(annotation) = parameter.annotation else { continue };
            let annotation = self.heap.function(id).types[annotation as usize];
            match (parameter.kind, *slot) {
                (ParameterKind::Rest, Value::Tuple(rest)) => {
                    for index in 0..self.heap.tuple(rest).len() {
                        let value = self.heap.tuple(rest)[index];
                        self.check(value, annotation, self.name(parameter.name))?;
                    }
                }
                (ParameterKind::NamedRest, Value::Dict(rest)) => {
                    let values: Vec<_> = self.heap.dict(rest).iter().collect();
                    for (_, value) in values {
                        self.check(value, annotation, self.name(parameter.name))?;
                    }
                }
                (_, value) => self.check(value, annotation, self.name(parameter.name))?,
            }
        }
        Ok(())
    }

    pub(super) fn check_return(&mut self, frame: &CallFrame, value: Value) -> Result<(), Fault> {
        let function = &self.program.functions[frame.code as usize];
        let (true, Some(id)) = (function.returns, frame.function) else { return Ok(()) };
        let annotation = self.heap.function(id).types.last().copied().unwrap_or(Value::None);
        self.check(value, annotation, "the value returned")
    }
}
