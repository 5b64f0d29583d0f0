//! The configuration file: defaults of options for which neither the command line nor the
//! environment sets a value, and aliases for command lines.
//!
//! ```toml
//! devnet = "local"
//!
//! [defaults."devnet up"]
//! validators = 7
//!
//! [alias]
//! st = "devnet status"
//! ```
//!
//! The file is `$COWBOYCTL_CONFIG`, else `cowboyctl/config.toml` in `$XDG_CONFIG_HOME`, else in
//! `~/.config`. [`Config::load`] reads it, [`Config::check`] compares it with the command line's
//! definition, and [`Config::expand`] and [`Config::applied`] apply it.

mod alias;
mod check;
mod file;
#[cfg(test)]
mod tests;

use crate::{
    args,
    error::{CliError, Excerpt, Exit},
};
use clap::ArgMatches;
use cowboy_devnet::topology::Name;
use cowboy_host::located::FilePlace;
use std::{env, path::PathBuf};

/// The maximum size of the file, in bytes.
const LIMIT: u64 = 64 << 10;

pub const VARIABLE: &str = "COWBOYCTL_CONFIG";

/// Options of every command that the file may set.
const GLOBAL: [&str; 5] = ["devnet", "node", "output", "quiet", "wide"];

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config {
    file: String,
    text: String,
    /// In the order of the file.
    pub settings: Vec<Setting>,
    /// In the order of the file.
    pub aliases: Vec<Alias>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The command, such as `devnet up`; empty for every command.
    pub command: String,
    pub option: String,
    pub values: Vec<String>,
    /// Whether the value is `true` or `false`, as for a flag.
    is_flag: bool,
    /// The offset of the option in the file, in bytes.
    pub at: usize,
    /// The offset of the value in the file, in bytes.
    value_at: usize,
}

/// A name for words at the beginning of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alias {
    pub name: String,
    pub words: Vec<String>,
    /// The offset of the name in the file, in bytes.
    pub at: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigPath {
    pub path: PathBuf,
    /// Whether the variable names it, so that it must exist.
    pub is_named: bool,
}

/// The path of the file, whether it exists or not; `None` if no variable determines it.
pub fn place() -> Option<ConfigPath> {
    if let Some(path) = env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
        return Some(ConfigPath { path: path.into(), is_named: true });
    }
    let folder = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")))?;
    Some(ConfigPath { path: folder.join("cowboyctl/config.toml"), is_named: false })
}

impl Config {
    /// Reads the file; without one there are no settings.
    pub fn load() -> Result<Self, CliError> {
        let Some(ConfigPath { path, is_named }) = place() else { return Ok(Self::default()) };
        let bytes = match args::input(&path, LIMIT) {
            Ok(bytes) => bytes,
            Err(error) if error.exit == Exit::NotFound && !is_named => return Ok(Self::default()),
            Err(error) if is_named && error.exit == Exit::NotFound => {
                return Err(error.detail(format!("{VARIABLE} names it")));
            }
            Err(error) => return Err(error),
        };
        let text = args::text(&path, bytes)?;
        Self::parse(&path.display().to_string(), text)
    }

    /// The devnet for commands that name none.
    pub fn devnet(&self) -> Option<Name> {
        self.global("devnet")?.parse().ok()
    }

    pub fn global(&self, option: &str) -> Option<&str> {
        let is = |one: &&Setting| one.command.is_empty() && one.option == option;
        self.settings.iter().find(is)?.values.first().map(String::as_str)
    }

    /// The line number, from 1, of an offset in the file.
    pub fn line(&self, at: usize) -> usize {
        self.text[..at].matches('\n').count() + 1
    }

    /// Adds these settings to the command line as defaults, except for those excluded by a given
    /// option; `given` is the result of parsing without them.
    pub fn applied(&self, command: clap::Command, given: Option<&ArgMatches>) -> clap::Command {
        let excluded = given.map(|given| self.excluded(&command, given)).unwrap_or_default();
        let mut command = command;
        for (index, setting) in self.settings.iter().enumerate() {
            // A devnet is chosen from more than defaults: see `Context::chosen`.
            let is_devnet = setting.command.is_empty() && setting.option == "devnet";
            if !is_devnet && !excluded.contains(&index) {
                let path: Vec<_> = setting.command.split_whitespace().collect();
                command = with_default(command, &path, setting);
            }
        }
        command
    }

    pub fn has_settings_of(&self, given: &ArgMatches) -> bool {
        let path = path_of(given);
        self.settings.iter().any(|setting| setting.command == path)
    }

    fn wrong(&self, at: usize, what: &str) -> CliError {
        let place = FilePlace::of_byte(&self.text, at);
        let what = format!("{}:{}:{}: {what}", self.file, place.line, place.column);
        let is_there = place.line <= self.text.lines().count();
        CliError::new(Exit::Usage, what).excerpt(is_there.then(|| Excerpt::of_place(&place)))
    }
}

/// The given command, such as `devnet up`.
pub fn path_of(given: &ArgMatches) -> String {
    let mut path = Vec::new();
    let mut at = given;
    while let Some((name, below)) = at.subcommand() {
        path.push(name);
        at = below;
    }
    path.join(" ")
}

/// Makes a setting the default of its option, which must exist.
fn with_default(command: clap::Command, path: &[&str], setting: &Setting) -> clap::Command {
    let Some((first, rest)) = path.split_first() else {
        // Defaults have to live as long as the command line, which lives as long as the process.
        let values = setting.values.iter().map(|value| &*value.clone().leak());
        let values: Vec<_> = values.map(clap::builder::OsStr::from).collect();
        let is = |arg: &clap::Arg| arg.get_long() == Some(&setting.option);
        let id = command.get_arguments().find(|arg| is(arg)).map(|arg| arg.get_id().clone());
        return match id {
            Some(id) => command.mut_arg(id, |arg| arg.default_values(values).required(false)),
            None => command,
        };
    };
    match command.find_subcommand(first) {
        Some(_) => command.mut_subcommand(first, |below| with_default(below, rest, setting)),
        None => command,
    }
}
