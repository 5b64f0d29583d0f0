//! A lost chain costs nothing but time.

use super::{
    super::{
        CommitmentStatus, DependencyStatus, EngineOutput, ProofStatus, Speculation,
        SubmissionResult, TaskId,
        away::{LONGEST_TRY_MS, TRIES},
    },
    CLAIM, RunRequest, id, machine, opening, oracle,
};

/// A machine with everything that has a deadline, each due within seconds.
fn varied() -> (Speculation, Vec<(TaskId, u64)>) {
    let mut machine = machine(&[
        ("confirmationTimeoutMs", "5000"),
        ("commitmentTtlMs", "6000"),
        ("proof.timeoutMs", "5000"),
        ("proof.queueTimeoutMs", "5000"),
        ("claimBufferMs", "1000"),
        ("maxConcurrent", "1"),
    ]);
    for (name, claim) in [("flying", CLAIM), ("queued", CLAIM), ("made", CLAIM), ("claimed", 5_000)]
    {
        machine.schedule(RunRequest::new(id(name), &[], claim), 0).unwrap();
    }
    machine.complete(id("flying"), opening(id("flying")), &super::PROOF, 0).unwrap();
    for name in ["queued", "made"] {
        machine.executed(id(name), opening(id(name)), 0).unwrap();
    }
    machine.proving(id("made"), 0).unwrap();
    let flying = machine.submissions();
    (machine, flying)
}

#[test]
fn without_a_chain_nothing_expires() {
    let (mut machine, flying) = varied();
    machine.chain_lost(1_000, 3_000);
    machine.advance(100_000);
    oracle::check(&machine);
    assert!(machine.plans().is_empty());
    // Survives a restart too.
    let mut machine = Speculation::restore(&machine.snapshot(), 101_000).unwrap();
    oracle::check(&machine);
    machine.take();
    machine.chain_back(101_000);
    let outputs = machine.take();
    assert!(outputs.contains(&EngineOutput::ChainBack { away_ms: 100_000 }), "{outputs:?}");
    oracle::check(&machine);
    // Deadlines that were 4 s away when the chain was lost are 4 s away; proofs have their whole
    // time.
    assert_eq!(machine.task(&id("claimed")).unwrap().claim_expires_at, 105_000);
    machine.advance(104_999);
    assert_eq!(machine.graph().live(), 4);
    machine.answer(flying[0].0, flying[0].1, SubmissionResult::Confirmed, 104_999).unwrap_err();
    machine.confirm(id("flying"), 104_999).unwrap();
    machine.advance(105_000);
    assert_eq!(machine.status("claimed"), DependencyStatus::Failed);
    assert_eq!(machine.status("made"), DependencyStatus::Speculative);
    machine.advance(106_000);
    assert_eq!(machine.status("made"), DependencyStatus::Failed);
    oracle::check(&machine);
}

/// A submission that is lost because the chain is lost does not count as an attempt.
#[test]
fn what_the_chain_does_not_take_while_it_is_away_goes_out_again() {
    let (mut machine, flying) = varied();
    let (task, submission) = flying[0];
    machine.chain_lost(0, 0);
    let answered = machine.answer(task, submission, SubmissionResult::Lost, 10).unwrap();
    assert_eq!(answered.retry_in_ms, None);
    assert_eq!(machine.task(&task).unwrap().proof, ProofStatus::Ready);
    assert_eq!(machine.commitment(&task).unwrap().status, CommitmentStatus::ProofGenerated);
    assert_eq!(machine.counters().proofs_failed, 0);
    oracle::check(&machine);
    assert!(machine.submissions().is_empty());
    machine.chain_back(20_000);
    let (again, submission) = machine.submissions()[0];
    assert_eq!((again, machine.task(&task).unwrap().submissions), (task, 1));
    machine.answer(task, submission, SubmissionResult::Confirmed, 20_001).unwrap();
    oracle::check(&machine);
}

#[test]
fn after_ten_tries_nothing_is_accepted_until_the_chain_is_back() {
    let mut machine = machine(&[]);
    machine.chain_lost(0, 0);
    let mut tries = Vec::new();
    while let Some(due) = machine.next_deadline() {
        assert_ne!(tries.len(), TRIES as usize, "it tries forever");
        machine.try_task(&format!("t{}", tries.len()), &[]).unwrap();
        machine.advance(due - 1);
        assert!(machine.take().is_empty());
        machine.advance(due);
        let attempt = tries.len() as u32 + 1;
        assert_eq!(machine.take(), [EngineOutput::TryChain { attempt }]);
        tries.push(due);
    }
    let waits: Vec<_> = tries.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!((tries[0], &waits[..4]), (1_000, &[2_000, 4_000, 8_000, LONGEST_TRY_MS][..]));
    let refused = machine.try_task("late", &[]).unwrap_err();
    assert_eq!(refused.reason.name(), "paused");
    assert!(refused.to_string().contains("the chain cannot be reached"), "{refused}");
    // Running tasks go on.
    machine.executed(id("t0"), opening(id("t0")), 80_000).unwrap();
    let mut machine = Speculation::restore(&machine.snapshot(), 90_000).unwrap();
    assert_eq!(machine.try_task("late", &[]).unwrap_err().reason.name(), "paused");
    machine.chain_back(90_000);
    machine.try_task("late", &[]).unwrap();
    oracle::check(&machine);
}

/// When the last contact is reported several times, the latest counts.
#[test]
fn a_chain_is_away_since_it_was_seen_last() {
    let mut machine = machine(&[("claimBufferMs", "1")]);
    machine.schedule(RunRequest::new(id("A"), &[], 10_000), 0).unwrap();
    machine.chain_lost(1_000, 2_000);
    machine.chain_lost(5_000, 6_000);
    machine.chain_lost(3_000, 7_000);
    assert_eq!(machine.away().unwrap().since, 5_000);
    machine.schedule(RunRequest::new(id("B"), &[], 17_000), 7_000).unwrap();
    machine.chain_back(8_000);
    let expires = |name: &str| machine.task(&id(name)).unwrap().claim_expires_at;
    assert_eq!((expires("A"), expires("B")), (13_000, 18_000));
    machine.chain_back(9_000);
    assert_eq!(machine.task(&id("A")).unwrap().claim_expires_at, 13_000);
}
