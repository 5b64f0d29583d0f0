//! `devnet use`: chooses the default devnet for commands.

use crate::{
    complete,
    context::{self, Context},
    error::CliError,
    output::Document,
};
use clap::Args;
use clap_complete::{ArgValueCandidates, CompletionCandidate};
use cowboy_devnet::topology::Name;
use serde::Serialize;

/// `devnet use`.
#[derive(Debug, Args)]
pub struct Use {
    /// The devnet, or - for none [default: show the current choice]
    #[arg(value_name = "DEVNET", add = ArgValueCandidates::new(candidates), value_parser = choice)]
    choice: Option<Choice>,
    /// Clear the choice
    #[arg(long, conflicts_with = "choice")]
    unset: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Choice {
    None,
    Devnet(Name),
}

fn choice(text: &str) -> Result<Choice, String> {
    match text {
        "-" => Ok(Choice::None),
        _ => text.parse().map(Choice::Devnet).map_err(|error| format!("{error}, or -")),
    }
}

fn candidates() -> Vec<CompletionCandidate> {
    complete::devnets().into_iter().chain([complete::described("-", "none".to_owned())]).collect()
}

/// The default devnet for commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct ChosenDevnet {
    /// Its name; null if none is chosen.
    #[cfg_attr(test, schema(value_type = Option<String>))]
    devnet: Option<Name>,
}

impl Use {
    pub fn run(self, cx: &Context) -> Result<(), CliError> {
        let home = context::home()?;
        let devnet = match self.choice {
            None if !self.unset => home.current()?,
            Some(Choice::Devnet(name)) => {
                // A named devnet, so that there is no note about the current one if that is gone.
                let devnet = cx.existing(Some(&name))?;
                home.set_current(Some(devnet.name()))?;
                Some(name)
            }
            None | Some(Choice::None) => {
                home.set_current(None)?;
                None
            }
        };
        cx.ui.document(&ChosenDevnet { devnet })
    }
}

impl Document for ChosenDevnet {
    fn text(&self) -> String {
        match &self.devnet {
            Some(name) => format!("commands that name no devnet take `{name}`"),
            None => "commands that name no devnet take the only one running".to_owned(),
        }
    }

    fn id(&self) -> String {
        self.devnet.as_ref().map(Name::to_string).unwrap_or_default()
    }
}
