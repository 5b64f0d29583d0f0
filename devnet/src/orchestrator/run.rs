//! A devnet's life, from its first file to its last.

use super::{
    OrchestratorError,
    event_loop::{Supervised, Supervisor},
    expiry, files,
    genesis::{genesis, proof_seed},
    home::{DevnetHome, DevnetRecord, HomeError, Lock, new_token},
    members::Members,
    nodes::{NodesConfig, RunnerNode},
    processes::Handout,
    readiness, schedules, space,
};
use crate::{
    agent::{self, Agent},
    api::{
        backend::{self, Backend, Elsewhere, Speculation},
        labels::Labels,
        server,
    },
    chain::ledger::ExecutedBlock,
    faults::Faults,
    handout::{ContainerRunner, GenesisDocument},
    pool::Pool,
    topology::{Hosts, Name, Plan},
    types::Text,
};
use commonware_runtime::{Runner as _, Spawner as _, Supervisor as _, tokio};
use cowboy_engine::{chain::Genesis, primitives::Address};
use cowboy_host::{
    files::{FileError, create_private_dir, write_private},
    last_words,
};
use cowboy_lease::{
    client::{Client, Tls},
    server as lease,
};
use futures::future::BoxFuture;
use jiff::Timestamp;
use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

pub(super) const API_GRACE: Duration = Duration::from_secs(2);
const LEASES_GRACE: Duration = Duration::from_secs(2);

/// The parameters of a devnet.
pub struct DevnetConfig {
    pub plan: Plan,
    pub lock: Lock,
    /// The program that makes its proofs in separate processes, and runs its validators if the
    /// topology asks for that. It must call [`prove_for_parent`](crate::agent::prove_for_parent)
    /// when started with [`PROVER`](crate::agent::PROVER), and [`run`](super::node::run) when
    /// started as `node run`. `None`: this process does both.
    pub program: Option<PathBuf>,
}

/// Reports of a running devnet.
pub enum Notice<'a> {
    Ready(&'a Ready),
    /// A running validator is the first to have executed a final block.
    Block(&'a ExecutedBlock),
}

/// The report of a devnet that is up.
#[derive(Clone, Debug)]
pub struct Ready {
    /// The contents of `devnet.json`.
    pub record: DevnetRecord,
    /// Time since the start of [`run`].
    pub after: Duration,
}

/// Runs a devnet in this process until `stop` resolves, the API is asked to stop it, a node dies
/// before the devnet is ready, or an essential part ends by itself. `observe` is called from the
/// devnet's own threads and must not block.
pub fn run(
    config: DevnetConfig,
    stop: BoxFuture<'static, ()>,
    observe: impl Fn(Notice<'_>) + Send + Sync + 'static,
) -> Result<(), OrchestratorError> {
    let started = Instant::now();
    // Dropped after the runtime and all its threads, so that the next holder finds nothing running.
    let DevnetConfig { plan, lock, program } = config;
    files::prepare(files::needed(&plan))?;
    last_words::keep();
    if let Some(short) = space::short(lock.home(), plan.reserve.0, 0) {
        return Err(OrchestratorError::Space(short));
    }
    create_private_dir(&lock.home().data_path())?;
    runtime(lock.home())
        .start(|context| live(context, (plan, program), &lock, started, stop, observe))
}

/// The runtime of a devnet's or a node's validators.
pub(super) fn runtime(home: &DevnetHome) -> tokio::Runner {
    tokio::Runner::new(
        tokio::Config::new()
            .with_storage_directory(home.consensus_path())
            // A panic in a task ends its validator, which is reported, and not the process.
            .with_catch_panics(true)
            .with_worker_threads(std::thread::available_parallelism().map_or(2, usize::from))
            .with_tcp_nodelay(Some(true)),
    )
}

async fn live(
    context: tokio::Context,
    (plan, program): (Plan, Option<PathBuf>),
    lock: &Lock,
    started: Instant,
    stop: BoxFuture<'static, ()>,
    observe: impl Fn(Notice<'_>) + Send + Sync + 'static,
) -> Result<(), OrchestratorError> {
    lock.clean()?;
    let home = lock.home().clone();
    let genesis = Arc::new(genesis(&plan));
    let (members, [api_port, lease_port]) = Members::load(&plan, &home.data_path())?;
    for account in &plan.accounts {
        lock.write_account_key(&account.name, &plan.key(&account.name))?;
    }
    let token = token(lock)?;
    lock.write_topology(&plan.to_yaml())?;

    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, api_port));
    let listener = ::tokio::net::TcpListener::bind(address).await.map_err(|error| {
        let what = "the control API";
        OrchestratorError::Listen { what, address, error }
    })?;

    let mut leases = lease_server(&plan, &home, lease_port, &token).await?;
    let scheduled = leases.schedules();
    let own = Client::new(leases.url(), &token, &Tls::default()).map_err(|error| {
        let (node, error) = ("the lease server".to_owned(), error.to_string());
        OrchestratorError::Node { node, error }
    })?;

    let (supervisor, requests) = Supervisor::channel();
    let addresses = |names: Vec<&Name>| {
        names.into_iter().map(|n| (n.to_string(), plan.key(n).address())).collect()
    };
    let started_at = Timestamp::now();
    // It sends errands over connections of its own process' validators.
    let named = plan.agent().filter(|_| plan.hosts == Hosts::InProcess);
    let agent = named.map(|name| {
        let runners = plan.runners.iter();
        Agent::open(agent::AgentConfig {
            key: plan.key(name),
            options: plan.speculation.clone(),
            scheme: genesis.params.tasks.scheme.clone(),
            bonds: genesis.params.tasks.bonds,
            proof_seed: proof_seed(plan.seed),
            prover: program.clone(),
            chain_id: genesis.chain_id(),
            block_time: plan.block_time,
            runners: runners.map(|r| (plan.key(&r.name).address(), r.name.to_string())).collect(),
            devnet: plan.name.to_string(),
            collector: plan.collector.clone(),
            path: home.speculation_path(),
        })
    });
    let agent = agent.transpose()?;
    let speculation: Option<Arc<dyn Speculation>> =
        agent.clone().map(|agent| Arc::new(agent) as Arc<dyn Speculation>);
    let backend = Arc::new(Backend::new(backend::BackendConfig {
        name: plan.name.to_string(),
        genesis: genesis.as_ref().clone(),
        block_time: plan.block_time,
        clock: Box::new(|| u64::try_from(Timestamp::now().as_millisecond()).unwrap_or(0)),
        pid: std::process::id(),
        started_at,
        token,
        accounts: accounts(&plan, &home)?,
        validators: members
            .all()
            .iter()
            .map(|member| (member.name.to_string(), member.keys.public()))
            .collect(),
        runners: addresses(plan.runners.iter().map(|r| &r.name).collect()),
        elsewhere: Elsewhere::default(),
        labels: labels(&home)?,
        compat: plan.api_compat,
        faults: Faults::new(plan.seed),
        hooks: supervisor.hooks(),
        speculation,
    })?);
    let rpc_url = format!("http://{address}");
    let supervised = requests.start(
        context.child("devnet"),
        NodesConfig {
            block_time: plan.block_time,
            keep: plan.keep,
            reserve: plan.reserve,
            runners: plan
                .runners
                .iter()
                .map(|runner| RunnerNode { plan: runner.clone(), key: plan.key(&runner.name) })
                .collect(),
            agents: plan.agent().map(|name| plan.key(name).address()).into_iter().collect(),
            home: home.clone(),
            genesis: genesis.clone(),
            members,
            backend: backend.clone(),
            rpc_url: rpc_url.clone(),
            agent: agent.clone(),
            pool: Some(Arc::new(Pool::new(own))),
            lease_url: leases.url().to_owned(),
            handout: handout(&plan, &genesis, program)?,
            afresh: false,
        },
    );
    let mut supervised = supervised.await?;
    let mut api = server::start(listener, backend.clone());
    let expiry = context.child("expiry").spawn({
        let backend = backend.clone();
        move |_| expiry::watch(backend)
    });

    let following = context.child("schedules").spawn({
        let backend = backend.clone();
        move |_| schedules::follow(backend, scheduled)
    });

    let observe = Arc::new(observe);
    let mut stop = stop;
    let readiness = readiness::wait(&backend, &plan);
    let mut stopping = pin!(supervised.stopping());
    let ready = ::tokio::select! {
        biased;
        () = &mut stopping => false,
        () = &mut stop => false,
        failure = supervised.failure() => return Err(failure),
        () = readiness => true,
    };
    let lease_url = leases.url().to_owned();
    if !ready {
        return end(agent, supervised, leases, api, lock).await;
    }
    let record = DevnetRecord {
        name: plan.name.clone(),
        pid: std::process::id(),
        started_at: Text(started_at),
        rpc_url,
        lease_url: Some(lease_url),
        chain_id: Text(crate::types::ChainId(genesis.chain_id())),
    };
    lock.write_record(&record)?;
    let ready = Ready { record, after: started.elapsed() };
    tracing::info!(after_ms = ready.after.as_millis(), "ready");
    observe(Notice::Ready(&ready));

    let watching = readiness::watch(backend.clone(), move |block| observe(Notice::Block(block)));
    let ended = |part| OrchestratorError::Ended { part, reason: last_words::recent() };
    let failed = ::tokio::select! {
        biased;
        () = &mut stopping => None,
        () = &mut stop => None,
        () = watching => None,
        () = supervised.ended() => Some(ended("the supervisor of the nodes")),
        _ = expiry => Some(ended("the task that heals faults")),
        _ = following => Some(ended("the task that reports timers to the lease server")),
        () = agent_failed(agent.as_ref()) => Some(ended("the speculation agent")),
        reason = api.ended() => Some(OrchestratorError::Ended { part: "the control API", reason }),
        part = leases.ended() => Some(OrchestratorError::LeaseEnded(part)),
    };
    if let Some(error) = &failed {
        tracing::error!(%error, "the devnet cannot continue");
    }
    let stopped = end(agent, supervised, leases, api, lock).await;
    failed.map_or(stopped, Err)
}

/// What nodes in processes of their own are given; `None` if the plan has none.
fn handout(
    plan: &Plan,
    genesis: &Genesis,
    program: Option<PathBuf>,
) -> Result<Option<Handout>, OrchestratorError> {
    if plan.hosts == Hosts::InProcess {
        return Ok(None);
    }
    let program = program.ok_or(OrchestratorError::NoProgram)?;
    let document = GenesisDocument::of(plan, genesis.clone());
    let plans = plan.validators.iter().map(|v| (v.name.clone(), v.process.clone())).collect();
    let runners = plan.runners.iter().map(|runner| ContainerRunner::of(plan, runner)).collect();
    let (hosts, image) = (plan.hosts, plan.image.clone());
    Ok(Some(Handout { program, document, hosts, image, plans, runners }))
}

/// The token of earlier runs, or a new one.
pub(super) fn token(lock: &Lock) -> Result<String, HomeError> {
    match lock.home().token() {
        Ok(token) if !token.is_empty() => Ok(token),
        _ => {
            let token = new_token();
            lock.write_token(&token)?;
            Ok(token)
        }
    }
}

async fn agent_failed(agent: Option<&Agent>) {
    match agent {
        Some(agent) => agent.failed().await,
        None => std::future::pending().await,
    }
}

/// Names and addresses of all accounts: the plan's, then those with keys made since.
fn accounts(plan: &Plan, home: &DevnetHome) -> Result<Vec<(String, Address)>, HomeError> {
    let of_plan = plan.accounts.iter().map(|account| &account.name);
    let taken = |name: &Name| {
        let mut nodes = plan.validators.iter().map(|v| &v.name);
        nodes.any(|node| node == name) || plan.runners.iter().any(|runner| runner.name == *name)
    };
    let mut accounts: Vec<_> =
        of_plan.clone().map(|name| (name.to_string(), plan.key(name).address())).collect();
    for name in home.accounts()? {
        if of_plan.clone().any(|own| *own == name) || taken(&name) {
            continue;
        }
        if let Some(key) = home.account_key(&name)? {
            accounts.push((name.to_string(), key.address()));
        }
    }
    Ok(accounts)
}

pub(super) fn labels(home: &DevnetHome) -> Result<Labels, HomeError> {
    let path = home.names_path();
    let save = {
        let path = path.clone();
        move |text: &str| write_private(&path, text).map_err(|error| error.to_string())
    };
    Ok(Labels::new(&home.names()?, Box::new(save))
        .map_err(|error| FileError::Malformed { path, reason: error.to_string() })?)
}

async fn lease_server(
    plan: &Plan,
    home: &DevnetHome,
    port: u16,
    token: &str,
) -> Result<lease::Running, OrchestratorError> {
    let folder = home.lease_path();
    create_private_dir(&folder)?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let listener = ::tokio::net::TcpListener::bind(address).await.map_err(|error| {
        let what = "the lease server";
        OrchestratorError::Listen { what, address, error }
    })?;
    let options = lease::Options {
        config: plan.lease,
        ..lease::Options::new(folder, listener, token.to_owned())
    };
    Ok(lease::Server::start(options).await?)
}

/// Stops everything in order: the agent, the runners, the validators after a last snapshot, the
/// lease server, the API.
async fn end(
    agent: Option<Agent>,
    supervised: Supervised,
    leases: lease::Running,
    api: cowboy_host::http::Serving,
    lock: &Lock,
) -> Result<(), OrchestratorError> {
    tracing::info!("stopping");
    if let Some(agent) = agent {
        agent.stop().await;
    }
    supervised.stop().await;
    leases.stop(LEASES_GRACE).await;
    api.stop(API_GRACE).await;
    lock.clean()?;
    tracing::info!("stopped");
    Ok(())
}
