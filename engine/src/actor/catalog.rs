//! The names that a module can call, from the engine's own tables, for tests that sweep over all.

use super::value::{Builtin, Method, Namespace};

/// All functions, as a module writes them: `len`, `pvm_host.emit`, `mock.call`.
pub fn functions() -> Vec<String> {
    let names = Builtin::ALL.iter().map(|builtin| builtin.name());
    let everywhere = names.filter(|name| Builtin::everywhere(name).is_some());
    let mut functions: Vec<_> = everywhere.map(str::to_owned).collect();
    for namespace in [Namespace::Host, Namespace::Typing, Namespace::Mock] {
        functions.extend(namespace.members().map(|name| format!("{}.{name}", namespace.name())));
    }
    functions
}

/// All methods, with the kind of value that has them: `("Text", "split")`.
pub fn methods() -> Vec<(&'static str, &'static str)> {
    let mut methods = Vec::new();
    for (kind, names) in Method::ALL {
        methods.extend(names.iter().map(|name| (*kind, *name)));
    }
    methods
}
