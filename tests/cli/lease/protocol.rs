//! The documented protocol for clients in other languages: every line of `docs/lease-protocol.md`
//! in a shell, and the runner in Python that implements it.

use super::Served;
use crate::support::outcome;
use serde_json::Value;
use std::io::Write as _;
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// Whether a program is installed; if not, standard error says so.
fn there_is(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let found = command.status().is_ok_and(|status| status.success());
    if !found {
        // Not by macro, because the test harness captures the macros' output of a passing test.
        let _ = writeln!(std::io::stderr(), "skipped: there is no {program}");
    }
    found
}

/// The language and text of each code block in a document.
fn blocks(document: &str) -> Vec<(&str, &str)> {
    let fenced = document.split("```").skip(1).step_by(2);
    fenced.filter_map(|block| block.split_once('\n')).collect()
}

/// Whether an answer matches a document's example, in which `…` matches any text.
fn resembles(answer: &Value, shown: &Value) -> bool {
    match (answer, shown) {
        (Value::Object(answer), Value::Object(shown)) => {
            answer.len() == shown.len()
                && shown.iter().all(|(name, shown)| {
                    answer.get(name).is_some_and(|answer| resembles(answer, shown))
                })
        }
        (Value::String(answer), Value::String(shown)) => match shown.split_once('…') {
            Some((start, end)) => answer.starts_with(start) && answer.ends_with(end),
            None => answer == shown,
        },
        _ => answer == shown,
    }
}

#[test]
fn every_line_of_the_document_works_as_written() {
    if !["bash", "curl", "jq"].into_iter().all(there_is) {
        return;
    }
    let served = Served::new();
    let document = fs::read_to_string(repository("docs/lease-protocol.md")).unwrap();
    let blocks = blocks(&document);
    let (mut script, mut expected) = ("set -euo pipefail\n".to_owned(), Vec::new());
    // Skips the first block, which starts a server: one is running.
    let first = blocks.iter().position(|(language, _)| *language == "sh").unwrap();
    let mut number = 0;
    for (language, text) in &blocks[first + 1..] {
        match *language {
            "sh" => {
                number += 1;
                script += &format!("echo; echo \"=== {number}\"\n{text}");
            }
            "json" => expected.push((number, serde_json::from_str::<Value>(text).unwrap())),
            other => panic!("a block of {other}"),
        }
    }
    let token = fs::read_to_string(served.folder.path("home/.lease/token")).unwrap();
    let mut bash = Command::new("bash");
    bash.args(["-c", &script]).env("URL", &served.url).env("OPERATOR", token.trim());
    let ran = outcome(bash.stdin(Stdio::null()));
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{}", ran.stdout);
    assert!(expected.len() >= 7, "each message has its answer");
    for (number, shown) in expected {
        let answers = ran.stdout.split(&format!("\n=== {number}\n")).nth(1).unwrap();
        let answer = answers.split("\n=== ").next().unwrap();
        let answer: Value = serde_json::from_str(answer).unwrap();
        assert!(resembles(&answer, &shown), "{number}: {answer} is not as {shown}");
    }
}

#[test]
fn a_runner_in_python_does_what_it_has_to() {
    if !there_is("python3") {
        return;
    }
    let served = Served::new();
    served.folder.prints(&["lease", "token", "issue", "py", "--file", "py.token"]);
    let runner = || {
        let mut python = Command::new("python3");
        python.arg(repository("examples/leases/runner.py"));
        python.args([served.url.as_str(), "py"]).arg(served.folder.path("py.token"));
        python.arg("--once").stdin(Stdio::null());
        python
    };
    served.submit(
        "  a:\n    env: { KEY: { secret: hunter2 } }\n    \
         steps: ['printf hun; echo ter2, hunter2', 'mkdir -p out; echo 1 > out/1.xml']\n    \
         artifacts: [{ type: junit, path_glob: '**/*.xml' }]\n",
    );
    let did = outcome(&mut runner());
    assert_eq!((did.code, did.stderr.as_str()), (0, ""), "{did:?}");
    assert!(did.stdout.ends_with(" a SUCCEEDED\n"), "{did:?}");
    assert_eq!(served.folder.prints(&["lease", "logs", "latest/a"]), "***, ***\n");
    let names = served.folder.prints(&["-q", "lease", "artifacts", "latest/a"]);
    assert_eq!(names, "out/1.xml\n");

    served.submit("  b: { steps: ['true', 'exit 3', 'true'] }\n");
    assert!(outcome(&mut runner()).stdout.ends_with(" b FAILED\n"));
    let job = served.json(&["lease", "show", "latest/b"]);
    assert_eq!(job["attempts"][0]["exit_code"], 3);
}

/// With heartbeats every second, so that the runner learns of the cancel.
#[test]
fn a_runner_in_python_stops_when_it_is_told_to() {
    if !there_is("python3") {
        return;
    }
    let served = Served::with(&["--heartbeat", "1s"]);
    served.folder.prints(&["lease", "token", "issue", "py", "--file", "py.token"]);
    // Descendants are killed, too, although they are in another session and ignore SIGTERM.
    let marker = served.folder.path("marker");
    served.submit(&format!(
        "  a:\n    env: {{ MARKER: '{}' }}\n    steps:\n      - |\n        \
         setsid sh -c 'trap \"\" TERM; echo begun; sleep 600; sleep 600' &\n        \
         sleep 600 & sleep 600\n",
        marker.display()
    ));
    let mut python = Command::new("python3");
    python.arg(repository("examples/leases/runner.py")).args([served.url.as_str(), "py"]);
    python.arg(served.folder.path("py.token")).arg("--once").stdout(Stdio::piped());
    let runner = super::Process::start(&mut python);
    served.until_logged("latest/a", "begun\n");
    let canceled = served.json(&["lease", "cancel", "latest/a", "--wait", "--timeout", "60s"]);
    assert_eq!(canceled["state"], "CANCELED");
    assert_eq!(runner.ended(), 0);
    let job = served.json(&["lease", "show", "latest/a"]);
    assert_eq!(job["attempts"][0]["lease_state"], "CANCELED", "it said so itself");
    until_gone(marker.to_str().unwrap());

    // The job ends with its runner.
    served.submit(&format!(
        "  b: {{ env: {{ MARKER: '{}' }}, steps: ['echo begun; sleep 600 & sleep 600'] }}\n",
        marker.display()
    ));
    let runner = super::Process::start(&mut python);
    served.until_logged("latest/b", "begun\n");
    assert_eq!(runner.terminate(), 143);
    until_gone(marker.to_str().unwrap());
}

/// Waits until no process has this in its environment, because killed processes take a moment to
/// disappear.
fn until_gone(text: &str) {
    let begun = Instant::now();
    let is_there = || {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let mut environments = processes.filter_map(|it| fs::read(it.path().join("environ")).ok());
        environments.any(|bytes| String::from_utf8_lossy(&bytes).contains(text))
    };
    while is_there() {
        assert!(begun.elapsed() < Duration::from_secs(20), "a process of the job goes on");
        thread::yield_now();
    }
}
