//! The scenarios included in the program.

use super::{Script, ScriptError};

/// An included scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LibraryScenario {
    pub name: &'static str,
    pub yaml: &'static str,
}

macro_rules! scenarios {
    ($($name:literal)*) => {
        const ALL: &[LibraryScenario] = &[$(
            LibraryScenario { name: $name, yaml: include_str!(concat!("../scenarios/", $name, ".yaml")) },
        )*];
    };
}

scenarios! {
    "calm" "crashes" "storm" "halves" "blackout" "slow-links" "liars" "timers"
}

/// All included scenarios.
pub const fn all() -> &'static [LibraryScenario] {
    ALL
}

/// The included scenario of this name; `None` for a name of no scenario.
pub fn named(name: &str) -> Option<&'static LibraryScenario> {
    ALL.iter().find(|scenario| scenario.name == name)
}

impl LibraryScenario {
    pub fn script(&self) -> Result<Script, ScriptError> {
        Script::parse(self.yaml)
    }
}
