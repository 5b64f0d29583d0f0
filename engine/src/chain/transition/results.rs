//! Results of jobs: a single result, or results committed to, revealed and compared (spec jobs.md
//! §5).
//!
//! A single runner's result is final when it is included. Each runner of a committee first commits,
//! within half of the attempt's time. When all have committed or that time is over, the aggregator
//! reveals all results in one transaction, or after [`WHOLE_BLOCKS`] those that it has. After
//! [`AGGREGATOR_BLOCKS`] runners reveal for themselves. At the end of each block with reveals the
//! results are compared: the job is verified as soon as enough agree, even if others are missing.
//! When every commitment is revealed, or the time is up, an attempt without agreement is over.
//!
//! A runner that cannot do the work reports it. The attempt ends when too few runners are left to
//! agree; otherwise the chain no longer waits for that runner's commitment.
//!
//! The penalties are in [`super::penalties`].
//!
//! [`WHOLE_BLOCKS`]: crate::job::state::WHOLE_BLOCKS
//! [`AGGREGATOR_BLOCKS`]: crate::job::state::AGGREGATOR_BLOCKS

mod check;

pub use check::{
    Awaited, Claim, ResultError, check_commit, check_failure, check_result, check_reveal,
    check_reveals,
};

use super::{Run, TransactionFailure};
use crate::{
    chain::{
        event::{
            JobCommitted, JobRunning, JobVerified, MruUpdated, ReputationChanged, ResultCommitted,
            ResultRevealed, RunnerPaid, WorkFailed,
        },
        transaction::{CommitResult, ReportFailure, Reveal, RevealResults, SubmitResult},
    },
    job::{
        mru::MruRecord,
        spec::{
            Assignment, Closing, Commitment, CommitteeRound, FailureReason, Job, JobSpec,
            JobStatus, Outcome, Reported, Withheld, aggregation,
        },
        verification::Agreement,
    },
    primitives::{Address, Hash, Wei, keccak256},
};
pub(super) use check::job;
use std::sync::Arc;

/// Reputation that a runner loses in an attempt to which it contributes nothing, or less than it
/// committed to.
pub(super) const SILENCE: i32 = 5;

impl Run<'_> {
    /// For a job with one runner: the result is final when included.
    pub(super) fn submit_result(
        &mut self,
        submitted: &SubmitResult,
    ) -> Result<(), TransactionFailure> {
        let SubmitResult { job_id, runner, result, .. } = submitted;
        let claim = check_result(&self.state, submitted)?;
        let (job, assignment) = (claim.job.clone(), claim.assignment.clone());
        let share = Share {
            runner: *runner,
            until_ms: self.block.header.timestamp_ms,
            result: Arc::new(result.clone()),
        };
        let shares = [share];
        self.verified(job_id, &job, assignment, (&shares, &shares[0]), None);
        Ok(())
    }

    pub(super) fn commit_result(
        &mut self,
        commit: &CommitResult,
    ) -> Result<(), TransactionFailure> {
        let CommitResult { job_id, runner, commitment, .. } = *commit;
        let mut job = check_commit(&self.state, commit)?.clone();
        let mut round = match std::mem::replace(&mut job.status, JobStatus::Pending) {
            JobStatus::Running(round) => round,
            JobStatus::Assigned(assignment) => {
                self.emit(JobRunning { job_id });
                CommitteeRound { assignment, commitments: Vec::new(), closing: None }
            }
            _ => unreachable!("only these two accept a commitment"),
        };
        round.commitments.push(Commitment {
            runner,
            hash: commitment,
            timestamp_ms: self.block.header.timestamp_ms,
            result: None,
        });
        let CommitteeRound { assignment, commitments, .. } = &mut round;
        let seat = |runner: &Address| assignment.committee.iter().position(|r| r == runner);
        commitments.sort_by_key(|commitment| seat(&commitment.runner));
        self.emit(ResultCommitted { job_id, runner, commitment });
        job.status = JobStatus::Running(round);
        self.go_on(job_id, job);
        Ok(())
    }

    pub(super) fn report_failure(
        &mut self,
        report: &ReportFailure,
    ) -> Result<(), TransactionFailure> {
        let ReportFailure { job_id, runner, ref said, .. } = *report;
        let mut job = check_failure(&self.state, report)?.clone();
        let reason = said.to_string();
        job.attempt.reported.push(Reported { runner, reason: reason.clone() });
        self.emit(WorkFailed { job_id, runner, reason });
        self.go_on(job_id, job);
        Ok(())
    }

    /// A member of the committee has committed, or reported that it cannot. If too few others are
    /// left, the attempt ends and none of them was silent. If all of them have committed,
    /// commitments close.
    fn go_on(&mut self, job_id: Hash, job: Job) {
        let able = job.still_at_work();
        if able < job.spec.verification.needed() as usize {
            return self.try_again(job_id, job, FailureReason::WorkFailed, Vec::new());
        }
        match job.status.clone() {
            JobStatus::Running(round) if round.commitments.len() == able => {
                self.close(job_id, job, round);
            }
            _ => self.put(job_id, job),
        }
    }

    /// Closes the commitments, of which there is at least one.
    pub(super) fn close(&mut self, job_id: Hash, mut job: Job, mut round: CommitteeRound) {
        let reputation =
            |runner: &Address| self.state.registry.get(runner).map_or(0, |r| r.reputation);
        let committed: Vec<Address> = round.commitments.iter().map(|c| c.runner).collect();
        let aggregator = committed
            .iter()
            .min_by_key(|runner| (u32::MAX - reputation(runner), **runner))
            .copied()
            .expect("there is a commitment");
        round.closing = Some(Closing { height: self.height(), aggregator });
        job.status = JobStatus::Committed(round);
        let own_reveals_from = job.own_reveals_from().unwrap_or_default();
        self.emit(JobCommitted { job_id, committed, aggregator, own_reveals_from });
        self.put(job_id, job);
    }

    pub(super) fn reveal_results(
        &mut self,
        revealed: &RevealResults,
    ) -> Result<(), TransactionFailure> {
        let job_id = revealed.job_id;
        let mut job = check_reveals(&self.state, self.height(), revealed)?.clone();
        for Reveal { runner, result, .. } in &revealed.reveals {
            let result_hash = keccak256(&[result]);
            self.emit(ResultRevealed { job_id, runner: *runner, result_hash });
        }
        let JobStatus::Committed(round) = &mut job.status else {
            self.show_withheld(job_id, &revealed.reveals);
            return Ok(());
        };
        for Reveal { runner, result, .. } in &revealed.reveals {
            let commitment = round.commitments.iter_mut().find(|c| c.runner == *runner);
            commitment.expect("it was checked").result = Some(Arc::new(result.clone()));
        }
        let aggregated = revealed.aggregator_signature.is_some();
        *self.revealed.entry(job_id).or_default() |= aggregated;
        self.put(job_id, job);
        Ok(())
    }

    /// Compares the results revealed in this block, once per job even if several transactions
    /// revealed some, because comparing costs more than one reveal pays for.
    pub(super) fn compare_revealed(&mut self) {
        for (job_id, aggregated) in std::mem::take(&mut self.revealed) {
            let job = self.state.jobs.get(&job_id).expect("jobs are never removed").clone();
            if let JobStatus::Committed(round) = job.status.clone() {
                self.compare(job_id, job, &round, aggregated);
            }
        }
    }

    /// Compares the revealed results: the job is verified, the attempt fails, or the job waits for
    /// the missing results.
    pub(super) fn compare(
        &mut self,
        job_id: Hash,
        job: Job,
        round: &CommitteeRound,
        aggregated: bool,
    ) {
        let shares: Vec<Share> = round
            .commitments
            .iter()
            .filter_map(|commitment| {
                let Commitment { runner, timestamp_ms, ref result, .. } = *commitment;
                Some(Share { runner, until_ms: timestamp_ms, result: result.clone()? })
            })
            .collect();
        let results: Vec<&[u8]> = shares.iter().map(|share| share.result.as_slice()).collect();
        let enough = shares.len() >= job.spec.verification.needed() as usize;
        let agreement = enough.then(|| job.spec.verification.agree(&results)).flatten();
        let last = shares.len() == round.commitments.len() || self.height() >= job.deadline();
        match agreement {
            Some(agreement) => {
                self.agreed(job_id, &job, round, (&shares, &agreement), aggregated);
            }
            None if last => {
                let reason = match enough {
                    true => FailureReason::NoAgreement,
                    false => FailureReason::NoResult,
                };
                let revealed = |runner: &Address| shares.iter().any(|s| s.runner == *runner);
                let committee = &round.assignment.committee;
                let silent = committee.iter().filter(|r| !revealed(r)).copied().collect();
                let fine = share_of_price(&job.spec);
                for commitment in round.commitments.iter().filter(|c| c.result.is_none()) {
                    self.fine(job_id, &commitment.runner, fine);
                }
                self.try_again(job_id, job, reason, silent);
            }
            None => {}
        }
    }

    /// Verifies a job whose results agree. Members that committed but have not revealed have until
    /// the deadline; those that submitted nothing were silent.
    fn agreed(
        &mut self,
        job_id: Hash,
        job: &Job,
        round: &CommitteeRound,
        (shares, agreement): (&[Share], &Agreement),
        aggregated: bool,
    ) {
        let agreeing: Vec<Share> = agreement.agreeing.iter().map(|i| shares[*i].clone()).collect();
        let closing = round.closing.expect("results are compared after closing");
        let aggregator = aggregated.then_some(closing.aggregator);
        let missing = round.commitments.iter().filter(|c| c.result.is_none()).cloned();
        let withheld = Withheld {
            closed: closing.height,
            due: job.deadline(),
            fine: share_of_price(&job.spec),
            commitments: missing.collect(),
        };
        // Verifying the job releases the whole committee; these members stay assigned.
        for commitment in &withheld.commitments {
            let assigned = self.state.registry.assign(&commitment.runner);
            assigned.expect("a runner with a job cannot deregister");
        }
        let silent = round.silent();
        let parts = (agreeing.as_slice(), &shares[agreement.winner]);
        self.verified(&job_id, job, round.assignment.clone(), parts, aggregator);
        for runner in silent.iter().filter(|runner| !job.attempt.is_reported_by(runner)) {
            self.repute(job_id, runner, -SILENCE);
        }
        if !withheld.commitments.is_empty() {
            self.state.withheld.insert(job_id, withheld);
        }
    }

    /// Pays the runners that agree, in draw order, and ends the job with one of their results.
    fn verified(
        &mut self,
        job_id: &Hash,
        job: &Job,
        assignment: Assignment,
        (agreeing, winner): (&[Share], &Share),
        aggregator: Option<Address>,
    ) {
        let (job_id, height) = (*job_id, self.height());
        let spec = &job.spec;
        let most = share_of_price(spec);
        let shares = agreeing.len() as u128;
        let tip_each = Wei::new(spec.tip.get() / shares);
        let tip_rest = Wei::new(spec.tip.get() % shares);
        let (mut gross, mut paid) = (Wei::ZERO, Wei::ZERO);
        for (index, share) in agreeing.iter().enumerate() {
            let record = self.state.registry.get(&share.runner);
            let price = record.map_or(Wei::ZERO, |record| record.price_per_second);
            let ms = share.until_ms.saturating_sub(assignment.timestamp_ms);
            let work = price_of_time(price, ms, most);
            let tip = tip_each.saturating_add(if index == 0 { tip_rest } else { Wei::ZERO });
            gross = gross.saturating_add(work);
            paid =
                paid.saturating_add(self.pay_runner(job_id, share.runner, [work, tip, Wei::ZERO]));
        }
        if let Some(aggregator) = aggregator {
            let fee = aggregation(gross);
            paid = paid.saturating_add(self.pay_runner(
                job_id,
                aggregator,
                [Wei::ZERO, Wei::ZERO, fee],
            ));
        }
        let refunded = spec.escrow().saturating_sub(paid);
        self.state.credit(job.submitter, refunded).expect("what was debited fits again");
        for runner in &assignment.committee {
            self.state.registry.release(runner).expect("a runner with a job cannot deregister");
        }
        let (runner, result_hash) = (winner.runner, keccak256(&[&winner.result]));
        let agreeing: Vec<Address> = agreeing.iter().map(|share| share.runner).collect();
        self.results.push((job_id, runner, winner.result.clone()));
        let (submitter, kind) = (job.submitter, spec.work.kind());
        let first = agreeing[0];
        self.state.mru.insert((submitter, kind), MruRecord { runner: first, set_at: height });
        self.emit(JobVerified {
            job_id,
            runner,
            result_hash,
            agreeing: agreeing.clone(),
            paid,
            refunded,
        });
        self.emit(MruUpdated { submitter, kind, runner: first });
        for runner in &agreeing {
            self.repute(job_id, runner, 1);
        }
        let outcome = Outcome { height, runner, result_hash, agreeing, paid, slashed: None };
        self.end(job_id, job, JobStatus::Verified(assignment, outcome));
    }

    /// Pays a runner for time, tip and aggregation, and returns the sum.
    fn pay_runner(&mut self, job_id: Hash, runner: Address, parts: [Wei; 3]) -> Wei {
        let [work, tip, aggregation] = parts;
        let sum = work.saturating_add(tip).saturating_add(aggregation);
        // The sum was in escrow, and so in an account's balance before.
        self.state.credit(runner, sum).expect("what was in escrow fits a balance");
        self.emit(RunnerPaid { job_id, runner, work, tip, aggregation });
        sum
    }

    pub(super) fn repute(&mut self, job_id: Hash, runner: &Address, by: i32) {
        if let Some((before, after)) = self.state.registry.repute(runner, by)
            && before != after
        {
            self.emit(ReputationChanged { runner: *runner, job_id, before, after });
        }
    }
}

#[derive(Clone)]
struct Share {
    runner: Address,
    /// End of the time that it is paid for, in Unix ms.
    until_ms: u64,
    result: Arc<Vec<u8>>,
}

/// The most that one runner of a job is paid for its time.
fn share_of_price(spec: &JobSpec) -> Wei {
    Wei::new(spec.max_price.get() / u128::from(spec.verification.runners.max(1)))
}

/// Price of `ms` of computing, rounded up, at most `most`.
fn price_of_time(per_second: Wei, ms: u64, most: Wei) -> Wei {
    match per_second.checked_mul(u128::from(ms)) {
        Some(thousandfold) => Wei::new(thousandfold.get().div_ceil(1_000)).min(most),
        None => most,
    }
}
