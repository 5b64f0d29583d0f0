//! Every verification mode on the chain, with results that agree, differ, are late, missing,
//! unreadable or too long (spec jobs.md §5).

use super::{jobs::*, *};
use crate::job::spec::{Check, Similarity, VerificationMode};

/// A mode for committees, with sample results.
pub(super) struct Case {
    pub(super) verification: Verification,
    /// Three results that agree.
    pub(super) agreeing: [&'static str; 3],
    /// Three results of which no two agree; the first does not agree with any of `agreeing` either.
    pub(super) different: [&'static str; 3],
    /// A result that the mode cannot read, which counts as missing. With `deterministic` any bytes
    /// are a result.
    pub(super) malformed: &'static str,
}

/// The longest result, in bytes.
pub(super) const LONGEST: usize = 120;

pub(super) fn cases() -> Vec<Case> {
    let of = |mode| Verification::of(mode, 3);
    vec![
        Case {
            verification: of(VerificationMode::Deterministic),
            agreeing: ["same"; 3],
            different: ["other", "same", ""],
            malformed: "\0",
        },
        Case {
            verification: Verification {
                vote_field: Some("/price".into()),
                ..of(VerificationMode::MajorityVote)
            },
            agreeing: [r#"{"price":1.0,"at":1}"#, r#"{"price":1,"at":2}"#, r#"{"price":1e0}"#],
            different: [r#"{"price":2}"#, r#"{"price":1}"#, r#"{"price":3}"#],
            malformed: "{\"price\":",
        },
        Case {
            verification: Verification {
                checks: vec![
                    Check::Schema(r#"{"type":"object","required":["price"]}"#.into()),
                    Check::Tolerance { field: "/price".into(), within: "0.1".into() },
                ],
                ..of(VerificationMode::StructuredMatch)
            },
            agreeing: [r#"{"price":1.05}"#, r#"{"price":1.1}"#, r#"{"price":1.0}"#],
            different: [r#"{"price":2}"#, r#"{"price":1.0}"#, r#"{"price":3}"#],
            malformed: "[1]",
        },
        Case {
            verification: Verification {
                similarity: Some(Similarity { model: "m".into(), least_permille: 900 }),
                ..of(VerificationMode::SemanticSimilarity)
            },
            agreeing: [
                r#"{"model":"m","embedding":[1,0.1]}"#,
                r#"{"model":"m","embedding":[2,0]}"#,
                r#"{"model":"m","embedding":[1,0]}"#,
            ],
            different: [
                r#"{"model":"m","embedding":[0,1]}"#,
                r#"{"model":"m","embedding":[1,0]}"#,
                r#"{"model":"m","embedding":[-1,0]}"#,
            ],
            malformed: r#"{"model":"other","embedding":[1,0]}"#,
        },
    ]
}

/// A job of three out of six runners under a case's mode, and the names of the three.
fn begun(case: &Case) -> (Chain, Hash, Vec<String>) {
    let mut spec = JobSpec { verification: case.verification.clone(), ..committee_spec() };
    spec.bounds.max_return_bytes = LONGEST as u32;
    drawn(6, spec)
}

/// Each member with a result commits to it, then time passes until reveals count.
fn commit(chain: &mut Chain, id: Hash, names: &[String], results: &[Option<&[u8]>]) {
    for (name, result) in names.iter().zip(results) {
        if let Some(result) = result {
            chain.accepted(chain.commit(id, name, result));
        }
    }
    while chain.job(&id).status.name() == "Running" {
        chain.push(vec![]);
    }
}

/// The aggregator reveals all committed results.
fn aggregate(chain: &Chain, id: Hash, names: &[String], results: &[Option<&[u8]>]) -> Payload {
    let JobStatus::Committed(round) = &chain.job(&id).status else {
        panic!("{}", chain.job(&id).status.name())
    };
    let by = name_of(&round.closing.as_ref().unwrap().aggregator);
    let all = names.iter().zip(results);
    let all: Vec<_> = all.filter_map(|(name, r)| Some((name.as_str(), (*r)?))).collect();
    chain.reveals(id, &all, Some(&by))
}

/// The members that agreed and the one whose result was taken, by position in the draw.
fn verified(chain: &Chain, id: Hash, names: &[String]) -> (Vec<usize>, usize) {
    let place = |runner: &Address| names.iter().position(|n| *n == name_of(runner)).unwrap();
    let outcome = chain.outcome(&id);
    (outcome.agreeing.iter().map(place).collect(), place(&outcome.runner))
}

/// The job is retried for this reason; silent members lost five points, and no runner was paid.
fn retried(chain: &Chain, id: Hash, names: &[String], reason: FailureReason, silent: &[usize]) {
    let job = chain.job(&id);
    assert_eq!((job.attempt.number, job.status.name()), (1, "Assigned"));
    let excluded: Vec<Address> = silent.iter().map(|i| key(&names[*i]).address()).collect();
    assert_eq!(job.attempt.excluded, excluded, "{reason:?}");
    for (i, name) in names.iter().enumerate() {
        let lost = if silent.contains(&i) { 5 } else { 0 };
        assert_eq!(chain.reputation(name), 100 - lost, "{name}");
        assert_eq!(chain.balance(name), Wei::ZERO, "{name}");
    }
    assert_eq!(chain.state.supply().escrow, job.spec.escrow());
}

fn some<const N: usize>(results: [&'static str; N]) -> [Option<&'static [u8]>; N] {
    results.map(|result| Some(result.as_bytes()))
}

#[test]
fn results_that_agree_are_verified() {
    for case in cases() {
        let mode = case.verification.mode;
        let (mut chain, id, names) = begun(&case);
        let results = some(case.agreeing);
        commit(&mut chain, id, &names, &results);
        chain.accepted(aggregate(&chain, id, &names, &results));
        assert_eq!(verified(&chain, id, &names), (vec![0, 1, 2], 0), "{mode}");
        assert!(names.iter().all(|name| chain.balance(name) > Wei::ZERO), "{mode}");
    }
}

#[test]
fn one_that_differs_is_outvoted_and_unpaid() {
    for case in cases() {
        let mode = case.verification.mode;
        let (mut chain, id, names) = begun(&case);
        let [a, b, _] = some(case.agreeing);
        let results = [Some(case.different[0].as_bytes()), a, b];
        commit(&mut chain, id, &names, &results);
        chain.accepted(aggregate(&chain, id, &names, &results));
        assert_eq!(verified(&chain, id, &names).0, [1, 2], "{mode}");
        // It may have been the aggregator, which is paid for that.
        let outcome = chain.outcome(&id).clone();
        let aggregators: Vec<_> =
            names.iter().map(|n| key(n).address()).min().into_iter().collect();
        let unpaid = aggregators[0] != key(&names[0]).address();
        assert_eq!(chain.balance(&names[0]).is_zero(), unpaid, "{mode}: {outcome:?}");
        assert_eq!(chain.reputation(&names[0]), 100, "{mode}: differing is not punished");
    }
}

#[test]
fn results_that_all_differ_are_asked_for_again() {
    for case in cases() {
        let (mut chain, id, names) = begun(&case);
        let results = some(case.different);
        commit(&mut chain, id, &names, &results);
        chain.accepted(aggregate(&chain, id, &names, &results));
        retried(&chain, id, &names, FailureReason::NoAgreement, &[]);
    }
}

#[test]
fn a_result_that_the_mode_cannot_read_is_one_that_is_missing() {
    for case in cases() {
        let mode = case.verification.mode;
        let [a, b, _] = some(case.agreeing);
        let malformed = Some(case.malformed.as_bytes());
        let (mut chain, id, names) = begun(&case);
        let results = [malformed, a, b];
        commit(&mut chain, id, &names, &results);
        chain.accepted(aggregate(&chain, id, &names, &results));
        assert_eq!(verified(&chain, id, &names).0, [1, 2], "{mode}");
        // Two unreadable results do not agree, not even with each other; equal bytes do under
        // `deterministic`.
        let (mut chain, id, names) = begun(&case);
        let results = [malformed, malformed, a];
        commit(&mut chain, id, &names, &results);
        chain.accepted(aggregate(&chain, id, &names, &results));
        if mode == VerificationMode::Deterministic {
            assert_eq!(verified(&chain, id, &names), (vec![0, 1], 0), "{mode}");
        } else {
            retried(&chain, id, &names, FailureReason::NoAgreement, &[]);
        }
    }
}

#[test]
fn silent_runners_are_done_without_where_enough_agree() {
    for case in cases() {
        let mode = case.verification.mode;
        let [a, b, _] = some(case.agreeing);
        let (mut chain, id, names) = begun(&case);
        let results = [a, None, b];
        commit(&mut chain, id, &names, &results);
        assert_eq!(chain.state.height(), chain.job(&id).commit_deadline(), "{mode}");
        chain.accepted(aggregate(&chain, id, &names, &results));
        assert_eq!(verified(&chain, id, &names).0, [0, 2], "{mode}");
        // One of three is too few: no two could agree.
        let (mut chain, id, names) = begun(&case);
        commit(&mut chain, id, &names, &[None, a, None]);
        if chain.job(&id).attempt.number == 0 {
            chain.accepted(aggregate(&chain, id, &names, &[None, a, None]));
        }
        retried(&chain, id, &names, FailureReason::NoAgreement, &[0, 2]);
        // No member commits.
        let (mut chain, id, names) = begun(&case);
        while chain.job(&id).attempt.number == 0 {
            chain.push(vec![]);
        }
        retried(&chain, id, &names, FailureReason::NoResult, &[0, 1, 2]);
    }
}

#[test]
fn what_comes_late_counts_no_more() {
    for case in cases() {
        let mode = case.verification.mode;
        let [a, b, c] = some(case.agreeing);
        let (mut chain, id, names) = begun(&case);
        commit(&mut chain, id, &names, &[a, b, None]);
        chain.turned_down(chain.commit(id, &names[2], c.unwrap()), "JobNotAssigned: ");
        chain.accepted(aggregate(&chain, id, &names, &[a, b, None]));
        chain.turned_down(chain.commit(id, &names[2], c.unwrap()), "JobNotAssigned: ");
        let own = [(names[0].as_str(), a.unwrap())];
        chain.turned_down(chain.reveals(id, &own, None), "JobNotCommitted: ");
        assert_eq!(chain.job(&id).status.name(), "Verified", "{mode}");
    }
}

#[test]
fn results_that_are_too_long_cannot_be_revealed() {
    let long = [b'x'; LONGEST + 1];
    for case in cases() {
        let mode = case.verification.mode;
        let [a, b, _] = some(case.agreeing);
        let (mut chain, id, names) = begun(&case);
        let results = [a, Some(&long[..]), b];
        commit(&mut chain, id, &names, &results);
        let too_long =
            format!("ResultTooLarge: {} bytes, the job takes at most {LONGEST}", LONGEST + 1);
        chain.turned_down(aggregate(&chain, id, &names, &results), &too_long);
        // The other members do not depend on it: they reveal for themselves.
        let from = chain.job(&id).own_reveals_from().unwrap();
        while chain.state.height().next() < from {
            chain.push(vec![]);
        }
        chain.turned_down(chain.reveals(id, &[(&names[1], &long)], None), &too_long);
        let own = [(names[0].as_str(), a.unwrap()), (names[2].as_str(), b.unwrap())];
        chain.accepted(chain.reveals(id, &own, None));
        while chain.state.open_jobs().next().is_some() {
            chain.push(vec![]);
        }
        assert_eq!(verified(&chain, id, &names).0, [0, 2], "{mode}");
    }
}

#[test]
fn one_runners_result_is_final_as_it_is() {
    for mode in [VerificationMode::None, VerificationMode::EconomicBond] {
        let spec = || JobSpec { verification: Verification::of(mode, 1), ..spec() };
        // Any bytes: empty, not JSON, or of the maximum length.
        for result in [&b""[..], b"\xff{", &[b'x'; 64]] {
            let (mut chain, id, names) = drawn(3, spec());
            let runner = key(&names[0]).address();
            chain.turned_down(chain.result(id, &names[0], &runner, &[0; 65]), "ResultTooLarge: 65");
            chain.accepted(chain.result(id, &names[0], &runner, result));
            assert_eq!(verified(&chain, id, &names), (vec![0], 0), "{mode}");
            let again = chain.result(id, &names[0], &runner, b"another");
            chain.turned_down(again, "JobNotAssigned: ");
        }
        // Silence, and a result that comes after it.
        let (mut chain, id, names) = drawn(3, spec());
        while chain.job(&id).attempt.number == 0 {
            chain.push(vec![]);
        }
        retried(&chain, id, &names, FailureReason::NoResult, &[0]);
        let late = chain.result(id, &names[0], &key(&names[0]).address(), b"late");
        chain.turned_down(late, "NotInCommittee: ");
    }
}
