//! Jobs and their results.

use crate::{
    api::{
        backend::ReportedProgress,
        convert::{self, ToJson as _},
        error::ApiError,
        ids,
        route::{Route, many, one},
        view::{View, time},
    },
    storage::{StoredEvent, StoredResult},
    types::{
        Bytes, JOB_PAGE, JOB_PAGE_LIMIT, Job, JobDispatch, JobEvent, JobQuery, JobResult,
        JobSummary, NamedKind, RunnerProgress, Text, TimeText,
    },
};
use cowboy_engine::{
    chain::{EventKind, event::WorkFailed},
    job::spec::{self, Assignment, Failure, FailureReason, JobStatus, Outcome},
    primitives::{Address, Hash, Height},
    registry::JobKind,
};
use std::{cmp::Reverse, collections::BTreeMap};

pub(super) fn table() -> Vec<Route> {
    vec![
        many("/v1/jobs", "Jobs, newest first", |view: &View, (), query: JobQuery| {
            list(view, &query)
        }),
        one("/v1/jobs/{id}", "A job and its events", |view: &View, id: String| show(view, &id)),
        one("/v1/jobs/{id}/result", "A job's verified result", |view: &View, id: String| {
            result(view, &id)
        }),
        many(
            "/v1/jobs/{id}/dispatches",
            "The dispatches of a job by each running validator, and their outcomes",
            |view: &View, id: String| dispatches(view, &id),
        ),
    ]
}

fn list(view: &View, query: &JobQuery) -> Result<Vec<JobSummary>, ApiError> {
    let limit = query.limit.unwrap_or(JOB_PAGE).min(JOB_PAGE_LIMIT);
    let kind = query.kind.as_deref().map(str::parse::<JobKind>).transpose();
    let kind = kind.map_err(|error| ApiError::bad_request(format!("kind: {error}")))?;
    let address = |what, text: &Option<String>| {
        text.as_deref().map(|text| view.resolve(what, text)).transpose()
    };
    let submitter = address("account", &query.submitter)?;
    let runner = address("runner", &query.runner)?;
    let wanted = |job: &spec::Job| {
        query.status.is_none_or(|status| convert::job::status(&job.status) == status)
            && kind.is_none_or(|kind| job.spec.work.kind() == kind)
            && submitter.is_none_or(|submitter| job.submitter == submitter)
            && runner.is_none_or(|runner| committee(job).contains(&runner))
    };
    let mut jobs: Vec<_> = view.state.jobs().filter(|(_, job)| wanted(job)).collect();
    jobs.sort_by_key(|(id, job)| (Reverse(job.submitted_at), **id));
    Ok(jobs.into_iter().take(limit).map(|(id, job)| summary(view, id, job)).collect())
}

fn summary(view: &View, id: &Hash, job: &spec::Job) -> JobSummary {
    JobSummary {
        job_id: (*id).into(),
        name: view.backend.labels.name(NamedKind::Job, id),
        kind: job.spec.work.kind().name().to_owned(),
        submitter: job.submitter.into(),
        submitter_name: view.backend.names.get(&job.submitter),
        status: convert::job::status(&job.status),
        committee: view.named(committee(job)),
        submitted_at: job.submitted_at.get(),
        final_at: job.status.ended_at().map(Height::get),
    }
}

fn show(view: &View, id: &str) -> Result<Job, ApiError> {
    let id = named(view, id)?;
    let job = find(view, &id)?;
    let outcome = outcome(job);
    let result = stored_result(view, &id, job)?.map(|result| result.bytes);
    let events = view.store().events_of(&id)?;
    let mut times = BlockTimes { view, known: BTreeMap::new() };
    let latency_ms = match job.status.ended_at() {
        Some(_) if view.kept(job.submitted_at).is_err() => None,
        None => None,
        Some(end) => Some(times.of(end)?.saturating_sub(times.of(job.submitted_at)?)),
    };
    let JobSummary { job_id, name, kind, submitter, submitter_name, status, committee, .. } =
        summary(view, &id, job);
    Ok(Job {
        job_id,
        name,
        kind,
        submitter,
        submitter_name,
        status,
        committee,
        committee_addresses: self::committee(job).iter().copied().map(Text).collect(),
        attempts: attempts(&events, view.head()),
        result_text: result.as_deref().and_then(convert::job::text),
        result: result.map(|bytes| Text(Bytes(bytes))),
        runner: outcome.map(|outcome| view.name(&outcome.runner)),
        max_price: job.spec.max_price.into(),
        paid: outcome.map(|outcome| outcome.paid.into()),
        submitted_at: job.submitted_at.get(),
        assigned_at: job.status.assignment().map(|assignment| assignment.height.get()),
        deadline: job.deadline().get(),
        final_at: job.status.ended_at().map(Height::get),
        latency_ms,
        error: failure(view, job, &events),
        spec: job.spec.to_json(),
        events: history(events, &mut times)?,
        progress: progress(view, &id, job),
    })
}

/// The last progress reports of an open job's runners, from all validators: each runner reports
/// only to the validator from which it accepted the assignment.
fn progress(view: &View, id: &Hash, job: &spec::Job) -> Vec<RunnerProgress> {
    let validators = view.backend.slots();
    let mut newest: BTreeMap<Address, ReportedProgress> = BTreeMap::new();
    for validator in validators.iter().filter_map(|slot| slot.running()) {
        for said in validator.node.progress(id) {
            let known = newest.get(&said.runner).map(|known| (known.height, known.percent));
            if known.is_none_or(|known| known < (said.height, said.percent)) {
                newest.insert(said.runner, said);
            }
        }
    }
    // Only runners that have not committed, in draw order; a validator may still list the others
    // because it has not seen their commitments yet.
    let open = match &job.status {
        JobStatus::Assigned(_) => committee(job).to_vec(),
        JobStatus::Running(round) => round.silent(),
        _ => Vec::new(),
    };
    open.iter()
        .filter_map(|runner| newest.remove(runner))
        .map(|ReportedProgress { runner, percent, detail, height }| RunnerProgress {
            runner: view.name(&runner),
            percent,
            detail,
            height: height.get(),
        })
        .collect()
}

/// `GET /v1/jobs/{id}/dispatches`: by attempt, runner and validator. Only running validators
/// answer, and they remember only their dispatches since they started.
fn dispatches(view: &View, id: &str) -> Result<Vec<JobDispatch>, ApiError> {
    let id = named(view, id)?;
    find(view, &id)?;
    let mut dispatches = Vec::new();
    for slot in view.backend.slots() {
        let Some(running) = slot.running() else { continue };
        for dispatch in running.node.dispatches(&id) {
            dispatches.push(JobDispatch {
                validator: slot.name().to_owned(),
                runner: view.name(&dispatch.runner),
                assigned_at: dispatch.assigned_at.get(),
                outcome: dispatch.outcome,
                answered_ms: dispatch.answered_ms,
                started_ms: dispatch.started_ms,
                done_ms: dispatch.done_ms,
            });
        }
    }
    dispatches.sort_by(|a, b| {
        let key = |one: &JobDispatch| (one.assigned_at, one.runner.clone(), one.validator.clone());
        key(a).cmp(&key(b))
    });
    Ok(dispatches)
}

fn result(view: &View, id: &str) -> Result<JobResult, ApiError> {
    let id = named(view, id)?;
    let job = find(view, &id)?;
    let Some(StoredResult { height, runner, bytes }) = stored_result(view, &id, job)? else {
        let message = format!("job {id} has no result: it is {}", job.status.name());
        return Err(match failure(view, job, &view.store().events_of(&id)?) {
            Some(failure) => ApiError::not_found(message).hint(failure),
            None => {
                ApiError::not_found(message).hint(format!("wait for it: cowboyctl job wait {id}"))
            }
        });
    };
    Ok(JobResult {
        job_id: id.into(),
        runner: view.name(&runner),
        runner_address: runner.into(),
        result_text: convert::job::text(&bytes),
        result: Text(Bytes(bytes)),
        final_at: height.get(),
    })
}

/// Resolves the job id in a request: a name, an id, the beginning of an id, or `latest` for the
/// newest job, which is the first in the list.
pub(super) fn named(view: &View, text: &str) -> Result<Hash, ApiError> {
    if text != "latest" {
        let named = view.backend.labels.id(NamedKind::Job, text);
        let jobs = view.state.jobs().map(|(id, _)| id);
        return ids::only("job", named.as_deref().unwrap_or(text), jobs);
    }
    let newest = view.state.jobs().min_by_key(|(id, job)| (Reverse(job.submitted_at), **id));
    newest.map(|(id, _)| *id).ok_or_else(|| {
        ApiError::not_found("there is no job so far")
            .hint("submit one: cowboyctl job submit custom COMMAND")
    })
}

/// A job on the chain, unless the block that ended it is no longer kept.
pub(super) fn find<'a>(view: &'a View, id: &Hash) -> Result<&'a spec::Job, ApiError> {
    let job = view.state.job(id).ok_or_else(|| {
        ApiError::not_found(format!("there is no job {id}")).hint("list them: cowboyctl job ls")
    })?;
    if let Some(end) = job.status.ended_at() {
        view.kept(end)?;
    }
    Ok(job)
}

/// The result of a verified job. The store may be a block ahead of the job's state: while the job
/// is not verified in that state, a stored result does not count yet.
fn stored_result(
    view: &View,
    id: &Hash,
    job: &spec::Job,
) -> Result<Option<StoredResult>, ApiError> {
    if outcome(job).is_none() {
        return Ok(None);
    }
    view.store().result(id)?.map(Some).ok_or_else(|| {
        ApiError::internal(format!("job {id} is verified, but the validator has no result of it"))
    })
}

fn committee(job: &spec::Job) -> &[Address] {
    job.status.assignment().map_or(&[], |Assignment { committee, .. }| committee)
}

const fn outcome(job: &spec::Job) -> Option<&Outcome> {
    match &job.status {
        JobStatus::Verified(_, outcome) => Some(outcome),
        _ => None,
    }
}

/// The reason why there is no result, with the last runner's report that it could not do the work.
fn failure(view: &View, job: &spec::Job, events: &[StoredEvent]) -> Option<String> {
    match &job.status {
        JobStatus::Failed(Failure { height, reason, .. }) => {
            let why = match reason {
                FailureReason::NoCandidates => {
                    format!("no runner qualified up to block {height}; see job explain")
                }
                FailureReason::NoResult => format!("no result came up to block {height}"),
                FailureReason::NoAgreement => {
                    format!("the results did not agree, as block {height} found")
                }
                FailureReason::WorkFailed => {
                    format!("too few runners could do the work, as block {height} found")
                }
            };
            Some(match last_report(view, events, *height) {
                Some(report) => format!("{why}; {report}"),
                None => why,
            })
        }
        JobStatus::Cancelled(cancelled) => {
            Some(format!("its submitter cancelled it in block {}", cancelled.height))
        }
        _ => None,
    }
}

/// The last report of failed work up to a block: the runner and its reason. A runner's reason can
/// be any text, so control characters are replaced: it becomes one line that cannot move a
/// terminal's cursor.
fn last_report(view: &View, events: &[StoredEvent], up_to: Height) -> Option<String> {
    let reports = events.iter().filter(|stored| stored.height <= up_to);
    let last = reports.rev().find_map(|stored| match &stored.event.kind {
        EventKind::WorkFailed(WorkFailed { runner, reason, .. }) => Some((runner, reason)),
        _ => None,
    });
    last.map(|(runner, reason)| {
        let line = reason.replace(char::is_control, " ");
        format!("{}: {line}", view.name(runner))
    })
}

pub(super) fn attempts(events: &[StoredEvent], up_to: Height) -> u32 {
    let drawn = events.iter().filter(|stored| {
        stored.height <= up_to && matches!(stored.event.kind, EventKind::JobAssigned(_))
    });
    convert::count(drawn.count())
}

/// The events of a job. While it waits there is an event per block; only the first and the last of
/// each run are listed.
fn history(
    events: Vec<StoredEvent>,
    times: &mut BlockTimes<'_>,
) -> Result<Vec<JobEvent>, ApiError> {
    let waits = |stored: Option<&StoredEvent>| {
        stored.is_some_and(|stored| matches!(stored.event.kind, EventKind::JobWaiting(_)))
    };
    let told = |index: usize| {
        let before = index.checked_sub(1).and_then(|before| events.get(before));
        !(waits(before) && waits(events.get(index)) && waits(events.get(index + 1)))
    };
    (0..events.len())
        .filter(|index| told(*index))
        .map(|index| &events[index])
        .filter(|stored| stored.height <= times.view.head())
        .map(|StoredEvent { height, event, .. }| {
            Ok(JobEvent {
                height: height.get(),
                event: event.kind.name().to_owned(),
                timestamp: times.text(*height)?,
                data: convert::event::data(&event.kind),
            })
        })
        .collect()
}

/// Timestamps of blocks, each read once.
struct BlockTimes<'a> {
    view: &'a View,
    known: BTreeMap<Height, u64>,
}

impl BlockTimes<'_> {
    /// Unix ms.
    fn of(&mut self, height: Height) -> Result<u64, ApiError> {
        if let Some(ms) = self.known.get(&height) {
            return Ok(*ms);
        }
        let ms = self.view.block(height)?.header.timestamp_ms;
        self.known.insert(height, ms);
        Ok(ms)
    }

    fn text(&mut self, height: Height) -> Result<TimeText, ApiError> {
        self.of(height).map(time)
    }
}
