//! A runner's requests, each made once.

use crate::lease::{
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

/// What a file is read in, in bytes.
const BLOCK: usize = 64 << 10;
/// The slowest connection that a large file is sent or got over, in bytes a second.
const LEAST_RATE: u64 = 64 << 10;
/// The longest that a cache or an artifact is got.
const DOWNLOAD_LIMIT: Duration = Duration::from_secs(3_600);

/// The server, as this runner asks it.
#[derive(Clone)]
pub(super) struct Api {
    client: Client,
}

/// A file that is sent, maybe several times: as long as it was when it was opened.
#[derive(Debug, Clone)]
pub(super) struct Upload {
    file: Arc<File>,
    bytes: u64,
}

impl Upload {
    /// Opens a file that is no link and nothing else that is not a file.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        // Of a pipe the other end would be waited for.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)?;
        let meta = file.metadata()?;
        if !meta.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file"));
        }
        Ok(Self { file: Arc::new(file), bytes: meta.len() })
    }

    /// The next block from `offset` on; `None` at the end.
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

    /// Where it asks.
    pub(super) fn url(&self) -> &str {
        self.client.url().as_str()
    }

    fn post(&self, message: &str) -> RequestBuilder {
        self.client.request(Method::POST, &["api", "v1", "internal", message])
    }

    /// A request that names its lease.
    fn held(&self, method: Method, path: &[&str], lease: &str) -> RequestBuilder {
        let path = [&["api", "v1", "internal"], path].concat();
        let request = self.client.request(method, &path);
        match HeaderValue::from_str(lease) {
            Ok(mut lease) => {
                lease.set_sensitive(true);
                request.header(LEASE_HEADER, lease)
            }
            // Such a lease is no server's of ours, which would refuse it too.
            Err(_) => request,
        }
    }

    /// Asks for work, and waits for it as the request says.
    pub(super) async fn lease(
        &self,
        request: &LeaseRequest,
    ) -> Result<Option<LeaseGranted>, ClientError> {
        self.waited("lease", request, request.wait_seconds, "a granted lease").await
    }

    /// Sends a message that the server may hold for up to this many seconds. `None`: the server had
    /// nothing to say by then.
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
            // The place alone: the text holds secrets, as the lease's id.
            reason: format!("at line {}, column {}", error.line(), error.column()),
        })
    }

    /// Accepts a lease.
    pub(super) async fn ack(&self, message: &AckLease) -> Result<AckLeaseAck, ClientError> {
        self.client.json(self.post("ack-lease").json(message)).await
    }

    /// Says that the runner lives, and waits no longer than `limit` for the answer.
    pub(super) async fn heartbeat(
        &self,
        message: &Heartbeat,
        limit: Duration,
    ) -> Result<HeartbeatAck, ClientError> {
        self.client.json(self.post("heartbeat").json(message).timeout(limit)).await
    }

    /// Waits for a request to cancel, as long as the request says; `None`: the job goes on.
    pub(super) async fn await_cancel(
        &self,
        message: &AwaitCancel,
    ) -> Result<Option<CancelRequested>, ClientError> {
        self.waited("await-cancel", message, message.wait_seconds, "a request to cancel").await
    }

    /// Says how the job ended.
    pub(super) async fn complete(&self, message: &Complete) -> Result<CompleteAck, ClientError> {
        self.client.json(self.post("complete").json(message)).await
    }

    /// Says that the job is stopped.
    pub(super) async fn cancel_ack(
        &self,
        message: &CancelAck,
    ) -> Result<CancelAckAck, ClientError> {
        self.client.json(self.post("cancel-ack").json(message)).await
    }

    /// Adds to the log from `offset` on.
    pub(super) async fn put_log(
        &self,
        lease: &str,
        offset: u64,
        bytes: &[u8],
    ) -> Result<LogAck, ClientError> {
        let request = self.held(Method::PUT, &["log"], lease).query(&LogOffset { offset });
        self.client.json(request.body(bytes.to_vec())).await
    }

    /// Keeps a file under this name, and says where it is.
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

    /// The artifacts of the jobs that the job needs.
    pub(super) async fn needs(&self, lease: &str) -> Result<Vec<NeededArtifact>, ClientError> {
        self.client.json(self.held(Method::GET, &["needs"], lease)).await
    }

    /// An artifact of a job, by name, that the job needs.
    pub(super) async fn get_needed(
        &self,
        lease: &str,
        job: &str,
        name: &str,
    ) -> Result<Response, ClientError> {
        let path: Vec<_> = ["needs", job].into_iter().chain(name.split('/')).collect();
        self.client.send(self.held(Method::GET, &path, lease).timeout(DOWNLOAD_LIMIT)).await
    }

    /// The cache of this key, to be read piece by piece; `None`: there is none.
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

    /// Keeps a cache under this key.
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

/// The request with a file for a body, read as it is sent.
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

/// The log of a job's attempt among what it leaves behind.
pub(super) fn log_artifact(job: &str, attempt: u32) -> Artifact {
    Artifact { kind: "log".to_owned(), uri: format!("/api/v1/jobs/{job}/log?attempt={attempt}") }
}
