//! Commands against a devnet's answers.

use crate::{
    answers::{self, answer, hash, job, notice, sender, transaction},
    shape,
    support::{Answer, Fake, Request, outcome},
};
use cowboy_devnet::types::{
    ErrorCode, Text, TransactionAccepted, TransactionRequest, TransactionStatus,
};
use cowboy_engine::{
    chain::transaction::{Payload, SignedTransaction},
    primitives::{CBY, Wei},
};
use serde_json::Value;

/// A command for each kind of output, as a table and as JSON.
pub const SHOWN: [&[&str]; 23] = [
    &["devnet", "status"],
    &["chain", "head"],
    &["chain", "block", "42"],
    &["chain", "events", "--from", "0"],
    &["account", "ls"],
    &["account", "balance", "dev-0"],
    &["runner", "ls"],
    &["runner", "show", "runner-3"],
    &["runner", "subset", "runner-3"],
    &["validator", "ls"],
    &["validator", "show", "validator-2"],
    &["validator", "stop", "validator-2"],
    &["validator", "resync", "validator-2"],
    &["job", "ls"],
    &["presence", "show"],
    &["presence", "show", "40"],
    &["presence", "votes", "41"],
    &["presence", "diff", "40", "41"],
    &["presence", "compare", "30..latest"],
    &["mru", "ls"],
    &["mru", "show", "dev-0", "custom"],
    &["pool", "ls"],
    &["pool", "show", "gpu"],
];

pub fn job_commands() -> [Vec<String>; 3] {
    let id = hash(1).to_string();
    ["show", "dispatches", "explain"]
        .map(|verb| vec!["job".to_owned(), verb.to_owned(), id.clone()])
}

#[test]
fn tables_read_well() {
    let fake = Fake::new(answer);
    let mut all = String::new();
    let jobs = job_commands();
    let shown = SHOWN.iter().map(|args| args.iter().map(|arg| (*arg).to_owned()).collect());
    for args in shown.chain(jobs) {
        let args: Vec<String> = args;
        let args: Vec<_> = args.iter().map(String::as_str).collect();
        all += &format!("$ cowboyctl {}\n{}\n", args.join(" "), fake.folder.prints(&args));
    }
    insta::assert_snapshot!(all);
}

#[test]
fn documents_have_the_fields_that_scripts_rely_on() {
    let fake = Fake::new(answer);
    let json = |args: &[&str]| -> Value {
        let text = fake.folder.prints(&[args, &["-o", "json"]].concat());
        serde_json::from_str(&text).unwrap()
    };
    let check = |value: &Value, fields: &str| {
        for field in fields.split(' ') {
            assert!(value.get(field).is_some(), "no {field} in {value}");
        }
    };
    let status = json(&["devnet", "status"]);
    check(&status, "name running head validators runners");
    check(&status["head"], "height hash finalized_at");
    check(&status["validators"][0], "name address height status");
    check(&status["runners"][0], "name address status connected_validators");
    let fields = "height hash parent proposer view state_root transactions certificate_for events";
    check(&json(&["chain", "block", "42"]), fields);
    let fields =
        "name address pubkey index stake reputation kinds active_jobs status subset present";
    check(&json(&["runner", "ls"])[3], fields);
    let presence = json(&["presence", "show", "40"]);
    check(&presence, "height rule votes threshold registry_len bitmap present absent");
    check(&presence["absent"][0], "name present_count");
    let votes = json(&["presence", "votes", "41"]);
    check(&votes, "height quorum validators votes");
    check(&votes["votes"][0], "validator bit_length bytes present");
    let id = hash(1).to_string();
    let shown = json(&["job", "show", &id]);
    check(&shown, "job_id kind submitter status committee attempts result events");
    check(&shown["events"][0], "height event");
    let explained = json(&["job", "explain", &id]);
    check(&explained, "job_id height candidates seed draws");
    check(&explained["candidates"][3], "runner filter reason weight");
    check(&explained["draws"][0], "draw r total picked");
    check(&json(&["mru", "ls"])[0], "submitter kind runner set_at expires_at live");
    check(&json(&["pool", "ls"])[0], "pool owner owner_name members");
    assert_eq!(json(&["account", "balance", "dev-0"])["balance"], "1000000500000000");
    assert_eq!(presence["bitmap"], "0x07");
}

#[test]
fn every_format_has_its_shape() {
    let fake = Fake::new(answer);
    let folder = &fake.folder;
    let lines = folder.prints(&["runner", "ls", "-o", "jsonl"]);
    assert_eq!(lines.lines().count(), 4);
    for line in lines.lines() {
        assert!(serde_json::from_str::<Value>(line).unwrap()["name"].is_string());
    }
    let yaml = folder.prints(&["mru", "ls", "-o", "yaml"]);
    assert!(yaml.starts_with("- submitter: "), "{yaml}");
    assert_eq!(folder.prints(&["-q", "runner", "ls"]), "runner-0\nrunner-1\nrunner-2\nrunner-3\n");
    assert_eq!(folder.prints(&["-q", "chain", "head"]), "42\n");
    assert_eq!(folder.prints(&["-q", "presence", "show"]), "0x0f\n");
    assert_eq!(folder.prints(&["-q", "presence", "diff", "40", "41"]), "+runner-3\n");
    let changed = format!("{}\n{}\n", hash(2), hash(3));
    assert_eq!(folder.prints(&["-q", "presence", "compare", "30..42"]), changed);
    assert_eq!(folder.prints(&["-q", "account", "balance", "dev-0"]), "1000000500000000\n");
    let list = folder.prints(&["job", "ls", "--status", "verified", "--limit", "5", "-q"]);
    assert_eq!(list, format!("{}\n", hash(1)));
}

#[test]
fn a_result_is_printed_as_it_is() {
    let fake = Fake::new(answer);
    let id = hash(1).to_string();
    let output = fake.folder.command(&["job", "result", &id]).output().unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b"hi\n\xff"[..]));
    let json: Value =
        serde_json::from_str(&fake.folder.prints(&["job", "result", &id, "-o", "json"])).unwrap();
    assert_eq!((&json["result"], &json["result_text"]), (&"0x68690aff".into(), &Value::Null));
}

#[test]
fn refusals_keep_their_exit_codes() {
    let fake = Fake::new(answer);
    let folder = &fake.folder;
    insta::assert_snapshot!(folder.fails(3, &["runner", "show", "runner-9"]), @"error: no answer to GET /v1/runners/runner-9");
    insta::assert_snapshot!(folder.fails(8, &["validator", "start", "validator-2"]), @"error: validator-2 is running");
    insta::assert_snapshot!(folder.fails(8, &["devnet", "up", "--detach"]).lines().next().unwrap(), @"error: devnet `local` is already running");
    insta::assert_snapshot!(folder.fails(3, &["account", "transfer", "nobody", "dev-1", "1"]), @r"
    error: there is no key for account `nobody`
      keys are in [folder]/home/local/accounts
      list the accounts: cowboyctl account ls
    ");
    insta::assert_snapshot!(folder.fails(2, &["chain", "wait", "latest"]), @r"
    error: latest is not a height to wait for
      say which: cowboyctl chain wait +1
    ");
}

#[test]
fn a_wait_ends_at_its_height_or_its_timeout() {
    let fake = Fake::new(answer);
    let folder = &fake.folder;
    assert_eq!(folder.prints(&["-q", "chain", "wait", "+3"]), "45\n");
    assert_eq!(folder.prints(&["-q", "chain", "wait", "10"]), "42\n");
    insta::assert_snapshot!(folder.fails(5, &["chain", "wait", "60", "--timeout", "200ms"]), @"
    error: block 60: not within 200 ms
      last seen: block 47
      give it longer with --timeout, or see: cowboyctl devnet status
    ");
    let id = hash(3).to_string();
    let late = folder.fails(5, &["job", "wait", &id, "--timeout", "200ms"]);
    let seen = "last seen: Assigned to runner-2 (runner-2 42 %, page 4)";
    assert!(late.contains(seen), "{late}");
    let shown = folder.prints(&["job", "show", &id]);
    assert!(shown.contains("progress       runner-2 42 %, page 4\n"), "{shown}");
    assert_eq!(folder.prints(&["-q", "job", "wait", &hash(1).to_string()]), "Verified\n");
    // `latest` is the newest job when the command begins, even if others follow.
    assert_eq!(folder.prints(&["-q", "job", "wait", "latest"]), "Verified\n");
    let failed = folder.run(&["job", "wait", &hash(2).to_string()]);
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(failed.stderr.contains("no result by its deadline"), "{failed:?}");
}

#[test]
fn an_interrupted_wait_ends_with_130() {
    let (follows, followed) = std::sync::mpsc::channel();
    let fake = Fake::new(move |request| {
        if request.line == "GET /v1/chain/head" {
            follows.send(()).unwrap();
        }
        answer(request)
    });
    let mut command = fake.folder.command(&["chain", "wait", "1000000"]);
    let child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    followed.recv().unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "error: interrupted\n");
}

#[test]
fn events_follow_until_the_reader_leaves() {
    let fake = Fake::new(answer);
    let mut command = fake.folder.command(&["chain", "events", "--follow", "-o", "jsonl"]);
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    for height in 43..46 {
        let event: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!((&event["height"], &event["kind"]), (&height.into(), &"PresenceDerived".into()));
    }
    drop(lines);
    child.kill().unwrap();
    child.wait().unwrap();
}

/// An API that accepts a transaction and includes it in the next block with this status.
fn takes(request: &Request, status: TransactionStatus) -> Answer {
    if request.line == "POST /v1/transactions" {
        let body: TransactionRequest = serde_json::from_str(&request.body).unwrap();
        let signed = SignedTransaction::from_bytes(&body.transaction).unwrap();
        assert_eq!(signed.sender().unwrap(), sender());
        assert!(request.headers.contains("authorization: bearer secret"), "{request:?}");
        return Answer::json(&TransactionAccepted { hash: Text(signed.hash()), known: false });
    }
    if let Some(hash) = request.line.strip_prefix("GET /v1/chain/transactions/") {
        return Answer::json(&transaction(hash.parse().unwrap(), status));
    }
    answer(request)
}

#[test]
fn a_transfer_is_signed_and_seen_into_its_block() {
    let fake = Fake::new(|request| takes(request, TransactionStatus::Success));
    let args = ["account", "transfer", "dev-0", "dev-1", "1.5cby", "-o", "json"];
    let sent: Value = serde_json::from_str(&fake.folder.prints(&args)).unwrap();
    assert_eq!((&sent["status"], &sent["height"]), (&"success".into(), &43.into()));
    let posted = fake.requests().into_iter().find(|r| r.line.starts_with("POST")).unwrap();
    let body: TransactionRequest = serde_json::from_str(&posted.body).unwrap();
    let signed = SignedTransaction::from_bytes(&body.transaction).unwrap();
    let unsigned = &signed.transaction;
    assert_eq!((unsigned.chain_id, unsigned.nonce), (0x0123_4567_89ab_cdef, 3));
    let Payload::Transfer(transfer) = &unsigned.payload else { panic!("{unsigned:?}") };
    assert_eq!(transfer.amount, Wei::new(CBY + CBY / 2));
    assert_eq!(transfer.to, *answers::account("dev-1").address);
    assert_eq!(sent["hash"], signed.hash().to_string());
    shape::seen(&["account transfer"]);
}

#[test]
fn a_transaction_without_effect_is_a_rejection() {
    let fake = Fake::new(|request| takes(request, TransactionStatus::Failed));
    let refused = fake.folder.fails(6, &["account", "transfer", "dev-0", "dev-1", "5"]);
    let first = refused.lines().next().unwrap();
    let payer = answers::address("dev-0");
    let short = format!("{payer} needs 2.5 CBY and has 1 CBY: 1.5 CBY are missing");
    assert_eq!(first, format!("error: InsufficientBalance: {short}"));
    let hint = "  give it some: cowboyctl account fund dev-0 3cby";
    assert_eq!(refused.lines().last(), Some(hint));
    assert_eq!(refused.lines().count(), 3);
}

#[test]
fn a_nonce_that_was_taken_is_asked_for_again() {
    let attempts = std::sync::atomic::AtomicU32::new(0);
    let fake = Fake::new(move |request| {
        let first = request.line == "POST /v1/transactions"
            && attempts.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0;
        if first {
            return Answer::error(ErrorCode::Rejected, Some("Underpriced"), "another has nonce 3");
        }
        takes(request, TransactionStatus::Success)
    });
    fake.folder.prints(&["account", "transfer", "dev-0", "dev-1", "5"]);
    let posts = fake.requests().iter().filter(|r| r.line.starts_with("POST")).count();
    assert_eq!(posts, 2);
}

#[test]
fn a_job_is_submitted_and_waited_for() {
    let fake = Fake::new(|request| match request.line.strip_prefix("GET /v1/jobs/") {
        Some(id) => {
            let job_id = id.parse().unwrap();
            Answer::json(&cowboy_devnet::types::Job { job_id, ..job(1) })
        }
        None => takes(request, TransactionStatus::Success),
    });
    let args = ["job", "submit", "custom", "--wait", "-o", "json", "--", "sh", "-c", "echo hi"];
    let done: Value = serde_json::from_str(&fake.folder.prints(&args)).unwrap();
    assert_eq!(done["status"], "Verified");
    assert_eq!((&done["result"], &done["result_text"]), (&"0x68690a".into(), &"hi\n".into()));
    assert_eq!((&done["runner"], &done["runners"][0]), (&"runner-2".into(), &"runner-2".into()));
    assert_eq!((&done["final_at"], &done["latency_ms"]), (&45.into(), &500.into()));
    let posted = fake.requests().into_iter().find(|r| r.line.starts_with("POST")).unwrap();
    let body: TransactionRequest = serde_json::from_str(&posted.body).unwrap();
    let signed = SignedTransaction::from_bytes(&body.transaction).unwrap();
    let Payload::SubmitJob(spec) = &signed.transaction.payload else { panic!() };
    assert_eq!(done["job_id"], spec.job_id(&sender(), 3).to_string());
    spec.check().unwrap();

    let id = fake.folder.prints(&["-q", "job", "submit", "http", "http://127.0.0.1/"]);
    assert!(id.starts_with("0x") && id.len() == 67, "{id}");
    fake.folder.prints(&["-o", "json", "job", "submit", "http", "http://127.0.0.1/"]);
    let refused = fake.folder.fails(6, &["job", "submit", "http", "ftp://127.0.0.1/"]);
    assert!(refused.contains("InvalidJobSpec: work.url"), "{refused}");
    shape::seen(&["job submit custom", "job submit http"]);
}

#[test]
fn the_environment_and_a_node_are_respected() {
    let fake = Fake::new(answer);
    let mut command = fake.folder.command(&["devnet", "status", "-q"]);
    let asked = outcome(command.env("COWBOYCTL_NODE", "validator-2"));
    assert_eq!((asked.code, asked.stdout.as_str()), (0, "running\n"), "{asked:?}");
    assert!(fake.requests().iter().any(|r| r.line == "GET /v1/status?node=validator-2"));
    let exports = fake.folder.prints(&["devnet", "env"]);
    assert!(exports.contains("\nexport COWBOYCTL_DEVNET='local'\n"), "{exports}");
    assert!(!exports.contains("secret"), "the token stays in its file");
    assert_eq!(fake.plan, answers::plan());
}

#[test]
fn a_stream_gives_blocks_in_order() {
    // 44 is sent twice, as after a lost connection.
    let fake = Fake::new(|request| match request.line.as_str() {
        "GET /v1/events" => Answer::Stream([43, 44, 44, 45].map(notice).to_vec()),
        _ => answer(request),
    });
    assert_eq!(fake.folder.prints(&["-q", "chain", "wait", "45"]), "45\n");
}
