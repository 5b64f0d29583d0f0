//! Expressions, calls and comprehensions.

use super::{Compiler, at, function::FunctionSource};
use crate::actor::{
    error::Fault,
    gas::Cause,
    syntax::{
        absent,
        code::{BinOp, CallSite, Op},
        scan::integer,
        scope::targets,
    },
    value::{Arena, Value},
};
use num_traits::ToPrimitive;
use ruff_python_ast::{self as ast, BoolOp, CmpOp, Comprehension, Expr, Number, UnaryOp};
use ruff_text_size::Ranged;
use std::collections::BTreeSet;

impl<'a> Compiler<'a, '_> {
    pub(super) fn expression(&mut self, expression: &'a Expr) -> Result<(), Fault> {
        let span = at(expression);
        match expression {
            Expr::Name(name) => self.load(name.id.as_str(), span)?,
            Expr::NoneLiteral(_) => self.known(Value::None, span)?,
            Expr::BooleanLiteral(of) => self.known(Value::Bool(of.value), span)?,
            Expr::EllipsisLiteral(_) => self.push_constant(Value::Ellipsis, span),
            Expr::NumberLiteral(of) => self.number(of, span)?,
            Expr::StringLiteral(of) => self.text(of.value.to_str(), span)?,
            Expr::FString(of) => self.interpolated(of, span)?,
            Expr::Tuple(of) => {
                if self.elements(&of.elts, Op::Tuple(of.elts.len() as u32), span)? {
                    self.emit(Op::Seal, span);
                }
            }
            Expr::List(of) => {
                self.elements(&of.elts, Op::List(of.elts.len() as u32), span)?;
            }
            Expr::Dict(of) => self.dict(of, span)?,
            Expr::Attribute(of) => {
                self.expression(&of.value)?;
                let name = self.symbol(of.attr.as_str());
                self.emit(Op::Attribute(name), span);
            }
            Expr::Call(call) => self.call(call, span)?,
            Expr::Subscript(of) => {
                self.expression(&of.value)?;
                let Expr::Slice(slice) = &*of.slice else {
                    self.expression(&of.slice)?;
                    self.emit(Op::Index, span);
                    return Ok(());
                };
                let mut mask = 0;
                let parts = [&slice.lower, &slice.upper, &slice.step];
                for (bit, part) in parts.into_iter().enumerate() {
                    if let Some(part) = part {
                        self.expression(part)?;
                        mask |= 1 << bit;
                    }
                }
                self.emit(Op::Slice(mask), span);
            }
            Expr::Lambda(lambda) => {
                let body = FunctionSource::Expression(&lambda.body);
                self.function(LAMBDA, lambda.parameters.as_deref(), None, body, span)?;
            }
            Expr::UnaryOp(of) => {
                self.expression(&of.operand)?;
                let op = match of.op {
                    UnaryOp::Not => Op::Not,
                    UnaryOp::USub => Op::Minus,
                    UnaryOp::UAdd => Op::Plus,
                    UnaryOp::Invert => Op::Invert,
                };
                self.emit(op, span);
            }
            Expr::BinOp(of) => {
                let op = self.binary_of(of.op, span)?;
                self.expression(&of.left)?;
                self.expression(&of.right)?;
                self.emit(Op::Binary(op), span);
            }
            Expr::BoolOp(of) => self.logic(of, span)?,
            Expr::Compare(of) => self.comparison(of, span)?,
            Expr::If(of) => {
                self.expression(&of.test)?;
                let skip = self.emit(Op::JumpIfFalse(0), span);
                self.expression(&of.body)?;
                let end = self.emit(Op::Jump(0), span);
                self.body().depth -= 1;
                self.land(skip);
                self.expression(&of.orelse)?;
                self.land(end);
            }
            Expr::ListComp(of) => self.list_of(&of.elt, &of.generators, span)?,
            // A generator is only used for its elements, so a list serves.
            Expr::Generator(of) => self.list_of(&of.elt, &of.generators, span)?,
            Expr::DictComp(of) => {
                let Some(key) = of.key.as_deref() else {
                    return self.refuse(span, "a dict is made of keys and values: k: v for …");
                };
                self.emit(Op::Dict, span);
                self.comprehension(&of.generators, &Made::Entry(key, &of.value))?;
            }
            other => return self.refuse(span, absent::expression(other)),
        }
        Ok(())
    }

    /// A value with its own keyword.
    fn known(&mut self, value: Value, span: u32) -> Result<(), Fault> {
        // It costs as much as finding a name.
        self.meter.pay(Cause::Loading, self.scopes.len() as u64)?;
        self.push_constant(value, span);
        Ok(())
    }

    /// The elements of a list or tuple, and `op`, which makes it. Returns whether a list was made
    /// instead because collections are spread into it.
    fn elements(&mut self, elements: &'a [Expr], op: Op, span: u32) -> Result<bool, Fault> {
        let starred = |element: &Expr| matches!(element, Expr::Starred(_));
        let Some(first) = elements.iter().position(starred) else {
            elements.iter().try_for_each(|element| self.expression(element))?;
            self.emit(op, span);
            return Ok(false);
        };
        let (before, rest) = elements.split_at(first);
        before.iter().try_for_each(|element| self.expression(element))?;
        self.emit(Op::List(first as u32), span);
        for element in rest {
            match element {
                Expr::Starred(of) => {
                    self.expression(&of.value)?;
                    self.emit(Op::Extend, at(element));
                }
                element => {
                    self.expression(element)?;
                    self.emit(Op::Append, at(element));
                }
            }
        }
        Ok(true)
    }

    fn dict(&mut self, of: &'a ast::ExprDict, span: u32) -> Result<(), Fault> {
        self.emit(Op::Dict, span);
        let mut put = Op::Entry;
        for item in &of.items {
            match &item.key {
                Some(key) => {
                    self.expression(key)?;
                    self.expression(&item.value)?;
                    self.emit(put, at(key));
                }
                None => {
                    self.expression(&item.value)?;
                    self.emit(Op::Merge, at(&item.value));
                    // Entries after a dict may replace its entries.
                    put = Op::Put;
                }
            }
        }
        Ok(())
    }

    fn logic(&mut self, of: &'a ast::ExprBoolOp, span: u32) -> Result<(), Fault> {
        let (first, others) = of.values.split_first().expect("it has two operands at least");
        self.expression(first)?;
        for operand in others {
            let jump = match of.op {
                BoolOp::And => self.emit(Op::JumpIfFalseOrPop(0), span),
                BoolOp::Or => self.emit(Op::JumpIfTrueOrPop(0), span),
            };
            self.expression(operand)?;
            self.land(jump);
        }
        Ok(())
    }

    /// A comparison. Each operand is evaluated once; evaluation ends at the first pair that fails.
    fn comparison(&mut self, of: &'a ast::ExprCompare, span: u32) -> Result<(), Fault> {
        self.expression(&of.left)?;
        let (mut left, mut fails) = (&*of.left, Vec::new());
        let last = of.comparators.len() - 1;
        for (index, (op, right)) in of.ops.iter().zip(&of.comparators).enumerate() {
            let op = self.comparison_of(*op, left, right)?;
            self.expression(right)?;
            if index < last {
                self.emit(Op::CopyUnder, span);
                self.emit(Op::Binary(op), span);
                fails.push(self.emit(Op::JumpIfFalseOrPop(0), span));
            } else {
                self.emit(Op::Binary(op), span);
            }
            left = right;
        }
        if fails.is_empty() {
            return Ok(());
        }
        let end = self.emit(Op::Jump(0), span);
        // If a pair fails, the operand for the next pair is below the result.
        self.body().depth += 1;
        for fail in fails {
            self.land(fail);
        }
        self.emit(Op::DropUnder, span);
        self.land(end);
        Ok(())
    }

    fn comparison_of(&self, op: CmpOp, left: &Expr, right: &Expr) -> Result<BinOp, Fault> {
        let op = match op {
            CmpOp::Eq => BinOp::Equal,
            CmpOp::NotEq => BinOp::NotEqual,
            CmpOp::Lt => BinOp::Less,
            CmpOp::LtE => BinOp::LessOrEqual,
            CmpOp::Gt => BinOp::Greater,
            CmpOp::GtE => BinOp::GreaterOrEqual,
            CmpOp::In => BinOp::In,
            CmpOp::NotIn => BinOp::NotIn,
            CmpOp::Is => BinOp::Is,
            CmpOp::IsNot => BinOp::IsNot,
        };
        if matches!(op, BinOp::Is | BinOp::IsNot)
            && let Some(literal) =
                [left, right].into_iter().find(|operand| absent::is_literal(operand))
        {
            let why = "`is` asks for None, True, False or the same object; compare values with ==";
            return self.refuse(at(literal), why);
        }
        Ok(op)
    }

    fn number(&mut self, of: &'a ast::ExprNumberLiteral, span: u32) -> Result<(), Fault> {
        let value = match &of.value {
            Number::Int(int) => match int.as_u64().and_then(|int| i64::try_from(int).ok()) {
                Some(int) => Value::Int(int),
                None => {
                    let range = of.range();
                    let literal = &self.program.lines.source()
                        [range.start().to_usize()..range.end().to_usize()];
                    let Ok(int) = integer(literal, self.meter.limits.bits) else {
                        return self.refuse(span, "an integer literal is too long");
                    };
                    match int.to_i64() {
                        Some(int) => Value::Int(int),
                        None => {
                            self.meter.bits_fit(int.bits())?;
                            self.meter.alloc(Arena::integer_cost(int.bits()))?;
                            self.arena.integer(int)
                        }
                    }
                }
            },
            Number::Float(_) => return self.refuse(span, absent::FLOATS),
            Number::Complex { .. } => return self.refuse(span, absent::COMPLEX),
        };
        self.push_constant(value, span);
        Ok(())
    }

    fn call(&mut self, call: &'a ast::ExprCall, span: u32) -> Result<(), Fault> {
        let method = match &*call.func {
            Expr::Attribute(of) => {
                self.expression(&of.value)?;
                let name = self.symbol(of.attr.as_str());
                self.emit(Op::Method(name), at(&*call.func));
                true
            }
            callee => {
                self.expression(callee)?;
                false
            }
        };
        let mut site =
            CallSite { positional: 0, names: Vec::new(), rest: false, named_rest: false };
        let (mut rest, mut named_rest, mut given) = (None, None, BTreeSet::new());
        for argument in &call.arguments.args {
            match argument {
                Expr::Starred(of) if rest.is_none() => rest = Some(&*of.value),
                Expr::Starred(_) => {
                    return self.refuse(at(argument), "a call takes one *list: concatenate them");
                }
                _ if rest.is_some() => {
                    return self.refuse(at(argument), "positional arguments come before *list");
                }
                value => {
                    self.expression(value)?;
                    site.positional += 1;
                }
            }
        }
        for keyword in &call.arguments.keywords {
            match &keyword.arg {
                _ if named_rest.is_some() => {
                    return self.refuse(at(keyword), "a call takes one **dict, which comes last");
                }
                Some(name) => {
                    self.expression(&keyword.value)?;
                    let symbol = self.symbol(name.as_str());
                    if !given.insert(symbol) {
                        let why = format!("the argument {name} is given twice");
                        return self.refuse(at(keyword), why);
                    }
                    site.names.push(symbol);
                }
                None => named_rest = Some(&keyword.value),
            }
        }
        for value in [rest, named_rest].into_iter().flatten() {
            self.expression(value)?;
        }
        (site.rest, site.named_rest) = (rest.is_some(), named_rest.is_some());
        self.program.sites.push(site);
        let site = self.program.sites.len() as u32 - 1;
        self.emit(if method { Op::CallMethod(site) } else { Op::Call(site) }, span);
        Ok(())
    }

    fn list_of(
        &mut self,
        element: &'a Expr,
        generators: &'a [Comprehension],
        span: u32,
    ) -> Result<(), Fault> {
        self.emit(Op::List(0), span);
        self.comprehension(generators, &Made::Element(element))
    }

    /// A comprehension. The variables of all its clauses are its own; only the collection of the
    /// first clause is evaluated outside of it. The destination of the elements is on the stack and
    /// stays there.
    fn comprehension(
        &mut self,
        generators: &'a [Comprehension],
        made: &Made<'a>,
    ) -> Result<(), Fault> {
        let (first, rest) = generators.split_first().expect("a comprehension has a for");
        self.expression(&first.iter)?;
        let mut names = Vec::new();
        for clause in generators {
            targets(&clause.target, &mut names);
        }
        names.sort_unstable();
        names.dedup();
        for slot in self.scope().open_block(names) {
            self.emit(Op::ClearLocal(slot), at(&first.target));
        }
        self.clause(first, rest, made)?;
        self.scope().close_block();
        Ok(())
    }

    /// A clause and those after it. The collection that it loops over is on the stack.
    fn clause(
        &mut self,
        clause: &'a Comprehension,
        rest: &'a [Comprehension],
        made: &Made<'a>,
    ) -> Result<(), Fault> {
        let span = at(&clause.target);
        self.emit(Op::Loop, at(&clause.iter));
        let next = self.here();
        let done = self.emit(Op::Next(0), span);
        self.assign(&clause.target)?;
        let mut skips = Vec::new();
        for condition in &clause.ifs {
            self.expression(condition)?;
            skips.push(self.emit(Op::JumpIfFalse(0), at(condition)));
        }
        match (rest.split_first(), made) {
            (Some((inner, rest)), _) => {
                self.expression(&inner.iter)?;
                self.clause(inner, rest, made)?;
            }
            (None, Made::Element(element)) => {
                self.expression(element)?;
                self.emit(Op::Append, at(*element));
            }
            (None, Made::Entry(key, value)) => {
                self.expression(key)?;
                self.expression(value)?;
                self.emit(Op::Put, at(*key));
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

/// The result of each round of a comprehension.
enum Made<'a> {
    Element(&'a Expr),
    Entry(&'a Expr, &'a Expr),
}

/// Name of a function without one.
const LAMBDA: &str = "lambda";
