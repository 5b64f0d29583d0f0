//! A runner's requests, each without retries.

use crate::{
    client::{Client, ClientError, REQUEST_TIMEOUT, whole},
    messages::{
        AckLease, AckLeaseAck, Artifact, ArtifactStored, AwaitCancel, CacheStored, CancelAck,
        CancelAckAck, CancelRequested, Complete, CompleteAck, Heartbeat, HeartbeatAck,
        LEASE_HEADER, LeaseGranted, LeaseRequest, LogAck, LogOffset, NeededArtifact,
    },
};
use bytes::Bytes;
use futures::stream;
use reqwest::{
    Body, Method, RequestBuilder, Response, StatusCode,
    header::{CONTENT_LENGTH, HeaderValue},
};
use rustix::fs::OFlags;
use serde::{Serialize, de::DeserializeOwned};
use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{FileExt as _, OpenOptionsExt as _},
    path::Path,
    sync::Arc,
    time::Duration,
};

/// The longest time over which a broken download is started again.
pub(super) const DOWNLOAD_PATIENCE: Duration = Duration::from_secs(60);
/// The longest wait for the next piece of a download.
pub(super) const DOWNLOAD_STALL: Duration = Duration::from_secs(60);
pub(super) const DOWNLOAD_ATTEMPTS: u32 = 3;
const BLOCK: usize = 64 << 10;
/// Slowest connection for transferring a large file, in bytes per second.
const LEAST_RATE: u64 = 64 << 10;
const DOWNLOAD_LIMIT: Duration = Duration::from_secs(3_600);

#[derive(Clone)]
pub(super) struct Api {
    client: Client,
}

/// A file to send, possibly several times, with the length that it had when it was opened.
#[derive(Debug, Clone)]
pub(super) struct Upload {
    file: Arc<File>,
    bytes: u64,
}

impl Upload {
    /// Opens a regular file, but no link.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        // Opening a pipe would wait for its other end.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)?;
        let meta = file.metadata()?;
        if !meta.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        Ok(Self { file: Arc::new(file), bytes: meta.len() })
    }

    /// The block at `offset`; `None` at the end.
    async fn block(self, offset: u64) -> io::Result<Option<Bytes>> {
        let left = self.bytes - offset;
        if left == 0 {
            return Ok(None);
        }
        let read = tokio::task::spawn_blocking(move || {
            let mut block = vec![0; BLOCK.min(usize::try_from(left).unwrap_or(BLOCK))];
            let length = self.file.read_at(&mut block, offset)?;
            block.truncate(length);
            Ok::<_, io::Error>(block)
        });
        match read.await?? {
            block if block.is_empty() => {
                Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file became shorter"))
            }
            block => Ok(Some(block.into())),
        }
    }
}

impl Api {
    pub(super) fn new(client: Client) -> Self {
        Self { client }
    }

    pub(super) fn url(&self) -> &str {
        self.client.url().as_str()
    }

    fn post(&self, message: &str) -> RequestBuilder {
        self.client.request(Method::POST, &["api", "v1", "internal", message])
    }

    fn held(&self, method: Method, path: &[&str], lease: &str) -> RequestBuilder {
        let path = [&["api", "v1", "internal"], path].concat();
        let request = self.client.request(method, &path);
        match HeaderValue::from_str(lease) {
            Ok(mut lease) => {
                lease.set_sensitive(true);
                request.header(LEASE_HEADER, lease)
            }
            // No server of ours issues such a lease, and the server refuses it anyway.
            Err(_) => request,
        }
    }

    pub(super) async fn lease(
        &self,
        request: &LeaseRequest,
    ) -> Result<Option<LeaseGranted>, ClientError> {
        self.waited("lease", request, request.wait_seconds, "a granted lease").await
    }

    /// Sends a message whose answer the server may delay by up to `seconds`. `None` if the server
    /// had no answer by then.
    async fn waited<T: DeserializeOwned>(
        &self,
        path: &str,
        message: &impl Serialize,
        seconds: u64,
        what: &str,
    ) -> Result<Option<T>, ClientError> {
        let limit = REQUEST_TIMEOUT + Duration::from_secs(seconds);
        let response = self.client.send(self.post(path).json(message).timeout(limit)).await?;
        if response.status() == StatusCode::NO_CONTENT {
            return Ok(None);
        }
        let body = whole(what, response).await?;
        serde_json::from_slice(&body).map(Some).map_err(|error| ClientError::Malformed {
            what: what.to_owned(),
            // Only the place, because the text holds secrets such as the lease's id.
            reason: format!("at line {}, column {}", error.line(), error.column()),
        })
    }

    pub(super) async fn ack(&self, message: &AckLease) -> Result<AckLeaseAck, ClientError> {
        self.client.json(self.post("ack-lease").json(message)).await
    }

    /// Renews the lease. Waits no longer than `limit` for the answer.
    pub(super) async fn heartbeat(
        &self,
        message: &Heartbeat,
        limit: Duration,
    ) -> Result<HeartbeatAck, ClientError> {
        self.client.json(self.post("heartbeat").json(message).timeout(limit)).await
    }

    /// Waits for a cancel request as long as the request says; `None` if none came.
    pub(super) async fn await_cancel(
        &self,
        message: &AwaitCancel,
    ) -> Result<Option<CancelRequested>, ClientError> {
        self.waited("await-cancel", message, message.wait_seconds, "a request to cancel").await
    }

    pub(super) async fn complete(&self, message: &Complete) -> Result<CompleteAck, ClientError> {
        self.client.json(self.post("complete").json(message)).await
    }

    pub(super) async fn cancel_ack(
        &self,
        message: &CancelAck,
    ) -> Result<CancelAckAck, ClientError> {
        self.client.json(self.post("cancel-ack").json(message)).await
    }

    pub(super) async fn put_log(
        &self,
        lease: &str,
        offset: u64,
        bytes: &[u8],
    ) -> Result<LogAck, ClientError> {
        let request = self.held(Method::PUT, &["log"], lease).query(&LogOffset { offset });
        self.client.json(request.body(bytes.to_vec())).await
    }

    /// The answer has the artifact's address.
    pub(super) async fn put_artifact(
        &self,
        lease: &str,
        name: &str,
        upload: Upload,
    ) -> Result<String, ClientError> {
        let path: Vec<_> = ["artifacts"].into_iter().chain(name.split('/')).collect();
        let request = self.held(Method::PUT, &path, lease);
        let stored: ArtifactStored = self.client.json(with_file(request, upload)).await?;
        Ok(stored.uri)
    }

    pub(super) async fn needs(&self, lease: &str) -> Result<Vec<NeededArtifact>, ClientError> {
        self.client.json(self.held(Method::GET, &["needs"], lease)).await
    }

    pub(super) async fn get_needed(
        &self,
        lease: &str,
        job: &str,
        name: &str,
    ) -> Result<Response, ClientError> {
        let path: Vec<_> = ["needs", job].into_iter().chain(name.split('/')).collect();
        self.client.send(self.held(Method::GET, &path, lease).timeout(DOWNLOAD_LIMIT)).await
    }

    /// Opens the cache with this key as a response to read piece by piece; `None` if absent.
    pub(super) async fn get_cache(
        &self,
        lease: &str,
        key: &str,
    ) -> Result<Option<Response>, ClientError> {
        let request = self.held(Method::GET, &["caches", key], lease).timeout(DOWNLOAD_LIMIT);
        match self.client.send(request).await {
            Ok(response) => Ok(Some(response)),
            Err(ClientError::Refused { status: StatusCode::NOT_FOUND, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn put_cache(
        &self,
        lease: &str,
        key: &str,
        upload: Upload,
    ) -> Result<(), ClientError> {
        let request = self.held(Method::PUT, &["caches", key], lease);
        self.client.json::<CacheStored>(with_file(request, upload)).await.map(drop)
    }
}

fn with_file(request: RequestBuilder, upload: Upload) -> RequestBuilder {
    let bytes = upload.bytes;
    let limit = REQUEST_TIMEOUT + Duration::from_secs(bytes / LEAST_RATE);
    let body = stream::try_unfold(0, move |offset| {
        let block = upload.clone().block(offset);
        async move {
            let block = block.await?;
            Ok::<_, io::Error>(block.map(|block| {
                let next = offset + block.len() as u64;
                (block, next)
            }))
        }
    });
    request.header(CONTENT_LENGTH, bytes).body(Body::wrap_stream(body)).timeout(limit)
}

pub(super) fn log_artifact(job: &str, attempt: u32) -> Artifact {
    Artifact { kind: "log".to_owned(), uri: format!("/api/v1/jobs/{job}/log?attempt={attempt}") }
}
