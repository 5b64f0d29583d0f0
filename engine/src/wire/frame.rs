//! Frames in a stream of bytes.

use super::value::GoodbyeReason;
use crate::primitives::codec::DecodeError;

/// Which of a connection's two kinds of streams a frame travels on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// The first stream, open as long as the connection: handshake, heartbeats, load, goodbye.
    Control,
    /// A stream about one job: its assignment, acknowledgement, progress, result, cancellation.
    Job,
}

impl Channel {
    /// The most bytes a frame's length may claim (spec §2): 64 KiB on the control stream, 16 MiB
    /// on a job stream.
    pub const fn limit(self) -> usize {
        match self {
            Self::Control => 64 << 10,
            Self::Job => 16 << 20,
        }
    }
}

/// Why a stream's bytes are no frame of it. Each ends the connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The length is above the stream's bound. Nothing was stored.
    #[error("a frame of {got} bytes where at most {limit} may stand")]
    TooLarge {
        /// The length claimed.
        got: u32,
        /// The stream's bound.
        limit: usize,
    },
    /// The length is 0: not even a type.
    #[error("a frame without a type")]
    Empty,
    /// The type does not belong on this stream.
    #[error("frame type {kind:#04x} does not belong on a {channel:?} stream")]
    UnexpectedType {
        /// The type found.
        kind: u8,
        /// The kind of stream it was found on.
        channel: Channel,
    },
    /// The payload is not the frame's record.
    #[error("{frame}: {source}")]
    Payload {
        /// The frame's name.
        frame: &'static str,
        /// What is wrong with it.
        source: DecodeError,
    },
}

impl FrameError {
    /// What the peer is told before the connection is closed.
    pub const fn reason(&self) -> GoodbyeReason {
        match self {
            Self::TooLarge { .. } => GoodbyeReason::FrameTooLarge,
            Self::Empty | Self::UnexpectedType { .. } | Self::Payload { .. } => {
                GoodbyeReason::MalformedFrame
            }
        }
    }
}

impl From<FrameError> for GoodbyeReason {
    fn from(error: FrameError) -> Self {
        error.reason()
    }
}

/// A frame found but not yet read: its type and payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawFrame(
    /// The type, then the payload: never empty.
    Vec<u8>,
);

impl RawFrame {
    /// The frame's type.
    pub fn kind(&self) -> u8 {
        self.0[0]
    }

    /// The record's bytes.
    pub fn payload(&self) -> &[u8] {
        &self.0[1..]
    }
}

/// Finds the frames of one stream in chunks of any size.
///
/// Feed it each chunk until the chunk is empty; it holds at most one frame, and no more of it than
/// has arrived:
///
/// ```
/// # use cowboy_engine::wire::{Channel, FrameReader};
/// # let (mut reader, received) = (FrameReader::new(Channel::Control), [0, 0, 0, 1, 0xf0]);
/// let mut chunk = &received[..];
/// while let Some(frame) = reader.feed(&mut chunk)? {
///     assert_eq!(frame.kind(), 0xf0);
/// }
/// # Ok::<(), cowboy_engine::wire::FrameError>(())
/// ```
///
/// After an error the stream has no frame boundaries any more: the reader is of no further use.
#[derive(Debug)]
pub struct FrameReader {
    limit: usize,
    head: [u8; HEAD],
    head_len: usize,
    /// What the head claims, once it is whole.
    missing: usize,
    body: Vec<u8>,
}

/// Bytes of a frame's length.
const HEAD: usize = 4;

impl FrameReader {
    /// A reader at the start of a stream.
    pub const fn new(channel: Channel) -> Self {
        Self { limit: channel.limit(), head: [0; HEAD], head_len: 0, missing: 0, body: Vec::new() }
    }

    /// Takes bytes from the front of `chunk` up to the end of one frame. `None`: the chunk is used
    /// up and the frame is not complete.
    pub fn feed(&mut self, chunk: &mut &[u8]) -> Result<Option<RawFrame>, FrameError> {
        if self.head_len < HEAD {
            let part = take(chunk, HEAD - self.head_len);
            self.head[self.head_len..self.head_len + part.len()].copy_from_slice(part);
            self.head_len += part.len();
            if self.head_len < HEAD {
                return Ok(None);
            }
            self.missing = self.claimed()?;
        }
        let part = take(chunk, self.missing);
        self.body.extend_from_slice(part);
        self.missing -= part.len();
        if self.missing > 0 {
            return Ok(None);
        }
        self.head_len = 0;
        Ok(Some(RawFrame(std::mem::take(&mut self.body))))
    }

    fn claimed(&self) -> Result<usize, FrameError> {
        let got = u32::from_be_bytes(self.head);
        match usize::try_from(got) {
            Ok(0) => Err(FrameError::Empty),
            Ok(length) if length <= self.limit => Ok(length),
            _ => Err(FrameError::TooLarge { got, limit: self.limit }),
        }
    }
}

/// Splits at most `count` bytes off the front.
fn take<'a>(chunk: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (part, rest) = chunk.split_at(count.min(chunk.len()));
    *chunk = rest;
    part
}

/// The bytes of a frame around its payload.
pub(super) fn enclose(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len() + 1).expect("frames are far below 4 GiB");
    let mut bytes = Vec::with_capacity(HEAD + 1 + payload.len());
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.push(kind);
    bytes.extend_from_slice(payload);
    bytes
}
