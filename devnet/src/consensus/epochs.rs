//! Consensus, one epoch after another.
//!
//! A committee serves for whole epochs (spec chain.md; `chain::committee` in the engine), and an
//! instance of Simplex knows one committee. So each epoch has its own instance, with its own
//! journal and subchannels. Its genesis is the last block of the epoch before:
//!
//! ```text
//!  votes, certificates, resolver ── by epoch ──┬─ e: simplex, until the last block of e is stored
//!                                              ├─ e + 1: kept until e is over
//!                                              └─ others: a peer is ahead or behind
//! ```
//!
//! Within an epoch, the last block is proposed again and again until it is final by its own votes,
//! so validators that have moved on can supply its finalization. A validator that receives messages
//! of an epoch beyond its own asks for that finalization, and gets the blocks before it as well,
//! because the archive fills gaps. Validators outside the committee run the same code without a
//! vote: they follow the chain.
//!
//! Early messages of the next epoch are kept because validators finish an epoch some milliseconds
//! apart. If half of them missed the first proposal, that view would cost a timeout.

use super::{
    Digest, Finalization,
    application::{Application, Marshal},
    block::Block,
    held::Held,
    hurry::Hurry,
    scheme::{Scheme, Schemes},
    start_barrier::{Greeting, StartBarrier},
    timing::Timing,
};
use commonware_codec::Encode as _;
use commonware_consensus::{
    Reporters,
    marshal::standard::Inline,
    simplex::{
        self, Engine, Floor, ForwardPolicy, SkipBudget, SkipPolicy,
        elector::RoundRobin,
        types::{Nullify, Vote},
    },
    types::{Epoch, Epocher as _, FixedEpocher, Height, Round, View, ViewDelta},
};
use commonware_cryptography::{Sha256, ed25519::PublicKey};
use commonware_macros::select;
use commonware_p2p::{
    Blocker, Message, Receiver, Recipients, Sender,
    utils::mux::{self, Builder as _, MuxHandle, Muxer, SubReceiver, SubSender},
};
use commonware_parallel::Sequential;
use commonware_runtime::{Clock, Handle, Metrics, Spawner, Storage, buffer::paged::CacheRef};
use commonware_utils::{NZDuration, NZUsize, channel::mpsc, vec::NonEmptyVec};
use rand_core::CryptoRng;
use std::{
    collections::{BTreeSet, VecDeque},
    num::NonZeroUsize,
    time::{Duration, SystemTime},
};
use tokio::sync::watch;

/// Maximum number of messages that wait inside consensus.
pub(super) const MAILBOX: NonZeroUsize = NZUsize!(1024);
pub(super) const BUFFER: NonZeroUsize = NZUsize!(1 << 16);
/// Views behind the newest final one that are kept for lagging validators. Consensus holds an open
/// file for each.
pub(super) const VIEWS_KEPT: ViewDelta = ViewDelta::new(20);
/// Minimum time between two requests for the end of an epoch that others have left.
const ASK_AGAIN: Duration = Duration::from_millis(50);

/// Verification, proposals and reports of one validator, shared by its epochs.
pub(super) type Automaton<E> = Inline<E, Scheme, Application, Block, FixedEpocher>;

pub(super) struct Epochs<E, B>
where
    E: Clock + CryptoRng + Spawner + Storage + Metrics,
{
    pub(super) name: String,
    pub(super) me: PublicKey,
    pub(super) schemes: Schemes,
    pub(super) epocher: FixedEpocher,
    pub(super) timing: Timing,
    pub(super) blocker: B,
    pub(super) automaton: Automaton<E>,
    pub(super) marshal: Marshal,
    pub(super) held: Held,
    pub(super) hurry: Hurry,
    pub(super) page_cache: CacheRef,
    /// The stored height and that block's digest.
    pub(super) stored: watch::Receiver<(u64, Digest)>,
    /// The stored or delivered height at the validator's start.
    pub(super) begun: u64,
    /// If the journal of the first epoch is lost: a final block of that epoch to resume from.
    pub(super) floor: Option<Finalization>,
    pub(super) genesis: Digest,
}

struct Subchannels<S: Sender> {
    votes: (SubSender<S>, Early<SubReceiver<S::PublicKey>>),
    certificates: (SubSender<S>, SubReceiver<S::PublicKey>),
    resolver: (SubSender<S>, SubReceiver<S::PublicKey>),
}

struct Muxes<S: Sender> {
    votes: MuxHandle<S>,
    certificates: MuxHandle<S>,
    resolver: MuxHandle<S>,
}

impl<S: Sender> Muxes<S> {
    async fn register(&mut self, epoch: Epoch) -> Result<Subchannels<S>, mux::Error> {
        let (sender, receiver) = self.votes.register(epoch.get()).await?;
        Ok(Subchannels {
            votes: (sender, Early { receiver, messages: VecDeque::new() }),
            certificates: self.certificates.register(epoch.get()).await?,
            resolver: self.resolver.register(epoch.get()).await?,
        })
    }
}

/// A receiver with a queue for messages that arrive before its epoch.
struct Early<R: Receiver> {
    receiver: R,
    messages: VecDeque<Message<R::PublicKey>>,
}

impl<R: Receiver> std::fmt::Debug for Early<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Early({:?}, {} messages)", self.receiver, self.messages.len())
    }
}

impl<R: Receiver> Early<R> {
    /// Receives a message, queues it and returns its sender. The queue is as long as the receiver's
    /// own.
    async fn listen(&mut self) -> Result<R::PublicKey, R::Error> {
        let message = self.receiver.recv().await?;
        let from = message.0.clone();
        if self.messages.len() < self.receiver.capacity().get() {
            self.messages.push_back(message);
        }
        Ok(from)
    }
}

impl<R: Receiver> Receiver for Early<R> {
    type Error = R::Error;
    type PublicKey = R::PublicKey;

    async fn recv(&mut self) -> Result<Message<R::PublicKey>, R::Error> {
        match self.messages.pop_front() {
            Some(message) => Ok(message),
            None => self.receiver.recv().await,
        }
    }

    fn capacity(&self) -> NonZeroUsize {
        self.receiver.capacity()
    }
}

/// A peer known to be in a later epoch than this validator.
struct Ahead {
    epoch: u64,
    peer: PublicKey,
    asked: SystemTime,
}

impl<E, B> Epochs<E, B>
where
    E: Clock + CryptoRng + Spawner + Storage + Metrics,
    B: Blocker<PublicKey = PublicKey>,
{
    pub(super) fn journal(name: &str, epoch: Epoch) -> String {
        format!("{name}-simplex-{epoch}")
    }

    /// The epoch of the block after `stored`.
    pub(super) fn epoch_after(epocher: &FixedEpocher, stored: u64) -> Epoch {
        epocher.containing(Height::new(stored + 1)).expect("no chain is that long").epoch()
    }

    /// Runs consensus until one of its parts ends; returns that part's name.
    pub(super) async fn run<
        S: Sender<PublicKey = PublicKey>,
        R: Receiver<PublicKey = PublicKey>,
    >(
        mut self,
        context: E,
        channels: ConsensusChannels<S, R>,
    ) -> &'static str {
        let ConsensusChannels { votes, certificates, resolver, start_barrier } = channels;
        let (mux, votes, mut strays) =
            Muxer::builder(context.child("votes"), votes.0, votes.1).with_backup().build();
        mux.start();
        let (mux, certificates) =
            Muxer::new(context.child("certificates"), certificates.0, certificates.1);
        mux.start();
        let (mux, resolver) = Muxer::new(context.child("resolver"), resolver.0, resolver.1);
        mux.start();
        let mut muxes = Muxes { votes, certificates, resolver };

        let mut epoch = Self::epoch_after(&self.epocher, self.begun);
        // If a power failure took blocks from the store, it first gets them back from the archive.
        let decided = self.epocher.first(epoch).map_or(0, |first| first.get().saturating_sub(1));
        if self.stored.wait_for(|(stored, _)| *stored >= decided).await.is_err() {
            return "ledger";
        }
        let Some(genesis) = self.genesis_of(epoch).await else { return "archive" };
        let mut floor = match self.floor.take().filter(|floor| floor.round().epoch() == epoch) {
            Some(proof) => Floor::Finalized(proof),
            None => Floor::Genesis(genesis),
        };
        let greeting = Greeting::none();
        let mut start_barrier = Some(StartBarrier::new(start_barrier, greeting.clone()));
        let Ok(mut next) = muxes.register(epoch).await else { return "votes channel" };
        let mut ahead = None;
        loop {
            let current = next;
            let Ok(registered) = muxes.register(epoch.next()).await else { return "votes channel" };
            next = registered;
            let Some(scheme) = self.schemes.of(epoch) else { return "committee" };
            let vote = Nullify::sign::<Digest>(scheme.as_ref(), Round::new(epoch, View::zero()));
            let vote = vote.map(|vote| Vote::<Scheme, Digest>::Nullify(vote).encode());
            greeting.set(current.votes.0.clone(), vote);
            if let Some(mut start_barrier) = start_barrier.take() {
                let members = scheme.committee().validators().iter().cloned();
                let others: BTreeSet<_> = members.filter(|key| *key != self.me).collect();
                start_barrier.open(&context, &others, scheme.committee().quorum()).await;
                context.child("start_barrier").spawn(move |_| start_barrier.keep_answering());
            } else {
                greeting.send(Recipients::All);
                self.warm_up(&context, epoch);
            }
            tracing::debug!(%epoch, validators = scheme.committee().validators().len(), "epoch");
            // The committee may be another one; a proposer decides again.
            self.hurry.set(false);
            let simplex = self.engine(&context, epoch, &scheme, floor).start(
                current.votes,
                current.certificates,
                current.resolver,
            );
            let over = self.over(&context, epoch, &mut next, &mut strays, &mut ahead);
            let mut simplex = Aborting(simplex);
            let last = select! {
                last = over => match last {
                    Ok(last) => last,
                    Err(part) => return part,
                },
                _ = &mut simplex.0 => return "simplex",
            };
            drop(simplex);
            epoch = epoch.next();
            floor = Floor::Genesis(last);
        }
    }

    /// The last block of the epoch before.
    async fn genesis_of(&mut self, epoch: Epoch) -> Option<Digest> {
        match epoch.previous() {
            None => Some(self.genesis),
            Some(previous) => {
                let last = self.epocher.last(previous)?;
                Some(self.marshal.get_info(last).await?.1)
            }
        }
    }

    /// Makes the archive open its files for a new epoch, which it does for the first block of that
    /// epoch. This happens now, while the proposer paces itself, so that no block waits for it.
    fn warm_up(&self, context: &E, epoch: Epoch) {
        let Some(last) = epoch.previous().and_then(|before| self.epocher.last(before)) else {
            return;
        };
        let marshal = self.marshal.clone();
        context.child("warm_up").spawn(move |_| async move {
            if let Some(block) = marshal.get_block(last).await {
                // The block is already stored elsewhere.
                let _ = marshal.verified(Round::new(epoch, View::zero()), block).await;
            }
        });
    }

    /// Resolves with the last block of `epoch` once it is stored. Removes the journal of the
    /// previous epoch in the middle of this one, because the disk is busy at its beginning.
    async fn over<S: Sender<PublicKey = PublicKey>>(
        &mut self,
        context: &E,
        epoch: Epoch,
        next: &mut Subchannels<S>,
        strays: &mut mpsc::Receiver<(u64, Message<PublicKey>)>,
        ahead: &mut Option<Ahead>,
    ) -> Result<Digest, &'static str> {
        let first = self.epocher.first(epoch).ok_or("epochs")?;
        let last = self.epocher.last(epoch).ok_or("epochs")?;
        if let Some(ahead) = ahead.as_ref().filter(|ahead| ahead.epoch > epoch.get()) {
            self.marshal.hint_finalized(last, NonEmptyVec::new(ahead.peer.clone()));
        }
        let mut stored = self.stored.clone();
        let middle = first.get().midpoint(last.get());
        let journal = epoch.previous().map(|before| Self::journal(&self.name, before));
        let reached = async move {
            stored.wait_for(|(stored, _)| *stored >= middle).await.ok()?;
            if let Some(journal) = journal {
                // An error means that it has been removed already.
                let _ = context.remove(&journal, None).await;
            }
            Some(stored.wait_for(|(stored, _)| *stored >= last.get()).await.ok()?.1)
        };
        let mut reached = std::pin::pin!(reached);
        loop {
            let (theirs, peer) = select! {
                reached = &mut reached => return reached.ok_or("ledger"),
                early = next.votes.1.listen() => {
                    (epoch.get() + 1, early.map_err(|_| "votes channel")?)
                },
                stray = strays.recv() => {
                    let (theirs, (peer, _)) = stray.ok_or("votes channel")?;
                    (theirs, peer)
                },
            };
            let now = context.current();
            let asked = ahead.as_ref().map(|ahead| ahead.asked);
            let again = asked.is_none_or(|asked| {
                now.duration_since(asked).is_ok_and(|passed| passed >= ASK_AGAIN)
            });
            if theirs > epoch.get() && again {
                self.marshal.hint_finalized(last, NonEmptyVec::new(peer.clone()));
                *ahead = Some(Ahead { epoch: theirs, peer, asked: now });
            }
        }
    }

    fn engine(
        &self,
        context: &E,
        epoch: Epoch,
        scheme: &Scheme,
        floor: Floor<Scheme, Digest>,
    ) -> Simplex<E, B> {
        let Timing { leader_timeout, certification_timeout, timeout_retry, .. } = self.timing;
        Engine::new(
            context.child("simplex").with_attribute("epoch", epoch),
            simplex::Config {
                scheme: scheme.clone(),
                elector: RoundRobin::<Sha256>::default(),
                blocker: self.blocker.clone(),
                automaton: self.automaton.clone(),
                relay: self.automaton.clone(),
                reporter: Reporters::from((self.held.clone(), self.automaton.clone())),
                track_historical_votes: false,
                strategy: Sequential,
                partition: Self::journal(&self.name, epoch),
                mailbox_size: MAILBOX,
                epoch,
                floor,
                replay_buffer: BUFFER,
                write_buffer: BUFFER,
                page_cache: self.page_cache.clone(),
                leader_timeout,
                certification_timeout,
                timeout_retry,
                view_retention: VIEWS_KEPT,
                skip: SkipPolicy::Enabled {
                    timeout: self.timing.skip_timeout,
                    budget: SkipBudget::Participants,
                },
                fetch_timeout: NZDuration!(self.timing.fetch_timeout),
                fetch_retry_delay: Duration::from_millis(50),
                forward: ForwardPolicy::SilentVoters,
            },
        )
    }
}

pub(super) struct ConsensusChannels<S, R> {
    pub(super) votes: (S, R),
    pub(super) certificates: (S, R),
    pub(super) resolver: (S, R),
    pub(super) start_barrier: (S, R),
}

/// The Simplex instance of one epoch, before it is started.
type Simplex<E, B> = Engine<
    E,
    Scheme,
    RoundRobin<Sha256>,
    B,
    Digest,
    Automaton<E>,
    Automaton<E>,
    Reporters<Held, Automaton<E>>,
    Sequential,
>;

struct Aborting(Handle<()>);

impl Drop for Aborting {
    fn drop(&mut self) {
        self.0.abort();
    }
}
