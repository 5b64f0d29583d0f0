//! The examples of jobs, as in their README: runners of one devnet really do every kind of work.
//! This test answers the runners' HTTP requests. The MCP server is the example's own and needs a
//! `python3` on the PATH: without one its job is left out, and standard error says so.

use crate::{
    price_feed, shape,
    support::{Home, Outcome, list, wait_until},
    timers::text,
};
use cowboy_devnet::home;
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    env, fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    process::{Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples");

fn example(name: &str) -> String {
    fs::read_to_string(format!("{EXAMPLES}/{name}")).unwrap()
}

/// Serves JSON documents over HTTP: `answer` gets the request's number, from 1. Returns the address
/// and the requests' bodies. The server ends with the test's process.
fn serve(answer: impl Fn(usize) -> Value + Send + 'static) -> (SocketAddr, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (asked, bodies) = channel();
    thread::spawn(move || {
        for (number, peer) in (1..).zip(listener.incoming()) {
            let mut peer = peer.unwrap();
            // Not every test receives the bodies.
            let _ = asked.send(body(&peer));
            let document = answer(number).to_string();
            let length = document.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
                 Connection: close\r\n\r\n"
            );
            // A runner may have closed the connection because its job is over.
            let _ = peer.write_all((head + &document).as_bytes());
        }
    });
    (address, bodies)
}

/// Reads a request and returns its body.
fn body(peer: &TcpStream) -> String {
    let mut reader = BufReader::new(peer);
    let mut length = 0;
    let mut line = String::new();
    while reader.read_line(&mut line).unwrap() > 2 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    String::from_utf8(body).unwrap()
}

/// A language model that always returns the same mood, with another reason each time.
fn model() -> (SocketAddr, Receiver<String>) {
    serve(|number| {
        let content = json!({"mood": "content", "reason": format!("reason {number}")}).to_string();
        let message = json!({"role": "assistant", "content": content});
        json!({"choices": [{"message": message, "finish_reason": "stop"}]})
    })
}

/// Copies an example into the home with a text replaced, and returns the copy's path.
fn replaced(home: &Home, name: &str, what: &str, with: &str) -> String {
    let text = example(name);
    assert!(text.contains(what), "{name} has no {what}");
    let path = home.path(name.rsplit('/').next().unwrap());
    fs::write(&path, text.replace(what, with)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Submits a job and waits; returns the result on which this number of runners agreed.
fn verified(home: &Home, file: &str, runners: usize) -> Value {
    let job = home.json(&["job", "submit", "-f", file, "--wait"]);
    assert_eq!(job["status"], "Verified", "{job}");
    assert_eq!(list(&job["runners"]).len(), runners, "{job}");
    serde_json::from_str(text(&job["result_text"])).unwrap()
}

fn has_python() -> bool {
    let mut command = Command::new("python3");
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

#[test]
fn the_examples_of_jobs_do_what_they_say() {
    let home = Home::new();
    let (model, asked) = model();
    let url = format!("http://{model}/v1");
    let topology = replaced(&home, "topologies/jobs.yaml", "http://127.0.0.1:8080/v1", &url);
    // The server is found through PATH, as in the README.
    let path = format!("{EXAMPLES}/mcp-server:{}", env::var("PATH").unwrap_or_default());
    let up = ["devnet", "up", "--detach", "--block-time", "100ms", "--wait", "2", "-f", &topology];
    let output = home.command(&up).env("PATH", path).output().unwrap();
    assert!(output.status.success(), "{output:?}");

    asks_a_model(&home, &asked);
    calls_a_tool(&home);
    asks_a_source(&home);
    an_actor_asks_and_is_answered(&home);
    let devnet = home::Home::at(home.path("")).devnet(&"jobs".parse().unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(price_feed::run(&devnet)).unwrap();
    feed_has_the_median(&home);
    what_cannot_be_done_is_said(&home);
    a_pool_keeps_a_job_to_its_members(&home);
    the_same_command_at_the_same_time_is_done_as_often(&home);
    shape::seen(&["job submit", "job wait", "pool grant", "pool revoke"]);
}

/// At first all commands read the same nonce, and sign the same transaction with it.
fn the_same_command_at_the_same_time_is_done_as_often(home: &Home) {
    const TIMES: usize = 8;
    let submit = || text(&home.json(&submit(&["custom", "--", "echo", "hi"]))["job_id"]).to_owned();
    let jobs: BTreeSet<String> = thread::scope(|scope| {
        let running: Vec<_> = (0..TIMES).map(|_| scope.spawn(submit)).collect();
        running.into_iter().map(|command| command.join().unwrap()).collect()
    });
    assert_eq!(jobs.len(), TIMES, "{jobs:?}");
}

fn a_pool_keeps_a_job_to_its_members(home: &Home) {
    let pool = home.json(&["pool", "grant", "gpu", "plain"]);
    assert_eq!(
        (&pool["owner_name"], &pool["members"][0]["runner"]),
        (&json!("dev-0"), &json!("plain"))
    );
    let refused = home.fails(6, &["pool", "grant", "gpu", "runner-0", "--from", "dev-1"]);
    assert!(refused.contains("NotPoolOwner: "), "{refused}");
    let submit = ["job", "submit", "custom", "--pool", "gpu"];
    let job = home.json(&[&submit[..], &["--wait", "--", "echo", "hi"]].concat());
    assert_eq!((&job["status"], &job["runner"]), (&json!("Verified"), &json!("plain")), "{job}");
    let pool = home.json(&["pool", "revoke", "gpu", "plain"]);
    assert_eq!(list(&pool["members"]).len(), 0);
    let job = home.json(&[&submit[..], &["--timeout-blocks", "4", "--", "echo", "hi"]].concat());
    let explained = home.json(&["job", "explain", text(&job["job_id"])]);
    let dropped = list(&explained["candidates"]).iter().filter(|c| c["filter"] == "pool");
    assert!(dropped.count() > 0 && list(&explained["draws"]).is_empty(), "{explained}");
    let missing = home.fails(3, &["pool", "show", "none"]);
    assert!(missing.contains("there is no pool `none`"), "{missing}");
}

fn asks_a_model(home: &Home, asked: &Receiver<String>) {
    let said = verified(home, &format!("{EXAMPLES}/jobs/llm.yaml"), 3);
    assert_eq!(said["mood"], "content");
    assert!(text(&said["reason"]).starts_with("reason "), "{said}");
    for body in asked.try_iter() {
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body["model"], "qwen2.5-0.5b-instruct", "the endpoint's own name: {body}");
        assert_eq!((&body["temperature"], &body["seed"]), (&json!(0.0), &json!(1)), "{body}");
    }
}

#[expect(clippy::print_stderr, reason = "what is left out is said")]
fn calls_a_tool(home: &Home) {
    if !has_python() {
        eprintln!("left out: examples/jobs/mcp.yaml, whose server needs a python3 on the PATH");
        return;
    }
    let file = format!("{EXAMPLES}/jobs/mcp.yaml");
    assert_eq!(verified(home, &file, 2), json!({"date": "2026-06-08", "weekday": "Monday"}));
    let newest = home.json(&["job", "ls", "--kind", "mcp"]);
    let explained = home.json(&["job", "explain", text(&newest[0]["job_id"])]);
    let plain = |candidate: &&Value| candidate["runner"] == "plain";
    let plain = list(&explained["candidates"]).iter().find(plain).unwrap();
    assert_eq!(plain["filter"], "capability", "{plain}");
}

fn asks_a_source(home: &Home) {
    let (source, _) = serve(|number| json!({"price": 101.25, "request": number}));
    let url = format!("http://{source}/");
    let file = replaced(home, "jobs/price.yaml", "http://127.0.0.1:8000/alpha.json", &url);
    assert_eq!(verified(home, &file, 3)["price"], json!(101.25));
}

fn an_actor_asks_and_is_answered(home: &Home) {
    let deployed = home.json(&["actor", "deploy", &format!("{EXAMPLES}/actors/oracle.star")]);
    let oracle = text(&deployed["actor"]);
    home.json(&["account", "fund", oracle, "20cby"]);
    let answer = |spec: &Value| {
        let asked = home.json(&["actor", "call", oracle, "ask", &spec.to_string()]);
        let job = text(&asked["actor"]["result"]).to_owned();
        // A job may also end as failed.
        let ended = home.run(&["-o", "json", "job", "wait", &job]).json();
        let kept = home.json(&["actor", "call", oracle, "answer", &job, "--dry-run"]);
        assert_eq!(kept["result"]["status"], ended["status"], "{kept}");
        kept["result"].clone()
    };
    let work = json!({"program": "echo", "args": ["noon"]});
    let kept = answer(&json!({"kind": "custom", "work": work}));
    assert_eq!((&kept["status"], &kept["result"]), (&json!("Verified"), &json!("noon\n")));
    // No runner can do this work: there is no answer, and the actor learns the reason.
    let work = json!({"server": "nobodys", "tool": "x"});
    let kept = answer(&json!({"kind": "mcp", "work": work, "timeout_blocks": 4}));
    assert_eq!(kept["status"], "Failed", "{kept}");
    assert!(kept["reason"].is_string() && kept["result"].is_null(), "{kept}");
}

/// `price_feed` has stored the median of three, including the liar's answer.
fn feed_has_the_median(home: &Home) {
    let actors = home.json(&["actor", "ls"]);
    let handlers = |actor: &str| home.json(&["actor", "show", actor])["handlers"].to_string();
    let mut feeds = list(&actors).iter().map(|actor| text(&actor["actor"]));
    let feed = feeds.find(|actor| handlers(actor).contains("\"said\"")).unwrap();
    let price = home.json(&["actor", "call", feed, "price", "--dry-run"]);
    let Value::Object(price) = &price["result"] else { panic!("no price: {price}") };
    assert_eq!((&price["price"], &price["sources"]), (&json!(101_250_000), &json!(2)));
    let said = home.json(&["actor", "call", feed, "said", "--dry-run"]);
    let said = said["result"]["said"].as_object().unwrap();
    assert!(said.values().any(|price| *price == json!(4_200_000)), "{said:?}");
}

/// The arguments of `job submit`.
fn submit<'a>(args: &[&'a str]) -> Vec<&'a str> {
    [&["job", "submit"], args].concat()
}

/// An unknown model, a failing command and a missing callback actor are each reported.
fn what_cannot_be_done_is_said(home: &Home) {
    let newest = || text(&home.json(&["job", "ls", "--limit", "1"])[0]["job_id"]).to_owned();
    let short = ["--wait", "--timeout-blocks", "2"];

    let llm = [&["llm", "hi", "--model", "nobodys"], &short[..]].concat();
    let refused = home.fails(1, &submit(&llm));
    assert!(refused.contains("no runner qualified"), "{refused}");
    let explained = home.json(&["job", "explain", &newest()]);
    let reasons: Vec<_> =
        list(&explained["candidates"]).iter().map(|candidate| text(&candidate["reason"])).collect();
    let expected = |reason: &&&str| **reason == "not registered for model `nobodys`";
    assert_eq!(reasons.iter().filter(expected).count(), 4, "{reasons:?}");
    assert!(reasons.contains(&"not registered for llm"), "{reasons:?}");

    let script = ["--", "sh", "-c", "echo out of ink >&2; exit 3"];
    // Five runners can run commands: an attempt ends with their reports, before its deadline.
    let long = ["--wait", "--timeout-blocks", "400"];
    let Outcome { code, stderr: refused, .. } =
        home.run(&submit(&[&["custom"], &long[..], &script].concat()));
    assert_eq!(code, 1, "{refused}");
    assert!(refused.contains("could do the work") && refused.contains("out of ink"), "{refused}");
    assert_eq!(refused.matches(" cannot do it: exit code 3: out of ink").count(), 4, "{refused}");
    let job = newest();
    let shown = home.json(&["job", "show", &job]);
    let reports = list(&shown["events"]).iter().filter(|event| event["event"] == "WorkFailed");
    let reasons: Vec<_> = reports.map(|event| text(&event["data"]["reason"])).collect();
    assert_eq!(reasons.len(), 4, "{shown}");
    assert!(reasons.iter().all(|reason| reason.contains("out of ink")), "{reasons:?}");
    assert!(home.run(&["job", "show", &job]).stdout.contains("out of ink"));
    let log = home.run(&["devnet", "logs"]).stdout;
    let said = |line: &str| line.contains(&job) && line.contains("out of ink");
    assert!(log.lines().any(said), "{log}");

    let absent = "0x0000000000000000000000000000000000000099:answered";
    let job = home.json(&submit(&["custom", "--wait", "--callback", absent, "--", "echo", "hi"]));
    assert_eq!(job["status"], "Verified", "{job}");
    let shown = home.json(&["job", "show", text(&job["job_id"])]);
    let called = list(&shown["events"]).last().unwrap();
    assert_eq!(called["event"], "CallbackMade");
    assert!(text(&called["data"]["error"]).starts_with("UnknownActor: "), "{called}");

    let file = home.path("no-object.yaml");
    fs::write(&file, "kind: mcp\nwork: {server: calendar, tool: add_days, arguments: [1]}\n")
        .unwrap();
    let refused = home.fails(6, &submit(&["-f", file.to_str().unwrap()]));
    assert!(refused.contains("work.arguments is not a JSON object"), "{refused}");
}

#[test]
fn a_job_is_answered_by_hand_in_the_process_and_in_one_of_its_own() {
    for home in [Home::new(), Home::apart()] {
        let runner = json!({"name": "hand", "executors": {"by_hand": true}});
        home.up_with(&json!({"validators": 1, "runners": [runner, {"name": "other"}]}));
        let show = home.json(&["runner", "show", "hand"]);
        assert_eq!(list(&show["kinds"]).len(), 5, "all kinds: {show}");
        // Only the runner that waits is drawn for questions to a model.
        let ask = ["job", "submit", "llm", "--model", "any", "Why?"];
        home.json(&ask);
        let job = home.json(&["job", "answer", "latest", "0x00ff"]);
        assert_eq!((&job["status"], &job["result"]), (&json!("Verified"), &json!("0x00ff")));
        let refused = home.fails(8, &["job", "answer", "latest", "again"]);
        assert!(refused.contains("is Verified already"), "{refused}");
        home.json(&ask);
        home.json(&["job", "answer", "latest", "--fail", "too hard"]);
        wait_until("the failure is on the chain", || {
            let events = home.json(&["job", "show", "latest"])["events"].to_string();
            events.contains("WorkFailed") && events.contains("too hard")
        });
        home.json(&["devnet", "down"]);
    }
    shape::seen(&["job answer"]);
}
