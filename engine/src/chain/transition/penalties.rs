//! Penalties for dishonest runners (spec jobs.md §5).
//!
//! * A member that neither commits nor reports loses reputation, even if the job is verified.
//! * A member that commits but reveals no valid result by the attempt's deadline loses reputation
//!   and its share of the job's price ([`Withheld`]), from its balance first: a runner that was cut
//!   off for too long may have only the stake it needs. It stays assigned until then, so its stake
//!   stays locked.
//! * Two signed commitments to different results of one attempt are evidence that any account may
//!   submit: the runner loses its whole reputation and 1.5 times the job's price.

use super::{
    Run, TransactionFailure,
    results::{ResultError, SILENCE, job},
};
use crate::{
    chain::{
        event::RunnerSlashed,
        state::State,
        transaction::{ReportEquivocation, Reveal, SlashRunner},
    },
    job::spec::{Job, JobSpec, JobStatus, SlashReason, VerificationMode, Withheld},
    primitives::{Address, Hash, Wei},
    registry::MAX_REPUTATION,
    wire,
};

/// Checks equivocation evidence against `state`, and returns the job it is about.
pub fn check_equivocation<'a>(
    state: &'a State,
    report: &ReportEquivocation,
) -> Result<&'a Job, ResultError> {
    let ReportEquivocation { job_id, runner, deadline_block, first, second } = report;
    let job = job(state, job_id)?;
    if first.commitment >= second.commitment {
        return Err(ResultError::NoEquivocation);
    }
    if job.equivocated.contains(runner) {
        return Err(ResultError::AlreadyProved(*runner));
    }
    let record = state.registry.get(runner).filter(|record| !record.deregistered);
    let record = record.ok_or(ResultError::UnknownRunner(*runner))?;
    for signed in [first, second] {
        let commitment = &signed.commitment;
        let digest = wire::JobCommit::digest(state.chain_id, job_id, *deadline_block, commitment);
        if !record.pubkey.verify(&digest, &signed.runner_signature) {
            return Err(ResultError::BadSignature(*runner));
        }
    }
    Ok(job)
}

impl Run<'_> {
    /// Records reveals of results that a verified job lacked.
    pub(super) fn show_withheld(&mut self, job_id: Hash, reveals: &[Reveal]) {
        let mut withheld = self.state.withheld.get(&job_id).expect("it was checked").clone();
        withheld.commitments.retain(|c| !reveals.iter().any(|reveal| reveal.runner == c.runner));
        for reveal in reveals {
            let released = self.state.registry.release(&reveal.runner);
            released.expect("a runner with a job cannot deregister");
        }
        match withheld.commitments.is_empty() {
            true => self.state.withheld.remove(&job_id),
            false => self.state.withheld.insert(job_id, withheld),
        };
    }

    pub(super) fn fine_withheld(&mut self) {
        let height = self.height();
        let due: Vec<(Hash, Withheld)> = self
            .state
            .withheld
            .iter()
            .filter(|(_, withheld)| withheld.due <= height)
            .map(|(job_id, withheld)| (*job_id, withheld.clone()))
            .collect();
        for (job_id, withheld) in due {
            self.state.withheld.remove(&job_id);
            for commitment in &withheld.commitments {
                let runner = &commitment.runner;
                let released = self.state.registry.release(runner);
                released.expect("a runner with a job cannot deregister");
                self.repute(job_id, runner, -SILENCE);
                self.fine(job_id, runner, withheld.fine);
            }
        }
    }

    pub(super) fn report_equivocation(
        &mut self,
        report: &ReportEquivocation,
    ) -> Result<(), TransactionFailure> {
        let ReportEquivocation { job_id, runner, .. } = *report;
        let mut job = check_equivocation(&self.state, report)?.clone();
        let fine = bond(&job.spec);
        job.equivocated.push(runner);
        self.state.jobs.insert(job_id, job);
        let all = i32::try_from(MAX_REPUTATION).expect("it is 100");
        self.repute(job_id, &runner, -all);
        let taken = self.slash(&runner, fine);
        self.burn(job_id, &runner, taken, SlashReason::Equivocation);
        Ok(())
    }

    /// Fines a runner for a result that it withheld: at most `most`, from its balance first.
    pub(super) fn fine(&mut self, job_id: Hash, runner: &Address, most: Wei) {
        let of_balance = self.state.account(runner).balance.min(most);
        self.state.debit(*runner, of_balance).expect("it has that much");
        let of_stake = self.slash(runner, most.saturating_sub(of_balance));
        let amount = of_balance.saturating_add(of_stake);
        self.burn(job_id, runner, amount, SlashReason::Withheld);
    }

    /// Takes at most `most` from a registered runner's stake, and returns the amount taken.
    fn slash(&mut self, runner: &Address, most: Wei) -> Wei {
        let taken = self.state.registry.slash(runner, most);
        taken.expect("the caller has seen that it is registered")
    }

    fn burn(&mut self, job_id: Hash, runner: &Address, amount: Wei, reason: SlashReason) {
        self.state.burned.penalties = self.state.burned.penalties.saturating_add(amount);
        self.emit(RunnerSlashed { runner: *runner, job_id, amount, reason });
    }

    /// Slashes the bond, 1.5 × the job's price, of a runner whose result was wrong.
    pub(super) fn slash_runner(
        &mut self,
        sender: Address,
        slash: &SlashRunner,
    ) -> Result<(), TransactionFailure> {
        self.check_system(sender)?;
        let job_id = slash.job_id;
        let mut job = job(&self.state, &job_id)?.clone();
        let refuse = |why| Err(ResultError::NotSlashable(why).into());
        if job.spec.verification.mode != VerificationMode::EconomicBond {
            return refuse("only results of mode economic_bond are bonded");
        }
        let JobStatus::Verified(_, outcome) = &mut job.status else {
            return refuse("the job has no verified result");
        };
        if outcome.slashed.is_some() {
            return refuse("the bond was taken before");
        }
        let (runner, bond) = (outcome.runner, bond(&job.spec));
        let amount = self.state.registry.slash(&runner, bond)?;
        outcome.slashed = Some(amount);
        self.state.burned.penalties = self.state.burned.penalties.saturating_add(amount);
        self.state.jobs.insert(job_id, job);
        self.emit(RunnerSlashed { runner, job_id, amount, reason: SlashReason::WrongResult });
        Ok(())
    }
}

/// 1.5 times a job's price: the stake that its candidates must have.
const fn bond(spec: &JobSpec) -> Wei {
    let price = spec.max_price;
    price.saturating_add(Wei::new(price.get().div_ceil(2)))
}
