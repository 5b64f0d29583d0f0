//! Validators and runners together: the validators' cluster, and runners connected to it over
//! simulated streams, executing pretended work.

use super::cluster::{Cluster, ClusterError, Setup, key, validator_name};
use crate::{
    consensus::presence::RunnerView,
    runner::{self, Runner, ValidatorAddress, worker::Pretended},
    transport::simulated::{Fabric, Link},
    validator::{
        gateway::{self, Gateway},
        limiter::Limits,
        service,
    },
};
use commonware_p2p::simulated;
use commonware_runtime::{Supervisor as _, deterministic::Context};
use commonware_utils::sync::Mutex;
use cowboy_engine::{
    chain::{Endowment, Payload, State, Transaction, transaction::SubmitResult},
    job::spec::{Bounds, CommandWork, JobSpec, Verification, VerificationMode, Work},
    primitives::{Hash, PublicKey, Wei},
    registry::JobKind,
};
use std::{collections::BTreeMap, net::SocketAddr, sync::Arc, time::Duration};
use tokio::sync::mpsc;

/// The pace of a simulated devnet's blocks, and how long a pretended job takes.
pub const BLOCK_TIME: Duration = Duration::from_millis(250);

/// 20 to 80 ms and 2 % loss: a runner's link to a validator.
const RUNNER_LINK: Link =
    Link { latency: Duration::from_millis(20), jitter: Duration::from_millis(60), loss: 0.02 };

/// The same between validators, whose simulator draws around a mean.
fn validator_link() -> simulated::Link {
    simulated::Link {
        latency: Duration::from_millis(50),
        jitter: Duration::from_millis(15),
        success_rate: commonware_utils::probability!(0.98),
    }
}

/// A job that any runner of the simulation can do.
pub fn spec(timeout_blocks: u64) -> JobSpec {
    JobSpec {
        work: Work::Custom(CommandWork {
            program: "echo".into(),
            args: vec!["hi".into()],
            env: vec![],
            stdin: None,
        }),
        bounds: Bounds {
            max_return_bytes: 64,
            expected_execution_ms: 1_000,
            data_format: "bytes".into(),
            max_memory_mb: 64,
        },
        verification: Verification { mode: VerificationMode::None, runners: 1 },
        max_price: Wei::cby(10),
        tip: Wei::cby(1),
        timeout_blocks,
        callback: None,
        required_runner_pool: None,
        tee_required: false,
    }
}

/// A devnet in the simulator.
pub struct Devnet {
    /// Its validators.
    pub cluster: Cluster,
    /// What serves runners at each validator that has started.
    pub gateways: Arc<Mutex<BTreeMap<usize, Gateway>>>,
    /// Its runners.
    pub runners: Vec<Runner>,
}

impl Devnet {
    /// Starts validators and runners on lossy links.
    ///
    /// # Panics
    ///
    /// Where the simulated network refuses what no other devnet in it has asked for.
    pub async fn new(
        context: Context,
        validators: usize,
        runners: usize,
    ) -> Result<Self, ClusterError> {
        let mut setup = Setup::new(validators, runners, BLOCK_TIME);
        setup.link = validator_link();
        let payers = (0..validators).map(|i| key(&validator_name(i)).address());
        let endow = |account| Endowment { account, balance: Wei::cby(1_000) };
        setup.genesis.endowments.extend(payers.map(endow));
        let genesis = setup.genesis.clone();
        let fabric = Fabric::new(context.child("fabric"), RUNNER_LINK);
        let gateways: Arc<Mutex<BTreeMap<usize, Gateway>>> = Arc::default();
        let waiting: Arc<Mutex<BTreeMap<usize, mpsc::Receiver<SubmitResult>>>> = Arc::default();
        let (made, results) = (gateways.clone(), waiting.clone());
        let state = genesis.state().expect("a simulation's genesis starts a chain");
        setup.view = Box::new(move |index| -> Arc<dyn RunnerView> {
            let key = key(&validator_name(index));
            let config = gateway::Config { key, limits: Limits::default(), state: state.clone() };
            let (gateway, received) = Gateway::new(config);
            results.lock().insert(index, received);
            made.lock().insert(index, gateway.clone());
            Arc::new(gateway)
        });
        let (made, listening) = (gateways.clone(), fabric.clone());
        setup.gateway = Box::new(move |index| {
            let key = key(&validator_name(index));
            let listener = listening.listen(key.public_key()).expect("one listener a validator");
            let results = waiting.lock().remove(&index).expect("the view is made first");
            let gateway = made.lock()[&index].clone();
            Some(service::serve(gateway, results, key, listener, BLOCK_TIME))
        });
        let mut cluster = Cluster::new(context.child("cluster"), setup).await?;
        cluster.start_all()?;
        let address = |key: PublicKey| {
            let address = SocketAddr::new(Fabric::<Context>::address(&key), 0);
            ValidatorAddress { key, address }
        };
        let validators: Vec<_> =
            genesis.validators.iter().map(|v| address(v.pubkey.clone())).collect();
        let runners = (0..runners)
            .map(|index| {
                let key = key(&format!("runner-{index}"));
                let dialer = fabric.dialer(key.public_key());
                let config = runner::Config {
                    chain_id: genesis.chain_id(),
                    targets: runner::targets(&key.public_key(), &validators),
                    key,
                    kinds: [JobKind::Custom].into(),
                    max_concurrent_jobs: 4,
                    polling: None,
                };
                let worker = Pretended { clock: context.child("worker"), delay: BLOCK_TIME };
                runner::start(context.child("runner"), config, dialer, worker)
            })
            .collect();
        Ok(Self { cluster, gateways, runners })
    }

    /// The newest state of a running validator; `None` where it is stopped.
    pub fn state(&self, index: usize) -> Option<State> {
        Some(self.cluster.validator(index)?.services().ledger.head())
    }

    /// Hands `account-{from}`'s next transaction to the first running validator. Returns the
    /// nonce it has; `None` where the mempool refuses or no validator runs.
    pub fn send(&self, from: usize, payload: Payload) -> Option<u64> {
        let services = self.cluster.running().next()?.services();
        let state = services.ledger.head();
        let sender = key(&format!("account-{from}"));
        let next = state.account(&sender.address()).nonce;
        let nonce = services.mempool.with(|pool| pool.next_nonce(&sender.address(), next));
        let (cycle, cell) = (state.basefee_cycle(), state.basefee_cell());
        let transaction =
            Transaction::with_limits(state.chain_id(), nonce, cycle, cell, payload).sign(&sender);
        services.submit(transaction).ok().map(|_| nonce)
    }

    /// Submits a job of `account-{from}`'s, and says its id.
    pub fn submit(&self, from: usize, spec: JobSpec) -> Option<Hash> {
        let spec = Arc::new(spec);
        let nonce = self.send(from, Payload::SubmitJob(spec.clone()))?;
        Some(spec.job_id(&key(&format!("account-{from}")).address(), nonce))
    }
}
