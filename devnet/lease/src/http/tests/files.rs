//! What runners upload: logs, artifacts, caches.

use super::lab::{Answer, LONG, Lab, one, report};
use crate::messages::LEASE_HEADER;
use futures::channel::mpsc::{UnboundedSender, unbounded};
use serde_json::json;
use std::{io, sync::Arc};
use tokio::{net::TcpStream, task::JoinHandle, time::timeout};

#[track_caller]
fn check(answer: &Answer, status: u16, code: &str, field: &str) {
    let got = (answer.status, answer.code(), answer.field());
    assert_eq!(got, (status, code, field), "{}", answer.text);
}

/// A lab with a running job: the runner's token, the lease, the job.
async fn running() -> (Lab, String, String, String) {
    let lab = Lab::new().await;
    let token = lab.token("r").await;
    let job = lab.submit(json!([one("j")])).await.remove(0);
    let granted = lab.lease(&token, "r").await.unwrap();
    lab.ack(&token, "r", &granted).await;
    let lease = granted["lease_id"].as_str().unwrap().to_owned();
    (lab, token, lease, job)
}

#[tokio::test]
async fn artifacts_are_kept_under_safe_names_and_within_limits() {
    let (lab, token, lease, job) = running().await;
    let store = async |name: &str, body: &str| {
        lab.put(&format!("internal/artifacts/{name}"), &token, &lease, body).await
    };
    let stored = store("out/a%20b.txt", "text").await;
    let uri = format!("/api/v1/jobs/{job}/attempts/1/artifacts/out/a%20b.txt");
    let expected = json!({"type": "ArtifactStored", "uri": uri, "bytes": 4});
    assert_eq!((stored.status, stored.body), (200, expected));
    for name in ["a%2f..%2f..%2fb", "%2Fetc%2Fpasswd", "a//b", "%2e%2e%2fx", "a%5Cb", "a%00"] {
        check(&store(name, "x").await, 400, "INVALID_FIELD", "name");
    }
    check(&store("out", "x").await, 400, "INVALID_FIELD", "name");
    check(&store("b", &"x".repeat(65)).await, 413, "BODY_TOO_LARGE", "");
    assert_eq!(store("b", &"x".repeat(64)).await.status, 200);
    check(&store("c", &"x".repeat(64)).await, 413, "STORE_FULL", "");
    let listed = lab.operator("GET", &format!("jobs/{job}/artifacts"), None).await.body;
    assert_eq!(listed.as_array().unwrap().len(), 2);
    assert_eq!(listed[1], json!({"attempt": 1, "name": "out/a b.txt", "bytes": 4, "uri": uri}));
    let path = uri.strip_prefix("/api/v1/").unwrap();
    let got = lab.operator("GET", path, None).await;
    assert_eq!((got.status, got.text.as_str()), (200, "text"));
    assert_eq!(got.headers["content-type"], "application/octet-stream");
    assert_eq!(got.headers["content-disposition"], "attachment");
    assert_eq!(got.headers["content-length"], "4");
    for path in ["attempts/1/artifacts/none", "attempts/2/artifacts/b", "attempts/x/artifacts/b"] {
        check(
            &lab.operator("GET", &format!("jobs/{job}/{path}"), None).await,
            404,
            "NOT_FOUND",
            "",
        );
    }
    let path = format!("jobs/{job}/attempts/1/artifacts/..%2F..%2Flease.db");
    check(&lab.operator("GET", &path, None).await, 400, "INVALID_FIELD", "name");
}

#[tokio::test]
async fn logs_are_sent_once_in_order_and_within_their_limit() {
    let (lab, token, lease, job) = running().await;
    let send = async |offset: &str, body: &str| {
        lab.put(&format!("internal/log?offset={offset}"), &token, &lease, body).await
    };
    let kept = json!({
        "type": "LogAck", "bytes": 3, "cancel_requested": false, "cancel_deadline_seconds": 0,
    });
    assert_eq!(send("0", "abc").await.body, kept);
    assert_eq!(send("0", "abcd").await.body["bytes"], 4);
    check(&send("5", "x").await, 409, "LOG_GAP", "");
    check(&send("x", "x").await, 400, "INVALID_FIELD", "offset");
    let without = lab.put("internal/log", &token, &lease, "x").await;
    check(&without, 400, "MISSING_FIELD", "offset");
    let request = lab.request("PUT", "/api/v1/internal/log?offset=4").bearer_auth(&token).body("x");
    check(&lab.send(request).await, 400, "MISSING_FIELD", LEASE_HEADER);
    check(
        &lab.put("internal/log?offset=4", &token, "", "x").await,
        400,
        "INVALID_FIELD",
        LEASE_HEADER,
    );
    check(&send("4", &"y".repeat((1 << 20) + 1)).await, 413, "BODY_TOO_LARGE", "");
    check(&send("4", &"z".repeat(61)).await, 413, "LOG_FULL", "");
    let part = lab.operator("GET", &format!("jobs/{job}/log?offset=2"), None).await;
    assert_eq!(part.text, format!("cd{}", "z".repeat(60)));
    let shown = lab.operator("GET", &format!("jobs/{job}"), None).await.body;
    assert_eq!(shown["attempts"][0]["log_bytes"], 64);
}

#[tokio::test]
async fn caches_are_found_by_their_whole_key() {
    let (lab, token, lease, _) = running().await;
    let open = async |key: &str| {
        let request = lab.request("GET", &format!("/api/v1/internal/caches/{key}"));
        lab.send(request.bearer_auth(&token).header(LEASE_HEADER, &lease)).await
    };
    check(&open("deps:1%2F2").await, 404, "NOT_FOUND", "");
    let stored = lab.put("internal/caches/deps:1%2F2", &token, &lease, "tar").await;
    assert_eq!(stored.body, json!({"type": "CacheStored", "bytes": 3}));
    assert_eq!(
        (open("deps:1%2F2").await.text.as_str(), open("deps:1%2F").await.status),
        ("tar", 404)
    );
    check(&open(&"k".repeat(513)).await, 400, "INVALID_FIELD", "key");
    let request = lab.request("GET", "/api/v1/internal/caches/a").bearer_auth(&token);
    check(&lab.send(request).await, 400, "MISSING_FIELD", LEASE_HEADER);
}

/// An upload whose first piece has arrived: a sender for more of it, until it is dropped.
async fn begun(
    lab: &Lab,
    path: &str,
    token: &str,
    lease: &str,
) -> (UnboundedSender<io::Result<&'static str>>, JoinHandle<reqwest::Response>) {
    let (pieces, body) = unbounded();
    let request = lab.request("PUT", &format!("/api/v1/{path}")).bearer_auth(token);
    let request = request.header(LEASE_HEADER, lease).body(reqwest::Body::wrap_stream(body));
    let upload = tokio::spawn(async move { request.send().await.unwrap() });
    pieces.unbounded_send(Ok("first, ")).unwrap();
    let came = async {
        while temporary(lab).is_empty() {
            lab.operator("GET", "status", None).await;
        }
    };
    timeout(LONG, came).await.expect("it comes");
    (pieces, upload)
}

/// The uploads that the server has begun to receive.
fn temporary(lab: &Lab) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(lab.folder.path().join("tmp")).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[tokio::test]
async fn what_a_lease_uploads_that_is_lost_meanwhile_is_nowhere() {
    for path in ["internal/artifacts/a", "internal/caches/a"] {
        let (lab, token, lease, job) = running().await;
        let (pieces, upload) = begun(&lab, path, &token, &lease).await;
        let revoked = lab.operator("POST", &format!("jobs/{job}/revoke"), None).await;
        assert_eq!(revoked.status, 200);
        pieces.unbounded_send(Ok("last")).unwrap();
        drop(pieces);
        let answer = timeout(LONG, upload).await.unwrap().unwrap();
        assert_eq!(answer.status(), 409, "{path}");
        let body: serde_json::Value = answer.json().await.unwrap();
        assert_eq!(body["reason"], "LEASE_REVOKED", "{path}");
        let kept = lab.files().into_iter().filter(|(_, bytes)| bytes == b"first, last");
        assert_eq!(kept.count(), 0, "{path}");
        let listed = lab.operator("GET", &format!("jobs/{job}/artifacts"), None).await.body;
        assert_eq!(listed, json!([]));
    }
}

#[tokio::test]
async fn a_stop_leaves_an_upload_its_time() {
    let (mut lab, token, lease, job) = running().await;
    let (pieces, upload) = begun(&lab, "internal/artifacts/a", &token, &lease).await;
    let address = lab.url("").trim_start_matches("http://").to_owned();
    let finish = async {
        // Wait until no connection is accepted.
        while TcpStream::connect(&address).await.is_ok() {
            tokio::task::yield_now().await;
        }
        pieces.unbounded_send(Ok("last")).unwrap();
        drop(pieces);
        timeout(LONG, upload).await.unwrap().unwrap().status()
    };
    let (stopped, status) = tokio::join!(timeout(2 * LONG, lab.stop()), finish);
    assert_eq!((stopped.unwrap(), status.as_u16()), (true, 200));
    lab.restart().await;
    let path = format!("jobs/{job}/attempts/1/artifacts/a");
    assert_eq!(lab.operator("GET", &path, None).await.text, "first, last");
}

#[tokio::test]
async fn a_runner_that_uploads_too_much_at_once_is_told_to_wait() {
    let (lab, token, lease, _) = running().await;
    let lab = Arc::new(lab);
    let mut uploads = Vec::new();
    for n in 0..8 {
        uploads.push(begun(&lab, &format!("internal/artifacts/{n}"), &token, &lease).await);
        let came = async {
            while temporary(&lab).len() <= n {
                lab.operator("GET", "status", None).await;
            }
        };
        timeout(LONG, came).await.expect("it comes");
    }
    check(&lab.put("internal/artifacts/x", &token, &lease, "x").await, 503, "UNAVAILABLE", "");
    let (pieces, upload) = uploads.pop().unwrap();
    drop(pieces);
    assert_eq!(timeout(LONG, upload).await.unwrap().unwrap().status(), 200);
    assert_eq!(lab.put("internal/artifacts/x", &token, &lease, "x").await.status, 200);
}

#[tokio::test]
async fn a_piece_of_the_log_is_answered_with_the_cancel() {
    let (lab, token, lease, job) = running().await;
    lab.operator("POST", &format!("jobs/{job}/cancel"), None).await;
    lab.advance(10);
    let sent = lab.put("internal/log?offset=0", &token, &lease, "abc").await;
    let expected = json!({
        "type": "LogAck", "bytes": 3, "cancel_requested": true, "cancel_deadline_seconds": 20,
    });
    assert_eq!((sent.status, sent.body), (200, expected));
}

#[tokio::test]
async fn the_bearer_of_a_lease_gets_artifacts_of_the_jobs_that_its_own_needs() {
    let lab = Lab::new().await;
    let token = lab.token("r").await;
    let mut use_a = one("c");
    use_a["needs"] = json!(["a"]);
    lab.submit(json!([one("a"), one("b"), use_a])).await;
    let lease_of = |granted: &serde_json::Value| granted["lease_id"].as_str().unwrap().to_owned();
    let mut leases = Vec::new();
    for name in ["a", "b", "c"] {
        let granted = lab.lease(&token, "r").await.unwrap();
        assert_eq!(granted["job_spec"]["name"], name);
        lab.ack(&token, "r", &granted).await;
        let lease = lease_of(&granted);
        if name == "c" {
            assert_eq!(granted["job_spec"]["needs"], json!(["a"]));
        } else {
            let stored = lab.put("internal/artifacts/out/x", &token, &lease, name).await;
            assert_eq!(stored.status, 200, "{}", stored.text);
            let ended = lab.message(&token, "complete", report(&granted, "r", "SUCCEEDED")).await;
            assert_eq!(ended.status, 200, "{}", ended.text);
        }
        leases.push(lease);
    }
    let get = async |path: &str, lease: &str| {
        let request = lab.request("GET", &format!("/api/v1/internal/{path}")).bearer_auth(&token);
        lab.send(request.header(LEASE_HEADER, lease)).await
    };
    let listed = get("needs", &leases[2]).await;
    assert_eq!(listed.body, json!([{"job": "a", "name": "out/x", "bytes": 1}]));
    let got = get("needs/a/out/x", &leases[2]).await;
    assert_eq!((got.status, got.text.as_str()), (200, "a"));
    for path in ["needs/b/out/x", "needs/c/out/x", "needs/none/x", "needs/a/none"] {
        check(&get(path, &leases[2]).await, 404, "NOT_FOUND", "");
    }
    assert_eq!(get("needs/a/out/x", &leases[0]).await.status, 409, "a lease that has ended");
}
