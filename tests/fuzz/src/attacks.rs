//! `attacks`: runs the hostile modules of a file and those of the conformance test, each of which
//! has to end as stated, and prints a hash over all receipts, which is the same for every build.

use crate::{
    cases::{Attack, Attacks, own},
    run,
};
use cowboy_engine::actor::{Error, Usage};
use cowboy_engine::primitives::keccak256;

fn read(path: &str) -> Vec<Attack> {
    let text = std::fs::read_to_string(path).expect("the file of attacks can be read");
    let attacks: Attacks = serde_json::from_str(&text).expect("it is a file of attacks");
    attacks.cases
}

/// The sources of the file's modules.
pub fn sources(path: &str) -> Vec<String> {
    read(path).iter().map(Attack::source).collect()
}

/// Runs the modules; returns the number of those that end otherwise.
pub fn attacks(path: String) -> usize {
    run::on_a_thread(move || {
        let cases: Vec<_> = read(&path).into_iter().chain(own()).collect();
        let (mut receipts, mut findings) = (String::new(), 0);
        for case in &cases {
            let source = case.source();
            let run = || -> (Usage, Usage, Option<Error>) {
                let (load, module, _) = run::load(&source);
                match module {
                    Err(error) => (load, Usage::default(), Some(error)),
                    Ok(module) => {
                        let report = run::test(&module, "f").0;
                        (load, report.usage, report.error)
                    }
                }
            };
            let (first, second) = (run(), run());
            let within = first.1.cycles() <= run::BUDGET.cycles;
            if first != second || !within || !case.allows(first.2.as_ref().map(|e| &e.kind)) {
                findings += 1;
                let got = run::ending(first.2.as_ref());
                println!("{}: expected {}, got {got}", case.name, case.stopped_by);
            }
            receipts.push_str(&format!("{first:?}\n"));
        }
        println!("{} cases, receipts {}", cases.len(), keccak256(&[receipts.as_bytes()]));
        findings
    })
}
