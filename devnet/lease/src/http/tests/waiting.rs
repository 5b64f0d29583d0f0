//! Requests that wait: for work, and for more of a log.

use super::lab::{LONG, Lab, OPERATOR, one, report};
use crate::messages::{LOG_BYTES_HEADER, LOG_ENDED_HEADER};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::{task::JoinHandle, time::timeout};

/// Asks for work in the background.
fn ask(
    lab: &Arc<Lab>,
    token: &str,
    runner: &str,
    capabilities: &[&str],
    seconds: u64,
) -> JoinHandle<(u16, Value)> {
    let (lab, token) = (lab.clone(), token.to_owned());
    let message = json!({
        "runner_id": runner, "capabilities": capabilities, "wait_seconds": seconds,
    });
    tokio::spawn(async move {
        let answer = lab.message(&token, "lease", message).await;
        (answer.status, answer.body)
    })
}

async fn answer(asked: JoinHandle<(u16, Value)>) -> (u16, Value) {
    timeout(LONG, asked).await.expect("in time").unwrap()
}

#[tokio::test]
async fn jobs_go_to_those_who_wait_in_the_order_in_which_they_came() {
    let lab = Arc::new(Lab::new().await);
    let mut tokens = Vec::new();
    for runner in ["a", "b", "c"] {
        tokens.push(lab.token(runner).await);
    }
    let a = ask(&lab, &tokens[0], "a", &["linux"], 30);
    lab.until_waiting(1).await;
    let b = ask(&lab, &tokens[1], "b", &["linux", "gpu"], 30);
    lab.until_waiting(2).await;
    let c = ask(&lab, &tokens[2], "c", &["linux", "gpu"], 30);
    lab.until_waiting(3).await;
    let mut special = one("special");
    special["requires"] = json!(["gpu"]);
    lab.submit(json!([special, one("first"), one("second")])).await;
    for (asked, name) in [(a, "first"), (b, "special"), (c, "second")] {
        let (status, granted) = answer(asked).await;
        assert_eq!((status, &granted["job_spec"]["name"]), (200, &json!(name)));
    }
    lab.until_waiting(0).await;
}

#[tokio::test]
async fn a_job_that_is_queued_again_goes_to_who_waits() {
    let lab = Arc::new(Lab::new().await);
    let (a, b) = (lab.token("a").await, lab.token("b").await);
    lab.submit(json!([one("j")])).await;
    let granted = lab.lease(&a, "a").await.unwrap();
    let asked = ask(&lab, &b, "b", &[], 30);
    lab.until_waiting(1).await;
    let job = granted["job_id"].as_str().unwrap();
    let revoked = lab.operator("POST", &format!("jobs/{job}/revoke"), None).await;
    assert_eq!(revoked.status, 200);
    let (status, again) = answer(asked).await;
    assert_eq!((status, &again["job_id"], &again["attempt"]), (200, &json!(job), &json!(2)));

    let asked = ask(&lab, &a, "a", &[], 30);
    lab.until_waiting(1).await;
    // The second lease is not acked in time; only the clock tells.
    lab.advance(29);
    lab.advance(1);
    let (status, third) = answer(asked).await;
    // The wait ends at the same moment: in either order, the job is not lost.
    if status == 204 {
        assert_eq!(lab.lease(&a, "a").await.unwrap()["attempt"], 3);
    } else {
        assert_eq!((status, &third["attempt"]), (200, &json!(3)));
    }
}

#[tokio::test]
async fn who_waits_is_answered_at_the_deadline() {
    let lab = Arc::new(Lab::new().await);
    let (a, b) = (lab.token("a").await, lab.token("b").await);
    let short = ask(&lab, &a, "a", &[], 5);
    let long = ask(&lab, &b, "b", &[], 20);
    lab.until_waiting(2).await;
    lab.advance(5);
    assert_eq!(answer(short).await.0, 204);
    lab.until_waiting(1).await;
    assert!(!long.is_finished());
    lab.advance(15);
    assert_eq!(answer(long).await.0, 204);
}

#[tokio::test]
async fn a_runner_has_one_request_that_waits() {
    let lab = Arc::new(Lab::new().await);
    let token = lab.token("a").await;
    let first = ask(&lab, &token, "a", &[], 30);
    lab.until_waiting(1).await;
    let second = ask(&lab, &token, "a", &[], 30);
    assert_eq!(answer(first).await.0, 204);
    lab.until_waiting(1).await;
    lab.submit(json!([one("j")])).await;
    assert_eq!(answer(second).await.0, 200);
}

#[tokio::test]
async fn nobody_who_has_gone_is_granted_anything() {
    let lab = Arc::new(Lab::new().await);
    let (a, b) = (lab.token("a").await, lab.token("b").await);
    let gone = ask(&lab, &a, "a", &[], 30);
    lab.until_waiting(1).await;
    let there = ask(&lab, &b, "b", &[], 30);
    lab.until_waiting(2).await;
    gone.abort();
    assert!(gone.await.unwrap_err().is_cancelled());
    let job = lab.submit(json!([one("j")])).await.remove(0);
    let (status, granted) = answer(there).await;
    assert_eq!((status, &granted["job_id"]), (200, &json!(job)));
}

#[tokio::test]
async fn a_stop_answers_whoever_waits() {
    let mut lab = Lab::new().await;
    let token = lab.token("a").await;
    let job = lab.submit(json!([one("j")])).await.remove(0);
    let granted = lab.lease(&token, "a").await.unwrap();
    assert_eq!(granted["job_id"], job);
    let request = lab.request("POST", "/api/v1/internal/lease").bearer_auth(&token);
    let message = json!({"runner_id": "a", "wait_seconds": 30});
    let work = tokio::spawn(request.json(&message).send());
    lab.until_waiting(1).await;
    let log = lab.request("GET", &format!("/api/v1/jobs/{job}/log?wait_seconds=30"));
    let log = tokio::spawn(log.bearer_auth(OPERATOR).send());
    assert!(lab.stop().await);
    assert_eq!(timeout(LONG, work).await.unwrap().unwrap().unwrap().status(), 204);
    // The request may not have begun to wait.
    if let Ok(answer) = timeout(LONG, log).await.unwrap().unwrap() {
        assert_eq!(answer.status(), 200);
    }
    lab.restart().await;
    assert_eq!(lab.ack(&token, "a", &granted).await.status, 200);
}

/// Waits for a cancel in the background.
fn await_cancel(
    lab: &Arc<Lab>,
    token: &str,
    granted: &Value,
    seconds: u64,
) -> JoinHandle<(u16, Value)> {
    let (lab, token) = (lab.clone(), token.to_owned());
    let message = json!({
        "type": "AwaitCancel", "lease_id": granted["lease_id"], "runner_id": "a",
        "wait_seconds": seconds,
    });
    tokio::spawn(async move {
        let answer = lab.message(&token, "await-cancel", message).await;
        (answer.status, answer.body)
    })
}

#[tokio::test]
async fn a_wait_for_a_cancel_ends_with_it_or_with_the_lease() {
    let lab = Arc::new(Lab::new().await);
    let token = lab.token("a").await;
    let held = async || {
        let job = lab.submit(json!([one("j")])).await.remove(0);
        let granted = lab.lease(&token, "a").await.unwrap();
        assert_eq!(granted["job_id"], job);
        lab.ack(&token, "a", &granted).await;
        (job, granted)
    };
    let change = async |job: &str, what: &str| {
        lab.operator("POST", &format!("jobs/{job}/{what}"), None).await
    };
    // The answer is the same whether the wait has begun by then or not.
    let (job, granted) = held().await;
    let waits = await_cancel(&lab, &token, &granted, 30);
    change(&job, "cancel").await;
    let (status, requested) = answer(waits).await;
    let expected = json!({
        "type": "CancelRequested", "lease_id": granted["lease_id"], "job_id": job,
        "reason": "REQUESTED", "deadline_seconds": 30, "ts": "1970-01-01T00:16:40.000Z",
    });
    assert_eq!((status, requested), (200, expected));
    lab.advance(10);
    let (status, requested) = answer(await_cancel(&lab, &token, &granted, 0)).await;
    assert_eq!((status, &requested["deadline_seconds"]), (200, &json!(20)));
    lab.advance(20);
    let (status, stale) = answer(await_cancel(&lab, &token, &granted, 30)).await;
    assert_eq!((status, &stale["reason"]), (409, &json!("LEASE_REVOKED")));

    let (job, granted) = held().await;
    let waits = await_cancel(&lab, &token, &granted, 30);
    change(&job, "revoke").await;
    let (status, stale) = answer(waits).await;
    assert_eq!((status, &stale["type"]), (409, &json!("StaleLease")));

    let granted = lab.lease(&token, "a").await.unwrap();
    lab.ack(&token, "a", &granted).await;
    assert_eq!(answer(await_cancel(&lab, &token, &granted, 0)).await.0, 204);
    let waits = await_cancel(&lab, &token, &granted, 5);
    let over = async {
        while !waits.is_finished() {
            lab.advance(1);
            lab.beat(&token, "a", &granted).await;
        }
    };
    timeout(LONG, over).await.expect("the wait ends");
    assert_eq!(answer(waits).await.0, 204);
}

#[tokio::test]
async fn a_runner_has_so_many_waits_for_a_cancel() {
    let lab = Arc::new(Lab::new().await);
    let token = lab.token("a").await;
    lab.submit(json!([one("j")])).await;
    let granted = lab.lease(&token, "a").await.unwrap();
    lab.ack(&token, "a", &granted).await;
    let mut waits: Vec<_> = (0..20).map(|_| await_cancel(&lab, &token, &granted, 30)).collect();
    // Twelve of twenty concurrent requests are too many, in any order.
    let mut full = 0;
    let refused = async {
        while full < 12 {
            let at = waits.iter().position(JoinHandle::is_finished);
            let Some(at) = at else {
                tokio::task::yield_now().await;
                continue;
            };
            let (status, body) = waits.remove(at).await.unwrap();
            assert_eq!((status, &body["error"]["code"]), (503, &json!("UNAVAILABLE")));
            full += 1;
        }
    };
    timeout(LONG, refused).await.expect("twelve are refused");
    let job = granted["job_id"].as_str().unwrap();
    lab.operator("POST", &format!("jobs/{job}/cancel"), None).await;
    for wait in waits {
        assert_eq!(answer(wait).await.0, 200);
    }
}

#[tokio::test]
async fn a_log_is_followed_to_its_end() {
    let lab = Arc::new(Lab::new().await);
    let token = lab.token("a").await;
    let job = lab.submit(json!([one("j")])).await.remove(0);
    let read = |query: &'static str| {
        let (lab, path) = (lab.clone(), format!("jobs/{job}/log?{query}"));
        tokio::spawn(async move {
            let answer = lab.operator("GET", &path, None).await;
            assert_eq!(answer.status, 200, "{}", answer.text);
            let header = |name: &str| answer.headers[name].to_str().unwrap().to_owned();
            (answer.text.clone(), header(LOG_BYTES_HEADER), header(LOG_ENDED_HEADER))
        })
    };
    let part = |text: &str, bytes: &str, ended: &str| {
        (text.to_owned(), bytes.to_owned(), ended.to_owned())
    };
    assert_eq!(read("").await.unwrap(), part("", "0", "false"));
    let first = read("wait_seconds=30");
    let granted = lab.lease(&token, "a").await.unwrap();
    lab.ack(&token, "a", &granted).await;
    let lease_id = granted["lease_id"].as_str().unwrap();
    let sent = lab.put("internal/log?offset=0", &token, lease_id, "one").await;
    assert_eq!((sent.status, &sent.body["bytes"]), (200, &json!(3)));
    assert_eq!(timeout(LONG, first).await.unwrap().unwrap(), part("one", "3", "false"));
    let second = read("offset=3&wait_seconds=30");
    lab.put("internal/log?offset=2", &token, lease_id, "e two").await;
    assert_eq!(timeout(LONG, second).await.unwrap().unwrap(), part(" two", "7", "false"));
    let third = read("offset=7&wait_seconds=30&attempt=1");
    lab.message(&token, "complete", report(&granted, "a", "FAILED")).await;
    assert_eq!(timeout(LONG, third).await.unwrap().unwrap(), part("", "7", "true"));
    assert_eq!(read("").await.unwrap(), part("one two", "7", "true"));
    assert_eq!(lab.operator("GET", &format!("jobs/{job}/log?attempt=2"), None).await.status, 404);
}

#[tokio::test]
async fn who_is_there_and_why_a_job_waits_is_told() {
    let lab = Arc::new(Lab::new().await);
    let (a, b) = (lab.token("a").await, lab.token("b").await);
    let mut special = one("special");
    special["requires"] = json!(["gpu"]);
    let jobs = lab.submit(json!([special, one("plain"), one("last")])).await;
    let why = async |job: &str| {
        let job = lab.operator("GET", &format!("jobs/{job}"), None).await.body;
        job["why_queued"].as_str().map(str::to_owned)
    };
    let no_runner = "no runner asked for work in the last minute";
    assert_eq!(why(&jobs[0]).await.as_deref(), Some(no_runner));
    let granted = lab.lease(&a, "a").await.unwrap();
    assert_eq!(granted["job_id"], jobs[1]);
    lab.ack(&a, "a", &granted).await;
    let missing = "no runner asked in the last minute that has: gpu";
    assert_eq!(why(&jobs[0]).await.as_deref(), Some(missing));
    let busy = "the one runner that can do it has other jobs first";
    assert_eq!(why(&jobs[2]).await.as_deref(), Some(busy));
    assert_eq!(why(&jobs[1]).await, None, "it is granted");
    lab.lease(&b, "b").await.unwrap();
    let waits = ask(&lab, &b, "b", &["tpu", "arm"], 30);
    lab.until_waiting(1).await;
    let known = lab.operator("GET", "runners", None).await.body;
    let seen =
        |at: usize| (&known[at]["runner_id"], &known[at]["job"]["name"], &known[at]["waits"]);
    assert_eq!(seen(0), (&json!("a"), &json!("plain"), &json!(false)));
    assert_eq!(seen(1), (&json!("b"), &json!("last"), &json!(true)));
    assert_eq!(known[1]["capabilities"], json!(["arm", "tpu"]));
    lab.advance(60);
    assert_eq!(why(&jobs[0]).await.as_deref(), Some(no_runner));
    // The second lease was not acked in time, so the waiting runner gets the job.
    assert_eq!(answer(waits).await.0, 200);

    let events = lab.operator("GET", &format!("jobs/{}/events", jobs[1]), None).await.body;
    let states = events.as_array().unwrap().iter();
    let states: Vec<_> = states.map(|event| (&event["state"], &event["lease_state"])).collect();
    let (queued, starting) = (json!("QUEUED"), json!("STARTING"));
    assert_eq!(states[0], (&queued, &json!(null)));
    assert_eq!(states[2], (&starting, &json!("ACTIVE")));
    let scraped = lab.send(lab.request("GET", "/metrics")).await;
    assert_eq!(scraped.status, 401);
    let scraped = lab.send(lab.request("GET", "/metrics").bearer_auth(OPERATOR)).await;
    let lines: Vec<_> = scraped.text.lines().collect();
    // The lease that was not acked in time was lost.
    for line in [
        "lease_granted_total 3",
        "lease_lost_total{lease_state=\"REVOKED\"} 1",
        "lease_jobs{state=\"STARTING\"} 1",
        "lease_queued 1",
        "lease_unauthorized_total 1",
    ] {
        assert!(lines.contains(&line), "{line}: {}", scraped.text);
    }
    let none = lab.operator("GET", "jobs/none/events", None).await;
    assert_eq!((none.status, none.code()), (404, "NOT_FOUND"));
}
