//! Schedules over HTTP: add, refuse, report fires, remove.

use super::lab::{Answer, LONG, Lab, OPERATOR, one};
use crate::fire::Fire;
use cowboy_engine::primitives::{Address, Hash};
use serde_json::{Value, json};
use tokio::time::timeout;

const VALUE: &str = "hunter2-hunter2";

fn actor() -> String {
    Address([7; 20]).to_string()
}

fn fire(height: u64) -> Fire {
    let timer = Hash([9; 32]);
    let (actor, handler) = (Address([7; 20]), "beat".to_owned());
    Fire { height, position: 0, timer, actor, handler }
}

#[track_caller]
fn check(answer: &Answer, status: u16, code: &str, field: &str) {
    let got = (answer.status, answer.code(), answer.field());
    assert_eq!(got, (status, code, field), "{}", answer.text);
}

#[tokio::test]
async fn a_schedule_is_made_makes_runs_and_is_removed() {
    let lab = Lab::new().await;
    let mut job = one("j");
    job["env"] = json!({"KEY": {"secret": VALUE}});
    let body = json!({
        "actor": actor().to_uppercase().replace("0X", "0x"), "handler": "beat",
        "run": {"name": "nightly", "jobs": [job]}, "other": 1,
    });
    let add = async || lab.operator("POST", "schedules", Some(body.clone())).await;
    let refused = add().await;
    check(&refused, 409, "NO_CHAIN", "");
    assert!(refused.text.contains("use a devnet's lease server"), "{}", refused.text);
    let mut chain = lab.schedules();
    check(&add().await, 503, "UNAVAILABLE", "");
    assert_eq!(chain.begin(41).await, 42, "nothing is to be caught up");

    let made = add().await;
    assert_eq!(made.status, 201, "{}", made.text);
    let id = made.body["schedule"].as_str().unwrap().to_owned();
    assert_eq!(id.split_once('_').unwrap().1.len(), 16);
    let mut expected = json!({
        "schedule": id, "name": "nightly", "jobs": 1, "actor": actor(), "handler": "beat",
        "created_at": "1970-01-01T00:16:40.000Z", "since": 41, "runs": 0, "skipped": 0,
    });
    assert_eq!(made.body, expected);
    // Nothing fired in block 42, and it is reported again after a restart.
    chain.reached(43);
    chain.block(42, Vec::new()).await;
    let other = Fire { handler: "other".to_owned(), position: 1, ..fire(43) };
    chain.block(43, vec![fire(43), other]).await;
    assert_eq!(lab.schedules().begin(43).await, 43);
    chain.block(43, vec![fire(43)]).await;
    let runs = lab.operator("GET", "runs", None).await.body;
    assert_eq!(runs.as_array().unwrap().len(), 1, "{runs}");
    let timer = Hash([9; 32]).to_string();
    let by = json!({"schedule": id, "height": 43, "timer_id": timer});
    assert_eq!((&runs[0]["by_schedule"], &runs[0]["name"]), (&by, &json!("nightly")));
    let run = runs[0]["run_id"].as_str().unwrap();
    let shown = lab.operator("GET", &format!("runs/{run}"), None).await;
    assert_eq!(shown.body["by_schedule"], by);
    expected["runs"] = json!(1);
    expected["last_run"] = json!({"run_id": run, "height": 43, "timer_id": timer});
    let listed = lab.operator("GET", "schedules", None).await;
    assert_eq!(listed.body, json!([expected]));
    for answer in [&made, &shown, &listed] {
        assert!(!answer.text.contains(VALUE) && !answer.text.contains(OPERATOR));
    }

    let removed = lab.operator("DELETE", &format!("schedules/{id}"), None).await;
    assert_eq!((removed.status, removed.body), (200, expected));
    check(&lab.operator("DELETE", &format!("schedules/{id}"), None).await, 404, "NOT_FOUND", "");
    chain.block(44, vec![fire(44)]).await;
    assert_eq!(lab.operator("GET", "schedules", None).await.body, json!([]));
    assert_eq!(lab.operator("GET", "runs", None).await.body, runs);
}

#[tokio::test]
async fn secrets_go_from_the_disk_with_their_schedule() {
    let lab = Lab::new().await;
    lab.schedules().begin(1).await;
    let mut job = one("j");
    job["env"] = json!({"KEY": {"secret": VALUE}});
    let body = json!({"actor": actor(), "run": {"jobs": [job]}});
    let made = lab.operator("POST", "schedules", Some(body)).await;
    let is_there = || {
        let secret = VALUE.as_bytes();
        let mut files = lab.files().into_iter();
        files.any(|(_, bytes)| bytes.windows(secret.len()).any(|window| window == secret))
    };
    assert!(is_there());
    let id = made.body["schedule"].as_str().unwrap();
    assert_eq!(lab.operator("DELETE", &format!("schedules/{id}"), None).await.status, 200);
    // The owner's next turn notices that they have gone.
    lab.operator("GET", "status", None).await;
    lab.advance(1);
    let gone = async {
        while is_there() {
            lab.operator("GET", "status", None).await;
        }
    };
    timeout(LONG, gone).await.expect("it goes");
}

#[tokio::test]
async fn what_is_no_schedule_is_refused() {
    let lab = Lab::new().await;
    lab.schedules().begin(1).await;
    let send = async |body: String| {
        let request = lab.request("POST", "/api/v1/schedules").bearer_auth(OPERATOR);
        lab.send(request.body(body)).await
    };
    let base = json!({"actor": actor(), "run": {"jobs": [one("a")]}});
    let with = |more: Value| {
        let mut body = base.clone();
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body.to_string()
    };
    for body in ["", "{", "nonsense", "{}{}", "\u{0}"] {
        check(&send(body.to_owned()).await, 400, "MALFORMED_JSON", "");
    }
    check(&send("{}".to_owned()).await, 400, "MISSING_FIELD", "actor");
    check(&send(json!({"actor": actor()}).to_string()).await, 400, "MISSING_FIELD", "run");
    let digits = "7".repeat(40);
    for actor in ["", "heart", &digits, "0x77", "0xzz", &format!("0x{digits}7"), "0x\u{0}"] {
        let answer = send(with(json!({"actor": actor}))).await;
        check(&answer, 400, "INVALID_FIELD", "actor");
        assert!(answer.text.contains("0x and 40 hex digits"), "{}", answer.text);
    }
    for (more, code, field) in [
        (json!({"actor": 5}), "INVALID_FIELD", "actor"),
        (json!({"handler": ""}), "INVALID_FIELD", "handler"),
        (json!({"handler": "a b"}), "INVALID_FIELD", "handler"),
        (json!({"handler": "1a"}), "INVALID_FIELD", "handler"),
        (json!({"handler": "a".repeat(257)}), "INVALID_FIELD", "handler"),
        (json!({"run": []}), "INVALID_FIELD", "run"),
        (json!({"run": {}}), "MISSING_FIELD", "run.jobs"),
        (json!({"run": {"jobs": []}}), "INVALID_FIELD", "run.jobs"),
        (json!({"run": {"jobs": [{"name": "a"}]}}), "MISSING_FIELD", "run.jobs[0].steps"),
        (json!({"run": {"jobs": vec![one("a"); 1_001]}}), "INVALID_FIELD", "run.jobs"),
    ] {
        check(&send(with(more)).await, 400, code, field);
    }
    let twice = json!({"run": {"jobs": [one("a"), one("a")]}});
    check(&send(with(twice)).await, 409, "INVALID_FIELD", "run.jobs[1].name");
    let long = json!({"run": {"jobs": [one("a")], "x": "x".repeat(1 << 20)}});
    check(&send(with(long)).await, 413, "BODY_TOO_LARGE", "");
    for id in ["sched_0000000000000000", "run_1", "%00", "..%2f"] {
        let gone = lab.operator("DELETE", &format!("schedules/{id}"), None).await;
        check(&gone, 404, "NOT_FOUND", "");
    }
    check(&lab.operator("GET", "schedules/x", None).await, 405, "METHOD_NOT_ALLOWED", "");
    assert_eq!(lab.operator("GET", "schedules", None).await.body, json!([]));

    for _ in 0..100 {
        assert_eq!(send(base.to_string()).await.status, 201);
    }
    let more = send(base.to_string()).await;
    check(&more, 409, "SCHEDULES_FULL", "");
    assert!(more.text.contains("100 schedules"), "{}", more.text);
    let listed = lab.operator("GET", "schedules", None).await.body;
    let last = listed[0]["schedule"].as_str().unwrap();
    assert_eq!(lab.operator("DELETE", &format!("schedules/{last}"), None).await.status, 200);
    assert_eq!(send(base.to_string()).await.status, 201);
}
