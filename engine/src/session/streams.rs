//! The streams of one end of a connection, and the outputs that its driver has not taken yet.

use super::{MAX_JOB_STREAMS, MAX_PEER_STREAMS, Output, StreamId};
use crate::wire::{Channel, FrameError, FrameReader, RawFrame};
use std::{
    collections::{BTreeMap, VecDeque},
    mem,
};

/// A job stream and what is due on it, the phase `P`.
#[derive(Debug)]
pub(super) struct JobStream<P> {
    reader: FrameReader,
    pub(super) phase: P,
    /// The peer may still write on the stream.
    readable: bool,
    pub(super) finished: bool,
}

/// All streams of one end. The default of `P` is the phase in which nothing is due: further frames
/// are dropped.
#[derive(Debug)]
pub(super) struct Streams<P, E> {
    pub(super) outputs: VecDeque<Output<E>>,
    control: FrameReader,
    next_own: StreamId,
    next_peers: StreamId,
    pub(super) jobs: BTreeMap<StreamId, JobStream<P>>,
}

impl<P: Copy + Default + PartialEq, E> Streams<P, E> {
    /// No job streams; the first ids of this side and of its peer.
    pub(super) const fn new(next_own: StreamId, next_peers: StreamId) -> Self {
        Self {
            outputs: VecDeque::new(),
            control: FrameReader::new(Channel::Control),
            next_own,
            next_peers,
            jobs: BTreeMap::new(),
        }
    }

    pub(super) fn say(&mut self, event: E) {
        self.outputs.push_back(Output::Event(event));
    }

    pub(super) fn send(&mut self, stream: StreamId, bytes: Vec<u8>) {
        self.outputs.push_back(Output::Send { stream, bytes });
    }

    pub(super) fn send_control(&mut self, bytes: Vec<u8>) {
        self.send(StreamId::CONTROL, bytes);
    }

    /// Number of streams opened by the side that opens `like`.
    fn opened_by(&self, like: StreamId) -> usize {
        self.jobs.keys().filter(|id| id.is_runners() == like.is_runners()).count()
    }

    pub(super) fn has_room(&self) -> bool {
        self.opened_by(self.next_own) < MAX_JOB_STREAMS
    }

    pub(super) fn open(&mut self, phase: P, bytes: Vec<u8>) -> StreamId {
        let stream = self.next_own.advance();
        self.jobs.insert(stream, JobStream::new(phase));
        self.outputs.push_back(Output::Open { stream, bytes });
        stream
    }

    /// The peer opened a stream; `None` if it has too many.
    pub(super) fn accept(&mut self, phase: P) -> Option<StreamId> {
        if self.opened_by(self.next_peers) >= MAX_PEER_STREAMS {
            return None;
        }
        let stream = self.next_peers.advance();
        self.jobs.insert(stream, JobStream::new(phase));
        Some(stream)
    }

    /// The next frame in `bytes` on a stream; `None` if more bytes are needed or nothing is due.
    pub(super) fn read(
        &mut self,
        stream: StreamId,
        bytes: &mut &[u8],
    ) -> Option<Result<RawFrame, FrameError>> {
        let reader = match self.jobs.get_mut(&stream) {
            Some(job) if job.phase == P::default() => return None,
            Some(job) => &mut job.reader,
            None if stream == StreamId::CONTROL => &mut self.control,
            None => return None,
        };
        reader.feed(bytes).transpose()
    }

    /// The peer's half of a job stream has ended; returns the stream's phase.
    pub(super) fn ended(&mut self, id: StreamId) -> Option<P> {
        let stream = self.jobs.get_mut(&id)?;
        stream.readable = false;
        Some(stream.phase)
    }

    /// Finishes this side's half of the stream, and forgets the stream if the other half has ended
    /// too.
    pub(super) fn conclude(&mut self, id: StreamId, phase: P) {
        let Some(stream) = self.jobs.get_mut(&id) else { return };
        stream.phase = phase;
        if !mem::replace(&mut stream.finished, true) {
            self.outputs.push_back(Output::Finish { stream: id });
        }
        if !stream.readable {
            self.jobs.remove(&id);
        }
    }

    pub(super) fn finish(&mut self, id: StreamId) {
        self.conclude(id, P::default());
    }
}

impl<P> JobStream<P> {
    const fn new(phase: P) -> Self {
        Self { reader: FrameReader::new(Channel::Job), phase, readable: true, finished: false }
    }
}
