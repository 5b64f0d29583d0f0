//! An established connection and its streams.

use super::CODE;
use crate::transport::{
    Connection, RecvStream, SendStream, TransportError, clipped,
    tls::{heartbeats, peer_key},
};
use bytes::Bytes;
use cowboy_engine::{primitives::PublicKey, session::heartbeat::Heartbeats};
use quinn::ConnectionError;
use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

/// A handshaken QUIC connection.
#[derive(Clone)]
pub struct QuicConnection {
    connection: quinn::Connection,
    proved: Arc<Proved>,
}

/// What the handshake showed.
struct Proved {
    peer: PublicKey,
    heartbeats: Heartbeats,
}

impl QuicConnection {
    /// `own` is this side's on-chain key.
    pub(super) fn new(
        connection: quinn::Connection,
        own: &PublicKey,
    ) -> Result<Self, TransportError> {
        let peer = peer_key(&connection)?;
        let heartbeats = heartbeats(&connection, own, &peer)?;
        Ok(Self { connection, proved: Arc::new(Proved { peer, heartbeats }) })
    }

    /// The address and port that the peer's packets come from.
    pub fn address(&self) -> SocketAddr {
        self.connection.remote_address()
    }
}

impl Connection for QuicConnection {
    type Send = QuicSend;
    type Recv = QuicRecv;

    fn peer(&self) -> &PublicKey {
        &self.proved.peer
    }

    fn remote(&self) -> IpAddr {
        self.connection.remote_address().ip()
    }

    fn heartbeats(&self) -> Heartbeats {
        self.proved.heartbeats.clone()
    }

    async fn open(&self) -> Result<(QuicSend, QuicRecv), TransportError> {
        let (send, recv) = self.connection.open_bi().await?;
        Ok((QuicSend::new(send), QuicRecv::new(recv)))
    }

    async fn accept(&self) -> Result<(QuicSend, QuicRecv), TransportError> {
        let (send, recv) = self.connection.accept_bi().await?;
        Ok((QuicSend::new(send), QuicRecv::new(recv)))
    }

    fn close(&self, reason: &str) {
        self.connection.close(CODE, clipped(reason).as_bytes());
    }

    async fn closed(&self) {
        self.connection.closed().await;
    }
}

/// The writing half of a QUIC stream.
pub struct QuicSend {
    stream: quinn::SendStream,
    finished: bool,
}

impl QuicSend {
    const fn new(stream: quinn::SendStream) -> Self {
        Self { stream, finished: false }
    }
}

impl SendStream for QuicSend {
    async fn write(&mut self, bytes: &[u8]) -> Result<(), TransportError> {
        if self.finished {
            return Err(TransportError::StreamFinished);
        }
        Ok(self.stream.write_all(bytes).await?)
    }

    fn finish(&mut self) {
        self.finished = true;
        // An error means that it was already finished.
        let _ = self.stream.finish();
    }

    async fn delivered(&mut self) -> Result<(), TransportError> {
        self.finish();
        match self.stream.stopped().await {
            Ok(None) => Ok(()),
            Ok(Some(_)) => Err(TransportError::StreamAbandoned),
            Err(quinn::StoppedError::ConnectionLost(error)) => Err(error.into()),
            Err(quinn::StoppedError::ZeroRttRejected) => unreachable!("0-RTT is never used"),
        }
    }
}

impl Drop for QuicSend {
    fn drop(&mut self) {
        if !self.finished {
            // quinn would finish the stream: the reader would take a part for the whole.
            let _ = self.stream.reset(CODE);
        }
    }
}

/// The reading half of a QUIC stream.
pub struct QuicRecv {
    stream: quinn::RecvStream,
    /// How it ended, because quinn reports that only once.
    ended: Option<Result<(), TransportError>>,
}

impl QuicRecv {
    const fn new(stream: quinn::RecvStream) -> Self {
        Self { stream, ended: None }
    }
}

impl RecvStream for QuicRecv {
    async fn read(&mut self, max: usize) -> Result<Option<Bytes>, TransportError> {
        if let Some(ended) = &self.ended {
            return ended.clone().map(|()| None);
        }
        match self.stream.read_chunk(max, true).await {
            Ok(Some(chunk)) => Ok(Some(chunk.bytes)),
            Ok(None) => {
                self.ended = Some(Ok(()));
                Ok(None)
            }
            Err(error) => {
                let error = TransportError::from(error);
                self.ended = Some(Err(error.clone()));
                Err(error)
            }
        }
    }
}

impl From<ConnectionError> for TransportError {
    fn from(error: ConnectionError) -> Self {
        match error {
            ConnectionError::LocallyClosed => Self::Closed,
            ConnectionError::ApplicationClosed(close) => {
                let reason = String::from_utf8_lossy(&close.reason);
                Self::ClosedByPeer { reason: clipped(&reason).to_owned() }
            }
            lost => Self::Lost { reason: lost.to_string() },
        }
    }
}

impl From<quinn::WriteError> for TransportError {
    fn from(error: quinn::WriteError) -> Self {
        match error {
            // Closed without being finished: it was stopped before.
            quinn::WriteError::Stopped(_) | quinn::WriteError::ClosedStream => {
                Self::StreamAbandoned
            }
            quinn::WriteError::ConnectionLost(error) => error.into(),
            quinn::WriteError::ZeroRttRejected => unreachable!("0-RTT is never used"),
        }
    }
}

impl From<quinn::ReadError> for TransportError {
    fn from(error: quinn::ReadError) -> Self {
        match error {
            quinn::ReadError::Reset(_) => Self::StreamAbandoned,
            quinn::ReadError::ConnectionLost(error) => error.into(),
            quinn::ReadError::ClosedStream => unreachable!("not read from after its end"),
            quinn::ReadError::IllegalOrderedRead => unreachable!("all reads are ordered"),
            quinn::ReadError::ZeroRttRejected => unreachable!("0-RTT is never used"),
        }
    }
}
