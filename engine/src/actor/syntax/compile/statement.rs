//! Statements and assignments.

use super::{Compiler, LoopBody, at, function::FunctionSource};
use crate::actor::{
    error::{Fault, shorten},
    gas::Cause,
    syntax::{
        absent,
        code::{BinOp, Op},
        scope::{Variable, resolve},
    },
    value::{Value, universe},
};
use ruff_python_ast::{Expr, Operator, Stmt, StmtFor, StmtIf, StmtWhile};

impl<'a> Compiler<'a, '_> {
    pub(super) fn block(&mut self, statements: &'a [Stmt]) -> Result<(), Fault> {
        statements.iter().try_for_each(|statement| self.statement(statement))
    }

    fn statement(&mut self, statement: &'a Stmt) -> Result<(), Fault> {
        let span = at(statement);
        match statement {
            Stmt::Pass(_) => {
                self.emit(Op::Node, span);
            }
            Stmt::Break(_) => {
                self.emit(Op::Node, span);
                let jump = self.emit(Op::Jump(0), span);
                match self.body().loops.last_mut() {
                    Some(innermost) => innermost.breaks.push(jump),
                    None => return self.refuse(span, "`break` outside of a loop"),
                }
            }
            Stmt::Continue(_) => {
                self.emit(Op::Node, span);
                let Some(next) = self.body().loops.last().map(|innermost| innermost.next) else {
                    return self.refuse(span, "`continue` outside of a loop");
                };
                self.emit(Op::Jump(next), span);
            }
            Stmt::Return(of) => {
                if self.scopes.len() == 1 {
                    return self.refuse(span, "`return` outside of a function");
                }
                match &of.value {
                    Some(value) => self.expression(value)?,
                    None => self.push_constant(Value::None, span),
                }
                self.emit(Op::Return, span);
            }
            // A documentation string does nothing.
            Stmt::Expr(of) if matches!(*of.value, Expr::StringLiteral(_)) => {}
            Stmt::Expr(of) => {
                self.expression(&of.value)?;
                self.emit(Op::Pop, span);
            }
            Stmt::Assign(assign) => {
                self.expression(&assign.value)?;
                let (last, others) = assign.targets.split_last().expect("it assigns something");
                for target in others {
                    self.emit(Op::Copy, at(target));
                    self.assign(target)?;
                }
                self.assign(last)?;
            }
            Stmt::AnnAssign(assign) => {
                let Some(value) = &assign.value else {
                    return self
                        .refuse(span, "a variable must be declared with its value: x: T = value");
                };
                self.expression(value)?;
                self.expression(&assign.annotation)?;
                self.emit(Op::Check, at(&*assign.annotation));
                self.assign(&assign.target)?;
            }
            Stmt::AugAssign(assign) => {
                let op = self.binary_of(assign.op, span)?;
                self.augment(&assign.target, op, &assign.value, span)?;
            }
            Stmt::If(of) => self.branches(of)?,
            Stmt::For(of) => self.for_loop(of)?,
            Stmt::While(of) => self.while_loop(of)?,
            Stmt::FunctionDef(def) => {
                if let Some(types) = &def.type_params {
                    return self
                        .refuse(at(&**types), "there are no type parameters; use typing.Any");
                }
                let name = def.name.as_str();
                let code = FunctionSource::Block(&def.body);
                self.function(name, Some(&def.parameters), def.returns.as_deref(), code, span)?;
                self.store(name, at(&def.name));
            }
            Stmt::Assert(of) => {
                self.expression(&of.test)?;
                let holds = self.emit(Op::JumpIfTrue(0), span);
                if let Some(message) = &of.msg {
                    self.expression(message)?;
                }
                self.emit(Op::Fail(of.msg.is_some()), span);
                self.land(holds);
            }
            Stmt::Delete(of) => {
                for target in &of.targets {
                    let Expr::Subscript(element) = target else {
                        return self.refuse(at(target), absent::DELETE);
                    };
                    if let Expr::Slice(_) = *element.slice {
                        return self.refuse(at(target), absent::DELETE);
                    }
                    self.expression(&element.value)?;
                    self.expression(&element.slice)?;
                    self.emit(Op::DeleteIndex, at(target));
                }
            }
            other => return self.refuse(span, absent::statement(other)),
        }
        Ok(())
    }

    fn branches(&mut self, of: &'a StmtIf) -> Result<(), Fault> {
        let mut ends = Vec::new();
        let mut branch = (at(of), Some(&*of.test), &of.body);
        let mut clauses = of.elif_else_clauses.iter();
        loop {
            let (span, test, body) = branch;
            let Some(test) = test else {
                self.block(body)?;
                break;
            };
            self.expression(test)?;
            let skip = self.emit(Op::JumpIfFalse(0), span);
            self.block(body)?;
            let Some(clause) = clauses.next() else {
                self.land(skip);
                break;
            };
            ends.push(self.emit(Op::Jump(0), span));
            self.land(skip);
            branch = (at(clause), clause.test.as_ref(), &clause.body);
        }
        for end in ends {
            self.land(end);
        }
        Ok(())
    }

    fn for_loop(&mut self, of: &'a StmtFor) -> Result<(), Fault> {
        let span = at(of);
        self.expression(&of.iter)?;
        self.emit(Op::Loop, at(&*of.iter));
        let next = self.here();
        let done = self.emit(Op::Next(0), span);
        self.assign(&of.target)?;
        self.body().loops.push(LoopBody { next, breaks: Vec::new() });
        self.block(&of.body)?;
        self.emit(Op::Jump(next), span);
        let ended = self.body().loops.pop().expect("the loop that was begun");
        if of.orelse.is_empty() {
            if !ended.breaks.is_empty() {
                self.land_all(ended.breaks);
                self.emit(Op::EndLoop, span);
            }
            self.land(done);
            return Ok(());
        }
        self.land(done);
        self.block(&of.orelse)?;
        if !ended.breaks.is_empty() {
            let end = self.emit(Op::Jump(0), span);
            self.land_all(ended.breaks);
            self.emit(Op::EndLoop, span);
            self.land(end);
        }
        Ok(())
    }

    fn while_loop(&mut self, of: &'a StmtWhile) -> Result<(), Fault> {
        let span = at(of);
        let next = self.here();
        self.expression(&of.test)?;
        let done = self.emit(Op::JumpIfFalse(0), span);
        self.emit(Op::Round, span);
        self.body().loops.push(LoopBody { next, breaks: Vec::new() });
        self.block(&of.body)?;
        self.emit(Op::Jump(next), span);
        let ended = self.body().loops.pop().expect("the loop that was begun");
        self.land(done);
        self.block(&of.orelse)?;
        self.land_all(ended.breaks);
        Ok(())
    }

    fn land_all(&mut self, jumps: Vec<usize>) {
        for from in jumps {
            self.land(from);
        }
    }

    /// Assigns the value on the stack.
    pub(super) fn assign(&mut self, target: &'a Expr) -> Result<(), Fault> {
        let span = at(target);
        match target {
            Expr::Name(name) => self.store(name.id.as_str(), span),
            Expr::Tuple(of) => self.unpack(&of.elts, span)?,
            Expr::List(of) => self.unpack(&of.elts, span)?,
            Expr::Subscript(of) => {
                if let Expr::Slice(_) = *of.slice {
                    return self.refuse(span, "a slice cannot be assigned; make a new list");
                }
                self.expression(&of.value)?;
                self.expression(&of.slice)?;
                self.emit(Op::StoreIndex, span);
            }
            Expr::Attribute(_) => return self.refuse(span, absent::FIELDS),
            Expr::Starred(_) => return self.refuse(span, "a starred name must be one of several"),
            _ => return self.refuse(span, "this cannot be assigned"),
        }
        Ok(())
    }

    fn unpack(&mut self, targets: &'a [Expr], span: u32) -> Result<(), Fault> {
        let starred = |target: &Expr| matches!(target, Expr::Starred(_));
        match targets.iter().position(starred) {
            None => {
                self.emit(Op::Unpack(targets.len() as u32), span);
            }
            Some(first) => {
                let last = targets.len() - first - 1;
                if let Some(second) = targets[first + 1..].iter().find(|target| starred(target)) {
                    return self.refuse(at(second), "only one starred name can take the rest");
                }
                self.emit(Op::UnpackRest(first as u32, last as u32), span);
            }
        }
        targets.iter().try_for_each(|target| match target {
            Expr::Starred(rest) => self.assign(&rest.value),
            target => self.assign(target),
        })
    }

    fn augment(
        &mut self,
        target: &'a Expr,
        op: BinOp,
        value: &'a Expr,
        span: u32,
    ) -> Result<(), Fault> {
        match target {
            Expr::Name(name) => {
                let name = name.id.as_str();
                self.load(name, at(target))?;
                self.expression(value)?;
                self.emit(Op::Augment(op), span);
                self.store(name, at(target));
            }
            Expr::Subscript(of) => {
                if let Expr::Slice(_) = *of.slice {
                    return self.refuse(span, "a slice cannot be assigned; make a new list");
                }
                self.expression(&of.value)?;
                self.expression(&of.slice)?;
                self.emit(Op::CopyTwo, at(target));
                self.emit(Op::Index, at(target));
                self.expression(value)?;
                self.emit(Op::Augment(op), span);
                self.emit(Op::StoreAugmented, at(target));
            }
            Expr::Attribute(_) => return self.refuse(at(target), absent::FIELDS),
            _ => return self.refuse(span, "a tuple cannot be augmented"),
        }
        Ok(())
    }

    pub(super) fn binary_of(&self, op: Operator, span: u32) -> Result<BinOp, Fault> {
        Ok(match op {
            Operator::Add => BinOp::Add,
            Operator::Sub => BinOp::Subtract,
            Operator::Mult => BinOp::Multiply,
            Operator::Pow => BinOp::Power,
            Operator::FloorDiv => BinOp::FloorDivide,
            Operator::Mod => BinOp::Percent,
            Operator::BitAnd => BinOp::BitAnd,
            Operator::BitOr => BinOp::BitOr,
            Operator::BitXor => BinOp::BitXor,
            Operator::LShift => BinOp::LeftShift,
            Operator::RShift => BinOp::RightShift,
            Operator::Div => return self.refuse(span, absent::DIVISION),
            Operator::MatMult => return self.refuse(span, absent::AT),
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

    pub(super) fn load(&mut self, name: &str, span: u32) -> Result<(), Fault> {
        // A name is searched for in all enclosing functions.
        self.meter.pay(Cause::Loading, self.scopes.len() as u64)?;
        if let Some(op) = self.variable(name) {
            self.emit(op, span);
        } else if let Some(value) = universe(name) {
            self.push_constant(value, span);
        } else {
            let hint = absent::name(name).map_or_else(String::new, |hint| format!(": {hint}"));
            return self.refuse(span, format!("undefined name {}{hint}", shorten(name)));
        }
        Ok(())
    }

    pub(super) fn store(&mut self, name: &str, span: u32) {
        let op = match self.variable(name) {
            Some(Op::Local(slot)) => Op::StoreLocal(slot),
            Some(Op::Global(global)) => Op::StoreGlobal(global),
            other => unreachable!("{name} is assigned here and so local here, not {other:?}"),
        };
        self.emit(op, span);
    }
}
