//! Pumps a session over a connection.
//!
//! One call of [`drive`] is one connection: it reads every stream, hands what comes to the
//! session, and does what the session says. It runs in one task, needs a clock and nothing else of
//! a runtime, and so is the same in real time and in the simulator.
//!
//! Nothing is unbounded: a stream is read one chunk at a time, each only when the chunk before has
//! been handled, and what waits to be written on a stream is limited by [`backlog`]. A peer that
//! leaves more than that unread is lost.

#[cfg(test)]
mod tests;

use super::{Connection, RecvStream, SendStream, TransportError};
use bytes::Bytes;
use commonware_runtime::Clock;
use cowboy_engine::{
    session::{End, Output, Session, StreamId},
    wire::{Channel, GoodbyeReason},
};
use futures::{
    StreamExt as _,
    future::{BoxFuture, FutureExt as _, OptionFuture},
    stream::FuturesUnordered,
};
use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};
use tokio::{select, sync::mpsc};

/// The most that is read from a stream at a time.
const CHUNK: usize = 64 * 1024;

/// How long a goodbye may take to reach the peer before the connection is closed all the same.
pub const GOODBYE_TIMEOUT: Duration = Duration::from_secs(1);

/// The most bytes that wait to be written on a stream: a few hundred control frames, or a job
/// stream's largest frame and what may stand beside it.
const fn backlog(stream: StreamId) -> usize {
    match stream {
        StreamId::CONTROL => Channel::Control.limit(),
        _ => Channel::Job.limit() + Channel::Control.limit(),
    }
}

/// What a connection is for: what its session's events mean, and what its owner can ask of it.
///
/// Both are called between two awaits of the connection's only task: they must not block.
pub trait Service: Send {
    /// The session's type.
    type Session: Session<Event: Send> + Send;
    /// What the owner may ask for.
    type Command: Send;

    /// The session says something.
    fn event(&mut self, session: &mut Self::Session, event: <Self::Session as Session>::Event);

    /// The owner wants something.
    fn command(&mut self, session: &mut Self::Session, command: Self::Command);
}

/// Milliseconds since the Unix epoch, as sessions are told the time.
pub fn now_ms(clock: &impl Clock) -> u64 {
    let since = clock.current().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Runs `session` over `connection` until it is over, and says how it ended. The connection is
/// closed then.
///
/// It says goodbye (`shutting_down`) once all senders of `commands` are gone.
pub async fn drive<E, C, S>(
    clock: &E,
    connection: C,
    mut session: S::Session,
    service: &mut S,
    mut commands: mpsc::Receiver<S::Command>,
) -> End
where
    E: Clock,
    C: Connection,
    S: Service,
{
    let mut wire = Wire { connection, tasks: FuturesUnordered::new(), writers: BTreeMap::new() };
    let (mut commanded, mut accepting) = (true, true);
    let end = loop {
        if let Some(end) = wire.obey(&mut session, service) {
            break end;
        }
        let deadline =
            session.next_timeout().map(|at| SystemTime::UNIX_EPOCH + Duration::from_millis(at));
        let timeout = OptionFuture::from(deadline.map(|at| clock.sleep_until(at)));
        select! {
            biased;
            command = commands.recv(), if commanded => match command {
                Some(command) => service.command(&mut session, command),
                None => {
                    commanded = false;
                    session.close(GoodbyeReason::ShuttingDown);
                }
            },
            accepted = wire.connection.accept(), if accepting => match accepted {
                Ok((send, recv)) => {
                    if let Some(stream) = session.handle_opened() {
                        wire.writers.insert(stream, Box::new(Writer::idle(send)));
                        wire.read(stream, recv);
                    }
                }
                // What arrived before the connection broke is still to be read, the peer's goodbye
                // above all. Where nothing is read, nothing else will tell.
                Err(_) if wire.tasks.is_empty() => session.handle_connection_lost(),
                Err(_) => accepting = false,
            },
            Some(done) = wire.tasks.next() => wire.done(&mut session, done),
            Some(()) = timeout => session.handle_timeout(now_ms(clock)),
            else => session.handle_connection_lost(),
        }
    };
    if let End::Local(_) = end {
        let grace = clock.sleep(GOODBYE_TIMEOUT);
        select! {
            biased;
            () = wire.last_words() => {}
            () = grace => {}
        }
    }
    wire.connection.close(&end.to_string());
    end
}

/// A connection's streams.
struct Wire<C: Connection> {
    connection: C,
    /// At most one per stream and direction.
    tasks: FuturesUnordered<BoxFuture<'static, Done<C>>>,
    /// Boxed, as a map makes room for eleven at once and most connections have one.
    writers: BTreeMap<StreamId, Box<Writer<C::Send>>>,
}

/// What a task has done.
enum Done<C: Connection> {
    Opened(StreamId, Result<(C::Send, C::Recv), TransportError>),
    Read(StreamId, C::Recv, Result<Option<Bytes>, TransportError>),
    Written(StreamId, C::Send, Result<(), TransportError>),
    /// The control stream's end reached the peer, or will not.
    LastWordsDelivered,
}

/// The writing half of a stream.
struct Writer<S> {
    /// `None` while the stream is being opened or written to.
    send: Option<S>,
    waiting: Vec<u8>,
    /// Nothing more will wait.
    finished: bool,
}

impl<S> Writer<S> {
    const fn idle(send: S) -> Self {
        Self { send: Some(send), waiting: Vec::new(), finished: false }
    }

    const fn opening(waiting: Vec<u8>) -> Self {
        Self { send: None, waiting, finished: false }
    }
}

impl<C: Connection> Wire<C> {
    /// Does what the session says, until it says nothing more.
    fn obey<S: Service>(&mut self, session: &mut S::Session, service: &mut S) -> Option<End> {
        while let Some(output) = session.poll_output() {
            match output {
                Output::Open { stream, bytes } => {
                    self.writers.insert(stream, Box::new(Writer::opening(bytes)));
                    let connection = self.connection.clone();
                    let open = async move { Done::Opened(stream, connection.open().await) };
                    self.tasks.push(open.boxed());
                }
                Output::Send { stream, bytes } => {
                    if let Some(writer) = self.writers.get_mut(&stream) {
                        writer.waiting.extend_from_slice(&bytes);
                        if writer.waiting.len() > backlog(stream) {
                            session.handle_connection_lost();
                        }
                        self.write(stream);
                    }
                }
                Output::Finish { stream } => {
                    if let Some(writer) = self.writers.get_mut(&stream) {
                        writer.finished = true;
                        self.write(stream);
                    }
                }
                Output::Event(event) => service.event(session, event),
                Output::Closed(end) => return Some(end),
            }
        }
        None
    }

    fn done(&mut self, session: &mut impl Session, done: Done<C>) {
        match done {
            Done::Opened(stream, Ok((send, recv))) => {
                if let Some(writer) = self.writers.get_mut(&stream) {
                    writer.send = Some(send);
                }
                self.read(stream, recv);
                self.write(stream);
            }
            Done::Read(stream, recv, Ok(Some(bytes))) => {
                session.handle_data(stream, &bytes);
                self.read(stream, recv);
            }
            Done::Read(stream, _, Ok(None)) => session.handle_finished(stream),
            Done::Written(stream, send, Ok(())) => self.written(stream, send),
            Done::Opened(stream, Err(_))
            | Done::Read(stream, _, Err(_))
            | Done::Written(stream, _, Err(_)) => {
                self.writers.remove(&stream);
                session.handle_reset(stream);
            }
            Done::LastWordsDelivered => {}
        }
    }

    fn read(&mut self, stream: StreamId, mut recv: C::Recv) {
        let read = async move {
            let result = recv.read(CHUNK).await;
            Done::Read(stream, recv, result)
        };
        self.tasks.push(read.boxed());
    }

    fn written(&mut self, stream: StreamId, send: C::Send) {
        if let Some(writer) = self.writers.get_mut(&stream) {
            writer.send = Some(send);
            self.write(stream);
        }
    }

    /// Writes what waits on the stream, where it is not being written to.
    fn write(&mut self, stream: StreamId) {
        let Some(writer) = self.writers.get_mut(&stream) else { return };
        let Some(mut send) = writer.send.take() else { return };
        if !writer.waiting.is_empty() {
            let bytes = std::mem::take(&mut writer.waiting);
            let write = async move {
                let result = send.write(&bytes).await;
                Done::Written(stream, send, result)
            };
            self.tasks.push(write.boxed());
        } else if !writer.finished {
            writer.send = Some(send);
        } else if stream == StreamId::CONTROL {
            // Only a goodbye ends this one, and the connection is closed right after it.
            let deliver = async move {
                // An error: the peer is gone, and needs no goodbye.
                let _ = send.delivered().await;
                Done::LastWordsDelivered
            };
            self.tasks.push(deliver.boxed());
        } else {
            send.finish();
            self.writers.remove(&stream);
        }
    }

    /// Writes what still waits, until the goodbye has reached the peer.
    async fn last_words(&mut self) {
        if !self.writers.contains_key(&StreamId::CONTROL) {
            return;
        }
        while let Some(done) = self.tasks.next().await {
            match done {
                Done::Written(stream, send, Ok(())) => self.written(stream, send),
                Done::Opened(StreamId::CONTROL, Ok((send, _))) => {
                    self.written(StreamId::CONTROL, send);
                }
                Done::Opened(StreamId::CONTROL, Err(_))
                | Done::Written(StreamId::CONTROL, _, Err(_))
                | Done::LastWordsDelivered => return,
                Done::Opened(..) | Done::Read(..) | Done::Written(..) => {}
            }
        }
    }
}
