//! Constants: one fact is written once.

use super::{Rule, Sample};
use crate::{
    Finding,
    source::{Kind, Rust, Token, Tree},
};
use std::collections::{BTreeMap, BTreeSet};

/// A number of fewer digits may be a coincidence, unless the constant's name has several words.
const DIGITS: usize = 6;

/// Two constants of one name and one value are one fact: one of them refers to the other.
pub const CONSTANTS: Rule = Rule {
    name: "one fact, one constant",
    check: constants,
    samples: &[
        Sample {
            files: &[
                ("engine/src/a.rs", "pub const MAX_NAME: usize = 64;\nconst B: &str = \"b\";\n"),
                ("devnet/src/c.rs", "const MAX_NAME: u64 = 64;\n"),
                ("cli/src/d.rs", "const B: &str = \"b\";\nconst LONG: u64 = 60 * 60;\n"),
                ("cli/src/e.rs", "const LONG: u64 = 60 * 60;\n"),
            ],
            found: &["cli/src/e.rs:1", "engine/src/a.rs:1", "engine/src/a.rs:2"],
        },
        Sample {
            files: &[
                (
                    "engine/src/a.rs",
                    "pub const MAX_NAME: usize = 64;\nconst WORDS: usize = 64;\nconst MAX: u8 = 1;\n",
                ),
                ("engine/src/b.rs", "const MAX_NAME: usize = super::a::MAX_NAME;\n"),
                ("engine/src/c.rs", "const MAX_NAME: usize = 65;\nconst WORDS: u64 = 64;\n"),
                ("engine/src/d.rs", "#[cfg(test)]\nmod tests {\n const MAX_NAME: u8 = 64;\n}\n"),
                ("engine/src/e.rs", "impl A {\n const MAX_NAME: u8 = 64;\n}\n"),
            ],
            found: &[],
        },
    ],
};

fn constants(tree: &Tree) -> Vec<Finding> {
    let tests: BTreeSet<String> =
        tree.modules().into_iter().filter(|one| one.test).map(|one| one.path).collect();
    let mut known: BTreeMap<(String, String), Vec<(&str, usize)>> = BTreeMap::new();
    for (file, rust) in tree.rust() {
        let library = ["engine/", "devnet/", "cli/"].iter().any(|top| file.path.starts_with(top));
        if !library || tests.contains(&file.path) {
            continue;
        }
        let lines = rust.test_lines();
        for (name, value, line) in declared(rust) {
            if !lines.contains(&line) {
                known.entry((name, value)).or_default().push((&file.path, line));
            }
        }
    }
    let mut findings = Vec::new();
    for ((name, _), places) in known {
        let Some((&(first, at), others)) = places.split_first() else { continue };
        let places: Vec<_> = others.iter().filter(|(path, _)| *path != first).collect();
        for (path, line) in places {
            let text = format!("{name} has the same value at {first}:{at}: refer to that one");
            findings.push(Finding::new(path, *line, text));
        }
    }
    findings
}

/// The constants of a file's top level with a value that is a fact of its own: name, value, line.
fn declared(rust: &Rust) -> Vec<(String, String, usize)> {
    let mut found = Vec::new();
    let mut depth = 0_usize;
    for (at, token) in rust.tokens.iter().enumerate() {
        match token.kind {
            Kind::Open => depth += 1,
            Kind::Close => depth -= 1,
            Kind::Ident if depth == 0 && token.text == "const" => {
                let name = &rust.tokens[at + 1];
                let value = value(&rust.tokens[at + 2..]);
                let literal = value.iter().any(|token| token.kind == Kind::Literal);
                let text: Vec<_> = value.iter().map(|token| token.text.as_str()).collect();
                let distinct = match &text[..] {
                    [number] => number.ends_with('"') || number.len() >= DIGITS,
                    several => !several.contains(&":"),
                };
                if literal && (distinct || name.text.contains('_')) && name.text != "_" {
                    found.push((name.text.clone(), text.join(" "), name.line()));
                }
            }
            _ => {}
        }
    }
    found
}

/// The tokens between `=` and `;`, where neither is inside brackets.
fn value(tokens: &[Token]) -> &[Token] {
    let mut depth = 0_usize;
    let mut begin = None;
    for (at, token) in tokens.iter().enumerate() {
        match token.kind {
            Kind::Open => depth += 1,
            Kind::Close => depth -= 1,
            _ if depth > 0 => {}
            _ if token.is(";") => return &tokens[begin.unwrap_or(at)..at],
            _ if token.is("=") && begin.is_none() => begin = Some(at + 1),
            _ => {}
        }
    }
    &[]
}
