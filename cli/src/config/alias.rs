//! Aliases: their expansion, and their checks.

use super::{Alias, Config};
use crate::error::{CliError, nearest};
use clap::Command;
use std::ffi::OsString;

impl Config {
    /// The command line with an alias replaced by its words, in the position of the command, after
    /// global options. Checked aliases always end in a command.
    pub fn expand(&self, command: &Command, mut args: Vec<OsString>) -> Vec<OsString> {
        // Expand each alias once at most, because more would be a loop.
        for _ in &self.aliases {
            let Some(at) = first_word(command, &args) else { break };
            let Some(alias) = self.aliases.iter().find(|alias| args[at] == *alias.name) else {
                break;
            };
            args.splice(at..=at, alias.words.iter().map(OsString::from));
        }
        args
    }

    /// Refuses aliases that have the name of a command, or lead to no command or to themselves.
    pub(super) fn check_aliases(&self, command: &Command) -> Result<(), CliError> {
        for alias in &self.aliases {
            let Alias { name, at, .. } = alias;
            if command.find_subcommand(name).is_some() {
                let error = self.wrong(*at, &format!("alias `{name}` has the name of a command"));
                return Err(error.hint("give it another name: commands cannot be replaced"));
            }
            if name.is_empty() || name.starts_with('-') || name.contains(char::is_whitespace) {
                let error = self.wrong(*at, &format!("`{name}` is not a name for an alias"));
                return Err(error.hint("expected a word that does not begin with -"));
            }
            self.check_end(command, alias)?;
        }
        Ok(())
    }

    fn check_end(&self, command: &Command, alias: &Alias) -> Result<(), CliError> {
        let mut seen = vec![alias.name.as_str()];
        let mut at = alias;
        loop {
            let words = [""].into_iter().chain(at.words.iter().map(String::as_str));
            let words: Vec<_> = words.map(OsString::from).collect();
            let first = first_word(command, &words).map(|at| words[at].to_string_lossy());
            let Some(first) = first else {
                let what = format!("alias `{}` names no command", at.name);
                return Err(self
                    .wrong(at.at, &what)
                    .hint("begin it with one, as \"devnet status\""));
            };
            if command.find_subcommand(&*first).is_some() {
                return Ok(());
            }
            let Some(next) = self.aliases.iter().find(|other| other.name == first) else {
                let error = self
                    .wrong(at.at, &format!("alias `{}`: there is no command `{first}`", at.name));
                let commands = command.get_subcommands().map(Command::get_name);
                return Err(error
                    .meant(nearest(&first, commands))
                    .hint("list them: cowboyctl --help"));
            };
            if seen.contains(&next.name.as_str()) {
                let round = seen.iter().copied().chain([next.name.as_str()]);
                let round = round.collect::<Vec<_>>().join(" → ");
                let error =
                    self.wrong(alias.at, &format!("alias `{}` comes back to itself", alias.name));
                return Err(error.detail(round).hint("let one of them begin with a command"));
            }
            seen.push(&next.name);
            at = next;
        }
    }
}

/// The position of the first word that is neither a global option nor its value.
fn first_word(command: &Command, args: &[OsString]) -> Option<usize> {
    let takes_value = |is: &dyn Fn(&clap::Arg) -> bool| {
        command.get_arguments().any(|arg| is(arg) && arg.get_action().takes_values())
    };
    let mut at = 1;
    while let Some(arg) = args.get(at) {
        let arg = arg.to_string_lossy();
        let Some(option) = arg.strip_prefix('-').filter(|option| !option.is_empty()) else {
            return Some(at);
        };
        let needs_next = match option.strip_prefix('-') {
            Some("") => return None,
            Some(long) => !long.contains('=') && takes_value(&|arg| arg.get_long() == Some(long)),
            None => {
                // In a word of several short flags, the first that takes a value takes the rest.
                let valued = |(_, short): &(usize, char)| {
                    takes_value(&|arg| arg.get_short() == Some(*short))
                };
                let found = option.char_indices().find(valued);
                found.is_some_and(|(at, short)| at + short.len_utf8() == option.len())
            }
        };
        at += if needs_next { 2 } else { 1 };
    }
    None
}
