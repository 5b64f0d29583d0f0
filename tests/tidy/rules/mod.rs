//! What a rule is, and the list of them.

mod layers;
mod modules;
mod packages;
mod purity;
mod senders;
mod text;
mod words;

use crate::{Finding, source::Tree};

/// A house rule.
#[derive(Debug)]
pub struct Rule {
    /// What a finding is reported under.
    pub name: &'static str,
    /// Looks for places that break it.
    pub check: fn(&Tree) -> Vec<Finding>,
    /// Small trees, some that break it and some that keep it.
    pub samples: &'static [Sample],
}

/// A small tree, and where a rule finds something in it.
#[derive(Debug)]
pub struct Sample {
    /// Paths and texts.
    pub files: &'static [(&'static str, &'static str)],
    /// Each place as `path:line`.
    pub found: &'static [&'static str],
}

/// Every rule.
pub const ALL: &[Rule] = &[
    packages::DIRECTION,
    packages::LINTS,
    packages::FEATURES,
    layers::LAYERS,
    modules::DOCS,
    modules::ORPHANS,
    purity::PURITY,
    senders::SENDERS,
    words::UNFINISHED,
    words::SLEEP,
    text::WIDTH,
    text::LENGTH,
    text::LINKS,
    text::PLACES,
];
