//! Fuzzing of the actors' evaluator: see README.md.

mod attacks;
#[path = "../../metering/calls.rs"]
mod calls;
#[path = "../../conformance/attacks.rs"]
mod cases;
#[cfg(feature = "oracle")]
mod compare;
mod costs;
mod grammar;
mod mutate;
#[cfg(feature = "oracle")]
mod peers;
mod rng;
mod run;
mod soup;
mod suite;
mod sweep;
#[cfg(feature = "oracle")]
mod typed;

use std::process::ExitCode;

const USAGE: &str = "\
cowboy-fuzz soup --count N [--seed N] [--from N] [--corpus FILE] [--show]
cowboy-fuzz compare --count N [--seed N] [--from N] [--show]
cowboy-fuzz suite FOLDER [--show]
cowboy-fuzz costs [NAME]
cowboy-fuzz sweep [CALL]
cowboy-fuzz peers
cowboy-fuzz attacks FILE";

struct Arguments(Vec<String>);

impl Arguments {
    fn option(&self, name: &str) -> Option<String> {
        let at = self.0.iter().position(|argument| argument == name)?;
        self.0.get(at + 1).cloned()
    }

    fn number(&self, name: &str, otherwise: u64) -> Option<u64> {
        match self.option(name) {
            Some(text) => text.parse().ok(),
            None => Some(otherwise),
        }
    }

    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|argument| argument == name)
    }

    fn options(&self) -> Option<soup::Options> {
        Some(soup::Options {
            count: self.number("--count", 10_000)?,
            seed: self.number("--seed", 1)?,
            from: self.number("--from", 0)?,
            verbose: self.has("--show"),
            corpus: self.option("--corpus"),
        })
    }

    fn run(&self) -> Option<usize> {
        let word = |index: usize| self.0.get(index).map(String::as_str);
        Some(match word(0)? {
            "soup" => soup::soup(self.options()?),
            #[cfg(feature = "oracle")]
            "compare" => compare::compare(self.options()?),
            "suite" => suite::suite(word(1)?, self.has("--show")),
            "costs" => costs::costs(word(1).unwrap_or_default()),
            "sweep" => sweep::sweep(word(1).unwrap_or_default()),
            #[cfg(feature = "oracle")]
            "peers" => peers::peers(),
            "attacks" => attacks::attacks(word(1)?.to_owned()),
            _ => return None,
        })
    }
}

fn main() -> ExitCode {
    let arguments = Arguments(std::env::args().skip(1).collect());
    match arguments.run() {
        Some(0) => {
            println!("no findings");
            ExitCode::SUCCESS
        }
        Some(findings) => {
            println!("{findings} findings");
            ExitCode::FAILURE
        }
        None => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}
