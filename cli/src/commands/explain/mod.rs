//! `explain`: describes a field, an event, an error or an exit code with the book's text.

mod page;
mod topic;

pub use topic::{Explanation, Topic};

use crate::{
    complete::{described, line::Line},
    context::Context,
    error::{CliError, Exit, nearest},
    output::{Document, Row, columns, fields, table},
};
use clap::{Args, ValueEnum as _};
use clap_complete::{ArgValueCandidates, CompletionCandidate};
use serde::Serialize;

/// `explain`.
#[derive(Debug, Args)]
pub struct Explain {
    /// The name, such as topology.chain.block_time, event TimerFired, error StaleInputs, exit 6
    #[arg(value_name = "WHAT", num_args = 0..=2, add = ArgValueCandidates::new(candidates))]
    words: Vec<String>,
}

/// A name that can be explained.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct ExplainedName {
    /// The kind of name.
    topic: Topic,
    /// The name.
    name: String,
    /// Its meaning.
    about: String,
}

impl Explain {
    pub fn run(self, cx: &Context) -> Result<(), CliError> {
        match self.words.as_slice() {
            [] => {
                cx.ui.list(&Topic::value_variants().iter().copied().map(whole).collect::<Vec<_>>())
            }
            [word] => match topic(word) {
                Some(Topic::Topology) => cx.ui.document(&find(&Topic::Topology.all(), word)?),
                Some(topic) => cx.ui.list(&topic.all().into_iter().map(entry).collect::<Vec<_>>()),
                None => cx.ui.document(&find(&everything(), word)?),
            },
            [first, name, ..] => match topic(first) {
                Some(topic) => cx.ui.document(&find(&topic.all(), name)?),
                None => Err(unknown(first, Topic::value_variants().iter().map(|t| t.name()))),
            },
        }
    }
}

fn topic(word: &str) -> Option<Topic> {
    Topic::value_variants().iter().copied().find(|topic| topic.name() == word)
}

fn everything() -> Vec<Explanation> {
    Topic::value_variants().iter().flat_map(|topic| topic.all()).collect()
}

fn whole(topic: Topic) -> ExplainedName {
    ExplainedName { topic, name: topic.name().to_owned(), about: topic.about().to_owned() }
}

fn entry(of: Explanation) -> ExplainedName {
    ExplainedName { topic: of.topic, name: of.name, about: of.about }
}

/// The explanation with this name; ignores case if no name matches exactly.
fn find(all: &[Explanation], name: &str) -> Result<Explanation, CliError> {
    let long = format!("topology.{name}");
    let is = |one: &&Explanation| one.name == name || one.name == long;
    let about = |one: &&Explanation| one.name.eq_ignore_ascii_case(name);
    let found = all.iter().find(is).or_else(|| all.iter().find(about));
    found.cloned().ok_or_else(|| unknown(name, all.iter().map(|one| one.name.as_str())))
}

fn unknown<'n>(name: &str, names: impl Iterator<Item = &'n str> + Clone) -> CliError {
    let last = |name: &'n str| name.strip_prefix("topology.").unwrap_or(name);
    let meant = nearest(name, names.clone()).or_else(|| nearest(name, names.map(last)));
    CliError::new(Exit::NotFound, format!("unknown name `{name}`"))
        .meant(meant)
        .hint("list the names: cowboyctl explain")
}

/// The names of a topic after its word; otherwise topics and all names.
fn candidates() -> Vec<CompletionCandidate> {
    let line = Line::typed();
    let candidate = |one: Explanation| described(one.name, one.about);
    let chosen = Topic::value_variants().iter().find(|topic| line.has(topic.name()));
    match chosen {
        Some(topic) => topic.all().into_iter().map(candidate).collect(),
        None => {
            let topics = Topic::value_variants().iter();
            let topics = topics.map(|topic| described(topic.name(), topic.about().to_owned()));
            let is_name = |one: &Explanation| !matches!(one.topic, Topic::Exit);
            let names = everything().into_iter().filter(is_name).map(candidate);
            topics.chain(names.skip(1)).collect()
        }
    }
}

impl Row for ExplainedName {
    columns! { self;
        "name" => self.name.clone(),
        "what it is" => self.about.clone(),
    }

    fn id(&self) -> String {
        self.name.clone()
    }
}

impl Document for Explanation {
    fn text(&self) -> String {
        let mut head = vec![(self.topic.name(), self.name.clone())];
        head.extend([("what it is", &self.about)].map(|(name, text)| (name, text.clone())));
        let more = [
            ("takes", &self.takes),
            ("default", &self.default),
            ("what to do", &self.remedy),
            ("exit code", &self.exit_code),
        ];
        head.extend(more.into_iter().filter_map(|(name, text)| Some((name, text.clone()?))));
        let head = fields(&head);
        if self.fields.is_empty() {
            return head;
        }
        let is_event = self.topic == Topic::Event;
        let header: &[&str] = match is_event {
            true => &["field", "is", "what it is"],
            false => &["field", "takes", "default"],
        };
        let rows = self.fields.iter().map(|part| {
            let last = match is_event {
                true => part.about.clone(),
                false => part.default.clone().unwrap_or_else(|| "-".to_owned()),
            };
            vec![part.name.clone(), part.takes.clone(), last]
        });
        format!("{head}\n\n{}", table(header, rows))
    }

    fn id(&self) -> String {
        self.name.clone()
    }
}
