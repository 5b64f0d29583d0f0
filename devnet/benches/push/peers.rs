//! Other transports that carry the same number of bytes there and back.

use crate::bare::{LOOPBACK, ends};
use axum::{Router, routing::post};
use bytes::Bytes;
use reqwest::Url;
use std::future::ready;
use tokio::net::TcpListener;

/// A QUIC connection with the library's defaults.
pub struct Bare {
    connection: quinn::Connection,
    out: Bytes,
    back: usize,
    _ends: (quinn::Endpoint, quinn::Endpoint),
}

impl Bare {
    pub async fn connect(out: usize, back: usize) -> Self {
        let (server, client, config) = ends();
        let (accepting, answer) = (server.clone(), vec![1; back]);
        tokio::spawn(async move {
            let connection = accepting.accept().await.expect("a client").await.expect("connects");
            while let Ok((mut send, mut receive)) = connection.accept_bi().await {
                let mut read = 0;
                while read < out {
                    let chunk = receive.read_chunk(out, true).await.expect("the client goes on");
                    read += chunk.expect("all of it").bytes.len();
                }
                send.write_all(&answer).await.expect("the client reads");
                send.finish().expect("it is open");
            }
        });
        let address = server.local_addr().expect("it is bound");
        let connecting = client.connect_with(config, address, "localhost");
        let connection = connecting.expect("an address").await.expect("it listens");
        Self { connection, out: vec![1; out].into(), back, _ends: (client, server) }
    }

    pub async fn push(&self) {
        let (mut send, mut receive) = self.connection.open_bi().await.expect("it is open");
        send.write_all(&self.out).await.expect("the server reads");
        let mut read = 0;
        while read < self.back {
            let chunk = receive.read_chunk(self.back, true).await.expect("the server goes on");
            read += chunk.expect("all of it").bytes.len();
        }
        send.finish().expect("it is open");
    }
}

/// HTTP/1.1 with a persistent connection.
pub struct Axum {
    client: reqwest::Client,
    url: Url,
    out: Bytes,
}

impl Axum {
    pub async fn connect(out: usize, back: usize) -> Self {
        let listener = TcpListener::bind(LOOPBACK).await.expect("a socket");
        let address = listener.local_addr().expect("it is bound");
        let answer = Bytes::from(vec![1; back]);
        let router = Router::new().route("/push", post(move |_: Bytes| ready(answer.clone())));
        tokio::spawn(async move { axum::serve(listener, router).await });
        let url = format!("http://{address}/push").parse().expect("an address");
        Self { client: reqwest::Client::new(), url, out: vec![1; out].into() }
    }

    pub async fn push(&self) {
        let request = self.client.post(self.url.clone()).body(self.out.clone());
        let answer = request.send().await.expect("an answer");
        answer.bytes().await.expect("all of it");
    }
}
