//! Reports of failed work: the attempt ends, and no runner loses reputation for it (spec jobs.md
//! §6, §7).

use super::{jobs::*, *};
use crate::{
    chain::{
        event::{JobRetried, WorkFailed},
        transaction::{Excuse, ReportFailure},
    },
    job::filter::{Filter, Verdict},
    wire::{AckStatus, JobAck, JobFailure, Reason, RejectReason},
};

impl Chain {
    /// A report that `name` cannot do the job, signed by `signer`.
    fn forged_report(&self, job_id: Hash, name: &str, signer: &str) -> ReportFailure {
        let reason = Reason::truncated("exited with 3");
        let digest = JobFailure::digest(self.state.chain_id(), &job_id, &reason);
        let runner_signature = key(signer).sign(&digest);
        ReportFailure {
            job_id,
            runner: key(name).address(),
            said: Excuse::Failed(reason),
            runner_signature,
        }
    }

    pub(super) fn report(&self, job_id: Hash, name: &str) -> Payload {
        Payload::ReportFailure(self.forged_report(job_id, name, name))
    }
}

/// The reason why an attempt was given up, and the runners that were silent in it.
fn retried(execution: &Execution) -> (FailureReason, Vec<String>) {
    let found = execution.events.iter().find_map(|event| match &event.kind {
        EventKind::JobRetried(JobRetried { reason, silent, .. }) => Some((*reason, silent)),
        _ => None,
    });
    let (reason, silent) = found.expect("the job is drawn again");
    (reason, silent.iter().map(name_of).collect())
}

/// No runner has lost or won anything, and only `busy` runners have a job.
fn untouched(chain: &Chain, busy: usize) {
    for (runner, record) in chain.state.registry().iter() {
        assert_eq!((record.reputation, chain.balance(&name_of(runner))), (100, Wei::ZERO));
    }
    let active: u32 = chain.state.registry().iter().map(|(_, record)| record.active_jobs).sum();
    assert_eq!(active as usize, busy);
}

#[test]
fn a_job_that_nobody_can_do_fails_after_four_reports_and_costs_no_reputation() {
    let (mut chain, id, _) = drawn(6, spec());
    let (begun, mut names) = (chain.state.height(), Vec::new());
    for attempt in 1..=4 {
        assert_eq!(chain.state.supply().escrow, Wei::cby(11));
        let name = chain.names(&id)[0].clone();
        assert!(!names.contains(&name), "who has reported is not drawn again");
        let execution = chain.accepted(chain.report(id, &name));
        let WorkFailed { runner, reason, .. } = execution
            .events
            .iter()
            .find_map(|event| match &event.kind {
                EventKind::WorkFailed(body) => Some(body.clone()),
                _ => None,
            })
            .expect("it was reported");
        assert_eq!((name_of(&runner), reason.as_str()), (name.clone(), "exited with 3"));
        if attempt < 4 {
            assert_eq!(retried(&execution), (FailureReason::WorkFailed, vec![]));
            assert_eq!(chain.job(&id).status.name(), "Assigned", "it is drawn in the same block");
            untouched(&chain, 1);
        }
        names.push(name);
    }
    let JobStatus::Failed(failure) = &chain.job(&id).status else { panic!() };
    assert_eq!((failure.reason, failure.height), (FailureReason::WorkFailed, begun.after(4)));
    untouched(&chain, 0);
    assert_eq!(chain.state.supply().escrow, Wei::ZERO);
    chain.turned_down(chain.report(id, &names[3]), "JobNotAssigned: the job is Failed");
}

#[test]
fn who_is_silent_still_loses_where_others_report() {
    let (mut chain, id, names) = drawn(6, spec());
    chain.accepted(chain.report(id, &names[0]));
    let mut silent = Vec::new();
    while chain.state.open_jobs().next().is_some() {
        silent.extend(chain.names(&id).first().cloned());
        chain.push(vec![]);
    }
    silent.dedup();
    assert_eq!(silent.len(), 3);
    assert!(silent.iter().all(|name| chain.reputation(name) == 85), "5, and 10 in the end");
    assert_eq!(chain.reputation(&names[0]), 100);
}

#[test]
fn one_report_of_three_leaves_a_committee_that_is_enough() {
    for first in [0, 1, 2] {
        let (mut chain, id, names) = drawn(6, committee_spec());
        // Before, between and after the commitments.
        let mut order: Vec<usize> = (1..3).collect();
        order.insert(first, 0);
        for place in order {
            let name = &names[place];
            let payload = match place {
                0 => chain.report(id, name),
                _ => chain.commit(id, name, b"x"),
            };
            chain.accepted(payload);
        }
        let JobStatus::Committed(round) = &chain.job(&id).status else {
            panic!("the job waits for no runner: {}", chain.job(&id).status.name())
        };
        let by = name_of(&round.closing.unwrap().aggregator);
        let all: [(&str, &[u8]); 2] = [(&names[1], b"x"), (&names[2], b"x")];
        chain.accepted(chain.reveals(id, &all, Some(&by)));
        let agreeing: Vec<String> = chain.outcome(&id).agreeing.iter().map(name_of).collect();
        assert_eq!(agreeing, names[1..]);
        assert_eq!(chain.balance(&names[0]), Wei::ZERO, "no work, no pay");
        assert!(names.iter().all(|name| chain.reputation(name) == 100));
    }
}

#[test]
fn two_reports_of_three_end_the_attempt_whatever_the_third_does() {
    for commits in [false, true] {
        let (mut chain, id, names) = drawn(6, committee_spec());
        if commits {
            chain.accepted(chain.commit(id, &names[2], b"x"));
        }
        chain.accepted(chain.report(id, &names[0]));
        assert_eq!(chain.job(&id).attempt.number, 0);
        let execution = chain.accepted(chain.report(id, &names[1]));
        assert_eq!(retried(&execution), (FailureReason::WorkFailed, vec![]));
        let job = chain.job(&id).clone();
        assert_eq!((job.attempt.number, job.status.name()), (1, "Assigned"));
        let reported = job.attempt.reported.iter().map(|said| name_of(&said.runner));
        let reported: Vec<String> = reported.collect();
        let dropped = |verdict: &&Verdict| verdict.dropped_by == Some(Filter::Exclusion);
        let dropped: Vec<_> = execution.draws[0].verdicts.iter().filter(dropped).collect();
        assert_eq!(dropped.len(), 2);
        for verdict in dropped {
            assert_eq!(verdict.reason, "in an earlier attempt at this job: exited with 3");
        }
        assert_eq!((reported.as_slice(), job.attempt.excluded.len()), (&names[..2], 0));
        assert!(chain.names(&id).iter().all(|name| !names[..2].contains(name)));
        untouched(&chain, 3);
        // A third report belongs to an attempt that is over, unless that runner was drawn again.
        if !chain.names(&id).contains(&names[2]) {
            chain.turned_down(chain.report(id, &names[2]), "NotInCommittee");
        }
    }
}

#[test]
fn all_three_report_in_one_block() {
    let (mut chain, id, names) = drawn(6, committee_spec());
    let nonce = chain.state.account(&key("bob").address()).nonce;
    let reports: Vec<_> = names
        .iter()
        .zip(nonce..)
        .map(|(name, nonce)| chain.sign_at("bob", nonce, chain.report(id, name)))
        .collect();
    let execution = chain.push(reports);
    let taken: Vec<_> = execution.receipts.iter().map(|receipt| receipt.status.name()).collect();
    assert_eq!(taken, ["success", "success", "failed"], "the attempt ended with the second");
    assert_eq!(retried(&execution).0, FailureReason::WorkFailed);
    untouched(&chain, 3);
}

#[test]
fn reporters_are_left_out_where_the_others_are_silent_or_disagree() {
    let (mut chain, id, names) = drawn(6, committee_spec());
    chain.accepted(chain.report(id, &names[0]));
    let mut last = None;
    while chain.job(&id).attempt.number == 0 {
        last = Some(chain.push(vec![]));
    }
    let (reason, silent) = retried(&last.unwrap());
    assert_eq!((reason, &silent[..]), (FailureReason::NoResult, &names[1..]));
    assert_eq!([0, 1, 2].map(|i| chain.reputation(&names[i])), [100, 95, 95]);
    assert!(chain.names(&id).iter().all(|name| !names.contains(name)));

    let (mut chain, id, names) = drawn(6, committee_spec());
    chain.accepted(chain.commit(id, &names[1], b"x"));
    chain.accepted(chain.commit(id, &names[2], b"y"));
    chain.accepted(chain.report(id, &names[0]));
    let JobStatus::Committed(round) = &chain.job(&id).status else { panic!() };
    let by = name_of(&round.closing.unwrap().aggregator);
    let all: [(&str, &[u8]); 2] = [(&names[1], b"x"), (&names[2], b"y")];
    let execution = chain.accepted(chain.reveals(id, &all, Some(&by)));
    assert_eq!(retried(&execution), (FailureReason::NoAgreement, vec![]));
    assert!(!chain.names(&id).contains(&names[0]));
    untouched(&chain, 3);
}

#[test]
fn a_rejection_ends_the_attempt_it_is_of_and_costs_no_reputation() {
    let (mut chain, id, names) = drawn(4, spec());
    let rejection = |chain: &Chain, id: Hash, name: &str, deadline: Height, reason| {
        let status = AckStatus::Reject(reason);
        let digest = JobAck::digest(chain.state.chain_id(), &id, deadline, status);
        Payload::ReportFailure(ReportFailure {
            job_id: id,
            runner: key(name).address(),
            said: Excuse::Rejected(reason),
            runner_signature: key(name).sign(&digest),
        })
    };
    let (name, deadline) = (&names[0], chain.job(&id).deadline());
    let busy = RejectReason::AtCapacity;
    let earlier = Height::new(deadline.get() - 1);
    chain.turned_down(rejection(&chain, id, name, earlier, busy), "BadResultSignature");
    for of_the_validator in [RejectReason::InvalidSpec, RejectReason::DeadlinePassed] {
        chain.turned_down(rejection(&chain, id, name, deadline, of_the_validator), "NoExcuse");
    }
    let execution = chain.accepted(rejection(&chain, id, name, deadline, busy));
    assert_eq!(retried(&execution), (FailureReason::WorkFailed, vec![]));
    let said = execution.events.iter().find_map(|event| match &event.kind {
        EventKind::WorkFailed(WorkFailed { reason, .. }) => Some(reason.as_str()),
        _ => None,
    });
    assert_eq!(said, Some("the runner rejected the job: at_capacity"));
    assert!(!chain.names(&id).contains(name), "it is drawn again at once, without that runner");
    untouched(&chain, 1);
}

#[test]
fn reports_that_do_not_fit_are_refused() {
    let (mut chain, id, names) = drawn(4, committee_spec());
    let stranger = (0..4).map(|i| format!("runner-{i}")).find(|n| !names.contains(n)).unwrap();
    chain.turned_down(chain.report(Hash::ZERO, &names[0]), "UnknownJob");
    chain.turned_down(chain.report(id, &stranger), "NotInCommittee");
    let foreign = Payload::ReportFailure(chain.forged_report(id, &names[0], &names[1]));
    chain.turned_down(foreign, "BadResultSignature");
    let mut changed = chain.forged_report(id, &names[0], &names[0]);
    changed.said = Excuse::Failed(Reason::truncated("something else"));
    chain.turned_down(Payload::ReportFailure(changed), "BadResultSignature");
    chain.accepted(chain.commit(id, &names[0], b"x"));
    chain.turned_down(chain.report(id, &names[0]), "AlreadyCommitted");
    chain.accepted(chain.report(id, &names[1]));
    chain.turned_down(chain.report(id, &names[1]), "AlreadyReported");
    chain.turned_down(chain.commit(id, &names[1], b"x"), "AlreadyReported");
    chain.accepted(chain.commit(id, &names[2], b"x"));
    chain.turned_down(chain.report(id, &names[2]), "JobNotAssigned: the job is Committed");

    let (mut chain, id, names) = drawn(2, spec());
    let runner = key(&names[0]).address();
    chain.accepted(chain.result(id, &names[0], &runner, b"x"));
    chain.turned_down(chain.report(id, &names[0]), "JobNotAssigned: the job is Verified");
}
