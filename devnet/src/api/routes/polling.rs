//! Routes for runners without a working connection: polling of jobs, and delivery of results (spec
//! connectivity.md §6, §7).
//!
//! Polling has no effect on presence: no request here reaches a validator's view. In phase `sunset`
//! all these routes are gone.

use super::control::takes_part;
use crate::{
    api::{
        error::ApiError,
        route::{Route, one, signed},
        view::View,
    },
    chain::anchor::Anchor,
    types::{
        Bytes, BytesText, CommitRequest, FailureRequest, POLLED_BYTES, POLLED_JOBS, PolledJob,
        PolledJobs, ResultAccepted, ResultRequest, Text, Wanted,
    },
    validator::gateway::{Submission, assigned},
};
use cowboy_engine::{
    chain::{
        self, Subject,
        transaction::{CommitResult, Excuse, ReportFailure, Reveal, SubmitResult},
        transition::{ResultError, check_commit, check_failure, check_result, check_reveal},
    },
    job::spec::{Job, JobStatus},
    primitives::{Address, Hash, Height, Signature, codec::to_vec, keccak256},
    wire::{JobCommit, Reason},
};

pub(super) fn table() -> Vec<Route> {
    vec![
        one(
            "/runner/{runner}/jobs",
            "The open jobs assigned to a runner that polls; 410 in phase sunset",
            |view: &View, runner: String| jobs(view, &runner),
        ),
        signed(
            "/runner/{runner}/job_commit",
            "A runner's signed commitment, for lack of a connection; 410 in phase sunset",
            commit,
        ),
        signed(
            "/runner/{runner}/job_failure",
            "A runner's signed report that it cannot do a job; 410 in phase sunset",
            report,
        ),
        signed(
            "/runner/{runner}/job_result",
            "A runner's signed result, for lack of a connection; 410 in phase sunset",
            take,
        ),
    ]
}

fn jobs(view: &View, runner: &str) -> Result<PolledJobs, ApiError> {
    still_polled(&view.state)?;
    let runner = registered(view, runner)?;
    let mut open: Vec<(&Hash, &Job, Wanted)> = assigned(&view.state)
        .filter(|(_, _, drawn)| *drawn == runner)
        .filter_map(|(id, job, _)| Some((id, job, wanted(job, &runner)?)))
        .collect();
    open.sort_by_key(|(id, job, _)| (job.status.assignment().map(|a| a.height), **id));
    let mut answer = PolledJobs {
        height: view.head().get(),
        phase: view.state.phase().to_string(),
        jobs: Vec::new(),
        more: false,
    };
    let mut bytes = 0;
    let anchor = Anchor::newest(&view.running.ledger, Height::GENESIS)?;
    for (id, job, wants) in open {
        let Some(assignment) = job.status.assignment() else { continue };
        let spec = to_vec(&*job.spec);
        let is_work = matches!(wants, Wanted::Result | Wanted::Commitment);
        let at = assignment.height;
        let proving = anchor.as_ref().filter(|of| is_work && of.state().height() >= at);
        let proof = proving.and_then(|anchor| anchor.prove(Subject::Job(*id)));
        bytes += spec.len() + proof.as_ref().map_or(0, Vec::len);
        let full = answer.jobs.len() >= POLLED_JOBS || bytes > POLLED_BYTES;
        if full && !answer.jobs.is_empty() {
            answer.more = true;
            break;
        }
        answer.jobs.push(PolledJob {
            job_id: (*id).into(),
            spec: Text(Bytes(spec)),
            assigned_at: assignment.height.get(),
            deadline_block: job.deadline().get(),
            wants,
            proof: proof.map(|proof| Text(Bytes(proof))),
        });
    }
    Ok(answer)
}

/// The next step that the chain expects from this member of the job's committee; `None` if the
/// member has not committed in time and has nothing left to do.
fn wanted(job: &Job, runner: &Address) -> Option<Wanted> {
    Some(match &job.status {
        _ if job.attempt.is_reported_by(runner) => Wanted::Nothing,
        _ if !job.spec.is_committee() => Wanted::Result,
        JobStatus::Running(round) if round.commitment(runner).is_some() => Wanted::Nothing,
        JobStatus::Verified(..) => Wanted::Reveal,
        JobStatus::Committed(round) => match round.commitment(runner)?.result {
            None => Wanted::Reveal,
            Some(_) => Wanted::Nothing,
        },
        _ => Wanted::Commitment,
    })
}

/// Checks and submits a result like one from a connection: the result of a runner that works alone,
/// or one with a commitment.
fn take(view: &View, runner: &str, request: ResultRequest) -> Result<ResultAccepted, ApiError> {
    still_polled(&view.state)?;
    let runner = registered(view, runner)?;
    let ResultRequest { job_id, result, runner_signature } = request;
    let runner_signature = signature(&runner_signature)?;
    if view.state.commitments(&job_id.0).is_some() {
        let reveal = Reveal { runner, result: result.0.0, runner_signature };
        match check_reveal(&view.state, &job_id.0, &reveal) {
            Ok(()) => hand_in(view, Submission::Reveal { job_id: job_id.0, reveal })?,
            Err(ResultError::AlreadyRevealed(_)) => {}
            Err(error) => return Err(refused(&view.state, &job_id.0, error)),
        }
        return Ok(ResultAccepted { job_id });
    }
    let submitted = SubmitResult { job_id: job_id.0, runner, result: result.0.0, runner_signature };
    match check_result(&view.state, &submitted) {
        Ok(_) => hand_in(view, Submission::Result(submitted))?,
        // A runner that lost the first answer gets the same answer again.
        Err(ResultError::WrongState { .. }) if is_final(&view.state, &submitted) => {}
        Err(error) => return Err(refused(&view.state, &submitted.job_id, error)),
    }
    Ok(ResultAccepted { job_id })
}

fn commit(view: &View, runner: &str, request: CommitRequest) -> Result<ResultAccepted, ApiError> {
    still_polled(&view.state)?;
    let runner = registered(view, runner)?;
    let CommitRequest { job_id, commitment, runner_signature } = request;
    let runner_signature = signature(&runner_signature)?;
    let commit =
        CommitResult { job_id: job_id.0, runner, commitment: commitment.0, runner_signature };
    match check_commit(&view.state, &commit) {
        Ok(job) => {
            let deadline_block = job.deadline();
            hand_in(view, Submission::Commit { commit, deadline_block })?;
        }
        // A runner that lost the first answer gets the same answer again.
        Err(ResultError::AlreadyCommitted(_) | ResultError::WrongState { .. })
            if is_committed(&view.state, &commit) => {}
        Err(error) => {
            // A second commitment signed by the runner is evidence against it.
            let signed = view.state.job(&job_id.0).map(Job::deadline);
            if let Some(deadline_block) =
                signed.filter(|deadline| is_signed(&view.state, &commit, *deadline))
            {
                hand_in(view, Submission::Commit { commit, deadline_block })?;
            }
            return Err(refused(&view.state, &job_id.0, error));
        }
    }
    Ok(ResultAccepted { job_id })
}

fn is_signed(state: &chain::State, commit: &CommitResult, deadline: Height) -> bool {
    let digest = JobCommit::digest(state.chain_id(), &commit.job_id, deadline, &commit.commitment);
    let record = state.registry().get(&commit.runner);
    record.is_some_and(|record| record.pubkey.verify(&digest, &commit.runner_signature))
}

fn report(view: &View, runner: &str, request: FailureRequest) -> Result<ResultAccepted, ApiError> {
    still_polled(&view.state)?;
    let runner = registered(view, runner)?;
    let FailureRequest { job_id, reason, runner_signature } = request;
    let (got, limit) = (reason.len(), Reason::LIMIT);
    if got > limit {
        let message = format!("reason: {got} bytes, expected at most {limit}");
        return Err(ApiError::bad_request(message));
    }
    let report = ReportFailure {
        job_id: job_id.0,
        runner,
        said: Excuse::Failed(Reason::truncated(&reason)),
        runner_signature: signature(&runner_signature)?,
    };
    match check_failure(&view.state, &report) {
        Ok(_) => hand_in(view, Submission::Failure(report))?,
        // A runner that lost the first answer gets the same answer again, even when the attempt is
        // over: the chain accepts one report per job.
        Err(_)
            if view.state.job(&job_id.0).is_some_and(|job| job.attempt.is_reported_by(&runner)) => {
        }
        Err(error) => return Err(refused(&view.state, &job_id.0, error)),
    }
    Ok(ResultAccepted { job_id })
}

fn hand_in(view: &View, handed: Submission) -> Result<(), ApiError> {
    takes_part(view)?;
    view.running.node.hand_in(handed)
}

fn signature(bytes: &BytesText) -> Result<Signature, ApiError> {
    let bytes = &bytes.0.0;
    let signature = <[u8; 65]>::try_from(bytes.as_slice()).map_err(|_| {
        let got = bytes.len();
        ApiError::bad_request(format!("runner_signature: {got} bytes, a signature has 65"))
    })?;
    Ok(Signature(signature))
}

fn is_committed(state: &chain::State, commit: &CommitResult) -> bool {
    let status = state.job(&commit.job_id).map(|job| &job.status);
    let Some(JobStatus::Running(round) | JobStatus::Committed(round)) = status else {
        return false;
    };
    let known = round.commitment(&commit.runner);
    known.is_some_and(|known| known.hash == commit.commitment)
}

fn is_final(state: &chain::State, submitted: &SubmitResult) -> bool {
    state.job(&submitted.job_id).is_some_and(|job| match &job.status {
        JobStatus::Verified(_, outcome) => {
            outcome.runner == submitted.runner
                && outcome.result_hash == keccak256(&[&submitted.result])
        }
        _ => false,
    })
}

fn refused(state: &chain::State, job_id: &Hash, error: ResultError) -> ApiError {
    let refused = ApiError::rejected(error.to_string());
    match state.job(job_id) {
        Some(job) if matches!(job.status, JobStatus::Failed(_)) => {
            refused.hint(format!("the last block whose results counted was {}", job.deadline()))
        }
        _ => refused,
    }
}

/// Refuses in phase `sunset`, which no longer has polling.
fn still_polled(state: &chain::State) -> Result<(), ApiError> {
    if state.phase().polls() {
        return Ok(());
    }
    let since = state.migration().since;
    Err(ApiError::gone(format!("PollingGone: migration phase sunset, since block {since}")).hint(
        "jobs are pushed and results taken over QUIC: keep the runner connected to the validators \
         of its subset",
    ))
}

fn registered(view: &View, runner: &str) -> Result<Address, ApiError> {
    let address = view.resolve("runner", runner)?;
    if view.state.registry().order().index(&address).is_none() {
        let name = view.name(&address);
        return Err(ApiError::not_found(format!("{name} is not registered as a runner")));
    }
    Ok(address)
}
