//! A module's program: one flat list of operations over a stack of values, names resolved to
//! slots.
//!
//! An operation that stands for a syntax node pays for that node before anything else; the others
//! (jumps, copies) only move what nodes left on the stack.

use super::Lines;
use crate::actor::{error::Position, value::Value};
use std::{collections::BTreeMap, fmt};

/// A name of the module: index into [`Program::names`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::actor) struct Symbol(pub(in crate::actor) u32);

/// An operator between two values.
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

/// The operator with the spaces around it.
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
    /// The same of a slot that functions within this one share.
    Shared(u32),
    /// The same of a variable of an enclosing function.
    Captured(u32),
    /// The same of a name of the module.
    Global(u32),
    /// `[value] -> []` into a slot.
    StoreLocal(u32),
    /// `[value] -> []`
    StoreShared(u32),
    /// `[value] -> []`
    StoreGlobal(u32),
    /// Forgets a slot's value, when its comprehension begins.
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
    /// `[x, y] -> [x op y]` for an augmented assignment: a list grows where it is.
    Augment(BinOp),
    /// A node that leaves nothing: `pass`, the head of a loop.
    Node,
    /// Goes on elsewhere.
    Jump(u32),
    /// `[x] -> []`, elsewhere if x is false.
    JumpIfFalse(u32),
    /// `[x] -> [x]` and elsewhere if x is false, else `[x] -> []`.
    JumpIfFalseOrPop(u32),
    /// `[x] -> [x]` and elsewhere if x is true, else `[x] -> []`.
    JumpIfTrueOrPop(u32),
    /// `[x] -> []`, the end of a statement that is an expression.
    Pop,
    /// `[x] -> []`, elsewhere if x is true.
    JumpIfTrue(u32),
    /// A round of a loop that has no elements.
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
    /// `[dict, key, value] -> [dict]`, for a key that may be there.
    Put,
    /// `[x, i] -> [x[i]]`
    Index,
    /// `[value, x, i] -> []`, x[i] = value.
    StoreIndex,
    /// `[x, i, value] -> []`, the end of an augmented assignment.
    StoreAugmented,
    /// `[x, i] -> []`, x[i] is removed.
    DeleteIndex,
    /// `[x, parts…] -> [x[a:b:c]]`; a bit for each part that is there.
    Slice(u8),
    /// `[x] -> [x.name]`
    Attribute(Symbol),
    /// `[x] -> [method, x]`, or `[x.name, unset]` where that is no method.
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
    /// `[] -> [element]`, or elsewhere when there is none left.
    Next(u32),
    /// Ends a loop.
    EndLoop,
    /// `[sequence] -> [last, …, first]`, of exactly so many.
    Unpack(u32),
    /// The same with a list of the elements between the first and the last ones, given in number.
    UnpackRest(u32, u32),
    /// `[defaults…, types…] -> [function]`
    Function(u32),
    /// `[value, type] -> [value]`, if it is one.
    Check,
    /// `[value] -> [text]`, of a field of an f-string; with a specification,
    /// `[value, specification] -> [text]`.
    Field(Conversion, bool),
    /// `[text, …] -> [text]`, of this many texts.
    Concat(u32),
    /// `[message] -> `, of an assertion that does not hold; without a message, `[] -> `.
    Fail(bool),
}

/// What becomes of a value before it is written into a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::actor) enum Conversion {
    None,
    Str,
    Repr,
}

/// How a parameter takes its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::actor) enum ParameterKind {
    /// By place or by name.
    Normal,
    /// By name alone.
    Named,
    /// What is left of those by place.
    Rest,
    /// What is left of those by name.
    NamedRest,
}

/// A parameter of a function; it has the slot of its index.
#[derive(Clone, Debug)]
pub(in crate::actor) struct Parameter {
    pub(in crate::actor) name: Symbol,
    pub(in crate::actor) kind: ParameterKind,
    /// Which of the function's defaults is this one's.
    pub(in crate::actor) default: Option<u32>,
    /// Which of its types.
    pub(in crate::actor) annotation: Option<u32>,
}

/// Where a captured variable is when the function is made.
#[derive(Clone, Copy, Debug)]
pub(in crate::actor) enum Capture {
    /// A shared slot of the function around.
    Shared(u32),
    /// Captured by the function around.
    Captured(u32),
}

/// A function's code.
#[derive(Clone, Debug)]
pub(in crate::actor) struct FunctionCode {
    pub(in crate::actor) name: Symbol,
    /// Where it begins in the source.
    pub(in crate::actor) offset: u32,
    pub(in crate::actor) entry: u32,
    pub(in crate::actor) parameters: Vec<Parameter>,
    /// Parameters that can be given by place.
    pub(in crate::actor) positional: u32,
    /// Whether giving exactly those by place is all there is to binding.
    pub(in crate::actor) simple: bool,
    /// Parameters by name, for finding them.
    pub(in crate::actor) by_name: Vec<(Symbol, u32)>,
    pub(in crate::actor) defaults: u32,
    pub(in crate::actor) types: u32,
    /// Whether the last of its types is what it returns.
    pub(in crate::actor) returns: bool,
    /// Slots of a frame.
    pub(in crate::actor) slots: u32,
    /// Values on the stack beside them at most.
    pub(in crate::actor) stack: u32,
    /// Slots that functions within share.
    pub(in crate::actor) shared: Vec<u32>,
    pub(in crate::actor) captures: Vec<Capture>,
}

/// The shape of a call: by place, by name, `*rest`, `**named`.
#[derive(Clone, Debug)]
pub(in crate::actor) struct CallSite {
    pub(in crate::actor) positional: u32,
    pub(in crate::actor) names: Vec<Symbol>,
    pub(in crate::actor) rest: bool,
    pub(in crate::actor) named_rest: bool,
}

impl CallSite {
    /// Values on the stack above what is called.
    pub(in crate::actor) fn width(&self) -> usize {
        self.positional as usize
            + self.names.len()
            + usize::from(self.rest)
            + usize::from(self.named_rest)
    }
}

/// A compiled module.
#[derive(Clone, Debug)]
pub(in crate::actor) struct Program {
    pub(in crate::actor) lines: Lines,
    pub(in crate::actor) ops: Vec<Op>,
    /// Per operation, where its node begins in the source.
    pub(in crate::actor) offsets: Vec<u32>,
    /// The first is the module's top level.
    pub(in crate::actor) functions: Vec<FunctionCode>,
    pub(in crate::actor) sites: Vec<CallSite>,
    pub(in crate::actor) constants: Vec<Value>,
    pub(in crate::actor) names: Vec<Box<str>>,
    pub(in crate::actor) symbols: BTreeMap<Box<str>, Symbol>,
    /// Names that the module defines, and which global each is.
    pub(in crate::actor) globals: BTreeMap<Symbol, u32>,
    /// The globals' names in their order.
    pub(in crate::actor) global_names: Vec<Symbol>,
}

impl Program {
    pub(in crate::actor) fn name(&self, symbol: Symbol) -> &str {
        &self.names[symbol.0 as usize]
    }

    pub(in crate::actor) fn symbol(&self, name: &str) -> Option<Symbol> {
        self.symbols.get(name).copied()
    }

    /// Which global has this name.
    pub(in crate::actor) fn global(&self, name: &str) -> Option<u32> {
        self.globals.get(&self.symbol(name)?).copied()
    }

    /// Where the operation at `pc` stands in the source.
    pub(in crate::actor) fn position(&self, pc: usize) -> Position {
        self.lines.position(self.offsets.get(pc).copied().unwrap_or_default())
    }
}
