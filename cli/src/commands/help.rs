//! `help`: prints a command's own --help.

use super::command;
use crate::error::{CliError, is_answer};
use clap::Args;

/// `help`.
#[derive(Debug, Args)]
pub struct Help {
    /// The command, word by word, for example: job submit
    #[arg(value_name = "COMMAND")]
    words: Vec<String>,
}

impl Help {
    pub fn run(self) -> Result<(), CliError> {
        let words = self.words.iter().map(String::as_str);
        let line = ["cowboyctl"].into_iter().chain(words).chain(["--help"]);
        match command().try_get_matches_from(line) {
            Err(help) if is_answer(&help) => Ok(help.print()?),
            Err(error) => Err((&error).into()),
            Ok(_) => Err(CliError::failed("this command has no help")),
        }
    }
}
