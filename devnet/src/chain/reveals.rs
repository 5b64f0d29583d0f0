//! Revealed results of committees, between validators (spec jobs.md §5).
//!
//! A runner shows its result to the validators that it is connected to; the one that has the
//! aggregator's connection may be another. So what a runner has revealed travels on a channel of
//! its own, one result in a message. Who takes it and when it is sent again is for others to say
//! ([`crate::validator::committees`]): here messages only come and go. One that finds no room, on
//! either side, is lost.

use commonware_macros::select;
use commonware_p2p::{Receiver, Recipients, Sender};
use commonware_runtime::Clock;
use cowboy_engine::{
    chain::transaction::Reveal,
    job::spec::MAX_RETURN_BYTES,
    primitives::{
        Hash,
        codec::{from_slice, to_vec},
    },
    record,
};
use std::{sync::Arc, time::Duration};
use tokio::sync::{broadcast, mpsc};

/// The longest message: the longest result, and room for the rest of its record.
pub const MAX_MESSAGE: usize = MAX_RETURN_BYTES as usize + 512;
/// Results that wait, either way.
const WAITING: usize = 64;
/// Time between messages: the channel admits 128 a second.
const PAUSE: Duration = Duration::from_millis(10);

/// A result that its runner has revealed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revealed {
    /// The job.
    pub job_id: Hash,
    /// The result.
    pub reveal: Reveal,
}
record!(Revealed { job_id, reveal });

/// A validator's use of the channel. Cloning shares it.
#[derive(Debug, Clone)]
pub struct Exchange {
    outgoing: mpsc::Sender<Arc<Revealed>>,
    incoming: broadcast::Sender<Arc<Revealed>>,
}

/// The other end of an [`Exchange`], for [`run`].
#[derive(Debug)]
pub struct Port {
    outgoing: mpsc::Receiver<Arc<Revealed>>,
    incoming: broadcast::Sender<Arc<Revealed>>,
}

/// An exchange and its other end.
pub fn exchange() -> (Exchange, Port) {
    let (sender, outgoing) = mpsc::channel(WAITING);
    let (incoming, _) = broadcast::channel(WAITING);
    (Exchange { outgoing: sender, incoming: incoming.clone() }, Port { outgoing, incoming })
}

impl Exchange {
    /// Sends a result to every other validator.
    pub fn send(&self, revealed: Arc<Revealed>) {
        if let Err(error) = self.outgoing.try_send(revealed) {
            tracing::debug!(%error, "a revealed result is not passed on now");
        }
    }

    /// What other validators send from now on. Nothing of it has been checked.
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<Revealed>> {
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
    while let Some(revealed) = outgoing.recv().await {
        sender.send(Recipients::All, to_vec(&*revealed), false);
        context.sleep(PAUSE).await;
    }
    // Nobody has anything to send any more; there is still something to receive.
    std::future::pending::<()>().await;
}

async fn receive<R: Receiver>(mut receiver: R, incoming: broadcast::Sender<Arc<Revealed>>) {
    while let Ok((peer, message)) = receiver.recv().await {
        match from_slice(message.as_ref()) {
            Ok(revealed) => {
                // A validator that serves no runners has no use for it.
                let _ = incoming.send(Arc::new(revealed));
            }
            Err(error) => tracing::warn!(%peer, %error, "a message that is no revealed result"),
        }
    }
}
