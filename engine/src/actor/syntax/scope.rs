//! Names resolved to variables, once, when a module is compiled.
//!
//! A name that a function assigns anywhere is local to the whole function, so that reading it
//! earlier is an error and never finds an outer variable of that name. A comprehension has its own
//! variables. A variable of an enclosing function is shared with the inner functions that use it.

use super::code::Capture;
use ruff_python_ast::{Expr, Stmt};
use std::collections::{BTreeMap, BTreeSet};

/// A variable as the code of one function sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Variable {
    Local(u32),
    Captured(u32),
}

#[derive(Default)]
pub(super) struct Scope<'a> {
    names: BTreeMap<&'a str, u32>,
    /// Variables of the open comprehensions by name, the innermost last.
    inner: BTreeMap<&'a str, Vec<u32>>,
    /// Their names, by comprehension.
    blocks: Vec<Vec<&'a str>>,
    slots: u32,
    /// Slots that inner functions use.
    pub(super) shared: BTreeSet<u32>,
    /// Variables of enclosing functions, as (index of the function, slot).
    captured: BTreeMap<(usize, u32), u32>,
    pub(super) captures: Vec<Capture>,
}

impl<'a> Scope<'a> {
    /// Gives a name a slot, unless it has one.
    pub(super) fn define(&mut self, name: &'a str) -> u32 {
        if let Some(slot) = self.names.get(name) {
            return *slot;
        }
        let slot = self.new_slot();
        self.names.insert(name, slot);
        slot
    }

    fn new_slot(&mut self) -> u32 {
        self.slots += 1;
        self.slots - 1
    }

    pub(super) const fn slots(&self) -> u32 {
        self.slots
    }

    /// Begins a comprehension. Its variables, each named once, hide others with their names.
    pub(super) fn open_block(&mut self, names: Vec<&'a str>) -> Vec<u32> {
        let mut slots = Vec::with_capacity(names.len());
        for name in &names {
            let slot = self.new_slot();
            self.inner.entry(name).or_default().push(slot);
            slots.push(slot);
        }
        self.blocks.push(names);
        slots
    }

    pub(super) fn close_block(&mut self) {
        for name in self.blocks.pop().unwrap_or_default() {
            self.inner.entry(name).or_default().pop();
        }
    }

    fn find(&self, name: &str) -> Option<u32> {
        let innermost = self.inner.get(name).and_then(|slots| slots.last());
        innermost.or_else(|| self.names.get(name)).copied()
    }
}

/// The variable of this name that the innermost of the nested `scopes` sees.
pub(super) fn resolve(scopes: &mut [Scope<'_>], name: &str) -> Option<Variable> {
    let current = scopes.len() - 1;
    let (owner, slot) =
        (0..=current).rev().find_map(|index| Some((index, scopes[index].find(name)?)))?;
    if owner == current {
        return Some(Variable::Local(slot));
    }
    scopes[owner].shared.insert(slot);
    let mut capture = Capture::Shared(slot);
    for scope in &mut scopes[owner + 1..] {
        let index = *scope.captured.entry((owner, slot)).or_insert_with(|| {
            scope.captures.push(capture);
            scope.captures.len() as u32 - 1
        });
        capture = Capture::Captured(index);
    }
    match capture {
        Capture::Captured(index) => Some(Variable::Captured(index)),
        Capture::Shared(_) => unreachable!("the owner is further out"),
    }
}

/// All names that statements assign, except in inner functions.
pub(super) fn assigned<'a>(statements: &'a [Stmt], names: &mut Vec<&'a str>) {
    for statement in statements {
        match statement {
            Stmt::Assign(assign) => {
                assign.targets.iter().for_each(|target| targets(target, names));
            }
            Stmt::AnnAssign(assign) => targets(&assign.target, names),
            Stmt::AugAssign(assign) => targets(&assign.target, names),
            Stmt::If(branches) => {
                assigned(&branches.body, names);
                branches.elif_else_clauses.iter().for_each(|clause| assigned(&clause.body, names));
            }
            Stmt::For(of) => {
                targets(&of.target, names);
                assigned(&of.body, names);
                assigned(&of.orelse, names);
            }
            Stmt::While(of) => {
                assigned(&of.body, names);
                assigned(&of.orelse, names);
            }
            Stmt::FunctionDef(def) => names.push(def.name.as_str()),
            // Other statements assign nothing, or are refused.
            _ => {}
        }
    }
}

/// All names on the left side of an assignment.
pub(super) fn targets<'a>(target: &'a Expr, names: &mut Vec<&'a str>) {
    match target {
        Expr::Tuple(of) => of.elts.iter().for_each(|target| targets(target, names)),
        Expr::List(of) => of.elts.iter().for_each(|target| targets(target, names)),
        Expr::Starred(of) => targets(&of.value, names),
        Expr::Name(name) => names.push(name.id.as_str()),
        _ => {}
    }
}
