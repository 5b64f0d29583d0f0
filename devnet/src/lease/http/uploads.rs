//! What the bearer of an active lease leaves and takes: logs, artifacts, caches.

use super::{
    Context, Route,
    error::Refused,
    extract::{Access, Asked, drain},
    jobs::{artifact_uri, attachment, blocking},
    json,
    openapi::Operation,
};
use crate::lease::{
    check,
    files::{ArtifactName, FileError, Place},
    messages::{
        ArtifactStored, ArtifactStoredTag, CacheStored, CacheStoredTag, ErrorCode, LogAck,
        LogAckTag, LogOffset,
    },
};
use axum::{body::Body, http::Method, response::Response};
use futures::StreamExt as _;
use std::{io, mem, sync::Arc, time::Duration};
use tokio::time::timeout;

/// How long an upload may stand still.
const STILL: Duration = Duration::from_secs(30);

pub(super) fn table() -> Vec<Route> {
    let (artifact, cache) =
        ("/api/v1/internal/artifacts/{*name}", "/api/v1/internal/caches/{*key}");
    let (get, put, runner) = (Method::GET, Method::PUT, Access::Runner);
    vec![
        Route::new(
            put.clone(),
            "/api/v1/internal/log",
            runner,
            append_log,
            Operation::new("Adds to the log of the attempt")
                .query::<LogOffset>()
                .lease_header()
                .bytes()
                .one::<LogAck>(200)
                .refuses(409),
        ),
        Route::new(
            put.clone(),
            artifact,
            runner,
            store_artifact,
            Operation::new("Keeps an artifact of the attempt; one of the same name is replaced")
                .lease_header()
                .bytes()
                .one::<ArtifactStored>(200)
                .refuses(409),
        )
        .upload(),
        Route::new(
            get,
            cache,
            runner,
            open_cache,
            Operation::new("A cache").lease_header().file().refuses(409),
        ),
        Route::new(
            put,
            cache,
            runner,
            store_cache,
            Operation::new("Keeps a cache; one with the same key is replaced")
                .lease_header()
                .bytes()
                .one::<CacheStored>(200)
                .refuses(409),
        )
        .upload(),
    ]
}

/// Where the bearer of the lease that the request names may write.
async fn place(context: &Context, asked: &mut Asked) -> Result<Place, Refused> {
    let runner = asked.runner()?;
    let found = match asked.lease_id() {
        Err(refused) => Err(refused),
        Ok(lease_id) => {
            let active = context.service.active(runner, lease_id.clone()).await;
            active.map_err(|error| Refused::of_lease(error, &lease_id))
        }
    };
    if found.is_err() {
        drain(mem::take(&mut asked.upload)).await;
    }
    let (run, job, attempt) = found?;
    Ok(Place { run, job, attempt })
}

async fn append_log(context: Arc<Context>, mut asked: Asked) -> Result<Response, Refused> {
    let problem = "expected a number of bytes";
    let Some(offset) = asked.number("offset", 0, u64::MAX, problem)? else {
        return Err(Refused::field(ErrorCode::MissingField, "offset", problem));
    };
    let place = place(&context, &mut asked).await?;
    let (files, bytes) = (context.files.clone(), asked.message);
    let stored = blocking(move || files.append_log(&place, offset, &bytes)).await?;
    let bytes = stored.map_err(|error| match error {
        FileError::TooLarge { limit } => Refused::too_large(
            ErrorCode::LogFull,
            format!("the log has {limit} bytes, as many as it may"),
        ),
        error => error.into(),
    })?;
    Ok(json(&LogAck { tag: LogAckTag::default(), bytes }))
}

async fn store_artifact(context: Arc<Context>, mut asked: Asked) -> Result<Response, Refused> {
    let name: ArtifactName = asked.segment("name").parse()?;
    let place = place(&context, &mut asked).await?;
    let bytes = context.files.store_artifact(&place, &name, moving(asked.upload)).await?;
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
    place(&context, &mut asked).await?;
    match context.files.open_cache(&key).await? {
        Some((file, length)) => Ok(attachment(file, length)),
        None => Err(Refused::not_found("there is no cache of this key")),
    }
}

async fn store_cache(context: Arc<Context>, mut asked: Asked) -> Result<Response, Refused> {
    let key = cache_key(&asked)?.to_owned();
    place(&context, &mut asked).await?;
    let bytes = context.files.store_cache(&key, moving(asked.upload)).await?;
    Ok(json(&CacheStored { tag: CacheStoredTag::default(), bytes }))
}

/// A body that breaks off when it stands still for too long.
fn moving(body: Body) -> Body {
    let chunks = body.into_data_stream();
    let chunks = futures::stream::unfold(Some(chunks), async |chunks| {
        let mut chunks = chunks?;
        match timeout(STILL, chunks.next()).await {
            Ok(Some(Ok(chunk))) => Some((Ok(chunk), Some(chunks))),
            Ok(Some(Err(error))) => Some((Err(io::Error::other(error)), None)),
            Ok(None) => None,
            Err(_) => Some((Err(io::ErrorKind::TimedOut.into()), None)),
        }
    });
    Body::from_stream(chunks)
}
