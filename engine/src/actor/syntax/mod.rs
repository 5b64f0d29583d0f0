//! From source to program: limits, parsing, slots.
//!
//! The parser, the compiler and the tree between them recurse on the author's input. The scan
//! bounds the depth, and [`on_known_stack`] gives them a stack that suffices for it on any thread.
//! Nothing else recurses on source.

mod absent;
mod code;
mod compile;
mod lex;
mod lines;
mod parse;
mod scan;
mod scope;

pub(super) use code::{
    BinOp, Capture, Conversion, FunctionCode, Op, Parameter, ParameterKind, Program, Symbol,
};
pub(super) use compile::compile;
pub(super) use lines::Lines;
pub(super) use parse::explain;
pub(super) use scan::{plain, scan};

/// Stack for parsing and compiling a module within the limits: some 300 bytes times six frames
/// for each of at most 32 blocks, 256 operators and 64 brackets, tenfold.
const STACK: usize = 16 << 20;

/// Runs `work` on its own stack, whose size is known to suffice.
pub(super) fn on_known_stack<T>(work: impl FnOnce() -> T) -> T {
    stacker::grow(STACK, work)
}
