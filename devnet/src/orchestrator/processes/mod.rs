//! Nodes in processes or containers of their own on this machine, or in pods of a cluster.
//!
//! A validator is this program as `node run`, with a folder of its own in `nodes/`. This process
//! starts them, follows their chain ([`mirror`]) and asks them for the rest over their APIs
//! ([`access`]), so that everything above the nodes is the same wherever they run. Runners are this
//! program as `runner start` ([`runners`]). When this process ends, however that is, their
//! processes end too: their standard input closes. Containers are removed by the next command that
//! starts, stops or removes the devnet.

mod access;
mod cgroup;
mod child;
mod cluster;
mod containers;
mod copies;
mod mirror;
mod pod_run;
mod pods;
mod run;
mod runners;

pub(super) use self::{child::ProcessEnd, run::NodeRun, runners::RunnerLauncher};

use self::{
    access::Remote,
    child::{Child, NodePlace, NodeReport},
    cluster::Cluster,
    containers::Containers,
    mirror::Mirror,
    pod_run::PodRun,
};
use super::members::Member;
use crate::{
    api::{
        backend::{Backend, NodeProcess, Running, UpgradeError},
        faults,
    },
    chain::{
        known::Known,
        ledger::{self, Ledger},
        mempool::Mempool,
    },
    client::{Access, Client},
    faults::{Fault, Rule},
    handout::{
        ContainerDevnet, ContainerRunner, ContainerValidator, GenesisDocument, JoinedKeys,
        P2P_PORT, Peers, QUIC_PORT, ValidatorPlace, Versions,
    },
    home::{DevnetHome, Home, HomeError},
    runner::{folder::RunnerFolder, key},
    storage::Keep,
    topology::{Hosts, Image, Name, NodeList, ProcessPlan, Reserve, Topology},
    types::{Bytes, FaultOrders, NodePeer, NodePeers, Text},
    validator::rebuild,
};
use commonware_runtime::{Spawner as _, Supervisor as _, tokio as runtime};
use commonware_utils::sync::Mutex;
use cowboy_engine::primitives::{Address, Height};
use cowboy_host::files::{FileError, create_private_dir, write_private};
use futures::{
    FutureExt as _,
    future::{join_all, select_all},
};
use serde::Serialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};
use tokio::{runtime::Handle, sync::oneshot, task::AbortHandle};

/// The time limit of a request to a node.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// A node that ran for less counts as one that does not start, and is started again at most
/// [`RESTARTS`] times in a row.
const RAN: Duration = Duration::from_secs(10);
const RESTARTS: u32 = 5;

/// The parameters of a devnet's nodes.
pub(super) struct ProcessesConfig<'a> {
    pub(super) home: DevnetHome,
    pub(super) members: &'a [Member],
    pub(super) backend: Arc<Backend>,
    pub(super) keep: Keep,
    pub(super) reserve: Reserve,
    pub(super) handout: Handout,
}

/// What a devnet gives its nodes.
pub(super) struct Handout {
    /// The program that runs them.
    pub(super) program: PathBuf,
    pub(super) document: GenesisDocument,
    pub(super) hosts: Hosts,
    pub(super) image: Image,
    /// How each validator is run.
    pub(super) plans: BTreeMap<Name, ProcessPlan>,
    pub(super) runners: Vec<ContainerRunner>,
}

/// The nodes of a devnet.
pub(super) struct Processes {
    context: runtime::Context,
    home: DevnetHome,
    backend: Arc<Backend>,
    handout: Handout,
    keep: Keep,
    reserve: Reserve,
    site: Site,
    mirror: Mirror,
    running: BTreeMap<Name, RunningProcess>,
    /// Nodes whose pods have ended, and which run again in the next ones.
    returning: BTreeMap<Name, Returning>,
    /// How often each node has died in a row soon after its start.
    deaths: BTreeMap<Name, u32>,
}

/// Where nodes run.
#[derive(Clone)]
enum Site {
    Processes,
    Containers(Containers),
    Cluster(Cluster),
}

/// Where a running node is reached.
struct ReachedNode {
    rpc_url: String,
    access: Access,
    token: String,
    pid: Option<u32>,
    quic: SocketAddr,
    p2p: SocketAddr,
}

/// A node that is to run in a pod that does not run yet.
struct Returning {
    run: oneshot::Receiver<ReturnedNode>,
    task: AbortHandle,
}

pub(super) type ReturnedNode = (NodeRun, Result<NodeReport, String>);

/// What has happened to a node by itself.
pub(super) enum NodeEvent {
    Ended(Name, ProcessEnd),
    Returned(Name, Box<ReturnedNode>),
}

impl Drop for Returning {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct RunningProcess {
    run: NodeRun,
    access: Arc<Remote>,
    since: Instant,
}

impl Processes {
    /// Prepares the files of the nodes, and follows what they decide.
    pub(super) async fn new(
        context: &runtime::Context,
        config: ProcessesConfig<'_>,
    ) -> Result<Self, String> {
        let ProcessesConfig { home, members, backend, keep, reserve, handout } = config;
        let told = |error: FileError| error.to_string();
        for folder in [home.handout_path(), home.nodes_path(), home.followed_path()] {
            create_private_dir(&folder).map_err(told)?;
        }
        let genesis = home.handout_path().join("genesis.json");
        write_private(&genesis, &handout.document.to_json()).map_err(told)?;
        let site = match handout.hosts {
            Hosts::Compose => Site::Containers(Containers::new(&home).await?),
            Hosts::Kubernetes => Site::Cluster(Cluster::new(&home).await?),
            Hosts::Process | Hosts::InProcess => Site::Processes,
        };
        let stores: Vec<_> =
            members.iter().map(|one| home.validator_path(&one.name).join("index.db")).collect();
        let path = home.followed_path().join("index.db");
        let genesis_of = &handout.document.genesis;
        let ledger = rebuild::open_chain("the devnet", &path, genesis_of, keep, &stores)?;
        let mirror = Mirror::new(ledger.clone(), Mempool::new(Known::default()));
        let context = context.child("processes");
        let following = mirror.clone();
        context.child("mirror").spawn(move |_| following.follow());
        let passing = mirror.clone();
        context.child("pass").spawn(move |_| passing.pass_on());
        let (faults, blocks) = (backend.faults().clone(), ledger.subscribe());
        let tell = move |block: &ledger::ExecutedBlock| {
            faults.reached(block.block.header.height.get());
        };
        context.child("heights").spawn(move |_| ledger::follow(blocks, tell));
        let (running, returning, deaths) = Default::default();
        Ok(Self {
            context,
            home,
            backend,
            handout,
            keep,
            reserve,
            site,
            mirror,
            running,
            returning,
            deaths,
        })
    }

    /// Starts runners that ask the devnet's control API, and run errands for these agents.
    pub(super) fn launcher(
        &self,
        rpc_url: String,
        lease_url: String,
        agents: BTreeSet<Address>,
    ) -> RunnerLauncher {
        let (home, program) = (self.home.clone(), self.handout.program.clone());
        RunnerLauncher { home, program, rpc_url, lease_url, agents, site: self.site.clone() }
    }

    /// A node's folder, as one of a single node.
    fn folder(&self, name: &Name) -> DevnetHome {
        Home::at(self.home.nodes_path()).devnet(name)
    }

    pub(super) fn is_running(&self, name: &Name) -> bool {
        self.running.contains_key(name)
    }

    /// The chain that they decide, as this process follows it.
    pub(super) fn ledger(&self) -> &Ledger {
        self.mirror.ledger()
    }

    /// The names of the nodes that run.
    pub(super) fn running(&self) -> Vec<Name> {
        self.running.keys().cloned().collect()
    }

    /// Starts all members; those that fail have their reason.
    pub(super) async fn start_all(&mut self, members: &[Member]) -> Vec<(Name, String)> {
        let mut runs = Vec::new();
        let mut failed = Vec::new();
        for member in members {
            match self.begin(member, members, false).await {
                Ok(run) => runs.push((member, run)),
                Err(error) => failed.push((member.name.clone(), error)),
            }
        }
        let ready = runs.into_iter().map(async |(member, mut run)| {
            let report = run.answers().await;
            (member, run, report)
        });
        for (member, run, report) in join_all(ready).await {
            let joined = match report {
                Ok(report) => self.join(member, run, report).await,
                Err(error) => Err(error),
            };
            if let Err(error) = joined {
                failed.push((member.name.clone(), error));
            }
        }
        failed
    }

    /// Starts a node, without its stored chain if it is to fetch it again, and waits until its API
    /// answers.
    pub(super) async fn start(
        &mut self,
        member: &Member,
        members: &[Member],
        afresh: bool,
    ) -> Result<(), String> {
        self.returning.remove(&member.name);
        let mut run = self.begin(member, members, afresh).await?;
        let report = run.answers().await?;
        self.join(member, run, report).await?;
        if let (Site::Cluster(_), Some(process)) = (&self.site, self.running.get(&member.name)) {
            // Its file of peers is as old as its pod.
            self.tell(&member.name, process, &self.node_peers(members)).await;
        }
        Ok(())
    }

    /// Starts a node's process, container or pod.
    async fn begin(
        &self,
        member: &Member,
        members: &[Member],
        afresh: bool,
    ) -> Result<NodeRun, String> {
        let home = self.folder(&member.name);
        let place = NodePlace { folder: home.path().to_owned(), log: home.log_path() };
        match &self.site {
            Site::Containers(containers) => {
                let afresh = afresh.then_some(&member.name);
                containers.make(&self.contained(members, afresh)).await?;
                let child = Child::attach(&containers.of(&member.name), &place)?;
                return Ok(NodeRun::Child(child));
            }
            Site::Cluster(cluster) => {
                cluster.make(&self.contained(members, None)).await?;
                let pod = cluster.pod(&member.name).ok_or("it has no pod")?;
                return PodRun::start(pod, place, afresh).map(NodeRun::Pod);
            }
            Site::Processes => {}
        }
        let told = |error: FileError| error.to_string();
        let files = self.home.handout_path();
        let (peers, key) = (files.join("peers.yaml"), files.join(format!("{}.key", member.name)));
        write_private(&peers, &self.peers(members).to_yaml()).map_err(told)?;
        key::replace(&key, &member.keys.identity).map_err(|error| error.to_string())?;
        child::end_left(&home.lock_path(), member.name.as_str()).await?;
        let plan = self.plan(&member.name);
        let (keep, reserve) = (text(&self.keep), text(&self.reserve));
        let mut words = vec!["node", "run", "--name", member.name.as_str()];
        words.extend(["--keep", &keep, "--reserve", &reserve]);
        words.extend(afresh.then_some("--resync"));
        let nodes = self.home.nodes_path();
        let mut command = child::command(&self.handout.program, &words, &nodes, &plan);
        command.arg("--genesis").arg(files.join("genesis.json"));
        command.arg("--peers").arg(peers).arg("--key-file").arg(key);
        Child::start(command, &place, &plan).map(NodeRun::Child)
    }

    /// Where the validators are, for those in processes.
    fn peers(&self, members: &[Member]) -> Peers {
        let place = |member: &Member| ValidatorPlace {
            name: member.name.clone(),
            p2p: member.p2p.into(),
            quic: member.quic.into(),
            api: None,
            keys: self.joined_keys(member),
        };
        Peers { validators: members.iter().map(place).collect(), left: self.left(members) }
    }

    /// All nodes, for containers. One validator may be started without its stored chain.
    fn contained(&self, members: &[Member], afresh: Option<&Name>) -> ContainerDevnet<'_> {
        let validator = |member: &Member| ContainerValidator {
            name: member.name.clone(),
            key: member.keys.identity.clone(),
            keys: self.joined_keys(member),
            process: self.plan(&member.name),
            afresh: afresh == Some(&member.name),
        };
        ContainerDevnet {
            document: &self.handout.document,
            image: &self.handout.image,
            keep: self.keep,
            reserve: self.reserve,
            validators: members.iter().map(validator).collect(),
            left: self.left(members),
            runners: self.handout.runners.clone(),
        }
    }

    /// How a validator is run. All pods are alike, so one that has joined is run as the others.
    fn plan(&self, name: &Name) -> ProcessPlan {
        let plans = &self.handout.plans;
        let others = || plans.values().next().filter(|_| matches!(self.site, Site::Cluster(_)));
        plans.get(name).or_else(others).cloned().unwrap_or_default()
    }

    /// The public keys of a validator that is not in the genesis document.
    fn joined_keys(&self, member: &Member) -> Option<JoinedKeys> {
        let public = member.keys.public();
        let genesis = &self.handout.document.genesis.validators;
        (!genesis.contains(&public)).then(|| public.into())
    }

    /// The validators of the genesis document that have left.
    fn left(&self, members: &[Member]) -> Vec<Name> {
        let document = &self.handout.document;
        let is_member = |name: &Name| members.iter().any(|member| member.name == *name);
        let of_genesis = document.names.iter().filter(|(_, address)| {
            let validators = &document.genesis.validators;
            validators.iter().any(|validator| validator.pubkey.address() == **address)
        });
        of_genesis.map(|(name, _)| name).filter(|name| !is_member(name)).cloned().collect()
    }

    /// Where a node that runs is reached: its API, its process, and its addresses.
    async fn reached(
        &self,
        member: &Member,
        run: &NodeRun,
        rpc_url: String,
    ) -> Result<ReachedNode, String> {
        let at = |address, port| SocketAddr::new(address, port);
        let child = match run {
            NodeRun::Child(child) => child,
            NodeRun::Pod(pod) => {
                let address = pod.address().ok_or("its pod has no address")?;
                return Ok(ReachedNode {
                    rpc_url,
                    access: pod.access()?,
                    token: pod.token().await?,
                    pid: None,
                    quic: at(address, QUIC_PORT),
                    p2p: at(address, P2P_PORT),
                });
            }
        };
        let token = self.folder(&member.name).token().map_err(|error| error.to_string())?;
        let Site::Containers(containers) = &self.site else {
            let access = Access::default();
            let Member { quic, p2p, .. } = *member;
            return Ok(ReachedNode { rpc_url, access, token, pid: Some(child.id()), quic, p2p });
        };
        let told = containers.of(&member.name).inspect().await?;
        let api = told.api.ok_or("its control API has no port on this machine")?;
        Ok(ReachedNode {
            rpc_url: format!("https://{api}"),
            access: Access { token: None, roots: Some(containers.authority()?) },
            token,
            pid: Some(told.pid),
            quic: at(told.address, QUIC_PORT),
            p2p: at(told.address, P2P_PORT),
        })
    }

    /// Follows a node whose API answers.
    async fn join(
        &mut self,
        member: &Member,
        run: NodeRun,
        report: NodeReport,
    ) -> Result<(), String> {
        let (name, NodeReport { rpc_url, versions }) = (&member.name, report);
        versions.fits(&Versions::own()).map_err(|error| error.to_string())?;
        let told = |error: &dyn fmt::Display| error.to_string();
        let ReachedNode { rpc_url, access, token, pid, quic, p2p } =
            self.reached(member, &run, rpc_url).await?;
        let client = Client::with_access(&rpc_url, access).map_err(|error| told(&error))?;
        let client = client.with_token(token).with_timeout(ANSWER_WITHIN);
        let height = Height::new(client.head().await.map_err(|error| told(&error))?.height);
        let rules = self.backend.faults().rules();
        carry_out(&self.backend, &client, &rules).await?;
        let access = Arc::new(Remote {
            name: name.clone(),
            client: client.clone(),
            backend: Arc::downgrade(&self.backend),
            runtime: Handle::current(),
            frozen: false.into(),
            pause: Mutex::default(),
        });
        let reached = self.mirror.add(&self.context, name, client, height);
        if let Some(slot) = self.backend.slot(name.as_str()) {
            slot.set_running(Running {
                ledger: self.mirror.ledger().clone(),
                reached: Some(reached),
                mempool: self.mirror.mempool().clone(),
                node: access.clone(),
                process: Some(NodeProcess { pid, version: versions.version }),
                quic,
                p2p,
            });
        }
        self.backend.faults().revived(name.as_str());
        tracing::info!(validator = %name, pid, %height, "started in a process of its own");
        let running = RunningProcess { run, access, since: Instant::now() };
        self.running.insert(name.clone(), running);
        let pauses =
            |rule: &Rule| matches!(&rule.fault, Fault::Pause { node } if node == name.as_str());
        if rules.iter().any(pauses) {
            self.freeze(name, true).await;
        }
        Ok(())
    }

    /// Lets a node run another program. If that does not start, it goes on with the former one.
    pub(super) async fn upgrade(
        &mut self,
        member: &Member,
        members: &[Member],
        binary: PathBuf,
    ) -> Result<(), UpgradeError> {
        let name = &member.name;
        if let Site::Cluster(_) = &self.site {
            let what = format!("pods run the image `{}`, and no other program", self.handout.image);
            return Err(UpgradeError::Conflict(what));
        }
        let conflict =
            |reason: String| UpgradeError::Conflict(format!("{}: {reason}", binary.display()));
        let versions = child::versions_of(&binary).await.map_err(conflict)?;
        versions.fits(&Versions::own()).map_err(|error| conflict(error.to_string()))?;
        let plan = self.handout.plans.entry(name.clone()).or_default();
        let before = plan.binary.replace(binary.clone());
        if self.is_running(name) {
            self.stop(name).await;
            if let Err(error) = self.start(member, members, false).await {
                self.handout.plans.entry(name.clone()).or_default().binary = before;
                let again = match self.start(member, members, false).await {
                    Ok(()) => "it goes on with the former program".to_owned(),
                    Err(error) => {
                        self.bury(name, &error);
                        format!("the former program does not start either: {error}")
                    }
                };
                let binary = binary.display();
                return Err(UpgradeError::Failed(format!(
                    "{binary} does not run: {error}; {again}"
                )));
            }
        }
        tracing::info!(validator = %name, binary = %binary.display(), %versions, "another program");
        let kept = keep_binary(&self.home, name, &binary);
        kept.map_err(|error| {
            UpgradeError::Failed(format!("it runs, but not after the next start: {error}"))
        })
    }

    fn take(&mut self, name: &Name) -> Option<RunningProcess> {
        self.returning.remove(name);
        self.mirror.remove(name);
        self.running.remove(name)
    }

    /// Stops a node; it saves its state.
    pub(super) async fn stop(&mut self, name: &Name) {
        let Some(process) = self.take(name) else { return };
        process.run.stop().await;
        self.stopped(name);
        tracing::info!(validator = %name, "stopped");
    }

    /// Stops all nodes at the same time, and saves the state of what they decided.
    pub(super) async fn stop_all(&mut self) {
        let names = self.running();
        let all = std::mem::take(&mut self.running).into_values();
        join_all(all.map(|process| process.run.stop())).await;
        for name in &names {
            self.mirror.remove(name);
            self.stopped(name);
        }
        if let Err(error) = self.mirror.ledger().snapshot() {
            tracing::warn!(%error, "no snapshot: the next start takes longer");
        }
        let removed = match &self.site {
            Site::Processes => Ok(()),
            Site::Containers(containers) => containers.remove().await,
            Site::Cluster(cluster) => {
                self.gather().await;
                cluster.remove().await
            }
        };
        if let Err(error) = removed {
            tracing::warn!(%error, "the nodes' containers are still there");
        }
    }

    /// Ends a node with SIGKILL.
    pub(super) async fn kill(&mut self, name: &Name) {
        let Some(process) = self.take(name) else { return };
        process.run.kill().await;
        self.stopped(name);
        tracing::info!(validator = %name, "killed");
    }

    fn stopped(&self, name: &Name) {
        if let Some(slot) = self.backend.slot(name.as_str()) {
            slot.set_stopped();
        }
    }

    /// Stops a node in its tracks (SIGSTOP, or `pause` of its container), or lets it go on.
    pub(super) async fn freeze(&self, name: &Name, frozen: bool) {
        let Some(process) = self.running.get(name) else { return };
        process.access.frozen.store(frozen, Ordering::Relaxed);
        self.mirror.freeze(name, frozen);
        process.run.freeze(frozen).await;
    }

    /// Tells all nodes where the devnet's validators are, after one has come, gone or moved.
    pub(super) async fn tell_peers(&self, members: &[Member]) {
        let peers = self.node_peers(members);
        let told = self.running.iter().map(|(name, process)| self.tell(name, process, &peers));
        join_all(told).await;
    }

    async fn tell(&self, name: &Name, process: &RunningProcess, peers: &NodePeers) {
        if let Err(error) = process.access.client.set_peers(peers).await {
            tracing::warn!(validator = %name, %error, "does not know all validators");
        }
    }

    fn node_peers(&self, members: &[Member]) -> NodePeers {
        let peer = |member: &Member| NodePeer {
            name: member.name.to_string(),
            consensus_key: Text(Bytes(member.keys.public().consensus_key.to_vec())),
            p2p: match &self.site {
                Site::Processes => member.p2p.to_string(),
                Site::Containers(_) => format!("{}:{P2P_PORT}", member.name),
                Site::Cluster(cluster) => {
                    let host = cluster.host(&member.name);
                    format!("{}:{P2P_PORT}", host.unwrap_or_else(|| member.name.to_string()))
                }
            },
        };
        // The order of the file that nodes start with: those of the genesis document first.
        let genesis = &self.handout.document.genesis.validators;
        let place = |member: &&Member| {
            let public = member.keys.public();
            genesis.iter().position(|one| *one == public).unwrap_or(usize::MAX)
        };
        let mut members: Vec<_> = members.iter().collect();
        members.sort_by_key(place);
        NodePeers { validators: members.into_iter().map(peer).collect() }
    }

    /// Brings the data of nodes that do not run to this machine, if it is elsewhere.
    pub(super) async fn gather(&self) {
        if let Site::Cluster(cluster) = &self.site {
            cluster.gather().await;
        }
    }

    /// Tells all nodes which faults are in force, and waits until they carry them out.
    pub(super) async fn carry_out(&self) -> Result<(), String> {
        let rules = self.backend.faults().rules();
        let awake = self
            .running
            .iter()
            .filter(|(_, process)| !process.access.frozen.load(Ordering::Relaxed));
        let told = awake.map(async |(name, process)| {
            let told = carry_out(&self.backend, &process.access.client, &rules).await;
            told.map_err(|error| format!("validator `{name}`: {error}"))
        });
        join_all(told).await.into_iter().collect()
    }

    /// Resolves when a node has ended by itself, or has returned.
    pub(super) async fn event(&mut self) -> NodeEvent {
        let ends = self.running.iter_mut().map(|(name, process)| {
            let name = name.clone();
            process.run.ended().map(move |end| NodeEvent::Ended(name, end)).boxed()
        });
        let returns = self.returning.iter_mut().map(|(name, returning)| {
            let (name, run) = (name.clone(), &mut returning.run);
            let returned = async move {
                match run.await {
                    Ok(returned) => NodeEvent::Returned(name, Box::new(returned)),
                    // Its task has panicked.
                    Err(_) => std::future::pending().await,
                }
            };
            returned.boxed()
        });
        let events: Vec<_> = ends.chain(returns).collect();
        if events.is_empty() {
            return std::future::pending().await;
        }
        select_all(events).await.0
    }

    /// Lets a node run again in its next pod, and waits for that elsewhere.
    pub(super) async fn await_return(&mut self, member: &Member, members: &[Member]) {
        let name = &member.name;
        match self.begin(member, members, false).await {
            Ok(mut run) => {
                let (sender, receiver) = oneshot::channel();
                let task = tokio::spawn(async move {
                    let report = run.answers().await;
                    // An error: the node is no longer awaited.
                    let _ = sender.send((run, report));
                });
                let returning = Returning { run: receiver, task: task.abort_handle() };
                self.returning.insert(name.clone(), returning);
            }
            Err(error) => tracing::error!(validator = %name, %error, "does not return"),
        }
    }

    /// Follows a node that has returned.
    pub(super) async fn returned(
        &mut self,
        member: &Member,
        members: &[Member],
        (run, report): ReturnedNode,
    ) -> Result<(), String> {
        self.returning.remove(&member.name);
        self.join(member, run, report?).await?;
        if let Some(process) = self.running.get(&member.name) {
            self.tell(&member.name, process, &self.node_peers(members)).await;
        }
        Ok(())
    }

    /// Clears away a node that has ended by itself. Returns whether it is to be started again.
    pub(super) fn bury(&mut self, name: &Name, how: &str) -> bool {
        let since = self.take(name).map(|process| process.since);
        let soon = since.is_none_or(|since| since.elapsed() < RAN);
        let deaths = self.deaths.entry(name.clone()).or_default();
        *deaths = if soon { *deaths + 1 } else { 0 };
        let plan = self.handout.plans.get(name);
        let again = plan.is_some_and(|plan| plan.restart) && *deaths <= RESTARTS;
        tracing::error!(validator = %name, %how, again, "died");
        if let Some(slot) = self.backend.slot(name.as_str()) {
            slot.set_died(how.to_owned());
        }
        again
    }
}

/// Writes the program of a validator into the devnet's topology.
fn keep_binary(home: &DevnetHome, name: &Name, binary: &Path) -> Result<(), String> {
    let path = home.topology_path();
    let told = |error: &dyn fmt::Display| format!("{}: {error}", path.display());
    let text = home.topology().map_err(|error| told(&error))?.unwrap_or_default();
    let mut topology = Topology::parse(&text, "").map_err(|error| told(&error))?;
    if let Some(NodeList::List(validators)) = &mut topology.validators {
        for validator in validators.iter_mut().filter(|validator| validator.name == *name) {
            validator.binary = Some(binary.to_owned());
        }
    }
    write_private(&path, &topology.to_yaml()).map_err(|error| told(&error))
}

/// Ends the nodes that a killed devnet has left behind.
pub async fn end_left(devnet: &DevnetHome) -> Result<(), String> {
    containers::remove_left(devnet).await?;
    cluster::remove_left(devnet).await?;
    let told = |error: HomeError| error.to_string();
    let nodes = Home::at(devnet.nodes_path()).list().map_err(told)?;
    let nodes = nodes.iter().map(|node| (node.lock_path(), node.name().to_string()));
    let runners = RunnerFolder::supervised_at(devnet).map_err(told)?;
    let runners = runners.iter().map(|runner| (runner.lock_path(), runner.name().to_string()));
    let ends = nodes.chain(runners);
    let ends = ends.map(async |(lock, node)| {
        child::end_left(&lock, &node).await?;
        if let Some(folder) = lock.parent() {
            cgroup::remove_left(folder).await;
        }
        Ok(())
    });
    join_all(ends).await.into_iter().collect()
}

/// A value as `node run` takes it: its text in a topology file.
fn text(value: &impl Serialize) -> String {
    let yaml = serde_yaml::to_string(value).expect("a value of a topology");
    yaml.trim_end().to_owned()
}

/// Tells a node which faults are in force. It replaces those that it knows.
async fn carry_out(backend: &Backend, client: &Client, rules: &[Rule]) -> Result<(), String> {
    let rules = rules.iter().filter(|rule| rule.fault.concerns_messages());
    let orders = FaultOrders { faults: rules.map(|rule| faults::order(backend, rule)).collect() };
    client.carry_out(&orders).await.map(drop).map_err(|error| error.to_string())
}
