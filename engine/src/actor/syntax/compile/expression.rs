//! Expressions, calls and comprehensions.

use super::{Compiler, NO_DIVISION, function::Code};
use crate::actor::{
    error::Fault,
    syntax::{
        code::{CallSite, Op},
        scope::targets,
    },
    value::{Arena, Value},
};
use num_traits::ToPrimitive;
use starlark_syntax::{
    codemap::Span,
    lexer::TokenInt,
    syntax::ast::{
        ArgumentP, AstExpr, AstLiteral, AstNoPayload, BinOp, CallArgsP, Clause, ClauseP, ExprP,
        ForClause,
    },
};

impl<'a> Compiler<'a, '_> {
    pub(super) fn expression(&mut self, expression: &'a AstExpr) -> Result<(), Fault> {
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
        arguments: &'a CallArgsP<AstNoPayload>,
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
}

/// What a comprehension makes of each round.
enum Made<'a> {
    Element(&'a AstExpr),
    Entry(&'a AstExpr, &'a AstExpr),
}

/// Name of a function without one.
const LAMBDA: &str = "lambda";
