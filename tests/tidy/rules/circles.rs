//! Circles: modules next to each other depend on each other in one direction.

use super::{Rule, Sample};
use crate::{
    Finding,
    source::{LAYERED, Module, Tree},
};
use std::collections::{BTreeMap, BTreeSet};

/// In one folder, no two modules use each other, directly or through others.
///
/// Allowed: a module uses those inside it, and they use its items. So what several files of a
/// folder share is in the folder's own module.
pub const CIRCLES: Rule = Rule {
    name: "circles",
    check: circles,
    samples: &[
        Sample {
            files: &[
                ("devnet/src/lib.rs", "mod a;\nmod b;\nmod c;\n"),
                ("devnet/src/a.rs", "use crate::b::B;\n"),
                ("devnet/src/b.rs", "mod inner;\n"),
                ("devnet/src/b/inner.rs", "\nuse super::super::c::C;\n"),
                ("devnet/src/c.rs", "use super::a::A;\n"),
            ],
            found: &["devnet/src/a.rs:1", "devnet/src/b/inner.rs:2", "devnet/src/c.rs:1"],
        },
        Sample {
            files: &[
                ("devnet/src/lib.rs", "mod a;\nmod b;\n"),
                ("devnet/src/a.rs", "mod inner;\nuse inner::I;\nstruct A;\n"),
                ("devnet/src/a/inner.rs", "use super::A;\nuse crate::b::B;\n"),
                ("devnet/src/b.rs", "struct B;\n#[cfg(test)]\nmod tests {\n use crate::a::A;\n}\n"),
            ],
            found: &[],
        },
    ],
};

/// One place where a module uses another.
#[derive(Debug, Clone)]
struct Use {
    path: String,
    line: usize,
    used: String,
}

fn circles(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let modules = tree.modules();
    for package in LAYERED {
        let source = &format!("{package}/src/");
        let modules: Vec<_> =
            modules.iter().filter(|one| one.path.starts_with(source) && !one.test).collect();
        let names: BTreeSet<&[String]> = modules.iter().map(|one| &one.names[..]).collect();
        // By the module around both: who uses whom, and one place.
        let mut edges: BTreeMap<Vec<String>, BTreeMap<String, BTreeMap<String, Use>>> =
            BTreeMap::new();
        for module in &modules {
            for (used, line) in uses(tree, module, &names) {
                let common = module.names.iter().zip(&used).take_while(|(a, b)| a == b).count();
                if let (Some(from), Some(to)) = (module.names.get(common), used.get(common)) {
                    let place = Use { path: module.path.clone(), line, used: used.join("::") };
                    edges
                        .entry(used[..common].to_vec())
                        .or_default()
                        .entry(from.clone())
                        .or_default()
                        .entry(to.clone())
                        .or_insert(place);
                }
            }
        }
        for graph in edges.values() {
            findings.extend(in_circles(graph).map(|(from, to, place)| {
                let text = format!("{from} uses {to} ({}), which uses {from}", place.used);
                Finding::new(&place.path, place.line, text)
            }));
        }
    }
    findings
}

/// The modules that a module names in its paths outside tests, each with a line.
fn uses(tree: &Tree, module: &Module, names: &BTreeSet<&[String]>) -> Vec<(Vec<String>, usize)> {
    let Some(rust) = tree.get(&module.path).and_then(|file| file.rust.as_ref()) else {
        return Vec::new();
    };
    let tests = rust.test_lines();
    let mut found = Vec::new();
    for reference in rust.references().into_iter().filter(|one| !tests.contains(&one.line)) {
        let parts = &reference.parts;
        let supers = parts.iter().take_while(|part| *part == "super").count();
        // A path inside an inline module goes up to it first.
        let up = supers.saturating_sub(reference.inline);
        let (mut absolute, rest) = match parts[0].as_str() {
            "crate" => (Vec::new(), &parts[1..]),
            "super" if supers > reference.inline && up <= module.names.len() => {
                (module.names[..module.names.len() - up].to_vec(), &parts[supers..])
            }
            _ => continue,
        };
        for part in rest {
            absolute.push(part.clone());
            if !names.contains(&absolute[..]) {
                absolute.pop();
                break;
            }
        }
        found.push((absolute, reference.line));
    }
    found
}

/// The edges of a graph that are part of a circle.
fn in_circles(
    graph: &BTreeMap<String, BTreeMap<String, Use>>,
) -> impl Iterator<Item = (&String, &String, &Use)> {
    let reaches = |from: &String, to: &String| {
        let (mut seen, mut open) = (BTreeSet::from([from]), vec![from]);
        while let Some(at) = open.pop() {
            for next in graph.get(at).into_iter().flat_map(BTreeMap::keys) {
                if next == to {
                    return true;
                }
                if seen.insert(next) {
                    open.push(next);
                }
            }
        }
        false
    };
    graph
        .iter()
        .flat_map(|(from, uses)| uses.iter().map(move |(to, place)| (from, to, place)))
        .filter(move |(from, to, _)| reaches(to, from))
}
