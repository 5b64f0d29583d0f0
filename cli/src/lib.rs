//! `cowboyctl`: a local devnet of the Cowboy chain and the tools to look into it.
//!
//! | module | subject |
//! |---|---|
//! | [`error`] | the error of a failed command: exit code, message, hint |
//! | [`output`] | the output of commands, and the sole owner of stdout and stderr |
//! | [`args`] | heights, durations and pairs as typed |
//! | [`config`] | the configuration file: defaults of options, and aliases |
//! | [`context`] | the selected devnet, and the end of a wait |
//! | [`complete`] | shell completion of names |
//! | [`story`] | a run as one page of HTML |
//! | [`dashboard`] | the terminal dashboard: panes, their news, the terminal |
//! | [`commands`] | the command line, a module per noun |
//!
//! A module uses only modules above it. Commands ask a devnet through `cowboy_devnet::client`, from
//! any process; nothing but `devnet up` runs one in this process.
//!
//! It is a library so that it compiles in parallel with the simulator; the program depends on both.

mod args;
mod commands;
mod complete;
mod config;
mod context;
mod dashboard;
mod error;
mod output;
mod story;

use clap_complete::CompleteEnv;
use cowboy_devnet::agent;
use std::{
    env, io,
    process::{self, ExitCode},
};

/// Runs the whole program, or a prover if a devnet has started it as one.
pub fn run() -> ExitCode {
    if env::args_os().skip(1).eq([agent::PROVER]) {
        let served = agent::prove_for_parent(io::stdin(), io::stdout(), || process::exit(0));
        return served.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    // Answers a shell's request for completions and exits.
    CompleteEnv::with_factory(commands::command).complete();
    match commands::parse().and_then(commands::run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::error(&error, commands::format());
            ExitCode::from(error.exit as u8)
        }
    }
}
