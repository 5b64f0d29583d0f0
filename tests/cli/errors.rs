//! Every command fails like this: with an exit code of the table, and at most three lines that say
//! something to people.

use crate::{
    shape,
    support::{Folder, Outcome},
};
use std::fs;

/// Commands that would run on: each gets what it refuses.
const LASTING: [(&str, &[&str]); 3] = [
    ("quickstart", &["--timeout", "soon"]),
    ("devnet up", &["-f", "none.yaml"]),
    ("lease serve", &["--tls-cert", "none.pem", "--tls-key", "none.pem"]),
];

/// Every command that can be run, with the arguments that it cannot do without, by the reference.
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

/// Something for an argument: of its kind, but nothing that is there; or of no kind at all.
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

fn check(args: &[&str], outcome: &Outcome) {
    let Outcome { code, stderr, .. } = outcome;
    let context = format!("{args:?}: {outcome:?}");
    assert!((0..=8).contains(code), "{context}");
    for sign in ["Some(", "None)", "Err(", "Ok(", " { ", "os error", "panicked", "RUST_BACKTRACE"] {
        assert!(!stderr.contains(sign), "{sign} in {context}");
    }
    // What is drawn of a text are two lines.
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
        let words: Vec<_> = command.split(' ').collect();
        let with = |more: Vec<String>| {
            let lasting = LASTING.iter().find(|(lasting, _)| *lasting == command);
            let more = more.iter().map(String::as_str);
            let own = lasting.into_iter().flat_map(|(_, own)| own.iter().copied());
            let args: Vec<_> = words.iter().copied().chain(own).chain(more).collect();
            let outcome = folder.run(&args);
            check(&args, &outcome);
            outcome.code
        };
        let values =
            |wrong| needed.iter().flat_map(|name| argument(name, wrong)).collect::<Vec<_>>();
        with(values(false));
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

#[test]
fn what_was_probably_meant_is_said() {
    let folder = Folder::new();
    folder.devnet("local").lock().unwrap().write_topology("validators: 1\n").unwrap();
    let said = |code, args: &[&str]| folder.fails(code, args);
    insta::assert_snapshot!(said(4, &["devnet", "status", "--devnet", "locla"]), @"
    error: there is no devnet `locla`
      did you mean `local`?
      see which there are: cowboyctl devnet ls
    ");
    insta::assert_snapshot!(said(2, &["devnet", "stauts"]), @"
    error: unrecognized subcommand 'stauts'
      a similar subcommand exists: 'status'
      usage: cowboyctl devnet [OPTIONS] <COMMAND>
    ");
    insta::assert_snapshot!(said(2, &["devnet", "ls", "--ouptut", "json"]), @"
    error: unexpected argument '--ouptut' found
      a similar argument exists: '--output'
      usage: cowboyctl devnet ls --output <FORMAT>
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
    error: a.yaml:2:3: chain: unknown field `blok_time`, expected one of `name`, `block_time`, `seed`, `epoch_blocks`, `presence`
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
    error: a.yaml:1:1: unknown field `a`, expected one of `name`, `chain`, `selection`, `migration`, `connectivity`, `timers`, `tasks`, `speculation`, `lease`, `storage`, `telemetry`, `validators`, `runners`, `accounts`, `api`
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
    insta::assert_snapshot!(check("j.yaml", "work:\n  costum: {}\n", 7, &["job", "submit", "-f"]), @"
    error: j.yaml: kind: is missing
      no job is like that; the fields are listed in docs/jobs.md
    ");
}
