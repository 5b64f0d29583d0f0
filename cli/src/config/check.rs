//! Checks the file against the command line's definition.

use super::{Config, Setting, path_of};
use crate::error::{CliError, nearest};
use clap::{Arg, ArgAction, ArgMatches, Command, parser::ValueSource};
use std::iter;

impl Config {
    /// Refuses settings of unknown commands and options, values that an option does not accept, and
    /// aliases that lead to no command.
    pub fn check(&self, command: &Command) -> Result<(), CliError> {
        for setting in &self.settings {
            let arg = self.option(command, setting)?;
            self.check_value(arg, setting)?;
        }
        self.check_aliases(command)
    }

    fn option<'c>(&self, root: &'c Command, setting: &Setting) -> Result<&'c Arg, CliError> {
        let Setting { command: path, option, at, .. } = setting;
        let mut command = root;
        for word in path.split_whitespace() {
            command = command.find_subcommand(word).ok_or_else(|| {
                let error = self.wrong(*at, &format!("there is no command `{path}`"));
                match nearest(word, command.get_subcommands().map(Command::get_name)) {
                    Some(meant) => error.detail(format!("did you mean `{meant}` for `{word}`?")),
                    None => error,
                }
                .hint("list them: cowboyctl --help")
            })?;
        }
        let options = || command.get_arguments().filter(|arg| !arg.is_hide_set());
        if let Some(arg) = options().find(|arg| arg.get_long() == Some(option)) {
            return Ok(arg);
        }
        let error = self.wrong(*at, &format!("`{path}` has no option --{option}"));
        let is_global = root.get_arguments().any(|arg| arg.get_long() == Some(option));
        let error = match is_global {
            true => error.detail("global options are set above all tables"),
            false => error,
        };
        let meant = nearest(option, options().filter_map(Arg::get_long));
        Err(error.meant(meant).hint(format!("list its options: cowboyctl {path} --help")))
    }

    fn check_value(&self, arg: &Arg, setting: &Setting) -> Result<(), CliError> {
        let Setting { option, values, is_flag, value_at, .. } = setting;
        let is_switch = matches!(arg.get_action(), ArgAction::SetTrue | ArgAction::SetFalse);
        if is_switch && !is_flag {
            let error = self.wrong(*value_at, &format!("`{option}` is true or false"));
            return Err(error.hint("write it without quotes"));
        }
        let many = matches!(arg.get_action(), ArgAction::Append)
            || arg.get_value_delimiter().is_some()
            || arg.get_num_args().is_some_and(|range| range.max_values() > 1);
        if values.len() > 1 && !many {
            let error = self.wrong(*value_at, &format!("`{option}` takes one value"));
            return Err(error.hint("write it without brackets"));
        }
        // Parse the value alone, as the option would.
        let scratch = Arg::new("value")
            .long("value")
            .value_parser(arg.get_value_parser().clone())
            .value_delimiter(arg.get_value_delimiter())
            .action(ArgAction::Append)
            .num_args(1);
        let words = values.iter().map(|value| format!("--value={value}"));
        let read = Command::new("cowboyctl")
            .arg(scratch)
            .disable_help_flag(true)
            .try_get_matches_from(iter::once("cowboyctl".to_owned()).chain(words));
        let Err(error) = read else { return Ok(()) };
        let read = CliError::from(&error);
        let error =
            self.wrong(*value_at, &read.what.replace("--value <value>", &format!("--{option}")));
        let error = match read.detail {
            Some(detail) => error.detail(detail),
            None => error,
        };
        let command = format!("cowboyctl {} --help", setting.command).replace("  ", " ");
        Err(error.hint(format!("see what it takes: {command}")))
    }

    /// The indexes of settings that are excluded by a given option.
    pub(super) fn excluded(&self, command: &Command, given: &ArgMatches) -> Vec<usize> {
        let path = path_of(given);
        let mut built = command.clone();
        built.build();
        let (mut command, mut at) = (&built, given);
        while let Some((name, below)) = at.subcommand() {
            let Some(found) = command.find_subcommand(name) else { return Vec::new() };
            (command, at) = (found, below);
        }
        let is_given = |arg: &&Arg| {
            let source = at
                .try_contains_id(arg.get_id().as_str())
                .is_ok()
                .then(|| at.value_source(arg.get_id().as_str()));
            matches!(source.flatten(), Some(ValueSource::CommandLine | ValueSource::EnvVariable))
        };
        let given: Vec<_> = command.get_arguments().filter(is_given).collect();
        let excludes = |setting: &Setting| {
            let own = command.get_arguments().find(|arg| arg.get_long() == Some(&setting.option));
            own.is_some_and(|own| {
                let excludes = |one: &Arg, other: &Arg| {
                    let conflicts = command.get_arg_conflicts_with(one);
                    conflicts.iter().any(|arg| arg.get_id() == other.get_id())
                };
                given.iter().any(|arg| excludes(arg, own) || excludes(own, arg))
            })
        };
        let of_it = self.settings.iter().enumerate();
        let of_it = of_it.filter(|(_, setting)| !path.is_empty() && setting.command == path);
        of_it.filter(|(_, setting)| excludes(setting)).map(|(index, _)| index).collect()
    }
}
