//! `dashboard`: the terminal dashboard.

use crate::{
    config::Config,
    context::Context,
    dashboard::{self, Completion, Options, Origin, Theme},
    error::CliError,
};
use clap::Args;
use cowboy_devnet::client::Client;
use std::{env, path::PathBuf};

/// `dashboard`.
#[derive(Debug, Args)]
pub struct Dashboard {
    /// The colours: dark, light or none [default: as NO_COLOR and COLORFGBG say, else dark]
    #[arg(long, value_enum, hide_possible_values = true)]
    theme: Option<Theme>,
    /// Record everything received from the devnet in this new file, one JSON document per line
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Show a recording from this file instead of a devnet
    #[arg(long, value_name = "FILE", conflicts_with = "record")]
    replay: Option<PathBuf>,
}

impl Dashboard {
    pub fn run(self, cx: &Context) -> Result<(), CliError> {
        let origin = match self.replay {
            Some(file) => Origin::Recording(file),
            None => {
                let home = cx.running(None)?;
                // Fails in the same way as any other request to a devnet.
                Client::of_devnet(&home)?;
                Origin::Devnet { home, node: cx.node.clone() }
            }
        };
        let variable = |name: &str| env::var(name).ok();
        dashboard::run(Options {
            origin,
            record: self.record,
            theme: self.theme.unwrap_or_else(|| Theme::of_environment(variable)),
            commands: completions(),
        })
    }
}

fn completions() -> Vec<Completion> {
    fn collect(command: &clap::Command, path: &str, found: &mut Vec<Completion>) {
        let mut children = command.get_subcommands().filter(|c| !c.is_hide_set()).peekable();
        if children.peek().is_none() && !path.is_empty() {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            found.push(Completion { path: path.to_owned(), about });
        }
        for child in children {
            collect(child, format!("{path} {}", child.get_name()).trim(), found);
        }
    }
    let mut found = Vec::new();
    collect(&super::command(), "", &mut found);
    found.retain(|command| command.path != "dashboard");
    // The command line was read with the same file, which is correct then.
    let aliases = Config::load().map(|config| config.aliases).unwrap_or_default();
    found.extend(aliases.into_iter().map(|alias| Completion {
        about: format!("alias of {}", alias.words.join(" ")),
        path: alias.name,
    }));
    found
}
