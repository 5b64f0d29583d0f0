//! Actor commands against a devnet's answers.

use crate::{
    answers::{self, account, answer, hash, sender, transaction},
    support::{Answer, Fake, Folder, Outcome, Request, outcome},
};
use cowboy_devnet::types::*;
use cowboy_engine::{
    chain::transaction::{Payload, SignedTransaction},
    fees::meter,
    primitives::{Address, CBY, Wei},
};
use serde_json::{Value, json};
use std::fs;

const COUNTER: &str = "\
def bump(ctx, payload):
    n = pvm_host.get_state(\"n\", 0) + 1
    pvm_host.set_state(\"n\", n)
    return n
";

pub fn actor() -> Address {
    Address([0xac; 20])
}

fn summary() -> ActorSummary {
    ActorSummary {
        actor: Text(actor()),
        name: None,
        deployer: account("dev-0").address,
        deployer_name: Some("dev-0".to_owned()),
        code: hash(7),
        deployed_at: 12,
        balance: Text(Wei::new(CBY / 2)),
    }
}

fn shown() -> Actor {
    let ActorSummary { actor, name, deployer, deployer_name, code, deployed_at, balance } =
        summary();
    let handler = |name: &str, line| Handler {
        name: name.to_owned(),
        parameters: vec!["ctx".to_owned(), "payload".to_owned()],
        line,
    };
    let entry = |key: &str, value| StateEntry { key: key.to_owned(), value, value_bytes: None };
    Actor {
        actor,
        name,
        deployer,
        deployer_name,
        code,
        language: "starlark".to_owned(),
        owner: deployer,
        deployed_at,
        balance,
        retained: 96,
        handlers: vec![handler("bump", 1), handler("crash", 9)],
        continuations: Vec::new(),
        state: vec![entry("n", json!(3)), entry("text", json!("x".repeat(200)))],
        next: Some("u".to_owned()),
        source: COUNTER.to_owned(),
    }
}

fn usage() -> Usage {
    let by_cause = CyclesByCause {
        loading: 0,
        evaluation: 900,
        data: 40,
        heap: 4,
        storage: 60,
        effects: 120,
        hashing: 0,
    };
    Usage { cycles: 1_124, cells: 40, by_cause }
}

fn event(kind: &str, data: Value) -> Event {
    answers::event(43, 0, kind, data)
}

fn log() -> Vec<LogLine> {
    vec![LogLine { actor: Text(actor()), text: "bumping".to_owned() }]
}

const STACK: &str = "no way (at 11:5)\n  in crash at 11:5";

fn dry_run(request: &DryRunRequest) -> DryRun {
    let success = request.handler != "crash";
    let change = StateChange {
        actor: Text(actor()),
        key: "n".to_owned(),
        before: None,
        after: Some(json!(1)),
    };
    DryRun {
        actor: Text(actor()),
        handler: request.handler.clone(),
        sender: account("dev-0").address,
        at: request.at.unwrap_or(42),
        success,
        result: success.then(|| json!({"n": 1})),
        result_bytes: None,
        error: (!success).then(|| "ActorError".to_owned()),
        message: (!success).then(|| STACK.to_owned()),
        usage: usage(),
        deliveries: 1,
        log: log(),
        events: if success {
            vec![event("ActorEmitted", json!({"name": "bumped"}))]
        } else {
            vec![]
        },
        changes: if success { vec![change] } else { vec![] },
        calls: vec![],
    }
}

/// A call of the actor, included in a block with this hash and status.
fn called(hash: HashText, status: TransactionStatus) -> Transaction {
    let success = status == TransactionStatus::Success;
    Transaction {
        kind: "call_actor".to_owned(),
        payload: json!({"actor": actor().to_string(), "handler": "bump", "payload": "0x", "value": "0"}),
        error: (!success).then(|| "ActorError".to_owned()),
        message: (!success).then(|| STACK.to_owned()),
        actor: Some(ActorReceipt {
            actor: Text(actor()),
            result: success.then(|| json!(3)),
            result_bytes: None,
            usage: usage(),
            deliveries: 1,
            log: log(),
        }),
        events: if success {
            vec![event("ActorCalled", json!({"handler": "bump"}))]
        } else {
            vec![]
        },
        ..transaction(hash, status)
    }
}

/// The API of a devnet with an actor whose calls end with the status `ends`.
fn with_actor(request: &Request, ends: TransactionStatus) -> Answer {
    let line = request.line.as_str();
    let path = format!("/v1/actors/{}", actor());
    match line {
        "GET /v1/actors?limit=100" | "GET /v1/actors?deployer=dev-0&limit=100" => {
            Answer::json(&[summary()])
        }
        "POST /v1/transactions" => {
            let body: TransactionRequest = serde_json::from_str(&request.body).unwrap();
            let signed = SignedTransaction::from_bytes(&body.transaction).unwrap();
            assert_eq!(signed.sender().unwrap(), sender());
            Answer::json(&TransactionAccepted { hash: Text(signed.hash()), known: false })
        }
        _ if line == format!("GET {path}?limit=100")
            || line == format!("GET {path}?limit=1")
            || line == format!("GET {path}?at=7&limit=1")
            || line == "GET /v1/actors/0xac?limit=1" =>
        {
            Answer::json(&shown())
        }
        _ if line == format!("GET {path}/logs?limit=100") => Answer::json(&ActorLog {
            lines: [ActorLineKind::Log, ActorLineKind::Event, ActorLineKind::Error]
                .map(|kind| line_of(40, kind))
                .to_vec(),
            next: 43,
        }),
        _ if line == format!("GET {path}/logs?from=43") => {
            Answer::json(&ActorLog { lines: vec![line_of(44, ActorLineKind::Log)], next: 45 })
        }
        _ if line.starts_with(&format!("GET {path}/logs?from=")) => {
            let from: u64 = line.rsplit('=').next().unwrap().parse().unwrap();
            Answer::json(&ActorLog { lines: vec![], next: from })
        }
        "POST /v1/actors/0xac/dry-run" => {
            Answer::json(&dry_run(&serde_json::from_str(&request.body).unwrap()))
        }
        _ if line == format!("POST {path}/dry-run") => {
            Answer::json(&dry_run(&serde_json::from_str(&request.body).unwrap()))
        }
        _ => match line.strip_prefix("GET /v1/chain/transactions/") {
            Some(hash) => Answer::json(&called(hash.parse().unwrap(), ends)),
            None => answer(request),
        },
    }
}

fn line_of(height: u64, kind: ActorLineKind) -> ActorLine {
    let is_event = kind == ActorLineKind::Event;
    ActorLine {
        height,
        transaction: Some(hash(9)),
        timer: None,
        job: None,
        kind,
        text: match kind {
            ActorLineKind::Log => Some("bumping".to_owned()),
            ActorLineKind::Event => None,
            ActorLineKind::Error => Some(format!("ActorError: {STACK}")),
        },
        name: is_event.then(|| "bumped".to_owned()),
        data: is_event.then(|| json!({"n": 3})),
    }
}

pub fn fake(ends: TransactionStatus) -> Fake {
    Fake::new(move |request| with_actor(request, ends))
}

fn submitted(fake: &Fake) -> SignedTransaction {
    let posted = fake.requests().into_iter().find(|r| r.line == "POST /v1/transactions").unwrap();
    let body: TransactionRequest = serde_json::from_str(&posted.body).unwrap();
    SignedTransaction::from_bytes(&body.transaction).unwrap()
}

#[test]
fn tables_read_well() {
    let fake = fake(TransactionStatus::Success);
    let (actor, tx) = (actor().to_string(), hash(9).to_string());
    let mut all = String::new();
    for args in [
        &["actor", "ls"][..],
        &["actor", "show", &actor],
        &["actor", "call", &actor, "bump", "--dry-run"],
        &["actor", "call", &actor, "bump", "--dry-run", "--at", "7"],
        &["actor", "logs", &actor],
        &["chain", "tx", &tx],
    ] {
        all += &format!("$ cowboyctl {}\n{}\n", args.join(" "), fake.folder.prints(args));
    }
    insta::assert_snapshot!(all);
    let failed = fake.folder.run(&["actor", "call", &actor, "crash", "--dry-run"]);
    assert_eq!(failed.code, 6);
    insta::assert_snapshot!(failed.stdout + &failed.stderr);
}

#[test]
fn quiet_prints_what_a_script_needs() {
    let fake = fake(TransactionStatus::Success);
    let folder = &fake.folder;
    let address = format!("{}\n", actor());
    assert_eq!(folder.prints(&["-q", "actor", "ls", "--deployer", "dev-0"]), address);
    let dry = ["-q", "actor", "call", "0xac", "bump", "--dry-run"];
    assert_eq!(folder.prints(&dry), "{\"n\":1}\n");
    let call = folder.prints(&["-q", "actor", "call", "0xac", "bump"]);
    assert_eq!(call.trim(), submitted(&fake).hash().to_string());
    fs::write(folder.path("counter.star"), COUNTER).unwrap();
    let deployed = folder.prints(&["-q", "actor", "deploy", "counter.star"]);
    assert_eq!(deployed.trim(), Address::of_actor(&sender(), 3).to_string());
}

#[test]
fn a_call_buys_what_its_dry_run_used_and_some_more() {
    let fake = fake(TransactionStatus::Success);
    let args = ["actor", "call", "0xac", "bump", "0x00ff", "--value", "1cby", "-o", "json"];
    let sent: Value = serde_json::from_str(&fake.folder.prints(&args)).unwrap();
    assert_eq!(
        (&sent["actor"]["result"], &sent["actor"]["usage"]["cells"]),
        (&3.into(), &40.into())
    );
    assert_eq!(sent["actor"]["usage"]["by_cause"]["evaluation"], 900);
    let signed = submitted(&fake);
    let Payload::CallActor(call) = &signed.transaction.payload else { panic!("{signed:?}") };
    assert_eq!((call.actor, call.handler.as_str()), (actor(), "bump"));
    assert_eq!((call.payload.as_slice(), call.value), (&[0, 255][..], Wei::cby(1)));
    let bought = signed.transaction.cycle_limit.get();
    assert_eq!(bought, meter::INTRINSIC_CYCLES + 1_124 + 281 + 1_000);
    let tried: Vec<_> =
        fake.requests().into_iter().filter(|r| r.line.ends_with("/dry-run")).collect();
    assert_eq!(tried.len(), 1);
    let asked: DryRunRequest = serde_json::from_str(&tried[0].body).unwrap();
    assert_eq!((asked.sender.as_str(), *asked.value), ("dev-0", Wei::cby(1)));
}

#[test]
fn a_call_with_limits_is_sent_without_a_trial() {
    let fake = fake(TransactionStatus::Success);
    let limits = ["--cycles", "5000", "--cells", "10"];
    let actor = actor().to_string();
    fake.folder.prints(&[&["actor", "call", &actor, "bump", "text"][..], &limits].concat());
    assert!(fake.requests().iter().all(|r| !r.line.ends_with("/dry-run")));
    let signed = submitted(&fake);
    assert_eq!(signed.transaction.cycle_limit.get(), meter::INTRINSIC_CYCLES + 5_000);
    let Payload::CallActor(call) = &signed.transaction.payload else { panic!("{signed:?}") };
    assert_eq!(call.payload, b"text");
}

#[test]
fn a_call_that_would_fail_is_not_sent() {
    let fake = fake(TransactionStatus::Success);
    insta::assert_snapshot!(fake.folder.fails(6, &["actor", "call", "0xac", "crash"]), @r"
    error: ActorError: no way (at 11:5)
      in crash at 11:5
      nothing was sent; to send it anyway, give --cycles and --cells
    ");
    assert!(fake.requests().iter().all(|r| r.line != "POST /v1/transactions"));
}

#[test]
fn a_call_that_failed_shows_its_receipt() {
    let fake = fake(TransactionStatus::Failed);
    let failed = fake.folder.run(&["actor", "call", "0xac", "bump"]);
    assert_eq!(failed.code, 6, "{failed:?}");
    let hash = submitted(&fake).hash();
    let expected = format!(
        "error: ActorError: no way (at 11:5)\n  in crash at 11:5\n  \
         see it: cowboyctl chain tx {hash}\n"
    );
    assert_eq!(failed.stderr, expected);
    assert!(failed.stdout.contains("evaluation 900") && failed.stdout.contains("bumping"));
}

#[test]
fn a_module_is_loaded_before_anything_is_sent() {
    let fake = fake(TransactionStatus::Success);
    let folder = &fake.folder;
    fs::write(folder.path("counter.star"), COUNTER).unwrap();
    let args = ["actor", "deploy", "counter.star", "-o", "json"];
    let deployed: Value = serde_json::from_str(&folder.prints(&args)).unwrap();
    assert_eq!(deployed["actor"], Address::of_actor(&sender(), 3).to_string());
    assert_eq!(deployed["handlers"], json!(["bump"]));
    let signed = submitted(&fake);
    let Payload::DeployActor(deploy) = &signed.transaction.payload else { panic!("{signed:?}") };
    assert_eq!(deploy.source, COUNTER);
    assert!(signed.transaction.cycle_limit.get() > meter::INTRINSIC_CYCLES);

    let sent = fake.requests().len();
    fs::write(folder.path("bad.star"), "def f(ctx, payload):\n    return 1.5\n").unwrap();
    let refused = folder.fails(6, &["actor", "deploy", "bad.star"]);
    assert!(refused.starts_with("error: bad.star:2:12: ModuleRefused: "), "{refused}");
    fs::write(folder.path("bytes.star"), [b'x', 0xff]).unwrap();
    let refused = folder.fails(2, &["actor", "deploy", "bytes.star"]);
    assert!(refused.starts_with("error: bytes.star: not UTF-8 at byte 1"), "{refused}");
    let refused = folder.fails(3, &["actor", "deploy", "none.star"]);
    assert!(refused.starts_with("error: none.star: "), "{refused}");
    let later = &fake.requests()[sent..];
    assert!(later.iter().all(|r| r.line == "GET /v1/chain/parameters"), "{later:?}");
}

#[test]
fn payloads_come_from_files_and_standard_input() {
    let fake = fake(TransactionStatus::Success);
    fs::write(fake.folder.path("order.json"), r#"{"a": 1}"#).unwrap();
    fake.folder.prints(&["actor", "call", "0xac", "bump", "@order.json"]);
    let signed = submitted(&fake);
    let Payload::CallActor(call) = &signed.transaction.payload else { panic!("{signed:?}") };
    assert_eq!(call.payload, br#"{"a": 1}"#);
    let refused = fake.folder.fails(2, &["actor", "call", "0xac", "bump", "0x123"]);
    assert!(refused.starts_with("error: the payload: `0x123` is not a byte string"), "{refused}");
}

#[test]
fn a_log_is_followed() {
    // Blocks up to 44 hold a transaction each.
    let fake = Fake::new(move |request| match request.line.as_str() {
        "GET /v1/events?from=43" => {
            let blocks = (43..46).map(|height| {
                let message = answers::notice(height);
                message.replace("\"transactions\":0", "\"transactions\":1")
            });
            Answer::Stream(blocks.collect())
        }
        _ => with_actor(request, TransactionStatus::Success),
    });
    let actor = actor().to_string();
    let mut command = fake.folder.command(&["actor", "logs", &actor, "--follow", "-o", "jsonl"]);
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    let kinds: Vec<_> =
        (0..4).map(|_| next()).map(|l| (l["height"].clone(), l["kind"].clone())).collect();
    let expected = [(40, "log"), (40, "event"), (40, "error"), (44, "log")];
    assert_eq!(kinds, expected.map(|(height, kind)| (height.into(), kind.into())));
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Runs a prompt at the actor on these lines.
fn typed(fake: &Fake, args: &[&str], lines: &str) -> Outcome {
    let file = fake.folder.path("lines");
    fs::write(&file, lines).unwrap();
    let mut command = fake.folder.command(&[&["actor", "repl", "0xac"], args].concat());
    outcome(command.stdin(fs::File::open(file).unwrap()))
}

#[test]
fn a_prompt_tries_the_module_with_what_is_typed() {
    let fake = fake(TransactionStatus::Success);
    let ended = typed(&fake, &["--from", "faucet"], "x = 1\nbump(x)\n:at 7\nx\n");
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "{\"n\":1}\n{\"n\":1}\n"), "{ended:?}");
    let tried = fake.requests().into_iter().filter(|r| r.line.ends_with("/dry-run"));
    let tried: Vec<DryRunRequest> =
        tried.map(|request| serde_json::from_str(&request.body).unwrap()).collect();
    let function =
        |body: &str| Some(format!("{COUNTER}def repl__(ctx, repl___payload):\n    x = 1\n{body}"));
    let expected = [(function(""), None), (function("    return (bump(x))\n"), None)];
    let last = (function("    return (x)\n"), Some(7));
    let asked: Vec<_> = tried.iter().map(|request| (request.source.clone(), request.at)).collect();
    assert_eq!(asked, [&expected[..], &[last]].concat());
    assert!(tried.iter().all(|request| request.sender == "faucet" && request.handler == "repl__"));
    assert!(fake.requests().iter().all(|r| r.line != "POST /v1/transactions"));
}

#[test]
fn a_prompt_refuses_what_it_can_tell_itself() {
    let fake = fake(TransactionStatus::Success);
    let check = |lines: &str, code: i32, expected: &str| {
        let ended = typed(&fake, &[], lines);
        assert_eq!((ended.code, ended.stderr.as_str()), (code, expected), "{lines}");
    };
    check(
        "\n1 +\n",
        6,
        "error: SyntaxError: expected an expression (line 1, column 4)\n  line 2 of the input\n",
    );
    check(
        ":halp",
        2,
        "error: there is no command :halp\n  line 1 of the input: did you mean `:help`?\n  \
         list them: :help\n",
    );
    let missing = typed(&fake, &[], ":with missing.star");
    assert!(missing.code == 3 && missing.stderr.contains("missing.star"), "{missing:?}");
    assert!(fake.requests().iter().all(|r| !r.line.ends_with("/dry-run")));
    let folder = &fake.folder;
    let refused = folder.fails(2, &["actor", "call", "0xac", "bump", "--with-code", "next.star"]);
    assert!(refused.contains("--dry-run"), "{refused}");
}

#[test]
fn a_prompt_needs_a_devnet() {
    let folder = Folder::new();
    let refused = folder.fails(4, &["actor", "repl", "counter"]);
    assert!(refused.starts_with("error: no devnet is running"), "{refused}");
}
