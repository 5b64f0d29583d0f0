//! Loads a scenario: one that comes with the program, or a file.

use crate::{
    args,
    commands::assert::Compiled,
    error::{CliError, Exit},
};
use clap_complete::CompletionCandidate;
use cowboy_host::spelling::nearest;
use cowboy_simulation::script::{self, MAX_BYTES, Script, ScriptError};
use std::path::Path;

pub fn names() -> Vec<CompletionCandidate> {
    let candidate = |scenario: &script::LibraryScenario| {
        let about = scenario.script().ok().map(|script| script.about.into());
        CompletionCandidate::new(scenario.name).help(about)
    };
    script::all().iter().map(candidate).collect()
}

/// The scenario with this name, or in this file, and its name in a command.
pub fn load(named: &str) -> Result<(String, Script), CliError> {
    if let Some(found) = script::named(named) {
        let script = found.script().map_err(|error| refused(named, &error))?;
        return Ok((named.to_owned(), script));
    }
    let file = Path::new(named);
    if named != "-" && !file.exists() {
        return Err(unknown(named));
    }
    let text = String::from_utf8(args::input(file, MAX_BYTES)?);
    let text = text.map_err(|_| CliError::new(Exit::Usage, format!("{named}: it is not text")))?;
    let script = Script::parse(&text).map_err(|error| refused(named, &error))?;
    for (number, check) in script.checks.iter().enumerate() {
        Compiled::of(check).map_err(|error| CliError {
            what: format!("{named}: checks[{number}]: {}", error.what),
            hint: Some("what a check is about: cowboyctl sim run NAME -o json".to_owned()),
            ..error
        })?;
    }
    Ok((named.to_owned(), script))
}

fn refused(named: &str, error: &ScriptError) -> CliError {
    let space = if error.0.place.is_some() { "" } else { " " };
    CliError::new(Exit::Usage, format!("{named}:{space}{error}"))
        .hint("all fields are in docs/simulation.md; an example: cowboyctl sim show crashes")
}

pub fn unknown(named: &str) -> CliError {
    let closest = nearest(named, script::all().iter().map(|scenario| scenario.name));
    let error =
        CliError::new(Exit::NotFound, format!("there is no scenario and no file `{named}`"));
    error.hint(match closest {
        Some(name) => format!("did you mean {name}? see all: cowboyctl sim ls"),
        None => "see all: cowboyctl sim ls".to_owned(),
    })
}
