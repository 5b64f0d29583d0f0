//! `help`: what a command does and takes, as its own --help says it.

use super::command;
use crate::{
    error::{CliError, Exit, nearest},
    output::raw,
};
use clap::Args;

/// `help`.
#[derive(Debug, Args)]
pub struct Help {
    /// The command, word by word, as: job submit
    words: Vec<String>,
}

impl Help {
    /// Runs the command.
    pub fn run(self) -> Result<(), CliError> {
        let mut at = command();
        at.build();
        for (number, word) in self.words.iter().enumerate() {
            let Some(below) = at.find_subcommand(word).cloned() else {
                let before = [
                    &["cowboyctl"],
                    &*self.words[..number].iter().map(String::as_str).collect::<Vec<_>>(),
                ]
                .concat();
                let error = CliError::new(
                    Exit::Usage,
                    format!("{} has no command `{word}`", before.join(" ")),
                );
                let names = at.get_subcommands().map(clap::Command::get_name);
                return Err(match nearest(word, names) {
                    Some(meant) => error.detail(format!("did you mean `{meant}`?")),
                    None => error.hint(format!("see which there are: {} --help", before.join(" "))),
                });
            };
            at = below;
        }
        raw(at.render_long_help().to_string().as_bytes())
    }
}
