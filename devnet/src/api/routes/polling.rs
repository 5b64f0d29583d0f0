//! What runners reach over HTTP where a connection does not do: their jobs, and where results go
//! (spec connectivity.md §6, §7).
//!
//! Polling says nothing about presence: no request here reaches a validator's view. From phase
//! `sunset` on both routes are gone.

use crate::{
    api::{
        error::ApiError,
        extract::{InBody, InPath},
        server::Shared,
        types::{
            Bytes, POLLED_BYTES, POLLED_JOBS, PolledJob, PolledJobs, ResultAccepted, ResultRequest,
            Text,
        },
        view::View,
    },
    validator::gateway::{Handed, assigned},
};
use axum::{Json, extract::State, http::StatusCode};
use cowboy_engine::{
    chain::{
        self,
        transaction::SubmitResult,
        transition::{ResultError, check_result},
    },
    job::spec::{Job, JobStatus},
    primitives::{Address, Hash, Signature, codec::to_vec, keccak256},
};
use std::sync::Arc;

/// `GET /runner/{runner}/jobs`
pub(super) fn jobs(view: &View, runner: &str) -> Result<PolledJobs, ApiError> {
    still_polled(&view.state)?;
    let runner = registered(view, runner)?;
    let mut open: Vec<(&Hash, &Job)> = assigned(&view.state)
        .filter(|(_, _, drawn)| *drawn == runner)
        .map(|(id, job, _)| (id, job))
        .collect();
    open.sort_by_key(|(id, job)| (job.status.assignment().map(|a| a.height), **id));
    let mut answer = PolledJobs {
        height: view.head().get(),
        phase: view.state.phase().to_string(),
        jobs: Vec::new(),
        more: false,
    };
    let mut bytes = 0;
    for (id, job) in open {
        let Some(assignment) = job.status.assignment() else { continue };
        let spec = to_vec(&*job.spec);
        bytes += spec.len();
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
        });
    }
    Ok(answer)
}

/// `POST /runner/{runner}/job_result`: the result is signed by the runner, which is as good as a
/// token for what it can do.
pub(super) async fn job_result(
    State(shared): State<Arc<Shared>>,
    InPath(runner): InPath<String>,
    InBody(request): InBody<ResultRequest>,
) -> Result<(StatusCode, Json<ResultAccepted>), ApiError> {
    let accepted =
        shared.blocking(move |backend| take(&View::of(backend, None)?, &runner, request)).await?;
    Ok((StatusCode::ACCEPTED, Json(accepted)))
}

/// Checks a result as one from a connection, and submits it the same way.
fn take(view: &View, runner: &str, request: ResultRequest) -> Result<ResultAccepted, ApiError> {
    still_polled(&view.state)?;
    let runner = registered(view, runner)?;
    let ResultRequest { job_id, result, runner_signature } = request;
    let signature = <[u8; 65]>::try_from(runner_signature.0.0.as_slice()).map_err(|_| {
        let got = runner_signature.0.0.len();
        ApiError::bad_request(format!("runner_signature: {got} bytes, a signature has 65"))
    })?;
    let submitted = SubmitResult {
        job_id: job_id.0,
        runner,
        result: result.0.0,
        runner_signature: Signature(signature),
    };
    match check_result(&view.state, &submitted) {
        Ok(_) => view.running.handed_in.try_send(Handed::Result(submitted)).map_err(|_| {
            ApiError::unavailable("too many results wait to be submitted").hint("send it again")
        })?,
        // Whoever lost the first answer gets the same again.
        Err(ResultError::WrongState { .. }) if is_final(&view.state, &submitted) => {}
        Err(error) => return Err(refused(&view.state, &submitted.job_id, error)),
    }
    Ok(ResultAccepted { job_id })
}

/// Whether this very result is the job's.
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

/// Refuses in the phase that has no polling any more.
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
