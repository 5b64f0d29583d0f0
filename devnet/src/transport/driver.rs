//! Drives a session over a connection.
//!
//! One call of [`drive`] is one connection: it reads every stream, passes incoming bytes to the
//! session, and carries out the session's outputs. It runs in one task and needs only a clock, so
//! it behaves the same in real time and in the simulator.
//!
//! Nothing is unbounded: a stream is read one chunk at a time, each only after the previous chunk
//! has been handled, and [`backlog`] limits the bytes that wait to be written on a stream. A peer
//! that leaves more than that unread is disconnected.

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

/// The maximum number of bytes read from a stream at once.
const CHUNK: usize = 64 * 1024;

/// The time that a goodbye has to reach the peer before the connection is closed anyway.
pub const GOODBYE_TIMEOUT: Duration = Duration::from_secs(1);

/// The maximum number of bytes that wait to be written on a stream: a few hundred control frames,
/// or a job stream's largest frame and small frames along with it.
const fn backlog(stream: StreamId) -> usize {
    match stream {
        StreamId::CONTROL => Channel::Control.limit(),
        _ => Channel::Job.limit() + Channel::Control.limit(),
    }
}

/// The owner of a connection: it handles its session's events and issues commands.
///
/// Both methods are called between two awaits of the connection's only task: they must not block.
pub trait Service: Send {
    type Session: Session<Event: Send> + Send;
    type Command: Send;

    fn event(&mut self, session: &mut Self::Session, event: <Self::Session as Session>::Event);

    fn command(&mut self, session: &mut Self::Session, command: Self::Command);
}

/// Milliseconds since the Unix epoch, in the form that sessions take the time.
pub fn now_ms(clock: &impl Clock) -> u64 {
    let since = clock.current().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Runs `session` over `connection` until it is over, closes the connection, and returns how the
/// session ended.
///
/// It says goodbye (`shutting_down`) once all senders of `commands` are gone.
pub async fn drive<E: Clock, C: Connection, S: Service>(
    clock: &E,
    connection: C,
    mut session: S::Session,
    service: &mut S,
    mut commands: mpsc::Receiver<S::Command>,
) -> End {
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
                // Bytes that arrived before the connection broke are still to be read, above all
                // the peer's goodbye. If nothing is being read, only this call reports the loss.
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

struct Wire<C: Connection> {
    connection: C,
    /// At most one per stream and direction.
    tasks: FuturesUnordered<BoxFuture<'static, Done<C>>>,
    /// Boxed because a map allocates room for eleven entries at once and most connections have one.
    writers: BTreeMap<StreamId, Box<Writer<C::Send>>>,
}

enum Done<C: Connection> {
    Opened(StreamId, Result<(C::Send, C::Recv), TransportError>),
    Read(StreamId, C::Recv, Result<Option<Bytes>, TransportError>),
    Written(StreamId, C::Send, Result<(), TransportError>),
    /// The end of the control stream has reached the peer, or never will.
    LastWordsDelivered,
}

struct Writer<S> {
    /// `None` while the stream is being opened or written to.
    send: Option<S>,
    waiting: Vec<u8>,
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

    /// Writes the waiting bytes of the stream, unless a write is in progress.
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
                // An error means that the peer is gone and needs no goodbye.
                let _ = send.delivered().await;
                Done::LastWordsDelivered
            };
            self.tasks.push(deliver.boxed());
        } else {
            send.finish();
            self.writers.remove(&stream);
        }
    }

    /// Writes the remaining bytes until the goodbye has reached the peer.
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
