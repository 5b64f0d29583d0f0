//! The house rules that a program can check, run over every file of the repository.
//!
//! | file | rules |
//! |---|---|
//! | `rules/packages.rs` | which package may use which, and where lints are declared |
//! | `rules/layers.rs` | a module uses only modules above it in its package's table |
//! | `rules/modules.rs` | every module opens with docs, every file belongs to a target |
//! | `rules/purity.rs` | engine's sources name no clock, socket, file, thread, float or hash map |
//! | `rules/senders.rs` | every frame, event and reason of the protocol is made outside tests |
//! | `rules/words.rs` | nothing unfinished, nothing hidden, no sleeping tests |
//! | `rules/english.rs` | plain words, subject first, docs that say more than a name |
//! | `rules/constants.rs` | one fact is one constant |
//! | `rules/names.rs` | one name is one type |
//! | `rules/text.rs` | width and length, links, nothing of one machine or one registry |
//!
//! [`source`] reads the tree: files, their tokens, the modules they make up. A [`Rule`] looks at a
//! tree and returns findings; each comes with small trees that break it and that keep it, and
//! `every_rule_sees_what_breaks_it` runs it over those, so that no rule passes because it is blind.

mod rules;
mod source;

use rules::Rule;
use source::Tree;
use std::{collections::BTreeSet, fmt::Write as _, path::Path};

/// A place that breaks a rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The file's path from the repository's top.
    path: String,
    /// The line, from 1.
    line: usize,
    /// The problem and its remedy.
    text: String,
}

impl Finding {
    fn new(path: &str, line: usize, text: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, text: text.into() }
    }
}

/// The repository's top: the folder above this package.
fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the package is a folder of the workspace")
}

#[test]
fn the_repository_keeps_every_rule() {
    let tree = Tree::read(top()).expect("the repository can be read");
    for expected in ["Cargo.toml", "README.md", "engine/src/lib.rs", "tests/tidy/main.rs"] {
        assert!(tree.get(expected).is_some(), "{expected} was not read: the walk is broken");
    }
    let mut report = String::new();
    for rule in rules::ALL {
        for Finding { path, line, text } in (rule.check)(&tree) {
            writeln!(report, "{path}:{line}: {}: {text}", rule.name)
                .expect("a string takes what is written to it");
        }
    }
    assert!(report.is_empty(), "house rules are broken:\n{report}");
}

#[test]
fn every_rule_sees_what_breaks_it() {
    for Rule { name, check, samples } in rules::ALL {
        let (mut broken, mut kept) = (0, 0);
        for sample in *samples {
            let got: BTreeSet<String> = check(&Tree::of(sample.files))
                .into_iter()
                .map(|finding| format!("{}:{}", finding.path, finding.line))
                .collect();
            let expected: BTreeSet<String> =
                sample.found.iter().map(|&place| place.to_owned()).collect();
            assert_eq!(got, expected, "{name}, on {:#?}", sample.files);
            *(if expected.is_empty() { &mut kept } else { &mut broken }) += 1;
        }
        assert!(
            broken > 0 && kept > 0,
            "{name} needs a sample that breaks it and one that does not"
        );
    }
}
