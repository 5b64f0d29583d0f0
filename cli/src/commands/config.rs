//! `config`: shows the configuration file and its settings.

use crate::{
    config::{self, Config as File},
    context::Context,
    error::{CliError, Exit},
    output::{Document, Row, columns},
};
use clap::Subcommand;
use serde::Serialize;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum Config {
    /// Show the file's settings and aliases
    Show,
    /// Show the file's path, whether it exists or not
    Path,
}

/// The path of the configuration file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Located {
    /// The file.
    #[cfg_attr(test, schema(value_type = String))]
    path: PathBuf,
    /// Whether it exists.
    exists: bool,
}

/// A line of the configuration file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct ConfigLine {
    /// `default` or `alias`.
    kind: &'static str,
    /// The command whose option is set; absent for an option of every command and for an alias.
    command: Option<String>,
    /// The option without its dashes, or the alias.
    name: String,
    /// The values, or the words that replace an alias.
    values: Vec<String>,
    /// The line of the file, from 1.
    line: usize,
}

impl Config {
    pub fn run(self, cx: &Context) -> Result<(), CliError> {
        match self {
            Self::Path => {
                let place = config::place().ok_or_else(|| {
                    CliError::new(Exit::NotFound, "no place for a configuration file").hint(
                        "set COWBOYCTL_CONFIG, or XDG_CONFIG_HOME or HOME to an absolute path",
                    )
                })?;
                let exists = place.path.exists();
                cx.ui.document(&Located { path: place.path, exists })
            }
            Self::Show => cx.ui.list(&lines(&File::load()?)),
        }
    }
}

fn lines(file: &File) -> Vec<ConfigLine> {
    let settings = file.settings.iter().map(|setting| ConfigLine {
        kind: "default",
        command: Some(setting.command.clone()).filter(|command| !command.is_empty()),
        name: setting.option.clone(),
        values: setting.values.clone(),
        line: file.line(setting.at),
    });
    let aliases = file.aliases.iter().map(|alias| ConfigLine {
        kind: "alias",
        command: None,
        name: alias.name.clone(),
        values: alias.words.clone(),
        line: file.line(alias.at),
    });
    settings.chain(aliases).collect()
}

impl Document for Located {
    fn text(&self) -> String {
        let note = if self.exists { "" } else { " (not there)" };
        format!("{}{note}", self.path.display())
    }

    fn id(&self) -> String {
        self.path.display().to_string()
    }
}

impl Row for ConfigLine {
    columns! { self;
        let command = match (self.kind, &self.command) {
            ("alias", _) => "-".to_owned(),
            (_, None) => "every".to_owned(),
            (_, Some(command)) => command.clone(),
        };
        let values = self.values.join(" ");
        "kind" => self.kind.to_owned(),
        "command" => command,
        "name" => self.name.clone(),
        "value" => values,
        ">line" => self.line.to_string(),
    }

    fn id(&self) -> String {
        self.name.clone()
    }
}
