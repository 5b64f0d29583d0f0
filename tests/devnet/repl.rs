//! The prompt inside an actor, with lines from a pipe and from a terminal.

use crate::{
    shape,
    support::{Home, Outcome, list},
    terminal::Terminal,
};
use rustix::process::Signal;
use serde_json::Value;
use std::{
    fs,
    io::Write as _,
    path::PathBuf,
    process::{Command, Stdio},
};

const COUNTER: &str = r#"
LIMIT = 10

def bump(ctx, payload):
    n = pvm_host.get_state("n", 0) + 1
    pvm_host.set_state("n", n)
    pvm_host.log("bumped to", n)
    pvm_host.emit("bumped", {"n": n})
    return n

def pick(index):
    return [1, 2, 3][index]
"#;

const PYTHON: &str = r#"
from cowboy_sdk import actor, public

LIMIT = 10

@actor
class Counter:
    @public(decode="raw")
    def init(self, payload):
        self.storage["n"] = 0

    @public
    def add(self, by):
        self.storage["n"] = self.storage["n"] + by
        return self.storage["n"]
"#;

/// Runs a prompt on these lines to the end.
fn typed(home: &Home, args: &[&str], lines: &str) -> Outcome {
    let file = home.path("lines");
    fs::write(&file, lines).unwrap();
    let mut command = home.command(args);
    command.stdin(fs::File::open(file).unwrap());
    Outcome::of(args, &mut command)
}

fn written(home: &Home, name: &str, text: &str) -> PathBuf {
    let file = home.path(name);
    fs::write(&file, text).unwrap();
    file
}

fn deployed(home: &Home, name: &str, text: &str) -> String {
    let file = written(home, name, text);
    home.json(&["actor", "deploy", file.to_str().unwrap()])["actor"].as_str().unwrap().to_owned()
}

#[test]
fn lines_are_evaluated_inside_the_module_on_the_newest_state() {
    let home = Home::new();
    home.up(&["--validators", "1", "--runners", "0"]);
    let actor = deployed(&home, "counter.star", COUNTER);
    let repl = ["actor", "repl", &actor];
    let prints = |lines: &str, expected: &str| {
        let ended = typed(&home, &repl, lines);
        assert_eq!((ended.code, ended.stdout.as_str()), (0, expected), "{lines}: {ended:?}");
        assert_eq!(ended.stderr, "", "{lines}");
    };
    // Names of the module, host functions by their own names, the context.
    prints("LIMIT + 1\npick(2)\n", "11\n3\n");
    prints("get_state(\"n\")\n", "null\n");
    prints("# nothing\n\nctx.self == \"0x\"\n{\"a\": (1, None)}", "false\n{\"a\":[1,null]}\n");
    // What an evaluation does is not sent.
    prints("bump(ctx, \"\")\nget_state(\"n\", 0)\n", "1\n0\n");
    // Names that were assigned, blocks, an expression in several lines.
    let block = "x = 2; y = [x]\ndef f(z):\n    return z * x\n\n\
                 for i in range(3):\n    y += [f(i)]\n\n\
                 y + [\n    x,\n]\nx\n:forget\n";
    prints(block, "[2,0,2,4,2]\n2\n");
    prints("t = \"\"\"a\n  b\"\"\"\nt", "\"a\\n  b\"\n");
    // A call that is sent changes what later lines see.
    let sent = typed(&home, &["-q", "actor", "repl", &actor], ":call bump\nget_state(\"n\")\n");
    assert_eq!(sent.stdout.lines().last(), Some("1"), "{sent:?}");
    let bumped = home.json(&["actor", "call", &actor, "bump"]);
    prints("get_state(\"n\")", "2\n");
    // An earlier state.
    let height = bumped["height"].as_u64().unwrap() - 1;
    let past = format!("n = get_state(\"n\")\nn\n:at {height}\nn\n:store\n:at latest\nn\n");
    prints(&past, "2\n1\nKEY  VALUE\nn    1\n2\n");
    // A file in place of the deployed code; what is called is the deployed code.
    let next = written(&home, "next.star", &COUNTER.replace("LIMIT = 10", "LIMIT = 20"));
    let next = next.to_str().unwrap();
    prints(&format!("LIMIT\n:with {next}\nLIMIT\n:reload\n:with\nLIMIT\n"), "10\n20\n10\n");
    let args = ["actor", "repl", &actor, "--with-code", next];
    assert_eq!(typed(&home, &args, "LIMIT").stdout, "20\n");
    // Another caller.
    let other = home.json(&["account", "balance", "faucet"])["address"].clone();
    let caller = typed(&home, &["actor", "repl", &actor, "--from", "faucet"], "ctx.sender");
    assert_eq!(caller.stdout, format!("{other}\n"));
    prints(":from faucet\nctx.sender", &format!("{other}\n"));
    prints(":quit\nget_state(\"n\")\n", "");
    assert_eq!(home.run(&["-q", "actor", "call", &actor, "bump", "--dry-run"]).stdout, "3\n");
}

#[test]
fn a_line_that_fails_says_where_and_ends_a_script() {
    let home = Home::new();
    home.up(&["--validators", "1", "--runners", "0"]);
    let actor = deployed(&home, "counter.star", COUNTER);
    let repl = ["actor", "repl", &actor];
    let fails = |lines: &str, code: i32, stdout: &str, says: &[&str]| {
        let ended = typed(&home, &repl, lines);
        assert_eq!((ended.code, ended.stdout.as_str()), (code, stdout), "{lines}: {ended:?}");
        assert!(ended.stderr.starts_with("error: "), "{ended:?}");
        for text in says {
            assert!(ended.stderr.contains(text), "{text}: {ended:?}");
        }
    };
    fails("1\n2 + \n3\n", 6, "1\n", &["SyntaxError: ", "(line 1, column ", "line 2 of the input"]);
    fails("LIMIT + nothing", 6, "", &["ModuleRefused: ", "(line 1, column 9)"]);
    fails("x = 1; x // 0", 6, "", &["ActorError: ", "(line 1, column 8)"]);
    fails("if LIMIT:\n    LIMIT.x\n\n", 6, "", &["(line 2, column 5)", "line 1 of the input"]);
    fails("return 1", 6, "", &["`return` is only possible inside a function (line 1, column 1)"]);
    fails("import os", 6, "", &["`import`", "(line 1, column 1)"]);
    // A place in the module is one of its file, the call of it one of what was typed.
    fails("pick(7)", 6, "", &["(at 12:", "in pick at 12:", "in line 1, column 1"]);
    // A statement that was typed before meets another state.
    let ended = typed(&home, &repl, "n = [5][get_state(\"n\", 0)]\n:call bump\nn\n");
    assert_eq!(ended.code, 6, "{ended:?}");
    let place = "(line 1, column 5 of the earlier `n = [5][get_state(\"n\", 0)]`)";
    assert!(ended.stderr.contains(place) && ended.stderr.contains("line 3 of"), "{ended:?}");
    fails("pick", 6, "", &["JSON", "repr(VALUE)"]);
    fails(":nothing\n", 2, "", &["there is no command :nothing", "line 1 of the input"]);
    fails(":call crash\n", 6, "", &["crash"]);
    fails(":at 999999\n1\n", 3, "", &["not final yet"]);
    fails(&"x".repeat(10_000), 2, "", &["at most 8192 bytes"]);
    fails("(1,\n2\n", 6, "", &["SyntaxError"]);

    let args = ["actor", "repl", &actor, "--keep-going"];
    let ended = typed(&home, &args, "1\nnothing\n:no\n2\n");
    assert_eq!((ended.code, ended.stdout.as_str()), (6, "1\n2\n"), "{ended:?}");
    assert!(ended.stderr.contains("line 2 of the input"), "{ended:?}");
    assert!(ended.stderr.ends_with("error: 2 lines failed\n"), "{ended:?}");
}

#[test]
fn json_has_a_document_for_each_line() {
    let home = Home::new();
    home.up(&["--validators", "1", "--runners", "0"]);
    let actor = deployed(&home, "counter.star", COUNTER);
    let args = ["-o", "json", "actor", "repl", &actor];
    let lines = "bump(ctx, \"\")\nx = 5\nx\n:call bump\n:try bump\n:store n\n:handlers\n";
    let ended = typed(&home, &args, lines);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{ended:?}");
    let all: Vec<Value> =
        ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [bumped, statement, value, called, tried, store, handlers] = &all[..] else {
        panic!("{ended:?}")
    };
    assert_eq!((&bumped["input"], &bumped["result"]), (&"bump(ctx, \"\")".into(), &1.into()));
    assert_eq!(
        (&bumped["changes"][0]["key"], &bumped["changes"][0]["after"]),
        (&"n".into(), &1.into())
    );
    assert_eq!(
        (&bumped["log"][0]["text"], list(&bumped["calls"]).len()),
        (&"bumped to 1".into(), 1)
    );
    assert_eq!((&statement["input"], &statement["result"]), (&"x = 5".into(), &Value::Null));
    assert_eq!(value["result"], 5);
    assert_eq!((&called["status"], &called["result"]), (&"success".into(), &1.into()));
    assert_eq!((&tried["result"], &tried["calls"][0]["handler"]), (&2.into(), &"bump".into()));
    assert_eq!((&store["state"][0]["value"], list(&handlers["handlers"]).len()), (&1.into(), 1));
    shape::seen(&["actor repl"]);
}

#[test]
fn a_dry_run_runs_the_next_version_on_the_actors_state() {
    let home = Home::new();
    home.up(&["--validators", "1", "--runners", "0"]);
    let actor = deployed(&home, "counter.star", COUNTER);
    home.json(&["actor", "call", &actor, "bump"]);
    let next = written(&home, "next.star", &COUNTER.replace(") + 1", ") + 100"));
    let next = next.to_str().unwrap();
    let call = ["actor", "call", &actor, "bump", "--dry-run"];
    let tried = home.json(&[&call[..], &["--with-code", next]].concat());
    assert_eq!((&tried["result"], &tried["changes"][0]["before"]), (&101.into(), &1.into()));
    assert_eq!(tried["usage"]["by_cause"]["loading"], 0);
    assert_eq!(home.json(&call)["result"], 2);
    let bad = written(&home, "bad.star", "def bump(ctx, payload):\n    return nothing\n");
    let refused = home.fails(6, &[&call[..], &["--with-code", bad.to_str().unwrap()]].concat());
    assert!(refused.contains("ModuleRefused") && refused.contains("(at 2:12)"), "{refused}");
    let python = written(&home, "next.py", "def bump(payload): pass\n");
    let refused = home.fails(2, &[&call[..], &["--with-code", python.to_str().unwrap()]].concat());
    assert!(refused.contains("does not end in .py"), "{refused}");
}

#[test]
fn an_actor_in_python_has_a_prompt_too() {
    let Some(home) = Home::with_machine() else { return };
    home.up(&["--validators", "1", "--runners", "0"]);
    let actor = deployed(&home, "counter.py", PYTHON);
    let repl = ["actor", "repl", &actor];
    let prints = |lines: &str, expected: &str| {
        let ended = typed(&home, &repl, lines);
        assert_eq!((ended.code, ended.stdout.as_str()), (0, expected), "{lines}: {ended:?}");
    };
    prints("LIMIT / 4\n[b'a', None]\n'text'\n", "2.5\n[b'a', None]\n'text'\n");
    prints("c = Counter()\nc.storage[\"n\"]\n", "0\n");
    prints("import math\nmath.gcd(LIMIT, 4)\n", "2\n");
    let sent = typed(&home, &["-q", "actor", "repl", &actor], ":call add 3\n1\n");
    assert_eq!(sent.stdout.lines().last(), Some("1"), "{sent:?}");
    prints("Counter().storage[\"n\"]", "3\n");
    let fails = |lines: &str, says: &[&str]| {
        let ended = typed(&home, &repl, lines);
        assert_eq!(ended.code, 6, "{lines}: {ended:?}");
        assert!(says.iter().all(|text| ended.stderr.contains(text)), "{says:?}: {ended:?}");
    };
    fails("x = 1\nx /\n", &["SyntaxError: ", "line 1, column", "line 2 of the input"]);
    fails("def f():\n    return 1 / 0\n\nf()\n", &["ZeroDivisionError", "at line 1"]);
    fails("if 1:\n    1 / 0\n\n", &["ZeroDivisionError", "at line 2"]);
    fails("break", &["SyntaxError", "(line 1)"]);
    fails("await 1", &["`await`"]);
    let json = typed(&home, &["-o", "json", "actor", "repl", &actor], "LIMIT");
    assert_eq!(json.json()["result"], "10");
    let next = written(&home, "next.py", &PYTHON.replace("+ by", "+ 2 * by"));
    let args = ["actor", "call", &actor, "add", "3", "--dry-run", "--with-code"];
    assert_eq!(home.json(&[&args[..], &[next.to_str().unwrap()]].concat())["result"], 9);
    let bad = written(&home, "bad.py", "def add(payload):\n    return (\n");
    let refused = home.fails(6, &[&args[..], &[bad.to_str().unwrap()]].concat());
    assert!(refused.contains("SyntaxError") && refused.contains("line 2"), "{refused}");
}

#[test]
fn a_person_types_at_a_terminal() {
    let home = Home::new();
    home.up(&["--validators", "1", "--runners", "0"]);
    let actor = deployed(&home, "counter.star", COUNTER);
    let mut terminal = Terminal::start(home.command(&["actor", "repl", &actor]), 80, 24);
    terminal.see("> ");
    terminal.keys("LIMIT + 1\r");
    terminal.see("\n11\n");
    terminal.keys("bump(ctx, \"\")\r");
    let shown = terminal.see("log bumped to 1");
    assert!(shown.contains("  not sent: ") && shown.contains("    n: - → 1"), "{shown}");
    assert!(shown.contains("    ActorEmitted "), "{shown}");
    // A line is called back and edited; another one is abandoned.
    terminal.keys("\x1b[A\x1b[A\x1b[D2\x7f\x7f\x7f* 3");
    terminal.see("> LIMIT * 31");
    terminal.keys("\x03");
    terminal.see("^C");
    terminal.keys("for i in range(2):\r");
    terminal.see("... ");
    terminal.keys("    print(i * 21)\r\r");
    terminal.see("log 21");
    terminal.keys(":ca\t bu\t\r");
    terminal.see("status   success");
    terminal.keys("nothing\r");
    terminal.see("(line 1, column 1)");
    // Pasted lines are entered, except for the last one.
    terminal.keys("\x1b[200~a = 6\na * 7\n\x1b[201~");
    terminal.see("\n42\n");
    terminal.keys("\x04");
    let (status, _) = terminal.ended();
    assert!(status.success());

    for end in [Signal::INT, Signal::TERM, Signal::HUP] {
        let mut terminal = Terminal::start(home.command(&["actor", "repl", &actor]), 80, 24);
        terminal.see("> ");
        terminal.signal(end);
        let (status, _) = terminal.ended();
        assert_eq!(status.code(), Some(130), "{end:?}");
    }
}

#[test]
fn a_prompt_sees_that_its_devnet_ends() {
    let home = Home::new();
    home.up(&["--validators", "1", "--runners", "0"]);
    let actor = deployed(&home, "counter.star", COUNTER);
    let mut command: Command = home.command(&["actor", "repl", &actor]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = child.stdin.take().unwrap();
    home.run(&["devnet", "down"]);
    // It may have ended before it read anything.
    let _ = lines.write_all(b"1\n");
    drop(lines);
    let output = child.wait_with_output().unwrap();
    assert_ne!(output.status.code(), Some(0));
    assert!(String::from_utf8(output.stderr).unwrap().starts_with("error: "));
}
