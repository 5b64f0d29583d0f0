//! Jobs to runners: assignments, cancellations, and proofs of both.

use super::{Gateway, GatewayCommand, GatewayLink, GatewayShared};
use crate::{
    chain::anchor::Anchor,
    validator::job_progress::{MemberProgress, progress_of, reason_of_cancellation},
};
use cowboy_engine::{
    chain::{State, Subject},
    job::spec::Job,
    primitives::{Address, Hash, Height, Signature, codec::to_vec},
    wire::{Body, JobAssignment},
};
use std::collections::BTreeMap;

/// The dispatch of one attempt: another attempt of the job may go to the same runner.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dispatched {
    pub(super) assigned_at: Height,
    pub(super) deadline: Height,
    /// Whether the runner has neither answered nor been sent a proof.
    pub(super) waits: bool,
}

/// All assignments to a runner for which the chain awaits something: of open jobs, and of verified
/// jobs whose result the runner has committed to but not revealed.
pub fn assigned(state: &State) -> impl Iterator<Item = (&Hash, &Job, Address)> {
    let open = state.open_jobs().flat_map(|(job_id, job)| {
        job.status.at_work().iter().map(move |runner| (job_id, job, *runner))
    });
    let withheld = state.withheld().filter_map(|(job_id, withheld)| {
        let job = state.job(job_id)?;
        Some(withheld.commitments.iter().map(move |commitment| (job_id, job, commitment.runner)))
    });
    open.chain(withheld.flatten())
}

pub(super) fn assigns(state: &State, job_id: &Hash, runner: &Address) -> bool {
    state.job(job_id).is_some_and(|job| job.status.at_work().contains(runner))
}

/// A job's assignment, to be signed by the session. `None` for a job whose specification is too
/// large for a frame, which no block can carry.
pub(super) fn assignment_of(job_id: &Hash, job: &Job) -> Option<JobAssignment> {
    Some(JobAssignment {
        job_id: *job_id,
        submitter: job.submitter,
        nonce: job.nonce,
        job_spec: Body::new(to_vec(&*job.spec)).ok()?,
        block_height: job.status.assignment()?.height,
        deadline_block: job.deadline(),
        validator_signed: Signature([0; 65]),
    })
}

impl Dispatched {
    pub(super) const fn of(assignment: &JobAssignment) -> Self {
        let JobAssignment { block_height, deadline_block, .. } = *assignment;
        Self { assigned_at: block_height, deadline: deadline_block, waits: true }
    }
}

impl Gateway {
    /// Takes a new executed state: dispatches newly assigned jobs, and cancels jobs that are no
    /// longer assigned. The caller must call [`tell`](Self::tell) afterwards.
    pub fn advance(&self, state: State) {
        let mut shared = self.0.shared.lock();
        if state.height() <= shared.state.height() {
            return;
        }
        shared.state = state;
        let GatewayShared { state, links, progress, journal, .. } = &mut *shared;
        progress.retain(|(job_id, runner), _| assigns(state, job_id, runner));
        let epochs = state.subset_epochs_at(state.height());
        for link in links.values_mut() {
            if let Err(reason) = link.place.check(state, &epochs) {
                link.command(GatewayCommand::Close(reason));
            }
        }
        let mut wanted: BTreeMap<Address, BTreeMap<Hash, Height>> = BTreeMap::new();
        for (job_id, job, runner) in assigned(state) {
            if links.contains_key(&runner)
                && let Some(assignment) = job.status.assignment()
                && progress_of(job, &runner) != MemberProgress::Late
            {
                wanted.entry(runner).or_default().insert(*job_id, assignment.height);
            }
        }
        let none = BTreeMap::new();
        for (runner, link) in &mut *links {
            let wanted = wanted.get(runner).unwrap_or(&none);
            let is_over = |(job_id, dispatched): &(&Hash, &Dispatched)| {
                wanted.get(job_id) != Some(&dispatched.assigned_at)
            };
            let over = link.dispatched.iter().filter(is_over);
            let over: Vec<_> = over.map(|(job_id, of)| (*job_id, of.deadline)).collect();
            for (job_id, deadline) in over {
                let reason = reason_of_cancellation(state.job(&job_id), runner);
                if link.command(GatewayCommand::Cancel(job_id, deadline, reason)) {
                    link.dispatched.remove(&job_id);
                    link.cancelled(job_id, reason, state.height());
                }
            }
        }
        if !state.phase().pushes() {
            return;
        }
        for (job_id, job, runner) in assigned(state) {
            let Some(link) = links.get_mut(&runner) else { continue };
            if link.dispatched.contains_key(job_id)
                || progress_of(job, &runner) != MemberProgress::AtWork
            {
                continue;
            }
            if let Some(assignment) = assignment_of(job_id, job) {
                let dispatched = Dispatched::of(&assignment);
                if link.command(GatewayCommand::Assign(Box::new(assignment))) {
                    journal.dispatched(*job_id, runner, dispatched.assigned_at);
                    link.dispatched.insert(*job_id, dispatched);
                }
            }
        }
    }

    /// The earliest block with an unproved event: an assignment without an answer, or the end of a
    /// job. `None` if there is no such block.
    pub fn waiting_since(&self) -> Option<Height> {
        let shared = self.0.shared.lock();
        let dispatched = shared.links.values().flat_map(|link| link.dispatched.values());
        let waiting = dispatched.filter(|one| one.waits).map(|one| one.assigned_at);
        let ended = shared.links.values().flat_map(|link| link.ended.values().copied());
        waiting.chain(ended).min()
    }

    /// Sends proofs from `anchor`: of assignments to the runners that have not answered them, and
    /// of the ends of cancelled jobs.
    pub fn prove(&self, anchor: &Anchor) {
        let height = anchor.state().height();
        let mut shared = self.0.shared.lock();
        let mut proofs: BTreeMap<Hash, Option<Body>> = BTreeMap::new();
        for (runner, link) in &mut shared.links {
            let GatewayLink { commands, dispatched, ended, .. } = link;
            let provable =
                |(_, one): &(&Hash, &mut Dispatched)| one.waits && one.assigned_at <= height;
            let mut proof_of = |job_id: &Hash| {
                let proof = proofs
                    .entry(*job_id)
                    .or_insert_with(|| Body::new(anchor.prove(Subject::Job(*job_id))?).ok());
                proof.clone()
            };
            for (job_id, one) in dispatched.iter_mut().filter(provable) {
                if let Some(proof) = proof_of(job_id)
                    && commands.try_send(GatewayCommand::Prove(*job_id, proof)).is_ok()
                {
                    one.waits = false;
                }
            }
            // A job that was assigned to the runner again has not ended.
            ended.retain(|job_id, since| {
                let job = anchor.state().job(job_id);
                *since > height
                    || job.is_some_and(|job| !job.status.at_work().contains(runner))
                        && proof_of(job_id).is_some_and(|proof| {
                            commands.try_send(GatewayCommand::ProveEnd(*job_id, proof)).is_err()
                        })
            });
        }
    }
}
