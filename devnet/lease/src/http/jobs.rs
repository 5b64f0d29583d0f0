//! Routes of jobs: list, show, stop; their logs and artifacts.

use super::{
    Context, Route,
    error::Refused,
    extract::{Access, Asked},
    json,
    openapi::{file_answer, log_answer},
};
use crate::{
    files::{ArtifactName, AttemptPlace},
    machine,
    messages::{
        Job, JobChanged, JobEvent, JobQuery, JobState, JobSummary, LOG_BYTES_HEADER,
        LOG_ENDED_HEADER, LogQuery, MAX_WAIT_SECONDS, StoredArtifact,
    },
    service::ServiceError,
};
use axum::{
    body::Body,
    http::{
        HeaderName, HeaderValue, Method,
        header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE},
    },
    response::{IntoResponse as _, Response},
};
use cowboy_host::http::openapi::Operation;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::{sync::Arc, time::Duration};
use tokio::{io::AsyncReadExt as _, sync::watch, task::spawn_blocking};

/// Longest part of a log in one answer, in bytes.
const LOG_PART: usize = 1 << 20;
const ARTIFACT_PIECE: usize = 64 << 10;
/// Characters that a part of a path has unescaped.
const SEGMENT: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'/');

pub(super) fn table() -> Vec<Route> {
    let artifact = "/api/v1/jobs/{job}/attempts/{attempt}/artifacts/{*name}";
    let operator = Access::Operator;
    vec![
        Route::new(Method::GET, "/api/v1/jobs", operator, list).documented(
            Operation::new("Jobs, newest first").query::<JobQuery>().many::<JobSummary>(),
        ),
        Route::new(Method::GET, "/api/v1/jobs/{job}", operator, show)
            .documented(Operation::new("A job with its whole history").one::<Job>(200)),
        Route::new(Method::GET, "/api/v1/jobs/{job}/events", operator, events).documented(
            Operation::new("The states that a job and its leases have entered").many::<JobEvent>(),
        ),
        Route::new(Method::POST, "/api/v1/jobs/{job}/cancel", operator, cancel)
            .documented(Operation::new("Cancels a job").one::<JobChanged>(200).refuses(409)),
        Route::new(Method::POST, "/api/v1/jobs/{job}/revoke", operator, revoke).documented(
            Operation::new("Revokes a job's lease").one::<JobChanged>(200).refuses(409),
        ),
        Route::new(Method::GET, "/api/v1/jobs/{job}/log", operator, log).documented(
            Operation::new("A part of a job's log; waits for more if it asks for that")
                .query::<LogQuery>()
                .answer(200, log_answer()),
        ),
        Route::new(Method::GET, "/api/v1/jobs/{job}/artifacts", operator, artifacts)
            .documented(Operation::new("The stored artifacts of a job").many::<StoredArtifact>()),
        Route::new(Method::GET, artifact, operator, download)
            .documented(Operation::new("An artifact").answer(200, file_answer())),
    ]
}

fn no_job() -> Refused {
    Refused::not_found("there is no such job, or no such attempt of it")
}

async fn list(context: Arc<Context>, asked: Asked) -> Result<Response, Refused> {
    let limit = asked.limit()?;
    let state = asked.parameter("state").map(|state| {
        let state = machine::JobState::named(state).map(JobState::from);
        state.ok_or_else(|| Refused::invalid("state", "expected a job's state, such as QUEUED"))
    });
    let run = asked.parameter("run").map(str::to_owned);
    let query = JobQuery { run, state: state.transpose()?, limit: Some(limit) };
    Ok(json(&context.service.read(move |reader| reader.jobs(&query, limit)).await?))
}

async fn show(context: Arc<Context>, asked: Asked) -> Result<Response, Refused> {
    let id = asked.segment("job").to_owned();
    let files = context.files.clone();
    let job = context.service.read(move |reader| {
        let mut job = reader.job(&id)?;
        if let Some(job) = &mut job {
            for attempt in &mut job.attempts {
                let (run, job) = (job.summary.run.clone(), job.summary.job.clone());
                attempt.log_bytes =
                    files.log_bytes(&AttemptPlace { run, job, attempt: attempt.attempt });
            }
        }
        Ok(job)
    });
    let mut job = job.await?.ok_or_else(no_job)?;
    if job.queue_position.is_some() {
        job.why_queued = context.service.why_queued(job.summary.job.clone()).await?;
    }
    Ok(json(&job))
}

async fn events(context: Arc<Context>, asked: Asked) -> Result<Response, Refused> {
    let job = asked.segment("job").to_owned();
    let events = context.service.read(move |reader| reader.events(&job)).await?;
    // Every job has an event from its creation.
    if events.is_empty() { Err(no_job()) } else { Ok(json(&events)) }
}

async fn cancel(context: Arc<Context>, asked: Asked) -> Result<Response, Refused> {
    let job = asked.segment("job").to_owned();
    let state = context.service.cancel(job.clone()).await?;
    Ok(json(&JobChanged { job, state }))
}

async fn revoke(context: Arc<Context>, asked: Asked) -> Result<Response, Refused> {
    let job = asked.segment("job").to_owned();
    let state = context.service.revoke(job.clone()).await?;
    Ok(json(&JobChanged { job, state }))
}

/// A part of a log. If there is nothing new yet, waits until there is or until the log can no
/// longer grow, because the given attempt has ended or, without one, the job has.
async fn log(context: Arc<Context>, asked: Asked) -> Result<Response, Refused> {
    let attempt = asked.number("attempt", 1, u32::MAX, "expected the number of an attempt")?;
    let offset = asked.number("offset", 0, u64::MAX, "expected a number of bytes")?.unwrap_or(0);
    let problem = "expected at most 30";
    let wait = asked.number("wait_seconds", 0, MAX_WAIT_SECONDS, problem)?.unwrap_or(0);
    let may_wait = context.waits.try_acquire().ok();
    let job = asked.segment("job").to_owned();
    let clock = context.service.clock();
    let until = clock.after(Duration::from_secs(wait));
    let mut closing = context.closing.clone();
    let mut changes = context.service.follow(&job);
    loop {
        changes.mark_unchanged();
        let id = job.clone();
        let found = context.service.read(move |reader| reader.following(&id, attempt)).await?;
        let found = found.ok_or_else(no_job)?;
        let place = found.attempt.map(|attempt| AttemptPlace {
            run: found.run.clone(),
            job: job.clone(),
            attempt,
        });
        let mut grows = place.as_ref().map(|place| context.files.watch_log(place));
        let (bytes, length) = match place {
            None => (Vec::new(), 0),
            Some(place) => {
                let files = context.files.clone();
                blocking(move || files.read_log(&place, offset, LOG_PART)).await??
            }
        };
        let whole = offset.saturating_add(bytes.len() as u64) >= length;
        let over = clock.now() >= until || *closing.borrow();
        if !bytes.is_empty() || found.ended || over {
            return Ok(log_part(bytes, length, found.ended && whole));
        }
        if may_wait.is_none() {
            return Err(ServiceError::Full.into());
        }
        tokio::select! {
            () = changed(&mut changes) => {}
            () = async { match &mut grows {
                Some(grows) => changed(grows).await,
                None => std::future::pending().await,
            } } => {}
            () = clock.reaches(until) => {}
            _ = closing.wait_for(|closing| *closing) => {}
        }
    }
}

/// Resolves on the next change; never resolves if the sender is gone.
pub(super) async fn changed(changes: &mut watch::Receiver<()>) {
    if changes.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn log_part(bytes: Vec<u8>, length: u64, ended: bool) -> Response {
    let ended = HeaderValue::from_static(if ended { "true" } else { "false" });
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
        (HeaderName::from_static(LOG_BYTES_HEADER), HeaderValue::from(length)),
        (HeaderName::from_static(LOG_ENDED_HEADER), ended),
    ];
    (headers, bytes).into_response()
}

pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refused> {
    spawn_blocking(work).await.map_err(|error| {
        tracing::error!(%error, "a request's task failed");
        Refused::internal()
    })
}

async fn run_of(context: &Context, job: &str) -> Result<String, Refused> {
    let id = job.to_owned();
    let found = context.service.read(move |reader| reader.run_of(&id)).await?;
    found.ok_or_else(no_job)
}

async fn artifacts(context: Arc<Context>, asked: Asked) -> Result<Response, Refused> {
    let job = asked.segment("job").to_owned();
    let run = run_of(&context, &job).await?;
    let (files, id) = (context.files.clone(), job.clone());
    let kept = blocking(move || files.artifacts(&run, &id)).await??;
    let kept = kept.into_iter().map(|(attempt, name, bytes)| {
        let uri = artifact_uri(&job, attempt, &name);
        StoredArtifact { attempt, name: name.as_str().to_owned(), bytes, uri }
    });
    Ok(json(&kept.collect::<Vec<_>>()))
}

/// The path of an artifact, relative to the server's address.
pub(super) fn artifact_uri(job: &str, attempt: u32, name: &ArtifactName) -> String {
    let name = utf8_percent_encode(name.as_str(), SEGMENT);
    format!("/api/v1/jobs/{job}/attempts/{attempt}/artifacts/{name}")
}

async fn download(context: Arc<Context>, asked: Asked) -> Result<Response, Refused> {
    let job = asked.segment("job").to_owned();
    let name: ArtifactName = asked.segment("name").parse()?;
    let attempt = asked.segment("attempt").parse().map_err(|_| no_job())?;
    let run = run_of(&context, &job).await?;
    let (file, length) =
        context.files.open_artifact(&AttemptPlace { run, job, attempt }, &name).await?;
    Ok(attachment(file, length))
}

/// A file as a download, so that no browser displays it.
pub(super) fn attachment(file: tokio::fs::File, length: u64) -> Response {
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
        (CONTENT_DISPOSITION, HeaderValue::from_static("attachment")),
        (CONTENT_LENGTH, HeaderValue::from(length)),
    ];
    // The length is already in the header: a file that grows in the meantime is cut off there.
    let pieces = futures::stream::try_unfold(file.take(length), async |mut file| {
        let mut piece = vec![0; ARTIFACT_PIECE];
        let read = file.read(&mut piece).await?;
        piece.truncate(read);
        Ok::<_, std::io::Error>((read > 0).then_some((piece, file)))
    });
    (headers, Body::from_stream(pieces)).into_response()
}
