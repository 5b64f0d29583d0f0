//! Functions: parameters, defaults and types, and their bodies.

use super::{Body, Compiler};
use crate::actor::{
    error::Fault,
    syntax::{
        code::{FunctionCode, Op, Parameter, ParameterKind},
        scope::{Scope, assigned},
    },
};
use starlark_syntax::{
    codemap::Span,
    syntax::ast::{AstExpr, AstParameter, AstStmt, AstTypeExpr, ParameterP},
};

impl<'a> Compiler<'a, '_> {
    pub(super) fn function(
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

/// What a function runs.
#[derive(Clone, Copy)]
pub(super) enum Code<'a> {
    Statement(&'a AstStmt),
    Expression(&'a AstExpr),
}
