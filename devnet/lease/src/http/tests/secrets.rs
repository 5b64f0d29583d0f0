//! Secrets appear in no answer, file or debug text, except for their holder.

use super::lab::{Answer, LONG, Lab, OPERATOR, one, report};
use serde_json::json;
use std::{os::unix::fs::PermissionsExt as _, sync::Arc};
use tokio::time::timeout;

const VALUE: &str = "hunter2-hunter2";

#[tokio::test]
async fn secrets_are_in_no_answer_and_no_file() {
    let mut lab = Lab::new().await;
    let token = lab.token("r").await;
    let mut job = one("j");
    job["env"] = json!({"PLAIN": "p", "SECRET": {"secret": VALUE}});
    let mut answers = Vec::new();
    let mut secrets = vec![token.clone(), OPERATOR.to_owned()];
    let id = lab.submit(json!([job])).await.remove(0);
    let granted = lab.lease(&token, "r").await.unwrap();
    assert_eq!(granted["job_spec"]["env"], json!({"PLAIN": "p", "SECRET": VALUE}));
    assert_eq!(granted["job_spec"]["secret_env"], json!(["SECRET"]));
    let secret = granted["lease_id"].as_str().unwrap();
    assert_eq!(secret.split_once('_').unwrap().1.len(), 64, "256 bits");
    secrets.push(secret.to_owned());
    lab.ack(&token, "r", &granted).await;
    lab.beat(&token, "r", &granted).await;
    let paths = |id: &str| {
        let of_job = ["", "/log", "/artifacts"].map(|path| format!("jobs/{id}{path}"));
        let lists = ["runs", "jobs", "tokens", "status"].map(str::to_owned);
        of_job.into_iter().chain(lists)
    };
    let shown = lab.operator("GET", &format!("jobs/{id}"), None).await.body;
    assert_eq!(shown["spec"]["env"], json!({"PLAIN": "p", "SECRET": {"secret": "***"}}));
    for path in paths(&id) {
        answers.push(lab.operator("GET", &path, None).await.text);
    }
    lab.message(&token, "complete", report(&granted, "r", "SUCCEEDED")).await;
    for path in paths(&id) {
        answers.push(lab.operator("GET", &path, None).await.text);
    }
    let refused = lab.request("GET", "/api/v1/status").bearer_auth(&token);
    answers.push(lab.send(refused).await.text);
    for answer in &answers {
        for secret in secrets.iter().map(String::as_str).chain([VALUE]) {
            assert!(!answer.contains(secret), "{answer}");
        }
    }
    // Closing the last connection merges the write-ahead log into the file.
    assert!(lab.stop().await);
    let files = lab.files();
    assert!(files.iter().any(|(path, _)| path.ends_with("lease.db")));
    for (path, bytes) in files {
        let mode = path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode & 0o077, 0, "{path:?}: {mode:o}");
        for secret in secrets.iter().map(String::as_str).chain([VALUE]) {
            let secret = secret.as_bytes();
            let found = bytes.windows(secret.len()).any(|window| window == secret);
            assert!(!found, "{path:?}");
        }
    }
}

#[tokio::test]
async fn secrets_go_from_the_disk_soon_after_their_job_has_ended() {
    let lab = Lab::new().await;
    let token = lab.token("r").await;
    let jobs: Vec<_> = (0..40)
        .map(|n| {
            let mut job = one(&format!("j{n}"));
            job["env"] = json!({"SECRET": {"secret": VALUE}, "LONG": "x".repeat(n * 40)});
            job
        })
        .collect();
    lab.submit(json!(jobs)).await;
    let is_there = || {
        let secret = VALUE.as_bytes();
        let mut files = lab.files().into_iter();
        files.any(|(_, bytes)| bytes.windows(secret.len()).any(|window| window == secret))
    };
    assert!(is_there());
    while let Some(granted) = lab.lease(&token, "r").await {
        lab.ack(&token, "r", &granted).await;
        lab.message(&token, "complete", report(&granted, "r", "SUCCEEDED")).await;
    }
    assert!(is_there(), "in the log of changes");
    lab.advance(1);
    let gone = async {
        while is_there() {
            lab.operator("GET", "status", None).await;
        }
    };
    timeout(LONG, gone).await.expect("they go");
}

#[tokio::test]
async fn tokens_are_good_until_they_are_replaced_or_taken_back() {
    let mut lab = Lab::new().await;
    let first = lab.token("r").await;
    let second = lab.token("r").await;
    let good = async |lab: &Lab, token: &str| {
        lab.message(token, "lease", json!({"runner_id": "r"})).await.status == 204
    };
    assert!(!good(&lab, &first).await);
    assert!(good(&lab, &second).await);
    lab.kill().await;
    lab.restart().await;
    assert!(good(&lab, &second).await);
    let listed = lab.operator("GET", "tokens", None).await.body;
    let expected = json!({"runner_id": "r", "created_at": "1970-01-01T00:16:40.000Z"});
    assert_eq!(listed, json!([expected]));
    assert_eq!(lab.operator("DELETE", "tokens/r", None).await.body, expected);
    assert!(!good(&lab, &second).await);
    lab.kill().await;
    lab.restart().await;
    assert!(!good(&lab, &second).await);
    assert_eq!(lab.operator("GET", "tokens", None).await.body, json!([]));
}

#[tokio::test]
async fn a_name_is_its_runners_as_long_as_it_is_at_work() {
    let lab = Arc::new(Lab::new().await);
    let issue = async |replace: bool| {
        let body = json!({"runner_id": "r", "replace": replace});
        lab.operator("POST", "tokens", Some(body)).await
    };
    let text = |answer: &Answer, field: &str| answer.body[field].as_str().unwrap().to_owned();
    // The first runner has made no request so far.
    issue(false).await;
    let first = issue(false).await;
    let (token, id) = (text(&first, "token"), text(&first, "token_id"));
    assert!(!token.contains(&id), "the id is not part of the secret");
    assert!(lab.lease(&token, "r").await.is_none());
    lab.advance(119);
    let refused = issue(false).await;
    assert_eq!((refused.status, refused.code()), (409, "NAME_IN_USE"));
    assert!(refused.text.contains("made a request 119 s ago"), "{}", refused.text);
    assert!(lab.lease(&token, "r").await.is_none(), "the first goes on");
    // A waiting runner counts as being at work.
    let waits = tokio::spawn({
        let (lab, token) = (lab.clone(), token.clone());
        async move {
            let body = json!({"runner_id": "r", "wait_seconds": 30});
            lab.message(&token, "lease", body).await.status
        }
    });
    lab.until_waiting(1).await;
    assert_eq!(issue(false).await.code(), "NAME_IN_USE");

    let second = issue(true).await;
    assert_eq!(second.status, 201);
    assert_eq!(timeout(LONG, waits).await.unwrap().unwrap(), 204, "it waits for nothing");
    let lost = lab.message(&token, "lease", json!({"runner_id": "r"})).await;
    assert_eq!((lost.status, lost.code()), (401, "UNAUTHORIZED"));
    // The first runner leaves, and removes only its own token.
    let left = lab.operator("DELETE", &format!("tokens/r?token_id={id}"), None).await;
    assert_eq!((left.status, left.code()), (404, "NOT_FOUND"));
    let token = text(&second, "token");
    assert!(lab.lease(&token, "r").await.is_none(), "it is good");
    let id = text(&second, "token_id");
    let left = lab.operator("DELETE", &format!("tokens/r?token_id={id}"), None).await;
    assert_eq!(left.status, 200);
    assert_eq!(lab.message(&token, "lease", json!({"runner_id": "r"})).await.status, 401);
    // A runner that has left frees its name; one that is silent for a lease's duration loses it.
    let third = text(&issue(false).await, "token");
    assert!(lab.lease(&third, "r").await.is_none());
    lab.advance(120);
    assert_eq!(issue(false).await.status, 201);
}

#[tokio::test]
async fn after_a_restart_a_name_is_still_its_runners() {
    let mut lab = Lab::new().await;
    let token = lab.token("r").await;
    assert!(lab.lease(&token, "r").await.is_none());
    lab.kill().await;
    lab.restart().await;
    let body = json!({"runner_id": "r"});
    let refused = lab.operator("POST", "tokens", Some(body)).await;
    assert_eq!((refused.status, refused.code()), (409, "NAME_IN_USE"));
    assert!(lab.lease(&token, "r").await.is_none());
}
