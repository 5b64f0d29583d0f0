//! A runner in a process of its own, from the first request to its goodbye.

use super::{
    KnownValidators, Polling, Runner, RunnerConfig,
    control::{self, ControlDesk, Wish},
    folder::{RunnerLock, RunnerRecord},
    follow::{self, Api, FollowError, Follower, NodeApis, SeenChain},
    heartbeat,
    node::Activity,
    pledges::Pledges,
    polling, start,
    trust::TrustRoot,
};
use crate::{
    api::server,
    client::ClientError,
    executor::{self, ConfigError, Executor},
    home::{HomeError, new_token},
    transport::{TransportError, quic, tls},
};
use ::tokio::sync::{broadcast, mpsc, watch};
use commonware_runtime::{Runner as _, Spawner as _, Supervisor as _, tokio};
use cowboy_engine::{
    primitives::{Address, SecretKey},
    registry::{Ability, JobKind},
    wire::CancelReason,
};
use cowboy_host::{host_port::HostPort, http};
use futures::future::BoxFuture;
use std::{
    collections::BTreeSet,
    io,
    net::{Ipv4Addr, SocketAddr},
    pin::pin,
    sync::Arc,
    time::Duration,
};

/// Operator requests that may wait.
const WISHES: usize = 16;
/// The time that the last answers may take once the runner ends.
const CONTROL_GRACE: Duration = Duration::from_millis(500);

/// The configuration of a runner in a process of its own.
pub struct ProcessConfig {
    pub lock: RunnerLock,
    pub key: SecretKey,
    pub api: Api,
    pub trust: TrustRoot,
    /// The job kinds it takes until told otherwise; `None`: all kinds it is registered with.
    pub kinds: Option<BTreeSet<JobKind>>,
    /// Its limit of concurrent jobs; `None`: as registered.
    pub max_concurrent_jobs: Option<u32>,
    pub agents: BTreeSet<Address>,
    pub executors: executor::Config,
    /// The pool that runs commands delivered by lease; `None`: such jobs fail.
    pub pool: Option<Arc<dyn executor::CommandPool>>,
}

/// Why the process does not start or has ended.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    #[error(transparent)]
    Follow(#[from] FollowError),
    #[error(transparent)]
    Home(#[from] HomeError),
    #[error("no certificate: {0}")]
    Tls(#[from] tls::IdentityError),
    #[error("no socket for QUIC: {0}")]
    Transport(#[from] TransportError),
    #[error("no port for its operator's requests: {0}")]
    Control(io::Error),
    #[error("the runner is not registered for jobs of kind {0}")]
    NotItsKind(JobKind),
    #[error("the runner cannot execute jobs of kind {kind}: they need {lacking}")]
    CannotExecute { kind: JobKind, lacking: &'static str },
    #[error(transparent)]
    Executors(#[from] ConfigError),
}

impl From<ClientError> for ProcessError {
    fn from(error: ClientError) -> Self {
        Self::Follow(error.into())
    }
}

/// Runs a runner in this process until `stop` resolves, its operator asks it to end, or the devnet
/// comes back with another chain. `ready` is called once it runs.
pub fn run(
    config: ProcessConfig,
    stop: BoxFuture<'static, ()>,
    ready: impl FnOnce(&RunnerRecord) + Send,
) -> Result<(), ProcessError> {
    // The runtime locks a folder of its own inside the runner's.
    let runtime = tokio::Config::new()
        .with_storage_directory(config.lock.folder().path().join("runtime"))
        .with_worker_threads(std::thread::available_parallelism().map_or(2, usize::from));
    tokio::Runner::new(runtime).start(|context| live(context, config, stop, ready))
}

async fn live(
    context: tokio::Context,
    config: ProcessConfig,
    mut stop: BoxFuture<'static, ()>,
    ready: impl FnOnce(&RunnerRecord),
) -> Result<(), ProcessError> {
    let ProcessConfig { lock, key, api, trust, kinds, max_concurrent_jobs, .. } = config;
    let ProcessConfig { agents, executors, pool, .. } = config;
    let bind = reaching(&api);
    let jobs = lock.folder().jobs_path();
    let executor = Executor::new(&executors)?.in_folder(&jobs, lock.folder().private_path());
    let executor = executor.map_err(HomeError::io(&jobs))?;
    let executor = match pool {
        Some(pool) => executor.with_pool(pool),
        None => executor,
    };
    lock.clean()?;
    let address = key.address();
    let memory = lock.folder().validators_path();
    let mut follower = Follower::new(api, key.public_key(), trust, memory)?;
    let seen = ::tokio::select! {
        seen = follower.begin(&context) => seen?,
        () = &mut stop => return Ok(()),
    };
    let withdrawn = withheld(&seen, kinds, &executors)?;
    let block_time = Duration::from_millis(seen.parameters.block_time_ms);
    let mut known = KnownValidators { targets: seen.targets.clone(), ..KnownValidators::default() };
    follower.tell(&mut known);
    let (learning, known) = watch::channel(known);
    let (phase, told) = watch::channel(seen.phase);
    let client = follower.client();
    let dialer = quic::QuicClient::bind(bind)?.dialer(tls::Identity::new(&key)?);
    let interval = polling::interval(block_time);
    let chain = follower.first_block().expect("it has looked");
    let pledges = Pledges::open(lock.folder().commitments_path(), chain)?;
    let node = RunnerConfig {
        chain_id: follower.chain_id().expect("it has looked"),
        key: key.clone(),
        known,
        agents,
        kinds: executors.kinds(),
        by_hand: executors.by_hand,
        withdrawn,
        max_concurrent_jobs: seen.entry.max_concurrent_jobs,
        polling: Some(Polling { client: client.clone(), phase: told, interval }),
        pledges: Some(Arc::new(pledges)),
    };
    let runner = start(context.child("runner"), node, dialer, executor);
    if let Some(most) = max_concurrent_jobs {
        // The chain goes by the registered limit; the runner reports being full at its own.
        runner.limit(most);
    }
    let activities = runner.subscribe();
    context.child("log").spawn(move |_| log(activities));
    let beating = client.clone();
    context
        .child("heartbeat")
        .spawn(move |context| heartbeat::keep(context, beating, key, block_time));

    let listener = http::bind(None).await.map_err(ProcessError::Control)?;
    let control_url = match listener.local_addr() {
        Ok(address) => format!("http://{address}"),
        Err(error) => return Err(ProcessError::Control(error)),
    };
    let token = new_token();
    let (sender, mut wishes) = mpsc::channel(WISHES);
    let name = lock.folder().name().to_string();
    let desk = ControlDesk { name, address, token: token.clone(), wishes: sender };
    let serving = server::start_router(listener, control::router(desk));
    let record = lock.announce(address.into(), control_url, &token)?;
    tracing::info!(name = %record.name, %address, devnet = %record.devnet, "running");
    ready(&record);

    let following = follower.follow(context.child("follow"), seen, learning, phase, runner.count());
    let mut following = pin!(following);
    let outcome = loop {
        ::tokio::select! {
            () = &mut stop => break Ok(()),
            error = &mut following => break Err(error.into()),
            Some(wish) = wishes.recv() => match wish {
                // The caller may have gone.
                Wish::Steer(steer, reply) => drop(reply.send(control::steer(&runner, &steer))),
                Wish::Stop => break Ok(()),
            },
        }
    };
    lock.clean()?;
    end(&context, runner, serving).await;
    outcome
}

/// The address of a socket that reaches the validators: on the loopback when all are there.
fn reaching(api: &Api) -> SocketAddr {
    let is_local =
        |place: &HostPort| matches!(place, HostPort::Address(at) if at.ip().is_loopback());
    let local = match api {
        Api::Devnet(_) | Api::Url(_) => true,
        Api::Nodes(NodeApis { listening, .. }) => listening.iter().all(|(_, at)| is_local(at)),
    };
    SocketAddr::from((if local { Ipv4Addr::LOCALHOST } else { Ipv4Addr::UNSPECIFIED }, 0))
}

/// Says goodbye, abandons the running jobs, and lets the last answers out.
async fn end(context: &tokio::Context, runner: Runner, serving: http::Serving) {
    tracing::info!("stopping");
    ::tokio::join!(runner.stop(context), serving.stop(CONTROL_GRACE));
    tracing::info!("stopped");
}

/// The registered kinds that the operator leaves out. Fails when a remaining kind is not registered
/// or lacks its executor.
fn withheld(
    seen: &SeenChain,
    kinds: Option<BTreeSet<JobKind>>,
    executors: &executor::Config,
) -> Result<BTreeSet<Ability>, ProcessError> {
    let known = |kind: &String| kind.parse().map_err(|error| follow::answer(&error));
    let registered: BTreeSet<JobKind> =
        seen.entry.kinds.iter().map(known).collect::<Result<_, _>>()?;
    let kinds = kinds.unwrap_or_else(|| registered.clone());
    if let Some(kind) = kinds.difference(&registered).next() {
        return Err(ProcessError::NotItsKind(*kind));
    }
    match kinds.iter().find_map(|kind| Some((*kind, executors.lacks(*kind)?))) {
        Some((kind, lacking)) => Err(ProcessError::CannotExecute { kind, lacking }),
        None => Ok(registered.difference(&kinds).copied().map(Ability::Kind).collect()),
    }
}

/// Logs the runner's activities. A validator that cannot be reached is mentioned once.
async fn log(mut activities: broadcast::Receiver<Activity>) {
    let mut connected = BTreeSet::new();
    loop {
        match activities.recv().await {
            Ok(Activity::Connected { validator }) => {
                tracing::info!(validator = %validator.address(), "connected");
                connected.insert(validator);
            }
            Ok(Activity::Disconnected { validator, reason }) => {
                if connected.remove(&validator) {
                    tracing::info!(validator = %validator.address(), reason, "disconnected");
                }
            }
            Ok(Activity::Started { job_id, .. }) => tracing::info!(%job_id, "job begun"),
            Ok(Activity::Finished { job_id, bytes }) => {
                tracing::info!(%job_id, bytes, "job done");
            }
            // Logged where it happens.
            Ok(Activity::Failed { .. }) => {}
            Ok(Activity::Stopped { job_id, reason }) => {
                let reason = reason.map_or("deadline", CancelReason::as_str);
                tracing::info!(%job_id, reason, "job taken back");
            }
            Err(broadcast::error::RecvError::Lagged(missed)) => {
                tracing::warn!(missed, "the log has missed activities");
            }
            Err(broadcast::error::RecvError::Closed) => return,
        }
    }
}
