//! The error for a command line that clap refuses: the usage without global options, and the valid
//! range of a number.

use crate::error::CliError;
use clap::{
    Arg, Command, Error,
    error::{ContextKind, ContextValue},
};

/// Rust's error for a number that does not fit its type, whatever the argument's range.
const NO_ROOM: [&str; 2] =
    ["number too large to fit in target type", "number too small to fit in target type"];

/// clap's error for a number outside the argument's range: `900 is not in 1..=64`.
const BEYOND: &str = " is not in ";

pub fn refused(error: &Error, command: &Command) -> CliError {
    // Arguments of a command can only be shown after `build`.
    let command = &mut command.clone();
    command.build();
    let mut refused = CliError::from(error);
    refused.hint = refused.hint.map(|hint| match hint.starts_with("usage: ") {
        true => without_globals(&hint, command),
        false => hint,
    });
    if let Some((before, why)) = refused.what.rsplit_once(": ")
        && let Some(range) = range(error, why, command)
    {
        refused.what = format!("{before}: expected {range}");
    }
    refused
}

/// A usage without global options; clap adds the given ones to it.
fn without_globals(usage: &str, command: &Command) -> String {
    let globals = command.get_arguments().filter(|arg| arg.is_global_set());
    globals.fold(usage.to_owned(), |usage, arg| {
        let Some(long) = arg.get_long() else { return usage };
        let flag = format!(" --{long}");
        let value = arg.get_value_names().and_then(|names| names.first());
        let with_value = value.map(|value| format!("{flag} <{value}>"));
        with_value.iter().chain([&flag]).fold(usage, |usage, option| {
            // The space avoids a match with the beginning of another option's name.
            let (padded, option) = (format!("{usage} "), format!("{option} "));
            padded.replace(&option, " ").trim_end().to_owned()
        })
    })
}

fn range(error: &Error, why: &str, command: &Command) -> Option<String> {
    if let Some((_, range)) = why.split_once(BEYOND) {
        return words(range);
    }
    if !NO_ROOM.contains(&why) {
        return None;
    }
    let Some(ContextValue::String(shown)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    // The argument's own parser knows its range, so try it with numbers that fit its type.
    let arg = find(command, shown)?;
    let ask = |number: i128| {
        let alone = Arg::new("number").value_parser(arg.get_value_parser().clone());
        let command = Command::new("ask").no_binary_name(true).arg(alone.allow_hyphen_values(true));
        command.try_get_matches_from([number.to_string()]).err()
    };
    for most in [i64::MAX.into(), u64::MAX.into()] {
        let Some(error) = ask(most) else { continue };
        let text = CliError::from(&error).what;
        if let Some((_, range)) = text.split_once(BEYOND) {
            return words(range);
        }
    }
    let least = if ask(-1).is_none() { i128::from(i64::MIN) } else { 0 };
    let most = if ask(u64::MAX.into()).is_none() { u64::MAX.into() } else { i128::from(i64::MAX) };
    Some(format!("{least} to {most}"))
}

/// `1..=64` as `1 to 64`.
fn words(range: &str) -> Option<String> {
    let (least, most) = range.split_once("..=")?;
    Some(format!("{least} to {most}"))
}

/// The argument that clap shows like this, such as `--limit <LIMIT>`, in any command.
fn find<'a>(command: &'a Command, shown: &str) -> Option<&'a Arg> {
    let own = command.get_arguments().find(|arg| arg.to_string() == shown);
    own.or_else(|| command.get_subcommands().find_map(|command| find(command, shown)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::command;

    /// The error for a command line.
    fn said(line: &str) -> CliError {
        let words = ["cowboyctl"].into_iter().chain(line.split_whitespace());
        refused(&command().try_get_matches_from(words).unwrap_err(), &command())
    }

    #[test]
    fn a_number_that_cannot_be_is_told_with_its_bounds() {
        let check = |line: &str, expected: &str| {
            let what = said(line).what;
            assert!(what.ends_with(&format!(": expected {expected}")), "{line}: {what}");
        };
        for beyond in ["0", "65", "4294967296", "99999999999999999999", "9223372036854775808"] {
            check(&format!("devnet up --validators {beyond}"), "1 to 64");
            check(&format!("runner backpressure x --max {beyond}00000"), "1 to 1024");
        }
        check("lease serve --port 65536", "0 to 65535");
        check("lease serve --port 99999999999999999999", "0 to 65535");
        check("lease serve --max-attempts 4294967296", "0 to 4294967295");
        check("job ls --limit 99999999999999999999", "0 to 18446744073709551615");
        check("pool grant a b --until 99999999999999999999", "0 to 18446744073709551615");
        let too_long = said("chain wait 5 --timeout 20000h").what;
        assert!(too_long.ends_with(", from 0ms to 10000h"), "{too_long}");
    }

    #[test]
    fn a_usage_is_without_the_options_of_every_command() {
        let check = |line: &str, expected: &str| {
            assert_eq!(said(line).hint.as_deref(), Some(expected), "{line}");
        };
        let usage = "usage: cowboyctl chain wait <HEIGHT>";
        check("chain wait", usage);
        check("chain wait --devnet a", usage);
        check("--devnet a chain wait -q --wide -o json --node b", usage);
        check("chain wait --jq . --devnet a", usage);
        check(
            "account transfer a -o json",
            "usage: cowboyctl account transfer <FROM> <TO> <AMOUNT>",
        );
    }
}
