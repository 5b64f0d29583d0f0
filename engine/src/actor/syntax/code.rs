//! A module's program: one flat list of operations over a stack of values, names resolved to
//! slots.
//!
//! An operation for a syntax node pays for that node before anything else; the others (jumps,
//! copies) only move values that nodes left on the stack.

use super::Lines;
use crate::actor::{error::Position, value::Value};
use std::{collections::BTreeMap, fmt};

/// A name of the module: index into [`Program::names`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::actor) struct Symbol(pub(in crate::actor) u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::actor) enum BinOp {
    Add,
    Subtract,
    Multiply,
    Power,
    FloorDivide,
    Percent,
    BitAnd,
    BitOr,
    BitXor,
    LeftShift,
    RightShift,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    NotIn,
    Is,
    IsNot,
}

/// The operator with spaces around it, for errors.
impl fmt::Display for BinOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Add => " + ",
            Self::Subtract => " - ",
            Self::Multiply => " * ",
            Self::Power => " ** ",
            Self::FloorDivide => " // ",
            Self::Percent => " % ",
            Self::BitAnd => " & ",
            Self::BitOr => " | ",
            Self::BitXor => " ^ ",
            Self::LeftShift => " << ",
            Self::RightShift => " >> ",
            Self::Equal => " == ",
            Self::NotEqual => " != ",
            Self::Less => " < ",
            Self::LessOrEqual => " <= ",
            Self::Greater => " > ",
            Self::GreaterOrEqual => " >= ",
            Self::In => " in ",
            Self::NotIn => " not in ",
            Self::Is => " is ",
            Self::IsNot => " is not ",
        })
    }
}

/// One step. The stack grows to the right: `[a, b] -> [c]`.
#[derive(Clone, Copy, Debug)]
pub(in crate::actor) enum Op {
    /// `[] -> [constant]`
    Constant(u32),
    /// `[] -> [value]` of a slot of this frame.
    Local(u32),
    /// The same for a slot that inner functions share.
    Shared(u32),
    /// The same for a variable of an enclosing function.
    Captured(u32),
    /// The same for a name of the module.
    Global(u32),
    /// `[value] -> []` into a slot.
    StoreLocal(u32),
    /// `[value] -> []`
    StoreShared(u32),
    /// `[value] -> []`
    StoreGlobal(u32),
    /// Unsets a slot when its comprehension begins.
    ClearLocal(u32),
    /// The same, with a new variable to share.
    ClearShared(u32),
    /// `[x] -> [not x]`
    Not,
    /// `[x] -> [-x]`
    Minus,
    /// `[x] -> [+x]`
    Plus,
    /// `[x] -> [~x]`
    Invert,
    /// `[x, y] -> [x op y]`
    Binary(BinOp),
    /// `[x, y] -> [x op y]` for an augmented assignment: a list grows in place.
    Augment(BinOp),
    /// A node that leaves nothing: `pass`, the head of a loop.
    Node,
    /// Continues at another operation.
    Jump(u32),
    /// `[x] -> []`, jumps if x is false.
    JumpIfFalse(u32),
    /// `[x] -> [x]` and jumps if x is false, else `[x] -> []`.
    JumpIfFalseOrPop(u32),
    /// `[x] -> [x]` and jumps if x is true, else `[x] -> []`.
    JumpIfTrueOrPop(u32),
    /// `[x] -> []`, the end of a statement that is an expression.
    Pop,
    /// `[x] -> []`, jumps if x is true.
    JumpIfTrue(u32),
    /// A round of a `while` loop, which has no elements.
    Round,
    /// `[x] -> [x, x]`
    Copy,
    /// `[x, y] -> [x, y, x, y]`
    CopyTwo,
    /// `[x, y] -> [y, x, y]`
    CopyUnder,
    /// `[x, y] -> [y]`
    DropUnder,
    /// `[a, …] -> [[a, …]]`
    List(u32),
    /// `[a, …] -> [(a, …)]`
    Tuple(u32),
    /// `[] -> [{}]`
    Dict,
    /// `[dict, key, value] -> [dict]`, for a key that is new.
    Entry,
    /// `[list, value] -> [list]`, appended.
    Append,
    /// `[list, collection] -> [list]`, its elements appended.
    Extend,
    /// `[dict, dict] -> [dict]`, put into the first.
    Merge,
    /// `[list] -> [tuple]`
    Seal,
    /// `[dict, key, value] -> [dict]`, for a key that may be present.
    Put,
    /// `[x, i] -> [x[i]]`
    Index,
    /// `[value, x, i] -> []`, `x[i] = value`.
    StoreIndex,
    /// `[x, i, value] -> []`, the end of an augmented assignment.
    StoreAugmented,
    /// `[x, i] -> []`, `x[i]` is removed.
    DeleteIndex,
    /// `[x, parts…] -> [x[a:b:c]]`; a bit for each part that is present.
    Slice(u8),
    /// `[x] -> [x.name]`
    Attribute(Symbol),
    /// `[x] -> [method, x]`, or `[x.name, unset]` if it is not a method.
    Method(Symbol),
    /// `[f, arguments…] -> [f(…)]`
    Call(u32),
    /// `[method, x, arguments…] -> [x.method(…)]`
    CallMethod(u32),
    /// `[value] -> ` the caller.
    Return,
    /// The end of a function: returns None.
    End,
    /// `[iterable] -> []`, begins a loop.
    Loop,
    /// `[] -> [element]`, or jumps when no element is left.
    Next(u32),
    EndLoop,
    /// `[sequence] -> [last, …, first]`, exactly this many.
    Unpack(u32),
    /// The same with a list of the elements in the middle, given the numbers of first and last
    /// ones.
    UnpackRest(u32, u32),
    /// `[defaults…, types…] -> [function]`
    Function(u32),
    /// `[value, type] -> [value]`, if the value has the type.
    Check,
    /// `[value] -> [text]`, of a field of an f-string; with a specification,
    /// `[value, specification] -> [text]`.
    Field(Conversion, bool),
    /// `[text, …] -> [text]`, of this many texts.
    Concat(u32),
    /// `[message] -> `, for an assertion that fails; without a message, `[] -> `.
    Fail(bool),
}

/// The conversion of a value before it is written into a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::actor) enum Conversion {
    None,
    Str,
    Repr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::actor) enum ParameterKind {
    /// By position or by name.
    Normal,
    /// By name only.
    Named,
    /// The rest of the positional arguments.
    Rest,
    /// The rest of the named arguments.
    NamedRest,
}

/// A parameter of a function; its slot has the same index.
#[derive(Clone, Debug)]
pub(in crate::actor) struct Parameter {
    pub(in crate::actor) name: Symbol,
    pub(in crate::actor) kind: ParameterKind,
    /// Index into the function's defaults.
    pub(in crate::actor) default: Option<u32>,
    /// Index into the function's types.
    pub(in crate::actor) annotation: Option<u32>,
    /// The offset of its name in the source.
    pub(in crate::actor) offset: u32,
}

/// The place of a captured variable when the function is made.
#[derive(Clone, Copy, Debug)]
pub(in crate::actor) enum Capture {
    /// A shared slot of the enclosing function.
    Shared(u32),
    /// A variable that the enclosing function captures too.
    Captured(u32),
}

#[derive(Clone, Debug)]
pub(in crate::actor) struct FunctionCode {
    pub(in crate::actor) name: Symbol,
    pub(in crate::actor) offset: u32,
    pub(in crate::actor) entry: u32,
    pub(in crate::actor) parameters: Vec<Parameter>,
    pub(in crate::actor) positional: u32,
    /// Whether binding needs nothing else if exactly the positional parameters are given.
    pub(in crate::actor) simple: bool,
    pub(in crate::actor) by_name: Vec<(Symbol, u32)>,
    pub(in crate::actor) defaults: u32,
    pub(in crate::actor) types: u32,
    /// Whether its last type is the type of the return value.
    pub(in crate::actor) returns: bool,
    /// Slots of a frame.
    pub(in crate::actor) slots: u32,
    /// Maximum number of values on the stack above them.
    pub(in crate::actor) stack: u32,
    /// Slots that inner functions share.
    pub(in crate::actor) shared: Vec<u32>,
    pub(in crate::actor) captures: Vec<Capture>,
}

/// The shape of a call: positional and named arguments, `*rest`, `**named`.
#[derive(Clone, Debug)]
pub(in crate::actor) struct CallSite {
    pub(in crate::actor) positional: u32,
    pub(in crate::actor) names: Vec<Symbol>,
    pub(in crate::actor) rest: bool,
    pub(in crate::actor) named_rest: bool,
}

impl CallSite {
    /// Values on the stack above the callee.
    pub(in crate::actor) fn width(&self) -> usize {
        self.positional as usize
            + self.names.len()
            + usize::from(self.rest)
            + usize::from(self.named_rest)
    }
}

#[derive(Clone, Debug)]
pub(in crate::actor) struct Program {
    pub(in crate::actor) lines: Lines,
    pub(in crate::actor) ops: Vec<Op>,
    /// Per operation, the offset in the source where its node begins.
    pub(in crate::actor) offsets: Vec<u32>,
    /// The first is the module's top level.
    pub(in crate::actor) functions: Vec<FunctionCode>,
    pub(in crate::actor) sites: Vec<CallSite>,
    pub(in crate::actor) constants: Vec<Value>,
    pub(in crate::actor) names: Vec<Box<str>>,
    pub(in crate::actor) symbols: BTreeMap<Box<str>, Symbol>,
    /// Names that the module defines, and the index of each among the globals.
    pub(in crate::actor) globals: BTreeMap<Symbol, u32>,
    /// The globals' names in index order.
    pub(in crate::actor) global_names: Vec<Symbol>,
}

impl Program {
    pub(in crate::actor) fn name(&self, symbol: Symbol) -> &str {
        &self.names[symbol.0 as usize]
    }

    pub(in crate::actor) fn symbol(&self, name: &str) -> Option<Symbol> {
        self.symbols.get(name).copied()
    }

    pub(in crate::actor) fn global(&self, name: &str) -> Option<u32> {
        self.globals.get(&self.symbol(name)?).copied()
    }

    pub(in crate::actor) fn position(&self, pc: usize) -> Position {
        self.lines.position(self.offsets.get(pc).copied().unwrap_or_default())
    }

    /// The function of each operation.
    pub(in crate::actor) fn owners(&self) -> impl Iterator<Item = u32> {
        let mut begins: Vec<_> =
            self.functions.iter().zip(0..).map(|(f, i)| (f.entry, i)).collect();
        begins.sort_unstable();
        let ends = begins[1..].iter().map(|(entry, _)| *entry).chain([self.ops.len() as u32]);
        let owned: Vec<_> =
            begins.iter().zip(ends).map(|((from, i), to)| (*i, to - from)).collect();
        owned.into_iter().flat_map(|(code, ops)| std::iter::repeat_n(code, ops as usize))
    }
}
