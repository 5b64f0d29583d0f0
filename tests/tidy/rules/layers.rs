//! Modules: each uses only those above it in the table at the top of its package's root. Tests may
//! use any, because their setup is not a dependency.

use super::{Rule, Sample};
use crate::{
    Finding,
    source::{File, LAYERED, Rust, Tree},
};
use syn::Item;

/// The table in `lib.rs` is the order: a module may use those above it.
pub const LAYERS: Rule = Rule {
    name: "layers",
    check,
    samples: &[
        Sample {
            files: &[
                (
                    "engine/src/lib.rs",
                    concat!(
                        "//! | module | subject |\n//! |---|---|\n//! | [`low`] | x |\n//! | [`high`] | x |\n",
                        "pub mod high;\npub mod low;\n"
                    ),
                ),
                ("engine/src/low.rs", "use crate::{low::a, high::b};\n"),
                (
                    "engine/src/high.rs",
                    "use crate::low;\nmod inner { use super::super::low::a; }\n",
                ),
            ],
            found: &["engine/src/low.rs:1"],
        },
        Sample {
            files: &[
                (
                    "cli/src/lib.rs",
                    concat!(
                        "//! | module | subject |\n//! |---|---|\n//! | `low` | x |\n//! | `high` | x |\n",
                        "mod high;\nmod low;\nfn main() { high::run(); }\n"
                    ),
                ),
                (
                    "cli/src/low.rs",
                    "mod part;\nmod inner { fn f() { dbg(super::super::high::g()); } }\n",
                ),
                ("cli/src/low/part.rs", "use super::x;\nuse super::super::high;\n"),
                ("cli/src/high.rs", "use super::low;\n"),
            ],
            found: &["cli/src/low.rs:2", "cli/src/low/part.rs:2"],
        },
        Sample {
            files: &[
                (
                    "devnet/src/lib.rs",
                    "//! | [`a`] | x |\n//! | [`gone`] | x |\npub mod a;\npub mod b;\n",
                ),
                ("devnet/src/a.rs", ""),
                ("devnet/src/b.rs", ""),
            ],
            found: &["devnet/src/lib.rs:1", "devnet/src/lib.rs:4"],
        },
        Sample {
            files: &[
                (
                    "devnet/src/lib.rs",
                    "//! | [`a`] | x |\n//! | [`b`] | x |\npub mod a;\npub mod b;\n",
                ),
                (
                    "devnet/src/a.rs",
                    concat!(
                        "use cowboy_engine::b;\nuse crate::VERSION;\n",
                        "#[cfg(test)]\nmod inner { use crate::b; }\n#[cfg(test)]\nmod tests;\n"
                    ),
                ),
                ("devnet/src/a/tests.rs", "use crate::b;\n"),
                ("devnet/src/b.rs", "use crate::a::A;\n"),
            ],
            found: &[],
        },
    ],
};

fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in LAYERED {
        let root = &format!("{package}/src/lib.rs");
        let Some((file, rust)) = tree.get(root).and_then(|file| Some((file, file.rust.as_ref()?)))
        else {
            continue;
        };
        let order = table(rust);
        complete(file, rust, &order, &mut findings);
        let source = root.trim_end_matches("lib.rs");
        for module in tree.modules() {
            let Some(layer) = (module.path.starts_with(source) && !module.test)
                .then(|| module.names.first())
                .flatten()
                .and_then(|name| order.iter().position(|listed| listed == name))
            else {
                continue;
            };
            let Some(rust) = tree.get(&module.path).and_then(|file| file.rust.as_ref()) else {
                continue;
            };
            let tests = rust.test_lines();
            for reference in rust.references() {
                if tests.contains(&reference.line) {
                    continue;
                }
                let Some(used) = from_root(&reference.parts, module.names.len() + reference.inline)
                else {
                    continue;
                };
                if order.iter().position(|listed| listed == used).is_some_and(|at| at > layer) {
                    let text = format!(
                        "{} uses {used}, which is below it in the table of {root}: move the used \
                        part up, or pass it in",
                        order[layer]
                    );
                    findings.push(Finding::new(&module.path, reference.line, text));
                }
            }
        }
    }
    findings
}

/// Names in the first column of the tables at the top of the root, in order.
fn table(root: &Rust) -> Vec<String> {
    let docs = root.docs();
    let rows = docs.iter().filter_map(|line| line.trim().strip_prefix('|')?.split('|').next());
    rows.map(|cell| cell.trim().trim_matches(['[', ']', '`']))
        .filter(|name| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_'))
        .filter(|&name| name != "module")
        .map(str::to_owned)
        .collect()
}

/// Checks that the table lists exactly the existing modules.
fn complete(file: &File, root: &Rust, order: &[String], findings: &mut Vec<Finding>) {
    let modules: Vec<_> = root
        .ast
        .items
        .iter()
        .filter_map(|item| if let Item::Mod(item) = item { Some(&item.ident) } else { None })
        .collect();
    for module in &modules {
        if module != &"tests" && !order.iter().any(|listed| module == &listed) {
            let text = format!("{module} is missing in the table that opens this file");
            findings.push(Finding::new(&file.path, module.span().start().line, text));
        }
    }
    for listed in order.iter().filter(|listed| !modules.iter().any(|module| module == listed)) {
        let text = format!("the table lists {listed}, which is not a module here: take it out");
        findings.push(Finding::new(&file.path, 1, text));
    }
}

/// The module that a path names, if the path goes through the package's root.
fn from_root(parts: &[String], depth: usize) -> Option<&str> {
    let supers = parts.iter().take_while(|part| *part == "super").count();
    let after = match parts.first()?.as_str() {
        "crate" => 1,
        "super" if supers == depth => supers,
        _ => return None,
    };
    parts.get(after).map(String::as_str)
}
