//! The table's answer to each offer, and what it keeps and forgets.

use super::{super::MAX_PEER_STREAMS, *};
use crate::{
    primitives::{Address, SecretKey, keccak256},
    wire::{Body, JobAggregate, Reason, RevealedResult, Reveals},
};

const CHAIN: u64 = 1;

fn validator(name: &str) -> SecretKey {
    SecretKey::derive(b"jobs", name)
}

fn job(i: u32) -> Hash {
    keccak256(&[&i.to_be_bytes()])
}

fn result(i: u32, bytes: usize) -> JobResult {
    let body = Body::new(vec![0; bytes]).unwrap();
    JobResult::signed(CHAIN, &validator("runner"), job(i), body)
}

fn failure(i: u32) -> JobFailure {
    let reason = Reason::truncated("exited with 3");
    JobFailure::signed(CHAIN, &validator("runner"), job(i), reason)
}

/// Validator `from` assigns job `i`, due by block 20, at head 10.
fn offer(table: &mut JobTable, from: &str, i: u32) -> Offer {
    decide(table, from, attempt(i, 20)).offer
}

/// Job `i`, assigned by block 9 and due by block `deadline`.
fn attempt(i: u32, deadline: u64) -> ProposedAttempt {
    ProposedAttempt { job_id: job(i), assigned_at: Height::new(9), deadline: Height::new(deadline) }
}

/// Validator `from` assigns an attempt at head 10.
fn decide(table: &mut JobTable, from: &str, attempt: ProposedAttempt) -> Decided {
    table.offer(&validator(from).public_key(), attempt, Height::new(10), || Ok(()))
}

/// Validator `from` cancels all attempts at job `i`.
fn cancel(table: &mut JobTable, from: &str, i: u32) -> bool {
    table.cancel(&job(i), Height::new(1_000), &validator(from).public_key())
}

#[test]
fn the_first_assignment_is_taken_and_the_others_are_duplicates() {
    let mut table = JobTable::new(2);
    assert_eq!(offer(&mut table, "a", 0), Offer::Accept);
    assert_eq!(offer(&mut table, "b", 0), Offer::Duplicate);
    assert_eq!(offer(&mut table, "a", 0), Offer::Duplicate);
    assert_eq!(offer(&mut table, "b", 1), Offer::Accept);
    assert_eq!(table.active(), 2);
}

#[test]
fn a_job_that_is_polled_and_pushed_runs_once() {
    let mut table = JobTable::new(1);
    let head = Height::new(10);
    let polled =
        |table: &mut JobTable, i| table.offer_proved(attempt(i, 20), head, || Ok(())).offer;
    assert_eq!(polled(&mut table, 0), Offer::Accept);
    assert_eq!(polled(&mut table, 0), Offer::Duplicate);
    assert_eq!(offer(&mut table, "a", 0), Offer::Duplicate);
    assert_eq!(polled(&mut table, 1), Offer::Reject(RejectReason::AtCapacity));
    let done = table.finish(result(0, 3)).unwrap();
    assert_eq!(polled(&mut table, 0), Offer::Duplicate);
    assert_eq!(offer(&mut table, "b", 0), Offer::HandOver(JobReport::Result(done)));
    assert!(!table.give_up(&job(0)));
    assert_eq!(polled(&mut table, 0), Offer::Duplicate);
    let late = table.offer_proved(attempt(2, 9), head, || Ok(()));
    assert_eq!(late.offer, Offer::Reject(RejectReason::DeadlinePassed));
}

#[test]
fn what_cannot_be_taken_is_rejected_in_the_order_of_the_checks() {
    let key = validator("a");
    let check = |head, verdict: Result<(), RejectReason>, expected| {
        let mut table = JobTable::new(0);
        let from = key.public_key();
        let decided = table.offer(&from, attempt(0, 20), Height::new(head), || verdict);
        assert_eq!(decided.offer, Offer::Reject(expected));
    };
    let unsupported = Err(RejectReason::UnsupportedKind);
    check(21, unsupported, RejectReason::DeadlinePassed);
    check(20, unsupported, RejectReason::UnsupportedKind);
    check(20, Ok(()), RejectReason::AtCapacity);
}

#[test]
fn load_is_shed_only_after_a_rejection_until_a_slot_is_free() {
    let mut table = JobTable::new(1);
    offer(&mut table, "a", 0);
    assert!(table.signal(false).accepting_new);
    assert_eq!(offer(&mut table, "a", 1), Offer::Reject(RejectReason::AtCapacity));
    assert!(!table.signal(false).accepting_new);
    assert_eq!(
        offer(&mut table, "b", 1),
        Offer::Reject(RejectReason::AtCapacity),
        "an attempt has one answer"
    );
    cancel(&mut table, "a", 0);
    assert!(table.signal(false).accepting_new);
    assert!(!table.signal(true).accepting_new);
    assert_eq!(offer(&mut table, "a", 0), Offer::Duplicate);
    assert_eq!(offer(&mut table, "b", 1), Offer::Reject(RejectReason::AtCapacity));
    assert_eq!(decide(&mut table, "a", attempt(1, 30)).offer, Offer::Accept);
}

#[test]
fn a_result_is_handed_over_until_taken_and_to_whoever_asks_again() {
    let mut table = JobTable::new(1);
    offer(&mut table, "a", 0);
    offer(&mut table, "b", 0);
    let done = table.finish(result(0, 3)).unwrap();
    let done = JobReport::Result(done);
    assert_eq!(table.undelivered().collect::<Vec<_>>(), std::slice::from_ref(&done));
    assert_eq!(offer(&mut table, "c", 0), Offer::HandOver(done.clone()));
    table.delivered(&job(0), Some(&validator("c").public_key()));
    assert_eq!(table.undelivered().count(), 0);
    assert_eq!(offer(&mut table, "d", 0), Offer::Duplicate);
    assert_eq!(offer(&mut table, "a", 0), Offer::HandOver(done));
    assert_eq!(table.finish(result(0, 3)), None);
}

#[test]
fn a_failure_is_handed_over_like_a_result_and_frees_the_slot() {
    let mut table = JobTable::new(1);
    offer(&mut table, "a", 0);
    let failed = JobReport::Failure(table.fail(failure(0)).unwrap());
    assert_eq!(table.active(), 0);
    assert_eq!(table.undelivered().collect::<Vec<_>>(), std::slice::from_ref(&failed));
    assert_eq!(offer(&mut table, "b", 0), Offer::HandOver(failed.clone()));
    table.delivered(&job(0), Some(&validator("b").public_key()));
    assert_eq!(table.undelivered().count(), 0);
    assert_eq!(offer(&mut table, "c", 0), Offer::Duplicate);
    assert_eq!(offer(&mut table, "a", 0), Offer::HandOver(failed));
    assert_eq!(table.reveal(&job(0), None), None, "there is nothing to show");
    assert_eq!((table.fail(failure(0)), table.finish(result(0, 3))), (None, None));

    offer(&mut table, "a", 1);
    cancel(&mut table, "a", 1);
    assert_eq!(table.fail(failure(1)), None, "the job does not run");
    table.advance(Height::new(21));
    assert_eq!((table.undelivered().count(), table.result_bytes), (0, 0));
}

#[test]
fn a_cancelled_job_is_stopped_once_and_not_started_again() {
    let mut table = JobTable::new(1);
    offer(&mut table, "a", 0);
    assert!(cancel(&mut table, "a", 0));
    assert!(!cancel(&mut table, "a", 0));
    assert_eq!(table.finish(result(0, 1)), None);
    assert_eq!(offer(&mut table, "b", 0), Offer::Duplicate);

    offer(&mut table, "a", 1);
    table.finish(result(1, 1));
    assert!(!cancel(&mut table, "a", 1));
    assert_eq!(table.undelivered().count(), 0);
}

#[test]
fn deadlines_end_everything() {
    let mut table = JobTable::new(3);
    for i in 0..3 {
        offer(&mut table, "a", i);
    }
    table.finish(result(1, 1));
    table.fail(failure(2)).unwrap();
    assert_eq!(table.advance(Height::new(20)), []);
    assert_eq!(table.advance(Height::new(21)), [job(0)]);
    assert_eq!((table.active(), table.undelivered().count()), (0, 0));
}

#[test]
fn results_are_bounded_and_delivered_ones_go_first() {
    let mut table = JobTable::new(8);
    let largest = MAX_RESULT_BYTES / 4;
    for i in 0..5 {
        assert_eq!(offer(&mut table, "a", i), Offer::Accept);
        table.finish(result(i, largest - 1024)).unwrap();
        if i == 3 {
            table.delivered(&job(3), Some(&validator("a").public_key()));
        }
    }
    assert_eq!(table.result_bytes, 4 * (largest - 1024));
    assert_eq!(table.undelivered().count(), 4);
    assert_eq!(offer(&mut table, "a", 3), Offer::Duplicate);

    for i in 5..5 + 2 * MAX_RESULTS as u32 {
        offer(&mut table, "a", i);
        table.finish(result(i, 0));
    }
    assert_eq!(table.finished.len(), MAX_RESULTS);
}

/// Finishes job `i` with a commitment.
fn commit(table: &mut JobTable, i: u32) -> (JobResult, JobReport) {
    let done = result(i, 3);
    let deadline = table.deadline(&job(i)).unwrap();
    let key = validator("runner");
    let commit = JobCommit::signed(CHAIN, &key, job(i), deadline, done.commitment());
    let delivery = JobReport::Commit(table.commit(done.clone(), commit).unwrap());
    (done, delivery)
}

#[test]
fn a_result_of_a_committee_is_committed_to_and_shown_when_asked_for() {
    let mut table = JobTable::new(2);
    offer(&mut table, "a", 0);
    assert_eq!(table.reveal(&job(0), None), None, "it still runs");
    let (done, delivery) = commit(&mut table, 0);
    assert_eq!(table.undelivered().collect::<Vec<_>>(), std::slice::from_ref(&delivery));
    assert_eq!(offer(&mut table, "b", 0), Offer::HandOver(delivery));
    table.delivered(&job(0), Some(&validator("a").public_key()));
    assert_eq!(table.undelivered().count(), 0);
    assert_eq!(table.reveal(&job(0), None).as_deref(), Some(&done));
    assert_eq!(table.reveal(&job(0), None).as_deref(), Some(&done), "as often as it is asked for");
    table.advance(Height::new(21));
    assert_eq!(table.reveal(&job(0), None), None, "the deadline has passed");

    offer(&mut table, "a", 1);
    table.finish(result(1, 3));
    assert_eq!(table.reveal(&job(1), None), None, "nothing was committed to");
}

#[test]
fn a_commitment_that_may_be_lost_is_delivered_again() {
    let [a, b] = ["a", "b"].map(|name| validator(name).public_key());
    let mut table = JobTable::new(2);
    for i in 0..2 {
        offer(&mut table, "a", i);
        commit(&mut table, i);
        table.delivered(&job(i), Some(&a));
    }
    table.reveal(&job(1), Some(&b));
    table.lost(&b);
    assert_eq!(table.undelivered().count(), 0, "b took none");
    table.lost(&a);
    let again: Vec<_> = table.undelivered().map(|delivery| delivery.job_id()).collect();
    assert_eq!(again, [job(0)], "job 1 is on the chain");
}

#[test]
fn a_committees_results_are_signed_once_a_height_and_with_the_own_one_among_them() {
    let mut table = JobTable::new(2);
    offer(&mut table, "a", 0);
    let (done, _) = commit(&mut table, 0);
    let own = validator("runner").address();
    let asked = |runner: Address, bytes: usize| {
        let result_data = Body::new(vec![0; bytes]).unwrap();
        let reveal = RevealedResult { runner, result_data, runner_signed: done.runner_signed };
        let reveals = Reveals::new(vec![reveal]).unwrap();
        JobAggregate::signed(CHAIN, &validator("a"), job(0), reveals)
    };
    let at = Height::new;
    assert!(!table.aggregate(&own, &asked(validator("a").address(), 3), at(11)));
    assert!(!table.aggregate(&own, &asked(own, 4), at(11)));
    assert!(table.aggregate(&own, &asked(own, 3), at(11)));
    assert!(!table.aggregate(&own, &asked(own, 3), at(11)), "another validator has it");
    assert!(table.aggregate(&own, &asked(own, 3), at(12)));
    let unknown = JobAggregate { job_id: job(1), ..asked(own, 3) };
    assert!(!table.aggregate(&own, &unknown, at(12)));
}

/// Validator `from` assigns job 0, due by `deadline`, at head 10.
fn offer_until(table: &mut JobTable, from: &str, deadline: u64) -> Offer {
    decide(table, from, attempt(0, deadline)).offer
}

#[test]
fn another_attempt_is_work_again_and_the_result_before_is_kept_until_it_is_done() {
    let mut table = JobTable::new(1);
    assert_eq!(offer_until(&mut table, "a", 20), Offer::Accept);
    let (first, _) = commit(&mut table, 0);
    table.delivered(&job(0), Some(&validator("a").public_key()));
    assert_eq!(offer_until(&mut table, "b", 20), Offer::Duplicate);
    assert_eq!(offer_until(&mut table, "b", 30), Offer::Accept);
    assert_eq!(offer_until(&mut table, "a", 30), Offer::Duplicate);
    assert_eq!(table.reveal(&job(0), None).as_deref(), Some(&first));
    let second = result(0, 5);
    let (key, deadline) = (validator("runner"), Height::new(30));
    let signed = JobCommit::signed(CHAIN, &key, job(0), deadline, second.commitment());
    let signed = table.commit(second.clone(), signed).unwrap();
    assert_eq!(table.undelivered().collect::<Vec<_>>(), [JobReport::Commit(signed)]);
    assert_eq!((table.result_bytes, table.finished.len()), (5, 1));
    assert_eq!(table.advance(Height::new(21)), []);
    assert_eq!(table.reveal(&job(0), None).as_deref(), Some(&second));

    assert!(!cancel(&mut table, "a", 0));
    assert_eq!(offer_until(&mut table, "a", 30), Offer::Duplicate, "that attempt is over");
    assert_eq!(offer_until(&mut table, "a", 40), Offer::Accept);
    assert_eq!(offer_until(&mut table, "b", 50), Offer::Duplicate);
    assert_eq!(table.advance(Height::new(50)), [], "it runs on");
    assert_eq!(table.advance(Height::new(51)), [job(0)]);
}

#[test]
fn a_restored_commitment_is_delivered_and_shown_and_not_worked_for_again() {
    let mut table = JobTable::new(1);
    let done = result(0, 3);
    let (key, deadline) = (validator("runner"), Height::new(20));
    let commit = JobCommit::signed(CHAIN, &key, job(0), deadline, done.commitment());
    table.restore(Pledge { result: done.clone(), commit: commit.clone(), deadline });
    let made = JobReport::Commit(commit);
    assert_eq!(table.undelivered().collect::<Vec<_>>(), std::slice::from_ref(&made));
    assert_eq!(offer_until(&mut table, "a", 20), Offer::HandOver(made));
    let polled = table.offer_proved(attempt(0, 20), Height::new(10), || Ok(()));
    assert_eq!(polled.offer, Offer::Duplicate);
    assert_eq!(table.reveal(&job(0), None).as_deref(), Some(&done));
    assert_eq!(table.active(), 0);
    table.advance(Height::new(20));
    assert_eq!(table.take_forgotten(), []);
    table.advance(Height::new(21));
    assert_eq!((table.take_forgotten(), table.result_bytes), (vec![job(0)], 0));
}

#[test]
fn a_commitment_is_forgotten_with_its_job_and_replaced_by_that_of_another_attempt() {
    let mut table = JobTable::new(1);
    assert_eq!(offer_until(&mut table, "a", 20), Offer::Accept);
    commit(&mut table, 0);
    assert_eq!(offer_until(&mut table, "a", 30), Offer::Accept);
    commit(&mut table, 0);
    assert_eq!(table.take_forgotten(), []);
    cancel(&mut table, "a", 0);
    assert_eq!(table.take_forgotten(), [job(0)]);
    assert_eq!(offer_until(&mut table, "a", 40), Offer::Accept);
    commit(&mut table, 0);
    assert_eq!(offer_until(&mut table, "a", 50), Offer::Accept);
    table.fail(failure(0)).unwrap();
    assert_eq!(table.take_forgotten(), [job(0)], "a report is not kept");
}

#[test]
fn results_that_will_be_asked_for_are_forgotten_last() {
    let mut table = JobTable::new(2);
    offer(&mut table, "a", 0);
    commit(&mut table, 0);
    let by = validator("a").public_key();
    table.delivered(&job(0), Some(&by));
    for i in 1..=MAX_RESULTS as u32 {
        offer(&mut table, "a", i);
        table.finish(result(i, 0));
        table.delivered(&job(i), Some(&by));
    }
    assert!(table.reveal(&job(0), None).is_some());
    assert_eq!(table.finished.len(), MAX_RESULTS);
}

#[test]
fn a_lower_limit_drops_nothing_and_says_when_it_is_reached() {
    let mut table = JobTable::new(3);
    for i in 0..2 {
        assert_eq!(offer(&mut table, "a", i), Offer::Accept);
    }
    assert!(table.signal(false).accepting_new);
    table.limit(1);
    let told = table.signal(false);
    assert_eq!((told.active_jobs, told.max_concurrent, told.accepting_new), (2, 1, false));
    assert_eq!(offer(&mut table, "a", 2), Offer::Reject(RejectReason::AtCapacity));
    assert_eq!(offer(&mut table, "b", 1), Offer::Duplicate);
    table.finish(result(0, 1));
    assert!(!table.signal(false).accepting_new, "one still runs, and one may");
    table.finish(result(1, 1));
    assert!(table.signal(false).accepting_new);
    assert_eq!(offer(&mut table, "a", 3), Offer::Accept);
    assert!(!table.signal(false).accepting_new);
    table.limit(3);
    assert!(table.signal(false).accepting_new);
}

#[test]
fn a_job_starts_when_more_assign_it_alike_than_may_lie() {
    let mut table = JobTable::new(2);
    table.require(3);
    let wait = Decided { offer: Offer::Wait, others: Vec::new() };
    assert_eq!(decide(&mut table, "a", attempt(0, 20)), wait);
    assert_eq!(decide(&mut table, "a", attempt(0, 20)), wait, "one validator counts once");
    assert_eq!(decide(&mut table, "b", attempt(0, 21)), wait, "another deadline");
    let another_block = ProposedAttempt { assigned_at: Height::new(8), ..attempt(0, 20) };
    assert_eq!(decide(&mut table, "c", another_block), wait, "another block");
    assert_eq!(decide(&mut table, "d", attempt(0, 20)), wait);
    assert_eq!(table.active(), 0);
    let decided = decide(&mut table, "e", attempt(0, 20));
    assert_eq!(decided.offer, Offer::Accept);
    // Validators that assigned the attempt, or one due no later, are answered.
    let names = |decided: &Decided| {
        ["a", "b", "c", "d", "e"]
            .into_iter()
            .filter(|name| decided.others.contains(&validator(name).public_key()))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (names(&decided), decided.others_status()),
        (vec!["a", "c", "d"], AckStatus::Duplicate)
    );
    // One validator does not move a running job's deadline.
    assert_eq!(decide(&mut table, "a", attempt(0, 99)), wait);
    assert_eq!(table.advance(Height::new(21)), [job(0)]);
}

#[test]
fn a_job_is_stopped_or_forgotten_when_more_cancel_it_than_may_lie() {
    let mut table = JobTable::new(2);
    table.require(2);
    for (i, from) in [(0, "a"), (0, "b"), (1, "a"), (1, "b")] {
        offer(&mut table, from, i);
    }
    let (done, _) = commit(&mut table, 1);
    assert!(!cancel(&mut table, "a", 0) && !cancel(&mut table, "a", 0));
    assert!(!cancel(&mut table, "a", 1));
    assert_eq!(table.reveal(&job(1), None).as_deref(), Some(&done), "one validator may lie");
    let earlier = table.cancel(&job(0), Height::new(19), &validator("b").public_key());
    assert!(!earlier, "it cancels the previous attempt");
    assert!(cancel(&mut table, "b", 0));
    assert_eq!(table.active(), 0);
    assert!(!cancel(&mut table, "c", 1), "it does not run");
    assert_eq!((table.reveal(&job(1), None), table.open_jobs()), (None, vec![]));
}

#[test]
fn a_proof_starts_what_one_validator_assigns_and_an_errand_needs_no_other() {
    let mut table = JobTable::new(2);
    table.require(2);
    let head = Height::new(10);
    assert_eq!(offer(&mut table, "a", 0), Offer::Wait);
    let decided = table.offer_proved(attempt(0, 20), head, || Ok(()));
    assert_eq!(decided.offer, Offer::Accept);
    assert_eq!(decided.others, [validator("a").public_key()]);
    let errand = table.offer_errand(&validator("a").public_key(), attempt(1, 20), head, || Ok(()));
    assert_eq!((errand.offer, errand.others), (Offer::Accept, vec![]));
    assert!(!cancel(&mut table, "b", 0), "one of two");
    assert!(!cancel(&mut table, "b", 1), "it came through another validator");
    assert!(cancel(&mut table, "a", 1), "it came through this one");
}

#[test]
fn what_liars_assign_is_bounded_and_goes_with_them() {
    let mut table = JobTable::new(1_000);
    table.require(2);
    let many = 2 * MAX_PEER_STREAMS as u32;
    for i in 0..many {
        assert_eq!(offer(&mut table, "liar", i), Offer::Wait);
    }
    let accepted = |i: &u32| offer(&mut table, "a", *i) == Offer::Accept;
    assert_eq!((0..many).filter(accepted).count(), MAX_PEER_STREAMS);
    offer(&mut table, "liar", many);
    table.lost(&validator("liar").public_key());
    assert_eq!(offer(&mut table, "b", many), Offer::Wait);
}

/// The ids of the deliveries that are due at `head`.
fn due(table: &mut JobTable, head: u64) -> Vec<Hash> {
    table.advance(Height::new(head));
    table.undelivered().map(|delivery| delivery.job_id()).collect()
}

#[test]
fn what_one_validator_has_taken_goes_to_another_unless_enough_say_that_it_is_there() {
    let [liar, a, b] = ["liar", "a", "b"].map(|name| validator(name).public_key());
    let mut table = JobTable::new(4);
    table.require(2);
    table.advance(Height::new(10));
    for i in 0..4 {
        decide(&mut table, "liar", attempt(i, 100));
        assert_eq!(decide(&mut table, "a", attempt(i, 100)).offer, Offer::Accept);
    }
    for i in [0, 1] {
        table.finish(result(i, 3)).unwrap();
    }
    for i in [2, 3] {
        commit(&mut table, i);
    }
    for i in 0..4 {
        table.delivered(&job(i), Some(&liar));
    }
    assert_eq!(due(&mut table, 10 + DELIVER_AGAIN - 1), []);
    // The chain has the result of job 1, and the commitment to that of job 3.
    cancel(&mut table, "liar", 0);
    for honest in ["a", "b"] {
        cancel(&mut table, honest, 1);
    }
    table.reveal(&job(2), Some(&liar));
    table.reveal(&job(3), Some(&b));
    let mut swallowed = vec![job(0), job(2)];
    swallowed.sort_unstable();
    assert_eq!(due(&mut table, 10 + DELIVER_AGAIN), swallowed);
    assert!(table.has_taken(&job(0), &liar) && !table.has_taken(&job(0), &a));
    table.delivered(&job(0), Some(&a));
    // The control API may lie too: it does not count as a validator.
    table.delivered(&job(2), None);
    assert_eq!(due(&mut table, 10 + 3 * DELIVER_AGAIN - 1), []);
    assert_eq!(due(&mut table, 10 + 3 * DELIVER_AGAIN), [job(2)]);
}

#[test]
fn a_proof_of_its_end_stops_what_was_assigned_before_it_and_forgets_no_result() {
    let mut table = JobTable::new(4);
    table.require(3);
    let proved = |table: &mut JobTable, i| {
        let attempt = ProposedAttempt { assigned_at: Height::new(10), ..attempt(i, 50) };
        table.offer_proved(attempt, Height::new(11), || Ok(())).offer
    };
    assert_eq!((proved(&mut table, 0), proved(&mut table, 1)), (Offer::Accept, Offer::Accept));
    assert!(!table.end_proved(&job(0), Height::new(9)), "it was assigned later");
    assert!(!table.end_proved(&job(7), Height::new(20)));
    assert!(table.end_proved(&job(0), Height::new(10)));
    assert!(!table.end_proved(&job(0), Height::new(10)), "it is over");
    assert_eq!(proved(&mut table, 0), Offer::Duplicate);
    table.finish(result(1, 4)).unwrap();
    assert!(!table.end_proved(&job(1), Height::new(20)));
    assert_eq!(table.undelivered().count(), 1);
    let again = ProposedAttempt { assigned_at: Height::new(60), ..attempt(1, 99) };
    assert_eq!(table.offer_proved(again, Height::new(61), || Ok(())).offer, Offer::Accept);
    assert!(!table.end_proved(&job(1), Height::new(59)), "that is the previous attempt");
    assert!(table.is_running(&job(1)));
}
