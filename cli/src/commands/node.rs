//! `node`: one validator in a process of its own.

use super::{
    block_on,
    devnet::{daemon, launch},
    trust,
};
use crate::{
    args,
    context::{self, Context, Deadline},
    error::{CliError, Exit},
    output::{Document, fields},
};
use clap::{Args, Subcommand};
use cowboy_devnet::{
    handout::{GenesisDocument, Peers, ValidatorPlace, Versions},
    orchestrator::{
        home::{DevnetHome, DevnetRecord, DevnetState, HomeError},
        node::{self, ListenAddresses, NodeConfig, NodeOptions, OutsideApi},
    },
    runner::key,
    storage::Keep,
    topology::{Name, Reserve},
    types::ChainIdText,
};
use cowboy_engine::primitives::SecretKey;
use cowboy_host::host_port::HostPort;
use serde::Serialize;
use std::{
    env, io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    process::Stdio,
    time::Duration,
};
use tokio::process::{Child, Command};

#[derive(Debug, Subcommand)]
pub enum Node {
    /// Run one validator in this process, with the genesis document, its key and its peers
    ///
    /// The files come from `devnet export nodes`. Its folder lies among the devnets' and has the
    /// validator's name, so that `--devnet NAME` lets every command read this node. It ends on
    /// Ctrl-C, SIGTERM or `devnet down NAME`, and continues with its chain when started again.
    Run(Box<NodeRun>),
    /// Print the versions of what this program speaks and writes
    ///
    /// Nodes of one chain need the same protocol; a validator goes on only with a store of its
    /// program's format.
    Version,
}

/// `node run`.
#[derive(Debug, Args)]
pub struct NodeRun {
    /// The genesis document of the chain
    #[arg(long, value_name = "FILE")]
    genesis: PathBuf,
    /// The places of the chain's validators
    #[arg(long, value_name = "FILE")]
    peers: PathBuf,
    /// The validator's key
    #[arg(long, value_name = "FILE")]
    key_file: PathBuf,
    /// The node's name for other commands [default: the validator's name]
    #[arg(long)]
    name: Option<Name>,
    /// Listen here for validators [default: its p2p address among the peers, or this port of every
    /// address]
    #[arg(long, value_name = "ADDRESS:PORT")]
    p2p: Option<SocketAddr>,
    /// Listen here for runners [default: its quic address among the peers, or this port of every
    /// address]
    #[arg(long, value_name = "ADDRESS:PORT")]
    quic: Option<SocketAddr>,
    /// The port of the control API, on the loopback [default: that of its http `api` among the
    /// peers, else a free one]
    #[arg(long, value_name = "PORT")]
    api_port: Option<u16>,
    /// Answer requests of other hosts here [default: the port of its https `api` among the peers,
    /// of every address; without one none are answered]
    #[arg(long, value_name = "ADDRESS:PORT", requires = "tls_cert")]
    api: Option<SocketAddr>,
    /// For other hosts: the API's certificate, followed by its chain, PEM
    #[arg(long, value_name = "FILE", requires_all = ["tls_key", "api_token_file"])]
    tls_cert: Option<PathBuf>,
    /// For other hosts: the certificate's key, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// For other hosts: a file with the token that their requests show; it allows no changes
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    api_token_file: Option<PathBuf>,
    /// How much of the chain to keep, as `storage.keep` of a topology [default: 4GB]
    #[arg(long, value_name = "SIZE", value_parser = args::field::<Keep>)]
    keep: Option<Keep>,
    /// Free disk space below which it pauses, as `storage.reserve` of a topology [default: 256MB]
    #[arg(long, value_name = "SIZE", value_parser = args::field::<Reserve>)]
    reserve: Option<Reserve>,
    /// Start without the stored chain, which it fetches from the others
    #[arg(long)]
    resync: bool,
    /// Run it in the background, and return when its API answers
    #[arg(long)]
    detach: bool,
    /// With --detach: maximum time to wait
    #[arg(long, value_parser = args::duration, value_name = "DURATION", default_value = "60s")]
    timeout: Duration,
    /// This is the background process: its output is the node's log
    #[arg(long, hide = true)]
    daemon: bool,
    /// This is a process of a devnet: it logs to its folder and ends when its input does
    #[arg(long, hide = true, conflicts_with_all = ["daemon", "detach"])]
    supervised: bool,
}

/// A running node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct StartedNode {
    /// Its name for `--devnet`.
    #[cfg_attr(test, schema(value_type = String))]
    name: Name,
    /// The devnet that it belongs to.
    #[cfg_attr(test, schema(value_type = String))]
    devnet: Name,
    chain_id: ChainIdText,
    pid: u32,
    /// The URL of its control API.
    rpc_url: String,
    /// Its folder.
    #[cfg_attr(test, schema(value_type = String))]
    home: PathBuf,
    /// The versions of what its program speaks and writes.
    versions: Versions,
}

/// A node that is ready to start, except for its lock.
struct PreparedNode {
    home: DevnetHome,
    document: GenesisDocument,
    peers: Peers,
    key: SecretKey,
    listen: ListenAddresses,
    outside: Option<OutsideApi>,
}

impl Node {
    pub fn run(self, cx: &Context) -> Result<(), CliError> {
        match self {
            Self::Run(run) if run.detach && !run.daemon => block_on(run.detached(cx)),
            Self::Run(run) => run.here(cx),
            Self::Version => cx.ui.document(&Versions::own()),
        }
    }
}

impl NodeRun {
    fn here(&self, cx: &Context) -> Result<(), CliError> {
        let PreparedNode { home, document, peers, key, listen, outside } = self.prepare()?;
        if self.daemon {
            // Fails only if the process already leads a session.
            let _leader = rustix::process::setsid();
        }
        let lock = home.lock()?;
        match self.daemon || self.supervised {
            true => launch::log_to_file(home.log_path())?,
            false => launch::log_to_stderr()?,
        }
        let stop = launch::stop(self.supervised)?;
        let devnet = document.name.clone();
        let (cx, daemon) = (cx.clone(), self.daemon);
        let ready = move |record: &DevnetRecord| {
            // The output may be closed; the node runs anyway.
            let shown = || cx.ui.document(&StartedNode::of(record, devnet, &home));
            if !daemon && let Err(error) = shown() {
                tracing::debug!(%error, "not shown");
            }
        };
        let (keep, reserve) = (self.keep.unwrap_or_default(), self.reserve.unwrap_or_default());
        let options = NodeOptions { keep, reserve, resync: self.resync };
        let config = NodeConfig { lock, key, document, peers, listen, outside, options };
        node::run(config, Box::pin(stop), ready).map_err(launch::failure)?;
        match launch::interrupted() {
            true => Err(CliError::new(Exit::Interrupted, "interrupted; the node has stopped")),
            false => Ok(()),
        }
    }

    /// Starts the node in the background, and waits until its API answers or it has ended.
    async fn detached(&self, cx: &Context) -> Result<(), CliError> {
        let PreparedNode { home, document, .. } = self.prepare()?;
        let deadline = Deadline::after(self.timeout);
        let mut child = self.spawn(&home)?;
        let (who, log) = (format!("node `{}`", home.name()), home.log_path());
        let awaited = format!("node {}", home.name());
        let look = |id| {
            Ok(match home.state()? {
                DevnetState::Running(record) if record.pid == id => Some(record),
                _ => None,
            })
        };
        let record =
            daemon::until_ready(cx, (&who, &log), &awaited, &mut child, deadline, look).await?;
        cx.ui.document(&StartedNode::of(&record, document.name, &home))
    }

    /// Reads the files and checks everything that can be wrong, so that a background process does
    /// not have to report it.
    fn prepare(&self) -> Result<PreparedNode, CliError> {
        let document = trust::loaded(&self.genesis)?;
        let peers = trust::places(&self.peers)?;
        let key = key::read(&self.key_file)
            .map_err(|error| CliError::new(Exit::Usage, error.to_string()))?;
        let unfit = |error| {
            CliError::new(Exit::Usage, format!("{}: {error}", self.peers.display()))
                .hint("the file lists every validator of the genesis document once")
        };
        let places = peers.of(&document).map_err(unfit)?;
        let validator = node::name_of(&document, &peers, &key).map_err(launch::failure)?;
        let own = places.iter().find(|(_, place)| place.name == validator);
        let (_, place) = own.expect("it lists every validator");
        let listen = self.listen(place)?;
        let outside = self.outside(place)?;
        let home = context::home()?.devnet(self.name.as_ref().unwrap_or(&validator));
        match home.state()? {
            DevnetState::Absent | DevnetState::Stopped | DevnetState::Died(_) => {}
            DevnetState::Starting { pid } => {
                return Err(HomeError::InUse { name: home.name().clone(), pid }.into());
            }
            DevnetState::Running(record) => {
                let what = format!("`{}` is already running", home.name());
                return Err(CliError::new(Exit::Conflict, what)
                    .detail(format!("process {} answers at {}", record.pid, record.rpc_url))
                    .hint(format!("stop it: cowboyctl devnet down {}", home.name())));
            }
        }
        Ok(PreparedNode { home, document, peers, key, listen, outside })
    }

    fn listen(&self, place: &ValidatorPlace) -> Result<ListenAddresses, CliError> {
        let at = |place: &HostPort| match place {
            HostPort::Address(address) => *address,
            HostPort::Name(_, port) => SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), *port),
        };
        let here = match self.api_place(place)? {
            Some(ApiPlace::Here(port)) => Some(port),
            Some(ApiPlace::Outside(_)) | None => None,
        };
        let api_port = self.api_port.or(here).unwrap_or(0);
        Ok(ListenAddresses {
            p2p: self.p2p.unwrap_or_else(|| at(&place.p2p)),
            quic: self.quic.unwrap_or_else(|| at(&place.quic)),
            api: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), api_port),
        })
    }

    /// Where the node's control API is reached, according to the peers.
    fn api_place(&self, place: &ValidatorPlace) -> Result<Option<ApiPlace>, CliError> {
        let Some(url) = &place.api else { return Ok(None) };
        let refused = |what: &str| {
            CliError::new(Exit::Usage, format!("{}: `{url}` {what}", self.peers.display()))
        };
        let (scheme, rest) = url.split_once("://").unwrap_or_default();
        let at: HostPort = rest.trim_end_matches('/').parse().map_err(|_| {
            refused("is not an address of an API").hint("expected https://HOST:PORT")
        })?;
        let is_here = match &at {
            HostPort::Address(address) => address.ip().is_loopback(),
            HostPort::Name(name, _) => name == "localhost",
        };
        match scheme {
            "https" => Ok(Some(ApiPlace::Outside(at.port()))),
            "http" if is_here => Ok(Some(ApiPlace::Here(at.port()))),
            "http" => Err(refused("is open to all who reach it")
                .hint("beyond the loopback an API has TLS and a token: https://HOST:PORT")),
            _ => Err(refused("is not an address of an API").hint("expected https://HOST:PORT")),
        }
    }

    fn outside(&self, place: &ValidatorPlace) -> Result<Option<OutsideApi>, CliError> {
        let port = match self.api_place(place)? {
            Some(ApiPlace::Outside(port)) => Some(port),
            _ => None,
        };
        let every = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port);
        let Some(address) = self.api.or(port.map(every)) else { return Ok(None) };
        let (Some(certificate), Some(key), Some(token)) =
            (&self.tls_cert, &self.tls_key, &self.api_token_file)
        else {
            let what = format!("the control API at {address} needs a certificate and a token");
            return Err(CliError::new(Exit::Usage, what)
                .hint("give it --tls-cert FILE --tls-key FILE --api-token-file FILE"));
        };
        let tls = args::tls(certificate, key, None)?;
        Ok(Some(OutsideApi { address, tls, token: args::token(token)? }))
    }

    /// Starts this program again, with its output in the node's log.
    fn spawn(&self, home: &DevnetHome) -> Result<Child, CliError> {
        let io = |error: io::Error| CliError::failed(format!("the node's process: {error}"));
        // Held for a moment: makes the folder, and fails if the node is running.
        let lock = home.lock()?;
        let log = launch::fresh_log(home)?;
        drop(lock);
        let mut command = Command::new(env::current_exe().map_err(io)?);
        command.args(["node", "run", "--daemon", "--name", home.name().as_str()]);
        command.arg("--genesis").arg(&self.genesis).arg("--peers").arg(&self.peers);
        command.arg("--key-file").arg(&self.key_file);
        let address = |address: Option<SocketAddr>| address.map(|address| address.to_string());
        let options = [
            ("--p2p", address(self.p2p)),
            ("--quic", address(self.quic)),
            ("--api-port", self.api_port.map(|port| port.to_string())),
            ("--api", address(self.api)),
            ("--keep", self.keep.as_ref().map(args::text_of)),
            ("--reserve", self.reserve.as_ref().map(args::text_of)),
        ];
        for (option, value) in options {
            if let Some(value) = value {
                command.args([option, &value]);
            }
        }
        if self.resync {
            command.arg("--resync");
        }
        let files = [
            ("--tls-cert", &self.tls_cert),
            ("--tls-key", &self.tls_key),
            ("--api-token-file", &self.api_token_file),
        ];
        for (option, file) in files {
            if let Some(file) = file {
                command.arg(option).arg(file);
            }
        }
        daemon::in_background(command, Stdio::null(), log).map_err(io)
    }
}

/// Where a control API is reached: its port.
enum ApiPlace {
    /// On this host only.
    Here(u16),
    /// By other hosts.
    Outside(u16),
}

impl StartedNode {
    fn of(record: &DevnetRecord, devnet: Name, home: &DevnetHome) -> Self {
        Self {
            name: record.name.clone(),
            devnet,
            chain_id: record.chain_id,
            pid: record.pid,
            rpc_url: record.rpc_url.clone(),
            home: home.path().to_owned(),
            versions: Versions::own(),
        }
    }
}

impl Document for StartedNode {
    fn text(&self) -> String {
        fields(&[
            ("node", self.name.to_string()),
            ("devnet", self.devnet.to_string()),
            ("chain", self.chain_id.to_string()),
            ("control API", self.rpc_url.clone()),
            ("home", self.home.display().to_string()),
            ("process", self.pid.to_string()),
        ])
    }

    fn id(&self) -> String {
        self.name.to_string()
    }
}

impl Document for Versions {
    fn text(&self) -> String {
        fields(&[
            ("version", self.version.clone()),
            ("protocol", self.protocol.to_string()),
            ("store", self.store.to_string()),
            ("API", self.api.to_string()),
        ])
    }

    fn id(&self) -> String {
        self.version.clone()
    }
}
