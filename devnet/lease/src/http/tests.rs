//! The routes over real connections, on a clock that the test moves by hand.

mod files;
mod lab;
mod refusals;
mod schedules;
mod secrets;
mod waiting;

use lab::{Lab, one, report};
use serde_json::{Value, json};

#[tokio::test]
async fn a_job_goes_from_the_queue_to_its_end() {
    let lab = Lab::new().await;
    let token = lab.token("r1").await;
    let run = lab
        .operator(
            "POST",
            "runs",
            Some(json!({
                "name": "all",
                "jobs": [
                    {"name": "build", "steps": ["make"], "env": {"CI": "true"},
                        "retry": {"max_attempts": 5}},
                    {"name": "test", "steps": ["make test"], "needs": ["build"],
                        "max_runtime_seconds": 60},
                ],
            })),
        )
        .await;
    assert_eq!(
        (run.status, &run.body["name"], &run.body["state"]),
        (201, &json!("all"), &json!("QUEUED"))
    );
    let jobs: Vec<_> = (0..2).map(|n| run.body["jobs"][n]["job"].as_str().unwrap()).collect();
    let waits = lab.operator("GET", &format!("jobs/{}", jobs[1]), None).await.body;
    assert_eq!((&waits["waits_for"], &waits["queue_position"]), (&json!(["build"]), &Value::Null));
    assert_eq!((&waits["max_attempts"], &waits["max_runtime_seconds"]), (&json!(3), &json!(60)));
    let first = lab.operator("GET", &format!("jobs/{}", jobs[0]), None).await.body;
    assert_eq!((&first["queue_position"], &first["max_attempts"]), (&json!(1), &json!(5)));

    let granted = lab.lease(&token, "r1").await.expect("a job");
    assert_eq!(granted["job_spec"]["name"], "build");
    assert_eq!(granted["job_spec"]["workdir"], ".");
    assert_eq!(granted["job_spec"]["env"], json!({"CI": "true"}));
    assert_eq!((&granted["lease_ttl_seconds"], &granted["attempt"]), (&json!(120), &json!(1)));
    assert!(lab.lease(&token, "r1").await.is_none(), "the other one waits");
    lab.advance(1);
    assert_eq!(lab.ack(&token, "r1", &granted).await.status, 200);
    lab.advance(1);
    let beat = lab.beat(&token, "r1", &granted).await;
    assert_eq!(beat.body["new_lease_ttl_seconds"], 120);
    assert_eq!(beat.body["cancel_requested"], false);
    let shown = lab.operator("GET", &format!("jobs/{}", jobs[0]), None).await.body;
    assert_eq!(shown["expires_at"], "1970-01-01T00:18:42.000Z");
    assert_eq!(shown["attempts"][0]["progress"]["percent"], 40);
    assert_eq!(shown["attempts"][0]["acked_at"], "1970-01-01T00:16:41.000Z");
    // Times from the runner are stored as it sends them.
    let said = &shown["attempts"][0];
    assert_eq!(said["runner_accepted_at"], "2026-01-04T08:00:00Z");
    assert_eq!(said["runner_heartbeat_at"], "2026-01-04T08:00:00+01:00");
    assert_eq!(said["log_cursor"], json!({"bytes_sent": 0}));
    let report = report(&granted, "r1", "SUCCEEDED");
    for _ in 0..2 {
        assert_eq!(lab.message(&token, "complete", report.clone()).await.status, 200);
    }
    let shown = lab.operator("GET", &format!("jobs/{}", jobs[0]), None).await.body;
    assert_eq!((&shown["state"], &shown["ended_by"]), (&json!("SUCCEEDED"), &json!("REPORTED")));
    assert_eq!((&shown["finalized"], &shown["attempts"][0]["exit_code"]), (&json!(1), &json!(0)));
    assert_eq!(shown["attempts"][0]["artifacts"], report["artifacts"]);
    assert_eq!(shown["attempts"][0]["timings"], report["timings"]);

    let granted = lab.lease(&token, "r1").await.expect("the other job");
    assert_eq!(granted["job_spec"]["name"], "test");
    let listed = lab.operator("GET", "runs?limit=5", None).await.body;
    let expected = json!({"state": "LEASED", "jobs": 2, "ended": 1});
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(&listed[0][field], value);
    }
    let leased = lab.operator("GET", "jobs?state=LEASED", None).await.body;
    assert_eq!((leased.as_array().unwrap().len(), &leased[0]["job"]), (1, &json!(jobs[1])));
    let of_run = format!("jobs?run={}&state=SUCCEEDED", run.body["run_id"].as_str().unwrap());
    assert_eq!(lab.operator("GET", &of_run, None).await.body[0]["job"], jobs[0]);
    let status = lab.operator("GET", "status", None).await.body;
    assert_eq!(status["jobs"], json!({"LEASED": 1, "SUCCEEDED": 1}));
    assert_eq!((&status["queued"], &status["config"]["max_attempts"]), (&json!(0), &json!(3)));
}

#[tokio::test]
async fn a_cancel_is_told_with_the_time_that_remains() {
    let lab = Lab::new().await;
    let token = lab.token("r1").await;
    let job = lab.submit(json!([one("j")])).await.remove(0);
    let granted = lab.lease(&token, "r1").await.unwrap();
    lab.ack(&token, "r1", &granted).await;
    let stop = json!({
        "lease_id": granted["lease_id"], "runner_id": "r1", "final_status": "CANCELED",
        "summary": "stopped",
    });
    let early = lab.message(&token, "cancel-ack", stop.clone()).await;
    assert_eq!((early.status, early.code()), (409, "NO_CANCEL_REQUESTED"));
    let canceled = lab.operator("POST", &format!("jobs/{job}/cancel"), None).await;
    assert_eq!((canceled.status, &canceled.body["state"]), (200, &json!("CANCEL_REQUESTED")));
    lab.advance(10);
    let beat = lab.beat(&token, "r1", &granted).await.body;
    assert_eq!(
        (&beat["cancel_requested"], &beat["cancel_deadline_seconds"]),
        (&json!(true), &json!(20))
    );
    let late = lab.message(&token, "complete", report(&granted, "r1", "SUCCEEDED")).await;
    assert_eq!((late.status, late.code()), (409, "CANCEL_REQUESTED"));
    for _ in 0..2 {
        assert_eq!(lab.message(&token, "cancel-ack", stop.clone()).await.status, 200);
    }
    let shown = lab.operator("GET", &format!("jobs/{job}"), None).await.body;
    assert_eq!((&shown["state"], &shown["finalized"]), (&json!("CANCELED"), &json!(1)));
    assert_eq!(shown["attempts"][0]["summary"], "stopped");
}

#[tokio::test]
async fn a_job_whose_time_is_over_may_still_say_how_it_ended() {
    let lab = Lab::new().await;
    let token = lab.token("r1").await;
    let mut spec = one("j");
    spec["max_runtime_seconds"] = json!(60);
    let job = lab.submit(json!([spec])).await.remove(0);
    let granted = lab.lease(&token, "r1").await.unwrap();
    assert_eq!(granted["grace_seconds"], 15);
    lab.ack(&token, "r1", &granted).await;
    let beat = lab.beat(&token, "r1", &granted).await.body;
    assert_eq!(beat["grace_left_seconds"], Value::Null);
    lab.advance(70);
    let beat = lab.beat(&token, "r1", &granted).await.body;
    assert_eq!(beat["grace_left_seconds"], 5);
    assert_eq!((&beat["extend_lease"], &beat["new_lease_ttl_seconds"]), (&json!(true), &json!(5)));
    let lease_id = granted["lease_id"].as_str().unwrap();
    let sent = lab.put("internal/log?offset=0", &token, lease_id, "cleaned").await;
    assert_eq!(sent.status, 200);
    let kept = lab.put("internal/artifacts/a", &token, lease_id, "part").await;
    assert_eq!(kept.status, 200);
    let mut done = report(&granted, "r1", "SUCCEEDED");
    done["exit_code"] = json!(7);
    for _ in 0..2 {
        assert_eq!(lab.message(&token, "complete", done.clone()).await.status, 200);
    }
    let shown = lab.operator("GET", &format!("jobs/{job}"), None).await.body;
    assert_eq!((&shown["state"], &shown["ended_by"]), (&json!("TIMED_OUT"), &json!("MAX_RUNTIME")));
    let attempt = &shown["attempts"][0];
    assert_eq!((&attempt["exit_code"], &attempt["summary"]), (&json!(7), &json!("done")));
    assert_eq!(attempt["timings"], done["timings"]);
    let late = lab.put("internal/log?offset=7", &token, lease_id, "x").await;
    assert_eq!((late.status, &late.body["reason"]), (409, &json!("LEASE_COMPLETED")));

    // Without its report the job ends with the grace period.
    let mut spec = one("k");
    spec["max_runtime_seconds"] = json!(60);
    let job = lab.submit(json!([spec])).await.remove(0);
    let granted = lab.lease(&token, "r1").await.unwrap();
    lab.ack(&token, "r1", &granted).await;
    for (seconds, state) in [(74, "STARTING"), (1, "TIMED_OUT")] {
        lab.advance(seconds);
        let shown = lab.operator("GET", &format!("jobs/{job}"), None).await.body;
        assert_eq!(shown["state"], state);
    }
    let late = lab.message(&token, "complete", report(&granted, "r1", "FAILED")).await;
    assert_eq!((late.status, &late.body["reason"]), (409, &json!("LEASE_REVOKED")));
}

/// A message from a program that omits zeros and uses its own format of times.
#[tokio::test]
async fn a_completion_may_leave_out_what_is_zero() {
    let lab = Lab::new().await;
    let token = lab.token("r1").await;
    let times = json!({
        "started_at": "2026-01-04T08:00:05Z", "finished_at": "2026-01-04T08:03:12Z",
    });
    for (status, exit_code) in [("SUCCEEDED", json!(0)), ("FAILED", Value::Null)] {
        let job = lab.submit(json!([one("j")])).await.remove(0);
        let granted = lab.lease(&token, "r1").await.unwrap();
        lab.ack(&token, "r1", &granted).await;
        let mut done = json!({
            "type": "Complete", "lease_id": granted["lease_id"], "runner_id": "r1",
            "status": status, "summary": "done",
        });
        done.as_object_mut().unwrap().extend(times.as_object().unwrap().clone());
        assert_eq!(lab.message(&token, "complete", done).await.status, 200);
        let shown = lab.operator("GET", &format!("jobs/{job}"), None).await.body;
        let attempt = &shown["attempts"][0];
        assert_eq!((&attempt["exit_code"], &attempt["timings"]), (&exit_code, &times), "{status}");
    }
}

#[tokio::test]
async fn of_many_at_once_one_is_accepted() {
    let lab = Lab::new().await;
    lab.submit(json!([one("j")])).await;
    let mut tokens = Vec::new();
    for n in 0..12 {
        tokens.push((format!("r{n}"), lab.token(&format!("r{n}")).await));
    }
    let asked = tokens.iter().map(|(runner, token)| lab.lease(token, runner));
    let mut granted = futures::future::join_all(asked).await;
    let holder = granted.iter().position(Option::is_some).expect("one has it");
    let lease = granted.remove(holder).unwrap();
    assert!(granted.iter().all(Option::is_none));
    let (runner, token) = &tokens[holder];
    lab.ack(token, runner, &lease).await;
    let messages = (0..20).map(|n| {
        let mut message = report(&lease, runner, "SUCCEEDED");
        message["exit_code"] = json!(n);
        lab.message(token, "complete", message)
    });
    let answers = futures::future::join_all(messages).await;
    let accepted = answers.iter().filter(|answer| answer.status == 200).count();
    assert_eq!(accepted, 1);
    let stale = answers.iter().filter(|answer| answer.status != 200);
    assert!(stale.clone().all(|answer| answer.body["reason"] == "LEASE_COMPLETED"));
    let job = lease["job_id"].as_str().unwrap();
    let shown = lab.operator("GET", &format!("jobs/{job}"), None).await.body;
    assert_eq!((&shown["state"], &shown["finalized"]), (&json!("SUCCEEDED"), &json!(1)));
}

#[tokio::test]
async fn a_kill_loses_nothing_that_was_answered() {
    let mut lab = Lab::new().await;
    let token = lab.token("r1").await;
    lab.submit(json!([one("a"), one("b"), one("c")])).await;
    let [a, b] = [lab.lease(&token, "r1").await.unwrap(), lab.lease(&token, "r1").await.unwrap()];
    for granted in [&a, &b] {
        lab.ack(&token, "r1", granted).await;
    }
    let done = report(&a, "r1", "SUCCEEDED");
    lab.message(&token, "complete", done.clone()).await;
    let before = lab.operator("GET", "jobs", None).await.body;
    lab.kill().await;
    lab.restart().await;
    assert_eq!(lab.operator("GET", "jobs", None).await.body, before);
    assert_eq!(lab.beat(&token, "r1", &b).await.status, 200, "token and lease are good");
    assert_eq!(lab.message(&token, "complete", done).await.status, 200, "a repeat");
    lab.kill().await;
    lab.advance(120);
    lab.restart().await;
    let late = lab.beat(&token, "r1", &b).await;
    assert_eq!((late.status, &late.body["reason"]), (409, &json!("LEASE_EXPIRED")));
    let c = lab.lease(&token, "r1").await.unwrap();
    assert_eq!(c["job_spec"]["name"], "c", "what was lost is at the back");
    let again = lab.lease(&token, "r1").await.unwrap();
    assert_eq!((&again["job_id"], &again["attempt"]), (&b["job_id"], &json!(2)));
}

#[tokio::test]
async fn lists_show_what_time_has_done() {
    let lab = Lab::new().await;
    let token = lab.token("r1").await;
    let job = lab.submit(json!([one("j")])).await.remove(0);
    lab.lease(&token, "r1").await.unwrap();
    for attempt in 1..=3 {
        if attempt > 1 {
            lab.lease(&token, "r1").await.unwrap();
        }
        lab.advance(29);
        let shown = lab.operator("GET", &format!("jobs/{job}"), None).await.body;
        assert_eq!((&shown["state"], &shown["lease_state"]), (&json!("LEASED"), &json!("GRANTED")));
        lab.advance(1);
        let listed = lab.operator("GET", "jobs", None).await.body;
        let state = if attempt < 3 { "QUEUED" } else { "FAILED" };
        assert_eq!(
            (&listed[0]["state"], &listed[0]["lease_state"]),
            (&json!(state), &json!("REVOKED"))
        );
    }
    let shown = lab.operator("GET", &format!("jobs/{job}"), None).await.body;
    assert_eq!((&shown["ended_by"], &shown["finalized"]), (&json!("LEASE_LOST"), &json!(1)));
    assert_eq!(shown["attempts"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn runs_that_ended_are_forgotten_beyond_those_that_are_kept() {
    let mut lab = Lab::keeping(2).await;
    let token = lab.token("r1").await;
    let mut runs = Vec::new();
    for n in 0..4 {
        lab.submit(json!([one(&format!("j{n}"))])).await;
        let granted = lab.lease(&token, "r1").await.unwrap();
        lab.ack(&token, "r1", &granted).await;
        let lease_id = granted["lease_id"].as_str().unwrap();
        let sent = lab.put("internal/log?offset=0", &token, lease_id, "text").await;
        assert_eq!(sent.status, 200);
        lab.message(&token, "complete", report(&granted, "r1", "SUCCEEDED")).await;
        runs.push((granted["run_id"].as_str().unwrap().to_owned(), granted));
    }
    lab.submit(json!([one("open")])).await;
    let listed = lab.operator("GET", "runs", None).await.body;
    assert_eq!(listed.as_array().unwrap().len(), 3, "two that ended and one that has not");
    for (run, granted) in &runs[..2] {
        assert_eq!(lab.operator("GET", &format!("runs/{run}"), None).await.status, 404);
        let repeat = lab.message(&token, "complete", report(granted, "r1", "SUCCEEDED")).await;
        assert_eq!((repeat.status, &repeat.body["reason"]), (409, &json!("UNKNOWN_LEASE")));
        lab.until_gone(&format!("logs/{run}")).await;
    }
    assert_eq!(lab.operator("GET", &format!("runs/{}", runs[3].0), None).await.status, 200);
    lab.kill().await;
    lab.keep_runs = 1;
    lab.restart().await;
    lab.until_gone(&format!("logs/{}", runs[2].0)).await;
    assert_eq!(lab.operator("GET", "runs", None).await.body.as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn files_that_cannot_be_removed_keep_no_others() {
    let lab = Lab::keeping(1).await;
    let token = lab.token("r1").await;
    let mut runs = Vec::new();
    for n in 0..3 {
        lab.submit(json!([one(&format!("j{n}"))])).await;
        let granted = lab.lease(&token, "r1").await.unwrap();
        lab.ack(&token, "r1", &granted).await;
        let lease_id = granted["lease_id"].as_str().unwrap();
        assert_eq!(lab.put("internal/log?offset=0", &token, lease_id, "text").await.status, 200);
        runs.push(granted["run_id"].as_str().unwrap().to_owned());
        if n == 0 {
            // A file instead of a folder is not removed like one.
            let logs = lab.folder.path().join("logs").join(&runs[0]);
            std::fs::remove_dir_all(&logs).unwrap();
            std::fs::write(&logs, "strange").unwrap();
        }
        lab.message(&token, "complete", report(&granted, "r1", "SUCCEEDED")).await;
    }
    lab.until_gone(&format!("logs/{}", runs[1])).await;
    assert!(lab.folder.path().join("logs").join(&runs[0]).exists());
}
