//! Restored snapshots, and bytes that are not snapshots.

use super::{
    super::{
        DependencyStatus, EngineOutput, ProofStatus, RollbackReason, SnapshotError,
        SubmissionResult, away::Away, breaker,
    },
    PROOF, Speculation,
    chaos::Random,
    id, machine, opening, oracle,
};
use crate::primitives::{Wei, keccak256};

/// A machine with tasks in every state, none in flight.
fn varied() -> Speculation {
    let settings = [
        ("maxConcurrent", "1"),
        ("rollbackPolicy", "checkpoint"),
        ("mode", "aggressive"),
        ("maxDepth", "7"),
    ];
    let mut machine = machine(&settings);
    machine.done("confirmed", &[]);
    machine.confirm(id("confirmed"), 5).unwrap();
    machine.done("failed", &[]);
    machine.done("casualty", &["failed"]);
    machine.checkpoint(&id("casualty"));
    machine.fail(id("failed"), RollbackReason::ClaimExpired, 6).unwrap();
    machine.done("back off", &["confirmed"]);
    let (task, submission) = machine.submissions().pop().unwrap();
    machine.answer(task, submission, SubmissionResult::Lost, 7).unwrap();
    machine.done("waiting", &["back off"]);
    machine.confirm(id("waiting"), 8).unwrap();
    machine.try_task("pending", &["waiting"]).unwrap();
    machine.done_after("after", &["back off", "confirmed"]);
    machine.try_task("none", &["none"]).unwrap_err();
    machine.chain_lost(9, 9);
    machine.chain_back(9);
    machine.take();
    machine
}

#[test]
fn a_snapshot_is_the_machine() {
    let machine = varied();
    let image = machine.snapshot();
    let mut restored = Speculation::restore(&image, machine.now()).unwrap();
    assert_eq!(restored.take(), []);
    assert_eq!(restored.snapshot(), image);
    assert_eq!(restored.config(), machine.config());
    oracle::check(&restored);
    let views = |machine: &Speculation| -> Vec<_> {
        machine.graph().tasks().map(|(id, _)| machine.task(id)).collect()
    };
    assert_eq!(views(&restored), views(&machine));
    assert_eq!(restored.history().collect::<Vec<_>>(), machine.history().collect::<Vec<_>>());
}

#[test]
fn the_form_of_snapshots_is_frozen() {
    let hash = keccak256(&[&varied().snapshot()]).to_string();
    assert_eq!(hash, "0x2d133db779ec381d097494e9cd7045ef7d3d23fbcca95cd34941b0fbbbd17a49");
}

#[test]
fn what_was_in_flight_goes_out_again_as_the_same_attempt() {
    let mut machine = machine(&[("maxRetries", "1"), ("maxConcurrent", "2")]);
    for name in ["A", "B", "C"] {
        machine.done(name, &[]);
    }
    machine.try_task("D", &["A"]).unwrap();
    machine.executed(id("D"), opening(id("D")), 0).unwrap();
    let first = machine.submissions();
    let mut restored = Speculation::restore(&machine.snapshot(), 20_000).unwrap();
    let outputs = restored.take();
    let again =
        |name: &str, submission| EngineOutput::Submit { task: id(name), submission, attempt: 1 };
    assert_eq!(outputs, [again("A", 2), again("B", 3), EngineOutput::Prove { task: id("D") }]);
    oracle::check(&restored);
    // Answers to the previous machine no longer count, and timeouts restart.
    let (task, submission) = first[0];
    restored.answer(task, submission, SubmissionResult::Confirmed, 20_000).unwrap_err();
    restored.advance(49_999);
    assert_eq!(restored.status("A"), DependencyStatus::Speculative);
    restored.answer(task, 2, SubmissionResult::Confirmed, 49_999).unwrap();
    assert_eq!(restored.task(&id("C")).unwrap().proof, ProofStatus::Submitting);
}

#[test]
fn what_expired_meanwhile_is_rolled_back_before_anything_goes_out() {
    let mut machine = machine(&[]);
    machine.done("A", &[]);
    machine.done("B", &["A"]);
    let mut restored = Speculation::restore(&machine.snapshot(), 300_000).unwrap();
    let outputs = restored.take();
    assert!(matches!(&outputs[..], [EngineOutput::RolledBack(plan)] if plan.tasks.len() == 2));
}

#[test]
fn bytes_that_are_no_snapshot_are_refused() {
    let codec = |bytes: &[u8]| {
        assert!(matches!(Speculation::restore(bytes, 0), Err(SnapshotError::Codec(_))));
    };
    let image = varied().snapshot();
    codec(&[]);
    codec(&image[1..]);
    codec(&image[..image.len() - 1]);
    codec(&[image.as_slice(), &[0]].concat());
}

/// Puts a sound machine into an impossible state, and checks why its snapshot is refused.
fn refused(change: impl FnOnce(&mut Speculation), expected: &str) {
    let mut machine = varied();
    change(&mut machine);
    let error = Speculation::restore(&machine.snapshot(), 9).unwrap_err();
    assert_eq!(error.to_string(), format!("the snapshot contradicts itself: {expected}"));
}

#[test]
fn a_snapshot_that_contradicts_itself_is_refused() {
    let at = |machine: &Speculation, name: &str| machine.graph.find(&id(name)).unwrap();
    refused(
        |machine| machine.stake.lock(Wei::new(1)),
        "what is locked is not the sum of the bonds",
    );
    refused(
        |machine| {
            let task = at(machine, "after");
            machine.graph.nodes[task].status = DependencyStatus::Confirmed;
        },
        "the retired tasks are not those that no live task depends on",
    );
    refused(
        |machine| {
            let task = at(machine, "pending");
            machine.graph.nodes[task].status = DependencyStatus::Speculative;
        },
        "a task, its commitment and its proof are not at the same point",
    );
    refused(
        |machine| {
            let task = at(machine, "pending");
            machine.ledger.create(task, varied().commitment(&id("waiting")).unwrap().clone());
        },
        "a task, its commitment and its proof are not at the same point",
    );
    refused(
        |machine| {
            let task = at(machine, "back off");
            machine.terms[task].held = true;
        },
        "a confirmation is held for nothing",
    );
    refused(|machine| machine.config.max_depth = 21, "an option is not within its range");
    refused(|machine| machine.pruned_at = 10, "it was pruned later than now");
    refused(
        |machine| {
            let limits = breaker::BreakerLimits {
                threshold: 1,
                reset_ms: 0,
                ..breaker::BreakerLimits::DEFAULT
            };
            let (task, reason) = (id("confirmed"), RollbackReason::ProofFailed);
            let failure = breaker::TaskFailure { task, reason, at: 9 };
            machine.breaker.record_failure(limits, failure, &[]);
            machine.breaker.proceed(limits, 10, task);
        },
        "the task that the breaker let through is not live",
    );
    refused(
        |machine| {
            let task = at(machine, "pending");
            machine.terms[task].accepted_at = 10;
        },
        "a task is accepted later than now",
    );
    refused(
        |machine| machine.away = Some(Away { since: 10, tries: 0, next: 0 }),
        "the chain was lost later than now, or was tried too often",
    );
    refused(|machine| machine.deferral.next_order = 0, "a proof was queued later than the next");
    refused(
        |machine| {
            let task = at(machine, "failed");
            let child = machine.graph.nodes[task].first_child;
            machine.graph.edges[child].parent = at(machine, "casualty");
        },
        "its tasks are not a graph: one occurs twice, or waits for itself",
    );
}

#[test]
fn no_bytes_bring_the_machine_into_a_state_that_it_cannot_be_in() {
    let image = varied().snapshot();
    let mut random = Random(1);
    let (mut refused, mut accepted) = (0, 0);
    for _ in 0..20_000 {
        let mut bytes = image.clone();
        for _ in 0..=random.below(2) {
            let at = random.below(bytes.len() as u64) as usize;
            match random.below(4) {
                0 => bytes[at] ^= 1 << random.below(8),
                1 => bytes[at] = random.below(256) as u8,
                2 => bytes[at] = bytes[at].wrapping_add(1),
                _ => bytes[at] = bytes[at].wrapping_sub(1),
            }
        }
        let now = random.below(1 << 20);
        match Speculation::restore(&bytes, now) {
            Err(_) => refused += 1,
            Ok(mut machine) => {
                accepted += 1;
                oracle::check(&machine);
                machine.advance(now + 100_000);
                machine.done("new", &[]);
                oracle::check(&machine);
            }
        }
    }
    // Ids, hashes, salts, proofs and times may have any value.
    assert!(refused > 2_000 && accepted > 2_000, "{refused} refused, {accepted} accepted");
}

#[test]
fn proofs_survive() {
    let mut machine = machine(&[]);
    machine.done("A", &[]);
    let restored = Speculation::restore(&machine.snapshot(), 0).unwrap();
    assert_eq!(restored.proof(&id("A")), Some(&PROOF));
}
