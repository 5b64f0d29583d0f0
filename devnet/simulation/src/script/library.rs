//! The scenarios included in the program.

use super::{Script, ScriptError};

/// An included scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scenario {
    pub name: &'static str,
    pub yaml: &'static str,
}

macro_rules! scenarios {
    ($($name:literal)*) => {
        const ALL: &[Scenario] = &[$(
            Scenario { name: $name, yaml: include_str!(concat!("../scenarios/", $name, ".yaml")) },
        )*];
    };
}

scenarios! {
    "calm" "crashes" "storm" "halves" "blackout" "slow-links" "liars" "timers"
}

/// All included scenarios.
pub const fn all() -> &'static [Scenario] {
    ALL
}

/// The included scenario of this name.
pub fn named(name: &str) -> Option<&'static Scenario> {
    ALL.iter().find(|scenario| scenario.name == name)
}

impl Scenario {
    /// Parses the scenario.
    pub fn script(&self) -> Result<Script, ScriptError> {
        Script::parse(self.yaml)
    }
}
