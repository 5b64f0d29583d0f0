//! Collectors that accept spans, refuse them, hang, disappear, or answer nonsense.

use super::*;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use prost::Message as _;
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    time::timeout,
};

/// The longest that a test waits for anything.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time limits that are not reached.
const LONG: (Duration, Duration) = (PATIENCE, PATIENCE);

/// A span that lasts `ns`.
fn span(number: u8) -> Span {
    let trace = TraceId::of(&[b"test"]);
    Span {
        trace,
        id: SpanId::of(trace, &[&[number]]),
        parent: (number > 0).then(|| SpanId::of(trace, &[&[0]])),
        name: "speculation.schedule",
        start_ns: 1_000,
        end_ns: 1_000 + u64::from(number),
        attributes: vec![
            ("task.id", Value::Text("0x01".to_owned())),
            ("speculation.accepted", Value::Flag(true)),
            ("speculation.depth", Value::Number(number.into())),
        ],
        error: (number == 2).then(|| "refused".to_owned()),
    }
}

/// Reads the next request on a connection: its head and its body.
async fn request(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let (mut bytes, mut some) = (Vec::new(), [0; 4_096]);
    loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..at]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?;
            let end = at + 4 + length.parse::<usize>().unwrap();
            if bytes.len() >= end {
                return Some((head, bytes[at + 4..end].to_vec()));
            }
        }
        match stream.read(&mut some).await {
            Ok(0) | Err(_) => return None,
            Ok(got) => bytes.extend_from_slice(&some[..got]),
        }
    }
}

/// A collector that answers each request with these bytes, and the requests it got.
async fn collector(
    answer: Vec<u8>,
) -> (CollectorUrl, mpsc::UnboundedReceiver<(String, ExportTraceServiceRequest)>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
    let (tell, told) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            while let Some((head, body)) = request(&mut stream).await {
                let decoded = ExportTraceServiceRequest::decode(&body[..]).unwrap();
                if tell.send((head, decoded)).is_err() || stream.write_all(&answer).await.is_err() {
                    return;
                }
            }
        }
    });
    (endpoint, told)
}

fn answer(status: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// Exports three spans to a collector and closes; returns the number of exported spans, and the
/// number of lost spans by reason.
async fn fate(
    endpoint: &CollectorUrl,
    times: (Duration, Duration),
) -> (u64, Vec<(&'static str, u64)>) {
    let counts = Counts::default();
    let resource = [("service.name", "test".to_owned())];
    let exporter = Exporter::within(endpoint, &resource, "speculation", counts.clone(), times);
    (0..3).for_each(|number| exporter.export(span(number)));
    exporter.close().await;
    // A second call finds it closed, and a span that comes later is lost at once.
    exporter.close().await;
    let lost = Loss::ALL.iter().map(|loss| (loss.name(), counts.lost.at(*loss as usize).get()));
    (counts.exported.get(), lost.filter(|(_, count)| *count > 0).collect())
}

#[tokio::test]
async fn a_collector_gets_spans_as_otlp_has_them() {
    let (endpoint, mut requests) = collector(answer("200 OK", b"")).await;
    assert_eq!(fate(&endpoint, LONG).await, (3, vec![]));
    let (head, got) = timeout(PATIENCE, requests.recv()).await.unwrap().unwrap();
    assert!(head.starts_with("post /v1/traces http/1.1"), "{head}");
    assert!(head.contains("content-type: application/x-protobuf"), "{head}");
    let [of] = &got.resource_spans[..] else { panic!("{got:?}") };
    assert_eq!(of.resource.as_ref().unwrap().attributes[0].key, "service.name");
    let [scope] = &of.scope_spans[..] else { panic!("{of:?}") };
    assert_eq!(scope.scope.as_ref().unwrap().name, "speculation");
    let [root, child, failed] = &scope.spans[..] else { panic!("{scope:?}") };
    assert!(root.parent_span_id.is_empty() && root.span_id != child.span_id);
    for one in [child, failed] {
        assert_eq!((&one.trace_id, &one.parent_span_id), (&root.trace_id, &root.span_id));
    }
    assert_eq!((child.start_time_unix_nano, child.end_time_unix_nano), (1_000, 1_001));
    assert_eq!(child.name, "speculation.schedule");
    let keys: Vec<_> = child.attributes.iter().map(|one| one.key.as_str()).collect();
    assert_eq!(keys, ["task.id", "speculation.accepted", "speculation.depth"]);
    assert!(child.status.is_none() && child.events.is_empty());
    assert_eq!(failed.status.as_ref().unwrap().code, 2, "ERROR");
    assert_eq!(failed.events[0].name, "exception");
}

#[tokio::test]
async fn what_a_collector_does_not_take_is_counted_and_holds_up_nothing() {
    let lost = async |said: Vec<u8>| fate(&collector(said).await.0, LONG).await;
    assert_eq!(lost(answer("503 No", b"")).await, (0, vec![("refused", 3)]));
    assert_eq!(lost(answer("307 Go\r\nlocation: /", b"")).await, (0, vec![("refused", 3)]));
    assert_eq!(lost(answer("200 OK", b"{\"nonsense\"")).await, (0, vec![("bad_answer", 3)]));
    assert_eq!(lost(answer("200 OK", &vec![0; 100_000])).await, (0, vec![("bad_answer", 3)]));
    assert_eq!(lost(b"SSH-2.0-what\r\n\r\n".to_vec()).await, (0, vec![("bad_answer", 3)]));
    let partial = ExportTracePartialSuccess { rejected_spans: 2, error_message: "no".to_owned() };
    let partial = ExportTraceServiceResponse { partial_success: Some(partial) }.encode_to_vec();
    assert_eq!(lost(answer("200 OK", &partial)).await, (1, vec![("refused", 2)]));

    // A collector that accepts and never answers, then one that is gone.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let hangs: CollectorUrl = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    let soon = Duration::from_millis(50);
    assert_eq!(fate(&hangs, (soon, PATIENCE)).await, (0, vec![("timeout", 3)]));
    assert_eq!(fate(&hangs, (PATIENCE, soon)).await, (0, vec![("shutdown", 3)]));
    // More spans than the queue holds, while the collector hangs: nothing waits.
    let counts = Counts::default();
    let exporter = Exporter::within(&hangs, &[], "", counts.clone(), (PATIENCE, soon));
    // Enough for the queue and for a batch in flight.
    (0..QUEUE + 2 * 512).for_each(|_| exporter.export(span(1)));
    assert!(counts.lost.at(Loss::QueueFull as usize).get() > 0, "the queue is bounded");
    exporter.close().await;
    assert_eq!(counts.exported.get() + counts.all_lost(), exporter.given());
    drop(listener);
    assert_eq!(fate(&hangs, LONG).await, (0, vec![("unreachable", 3)]));
}

#[test]
fn an_endpoint_is_an_address_of_http_without_secrets() {
    let check = |text: &str, traces: &str| {
        let endpoint: CollectorUrl = text.parse().unwrap();
        assert_eq!(endpoint.traces().as_str(), traces, "{text}");
        assert_eq!(endpoint.to_string().parse(), Ok(endpoint), "{text}");
    };
    check("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces");
    check("https://collector.example/otlp/", "https://collector.example/otlp/v1/traces");
    check("http://[::1]:4318/", "http://[::1]:4318/v1/traces");
    for text in [
        "",
        "127.0.0.1:4318",
        "grpc://127.0.0.1:4317",
        "http://",
        "http://name:secret@127.0.0.1:4318",
        "http://127.0.0.1:4318/?key=secret",
        "http://127.0.0.1:4318/#part",
        &format!("http://127.0.0.1/{}", "a".repeat(MAX_ENDPOINT_BYTES)),
    ] {
        let error = text.parse::<CollectorUrl>().unwrap_err().to_string();
        assert!(error.contains("expected http://") && !error.contains("secret"), "{error}");
    }
}
