//! What nobody but its holder may see: in no answer, file or text about itself.

use super::lab::{LONG, Lab, OPERATOR, one, report};
use serde_json::json;
use std::os::unix::fs::PermissionsExt as _;
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
    for field in ["lease_id", "cancel_token"] {
        let secret = granted[field].as_str().unwrap();
        assert_eq!(secret.split_once('_').unwrap().1.len(), 64, "256 bits");
        secrets.push(secret.to_owned());
    }
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
    // With the last connection the log of changes becomes part of the file.
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
