//! Needs, retries, capabilities, the stored form, and random messages.

use super::*;
use cowboy_engine::primitives::{
    Hash,
    codec::{from_slice, to_vec},
    keccak256,
};
use std::collections::{BTreeMap, BTreeSet};

const SECOND: u64 = 1_000;

fn rules() -> Rules {
    Rules {
        requires: Vec::new(),
        max_runtime_seconds: 3_600,
        max_attempts: 3,
        retry_on: RetryOn::default(),
        backoff_seconds: None,
        run_if: None,
        allow_failure: None,
        concurrency: None,
    }
}

fn job(id: &str, needs: &[&str]) -> NewJob {
    NewJob {
        id: id.into(),
        rules: rules(),
        needs: needs.iter().copied().map(JobId::from).collect(),
    }
}

fn key(n: u64) -> LeaseKey {
    LeaseKey::of(&n.to_string())
}

fn said(n: u64) -> Hash {
    keccak256(&[&n.to_be_bytes()])
}

fn board(jobs: Vec<NewJob>) -> Board {
    let mut board = Board::new(Config::default()).unwrap();
    board.submit("run".into(), None, jobs, 0).unwrap();
    board
}

/// Requests work for runner `r` without capabilities.
fn lease(board: &mut Board, n: u64, now: u64) -> Option<String> {
    let (runner, capabilities) = ("r".into(), BTreeSet::new());
    let request = WorkRequest { runner: &runner, capabilities: &capabilities, lease: key(n) };
    board.lease(request, now).map(|granted| granted.job.0)
}

fn finish(board: &mut Board, n: u64, succeeded: bool, now: u64) -> String {
    let id = lease(board, n, now).expect("a job");
    board.ack(&key(n), &"r".into(), &id, now).unwrap();
    let done = if succeeded { Done::Succeeded } else { Done::Failed };
    assert_eq!(board.complete(&key(n), &"r".into(), done, said(0), now), Ok(true));
    id
}

fn state(board: &Board, id: &str) -> JobState {
    board.job(id).expect("a job").state()
}

#[test]
fn jobs_wait_for_those_they_need() {
    let mut board = board(vec![job("a", &["b", "c"]), job("b", &[]), job("c", &["b"])]);
    assert_eq!(finish(&mut board, 1, true, 0), "b");
    assert_eq!(finish(&mut board, 2, true, 0), "c");
    assert_eq!(finish(&mut board, 3, true, 0), "a");
    assert_eq!(lease(&mut board, 4, 0), None);
}

#[test]
fn a_failure_skips_all_that_need_it_however_long_the_row() {
    let names: Vec<String> = (0..board::MAX_RUN_JOBS).map(|n| format!("{n:04}")).collect();
    let jobs = names.iter().enumerate().map(|(n, id)| match n {
        0 => job(id, &[]),
        _ => job(id, &[&names[n - 1]]),
    });
    let mut board = board(jobs.collect());
    finish(&mut board, 1, false, 0);
    assert_eq!(state(&board, &names[0]), JobState::Failed);
    for id in &names[1..] {
        let job = board.job(id).unwrap();
        assert_eq!((job.state(), job.finalized()), (JobState::Skipped, 1));
        assert_eq!(job.end(), Some((0, Why::NeedFailed)));
    }
    assert!(board.forget("run"));
    assert!(board.job(&names[0]).is_none() && board.run("run").is_none());
}

/// A job with this condition on its needs.
fn job_if(id: &str, needs: &[&str], run_if: RunIf) -> NewJob {
    let mut job = job(id, needs);
    job.rules.run_if = Some(run_if);
    job
}

#[test]
fn conditions_say_after_which_ends_a_job_runs() {
    let after = |end: fn(&mut Board), allow_failure: bool| {
        let mut a = job("a", &[]);
        a.rules.allow_failure = Some(allow_failure);
        let mut board = board(vec![
            a,
            job("b", &[]),
            job("then", &["a", "b"]),
            job("then-then", &["then"]),
            job_if("failed", &["a", "b"], RunIf::Failure),
            job_if("failed-above", &["then-then"], RunIf::Failure),
            job_if("always", &["a", "then"], RunIf::Always),
        ]);
        end(&mut board);
        let states = ["then", "then-then", "failed", "failed-above", "always"];
        states.map(|id| {
            let job = board.job(id).unwrap();
            (job.state(), job.position().is_some(), job.end().map(|(_, why)| why))
        })
    };
    let (waits, queued) = ((JobState::Queued, false, None), (JobState::Queued, true, None));
    let skipped = |why| (JobState::Skipped, false, Some(why));
    let well = |board: &mut Board| {
        finish(board, 1, true, 0);
        finish(board, 2, true, 0);
    };
    let none = skipped(Why::NoNeedFailed);
    assert_eq!(after(well, false), [queued, waits, none, waits, waits]);
    let badly = |board: &mut Board| {
        finish(board, 1, false, 0);
        finish(board, 2, true, 0);
    };
    let failed = skipped(Why::NeedFailed);
    assert_eq!(after(badly, false), [failed, failed, queued, queued, queued]);
    assert_eq!(after(badly, true), [queued, waits, none, waits, waits]);
    // The failure of a needed job decides before the others end, except for a job that waits for
    // all.
    let early = |board: &mut Board| {
        finish(board, 1, false, 0);
    };
    assert_eq!(after(early, false), [failed, failed, waits, queued, queued]);
    let canceled = |board: &mut Board| {
        board.cancel("a", 0).unwrap();
        finish(board, 1, true, 0);
    };
    let unfinished = skipped(Why::NeedUnfinished);
    let expected = [unfinished, unfinished, unfinished, unfinished, queued];
    assert_eq!(after(canceled, false), expected);
}

#[test]
fn a_job_pauses_before_it_is_tried_again() {
    let mut paused = job("a", &[]);
    paused.rules.backoff_seconds = Some(10);
    paused.rules.max_attempts = 100;
    paused.rules.retry_on.failure = true;
    let mut board = board(vec![paused]);
    let mut now = 0;
    for (n, pause) in [(1, 10), (2, 20), (3, 40), (4, 80)] {
        finish(&mut board, n, false, now);
        let resumes = now + pause * SECOND;
        let job = board.job("a").unwrap();
        assert_eq!((job.state(), job.resumes_at()), (JobState::Queued, Some(resumes)));
        // The same holds after a restart.
        let kept: LeaseJob = from_slice(&to_vec(job)).unwrap();
        assert_eq!(kept, *job);
        let restored = Board::restore(Config::default(), [kept]).unwrap();
        assert_eq!(restored.next_wake(), Some(resumes));
        assert_eq!((lease(&mut board, 9, resumes - 1), board.next_wake()), (None, Some(resumes)));
        now = resumes;
        board.advance(now);
        assert!(board.job("a").unwrap().position().is_some());
    }
    for n in 5..20 {
        finish(&mut board, n, false, now);
        now = board.job("a").unwrap().resumes_at().unwrap();
    }
    finish(&mut board, 20, false, now);
    let longest = board.job("a").unwrap().resumes_at().unwrap() - now;
    assert_eq!(longest, config::MAX_BACKOFF_SECONDS * SECOND);
    // During the pause it can be canceled, and has no lease to revoke.
    assert_eq!(board.revoke("a", now), Err(Refusal::NotLeased));
    assert_eq!(board.cancel("a", now), Ok(JobState::Canceled));
    assert_eq!(board.next_wake(), None);
}

#[test]
fn runs_that_cannot_end_are_refused_whole() {
    let check = |jobs: Vec<NewJob>, expected: &str| {
        let mut board = Board::new(Config::default()).unwrap();
        let refused = board.submit("run".into(), None, jobs, 0).unwrap_err();
        assert_eq!(refused.to_string(), expected);
        assert_eq!((board.jobs().count(), board.drain()), (0, Changes::default()));
    };
    check(vec![], "a run has from 1 to 1000 jobs, not 0");
    check(vec![job("a", &[]), job("a", &[])], "the id `a` is taken");
    check(vec![job("a", &["b"])], "job `a` needs `b`, which the run does not have");
    check(vec![job("a", &["a"])], "job `a` needs itself, through others or directly");
    check(
        vec![job("a", &[]), job("b", &["a", "d"]), job("c", &["b"]), job("d", &["c"])],
        "job `b` needs itself, through others or directly",
    );
    let mut endless = job("a", &[]);
    endless.rules.max_attempts = 101;
    check(vec![endless], "job `a`: max_attempts is 101, not from 1 to 100");
}

#[test]
fn capabilities_decide_who_gets_what() {
    let mut linux = job("linux", &[]);
    linux.rules.requires = vec!["linux".into(), "x86_64".into()];
    let mut board = board(vec![linux, job("any", &[])]);
    let mut ask = |n, capabilities: &[&str]| {
        let capabilities = capabilities.iter().map(|tag| tag.to_string()).collect();
        let runner = "r".into();
        let request = WorkRequest { runner: &runner, capabilities: &capabilities, lease: key(n) };
        board.lease(request, 0).map(|granted| granted.job.0)
    };
    assert_eq!(ask(1, &["linux"]), Some("any".into()));
    assert_eq!(ask(2, &["linux"]), None);
    assert_eq!(ask(3, &["gpu", "linux", "x86_64"]), Some("linux".into()));
}

#[test]
fn a_job_is_tried_again_upon_what_it_asks_for() {
    use JobState::{Failed, Queued};

    let none = RetryOn { lease_lost: false, failure: false, timeout: false };
    for (retry_on, lost, failed) in [
        (none, Failed, Failed),
        (RetryOn { lease_lost: true, ..none }, Queued, Failed),
        (RetryOn { failure: true, ..none }, Failed, Queued),
        (RetryOn { timeout: true, ..none }, Failed, Failed),
    ] {
        let leased = || {
            let mut new = job("j", &[]);
            new.rules.retry_on = retry_on;
            let mut board = board(vec![new]);
            lease(&mut board, 1, 0).unwrap();
            board.ack(&key(1), &"r".into(), "j", 0).unwrap();
            board
        };
        let mut board = leased();
        board.advance(120 * SECOND);
        assert_eq!(state(&board, "j"), lost, "{retry_on:?}");
        let mut board = leased();
        board.complete(&key(1), &"r".into(), Done::Failed, said(0), 0).unwrap();
        assert_eq!(state(&board, "j"), failed, "{retry_on:?}");
    }
}

#[test]
fn a_job_that_takes_too_long_is_tried_again_where_it_asks_for_that() {
    for (timeout, expected) in [(false, JobState::TimedOut), (true, JobState::Queued)] {
        let mut new = job("j", &[]);
        new.rules.max_runtime_seconds = 60;
        new.rules.retry_on.timeout = timeout;
        let mut board = board(vec![new]);
        lease(&mut board, 1, 0).unwrap();
        board.ack(&key(1), &"r".into(), "j", 5 * SECOND).unwrap();
        board.advance(80 * SECOND - 1);
        assert_eq!(state(&board, "j"), JobState::Starting, "the grace is not over");
        board.advance(80 * SECOND);
        assert_eq!(state(&board, "j"), expected);
        let late = board.complete(&key(1), &"r".into(), Done::Succeeded, said(0), 80 * SECOND);
        assert_eq!(late, Err(Refusal::Stale(Stale::LeaseRevoked)));
    }
}

#[test]
fn a_revoked_lease_sends_the_job_back_to_the_queue() {
    let mut board = board(vec![job("a", &[]), job("b", &[])]);
    assert_eq!(board.revoke("a", 0), Err(Refusal::NotLeased));
    assert_eq!(board.revoke("x", 0), Err(Refusal::NotFound));
    lease(&mut board, 1, 0).unwrap();
    assert_eq!(board.revoke("a", 0), Ok(JobState::Queued));
    assert_eq!(lease(&mut board, 2, 0), Some("b".into()));
    assert_eq!(lease(&mut board, 3, 0), Some("a".into()));
    board.ack(&key(3), &"r".into(), "a", 0).unwrap();
    assert_eq!(board.active(&key(3), &"r".into(), 0), Ok(("a".into(), 2)));
    let stale = Err(Refusal::Stale(Stale::LeaseRevoked));
    assert_eq!(board.active(&key(1), &"r".into(), 0), stale);
    assert_eq!(board.active(&key(3), &"s".into(), 0), Err(Refusal::WrongRunner));
}

/// A job that has been running since 5 s and may take 60 s, followed by a grace of 15 s.
fn overtime(retry_on: RetryOn) -> Board {
    let mut new = job("j", &[]);
    new.rules.max_runtime_seconds = 60;
    new.rules.retry_on = retry_on;
    let mut board = board(vec![new]);
    lease(&mut board, 1, 0).unwrap();
    board.ack(&key(1), &"r".into(), "j", 5 * SECOND).unwrap();
    board
}

#[test]
fn a_job_whose_time_is_over_may_still_say_how_it_ended() {
    let none = RetryOn { lease_lost: true, failure: true, timeout: false };
    for (retry_on, expected) in
        [(none, JobState::TimedOut), (RetryOn { timeout: true, ..none }, JobState::Queued)]
    {
        for done in [Done::Succeeded, Done::Failed, Done::TimedOut] {
            let mut board = overtime(retry_on);
            let late = 80 * SECOND - 1;
            let active = board.active(&key(1), &"r".into(), late);
            assert_eq!(active, Ok(("j".into(), 1)), "uploads are taken");
            assert_eq!(board.complete(&key(1), &"r".into(), done, said(0), late), Ok(true));
            assert_eq!(state(&board, "j"), expected, "{done:?}");
            let (_, lease, _) = board.job("j").unwrap().attempts().next().unwrap();
            assert_eq!(lease, LeaseState::Completed);
            // A repeat of the same message is accepted, another message is stale.
            assert_eq!(board.complete(&key(1), &"r".into(), done, said(0), late), Ok(false));
            let other = board.complete(&key(1), &"r".into(), done, said(1), late);
            assert_eq!(other, Err(Refusal::Stale(Stale::LeaseCompleted)));
        }
    }
    // The holder's clock may be ahead: it reports itself that the time was over.
    let mut board = overtime(none);
    let early = 65 * SECOND - 1;
    assert_eq!(board.complete(&key(1), &"r".into(), Done::TimedOut, said(0), early), Ok(true));
    assert_eq!(board.job("j").unwrap().end(), Some((early, Why::MaxRuntime)));
}

#[test]
fn a_grace_is_not_extended() {
    let retry = RetryOn { lease_lost: true, failure: true, timeout: false };
    let mut board = overtime(retry);
    let beat = |board: &mut Board, now| board.heartbeat(&key(1), &"r".into(), now).unwrap();
    let ttl = 120 * SECOND;
    assert_eq!(beat(&mut board, 64 * SECOND), Beat { ttl, cancel: None, grace: None });
    let left = Beat { ttl: 15 * SECOND, cancel: None, grace: Some(15 * SECOND) };
    assert_eq!(beat(&mut board, 65 * SECOND), left);
    let left = Beat { ttl: SECOND, cancel: None, grace: Some(SECOND) };
    assert_eq!(beat(&mut board, 79 * SECOND), left);
    assert_eq!((state(&board, "j"), board.next_wake()), (JobState::Running, Some(80 * SECOND)));
    board.advance(80 * SECOND);
    assert_eq!(board.job("j").unwrap().end(), Some((80 * SECOND, Why::MaxRuntime)));
    let (_, lease, _) = board.job("j").unwrap().attempts().next().unwrap();
    assert_eq!(lease, LeaseState::Revoked);

    // A lost lease during the grace ends the job, because its own time is over.
    let mut board = overtime(retry);
    assert_eq!(board.revoke("j", 70 * SECOND), Ok(JobState::TimedOut));

    // A cancel during the grace gets no more time than was left.
    let mut board = overtime(RetryOn { timeout: true, ..retry });
    assert_eq!(board.cancel("j", 70 * SECOND), Ok(JobState::CancelRequested));
    let left = Beat { ttl, cancel: Some(9 * SECOND), grace: None };
    assert_eq!(beat(&mut board, 71 * SECOND), left);
    board.advance(80 * SECOND);
    assert_eq!(state(&board, "j"), JobState::Canceled);
}

#[test]
fn a_lease_that_lives_is_not_stale() {
    let mut board = board(vec![job("j", &[])]);
    lease(&mut board, 1, 0).unwrap();
    let r = || RunnerId::from("r");
    assert_eq!(board.heartbeat(&key(1), &r(), 0), Err(Refusal::NotAcked));
    assert_eq!(board.complete(&key(1), &r(), Done::Failed, said(0), 0), Err(Refusal::NotAcked));
    assert_eq!(board.active(&key(1), &r(), 0), Err(Refusal::NotAcked));
    board.ack(&key(1), &r(), "j", 0).unwrap();
    board.cancel("j", 0).unwrap();
    let completed = board.complete(&key(1), &r(), Done::Succeeded, said(0), 0);
    assert_eq!(completed, Err(Refusal::CancelRequested));
    let canceling = Some((30 * SECOND, Why::Requested));
    assert_eq!(board.job("j").unwrap().canceling(), canceling);
    assert_eq!(board.cancel_ack(&key(1), &r(), said(0), 0), Ok(true));
}

/// Submits runs of 1,000 jobs each; `requires` maps a run's number to its jobs' requirements.
fn fill(board: &mut Board, runs: usize, requires: impl Fn(usize) -> Vec<String>) {
    for run in 0..runs {
        let jobs = (0..board::MAX_RUN_JOBS).map(|n| {
            let mut job = job(&format!("{run}-{n}"), &[]);
            job.rules.requires = requires(run);
            job
        });
        board.submit(RunId(run.to_string()), None, jobs.collect(), 0).unwrap();
    }
}

#[test]
fn a_request_looks_at_each_set_of_requirements_once() {
    let mut board = Board::new(Config::default()).unwrap();
    // The order varies, and a requirement is repeated: there are still three sets.
    fill(&mut board, 98, |run| match run % 3 {
        0 => vec!["gpu".into(), "linux".into()],
        1 => vec!["linux".into(), "gpu".into(), "gpu".into()],
        _ => vec!["macos".into()],
    });
    let mut last = job("last", &[]);
    last.rules.requires = vec!["linux".into()];
    board.submit("last".into(), None, vec![last], 0).unwrap();
    assert_eq!((board.queued(), board.heads().count()), (98_001, 3));
    let capabilities = BTreeSet::from(["linux".to_owned()]);
    let runner = "r".into();
    let mut ask = |n| {
        let request = WorkRequest { runner: &runner, capabilities: &capabilities, lease: key(n) };
        board.lease(request, 0).map(|granted| granted.job.0)
    };
    assert_eq!((ask(1), ask(2)), (Some("last".into()), None));
}

#[test]
fn open_jobs_have_so_many_sets_of_requirements() {
    let mut board = Board::new(Config::default()).unwrap();
    let tagged = |run: &str, n: usize| {
        let mut job = job(&format!("{run}-{n}"), &[]);
        job.rules.requires = vec![format!("tag-{n}")];
        job
    };
    let jobs = (0..MAX_SETS).map(|n| tagged("a", n)).collect();
    board.submit("a".into(), None, jobs, 0).unwrap();
    let refused = board.submit("b".into(), None, vec![tagged("b", 0), tagged("b", MAX_SETS)], 0);
    assert_eq!(refused, Err(SubmitError::Sets(JobId(format!("b-{MAX_SETS}")))));
    assert!(board.run("b").is_none(), "all or none");
    // A set that exists has room, and when a job ends there is room for another set.
    board.submit("c".into(), None, vec![tagged("c", 0)], 0).unwrap();
    board.cancel("a-0", 0).unwrap();
    board.submit("d".into(), None, vec![tagged("d", MAX_SETS)], 0).unwrap_err();
    board.cancel("c-0", 0).unwrap();
    board.submit("d".into(), None, vec![tagged("d", MAX_SETS)], 0).unwrap();
    let stored: Vec<LeaseJob> = board.jobs().cloned().collect();
    let mut again = Board::restore(Config::default(), stored).unwrap();
    assert!(again.submit("e".into(), None, vec![tagged("e", MAX_SETS + 1)], 0).is_err());
}

#[test]
fn a_run_of_many_needs_is_checked_in_one_walk() {
    let half = board::MAX_RUN_JOBS / 2;
    let name = |kind: &str, n: usize| format!("{kind}{n:03}");
    let free = (0..half).map(|n| job(&name("a", n), &[]));
    let row = (0..half).map(|n| {
        let mut job = job(&name("b", n), &[]);
        job.needs = (0..half).map(|n| JobId(name("a", n))).collect();
        job.needs.extend((n + 1 < half).then(|| JobId(name("b", n + 1))));
        job
    });
    let board = board(free.chain(row).collect());
    assert_eq!(board.queued(), half);
}

/// A job in the group `deploy`.
fn grouped(id: &str, needs: &[&str], cancel: bool) -> NewJob {
    let mut job = job(id, needs);
    job.rules.concurrency = Some(Concurrency { group: "deploy".to_owned(), cancel });
    job
}

fn submit(board: &mut Board, run: &str, group: Option<(&str, bool)>, jobs: Vec<NewJob>) {
    let group = group.map(|(group, cancel)| Concurrency { group: group.to_owned(), cancel });
    board.submit(run.into(), group, jobs, 0).unwrap();
}

fn end(board: &Board, id: &str) -> (JobState, Option<Why>) {
    let job = board.job(id).expect("a job");
    (job.state(), job.end().map(|(_, why)| why))
}

const SUPERSEDED: (JobState, Option<Why>) = (JobState::Canceled, Some(Why::Superseded));

#[test]
fn jobs_of_a_group_take_turns_across_runs_and_requirements() {
    let mut board = board(vec![grouped("a", &[], false), grouped("c", &["a"], false)]);
    let mut b = grouped("b", &[], false);
    b.rules.requires = vec!["gpu".to_owned()];
    submit(&mut board, "second", None, vec![b, job("free", &[])]);
    assert_eq!(lease(&mut board, 1, 0).as_deref(), Some("a"));
    let first = ("deploy", &Member::Job("a".into()));
    assert_eq!(board.before("b"), Some(first));
    assert_eq!(finish(&mut board, 2, true, 0), "free");
    assert_eq!(lease(&mut board, 3, 0), None);
    // A lost lease does not give up the turn.
    board.ack(&key(1), &"r".into(), "a", 0).unwrap();
    board.revoke("a", 0).unwrap();
    assert_eq!(finish(&mut board, 4, true, 0), "a");
    // `c` joins when `a`, which it needs, has ended: after `b`.
    assert_eq!((board.before("b"), board.job("b").unwrap().position().is_some()), (None, true));
    assert_eq!(board.before("c"), Some(("deploy", &Member::Job("b".into()))));
    board.cancel("b", 0).unwrap();
    assert_eq!(finish(&mut board, 5, true, 0), "c");
}

#[test]
fn runs_of_a_group_take_turns() {
    let mut board = Board::new(Config::default()).unwrap();
    let pair = |a: &str, b: &str| vec![job(a, &[]), job(b, &[a])];
    submit(&mut board, "first", Some(("main", false)), pair("a", "b"));
    submit(&mut board, "second", Some(("main", false)), pair("c", "d"));
    submit(&mut board, "third", Some(("main", false)), vec![job("e", &[])]);
    submit(&mut board, "other", Some(("branch", false)), vec![job("f", &[])]);
    assert_eq!(board.before("e"), Some(("main", &Member::Run("first".into()))));
    let order = [(1, "a"), (2, "f"), (3, "b"), (4, "c"), (5, "d"), (6, "e")];
    for (n, id) in order {
        assert_eq!(finish(&mut board, n, true, 0), id);
    }
    // A job that waits for its turn can be canceled, and jobs that need it keep waiting for the
    // turn.
    submit(&mut board, "fourth", Some(("main", false)), pair("g", "h"));
    let after = vec![job("i", &[]), job_if("j", &["i"], RunIf::Always)];
    submit(&mut board, "fifth", Some(("main", false)), after);
    board.cancel("i", 0).unwrap();
    assert_eq!(board.before("j"), Some(("main", &Member::Run("fourth".into()))));
    board.cancel_run("fourth", 0).unwrap();
    assert_eq!(finish(&mut board, 7, true, 0), "j");
}

#[test]
fn a_later_member_can_take_the_place_of_all_before_it() {
    let mut board = Board::new(Config::default()).unwrap();
    let run = |board: &mut Board, name: &str, cancel| {
        let always = job_if(&format!("{name}-2"), &[name], RunIf::Always);
        submit(board, name, Some(("main", cancel)), vec![job(name, &[]), always]);
    };
    run(&mut board, "a", false);
    assert_eq!(lease(&mut board, 1, 0).as_deref(), Some("a"));
    board.ack(&key(1), &"r".into(), "a", 0).unwrap();
    run(&mut board, "b", false);
    run(&mut board, "c", true);
    for id in ["a-2", "b", "b-2"] {
        assert_eq!(end(&board, id), SUPERSEDED, "{id}");
    }
    // A running job is stopped first.
    assert_eq!(end(&board, "a"), (JobState::CancelRequested, None));
    assert_eq!(lease(&mut board, 2, 0), None);
    let stored: Vec<LeaseJob> = board.jobs().map(|job| from_slice(&to_vec(job)).unwrap()).collect();
    let mut board = Board::restore(*board.config(), stored).unwrap();
    board.cancel_ack(&key(1), &"r".into(), said(0), 0).unwrap();
    assert_eq!(end(&board, "a"), SUPERSEDED);
    assert_eq!(finish(&mut board, 3, true, 0), "c");
    assert_eq!(finish(&mut board, 4, true, 0), "c-2");
}

/// Works for any number of jobs that end in a chain because each takes the place of the one before.
#[test]
fn a_long_row_of_members_is_no_recursion() {
    let mut board = Board::new(Config::default()).unwrap();
    for run in 0..10 {
        let id = |n: usize| format!("{run}-{n}");
        let jobs = (0..board::MAX_RUN_JOBS).map(|n| grouped(&id(n), &[], false)).collect();
        submit(&mut board, &run.to_string(), Some(("main", true)), jobs);
    }
    assert_eq!(board.states()[&JobState::Canceled], 9 * board::MAX_RUN_JOBS);
    assert_eq!(board.queued(), 1);
    let cancels = (0..board::MAX_RUN_JOBS).map(|n| grouped(&format!("x-{n}"), &[], true));
    submit(&mut board, "last", None, cancels.collect());
    assert_eq!(board.queued(), 1);
    assert_eq!(lease(&mut board, 1, 0).as_deref(), Some("x-999"));
}

#[test]
fn the_stored_form_is_frozen() {
    let mut board = board(vec![job("a", &[]), job("b", &["a"]), job("c", &[])]);
    lease(&mut board, 1, SECOND).unwrap();
    board.ack(&key(1), &"r".into(), "a", 2 * SECOND).unwrap();
    board.heartbeat(&key(1), &"r".into(), 3 * SECOND).unwrap();
    finish(&mut board, 2, true, 4 * SECOND);
    let forms: Vec<u8> = board.jobs().flat_map(to_vec).collect();
    assert_eq!(
        hex::encode(keccak256(&[&forms]).0),
        "bdebf9fbbdbee58d823a9f0902ce68a7ecb17c63e21e4c89d5f0bfaeda03af7b",
        "the format has changed: existing lease databases become unreadable"
    );
}

/// One of a few groups, or none.
fn group(draw: &mut impl FnMut(u64) -> u64) -> Option<Concurrency> {
    let (which, cancel) = (draw(6), draw(4) == 0);
    (which < 3).then(|| Concurrency { group: which.to_string(), cancel })
}

/// At most one job of a group is queued or leased, and jobs of at most one run; and a job waits for
/// its turn only while another member of its group is.
fn turns_hold(board: &Board, groups: &BTreeMap<RunId, String>) {
    let (mut jobs, mut runs) = (BTreeSet::new(), BTreeMap::new());
    let at_work = |job: &&LeaseJob| job.position().is_some() || job.expires_at().is_some();
    for job in board.jobs().filter(at_work) {
        if let Some(own) = &job.rules().concurrency {
            assert!(jobs.insert(own.group.clone()), "{} is a second one", job.id());
        }
        if let Some(group) = groups.get(job.run()) {
            assert_eq!(runs.entry(group).or_insert(job.run()), &job.run());
        }
    }
    for job in board.jobs().filter(|job| job.waits_for_turn()) {
        let (_, first) = board.before(&job.id().0).expect("another member has the turn");
        let open = |job: &LeaseJob| !job.state().is_terminal();
        assert!(match first {
            Member::Job(first) => open(board.job(&first.0).unwrap()),
            Member::Run(run) => board.run(&run.0).unwrap().any(open),
        });
    }
}

/// Random messages in random order: the invariants hold, and a board that was stored and restored
/// behaves like the original.
#[test]
fn a_million_random_messages_break_nothing() {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = move |n: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % n
    };
    for round in 0..100 {
        let mut board = Board::new(Config::default()).unwrap();
        let mut ended: BTreeMap<JobId, JobState> = BTreeMap::new();
        let (mut now, mut runs, mut leases) = (0, 0, 0);
        let mut groups: BTreeMap<RunId, String> = BTreeMap::new();
        for step in 0..10_000_u64 {
            let (lease, runner) = (key(draw(leases + 1)), RunnerId(format!("r{}", draw(3))));
            let id = format!("{}-{}", draw(runs + 1), draw(4));
            match draw(12) {
                0 if runs < 200 => {
                    runs += 1;
                    let id = |n: u64| format!("{runs}-{n}");
                    let jobs = (0..4).map(|n| {
                        let mut job = job(&id(n), &[]);
                        job.needs.extend((0..n).filter(|_| draw(3) == 0).map(|n| JobId(id(n))));
                        job.rules.max_attempts = 1 + draw(3) as u32;
                        job.rules.max_runtime_seconds = 1 + draw(300);
                        let [lease_lost, failure, timeout] = [(); 3].map(|()| draw(2) == 0);
                        job.rules.retry_on = RetryOn { lease_lost, failure, timeout };
                        job.rules.concurrency = group(&mut draw);
                        job
                    });
                    let jobs = jobs.collect();
                    let group = group(&mut draw);
                    groups.extend(group.clone().map(|own| (RunId(runs.to_string()), own.group)));
                    board.submit(RunId(runs.to_string()), group, jobs, now).unwrap();
                }
                0..=3 => {
                    leases += 1;
                    let capabilities = BTreeSet::new();
                    let request = WorkRequest {
                        runner: &runner,
                        capabilities: &capabilities,
                        lease: key(leases),
                    };
                    let _granted = board.lease(request, now);
                }
                4 | 5 => drop(board.ack(&lease, &runner, &id, now)),
                6 | 7 => drop(board.heartbeat(&lease, &runner, now)),
                8 => {
                    let done = [Done::Succeeded, Done::Failed, Done::TimedOut];
                    let done = done[draw(3) as usize];
                    let _news = board.complete(&lease, &runner, done, said(draw(2)), now);
                }
                9 => drop(board.cancel_ack(&lease, &runner, said(draw(2)), now)),
                10 if draw(4) == 0 => drop(board.cancel(&id, now)),
                10 if draw(4) == 0 => drop(board.revoke(&id, now)),
                _ => {
                    now += draw(20) * SECOND;
                    board.advance(now);
                }
            }
            let changes = board.drain();
            for id in &changes.jobs {
                let job = board.job(&id.0).expect("what has changed is there");
                assert_eq!(job.finalized(), u32::from(job.state().is_terminal()));
                let usable = |state| matches!(state, LeaseState::Granted | LeaseState::Active);
                let live = job.attempts().filter(|(_, state, _)| usable(*state)).count();
                assert_eq!(live, usize::from(job.expires_at().is_some()));
                assert!(job.expires_at().is_none_or(|at| at > now));
                let mut queue = board.queue();
                assert_eq!(job.position().is_some(), queue.any(|(_, other)| other == id));
                if let Some(state) = ended.get(id) {
                    assert_eq!(job.state(), *state, "{id} had ended");
                } else if job.state().is_terminal() {
                    ended.insert(id.clone(), job.state());
                }
            }
            if step % 100 == round {
                turns_hold(&board, &groups);
            }
            if step % 1_000 == round * 10 {
                let stored: Vec<LeaseJob> =
                    board.jobs().map(|job| from_slice(&to_vec(job)).unwrap()).collect();
                let again = Board::restore(*board.config(), stored).unwrap();
                assert!(again.jobs().eq(board.jobs()) && again.queue().eq(board.queue()));
                assert_eq!(again.next_wake(), board.next_wake());
                let counts = |board: &Board| {
                    JobState::ALL
                        .iter()
                        .map(|state| board.states().get(state).copied().unwrap_or(0))
                        .collect::<Vec<_>>()
                };
                let states = JobState::ALL.iter();
                let walked =
                    states.map(|state| board.jobs().filter(|job| job.state() == *state).count());
                assert_eq!(counts(&board), walked.collect::<Vec<_>>());
                assert_eq!(counts(&again), counts(&board));
                assert_eq!(board.queued(), board.queue().count());
                board = again;
            }
        }
        assert!(ended.len() > 100, "the round should end jobs");
    }
}
