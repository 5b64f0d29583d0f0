//! Engine: the same inputs give the same bytes on every machine.

use super::{Rule, Sample};
use crate::{
    Finding,
    source::{Kind, Token, Tree},
};

/// Engine's sources, except tests, name nothing that depends on the outside world.
pub const PURITY: Rule = Rule {
    name: "engine purity",
    check,
    samples: &[
        Sample {
            files: &[
                ("engine/src/lib.rs", "mod a;\nmod primitives;\n#[cfg(test)]\nmod tests;\n"),
                ("engine/src/primitives/mod.rs", "mod cbor;\n"),
                ("engine/src/primitives/cbor.rs", "fn f(x: f64) { 1.5; }\nfn g(x: f32) {}\n"),
                (
                    "engine/src/a.rs",
                    concat!(
                        "use std::{collections::{BTreeMap,\n HashMap}, fmt};\n",
                        "fn f(x: f64) { std::fs::read(x.0.1); }\n",
                        "const A: u8 = 1.5 as u8;\n",
                        "async fn g() {}\n",
                        "fn h() { vec![tokio::spawn(g())]; }\n",
                        "#[cfg(test)]\nmod tests {\n use std::thread;\n}\n"
                    ),
                ),
                ("engine/src/tests.rs", "use std::fs;\n"),
            ],
            found: &[
                "engine/src/a.rs:2",
                "engine/src/a.rs:3",
                "engine/src/a.rs:4",
                "engine/src/a.rs:5",
                "engine/src/a.rs:6",
                "engine/src/primitives/cbor.rs:2",
            ],
        },
        Sample {
            files: &[
                (
                    "engine/src/lib.rs",
                    "//! No std::time.\nuse std::fmt; // not std::net\nfn time() {}\n",
                ),
                ("devnet/src/lib.rs", "use std::fs;\n"),
            ],
            found: &[],
        },
    ],
};

/// Folders whose sources depend on nothing but their inputs.
const PURE: [&str; 2] = ["engine/src/", "devnet/lease/src/machine/"];

/// The codec of a format whose values may be floats. It reads, compares and writes them as they
/// are.
const CARRIES_FLOATS: &str = "engine/src/primitives/cbor.rs";

/// Modules of the standard library that reach outside the process.
const OUTSIDE: [&str; 8] = ["env", "fs", "io", "net", "os", "process", "thread", "time"];

/// Names that are wrong in any position.
const NAMES: [&str; 12] = [
    "HashMap",
    "HashSet",
    "Instant",
    "OsRng",
    "RandomState",
    "SystemTime",
    "async",
    "await",
    "f32",
    "f64",
    "getrandom",
    "tokio",
];

fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for module in tree.modules() {
        if module.test || !PURE.iter().any(|folder| module.path.starts_with(folder)) {
            continue;
        }
        let Some(rust) = tree.get(&module.path).and_then(|file| file.rust.as_ref()) else {
            continue;
        };
        let tests = rust.test_lines();
        let carries_floats = module.path == CARRIES_FLOATS;
        let mut find = |line: usize, what: &str| {
            if !tests.contains(&line) {
                let text = format!(
                    "{what} in engine, whose results depend on its inputs alone: take the value as \
                     an argument, use an ordered map, count in integers, or do it in devnet"
                );
                findings.push(Finding::new(&module.path, line, text));
            }
        };
        for reference in rust.references() {
            let parts: Vec<&str> = reference.parts.iter().map(String::as_str).collect();
            if let ["std" | "core" | "alloc", inside, ..] = parts[..]
                && OUTSIDE.contains(&inside)
            {
                find(reference.line, &parts.join("::"));
            } else if let Some(name) = parts.iter().find(|part| NAMES.contains(part))
                && !(carries_floats && *name == "f64")
            {
                find(reference.line, name);
            }
        }
        if carries_floats {
            continue;
        }
        for (before, token) in rust.tokens.iter().zip(rust.tokens.iter().skip(1)) {
            if is_float(before, token) {
                find(token.line(), &token.text);
            }
        }
    }
    findings
}

/// Whether a literal is a float and not the fields of nested tuples (`a.0.1`).
fn is_float(before: &Token, token: &Token) -> bool {
    token.kind == Kind::Literal
        && token.text.starts_with(|c: char| c.is_ascii_digit())
        && token.text.contains('.')
        && !before.is(".")
}
