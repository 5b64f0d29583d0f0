//! The shape of every command's JSON output, from the types that it prints: the source of
//! `docs/schemas`. [`ALL`] is the whole command line; a command without an entry fails the test
//! below.

use super::{
    TEXT, account, actor, assert, chain, config, devnet, doctor, explain, job, lease, node,
    presence, proof, pvm, quickstart, runner, sim, speculation, timer, validator,
};
use crate::error::ErrorReport;
use clap::Command;
use cowboy_devnet::{handout::Versions, types as api, verification};
use cowboy_lease::messages as leases;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use utoipa::{ToSchema, openapi::RefOr, openapi::schema::Schema};

enum Prints {
    Text,
    Json(&'static [PrintedDocument]),
}

use Prints::{Json, Text};

enum PrintedDocument {
    One(Definition),
    Many(Definition),
}

/// The name of a type, and the schemas that it refers to, by name.
type Definition = fn() -> (String, BTreeMap<String, RefOr<Schema>>);

const fn one<T: ToSchema>() -> PrintedDocument {
    PrintedDocument::One(definition::<T>)
}

const fn many<T: ToSchema>() -> PrintedDocument {
    PrintedDocument::Many(definition::<T>)
}

fn definition<T: ToSchema>() -> (String, BTreeMap<String, RefOr<Schema>>) {
    let mut all = vec![(T::name().into_owned(), T::schema())];
    T::schemas(&mut all);
    let mut named = BTreeMap::<String, RefOr<Schema>>::new();
    for (name, schema) in all {
        if let Some(other) = named.get(&name) {
            assert!(*other == schema, "two shapes of one document are called {name}");
        }
        named.insert(name, schema);
    }
    (T::name().into_owned(), named)
}

const ALL: &[(&str, Prints)] = &[
    ("quickstart", Json(&[one::<quickstart::QuickstartReport>()])),
    // With --output jsonl, blocks follow.
    ("devnet up", Json(&[one::<devnet::UpReport>(), one::<api::BlockNotice>()])),
    ("devnet exec", Text),
    ("devnet down", Json(&[one::<devnet::down::DownReport>()])),
    ("devnet ls", Json(&[many::<devnet::status::ListedDevnet>()])),
    ("devnet use", Json(&[one::<devnet::choose::ChosenDevnet>()])),
    ("devnet status", Json(&[one::<api::Status>()])),
    ("devnet logs", Text),
    ("devnet env", Json(&[one::<devnet::status::Environment>()])),
    ("devnet init", Text),
    ("devnet validate", Json(&[one::<devnet::file::Resolved>()])),
    ("devnet export compose", Json(&[one::<devnet::export::ExportedNodes>()])),
    ("devnet export kubernetes", Json(&[one::<devnet::export::ExportedNodes>()])),
    ("devnet export nodes", Json(&[one::<devnet::export::ExportedNodes>()])),
    ("devnet reset", Json(&[one::<devnet::down::ResetReport>()])),
    ("devnet rm", Json(&[many::<devnet::rm::RmReport>()])),
    ("devnet snapshot save", Json(&[one::<api::Snapshot>()])),
    ("devnet snapshot load", Json(&[one::<devnet::snapshot::Loaded>()])),
    ("devnet snapshot ls", Json(&[many::<api::Snapshot>()])),
    ("devnet snapshot rm", Json(&[many::<devnet::snapshot::Removed>()])),
    ("devnet report", Json(&[one::<devnet::report::WrittenReport>()])),
    ("devnet upgrade", Json(&[one::<api::Validator>()])),
    ("node run", Json(&[one::<node::StartedNode>()])),
    ("node version", Json(&[one::<Versions>()])),
    ("chain head", Json(&[one::<api::Head>()])),
    ("chain burned", Json(&[one::<api::Burned>()])),
    ("chain block", Json(&[one::<api::Block>()])),
    ("chain tx", Json(&[one::<api::Transaction>()])),
    // With --follow, one event after the other.
    ("chain events", Json(&[many::<api::Event>(), one::<api::Event>()])),
    (
        "chain params get",
        Json(&[many::<api::GovernedParameter>(), one::<api::GovernedParameter>()]),
    ),
    ("chain params set", Json(&[one::<chain::params::Set>()])),
    ("chain prove", Json(&[one::<proof::Proved>()])),
    ("chain verify", Json(&[one::<proof::verify::Verified>(), one::<verification::BlocksCheck>()])),
    ("chain wait", Json(&[one::<api::Head>()])),
    ("chain advance", Json(&[one::<chain::advance::Advanced>()])),
    ("chain automine", Json(&[one::<api::Automine>()])),
    ("chain snapshot", Json(&[one::<chain::powers::MadeSnapshot>()])),
    ("chain snapshots", Json(&[many::<api::StateSnapshot>()])),
    ("chain revert", Json(&[one::<chain::powers::Reverted>()])),
    ("chain forget", Json(&[many::<api::StateSnapshot>()])),
    ("chain time", Json(&[one::<chain::powers::BlockClock>()])),
    ("account new", Json(&[one::<account::new::Made>()])),
    ("account ls", Json(&[many::<api::Account>()])),
    ("account balance", Json(&[one::<api::Account>()])),
    ("account fund", Json(&[one::<api::Transaction>()])),
    ("account set-balance", Json(&[one::<api::Transaction>()])),
    ("account transfer", Json(&[one::<api::Transaction>()])),
    (
        "actor check",
        // The second for a module in Python.
        Json(&[one::<actor::check::Checked>(), one::<actor::analysis::CheckedPython>()]),
    ),
    ("actor test", Json(&[one::<actor::test::Tested>()])),
    ("actor deploy", Json(&[one::<actor::deploy::Deployed>()])),
    ("actor ls", Json(&[many::<api::ActorSummary>()])),
    ("actor show", Json(&[one::<api::Actor>()])),
    ("actor transfer", Json(&[one::<api::Actor>()])),
    ("actor set-code", Json(&[one::<api::Actor>()])),
    ("actor set-state", Json(&[one::<api::Transaction>()])),
    ("actor call", Json(&[one::<actor::call::Called>(), one::<api::DryRun>()])),
    ("actor profile", Json(&[one::<actor::profile::Profiled>()])),
    (
        "actor repl",
        // What is typed, `:call`, `:try`; `:store` and `:handlers`.
        Json(&[
            one::<actor::repl::answer::Evaluated>(),
            one::<actor::call::Called>(),
            one::<api::DryRun>(),
            one::<api::Actor>(),
        ]),
    ),
    ("actor logs", Json(&[many::<api::ActorLine>(), one::<api::ActorLine>()])),
    ("timer schedule", Json(&[one::<timer::schedule::Scheduled>()])),
    ("timer ls", Json(&[many::<api::TimerSummary>()])),
    ("timer show", Json(&[one::<api::Timer>()])),
    ("timer cancel", Json(&[one::<timer::change::ChangedTimer>()])),
    ("timer extend", Json(&[one::<timer::change::ChangedTimer>()])),
    ("timer watch", Json(&[one::<api::Event>()])),
    ("timer queue", Json(&[one::<timer::queue::Queued>()])),
    ("timer bid", Json(&[one::<api::TimerQuote>()])),
    ("timer fees", Json(&[many::<api::LaneBlock>()])),
    ("timer fairness", Json(&[one::<api::Fairness>()])),
    ("timer prove", Json(&[one::<proof::Proved>()])),
    ("timer verify", Json(&[one::<proof::verify::Verified>()])),
    ("task create", Json(&[one::<api::ChainTask>()])),
    ("task claim", Json(&[one::<api::ChainTask>()])),
    ("task commit", Json(&[one::<api::ChainTask>()])),
    ("task complete", Json(&[one::<api::ChainTask>()])),
    ("task resolve", Json(&[one::<api::ChainTask>()])),
    ("task ls", Json(&[many::<api::ChainTask>()])),
    ("task show", Json(&[one::<api::ChainTask>()])),
    ("runner ls", Json(&[many::<api::Runner>()])),
    ("runner show", Json(&[one::<api::Runner>()])),
    ("runner subset", Json(&[many::<api::RunnerConnection>()])),
    ("runner deregister", Json(&[one::<api::Transaction>()])),
    ("runner register", Json(&[one::<api::Transaction>()])),
    ("runner update", Json(&[one::<api::Transaction>()])),
    ("runner capability add", Json(&[one::<api::RunnerLoad>()])),
    ("runner capability remove", Json(&[one::<api::RunnerLoad>()])),
    // The first for the devnet's own runners, the second for processes.
    ("runner start", Json(&[one::<api::RunnerLoad>(), one::<runner::process::Started>()])),
    ("runner stop", Json(&[one::<api::RunnerLoad>()])),
    ("runner pause", Json(&[one::<api::RunnerLoad>()])),
    ("runner resume", Json(&[one::<api::RunnerLoad>()])),
    ("runner backpressure", Json(&[one::<api::RunnerLoad>()])),
    ("validator ls", Json(&[many::<api::Validator>()])),
    ("validator show", Json(&[one::<api::Validator>()])),
    ("validator stop", Json(&[one::<api::Validator>()])),
    ("validator resync", Json(&[one::<api::Validator>()])),
    ("validator start", Json(&[one::<api::Validator>()])),
    ("validator add", Json(&[one::<validator::ChangedCommittee>()])),
    ("validator remove", Json(&[one::<validator::ChangedCommittee>()])),
    ("fault ls", Json(&[many::<api::Fault>()])),
    ("fault kill", Json(&[one::<api::Fault>()])),
    ("fault pause", Json(&[one::<api::Fault>()])),
    ("fault partition", Json(&[one::<api::Fault>()])),
    ("fault latency", Json(&[one::<api::Fault>()])),
    ("fault loss", Json(&[one::<api::Fault>()])),
    ("fault lie", Json(&[one::<api::Fault>()])),
    ("fault heal", Json(&[many::<api::Fault>()])),
    ("job submit", Json(&[one::<job::Submitted>()])),
    ("job submit custom", Json(&[one::<job::Submitted>()])),
    ("job submit http", Json(&[one::<job::Submitted>()])),
    ("job submit llm", Json(&[one::<job::Submitted>()])),
    ("job submit mcp", Json(&[one::<job::Submitted>()])),
    ("job submit eth-send", Json(&[one::<job::Submitted>()])),
    ("job cancel", Json(&[one::<api::Job>()])),
    ("job slash", Json(&[one::<api::Job>()])),
    ("job ls", Json(&[many::<api::JobSummary>()])),
    ("job show", Json(&[one::<api::Job>()])),
    ("job answer", Json(&[one::<api::Job>()])),
    ("job wait", Json(&[one::<api::Job>()])),
    ("job result", Json(&[one::<api::JobResult>()])),
    ("job dispatches", Json(&[many::<api::JobDispatch>()])),
    ("job explain", Json(&[one::<job::explain::Explained>()])),
    ("job verify-selection", Json(&[one::<verification::SelectionCheck>()])),
    ("presence show", Json(&[one::<api::Presence>()])),
    ("presence votes", Json(&[one::<api::Votes>()])),
    ("presence diff", Json(&[one::<presence::Diff>()])),
    ("presence verify", Json(&[one::<verification::PresenceCheck>()])),
    ("presence watch", Json(&[one::<presence::watch::PresenceChange>()])),
    ("presence compare", Json(&[one::<api::PresenceComparison>()])),
    ("presence feasibility", Json(&[many::<presence::feasibility::Outlook>()])),
    ("mru ls", Json(&[many::<api::MruRecord>()])),
    ("mru show", Json(&[one::<api::MruRecord>()])),
    ("pool ls", Json(&[many::<api::Pool>()])),
    ("pool show", Json(&[one::<api::Pool>()])),
    ("pool grant", Json(&[one::<api::Pool>()])),
    ("pool revoke", Json(&[one::<api::Pool>()])),
    ("pvm install", Json(&[one::<pvm::InstalledMachine>()])),
    ("pvm status", Json(&[many::<pvm::InstalledMachine>()])),
    ("pvm verify", Json(&[one::<pvm::InstalledMachine>()])),
    ("pvm rm", Json(&[one::<pvm::InstalledMachine>()])),
    // With --wait, the whole pipeline.
    ("speculation submit", Json(&[one::<api::PipelineAccepted>(), one::<api::Pipeline>()])),
    ("speculation plan", Json(&[one::<speculation::plan::Planned>()])),
    ("speculation ls", Json(&[many::<api::PipelineSummary>()])),
    ("speculation graph", Json(&[one::<speculation::graph::Graph<'_>>()])),
    ("speculation show", Json(&[one::<api::Pipeline>(), one::<api::TaskDetail>()])),
    ("speculation verify", Json(&[one::<verification::TaskCheck>()])),
    ("speculation timeline", Json(&[one::<speculation::timeline::Timeline<'_>>()])),
    ("speculation commitments", Json(&[many::<api::SpeculativeCommitment>()])),
    ("speculation proofs", Json(&[many::<api::SpeculativeProof>()])),
    (
        "speculation events",
        Json(&[many::<api::SpeculationEvent>(), one::<api::SpeculationEvent>()]),
    ),
    ("speculation rollbacks", Json(&[many::<api::Rollback>()])),
    ("speculation follow", Json(&[one::<speculation::follow::TaskChange>()])),
    ("speculation retry", Json(&[one::<api::TasksRetried>()])),
    ("speculation load", Json(&[one::<speculation::load::LoadReport>()])),
    ("speculation cancel", Json(&[one::<speculation::show::Cancelled>()])),
    ("speculation status", Json(&[one::<api::SpeculationStatus>()])),
    (
        "speculation config",
        Json(&[many::<api::SpeculationOption>(), one::<api::SpeculationOption>()]),
    ),
    ("speculation config set", Json(&[many::<api::SpeculationOption>()])),
    ("lease submit", Json(&[one::<leases::Run>()])),
    // With --runs, the second.
    ("lease ls", Json(&[many::<leases::JobSummary>(), many::<leases::RunSummary>()])),
    ("lease show", Json(&[one::<leases::Run>(), one::<leases::Job>(), many::<leases::JobEvent>()])),
    ("lease runners", Json(&[many::<leases::RunnerSummary>()])),
    ("lease logs", Text),
    // With --download, the second.
    (
        "lease artifacts",
        Json(&[many::<leases::StoredArtifact>(), many::<lease::artifacts::Downloaded>()]),
    ),
    ("lease cancel", Json(&[one::<leases::Run>(), one::<leases::JobChanged>()])),
    ("lease retry", Json(&[one::<leases::Run>()])),
    ("lease revoke", Json(&[one::<leases::JobChanged>()])),
    ("lease schedule add", Json(&[one::<leases::Schedule>()])),
    ("lease schedule ls", Json(&[many::<leases::Schedule>()])),
    ("lease schedule rm", Json(&[one::<leases::Schedule>()])),
    ("lease token issue", Json(&[one::<lease::token::Issued>()])),
    ("lease token revoke", Json(&[one::<leases::Token>()])),
    ("lease token ls", Json(&[many::<leases::Token>()])),
    ("lease serve", Json(&[one::<lease::serve::Serving>()])),
    ("lease runner", Text),
    ("sim ls", Json(&[many::<sim::ListedScenario>()])),
    ("sim show", Json(&[one::<sim::ListedScenario>()])),
    // With --seeds, the second.
    ("sim run", Json(&[one::<sim::run::Outcome>(), many::<sim::run::Outcome>()])),
    ("sim replay", Json(&[many::<sim::trace::Step>()])),
    ("assert", Json(&[one::<assert::AssertReport>(), one::<assert::Assertable>()])),
    ("doctor", Json(&[many::<doctor::finding::Finding>()])),
    // The first without a name, or with only a topic: events, errors or exit codes.
    ("explain", Json(&[many::<explain::ExplainedName>(), one::<explain::Explanation>()])),
    ("dashboard", Text),
    ("config show", Json(&[many::<config::ConfigLine>()])),
    ("config path", Json(&[one::<config::Located>()])),
    ("completions", Text),
    ("help", Text),
    ("man", Text),
];

/// The schema files: texts by name.
pub fn files() -> BTreeMap<String, Vec<u8>> {
    let file = |(command, prints): &(&str, Prints)| match prints {
        Text => None,
        Json(shapes) => {
            let text = serde_json::to_string_pretty(&schema(command, shapes)).expect("plain data");
            Some((format!("{}.json", command.replace(' ', "-")), (text + "\n").into_bytes()))
        }
    };
    let error = schema("", &[one::<ErrorReport>()]);
    let error = serde_json::to_string_pretty(&error).expect("plain data") + "\n";
    let error = ("error.json".to_owned(), error.into_bytes());
    ALL.iter().filter_map(file).chain([error]).collect()
}

fn schema(command: &str, shapes: &[PrintedDocument]) -> Value {
    let mut definitions = Map::new();
    let mut documents = Vec::new();
    for shape in shapes {
        let (PrintedDocument::One(definition) | PrintedDocument::Many(definition)) = shape;
        let (name, all) = definition();
        for (name, schema) in all {
            let schema = localised(serde_json::to_value(schema).expect("plain data"));
            let before = definitions.insert(name.clone(), schema.clone());
            assert!(before.is_none_or(|before| before == schema), "two shapes are called {name}");
        }
        let reference = json!({ "$ref": format!("#/$defs/{name}") });
        documents.push(match shape {
            PrintedDocument::One(_) => reference,
            PrintedDocument::Many(_) => json!({ "type": "array", "items": reference }),
        });
    }
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": match command {
            "" => "an error, on standard error with --output json".to_owned(),
            _ => format!("cowboyctl {command} --output json"),
        },
    });
    let fields = schema.as_object_mut().expect("it is an object");
    match <[Value; 1]>::try_from(documents) {
        Ok([Value::Object(document)]) => fields.extend(document),
        Ok([document]) => unreachable!("{document} is not a schema"),
        Err(documents) => {
            fields.insert("anyOf".to_owned(), documents.into());
        }
    }
    fields.insert("$defs".to_owned(), definitions.into());
    schema
}

/// The same schema, with references into its own document instead of an API's.
fn localised(schema: Value) -> Value {
    match schema {
        Value::String(text) => match text.strip_prefix("#/components/schemas/") {
            Some(name) => format!("#/$defs/{name}").into(),
            None => text.into(),
        },
        Value::Array(items) => items.into_iter().map(localised).collect(),
        Value::Object(mut fields) => {
            // A flattened field that may be missing: either its fields, or none.
            for part in fields.get_mut("allOf").and_then(Value::as_array_mut).into_iter().flatten()
            {
                let either = part.get_mut("oneOf").map(Value::take);
                if let Some(Value::Array(mut either)) = either {
                    either.retain(|schema| schema["type"] != "null");
                    either.push(json!({ "type": "object", "properties": {} }));
                    *part = json!({ "anyOf": either });
                }
            }
            let fields = fields.into_iter().map(|(name, value)| (name, localised(value)));
            Value::Object(fields.collect())
        }
        plain => plain,
    }
}

/// Every command that can be run: those without subcommands, and those that need none.
fn runnable(command: &Command, path: &str, found: &mut Vec<String>) {
    if !command.has_subcommands() || (!path.is_empty() && !command.is_subcommand_required_set()) {
        found.push(path.to_owned());
    }
    for child in command.get_subcommands().filter(|child| !child.is_hide_set()) {
        runnable(child, format!("{path} {}", child.get_name()).trim(), found);
    }
}

#[test]
fn every_command_has_its_schema_or_prints_text() {
    let mut found = Vec::new();
    runnable(&super::command(), "", &mut found);
    let listed: Vec<_> = ALL.iter().map(|(command, _)| *command).collect();
    for command in &found {
        assert!(listed.contains(&command.as_str()), "`{command}` has no entry in schemas.rs");
    }
    for command in &listed {
        assert!(found.iter().any(|found| found == command), "there is no command `{command}`");
    }
    let text: Vec<_> = ALL
        .iter()
        .filter_map(|(command, prints)| matches!(prints, Text).then_some(*command))
        .collect();
    let mut expected = TEXT.to_vec();
    expected.sort_by_key(|command| listed.iter().position(|listed| listed == command));
    assert_eq!(text, expected, "commands that refuse a filter are those that print text");
}

#[test]
fn every_reference_is_to_a_definition() {
    for (name, text) in files() {
        let text = String::from_utf8(text).unwrap();
        let schema: Value = serde_json::from_str(&text).unwrap();
        for reference in text.split("\"$ref\": \"").skip(1) {
            let target = reference.split('"').next().unwrap();
            let target = target.strip_prefix("#/$defs/").expect(target);
            assert!(schema["$defs"].get(target).is_some(), "{name}: {target}");
        }
    }
}
