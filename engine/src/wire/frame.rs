//! Frames in a byte stream.

use super::{Channel, value::GoodbyeReason};
use crate::primitives::codec::DecodeError;

/// Why a stream's bytes are not a valid frame. Each error ends the connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Nothing was stored.
    #[error("a frame of {got} bytes where at most {limit} are allowed")]
    TooLarge { got: u32, limit: usize },
    /// The length is 0, so even the type is missing.
    #[error("a frame without a type")]
    Empty,
    #[error("frame type {kind:#04x} does not belong on a {channel:?} stream")]
    UnexpectedType { kind: u8, channel: Channel },
    #[error("{frame}: {source}")]
    Payload { frame: &'static str, source: DecodeError },
}

impl FrameError {
    /// The reason in the goodbye before the connection is closed.
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

/// A frame that is not decoded yet: its type and payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawFrame(
    /// The type, then the payload; never empty.
    Vec<u8>,
);

impl RawFrame {
    pub fn kind(&self) -> u8 {
        self.0[0]
    }

    pub fn payload(&self) -> &[u8] {
        &self.0[1..]
    }
}

/// Splits one stream into frames, from chunks of any size.
///
/// Feed it each chunk until the chunk is empty. It buffers at most one frame, and never more than
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
/// After an error the frame boundaries are lost: the reader can no longer be used.
#[derive(Debug)]
pub struct FrameReader {
    limit: usize,
    head: [u8; HEAD],
    head_len: usize,
    /// Number of missing bytes of the frame, once its length is known.
    missing: usize,
    body: Vec<u8>,
}

/// Bytes of the length field.
const HEAD: usize = 4;

impl FrameReader {
    pub const fn new(channel: Channel) -> Self {
        Self { limit: channel.limit(), head: [0; HEAD], head_len: 0, missing: 0, body: Vec::new() }
    }

    /// Takes bytes from the front of `chunk` up to the end of one frame. Returns `None` when the
    /// chunk is used up and the frame is incomplete.
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

pub(super) fn enclose(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len() + 1).expect("frames are far below 4 GiB");
    let mut bytes = Vec::with_capacity(HEAD + 1 + payload.len());
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.push(kind);
    bytes.extend_from_slice(payload);
    bytes
}
