//! The migration phases of a running chain: from polling to presence.

use crate::{
    support::{Home, list},
    timers::{number, text},
};
use cowboy_devnet::{
    client::Client,
    types::{Bytes, Text, TransactionRequest},
};
use cowboy_engine::{
    chain::{Payload, Transaction, transaction::RegisterRunner},
    primitives::{SecretKey, Wei},
    registry::{Capabilities, JobKind},
};
use serde_json::Value;
use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
};

/// Boots a devnet in phase `shadow`, and waits until presence is known.
pub fn shadow(home: &Home, runners: &str) -> Value {
    let file = home.path("shadow.yaml");
    fs::write(&file, "migration: {phase: shadow}\n").unwrap();
    let up = home.up(&["-f", file.to_str().unwrap(), "--runners", runners, "--wait", "4"]);
    fs::remove_file(file).unwrap();
    up
}

/// Status and body of a request without a token.
pub fn request(up: &Value, method: &str, path: &str, body: &str) -> (u16, Value) {
    let host = text(&up["rpc_url"]).trim_start_matches("http://");
    let mut stream = TcpStream::connect(host).unwrap();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let code = answer.split(' ').nth(1).unwrap().parse().unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    (code, serde_json::from_str(body).unwrap())
}

/// Runs a job to its end and returns its id.
fn run_job(home: &Home, says: &str) -> String {
    let echo = format!("echo {says}");
    let job = home.json(&["job", "submit", "custom", "--wait", "--", "sh", "-c", &echo]);
    assert_eq!(
        (&job["status"], &job["result_text"]),
        (&"Verified".into(), &format!("{says}\n").into())
    );
    text(&job["job_id"]).to_owned()
}

/// Begins another phase, and waits for its first block.
fn set_phase(home: &Home, before: &str, phase: &str) {
    let set = home.json(&["chain", "params", "set", "migration.phase", phase]);
    let change = &set["changes"][0];
    assert_eq!((&change["before"], &change["value"]), (&before.into(), &phase.into()), "{set}");
    let since = number(&set["height"]) + 1;
    home.wait_height(since);
    let now = home.json(&["chain", "params", "get", "migration.phase"]);
    assert_eq!((&now["value"], &now["genesis"]), (&phase.into(), &"shadow".into()));
    assert_eq!(now["since"], since, "{now}");
}

#[test]
fn a_chain_goes_from_polling_to_push_and_leaves_polling_behind() {
    let home = Home::new();
    let up = shadow(&home, "2");
    let get = |code| {
        let (got, body) = request(&up, "GET", "/runner/runner-0/jobs", "");
        assert_eq!(got, code, "{body}");
        body
    };
    // The paths of tools of the ecosystem are off.
    let (got, body) = request(&up, "GET", "/actor/0x00/read_handler", "");
    assert!(got == 404 && body.to_string().contains("api.compat"), "{body}");
    // Validators push nothing: runners poll their jobs. Presence is voted on nevertheless.
    let polled = run_job(&home, "polled");
    assert_eq!(get(200)["phase"], "shadow");
    let compared = home.json(&["presence", "compare", "--job", &polled]);
    assert_eq!((&compared["compared"], &compared["changed"]), (&1.into(), &0.into()), "{compared}");
    let draw = &compared["draws"][0];
    assert_eq!((&draw["phase"], &draw["filtered"]), (&"shadow".into(), &false.into()));
    assert_eq!(draw["with"], draw["without"]);
    home.json(&["job", "verify-selection", &polled]);

    set_phase(&home, "shadow", "hot-path");
    let pushed = run_job(&home, "pushed");
    assert_eq!(get(200)["phase"], "hot-path");
    let compared = home.json(&["presence", "compare", "--job", &pushed]);
    assert_eq!(compared["draws"][0]["filtered"], true, "{compared}");

    set_phase(&home, "hot-path", "sunset");
    run_job(&home, "pushed again");
    assert_eq!(get(410)["error"]["name"], "PollingGone");
    let zeros = |bytes| format!("0x{}", "00".repeat(bytes));
    let result = format!(
        "{{\"job_id\": \"{}\", \"result\": \"0x\", \"runner_signature\": \"{}\"}}",
        zeros(32),
        zeros(65)
    );
    let (code, body) = request(&up, "POST", "/runner/runner-0/job_result", &result);
    assert_eq!((code, &body["error"]["name"]), (410, &"PollingGone".into()));

    // Governors, and only they, can go back.
    let refused = home.fails(6, &["chain", "params", "set", "phase", "shadow", "--from", "dev-0"]);
    assert!(refused.contains("Unauthorized: "), "{refused}");
    set_phase(&home, "sunset", "shadow");
    run_job(&home, "polled again");
    let events = home.json(&["chain", "events", "--from", "0", "--kind", "PhaseChanged"]);
    let changes: Vec<_> =
        list(&events).iter().map(|e| (text(&e["data"]["from"]), text(&e["data"]["to"]))).collect();
    assert_eq!(changes, [("shadow", "hot-path"), ("hot-path", "sunset"), ("sunset", "shadow")]);
}

/// Registers the account `dev-0` as a runner that never runs, so that it is never present.
pub fn register_idle(home: &Home, up: &Value) {
    let key = SecretKey::derive(&0_u64.to_be_bytes(), "dev-0");
    let token = fs::read_to_string(home.path("local/token")).unwrap();
    let client = Client::new(text(&up["rpc_url"])).unwrap().with_token(token.trim().to_owned());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let hash = runtime.block_on(async {
        let parameters = client.parameters().await.unwrap();
        let payload = Payload::RegisterRunner(RegisterRunner {
            pubkey: key.public_key(),
            stake: Wei::cby(500_000),
            capabilities: Capabilities::of(vec![JobKind::Custom], 64),
            price_per_second: Wei::new(1),
        });
        let signed = Transaction::with_limits(
            parameters.chain_id.0.0,
            0,
            parameters.cycle_basefee.0,
            parameters.cell_basefee.0,
            payload,
        )
        .sign(&key);
        let transaction = Text(Bytes(signed.to_bytes()));
        client.submit(&TransactionRequest { transaction }).await.unwrap().hash
    });
    crate::support::wait_until("dev-0 is registered", || {
        let shown = home.run(&["-o", "json", "chain", "tx", &hash.to_string()]);
        shown.code == 0 && shown.json()["status"] == "success"
    });
}

#[test]
fn a_comparison_names_the_absent_runner_that_the_filter_would_drop() {
    let home = Home::new();
    let up = shadow(&home, "2");
    register_idle(&home, &up);
    // Its weight is 6; the others have 2 each, or 8 if MRU favours them: it is drawn before long.
    let from = home.height() + 1;
    let drawn = (0..40).any(|_| {
        let job = home.json(&["job", "submit", "custom", "--from", "dev-1", "--", "true"]);
        let shown = home.json(&["job", "show", text(&job["job_id"])]);
        list(&shown["committee"]) == &["dev-0"]
    });
    assert!(drawn, "in 40 draws");
    let compared = home.json(&["presence", "compare", &format!("{from}..latest")]);
    for draw in list(&compared["draws"]) {
        assert_eq!(list(&draw["dropped"]), &["dev-0"], "{draw}");
        assert!(!list(&draw["with"]).iter().any(|name| name == "dev-0"), "{draw}");
        assert_eq!(draw["same"], draw["with"] == draw["without"], "{draw}");
    }
    let different = list(&compared["draws"]).iter().filter(|draw| draw["same"] == false).count();
    assert_eq!(compared["changed"], different);
    assert!(different > 0, "{compared}");
    let text = home.run(&["presence", "compare", &format!("{from}..latest")]).stdout;
    assert!(text.contains("would have waited") && text.contains("different"), "{text}");
}
