//! Features of Python that the language lacks: errors that name them and suggest a replacement.

use ruff_python_ast::{Expr, Stmt};

pub(super) const BYTES: &str = "there are no bytes literals; use text or 0x-hex";
pub(super) const TEMPLATES: &str = "there are no template strings; use an f-string";
pub(super) const FLOATS: &str = "there are no floats; use integers of a smaller unit";
pub(super) const COMPLEX: &str = "there are no complex numbers; use integers";
pub(super) const DIVISION: &str = "there are no floats and so no `/`; use `//`";
pub(super) const AT: &str = "there are no decorators and no `@`; call the function";
pub(super) const WALRUS: &str = "there is no `:=`; assign in a statement of its own";
pub(super) const FIELDS: &str = "attributes cannot be assigned; make a new record, or use a dict";
pub(super) const SETS: &str = "there are no sets; use a dict with None for values, or a list";
pub(super) const DELETE: &str = "del removes elements: del list[index], del dict[key]";
pub(super) const LOAD: &str = "there is no load; a module imports nothing";

const CATCH: &str = "nothing is caught: a call that fails changes nothing; check before, and use \
                     fail(message) or assert";
const IMPORT: &str = "there is no import; a module imports nothing: pvm_host, typing and mock are \
                      there";
const GLOBAL: &str = "variables outside of a function cannot be assigned in it; keep state in the \
                      store, or in a list or dict";
const LATER: &str = "nothing waits in a call; use a message, a timer or a job";

/// The reason why a word cannot occur in any module.
pub(super) fn word(word: &str) -> Option<String> {
    let (what, why) = match word {
        "class" => ("class", "there are no classes; use record(name = type, …)"),
        "try" | "except" | "finally" => (word, CATCH),
        "raise" => ("raise", "there are no exceptions; use fail(message) or assert"),
        "import" | "from" => (word, IMPORT),
        "global" | "nonlocal" => (word, GLOBAL),
        "async" | "await" => (word, LATER),
        "yield" => ("yield", "there are no generators; make a list"),
        "with" => ("with", "there are no contexts to enter; call the functions"),
        _ => return None,
    };
    Some(format!("`{what}`: {why}"))
}

/// The reason why a statement that the parser accepts is in no module.
pub(super) fn statement(statement: &Stmt) -> String {
    match statement {
        Stmt::Match(_) => "`match`: there are no patterns; use if and elif".into(),
        Stmt::TypeAlias(_) => "`type`: a type is a value; assign it: Name = T".into(),
        // A statement that begins with a keyword was refused before.
        _ => "this statement is not part of the language".into(),
    }
}

/// The replacement for something that Python finds by name.
pub(super) fn name(name: &str) -> Option<&'static str> {
    Some(match name {
        "load" => LOAD,
        "set" | "frozenset" => SETS,
        "float" | "complex" => FLOATS,
        "bytes" | "bytearray" => BYTES,
        "map" | "filter" => "write a comprehension",
        "iter" | "next" => "there are no iterators; use an index or a for",
        "open" | "input" | "eval" | "exec" | "compile" | "globals" | "locals" | "vars" => {
            "only pvm_host exists outside of the module"
        }
        "setattr" | "delattr" => FIELDS,
        "callable" => "use isinstance(x, typing.Callable)",
        "id" => "values have no addresses",
        "Exception" | "ValueError" | "KeyError" | "TypeError" | "AssertionError" => CATCH,
        "object" => "use typing.Any",
        _ => return None,
    })
}

/// The reason why an expression that the parser accepts is in no module.
pub(super) fn expression(expression: &Expr) -> &'static str {
    match expression {
        Expr::Set(_) | Expr::SetComp(_) => SETS,
        Expr::BytesLiteral(_) => BYTES,
        Expr::TString(_) => TEMPLATES,
        Expr::Named(_) => WALRUS,
        Expr::Await(_) => LATER,
        Expr::Yield(_) | Expr::YieldFrom(_) => "there are no generators; make a list",
        Expr::Starred(_) => "a * spreads a value only into a list, a tuple or a call",
        Expr::Slice(_) => "one slice at a time: there is one dimension",
        _ => "this expression is not part of the language",
    }
}

/// Whether an expression is a literal value, which is neither a type nor an object with an
/// identity.
pub(super) const fn is_literal(expression: &Expr) -> bool {
    matches!(
        expression,
        Expr::NumberLiteral(_)
            | Expr::StringLiteral(_)
            | Expr::FString(_)
            | Expr::List(_)
            | Expr::Tuple(_)
            | Expr::Dict(_)
    )
}
