//! The commands of the prompt: lines that begin with a colon.

use crate::{
    args::HeightArg,
    error::{CliError, Exit, nearest},
};
use std::path::PathBuf;

/// A line that begins with a colon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptCommand {
    Help,
    Call {
        handler: String,
        payload: Option<String>,
    },
    Try {
        handler: String,
        payload: Option<String>,
    },
    /// Keys with this prefix.
    Store(Option<String>),
    Handlers,
    At(HeightArg),
    /// Evaluate with a file's code; `None` is the actor's own.
    With(Option<PathBuf>),
    /// Read the file again, or another one.
    Reload(Option<PathBuf>),
    From(String),
    Forget,
    Quit,
}

/// Every command, as it is typed, and what it does.
const ALL: [(&str, &str); 11] = [
    (":help", "this list"),
    (":call HANDLER [PAYLOAD]", "send a call as a transaction, and show what it did"),
    (":try HANDLER [PAYLOAD]", "show every call that a call would make, and send nothing"),
    (":store [PREFIX]", "entries of the store"),
    (":handlers", "what can be called"),
    (":at HEIGHT|latest", "evaluate on the state after this block, one of the last 256"),
    (":with [FILE]", "evaluate with the module in this file; without FILE, with the actor's own"),
    (":reload [FILE]", "read that file again"),
    (":from ACCOUNT", "the caller from now on"),
    (":forget", "forget the names that were assigned"),
    (":quit", "leave; so does the end of input"),
];

/// The commands' first words.
pub fn words() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|(usage, _)| usage.split(' ').next().unwrap_or_default())
}

/// The list of `:help`, with one line per command.
pub fn help() -> String {
    let width = ALL.iter().map(|(usage, _)| usage.len()).max().unwrap_or_default();
    let lines: Vec<_> =
        ALL.iter().map(|(usage, about)| format!("  {usage:width$}  {about}")).collect();
    format!(
        "Type an expression or statements; nothing that they do is sent. Commands:\n{}",
        lines.join("\n")
    )
}

impl PromptCommand {
    /// Reads a line that begins with a colon.
    pub fn read(line: &str) -> Result<Self, CliError> {
        let line = line.trim();
        let (word, rest) = split(line);
        let usage = ALL.iter().map(|(usage, _)| *usage).find(|usage| split(usage).0 == word);
        let Some(usage) = usage else {
            let what = format!("there is no command {word}");
            let error = CliError::new(Exit::Usage, what).meant(nearest(word, words()));
            return Err(error.hint("list them: :help"));
        };
        let refused = |what: &str| {
            let what = format!("{word}: {what}");
            CliError::new(Exit::Usage, what).hint(format!("expected {usage}"))
        };
        let call = || match split(rest) {
            ("", _) => Err(refused("which handler?")),
            (handler, "") => Ok((handler.to_owned(), None)),
            (handler, payload) => Ok((handler.to_owned(), Some(payload.to_owned()))),
        };
        let file = (!rest.is_empty()).then(|| PathBuf::from(rest));
        let command = match word {
            ":call" => {
                let (handler, payload) = call()?;
                return Ok(Self::Call { handler, payload });
            }
            ":try" => {
                let (handler, payload) = call()?;
                return Ok(Self::Try { handler, payload });
            }
            ":store" => return Ok(Self::Store((!rest.is_empty()).then(|| rest.to_owned()))),
            ":at" => {
                let height = rest.parse().map_err(|error: String| refused(&error))?;
                return match height {
                    HeightArg::Ahead(_) => Err(refused("that block is not there yet")),
                    height => Ok(Self::At(height)),
                };
            }
            ":with" => return Ok(Self::With(file)),
            ":reload" => return Ok(Self::Reload(file)),
            ":from" if rest.is_empty() => return Err(refused("which account?")),
            ":from" => return Ok(Self::From(rest.to_owned())),
            ":handlers" => Self::Handlers,
            ":forget" => Self::Forget,
            ":quit" => Self::Quit,
            _ => Self::Help,
        };
        match rest.is_empty() {
            true => Ok(command),
            false => Err(refused("it takes no argument")),
        }
    }
}

/// The first word, and the rest without the space around it.
fn split(line: &str) -> (&str, &str) {
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    (word, rest.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read() {
        let call = |handler: &str, payload: Option<&str>| PromptCommand::Call {
            handler: handler.to_owned(),
            payload: payload.map(str::to_owned),
        };
        let check = |line: &str, expected| assert_eq!(PromptCommand::read(line), Ok(expected));
        check(":help", PromptCommand::Help);
        check("  :quit ", PromptCommand::Quit);
        check(":call bump", call("bump", None));
        check(":call bump  {\"by\": 2} ", call("bump", Some("{\"by\": 2}")));
        check(":store", PromptCommand::Store(None));
        check(":store a b", PromptCommand::Store(Some("a b".to_owned())));
        check(":at 7", PromptCommand::At(HeightArg::At(7)));
        check(":at latest", PromptCommand::At(HeightArg::Latest));
        check(":with", PromptCommand::With(None));
        check(":reload my file.star", PromptCommand::Reload(Some("my file.star".into())));
        check(":from alice", PromptCommand::From("alice".to_owned()));
        for (usage, _) in ALL {
            assert!(help().contains(usage));
            let line = usage.replace("HEIGHT|latest", "3");
            assert!(PromptCommand::read(line.trim_end_matches(" [FILE]")).is_ok(), "{usage}");
        }
    }

    #[test]
    fn other_lines_say_what_is_expected() {
        let check = |line: &str, what: &str| {
            let error = PromptCommand::read(line).unwrap_err();
            assert_eq!(error.exit, Exit::Usage);
            assert!(error.to_string().contains(what), "{error}");
        };
        check(":halp", "did you mean `:help`?");
        check(":", "there is no command :");
        check(":call", "which handler?");
        check(":at", "`` is not a height");
        check(":at +3", "not there yet");
        check(":from", "which account?");
        check(":quit now", "it takes no argument");
    }
}
