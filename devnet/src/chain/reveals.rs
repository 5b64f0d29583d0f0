//! Revealed results of committees, exchanged between validators (spec jobs.md §5).
//!
//! A runner shows its result to the validators that it is connected to, but another validator may
//! have the aggregator's connection. So revealed results travel on a separate channel, with as many
//! in a message as wait and fit. [`crate::validator::committees`] decides who uses them and when
//! one is sent again; this module only transports messages. A result that finds no room, on either
//! side, is lost.

use super::gossip::{GATHER, LIST_HEAD};
use commonware_macros::select;
use commonware_p2p::{Receiver, Recipients, Sender};
use commonware_runtime::Clock;
use cowboy_engine::{
    chain::transaction::Reveal,
    job::spec::MAX_RETURN_BYTES,
    primitives::{
        Hash,
        codec::{Encode as _, Writer, from_slice},
    },
    record,
};
use std::sync::Arc;
use tokio::sync::{broadcast, mpsc};

/// Bytes reserved for the record around a result.
const RECORD: usize = 512;
/// Maximum bytes of results in a message: the longest result.
const MAX_BATCH: usize = MAX_RETURN_BYTES as usize + RECORD;
/// The longest message: the list's head takes at most nine bytes.
pub const MAX_MESSAGE: usize = MAX_BATCH + LIST_HEAD;
/// Results that may wait to be sent: those of a hundred of the largest committees.
const OUTGOING: usize = 4_096;
const INCOMING: usize = 64;

/// A result revealed by its runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revealed {
    pub job_id: Hash,
    pub reveal: Reveal,
}
record!(Revealed { job_id, reveal });

impl Revealed {
    /// Maximum bytes of the result in a message.
    const fn room(&self) -> usize {
        self.reveal.result.len() + RECORD
    }
}

type Batch = Arc<[Arc<Revealed>]>;

/// A validator's access to the channel. Clones share it.
#[derive(Debug, Clone)]
pub struct Exchange {
    outgoing: mpsc::Sender<Arc<Revealed>>,
    incoming: broadcast::Sender<Batch>,
}

/// The other end of an [`Exchange`], for [`run`].
#[derive(Debug)]
pub struct Port {
    outgoing: mpsc::Receiver<Arc<Revealed>>,
    incoming: broadcast::Sender<Batch>,
}

/// Creates an exchange and its other end.
pub fn exchange() -> (Exchange, Port) {
    let (sender, outgoing) = mpsc::channel(OUTGOING);
    let (incoming, _) = broadcast::channel(INCOMING);
    (Exchange { outgoing: sender, incoming: incoming.clone() }, Port { outgoing, incoming })
}

impl Exchange {
    pub fn send(&self, revealed: Arc<Revealed>) {
        if let Err(error) = self.outgoing.try_send(revealed) {
            tracing::debug!(%error, "a revealed result is not passed on now");
        }
    }

    /// Results that other validators send from now on, unchecked.
    pub fn subscribe(&self) -> broadcast::Receiver<Batch> {
        self.incoming.subscribe()
    }
}

/// Sends and receives until the network ends.
pub async fn run<E, S, R>(context: E, (sender, receiver): (S, R), port: Port)
where
    E: Clock,
    S: Sender,
    R: Receiver,
{
    let Port { outgoing, incoming } = port;
    select! {
        () = send(&context, sender, outgoing) => {},
        () = receive(receiver, incoming) => {},
    }
}

async fn send<E: Clock, S: Sender>(
    context: &E,
    mut sender: S,
    mut outgoing: mpsc::Receiver<Arc<Revealed>>,
) {
    let mut next = outgoing.recv().await;
    while let Some(first) = next.take() {
        let mut room = MAX_BATCH.saturating_sub(first.room());
        let mut batch = vec![first];
        while let Ok(revealed) = outgoing.try_recv() {
            let Some(left) = room.checked_sub(revealed.room()) else {
                next = Some(revealed);
                break;
            };
            room = left;
            batch.push(revealed);
        }
        let mut w = Writer::new();
        w.list(batch.len());
        for revealed in batch {
            revealed.encode(&mut w);
        }
        sender.send(Recipients::All, w.finish(), false);
        context.sleep(GATHER).await;
        if next.is_none() {
            next = outgoing.recv().await;
        }
    }
    // There is nothing left to send, but messages may still arrive.
    std::future::pending::<()>().await;
}

async fn receive<R: Receiver>(mut receiver: R, incoming: broadcast::Sender<Batch>) {
    while let Ok((peer, message)) = receiver.recv().await {
        match from_slice::<Vec<Revealed>>(message.as_ref()) {
            Ok(batch) => {
                // A validator that serves no runners has no subscribers.
                let _ = incoming.send(batch.into_iter().map(Arc::new).collect());
            }
            Err(error) => tracing::warn!(%peer, %error, "a message is not a list of results"),
        }
    }
}
