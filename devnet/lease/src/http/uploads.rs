//! Routes for the bearer of an active lease: logs, artifacts, caches, and the artifacts of the jobs
//! that its own job needs.
//!
//! An upload may take so long that the lease is lost in the meantime. So the lease is checked
//! twice: before anything is received, and by the owner of all leases at the moment when the file
//! gets its name. An upload with a stale lease leaves nothing behind.

use super::{
    Context, Route,
    error::Refused,
    extract::{Access, Asked, drain},
    jobs::{artifact_uri, attachment, blocking},
    json,
    openapi::{file_answer, lease_header},
    shares::Share,
};
use crate::{
    check,
    files::{ArtifactName, FileError, Ready},
    machine::RunnerId,
    messages::{
        ArtifactStored, ArtifactStoredTag, CacheStored, CacheStoredTag, ErrorCode, LogAck,
        LogAckTag, LogOffset, MAX_NEEDED, NeededArtifact,
    },
    service::{Active, ServiceError},
};
use axum::{body::Body, http::Method, response::Response};
use cowboy_host::http::openapi::Operation;
use futures::StreamExt as _;
use std::{io, mem, sync::Arc, time::Duration};
use tokio::time::{Instant, timeout_at};

/// Longest pause in an upload.
const STILL: Duration = Duration::from_secs(30);
/// Minimum average rate of an upload after the first [`STILL`], in bytes per second.
const LEAST_RATE: u64 = 16 << 10;

/// The operation with the lease that it requires.
fn held(operation: Operation) -> Operation {
    operation.parameter(lease_header()).refuses(409)
}

pub(super) fn table() -> Vec<Route> {
    let (artifact, cache) =
        ("/api/v1/internal/artifacts/{*name}", "/api/v1/internal/caches/{*key}");
    let runner = Access::Runner;
    vec![
        Route::new(Method::PUT, "/api/v1/internal/log", runner, append_log).documented(held(
            Operation::new("Appends to the log of the attempt")
                .query::<LogOffset>()
                .bytes()
                .one::<LogAck>(200),
        )),
        Route::new(Method::PUT, artifact, runner, store_artifact).upload().documented(held(
            Operation::new("Stores an artifact of the attempt; replaces one with the same name")
                .bytes()
                .one::<ArtifactStored>(200),
        )),
        Route::new(Method::GET, cache, runner, open_cache)
            .documented(held(Operation::new("A cache").answer(200, file_answer()))),
        Route::new(Method::GET, "/api/v1/internal/needs", runner, needs).documented(held(
            Operation::new("The artifacts of the needed jobs, at most 10,000")
                .many::<NeededArtifact>(),
        )),
        Route::new(Method::GET, "/api/v1/internal/needs/{job}/{*name}", runner, open_needed)
            .documented(held(
                Operation::new("An artifact of a needed job, by name").answer(200, file_answer()),
            )),
        Route::new(Method::PUT, cache, runner, store_cache).upload().documented(held(
            Operation::new("Stores a cache; replaces one with the same key")
                .bytes()
                .one::<CacheStored>(200),
        )),
    ]
}

struct Bearer {
    runner: RunnerId,
    lease_id: String,
}

/// The bearer of the lease that the request names, and the lease's rights. Drains the body if it
/// refuses.
async fn bearer(context: &Context, asked: &mut Asked) -> Result<(Bearer, Active), Refused> {
    let runner = asked.runner()?;
    let find = async |lease_id: String| {
        let active = context.service.active(runner.clone(), lease_id.clone()).await;
        let active = active.map_err(|error| Refused::of_lease(error, &lease_id))?;
        Ok((Bearer { runner, lease_id }, active))
    };
    let found = match asked.lease_id() {
        Ok(lease_id) => find(lease_id).await,
        Err(refused) => Err(refused),
    };
    if found.is_err() {
        drain(mem::take(&mut asked.upload)).await;
    }
    found
}

/// Names an upload if the lease is still valid, and makes it durable. Returns its length in bytes.
async fn keep(context: &Context, bearer: Bearer, ready: Ready) -> Result<u64, Refused> {
    let Bearer { runner, lease_id } = bearer;
    let naming = ready.naming();
    let named = context.service.while_active(runner, lease_id.clone(), move |_| naming()).await;
    named.map_err(|error| Refused::of_lease(error, &lease_id))??;
    Ok(ready.settle().await?)
}

async fn upload(context: &Context, asked: &mut Asked) -> Result<Share, Refused> {
    match context.uploads.take(&asked.runner()?) {
        Some(upload) => Ok(upload),
        None => {
            drain(mem::take(&mut asked.upload)).await;
            Err(ServiceError::Full.into())
        }
    }
}

async fn append_log(context: Arc<Context>, mut asked: Asked) -> Result<Response, Refused> {
    let problem = "expected a number of bytes";
    let Some(offset) = asked.number("offset", 0, u64::MAX, problem)? else {
        return Err(Refused::field(ErrorCode::MissingField, "offset", problem));
    };
    let (_, Active { place, cancel }) = bearer(&context, &mut asked).await?;
    let (files, bytes) = (context.files.clone(), asked.message);
    let stored = blocking(move || files.append_log(&place, offset, &bytes)).await?;
    let bytes = stored.map_err(|error| match error {
        FileError::TooLarge { limit } => {
            Refused::too_large(ErrorCode::LogFull, format!("the log is full: it has {limit} bytes"))
        }
        error => error.into(),
    })?;
    Ok(json(&LogAck {
        tag: LogAckTag::default(),
        bytes,
        cancel_requested: cancel.is_some(),
        cancel_deadline_seconds: cancel.map_or(0, |(left, _)| left) / 1_000,
    }))
}

async fn store_artifact(context: Arc<Context>, mut asked: Asked) -> Result<Response, Refused> {
    let name: ArtifactName = asked.segment("name").parse()?;
    let (bearer, Active { place, .. }) = bearer(&context, &mut asked).await?;
    let _upload = upload(&context, &mut asked).await?;
    let ready = context.files.receive_artifact(&place, &name, moving(asked.upload)).await?;
    let bytes = keep(&context, bearer, ready).await?;
    let uri = artifact_uri(&place.job, place.attempt, &name);
    Ok(json(&ArtifactStored { tag: ArtifactStoredTag::default(), uri, bytes }))
}

fn cache_key(asked: &Asked) -> Result<&str, Refused> {
    let key = asked.segment("key");
    check::cache_key(key)?;
    Ok(key)
}

async fn open_cache(context: Arc<Context>, mut asked: Asked) -> Result<Response, Refused> {
    let key = cache_key(&asked)?.to_owned();
    bearer(&context, &mut asked).await?;
    match context.files.open_cache(&key).await? {
        Some((file, length)) => Ok(attachment(file, length)),
        None => Err(Refused::not_found("there is no cache with this key")),
    }
}

async fn store_cache(context: Arc<Context>, mut asked: Asked) -> Result<Response, Refused> {
    let key = cache_key(&asked)?.to_owned();
    let (bearer, _) = bearer(&context, &mut asked).await?;
    let _upload = upload(&context, &mut asked).await?;
    let ready = context.files.receive_cache(&key, moving(asked.upload)).await?;
    let bytes = keep(&context, bearer, ready).await?;
    Ok(json(&CacheStored { tag: CacheStoredTag::default(), bytes }))
}

async fn needs(context: Arc<Context>, mut asked: Asked) -> Result<Response, Refused> {
    let (_, Active { place, .. }) = bearer(&context, &mut asked).await?;
    let needed = context.service.read(move |reader| reader.needs(&place.job)).await?;
    let files = context.files.clone();
    let artifacts = blocking(move || {
        let mut all = Vec::new();
        for (job, at) in &needed {
            let gone = "a job whose artifacts this one needs is no longer stored";
            let at = at.as_ref().ok_or_else(|| Refused::not_found(gone))?;
            for (name, bytes) in files.artifacts_of(at)? {
                let name = name.as_str().to_owned();
                all.push(NeededArtifact { job: job.clone(), name, bytes });
            }
            if all.len() > MAX_NEEDED {
                let problem = format!("the needed jobs have more than {MAX_NEEDED} artifacts");
                return Err(Refused::too_large(ErrorCode::StoreFull, problem));
            }
        }
        Ok(all)
    });
    Ok(json(&artifacts.await??))
}

async fn open_needed(context: Arc<Context>, mut asked: Asked) -> Result<Response, Refused> {
    let name: ArtifactName = asked.segment("name").parse()?;
    let job = asked.segment("job").to_owned();
    let (_, Active { place, .. }) = bearer(&context, &mut asked).await?;
    let needed = context.service.read(move |reader| reader.needs(&place.job)).await?;
    let absent =
        || Refused::not_found("the lease's job needs no such job, or that job is no longer stored");
    let at = needed.get(&job).and_then(Option::as_ref).ok_or_else(absent)?;
    let (file, length) = context.files.open_artifact(at, &name).await?;
    Ok(attachment(file, length))
}

/// A body that ends with an error when it pauses for too long or is too slow on average.
fn moving(body: Body) -> Body {
    let (chunks, begun) = (body.into_data_stream(), Instant::now());
    let chunks = futures::stream::unfold(Some((chunks, 0)), move |state| async move {
        let (mut chunks, mut length) = state?;
        match timeout_at(next_by(begun, Instant::now(), length), chunks.next()).await {
            Ok(Some(Ok(chunk))) => {
                length += chunk.len() as u64;
                Some((Ok(chunk), Some((chunks, length))))
            }
            Ok(Some(Err(error))) => Some((Err(io::Error::other(error)), None)),
            Ok(None) => None,
            Err(_) => Some((Err(io::ErrorKind::TimedOut.into()), None)),
        }
    });
    Body::from_stream(chunks)
}

fn next_by(begun: Instant, now: Instant, length: u64) -> Instant {
    let least = begun + STILL + Duration::from_secs(length / LEAST_RATE);
    least.min(now + STILL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upload_that_hardly_moves_has_its_time() {
        let begun = Instant::now();
        let check = |seconds: u64, length: u64, expected: u64| {
            let at = |seconds| begun + Duration::from_secs(seconds);
            assert_eq!(next_by(begun, at(seconds), length), at(expected), "{seconds} {length}");
        };
        check(0, 0, 30);
        check(29, 1, 30);
        check(29, 1 << 20, 59);
        check(93, 1 << 20, 94);
    }
}
