//! Scenarios that come with the program.

use super::{Script, ScriptError};

/// A scenario by name, and its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// The YAML.
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

/// All of them.
pub const fn all() -> &'static [Scenario] {
    ALL
}

/// The one of a name.
pub fn named(name: &str) -> Option<&'static Scenario> {
    ALL.iter().find(|scenario| scenario.name == name)
}

impl Scenario {
    /// What is written in it.
    pub fn script(&self) -> Result<Script, ScriptError> {
        Script::parse(self.yaml)
    }
}
