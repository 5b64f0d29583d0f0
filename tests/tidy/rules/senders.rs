//! Every name of the protocol has a sender: each frame, each event of the chain, each reason of a
//! rejection, a cancellation or a goodbye is made somewhere outside tests.
//!
//! The rule reads tokens, not types. A name in a pattern or next to `==` is received, not sent. If
//! only a public method of a session sends a name, a driver has to call the method.

use super::{Rule, Sample};
use crate::{
    Finding,
    source::{Kind, Rust, Token, Tree},
};
use std::collections::BTreeSet;

/// Files of a project with two frames, two reasons and two events, which the given files may send.
macro_rules! project {
    ($transition:literal, $session:literal, $driver:literal) => {
        [
            (MESSAGES, "message!(0x01 Control Hello { a });\nmessage!(0x02 Job Ack);\n"),
            (VALUES, "texts! {\n GoodbyeReason {\n Lost = \"lost\",\n Old = \"old\",\n}\n}\n"),
            (EVENTS, "events! {\n 1 Moved { a: u8 }\n 2 Gone {}\n}\n"),
            ("engine/src/lib.rs", "mod wire; mod session; mod chain;"),
            ("engine/src/wire/mod.rs", "mod message; mod value;"),
            ("engine/src/session/mod.rs", "mod runner;"),
            ("engine/src/chain/mod.rs", "mod event; mod transition;"),
            ("devnet/src/lib.rs", "mod runner;"),
            ("engine/src/chain/transition.rs", $transition),
            ("engine/src/session/runner.rs", $session),
            ("devnet/src/runner/mod.rs", $driver),
        ]
    };
}

/// Every name of the protocol has a sender.
pub const SENDERS: Rule = Rule {
    name: "senders",
    check: senders,
    samples: &[
        Sample {
            files: &project!(
                "fn f() { let Gone {} = x; match y { Moved { a } | B => {} } }\n\
                     #[cfg(test)]\nmod t { fn g() { emit(Gone {}); } }",
                "impl Runner { pub fn hello(&self) { send(Hello { a: 1 }.to_frame()); } }\n\
                     fn f() -> R { if a == GoodbyeReason::Lost { match b {\n\
                     Err(GoodbyeReason::Old) => c, _ => matches!(d, E(GoodbyeReason::Old)) } } }",
                "fn f() { other.hello(); let Ack { a, .. } = b; }"
            ),
            found: &[
                "engine/src/wire/message.rs:1",
                "engine/src/wire/message.rs:2",
                "engine/src/wire/value.rs:3",
                "engine/src/wire/value.rs:4",
                "engine/src/chain/event.rs:2",
                "engine/src/chain/event.rs:3",
            ],
        },
        Sample {
            files: &project!(
                "fn f() { emit(Gone {}); match y { A => Moved { a }, _ => b } }\n",
                "impl Runner { pub fn hello(&self) { send(Hello { a: 1 }.to_frame()); } }\n\
                     fn f() -> R { if a { return Err(GoodbyeReason::Lost); }\n\
                     g(H { reason: GoodbyeReason::Old, b }) }",
                "fn f() { session.hello(); Ack::with_mac(key); }"
            ),
            found: &[],
        },
    ],
};

const MESSAGES: &str = "engine/src/wire/message.rs";
const VALUES: &str = "engine/src/wire/value.rs";
const EVENTS: &str = "engine/src/chain/event.rs";

/// Enums whose variants are sent by name.
const REASONS: [&str; 3] = ["GoodbyeReason", "RejectReason", "CancelReason"];

/// Folders in which frames are made. Elsewhere the API has types of the same names.
const FRAMES_IN: [&str; 4] =
    ["engine/src/session/", "devnet/src/runner/", "devnet/src/validator/", "devnet/src/agent/"];

/// The two ends of a connection, whose methods drivers call.
const SESSIONS: [&str; 2] = ["engine/src/session/runner.rs", "engine/src/session/validator.rs"];

/// A name of the protocol, and the place of its definition.
struct Named {
    path: &'static str,
    line: usize,
    what: What,
}

/// A named part of the protocol.
enum What {
    Frame(String),
    Event(String),
    Reason(&'static str, String),
}

fn senders(tree: &Tree) -> Vec<Finding> {
    let sources = sources(tree);
    let called = called_on_sessions(&sources);
    names(tree)
        .into_iter()
        .filter(|named| !sources.iter().any(|source| source.says(&named.what, &called)))
        .map(|named| {
            let what = match &named.what {
                What::Frame(name) => format!("frame {name}"),
                What::Event(name) => format!("event {name}"),
                What::Reason(of, name) => format!("{of}::{name}"),
            };
            let text = format!("{what} is made nowhere outside tests: send it, or take it out");
            Finding::new(named.path, named.line, text)
        })
        .collect()
}

/// Every name that needs a sender.
fn names(tree: &Tree) -> Vec<Named> {
    let tokens = |path| tree.get(path).and_then(|file| file.rust.as_ref()).map(|rust| &rust.tokens);
    let mut names = Vec::new();
    for window in tokens(MESSAGES).into_iter().flat_map(|tokens| tokens.windows(6)) {
        let [word, bang, _, kind, _, name] = window else { continue };
        if word.is("message") && bang.is("!") && kind.kind == Kind::Literal {
            let what = What::Frame(name.text.clone());
            names.push(Named { path: MESSAGES, line: name.line(), what });
        }
    }
    for window in tokens(EVENTS).into_iter().flat_map(|tokens| tokens.windows(3)) {
        let [tag, name, open] = window else { continue };
        if tag.kind == Kind::Literal && name.kind == Kind::Ident && open.is("{") {
            let what = What::Event(name.text.clone());
            names.push(Named { path: EVENTS, line: name.line(), what });
        }
    }
    for of in REASONS {
        let Some(tokens) = tokens(VALUES) else { continue };
        let Some(at) = tokens.array_windows().position(|[name, open]| name.is(of) && open.is("{"))
        else {
            continue;
        };
        let inside = tokens[at + 2..].iter().take_while(|token| !token.is("}"));
        let inside: Vec<&Token> = inside.collect();
        for [name, equals, _] in inside.array_windows() {
            if name.kind == Kind::Ident && equals.is("=") && name.text != "doc" {
                let what = What::Reason(of, name.text.clone());
                names.push(Named { path: VALUES, line: name.line(), what });
            }
        }
    }
    names
}

/// A file of the engine or the devnet without its tests.
struct Source<'a> {
    path: &'a str,
    tokens: Vec<&'a Token>,
    /// For each delimiter, the index of its counterpart.
    other: Vec<usize>,
}

fn sources(tree: &Tree) -> Vec<Source<'_>> {
    let modules = tree.modules();
    let mut sources = Vec::new();
    for module in modules.iter().filter(|module| !module.test) {
        let of_ours = ["engine/src/", "devnet/src/"].iter().any(|of| module.path.starts_with(of));
        let Some(file) = tree.get(&module.path).filter(|_| of_ours) else { continue };
        if let Some(rust) = &file.rust {
            sources.push(Source::of(&file.path, rust));
        }
    }
    sources
}

/// Methods that the devnet's drivers call on a session.
fn called_on_sessions<'a>(sources: &[Source<'a>]) -> BTreeSet<&'a str> {
    let driver = sources.iter().filter(|source| source.path.starts_with("devnet/src/"));
    let mut called = BTreeSet::new();
    for source in driver {
        for [receiver, dot, name, open] in source.tokens.array_windows() {
            if receiver.is("session") && dot.is(".") && open.is("(") {
                called.insert(name.text.as_str());
            }
        }
    }
    // Drivers construct both ends with `new`.
    called.insert("new");
    called
}

impl<'a> Source<'a> {
    fn of(path: &'a str, rust: &'a Rust) -> Self {
        let tests = rust.test_lines();
        let tokens: Vec<_> = rust.tokens.iter().filter(|t| !tests.contains(&t.line())).collect();
        let (mut other, mut opened) = (vec![0; tokens.len()], Vec::new());
        for (at, token) in tokens.iter().enumerate() {
            match token.kind {
                Kind::Open => opened.push(at),
                Kind::Close => {
                    if let Some(open) = opened.pop() {
                        (other[open], other[at]) = (at, open);
                    }
                }
                Kind::Ident | Kind::Punct | Kind::Literal => {}
            }
        }
        Self { path, tokens, other }
    }

    fn is(&self, at: usize, text: &str) -> bool {
        self.tokens.get(at).is_some_and(|token| token.is(text))
    }

    fn is_path_sign(&self, at: usize) -> bool {
        self.is(at, ":") && self.is(at + 1, ":")
    }

    /// Whether `what` is made in this file, in a reachable function.
    fn says(&self, what: &What, called: &BTreeSet<&str>) -> bool {
        let frames = FRAMES_IN.iter().any(|of| self.path.starts_with(of));
        match what {
            What::Frame(name) if frames => self.places(name).any(|at| {
                let is_made = |name| self.is(at + 3, name);
                let signs = self.is_path_sign(at + 1) && (is_made("signed") || is_made("with_mac"));
                (signs || self.builds(at)) && self.is_reached(at, called)
            }),
            What::Event(name) if self.path.starts_with("engine/") && self.path != EVENTS => {
                self.places(name).any(|at| self.builds(at))
            }
            What::Reason(of, name) if self.path != VALUES => self.places(of).any(|at| {
                self.is_path_sign(at + 1) && self.is(at + 3, name) && self.is_said(at, at + 4)
            }),
            _ => false,
        }
    }

    fn places(&self, name: &str) -> impl Iterator<Item = usize> {
        let named = self.tokens.iter().enumerate().filter(move |(_, token)| token.is(name));
        named.map(|(at, _)| at).collect::<Vec<_>>().into_iter()
    }

    /// Whether the name at `at` begins the building of a struct.
    fn builds(&self, at: usize) -> bool {
        self.is(at + 1, "{") && self.is_said(at, self.other[at + 1] + 1)
    }

    /// Whether the tokens from `start` to before `end` are an expression that is passed on, and
    /// neither a pattern nor an operand of a comparison.
    fn is_said(&self, mut start: usize, mut end: usize) -> bool {
        loop {
            while start >= 3 && self.is_path_sign(start - 2) {
                start -= 3;
            }
            // `impl Name {`, `struct Name {`, and a function's return type.
            let before = |text| start >= 1 && self.is(start - 1, text);
            let declared = ["impl", "for", "struct", "enum", "fn"].iter().any(|word| before(word));
            let yielded = before(">") && start >= 2 && self.is(start - 2, "-");
            let compared =
                before("=") && start >= 2 && (self.is(start - 2, "=") || self.is(start - 2, "!"));
            if declared || yielded || compared {
                return false;
            }
            let Some(next) = self.tokens.get(end) else { return true };
            let heard = ["=", "|", "if", "in"].iter().any(|text| next.is(text))
                || (next.is(":") && !self.is(end + 1, ":"))
                || (next.is("!") && self.is(end + 1, "="));
            if heard {
                return false;
            }
            // The surrounding tokens decide whether it is a pattern.
            if next.kind != Kind::Close && !next.is(",") {
                return true;
            }
            let Some(open) = self.around(start) else { return true };
            let field = before(":") || before(",") || before("{");
            if self.is(open, "{") && !(field && self.is_fields(open)) {
                return true;
            }
            let matches = open >= 2
                && self.is(open - 1, "!")
                && self.tokens[open - 2].text.ends_with("matches");
            if matches {
                return false;
            }
            end = self.other[open] + 1;
            let named = open >= 1 && self.tokens[open - 1].kind == Kind::Ident;
            start = if named { open - 1 } else { open };
        }
    }

    /// The opening delimiter of the group that `at` is in.
    fn around(&self, at: usize) -> Option<usize> {
        let mut at = at;
        while at > 0 {
            at -= 1;
            match self.tokens[at].kind {
                Kind::Open => return Some(at),
                Kind::Close => at = self.other[at],
                Kind::Ident | Kind::Punct | Kind::Literal => {}
            }
        }
        None
    }

    /// Whether braces hold fields rather than statements or arms.
    fn is_fields(&self, open: usize) -> bool {
        let first = &self.tokens[open + 1];
        let named = open >= 1 && self.tokens[open - 1].kind == Kind::Ident;
        let is_type = named && self.tokens[open - 1].text.starts_with(char::is_uppercase);
        let colon = self.is(open + 2, ":") && !self.is(open + 3, ":");
        is_type && first.kind == Kind::Ident && (colon || self.is(open + 2, ","))
    }

    /// Whether the function around `at` is reachable: a public function of a session has to be
    /// called by a driver.
    fn is_reached(&self, at: usize, called: &BTreeSet<&str>) -> bool {
        if !SESSIONS.contains(&self.path) {
            return true;
        }
        let function = self.tokens[..at].iter().enumerate().rev().find(|(index, token)| {
            let body = (*index..self.tokens.len()).find(|i| self.is(*i, "{"));
            token.is("fn") && body.is_some_and(|body| self.other[body] > at)
        });
        let Some((index, _)) = function else { return true };
        let words = self.tokens[..index].iter().rev();
        let mut words = words.skip_while(|word| word.is("const") || word.is("async"));
        let is_public = words.next().is_some_and(|word| word.is("pub"));
        !is_public || called.contains(self.tokens[index + 1].text.as_str())
    }
}
