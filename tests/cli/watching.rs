//! `--watch`: lists that are printed again after every change.

use crate::{
    answers::{answer, notice},
    completing::pretend,
    support::{Answer, Fake, Folder},
    terminal::on_terminal,
};
use cowboy_devnet::types::{ErrorCode, Runner};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::{
    io::{BufRead, BufReader},
    process::{Child, ChildStdout, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// A command without an end, killed on drop.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> (Self, BufReader<ChildStdout>) {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        (Self(child), stdout)
    }

    fn interrupt(mut self) {
        kill_process(Pid::from_child(&self.0), Signal::INT).unwrap();
        assert_eq!(self.0.wait().unwrap().code(), Some(130));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _ended = self.0.wait();
    }
}

fn line(from: &mut impl BufRead) -> Value {
    let mut line = String::new();
    from.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

#[test]
fn a_line_comes_with_every_change_and_with_no_look_alone() {
    let folder = Folder::new();
    let _a = pretend(&folder, "a", "http://127.0.0.1:1");
    let args = ["devnet", "ls", "--watch=10ms", "-o", "jsonl", "--jq", "[.[].name]"];
    let (running, mut stdout) = Running::start(&mut folder.command(&args));
    assert_eq!(line(&mut stdout), serde_json::json!(["a"]));
    // A stopped devnet gets no request.
    drop(folder.devnet("b").lock().unwrap());
    assert_eq!(line(&mut stdout), serde_json::json!(["a", "b"]));
    std::fs::remove_dir_all(folder.devnet("b").path()).unwrap();
    assert_eq!(line(&mut stdout), serde_json::json!(["a"]));
    running.interrupt();
    let mut rest = String::new();
    assert_eq!(stdout.read_line(&mut rest).unwrap(), 0, "{rest}");
}

/// A devnet with one more block, and with one more runner in each answer.
fn changing(refused: Option<usize>) -> (Fake, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let fake = Fake::new(move |request| match request.line.as_str() {
        "GET /v1/events" => Answer::Stream(vec![notice(43)]),
        "GET /v1/runners" => {
            let count = count.fetch_add(1, Ordering::SeqCst);
            if refused == Some(count) {
                return Answer::error(ErrorCode::Internal, None, "it broke");
            }
            let Answer::Body(code, body) = answer(request) else { unreachable!("a list") };
            let mut runners: Vec<Runner> = serde_json::from_str(&body).unwrap();
            runners.truncate(count + 1);
            Answer::Body(code, serde_json::to_string(&runners).unwrap())
        }
        _ => answer(request),
    });
    (fake, asked)
}

#[test]
fn a_list_of_a_devnet_follows_its_blocks() {
    let (fake, asked) = changing(None);
    let args = ["runner", "ls", "-w", "-o", "jsonl"];
    let (running, mut stdout) = Running::start(&mut fake.folder.command(&args));
    // The whole list each time, so that removals show, too.
    assert_eq!(line(&mut stdout).as_array().unwrap().len(), 1);
    assert_eq!(line(&mut stdout).as_array().unwrap().len(), 2);
    running.interrupt();
    assert_eq!(asked.load(Ordering::SeqCst), 2, "once, and once for the block");
}

#[test]
fn a_terminal_is_drawn_again_from_its_top() {
    let (fake, _) = changing(Some(1));
    let shown = on_terminal(&mut fake.folder.command(&["runner", "ls", "-w"]), 100, true);
    assert_eq!(shown.code, 1, "{}", shown.text);
    assert!(shown.text.starts_with("\x1b[HINDEX  NAME"), "{:?}", shown.text);
    assert!(shown.text.contains("\x1b[K\n    0  runner-0 "), "{}", shown.text);
    assert!(shown.text.contains("\x1b[J"), "{}", shown.text);
    // The error that ends it is printed below.
    assert!(shown.text.contains("it broke"), "{}", shown.text);
}

#[test]
fn elsewhere_tables_follow_one_another() {
    let (fake, _) = changing(Some(2));
    let mut command = fake.folder.command(&["-q", "runner", "ls", "-w"]);
    let (running, mut stdout) = Running::start(&mut command);
    let mut text = String::new();
    while !text.ends_with("runner-1\n") {
        assert_ne!(stdout.read_line(&mut text).unwrap(), 0, "{text}");
    }
    assert_eq!(text, "runner-0\nrunner-0\nrunner-1\n");
    running.interrupt();
}

#[test]
fn what_has_no_end_is_no_document() {
    let folder = Folder::new();
    insta::assert_snapshot!(folder.fails(2, &["devnet", "ls", "-w", "-o", "json"]), @r#"{"error":{"code":"usage","exit":2,"name":null,"message":"--watch never ends, but json is one document","detail":null,"hint":"use --output jsonl: a document per line, whenever it changes"}}"#);
    insta::assert_snapshot!(folder.fails(2, &["devnet", "ls", "--watch=soon"]), @"error: invalid value 'soon' for '--watch[=<INTERVAL>]': `soon` is not a duration: expected a number and ms, s, m or h, as `250ms` or `2m`, from 0ms to 10000h");
    insta::assert_snapshot!(folder.fails(4, &["runner", "ls", "-w"]), @"
    error: no devnet is running
      start one: cowboyctl devnet up --detach
    ");
}
