//! `cowboyctl`: a local devnet of the Cowboy chain and the tools to look into it.
//!
//! | module | subject |
//! |---|---|
//! | [`error`] | what a command ends with when it is not done: exit code, what, hint |
//! | [`output`] | what commands print, and the sole owner of stdout and stderr |
//! | [`args`] | heights, durations and pairs as typed |
//! | [`config`] | the configuration file: defaults of options, and aliases |
//! | [`context`] | the devnet that is meant, and the end of a wait |
//! | [`complete`] | names for the shell to complete |
//! | [`dashboard`] | the terminal dashboard: panes, their news, the terminal |
//! | [`commands`] | the command line, a module per noun |
//!
//! A module uses only modules above it. Commands ask a devnet through `cowboy_devnet::client`, from
//! any process; nothing but `devnet up` runs one in this process.
//!
//! A library, which compiles beside the simulator's; the program has to wait for both.

mod args;
mod commands;
mod complete;
mod config;
mod context;
mod dashboard;
mod error;
mod output;

use clap_complete::CompleteEnv;
use cowboy_devnet::agent;
use std::{
    env, io,
    process::{self, ExitCode},
};

/// The whole program, or a prover where a devnet has started it to be one.
pub fn run() -> ExitCode {
    if env::args_os().skip(1).eq([agent::PROVER]) {
        let served = agent::prove_for_parent(io::stdin(), io::stdout(), || process::exit(0));
        return served.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    // Answers the shell and exits where the shell asks for completions.
    CompleteEnv::with_factory(commands::command).complete();
    match commands::parse().and_then(commands::run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::error(&error, commands::format());
            ExitCode::from(error.exit as u8)
        }
    }
}
