//! `runner start`: runs a runner in its own process, here or in the background.

use super::registration::{cannot_execute, kind, refused};
use crate::{
    args,
    commands::{
        block_on,
        devnet::{daemon, launch},
        lease::ServerChoice,
        to_end, trust,
    },
    complete,
    context::{self, Context, Deadline},
    error::{CliError, Exit},
    output::{Document, fields, named},
};
use clap::{ArgGroup, Args};
use clap_complete::ArgValueCandidates;
use cowboy_devnet::{
    client::{Access, Client, ClientError},
    consensus::{PROTOCOL, scheme::Committee},
    executor::{self, Executor},
    handout::{GenesisDocument, PeersError},
    orchestrator::home::{DevnetHome, DevnetState},
    pool::Pool,
    runner::{
        folder::{RunnerFolder, RunnerLock, RunnerRecord},
        follow::{Api, FollowError, NodeApis},
        key,
        process::{self, ProcessConfig, ProcessError},
        trust::TrustRoot,
    },
    topology::{MAX_CONCURRENT_JOBS, Name, load_executors},
    types::{AddressText, BytesText, ChainIdText, ErrorCode},
};
use cowboy_engine::{primitives::SecretKey, registry::JobKind};
use cowboy_lease::client as lease;
use serde::Serialize;
use std::{
    env,
    ffi::{OsStr, OsString},
    fs::OpenOptions,
    io,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};
use tokio::process::{Child, Command};

/// The time that each of several nodes has to answer first.
const FIRST_ANSWER: Duration = Duration::from_secs(2);

/// `runner start`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("reached").args(["rpc_url", "peers"])))]
pub struct Start {
    /// A stopped runner of the devnet's own process: a name or an address
    #[arg(required_unless_present = "key_file", conflicts_with = "key_file")]
    #[arg(add = ArgValueCandidates::new(complete::runners))]
    runner: Option<String>,
    /// Run the registered holder of this key in its own process
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// With --key-file: the runner's name for other commands [default: the key file's name]
    #[arg(long, conflicts_with = "runner")]
    name: Option<Name>,
    /// With --key-file: the devnet's API, instead of the current devnet
    #[arg(long, value_name = "URL", conflicts_with = "runner")]
    rpc_url: Option<String>,
    /// With --rpc-url or --peers: the genesis document of the chain, to check what they say about
    /// its validators
    #[arg(long, value_name = "FILE", requires = "reached")]
    #[arg(conflicts_with_all = ["runner", "validator"])]
    genesis: Option<PathBuf>,
    /// With --genesis: join nodes in processes of their own, which have their places and those of
    /// their APIs in this file, instead of the current devnet
    #[arg(long, value_name = "FILE", requires = "genesis")]
    peers: Option<PathBuf>,
    /// With --peers: a file with the token that https APIs ask for
    #[arg(long, value_name = "FILE", requires = "peers")]
    api_token_file: Option<PathBuf>,
    /// With --peers: CA certificates, PEM, to verify https APIs with instead of the system's
    #[arg(long, value_name = "FILE", requires = "peers")]
    api_ca: Option<PathBuf>,
    /// With --key-file: trust this validator, by its consensus key, and the validators that it
    /// vouches for; repeat it for each validator of an epoch [default: those of the current
    /// devnet's topology; with --rpc-url those that the API names first]
    #[arg(long, value_name = "KEY")]
    #[arg(requires = "chain_id", value_delimiter = ',', conflicts_with = "runner")]
    validator: Vec<BytesText>,
    /// With --validator: the chain that those validators vote on
    #[arg(long, value_name = "ID", requires = "validator", conflicts_with = "runner")]
    chain_id: Option<ChainIdText>,
    /// With --key-file: the kinds of jobs it takes [default: as registered]
    #[arg(long, value_name = "KIND,KIND", value_delimiter = ',', value_parser = kind)]
    #[arg(conflicts_with = "runner", add = ArgValueCandidates::new(complete::job_kinds))]
    kinds: Option<Vec<JobKind>>,
    /// With --key-file: a file that configures executors beyond requests and commands, with the
    /// contents of `runners[].executors` in a topology
    #[arg(long, value_name = "FILE", conflicts_with = "runner")]
    executors: Option<PathBuf>,
    /// With --key-file: let `http` jobs reach this machine's loopback, like `http.allow_loopback`
    /// among the executors
    #[arg(long, conflicts_with = "runner")]
    allow_loopback: bool,
    /// With --key-file: the lease server for its jobs with `--delivery lease` [default: the current
    /// devnet's; with --rpc-url none]
    #[arg(long, value_name = "URL", conflicts_with = "runner", requires = "lease_token_file")]
    lease_server: Option<String>,
    /// With --lease-server: a file with its operator's token
    #[arg(long, value_name = "FILE", conflicts_with = "runner", requires = "lease_server")]
    lease_token_file: Option<PathBuf>,
    /// With --lease-server: CA certificates, PEM, to verify it with instead of the system's
    #[arg(long, value_name = "FILE", conflicts_with = "runner", requires = "lease_server")]
    lease_ca: Option<PathBuf>,
    /// With --key-file: maximum number of jobs at a time [default: as registered]
    #[arg(long, value_name = "N", conflicts_with = "runner")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=MAX_CONCURRENT_JOBS as i64))]
    max_jobs: Option<u32>,
    /// With --key-file: run errands for the agent with this address; repeat it for each agent
    /// [default: none]
    #[arg(long, value_name = "ADDRESS", conflicts_with = "runner", value_delimiter = ',')]
    agent: Vec<AddressText>,
    /// With --key-file: run it in the background, and return when it is running
    #[arg(long)]
    detach: bool,
    /// With --detach: maximum time to wait
    #[arg(long, value_parser = args::duration, value_name = "DURATION", default_value = "60s")]
    timeout: Duration,
    /// This is the background process: its output is the runner's log
    #[arg(long, hide = true, conflicts_with = "runner")]
    daemon: bool,
    /// This is a process of a devnet: it logs to its folder and ends when its input does
    #[arg(long, hide = true, conflicts_with_all = ["runner", "daemon", "detach"])]
    supervised: bool,
}

/// A runner in its own process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Started {
    #[cfg_attr(test, schema(value_type = String))]
    name: Name,
    address: AddressText,
    #[cfg_attr(test, schema(value_type = String))]
    devnet: Name,
    pid: u32,
    /// The URL for its operator's commands.
    control_url: String,
    /// Its folder.
    #[cfg_attr(test, schema(value_type = String))]
    home: PathBuf,
}

/// A runner that is ready to start, except for its lock.
struct Prepared {
    key: SecretKey,
    api: Api,
    trust: TrustRoot,
    folder: RunnerFolder,
    executors: executor::Config,
}

impl Start {
    pub fn run(self, cx: &Context) -> Result<(), CliError> {
        match (&self.key_file, &self.runner) {
            (Some(file), _) if self.detach && !self.daemon => to_end(self.detached(cx, file)),
            (Some(file), _) => self.here(cx, file),
            (None, Some(runner)) => {
                block_on(async { cx.ui.document(&cx.client()?.start_runner(runner).await?) })
            }
            (None, None) => unreachable!("one of the two is required"),
        }
    }

    fn here(&self, cx: &Context, file: &Path) -> Result<(), CliError> {
        let Prepared { key, api, trust, folder, executors } = to_end(self.prepare(cx, file))?;
        if self.daemon {
            // Fails only if the process already leads a session.
            let _leader = rustix::process::setsid();
        }
        let lock = taken(&folder)?;
        match self.daemon || self.supervised {
            true => launch::log_to_file(folder.log_path())?,
            false => launch::log_to_stderr()?,
        }
        let stop = launch::stop(self.supervised)?;
        let pool = self.pool(&api)?.map(|client| Arc::new(Pool::new(client)) as _);
        let config = ProcessConfig {
            lock,
            key,
            api,
            trust,
            kinds: self.kinds.as_ref().map(|kinds| kinds.iter().copied().collect()),
            max_concurrent_jobs: self.max_jobs,
            agents: self.agent.iter().map(|agent| **agent).collect(),
            executors,
            pool,
        };
        let (cx, daemon, shown) = (cx.clone(), self.daemon, folder.clone());
        let ready = move |record: &RunnerRecord| {
            // The output may be closed; the runner runs anyway.
            if !daemon && let Err(error) = cx.ui.document(&Started::of(record, &shown)) {
                tracing::debug!(%error, "not shown");
            }
        };
        process::run(config, Box::pin(stop), ready).map_err(|error| failure(error, file))?;
        match launch::interrupted() {
            true => Err(CliError::new(Exit::Interrupted, "interrupted; the runner has stopped")),
            false => Ok(()),
        }
    }

    /// What the runner trusts if it has no genesis document.
    fn trust(&self, api: &Api) -> Result<TrustRoot, CliError> {
        if let Some(chain_id) = self.chain_id {
            let (chain_id, keys) = (chain_id.0.0, trust::consensus_keys(&self.validator)?);
            Committee::of_keys(chain_id, &keys)
                .map_err(|error| CliError::new(Exit::Usage, error.to_string()))?;
            return Ok(TrustRoot::Validators { chain_id, keys });
        }
        match api {
            Api::Devnet(devnet) => Ok(TrustRoot::Genesis(Box::new(trust::root_of(devnet)?))),
            Api::Url(_) | Api::Nodes(_) => Ok(TrustRoot::FirstUse),
        }
    }

    fn pool(&self, api: &Api) -> Result<Option<lease::Client>, CliError> {
        if let Some(url) = &self.lease_server {
            let server = ServerChoice {
                server: Some(url.clone()),
                token_file: self.lease_token_file.clone(),
                ca: self.lease_ca.clone(),
                identity: None,
            };
            let token = server.token()?.unwrap_or_default();
            return Ok(Some(lease::Client::new(url, &token, &server.tls()?)?));
        }
        let Api::Devnet(devnet) = api else { return Ok(None) };
        let DevnetState::Running(record) = devnet.state()? else { return Ok(None) };
        let Some(url) = record.lease_url else { return Ok(None) };
        Ok(Some(lease::Client::new(&url, &devnet.token()?, &lease::Tls::default())?))
    }

    /// Starts the runner in the background and waits until it is running or has ended.
    async fn detached(&self, cx: &Context, file: &Path) -> Result<(), CliError> {
        let Prepared { folder, .. } = self.prepare(cx, file).await?;
        // Held for a moment: makes the folder, and fails if the runner is running.
        drop(taken(&folder)?);
        if self.rpc_url.is_some() && self.chain_id.is_none() && self.genesis.is_none() {
            cx.ui.note("only the API names the validators; to be sure: --validator and --chain-id");
        }
        let deadline = Deadline::after(self.timeout);
        let mut child = self.spawn(file, &folder)?;
        let (name, log) = (folder.name(), folder.log_path());
        let (who, awaited) = (format!("runner `{name}`"), format!("runner {name}"));
        let look = |id| Ok(folder.record()?.filter(|record| record.pid == id));
        let record =
            daemon::until_ready(cx, (&who, &log), &awaited, &mut child, deadline, look).await?;
        cx.ui.document(&Started::of(&record, &folder))
    }

    /// Checks everything that can be wrong, so that the runner's own process does not have to
    /// report it.
    async fn prepare(&self, cx: &Context, file: &Path) -> Result<Prepared, CliError> {
        let executors = self.executors.as_deref().map(load_executors).transpose()?;
        let mut executors = executors.unwrap_or_default();
        executors.http.allow_loopback |= self.allow_loopback;
        // Report a key that is missing from the environment here.
        Executor::new(&executors).map_err(|error| failure(error.into(), file))?;
        let key = key::read(file).map_err(refused)?;
        let Joined { api, trust, devnet, client } = self.joined(cx).await?;
        let address = AddressText::from(key.address());
        match client.runner(&address.to_string()).await {
            Err(error) if error.code() == Some(ErrorCode::NotFound) => {
                return Err(failure(FollowError::NotRegistered(*address).into(), file));
            }
            other => drop(other?),
        }
        let folder = RunnerFolder::of(&devnet, &self.name(file)?);
        if let Some(own) =
            RunnerFolder::running_at(&devnet)?.iter().find(|own| own.address == address)
        {
            return Err(runs_already(own.name.as_str()));
        }
        if self.supervised {
            return Ok(Prepared { key, api, trust, folder, executors });
        }
        // A runner of the devnet's process may have the name or the key.
        for known in [folder.name().to_string(), address.to_string()] {
            match client.runner_load(&known).await {
                Ok(load) if load.address != address => {
                    let what = format!("the devnet's own process has a runner `{known}`");
                    return Err(CliError::new(Exit::Conflict, what)
                        .hint("choose another name: --name NAME"));
                }
                Ok(load) if load.running => return Err(runs_already(&load.name)),
                Ok(_) => {}
                Err(error) if error.code() == Some(ErrorCode::NotFound) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Prepared { key, api, trust, folder, executors })
    }

    /// The chain to join, by the options.
    async fn joined(&self, cx: &Context) -> Result<Joined, CliError> {
        if let (Some(genesis), Some(peers)) = (&self.genesis, &self.peers) {
            let access = Access {
                token: self.api_token_file.as_deref().map(args::token).transpose()?,
                roots: self.api_ca.as_deref().map(args::pem).transpose()?,
            };
            return nodes(genesis, peers, access).await;
        }
        let (api, devnet, client) = match &self.rpc_url {
            None => {
                let devnet = cx.running(None)?;
                (Api::Devnet(devnet.clone()), devnet.clone(), Client::of_devnet(&devnet)?)
            }
            Some(url) => {
                let client = Client::new(url)?.of_protocol(PROTOCOL);
                let name: Name = client.status().await?.name.parse().map_err(|error| {
                    CliError::failed(format!("{url}: the devnet's name is invalid: {error}"))
                })?;
                (Api::Url(url.clone()), context::home()?.devnet(&name), client)
            }
        };
        let trust = match &self.genesis {
            Some(genesis) => root(&trust::loaded(genesis)?, genesis)?,
            None => self.trust(&api)?,
        };
        Ok(Joined { api, trust, devnet, client })
    }

    fn name(&self, file: &Path) -> Result<Name, CliError> {
        if let Some(name) = &self.name {
            return Ok(name.clone());
        }
        let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        stem.parse().map_err(|error| {
            CliError::new(Exit::Usage, format!("the key file's name cannot name a runner: {error}"))
                .hint("choose one: --name NAME")
        })
    }

    /// Starts this program again, with its output in the runner's log.
    fn spawn(&self, file: &Path, folder: &RunnerFolder) -> Result<Child, CliError> {
        let io = |error: io::Error| CliError::failed(format!("the runner's process: {error}"));
        let path = folder.log_path();
        // Truncated now and then opened for appending, also by the process' own log.
        let opened = OpenOptions::new().write(true).create(true).truncate(true).open(&path);
        drop(opened.map_err(io)?);
        let log = OpenOptions::new().append(true).open(&path).map_err(io)?;
        let mut command = Command::new(env::current_exe().map_err(io)?);
        command.args(["runner", "start", "--daemon", "--name", folder.name().as_str()]);
        command.arg("--key-file").arg(file);
        match (&self.rpc_url, &self.genesis) {
            (Some(url), _) => command.args(["--rpc-url", url]),
            (None, None) => command.args(["--devnet", folder.devnet().as_str()]),
            (None, Some(_)) => &mut command,
        };
        let kinds = self.kinds.as_ref().map(|kinds| {
            let names: Vec<_> = kinds.iter().map(|kind| kind.name()).collect();
            names.join(",").into()
        });
        let path = |path: &Option<PathBuf>| path.clone().map(OsString::from);
        let options = [
            ("--chain-id", self.chain_id.map(|id| id.to_string().into())),
            ("--kinds", kinds),
            ("--genesis", path(&self.genesis)),
            ("--peers", path(&self.peers)),
            ("--api-token-file", path(&self.api_token_file)),
            ("--api-ca", path(&self.api_ca)),
            ("--executors", path(&self.executors)),
            ("--lease-server", self.lease_server.clone().map(OsString::from)),
            ("--lease-token-file", path(&self.lease_token_file)),
            ("--lease-ca", path(&self.lease_ca)),
            ("--max-jobs", self.max_jobs.map(|most| most.to_string().into())),
        ];
        for (option, value) in options {
            command.args(value.iter().flat_map(|value| [OsStr::new(option), value]));
        }
        for key in &self.validator {
            command.args(["--validator", &key.to_string()]);
        }
        for agent in &self.agent {
            command.args(["--agent", &agent.to_string()]);
        }
        command.args(self.allow_loopback.then_some("--allow-loopback"));
        daemon::in_background(command, Stdio::null(), log).map_err(io)
    }
}

/// A chain that a runner joins.
struct Joined {
    api: Api,
    trust: TrustRoot,
    /// The devnet's folder, for the runner's own.
    devnet: DevnetHome,
    client: Client,
}

/// The chain of nodes in processes of their own. The first node that answers is asked first.
async fn nodes(genesis: &Path, peers: &Path, access: Access) -> Result<Joined, CliError> {
    let document = trust::loaded(genesis)?;
    let places = trust::places(peers)?;
    let source = peers.display();
    let unfit = |error: PeersError| CliError::new(Exit::Usage, format!("{source}: {error}"));
    let listening = places.of(&document).map_err(unfit)?;
    let listening = listening
        .into_iter()
        .map(|(validator, place)| (validator.pubkey.clone(), place.quic.clone()))
        .collect();
    let mut urls = places.apis();
    if urls.is_empty() {
        let what = format!("{source}: no validator has an `api`");
        return Err(CliError::new(Exit::Usage, what)
            .hint("a runner asks one for its registration and its jobs' terms: add api: URL"));
    }
    let secure = |url: &String| url.starts_with("https:");
    if urls.iter().any(secure) && !urls.iter().all(secure) {
        let what = format!("{source}: some APIs are http, some https");
        return Err(CliError::new(Exit::Usage, what).hint("leave out those of one kind"));
    }
    let client = Client::with_access(&urls[0], access.clone())?.of_protocol(PROTOCOL);
    for _ in 1..urls.len() {
        let answer = client.clone().with_timeout(FIRST_ANSWER).parameters().await;
        let Err(
            ClientError::Unreachable { .. }
            | ClientError::Timeout { .. }
            | ClientError::OtherVersion { .. },
        ) = answer
        else {
            break;
        };
        urls.rotate_left(1);
        client.move_to(&urls[0])?;
    }
    Ok(Joined {
        api: Api::Nodes(NodeApis { urls, listening, access }),
        trust: root(&document, genesis)?,
        devnet: context::home()?.devnet(&document.name),
        client,
    })
}

fn root(document: &GenesisDocument, file: &Path) -> Result<TrustRoot, CliError> {
    let root = document.root(file.display().to_string());
    let root = root.map_err(|error| CliError::failed(error.to_string()))?;
    Ok(TrustRoot::Genesis(Box::new(root)))
}

fn taken(folder: &RunnerFolder) -> Result<RunnerLock, CliError> {
    folder.lock()?.ok_or_else(|| runs_already(folder.name().as_str()))
}

fn runs_already(name: &str) -> CliError {
    CliError::new(Exit::Conflict, format!("runner `{name}` is already running"))
        .hint(format!("stop it: cowboyctl runner stop {name}"))
}

fn failure(error: ProcessError, file: &Path) -> CliError {
    let what = error.to_string();
    let register = format!("cowboyctl runner register --key-file {}", file.display());
    match error {
        ProcessError::Follow(FollowError::Client(error)) => error.into(),
        ProcessError::Follow(FollowError::NotRegistered(_)) => {
            CliError::new(Exit::NotFound, what).hint(format!("register it: {register}"))
        }
        ProcessError::Follow(FollowError::OtherChain { .. }) => CliError::new(Exit::Conflict, what)
            .hint(format!("register it there and start it again: {register}")),
        ProcessError::Follow(FollowError::Empty) => {
            CliError::failed(what).hint("wait for it: cowboyctl chain wait 1")
        }
        ProcessError::Follow(FollowError::Untrusted(_)) => CliError::new(Exit::Invalid, what)
            .hint("name the present validators, from a source that you trust: --validator KEY"),
        ProcessError::Follow(FollowError::OtherRoot(file)) => CliError::new(Exit::Conflict, what)
            .hint(format!("if the chain is meant to be another: rm {}", file.display())),
        ProcessError::Follow(FollowError::Verification(error)) => (*error).into(),
        ProcessError::CannotExecute { kind, lacking } => cannot_execute(kind, lacking),
        ProcessError::NotItsKind(_) | ProcessError::Executors(_) => {
            CliError::new(Exit::Usage, what)
        }
        ProcessError::Follow(FollowError::Home(error)) | ProcessError::Home(error) => error.into(),
        ProcessError::Follow(FollowError::Answer(_))
        | ProcessError::Tls(_)
        | ProcessError::Transport(_)
        | ProcessError::Control(_) => CliError::failed(what),
    }
}

impl Started {
    fn of(record: &RunnerRecord, folder: &RunnerFolder) -> Self {
        Self {
            name: record.name.clone(),
            address: record.address,
            devnet: record.devnet.clone(),
            pid: record.pid,
            control_url: record.control_url.clone(),
            home: folder.path().to_owned(),
        }
    }
}

impl Document for Started {
    fn text(&self) -> String {
        fields(&[
            ("runner", named(Some(self.name.as_str()), &self.address)),
            ("devnet", self.devnet.to_string()),
            ("process", self.pid.to_string()),
            ("control", self.control_url.clone()),
            ("home", self.home.display().to_string()),
        ])
    }

    fn id(&self) -> String {
        self.name.to_string()
    }
}
