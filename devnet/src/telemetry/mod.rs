//! Export of spans to an OpenTelemetry collector: OTLP over HTTP, as protobuf.
//!
//! ```text
//!   Exporter::export ─▶ queue, bounded ─▶ one task: a batch, one POST at a time ─▶ collector
//! ```
//!
//! [`Exporter::export`] never waits. A span that finds the queue full is lost, and so is a batch
//! that the collector does not accept within [`EXPORT_TIMEOUT`]: nothing is sent twice. Each loss
//! is counted under its [`Loss`], and the first of a series is logged.
//!
//! A span is exported once it has ended, complete with its ids. An id that is derived from the
//! span's subject is the same in every process.

mod export;
mod metrics;
#[cfg(test)]
mod tests;

pub use export::{Counts, EXPORT_TIMEOUT, Exporter, Loss, QUEUE};
pub(crate) use metrics::metrics;

use cowboy_engine::primitives::keccak256;
use reqwest::Url;
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, Visitor},
};
use std::{fmt, str::FromStr};

/// The longest address of a collector, in bytes.
pub const MAX_ENDPOINT_BYTES: usize = 2_048;

/// A collector's base URL; `/v1/traces` is appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectorUrl(Url);

/// Why a text is not a collector's address. The text is not repeated because it may hold a
/// password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "bad collector address, {0}: expected http:// or https:// with a host, as `http://127.0.0.1:4318`"
)]
pub struct EndpointError(&'static str);

impl FromStr for CollectorUrl {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        if text.len() > MAX_ENDPOINT_BYTES {
            return Err(EndpointError("it is too long"));
        }
        let mut url = Url::parse(text).map_err(|_| EndpointError("it cannot be read"))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err(EndpointError("it is not an HTTP address"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(EndpointError("it contains a user name or password"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(EndpointError("it has a query or a fragment"));
        }
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty();
        }
        Ok(Self(url))
    }
}

impl fmt::Display for CollectorUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

impl Serialize for CollectorUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CollectorUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Address;

        impl Visitor<'_> for Address {
            type Value = CollectorUrl;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a collector's address, as `http://127.0.0.1:4318`")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<CollectorUrl, E> {
                text.parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_str(Address)
    }
}

impl CollectorUrl {
    /// The URL that traces are posted to (OTLP specification, OTLP/HTTP request).
    fn traces(&self) -> Url {
        let mut url = self.0.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(["v1", "traces"]);
        }
        url
    }
}

/// A trace's id, which is never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TraceId(pub [u8; 16]);

impl TraceId {
    pub fn of(parts: &[&[u8]]) -> Self {
        let hash = keccak256(&[&[&b"cowboy/trace/v1"[..]], parts].concat());
        Self(*hash.0.first_chunk().expect("a hash has more bytes"))
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

/// A span's id within its trace, which is never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpanId(pub [u8; 8]);

impl SpanId {
    pub fn of(trace: TraceId, parts: &[&[u8]]) -> Self {
        let hash = keccak256(&[&[&b"cowboy/span/v1"[..], &trace.0], parts].concat());
        Self(*hash.0.first_chunk().expect("a hash has more bytes"))
    }
}

/// An attribute's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Text(String),
    Number(i64),
    Flag(bool),
}

/// A span that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    pub trace: TraceId,
    pub id: SpanId,
    /// The enclosing span; `None` for the root.
    pub parent: Option<SpanId>,
    pub name: &'static str,
    /// Start time, in Unix ns.
    pub start_ns: u64,
    /// End time, in Unix ns; not before the start.
    pub end_ns: u64,
    pub attributes: Vec<(&'static str, Value)>,
    /// The error message: exported as status ERROR with the event `exception`.
    pub error: Option<String>,
}
