//! The nodes of a devnet: its validators, started and stopped on request, and its runners.

mod here;
mod meeting;
mod recovery;
mod runners;

pub(super) use self::runners::RunnerNode;

use self::{here::Here, meeting::Meeting, recovery::Repair, runners::Runners};
use super::{
    OrchestratorError,
    clock::ClockReading,
    home::{DevnetHome, HomeError},
    members::{Member, MemberError, Members},
    ports::{self, Transport},
    processes::{Handout, NodeEvent, ProcessEnd, Processes, ProcessesConfig},
    readiness,
};
use crate::{
    agent::Agent,
    api::backend::{Backend, MembershipError, Running, Switch, UpgradeError},
    chain::{
        known::Known,
        ledger::{self, ExecutedBlock},
    },
    client::Client,
    consensus::{
        EngineError, PROTOCOL, engine,
        faulty::{self, Faulty},
        hurry::Hurry,
        lying::Lying,
        network::Tcp,
        timing::Timing,
    },
    executor::{self, Executor},
    faults::Tap,
    runner::Targets,
    storage::Keep,
    topology::{Name, Reserve},
    transport::{quic::QuicListener, tls::Identity},
    validator::{
        gateway::{self, Gateway},
        limiter::BucketLimits,
        node::{ValidatorConfig, ValidatorHandle, start_validator},
        rebuild, service,
    },
};
use commonware_cryptography::Signer as _;
use commonware_runtime::{Spawner as _, Storage as _, Supervisor as _, tokio};
use cowboy_engine::{
    chain::Genesis,
    primitives::{Address, Height},
};
use cowboy_host::{duration::Plain, files::create_private_dir};
use futures::{FutureExt as _, future::select_all};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

/// Maximum number of simultaneous requests to the control API by all of the devnet's runners. Each
/// holds a connection, and hundreds of runners would use up the API's connections.
const RUNNERS_REQUESTS: usize = 16;
/// How long a validator's port may stay in use before it is replaced; a validator that has just
/// stopped answers its last connections for a few round trips.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(3);
/// How often a stopped validator's port is checked; the system does not notify.
const RELEASE_POLL: Duration = Duration::from_millis(10);

pub(super) struct NodesConfig {
    pub(super) block_time: Duration,
    pub(super) keep: Keep,
    pub(super) reserve: Reserve,
    /// The runners of this process.
    pub(super) runners: Vec<RunnerNode>,
    /// The agents that they run errands for.
    pub(super) agents: BTreeSet<Address>,
    pub(super) home: DevnetHome,
    pub(super) genesis: Arc<Genesis>,
    pub(super) members: Members,
    pub(super) backend: Arc<Backend>,
    pub(super) rpc_url: String,
    pub(super) agent: Option<Agent>,
    /// The pool that runs commands delivered by lease.
    pub(super) pool: Option<Arc<dyn executor::CommandPool>>,
    /// The devnet's lease server, if it has one.
    pub(super) lease_url: String,
    /// What nodes in processes of their own are given; `None`: they run in this process.
    pub(super) handout: Option<Handout>,
    /// A validator's stored chain is removed first, and fetched from the others.
    pub(super) afresh: bool,
}

pub(super) struct RunningValidator {
    pub(super) handle: ValidatorHandle,
    gateway: Gateway,
    tap: Tap,
    from: Height,
}

pub(super) struct Nodes {
    pub(super) context: tokio::Context,
    pub(super) config: NodesConfig,
    known: Known,
    hurry: Hurry,
    /// The validators that run in this process.
    pub(super) validators: BTreeMap<Name, RunningValidator>,
    /// Those in processes of their own, if the devnet has such.
    pub(super) processes: Option<Processes>,
    /// Validators that are paused until the reserve is free.
    paused: BTreeSet<Name>,
    /// Validators that ended on a full disk and wait for space.
    starved: BTreeSet<Name>,
    /// When a validator last ended on a full disk.
    short_at: Option<Instant>,
    /// Per validator, the repair applied since it last executed a block.
    repairs: BTreeMap<Name, Repair>,
    clock: ClockReading,
    pub(super) runners: Runners,
    targets: Targets,
}

impl Nodes {
    /// Damage in one validator's files affects only that one while the others have a quorum.
    pub(super) async fn start_all(
        context: &tokio::Context,
        mut config: NodesConfig,
    ) -> Result<Self, OrchestratorError> {
        let api = Client::new(&config.rpc_url)
            .map_err(|error| OrchestratorError::Node {
                node: "control API".to_owned(),
                error: error.to_string(),
            })?
            .at_most(RUNNERS_REQUESTS);
        let targets = Targets::new(config.backend.newest());
        targets.listening(config.members.for_runners());
        let following = targets.clone();
        let backend = config.backend.clone();
        context.child("targets").spawn(move |_| {
            readiness::watch(backend, move |block| following.advance(&block.execution.state))
        });
        let jobs = config.home.jobs_path();
        let executor = Executor::default().in_folder(&jobs, config.home.private_path());
        let executor = executor.map_err(HomeError::io(&jobs))?;
        let executor = match &config.pool {
            Some(pool) => executor.with_pool(pool.clone()),
            None => executor,
        };
        let members = config.members.all().to_vec();
        let (mut processes, mut launcher) = (None, None);
        if let Some(handout) = config.handout.take() {
            let parts = ProcessesConfig {
                home: config.home.clone(),
                members: config.members.all(),
                backend: config.backend.clone(),
                keep: config.keep,
                reserve: config.reserve,
                handout,
            };
            let made = Processes::new(context, parts).await.map_err(|error| {
                let node = "the nodes' processes".to_owned();
                OrchestratorError::Node { node, error }
            })?;
            let (rpc_url, lease_url) = (config.rpc_url.clone(), config.lease_url.clone());
            launcher = Some(made.launcher(rpc_url, lease_url, config.agents.clone()));
            processes = Some(made);
        }
        let runners = Runners::new(context, &config, launcher, (api, executor), targets.clone());
        let mut nodes = Nodes {
            known: Known::default(),
            hurry: Hurry::over(config.home.consensus_path()),
            validators: BTreeMap::new(),
            processes,
            paused: BTreeSet::new(),
            starved: BTreeSet::new(),
            short_at: None,
            repairs: BTreeMap::new(),
            clock: ClockReading::new(),
            runners,
            targets,
            context: context.child("nodes"),
            config,
        };
        let failed = match &mut nodes.processes {
            Some(processes) => processes.start_all(&members).await,
            None => nodes.start_all_here(&members).await,
        };
        let mut first = None;
        for (name, error) in failed {
            nodes.died(&name, error.clone());
            let node = name.to_string();
            first.get_or_insert(OrchestratorError::Node { node, error });
        }
        if let Some(failure) = first.filter(|_| nodes.lacks_quorum()) {
            return Err(failure);
        }
        for runner in &nodes.config.runners {
            nodes.runners.start(runner).await.map_err(|error| OrchestratorError::Node {
                node: runner.plan.name.to_string(),
                error,
            })?;
        }
        Ok(nodes)
    }

    pub(super) fn member(&self, name: &str) -> Option<Member> {
        self.config.members.get(name).cloned()
    }

    async fn start_all_here(&mut self, members: &[Member]) -> Vec<(Name, String)> {
        let mut failed = Vec::new();
        for member in members {
            if self.config.afresh {
                // An error shows when the validator starts.
                let _ = self.forget(&member.name).await;
            }
            if let Err(error) = self.start_here(member) {
                failed.push((member.name.clone(), error));
            }
        }
        failed
    }

    /// Whether a validator runs, in this process or in one of its own.
    fn runs(&self, name: &Name) -> bool {
        let apart = self.processes.as_ref().is_some_and(|processes| processes.is_running(name));
        apart || self.validators.contains_key(name)
    }

    /// The validators that run.
    pub(super) fn running(&self) -> Vec<Name> {
        let here = self.validators.keys().cloned();
        here.chain(self.processes.iter().flat_map(Processes::running)).collect()
    }

    /// Starts a validator on its existing storage.
    pub(super) async fn start(&mut self, member: &Member) -> Result<(), String> {
        match &mut self.processes {
            Some(processes) => processes.start(member, self.config.members.all(), false).await,
            None => self.start_here(member),
        }
    }

    fn start_here(&mut self, member: &Member) -> Result<(), String> {
        let Member { name, keys, p2p, quic } = member;
        let config = &self.config;
        let folder = config.home.validator_path(name);
        create_private_dir(&folder).map_err(|error| error.to_string())?;
        let chain_id = config.genesis.chain_id();
        let others = self.config.members.all().iter().filter(|other| other.name != *name);
        let others: Vec<_> = others
            .map(|other| self.config.home.validator_path(&other.name).join("index.db"))
            .collect();
        let (genesis, path) = (&self.config.genesis, folder.join("index.db"));
        let ledger = rebuild::open_chain(name.as_str(), &path, genesis, self.config.keep, &others)?;
        let identity = Identity::new(&keys.identity).map_err(|error| error.to_string())?;
        let faults = config.backend.faults().clone();
        let tap = Tap::new(faults.clone(), name.as_str());
        tap.sit(faulty::seat(&keys.consensus.public_key()));
        // Handshakes per address are limited after TLS, when the connected runner is known.
        let listener = QuicListener::bind_tapped(&identity, *quic, tap.clone(), |_| true)
            .map_err(|error| format!("cannot listen for runners: {error}"))?;
        let (gateway, results) = Gateway::new(gateway::GatewayConfig {
            key: keys.identity.clone(),
            limits: BucketLimits::sharing_an_address(config.genesis.runners.len()),
            state: config.genesis.state().map_err(|error| error.to_string())?,
        });
        let key = keys.identity.clone();
        let network = Tcp {
            key: keys.consensus.clone(),
            chain_id,
            protocol: PROTOCOL,
            listen: *p2p,
            peers: config.members.peers(),
        };
        let handle = start_validator(
            &self.context,
            ValidatorConfig {
                name: name.to_string(),
                key: keys.consensus.clone(),
                genesis: config.genesis.clone(),
                timing: Timing::new(config.block_time),
                fast_forward: config.backend.fast_forward().clone(),
                hurry: self.hurry.clone(),
                ledger,
                known: self.known.clone(),
                view: Arc::new(Lying { view: Arc::new(gateway.clone()), tap: tap.clone() }),
                gateway: Some(service::serve(
                    gateway.clone(),
                    results,
                    key,
                    Meeting { listener, backend: config.backend.clone() },
                    config.block_time,
                )),
            },
            Faulty { network, tap: tap.clone() },
        )
        .map_err(|error| error.to_string())?;
        let services = handle.services();
        faults.revived(name.as_str());
        faults.reached(services.ledger.head().height().get());
        let blocks = services.ledger.subscribe();
        let tell = move |block: &ExecutedBlock| faults.reached(block.block.header.height.get());
        self.context.child("heights").spawn(move |_| ledger::follow(blocks, tell));
        if let Some(slot) = config.backend.slot(name.as_str()) {
            slot.set_running(Running {
                ledger: services.ledger.clone(),
                reached: None,
                mempool: services.mempool.clone(),
                node: Arc::new(Here(gateway.clone())),
                process: None,
                quic: *quic,
                p2p: *p2p,
            });
        }
        let from = services.ledger.head().height();
        tracing::info!(validator = %name, height = %from, "started");
        if let Some(agent) = &config.agent {
            agent.joined(name.as_str(), services.clone(), gateway.clone());
        }
        self.validators.insert(name.clone(), RunningValidator { handle, gateway, tap, from });
        Ok(())
    }

    /// Removes a stopped validator's store of the chain. Its votes stay.
    async fn forget(&self, name: &Name) -> Result<(), HomeError> {
        rebuild::remove_store(&self.config.home.validator_path(name).join("index.db"))
            .map_err(HomeError::io(self.config.home.path()))?;
        for partition in engine::archives(name.as_str()) {
            // An error means that it is absent, for example after a start that failed early.
            let _ = self.context.remove(&partition, None).await;
        }
        Ok(())
    }

    fn take(&mut self, name: &Name) -> Option<RunningValidator> {
        if let Some(agent) = &self.config.agent {
            agent.left(name.as_str());
        }
        self.validators.remove(name)
    }

    /// Stops a validator: runners are informed, and its state is saved for the next start.
    pub(super) async fn stop(&mut self, name: &Name) {
        self.forget_pause(name);
        if let Some(processes) = &mut self.processes {
            return processes.stop(name).await;
        }
        let Some(validator) = self.take(name) else { return };
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

    /// Ends a validator as a crash would: runners are not informed, and only what was already on
    /// disk is left for the next start.
    async fn kill(&mut self, name: &Name) {
        self.forget_pause(name);
        if let Some(processes) = &mut self.processes {
            return processes.kill(name).await;
        }
        let Some(validator) = self.take(name) else { return };
        validator.tap.silence();
        validator.handle.stop().await;
        if let Some(slot) = self.config.backend.slot(name.as_str()) {
            slot.set_stopped();
        }
        tracing::info!(validator = %name, "killed");
    }

    /// Resolves once a stopped validator's ports can be listened on. A port that stays in use, by
    /// another program or by its last connections, is replaced, and the other nodes are informed.
    pub(super) async fn released(&mut self, member: &Member) -> Result<Member, String> {
        let released = async {
            while !has_free_ports(member) {
                ::tokio::time::sleep(RELEASE_POLL).await;
            }
        };
        if ::tokio::time::timeout(RELEASE_TIMEOUT, released).await.is_ok() {
            return Ok(member.clone());
        }
        let moved = self.config.members.relocate(member).map_err(|e| e.to_string())?;
        tracing::warn!(
            validator = %member.name, p2p = %moved.p2p, quic = %moved.quic,
            "a port is still in use after {}: it gets another one", Plain(RELEASE_TIMEOUT)
        );
        self.tell_members().await;
        Ok(moved)
    }

    /// Starts a stopped validator as soon as its ports can be listened on.
    pub(super) async fn start_released(&mut self, member: &Member) -> Result<(), String> {
        let mut member = self.released(member).await?;
        let mut started = self.start(&member).await;
        // Another program may take a port at this very moment, too.
        if started.is_err() && self.processes.is_none() && !has_free_ports(&member) {
            member = self.released(&member).await?;
            started = self.start(&member).await;
        }
        started
    }

    /// Tells runners and validators which members there are, and where.
    async fn tell_members(&self) {
        self.targets.listening(self.config.members.for_runners());
        if let Some(processes) = &self.processes {
            processes.tell_peers(self.config.members.all()).await;
        }
    }

    /// Adds a validator, which follows the chain from now on.
    pub(super) async fn join(&mut self, name: Option<Name>) -> Result<String, MemberError> {
        let member = self.config.members.join(name)?;
        let name = member.name.to_string();
        self.config.backend.add_validator(&name, member.keys.public());
        self.tell_members().await;
        let started = self.start(&member).await;
        started.map_err(|reason| MemberError::Node { name: name.clone(), reason })?;
        Ok(name)
    }

    /// Stops and removes a validator that the committee has released.
    pub(super) async fn leave(&mut self, validator: &str) -> Result<String, MemberError> {
        let unknown = || MemberError::Unknown(validator.to_owned());
        let member = self.member(validator).ok_or_else(unknown)?;
        let (state, identity) = (self.config.backend.newest(), member.keys.public());
        let epoch = state.epoch_at(state.height().next());
        let serves = |epoch| state.validators_in(epoch).contains(&identity);
        if serves(epoch) || serves(epoch + 1) {
            return Err(MemberError::Serves(validator.to_owned()));
        }
        self.stop(&member.name).await;
        self.config.members.leave(&member.name)?;
        self.tell_members().await;
        self.config.backend.remove_validator(validator);
        Ok(validator.to_owned())
    }

    /// A node that is already in the requested state is left alone.
    pub(super) async fn switch(&mut self, node: &str, to: Switch) -> Result<(), String> {
        if let Some(member) = self.member(node) {
            return match to {
                Switch::Start if self.runs(&member.name) => Ok(()),
                Switch::Start => {
                    self.repairs.remove(&member.name);
                    self.start_released(&member).await
                }
                Switch::Stop => {
                    self.stop(&member.name).await;
                    Ok(())
                }
                Switch::Kill => {
                    self.kill(&member.name).await;
                    Ok(())
                }
                Switch::Resync => {
                    self.stop(&member.name).await;
                    let member = self.released(&member).await?;
                    if let Some(processes) = &mut self.processes {
                        return processes.start(&member, self.config.members.all(), true).await;
                    }
                    self.forget(&member.name).await.map_err(|error| error.to_string())?;
                    self.start_released(&member).await
                }
                Switch::Freeze | Switch::Thaw => {
                    if let Some(processes) = &self.processes {
                        processes.freeze(&member.name, to == Switch::Freeze).await;
                    }
                    Ok(())
                }
            };
        }
        let mut runners = self.config.runners.iter();
        let Some(runner) = runners.find(|runner| runner.plan.name.as_str() == node) else {
            return Err(format!("there is no node `{node}`"));
        };
        match to {
            Switch::Start if self.runners.running.contains_key(node) => Ok(()),
            Switch::Start => self.runners.restart(runner).await,
            Switch::Kill => {
                self.runners.kill(runner).await;
                Ok(())
            }
            Switch::Resync => Err(format!("`{node}` is a runner: it stores no chain")),
            Switch::Freeze | Switch::Thaw => {
                self.runners.freeze(node, to == Switch::Freeze).await;
                Ok(())
            }
            Switch::Stop => {
                self.runners.stop_one(runner).await;
                Ok(())
            }
        }
    }

    pub(super) async fn stop_all(&mut self) {
        self.runners.stop().await;
        if let Some(processes) = &mut self.processes {
            return processes.stop_all().await;
        }
        let names: Vec<Name> = self.validators.keys().cloned().collect();
        for name in &names {
            self.stop(name).await;
        }
    }

    /// Resolves when a node has ended by itself.
    pub(super) async fn ended(&mut self) -> EndedNode {
        let running = self.validators.iter_mut().map(|(name, validator)| {
            let name = name.clone();
            validator.handle.ended().map(move |error| EndedNode::Here(name, error)).boxed()
        });
        let apart = self
            .processes
            .as_mut()
            .map(|processes| processes.event().map(EndedNode::Process).boxed());
        let runners = self.runners.ended();
        let runners = runners.map(|(name, end)| EndedNode::Runner(name, end)).boxed();
        let all: Vec<_> = running.chain(apart).chain([runners]).collect();
        select_all(all).await.0
    }

    /// Handles a runner's process that has ended by itself: starts it again if the topology asks
    /// for that.
    pub(super) async fn runner_ended(&mut self, name: &Name, end: ProcessEnd) {
        let mut runners = self.config.runners.iter();
        if let Some(runner) = runners.find(|runner| runner.plan.name == *name) {
            self.runners.bury(runner, end).await;
        }
    }

    /// Handles what has happened to a process by itself. One that has ended is started again if the
    /// topology asks for that. Returns the node that is down with how.
    pub(super) async fn process_event(&mut self, event: NodeEvent) -> Option<(Name, String)> {
        let (NodeEvent::Ended(name, _) | NodeEvent::Returned(name, _)) = &event;
        let name = name.clone();
        let member = self.config.members.get(name.as_str())?.clone();
        let (processes, members) = (self.processes.as_mut()?, self.config.members.all());
        match event {
            NodeEvent::Returned(_, returned) => {
                let error = processes.returned(&member, members, *returned).await.err()?;
                processes.bury(&name, &error);
                Some((name, error))
            }
            NodeEvent::Ended(_, end) => {
                if end.replaced {
                    processes.bury(&name, &end.how);
                    processes.await_return(&member, members).await;
                } else {
                    self.process_ended(&member, &end.how).await;
                }
                Some((name, end.how))
            }
        }
    }

    async fn process_ended(&mut self, member: &Member, how: &str) {
        let Some(processes) = &mut self.processes else { return };
        let (name, mut how) = (&member.name, how.to_owned());
        while processes.bury(name, &how) {
            match processes.start(member, self.config.members.all(), false).await {
                Ok(()) => return,
                Err(error) => how = error,
            }
        }
    }

    /// Lets a validator's own process run another program.
    pub(super) async fn upgrade(
        &mut self,
        node: &str,
        binary: PathBuf,
    ) -> Result<(), UpgradeError> {
        let (Some(processes), Some(member)) = (&mut self.processes, self.config.members.get(node))
        else {
            let what = format!("`{node}` has no process of its own: `hosts` is `in-process`");
            return Err(UpgradeError::Conflict(what));
        };
        processes.upgrade(member, self.config.members.all(), binary).await
    }

    /// Tells nodes in processes of their own which faults are in force.
    pub(super) async fn carry_out(&self) -> Result<(), String> {
        match &self.processes {
            Some(processes) => processes.carry_out().await,
            None => Ok(()),
        }
    }
}

/// A node that has ended by itself.
pub(super) enum EndedNode {
    Here(Name, EngineError),
    /// Something has happened to its own process.
    Process(NodeEvent),
    /// A runner's own process.
    Runner(Name, ProcessEnd),
}

impl From<MemberError> for MembershipError {
    fn from(error: MemberError) -> Self {
        match error {
            MemberError::Unknown(_) => Self::NotFound(error.to_string()),
            MemberError::Taken(_)
            | MemberError::Serves(_)
            | MemberError::OneOnly
            | MemberError::NoRoom
            | MemberError::TooMany => Self::Conflict(error.to_string()),
            MemberError::Ports(_)
            | MemberError::Home(_)
            | MemberError::InUse { .. }
            | MemberError::Node { .. } => Self::Failed(error.to_string()),
        }
    }
}

fn has_free_ports(member: &Member) -> bool {
    ports::is_free(Transport::Udp, member.quic) && ports::is_free(Transport::Tcp, member.p2p)
}
