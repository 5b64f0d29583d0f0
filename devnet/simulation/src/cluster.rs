//! Validators over simulated links, started and stopped at will.

use commonware_cryptography::{Signer as _, ed25519::PublicKey};
use commonware_p2p::simulated;
use commonware_runtime::{Clock as _, Quota, Supervisor as _, deterministic::Context};
use commonware_utils::NZUsize;
use cowboy_devnet::{
    chain::{
        known::Known,
        ledger::{Ledger, LedgerError},
    },
    consensus::{
        channels::{CHANNELS, Channels, Endpoint, max_message_size},
        hurry::Hurry,
        network::{EndpointOf, Network, NetworkError},
        presence::RunnerView,
        timing::{FastForward, Timing},
    },
    sample::{self, validator_keys, validator_name},
    storage::{StorageError, ValidatorStore},
    validator::{
        ValidatorConfig, ValidatorHandle,
        node::{RunnerService, StartError},
        start_validator,
    },
};
use cowboy_engine::{
    chain::{Genesis, State, block::MAX_OPEN},
    presence::Bitmap,
    primitives::{Hash, Height, codec::to_vec, keccak256},
    registry::Order,
};
use std::{num::NonZeroUsize, sync::Arc, time::Duration};

const POLL: Duration = Duration::from_millis(5);

/// The configuration of a simulation.
pub struct Setup {
    pub genesis: Genesis,
    pub timing: Timing,
    /// Number of validators beyond those of the genesis document: they follow the chain, and vote
    /// when they are added to the committee.
    pub followers: usize,
    pub link: simulated::Link,
    /// Makes the view of the runners for a validator, by index.
    pub view: Box<dyn Fn(usize) -> Arc<dyn RunnerView> + Send>,
    /// Makes the runner service of a validator, by index, each time it starts.
    pub gateway: Box<dyn Fn(usize) -> Option<RunnerService<Context>> + Send>,
}

impl Setup {
    /// `validators` validators, `runners` registered runners that all validators see, and accounts
    /// `account-0` to `account-3` with a million CBY each, on links of 5 ± 1 ms without loss.
    pub fn new(validators: usize, runners: usize, block_time: Duration) -> Self {
        Self {
            genesis: sample::genesis(validators, runners),
            timing: Timing::new(block_time),
            followers: 0,
            link: simulated::Link {
                latency: Duration::from_millis(5),
                jitter: Duration::from_millis(1),
                success_rate: commonware_utils::probability!(1.0),
            },
            view: Box::new(|_| Arc::new(Everybody)),
            gateway: Box::new(|_| None),
        }
    }
}

struct Everybody;

impl RunnerView for Everybody {
    fn presence(&self, _: Height, _: &State, order: &Order) -> Bitmap {
        Bitmap::from_fn(order.len(), |_| true)
    }
}

/// Why a cluster cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error("the simulated network refuses: {0}")]
    Network(#[from] simulated::Error),
}

/// A simulated devnet.
pub struct Cluster {
    context: Context,
    setup: Setup,
    genesis: Arc<Genesis>,
    oracle: simulated::Oracle<PublicKey, Context>,
    validators: Vec<Slot>,
}

struct Slot {
    name: String,
    key: commonware_cryptography::ed25519::PrivateKey,
    /// The contents of its disk, which remain when it is stopped.
    store: Arc<ValidatorStore>,
    running: Option<ValidatorHandle>,
}

impl Cluster {
    /// Connects the validators of `setup` without starting any.
    pub async fn new(context: Context, setup: Setup) -> Result<Self, ClusterError> {
        let genesis = Arc::new(setup.genesis.clone());
        let chain_id = genesis.chain_id();
        let slot = |index| -> Result<Slot, ClusterError> {
            let store = Arc::new(ValidatorStore::in_memory(chain_id)?);
            let key = validator_keys(index).consensus;
            Ok(Slot { key, name: validator_name(index), store, running: None })
        };
        let count = genesis.validators.len() + setup.followers;
        let validators = (0..count).map(slot).collect::<Result<Vec<_>, _>>()?;
        let config = simulated::Config {
            max_size: max_message_size(),
            max_peers_per_set: NonZeroUsize::new(count).unwrap_or(NZUsize!(1)),
            disconnect_on_block: true,
            tracked_peer_sets: NZUsize!(2),
        };
        let peers: Vec<_> = validators.iter().map(|slot| slot.key.public_key()).collect();
        let (network, oracle) =
            simulated::Network::new_with_peers(context.child("network"), config, peers).await;
        network.start();
        let cluster = Self { context, setup, genesis, oracle, validators };
        for from in 0..count {
            for to in 0..count {
                cluster.link(from, to).await?;
            }
        }
        Ok(cluster)
    }

    pub const fn context(&self) -> &Context {
        &self.context
    }

    pub fn genesis(&self) -> &Genesis {
        &self.genesis
    }

    pub async fn link(&self, from: usize, to: usize) -> Result<(), ClusterError> {
        if from == to {
            return Ok(());
        }
        let link = self.setup.link.clone();
        Ok(self.oracle.add_link(self.peer(from), self.peer(to), link).await?)
    }

    /// Replaces the link from `from` to `to`; messages in flight arrive or are lost.
    pub async fn relink(
        &self,
        from: usize,
        to: usize,
        link: simulated::Link,
    ) -> Result<(), ClusterError> {
        Ok(self.oracle.add_link(self.peer(from), self.peer(to), link).await?)
    }

    pub async fn cut(&self, from: usize, to: usize) -> Result<(), ClusterError> {
        Ok(self.oracle.remove_link(self.peer(from), self.peer(to)).await?)
    }

    /// Pairs of validators in which the first has cut off the second for breaking the protocol.
    pub async fn blocked(&self) -> Result<Vec<(PublicKey, PublicKey)>, ClusterError> {
        Ok(self.oracle.blocked().await?)
    }

    fn peer(&self, index: usize) -> PublicKey {
        self.validators[index].key.public_key()
    }

    pub fn start(&mut self, index: usize) -> Result<(), ClusterError> {
        let slot = &mut self.validators[index];
        let config = ValidatorConfig {
            name: slot.name.clone(),
            key: slot.key.clone(),
            genesis: self.genesis.clone(),
            timing: self.setup.timing,
            fast_forward: FastForward::default(),
            hurry: Hurry::default(),
            ledger: Ledger::open(&self.genesis, slot.store.clone())?,
            known: Known::default(),
            view: (self.setup.view)(index),
            gateway: (self.setup.gateway)(index),
        };
        let network = Simulated { oracle: self.oracle.clone(), me: slot.key.public_key() };
        slot.running = Some(start_validator(&self.context, config, network)?);
        Ok(())
    }

    pub fn start_all(&mut self) -> Result<(), ClusterError> {
        (0..self.validators.len()).try_for_each(|index| self.start(index))
    }

    /// Aborts a validator's tasks: a stop and a crash alike.
    pub async fn stop(&mut self, index: usize) {
        if let Some(running) = self.validators[index].running.take() {
            running.stop().await;
        }
    }

    /// Replaces a stopped validator's store by an empty one.
    pub fn lose_store(&mut self, index: usize) -> Result<(), ClusterError> {
        self.validators[index].store =
            Arc::new(ValidatorStore::in_memory(self.genesis.chain_id())?);
        Ok(())
    }

    pub fn validator(&self, index: usize) -> Option<&ValidatorHandle> {
        self.validators[index].running.as_ref()
    }

    /// A validator's store, whether the validator runs or not.
    pub fn store(&self, index: usize) -> &ValidatorStore {
        &self.validators[index].store
    }

    pub fn running(&self) -> impl Iterator<Item = &ValidatorHandle> {
        self.validators.iter().filter_map(|slot| slot.running.as_ref())
    }

    /// The lowest and the highest stored height of the running validators.
    pub fn heights(&self) -> (Height, Height) {
        let heights = || self.running().map(|validator| validator.services().ledger.stored());
        (heights().min().unwrap_or_default(), heights().max().unwrap_or_default())
    }

    /// Runs until every running validator has stored `height`; false if that takes longer than
    /// `limit` on the simulation's clock.
    pub async fn reach(&self, height: u64, limit: Duration) -> bool {
        let end = self.context.current() + limit;
        while self.heights().0.get() < height {
            if self.context.current() >= end {
                return false;
            }
            self.context.sleep(POLL).await;
        }
        true
    }

    pub async fn pass(&self, time: Duration) {
        self.context.sleep(time).await;
    }

    /// The first height at which two validators disagree on the block, its root, its receipts, its
    /// fires, its lane, its events or P.
    pub fn disagreement(&self) -> Result<Option<Height>, StorageError> {
        let mut longest: Vec<Hash> = Vec::new();
        for slot in &self.validators {
            let log = log(&slot.store)?;
            let differs = log.iter().zip(&longest).position(|(mine, theirs)| mine != theirs);
            if let Some(index) = differs {
                return Ok(Some(Height::new(index as u64 + 1)));
            }
            if log.len() > longest.len() {
                longest = log;
            }
        }
        Ok(None)
    }

    /// A hash over a validator's stored blocks, roots, receipts, fires, lanes, events and P.
    pub fn log_hash(&self, index: usize) -> Result<Hash, StorageError> {
        let log = log(&self.validators[index].store)?;
        let parts: Vec<&[u8]> = log.iter().map(|entry| entry.0.as_slice()).collect();
        Ok(keccak256(&parts))
    }

    /// The number of blocks from height 2 on that contain their parent's certificate, and the
    /// number of all blocks from there on.
    pub fn parents_certified(&self, index: usize) -> Result<(usize, usize), StorageError> {
        let store = &self.validators[index].store;
        let (mut certified, mut blocks) = (0, 0);
        // Block 1 is the child of genesis, which needs no certificate.
        let mut height = Height::new(2);
        while let Some(block) = store.block(height)? {
            let parent = block.header.parent;
            certified += usize::from(block.certificates.iter().any(|c| c.block == parent));
            blocks += 1;
            height = height.next();
        }
        Ok((certified, blocks))
    }
}

/// For each height from 1 on, a hash over block, root, receipts, fires, lane, events and P.
fn log(store: &ValidatorStore) -> Result<Vec<Hash>, StorageError> {
    let mut log = Vec::new();
    let mut height = Height::GENESIS.next();
    while let Some((block, (root, _))) = store.block(height)?.zip(store.executed(height)?) {
        let mut entry = [block.hash().0, root.0].concat();
        for receipt in store.receipts(height)? {
            entry.extend_from_slice(&to_vec(&receipt));
        }
        for fire in store.fires(height)? {
            entry.extend_from_slice(&to_vec(&fire));
        }
        for lane in store.lanes(height, height)? {
            entry.extend_from_slice(&to_vec(&lane.report));
        }
        for stored in store.events_at(height)? {
            entry.extend_from_slice(&to_vec(&stored.event));
        }
        // P of the ancestors that this block may certify: its parent and earlier open ones.
        let oldest = height.get().saturating_sub(1 + MAX_OPEN as u64);
        for ancestor in oldest..height.get() {
            let presence = store.presence(Height::new(ancestor))?;
            if let Some(presence) = presence.filter(|presence| presence.embedded_at == height) {
                entry.extend_from_slice(&presence.bitmap);
            }
        }
        log.push(keccak256(&[&entry]));
        height = height.next();
    }
    Ok(log)
}

struct Simulated {
    oracle: simulated::Oracle<PublicKey, Context>,
    me: PublicKey,
}

impl Network<Context> for Simulated {
    type Sender = simulated::Sender<PublicKey, Context>;
    type Receiver = simulated::Receiver<PublicKey>;
    type Blocker = simulated::Control<PublicKey, Context>;
    type Peers = simulated::Manager<PublicKey, Context>;

    async fn connect(
        self,
        _: Context,
        quota: Quota,
    ) -> Result<EndpointOf<Context, Self>, NetworkError> {
        let control = self.oracle.control(self.me);
        let mut ends = Vec::new();
        for channel in 0..CHANNELS {
            let registered = control.register(channel, quota).await;
            ends.push(registered.map_err(|error| NetworkError::Simulated(error.to_string()))?);
        }
        let mut ends = ends.into_iter();
        let channels = Channels::register(|_| ends.next().expect("one was made per channel"));
        Ok(Endpoint { channels, blocker: control, peers: self.oracle.manager() })
    }
}
