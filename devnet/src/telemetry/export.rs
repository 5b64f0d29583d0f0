//! The queue of spans, and the task that sends them to the collector.

use super::{CollectorUrl, Span, Value};
use cowboy_engine::names;
use cowboy_host::openmetrics::Row;
use opentelemetry_proto::tonic::{
    collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse},
    common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value},
    resource::v1::Resource,
    trace::v1::{ResourceSpans, ScopeSpans, Status, span, status::StatusCode},
};
use prometheus_client::metrics::counter::Counter;
use prost::Message as _;
use reqwest::{Client, Response, Url, header::CONTENT_TYPE};
use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{
        Notify,
        mpsc::{self, Receiver, Sender},
    },
    task::{JoinHandle, spawn_blocking},
    time::{Instant, timeout, timeout_at},
};

/// Spans that may wait for the collector; any further span is lost.
pub const QUEUE: usize = 4_096;
/// Time limit for a batch, including the connection.
pub const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);
const BATCH: usize = 512;
const LINGER: Duration = Duration::from_millis(500);
/// Time limit for sending the queued spans at the end.
const FLUSH: Duration = Duration::from_secs(2);
/// Bytes of a response that are read at most.
const MAX_ANSWER_BYTES: usize = 64 << 10;
/// Characters of a collector's error message that are logged.
const SAID_CHARS: usize = 200;

/// Why a span did not reach the collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    QueueFull,
    Unreachable,
    Timeout,
    Refused,
    BadAnswer,
    Shutdown,
}

names!(Loss:
    QueueFull = "queue_full",
    Unreachable = "unreachable",
    Timeout = "timeout",
    Refused = "refused",
    BadAnswer = "bad_answer",
    Shutdown = "shutdown",
);

/// Counters of exported and lost spans. Clones share them.
#[derive(Clone, Debug)]
pub struct Counts {
    pub exported: Counter,
    pub lost: Row<Counter>,
}

impl Default for Counts {
    fn default() -> Self {
        let lost = Row::new("reason", Loss::ALL.iter().map(|one| one.name()));
        Self { exported: Counter::default(), lost }
    }
}

impl Counts {
    fn lost(&self, loss: Loss, spans: usize) {
        self.lost.at(loss as usize).inc_by(spans as u64);
    }

    pub(super) fn all_lost(&self) -> u64 {
        Loss::ALL.iter().map(|loss| self.lost.at(*loss as usize).get()).sum()
    }
}

/// Sends spans to one collector. Clones share the queue.
#[derive(Clone)]
pub struct Exporter(Arc<ExporterInner>);

struct ExporterInner {
    queue: Sender<Span>,
    counts: Counts,
    given: Counter,
    /// Whether the log has reported lost spans and no span has reached the collector since.
    told: Arc<AtomicBool>,
    closing: Arc<Notify>,
    flush: Duration,
    task: Mutex<Option<JoinHandle<()>>>,
}

struct Courier {
    http: Client,
    url: Url,
    resource: Resource,
    scope: InstrumentationScope,
    counts: Counts,
    told: Arc<AtomicBool>,
}

impl Exporter {
    /// Starts the task on the current runtime. `resource` describes the exporting process, `scope`
    /// the part of it.
    pub fn start(
        endpoint: &CollectorUrl,
        resource: &[(&'static str, String)],
        scope: &str,
        counts: Counts,
    ) -> Self {
        Self::within(endpoint, resource, scope, counts, (EXPORT_TIMEOUT, FLUSH))
    }

    /// Like [`Self::start`], with other time limits for a batch and for the end.
    pub(super) fn within(
        endpoint: &CollectorUrl,
        resource: &[(&'static str, String)],
        scope: &str,
        counts: Counts,
        (patience, flush): (Duration, Duration),
    ) -> Self {
        let (queue, spans) = mpsc::channel(QUEUE);
        let (closing, told) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
        let url = endpoint.traces();
        let attributes = resource.iter();
        let attributes = attributes.map(|(key, text)| pair(key, &Value::Text(text.clone())));
        let resource = Resource { attributes: attributes.collect(), ..Resource::default() };
        let scope = InstrumentationScope {
            name: scope.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..InstrumentationScope::default()
        };
        let task = tokio::spawn({
            let (counts, told, closing) = (counts.clone(), told.clone(), closing.clone());
            async move {
                let plain = url.scheme() == "http";
                // With https, the system's certificates are read, which takes a moment.
                let http = spawn_blocking(move || client(plain, patience)).await;
                let http = match http {
                    Ok(Ok(http)) => http,
                    Ok(Err(error)) => return give_up(&error),
                    Err(error) => return give_up(&error),
                };
                let courier = Courier { http, url, resource, scope, counts, told };
                courier.run(spans, &closing).await;
            }
        });
        let task = Mutex::new(Some(task));
        let given = Counter::default();
        Self(Arc::new(ExporterInner { queue, counts, given, told, closing, flush, task }))
    }

    /// Queues a span; never waits.
    pub fn export(&self, span: Span) {
        self.0.given.inc();
        if self.0.queue.try_send(span).is_err() {
            self.0.counts.lost(Loss::QueueFull, 1);
            if !self.0.told.swap(true, Ordering::Relaxed) {
                tracing::warn!("spans are lost: more than {QUEUE} wait for the collector");
            }
        }
    }

    #[cfg(test)]
    pub(super) fn given(&self) -> u64 {
        self.0.given.get()
    }

    /// Sends the queued spans to the collector within 2 s; the rest is lost.
    pub async fn close(&self) {
        let task = self.0.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut task) = task else { return };
        self.0.closing.notify_one();
        if timeout(self.0.flush, &mut task).await.is_err() {
            task.abort();
            // An aborted task ends at its next await.
            let _ = task.await;
        }
        let counts = &self.0.counts;
        let left = self.0.given.get().saturating_sub(counts.exported.get() + counts.all_lost());
        if left > 0 {
            counts.lost(Loss::Shutdown, usize::try_from(left).unwrap_or(usize::MAX));
            tracing::warn!(spans = left, "spans are lost: the devnet stops");
        }
    }
}

fn give_up(error: &dyn std::error::Error) {
    tracing::error!(%error, "no spans are exported: cannot create the HTTP client");
}

fn client(plain: bool, patience: Duration) -> reqwest::Result<Client> {
    let http = Client::builder()
        .user_agent(concat!("cowboyctl/", env!("CARGO_PKG_VERSION")))
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(patience);
    if plain { http.tls_certs_only([]) } else { http }.build()
}

impl Courier {
    async fn run(self, mut spans: Receiver<Span>, closing: &Notify) {
        let mut batch = Vec::with_capacity(BATCH);
        let mut closed = false;
        loop {
            let mut until = Instant::now();
            while batch.len() < BATCH {
                let (room, first) = (BATCH - batch.len(), batch.is_empty());
                let more = async {
                    match first {
                        true => Ok(spans.recv_many(&mut batch, room).await),
                        false => timeout_at(until, spans.recv_many(&mut batch, room)).await,
                    }
                };
                tokio::select! {
                    biased;
                    () = closing.notified(), if !closed => {
                        closed = true;
                        spans.close();
                    }
                    more = more => match more {
                        Ok(1..) if first => until = Instant::now() + LINGER,
                        Ok(1..) => {}
                        _ if first => return,
                        _ => break,
                    },
                }
            }
            self.send(&mut batch).await;
        }
    }

    async fn send(&self, batch: &mut Vec<Span>) {
        let count = batch.len();
        let spans = batch.drain(..).map(encode).collect();
        let scope_spans =
            ScopeSpans { scope: Some(self.scope.clone()), spans, schema_url: String::new() };
        let request = ExportTraceServiceRequest {
            resource_spans: vec![ResourceSpans {
                resource: Some(self.resource.clone()),
                scope_spans: vec![scope_spans],
                schema_url: String::new(),
            }],
        };
        let sent = self
            .http
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/x-protobuf")
            .body(request.encode_to_vec());
        let (refused, lost) = match sent.send().await {
            Ok(response) => judge(response, count).await,
            Err(error) => (count, Some(failure(&error))),
        };
        self.counts.exported.inc_by((count - refused) as u64);
        match lost {
            None => {
                if self.told.swap(false, Ordering::Relaxed) {
                    tracing::info!(collector = %self.url, "spans reach the collector again");
                }
            }
            Some((loss, said)) => {
                self.counts.lost(loss, refused);
                if !self.told.swap(true, Ordering::Relaxed) {
                    let said: String = said.chars().take(SAID_CHARS).collect();
                    tracing::warn!(
                        collector = %self.url, reason = %loss, said, spans = refused,
                        "spans are lost while this lasts"
                    );
                }
            }
        }
    }
}

/// The number of spans in a batch that the collector did not accept, and the reason.
async fn judge(response: Response, count: usize) -> (usize, Option<(Loss, String)>) {
    let status = response.status();
    if !status.is_success() {
        return (count, Some((Loss::Refused, status.to_string())));
    }
    let body = match read(response).await {
        Ok(body) => body,
        Err(lost) => return (count, Some(lost)),
    };
    match ExportTraceServiceResponse::decode(&body[..]) {
        Err(error) => (count, Some((Loss::BadAnswer, error.to_string()))),
        Ok(ExportTraceServiceResponse { partial_success: None }) => (0, None),
        Ok(ExportTraceServiceResponse { partial_success: Some(partial) }) => {
            let rejected = usize::try_from(partial.rejected_spans).unwrap_or(0).min(count);
            let lost = (rejected > 0).then_some((Loss::Refused, partial.error_message));
            (rejected, lost)
        }
    }
}

async fn read(mut response: Response) -> Result<Vec<u8>, (Loss, String)> {
    let mut body = Vec::new();
    while let Some(bytes) = response.chunk().await.map_err(|error| failure(&error))? {
        if body.len() + bytes.len() > MAX_ANSWER_BYTES {
            let said = format!("an answer of more than {MAX_ANSWER_BYTES} bytes");
            return Err((Loss::BadAnswer, said));
        }
        body.extend_from_slice(&bytes);
    }
    Ok(body)
}

fn failure(error: &reqwest::Error) -> (Loss, String) {
    let loss = match error {
        error if error.is_timeout() => Loss::Timeout,
        error if error.is_connect() => Loss::Unreachable,
        // Not HTTP, or cut off in the middle.
        _ => Loss::BadAnswer,
    };
    (loss, error.to_string())
}

fn pair(key: &str, value: &Value) -> KeyValue {
    let value = match value {
        Value::Text(text) => any_value::Value::StringValue(text.clone()),
        Value::Number(number) => any_value::Value::IntValue(*number),
        Value::Flag(flag) => any_value::Value::BoolValue(*flag),
    };
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}

fn encode(of: Span) -> opentelemetry_proto::tonic::trace::v1::Span {
    /// The trace is sampled (W3C trace context).
    const SAMPLED: u32 = 1;
    let exception = |message: &String| span::Event {
        time_unix_nano: of.end_ns,
        name: "exception".to_owned(),
        attributes: vec![pair("exception.message", &Value::Text(message.clone()))],
        dropped_attributes_count: 0,
    };
    let status =
        |message: &String| Status { message: message.clone(), code: StatusCode::Error.into() };
    opentelemetry_proto::tonic::trace::v1::Span {
        trace_id: of.trace.0.to_vec(),
        span_id: of.id.0.to_vec(),
        parent_span_id: of.parent.map_or_else(Vec::new, |id| id.0.to_vec()),
        flags: SAMPLED,
        name: of.name.to_owned(),
        kind: span::SpanKind::Internal.into(),
        start_time_unix_nano: of.start_ns,
        end_time_unix_nano: of.end_ns,
        attributes: of.attributes.iter().map(|(key, value)| pair(key, value)).collect(),
        events: of.error.iter().map(exception).collect(),
        status: of.error.as_ref().map(status),
        ..Default::default()
    }
}
