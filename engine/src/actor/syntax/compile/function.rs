//! Functions: parameters, defaults and types, and their bodies.

use super::{Compiler, FunctionBody, at};
use crate::actor::{
    error::Fault,
    syntax::{
        absent,
        code::{FunctionCode, Op, Parameter, ParameterKind},
        scope::{Scope, assigned},
    },
};
use ruff_python_ast::{self as ast, Expr, Stmt};

impl<'a> Compiler<'a, '_> {
    pub(super) fn function(
        &mut self,
        name: &str,
        parameters: Option<&'a ast::Parameters>,
        returns: Option<&'a Expr>,
        code: FunctionSource<'a>,
        span: u32,
    ) -> Result<(), Fault> {
        let mut scope = Scope::default();
        let (mut defaults, mut types) = (Vec::new(), Vec::new());
        let mut listed: Vec<Parameter> = Vec::new();
        for (parameter, kind, default) in self.parameters_of(parameters)? {
            let name = parameter.name.as_str();
            let index = |list: &mut Vec<&'a Expr>, e: Option<&'a Expr>| {
                e.map(|e| {
                    list.push(e);
                    list.len() as u32 - 1
                })
            };
            let default = index(&mut defaults, default);
            let annotation = index(&mut types, parameter.annotation.as_deref());
            if scope.define(name) as usize != listed.len() {
                return self.refuse(at(parameter), format!("the parameter {name} appears twice"));
            }
            let (name, offset) = (self.symbol(name), at(parameter));
            listed.push(Parameter { name, kind, default, annotation, offset });
        }
        // Defaults and types are evaluated when the function is made, not when it is called.
        self.expressions_of(&defaults)?;
        for annotation in types.iter().copied().chain(returns) {
            if absent::is_literal(annotation) {
                return self.refuse(at(annotation), "an annotation must be a type, not a value");
            }
            self.expression(annotation)?;
        }
        if let FunctionSource::Block(body) = code {
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
            offset: span,
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
        self.bodies.push(FunctionBody::default());
        match code {
            FunctionSource::Block(body) => {
                self.block(body)?;
                self.emit(Op::End, span);
            }
            FunctionSource::Expression(value) => {
                self.expression(value)?;
                self.emit(Op::Return, at(value));
            }
        }
        self.finish(index);
        self.emit(Op::Function(index), span);
        Ok(())
    }

    fn parameters_of(
        &self,
        parameters: Option<&'a ast::Parameters>,
    ) -> Result<Vec<Written<'a>>, Fault> {
        let Some(parameters) = parameters else { return Ok(Vec::new()) };
        if let Some(first) = parameters.posonlyargs.first() {
            return self
                .refuse(at(first), "there are no positional-only parameters: leave out the /");
        }
        let mut all = Vec::new();
        let with_default = |kind| {
            move |of: &'a ast::ParameterWithDefault| (&of.parameter, kind, of.default.as_deref())
        };
        all.extend(parameters.args.iter().map(with_default(ParameterKind::Normal)));
        all.extend(parameters.vararg.iter().map(|of| (&**of, ParameterKind::Rest, None)));
        all.extend(parameters.kwonlyargs.iter().map(with_default(ParameterKind::Named)));
        all.extend(parameters.kwarg.iter().map(|of| (&**of, ParameterKind::NamedRest, None)));
        Ok(all)
    }

    fn expressions_of(&mut self, expressions: &[&'a Expr]) -> Result<(), Fault> {
        expressions.iter().try_for_each(|expression| self.expression(expression))
    }
}

/// A parameter, how it takes its value, and its default.
type Written<'a> = (&'a ast::Parameter, ParameterKind, Option<&'a Expr>);

#[derive(Clone, Copy)]
pub(super) enum FunctionSource<'a> {
    Block(&'a [Stmt]),
    Expression(&'a Expr),
}
