//! All refusals, and that they change nothing.

use super::lab::{Answer, Lab, OPERATOR, one, report};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

#[track_caller]
fn check(answer: &Answer, status: u16, code: &str, field: &str) {
    let got = (answer.status, answer.code(), answer.field());
    assert_eq!(got, (status, code, field), "{}", answer.text);
    assert_eq!(answer.headers["cache-control"], "no-store");
    assert_eq!(answer.headers["x-content-type-options"], "nosniff");
}

/// Every route, with values for its parameters.
const ROUTES: &[(&str, &str, bool)] = &[
    ("POST", "internal/lease", true),
    ("POST", "internal/ack-lease", true),
    ("POST", "internal/heartbeat", true),
    ("POST", "internal/complete", true),
    ("POST", "internal/cancel-ack", true),
    ("POST", "internal/await-cancel", true),
    ("PUT", "internal/log?offset=0", true),
    ("PUT", "internal/artifacts/a", true),
    ("GET", "internal/needs", true),
    ("GET", "internal/needs/a/b", true),
    ("GET", "internal/caches/a", true),
    ("PUT", "internal/caches/a", true),
    ("POST", "runs", false),
    ("GET", "runs", false),
    ("GET", "runs/a", false),
    ("POST", "runs/a/cancel", false),
    ("GET", "jobs", false),
    ("GET", "jobs/a", false),
    ("GET", "jobs/a/events", false),
    ("POST", "jobs/a/cancel", false),
    ("POST", "jobs/a/revoke", false),
    ("GET", "jobs/a/log", false),
    ("GET", "jobs/a/artifacts", false),
    ("GET", "jobs/a/attempts/1/artifacts/a", false),
    ("GET", "runners", false),
    ("GET", "tokens", false),
    ("POST", "tokens", false),
    ("DELETE", "tokens/a", false),
    ("POST", "schedules", false),
    ("GET", "schedules", false),
    ("DELETE", "schedules/a", false),
    ("GET", "status", false),
];

#[tokio::test]
async fn each_route_wants_the_token_that_is_good_for_it() {
    let lab = Lab::new().await;
    let runner = lab.token("r").await;
    for (method, path, of_runners) in ROUTES {
        let path = format!("/api/v1/{path}");
        let other = if *of_runners { OPERATOR } else { &runner };
        for shown in [None, Some("Bearer"), Some("Bearer x"), Some("Basic eDp4")] {
            let request = lab.request(method, &path).body("x".repeat(4_096));
            let request = shown
                .into_iter()
                .fold(request, |request, shown| request.header("authorization", shown));
            let answer = lab.send(request).await;
            check(&answer, 401, "UNAUTHORIZED", "");
            assert_eq!(answer.headers["www-authenticate"], "Bearer");
        }
        check(
            &lab.send(lab.request(method, &path).bearer_auth(other)).await,
            401,
            "UNAUTHORIZED",
            "",
        );
        let own = if *of_runners { &runner } else { OPERATOR };
        let answer = lab.send(lab.request(method, &path).bearer_auth(own)).await;
        assert_ne!(answer.status, 401, "{method} {path}");
    }
    check(&lab.operator("GET", "nothing", None).await, 404, "NOT_FOUND", "");
    check(&lab.send(lab.request("GET", "/")).await, 404, "NOT_FOUND", "");
    assert_eq!(lab.send(lab.request("GET", "/api/v1/health")).await.body, json!({"ok": true}));
}

#[tokio::test]
async fn other_methods_are_named() {
    let lab = Lab::new().await;
    for (method, path, allowed) in [
        ("PUT", "runs", "POST, GET"),
        ("PATCH", "runs/a", "GET"),
        ("GET", "internal/lease", "POST"),
        ("DELETE", "internal/caches/a", "GET, PUT"),
        ("OPTIONS", "health", "GET"),
    ] {
        let answer = lab.operator(method, path, None).await;
        check(&answer, 405, "METHOD_NOT_ALLOWED", "");
        assert_eq!(answer.headers["allow"], allowed);
    }
    let head = lab.operator("HEAD", "health", None).await;
    assert_eq!(
        (head.status, head.text.as_str(), &head.headers["allow"]),
        (405, "", &"GET".parse().unwrap())
    );
}

#[tokio::test]
async fn what_is_no_message_is_refused_before_anything_else() {
    let lab = Lab::new().await;
    let token = lab.token("r").await;
    lab.submit(json!([one("j")])).await;
    let granted = lab.lease(&token, "r").await.unwrap();
    let send = async |path: &str, body: String| {
        let request = lab.request("POST", &format!("/api/v1/internal/{path}"));
        lab.send(request.bearer_auth(&token).body(body)).await
    };
    for path in ["lease", "ack-lease", "heartbeat", "complete", "cancel-ack", "await-cancel"] {
        for body in ["", "{", "nonsense", "{}{}", "\u{0}"] {
            check(&send(path, body.to_owned()).await, 400, "MALFORMED_JSON", "");
        }
        let missing = if path == "ack-lease" { "job_id" } else { "lease_id" };
        let missing = if path == "lease" { "runner_id" } else { missing };
        check(&send(path, "{}".to_owned()).await, 400, "MISSING_FIELD", missing);
        let long = format!("{}{{}}", " ".repeat(1 << 20));
        check(&send(path, long).await, 413, "BODY_TOO_LARGE", "");
    }
    let base =
        json!({"runner_id": "r", "lease_id": granted["lease_id"], "job_id": granted["job_id"]});
    let with = |more: Value| {
        let mut message = base.clone();
        message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        message
    };
    for (path, more, field) in [
        ("lease", json!({"runner_id": "a b"}), "runner_id"),
        ("lease", json!({"capabilities": ["a", ""]}), "capabilities[1]"),
        ("lease", json!({"capabilities": vec!["a"; 33]}), "capabilities"),
        ("lease", json!({"wait_seconds": 31}), "wait_seconds"),
        ("lease", json!({"wait_seconds": -1}), "wait_seconds"),
        ("ack-lease", json!({"job_id": "job_other"}), "job_id"),
        ("ack-lease", json!({"accepted_at": "yesterday"}), "accepted_at"),
        ("ack-lease", json!({"lease_id": ""}), "lease_id"),
        ("heartbeat", json!({"progress": {"percent": 101}}), "progress.percent"),
        ("heartbeat", json!({"progress": {"message": "x".repeat(65_537)}}), "progress.message"),
        ("heartbeat", json!({"ts": 5}), "ts"),
        ("await-cancel", json!({"wait_seconds": 31}), "wait_seconds"),
        ("complete", json!({"status": "DONE"}), "status"),
        ("complete", json!({"status": "SUCCEEDED", "timed_out": true}), "timed_out"),
        ("complete", json!({"status": "FAILED", "finished_at": "x"}), "finished_at"),
        ("complete", json!({"status": "FAILED", "exit_code": "1"}), "exit_code"),
        (
            "complete",
            json!({"status": "FAILED", "artifacts": [{"type": "a", "uri": ""}]}),
            "artifacts[0].uri",
        ),
        (
            "complete",
            json!({"status": "FAILED", "timings": {"started_at": "x"}}),
            "timings.started_at",
        ),
        ("cancel-ack", json!({"final_status": "SUCCEEDED"}), "final_status"),
        (
            "cancel-ack",
            json!({"final_status": "CANCELED", "summary": "x".repeat(65_537)}),
            "summary",
        ),
    ] {
        check(&send(path, with(more).to_string()).await, 400, "INVALID_FIELD", field);
    }
    let many =
        json!({"status": "FAILED", "artifacts": vec![json!({"type": "a", "uri": "b"}); 1_001]});
    check(&send("complete", with(many).to_string()).await, 400, "INVALID_FIELD", "artifacts");
    let shown = lab.operator("GET", "jobs", None).await.body;
    assert_eq!(shown[0]["expires_at"], "1970-01-01T00:18:40.000Z", "nothing has changed");
    assert_eq!(shown[0]["state"], "LEASED");
}

#[tokio::test]
async fn a_lease_is_its_holders_and_good_for_what_its_state_allows() {
    let lab = Lab::new().await;
    let (r, s) = (lab.token("r").await, lab.token("s").await);
    lab.submit(json!([one("j")])).await;
    let granted = lab.lease(&r, "r").await.unwrap();
    let stale = |answer: Answer, reason: &str| {
        let expected = json!({
            "type": "StaleLease", "lease_id": granted["lease_id"], "reason": reason,
        });
        assert_eq!((answer.status, answer.body), (409, expected));
    };
    // The lease is alive, so the answer is not a stale one.
    check(&lab.beat(&r, "r", &granted).await, 409, "NOT_ACKED", "");
    let early = lab.message(&r, "complete", report(&granted, "r", "FAILED")).await;
    check(&early, 409, "NOT_ACKED", "");
    let lease_id = granted["lease_id"].as_str().unwrap();
    check(&lab.put("internal/log?offset=0", &r, lease_id, "x").await, 409, "NOT_ACKED", "");
    let waits = json!({"lease_id": lease_id, "runner_id": "r"});
    check(&lab.message(&r, "await-cancel", waits.clone()).await, 409, "NOT_ACKED", "");
    check(&lab.ack(&r, "s", &granted).await, 403, "WRONG_RUNNER", "");
    check(&lab.ack(&s, "s", &granted).await, 403, "WRONG_RUNNER", "");
    check(&lab.put("internal/artifacts/a", &s, lease_id, "x").await, 403, "WRONG_RUNNER", "");
    let other = lab.message(&r, "lease", json!({"runner_id": "s"})).await;
    check(&other, 403, "WRONG_RUNNER", "");
    assert_eq!(lab.ack(&r, "r", &granted).await.status, 200);
    let mut unknown = granted.clone();
    unknown["lease_id"] = json!("lease_00");
    let answer = lab.beat(&r, "r", &unknown).await;
    assert_eq!((answer.status, &answer.body["reason"]), (409, &json!("UNKNOWN_LEASE")));
    lab.message(&r, "complete", report(&granted, "r", "SUCCEEDED")).await;
    let beat = lab.beat(&r, "r", &granted).await;
    let expected = json!({
        "type": "StaleLease", "lease_id": granted["lease_id"], "reason": "LEASE_COMPLETED",
        "extend_lease": false, "stale": true,
    });
    assert_eq!((beat.status, beat.body), (409, expected));
    stale(lab.message(&r, "await-cancel", waits).await, "LEASE_COMPLETED");
    stale(lab.message(&r, "complete", report(&granted, "r", "FAILED")).await, "LEASE_COMPLETED");
    stale(lab.put("internal/log?offset=0", &r, lease_id, "x").await, "LEASE_COMPLETED");
    let job = granted["job_id"].as_str().unwrap();
    let change = async |what: &str| lab.operator("POST", &format!("jobs/{job}/{what}"), None).await;
    check(&change("cancel").await, 409, "JOB_ENDED", "");
    check(&change("revoke").await, 409, "JOB_ENDED", "");
    let queued = lab.submit(json!([one("j")])).await.remove(0);
    let revoked = lab.operator("POST", &format!("jobs/{queued}/revoke"), None).await;
    check(&revoked, 409, "NOT_LEASED", "");
    for path in ["jobs/job_none", "runs/run_none", "jobs/job_none/log", "jobs/job_none/artifacts"] {
        check(&lab.operator("GET", path, None).await, 404, "NOT_FOUND", "");
    }
    for path in ["jobs/job_none/cancel", "jobs/job_none/revoke", "runs/run_none/cancel"] {
        check(&lab.operator("POST", path, None).await, 404, "NOT_FOUND", "");
    }
    check(&lab.operator("DELETE", "tokens/unknown", None).await, 404, "NOT_FOUND", "");
}

#[tokio::test]
async fn a_run_is_taken_whole_or_not_at_all() {
    let lab = Lab::new().await;
    let check_job = async |more: Value, field: &str| {
        let mut job = one("a");
        job.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let run = json!({"jobs": [one("good"), job]});
        let field = format!("jobs[1]{field}");
        check(&lab.operator("POST", "runs", Some(run)).await, 400, "INVALID_FIELD", &field);
    };
    for (more, field) in [
        (json!({"name": "a/b"}), ".name"),
        (json!({"steps": []}), ".steps"),
        (json!({"steps": ["true", ""]}), ".steps[1]"),
        (json!({"steps": ["a\u{0}b"]}), ".steps[0]"),
        (json!({"steps": vec!["true"; 257]}), ".steps"),
        (json!({"env": {"1A": "x"}}), ".env"),
        (json!({"env": {"A-B": "x"}}), ".env"),
        (json!({"env": {"A": {"secret": ""}}}), ".env.A"),
        (json!({"env": {"A": "a\u{0}"}}), ".env.A"),
        (json!({"env": {"A": {"hidden": "x"}}}), ".env.A"),
        (json!({"workdir": "/tmp"}), ".workdir"),
        (json!({"workdir": "a/../.."}), ".workdir"),
        (json!({"image": ""}), ".image"),
        (json!({"requires": ["a b"]}), ".requires[0]"),
        (json!({"artifacts": [{"type": "a", "path_glob": "../x"}]}), ".artifacts[0].path_glob"),
        (json!({"artifacts": [{"type": "", "path_glob": "x"}]}), ".artifacts[0].type"),
        (json!({"caches": [{"key": "", "paths": ["x"]}]}), ".caches[0].key"),
        (json!({"caches": [{"key": "k", "paths": []}]}), ".caches[0].paths"),
        (json!({"caches": [{"key": "k", "paths": ["a", "~/../x"]}]}), ".caches[0].paths[1]"),
        (json!({"caches": [{"key": "k", "paths": ["~root/x/.."]}]}), ".caches[0].paths[0]"),
        (json!({"max_runtime_seconds": 0}), ".max_runtime_seconds"),
        (json!({"retry": {"max_attempts": 101}}), ".retry.max_attempts"),
        (json!({"retry": {"on": ["always"]}}), ".retry.on[0]"),
    ] {
        check_job(more, field).await;
    }
    for (more, field) in [
        (json!({"name": "good"}), "jobs[1].name"),
        (json!({"needs": ["good", "none"]}), "jobs[1].needs[1]"),
        (json!({"needs": ["a"]}), "jobs[1].needs"),
    ] {
        let mut job = one("a");
        job.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let run = json!({"jobs": [one("good"), job]});
        check(&lab.operator("POST", "runs", Some(run)).await, 409, "INVALID_FIELD", field);
    }
    let runs = [
        (json!({"jobs": []}), "INVALID_FIELD", "jobs"),
        (json!({}), "MISSING_FIELD", "jobs"),
        (json!({"jobs": [{"name": "a"}]}), "MISSING_FIELD", "jobs[0].steps"),
        (json!({"name": "x".repeat(129), "jobs": [one("a")]}), "INVALID_FIELD", "name"),
        (json!({"jobs": vec![one("a"); 1_001]}), "INVALID_FIELD", "jobs"),
    ];
    for (run, code, field) in runs {
        check(&lab.operator("POST", "runs", Some(run)).await, 400, code, field);
    }
    for (path, field) in [
        ("runs?limit=0", "limit"),
        ("runs?limit=10001", "limit"),
        ("jobs?limit=+5", "limit"),
        ("jobs?state=DONE", "state"),
        ("jobs/job_none/log?offset=-1", "offset"),
        ("jobs/job_none/log?wait_seconds=31", "wait_seconds"),
        ("jobs/job_none/log?attempt=0", "attempt"),
    ] {
        check(&lab.operator("GET", path, None).await, 400, "INVALID_FIELD", field);
    }
    let named = json!({"runner_id": "a/b"});
    check(&lab.operator("POST", "tokens", Some(named)).await, 400, "INVALID_FIELD", "runner_id");
    assert_eq!(lab.operator("GET", "jobs", None).await.body, json!([]));
    assert_eq!(lab.operator("GET", "tokens", None).await.body, json!([]));
}

/// Sends raw bytes. Returns everything received until the end of the connection.
async fn raw(lab: &Lab, head: &str, body: usize) -> String {
    let url = lab.url("");
    let mut stream = TcpStream::connect(url.strip_prefix("http://").unwrap()).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let piece = vec![b' '; 64 << 10];
    for _ in 0..body / piece.len() {
        stream.write_all(&piece).await.unwrap();
    }
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn whoever_sends_too_much_hears_why() {
    let lab = Lab::new().await;
    for (token, status) in [("x", "401"), (OPERATOR, "413")] {
        let head = format!(
            "POST /api/v1/runs HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\
             connection: close\r\ncontent-length: {}\r\n\r\n",
            2 << 20
        );
        let answer = raw(&lab, &head, 2 << 20).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
    }
}
