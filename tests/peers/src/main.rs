//! Other programs that do a part of a validator's work, next to ours in the same run: README.md.

mod anvil;
#[path = "../../../devnet/simulation/benches/devnet/chain.rs"]
mod chain;
mod figures;
mod idle;
#[path = "../../validators/loopback.rs"]
mod loopback;
#[path = "../../../devnet/simulation/benches/devnet/process.rs"]
mod process;
#[path = "../../../devnet/simulation/benches/devnet/runners.rs"]
mod runners;
mod simplex;
mod storage;
mod transfer;

use cowboy_host::duration::parse_duration;
use std::{path::PathBuf, process::ExitCode};

/// Number of validators in our devnets, unless a command says otherwise. This and the next are
/// those of the bench `devnet`.
const VALIDATORS: usize = 4;
/// Number of registered runners.
const RUNNERS: usize = 8;

const USAGE: &str = "\
cowboy-peers simplex [--blocks N] [--rounds N]
cowboy-peers simplex --block-time TIME [--validators N] [--blocks N] [--rounds N]
cowboy-peers storage [--empty N] [--fires N] [--rounds N]
cowboy-peers anvil --anvil PATH [--blocks N] [--rounds N]";

struct Arguments(Vec<String>);

impl Arguments {
    fn option(&self, name: &str) -> Option<&str> {
        let at = self.0.iter().position(|argument| argument == name)?;
        self.0.get(at + 1).map(String::as_str)
    }

    /// The number after `name`, from 1; `None` if it is not one.
    fn number(&self, name: &str, otherwise: u64) -> Option<u64> {
        match self.option(name) {
            Some(text) => text.parse().ok().filter(|&number| number > 0),
            None => Some(otherwise),
        }
    }

    /// `None` if the arguments are not those of a command.
    fn run(&self) -> Option<Result<(), String>> {
        let rounds = self.number("--rounds", 5)?;
        Some(match self.0.first()?.as_str() {
            "simplex" => {
                let compared = if let Some(block_time) = self.option("--block-time") {
                    let block_time = parse_duration(block_time).ok()?;
                    let validators = self.number("--validators", VALIDATORS as u64)? as usize;
                    idle::compare(validators, block_time, self.number("--blocks", 80)?, rounds)
                } else {
                    simplex::compare(self.number("--blocks", 1_000)?, rounds)
                };
                compared.map_err(|error| error.to_string())
            }
            "storage" => {
                let (empty, fires) = (self.number("--empty", 3_000)?, self.number("--fires", 200)?);
                storage::compare(empty, fires, rounds).map_err(|error| error.to_string())
            }
            "anvil" => {
                let program = PathBuf::from(self.option("--anvil")?);
                let blocks = self.number("--blocks", 100)?;
                anvil::compare(&program, blocks, rounds).map_err(|error| error.to_string())
            }
            _ => return None,
        })
    }
}

fn main() -> ExitCode {
    match Arguments(std::env::args().skip(1).collect()).run() {
        Some(Ok(())) => ExitCode::SUCCESS,
        Some(Err(error)) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
        None => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}
