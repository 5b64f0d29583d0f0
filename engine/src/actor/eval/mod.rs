//! The evaluator: a loop over a program's operations, a stack of values, a meter.
//!
//! Nothing here recurses on the author's input. Calls are frames on a list; only a builtin that
//! calls back (`sorted` with a key) enters the loop again, and that counts towards the depth of
//! calls. Code that walks nested data stops at the limit on its depth.

mod annotate;
mod call;
mod compare;
mod dict;
mod index;
mod iterate;
mod make;
mod number;
mod operate;
mod write;

pub(super) use annotate::require_type;
pub(super) use call::Args;
pub(super) use iterate::Loop;
pub(super) use write::{MAX_ASSERTION, cut};

use super::{
    error::{Fault, Frame as Place, failed, shorten},
    gas::Meter,
    host::Host,
    profile::Tracker,
    syntax::{BinOp, Op, Program, Symbol},
    value::{Heap, Id, Value},
};

#[derive(Clone, Copy, Debug)]
struct CallFrame {
    code: u32,
    /// The function; absent: the module's top level.
    function: Option<Id>,
    /// The position to resume from, while another frame is on top.
    pc: usize,
    /// The stack index of its first slot.
    base: usize,
    /// The number of loops that were running when it was entered.
    loops: usize,
}

#[derive(Debug)]
pub(super) enum Globals<'a> {
    /// While the module loads.
    Open(Vec<Value>),
    Frozen(&'a [Value]),
}

/// A module that is loading or being called.
pub(super) struct Machine<'a> {
    pub(super) program: &'a Program,
    pub(super) heap: Heap<'a>,
    pub(super) meter: Meter,
    pub(super) globals: Globals<'a>,
    pub(super) host: Host<'a>,
    pub(super) stack: Vec<Value>,
    frames: Vec<CallFrame>,
    loops: Vec<Loop>,
    /// The number of stack places that are paid for.
    paid: usize,
    /// Present if what it does is recorded.
    pub(super) tracker: Option<Box<Tracker>>,
}

impl<'a> Machine<'a> {
    pub(super) fn new(
        program: &'a Program,
        heap: Heap<'a>,
        meter: Meter,
        globals: Globals<'a>,
        host: Host<'a>,
    ) -> Self {
        let (stack, frames, loops) = (Vec::with_capacity(32), Vec::with_capacity(4), Vec::new());
        Self { program, heap, meter, globals, host, stack, frames, loops, paid: 0, tracker: None }
    }

    pub(super) fn name(&self, symbol: Symbol) -> &'a str {
        self.program.name(symbol)
    }

    pub(super) fn load(&mut self) -> Result<(), Fault> {
        self.enter(0, None, 0)?;
        self.run(0).map(drop)
    }

    pub(super) fn invoke(&mut self, callee: Value, arguments: &[Value]) -> Result<Value, Fault> {
        self.stack.push(callee);
        self.stack.extend_from_slice(arguments);
        let floor = self.frames.len();
        let args = Args::positional(self.stack.len() - arguments.len(), arguments.len());
        match self.call(callee, args)? {
            call::Called::Entered => self.run(floor),
            call::Called::Returned => Ok(self.pop()),
        }
    }

    #[inline]
    fn pop(&mut self) -> Value {
        self.stack.pop().expect("the compiler counts what is on the stack")
    }

    #[inline]
    fn top(&mut self) -> &mut Value {
        self.stack.last_mut().expect("the compiler counts what is on the stack")
    }

    fn pop_many(&mut self, count: usize) -> Vec<Value> {
        self.stack.split_off(self.stack.len() - count)
    }

    /// Runs until only `floor` frames are left. Returns the result of the last one that ended.
    fn run(&mut self, floor: usize) -> Result<Value, Fault> {
        let mut pc = self.frames.last().map_or(0, |frame| frame.pc);
        let result = match self.tracker {
            Some(_) => self.cycle::<true>(floor, &mut pc),
            None => self.cycle::<false>(floor, &mut pc),
        };
        result.map_err(|fault| self.locate(fault, pc))
    }

    /// Adds the position of an error, unless it is known.
    #[cold]
    fn locate(&self, mut fault: Fault, pc: usize) -> Fault {
        if fault.at.is_some() {
            return fault;
        }
        let innermost = self.frames.len().saturating_sub(1);
        // The frames of a call that a test made.
        let within = std::mem::take(&mut fault.stack);
        fault.stack = (0..)
            .zip(&self.frames)
            .map(|(index, frame)| {
                let pc = if index == innermost { pc } else { frame.pc };
                let code = &self.program.functions[frame.code as usize];
                let at = self.program.position(pc.saturating_sub(1));
                Place { function: shorten(self.name(code.name)).to_owned(), at }
            })
            .chain(within)
            .collect();
        fault.at = fault.stack.last().map(|place| place.at);
        fault
    }

    /// Records what is next.
    fn track(&mut self, code: u32, pc: usize) {
        let (depth, spent) = (self.frames.len(), self.meter.spent());
        if let Some(tracker) = &mut self.tracker {
            tracker.at(self.program, depth, (code, pc), spent);
        }
    }

    /// The loop. `pc` is the position of the innermost frame, also on failure. Without a tracker,
    /// it does not look for one at each operation.
    fn cycle<const TRACKED: bool>(&mut self, floor: usize, pc: &mut usize) -> Result<Value, Fault> {
        let program = self.program;
        let node = self.meter.schedule.node;
        let mut frame = *self.frames.last().expect("something was called");
        loop {
            let op = program.ops[*pc];
            if TRACKED {
                self.track(frame.code, *pc);
            }
            *pc += 1;
            match op {
                Op::Constant(index) => {
                    self.meter.step(node)?;
                    self.stack.push(program.constants[index as usize]);
                }
                Op::Local(slot) => {
                    self.meter.step(node)?;
                    let value = self.stack[frame.base + slot as usize];
                    if value == Value::Unset {
                        return unset();
                    }
                    self.stack.push(value);
                }
                Op::Shared(slot) => {
                    self.meter.step(node)?;
                    let value = self.shared(&frame, slot);
                    self.push_set(value)?;
                }
                Op::Captured(index) => {
                    self.meter.step(node)?;
                    let function = frame.function.expect("only functions capture");
                    let cell = self.heap.function(function).captures[index as usize];
                    let value = self.heap.cell(cell);
                    self.push_set(value)?;
                }
                Op::Global(index) => {
                    self.meter.step(node)?;
                    let value = match &self.globals {
                        Globals::Open(globals) => globals[index as usize],
                        Globals::Frozen(globals) => globals[index as usize],
                    };
                    self.push_set(value)?;
                }
                Op::StoreLocal(slot) => {
                    self.meter.step(node)?;
                    let value = self.pop();
                    self.stack[frame.base + slot as usize] = value;
                }
                Op::StoreShared(slot) => {
                    self.meter.step(node)?;
                    let value = self.pop();
                    let Value::Bound(cell) = self.stack[frame.base + slot as usize] else {
                        unreachable!("a shared slot holds its cell");
                    };
                    self.heap.set_cell(cell, value);
                }
                Op::StoreGlobal(index) => {
                    self.meter.step(node)?;
                    let value = self.pop();
                    self.store_global(index, value)?;
                }
                Op::ClearLocal(slot) => {
                    self.meter.elements(1)?;
                    self.stack[frame.base + slot as usize] = Value::Unset;
                }
                Op::ClearShared(slot) => {
                    self.meter.elements(1)?;
                    self.meter.alloc(Value::COST)?;
                    let cell = self.heap.new_cell(Value::Unset);
                    self.stack[frame.base + slot as usize] = Value::Bound(cell);
                }
                Op::Not => {
                    self.meter.step(node)?;
                    let value = self.pop();
                    let truth = self.truth(value);
                    self.stack.push(Value::Bool(!truth));
                }
                Op::Minus | Op::Plus | Op::Invert => {
                    self.meter.step(node)?;
                    let value = self.pop();
                    let value = self.unary(op, value)?;
                    self.stack.push(value);
                }
                Op::Binary(op) => {
                    self.meter.step(node)?;
                    let right = self.pop();
                    let left = *self.top();
                    *self.top() = match of_small(op, left, right) {
                        Some(value) => value,
                        None => self.binary(op, left, right)?,
                    };
                }
                Op::Augment(op) => {
                    self.meter.step(node)?;
                    let right = self.pop();
                    let left = *self.top();
                    *self.top() = match of_small(op, left, right) {
                        Some(value) => value,
                        None => self.augment(op, left, right)?,
                    };
                }
                Op::Node => self.meter.step(node)?,
                Op::Jump(to) => *pc = to as usize,
                Op::JumpIfFalse(to) => {
                    self.meter.step(node)?;
                    let value = self.pop();
                    if !self.truth(value) {
                        *pc = to as usize;
                    }
                }
                Op::JumpIfTrue(to) => {
                    self.meter.step(node)?;
                    let value = self.pop();
                    if self.truth(value) {
                        *pc = to as usize;
                    }
                }
                Op::JumpIfFalseOrPop(to) => {
                    self.meter.step(node)?;
                    let value = *self.top();
                    if self.truth(value) {
                        self.pop();
                    } else {
                        *pc = to as usize;
                    }
                }
                Op::JumpIfTrueOrPop(to) => {
                    self.meter.step(node)?;
                    let value = *self.top();
                    if self.truth(value) {
                        *pc = to as usize;
                    } else {
                        self.pop();
                    }
                }
                Op::Pop => {
                    self.meter.step(node)?;
                    self.pop();
                }
                Op::Round => self.meter.step(self.meter.schedule.step)?,
                Op::Copy => {
                    let value = *self.top();
                    self.stack.push(value);
                }
                Op::CopyUnder => {
                    let (y, x) = (self.pop(), self.pop());
                    self.stack.extend([y, x, y]);
                }
                Op::DropUnder => {
                    let y = self.pop();
                    *self.top() = y;
                }
                Op::CopyTwo => {
                    let at = self.stack.len() - 2;
                    self.stack.extend_from_within(at..);
                }
                Op::List(count) => {
                    self.meter.step(node)?;
                    let items = self.pop_many(count as usize);
                    let list = self.new_list(items)?;
                    self.stack.push(list);
                }
                Op::Tuple(count) => {
                    self.meter.step(node)?;
                    let items = self.pop_many(count as usize);
                    let tuple = self.new_tuple(items)?;
                    self.stack.push(tuple);
                }
                Op::Dict => {
                    self.meter.step(node)?;
                    let (dict, _) = self.new_dict()?;
                    self.stack.push(dict);
                }
                Op::Entry | Op::Put => {
                    let (value, key) = (self.pop(), self.pop());
                    let Value::Dict(dict) = *self.top() else { unreachable!("it was made here") };
                    let known = self.dict_put(dict, key, value)?;
                    if known && matches!(op, Op::Entry) {
                        return failed("this dict has the same key twice");
                    }
                }
                Op::Append => {
                    let value = self.pop();
                    let Value::List(list) = *self.top() else { unreachable!("it was made here") };
                    self.list_append(list, value)?;
                }
                Op::Extend => {
                    let from = self.pop();
                    let Value::List(list) = *self.top() else { unreachable!("it was made here") };
                    self.list_extend(list, from)?;
                }
                Op::Merge => {
                    let from = self.pop();
                    let Value::Dict(dict) = *self.top() else { unreachable!("it was made here") };
                    let Value::Dict(from) = from else {
                        return failed(format!(
                            "the value after ** must be a dict, not {}",
                            from.kind()
                        ));
                    };
                    self.dict_update(dict, from)?;
                }
                Op::Seal => {
                    let list = self.pop();
                    let items = self.items(list, "a tuple's elements")?;
                    let tuple = self.new_tuple(items)?;
                    self.stack.push(tuple);
                }
                Op::DeleteIndex => {
                    self.meter.step(node)?;
                    let (index, of) = (self.pop(), self.pop());
                    self.delete_index(of, index)?;
                }
                Op::Index => {
                    self.meter.step(node)?;
                    let index = self.pop();
                    let of = *self.top();
                    *self.top() = self.index(of, index)?;
                }
                Op::StoreIndex => {
                    self.meter.step(node)?;
                    let (index, of, value) = (self.pop(), self.pop(), self.pop());
                    self.store_index(of, index, value)?;
                }
                Op::StoreAugmented => {
                    let (value, index, of) = (self.pop(), self.pop(), self.pop());
                    self.store_index(of, index, value)?;
                }
                Op::Slice(mask) => {
                    self.meter.step(node)?;
                    let mut parts = [None; 3];
                    for bit in (0..3).rev().filter(|bit| mask & (1 << bit) != 0) {
                        parts[bit] = Some(self.pop());
                    }
                    let of = *self.top();
                    *self.top() = self.slice(of, parts)?;
                }
                Op::Attribute(name) => {
                    self.meter.step(node)?;
                    let of = *self.top();
                    *self.top() = self.attribute(of, program.name(name))?;
                }
                Op::Method(name) => {
                    self.meter.step(node)?;
                    let of = self.pop();
                    let (method, receiver) = self.method_of(of, program.name(name))?;
                    self.stack.extend([method, receiver]);
                }
                Op::Call(site) => {
                    self.frames.last_mut().expect("it is this one").pc = *pc;
                    if self.call_site(site, false)? {
                        frame = *self.frames.last().expect("it was entered");
                        *pc = frame.pc;
                    }
                }
                Op::CallMethod(site) => {
                    self.frames.last_mut().expect("it is this one").pc = *pc;
                    if self.call_site(site, true)? {
                        frame = *self.frames.last().expect("it was entered");
                        *pc = frame.pc;
                    }
                }
                Op::Return | Op::End => {
                    let value = if matches!(op, Op::Return) {
                        self.meter.step(node)?;
                        self.pop()
                    } else {
                        Value::None
                    };
                    self.check_return(&frame, value)?;
                    self.stack.truncate(frame.base);
                    self.end_loops(frame.loops);
                    self.frames.pop();
                    if self.frames.len() <= floor {
                        if let (true, Some(tracker)) = (TRACKED, &mut self.tracker) {
                            tracker.leave(floor, self.meter.spent());
                        }
                        return Ok(value);
                    }
                    self.stack.push(value);
                    frame = *self.frames.last().expect("more than the floor are left");
                    *pc = frame.pc;
                }
                Op::Loop => {
                    self.meter.step(node)?;
                    let over = self.pop();
                    let begun = self.begin_loop(over)?;
                    self.loops.push(begun);
                }
                Op::Next(done) => match self.next()? {
                    Some(element) => {
                        self.meter.step(self.meter.schedule.step)?;
                        self.stack.push(element);
                    }
                    None => {
                        self.end_loops(self.loops.len() - 1);
                        *pc = done as usize;
                    }
                },
                Op::EndLoop => self.end_loops(self.loops.len() - 1),
                Op::Unpack(count) => {
                    self.meter.step(node)?;
                    let value = self.pop();
                    self.unpack(value, count as usize)?;
                }
                Op::UnpackRest(first, last) => {
                    self.meter.step(node)?;
                    let value = self.pop();
                    self.unpack_rest(value, first as usize, last as usize)?;
                }
                Op::Field(conversion, specified) => {
                    self.meter.step(node)?;
                    let specification = if specified { Some(self.pop()) } else { None };
                    let value = self.pop();
                    let text = self.field_text(value, conversion, specification)?;
                    self.stack.push(text);
                }
                Op::Concat(count) => {
                    self.meter.step(node)?;
                    let parts = self.pop_many(count as usize);
                    let text = self.concat(&parts)?;
                    self.stack.push(text);
                }
                Op::Fail(given) => {
                    self.meter.step(node)?;
                    let message = if given { Some(self.pop()) } else { None };
                    return self.assertion_failed(message);
                }
                Op::Function(code) => {
                    self.meter.step(node)?;
                    self.make_function(code, &frame)?;
                }
                Op::Check => {
                    self.meter.step(node)?;
                    let annotation = self.pop();
                    let value = *self.top();
                    self.check(value, annotation, "the value assigned")?;
                }
            }
        }
    }

    #[inline]
    fn push_set(&mut self, value: Value) -> Result<(), Fault> {
        if value == Value::Unset {
            return unset();
        }
        self.stack.push(value);
        Ok(())
    }

    fn shared(&self, frame: &CallFrame, slot: u32) -> Value {
        match self.stack[frame.base + slot as usize] {
            Value::Bound(cell) => self.heap.cell(cell),
            _ => unreachable!("a shared slot holds its cell"),
        }
    }

    /// One of the objects that every arena begins with, as this machine sees it: frozen once the
    /// module is.
    pub(super) fn as_seen(&self, known: Value) -> Value {
        match self.globals {
            Globals::Open(_) => known,
            Globals::Frozen(_) => known.freeze(),
        }
    }

    fn store_global(&mut self, index: u32, value: Value) -> Result<(), Fault> {
        if let Value::RecordType(id) = value {
            let name = self.program.name(self.program.global_names[index as usize]);
            if let Some(record_type) = self.heap.record_type_mut(id) {
                record_type.name.get_or_insert_with(|| name.into());
            }
        }
        match &mut self.globals {
            Globals::Open(globals) => globals[index as usize] = value,
            Globals::Frozen(_) => unreachable!("only the top level assigns names of the module"),
        }
        Ok(())
    }
}

/// The most frequent operations on small integers; `None` means the general path.
#[inline]
fn of_small(op: BinOp, left: Value, right: Value) -> Option<Value> {
    let (Value::Int(a), Value::Int(b)) = (left, right) else { return None };
    match op {
        BinOp::Add => a.checked_add(b).map(Value::Int),
        BinOp::Subtract => a.checked_sub(b).map(Value::Int),
        BinOp::Less => Some(Value::Bool(a < b)),
        BinOp::Greater => Some(Value::Bool(a > b)),
        _ => None,
    }
}

#[cold]
fn unset<T>() -> Result<T, Fault> {
    failed("this variable is referenced before assignment")
}

impl std::fmt::Debug for Machine<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Machine").field("frames", &self.frames).finish_non_exhaustive()
    }
}
