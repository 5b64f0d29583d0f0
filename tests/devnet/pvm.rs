//! Actors in Python, on running devnets.
//!
//! `COWBOYCTL_TEST_PVM` names a folder with the machine, as `cowboyctl pvm install` makes it, and
//! `COWBOYCTL_PYTHON` a Python with `tests/python/requirements.txt`. Tests that lack one of them
//! do nothing, and standard error says so.

use crate::{
    migration::request,
    shape,
    support::{Home, Outcome, list, wait_until},
    timers::text,
};
use serde_json::{Value, json};
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
};

/// The SDK's actors and attacks, and the programs that run them.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/python");

/// The tests run each third scenario and each twelfth attack, and all of them if
/// `COWBOYCTL_PYTHON_ALL` is set.
const SCENARIOS_EVERY: &str = "3";
const ATTACKS_EVERY: &str = "12";

/// Calls of the test of random calls, unless `COWBOYCTL_PYTHON_CALLS` says how many.
const CALLS: u32 = 120;

const COUNTER: &str = r#"
from cowboy_sdk import actor, public, runtime

@actor
class Counter:
    @public(decode="raw")
    def init(self, payload):
        self.storage["n"] = 0

    @public
    def add(self, by):
        self.storage["n"] = self.storage["n"] + by
        self.storage["last " + str(by)] = runtime.get_block_height()
        return self.storage["n"]

    @public
    def fail(self, by):
        self.storage["n"] = 0
        raise ValueError("on purpose")

    @public
    def burn(self, rounds):
        total = 0
        for n in range(rounds):
            total += n
        return total
"#;

/// The quick start of the SDK's README, with the permission that it lacks.
const AGENT: &str = r#"
from cowboy_sdk import actor, capture, public, runner

@actor
class Agent:
    @public(decode="raw")
    def init(self, payload):
        self.storage["asked"] = 0

    @public
    @runner.continuation
    async def ask(self, question):
        ctx = capture()
        ctx.answer = await runner.llm("In short: " + question)
        self.storage["asked"] = self.storage["asked"] + 1
        self.storage["answer"] = ctx.answer
        return ctx.answer

    def chat(self, message):
        return message
"#;

/// A Python with pytest and the SDK.
#[expect(clippy::print_stderr, reason = "says what is not run")]
pub fn python() -> Option<String> {
    let python = env::var("COWBOYCTL_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let mut command = Command::new(&python);
    command
        .args(["-c", "import cowboy_sdk, coverage, pytest"])
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    let works = command.status().is_ok_and(|status| status.success());
    if !works {
        eprintln!("not run: {python} has no tests/python/requirements.txt");
    }
    works.then_some(python)
}

fn by_hand(validators: u32) -> Value {
    json!({
        "validators": validators,
        "runners": [{"name": "by-hand", "executors": {"by_hand": true}}],
        "api": {"compat": true},
        // Actors with several continuations take more to load than a timer has by default.
        "timers": {"max_cycles_per_fire_auction_phase": 550_000},
    })
}

fn deploy(home: &Home, source: &str) -> String {
    let file = home.path("actor.py");
    fs::write(&file, source).unwrap();
    let deployed = home.json(&["actor", "deploy", file.to_str().unwrap(), "--value", "50cby"]);
    text(&deployed["actor"]).to_owned()
}

/// The value under a key of an actor's store.
fn kept(home: &Home, actor: &str, key: &str) -> Value {
    let shown = home.json(&["actor", "show", actor]);
    let entry = list(&shown["state"]).iter().find(|entry| entry["key"] == key);
    entry.map_or(Value::Null, |entry| entry["value"].clone())
}

#[test]
fn an_agent_asks_is_answered_and_goes_on_in_a_later_block() {
    let Some(home) = Home::with_machine() else { return };
    let up = home.up_with(&by_hand(4));
    let agent = deploy(&home, AGENT);
    let refused = home.fails(6, &["actor", "call", &agent, "chat", "\"hi\""]);
    assert!(refused.contains("E1230") && refused.contains("fix: "), "{refused}");
    let called = home.json(&["actor", "call", &agent, "ask", "\"Why?\""]);
    assert_eq!(called["payload"]["payload"], "Why?");
    assert_eq!(called["payload"]["payload_bytes"], "0x645768793f");
    let shown = home.json(&["actor", "show", &agent]);
    let [waiting] = &list(&shown["continuations"])[..] else { panic!("{shown}") };
    let job = home.json(&["job", "show", "latest"]);
    assert_eq!((&waiting["job_id"], &waiting["handler"]), (&job["job_id"], &json!("ask__resume")));
    assert_eq!(waiting["cid"], job["spec"]["callback"]["resume"]["cid"]);
    let told = home.run(&["job", "show", "latest"]).stdout;
    assert!(told.contains("ask__resume of 0x"), "{told}");
    let (status, stored) = request(&up, "GET", &format!("/actors/{agent}/storage"), "");
    assert_eq!((status, &stored["state"]), (200, &shown["state"]));
    let tried = format!("/actor/{agent}/read_handler?handler=ask&payload=%22Who%22");
    let (status, tried) = request(&up, "GET", &tried, "");
    assert_eq!((status, &tried["success"]), (200, &json!(true)), "{tried}");
    let answered = home.json(&["job", "answer", "latest", "Because."]);
    assert_eq!(answered["status"], "Verified");
    assert!(answered["final_at"].as_u64() > called["height"].as_u64(), "{called} {answered}");
    wait_until("the agent goes on", || kept(&home, &agent, "answer") == "Because.");
    assert_eq!(kept(&home, &agent, "asked"), 1);
    assert_eq!(home.json(&["actor", "show", &agent])["continuations"], json!([]));
    // All of it executed again, from genesis.
    assert_eq!(home.json(&["chain", "verify", "1..latest"])["valid"], true);
    // After a restart, too: code, stores and the continuation come from the stored chain.
    home.json(&["actor", "call", &agent, "ask", "\"And?\""]);
    home.json(&["devnet", "down"]);
    home.up(&["-f", home.path("topology.yaml").to_str().unwrap()]);
    home.json(&["job", "answer", "latest", "Nothing."]);
    wait_until("the agent goes on", || kept(&home, &agent, "answer") == "Nothing.");
    // A job that fails for good reaches the agent as an exception.
    home.json(&["actor", "call", &agent, "ask", "\"Never?\""]);
    home.json(&["job", "answer", "latest", "--fail", "no idea"]);
    wait_until("the job has failed", || {
        home.json(&["job", "show", "latest"])["status"] == "Failed"
    });
    assert_eq!(kept(&home, &agent, "answer"), "Nothing.");
}

#[test]
fn a_node_without_the_machine_of_its_chain_does_not_start() {
    let Some(mut home) = Home::with_machine() else { return };
    home.up_with(&by_hand(1));
    let actor = deploy(&home, COUNTER);
    let record = fs::read_to_string(home.path("local/devnet.json")).unwrap();
    let url = text(&serde_json::from_str::<Value>(&record).unwrap()["rpc_url"]).to_owned();
    // Another host copies the machine from this devnet, and gets the same one.
    let (theirs, others) = (home.machines(), home.path("copied"));
    let install = ["-o", "json", "pvm", "install", "--from", &url];
    let copied = Outcome::of(&install, home.command(&install).env("COWBOYCTL_PVM", &others));
    assert_eq!(copied.code, 0, "{copied:?}");
    let installed = home.json(&["pvm", "status"]);
    assert!(list(&installed).iter().any(|one| one["machine"] == copied.json()["machine"]));
    home.json(&["devnet", "down"]);
    let topology = home.path("topology.yaml").display().to_string();
    home.set_machines(home.path("none"));
    let refused = home.run(&["devnet", "up", "--detach", "-f", &topology]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains("cowboyctl pvm install --from URL"), "{refused:?}");
    home.set_machines(others);
    home.up(&["-f", &topology]);
    let add = |payload: &[&str]| {
        let called = home.json(&[&["actor", "call", &actor, "add"], payload].concat());
        assert_eq!(called["result"], called["actor"]["result"]);
        (called["result"].clone(), called["result_bytes"].clone())
    };
    assert_eq!(add(&["2"]), (json!(2), json!("0x02")));
    assert_eq!(add(&["--payload-json", "28"]), (json!(30), json!("0x181e")));
    assert_eq!(add(&["--payload-hex", "01"]).0, 31);
    assert_eq!(add(&["--payload-hex", "0x01"]).0, 32);
    assert_eq!(add(&["--payload-text", "\u{3}"]).0, 35);
    for (payload, told) in [
        (["--payload-json", "{"], "--payload-json is not JSON"),
        (["--payload-hex", "1"], "--payload-hex: "),
    ] {
        let call = [&["actor", "call", &actor, "add"], &payload[..]].concat();
        let refused = home.fails(2, &call);
        assert!(refused.contains(told), "{refused}");
    }
    let owned = home.json(&["actor", "transfer", &actor, "--to", "dev-1"]);
    let refused = home.fails(6, &["actor", "transfer", &actor, "--to", "dev-0"]);
    assert!(refused.contains("only ") && owned["owner"] != owned["deployer"], "{refused}");
    let machine = text(&home.json(&["pvm", "verify"])["machine"]).to_owned();
    assert_eq!(home.json(&["pvm", "rm", &machine[..10]])["machine"], machine);
    assert_eq!(home.json(&["pvm", "status"]), json!([]));
    shape::seen(&["pvm install", "pvm status", "pvm verify", "pvm rm", "actor transfer"]);
    // A machine whose files were changed is not executed.
    home.json(&["devnet", "down"]);
    let damaged = home.path("damaged");
    copy(&theirs, &damaged);
    let code = damaged.join(machine.trim_start_matches("0x")).join("component.cwasm");
    let mut bytes = fs::read(&code).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(code, bytes).unwrap();
    home.set_machines(damaged);
    let refused = home.run(&["devnet", "up", "--detach", "-f", &topology]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains("has changed since it was made"), "{refused:?}");
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let (path, at) = (entry.path(), to.join(entry.file_name()));
        match path.is_dir() {
            true => copy(&path, &at),
            false => drop(fs::copy(&path, &at).unwrap()),
        }
    }
}

#[test]
fn tests_in_python_tell_what_they_ran() {
    let Some(python) = python() else { return };
    let home = Home::new();
    fs::write(
        home.path("sizes.py"),
        "def size(n):\n    if n > 3:\n        return 1\n    return 0\n",
    )
    .unwrap();
    let tests = home.path("test_sizes.py");
    fs::write(&tests, "import sizes\n\ndef test_it():\n    assert sizes.size(1) == 0\n").unwrap();
    let (tests, info) = (tests.to_str().unwrap(), home.path("sizes.info"));
    let args = ["actor", "test", tests, "--python", &python, "--coverage", info.to_str().unwrap()];
    let tested = home.run(&args);
    assert_eq!(tested.code, 0, "{tested:?}");
    let lcov = fs::read_to_string(&info).unwrap();
    let (_, of_module) = lcov.split_once("sizes.py\n").unwrap();
    assert!(of_module.starts_with("DA:1,1\nDA:2,1\nDA:3,0\nDA:4,1\n"), "{lcov}");
    let refused = home.fails(2, &[&args[..], &["--on", "devnet"]].concat());
    assert!(refused.contains("leave out --on devnet"), "{refused}");
}

/// Accounts that call at the same time.
const CALLERS: u32 = 10;

/// Random calls by ten accounts at a time, while validators are killed and started again: in the
/// end all have the same chain, which another execution confirms.
#[test]
fn validators_agree_on_random_calls_through_kills() {
    let Some(home) = Home::with_machine() else { return };
    let calls = env::var("COWBOYCTL_PYTHON_CALLS").ok().and_then(|calls| calls.parse().ok());
    // xorshift
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    home.up_with(&json!({"validators": 4, "runners": 0}));
    let actors = [deploy(&home, COUNTER), deploy(&home, &format!("# two{COUNTER}"))];
    let mut expected = [0_i64; 2];
    for round in 0..calls.unwrap_or(CALLS).div_ceil(CALLERS) {
        let mut draw = |caller: u32| {
            let which = random(2) as usize;
            let by = random(19) as i64 - 9;
            let (handler, payload) = match random(6) {
                0 => ("fail", by.to_string()),
                // Some are out of fuel, at a point of their own.
                1 => ("burn", random(200_000).to_string()),
                _ => {
                    expected[which] += by;
                    ("add", by.to_string())
                }
            };
            (format!("dev-{caller}"), &*actors[which], handler, payload)
        };
        let orders: Vec<_> = (0..CALLERS).map(&mut draw).collect();
        let killed = (round % 4 == 2).then(|| format!("validator-{}", random(4)));
        thread::scope(|scope| {
            for (caller, actor, handler, payload) in &orders {
                let limits = ["--cycles", "900000", "--cells", "20000", "--from", caller, "--"];
                let call = [&["actor", "call"], &limits[..], &[actor, handler, payload]].concat();
                let home = &home;
                scope.spawn(move || {
                    let outcome = home.run(&call);
                    let right: &[i32] = if *handler == "add" { &[0] } else { &[0, 6] };
                    assert!(right.contains(&outcome.code), "{outcome:?}");
                });
            }
            if let Some(node) = &killed {
                home.json(&["fault", "kill", node]);
                home.json(&["validator", "start", node]);
            }
        });
    }
    for (actor, expected) in actors.iter().zip(expected) {
        assert_eq!(kept(&home, actor, "n"), expected);
    }
    home.wait_validators(|head| head);
    assert_eq!(home.json(&["chain", "verify", "1..latest"])["valid"], true);
    home.json(&["devnet", "down"]);
    let findings = home.run(&["-o", "json", "doctor", "--deep"]).json();
    let bad = list(&findings).iter().filter(|f| f["check"] == "stored" && f["state"] != "ok");
    assert_eq!(bad.count(), 0, "{findings}");
}

/// What a file of `tests/python/check` expects: pairs of a line and a rule.
fn expected(source: &str) -> Vec<(u64, String)> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(source.lines()) {
        let Some((_, rules)) = line.split_once("# expect: ") else { continue };
        found.extend(rules.split(',').map(|rule| (number, rule.trim().to_owned())));
    }
    found
}

#[test]
fn checks_find_what_is_wrong_and_nothing_else() {
    let Some(home) = Home::with_machine() else { return };
    let mut paths: Vec<PathBuf> = fs::read_dir(format!("{FOLDER}/check"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    assert!(paths.len() >= 30, "{paths:?}");
    for path in paths {
        let source = fs::read_to_string(&path).unwrap();
        let outcome = home.run(&["-o", "json", "actor", "check", path.to_str().unwrap()]);
        let checked: Value = serde_json::from_str(outcome.stdout.trim()).unwrap_or_else(|error| {
            panic!("{error}: {outcome:?}");
        });
        let findings = list(&checked["findings"]).iter();
        let mut found: Vec<_> = findings
            .filter(|found| found["rule"] != "does-not-load")
            .map(|found| (found["line"].as_u64().unwrap(), text(&found["rule"]).to_owned()))
            .collect();
        found.sort();
        let mut expected = expected(&source);
        expected.sort();
        assert_eq!(found, expected, "{}: {checked}", path.display());
        assert_eq!(outcome.code == 0, checked["valid"].as_bool().unwrap(), "{outcome:?}");
    }
}

fn every(share: &str) -> &str {
    if env::var_os("COWBOYCTL_PYTHON_ALL").is_some() { "1" } else { share }
}

/// Runs a program of `tests/python` on this home's devnet.
fn program(home: &Home, python: &str, words: &[&str]) {
    let mut command = home.command_of(python, &["-B"]);
    command.arg(format!("{FOLDER}/{}", words[0])).args(&words[1..]);
    command.env("COWBOYCTL", env!("CARGO_BIN_EXE_cowboyctl")).env("COWBOYCTL_DEVNET", "local");
    let output = command.output().unwrap();
    let [said, errors] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "{words:?}: {said}\n{errors}");
}

/// Each scenario leaves the same store, jobs and events on the SDK's `SimulatedChain`.
#[test]
fn scenarios_end_as_on_the_simulated_chain() {
    let (Some(home), Some(python)) = (Home::with_machine(), python()) else { return };
    home.up_with(&by_hand(2));
    program(&home, &python, &["scenarios.py", "--every", every(SCENARIOS_EVERY)]);
}

#[test]
fn attacks_end_in_named_errors_and_the_chain_goes_on() {
    let (Some(home), Some(python)) = (Home::with_machine(), python()) else { return };
    home.up_with(&json!({"validators": 2, "runners": 1}));
    let (command, every) = (env!("CARGO_BIN_EXE_cowboyctl"), every(ATTACKS_EVERY));
    let words = ["hostile.py", "--cowboyctl", command, "--devnet", "local", "--every", every];
    program(&home, &python, &words);
}
