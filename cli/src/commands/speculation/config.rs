//! `speculation config`: shows and changes options.

use crate::{
    error::{CliError, Exit, nearest},
    output::{Document, Row, Ui, columns, fields},
};
use clap::{Args, Subcommand};
use cowboy_devnet::{
    client::Client,
    types::{ConfigureRequest, SpeculationOption},
};
use std::collections::BTreeMap;

/// `speculation config`: an option, or a change.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Config {
    #[command(subcommand)]
    change: Option<OptionChange>,
    /// The option, such as stake.minStake [default: all]
    option: Option<String>,
}

#[derive(Debug, Subcommand)]
enum OptionChange {
    /// Change options: all of them, or none if one is wrong
    ///
    /// An option that is set explicitly keeps its value when the mode changes. The output lists the
    /// changed options.
    Set {
        /// Options and their values, such as maxDepth=3
        #[arg(required = true, value_name = "OPTION=VALUE", value_parser = assignment)]
        options: Vec<(String, String)>,
    },
}

fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((option, value)) if !option.trim().is_empty() => {
            Ok((plain(option.trim()).to_owned(), value.trim().to_owned()))
        }
        _ => Err(format!("`{text}` sets nothing: expected OPTION=VALUE, for example maxDepth=3")),
    }
}

/// An option's name without its optional prefix.
fn plain(option: &str) -> &str {
    option.strip_prefix("speculation.").unwrap_or(option)
}

impl Config {
    pub async fn run(self, ui: Ui, client: &Client) -> Result<(), CliError> {
        match (self.change, self.option) {
            (Some(OptionChange::Set { options }), _) => set(ui, client, options).await,
            (None, Some(option)) => {
                ui.document(&find(client.speculation_options().await?, &option)?)
            }
            (None, None) => ui.list(&client.speculation_options().await?),
        }
    }
}

async fn set(ui: Ui, client: &Client, wanted: Vec<(String, String)>) -> Result<(), CliError> {
    let mut options = BTreeMap::new();
    for (option, value) in wanted {
        if options.contains_key(&option) {
            let what = format!("speculation.{option} is given twice");
            return Err(CliError::new(Exit::Usage, what));
        }
        options.insert(option, value);
    }
    let before = client.speculation_options().await?;
    let request = ConfigureRequest { options };
    let after = client.configure_speculation(&request).await.map_err(|error| {
        let error = CliError::from(error);
        let hint = "options and their ranges: cowboyctl speculation config".to_owned();
        CliError { hint: error.hint.clone().or(Some(hint)), ..error }
    })?;
    let is_new = |option: &SpeculationOption| {
        request.options.contains_key(&option.option) || !before.contains(option)
    };
    let changed: Vec<_> = after.into_iter().filter(is_new).collect();
    ui.list(&changed)
}

/// The option with this name, or the only one whose name ends with it.
fn find(all: Vec<SpeculationOption>, typed: &str) -> Result<SpeculationOption, CliError> {
    let typed = plain(typed);
    let named = all.iter().position(|option| option.option == typed);
    let ends = |option: &SpeculationOption| {
        option.option.strip_suffix(typed).is_some_and(|rest| rest.ends_with('.'))
    };
    let names: Vec<_> = all.iter().map(|option| option.option.clone()).collect();
    let mut found: Vec<_> = match named {
        Some(at) => all.get(at).cloned().into_iter().collect(),
        None => all.into_iter().filter(ends).collect(),
    };
    match (found.pop(), found.as_slice()) {
        (Some(only), []) => Ok(only),
        (Some(last), rest) => {
            let names: Vec<_> = rest.iter().chain([&last]).map(|o| o.option.as_str()).collect();
            let what = format!("several options end with `{typed}`: {}", names.join(", "));
            Err(CliError::new(Exit::Usage, what).hint("give more of the name"))
        }
        (None, _) => {
            let what = format!("speculation.{typed}: no such option");
            let hint = "list them: cowboyctl speculation config";
            let error = CliError::new(Exit::NotFound, what).hint(hint);
            // Compare with whole names, and with their last parts.
            let parts =
                names.iter().flat_map(|name| [Some(name.as_str()), name.rsplit('.').next()]);
            Err(error.meant(nearest(typed, parts.flatten())))
        }
    }
}

impl Row for SpeculationOption {
    columns! { self;
        let set = if self.explicit { "by itself" } else { "-" };
        "option" => self.option.clone(),
        ">value" => self.value.clone(),
        "set" => set.to_owned(),
        "may be" => self.range.clone(),
    }
    const LEAST: &'static [&'static str] = &["set"];

    fn id(&self) -> String {
        format!("{}={}", self.option, self.value)
    }
}

impl Document for SpeculationOption {
    fn text(&self) -> String {
        let set = if self.explicit { "by itself" } else { "by default, or by the mode" };
        fields(&[
            ("option", self.option.clone()),
            ("value", self.value.clone()),
            ("set", set.to_owned()),
            ("may be", self.range.clone()),
        ])
    }

    fn id(&self) -> String {
        self.value.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn option(name: &str) -> SpeculationOption {
        SpeculationOption {
            option: name.to_owned(),
            value: "1".to_owned(),
            range: "0 or more".to_owned(),
            explicit: false,
        }
    }

    #[test]
    fn options_are_known_by_their_ends() {
        let all = || ["maxDepth", "stake.minStake", "proof.timeoutMs", "x.timeoutMs"].map(option);
        let found = |typed: &str| find(all().to_vec(), typed).map(|option| option.option);
        for (typed, expected) in [
            ("maxDepth", "maxDepth"),
            ("speculation.maxDepth", "maxDepth"),
            ("minStake", "stake.minStake"),
            ("proof.timeoutMs", "proof.timeoutMs"),
        ] {
            assert_eq!(found(typed).as_deref(), Ok(expected), "{typed}");
        }
        let several = found("timeoutMs").unwrap_err();
        assert_eq!(several.exit, Exit::Usage);
        assert!(several.what.ends_with("proof.timeoutMs, x.timeoutMs"), "{several}");
        for missing in ["Depth", "", "maxDepths"] {
            assert_eq!(found(missing).unwrap_err().exit, Exit::NotFound, "{missing}");
        }
    }

    #[test]
    fn assignments_parse() {
        let pair = |option: &str, value: &str| Ok((option.to_owned(), value.to_owned()));
        assert_eq!(assignment("maxDepth=3"), pair("maxDepth", "3"));
        assert_eq!(assignment("speculation.mode = custom"), pair("mode", "custom"));
        assert_eq!(assignment("a="), pair("a", ""));
        assert!(assignment("maxDepth").is_err());
        assert!(assignment("=3").is_err());
    }
}
