//! Every listener refuses garbage as specified, and the devnet goes on.

use crate::support::Home;
use serde_json::Value;
use std::{
    io::{Read as _, Write as _},
    net::{TcpStream, UdpSocket},
};

/// Sends bytes to the API and returns the status code and body of the answer.
fn http(url: &str, request: &[u8]) -> (u16, String) {
    let mut stream = TcpStream::connect(url.trim_start_matches("http://")).unwrap();
    // The server may answer and close before it has read everything.
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let text = String::from_utf8_lossy(&answer).into_owned();
    let code = text.split(' ').nth(1).and_then(|c| c.parse().ok()).unwrap_or(0);
    let body = text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default();
    (code, body)
}

fn post(url: &str, path: &str, token: Option<&str>, body: &[u8]) -> (u16, String) {
    let host = url.trim_start_matches("http://");
    let auth = token.map(|t| format!("Authorization: Bearer {t}\r\n")).unwrap_or_default();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n{auth}\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    http(url, &[head.as_bytes(), body].concat())
}

#[test]
fn garbage_is_refused_and_the_devnet_goes_on() {
    let home = Home::new();
    let up = home.up(&["--wait", "2"]);
    let url = up["rpc_url"].as_str().unwrap();
    let token = std::fs::read_to_string(home.path("local/token")).unwrap();
    let token = token.trim();

    let (code, body) = post(url, "/v1/transactions", None, b"{}");
    assert_eq!(code, 401, "{body}");
    let (code, body) = post(url, "/v1/transactions", Some("wrong"), b"{}");
    assert_eq!(code, 401, "{body}");
    assert!(!body.contains(token), "an error tells the token");
    let (code, body) = post(url, "/v1/transactions", Some(token), b"{\"transaction\": 7}");
    assert_eq!(code, 400, "{body}");
    let (code, body) = post(url, "/v1/transactions", Some(token), b"{\"transaction\": \"0x00\"}");
    assert_eq!(code, 400, "{body}");
    let huge = vec![b' '; 10_000_000];
    let (code, body) = post(url, "/v1/transactions", Some(token), &huge);
    assert_eq!(code, 413, "{body}");
    let error: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(error["error"]["code"], "bad_request");
    let (code, _) = http(url, b"\x16\x03\x01\x02\x00 not http\r\n\r\n");
    assert!(code == 400 || code == 0);

    let ports: Value =
        serde_json::from_str(&std::fs::read_to_string(home.path("local/data/ports.json")).unwrap())
            .unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut noise = vec![0u8; 1_200];
    for (_, port) in ports["quic"].as_object().unwrap() {
        let port = u16::try_from(port.as_u64().unwrap()).unwrap();
        for round in 0..500u32 {
            for (at, byte) in noise.iter_mut().enumerate() {
                *byte = (round.wrapping_mul(31).wrapping_add(at as u32 * 17) >> 3) as u8;
            }
            let _ = socket.send_to(&noise, ("127.0.0.1", port));
        }
    }
    for (_, port) in ports["p2p"].as_object().unwrap() {
        let port = u16::try_from(port.as_u64().unwrap()).unwrap();
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let _ = stream.write_all(&noise);
    }
    let head = home.height();
    home.wait_height(head + 5);
    let job = home.json(&["job", "submit", "custom", "--wait", "--", "echo", "still here"]);
    assert_eq!(job["status"], "Verified");
}
