//! Validators and runners together: the validators' cluster, and runners that are connected to it
//! over simulated streams and execute pretended work.

use crate::cluster::{Cluster, ClusterError, Setup};
use commonware_macros::select;
use commonware_p2p::simulated;
use commonware_runtime::{Supervisor as _, deterministic::Context};
use commonware_utils::sync::Mutex;
use cowboy_devnet::{
    chain::ledger::follow,
    consensus::presence::RunnerView,
    runner::{self, Pledges, Runner, Targets, ValidatorAddress, Worker, worker::Pretended},
    sample::{key, validator_name},
    transport::simulated::{Fabric, SimulatedLink},
    validator::{
        gateway::{self, Gateway, Submission},
        limiter::BucketLimits,
        node, service,
    },
};
use cowboy_engine::{
    actor::Budget,
    chain::{Endowment, Payload, State, Transaction},
    job::spec::JobSpec,
    primitives::{Hash, PublicKey, SecretKey, Wei},
    registry::JobKind,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};
use tokio::sync::mpsc;

/// The block time of a simulated devnet, and the duration of a pretended job.
pub const BLOCK_TIME: Duration = Duration::from_millis(250);

/// A runner's link to a validator: 20 to 80 ms and 2 % loss.
pub const RUNNER_LINK: SimulatedLink = SimulatedLink {
    latency: Duration::from_millis(20),
    jitter: Duration::from_millis(60),
    loss: 0.02,
};

/// The same link between validators, whose simulator draws around a mean.
fn validator_link() -> simulated::Link {
    simulated::Link {
        latency: Duration::from_millis(50),
        jitter: Duration::from_millis(15),
        success_rate: commonware_utils::probability!(0.98),
    }
}

/// The configuration of a simulated devnet.
pub struct Plan {
    /// Its validators. The devnet supplies their views and gateways.
    pub setup: Setup,
    /// The block time, and the duration of a pretended job.
    pub pace: Duration,
    pub runner_link: SimulatedLink,
    /// Makes the view behind a validator's votes from its index and its gateway.
    pub vote: Box<dyn Fn(usize, Gateway) -> Arc<dyn RunnerView> + Send>,
}

impl Plan {
    /// Honest validators on lossy links, with money for fees, and `runners` registered runners.
    pub fn new(validators: usize, runners: usize) -> Self {
        let mut setup = Setup::new(validators, runners, BLOCK_TIME);
        setup.link = validator_link();
        let payers = (0..validators).map(|i| key(&validator_name(i)).address());
        let endow = |account| Endowment { account, balance: Wei::cby(1_000) };
        setup.genesis.endowments.extend(payers.map(endow));
        Self {
            setup,
            pace: BLOCK_TIME,
            runner_link: RUNNER_LINK,
            vote: Box::new(|_, gateway| Arc::new(gateway)),
        }
    }
}

/// A devnet in the simulator.
pub struct Devnet {
    pub cluster: Cluster,
    /// The gateway of each validator that has started.
    pub gateways: Arc<Mutex<BTreeMap<usize, Gateway>>>,
    /// The network between runners and validators.
    pub fabric: Fabric<Context>,
    pub runners: BTreeMap<usize, Runner>,
    context: Context,
    commitments: Option<PathBuf>,
    targets: Targets,
    pace: Duration,
}

impl Devnet {
    /// Starts validators and runners on lossy links.
    ///
    /// # Panics
    ///
    /// If the simulated network rejects this first devnet.
    pub async fn new(
        context: Context,
        validators: usize,
        runners: usize,
    ) -> Result<Self, ClusterError> {
        let mut devnet = Self::launch(context, Plan::new(validators, runners)).await?;
        for runner in 0..runners {
            devnet.start_runner(runner);
        }
        Ok(devnet)
    }

    /// Starts the validators of `plan`, but no runners yet.
    ///
    /// # Panics
    ///
    /// If the simulated network rejects this first devnet.
    pub async fn launch(context: Context, plan: Plan) -> Result<Self, ClusterError> {
        let Plan { mut setup, pace, runner_link, vote } = plan;
        let fabric = Fabric::new(context.child("fabric"), runner_link);
        let gateways: Arc<Mutex<BTreeMap<usize, Gateway>>> = Arc::default();
        let waiting: Arc<Mutex<BTreeMap<usize, mpsc::Receiver<Submission>>>> = Arc::default();
        let (made, results) = (gateways.clone(), waiting.clone());
        let state = setup.genesis.state().expect("a simulation's genesis starts a chain");
        let address = |index| {
            let key = validator_key(index);
            let address = SocketAddr::new(Fabric::<Context>::address(&key), 0);
            ValidatorAddress { key, address }
        };
        let targets = Targets::new(state.clone());
        let count = setup.genesis.validators.len() + setup.followers;
        targets.listening((0..count).map(address).collect());
        setup.view = Box::new(move |index| {
            let key = key(&validator_name(index));
            let config = gateway::GatewayConfig {
                key,
                limits: BucketLimits::default(),
                state: state.clone(),
            };
            let (gateway, received) = Gateway::new(config);
            results.lock().insert(index, received);
            made.lock().insert(index, gateway.clone());
            vote(index, gateway)
        });
        let (made, listening, following) = (gateways.clone(), fabric.clone(), targets.clone());
        setup.gateway = Box::new(move |index| {
            let key = key(&validator_name(index));
            let listener = listening.listen(key.public_key()).expect("one listener a validator");
            let results = waiting.lock().remove(&index).expect("the view is made first");
            let gateway = made.lock()[&index].clone();
            let serving = service::serve(gateway, results, key, listener, pace);
            Some(followed(serving, following.clone()))
        });
        let mut cluster = Cluster::new(context.child("cluster"), setup).await?;
        cluster.start_all()?;
        let runners = BTreeMap::new();
        Ok(Self { cluster, gateways, fabric, runners, context, commitments: None, targets, pace })
    }

    /// Its jobs take one block time.
    pub fn start_runner(&mut self, index: usize) {
        let worker = Pretended { clock: self.context.child("worker"), delay: self.pace };
        self.start_runner_with(index, worker);
    }

    /// Makes runners that start from now on keep their commitments below `folder`.
    pub fn keep_commitments(&mut self, folder: PathBuf) {
        self.commitments = Some(folder);
    }

    /// Starts a runner by index with a worker of its own.
    ///
    /// # Panics
    ///
    /// If the folder for its commitments cannot be created.
    pub fn start_runner_with(&mut self, index: usize, worker: impl Worker) {
        let key = runner_key(index);
        let pledges = self.commitments.as_ref().map(|folder| {
            let folder = folder.join(index.to_string());
            Arc::new(Pledges::open(folder, Hash::ZERO).expect("a folder for commitments"))
        });
        let config = runner::RunnerConfig {
            chain_id: self.cluster.genesis().chain_id(),
            known: self.targets.of(&key.public_key()),
            agents: BTreeSet::new(),
            by_hand: false,
            kinds: [JobKind::Custom].into(),
            withdrawn: [].into(),
            max_concurrent_jobs: 4,
            polling: None,
            pledges,
            key,
        };
        let dialer = self.fabric.dialer(config.key.public_key());
        let runner = runner::start(self.context.child("runner"), config, dialer, worker);
        self.runners.insert(index, runner);
    }

    /// Aborts a runner, like a crash.
    pub async fn kill_runner(&mut self, index: usize) {
        if let Some(runner) = self.runners.remove(&index) {
            runner.kill().await;
        }
    }

    /// Cuts a runner off from a validator, both ways.
    pub fn cut_runner(&self, runner: usize, validator: usize) {
        self.fabric.cut(&runner_key(runner).public_key(), &validator_key(validator));
    }

    pub fn relink_runner(&self, runner: usize, validator: usize, link: SimulatedLink) {
        self.fabric.set_link(&runner_key(runner).public_key(), &validator_key(validator), link);
    }

    pub fn restore_runner(&self, runner: usize, validator: usize) {
        self.fabric.restore(&runner_key(runner).public_key(), &validator_key(validator));
    }

    /// The newest state of a running validator; `None` if it is stopped.
    pub fn state(&self, index: usize) -> Option<State> {
        Some(self.cluster.validator(index)?.services().ledger.head())
    }

    /// Submits `account-{from}`'s next transaction to the first running validator. Returns the
    /// transaction's nonce; `None` if the mempool refuses it or no validator runs.
    pub fn send(&self, from: usize, payload: Payload) -> Option<u64> {
        self.send_buying(from, payload, None)
    }

    /// The same with an explicit budget, for work that needs more than the payload itself.
    pub fn send_buying(
        &self,
        from: usize,
        payload: Payload,
        budget: Option<Budget>,
    ) -> Option<u64> {
        let services = self.cluster.running().next()?.services();
        let state = services.ledger.head();
        let sender = key(&format!("account-{from}"));
        let next = state.account(&sender.address()).nonce;
        let nonce = services.mempool.with(|pool| pool.next_nonce(&sender.address(), next));
        let (cycle, cell) = (state.basefee_cycle(), state.basefee_cell());
        let transaction = Transaction::with_limits(state.chain_id(), nonce, cycle, cell, payload);
        let transaction = match budget {
            Some(budget) => transaction.buying(budget),
            None => transaction,
        };
        services.submit(transaction.sign(&sender)).ok().map(|_| nonce)
    }

    pub fn submit(&self, from: usize, spec: JobSpec) -> Option<Hash> {
        let spec = Arc::new(spec);
        let nonce = self.send(from, Payload::SubmitJob(spec.clone()))?;
        Some(spec.job_id(&key(&format!("account-{from}")).address(), nonce))
    }
}

/// The secp256k1 key of `runner-{index}`.
pub fn runner_key(index: usize) -> SecretKey {
    key(&format!("runner-{index}"))
}

/// The runner-facing key of `validator-{index}`.
pub fn validator_key(index: usize) -> PublicKey {
    key(&validator_name(index)).public_key()
}

/// Extends `serving` so that the runners' targets follow the blocks that its validator executes.
fn followed(
    serving: node::RunnerService<Context>,
    targets: Targets,
) -> node::RunnerService<Context> {
    Box::new(move |context, services| {
        let blocks = services.ledger.subscribe();
        targets.advance(&services.ledger.head());
        Box::pin(async move {
            select! {
                () = serving(context, services) => {},
                () = follow(blocks, |block| targets.advance(&block.execution.state)) => {},
            }
        })
    })
}
