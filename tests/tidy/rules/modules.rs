//! Files: each opens with docs, and each belongs to a target.

use super::{Rule, Sample};
use crate::{Finding, source::Tree};
use std::collections::BTreeSet;

/// Minimum words in the first line of a module's docs: a name alone says nothing.
const WORDS: usize = 2;

/// Every file has its subject in a `//!` comment.
pub const DOCS: Rule = Rule {
    name: "module docs",
    check: docs,
    samples: &[
        Sample {
            files: &[("engine/src/a.rs", "// About it.\nfn f() {}\n")],
            found: &["engine/src/a.rs:1"],
        },
        Sample { files: &[("engine/src/a.rs", "//! Drivers.\n")], found: &["engine/src/a.rs:1"] },
        Sample { files: &[("engine/src/a.rs", "//! What a thing is.\n")], found: &[] },
    ],
};

/// Every file is compiled by some target.
pub const ORPHANS: Rule = Rule {
    name: "orphans",
    check: orphans,
    samples: &[
        Sample {
            files: &[
                ("engine/src/lib.rs", "// mod b;\nmod a;\n"),
                ("engine/src/a.rs", ""),
                ("engine/src/b.rs", ""),
            ],
            found: &["engine/src/b.rs:1"],
        },
        Sample {
            files: &[
                ("engine/src/lib.rs", "mod a;\n"),
                ("engine/src/a.rs", "mod b;\n"),
                ("engine/src/a/b.rs", ""),
                ("engine/benches/c.rs", ""),
            ],
            found: &[],
        },
    ],
};

fn docs(tree: &Tree) -> Vec<Finding> {
    tree.rust()
        .filter(|(_, rust)| {
            let docs = rust.docs();
            let first = docs.iter().find(|line| !line.trim().is_empty());
            first.is_none_or(|line| line.split_whitespace().count() < WORDS)
        })
        .map(|(file, _)| {
            Finding::new(
                &file.path,
                1,
                "open the file with `//!` docs: one sentence on its subject",
            )
        })
        .collect()
}

fn orphans(tree: &Tree) -> Vec<Finding> {
    let modules: BTreeSet<String> = tree.modules().into_iter().map(|module| module.path).collect();
    tree.rust()
        .filter(|(file, _)| !modules.contains(&file.path))
        .map(|(file, _)| {
            Finding::new(&file.path, 1, "no target includes this file: declare it or delete it")
        })
        .collect()
}
