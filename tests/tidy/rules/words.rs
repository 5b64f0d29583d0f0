//! Forbidden words: marks of unfinished work, silenced warnings, tests that sleep.

use super::{Rule, Sample};
use crate::{
    Finding,
    source::{Kind, Tree},
};
use std::collections::BTreeMap;

/// No `todo!`, no `dbg!`, no code kept alive by silencing the compiler.
pub const UNFINISHED: Rule = Rule {
    name: "unfinished",
    check: unfinished,
    samples: &[
        Sample {
            files: &[(
                "cli/src/main.rs",
                concat!(
                    "fn f() { todo!() }\n",
                    "fn g() {\n unimplemented!() }\n",
                    "fn h() { dbg!(1); }\n",
                    "#[allow(dead_code)]\nfn i() {}\n",
                    "#[cfg_attr(test, expect(unused, reason = \"a\"))]\nfn j() {}\n"
                ),
            )],
            found: &[
                "cli/src/main.rs:1",
                "cli/src/main.rs:3",
                "cli/src/main.rs:4",
                "cli/src/main.rs:5",
                "cli/src/main.rs:7",
            ],
        },
        Sample {
            files: &[(
                "cli/src/main.rs",
                concat!(
                    "// todo!()\nconst A: &str = \"todo!()\";\n",
                    "#[expect(clippy::large_enum_variant, reason = \"sent once\")]\nenum B {}\n",
                    "fn f(a: bool) -> bool { todo != a }\n"
                ),
            )],
            found: &[],
        },
    ],
};

/// A test waits for its subject, never for time to pass.
pub const SLEEP: Rule = Rule {
    name: "sleeping tests",
    check: sleep,
    samples: &[
        Sample {
            files: &[
                (
                    "devnet/src/lib.rs",
                    concat!(
                        "#[cfg(test)]\nmod tests;\nuse std::thread;\n",
                        "fn f() { thread::sleep(a); }\n",
                        "#[cfg(test)]\nmod inner {\n fn g() { std::thread::sleep(a); }\n}\n"
                    ),
                ),
                (
                    "devnet/src/tests.rs",
                    "use tokio::time::{self, sleep};\nfn g() { time::sleep(a); }\n",
                ),
            ],
            found: &["devnet/src/lib.rs:7", "devnet/src/tests.rs:1", "devnet/src/tests.rs:2"],
        },
        Sample {
            files: &[(
                "tests/a.rs",
                concat!(
                    "use tokio::time::timeout;\n",
                    "async fn f(clock: &impl Clock) { clock.sleep(DELAY).await; }\n"
                ),
            )],
            found: &[],
        },
    ],
};

fn unfinished(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, rust) in tree.rust() {
        let mut find = |line, text: String| findings.push(Finding::new(&file.path, line, text));
        for (at, token) in rust.tokens.iter().enumerate() {
            let next = rust.tokens.get(at + 1);
            if token.kind != Kind::Ident {
                continue;
            }
            match token.text.as_str() {
                "todo" | "unimplemented" | "dbg"
                    if next.is_some_and(|next| next.is("!"))
                        && rust.tokens.get(at + 2).is_some_and(|open| open.kind == Kind::Open) =>
                {
                    find(token.line(), format!("{}!: finish it or take it out", token.text));
                }
                "allow" | "expect" if next.is_some_and(|next| next.is("(")) => {
                    let listed = rust.tokens[at + 2..].iter().take_while(|token| !token.is(")"));
                    for lint in listed.filter(|lint| lint.kind == Kind::Ident) {
                        if lint.text == "dead_code" || lint.text.starts_with("unused") {
                            let text = format!("{} silenced: delete unused code", lint.text);
                            find(lint.line(), text);
                        }
                    }
                }
                _ => {}
            }
        }
    }
    findings
}

fn sleep(tree: &Tree) -> Vec<Finding> {
    let modules: BTreeMap<String, bool> =
        tree.modules().into_iter().map(|module| (module.path, module.test)).collect();
    let mut findings = Vec::new();
    for (file, rust) in tree.rust() {
        let whole = modules.get(&file.path).is_some_and(|&test| test);
        let tests = rust.test_lines();
        for reference in rust.references() {
            let parts: Vec<&str> = reference.parts.iter().map(String::as_str).collect();
            if let [.., "thread" | "time", "sleep" | "sleep_until"] = parts[..]
                && (whole || tests.contains(&reference.line))
            {
                let text =
                    "a test that sleeps: wait for the event itself, or drive a virtual clock";
                findings.push(Finding::new(&file.path, reference.line, text));
            }
        }
    }
    findings
}
