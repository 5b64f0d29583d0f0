//! The state that all requests share.

use super::{backend::Backend, error::ApiError, streams::Streams};
use axum::{
    Json,
    response::{IntoResponse as _, Response},
};
use cowboy_host::http;
use serde::Serialize;
use std::sync::Arc;
use tokio::{
    sync::{Semaphore, watch},
    task::spawn_blocking,
};

/// Maximum number of requests that read a validator's store at the same time.
const READERS: usize = 8;

pub(super) struct ServerState {
    pub backend: Arc<Backend>,
    pub streams: Arc<Streams>,
    readers: Semaphore,
    closing: watch::Receiver<bool>,
}

impl ServerState {
    pub fn new(backend: Arc<Backend>, streams: usize, closing: watch::Receiver<bool>) -> Self {
        let streams = Arc::new(Streams::new(streams));
        Self { backend, streams, readers: Semaphore::new(READERS), closing }
    }

    /// Runs a read of a store on a blocking thread, so that it does not hold up other requests.
    pub async fn blocking<T: Send + 'static>(
        &self,
        read: impl FnOnce(Arc<Backend>) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let _place = self.readers.acquire().await.expect("the semaphore is never closed");
        let backend = self.backend.clone();
        let done = spawn_blocking(move || read(backend)).await;
        done.map_err(|error| ApiError::internal(format!("the request's task failed: {error}")))?
    }

    /// As [`Self::blocking`]; serialized on that thread too because a long answer takes time.
    pub async fn answer<T: Serialize + 'static>(
        &self,
        read: impl FnOnce(Arc<Backend>) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<Response, ApiError> {
        self.blocking(move |backend| Ok(Json(read(backend)?).into_response())).await
    }

    pub fn closed(&self) -> impl Future<Output = ()> + Send + 'static {
        http::closed(self.closing.clone())
    }
}
