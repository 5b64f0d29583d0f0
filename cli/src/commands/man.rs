//! `help` prints a command's own --help, and `man` manual pages from the same definitions.

use super::command;
use crate::{
    error::{CliError, Exit, is_answer},
    output::{Ui, raw},
};
use clap::Args;
use std::{fs, path::PathBuf};

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

/// `man`.
#[derive(Debug, Args)]
pub struct Man {
    /// The command whose page it is [default: cowboyctl itself]
    command: Vec<String>,
    /// Write every page into this folder instead
    #[arg(long, value_name = "FOLDER", conflicts_with = "command")]
    dir: Option<PathBuf>,
}

/// A page's file name and text.
pub type ManPage = (String, Vec<u8>);

impl Man {
    pub fn run(self, ui: Ui) -> Result<(), CliError> {
        let pages = pages()?;
        let Some(dir) = self.dir else {
            let name = ["cowboyctl".to_owned()].into_iter().chain(self.command);
            let name = name.collect::<Vec<_>>().join("-") + ".1";
            let page = pages.iter().find(|(file, _)| *file == name).ok_or_else(|| {
                let command = name.trim_end_matches(".1").replace('-', " ");
                CliError::new(Exit::NotFound, format!("there is no command `{command}`"))
                    .hint("list them: cowboyctl --help")
            })?;
            return raw(&page.1);
        };
        let io = |error: std::io::Error| CliError::file(Exit::Failed, &dir, &error);
        fs::create_dir_all(&dir).map_err(io)?;
        for (file, text) in &pages {
            fs::write(dir.join(file), text).map_err(io)?;
        }
        ui.note(&format!("{} pages in {}", pages.len(), dir.display()));
        Ok(())
    }
}

/// The pages of every command, the program's own first.
pub fn pages() -> Result<Vec<ManPage>, CliError> {
    let mut root = command();
    root.build();
    let mut pages = Vec::new();
    let mut commands = vec![root];
    while let Some(command) = commands.pop() {
        let visible = command.get_subcommands().filter(|c| !c.is_hide_set()).cloned();
        commands.extend(visible.collect::<Vec<_>>().into_iter().rev());
        let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
        let version = env!("CARGO_PKG_VERSION");
        let man = clap_mangen::Man::new(command.version(version))
            .title(name.clone())
            .source(format!("cowboyctl {version}"))
            .manual("cowboyctl manual");
        let mut text = Vec::new();
        man.render(&mut text)?;
        pages.push((format!("{name}.1"), text));
    }
    Ok(pages)
}
