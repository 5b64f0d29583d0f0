//! The type of a rule, and the list of all rules.

mod circles;
mod constants;
mod english;
mod layers;
mod modules;
mod names;
mod packages;
mod purity;
mod senders;
mod text;
mod words;

use crate::{Finding, source::Tree};

/// A house rule.
#[derive(Debug)]
pub struct Rule {
    /// The name under which findings are reported.
    pub name: &'static str,
    /// Finds the places that break the rule.
    pub check: fn(&Tree) -> Vec<Finding>,
    /// Small trees, some that break the rule and some that keep it.
    pub samples: &'static [Sample],
}

/// A small tree, and the places where a rule finds something in it.
#[derive(Debug)]
pub struct Sample {
    /// Paths and texts.
    pub files: &'static [(&'static str, &'static str)],
    /// Each place as `path:line`.
    pub found: &'static [&'static str],
}

pub const ALL: &[Rule] = &[
    packages::DIRECTION,
    packages::LINTS,
    packages::FEATURES,
    circles::CIRCLES,
    constants::CONSTANTS,
    english::ENGLISH,
    english::ITEMS,
    layers::LAYERS,
    modules::DOCS,
    modules::ORPHANS,
    names::NAMES,
    purity::PURITY,
    senders::SENDERS,
    words::UNFINISHED,
    words::SLEEP,
    text::WIDTH,
    text::LENGTH,
    text::LINKS,
    text::PLACES,
];
