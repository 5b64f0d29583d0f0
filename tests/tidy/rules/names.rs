//! Names of types: one name is one thing.

use super::{Rule, Sample};
use crate::{
    Finding,
    source::{Kind, Rust, Tree},
};
use std::collections::{BTreeMap, BTreeSet};

/// The words that begin the declaration of a type.
const DECLARING: [&str; 5] = ["struct", "enum", "trait", "union", "type"];

/// The folders whose names are apart from those of their package: documents of an API are named
/// for its users.
const APART: [&str; 2] = ["devnet/src/types", "devnet/lease/src/messages"];

/// A type's name is unique in its package, or is the subject of its module: `Runner` in `runner.rs`
/// or in the folder `runners`.
pub const NAMES: Rule = Rule {
    name: "one name, one type",
    check: names,
    samples: &[
        Sample {
            files: &[
                ("engine/src/a.rs", "pub struct Place;\nenum Kind {}\n"),
                ("engine/src/b/c.rs", "struct Place;\ntrait Kind {}\n"),
                ("cli/src/place.rs", "struct Place;\n"),
                ("cli/src/x.rs", "type Place = u8;\n"),
            ],
            found: &[
                "cli/src/x.rs:1",
                "engine/src/a.rs:1",
                "engine/src/a.rs:2",
                "engine/src/b/c.rs:1",
                "engine/src/b/c.rs:2",
            ],
        },
        Sample {
            files: &[
                ("engine/src/place.rs", "pub struct Place;\nfn a() { struct Text; }\n"),
                ("engine/src/places/b.rs", "struct Place;\nfn b() { struct Text; }\n"),
                ("engine/src/c.rs", "impl A { type Place = u8; }\n"),
                ("engine/src/d.rs", "#[cfg(test)]\nmod tests {\n struct Place;\n}\n"),
                ("devnet/src/c.rs", "struct Place;\n"),
                ("devnet/src/types/d.rs", "struct Place;\n"),
            ],
            found: &[],
        },
    ],
};

fn names(tree: &Tree) -> Vec<Finding> {
    let tests: BTreeSet<String> =
        tree.modules().into_iter().filter(|one| one.test).map(|one| one.path).collect();
    let mut known: BTreeMap<(&str, String), Vec<(&str, usize)>> = BTreeMap::new();
    for (file, rust) in tree.rust() {
        let Some((package, _)) = file.path.split_once("/src/") else { continue };
        if tests.contains(&file.path) || package.starts_with("tests") {
            continue;
        }
        let package =
            APART.into_iter().find(|folder| file.path.starts_with(folder)).unwrap_or(package);
        let lines = rust.test_lines();
        for (name, line) in declared(rust) {
            if !lines.contains(&line) {
                known.entry((package, name)).or_default().push((&file.path, line));
            }
        }
    }
    let mut findings = Vec::new();
    for ((_, name), places) in known {
        let about: Vec<_> = places.iter().filter(|(path, _)| !is_subject(&name, path)).collect();
        if places.len() > 1 {
            for (path, line) in about {
                let (other, at) = places.iter().find(|(one, _)| one != path).unwrap_or(&places[0]);
                let text = format!("{name} is also a type at {other}:{at}: give one a fuller name");
                findings.push(Finding::new(path, *line, text));
            }
        }
    }
    findings
}

/// Whether a type is the subject of its module: the file or a folder around it has its name.
fn is_subject(name: &str, path: &str) -> bool {
    let name = name.to_lowercase();
    let singular = |part: &str| {
        let part = part.replace('_', "");
        match (part.strip_suffix("ies"), part.strip_suffix('s')) {
            (Some(stem), _) => format!("{stem}y"),
            (None, Some(stem)) => stem.to_owned(),
            (None, None) => part,
        }
    };
    path.trim_end_matches(".rs").split('/').any(|part| singular(part) == singular(&name))
}

/// The types of a file's top level: name and line.
fn declared(rust: &Rust) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    let mut depth = 0_usize;
    for (at, token) in rust.tokens.iter().enumerate() {
        match token.kind {
            Kind::Open => depth += 1,
            Kind::Close => depth -= 1,
            Kind::Ident if depth == 0 && DECLARING.contains(&token.text.as_str()) => {
                let name = &rust.tokens[at + 1];
                if name.kind == Kind::Ident {
                    found.push((name.text.clone(), name.line()));
                }
            }
            _ => {}
        }
    }
    found
}
