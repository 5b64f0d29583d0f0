//! Output on terminals of any width, in pipes and through filters, and its schemas.

use crate::{
    actors,
    answers::{answer, hash},
    online::{SHOWN, job_commands},
    shape, speculation,
    support::{Fake, Folder, Outcome, outcome},
    terminal::on_terminal,
    timers,
};
use cowboy_devnet::types::{PipelineStatus, TimerStatus, TransactionStatus};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead as _, BufReader},
    os::unix::process::ExitStatusExt as _,
    path::Path,
    process::Stdio,
};

fn owned(args: &[&str]) -> Vec<String> {
    args.iter().map(|arg| (*arg).to_owned()).collect()
}

/// Commands about every part of a devnet, with a devnet that answers them.
fn shown() -> Vec<(Fake, Vec<Vec<String>>)> {
    let id = hash(1).to_string();
    let of_chain = SHOWN.iter().map(|args| owned(args)).chain(job_commands()).collect();
    let of_actors = [
        &["actor", "ls"][..],
        &["actor", "show", &actors::actor().to_string()],
        &["actor", "call", "0xac", "bump", "--dry-run"],
        &["chain", "tx", &hash(9).to_string()],
    ]
    .map(owned);
    let of_timers = [
        &["timer", "ls"][..],
        &["timer", "show", &id],
        &["timer", "queue"],
        &["timer", "fees"],
        &["timer", "fairness"],
        &["chain", "params", "get"],
        &["chain", "params", "get", "fast"],
    ]
    .map(owned);
    let of_speculation = [
        &["speculation", "ls"][..],
        &["speculation", "show", "7"],
        &["speculation", "show", "7", "second"],
        &["speculation", "commitments"],
        &["speculation", "rollbacks", "--pipeline", "7"],
        &["speculation", "events", "--pipeline", "7"],
        &["speculation", "status"],
        &["speculation", "config"],
    ]
    .map(owned);
    vec![
        (Fake::new(answer), of_chain),
        (actors::fake(TransactionStatus::Success), of_actors.to_vec()),
        (timers::fake(TimerStatus::Due), of_timers.to_vec()),
        (speculation::fake(PipelineStatus::Completed), of_speculation.to_vec()),
    ]
}

fn words(args: &[String]) -> Vec<&str> {
    args.iter().map(String::as_str).collect()
}

#[test]
fn no_line_is_wider_than_its_terminal() {
    for (fake, commands) in shown() {
        for args in commands {
            for columns in [40, 80, 132] {
                let mut command = fake.folder.command(&words(&args));
                let shown = on_terminal(&mut command, columns, false);
                assert_eq!(shown.code, 0, "{args:?}: {}", shown.text);
                for line in shown.text.lines() {
                    // Words other than ids are never split: a URL, a path, a rule's name.
                    let one_word = line.split_whitespace().count() <= 2;
                    let fits = line.chars().count() <= usize::from(columns);
                    assert!(fits || one_word, "{args:?} in {columns} columns: {line}");
                }
            }
        }
    }
}

#[test]
fn tables_read_well_in_80_and_40_columns() {
    let fake = Fake::new(answer);
    let mut all = String::new();
    for columns in [80, 40] {
        for args in [
            &["runner", "ls"][..],
            &["validator", "ls"],
            &["chain", "block", "42"],
            &["account", "ls"],
            &["job", "ls"],
            &["mru", "show", "dev-0", "custom"],
        ] {
            let shown = on_terminal(&mut fake.folder.command(args), columns, true);
            all += &format!("$ cowboyctl {}   # {columns}\n{}\n", args.join(" "), shown.text);
        }
    }
    insta::assert_snapshot!(all);
}

/// Every list of [`shown`] on a terminal of 80 columns.
#[test]
fn lists_stay_tables_in_80_columns() {
    let mut all = String::new();
    for (fake, commands) in shown() {
        let is_list = |args: &&Vec<String>| {
            let lists = ["ls", "subset", "dispatches", "compare", "fees", "get", "logs"];
            let more = ["commitments", "rollbacks", "events", "config", "status"];
            lists.contains(&args[1].as_str()) || more.contains(&args[1].as_str())
        };
        for args in commands.iter().filter(is_list) {
            let shown = on_terminal(&mut fake.folder.command(&words(args)), 80, true);
            all += &format!("$ cowboyctl {}\n{}\n", args.join(" "), shown.text);
        }
    }
    insta::assert_snapshot!(all);
}

#[test]
fn keys_and_urls_are_whole_on_any_terminal() {
    let fake = Fake::new(answer);
    let check = |args: &[&str], columns, whole: &str| {
        let shown = on_terminal(&mut fake.folder.command(args), columns, true).text;
        assert!(shown.contains(whole), "{args:?} in {columns} columns: {shown}");
    };
    let public = "0x037792cab3de3aa228df1e6eb88c6157fd660bf44f97aed46f286fe45feef8eca2";
    for columns in [40, 80] {
        check(&["runner", "show", "runner-3"], columns, public);
        let consensus = format!("0x{}", "02".repeat(32));
        check(&["validator", "show", "validator-2"], columns, &consensus);
        check(
            &["account", "balance", "dev-0"],
            columns,
            "d636d2026d3d8b8571492a05f6deed28bc4cb8f9",
        );
    }
    check(&["devnet", "ls"], 80, "http://127.0.0.1:");
}

#[test]
fn wide_and_pipes_leave_nothing_out() {
    for (fake, commands) in shown() {
        for args in commands {
            let piped = fake.folder.prints(&words(&args));
            // A table abbreviates a store's long value on every output.
            let short = piped.contains('…') && !args[..2].concat().eq("actorshow");
            assert!(!short, "{args:?}: {piped}");
            let mut command = fake.folder.command(&[&words(&args)[..], &["--wide"]].concat());
            let wide = on_terminal(&mut command, 40, false).text;
            // Charts are drawn on terminals only.
            assert!(wide.ends_with(&piped), "{args:?}: {wide}\n{piped}");
            // JSON is the same on a terminal of any width.
            let args = [&words(&args)[..], &["-o", "json"]].concat();
            let json = fake.folder.prints(&args);
            assert_eq!(on_terminal(&mut fake.folder.command(&args), 40, false).text, json);
        }
    }
}

#[test]
fn colour_is_for_terminals_that_show_it() {
    let folder = Folder::new();
    let shown = |term: &str, no_color: Option<&str>| {
        let mut command = folder.command(&["chain", "head", "--devnet", "nowhere"]);
        command.env("TERM", term).envs(no_color.map(|value| ("NO_COLOR", value)));
        let shown = on_terminal(&mut command, 80, true);
        assert_eq!(shown.code, 4);
        shown.text
    };
    let plain = "error: there is no devnet `nowhere`\n  \
                 start one: cowboyctl devnet up --detach --name nowhere\n";
    assert_eq!(shown("dumb", None), plain);
    assert_eq!(shown("xterm-256color", Some("1")), plain);
    let coloured = shown("xterm-256color", None);
    assert!(coloured.contains("\u{1b}["), "{coloured:?}");
    let unseen = folder.command(&["chain", "head"]).env("TERM", "xterm").output().unwrap();
    assert!(!unseen.stderr.contains(&0x1b));
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    for (fake, commands) in shown() {
        for args in commands {
            for more in [&[][..], &["-o", "json"], &["-q"], &["--jq", "., ., ."]] {
                let args = [&words(&args)[..], more].concat();
                let mut command = fake.folder.command(&args);
                let (reader, writer) = std::io::pipe().unwrap();
                drop(reader);
                let ended = command.stdout(writer).stderr(Stdio::piped()).output().unwrap();
                let said = String::from_utf8(ended.stderr).unwrap();
                assert_eq!((ended.status.code(), said.as_str()), (Some(0), ""), "{args:?}");
            }
        }
    }
}

#[test]
fn jq_rewrites_what_is_printed() {
    let fake = Fake::new(answer);
    let folder = &fake.folder;
    let check = |args: &[&str], expected: &str| assert_eq!(folder.prints(args), expected);
    check(&["chain", "head", "--jq", ".height"], "42\n");
    check(&["chain", "head", "--jq", ".height, .hash[:4]"], "42\n0x2a\n");
    check(&["runner", "ls", "--jq", ".[].name"], "runner-0\nrunner-1\nrunner-2\nrunner-3\n");
    check(&["runner", "ls", "--jq", "map(.index)"], "[0,1,2,3]\n");
    // A format of lines applies the filter per item.
    check(&["runner", "ls", "-o", "jsonl", "--jq", "[.index]"], "[0]\n[1]\n[2]\n[3]\n");
    check(&["runner", "ls", "-o", "json", "--jq", "length"], "4\n");
    check(&["runner", "ls", "--jq", "empty"], "");
    let mut command = folder.command(&["chain", "head"]);
    let set = outcome(command.env("COWBOYCTL_JQ", ".height").env("COWBOYCTL_OUTPUT", "yaml"));
    assert_eq!((set.code, set.stdout.as_str()), (0, "42\n"), "{set:?}");
    let id = hash(1).to_string();
    check(&["job", "result", &id, "--jq", ".result"], "0x68690aff\n");
}

#[test]
fn templates_rewrite_what_is_printed() {
    let fake = Fake::new(answer);
    let check = |args: &[&str], expected: &str| assert_eq!(fake.folder.prints(args), expected);
    check(&["chain", "head", "--template", "{{ height }} <b>"], "42 <b>\n");
    let template = "{% for r in this %}{{ r.name }}={{ r.index }}\n{% endfor %}";
    let names = "runner-0=0\nrunner-1=1\nrunner-2=2\nrunner-3=3\n";
    check(&["runner", "ls", "--template", template], names);
    let each = ["runner", "ls", "-o", "jsonl", "--template", "{{ name }}={{ index }}"];
    check(&each, names);
}

#[test]
fn what_is_no_filter_is_drawn() {
    let fake = Fake::new(answer);
    let fails = |code, args: &[&str]| fake.folder.fails(code, args);
    insta::assert_snapshot!(fails(2, &["chain", "head", "--jq", ".a | | .b"]), @"
    error: --jq: expected term, got `|`
      .a | | .b
           ^
      the language is that of jq; examples: docs/output.md
    ");
    insta::assert_snapshot!(fails(2, &["chain", "head", "--jq", "mapp(.)"]), @"
    error: --jq: there is no filter `mapp/1`
      mapp(.)
      ^^^^
      did you mean `map`?
    ");
    insta::assert_snapshot!(fails(1, &["chain", "head", "--jq", ".height.x"]), @r#"
    error: --jq: cannot index 42 with "x"
      the document that it runs on: the same command with --output json
    "#);
    insta::assert_snapshot!(fails(2, &["chain", "head", "--template", "{{ height"]), @"
    error: --template: syntax error: unexpected end of input, expected end of variable block
      {{ height
         ^^^^^^
      the language is that of Jinja; examples: docs/output.md
    ");
    insta::assert_snapshot!(fails(1, &["chain", "head", "--template", "{{ heigth }}"]), @"
    error: --template: undefined value: `heigth` is undefined
      {{ heigth }}
         ^^^^^^
      did you mean `height`?
    ");
}

#[test]
fn filters_and_what_contradicts_them() {
    let folder = Folder::new();
    insta::assert_snapshot!(folder.fails(2, &["devnet", "ls", "--jq", ".", "-o", "table"]), @"
    error: --jq rewrites JSON, and --output asks for something else
      omit --output, or use json or jsonl
    ");
    insta::assert_snapshot!(folder.fails(2, &["devnet", "ls", "--jq", ".", "-q"]), @"error: --jq and --quiet: only one of them can say what is printed");
    insta::assert_snapshot!(folder.fails(2, &["man", "--template", "a"]), @"error: cowboyctl man prints text, not JSON: --template has nothing to rewrite");
    for args in [
        &["devnet", "ls", "--template", "a", "-o", "table"][..],
        &["devnet", "ls", "--template", "a", "--jq", "."],
        &["completions", "bash", "--jq", "."],
        &["devnet", "init", "--jq", "."],
        &["devnet", "logs", "--jq", "."],
        &["lease", "logs", "job_1", "--jq", "."],
        &["lease", "runner", "--jq", "."],
    ] {
        let said = folder.fails(2, args);
        assert!((1..=3).contains(&said.lines().count()), "{args:?}: {said}");
    }
    assert!(!folder.path("devnet.yaml").exists(), "it is refused before anything is done");
    let drawn = ["speculation", "graph", "7", "--format", "dot", "--jq", "."];
    insta::assert_snapshot!(speculation::fake(PipelineStatus::Completed).folder.fails(2, &drawn), @"
    error: a filter rewrites JSON, and this is not JSON
      omit --jq and --template, or ask for the form json
    ");
}

/// Runs a command with an endless filter, and interrupts it as ctrl-c does.
fn interrupted(folder: &Folder, args: &[&str]) {
    let endless = r#""begun", last(repeat(1))"#;
    let mut command = folder.command(&[args, &["--jq", endless]].concat());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "begun\n");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let status = child.wait().unwrap();
    // The signal itself ends it when the filter has not run long enough to be watched.
    let ended = status.code() == Some(130) || status.signal() == Some(Signal::INT.as_raw());
    assert!(ended, "{status}");
}

#[test]
fn an_endless_filter_ends_with_ctrl_c() {
    interrupted(&Folder::new(), &["devnet", "ls"]);
    interrupted(&Fake::new(answer).folder, &["chain", "head"]);
}

/// Schemas without a document in any test, and why.
const UNSEEN: [(&str, &str); 8] = [
    ("error", "it is printed to standard error: errors.rs checks it of every command"),
    ("sim show", "it prints a scenario, as sim ls does"),
    ("quickstart", "it boots a devnet of its own; its parts are those of other commands"),
    ("job submit llm", "it prints what every kind of job does"),
    ("job submit mcp", "it prints what every kind of job does"),
    ("job submit eth-send", "it prints what every kind of job does"),
    ("job cancel", "it prints a job, as job show does"),
    ("job slash", "it prints a job, as job show does"),
];

/// Commands with documents to check but no tables to look at.
const CHECKED: [&[&str]; 4] =
    [&["devnet", "ls"], &["devnet", "env"], &["job", "result", "ID"], &["presence", "feasibility"]];

/// More commands with documents to check, about pipelines.
const PIPELINES: [&[&str]; 8] = [
    &["speculation", "graph", "7"],
    &["speculation", "timeline", "7"],
    &["speculation", "proofs", "--pipeline", "7", "--limit", "5"],
    &["speculation", "cancel", "7"],
    &["speculation", "retry", "7"],
    &["speculation", "follow", "7"],
    &["speculation", "load", "--depth", "2", "--tasks", "2", "--parallel", "1"],
    &["speculation", "config", "set", "maxDepth=3"],
];

/// The commands that tests of this package pass to `shape::seen`, which fails unless a document of
/// each was checked.
fn said_to_be_seen() -> BTreeSet<String> {
    fn walk(folder: &Path, texts: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, texts);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                texts.push(fs::read_to_string(path).unwrap());
            }
        }
    }
    let mut texts = Vec::new();
    for tests in ["cli", "devnet"] {
        walk(&shape::folder().join("../../tests").join(tests), &mut texts);
    }
    let said = texts.iter().flat_map(|text| text.split(concat!("shape::", "seen(&[")).skip(1));
    let lists = said.filter_map(|rest| rest.split(']').next());
    lists.flat_map(|list| list.split('"').skip(1).step_by(2)).map(str::to_owned).collect()
}

#[test]
fn every_schema_is_seen_by_a_test() {
    let mut seen = BTreeSet::new();
    let mut all = shown();
    let id = hash(1).to_string();
    let filled = |args: &&[&str]| owned(args).into_iter();
    let filled = |args| filled(args).map(|arg| arg.replace("ID", &id)).collect::<Vec<_>>();
    all.push((Fake::new(answer), CHECKED.iter().map(filled).collect()));
    let pipelines = speculation::fake(PipelineStatus::Completed);
    all.push((pipelines, PIPELINES.iter().map(filled).collect()));
    for (fake, commands) in all {
        for args in commands {
            let args = [&["-o", "json"], &words(&args)[..]].concat();
            let Outcome { code, stdout, .. } = fake.folder.run(&args);
            assert_eq!(code, 0, "{args:?}");
            assert!(stdout.starts_with(['{', '[']), "{args:?}: {stdout}");
            let words = args[2..].iter().copied();
            let words = words.take_while(|word| !word.starts_with('-')).collect::<Vec<_>>();
            let count = (1..=words.len()).rev().find(|n| shape::schema(&words[..*n]).is_some());
            let command = words[..count.unwrap()].join(" ");
            shape::seen(&[&command]);
            seen.insert(command);
        }
    }
    seen.extend(said_to_be_seen());
    for (schema, reason) in UNSEEN {
        assert!(seen.insert(schema.to_owned()), "{schema} is seen, and not: {reason}");
    }
    let all: BTreeSet<_> = fs::read_dir(shape::folder())
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    let seen: BTreeSet<_> = seen.iter().map(|command| command.replace(' ', "-")).collect();
    assert_eq!(all.difference(&seen).collect::<Vec<_>>(), Vec::<&String>::new());
}
