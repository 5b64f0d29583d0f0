//! `attacks`: runs the hostile modules of a file, each of which has to end as the file says, and
//! prints a hash over all receipts, which is the same for every build.

use crate::run;
use cowboy_engine::actor::{Error, ErrorKind, Usage};
use cowboy_engine::primitives::keccak256;
use serde::Deserialize;

#[derive(Deserialize)]
struct Attacks {
    cases: Vec<Attack>,
}

#[derive(Deserialize)]
struct Attack {
    name: String,
    stopped_by: String,
    source: Option<String>,
    parts: Option<Vec<Part>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Part {
    Once(String),
    Repeated { repeat: String, times: usize },
}

impl Attack {
    fn source(&self) -> String {
        let parts = self.parts.iter().flatten().map(|part| match part {
            Part::Once(text) => text.clone(),
            Part::Repeated { repeat, times } => repeat.repeat(*times),
        });
        self.source.clone().into_iter().chain(parts).collect()
    }

    /// Whether this outcome is the one that the case expects.
    fn allows(&self, error: Option<&ErrorKind>) -> bool {
        let is_limit =
            |kind: &ErrorKind| !matches!(kind, ErrorKind::Failed(_) | ErrorKind::Undone(_));
        match (self.stopped_by.as_str(), error) {
            ("ok", error) => error.is_none(),
            ("error", error) => error.is_some(),
            ("refused at deployment", Some(kind)) => kind.is_refusal(),
            (_, Some(kind)) => is_limit(kind) && !kind.is_refusal(),
            (_, None) => false,
        }
    }
}

fn read(path: &str) -> Vec<Attack> {
    let text = std::fs::read_to_string(path).expect("the file of attacks can be read");
    let attacks: Attacks = serde_json::from_str(&text).expect("it is a file of attacks");
    attacks.cases
}

/// The sources of the file's modules.
pub fn sources(path: &str) -> Vec<String> {
    read(path).iter().map(Attack::source).collect()
}

/// Runs the file's modules; returns the number of those that end otherwise.
pub fn attacks(path: String) -> usize {
    run::on_a_thread(move || {
        let cases = read(&path);
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
