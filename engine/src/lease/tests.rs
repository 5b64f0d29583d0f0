//! Needs, retries, capabilities, the stored form, and messages at random.

use super::*;
use crate::primitives::{
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
    board.submit("run".into(), jobs, 0).unwrap();
    board
}

/// Asks for work as `r`, capable of nothing in particular.
fn lease(board: &mut Board, n: u64, now: u64) -> Option<String> {
    let (runner, capabilities) = ("r".into(), BTreeSet::new());
    let request = Request { runner: &runner, capabilities: &capabilities, lease: key(n) };
    board.lease(request, now).map(|granted| granted.job.0)
}

fn finish(board: &mut Board, n: u64, succeeded: bool, now: u64) -> String {
    let id = lease(board, n, now).expect("a job");
    board.ack(&key(n), &"r".into(), &id, now).unwrap();
    assert_eq!(board.complete(&key(n), &"r".into(), succeeded, said(0), now), Ok(true));
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
fn a_failure_cancels_all_that_need_it_however_long_the_row() {
    let names: Vec<String> = (0..grant::MAX_RUN_JOBS).map(|n| format!("{n:04}")).collect();
    let jobs = names.iter().enumerate().map(|(n, id)| match n {
        0 => job(id, &[]),
        _ => job(id, &[&names[n - 1]]),
    });
    let mut board = board(jobs.collect());
    finish(&mut board, 1, false, 0);
    assert_eq!(state(&board, &names[0]), JobState::Failed);
    for id in &names[1..] {
        let job = board.job(id).unwrap();
        assert_eq!((job.state(), job.finalized()), (JobState::Canceled, 1));
        assert_eq!(job.end(), Some((0, Why::NeedFailed)));
    }
    assert!(board.forget("run"));
    assert!(board.job(&names[0]).is_none() && board.run("run").is_none());
}

#[test]
fn runs_that_cannot_end_are_refused_whole() {
    let check = |jobs: Vec<NewJob>, expected: &str| {
        let mut board = Board::new(Config::default()).unwrap();
        let refused = board.submit("run".into(), jobs, 0).unwrap_err();
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
        let request = Request { runner: &runner, capabilities: &capabilities, lease: key(n) };
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
        board.complete(&key(1), &"r".into(), false, said(0), 0).unwrap();
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
        board.advance(65 * SECOND - 1);
        assert_eq!(state(&board, "j"), JobState::Starting);
        board.advance(65 * SECOND);
        assert_eq!(state(&board, "j"), expected);
        let late = board.complete(&key(1), &"r".into(), true, said(0), 65 * SECOND);
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
        "the form has changed: databases of leases cannot be read any more"
    );
}

/// Whatever comes in whatever order: what must hold holds, and a board that was written down and
/// read again goes on as the one it was.
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
                        job
                    });
                    let jobs = jobs.collect();
                    board.submit(RunId(runs.to_string()), jobs, now).unwrap();
                }
                0..=3 => {
                    leases += 1;
                    let capabilities = BTreeSet::new();
                    let request = Request {
                        runner: &runner,
                        capabilities: &capabilities,
                        lease: key(leases),
                    };
                    let _granted = board.lease(request, now);
                }
                4 | 5 => drop(board.ack(&lease, &runner, &id, now)),
                6 | 7 => drop(board.heartbeat(&lease, &runner, now)),
                8 => drop(board.complete(&lease, &runner, draw(2) == 0, said(draw(2)), now)),
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
                assert_eq!(job.position().is_some(), board.queue().any(|other| other == id));
                if let Some(state) = ended.get(id) {
                    assert_eq!(job.state(), *state, "{id} had ended");
                } else if job.state().is_terminal() {
                    ended.insert(id.clone(), job.state());
                }
            }
            if step % 1_000 == round * 10 {
                let stored: Vec<Job> =
                    board.jobs().map(|job| from_slice(&to_vec(job)).unwrap()).collect();
                let again = Board::restore(*board.config(), stored).unwrap();
                assert!(again.jobs().eq(board.jobs()) && again.queue().eq(board.queue()));
                assert_eq!(again.next_wake(), board.next_wake());
                board = again;
            }
        }
        assert!(ended.len() > 100, "the round should end jobs");
    }
}
