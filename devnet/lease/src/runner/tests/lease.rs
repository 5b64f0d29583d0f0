//! The lease: failing requests, lost leases, jobs that have to stop.

use super::*;
use crate::messages::{ErrorCode, StaleReason};
use reqwest::StatusCode;

/// A job that uses every route.
fn busy(number: u32) -> Value {
    let spec = json!({
        "steps": ["echo text; echo file > file"],
        "artifacts": [{ "type": "x", "path_glob": "file" }],
        "caches": [{ "type": "y", "key": "key", "paths": ["file"] }],
    });
    grant(number, spec)
}

const BUSY_LOG: &str = "[runner] cache key: nothing saved yet\n\
    $ echo text; echo file > file\ntext\n\
    [runner] cache key: 1 files and folders saved\n";

/// A job that writes `ready` and runs until it is killed, because it ignores requests to end, with
/// descendants in other sessions. `MARKER` shows whether any of them still runs.
fn endless(bench: &Bench, number: u32) -> (Value, String) {
    let marker = format!("{}/marker-{number}", bench.home.path().display());
    let step = "trap '' TERM HUP INT; echo part > part; sleep 1000 &
        (setsid sh -c 'trap \"\" TERM; sleep 1000 & sleep 1000' &)
        env -i $(command -v setsid) sh -c \"trap '' TERM; sleep 1000; : $MARKER\" &
        echo ready; while true; do sleep 1000; done";
    let spec = json!({
        "steps": ["true", step, "echo never"],
        "env": { "MARKER": marker },
        "artifacts": [{ "type": "x", "path_glob": "part" }, { "type": "x", "path_glob": "none" }],
    });
    (grant(number, spec), marker)
}

/// Waits until the endless job's output has arrived.
async fn ready(bench: &Bench) {
    bench.fake.until("the job's output", |world| world.log().contains("\nready\n")).await;
}

#[tokio::test]
async fn a_request_that_fails_loses_nothing() {
    for fault in [Fault::Unavailable, Fault::Broken, Fault::Unheard] {
        let bench = Bench::new();
        bench.fake.change(|world| {
            for route in ["ack-lease", "heartbeat", "log", "log", "artifacts", "caches", "complete"]
            {
                world.faults.push((route, fault));
            }
            if !matches!(fault, Fault::Unheard) {
                world.faults.push(("lease", fault));
            }
        });
        assert_eq!(bench.run([busy(1)]).await, [Outcome::Succeeded], "{fault:?}");
        assert_eq!(bench.log(), BUSY_LOG, "{fault:?}");
        let world = bench.fake.world.borrow();
        assert!(world.faults.is_empty(), "{:?}", world.faults);
        assert_eq!(world.artifacts["file"], "file\n".as_bytes());
        assert!(world.caches.contains_key("key"));
        let completes = world.of("complete");
        assert!(completes.iter().all(|complete| complete == &completes[0]), "{completes:?}");
        assert_eq!(completes.len(), if matches!(fault, Fault::Unheard) { 2 } else { 1 });
    }
}

#[tokio::test]
async fn a_server_that_is_gone_is_asked_until_it_is_back() {
    let mut bench = Bench::new();
    bench.fake.down();
    let running = bench.start(1);
    let told = |bench: &Bench, count| bench.notices.lock().unwrap().len() >= count;
    let wait = async {
        while !told(&bench, 1) {
            tokio::task::yield_now().await;
        }
    };
    timeout(LIMIT, wait).await.unwrap();
    bench.fake.up();
    bench.fake.until("a request for work", |world| !world.of("lease").is_empty()).await;
    // The server goes away again while a job runs.
    let go = bench.home.path().join("go");
    let step = format!("echo ready; until [ -e {} ]; do sleep 0.02; done; echo end", go.display());
    bench.fake.change(|world| world.queue.push_back(grant(1, json!({ "steps": [step] }))));
    ready(&bench).await;
    bench.fake.down();
    std::fs::write(go, "").unwrap();
    bench.fake.up();
    running.end().await.unwrap();
    assert_eq!(bench.outcomes(), [Outcome::Succeeded]);
    assert!(bench.log().ends_with("\nready\nend\n"), "{}", bench.log());
    bench.message("complete");
    let notices = bench.notices.lock().unwrap();
    assert!(matches!(notices[..2], [Notice::Unreachable(_), Notice::Back]), "{notices:?}");
}

#[tokio::test]
async fn a_stale_lease_is_dropped_at_once_whatever_says_so() {
    for route in ["ack-lease", "heartbeat", "log", "artifacts", "caches", "complete"] {
        let bench = Bench::new();
        let reason = StaleReason::LeaseRevoked;
        bench.fake.change(|world| world.faults.push((route, Fault::Stale(reason))));
        let (_, marker) = endless(&bench, 1);
        let mut job = busy(1);
        job["job_spec"]["env"] = json!({ "MARKER": marker });
        if matches!(route, "heartbeat" | "log") {
            job["job_spec"]["steps"] = json!(["echo text; trap '' TERM; sleep 1000"]);
        }
        // The next job runs normally.
        let outcomes = bench.run([job, grant(2, json!({ "steps": ["echo second"] }))]).await;
        let lost = Outcome::Lost(Loss::Stale(reason));
        assert_eq!(outcomes, [lost, Outcome::Succeeded], "{route}");
        assert!(!is_anywhere(&marker), "{route}");
        let world = bench.fake.world.borrow();
        let ended = |lease: &String| {
            let of = world.of("complete");
            of.iter().filter(|complete| complete["lease_id"] == json!(lease)).count()
        };
        assert_eq!((ended(&lease_id(1)), ended(&lease_id(2))), (0, 1), "{route}");
        // No request for the first job after the stale answer; the second begins with a request.
        let stale = world.asked.iter().position(|path| path.contains(route)).unwrap();
        let after: Vec<_> = world.asked[stale + 1..].iter().collect();
        let next = after.iter().position(|path| *path == "/lease").unwrap();
        // Requests in progress may still arrive: a heartbeat, a log piece, a wait for a cancel.
        assert!(next <= 3, "{route}: {after:?}");
        assert!(!after[..next].iter().any(|path| path.contains(route)), "{route}: {after:?}");
    }
}

#[tokio::test]
async fn a_runner_whose_token_is_revoked_stops_and_ends() {
    let bench = Bench::new();
    let (job, marker) = endless(&bench, 1);
    bench.fake.change(|world| world.queue.push_back(job));
    let running = bench.start(2);
    ready(&bench).await;
    let fault = Fault::Code(StatusCode::UNAUTHORIZED, ErrorCode::Unauthorized);
    bench.fake.change(|world| world.lasting.insert("/", fault));
    let error = running.end().await.unwrap_err();
    assert!(matches!(error, RunnerError::Refused { .. }), "{error}");
    assert!(!is_anywhere(&marker));
    let outcomes = bench.outcomes();
    assert!(matches!(outcomes[..], [Outcome::Lost(Loss::Refused(_))]), "{outcomes:?}");
}

#[tokio::test]
async fn a_lease_without_heartbeats_has_run_out() {
    let bench = Bench::new();
    let (mut job, marker) = endless(&bench, 1);
    job["lease_ttl_seconds"] = json!(2);
    bench.fake.change(|world| {
        world.lasting.insert("heartbeat", Fault::Unavailable);
        world.queue.push_back(job);
    });
    let running = bench.start(1);
    running.end().await.unwrap();
    assert_eq!(bench.outcomes(), [Outcome::Lost(Loss::Expired)]);
    assert!(!is_anywhere(&marker));
    let world = bench.fake.world.borrow();
    assert!(world.of("complete").is_empty() && world.of("heartbeat").is_empty());
    let tried = world.asked.iter().filter(|path| *path == "/heartbeat").count();
    assert!(tried > 1, "it was tried again");
}

#[tokio::test]
async fn a_canceled_job_is_stopped_with_all_that_it_started() {
    let bench = Bench::new();
    let (job, marker) = endless(&bench, 1);
    bench.fake.change(|world| world.queue.push_back(job));
    let running = bench.start(1);
    ready(&bench).await;
    assert!(is_anywhere(&marker));
    bench.fake.change(|world| world.cancel = Some(2));
    running.end().await.unwrap();
    assert_eq!(bench.outcomes(), [Outcome::Canceled]);
    assert!(!is_anywhere(&marker));
    let ack = bench.message("cancel-ack");
    let step = "Canceled during step: trap '' TERM HUP INT; echo part > part; sleep 1000 &";
    assert_eq!((&ack["final_status"], &ack["summary"]), (&json!("CANCELED"), &json!(step)));
    let artifacts = json!([
        { "type": "log", "uri": "/api/v1/jobs/job_1/log?attempt=1" },
        { "type": "x", "uri": "/kept/part" },
    ]);
    assert_eq!(ack["artifacts"], artifacts);
    let log = bench.log();
    assert!(log.contains("\nready\n") && log.contains(step) && !log.contains("never"), "{log}");
    assert!(bench.fake.world.borrow().of("complete").is_empty());
}

#[tokio::test]
async fn a_step_that_is_asked_to_end_may_say_a_last_word() {
    let bench = Bench::new();
    // The shell waits for its child, which is asked to end too.
    let step = "trap 'echo bye; exit 0' TERM; echo ready; sleep 1000 & wait";
    bench.fake.change(|world| {
        world.queue.push_back(grant(1, json!({ "steps": [step, "echo never"] })));
    });
    let running = bench.start(1);
    ready(&bench).await;
    bench.fake.change(|world| world.cancel = Some(40));
    running.end().await.unwrap();
    assert_eq!(bench.outcomes(), [Outcome::Canceled]);
    let expected = format!("\nready\nbye\n[runner] Canceled during step: {step}\n");
    assert!(bench.log().ends_with(&expected), "{}", bench.log());
}

#[tokio::test]
async fn a_cancel_that_comes_with_the_completion_is_acked() {
    let bench = Bench::new();
    let fault = Fault::Code(StatusCode::CONFLICT, ErrorCode::CancelRequested);
    bench.fake.change(|world| world.faults.push(("complete", fault)));
    let outcomes = bench.run([grant(1, json!({ "steps": ["true"] }))]).await;
    assert_eq!(outcomes, [Outcome::Canceled]);
    assert_eq!(bench.message("cancel-ack")["summary"], "Canceled between steps");
}

#[tokio::test]
async fn a_cancel_before_the_first_step_runs_none() {
    let bench = Bench::new();
    bench.fake.change(|world| {
        world.cancel = Some(30);
        world.lasting.insert("caches", Fault::Unavailable);
    });
    assert_eq!(bench.run([busy(1)]).await, [Outcome::Canceled]);
    assert_eq!(bench.log(), "[runner] Canceled between steps\n[runner] no file matches file\n");
}

#[tokio::test]
async fn a_completion_that_was_heard_counts_though_its_answer_is_lost() {
    for stale in [StaleReason::LeaseCompleted, StaleReason::LeaseExpired] {
        let bench = Bench::new();
        bench.fake.change(|world| {
            world.lasting.insert("complete", Fault::Unheard);
            world.queue.push_back(grant(1, json!({ "steps": ["true"] })));
        });
        let running = bench.start(1);
        bench.fake.until("a completion", |world| !world.of("complete").is_empty()).await;
        bench.fake.change(|world| world.lasting.insert("heartbeat", Fault::Stale(stale)));
        running.end().await.unwrap();
        let expected = match stale {
            StaleReason::LeaseCompleted => Outcome::Succeeded,
            stale => Outcome::Lost(Loss::Stale(stale)),
        };
        assert_eq!(bench.outcomes(), [expected]);
    }
}

#[tokio::test]
async fn a_job_that_takes_too_long_is_stopped() {
    let bench = Bench::new();
    let step = "trap 'echo bye; exit 0' TERM; echo ready; sleep 1000 & wait";
    let mut job = grant(1, json!({ "steps": [step] }));
    job["max_runtime_seconds"] = json!(1);
    assert_eq!(bench.run([job]).await, [Outcome::TimedOut]);
    let log = bench.log();
    let summary = format!("Not done within 1 s, stopped during step: {step}");
    assert!(log.ends_with(&format!("\nbye\n[runner] {summary}\n")), "{log}");
    let complete = bench.message("complete");
    let expected = json!({ "status": "FAILED", "timed_out": true, "exit_code": 0 });
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(&complete[field], value, "{complete}");
    }
    assert_eq!(complete["summary"], summary);
    assert!(bench.fake.world.borrow().of("cancel-ack").is_empty());
}

#[tokio::test]
async fn a_server_whose_clock_is_ahead_ends_a_jobs_time() {
    let bench = Bench::new();
    let step = "trap 'echo bye; exit 3' TERM; echo ready; sleep 1000 & wait";
    bench.fake.change(|world| world.queue.push_back(grant(1, json!({ "steps": [step] }))));
    let running = bench.start(1);
    ready(&bench).await;
    bench.fake.change(|world| world.grace_left = Some(14));
    running.end().await.unwrap();
    assert_eq!(bench.outcomes(), [Outcome::TimedOut]);
    assert_eq!(bench.message("complete")["exit_code"], 3);
}

#[tokio::test]
async fn a_job_without_grace_is_stopped_at_once() {
    let bench = Bench::new();
    // The server is unreachable: its lease is revoked by then.
    let fault = Fault::Stale(StaleReason::LeaseRevoked);
    bench.fake.change(|world| world.faults.push(("complete", fault)));
    let (mut job, marker) = endless(&bench, 1);
    job["max_runtime_seconds"] = json!(1);
    job.as_object_mut().unwrap().remove("grace_seconds");
    assert_eq!(bench.run([job]).await, [Outcome::TimedOut]);
    assert!(!is_anywhere(&marker));
}

#[tokio::test]
async fn a_cancel_comes_by_the_wait_for_it() {
    for wait_fails in [false, true] {
        let bench = Bench::new();
        let (mut job, marker) = endless(&bench, 1);
        // No heartbeat after the first one reports it.
        job["heartbeat_interval_seconds"] = json!(1_000);
        job["lease_ttl_seconds"] = json!(2_000);
        bench.fake.change(|world| {
            world.cancel_by_wait_alone = true;
            if wait_fails {
                world.faults.push(("await-cancel", Fault::Unavailable));
                world.faults.push(("await-cancel", Fault::Broken));
            }
            world.queue.push_back(job);
        });
        let running = bench.start(1);
        ready(&bench).await;
        bench.fake.change(|world| world.cancel = Some(2));
        running.end().await.unwrap();
        assert_eq!(bench.outcomes(), [Outcome::Canceled]);
        assert!(!is_anywhere(&marker));
    }
}

#[tokio::test]
async fn a_cancel_comes_with_the_answer_to_a_piece_of_the_log() {
    let bench = Bench::new();
    let step = "while echo line; do sleep 0.1; done";
    let mut job = grant(1, json!({ "steps": [step] }));
    job["heartbeat_interval_seconds"] = json!(1_000);
    job["lease_ttl_seconds"] = json!(2_000);
    bench.fake.change(|world| {
        // Like a server that has no wait for a cancel.
        let fault = Fault::Code(StatusCode::NOT_FOUND, ErrorCode::NotFound);
        world.lasting.insert("await-cancel", fault);
        world.queue.push_back(job);
    });
    let running = bench.start(1);
    bench.fake.until("the job's output", |world| world.log().contains("line\n")).await;
    bench.fake.change(|world| world.cancel = Some(4));
    running.end().await.unwrap();
    assert_eq!(bench.outcomes(), [Outcome::Canceled]);
    let asked = &bench.fake.world.borrow().asked;
    let waits = asked.iter().filter(|path| path.ends_with("/await-cancel")).count();
    assert_eq!(waits, 1, "what is not there is not asked for again");
}

#[tokio::test]
async fn a_runner_that_ends_leaves_its_job_to_others() {
    let bench = Bench::new();
    let (job, marker) = endless(&bench, 1);
    bench.fake.change(|world| world.queue.push_back(job));
    let running = bench.start(2);
    ready(&bench).await;
    running.stopper.stop();
    running.end().await.unwrap();
    assert_eq!(bench.outcomes(), [Outcome::Stopped]);
    assert!(!is_anywhere(&marker));
    let log = bench.log();
    assert!(log.contains("[runner] The runner ends, stopped during step: trap"), "{log}");
    let world = bench.fake.world.borrow();
    assert!(world.of("complete").is_empty() && world.of("cancel-ack").is_empty());
    assert_eq!(world.of("lease").len(), 1);
}

#[tokio::test]
async fn a_runner_that_drains_finishes_its_job_and_takes_no_other() {
    let bench = Bench::new();
    let go = bench.home.path().join("go");
    let step = format!("echo ready; until [ -e {} ]; do sleep 0.02; done", go.display());
    bench.fake.change(|world| {
        let steps = json!([step, "echo last"]);
        world.queue.extend([1, 2].map(|number| grant(number, json!({ "steps": steps }))));
    });
    let running = bench.start(2);
    ready(&bench).await;
    running.stopper.drain();
    // Heartbeats continue.
    let beats = bench.fake.world.borrow().of("heartbeat").len();
    bench.fake.until("heartbeats", |world| world.of("heartbeat").len() > beats + 1).await;
    std::fs::write(go, "").unwrap();
    running.end().await.unwrap();
    assert_eq!(bench.outcomes(), [Outcome::Succeeded]);
    assert!(bench.log().ends_with("$ echo last\nlast\n"), "{}", bench.log());
    assert_eq!(bench.message("complete")["status"], "SUCCEEDED");
    assert_eq!(bench.fake.world.borrow().of("lease").len(), 1);
}

#[tokio::test]
async fn a_runner_that_drains_can_still_be_stopped() {
    let bench = Bench::new();
    let (job, marker) = endless(&bench, 1);
    bench.fake.change(|world| world.queue.push_back(job));
    let running = bench.start(2);
    ready(&bench).await;
    running.stopper.drain();
    running.stopper.stop();
    // Requests to end stay.
    running.stopper.drain();
    running.end().await.unwrap();
    assert_eq!(bench.outcomes(), [Outcome::Stopped]);
    assert!(!is_anywhere(&marker));
    assert!(bench.fake.world.borrow().of("complete").is_empty());
}

#[tokio::test]
async fn a_log_that_the_server_has_lost_the_end_of_is_sent_again() {
    let bench = Bench::new();
    let go = bench.home.path().join("go");
    let wait = format!("until [ -e {} ]; do sleep 0.02; done", go.display());
    let step = format!("seq 1 40000; echo ready; {wait}; seq 40001 80000");
    bench.fake.change(|world| world.queue.push_back(grant(1, json!({ "steps": [step] }))));
    let running = bench.start(1);
    ready(&bench).await;
    bench.fake.change(|world| world.log.truncate(100_000));
    std::fs::write(go, "").unwrap();
    running.end().await.unwrap();
    assert_eq!(bench.outcomes(), [Outcome::Succeeded]);
    let log = bench.log();
    let numbers = log.lines().skip(1).filter(|line| *line != "ready");
    assert!(numbers.map(|line| line.parse::<u32>().unwrap()).eq(1..=80_000));
}

#[tokio::test]
async fn a_log_that_is_full_or_refused_is_no_failure() {
    let bench = Bench::new();
    bench.fake.change(|world| world.log_limit = Some(100_000));
    let job = |number| grant(number, json!({ "steps": ["seq 1 800000", "exit 3"] }));
    let summary = |why| format!("step 2 of 2 failed with exit code 3: exit 3 ({why})");
    let full = summary("the log is cut off: the server's limit");
    assert_eq!(bench.run([job(1)]).await, [Outcome::Failed(full.clone())]);
    assert!(bench.log().len() <= 100_000);
    assert_eq!(bench.message("complete")["summary"], full);

    let bench = Bench::new();
    // A server that stores nothing, whatever it receives.
    let fault = Fault::Code(StatusCode::CONFLICT, ErrorCode::LogGap);
    bench.fake.change(|world| world.lasting.insert("log", fault));
    let refused = summary("the log is cut off: as the test wants");
    assert_eq!(bench.run([job(2)]).await, [Outcome::Failed(refused)]);
}

#[tokio::test]
async fn a_log_that_does_not_go_out_holds_its_writer_up() {
    let bench = Bench::new();
    let count = bench.home.path().join("count");
    // Far more than the log keeps; each piece is counted.
    let step = format!(
        "i=0; while [ $i -lt 100 ]; do head -c 65536 /dev/zero | tr '\\0' x; i=$((i+1)); \
         echo $i > {}; done",
        count.display()
    );
    bench.fake.change(|world| {
        world.lasting.insert("log", Fault::Unavailable);
        world.queue.push_back(grant(1, json!({ "steps": [step] })));
    });
    let running = bench.start(1);
    let beats = |world: &fake::World| world.of("heartbeat").len();
    bench.fake.until("some heartbeats", |world| beats(world) > 3).await;
    let written: u32 = std::fs::read_to_string(&count).unwrap().trim().parse().unwrap();
    assert!(written < 40, "{written} pieces");
    bench.fake.change(|world| world.lasting.clear());
    running.end().await.unwrap();
    assert_eq!(bench.outcomes(), [Outcome::Succeeded]);
    assert!(bench.log().ends_with(&"x".repeat(100 * 65_536)));
}
