//! The configuration file: what options are where neither the command line nor the environment
//! says so, and names for command lines.
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
//! It is `$COWBOYCTL_CONFIG`, else `cowboyctl/config.toml` in `$XDG_CONFIG_HOME`, else in
//! `~/.config`. [`Config::load`] reads it, [`Config::check`] compares it with the command line that
//! there is, and [`Config::expand`] and [`Config::applied`] make it count.

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
use std::{env, path::PathBuf};

/// The longest file that is read, in bytes.
const LIMIT: u64 = 64 << 10;

/// The variable that names the file.
pub const VARIABLE: &str = "COWBOYCTL_CONFIG";

/// Options of every command that the file may set.
const GLOBAL: [&str; 5] = ["devnet", "node", "output", "quiet", "wide"];

/// What the file says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config {
    file: String,
    text: String,
    settings: Vec<Setting>,
    aliases: Vec<Alias>,
}

/// What an option is where nothing else says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The command, as `devnet up`; empty: every command.
    pub command: String,
    /// The option without its dashes.
    pub option: String,
    /// The values as a command line would have them.
    pub values: Vec<String>,
    /// Whether the value is `true` or `false`, as flags have it.
    is_flag: bool,
    /// The bytes of the file before the option.
    at: usize,
    /// The bytes of the file before the value.
    value_at: usize,
}

/// A name for the beginning of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alias {
    /// The name.
    pub name: String,
    /// The words that replace it.
    pub words: Vec<String>,
    /// The bytes of the file before the name.
    at: usize,
}

/// Where the file is, or would be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The path.
    pub path: PathBuf,
    /// Whether the variable names it: it has to be there then.
    pub is_named: bool,
}

/// Where the file is, or would be; nothing where no variable says so.
pub fn place() -> Option<Place> {
    if let Some(path) = env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
        return Some(Place { path: path.into(), is_named: true });
    }
    let folder = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")))?;
    Some(Place { path: folder.join("cowboyctl/config.toml"), is_named: false })
}

impl Config {
    /// Reads the file; without one nothing is set.
    pub fn load() -> Result<Self, CliError> {
        let Some(Place { path, is_named }) = place() else { return Ok(Self::default()) };
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

    /// The devnet that it names for commands that name none.
    pub fn devnet(&self) -> Option<Name> {
        self.global("devnet")?.parse().ok()
    }

    /// A setting of every command.
    pub fn global(&self, option: &str) -> Option<&str> {
        let is = |one: &&Setting| one.command.is_empty() && one.option == option;
        self.settings.iter().find(is)?.values.first().map(String::as_str)
    }

    /// Every setting, in the order of the file.
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// Every alias, in the order of the file.
    pub fn aliases(&self) -> &[Alias] {
        &self.aliases
    }

    /// The line, from 1, that a setting or an alias is in.
    pub fn line(&self, at: usize) -> usize {
        self.text[..at].matches('\n').count() + 1
    }

    /// The command line with these settings as its defaults, but for those that an option which is
    /// given excludes; `given` is what was found on the command line without them.
    pub fn applied(&self, command: clap::Command, given: Option<&ArgMatches>) -> clap::Command {
        let excluded = given.map(|given| self.excluded(&command, given)).unwrap_or_default();
        let mut command = command;
        for (index, setting) in self.settings.iter().enumerate() {
            // What chooses a devnet has more than defaults: see `Context::chosen`.
            let is_devnet = setting.command.is_empty() && setting.option == "devnet";
            if !is_devnet && !excluded.contains(&index) {
                let path: Vec<_> = setting.command.split_whitespace().collect();
                command = with_default(command, &path, setting);
            }
        }
        command
    }

    /// Whether it has settings of the command that was found.
    pub fn has_settings_of(&self, given: &ArgMatches) -> bool {
        let path = path_of(given);
        self.settings.iter().any(|setting| setting.command == path)
    }

    /// What is wrong at a byte of the file.
    fn wrong(&self, at: usize, what: &str) -> CliError {
        let before = self.text.get(..at).unwrap_or(&self.text);
        let line_at = before.rfind('\n').map_or(0, |feed| feed + 1);
        let (line, column) =
            (before.matches('\n').count() + 1, before[line_at..].chars().count() + 1);
        let what = format!("{}:{line}:{column}: {what}", self.file);
        CliError::new(Exit::Usage, what).excerpt(Excerpt::of_line(&self.text, line, column))
    }
}

impl Setting {
    /// The bytes of the file before it.
    pub const fn at(&self) -> usize {
        self.at
    }
}

impl Alias {
    /// The bytes of the file before it.
    pub const fn at(&self) -> usize {
        self.at
    }
}

/// The command that was found, as `devnet up`.
fn path_of(given: &ArgMatches) -> String {
    let mut path = Vec::new();
    let mut at = given;
    while let Some((name, below)) = at.subcommand() {
        path.push(name);
        at = below;
    }
    path.join(" ")
}

/// The command line with a setting as the default of its option, which has been found there.
fn with_default(command: clap::Command, path: &[&str], setting: &Setting) -> clap::Command {
    let Some((first, rest)) = path.split_first() else {
        // Defaults live as long as the command line, which is as long as the process.
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
