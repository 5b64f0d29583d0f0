//! Jobs of committees, retries, reputation, money and callbacks (spec jobs.md §4–6).

use super::*;
use crate::{
    chain::transition::DISPATCHER,
    chain::{
        event::{CallbackMade, JobCommitted, JobRetried, RunnerPaid, RunnerSlashed},
        transaction::{
            CancelJob, CommitResult, DeployActor, ReportEquivocation, Reveal, RevealResults,
            SignedCommitment, SlashRunner,
        },
    },
    job::spec::{Callback, Job, Outcome, SlashReason, VerificationMode, aggregation},
    wire::{JobAggregated, JobCommit, commitment, reveals_digest},
};

/// A job for three runners whose results must be equal, with a timeout of 40 blocks.
pub(super) fn committee_spec() -> JobSpec {
    JobSpec {
        verification: Verification {
            mode: VerificationMode::Deterministic,
            runners: 3,
            ..Verification::none()
        },
        timeout_blocks: 40,
        ..spec()
    }
}

impl Chain {
    pub(super) fn job(&self, id: &Hash) -> &Job {
        self.state.job(id).unwrap()
    }

    pub(super) fn names(&self, id: &Hash) -> Vec<String> {
        self.committee(id).iter().map(name_of).collect()
    }

    pub(super) fn reputation(&self, name: &str) -> u32 {
        self.state.registry().get(&key(name).address()).unwrap().reputation
    }

    /// Transfers money to a runner's account.
    fn give(&mut self, name: &str, amount: Wei) {
        let to = key(name).address();
        let execution = self.one("alice", Payload::Transfer(transaction::Transfer { to, amount }));
        assert_eq!(execution.receipts[0].status, ReceiptStatus::Success);
    }

    fn stake(&self, name: &str) -> Wei {
        self.state.registry().get(&key(name).address()).unwrap().stake
    }

    fn active_jobs(&self, name: &str) -> u32 {
        self.state.registry().get(&key(name).address()).unwrap().active_jobs
    }

    pub(super) fn reveal(&self, job_id: Hash, name: &str, result: &[u8]) -> Reveal {
        let digest = JobResult::digest(self.state.chain_id(), &job_id, result);
        let runner_signature = key(name).sign(&digest);
        Reveal { runner: key(name).address(), result: result.to_vec(), runner_signature }
    }

    pub(super) fn commit(&self, job_id: Hash, name: &str, result: &[u8]) -> Payload {
        let SignedCommitment { commitment, runner_signature } =
            self.signed_commitment(job_id, name, result);
        let runner = key(name).address();
        Payload::CommitResult(CommitResult { job_id, runner, commitment, runner_signature })
    }

    fn signed_commitment(&self, job_id: Hash, name: &str, result: &[u8]) -> SignedCommitment {
        let commitment = self.reveal(job_id, name, result).commitment();
        let deadline = self.state.job(&job_id).map_or(Height::GENESIS, Job::deadline);
        let digest = JobCommit::digest(self.state.chain_id(), &job_id, deadline, &commitment);
        SignedCommitment { commitment, runner_signature: key(name).sign(&digest) }
    }

    pub(super) fn reveals(
        &self,
        job_id: Hash,
        results: &[(&str, &[u8])],
        by: Option<&str>,
    ) -> Payload {
        let reveals: Vec<Reveal> =
            results.iter().map(|(name, result)| self.reveal(job_id, name, result)).collect();
        let all = reveals_digest(reveals.iter().map(|r| (r.runner, r.result.as_slice())));
        let digest = JobAggregated::digest(self.state.chain_id(), &job_id, &all);
        let aggregator_signature = by.map(|name| key(name).sign(&digest));
        Payload::RevealResults(RevealResults { job_id, reveals, aggregator_signature })
    }

    pub(super) fn accepted(&mut self, payload: Payload) -> Execution {
        let execution = self.one("bob", payload);
        assert_eq!(execution.receipts[0].status, ReceiptStatus::Success);
        execution
    }

    pub(super) fn turned_down(&mut self, payload: Payload, error: &str) {
        let execution = self.one("bob", payload);
        let status = &execution.receipts[0].status;
        assert!(status.error().is_some_and(|text| text.starts_with(error)), "{status:?}");
    }

    pub(super) fn outcome(&self, id: &Hash) -> &Outcome {
        let JobStatus::Verified(_, outcome) = &self.job(id).status else {
            panic!("{}", self.job(id).status.name())
        };
        outcome
    }
}

/// A chain with a drawn committee, and its members' names in draw order.
pub(super) fn drawn(runners: u32, spec: JobSpec) -> (Chain, Hash, Vec<String>) {
    let mut chain = Chain::new(&genesis(runners));
    chain.push(vec![]);
    let id = chain.submit(spec);
    let names = chain.names(&id);
    (chain, id, names)
}

fn find<T: Clone>(execution: &Execution, event: impl Fn(&EventKind) -> Option<&T>) -> T {
    execution.events.iter().find_map(|e| event(&e.kind)).expect("it happened").clone()
}

#[test]
fn the_wire_and_the_chain_agree_on_what_a_commitment_is() {
    let chain = Chain::new(&genesis(1));
    let reveal = chain.reveal(Hash::ZERO, "runner-0", b"result");
    assert_eq!(reveal.commitment(), commitment(b"result", &reveal.runner_signature));
}

#[test]
fn a_committee_commits_reveals_and_is_paid() {
    let (mut chain, id, names) = drawn(5, committee_spec());
    let [a, b, c] = [&names[0], &names[1], &names[2]].map(String::as_str);
    assert_eq!(names.len(), 3);
    let escrow = Wei::cby(11).saturating_add(aggregation(Wei::cby(10)));
    assert_eq!(chain.state.supply().escrow, escrow);
    let first = chain.accepted(chain.commit(id, b, b"x"));
    assert!(kinds(&first).contains(&"JobRunning"));
    assert_eq!(chain.job(&id).status.name(), "Running");
    chain.accepted(chain.commit(id, a, b"x"));
    let last = chain.accepted(chain.commit(id, c, b"x"));
    let JobCommitted { committed, aggregator, own_reveals_from, .. } =
        find(&last, |kind| match kind {
            EventKind::JobCommitted(body) => Some(body),
            _ => None,
        });
    assert_eq!(committed, chain.committee(&id));
    // All have a reputation of 100, so the lowest address is the aggregator.
    assert_eq!(aggregator, *chain.committee(&id).iter().min().unwrap());
    assert_eq!(own_reveals_from, chain.state.height().after(4 + 1));
    let by = name_of(&aggregator);
    let before: Vec<Wei> = names.iter().map(|name| chain.balance(name)).collect();
    let all: [(&str, &[u8]); 3] = [(a, b"x"), (b, b"x"), (c, b"x")];
    let execution = chain.accepted(chain.reveals(id, &all, Some(&by)));
    assert_eq!(execution.results.len(), 1);
    let outcome = chain.outcome(&id).clone();
    assert_eq!(outcome.agreeing, chain.committee(&id));
    assert_eq!(outcome.runner, chain.committee(&id)[0]);
    // Half a second per block at 1 CBY a second; a third of the tip each, the remainder to the
    // first.
    let (tip, rest) = (Wei::cby(1).get() / 3, Wei::cby(1).get() % 3);
    let work = [1_000, 500, 1_500].map(|ms| Wei::cby(1).get() * ms / 1_000);
    let fee = aggregation(Wei::new(work.iter().sum()));
    let mut paid = 0;
    for (i, name) in names.iter().enumerate() {
        let mut expected = work[i] + tip + if i == 0 { rest } else { 0 };
        if *name == by {
            expected += fee.get();
        }
        assert_eq!(chain.balance(name).saturating_sub(before[i]), Wei::new(expected), "{name}");
        paid += expected;
    }
    assert_eq!(outcome.paid, Wei::new(paid));
    assert_eq!(chain.state.supply().escrow, Wei::ZERO);
    assert!(names.iter().all(|name| chain.reputation(name) == 100));
    let (_, _, record) = chain.state.mru().next().unwrap();
    assert_eq!(record.runner, chain.committee(&id)[0]);
}

#[test]
fn what_does_not_fit_the_protocol_is_refused() {
    let (mut chain, id, names) = drawn(4, committee_spec());
    let [a, b, c] = [&names[0], &names[1], &names[2]].map(String::as_str);
    let stranger = (0..4).map(|i| format!("runner-{i}")).find(|n| !names.contains(n)).unwrap();
    chain.turned_down(chain.result(id, a, &key(a).address(), b"x"), "CommitFirst: 3 runners");
    chain.turned_down(chain.commit(id, &stranger, b"x"), "NotInCommittee");
    chain.turned_down(chain.commit(Hash::ZERO, a, b"x"), "UnknownJob");
    let Payload::CommitResult(mut forged) = chain.commit(id, a, b"x") else { unreachable!() };
    forged.runner = key(b).address();
    chain.turned_down(Payload::CommitResult(forged), "BadResultSignature");
    chain
        .turned_down(chain.reveals(id, &[(a, b"x")], None), "JobNotCommitted: the job is Assigned");
    chain.accepted(chain.commit(id, a, b"x"));
    chain.turned_down(chain.commit(id, a, b"y"), "AlreadyCommitted");
    chain.accepted(chain.commit(id, b, b"x"));
    chain.turned_down(Payload::CancelJob(CancelJob { job_id: id }), "Unauthorized");
    let late = chain.one("alice", Payload::CancelJob(CancelJob { job_id: id }));
    assert!(late.receipts[0].status.error().unwrap().starts_with("TooLate: "));
    // Half of the time is over, and c has not committed.
    while chain.job(&id).status.name() == "Running" {
        chain.push(vec![]);
    }
    assert_eq!(chain.state.height(), chain.job(&id).commit_deadline());
    let by = [a, b].into_iter().min_by_key(|name| key(name).address()).unwrap();
    let other = if by == a { b } else { a };
    let both: [(&str, &[u8]); 2] = [(a, b"x"), (b, b"x")];
    chain.turned_down(
        chain.reveals(id, &both[..1], Some(by)),
        "IncompleteReveal: 1 results for 2 commitments; fewer count from block ",
    );
    chain.turned_down(chain.reveals(id, &both, None), "TooEarly: until block ");
    chain.turned_down(chain.commit(id, c, b"x"), "JobNotAssigned: the job is Committed");
    chain.turned_down(chain.reveals(id, &[both[1], both[0]], Some(by)), "IncompleteReveal");
    chain.turned_down(chain.reveals(id, &[(a, b"x"), (b, b"z")], Some(by)), "CommitmentMismatch");
    chain.turned_down(chain.reveals(id, &both, Some(other)), "BadAggregatorSignature");
    chain.turned_down(chain.reveals(id, &[], None), "NothingRevealed");
    chain.accepted(chain.reveals(id, &both, Some(by)));
    let JobStatus::Verified(_, outcome) = &chain.job(&id).status else { panic!() };
    assert_eq!(outcome.agreeing.len(), 2);
    assert_eq!(chain.reputation(c), 95, "half of the time was spent waiting for it");
}

#[test]
fn a_dead_aggregator_is_replaced_by_the_runners_themselves() {
    let (mut chain, id, names) = drawn(3, committee_spec());
    for name in &names {
        chain.accepted(chain.commit(id, name, b"x"));
    }
    let from = chain.job(&id).own_reveals_from().unwrap();
    while chain.state.height().next() < from {
        chain.push(vec![]);
    }
    for name in &names[..2] {
        chain.accepted(chain.reveals(id, &[(name, b"x")], None));
    }
    // Two of three agree, so the chain does not wait for the third.
    assert_eq!(chain.job(&id).status.name(), "Verified");
    let outcome = chain.outcome(&id).clone();
    let agreeing: Vec<String> = outcome.agreeing.iter().map(name_of).collect();
    assert_eq!(agreeing, names[..2]);
    chain.turned_down(chain.reveals(id, &[(&names[0], b"x")], None), "NotCommitted");
    chain.turned_down(chain.reveals(id, &[(&names[2], b"y")], None), "CommitmentMismatch");
    let stake = chain.stake(&names[2]);
    assert_eq!(chain.active_jobs(&names[2]), 1, "its stake stays until it has shown its result");
    chain.accepted(chain.reveals(id, &[(&names[2], b"x")], None));
    chain.turned_down(chain.reveals(id, &[(&names[2], b"x")], None), "JobNotCommitted");
    while chain.state.height() <= chain.job(&id).deadline() {
        chain.push(vec![]);
    }
    assert!(names.iter().all(|name| chain.active_jobs(name) == 0));
    assert_eq!((chain.reputation(&names[2]), chain.stake(&names[2])), (100, stake));
}

/// The parts of stakes that a block burned.
fn slashed(execution: &Execution) -> Vec<(String, Wei, SlashReason)> {
    let slashed = |event: &Event| match &event.kind {
        EventKind::RunnerSlashed(RunnerSlashed { runner, amount, reason, .. }) => {
            Some((name_of(runner), *amount, *reason))
        }
        _ => None,
    };
    execution.events.iter().filter_map(slashed).collect()
}

#[test]
fn who_commits_and_shows_nothing_is_done_without_and_pays() {
    let (mut chain, id, names) = drawn(5, committee_spec());
    for name in &names {
        chain.accepted(chain.commit(id, name, b"x"));
    }
    let by = names.iter().min_by_key(|name| key(name).address()).unwrap().clone();
    let liar = names.iter().find(|name| **name != by).unwrap().clone();
    let honest: Vec<(&str, &[u8])> =
        names.iter().filter(|name| **name != liar).map(|name| (name.as_str(), &b"x"[..])).collect();
    let from = chain.job(&id).partial_reveals_from().unwrap();
    assert_eq!(from, chain.state.height().after(3));
    chain.turned_down(
        chain.reveals(id, &honest, Some(&by)),
        "IncompleteReveal: 2 results for 3 commitments",
    );
    while chain.state.height().next() < from {
        chain.push(vec![]);
    }
    let before = (chain.stake(&liar), chain.state.supply().burned);
    let reversed: Vec<_> = honest.iter().rev().copied().collect();
    chain.turned_down(chain.reveals(id, &reversed, Some(&by)), "IncompleteReveal");
    chain.accepted(chain.reveals(id, &honest, Some(&by)));
    let outcome = chain.outcome(&id).clone();
    assert_eq!(outcome.agreeing.len(), 2);
    assert_eq!(chain.reputation(&liar), 100, "it has until the deadline");
    assert!(chain.active_jobs(&liar) == 1 && chain.active_jobs(&by) == 0);
    chain.give(&liar, Wei::new(1_000));
    // It cannot leave before it has paid.
    let leave = chain.one(&liar, Payload::DeregisterRunner);
    assert!(leave.receipts.is_empty() || leave.receipts[0].status.error().is_some());
    let deadline = chain.job(&id).deadline();
    let mut last = Vec::new();
    while chain.state.height() < deadline {
        last = slashed(&chain.push(vec![]));
    }
    let share = Wei::new(Wei::cby(10).get() / 3);
    assert_eq!(last, [(liar.clone(), share, SlashReason::Withheld)]);
    assert_eq!((chain.reputation(&liar), chain.active_jobs(&liar)), (95, 0));
    assert_eq!(chain.balance(&liar), Wei::ZERO, "its balance goes first");
    let of_stake = share.saturating_sub(Wei::new(1_000));
    assert_eq!(chain.stake(&liar), before.0.saturating_sub(of_stake));
    assert!(chain.state.supply().burned >= before.1.saturating_add(share));
    chain.turned_down(chain.reveals(id, &[(&liar, b"x")], None), "JobNotCommitted");
}

#[test]
fn who_withholds_what_the_others_need_pays_with_the_attempt() {
    let (mut chain, id, names) = drawn(5, committee_spec());
    for (name, result) in names.iter().zip([b"x", b"y", b"x"]) {
        chain.accepted(chain.commit(id, name, result));
    }
    while chain.state.height().next() < chain.job(&id).own_reveals_from().unwrap() {
        chain.push(vec![]);
    }
    chain.accepted(chain.reveals(id, &[(&names[0], b"x"), (&names[1], b"y")], None));
    assert_eq!(chain.job(&id).status.name(), "Committed", "the third decides");
    let mut paid = Vec::new();
    while chain.job(&id).attempt.number == 0 {
        paid = slashed(&chain.push(vec![]));
    }
    let share = Wei::new(Wei::cby(10).get() / 3);
    assert_eq!(paid, [(names[2].clone(), share, SlashReason::Withheld)]);
    assert_eq!(chain.reputation(&names[2]), 95);
    assert_eq!(chain.reputation(&names[0]), 100);
}

#[test]
fn two_commitments_of_one_attempt_cost_the_bond_and_all_reputation() {
    let (mut chain, id, names) = drawn(5, committee_spec());
    let liar = names[0].clone();
    let deadline_block = chain.job(&id).deadline();
    let mut signed = [b"x", b"y"].map(|result| chain.signed_commitment(id, &liar, result));
    signed.sort_by_key(|signed| signed.commitment);
    let [first, second] = signed;
    let runner = key(&liar).address();
    let report = ReportEquivocation { job_id: id, runner, deadline_block, first, second };
    let send = Payload::ReportEquivocation;
    let swapped = ReportEquivocation {
        first: report.second.clone(),
        second: report.first.clone(),
        ..report.clone()
    };
    chain.turned_down(send(swapped), "NoEquivocation");
    let same = ReportEquivocation { second: report.first.clone(), ..report.clone() };
    chain.turned_down(send(same), "NoEquivocation");
    let later = ReportEquivocation { deadline_block: deadline_block.next(), ..report.clone() };
    chain.turned_down(send(later), "BadResultSignature");
    let other = key(&names[1]).address();
    chain.turned_down(
        send(ReportEquivocation { runner: other, ..report.clone() }),
        "BadResultSignature",
    );
    let unknown = key("nobody").address();
    chain.turned_down(
        send(ReportEquivocation { runner: unknown, ..report.clone() }),
        "UnknownRunner",
    );
    chain.turned_down(
        send(ReportEquivocation { job_id: Hash::ZERO, ..report.clone() }),
        "UnknownJob",
    );
    // Reports also count after the job has ended.
    for name in &names {
        chain.accepted(chain.commit(id, name, b"x"));
    }
    let by = names.iter().min_by_key(|name| key(name).address()).unwrap().clone();
    let all: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &b"x"[..])).collect();
    chain.accepted(chain.reveals(id, &all, Some(&by)));
    let stake = chain.stake(&liar);
    let execution = chain.accepted(send(report.clone()));
    assert_eq!(slashed(&execution), [(liar.clone(), Wei::cby(15), SlashReason::Equivocation)]);
    assert_eq!(chain.stake(&liar), stake.saturating_sub(Wei::cby(15)));
    assert_eq!(chain.reputation(&liar), 0);
    chain.turned_down(send(report), "AlreadyProved");
    let id = chain.submit(JobSpec {
        verification: Verification { runners: 4, ..committee_spec().verification },
        ..committee_spec()
    });
    assert!(!chain.names(&id).contains(&liar), "it is no longer drawn");
}

#[test]
fn results_that_differ_are_drawn_again_and_the_silent_are_left_out() {
    let (mut chain, id, names) = drawn(6, committee_spec());
    for (name, result) in names[..2].iter().zip([b"x", b"y"]) {
        chain.accepted(chain.commit(id, name, result));
    }
    let mut execution = None;
    while chain.job(&id).attempt.number == 0 {
        if let Some(from) = chain.job(&id).own_reveals_from()
            && chain.state.height().next() >= from
            && execution.is_none()
        {
            let results: [(&str, &[u8]); 2] = [(&names[0], b"x"), (&names[1], b"y")];
            execution = Some(chain.accepted(chain.reveals(id, &results, None)));
        } else {
            chain.push(vec![]);
        }
    }
    let JobRetried { retry, reason, silent, .. } = find(&execution.unwrap(), |kind| match kind {
        EventKind::JobRetried(body) => Some(body),
        _ => None,
    });
    let silent: Vec<String> = silent.iter().map(name_of).collect();
    assert_eq!((retry, reason, &silent[..]), (1, FailureReason::NoAgreement, &names[2..]));
    assert_eq!(chain.reputation(&names[2]), 95);
    assert_eq!(chain.reputation(&names[0]), 100);
    // Drawn immediately, with the retry's seed and without the silent runner.
    let again = chain.names(&id);
    assert_eq!(again.len(), 3);
    assert!(!again.contains(&names[2]));
    let job = chain.job(&id);
    let seed = crate::job::selection::retry_seed(job.attempt.seed.unwrap(), 1);
    assert_eq!(job.status.assignment().unwrap().seed, seed);
    assert_eq!(job.deadline(), job.attempt.since.after(40));
}

#[test]
fn silent_runners_lose_reputation_and_the_job_fails_after_three_retries() {
    let mut chain = Chain::new(&genesis(6));
    chain.push(vec![]);
    let before = chain.balance("alice");
    let id = chain.submit(spec());
    let fee = before.saturating_sub(chain.balance("alice")).saturating_sub(Wei::cby(11));
    let mut drawn = Vec::new();
    let mut retries = 0;
    while chain.state.open_jobs().next().is_some() {
        let committee = chain.names(&id);
        if drawn.last() != Some(&committee[0]) {
            drawn.push(committee[0].clone());
        }
        let execution = chain.push(vec![]);
        retries += kinds(&execution).iter().filter(|kind| **kind == "JobRetried").count();
    }
    assert_eq!((drawn.len(), retries), (4, 3), "{drawn:?}");
    let distinct: std::collections::BTreeSet<_> = drawn.iter().collect();
    assert_eq!(distinct.len(), 4, "no runner is drawn twice: {drawn:?}");
    let JobStatus::Failed(failure) = &chain.job(&id).status else { panic!() };
    assert_eq!(failure.reason, FailureReason::NoResult);
    assert_eq!(failure.height, chain.job(&id).submitted_at.after(4 * 10));
    // 5 for the silence, 10 more because the job failed.
    assert!(drawn.iter().all(|name| chain.reputation(name) == 85));
    assert_eq!(chain.balance("alice"), before.saturating_sub(fee));
    let late = chain.result(id, &drawn[0], &key(&drawn[0]).address(), b"late");
    chain.turned_down(late, "JobNotAssigned: the job is Failed");
    // A final result restores one point.
    let id = loop {
        let id = chain.submit(spec());
        if drawn.contains(&chain.names(&id)[0]) {
            break id;
        }
    };
    let name = chain.names(&id)[0].clone();
    chain.accepted(chain.result(id, &name, &key(&name).address(), b"x"));
    assert_eq!(chain.reputation(&name), 86);
}

#[test]
fn a_job_is_taken_back_while_nobody_has_committed() {
    let (mut chain, id, _) = drawn(3, committee_spec());
    let before = chain.state.supply();
    let execution = chain.one("alice", Payload::CancelJob(CancelJob { job_id: id }));
    assert!(kinds(&execution).contains(&"JobCancelled"));
    assert_eq!(chain.job(&id).status.name(), "Cancelled");
    assert!(before.escrow > Wei::ZERO && chain.state.supply().escrow.is_zero());
    assert!(chain.state.registry().iter().all(|(_, runner)| runner.active_jobs == 0));
    let again = chain.one("alice", Payload::CancelJob(CancelJob { job_id: id }));
    assert!(again.receipts[0].status.error().unwrap().starts_with("TooLate"));
}

#[test]
fn a_wrong_bonded_result_costs_the_bond_and_the_connection() {
    let mut genesis = genesis(1);
    let root = key("root").address();
    genesis.params.system_deployers = vec![root];
    genesis.endowments.push(Endowment { account: root, balance: Wei::cby(1_000) });
    let mut chain = Chain::new(&genesis);
    chain.push(vec![]);
    let verification =
        Verification { mode: VerificationMode::EconomicBond, ..Verification::none() };
    let id = chain.submit(JobSpec { verification, ..spec() });
    let slash = Payload::SlashRunner(SlashRunner { job_id: id });
    let refused = |chain: &mut Chain, error: &str| {
        let execution = chain.one("root", slash.clone());
        let status = &execution.receipts[0].status;
        assert!(status.error().is_some_and(|text| text.starts_with(error)), "{status:?}");
    };
    refused(&mut chain, "NotSlashable: the job has no verified result");
    chain.accepted(chain.result(id, "runner-0", &key("runner-0").address(), b"wrong"));
    chain.turned_down(slash.clone(), "Unauthorized");
    let execution = chain.one("root", slash.clone());
    assert!(kinds(&execution).contains(&"RunnerSlashed"));
    let runner = key("runner-0");
    let stake = chain.state.registry().get(&runner.address()).unwrap().stake;
    assert_eq!(stake, MIN_STAKE.saturating_sub(Wei::cby(15)));
    assert_eq!(chain.outcome(&id).slashed, Some(Wei::cby(15)));
    refused(&mut chain, "NotSlashable: the bond was taken before");
    let validator = chain.state.subset_of(&runner.public_key())[0].pubkey.clone();
    let admitted = chain.state.admit(&runner.public_key(), &validator);
    assert_eq!(admitted, Err(GoodbyeReason::InsufficientStake));
    let in_service = chain.state.in_service(&runner.address());
    assert_eq!(in_service, Err(GoodbyeReason::InsufficientStake));
}

const LISTENER: &str = r#"
def told(ctx, payload):
    pvm_host.set_state("told", payload)
    pvm_host.set_state("by", ctx.sender)

def boom(ctx, payload):
    fail("no")
"#;

#[test]
fn the_actor_that_a_job_names_is_told_of_its_end() {
    let mut chain = Chain::new(&genesis(2));
    chain.push(vec![]);
    let nonce = chain.state.account(&key("alice").address()).nonce;
    let deploy = Payload::DeployActor(DeployActor { source: LISTENER.into() });
    let signed = {
        let (cycle, cell) = (chain.state.basefee_cycle(), chain.state.basefee_cell());
        let budget = crate::actor::Budget { cycles: 1_000_000, cells: 10_000 };
        Transaction::with_limits(chain.state.chain_id(), nonce, cycle, cell, deploy)
            .buying(budget)
            .sign(&key("alice"))
    };
    assert_eq!(chain.push(vec![signed]).receipts[0].status, ReceiptStatus::Success);
    let actor = Address::of_actor(&key("alice").address(), nonce);
    let told = |execution: &Execution| {
        find(execution, |kind| match kind {
            EventKind::CallbackMade(body) => Some(body),
            _ => None,
        })
    };
    let with = |handler: &str| JobSpec {
        callback: Some(Callback { actor, handler: handler.into(), resume: None }),
        ..spec()
    };
    let id = chain.submit(with("told"));
    let name = chain.names(&id)[0].clone();
    let before = chain.balance("alice");
    let execution = chain.accepted(chain.result(id, &name, &key(&name).address(), b"say \"hi\"\n"));
    let CallbackMade { error, cycles, charged, .. } = told(&execution);
    assert_eq!(error, None);
    assert!(cycles > 0 && charged > Wei::ZERO);
    let refunded = chain.outcome(&id).paid;
    let after = before.saturating_add(Wei::cby(11)).saturating_sub(refunded);
    assert_eq!(chain.balance("alice"), after.saturating_sub(charged));
    let stored = String::from_utf8(chain.state.stored_at(&actor, "told").unwrap().into()).unwrap();
    assert!(stored.contains("Verified") && stored.contains(r#"say \\\"hi\\\"\\u000a"#), "{stored}");
    assert!(stored.contains(&id.to_string()));
    let by = chain.state.stored_at(&actor, "by").unwrap();
    assert_eq!(by, format!("\"{DISPATCHER}\"").as_bytes());

    // A failing callback is paid for, and changes nothing else.
    let id = chain.submit(with("boom"));
    let execution = chain.one("alice", Payload::CancelJob(CancelJob { job_id: id }));
    let CallbackMade { error, charged, .. } = told(&execution);
    assert!(error.unwrap().contains("no") && charged > Wei::ZERO);

    // Callbacks wait their turn: five per block.
    let spec = with("told");
    let mut ids = Vec::new();
    for n in 0..7 {
        let nonce = chain.state.account(&key("alice").address()).nonce;
        ids.push(spec.job_id(&key("alice").address(), nonce + n));
    }
    let nonce = chain.state.account(&key("alice").address()).nonce;
    let submitted = (0..7)
        .map(|n| chain.sign_at("alice", nonce + n, Payload::SubmitJob(Arc::new(spec.clone()))));
    let submitted = submitted.collect();
    chain.push(submitted);
    let nonce = chain.state.account(&key("alice").address()).nonce;
    let cancelled = ids.iter().zip(nonce..).map(|(id, nonce)| {
        chain.sign_at("alice", nonce, Payload::CancelJob(CancelJob { job_id: *id }))
    });
    let cancelled = cancelled.collect();
    let made = |execution: &Execution| {
        kinds(execution).iter().filter(|kind| **kind == "CallbackMade").count()
    };
    assert_eq!(made(&chain.push(cancelled)), 5);
    assert_eq!(made(&chain.push(vec![])), 2);
}

const CLIENT: &str = r#"
def ask(ctx, payload):
    job = {"kind": "custom", "work": {"program": payload}, "max_price": "2cby"}
    first = pvm_host.submit_job(job, "answered")
    second = pvm_host.submit_job(job)
    pvm_host.set_state("asked", [first, second])

def answered(ctx, payload):
    pvm_host.set_state("answer", json_decode(payload)["result"])

def wrong(ctx, payload):
    pvm_host.submit_job({"kind": "custom", "work": {"program": "x"}, "tip": "much"})
"#;

#[test]
fn an_actor_submits_a_job_and_gets_the_answer() {
    let mut chain = actors::chain();
    let actor = chain.deploy(CLIENT);
    let error = chain.fails(actor, "ask", "echo", Wei::ZERO);
    assert!(error.starts_with("InsufficientBalance: "), "{error}");
    let error = chain.fails(actor, "wrong", "", Wei::cby(10));
    assert!(error.contains("InvalidJobSpec: tip `much`"), "{error}");
    let payload = transaction::Transfer { to: actor, amount: Wei::cby(10) };
    chain.one("alice", Payload::Transfer(payload));
    chain.call(actor, "ask", "echo");
    let jobs: Vec<(Hash, Job)> = chain.state.jobs().map(|(id, job)| (*id, job.clone())).collect();
    assert_eq!(jobs.len(), 2, "each has an id of its own");
    assert!(jobs.iter().all(|(id, job)| {
        job.submitter == actor && chain.stored(&actor, "asked").unwrap().contains(&id.to_string())
    }));
    let (id, _) = jobs.iter().find(|(_, job)| job.spec.callback.is_some()).unwrap();
    let before = chain.state.account(&actor).balance;
    let name = chain.names(id)[0].clone();
    chain.accepted(chain.result(*id, &name, &key(&name).address(), b"\xff\x00"));
    assert_eq!(chain.stored(&actor, "answer"), Some("\"0xff00\""));
    assert!(chain.state.account(&actor).balance > before, "what was not used came back");
    // The deployer cancels the other job.
    let (other, _) = jobs.iter().find(|(_, job)| job.spec.callback.is_none()).unwrap();
    let execution = chain.one("alice", Payload::CancelJob(CancelJob { job_id: *other }));
    assert_eq!(execution.receipts[0].status, ReceiptStatus::Success);
}

/// Random committees in every mode that commit, reveal, lie, report, are late or silent. Every
/// block conserves money (checked by the test chain), and in the end all escrow is released.
#[test]
fn money_adds_up_whatever_the_runners_do() {
    let burned = |execution: &Execution| {
        slashed(execution).iter().fold(Wei::ZERO, |sum, (_, amount, _)| sum.saturating_add(*amount))
    };
    let (mut verified, mut reports, mut fined) = ([0; 4], 0, 0);
    let mut ends = std::collections::BTreeMap::<&str, u32>::new();
    let cases = modes::cases();
    for seed in 0..48u8 {
        let mode = usize::from(seed) % cases.len();
        let case = &cases[mode];
        let mut bytes = crate::primitives::keccak256(&[&[seed]]).0;
        let mut draw = move |below: u64| {
            bytes = crate::primitives::keccak256(&[&bytes]).0;
            u64::from_be_bytes(*bytes.first_chunk().unwrap()) % below
        };
        let mut chain = Chain::new(&genesis(6));
        chain.push(vec![]);
        let runners = 3 + draw(3) as u32;
        let mut spec = committee_spec();
        spec.verification = Verification { runners, ..case.verification.clone() };
        spec.bounds.max_return_bytes = modes::LONGEST as u32;
        spec.tip = Wei::new(u128::from(draw(1_000_000_007)));
        spec.max_price = Wei::new(u128::from(draw(20_000_000_000)) + 1);
        let honest = 50 + draw(51);
        let supply = chain.state.supply();
        let mut lost = Wei::ZERO;
        let id = chain.submit(spec);
        let mut said: std::collections::BTreeMap<(u32, String), Vec<u8>> = [].into();
        while chain.state.open_jobs().next().is_some() {
            let job = chain.job(&id).clone();
            let mut payloads = Vec::new();
            for runner in job.status.at_work() {
                let name = name_of(runner);
                let result: Vec<u8> = match draw(100) < honest {
                    true => case.agreeing[draw(3) as usize].into(),
                    false if draw(4) == 0 => case.malformed.into(),
                    false => case.different[draw(3) as usize].into(),
                };
                let key = (job.attempt.number, name.clone());
                match &job.status {
                    JobStatus::Assigned(_) | JobStatus::Running(_)
                        if draw(100) < 3 && !said.contains_key(&key) =>
                    {
                        reports += 1;
                        said.insert(key, Vec::new());
                        payloads.push(chain.report(id, &name));
                    }
                    JobStatus::Assigned(_) | JobStatus::Running(_) if draw(100) < 12 => {
                        said.entry(key).or_insert_with(|| {
                            payloads.push(chain.commit(id, &name, &result));
                            result
                        });
                    }
                    JobStatus::Committed(_) if draw(100) < 20 => {
                        let Some(result) = said.get(&key) else { continue };
                        payloads.push(chain.reveals(id, &[(&name, result)], None));
                    }
                    _ => {}
                }
            }
            if let JobStatus::Committed(round) = &job.status
                && draw(100) < 10
            {
                let all: Vec<(String, Vec<u8>)> = round
                    .commitments
                    .iter()
                    .map(|c| name_of(&c.runner))
                    .map(|name| (name.clone(), said[&(job.attempt.number, name)].clone()))
                    .collect();
                let all: Vec<(&str, &[u8])> =
                    all.iter().map(|(name, result)| (name.as_str(), result.as_slice())).collect();
                let by = name_of(&round.closing.unwrap().aggregator);
                payloads.push(chain.reveals(id, &all, Some(&by)));
            }
            let nonce = chain.state.account(&key("bob").address()).nonce;
            let signed = payloads.into_iter().zip(nonce..);
            let signed = signed.map(|(payload, nonce)| chain.sign_at("bob", nonce, payload));
            let signed = signed.collect();
            let execution = chain.push(signed);
            lost = lost.saturating_add(burned(&execution));
            let paid: Wei =
                execution.events.iter().fold(Wei::ZERO, |sum, event| match &event.kind {
                    EventKind::RunnerPaid(RunnerPaid { work, tip, aggregation, .. }) => {
                        sum.saturating_add(*work).saturating_add(*tip).saturating_add(*aggregation)
                    }
                    _ => sum,
                });
            match &chain.job(&id).status {
                JobStatus::Verified(_, outcome) => {
                    verified[mode] += 1;
                    assert_eq!(outcome.paid, paid);
                    assert!(outcome.paid <= chain.job(&id).spec.escrow());
                    assert!(outcome.agreeing.len() > runners as usize / 2);
                }
                _ => assert_eq!(paid, Wei::ZERO),
            }
        }
        while chain.state.withheld().next().is_some() {
            lost = lost.saturating_add(burned(&chain.push(vec![])));
        }
        let end = chain.state.supply();
        assert_eq!(end.total(), supply.total());
        assert_eq!(end.escrow, Wei::ZERO);
        let of_stakes = supply.stakes.saturating_sub(end.stakes);
        assert!(of_stakes <= lost && supply.stakes >= end.stakes, "{of_stakes} of {lost}");
        fined += usize::from(lost > Wei::ZERO);
        assert!(chain.state.registry().iter().all(|(_, runner)| runner.active_jobs == 0));
        *ends.entry(chain.job(&id).status.name()).or_default() += 1;
    }
    assert!(verified.iter().all(|ended| *ended > 3), "every mode comes to results: {verified:?}");
    assert!(ends.len() > 1, "both ends are reached: {ends:?}");
    assert!(reports > 9, "{reports}");
    assert!(fined > 3, "{fined}");
}
