//! The names that can be explained: fields of a topology, events, errors and exit codes, each read
//! from its place in the book.

use super::page::{self, CHAIN_ERRORS, ERRORS, SPECULATION};
use clap::ValueEnum;
use cowboy_devnet::topology::reference;
use cowboy_engine::chain::EventKind;
use serde::Serialize;

/// The kind of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum Topic {
    /// A field of a topology.
    Topology,
    /// An event of the chain.
    Event,
    /// An error of the chain, the control API or a lease server.
    Error,
    /// An exit code.
    Exit,
}

/// The description of a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Explanation {
    /// The kind of name.
    pub topic: Topic,
    /// The name as commands and files spell it.
    pub name: String,
    /// Its meaning.
    pub about: String,
    /// The values that a field takes; absent for other names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub takes: Option<String>,
    /// A field's default; absent if it has none or is required.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// What to do about an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// The exit code of a command that fails with this error; absent for other names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<String>,
    /// The fields of a section, or of an event's `data`.
    pub fields: Vec<Part>,
}

/// A field of a section or an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Part {
    /// Its name; the whole path for a topology's field.
    pub name: String,
    /// The values that it takes, or the type of its value.
    pub takes: String,
    /// Its default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Its meaning.
    pub about: String,
}

impl Topic {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Topology => "topology",
            Self::Event => "event",
            Self::Error => "error",
            Self::Exit => "exit",
        }
    }

    pub const fn about(self) -> &'static str {
        match self {
            Self::Topology => "the fields of a topology, as topology.chain.block_time",
            Self::Event => "what happens in blocks, as event TimerFired",
            Self::Error => {
                "why the chain, the control API or a lease server refuses, as error StaleInputs"
            }
            Self::Exit => "what exit codes mean, as exit 6",
        }
    }

    /// All its names, in the order of the book.
    pub fn all(self) -> Vec<Explanation> {
        match self {
            Self::Topology => topology(),
            Self::Event => events(),
            Self::Error => errors(),
            Self::Exit => exits(),
        }
    }

    fn explanation(self, name: impl Into<String>, about: impl Into<String>) -> Explanation {
        Explanation {
            topic: self,
            name: name.into(),
            about: about.into(),
            takes: None,
            default: None,
            remedy: None,
            exit_code: None,
            fields: Vec::new(),
        }
    }
}

/// The topology as a whole, then each of its fields; a section lists the fields below it.
fn topology() -> Vec<Explanation> {
    let mut fields = reference::fields();
    for field in &mut fields {
        if let Some(option) = field.path.strip_prefix("speculation.") {
            field.about = option_text(option);
        }
    }
    let part = |field: &reference::Field| Part {
        name: format!("topology.{}", field.path),
        takes: field.takes.clone(),
        default: field.default.clone(),
        about: field.about.clone(),
    };
    let below = |path: &str| {
        let inside = |field: &&reference::Field| {
            let rest = field.path.strip_prefix(path);
            path.is_empty() || rest.is_some_and(|rest| rest.starts_with(['.', '[']))
        };
        fields.iter().filter(inside).map(part).collect()
    };
    let whole = Explanation {
        fields: below(""),
        ..Topic::Topology.explanation("topology", "The parts of a devnet: a YAML file.")
    };
    let each = fields.iter().map(|field| Explanation {
        takes: Some(field.takes.clone()),
        default: field.default.clone(),
        fields: if field.is_section { below(&field.path) } else { Vec::new() },
        ..Topic::Topology.explanation(format!("topology.{}", field.path), field.about.clone())
    });
    [whole].into_iter().chain(each).collect()
}

fn option_text(option: &str) -> String {
    let mut rows = page::rows(SPECULATION, "option");
    let found = rows.find(|row| page::name(row.get("option")) == Some(option));
    found.map(|row| sentence(row.get(""))).unwrap_or_default()
}

fn sentence(phrase: &str) -> String {
    let mut letters = phrase.chars();
    let Some(first) = letters.next() else { return String::new() };
    let end = if phrase.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{}{}{end}", first.to_uppercase(), letters.as_str())
}

fn events() -> Vec<Explanation> {
    let event = |doc: &cowboy_engine::chain::event::KindDoc| Explanation {
        fields: doc
            .fields
            .iter()
            .map(|field| Part {
                name: field.name.to_owned(),
                takes: in_words(field.ty).unwrap_or_else(|| field.ty.to_owned()),
                default: None,
                about: field.about.trim().to_owned(),
            })
            .collect(),
        ..Topic::Event.explanation(doc.name, doc.about.trim())
    };
    EventKind::DOCS.iter().map(event).collect()
}

/// A field's Rust type in words, as the JSON of events represents it.
fn in_words(ty: &str) -> Option<String> {
    let inner = |outer: &str| ty.strip_prefix(outer)?.strip_suffix('>');
    if let Some(inner) = inner("Option<") {
        return Some(format!("{}, or null", in_words(inner)?));
    }
    Some(
        match ty {
            "bool" => "true or false",
            "u32" | "u64" => "a number",
            "String" => "a text",
            "Height" => "a height",
            "Wei" => "an amount in wei",
            "Address" => "an address",
            "Vec<Address>" => "addresses",
            "Hash" | "Element" => "a hash",
            "Vec<Hash>" => "hashes",
            "Vec<String>" => "texts",
            "Vec<u8>" => "JSON",
            "Vec<ProposedValue>" => "parameters and values",
            "JobKind" => "a kind of job",
            "Policy" => "a policy",
            "Phase" => "a phase",
            "FailureReason" | "SlashReason" | "RollbackReason" => "a reason",
            _ => return None,
        }
        .to_owned(),
    )
}

fn errors() -> Vec<Explanation> {
    let exit = |row: &page::PageRow| {
        let code = row.get("exit code");
        if code.is_empty() { "6".to_owned() } else { code.to_owned() }
    };
    let error = |row: page::PageRow, column: &str| {
        let name = page::name(row.get(column))?;
        let remedy = row.get("what to do");
        Some(Explanation {
            remedy: Some(sentence(remedy)).filter(|remedy| !remedy.is_empty()),
            exit_code: Some(exit(&row)),
            ..Topic::Error.explanation(name, sentence(row.get("cause")))
        })
    };
    let chain = page::rows(CHAIN_ERRORS, "error").filter_map(|row| error(row, "error"));
    // The order is: the control API's errors, then a lease server's.
    let others = page::rows(ERRORS, "`code`").filter_map(|row| error(row, "`code`"));
    chain.chain(others).collect()
}

fn exits() -> Vec<Explanation> {
    let exit = |row: page::PageRow| {
        let remedy = row.get("what to do");
        Explanation {
            remedy: Some(sentence(remedy)).filter(|remedy| !remedy.is_empty()),
            ..Topic::Exit
                .explanation(row.get("code"), format!("{}: {}.", row.get("kind"), row.get("cause")))
        }
    };
    page::rows(ERRORS, "code").map(exit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::EXITS;
    use std::{collections::BTreeSet, fs, path::Path};

    #[test]
    fn every_event_is_explained_in_words() {
        let events = events();
        assert_eq!(events.len(), EventKind::NAMES.len());
        for doc in EventKind::DOCS {
            for field in doc.fields {
                assert!(in_words(field.ty).is_some(), "{}: {}", doc.name, field.ty);
                assert!(!field.about.trim().is_empty(), "{}.{}", doc.name, field.name);
            }
        }
    }

    #[test]
    fn every_exit_code_and_option_is_explained() {
        let exits: Vec<_> = exits().into_iter().map(|exit| exit.name).collect();
        assert_eq!(exits, EXITS.map(|exit| (exit as u8).to_string()));
        for field in topology() {
            assert!(!field.about.is_empty(), "{}: docs/speculation.md", field.name);
        }
    }

    /// Collects names at the beginning of string literals in sources, such as `StaleInputs: …`.
    fn names(folder: &Path, found: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && name != "tests" {
                names(&path, found);
            } else if name.ends_with(".rs") && !["tests.rs", "testing.rs"].contains(&&*name) {
                let text = fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
                for text in code.split('"').skip(1) {
                    let letters = text.bytes().take_while(u8::is_ascii_alphabetic).count();
                    let (name, rest) = text.split_at(letters);
                    let is_name = name.starts_with(|c: char| c.is_ascii_uppercase());
                    // "Timers: " begins a sentence in the API's description.
                    if rest.starts_with(": ") && is_name && name != "Timers" {
                        found.insert(name.to_owned());
                    }
                }
            }
        }
    }

    #[test]
    fn every_error_of_the_chain_is_explained() {
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut found = BTreeSet::new();
        for folder in ["engine/src", "devnet/src/chain", "devnet/src/api", "cli/src/commands/chain"]
        {
            names(&top.join(folder), &mut found);
        }
        let rows = page::rows(CHAIN_ERRORS, "error");
        let told: Vec<_> =
            rows.map(|row| page::name(row.get("error")).unwrap_or_default().to_owned()).collect();
        assert!(found.len() > 100, "the sources are read: {found:?}");
        let missing: Vec<_> = found.iter().filter(|name| !told.contains(name)).collect();
        assert!(missing.is_empty(), "docs/chain-errors.md lacks {missing:?}");
        // Names from another table.
        let others = ["JobNotAssigned", "JobNotCommitted"];
        for name in &told {
            let is_known = found.contains(name) || others.contains(&name.as_str());
            assert!(is_known, "docs/chain-errors.md: no source has the error {name}");
            assert_eq!(told.iter().filter(|other| *other == name).count(), 1, "{name} twice");
        }
    }
}
