//! The client against a listener that answers with prepared bytes.

use super::*;
use crate::types::{BlockNotice, Bytes, HashText, Text, TransactionRequest};
use cowboy_engine::primitives::Hash;
use futures::future::join_all;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::Barrier,
    task::{JoinHandle, JoinSet},
};

/// Answers each connection in turn with one of `answers`, then closes; returns the requests.
async fn serve(answers: Vec<String>) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let mut requests = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            requests.push(read_request(&mut stream).await);
            stream.write_all(answer.as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
        }
        requests
    });
    (url, server)
}

async fn read_request(stream: &mut TcpStream) -> String {
    let mut request = Vec::new();
    let mut buffer = [0; 4_096];
    loop {
        let read = stream.read(&mut buffer).await.unwrap();
        request.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&request).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head
            .lines()
            .find_map(|line| {
                line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok()
            })
            .unwrap_or(0);
        if body.len() >= length {
            return text;
        }
    }
}

fn response(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

fn notice(height: u64) -> BlockNotice {
    BlockNotice {
        height,
        hash: HashText::from(Hash([height as u8; 32])),
        proposer: Some("validator-0".to_owned()),
        view: height,
        finalized_at: None,
        transactions: 0,
        fires: 0,
        certificate_for: vec![height - 1],
        present: 4,
        registry_len: 4,
        events: vec![],
    }
}

fn message(height: u64) -> String {
    let json = serde_json::to_string(&notice(height)).unwrap();
    format!("id: {height}\nevent: block\ndata: {json}\n\n")
}

fn stream(messages: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n{messages}")
}

#[tokio::test]
async fn a_stream_resumes_where_it_was_cut() {
    let whole = message(8);
    let answers = vec![
        stream(&format!(": hi\n\n{}{}", message(7), &whole[..whole.len() / 2])),
        stream(&format!("{}{}", message(7), message(8))),
        stream(&message(9)),
        response("503 Service Unavailable", "{}"),
    ];
    let (url, server) = serve(answers).await;
    let mut events =
        Client::new(&url).unwrap().with_node(Some("validator-2".into())).follow(Some(7));
    for height in 7..=9 {
        assert_eq!(events.next().await.unwrap(), notice(height));
    }
    assert!(matches!(events.next().await, Err(ClientError::Malformed { .. })));
    let requests = server.await.unwrap();
    assert!(requests[0].starts_with("GET /v1/events?from=7&node=validator-2 "), "{requests:?}");
    for (request, last) in requests[1..].iter().zip([7, 8, 9]) {
        assert!(request.starts_with("GET /v1/events?node=validator-2 "), "{request}");
        assert!(request.contains(&format!("last-event-id: {last}\r\n")), "{request}");
    }
}

#[tokio::test]
async fn failures_are_told_apart() {
    let refusal = r#"{"error":{"code":"rejected","name":"InsufficientFunds","message":"poor"}}"#;
    let answers = vec![
        response("422 Unprocessable Entity", refusal),
        response("500 Internal Server Error", "<html>"),
        response("200 OK", "{}"),
    ];
    let (url, server) = serve(answers).await;
    let client = Client::new(&url).unwrap().with_token("secret".to_owned());

    let request = TransactionRequest { transaction: Text(Bytes(vec![1])) };
    let error = client.submit(&request).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::Rejected));
    assert_eq!(error.to_string(), "poor");
    let error = client.account("../a b").await.unwrap_err();
    assert!(matches!(error, ClientError::Malformed { .. }), "{error}");
    assert!(matches!(client.head().await, Err(ClientError::Malformed { .. })));

    let requests = server.await.unwrap();
    assert!(requests[0].contains("authorization: Bearer secret\r\n"), "{requests:?}");
    assert!(requests[0].ends_with(r#"{"transaction":"0x01"}"#), "{requests:?}");
    assert!(requests[1].starts_with("GET /v1/accounts/..%2Fa%20b "), "{requests:?}");
    assert!(!requests[1].contains("secret"), "a read shows no token");

    // The listener is gone.
    assert!(matches!(client.head().await, Err(ClientError::Unreachable { .. })));
    assert!(matches!(client.follow(None).next().await, Err(ClientError::Unreachable { .. })));
}

#[tokio::test]
async fn a_request_ends_within_its_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let client = Client::new(&url).unwrap().with_timeout(Duration::from_millis(20));
    assert!(matches!(client.head().await, Err(ClientError::Timeout { .. })));
}

/// Sends eight requests, two at a time: each is answered only when another one is under way too.
#[tokio::test]
async fn no_more_requests_are_under_way_than_may_be() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = Client::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let client = client.at_most(2);
    let server = tokio::spawn(async move {
        let (open, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let pair = Arc::new(Barrier::new(2));
        let mut answering = JoinSet::new();
        for _ in 0..8 {
            let (mut stream, _) = listener.accept().await.unwrap();
            let (open, most, pair) = (open.clone(), most.clone(), pair.clone());
            answering.spawn(async move {
                most.fetch_max(open.fetch_add(1, SeqCst) + 1, SeqCst);
                read_request(&mut stream).await;
                pair.wait().await;
                open.fetch_sub(1, SeqCst);
                let answer =
                    "HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
                stream.write_all(answer.as_bytes()).await.unwrap();
                stream.shutdown().await.unwrap();
            });
        }
        answering.join_all().await;
        most.load(SeqCst)
    });
    let requests = (0..8).map(|_| client.head());
    assert!(join_all(requests).await.iter().all(Result::is_err));
    assert_eq!(server.await.unwrap(), 2);
}

#[tokio::test]
async fn speculation_is_asked_for_by_number_and_name() {
    use crate::types::{OfPipelineQuery, PipelineQuery, PipelineRequest, PipelineStatus};

    let answers = vec![
        response("202 Accepted", r#"{"pipeline":3,"name":"p","tasks":1}"#),
        response("200 OK", "[]"),
        response("200 OK", r#"{"tasks":2}"#),
        response("200 OK", r#"{"tasks":1}"#),
        response("200 OK", "[]"),
        response("200 OK", "# EOF\n"),
        response("404 Not Found", ""),
    ];
    let (url, server) = serve(answers).await;
    let client = Client::new(&url).unwrap().with_token("secret".to_owned());
    let pipeline: PipelineRequest =
        serde_json::from_str(r#"{"name":"p","tasks":[{"id":"a","command":["true"]}]}"#).unwrap();
    assert_eq!(client.submit_pipeline(&pipeline).await.unwrap().pipeline, 3);
    let query = PipelineQuery { status: Some(PipelineStatus::Failed), name: None, limit: Some(1) };
    assert_eq!(client.pipelines(&query).await.unwrap(), []);
    assert_eq!(client.cancel_pipeline(3).await.unwrap().tasks, 2);
    assert_eq!(client.cancel_task(3, "a/b").await.unwrap().tasks, 1);
    let query = OfPipelineQuery { pipeline: Some(3), limit: None };
    assert_eq!(client.rollbacks(&query).await.unwrap(), []);
    assert_eq!(client.metrics().await.unwrap(), "# EOF\n");
    assert!(matches!(client.metrics().await, Err(ClientError::Malformed { .. })));

    let requests = server.await.unwrap();
    let lines: Vec<_> = requests.iter().map(|request| request.lines().next().unwrap()).collect();
    assert_eq!(
        lines,
        [
            "POST /v1/speculation/pipelines HTTP/1.1",
            "GET /v1/speculation/pipelines?limit=1&status=failed HTTP/1.1",
            "POST /v1/speculation/pipelines/3/cancel HTTP/1.1",
            "POST /v1/speculation/tasks/3/a%2Fb/cancel HTTP/1.1",
            "GET /v1/speculation/rollbacks?pipeline=3 HTTP/1.1",
            "GET /metrics HTTP/1.1",
            "GET /metrics HTTP/1.1",
        ]
    );
    let body = r#"{"name":"p","tasks":[{"id":"a","command":["true"]}]}"#;
    assert!(requests[0].ends_with(body), "{}", requests[0]);
    let shows_token = |request: &String| request.contains("authorization: Bearer secret\r\n");
    let with_token: Vec<_> = requests.iter().map(shows_token).collect();
    assert_eq!(with_token, [true, false, true, true, false, false, false]);
}

#[tokio::test]
async fn an_answer_of_another_version_is_refused_whatever_it_says() {
    let answers = |header: &str| {
        let ok = format!("HTTP/1.1 200 OK\r\n{header}\r\ncontent-length: 2\r\n\r\n{{}}");
        let missing = ok.replace("200 OK", "404 Not Found");
        vec![ok, missing]
    };
    let check = async |header: &str, protocol: Option<u32>, expected: Option<&str>| {
        let (url, server) = serve(answers(header)).await;
        let client = Client::new(&url).unwrap();
        let client = match protocol {
            Some(protocol) => client.of_protocol(protocol),
            None => client,
        };
        for _ in 0..2 {
            let error = client.head().await.unwrap_err();
            match expected {
                Some(expected) => {
                    let text = error.to_string();
                    assert!(matches!(error, ClientError::OtherVersion { .. }), "{text}");
                    assert!(text.contains(expected) && text.contains(&url), "{text}");
                }
                None => assert!(matches!(error, ClientError::Malformed { .. }), "{error}"),
            }
        }
        server.await.unwrap();
    };
    let api = "version 9 of the API and this program version 1";
    check("cowboy-api: 9", None, Some(api)).await;
    check("cowboy-api: 9", Some(2), Some(api)).await;
    check("cowboy-api: 1\r\ncowboy-protocol: 9", None, None).await;
    let protocol = "version 9 of the protocol and this program version 2";
    check("cowboy-api: 1\r\ncowboy-protocol: 9", Some(2), Some(protocol)).await;
    check("cowboy-protocol: 2", Some(2), None).await;
    check("server: proxy", Some(2), None).await;
}
