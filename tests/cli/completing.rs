//! Completion candidates, requested through the shells' own protocol.

use crate::{
    answers::{answer, hash},
    support::{Answer, Fake, Folder, Outcome, outcome},
};
use cowboy_devnet::{
    orchestrator::home::{DevnetRecord, Lock},
    types::{ChainId, Text, TimeText},
};
use std::{net::TcpListener, process::Command, sync::mpsc, thread};

/// Asks as a shell does, with the cursor behind the last word.
fn asked(folder: &Folder, shell: &str, words: &[&str]) -> Command {
    let line = [&["--", "cowboyctl"], words].concat();
    let mut command = folder.command(&line);
    let index = words.len().to_string();
    command.env("COMPLETE", shell).env("_CLAP_COMPLETE_INDEX", index);
    command
}

/// The same with a longer timeout, for slow machines.
fn asked_patiently(folder: &Folder, shell: &str, words: &[&str]) -> Outcome {
    outcome(asked(folder, shell, words).env("COWBOYCTL_COMPLETE_TIMEOUT", "60s"))
}

/// The candidates other than flags, joined by spaces.
fn candidates(folder: &Folder, words: &[&str]) -> String {
    let outcome = asked_patiently(folder, "bash", words);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "{words:?}: {outcome:?}");
    let names = outcome.stdout.lines().filter(|line| !line.starts_with('-'));
    names.collect::<Vec<_>>().join(" ")
}

/// A devnet of this name, with a record that claims that its API is at `url`.
pub fn pretend(folder: &Folder, name: &str, url: &str) -> Lock {
    let lock = folder.devnet(name).lock().unwrap();
    lock.write_topology(&format!("name: {name}\nvalidators: 2\nrunners: 1\n")).unwrap();
    lock.write_token("secret").unwrap();
    let started_at: TimeText = "2026-11-20T09:53:00Z".parse().unwrap();
    lock.write_record(&DevnetRecord {
        name: name.parse().unwrap(),
        pid: std::process::id(),
        started_at,
        rpc_url: url.to_owned(),
        chain_id: Text(ChainId(1)),
        lease_url: Some(url.to_owned()),
    })
    .unwrap();
    lock
}

#[test]
fn what_a_devnet_has_completes() {
    let fake = Fake::new(answer);
    let check = |words: &[&str], expected: &str| {
        assert_eq!(candidates(&fake.folder, words), expected, "{words:?}");
    };
    let job = |id| hash(id).to_string();
    check(&["devnet", "status", ""], "local");
    check(&["--devnet", "lo"], "local");
    check(&["--node", "validator-"], "validator-0 validator-1 validator-2 validator-3");
    check(&["validator", "stop", "validator-2"], "validator-2");
    check(&["runner", "show", "runner-1"], "runner-1");
    check(&["account", "balance", "dev-0"], "dev-0");
    check(&["job", "show", "0x01"], &job(1));
    check(&["job", "show", "l"], "latest");
    check(&["pool", "show", ""], "gpu");
    check(&["job", "ls", "--kind", "h"], "http");
    check(&["job", "ls", "--status", "Ver"], "Verified");
    check(&["job", "ls", "--output", "y"], "yaml");
    check(&["chain", "events", "--kind", "JobVer"], "JobVerified");
    check(&["runner", "start", "--kinds", "http,ll"], "http,llm");
    check(
        &["fault", "partition", "validator-0,validator-1,runner-3"],
        "validator-0,validator-1,runner-3",
    );
    check(&["fault", "loss", "runner-1..validator-3"], "runner-1..validator-3");
    check(&["lease", "ls", "--state", "TIMED"], "TIMED_OUT");
    check(&["sim", "run", "calm"], "calm");
    check(&["explain", "event", "TimerFi"], "TimerFired");
    check(&["explain", "error", "StaleI"], "StaleInputs");
    check(&["explain", "topology.chain.b"], "topology.chain.block_time");
    check(&["job", "show", "nothing"], "");
}

#[test]
fn shells_that_show_more_are_told_more() {
    let fake = Fake::new(answer);
    let words = ["job", "show", "0x01"];
    let fish = asked_patiently(&fake.folder, "fish", &words);
    let job = hash(1);
    assert_eq!(fish.stdout, format!("{job}\tcustom Verified\n"), "{fish:?}");
    let zsh = asked_patiently(&fake.folder, "zsh", &words);
    assert_eq!(zsh.stdout.trim_end(), format!("{job}:custom Verified"), "{zsh:?}");
}

#[test]
fn the_devnet_is_the_one_that_the_line_names() {
    let fake = Fake::new(answer);
    let _other = pretend(&fake.folder, "other", "http://127.0.0.1:1");
    let check = |words: &[&str], expected: &str| {
        assert_eq!(candidates(&fake.folder, words), expected, "{words:?}");
    };
    // Two devnets are running, so the choice is ambiguous.
    check(&["job", "show", "0x01"], "");
    check(&["--devnet", "local", "job", "show", "0x01"], &hash(1).to_string());
    check(&["--devnet=local", "job", "show", "0x01"], &hash(1).to_string());
    check(&["--devnet", "other", "validator", "show", ""], "validator-0 validator-1");
    let mut command = asked(&fake.folder, "bash", &["job", "show", "0x01"]);
    command.env("COWBOYCTL_COMPLETE_TIMEOUT", "60s").env("COWBOYCTL_DEVNET", "local");
    assert!(outcome(&mut command).stdout.starts_with(&hash(1).to_string()));
    // The words after the cursor count, too.
    let line = ["--", "cowboyctl", "job", "show", "0x01", "--devnet", "local"];
    let mut command = fake.folder.command(&line);
    command.env("COMPLETE", "zsh").env("_CLAP_COMPLETE_INDEX", "3");
    let found = outcome(command.env("COWBOYCTL_COMPLETE_TIMEOUT", "60s"));
    assert!(found.stdout.starts_with(&hash(1).to_string()), "{found:?}");
}

#[test]
fn where_nothing_runs_nothing_is_said() {
    let folder = Folder::new();
    for words in [
        &["job", "show", "0x"][..],
        &["job", "show", "l"],
        &["actor", "show", "0x"],
        &["timer", "show", "0x"],
        &["speculation", "graph", "l"],
        &["lease", "show", "l"],
        &["validator", "show", "v"],
        &["--devnet", "a"],
        &["--devnet", "not a name", "job", "show", "0x"],
    ] {
        for shell in ["bash", "fish", "zsh"] {
            let outcome = asked_patiently(&folder, shell, words);
            let said = (outcome.code, outcome.stdout.trim(), outcome.stderr.as_str());
            assert_eq!(said, (0, "", ""), "{shell} {words:?}");
        }
    }
}

#[test]
fn an_answer_that_is_no_answer_completes_nothing() {
    let fake = Fake::new(|_| Answer::Body(200, "{".to_owned()));
    assert_eq!(candidates(&fake.folder, &["job", "show", "0x"]), "");
}

#[test]
fn a_devnet_that_hangs_completes_nothing() {
    // Connections are accepted, but no request is read.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = Folder::new();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let _lock = pretend(&folder, "stuck", &url);
    let (came, comes) = mpsc::channel();
    thread::spawn(move || {
        // Held open until the test's process ends.
        let held: Vec<_> = listener.incoming().inspect(|_| came.send(()).unwrap_or(())).collect();
        drop(held);
    });
    // `lease show` sends two requests, for runs and for jobs.
    for words in [&["job", "show", ""][..], &["lease", "show", ""]] {
        let outcome = outcome(&mut asked(&folder, "bash", words));
        let names: Vec<_> = outcome.stdout.lines().filter(|l| !l.starts_with('-')).collect();
        assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "{outcome:?}");
        assert!(names.is_empty(), "{outcome:?}");
    }
    assert!(comes.try_recv().is_ok(), "no request came");
}
