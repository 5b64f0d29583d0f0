//! Statements and assignments.

use super::{Compiler, LoopBody, NO_DIVISION, function::Code};
use crate::actor::{
    builtin,
    error::Fault,
    eval::shorten,
    gas::Cause,
    syntax::{
        code::Op,
        scope::{Variable, resolve},
    },
    value::Value,
};
use starlark_syntax::{
    codemap::Span,
    syntax::ast::{
        AssignOp, AssignTargetP, AstAssignTarget, AstExpr, AstLiteral, AstStmt, BinOp, ExprP, ForP,
        StmtP,
    },
};

const NO_FIELDS: &str = "attributes cannot be assigned";

impl<'a> Compiler<'a, '_> {
    pub(super) fn statement(&mut self, statement: &'a AstStmt) -> Result<(), Fault> {
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
    pub(super) fn assign(&mut self, target: &'a AstAssignTarget) -> Result<(), Fault> {
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

    pub(super) fn load(&mut self, name: &'a str, span: Span) -> Result<(), Fault> {
        // A name is looked for in every function around.
        self.meter.pay(Cause::Loading, self.scopes.len() as u64)?;
        if let Some(op) = self.variable(name) {
            self.emit(op, span);
        } else if let Some(value) = builtin::universe(name) {
            self.push_constant(value, span);
        } else {
            return self.refuse(span, format!("undefined name {}", shorten(name)));
        }
        Ok(())
    }

    pub(super) fn store(&mut self, name: &str, span: Span) {
        let op = match self.variable(name) {
            Some(Op::Local(slot)) => Op::StoreLocal(slot),
            Some(Op::Global(global)) => Op::StoreGlobal(global),
            other => unreachable!("{name} is assigned here and so local here, not {other:?}"),
        };
        self.emit(op, span);
    }
}
