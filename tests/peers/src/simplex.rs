//! `simplex`: empty blocks of our validators, and of Simplex alone with the same network, journal
//! and timeouts.
//!
//! Alone means: a proposal is a digest and no block, every proposal is valid, votes are those of
//! the library's own scheme, nothing is executed, and nothing is stored but the journal. With a
//! block time, a proposal waits as ours do.

use crate::{
    VALIDATORS,
    chain::{Run, Transfers, real_time},
    figures::Figures,
    process::processor_time,
};
use ::tokio::{sync::watch, time::timeout};
use commonware_actor::Feedback;
use commonware_consensus::{
    Automaton, CertifiableAutomaton, Relay, Reporter,
    simplex::{
        self, Engine, Floor, ForwardPolicy, Plan, SkipBudget, SkipPolicy,
        elector::RoundRobin,
        scheme::ed25519::Scheme,
        types::{Activity, Context},
    },
    types::{Epoch, ViewDelta},
};
use commonware_cryptography::{
    Sha256, Signer as _,
    ed25519::{PrivateKey, PublicKey},
    sha256::Digest,
};
use commonware_parallel::Sequential;
use commonware_runtime::{
    Handle, Runner as _, Supervisor as _,
    buffer::paged::{CacheRef, page_size},
    tokio,
};
use commonware_utils::{
    NZDuration, NZUsize,
    channel::{fallible::OneshotExt as _, oneshot},
    ordered::Set,
};
use cowboy_devnet::{
    consensus::{
        PROTOCOL,
        channels::{Endpoint, quota},
        network::{Network as _, NetworkError, Peer, Tcp},
        timing::Timing,
    },
    orchestrator::ports::{PortError, Ports},
    sample::{validator_keys, validator_name},
};
use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// A network of its own, apart from any devnet's.
const CHAIN_ID: u64 = 0;
const NAMESPACE: &[u8] = b"cowboy-peers";
/// Limit for all blocks of a run: far more than the slowest machine needs.
const PATIENCE: Duration = Duration::from_secs(600);

/// Why there are no figures of Simplex alone.
#[derive(Debug, thiserror::Error)]
pub enum SimplexError {
    #[error("no folder for the journals in $TMPDIR: {0}")]
    Folder(#[from] io::Error),
    #[error("no ports for the validators: {0}")]
    Ports(#[from] PortError),
    #[error("no network between the validators: {0}")]
    Network(#[from] NetworkError),
    #[error("two validators have the same key, or validator {0} has none")]
    Committee(usize),
    #[error("block {wanted} did not come within {PATIENCE:?}; block {reached} did")]
    Stuck { wanted: u64, reached: u64 },
}

/// Prints blocks per second of both, with four validators and with one.
pub fn compare(blocks: u64, rounds: u64) -> Result<(), SimplexError> {
    for validators in [VALIDATORS, 1] {
        let (mut alone, mut ours) = (Figures::default(), Figures::default());
        let (mut ratios, mut work) = (Figures::default(), Figures::default());
        for round in 0..rounds {
            let per_second = |run: &Run| run.blocks as f64 / run.took.as_secs_f64();
            let devnet = || real_time(validators, Transfers::NONE, blocks, |_| {});
            // Which is first changes, because what one writes may keep the disk busy for the other.
            let (bare, devnet) = if round % 2 == 0 {
                let bare = bare(validators, blocks)?;
                (bare, devnet())
            } else {
                let devnet = devnet();
                (bare(validators, blocks)?, devnet)
            };
            alone.push(per_second(&bare));
            ours.push(per_second(&devnet));
            ratios.push(per_second(&devnet) / per_second(&bare));
            work.push(bare.processor.as_secs_f64() / devnet.processor.as_secs_f64());
        }
        println!("{validators} validators, {blocks} empty blocks, {rounds} rounds, blocks/s:");
        println!("  Simplex alone       {}", alone.range(1));
        println!("  devnet              {}", ours.range(1));
        println!("  devnet to Simplex   {}", ratios.range(2));
        println!("  of its processor time, Simplex alone takes {}", work.range(2));
    }
    Ok(())
}

/// The run from the first block on in which `validators` validators finalize `blocks` more.
fn bare(validators: usize, blocks: u64) -> Result<Run, SimplexError> {
    alone(validators, Duration::ZERO, 1, blocks)
}

/// The run from block `first` on in which `validators` validators finalize `blocks` more.
pub fn alone(
    validators: usize,
    block_time: Duration,
    first: u64,
    blocks: u64,
) -> Result<Run, SimplexError> {
    let folder = tempfile::tempdir()?;
    // As `tests/validators/loopback.rs` does for our validators.
    let config = tokio::Config::new()
        .with_storage_directory(folder.path().join("consensus"))
        .with_worker_threads(2)
        .with_tcp_nodelay(Some(true));
    let names: Vec<String> = (0..validators).map(validator_name).collect();
    let ports = Ports::load_or_choose(&folder.path().join("ports"), &names, None, None)?;
    tokio::Runner::new(config).start(async |context| {
        let keys = (0..validators).map(|index| validator_keys(index).consensus);
        let known: Vec<(PublicKey, u16)> =
            keys.zip(&names).map(|(key, name)| (key.public_key(), ports.p2p[name])).collect();
        let (newest, mut height) = watch::channel(0);
        let mut running = Vec::new();
        for index in 0..validators {
            // Only the first validator's blocks are counted, as with ours.
            let reports = if index == 0 { newest.clone() } else { watch::channel(0).0 };
            let timing = Timing::new(block_time);
            running.push(start(&context, index, known.clone(), timing, reports).await?);
        }
        reach(&mut height, first).await?;
        let (begun, start, spent) = (*height.borrow(), Instant::now(), processor_time());
        reach(&mut height, begun + blocks).await?;
        let (took, processor) = (start.elapsed(), processor_time().saturating_sub(spent));
        running.iter().for_each(Handle::abort);
        Ok(Run { blocks, took, processor, done: 0 })
    })
}

async fn reach(height: &mut watch::Receiver<u64>, wanted: u64) -> Result<(), SimplexError> {
    let reached = timeout(PATIENCE, height.wait_for(|height| *height >= wanted)).await;
    if reached.is_ok_and(|reached| reached.is_ok()) {
        return Ok(());
    }
    Err(SimplexError::Stuck { wanted, reached: *height.borrow() })
}

/// Starts a validator with the settings of `cowboy_devnet::consensus::{engine, epochs}`.
async fn start(
    context: &tokio::Context,
    index: usize,
    known: Vec<(PublicKey, u16)>,
    timing: Timing,
    height: watch::Sender<u64>,
) -> Result<Handle<()>, SimplexError> {
    let key: PrivateKey = validator_keys(index).consensus;
    let context = context.child("validator").with_attribute("index", index);
    let committee: Vec<PublicKey> = known.iter().map(|(key, _)| key.clone()).collect();
    let committee: Set<PublicKey> =
        committee.try_into().map_err(|_| SimplexError::Committee(index))?;
    let scheme = Scheme::signer(NAMESPACE, committee, key.clone());
    let scheme = scheme.ok_or(SimplexError::Committee(index))?;
    let local = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let peer =
        |(key, port): &(PublicKey, u16)| Peer { key: key.clone(), address: Some(local(*port)) };
    let peers = known.iter().map(peer);
    let (listen, peers) = (local(known[index].1), watch::channel(peers.collect()).1);
    let network = Tcp { key, chain_id: CHAIN_ID, protocol: PROTOCOL, listen, peers };
    let Endpoint { channels, blocker, .. } =
        network.connect(context.child("network"), quota()).await?;
    let digests = Digests { block_time: timing.pace.block_time };
    let config = simplex::Config {
        scheme,
        elector: RoundRobin::<Sha256>::default(),
        blocker,
        automaton: digests.clone(),
        relay: digests,
        reporter: Finalized(Arc::new(height)),
        track_historical_votes: false,
        strategy: Sequential,
        partition: validator_name(index),
        mailbox_size: NZUsize!(1024),
        epoch: Epoch::zero(),
        floor: Floor::Genesis(Digest([0; 32])),
        replay_buffer: NZUsize!(1 << 16),
        write_buffer: NZUsize!(1 << 16),
        page_cache: CacheRef::new(page_size(4096), NZUsize!(256)),
        leader_timeout: timing.leader_timeout,
        certification_timeout: timing.certification_timeout,
        timeout_retry: timing.timeout_retry,
        view_retention: ViewDelta::new(20),
        skip: SkipPolicy::Enabled {
            timeout: timing.skip_timeout,
            budget: SkipBudget::Participants,
        },
        fetch_timeout: NZDuration!(timing.fetch_timeout),
        fetch_retry_delay: Duration::from_millis(50),
        forward: ForwardPolicy::SilentVoters,
    };
    let engine = Engine::new(context.child("simplex"), config);
    Ok(engine.start(channels.votes, channels.certificates, channels.resolver))
}

/// Proposes digests and accepts all. A digest begins with its height, its view, and the time of its
/// proposal in Unix ms.
#[derive(Clone)]
struct Digests {
    block_time: Duration,
}

/// The number at this place of a digest.
fn number(digest: &Digest, place: usize) -> u64 {
    digest.0[8 * place..].first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

fn height(digest: &Digest) -> u64 {
    number(digest, 0)
}

fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

impl Automaton for Digests {
    type Context = Context<Digest, PublicKey>;
    type Digest = Digest;

    async fn propose(&mut self, context: Self::Context) -> oneshot::Receiver<Digest> {
        let parent = context.parent.1;
        let (height, view) = (height(&parent) + 1, context.round.view().get());
        let due = Duration::from_millis(number(&parent, 2)) + self.block_time;
        let propose = move || {
            let mut digest = Digest([0; 32]);
            let now = since_epoch().as_millis() as u64;
            for (place, number) in [height, view, now].into_iter().enumerate() {
                digest.0[8 * place..][..8].copy_from_slice(&number.to_be_bytes());
            }
            digest
        };
        let wait = due.saturating_sub(since_epoch()).min(self.block_time);
        if wait.is_zero() {
            return answered(propose());
        }
        let (sender, receiver) = oneshot::channel();
        ::tokio::spawn(async move {
            ::tokio::time::sleep(wait).await;
            sender.send_lossy(propose());
        });
        receiver
    }

    async fn verify(&mut self, _: Self::Context, _: Digest) -> oneshot::Receiver<bool> {
        answered(true)
    }
}

fn answered<T>(answer: T) -> oneshot::Receiver<T> {
    let (sender, receiver) = oneshot::channel();
    sender.send_lossy(answer);
    receiver
}

impl CertifiableAutomaton for Digests {}

impl Relay for Digests {
    type Digest = Digest;
    type PublicKey = PublicKey;
    type Plan = Plan<PublicKey>;

    fn broadcast(&mut self, _: Digest, _: Self::Plan) -> Feedback {
        Feedback::Ok
    }
}

/// Tells the height of the newest final digest.
#[derive(Clone)]
struct Finalized(Arc<watch::Sender<u64>>);

impl Reporter for Finalized {
    type Activity = Activity<Scheme, Digest>;

    fn report(&mut self, activity: Self::Activity) -> Feedback {
        if let Activity::Finalization(finalization) = activity {
            let height = height(&finalization.proposal.payload);
            self.0.send_if_modified(|newest| {
                let newer = height > *newest;
                *newest = height.max(*newest);
                newer
            });
        }
        Feedback::Ok
    }
}
