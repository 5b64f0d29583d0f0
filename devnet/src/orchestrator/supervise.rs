//! The nodes of a devnet: one task owns them all, starts and stops validators on request and
//! notices when one ends by itself.

use super::{
    home::DevnetHome,
    ports::{self, Ports, Transport},
    run::OrchestratorError,
};
use crate::{
    api::backend::{Backend, Link, Running, Switch, SwitchHook},
    chain::known::Known,
    client::Client,
    consensus::{engine::EngineError, network::Loopback, timing::Timing},
    executor::Executor,
    runner::{self, ValidatorAddress, heartbeat},
    storage::Store,
    topology::{Name, Plan},
    transport::{
        quic::{self, Listener},
        tls::Identity,
    },
    validator::{
        gateway::{self, Connected, Gateway},
        keys::ValidatorKeys,
        limiter::Limits,
        node::{ValidatorConfig, ValidatorHandle, start_validator},
        service,
    },
};
use ::tokio::sync::{mpsc, oneshot, watch};
use commonware_cryptography::Signer as _;
use commonware_runtime::{Handle, Spawner as _, Supervisor as _, tokio};
use cowboy_engine::chain::Genesis;
use futures::{
    FutureExt as _,
    future::{join_all, select_all},
};
use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

/// Requests that wait; each comes from an API request, whose number is limited there.
const REQUESTS: usize = 64;
/// How long a stopping devnet waits for its nodes.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a stopped validator's port is looked at; nothing tells when the system frees it.
const RELEASE_POLL: Duration = Duration::from_millis(10);

struct SwitchRequest {
    validator: String,
    to: Switch,
    reply: oneshot::Sender<Result<(), String>>,
}

/// How others reach the task that owns the nodes.
#[derive(Clone)]
pub(super) struct Supervisor {
    requests: mpsc::Sender<SwitchRequest>,
    shutdown: Arc<watch::Sender<bool>>,
}

/// The other end, before the task is started.
pub(super) struct Requests {
    requests: mpsc::Receiver<SwitchRequest>,
    shutdown: Arc<watch::Sender<bool>>,
}

/// What the nodes are started from.
pub(super) struct SupervisorConfig {
    pub(super) plan: Plan,
    pub(super) home: DevnetHome,
    pub(super) genesis: Arc<Genesis>,
    /// In the plan's order.
    pub(super) keys: Vec<ValidatorKeys>,
    pub(super) ports: Ports,
    pub(super) backend: Arc<Backend>,
    pub(super) rpc_url: String,
}

/// The running task.
pub(super) struct Supervised {
    shutdown: Arc<watch::Sender<bool>>,
    failures: mpsc::Receiver<OrchestratorError>,
    task: Handle<()>,
}

impl Supervisor {
    pub(super) fn channel() -> (Self, Requests) {
        let (sender, receiver) = mpsc::channel(REQUESTS);
        let shutdown = Arc::new(watch::Sender::new(false));
        let requests = Requests { requests: receiver, shutdown: shutdown.clone() };
        (Self { requests: sender, shutdown }, requests)
    }

    pub(super) fn switch_hook(&self) -> SwitchHook {
        let requests = self.requests.clone();
        Box::new(move |validator, to| {
            let (requests, validator) = (requests.clone(), validator.to_owned());
            Box::pin(async move {
                let (reply, answer) = oneshot::channel();
                let gone = |_| "the devnet is stopping".to_owned();
                let request = SwitchRequest { validator, to, reply };
                requests.send(request).await.map_err(|_| gone(()))?;
                answer.await.map_err(|_| gone(()))?
            })
        })
    }

    pub(super) fn shutdown_hook(&self) -> Box<dyn Fn() + Send + Sync> {
        let shutdown = self.shutdown.clone();
        Box::new(move || {
            shutdown.send_replace(true);
        })
    }
}

impl Requests {
    /// Starts every node and the task that owns them.
    pub(super) fn start(
        self,
        context: tokio::Context,
        config: SupervisorConfig,
    ) -> Result<Supervised, OrchestratorError> {
        let mut nodes = Nodes {
            known: Known::default(),
            validators: Vec::new(),
            runners: Vec::new(),
            context: context.child("nodes"),
            config,
        };
        for index in 0..nodes.config.plan.validators.len() {
            nodes.validators.push(None);
            nodes.start(index).map_err(|error| OrchestratorError::Node {
                node: nodes.name(index).to_string(),
                error,
            })?;
        }
        nodes.start_runners().map_err(|(node, error)| OrchestratorError::Node { node, error })?;
        let (failed, failures) = mpsc::channel(nodes.validators.len().max(1));
        let shutdown = self.shutdown.clone();
        let task = context
            .child("supervisor")
            .spawn(move |_| supervise(nodes, self.requests, self.shutdown, failed));
        Ok(Supervised { shutdown, failures, task })
    }
}

impl Supervised {
    /// Resolves when a node ends by itself.
    pub(super) async fn failure(&mut self) -> OrchestratorError {
        match self.failures.recv().await {
            Some(failure) => failure,
            None => std::future::pending().await,
        }
    }

    /// Resolves when somebody has asked for the end.
    pub(super) fn stopping(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut shutdown = self.shutdown.subscribe();
        async move {
            // The sender lives as long as the devnet.
            let _ = shutdown.wait_for(|stop| *stop).await;
        }
    }

    /// Stops every node and waits for them, for a bounded time.
    pub(super) async fn stop(self) {
        self.shutdown.send_replace(true);
        if ::tokio::time::timeout(STOP_TIMEOUT, self.task).await.is_err() {
            tracing::warn!("nodes did not stop within {STOP_TIMEOUT:?}; they end with the process");
        }
    }
}

struct Validator {
    handle: ValidatorHandle,
    gateway: Gateway,
}

struct Nodes {
    context: tokio::Context,
    config: SupervisorConfig,
    known: Known,
    /// In the plan's order; `None`: stopped.
    validators: Vec<Option<Validator>>,
    runners: Vec<runner::Runner>,
}

impl Nodes {
    fn name(&self, index: usize) -> &Name {
        &self.config.plan.validators[index].name
    }

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, port))
    }

    /// Starts a validator over whatever storage it has.
    fn start(&mut self, index: usize) -> Result<(), String> {
        let config = &self.config;
        let name = self.name(index).clone();
        let folder = config.home.validator_path(&name);
        super::home::create_private_dir(&folder).map_err(|error| error.to_string())?;
        let chain_id = config.genesis.chain_id();
        let store = Store::open(&folder.join("index.db"), chain_id)
            .map_err(|error| format!("{}: {error}", folder.display()))?;
        let keys = &config.keys[index];
        let quic = Self::address(config.ports.quic[name.as_str()]);
        let p2p = Self::address(config.ports.p2p[name.as_str()]);
        let identity = Identity::new(&keys.identity).map_err(|error| error.to_string())?;
        // Handshakes per address are limited behind TLS, where a connected runner is known.
        let listener = Listener::bind(&identity, quic, |_| true)
            .map_err(|error| format!("cannot listen for runners: {error}"))?;
        let (gateway, results) = Gateway::new(gateway::Config {
            key: keys.identity.clone(),
            limits: Limits::default(),
            state: config.genesis.state().map_err(|error| error.to_string())?,
        });
        let key = keys.identity.clone();
        let network = Loopback {
            key: keys.consensus.clone(),
            chain_id,
            ports: config
                .plan
                .validators
                .iter()
                .zip(&config.keys)
                .map(|(v, keys)| (keys.consensus.public_key(), config.ports.p2p[v.name.as_str()]))
                .collect(),
        };
        let handle = start_validator(
            &self.context,
            ValidatorConfig {
                name: name.to_string(),
                key: keys.consensus.clone(),
                genesis: config.genesis.clone(),
                timing: Timing::new(config.plan.block_time),
                store: Arc::new(store),
                known: self.known.clone(),
                view: Arc::new(gateway.clone()),
                gateway: Some(service::serve(
                    gateway.clone(),
                    results,
                    key,
                    listener,
                    config.plan.block_time,
                )),
            },
            network,
        )
        .map_err(|error| error.to_string())?;
        let services = handle.services();
        let links = gateway.clone();
        if let Some(slot) = config.backend.slot(name.as_str()) {
            slot.set_running(Running {
                ledger: services.ledger.clone(),
                mempool: services.mempool.clone(),
                links: Arc::new(move || links.connected().into_iter().map(link).collect()),
                quic,
                p2p,
            });
        }
        tracing::info!(validator = %name, height = %services.ledger.head().height(), "started");
        self.validators[index] = Some(Validator { handle, gateway });
        Ok(())
    }

    /// Stops a validator: runners are told, the state is kept for the next start.
    async fn stop(&mut self, index: usize) {
        let Some(validator) = self.validators[index].take() else { return };
        let name = self.name(index).clone();
        validator.gateway.close(&self.context).await;
        let ledger = validator.handle.services().ledger.clone();
        validator.handle.stop().await;
        if let Some(slot) = self.config.backend.slot(name.as_str()) {
            slot.set_stopped();
        }
        let state = ledger.head();
        if let Err(error) = ledger.store().snapshot(&state) {
            tracing::warn!(validator = %name, %error, "no snapshot: the next start takes longer");
        }
        tracing::info!(validator = %name, height = %state.height(), "stopped");
    }

    /// Resolves once a stopped validator's port for runners can be listened on again: its last
    /// connections are drained for a few round trips after it has ended.
    async fn released(&self, index: usize) -> Result<(), String> {
        let port = self.config.ports.quic[self.name(index).as_str()];
        let released = async {
            while ports::check(Transport::Udp, port).is_err() {
                ::tokio::time::sleep(RELEASE_POLL).await;
            }
        };
        ::tokio::time::timeout(STOP_TIMEOUT, released)
            .await
            .map_err(|_| format!("stopped, but port {port} is still in use after {STOP_TIMEOUT:?}"))
    }

    fn start_runners(&mut self) -> Result<(), (String, String)> {
        let config = &self.config;
        let validators: Vec<_> = config
            .plan
            .validators
            .iter()
            .zip(&config.keys)
            .map(|(v, keys)| ValidatorAddress {
                key: keys.identity.public_key(),
                address: Self::address(config.ports.quic[v.name.as_str()]),
            })
            .collect();
        let executor = Executor::default();
        let mut client: Option<quic::Client> = None;
        let api = Client::new(&config.rpc_url)
            .map_err(|error| ("control API".to_owned(), error.to_string()))?;
        for runner in &config.plan.runners {
            let failed = |error: String| (runner.name.to_string(), error);
            let key = config.plan.key(&runner.name);
            let address = key.address();
            // One socket for all of them.
            let client = match &client {
                Some(client) => client,
                None => client.insert(
                    quic::Client::bind(Self::address(0)).map_err(|e| failed(e.to_string()))?,
                ),
            };
            let identity = Identity::new(&key).map_err(|error| failed(error.to_string()))?;
            let running = runner::start(
                self.context.child("runner").with_attribute("name", &runner.name),
                runner::Config {
                    chain_id: config.genesis.chain_id(),
                    key: key.clone(),
                    validators: validators.clone(),
                    kinds: runner.kinds.iter().copied().map(super::genesis::kind).collect(),
                    max_concurrent_jobs: runner.max_concurrent_jobs,
                },
                client.dialer(identity),
                executor.clone(),
            );
            let (api, block_time) = (api.clone(), config.plan.block_time);
            self.context
                .child("heartbeat")
                .spawn(move |context| heartbeat::keep(context, api, key, block_time));
            config.backend.set_runner_running(&address, true);
            self.runners.push(running);
        }
        Ok(())
    }

    async fn stop_all(&mut self) {
        let runners = self.runners.drain(..);
        join_all(runners.map(|runner| runner.stop(&self.context))).await;
        for index in 0..self.validators.len() {
            self.stop(index).await;
        }
    }

    /// Resolves when a validator ends by itself.
    async fn ended(&mut self) -> (usize, EngineError) {
        let running = self.validators.iter_mut().enumerate().filter_map(|(index, validator)| {
            let handle = &mut validator.as_mut()?.handle;
            Some(handle.ended().map(move |error| (index, error)).boxed())
        });
        let running: Vec<_> = running.collect();
        if running.is_empty() {
            return std::future::pending().await;
        }
        select_all(running).await.0
    }
}

fn link(connected: Connected) -> Link {
    Link {
        runner: connected.runner,
        locally_present: connected.present,
        last_ping: connected.last_ping,
    }
}

async fn supervise(
    mut nodes: Nodes,
    mut requests: mpsc::Receiver<SwitchRequest>,
    shutdown: Arc<watch::Sender<bool>>,
    failed: mpsc::Sender<OrchestratorError>,
) {
    let mut stop = shutdown.subscribe();
    loop {
        ::tokio::select! {
            // An error: nobody is left to stop it otherwise.
            () = stop.wait_for(|stop| *stop).map(drop) => break,
            request = requests.recv() => {
                let Some(SwitchRequest { validator, to, reply }) = request else { break };
                let found = nodes
                    .config
                    .plan
                    .validators
                    .iter()
                    .position(|v| v.name.as_str() == validator);
                let outcome = match (found, to) {
                    (None, _) => Err(format!("there is no validator `{validator}`")),
                    (Some(index), Switch::Stop) => {
                        nodes.stop(index).await;
                        nodes.released(index).await
                    }
                    (Some(index), Switch::Start) if nodes.validators[index].is_none() => {
                        nodes.start(index)
                    }
                    (Some(_), Switch::Start) => Ok(()),
                };
                // Whoever asked may have gone.
                let _ = reply.send(outcome);
            }
            (index, error) = nodes.ended() => {
                let node = nodes.name(index).to_string();
                tracing::error!(validator = %node, %error, "ended by itself");
                nodes.validators[index] = None;
                if let Some(slot) = nodes.config.backend.slot(&node) {
                    slot.set_stopped();
                }
                // Full: as many failures as validators wait already.
                let _ = failed.try_send(OrchestratorError::Node { node, error: error.to_string() });
            }
        }
    }
    nodes.stop_all().await;
}
