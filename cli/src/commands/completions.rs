//! `completions SHELL`: prints the script that makes a shell ask this program for candidates, so
//! that names of devnets, nodes, accounts and jobs complete too.

use crate::{error::CliError, output::raw};
use clap::Args;
use clap_complete::env::{Bash, Elvish, EnvCompleter, Fish, Powershell, Zsh};

/// `completions`.
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    shell: Shell,
}

/// A shell that completes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Shell {
    Bash,
    Elvish,
    Fish,
    Powershell,
    Zsh,
}

impl Completions {
    pub fn run(self) -> Result<(), CliError> {
        raw(&self.shell.script()?)
    }
}

impl Shell {
    /// The script for a `cowboyctl` in the PATH.
    pub fn script(self) -> Result<Vec<u8>, CliError> {
        let completer: &dyn EnvCompleter = match self {
            Self::Bash => &Bash,
            Self::Elvish => &Elvish,
            Self::Fish => &Fish,
            Self::Powershell => &Powershell,
            Self::Zsh => &Zsh,
        };
        let mut script = Vec::new();
        completer.write_registration(
            "COMPLETE",
            "cowboyctl",
            "cowboyctl",
            "cowboyctl",
            &mut script,
        )?;
        Ok(script)
    }
}
