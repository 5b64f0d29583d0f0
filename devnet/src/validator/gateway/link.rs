//! One runner's connection: handles its session's events and the gateway's commands.

use super::{
    Gateway, GatewayCommand, GatewayLink, GatewayShared,
    dispatch::{Dispatched, assigned, assignment_of, assigns},
};
use crate::{
    transport::{driver::Service, half_open::Slot},
    validator::{
        job_progress::{MemberProgress, progress_of, reason_of_cancellation},
        journal::DispatchAnswer,
        offchain_jobs::{ErrandError, ErrandReport},
        place::Place,
        submission::Submission,
    },
};
use cowboy_engine::{
    chain::{
        transaction::{CommitResult, Excuse, ReportFailure, Reveal, SubmitResult},
        transition::check_failure,
    },
    job::spec::{Job, JobStatus},
    presence::{LocalView, view::Label},
    primitives::{Address, Hash, Height, PublicKey},
    session::{
        DispatchOutcome, End, Session as _,
        validator::{AssignError, Validator, ValidatorEvent},
    },
    wire::{
        AckStatus, CapabilityDelta, Errand, GoodbyeReason, JobAck, JobAssignment, JobCommit,
        JobFailure, JobIds, JobProgress, JobResult,
    },
};
use std::{collections::BTreeMap, net::IpAddr};
use tokio::sync::mpsc;

pub(super) struct RunnerLink {
    pub(super) gateway: Gateway,
    pub(super) serial: u64,
    pub(super) runner: Address,
    pub(super) certified: PublicKey,
    pub(super) remote: IpAddr,
    pub(super) since_ms: u64,
    pub(super) commands: mpsc::Sender<GatewayCommand>,
    /// The place of a half-open connection, held until the handshake is complete.
    pub(super) half_open: Option<Slot>,
}

impl Service for RunnerLink {
    type Session = Validator;
    type Command = GatewayCommand;

    fn event(&mut self, session: &mut Validator, event: ValidatorEvent) {
        match event {
            ValidatorEvent::Admit { runner, nonce } => {
                session.handle_admission(self.admission(&runner, nonce));
            }
            ValidatorEvent::Established => self.established(session),
            ValidatorEvent::Pinged { .. } => {
                self.with_view(|view, runner, head| view.pinged(runner, head));
            }
            ValidatorEvent::Backpressure(signal) => {
                self.with_view(|view, runner, _| view.accepting(runner, signal.accepting_new));
                let mut shared = self.gateway.0.shared.lock();
                if let Some(link) = self.link(&mut shared) {
                    link.load = Some(signal);
                }
            }
            ValidatorEvent::Capabilities(delta) => {
                let (added, removed) = changes(&delta);
                self.with_view(|view, runner, _| view.changed(runner, added, removed));
            }
            ValidatorEvent::Open(job_ids) => self.open(session, &job_ids),
            ValidatorEvent::Accepted { job_id } => {
                tracing::debug!(runner = %self.runner, %job_id, "job accepted");
                self.answered(&job_id, DispatchAnswer::Accepted);
            }
            ValidatorEvent::Rejected(ack) => self.rejected(&ack),
            ValidatorEvent::Progress(progress) => self.progress(progress),
            ValidatorEvent::Result(result) => self.result(result),
            ValidatorEvent::Committed(commit) => self.committed(&commit),
            ValidatorEvent::Failed(failure) => self.failed(failure),
            ValidatorEvent::Revealed(result) => {
                let JobResult { job_id, result_data, runner_signed } = result;
                let (runner, result) = (self.runner, result_data.into_bytes());
                let reveal = Reveal { runner, result, runner_signature: runner_signed };
                self.hand_in(job_id, Submission::Reveal { job_id, reveal });
            }
            ValidatorEvent::Aggregated { answer, digest } => {
                let (job_id, signature) = (answer.job_id, answer.signed);
                self.hand_in(job_id, Submission::Aggregated { job_id, digest, signature });
            }
            ValidatorEvent::Outcome { job_id, outcome } => {
                tracing::debug!(runner = %self.runner, %job_id, ?outcome, "job dispatched");
                self.answered(&job_id, outcome.into());
                if let DispatchOutcome::Duplicate
                | DispatchOutcome::SoftFailure(_)
                | DispatchOutcome::HardFailure = outcome
                {
                    self.reported(&job_id, || Err(ErrandError::Refused(outcome)));
                }
                if outcome == DispatchOutcome::HardFailure {
                    self.with_view(|view, runner, _| view.failed(runner));
                }
            }
        }
    }

    fn command(&mut self, session: &mut Validator, command: GatewayCommand) {
        match command {
            GatewayCommand::Head(head, connectivity) => {
                session.govern(connectivity);
                session.handle_head(head);
            }
            GatewayCommand::Assign(assignment) => self.assign(session, *assignment),
            GatewayCommand::Prove(job_id, proof) => session.prove(&job_id, proof),
            GatewayCommand::ProveEnd(job_id, proof) => {
                self.asked(job_id, session.prove_end(job_id, proof));
            }
            GatewayCommand::Errand(errand) => self.run_errand(session, &errand),
            GatewayCommand::Cancel(job_id, deadline, reason) => {
                self.asked(job_id, session.cancel(&job_id, deadline, reason));
            }
            GatewayCommand::AskReveal(job_id) => self.asked(job_id, session.ask_reveal(job_id)),
            GatewayCommand::AskAggregate(job_id, reveals) => {
                self.asked(job_id, session.ask_aggregate(job_id, *reveals));
            }
            GatewayCommand::Close(reason) => session.close(reason),
        }
    }
}

impl RunnerLink {
    fn admission(&self, runner: &PublicKey, nonce: [u8; 32]) -> Result<(), GoodbyeReason> {
        let mut shared = self.gateway.0.shared.lock();
        if shared.closing {
            return Err(GoodbyeReason::ShuttingDown);
        }
        let known = shared.links.contains_key(&self.runner);
        if !known && !shared.limiter.admit(self.remote, self.since_ms) {
            return Err(GoodbyeReason::RateLimited);
        }
        shared.state.admit(runner, &self.gateway.0.public)?;
        // Nonces of a key other than the certificate's are not recorded; the session refuses it.
        if *runner == self.certified && !shared.nonces.insert(nonce) {
            return Err(GoodbyeReason::ReplayedNonce);
        }
        Ok(())
    }

    fn established(&mut self, session: &mut Validator) {
        let (head, connectivity, dispatches) = {
            let mut shared = self.gateway.0.shared.lock();
            let GatewayShared { state, view, links, errands, journal, .. } = &mut *shared;
            self.half_open = None;
            let pushes = state.phase().pushes();
            let dispatches: Vec<_> = assigned(state)
                .filter(|(_, _, runner)| pushes && *runner == self.runner)
                .filter(|(_, job, runner)| progress_of(job, runner) == MemberProgress::AtWork)
                .filter_map(|(job_id, job, _)| assignment_of(job_id, job))
                .collect();
            let link = GatewayLink {
                serial: self.serial,
                commands: self.commands.clone(),
                since: state.height(),
                load: None,
                place: Place::new(self.certified.clone(), self.gateway.0.public.clone()),
                dispatched: dispatches.iter().map(|d| (d.job_id, Dispatched::of(d))).collect(),
                ended: BTreeMap::new(),
            };
            if let Some(older) = links.insert(self.runner, link) {
                errands.lost(&self.runner);
                older.command(GatewayCommand::Close(GoodbyeReason::DuplicateConnection));
            }
            view.opened(self.runner);
            journal.connected(self.runner);
            for dispatch in &dispatches {
                journal.dispatched(dispatch.job_id, self.runner, dispatch.block_height);
            }
            self.gateway.0.count.send_replace(links.len());
            (state.height(), *state.connectivity(), dispatches)
        };
        session.govern(connectivity);
        session.handle_head(head);
        tracing::info!(runner = %self.runner, remote = %self.remote, "runner connected");
        for dispatch in dispatches {
            self.assign(session, dispatch);
        }
    }

    fn assign(&self, session: &mut Validator, assignment: JobAssignment) {
        let job_id = assignment.job_id;
        match session.assign(assignment) {
            Ok(()) | Err(AssignError::AlreadyDispatched) => {}
            Err(error @ (AssignError::TooManyStreams | AssignError::NotEstablished)) => {
                tracing::debug!(runner = %self.runner, %job_id, %error, "job not dispatched");
                let mut shared = self.gateway.0.shared.lock();
                // It is retried with the next block.
                if let Some(link) = self.link(&mut shared) {
                    link.dispatched.remove(&job_id);
                }
            }
        }
    }

    fn run_errand(&self, session: &mut Validator, errand: &Errand) {
        if session.send_errand(errand).is_err() {
            self.reported(&errand.errand_id, || Err(ErrandError::Busy));
        }
    }

    /// Records the runner's answer to a dispatch, or that it missed the deadline.
    fn answered(&self, job_id: &Hash, answer: DispatchAnswer) {
        let mut shared = self.gateway.0.shared.lock();
        shared.journal.answered(job_id, &self.runner, answer);
        let link = self.link(&mut shared);
        if let Some(dispatched) = link.and_then(|link| link.dispatched.get_mut(job_id)) {
            dispatched.waits = false;
        }
    }

    /// Takes the runner's list of open jobs, and cancels those that the chain has ended. A job that
    /// is unknown here may be from a block that this validator lacks.
    fn open(&self, session: &mut Validator, job_ids: &JobIds) {
        let state = self.gateway.0.shared.lock().state.clone();
        for job_id in job_ids.as_slice() {
            let Some(job) = state.job(job_id) else { continue };
            let wanted = match &job.status {
                JobStatus::Verified(..) => state.withheld().any(|(id, withheld)| {
                    id == job_id && withheld.commitments.iter().any(|c| c.runner == self.runner)
                }),
                status => status.at_work().contains(&self.runner),
            };
            if !wanted {
                let reason = reason_of_cancellation(Some(job), &self.runner);
                self.asked(*job_id, session.cancel(job_id, job.deadline(), reason));
                if let Some(link) = self.link(&mut self.gateway.0.shared.lock()) {
                    link.cancelled(*job_id, reason, state.height());
                }
            }
        }
    }

    /// Passes a rejection on as the runner's report that it does not do the job: the chain then
    /// draws another runner at once.
    fn rejected(&self, ack: &JobAck) {
        let JobAck { job_id, status: AckStatus::Reject(reason), signed, .. } = *ack else { return };
        let said = Excuse::Rejected(reason);
        let report = ReportFailure { job_id, runner: self.runner, said, runner_signature: signed };
        self.report(report);
    }

    /// Passes an errand's outcome to its sender; false if there is no such errand.
    fn reported(&self, id: &Hash, report: impl FnOnce() -> ErrandReport) -> bool {
        let mut shared = self.gateway.0.shared.lock();
        let out = shared.errands.of(id).is_some_and(|(runner, _)| runner == self.runner);
        if out {
            shared.errands.close(id, &self.runner, report());
        }
        out
    }

    /// Keeps a progress report if the chain assigns the job to the runner, which bounds the number
    /// of reports.
    fn progress(&self, progress: JobProgress) {
        let job_id = progress.job_id;
        let mut shared = self.gateway.0.shared.lock();
        if assigns(&shared.state, &job_id, &self.runner) {
            let head = shared.state.height();
            shared.progress.insert((job_id, self.runner), (progress, head));
            shared.journal.progressed(&job_id, &self.runner);
        }
    }

    /// Passes a result on if the chain still waits for it from this runner.
    fn result(&self, result: JobResult) {
        let job_id = result.job_id;
        if self.reported(&job_id, || Ok(result.result_data.as_bytes().to_vec())) {
            return;
        }
        let bytes = result.result_data.as_bytes().len();
        let wanted = {
            let shared = self.gateway.0.shared.lock();
            shared.state.job(&job_id).is_some_and(|job| {
                matches!(&job.status, JobStatus::Assigned(a) if a.committee.contains(&self.runner))
                    && !job.spec.is_committee()
                    && bytes <= job.spec.bounds.max_return_bytes as usize
            })
        };
        if !wanted {
            tracing::debug!(runner = %self.runner, %job_id, bytes, "result not wanted");
            return;
        }
        let submission = SubmitResult {
            job_id,
            runner: self.runner,
            result: result.result_data.into_bytes(),
            runner_signature: result.runner_signed,
        };
        self.hand_in(job_id, Submission::Result(submission));
    }

    /// Passes a commitment on, even when the chain does not wait for it: two different ones in one
    /// attempt are evidence. The session has checked the runner's signature.
    fn committed(&self, commit: &JobCommit) {
        let JobCommit { job_id, deadline_block, commitment, runner_signed } = *commit;
        let runner = self.runner;
        let known = self.gateway.0.shared.lock().state.job(&job_id).map(Job::deadline);
        if known != Some(deadline_block) {
            tracing::debug!(%runner, %job_id, deadline = %deadline_block, "unknown attempt of job");
            return;
        }
        let commit = CommitResult { job_id, runner, commitment, runner_signature: runner_signed };
        self.hand_in(job_id, Submission::Commit { commit, deadline_block });
    }

    /// Passes a failure report on if the chain still waits for the runner.
    fn failed(&self, failure: JobFailure) {
        let JobFailure { job_id, reason, runner_signed } = failure;
        if self.reported(&job_id, || Err(ErrandError::Failed(reason.to_string()))) {
            return;
        }
        let said = Excuse::Failed(reason);
        self.report(ReportFailure {
            job_id,
            runner: self.runner,
            said,
            runner_signature: runner_signed,
        });
    }

    fn report(&self, report: ReportFailure) {
        let job_id = report.job_id;
        let state = self.gateway.0.shared.lock().state.clone();
        match check_failure(&state, &report) {
            Ok(_) => self.hand_in(job_id, Submission::Failure(report)),
            Err(error) => {
                tracing::debug!(runner = %self.runner, %job_id, %error, "report not wanted");
            }
        }
    }

    fn hand_in(&self, job_id: Hash, submission: Submission) {
        if self.gateway.0.handed_in.try_send(submission).is_err() {
            tracing::warn!(runner = %self.runner, %job_id, "result lost: too many are waiting");
        }
    }

    /// Logs a question that could not be sent; it is sent again with the next block.
    fn asked(&self, job_id: Hash, outcome: Result<(), AssignError>) {
        if let Err(error) = outcome {
            tracing::debug!(runner = %self.runner, %job_id, %error, "nothing asked");
        }
    }

    /// Changes the view if this is the runner's current connection.
    fn with_view(&self, change: impl FnOnce(&mut LocalView, &Address, Height)) {
        let mut shared = self.gateway.0.shared.lock();
        if self.link(&mut shared).is_some() {
            let head = shared.state.height();
            change(&mut shared.view, &self.runner, head);
        }
    }

    /// The runner's current connection, if it is this one.
    fn link<'a>(&self, shared: &'a mut GatewayShared) -> Option<&'a mut GatewayLink> {
        shared.links.get_mut(&self.runner).filter(|link| link.serial == self.serial)
    }

    pub(super) fn ended(self, end: End) {
        let mut shared = self.gateway.0.shared.lock();
        let head = shared.state.height();
        shared.journal.parted(&self.runner, end.into(), head);
        if self.half_open.is_some() {
            tracing::debug!(runner = %self.runner, remote = %self.remote, %end, "no runner connected");
            return;
        }
        if self.link(&mut shared).is_some() {
            shared.links.remove(&self.runner);
            shared.errands.lost(&self.runner);
            shared.view.lost(&self.runner);
            self.gateway.0.count.send_replace(shared.links.len());
        }
        tracing::info!(runner = %self.runner, %end, "runner disconnected");
    }
}

fn changes(delta: &CapabilityDelta) -> (Vec<Label>, Vec<Label>) {
    let capability = |name: &str| Label::Capability(name.to_owned());
    let entitlement = |name: &str| Label::Entitlement(name.to_owned());
    let added = delta.added_capabilities.iter().map(capability);
    let removed = delta.removed_capabilities.iter().map(capability);
    (
        added.chain(delta.added_entitlements.iter().map(entitlement)).collect(),
        removed.chain(delta.removed_entitlements.iter().map(entitlement)).collect(),
    )
}
