//! Every command fails with an exit code from the table and with at most three lines that people
//! understand.

use crate::{
    shape,
    support::{Folder, Outcome, outcome},
};
use serde_json::Value;
use std::fs;

/// Commands that would keep running, each with arguments that it refuses.
const LASTING: [(&str, &[&str]); 3] = [
    ("quickstart", &["--timeout", "soon"]),
    ("devnet up", &["-f", "none.yaml"]),
    ("lease serve", &["--tls-cert", "none.pem", "--tls-key", "none.pem"]),
];

/// Every runnable command with its required arguments, from the reference.
fn commands() -> Vec<(String, Vec<String>)> {
    let page = fs::read_to_string(shape::folder().join("../cli.md")).unwrap();
    let mut found = Vec::new();
    for section in page.split("\n## cowboyctl ").skip(1) {
        let (command, help) = section.split_once('\n').unwrap();
        let usage = help.split_once("Usage: cowboyctl ").unwrap().1.lines().next().unwrap();
        if usage.ends_with("<COMMAND>") && !usage.contains("<FILE>") {
            continue;
        }
        let words = command.split(' ').count();
        let needed: Vec<_> =
            usage.split(' ').skip(words).filter(|word| !word.starts_with('[')).collect();
        found.push((command.to_owned(), needed.into_iter().map(str::to_owned).collect()));
    }
    assert!(found.len() > 80, "the reference was not read: {found:?}");
    found
}

/// The required and optional arguments of every command by their names in the reference, except
/// the words of another command.
fn arguments() -> Vec<(String, Vec<String>)> {
    let page = fs::read_to_string(shape::folder().join("../cli.md")).unwrap();
    let mut found = Vec::new();
    for section in page.split("\n## cowboyctl ").skip(1) {
        let (command, help) = section.split_once('\n').unwrap();
        let usage = help.split_once("Usage: cowboyctl ").unwrap().1.lines().next().unwrap();
        let words = usage.split(' ').skip(command.split(' ').count());
        let words = words.take_while(|word| !word.contains("--"));
        let names = words.filter(|word| !["[OPTIONS]", "<COMMAND>", "[COMMAND]"].contains(word));
        let names: Vec<_> = names.map(str::to_owned).collect();
        if !names.is_empty() {
            found.push((command.to_owned(), names));
        }
    }
    assert!(found.len() > 60, "the reference was not read: {found:?}");
    found
}

/// A value for an argument: well-formed but of nothing that exists, or malformed if `wrong`.
fn argument(name: &str, wrong: bool) -> Vec<String> {
    if wrong {
        return vec!["\u{7}?/ no".to_owned()];
    }
    let value = match name.trim_matches(['<', '>', '.']) {
        "HEIGHT" | "A" | "B" | "ATTEMPT" | "PIPELINE" => "3",
        "FILE" | "MODULE" => "none.yaml",
        "AMOUNT" => "1cby",
        "BLOCKS" => "+5",
        "AT" => "a..b",
        "DELAY" => "5ms",
        "PERCENT" => "5",
        "TRANSACTION" => "0x00",
        "SHELL" => "bash",
        "VALIDATORS" => "4",
        "GROUPS" => return vec!["a".to_owned(), "b".to_owned()],
        _ => "none",
    };
    vec![value.to_owned()]
}

/// Runs the same command line with JSON output in a fresh folder: its error matches the schema and
/// has the exit code.
fn check_json(args: &[&str]) {
    let folder = Folder::new();
    let args = [args, &["--output", "json"]].concat();
    let outcome = outcome(&mut folder.command(&args));
    if outcome.code == 0 {
        return;
    }
    let last = outcome.stderr.lines().last().unwrap_or_default();
    let error: Value =
        serde_json::from_str(last).unwrap_or_else(|_| panic!("{args:?}: {outcome:?}"));
    let schema = shape::schema(&["error"]).unwrap();
    shape::validate(&schema, &error).unwrap_or_else(|wrong| panic!("{args:?}: {wrong}: {error}"));
    assert_eq!(error["error"]["exit"], outcome.code, "{args:?}");
    assert_ne!(error["error"]["message"], "", "{args:?}");
}

fn check(args: &[&str], outcome: &Outcome) {
    let Outcome { code, stderr, .. } = outcome;
    let context = format!("{args:?}: {outcome:?}");
    assert!((0..=8).contains(code), "{context}");
    for sign in ["Some(", "None)", "Err(", "Ok(", " { ", "os error", "panicked", "RUST_BACKTRACE"] {
        assert!(!stderr.contains(sign), "{sign} in {context}");
    }
    // A quoted excerpt of a file takes two more lines.
    let drawn = if stderr.lines().any(|line| line.trim_matches([' ', '|', '^']).is_empty()) {
        2
    } else {
        0
    };
    assert!(stderr.lines().count() <= 3 + drawn, "{context}");
    if *code != 0 {
        let what = stderr.strip_prefix("error: ").map(str::trim);
        assert!(what.is_some_and(|what| !what.is_empty()), "{context}");
        assert!(!stderr.contains('\u{7}'), "{context}");
    }
}

#[test]
fn every_command_fails_in_words() {
    for (command, needed) in commands() {
        let folder = Folder::new();
        let lasting = LASTING.iter().find(|(lasting, _)| *lasting == command);
        let own = lasting.into_iter().flat_map(|(_, own)| own.iter().copied());
        let words: Vec<_> = command.split(' ').chain(own).collect();
        let line = |more: &[String]| {
            let more = more.iter().cloned();
            words.iter().map(|word| (*word).to_owned()).chain(more).collect::<Vec<_>>()
        };
        let with = |more: Vec<String>| {
            let line = line(&more);
            let args: Vec<_> = line.iter().map(String::as_str).collect();
            let outcome = folder.run(&args);
            check(&args, &outcome);
            outcome.code
        };
        let values =
            |wrong| needed.iter().flat_map(|name| argument(name, wrong)).collect::<Vec<_>>();
        with(values(false));
        for more in [values(false), vec!["--no-such-flag".to_owned()]] {
            check_json(&line(&more).iter().map(String::as_str).collect::<Vec<_>>());
        }
        if !needed.is_empty() {
            with(values(true));
            assert_eq!(with(Vec::new()), 2, "{command} without its arguments");
        }
        assert_eq!(with(vec!["--no-such-flag".to_owned()]), 2, "{command}");
        with([values(false), vec!["--output".to_owned(), "xml".to_owned()]].concat());
        with([values(false), vec!["--devnet".to_owned(), "Not A Name".to_owned()]].concat());
        with([values(false), vec!["--devnet".to_owned(), "nowhere".to_owned()]].concat());
    }
}

/// '' is not a name, id or file, and is refused before any lookup.
#[test]
fn an_empty_argument_is_refused() {
    // Data may be empty, and so may the words of a command to run.
    let data = ["[PAYLOAD]", "[ARGUMENTS]", "<COMMAND>...", "[COMMAND]..."];
    let folder = Folder::new();
    for (command, names) in arguments() {
        for (at, name) in names.iter().enumerate().filter(|(_, name)| !data.contains(&&***name)) {
            let others = names.iter().enumerate().flat_map(|(other, name)| match other == at {
                true => vec![String::new()],
                false if name.starts_with('[') && other > at => Vec::new(),
                false => argument(name, false),
            });
            let line: Vec<_> = command.split(' ').map(str::to_owned).chain(others).collect();
            let line: Vec<_> = line.iter().map(String::as_str).collect();
            let outcome = folder.run(&line);
            assert_eq!(outcome.code, 2, "{name} of {line:?}: {outcome:?}");
            // Another argument may be refused first; in any case there is no lookup.
            for sign in ["there is no", "no devnet", "no such"] {
                assert!(!outcome.stderr.contains(sign), "{name} of {line:?}: {outcome:?}");
            }
        }
    }
    let said = folder.fails(2, &["account", "balance", "dev-0", "--node", ""]);
    assert!(said.starts_with("error: --node <NAME> is empty\n"), "{said}");
}

#[test]
fn an_empty_variable_counts_as_none() {
    let folder = Folder::new();
    let variables = ["COWBOYCTL_DEVNET", "COWBOYCTL_OUTPUT", "COWBOYCTL_NODE", "COWBOYCTL_TIMEOUT"];
    let mut command = folder.command(&["devnet", "down"]);
    command.envs(variables.map(|name| (name, "")));
    let outcome = outcome(&mut command);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (4, ""), "{outcome:?}");
    assert!(outcome.stderr.starts_with("error: no devnet is there\n"), "{outcome:?}");
}

#[test]
fn a_home_begins_at_the_root() {
    let folder = Folder::new();
    let mut command = folder.command(&["devnet", "ls"]);
    let outcome = outcome(command.env("COWBOYCTL_HOME", "here"));
    assert_eq!(outcome.code, 2, "{outcome:?}");
    let expected = "error: COWBOYCTL_HOME is here, a relative path\n  name a folder from / on: ";
    assert!(outcome.stderr.starts_with(expected), "{outcome:?}");
}

#[test]
fn errors_are_in_the_format_of_the_data() {
    let folder = Folder::new();
    let said = |format: &str| {
        let outcome = folder.run(&["devnet", "status", "--devnet", "x", "--output", format]);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (4, ""));
        outcome.stderr
    };
    let json = "{\"error\":{\"code\":\"not_running\",\"exit\":4,\"name\":null,\"message\":\"there is no \
                devnet `x`\",\"detail\":null,\"hint\":\"start one: cowboyctl devnet up --detach --name x\"}}\n";
    assert_eq!((said("json").as_str(), said("jsonl").as_str()), (json, json));
    assert!(said("yaml").starts_with("error:\n  code: not_running\n  exit: 4\n"));
    // Also when the rest of the command line cannot be parsed.
    let refused = folder.fails(2, &["devnet", "status", "-ojson", "--no-such-flag"]);
    assert!(refused.starts_with("{\"error\":{\"code\":\"usage\",\"exit\":2,"), "{refused}");
}

#[test]
fn devnets_that_do_not_run_are_removed() {
    let folder = Folder::new();
    for name in ["a", "b", "c"] {
        drop(folder.devnet(name).lock().unwrap());
    }
    let busy = folder.devnet("busy").lock().unwrap();
    let said = folder.fails(8, &["devnet", "rm", "a", "busy"]);
    assert!(said.starts_with("error: devnet `busy` is running\n"), "{said}");
    assert!(folder.devnet("a").exists(), "all of them or none");
    assert_eq!(folder.prints(&["devnet", "rm", "a", "--quiet"]), "a\n");
    let removed = folder.prints(&["devnet", "rm", "--stopped", "--output", "json"]);
    assert!(removed.contains("\"b\"") && removed.contains("\"c\""), "{removed}");
    shape::seen(&["devnet rm"]);
    let left: Vec<_> = fs::read_dir(folder.path("home")).unwrap().flatten().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    folder.fails(4, &["devnet", "rm", "a"]);
    drop(busy);
    folder.fails(2, &["devnet", "rm"]);
}

#[test]
fn help_is_a_command_too() {
    let folder = Folder::new();
    assert_eq!(folder.prints(&["help"]), folder.prints(&["--help"]));
    let words = ["help", "job", "submit"];
    assert_eq!(folder.prints(&words), folder.prints(&["job", "submit", "--help"]));
    let said = folder.fails(2, &["help", "job", "sumbit"]);
    assert!(said.starts_with("error: unrecognized subcommand 'sumbit'\n"), "{said}");
}

#[test]
fn what_was_probably_meant_is_said() {
    let folder = Folder::new();
    folder.devnet("local").lock().unwrap().write_topology("validators: 1\n").unwrap();
    let said = |code, args: &[&str]| folder.fails(code, args);
    insta::assert_snapshot!(said(4, &["devnet", "status", "--devnet", "locla"]), @"
    error: there is no devnet `locla`
      did you mean `local`?
      list them: cowboyctl devnet ls
    ");
    insta::assert_snapshot!(said(2, &["devnet", "stauts"]), @"
    error: unrecognized subcommand 'stauts'
      a similar subcommand exists: 'status'
      usage: cowboyctl devnet [OPTIONS] <COMMAND>
    ");
    insta::assert_snapshot!(said(2, &["devnet", "ls", "--ouptut", "json"]), @"
    error: unexpected argument '--ouptut' found
      a similar argument exists: '--output'
      usage: cowboyctl devnet ls
    ");
    insta::assert_snapshot!(said(2, &["devnet", "ls", "--output", "jsno"]), @"
    error: invalid value 'jsno' for '--output <FORMAT>' [possible values: table, json, jsonl, yaml]
      a similar value exists: 'json'
    ");
    insta::assert_snapshot!(said(2, &["account", "transfer", "a", "b"]), @"
    error: the following required arguments were not provided: <AMOUNT>
      usage: cowboyctl account transfer <FROM> <TO> <AMOUNT>
    ");
}

#[test]
fn yaml_errors_draw_their_line() {
    let folder = Folder::new();
    let check = |file: &str, text: &str, code, args: &[&str]| {
        fs::write(folder.path(file), text).unwrap();
        folder.fails(code, &[args, &[file]].concat())
    };
    let validate = ["devnet", "validate"];
    insta::assert_snapshot!(check("a.yaml", "chain:\n  blok_time: 1s\n", 2, &validate), @"
    error: a.yaml:2:3: chain: unknown field `blok_time`, expected one of `name`, `block_time`, `seed`, `epoch_blocks`, `python`, `powers`, `presence`
      2 |   blok_time: 1s
        |   ^^^^^^^^^
      did you mean `block_time`?
      every field with its default: cowboyctl devnet init -
    ");
    insta::assert_snapshot!(check("a.yaml", "chain:\n  block_time: soon\n", 2, &validate), @r#"
    error: a.yaml:2:15: chain.block_time: invalid value: string "soon", expected a duration from 0ms to 60s, as 250ms or 1s
      2 |   block_time: soon
        |               ^^^^
      every field with its default: cowboyctl devnet init -
    "#);
    insta::assert_snapshot!(check("a.yaml", "a: [1\nb: 2\n", 2, &validate), @"
    error: a.yaml:1:1: unknown field `a`, expected one of `name`, `hosts`, `image`, `chain`, `selection`, `migration`, `connectivity`, `timers`, `tasks`, `speculation`, `lease`, `storage`, `telemetry`, `validators`, `runners`, `accounts`, `api`
      1 | a: [1
        | ^
      every field with its default: cowboyctl devnet init -
    ");
    insta::assert_snapshot!(check("a.yaml", "runners:\n- {name: a}\n- {name: a}\n", 2, &validate), @"
    error: a.yaml:3:10: runners[1].name: `a` is already the name of runners[0].name; names are unique
      3 | - {name: a}
        |          ^
      every field with its default: cowboyctl devnet init -
    ");
    insta::assert_snapshot!(check("j.yaml", "work:\n  costum: {}\n", 2, &["job", "submit", "-f"]), @"
    error: j.yaml: kind: is missing
      this is not a job; its fields are listed in docs/jobs.md
    ");
}
