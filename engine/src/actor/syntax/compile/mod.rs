//! From tree to program: operations, names and jump targets.

mod expression;
mod function;
mod statement;
mod text;

use super::{
    Lines,
    code::{FunctionCode, Op, Program, Symbol},
    parse::parse_module,
    scope::{Scope, assigned},
};
use crate::actor::{
    error::{Error, Fault},
    gas::Meter,
    value::{Arena, Text, Value},
};
use ruff_python_ast::Stmt;
use ruff_text_size::Ranged;
use std::collections::{BTreeMap, btree_map::Entry};

/// Name of a module's top level in stacks.
const TOP_LEVEL: &str = "<module>";

/// The offset at which a node begins in the source.
fn at(node: &impl Ranged) -> u32 {
    node.start().to_u32()
}

/// Parses a scanned module and compiles it; its constants go into `arena`.
pub(in crate::actor) fn compile(
    lines: Lines,
    arena: &mut Arena,
    meter: &mut Meter,
) -> Result<Program, Fault> {
    let parsed = parse_module(&lines)?;
    let mut compiler = Compiler {
        arena,
        meter,
        scopes: Vec::new(),
        bodies: Vec::new(),
        texts: BTreeMap::new(),
        program: Program {
            lines,
            ops: Vec::new(),
            offsets: Vec::new(),
            functions: Vec::new(),
            sites: Vec::new(),
            constants: Vec::new(),
            names: Vec::new(),
            symbols: BTreeMap::new(),
            globals: BTreeMap::new(),
            global_names: Vec::new(),
        },
    };
    compiler.module(parsed.suite())?;
    Ok(compiler.program)
}

/// A function's operations during compilation; jumps are relative to its beginning.
#[derive(Default)]
struct FunctionBody {
    ops: Vec<Op>,
    offsets: Vec<u32>,
    depth: i64,
    deepest: i64,
    loops: Vec<LoopBody>,
}

struct LoopBody {
    next: u32,
    breaks: Vec<usize>,
}

struct Compiler<'a, 'm> {
    arena: &'m mut Arena,
    meter: &'m mut Meter,
    scopes: Vec<Scope<'a>>,
    bodies: Vec<FunctionBody>,
    texts: BTreeMap<&'a str, u32>,
    program: Program,
}

impl<'a> Compiler<'a, '_> {
    fn refuse<T>(&self, at: u32, message: impl Into<String>) -> Result<T, Fault> {
        Err(Error::refused(message, self.program.lines.position(at)))
    }

    fn symbol(&mut self, name: &str) -> Symbol {
        if let Some(symbol) = self.program.symbol(name) {
            return symbol;
        }
        let symbol = Symbol(self.program.names.len() as u32);
        self.program.names.push(name.into());
        self.program.symbols.insert(name.into(), symbol);
        symbol
    }

    fn body(&mut self) -> &mut FunctionBody {
        self.bodies.last_mut().expect("something is compiled")
    }

    fn scope(&mut self) -> &mut Scope<'a> {
        self.scopes.last_mut().expect("something is compiled")
    }

    fn emit(&mut self, op: Op, at: u32) -> usize {
        let change = self.change(op);
        let body = self.body();
        body.ops.push(op);
        body.offsets.push(at);
        body.depth += change;
        body.deepest = body.deepest.max(body.depth);
        body.ops.len() - 1
    }

    /// The change of the stack's height by an operation that does not jump.
    fn change(&self, op: Op) -> i64 {
        match op {
            Op::Constant(_)
            | Op::Local(_)
            | Op::Shared(_)
            | Op::Captured(_)
            | Op::Global(_)
            | Op::Dict
            | Op::Copy
            | Op::CopyUnder
            | Op::Method(_)
            | Op::Next(_) => 1,
            Op::CopyTwo => 2,
            Op::Not
            | Op::Minus
            | Op::Plus
            | Op::Invert
            | Op::Node
            | Op::Round
            | Op::Seal
            | Op::Jump(_)
            | Op::Attribute(_)
            | Op::ClearLocal(_)
            | Op::ClearShared(_)
            | Op::EndLoop
            | Op::End => 0,
            Op::StoreLocal(_)
            | Op::StoreShared(_)
            | Op::StoreGlobal(_)
            | Op::Binary(_)
            | Op::Augment(_)
            | Op::JumpIfFalse(_)
            | Op::JumpIfTrue(_)
            | Op::JumpIfFalseOrPop(_)
            | Op::JumpIfTrueOrPop(_)
            | Op::Pop
            | Op::DropUnder
            | Op::Append
            | Op::Extend
            | Op::Merge
            | Op::Index
            | Op::Return
            | Op::Loop
            | Op::Check => -1,
            Op::Fail(given) | Op::Field(_, given) => -i64::from(given),
            Op::Entry | Op::Put | Op::DeleteIndex => -2,
            Op::StoreIndex | Op::StoreAugmented => -3,
            Op::List(n) | Op::Tuple(n) | Op::Concat(n) => 1 - i64::from(n),
            Op::Unpack(n) => i64::from(n) - 1,
            Op::UnpackRest(first, last) => i64::from(first) + i64::from(last),
            Op::Slice(parts) => -i64::from(parts.count_ones()),
            Op::Call(site) => -(self.program.sites[site as usize].width() as i64),
            Op::CallMethod(site) => -(self.program.sites[site as usize].width() as i64) - 1,
            Op::Function(index) => {
                let code = &self.program.functions[index as usize];
                1 - i64::from(code.defaults) - i64::from(code.types)
            }
        }
    }

    fn here(&mut self) -> u32 {
        self.body().ops.len() as u32
    }

    /// Sets the target of the jump at `from` to the next operation.
    fn land(&mut self, from: usize) {
        let to = self.here();
        match &mut self.body().ops[from] {
            Op::Jump(target)
            | Op::JumpIfFalse(target)
            | Op::JumpIfTrue(target)
            | Op::JumpIfFalseOrPop(target)
            | Op::JumpIfTrueOrPop(target)
            | Op::Next(target) => *target = to,
            other => unreachable!("{other:?} does not jump"),
        }
    }

    fn constant(&mut self, value: Value) -> u32 {
        let constants = &mut self.program.constants;
        constants.push(value);
        constants.len() as u32 - 1
    }

    fn push_constant(&mut self, value: Value, at: u32) {
        let constant = self.constant(value);
        self.emit(Op::Constant(constant), at);
    }

    fn text(&mut self, text: &'a str, at: u32) -> Result<(), Fault> {
        let constant = match self.texts.get(text) {
            Some(constant) => *constant,
            None => {
                self.meter.string_fits(text.len())?;
                self.meter.alloc(Text::cost(text.len()))?;
                let value = self.arena.text(Text::new(text.to_owned()));
                let constant = self.constant(value);
                self.texts.insert(text, constant);
                constant
            }
        };
        self.emit(Op::Constant(constant), at);
        Ok(())
    }

    fn module(&mut self, statements: &'a [Stmt]) -> Result<(), Fault> {
        let mut names = Vec::new();
        assigned(statements, &mut names);
        for name in names {
            let (symbol, next) = (self.symbol(name), self.program.globals.len() as u32);
            if let Entry::Vacant(global) = self.program.globals.entry(symbol) {
                global.insert(next);
                self.program.global_names.push(symbol);
            }
        }
        let name = self.symbol(TOP_LEVEL);
        // The top level is function 0; its place is reserved while inner functions are compiled.
        self.program.functions.push(FunctionCode {
            name,
            offset: 0,
            entry: 0,
            parameters: Vec::new(),
            positional: 0,
            simple: true,
            by_name: Vec::new(),
            defaults: 0,
            types: 0,
            returns: false,
            slots: 0,
            stack: 0,
            shared: Vec::new(),
            captures: Vec::new(),
        });
        self.scopes.push(Scope::default());
        self.bodies.push(FunctionBody::default());
        self.block(statements)?;
        self.emit(Op::End, 0);
        self.finish(0);
        Ok(())
    }

    /// Appends the innermost body to the program, as the code of function `index`.
    fn finish(&mut self, index: u32) {
        let scope = self.scopes.pop().expect("a scope per body");
        let mut body = self.bodies.pop().expect("something was compiled");
        let entry = self.program.ops.len() as u32;
        for op in &mut body.ops {
            match op {
                Op::Jump(target)
                | Op::JumpIfFalse(target)
                | Op::JumpIfTrue(target)
                | Op::JumpIfFalseOrPop(target)
                | Op::JumpIfTrueOrPop(target)
                | Op::Next(target) => *target += entry,
                Op::Local(slot) if scope.shared.contains(slot) => *op = Op::Shared(*slot),
                Op::StoreLocal(slot) if scope.shared.contains(slot) => *op = Op::StoreShared(*slot),
                Op::ClearLocal(slot) if scope.shared.contains(slot) => *op = Op::ClearShared(*slot),
                _ => {}
            }
        }
        self.program.ops.append(&mut body.ops);
        self.program.offsets.append(&mut body.offsets);
        let code = &mut self.program.functions[index as usize];
        code.entry = entry;
        code.slots = scope.slots();
        code.stack = body.deepest as u32;
        code.shared = scope.shared.into_iter().collect();
        code.captures = scope.captures;
    }
}
