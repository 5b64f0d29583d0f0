//! The environment variables of options: `--block-time` has `COWBOYCTL_BLOCK_TIME`.

use clap::{
    Arg, ArgAction, Command,
    builder::{FalseyValueParser, Resettable},
};
use std::env;

/// Options without a variable: those whose meaning differs between commands, because one variable
/// would set them all; `rpc-url`, which `devnet env` sets for other programs; and `daemon`, which
/// only this program passes to itself.
const WITHOUT: [&str; 8] =
    ["as", "daemon", "from", "impersonate", "payer", "rpc-url", "tee", "wait"];

/// The command whose `token-file` has no variable: it is a runner's own, and `devnet env` and
/// `devnet exec` set the variable for the devnet's.
const OWN_TOKEN: &str = "runner";

/// Gives every option its variable. A flag's is off when it is `0`, `false`, `no` or `off`.
pub fn of_options(command: Command) -> Command {
    let has_own_token = command.get_name() == OWN_TOKEN;
    let with_variable = |arg: Arg| {
        let is_without =
            |long: &str| WITHOUT.contains(&long) || (has_own_token && long == "token-file");
        let Some(long) = arg.get_long().filter(|long| !is_without(long)) else { return arg };
        // Clap keeps names for as long as the process lives.
        let name = format!("COWBOYCTL_{}", long.replace('-', "_").to_uppercase()).leak();
        let arg = arg.env(&*name).hide_env_values(true);
        match arg.get_action() {
            ArgAction::SetTrue => arg.value_parser(FalseyValueParser::new()),
            _ => arg,
        }
    };
    command.mut_args(with_variable).mut_subcommands(of_options)
}

pub fn without_empty(command: Command) -> Command {
    let is_empty = |arg: &Arg| {
        arg.get_env().is_some_and(|name| env::var_os(name).is_some_and(|value| value.is_empty()))
    };
    let unset = |arg: Arg| if is_empty(&arg) { arg.env(Resettable::Reset) } else { arg };
    command.mut_args(unset).mut_subcommands(without_empty)
}
