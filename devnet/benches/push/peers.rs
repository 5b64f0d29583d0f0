//! Others that carry as many bytes there and back.

use crate::bare::{LOOPBACK, ends};
use axum::{Router, routing::post};
use bytes::{Buf as _, BufMut as _, Bytes};
use reqwest::Url;
use std::{
    convert::Infallible,
    future::{Ready, ready},
    pin::Pin,
    task::{Context, Poll},
};
use tokio::net::TcpListener;
use tonic::{
    Request, Response, Status,
    body::Body,
    client::Grpc,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    codegen::{
        Service, StdError,
        http::{self, uri::PathAndQuery},
    },
    server::{NamedService, UnaryService},
    transport::{Channel, Endpoint, Server, server::TcpIncoming},
};

/// A QUIC connection as it comes out of the library.
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

/// A gRPC channel whose messages are bytes.
pub struct Tonic {
    channel: Channel,
    out: Bytes,
}

#[derive(Clone, Copy, Default)]
struct AsTheyAre;

impl Codec for AsTheyAre {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for AsTheyAre {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(item);
        Ok(())
    }
}

impl Decoder for AsTheyAre {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
    }
}

#[derive(Clone)]
struct Answering(Bytes);

impl UnaryService<Bytes> for Answering {
    type Response = Bytes;
    type Future = Ready<Result<Response<Bytes>, Status>>;

    fn call(&mut self, _: Request<Bytes>) -> Self::Future {
        ready(Ok(Response::new(self.0.clone())))
    }
}

impl NamedService for Answering {
    const NAME: &'static str = "cowboy.Push";
}

impl Service<http::Request<Body>> for Answering {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let answering = self.clone();
        Box::pin(async move {
            let mut grpc = tonic::server::Grpc::new(AsTheyAre);
            Ok(grpc.unary(answering, request).await)
        })
    }
}

impl Tonic {
    pub async fn connect(out: usize, back: usize) -> Self {
        let listener = TcpListener::bind(LOOPBACK).await.expect("a socket");
        let address = listener.local_addr().expect("it is bound");
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        let answering = Answering(vec![1; back].into());
        tokio::spawn(Server::builder().serve_with_incoming(answering, incoming));
        let endpoint = Endpoint::from_shared(format!("http://{address}")).expect("an address");
        let channel = endpoint.connect().await.expect("it listens");
        Self { channel, out: vec![1; out].into() }
    }

    pub async fn push(&self) {
        let mut grpc = Grpc::new(self.channel.clone());
        grpc.ready().await.map_err(StdError::from).expect("it is open");
        let path = PathAndQuery::from_static("/cowboy.Push/Push");
        let answer = grpc.unary(Request::new(self.out.clone()), path, AsTheyAre).await;
        answer.expect("an answer");
    }
}

/// HTTP/1.1 with a connection that stays.
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
