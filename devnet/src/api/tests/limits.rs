//! Requests that reach no route: too long, for another host, or malformed.

use super::fixture::*;
use crate::{
    api::{extract::BODY_LIMIT, openapi, routes, server::ServerLimits},
    types::{ErrorBody, ErrorCode},
};
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    task::JoinHandle,
    time::timeout,
};

/// Sends bytes as they are and reads the answer up to the connection's end.
async fn raw(devnet: &Devnet, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(devnet.url.strip_prefix("http://").unwrap()).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    timeout(Duration::from_secs(20), read).await.unwrap().unwrap();
    String::from_utf8(answer).unwrap()
}

/// Status and error of an answer.
fn refusal(answer: &str) -> (u16, ErrorBody) {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    assert!(head.contains("content-type: application/json"), "{head}");
    (status, serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {body}")))
}

#[tokio::test]
async fn ten_megabytes_of_json_get_an_answer() {
    let devnet = Devnet::new().await;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let body = format!("{{\"transaction\":\"0x{}\"}}", "00".repeat(5_000_000));
    for (token, status) in [(TOKEN, 413), ("wrong", 413)] {
        let url = format!("{}/v1/transactions", devnet.url);
        let request = client.post(url).bearer_auth(token).body(body.clone());
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), status);
        let error = response.json::<ErrorBody>().await.unwrap().error;
        assert_eq!(error.message, format!("the body is longer than {BODY_LIMIT} bytes"));
    }
    assert!(devnet.client.head().await.is_ok());
}

#[tokio::test]
async fn json_is_refused_by_field() {
    let devnet = Devnet::new().await;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let check = async |content_type: &str, body: &str, message: &str| {
        let url = format!("{}/v1/transactions", devnet.url);
        let request = client.post(url).bearer_auth(TOKEN).header("content-type", content_type);
        let response = request.body(body.to_owned()).send().await.unwrap();
        assert_eq!(response.status(), 400, "{body}");
        let error = response.json::<ErrorBody>().await.unwrap().error;
        assert!(error.message.contains(message), "{body}: {}", error.message);
    };
    let json = "application/json";
    check(json, "{\"transaction\": 7}", "transaction").await;
    check(json, "{\"transaction\": \"7\"}", "transaction: `7` is not a byte string").await;
    check(json, "{\"transactoin\": \"0x\"}", "unknown field `transactoin`").await;
    check(json, "{}", "missing field `transaction`").await;
    check(json, "{", "EOF").await;
    check(json, "", "EOF").await;
    check(json, &"[".repeat(100_000), "JSON").await;
    check("text/plain", "{\"transaction\": \"0x\"}", "Content-Type").await;
}

#[tokio::test]
async fn every_body_is_refused_that_has_an_unknown_field() {
    let devnet = Devnet::new().await;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let runner = format!("0x{}", "11".repeat(20));
    let check = async |path: &str, body: &str| {
        let request = client.post(format!("{}{path}", devnet.url)).bearer_auth(TOKEN);
        let request = request.header("content-type", "application/json");
        let response = request.body(body.to_owned()).send().await.unwrap();
        assert_eq!(response.status(), 400, "{path}");
        let error = response.json::<ErrorBody>().await.unwrap().error;
        assert!(error.message.contains("unknown field `mistake`"), "{path}: {}", error.message);
    };
    check("/v1/transactions", "{\"mistake\": 1}").await;
    check("/v1/snapshots", "{\"mistake\": 1}").await;
    check("/v1/chain/advance", "{\"blocks\": 1, \"mistake\": 1}").await;
    check("/v1/accounts", "{\"name\": \"a\", \"mistake\": 1}").await;
    check("/v1/faults", "{\"kind\": \"pause\", \"at\": \"runner-0\", \"mistake\": 1}").await;
    for kind in ["result", "commit", "failure"] {
        check(&format!("/runner/{runner}/job_{kind}"), "{\"mistake\": 1}").await;
    }
}

#[tokio::test]
async fn every_body_is_refused_that_is_not_an_object() {
    let devnet = Devnet::new().await;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let document = serde_json::to_value(openapi::document(routes::table(true))).unwrap();
    let paths = document["paths"].as_object().unwrap().iter();
    let paths: Vec<_> =
        paths.filter(|(_, item)| item["post"]["requestBody"].is_object()).map(|p| p.0).collect();
    assert!(paths.iter().any(|path| *path == "/v1/snapshots"));
    for path in paths {
        let url = format!("{}{}", devnet.url, path.replace(['{', '}'], "-"));
        for body in ["[]", " \r\n\t[null]", "[{}]", "5", "null", "true", "\"{}\""] {
            let request = client.post(&url).bearer_auth(TOKEN);
            let request = request.header("content-type", "application/json");
            let response = request.body(body).send().await.unwrap();
            assert_eq!(response.status(), 400, "{path}: {body}");
            let error = response.json::<ErrorBody>().await.unwrap().error;
            assert_eq!(error.message, "the body is not a JSON object", "{path}: {body}");
        }
    }
}

#[tokio::test]
async fn heights_beyond_the_store_s_integers_are_heights_of_no_block() {
    let devnet = Devnet::new().await;
    for height in [i64::MAX as u64, i64::MAX as u64 + 1, u64::MAX] {
        let get = async |path: &str| {
            let url = format!("{}{}", devnet.url, path.replace("HEIGHT", &height.to_string()));
            let response = reqwest::get(&url).await.unwrap();
            match response.status().as_u16() {
                // A stream has no end.
                200 => (200, String::new()),
                status => (status, response.text().await.unwrap()),
            }
        };
        for path in ["/v1/chain/blocks/HEIGHT", "/v1/presence/HEIGHT"] {
            let (status, body) = get(path).await;
            assert_eq!(status, 404, "{path} with {height}: {body}");
        }
        let address = format!("0x{}", "11".repeat(20));
        for path in [
            "/v1/chain/events?from=HEIGHT".to_owned(),
            "/v1/timers?from=HEIGHT".to_owned(),
            "/v1/timers?from=HEIGHT&to=HEIGHT".to_owned(),
            format!("/v1/actors/{address}/logs?from=HEIGHT"),
            "/v1/presence/compare?from=HEIGHT&to=HEIGHT".to_owned(),
            "/v1/events?from=HEIGHT".to_owned(),
        ] {
            let (status, body) = get(&path).await;
            assert!(status < 500, "{path} with {height}: {status} {body}");
        }
    }
}

#[tokio::test]
async fn unknown_routes_and_methods_have_the_same_error_body() {
    let devnet = Devnet::new().await;
    let check = async |method: &str, path: &str, expected: u16, message: &str| {
        let request =
            format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let answer = raw(&devnet, request.as_bytes()).await;
        let (status, body) = refusal(&answer);
        assert_eq!((status, body.error.message.as_str()), (expected, message));
        answer
    };
    check("GET", "/", 404, "there is no GET /").await;
    check("GET", "/v1/chain", 404, "there is no GET /v1/chain").await;
    check("POST", "/v1/chain", 404, "there is no POST /v1/chain").await;
    check("GET", "/v1/status/", 404, "there is no GET /v1/status/").await;
    let answer = check("GET", "/v2/status", 404, "there is no GET /v2/status").await;
    assert!(answer.contains("this API has version 1 and the request version 2"), "{answer}");
    let protocol = format!("cowboy-protocol: {}\r\n", crate::consensus::PROTOCOL);
    assert!(answer.contains("cowboy-api: 1\r\n") && answer.contains(&protocol), "{answer}");
    let answer = check("DELETE", "/v1/status", 405, "/v1/status takes no DELETE").await;
    assert!(answer.contains("allow: GET,HEAD"), "{answer}");
    check("GET", "/v1/shutdown", 405, "/v1/shutdown takes no GET").await;
    check("GET", "/v1/chain/blocks/%ff", 400, "Invalid URL: Invalid UTF-8 in `height`").await;
}

#[tokio::test]
async fn only_the_loopback_is_answered() {
    let devnet = Devnet::new().await;
    for host in ["example.org", "example.org:80", "127.0.0.1.example.org", "10.0.0.1", ""] {
        let request =
            format!("GET /v1/status HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        let (status, body) = refusal(&raw(&devnet, request.as_bytes()).await);
        assert_eq!(status, 400, "{host}");
        assert!(body.error.message.contains("Host"), "{}", body.error.message);
    }
    for host in ["localhost", "127.0.0.1:1", "[::1]"] {
        let request =
            format!("GET /v1/status HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        let answer = raw(&devnet, request.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        assert!(answer.contains("x-content-type-options: nosniff"), "{answer}");
        assert!(!answer.contains("access-control-allow"), "pages of others read nothing");
    }
}

#[tokio::test]
async fn what_is_no_request_ends_its_connection_only() {
    let devnet = Devnet::new().await;
    let garbage: Vec<u8> =
        (0..100_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let long = [b"GET /v1/status HTTP/1.1\r\nx: ", &vec![b'a'; 100_000][..], b"\r\n\r\n"].concat();
    for bytes in [&garbage[..], b"\r\n\r\n", b"GET /v1/status SPDY/9\r\n\r\n", &long] {
        let mut stream =
            TcpStream::connect(devnet.url.strip_prefix("http://").unwrap()).await.unwrap();
        // The server may close before everything is sent.
        let _ = stream.write_all(bytes).await;
        let _ = stream.shutdown().await;
        let mut answer = Vec::new();
        let read = stream.read_to_end(&mut answer);
        let _ = timeout(Duration::from_secs(20), read).await.unwrap();
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    }
    assert!(devnet.client.status().await.is_ok());
}

const LIMITS: ServerLimits = ServerLimits {
    connections: 2,
    streams: 1,
    client: Duration::from_millis(50),
    request: Duration::from_millis(50),
    change: Duration::from_millis(50),
};

#[tokio::test]
async fn who_sends_no_request_is_not_waited_for() {
    let devnet = Devnet::within(LIMITS).await;
    for bytes in ["", "GET /v1/sta", "GET /v1/status HTTP/1.1\r\nHost: loc"] {
        let answer = raw(&devnet, bytes.as_bytes()).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408 "), "{answer}");
    }
    // There are limits for a request and for the client's next bytes; the shorter one ends it.
    let long = Duration::from_secs(60);
    for limits in
        [ServerLimits { client: long, ..LIMITS }, ServerLimits { request: long, ..LIMITS }]
    {
        let devnet = Devnet::within(limits).await;
        let head = "POST /v1/transactions HTTP/1.1\r\nHost: localhost\r\n";
        let request = format!("{head}Content-Length: 100\r\nConnection: close\r\n\r\n{{");
        let answer = raw(&devnet, request.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 504 "), "{answer}");
    }
}

#[tokio::test]
async fn a_large_devnet_is_saved_however_long_it_takes() {
    let devnet = Devnet::within(LIMITS).await;
    assert_eq!(devnet.client.save(Some("large")).await.unwrap().snapshot, "large");
}

#[tokio::test]
async fn what_takes_too_long_is_answered_in_time() {
    let limits = ServerLimits { change: Duration::from_secs(1), ..LIMITS };
    let devnet = Devnet::within(limits).await;
    let error = devnet.client.start_validator("validator-3").await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::Timeout));
    // It is still under way.
    let error = devnet.client.start_validator("validator-3").await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::Conflict));
}

#[tokio::test]
async fn clients_that_do_not_go_on_keep_no_probe_out() {
    let long = Duration::from_secs(60);
    let limits =
        ServerLimits { connections: 4, streams: 3, client: long, request: long, change: long };
    let head = "HTTP/1.1\r\nHost: localhost\r\n";
    let slow = format!("POST /v1/transactions {head}Content-Length: 100\r\n\r\n{{");
    let pipelined = format!("GET /openapi.json {head}\r\n").repeat(1_000);
    let streams = format!("GET /v1/events {head}\r\n");
    for (what, bytes, answered) in [
        ("bodies that do not come", slow, false),
        ("answers that are not read", pipelined, true),
        ("streams that are not read", streams, true),
    ] {
        let devnet = Devnet::within(limits).await;
        let mut clients = Vec::new();
        for _ in 0..2 * limits.connections {
            let (reads, writing) = ask(&devnet, bytes.clone()).await;
            if answered {
                reads.readable().await.unwrap();
            }
            clients.push((reads, writing));
        }
        let probe = timeout(Duration::from_secs(20), devnet.client.status()).await;
        assert!(probe.expect(what).is_ok(), "{what}");
    }
}

#[tokio::test]
async fn clients_that_ask_much_and_read_nothing_keep_no_probe_out() {
    let long = Duration::from_secs(60);
    let few =
        ServerLimits { connections: 16, streams: 3, client: long, request: long, change: long };
    for (limits, clients, path, requests) in [
        (None, 20, "/openapi.json", 3_000),
        (None, 60, "/v1/status", 500),
        (Some(few), 24, "/v1/status", 500),
    ] {
        let devnet = match limits {
            None => Devnet::new().await,
            Some(limits) => Devnet::within(limits).await,
        };
        let bytes = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").repeat(requests);
        let mut asking = Vec::new();
        for _ in 0..clients {
            asking.push(ask(&devnet, bytes.clone()).await);
        }
        asking[0].0.readable().await.unwrap();
        for _ in 0..3 {
            let probe = devnet.get("/v1/status");
            let answer = timeout(Duration::from_secs(10), probe).await;
            assert_eq!(answer.expect(path).status(), 200, "{path}");
        }
    }
}

/// A client that sends bytes and reads nothing.
async fn ask(devnet: &Devnet, bytes: String) -> (OwnedReadHalf, JoinHandle<OwnedWriteHalf>) {
    let address = devnet.url.strip_prefix("http://").unwrap();
    let (reads, mut writes) = TcpStream::connect(address).await.unwrap().into_split();
    let writing = tokio::spawn(async move {
        // The server may take all of it, or close the connection.
        let _ = writes.write_all(bytes.as_bytes()).await;
        writes
    });
    (reads, writing)
}
