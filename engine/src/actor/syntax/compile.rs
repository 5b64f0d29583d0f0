//! From tree to program.

use super::{
    Lines,
    code::{CallSite, FunctionCode, Op, Parameter, ParameterKind, Program, Symbol},
    scan::{START, dialect},
    scope::{Scope, Variable, assigned, resolve, targets},
};
use crate::actor::{
    builtin,
    error::{Error, Fault, Position},
    gas::{Cause, Meter},
    value::{Arena, Text, Value},
};
use num_traits::ToPrimitive;
use starlark_syntax::{
    codemap::Span,
    lexer::TokenInt,
    syntax::{
        AstModule,
        ast::{
            ArgumentP, AssignOp, AssignTargetP, AstAssignTarget, AstExpr, AstLiteral, AstParameter,
            AstStmt, AstTypeExpr, BinOp, CallArgsP, Clause, ClauseP, ExprP, ForClause, ForP,
            ParameterP, StmtP,
        },
    },
};
use std::collections::{BTreeMap, btree_map::Entry};

/// Name of what runs when a module loads, in stacks.
const TOP_LEVEL: &str = "<module>";
/// Name of a function without one.
const LAMBDA: &str = "lambda";

/// What the parser says, at the place it says.
pub(super) fn syntax_error(error: &starlark_syntax::Error, lines: &Lines) -> Fault {
    let at = error.span().map_or(START, |file| lines.position(file.span.begin().get()));
    let text = error.without_diagnostic().to_string();
    let text = text.trim_start_matches("Parse error: ").trim_start_matches("error: ");
    Error::refused(text, at)
}

/// Parses a scanned module and compiles it; its constants go into `arena`.
pub(in crate::actor) fn compile(
    lines: Lines,
    arena: &mut Arena,
    meter: &mut Meter,
) -> Result<Program, Fault> {
    let parsed = AstModule::parse("actor", lines.source().to_owned(), &dialect())
        .map_err(|error| syntax_error(&error, &lines))?;
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
    compiler.module(parsed.statement())?;
    Ok(compiler.program)
}

/// A function's operations while it is compiled; jumps are relative to its beginning.
#[derive(Default)]
struct Body {
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
    bodies: Vec<Body>,
    texts: BTreeMap<&'a str, u32>,
    program: Program,
}

impl<'a> Compiler<'a, '_> {
    fn at(&self, span: Span) -> Position {
        self.program.lines.position(span.begin().get())
    }

    fn refuse<T>(&self, span: Span, message: impl Into<String>) -> Result<T, Fault> {
        Err(Error::refused(message, self.at(span)))
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

    fn body(&mut self) -> &mut Body {
        self.bodies.last_mut().expect("something is compiled")
    }

    fn scope(&mut self) -> &mut Scope<'a> {
        self.scopes.last_mut().expect("something is compiled")
    }

    fn emit(&mut self, op: Op, span: Span) -> usize {
        let change = self.change(op);
        let body = self.body();
        body.ops.push(op);
        body.offsets.push(span.begin().get());
        body.depth += change;
        body.deepest = body.deepest.max(body.depth);
        body.ops.len() - 1
    }

    /// By how much an operation changes the height of the stack, where it does not jump.
    fn change(&self, op: Op) -> i64 {
        match op {
            Op::Constant(_)
            | Op::Local(_)
            | Op::Shared(_)
            | Op::Captured(_)
            | Op::Global(_)
            | Op::Dict
            | Op::Method(_)
            | Op::Next(_) => 1,
            Op::CopyTwo => 2,
            Op::Not
            | Op::Minus
            | Op::Plus
            | Op::Invert
            | Op::Node
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
            | Op::JumpIfFalseOrPop(_)
            | Op::JumpIfTrueOrPop(_)
            | Op::Pop
            | Op::Append
            | Op::Index
            | Op::Return
            | Op::Loop
            | Op::Check => -1,
            Op::Entry | Op::Put => -2,
            Op::StoreIndex | Op::StoreAugmented => -3,
            Op::List(n) | Op::Tuple(n) => 1 - i64::from(n),
            Op::Unpack(n) => i64::from(n) - 1,
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

    /// Makes the jump at `from` go here.
    fn land(&mut self, from: usize) {
        let to = self.here();
        match &mut self.body().ops[from] {
            Op::Jump(target)
            | Op::JumpIfFalse(target)
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

    fn push_constant(&mut self, value: Value, span: Span) {
        let constant = self.constant(value);
        self.emit(Op::Constant(constant), span);
    }

    fn text(&mut self, text: &'a str, span: Span) -> Result<(), Fault> {
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
        self.emit(Op::Constant(constant), span);
        Ok(())
    }

    fn module(&mut self, statement: &'a AstStmt) -> Result<(), Fault> {
        let mut names = Vec::new();
        assigned(statement, &mut names);
        for name in names {
            let (symbol, next) = (self.symbol(name), self.program.globals.len() as u32);
            if let Entry::Vacant(global) = self.program.globals.entry(symbol) {
                global.insert(next);
                self.program.global_names.push(symbol);
            }
        }
        let name = self.symbol(TOP_LEVEL);
        // The top level is function 0, whose place is kept while those within are compiled.
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
        self.bodies.push(Body::default());
        self.statement(statement)?;
        self.emit(Op::End, statement.span);
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

    fn statement(&mut self, statement: &'a AstStmt) -> Result<(), Fault> {
        let span = statement.span;
        match &statement.node {
            StmtP::Statements(statements) => {
                for statement in statements {
                    self.statement(statement)?;
                }
            }
            StmtP::Pass => {
                self.emit(Op::Node, span);
            }
            StmtP::Break => {
                self.emit(Op::Node, span);
                let jump = self.emit(Op::Jump(0), span);
                self.innermost_loop().breaks.push(jump);
            }
            StmtP::Continue => {
                self.emit(Op::Node, span);
                let next = self.innermost_loop().next;
                self.emit(Op::Jump(next), span);
            }
            StmtP::Return(value) => {
                match value {
                    Some(value) => self.expression(value)?,
                    None => self.push_constant(Value::None, span),
                }
                self.emit(Op::Return, span);
            }
            // Documentation is no work.
            StmtP::Expression(e) if matches!(e.node, ExprP::Literal(AstLiteral::String(_))) => {}
            StmtP::Expression(expression) => {
                self.expression(expression)?;
                self.emit(Op::Pop, span);
            }
            StmtP::Assign(assign) => {
                self.expression(&assign.rhs)?;
                if let Some(annotation) = &assign.ty {
                    self.expression(&annotation.expr)?;
                    self.emit(Op::Check, annotation.span);
                }
                self.assign(&assign.lhs)?;
            }
            StmtP::AssignModify(target, op, value) => self.augment(target, *op, value, span)?,
            StmtP::If(condition, body) => {
                self.expression(condition)?;
                let skip = self.emit(Op::JumpIfFalse(0), span);
                self.statement(body)?;
                self.land(skip);
            }
            StmtP::IfElse(condition, branches) => {
                self.expression(condition)?;
                let skip = self.emit(Op::JumpIfFalse(0), span);
                self.statement(&branches.0)?;
                let end = self.emit(Op::Jump(0), span);
                self.land(skip);
                self.statement(&branches.1)?;
                self.land(end);
            }
            StmtP::For(ForP { var, over, body }) => {
                self.expression(over)?;
                self.emit(Op::Loop, over.span);
                let next = self.here();
                let done = self.emit(Op::Next(0), span);
                self.assign(var)?;
                self.body().loops.push(LoopBody { next, breaks: Vec::new() });
                self.statement(body)?;
                self.emit(Op::Jump(next), span);
                let ended = self.body().loops.pop().expect("the loop that was begun");
                if !ended.breaks.is_empty() {
                    for from in ended.breaks {
                        self.land(from);
                    }
                    self.emit(Op::EndLoop, span);
                }
                self.land(done);
            }
            StmtP::Def(def) => {
                let returns = def.return_type.as_deref();
                let name = def.name.node.ident.as_str();
                let body = Code::Statement(&def.body);
                self.function(name, &def.params, returns, body, span)?;
                self.store(name, def.name.span);
            }
            StmtP::Load(_) => return self.refuse(span, "there is no load; a module stands alone"),
        }
        Ok(())
    }

    fn innermost_loop(&mut self) -> &mut LoopBody {
        self.body().loops.last_mut().expect("the parser refuses it outside of loops")
    }

    /// Assigns what is on the stack.
    fn assign(&mut self, target: &'a AstAssignTarget) -> Result<(), Fault> {
        match &target.node {
            AssignTargetP::Identifier(name) => self.store(&name.node.ident, target.span),
            AssignTargetP::Tuple(targets) => {
                self.emit(Op::Unpack(targets.len() as u32), target.span);
                for target in targets {
                    self.assign(target)?;
                }
            }
            AssignTargetP::Index(parts) => {
                self.expression(&parts.0)?;
                self.expression(&parts.1)?;
                self.emit(Op::StoreIndex, target.span);
            }
            AssignTargetP::Dot(..) => return self.refuse(target.span, NO_FIELDS),
        }
        Ok(())
    }

    fn augment(
        &mut self,
        target: &'a AstAssignTarget,
        op: AssignOp,
        value: &'a AstExpr,
        span: Span,
    ) -> Result<(), Fault> {
        let op = self.binary_of(op, span)?;
        match &target.node {
            AssignTargetP::Identifier(name) => {
                self.load(&name.node.ident, target.span)?;
                self.expression(value)?;
                self.emit(Op::Augment(op), span);
                self.store(&name.node.ident, target.span);
            }
            AssignTargetP::Index(parts) => {
                self.expression(&parts.0)?;
                self.expression(&parts.1)?;
                self.emit(Op::CopyTwo, target.span);
                self.emit(Op::Index, target.span);
                self.expression(value)?;
                self.emit(Op::Augment(op), span);
                self.emit(Op::StoreAugmented, target.span);
            }
            AssignTargetP::Dot(..) => return self.refuse(target.span, NO_FIELDS),
            AssignTargetP::Tuple(_) => return self.refuse(span, "a tuple cannot be augmented"),
        }
        Ok(())
    }

    fn binary_of(&self, op: AssignOp, span: Span) -> Result<BinOp, Fault> {
        Ok(match op {
            AssignOp::Add => BinOp::Add,
            AssignOp::Subtract => BinOp::Subtract,
            AssignOp::Multiply => BinOp::Multiply,
            AssignOp::Divide => return self.refuse(span, NO_DIVISION),
            AssignOp::FloorDivide => BinOp::FloorDivide,
            AssignOp::Percent => BinOp::Percent,
            AssignOp::BitAnd => BinOp::BitAnd,
            AssignOp::BitOr => BinOp::BitOr,
            AssignOp::BitXor => BinOp::BitXor,
            AssignOp::LeftShift => BinOp::LeftShift,
            AssignOp::RightShift => BinOp::RightShift,
        })
    }

    fn variable(&mut self, name: &str) -> Option<Op> {
        if let Some(variable) = resolve(&mut self.scopes, name) {
            return Some(match variable {
                Variable::Local(slot) => Op::Local(slot),
                Variable::Captured(index) => Op::Captured(index),
            });
        }
        self.program.global(name).map(Op::Global)
    }

    fn load(&mut self, name: &'a str, span: Span) -> Result<(), Fault> {
        // A name is looked for in every function around.
        self.meter.pay(Cause::Loading, self.scopes.len() as u64)?;
        if let Some(op) = self.variable(name) {
            self.emit(op, span);
        } else if let Some(value) = builtin::universe(name) {
            self.push_constant(value, span);
        } else {
            return self.refuse(span, format!("undefined name {name}"));
        }
        Ok(())
    }

    fn store(&mut self, name: &str, span: Span) {
        let op = match self.variable(name) {
            Some(Op::Local(slot)) => Op::StoreLocal(slot),
            Some(Op::Global(global)) => Op::StoreGlobal(global),
            other => unreachable!("{name} is assigned here and so local here, not {other:?}"),
        };
        self.emit(op, span);
    }

    fn expression(&mut self, expression: &'a AstExpr) -> Result<(), Fault> {
        let span = expression.span;
        match &expression.node {
            ExprP::Identifier(name) => self.load(&name.node.ident, span)?,
            ExprP::Literal(literal) => self.literal(literal, span)?,
            ExprP::Tuple(elements) => {
                self.expressions(elements)?;
                self.emit(Op::Tuple(elements.len() as u32), span);
            }
            ExprP::List(elements) => {
                self.expressions(elements)?;
                self.emit(Op::List(elements.len() as u32), span);
            }
            ExprP::Dict(entries) => {
                self.emit(Op::Dict, span);
                for (key, value) in entries {
                    self.expression(key)?;
                    self.expression(value)?;
                    self.emit(Op::Entry, key.span);
                }
            }
            ExprP::Dot(of, name) => {
                self.expression(of)?;
                let name = self.symbol(&name.node);
                self.emit(Op::Attribute(name), span);
            }
            ExprP::Call(callee, arguments) => self.call(callee, arguments, span)?,
            ExprP::Index(parts) => {
                self.expression(&parts.0)?;
                self.expression(&parts.1)?;
                self.emit(Op::Index, span);
            }
            ExprP::Index2(parts) => {
                self.expression(&parts.0)?;
                self.expression(&parts.1)?;
                self.expression(&parts.2)?;
                self.emit(Op::Tuple(2), span);
                self.emit(Op::Index, span);
            }
            ExprP::Slice(of, start, stop, step) => {
                self.expression(of)?;
                let mut mask = 0;
                for (bit, part) in [start, stop, step].into_iter().enumerate() {
                    if let Some(part) = part {
                        self.expression(part)?;
                        mask |= 1 << bit;
                    }
                }
                self.emit(Op::Slice(mask), span);
            }
            ExprP::Lambda(lambda) => {
                let body = Code::Expression(&lambda.body);
                self.function(LAMBDA, &lambda.params, None, body, span)?;
            }
            ExprP::Not(x) => self.unary(x, Op::Not, span)?,
            ExprP::Minus(x) => self.unary(x, Op::Minus, span)?,
            ExprP::Plus(x) => self.unary(x, Op::Plus, span)?,
            ExprP::BitNot(x) => self.unary(x, Op::Invert, span)?,
            ExprP::Op(left, op, right) => self.binary(left, *op, right, span)?,
            ExprP::If(parts) => {
                let (condition, yes, no) = &**parts;
                self.expression(condition)?;
                let skip = self.emit(Op::JumpIfFalse(0), span);
                self.expression(yes)?;
                let end = self.emit(Op::Jump(0), span);
                self.body().depth -= 1;
                self.land(skip);
                self.expression(no)?;
                self.land(end);
            }
            ExprP::ListComprehension(element, first, clauses) => {
                self.emit(Op::List(0), span);
                let made = Made::Element(element);
                self.comprehension(first, clauses, &made)?;
            }
            ExprP::DictComprehension(entry, first, clauses) => {
                self.emit(Op::Dict, span);
                let made = Made::Entry(&entry.0, &entry.1);
                self.comprehension(first, clauses, &made)?;
            }
            ExprP::FString(_) => {
                return self.refuse(span, "there are no f-strings; use format()");
            }
        }
        Ok(())
    }

    fn expressions(&mut self, expressions: &'a [AstExpr]) -> Result<(), Fault> {
        expressions.iter().try_for_each(|expression| self.expression(expression))
    }

    fn unary(&mut self, operand: &'a AstExpr, op: Op, span: Span) -> Result<(), Fault> {
        self.expression(operand)?;
        self.emit(op, span);
        Ok(())
    }

    fn binary(
        &mut self,
        left: &'a AstExpr,
        op: BinOp,
        right: &'a AstExpr,
        span: Span,
    ) -> Result<(), Fault> {
        self.expression(left)?;
        let jump = match op {
            BinOp::And => Some(self.emit(Op::JumpIfFalseOrPop(0), span)),
            BinOp::Or => Some(self.emit(Op::JumpIfTrueOrPop(0), span)),
            BinOp::Divide => return self.refuse(span, NO_DIVISION),
            _ => None,
        };
        self.expression(right)?;
        match jump {
            Some(jump) => self.land(jump),
            None => {
                self.emit(Op::Binary(op), span);
            }
        }
        Ok(())
    }

    fn literal(&mut self, literal: &'a AstLiteral, span: Span) -> Result<(), Fault> {
        match literal {
            AstLiteral::Int(int) => {
                let value = match &int.node {
                    TokenInt::I32(int) => Value::Int(i64::from(*int)),
                    TokenInt::BigInt(int) => match int.to_i64() {
                        Some(int) => Value::Int(int),
                        None => {
                            self.meter.bits_fit(int.bits())?;
                            self.meter.alloc(Arena::integer_cost(int.bits()))?;
                            self.arena.integer(int.clone())
                        }
                    },
                };
                self.push_constant(value, span);
            }
            AstLiteral::String(text) => self.text(&text.node, span)?,
            AstLiteral::Ellipsis => self.push_constant(Value::Ellipsis, span),
            AstLiteral::Float(_) => return self.refuse(span, "there are no floats"),
            AstLiteral::Bytes(_) => {
                return self.refuse(span, "there are no bytes literals; use text or 0x-hex");
            }
        }
        Ok(())
    }

    fn call(
        &mut self,
        callee: &'a AstExpr,
        arguments: &'a CallArgsP<starlark_syntax::syntax::ast::AstNoPayload>,
        span: Span,
    ) -> Result<(), Fault> {
        let method = match &callee.node {
            ExprP::Dot(of, name) => {
                self.expression(of)?;
                let name = self.symbol(&name.node);
                self.emit(Op::Method(name), callee.span);
                true
            }
            _ => {
                self.expression(callee)?;
                false
            }
        };
        let mut site =
            CallSite { positional: 0, names: Vec::new(), rest: false, named_rest: false };
        for argument in &arguments.args {
            match &argument.node {
                ArgumentP::Positional(value) => {
                    self.expression(value)?;
                    site.positional += 1;
                }
                ArgumentP::Named(name, value) => {
                    self.expression(value)?;
                    let name = self.symbol(&name.node);
                    site.names.push(name);
                }
                ArgumentP::Args(value) => {
                    self.expression(value)?;
                    site.rest = true;
                }
                ArgumentP::KwArgs(value) => {
                    self.expression(value)?;
                    site.named_rest = true;
                }
            }
        }
        self.program.sites.push(site);
        let site = self.program.sites.len() as u32 - 1;
        self.emit(if method { Op::CallMethod(site) } else { Op::Call(site) }, span);
        Ok(())
    }

    /// A comprehension: its variables, those of all its clauses, are its own, and only where the
    /// first clause's elements come from is outside of them. What each element is put into is on
    /// the stack and stays there.
    fn comprehension(
        &mut self,
        first: &'a ForClause,
        rest: &'a [Clause],
        made: &Made<'a>,
    ) -> Result<(), Fault> {
        self.expression(&first.over)?;
        let span = first.var.span;
        let mut names = Vec::new();
        targets(&first.var, &mut names);
        for clause in rest {
            if let ClauseP::For(inner) = clause {
                targets(&inner.var, &mut names);
            }
        }
        names.sort_unstable();
        names.dedup();
        for slot in self.scope().open_block(names) {
            self.emit(Op::ClearLocal(slot), span);
        }
        self.clause(first, rest, made)?;
        self.scope().close_block();
        Ok(())
    }

    /// A clause and those after it; what it loops over is on the stack.
    fn clause(
        &mut self,
        clause: &'a ForClause,
        rest: &'a [Clause],
        made: &Made<'a>,
    ) -> Result<(), Fault> {
        let span = clause.var.span;
        self.emit(Op::Loop, clause.over.span);
        let next = self.here();
        let done = self.emit(Op::Next(0), span);
        self.assign(&clause.var)?;
        let mut skips = Vec::new();
        let mut rest = rest.iter();
        loop {
            match rest.next() {
                Some(ClauseP::If(condition)) => {
                    self.expression(condition)?;
                    skips.push(self.emit(Op::JumpIfFalse(0), condition.span));
                }
                Some(ClauseP::For(inner)) => {
                    self.expression(&inner.over)?;
                    self.clause(inner, rest.as_slice(), made)?;
                    break;
                }
                None => {
                    match made {
                        Made::Element(element) => {
                            self.expression(element)?;
                            self.emit(Op::Append, element.span);
                        }
                        Made::Entry(key, value) => {
                            self.expression(key)?;
                            self.expression(value)?;
                            self.emit(Op::Put, key.span);
                        }
                    }
                    break;
                }
            }
        }
        for skip in skips {
            self.land(skip);
        }
        self.emit(Op::Jump(next), span);
        self.land(done);
        Ok(())
    }

    fn function(
        &mut self,
        name: &'a str,
        parameters: &'a [AstParameter],
        returns: Option<&'a AstTypeExpr>,
        code: Code<'a>,
        span: Span,
    ) -> Result<(), Fault> {
        let mut scope = Scope::default();
        let (mut defaults, mut types) = (Vec::new(), Vec::new());
        let (mut kind, mut listed) = (ParameterKind::Normal, Vec::new());
        for parameter in parameters {
            let (name, own_kind, annotation, default) = match &parameter.node {
                ParameterP::Normal(name, annotation, default) => {
                    (name, kind, annotation.as_deref(), default.as_deref())
                }
                ParameterP::NoArgs => {
                    kind = ParameterKind::Named;
                    continue;
                }
                ParameterP::Args(name, annotation) => {
                    kind = ParameterKind::Named;
                    (name, ParameterKind::Rest, annotation.as_deref(), None)
                }
                ParameterP::KwArgs(name, annotation) => {
                    (name, ParameterKind::NamedRest, annotation.as_deref(), None)
                }
                ParameterP::Slash => {
                    return self.refuse(parameter.span, "there are no parameters by place alone");
                }
            };
            scope.define(&name.node.ident);
            let index = |list: &mut Vec<&'a AstExpr>, e: Option<&'a AstExpr>| {
                e.map(|e| {
                    list.push(e);
                    list.len() as u32 - 1
                })
            };
            let default = index(&mut defaults, default);
            let annotation = index(&mut types, annotation.map(|a| &a.expr));
            let name = self.symbol(&name.node.ident);
            listed.push(Parameter { name, kind: own_kind, default, annotation });
        }
        // Defaults and types are evaluated where the function is made, not within it.
        self.expressions_of(&defaults)?;
        self.expressions_of(&types)?;
        if let Some(returns) = returns {
            self.expression(&returns.expr)?;
        }
        if let Code::Statement(body) = code {
            let mut names = Vec::new();
            assigned(body, &mut names);
            for name in names {
                scope.define(name);
            }
        }
        let positional = listed.iter().filter(|p| p.kind == ParameterKind::Normal).count() as u32;
        let mut by_name: Vec<_> = listed
            .iter()
            .zip(0..)
            .filter(|(p, _)| matches!(p.kind, ParameterKind::Normal | ParameterKind::Named))
            .map(|(p, index)| (p.name, index))
            .collect();
        by_name.sort_unstable();
        let index = self.program.functions.len() as u32;
        let code_name = self.symbol(name);
        self.program.functions.push(FunctionCode {
            name: code_name,
            offset: span.begin().get(),
            entry: 0,
            positional,
            simple: listed.len() == positional as usize && types.is_empty(),
            parameters: listed,
            by_name,
            defaults: defaults.len() as u32,
            types: types.len() as u32 + u32::from(returns.is_some()),
            returns: returns.is_some(),
            slots: 0,
            stack: 0,
            shared: Vec::new(),
            captures: Vec::new(),
        });
        self.scopes.push(scope);
        self.bodies.push(Body::default());
        match code {
            Code::Statement(body) => {
                self.statement(body)?;
                self.emit(Op::End, span);
            }
            Code::Expression(value) => {
                self.expression(value)?;
                self.emit(Op::Return, value.span);
            }
        }
        self.finish(index);
        self.emit(Op::Function(index), span);
        Ok(())
    }

    fn expressions_of(&mut self, expressions: &[&'a AstExpr]) -> Result<(), Fault> {
        expressions.iter().try_for_each(|expression| self.expression(expression))
    }
}

const NO_FIELDS: &str = "attributes cannot be assigned";
const NO_DIVISION: &str = "there are no floats and so no `/`; use `//`";

/// What a function runs.
#[derive(Clone, Copy)]
enum Code<'a> {
    Statement(&'a AstStmt),
    Expression(&'a AstExpr),
}

/// What a comprehension makes of each round.
enum Made<'a> {
    Element(&'a AstExpr),
    Entry(&'a AstExpr, &'a AstExpr),
}
