//! The life of one validator in a process of its own.
//!
//! It is given the genesis document of its chain, its key and the places of the other validators,
//! and asks for nothing else. Its folder has the layout of a devnet's with one validator, and its
//! control API is a devnet's that runs that validator only, so that every command that reads a
//! devnet reads a node as well.

use super::{
    OrchestratorError,
    event_loop::Supervisor,
    expiry, files,
    home::{DevnetRecord, HomeError, Lock},
    members::{Member, Members},
    nodes::NodesConfig,
    run::{API_GRACE, labels, runtime, token},
    space,
};
use crate::{
    api::{
        backend::{self, Backend, Elsewhere, Hooks, SaveError},
        error::shown,
        server,
    },
    consensus::{faulty, network::Peer},
    faults::{Faults, Tap},
    handout::{GenesisDocument, Peers},
    storage::Keep,
    topology::{Name, NameError, Reserve},
    types::{ChainId, NodePeer, NodePeers, Text},
    validator::keys::ValidatorKeys,
};
use ::tokio::{net::TcpListener, sync::watch, time::sleep};
use commonware_codec::{Copying, DecodeExt as _};
use commonware_cryptography::ed25519::PublicKey;
use commonware_runtime::{Runner as _, Spawner as _, Supervisor as _, tokio};
use cowboy_engine::{
    chain::GenesisValidator,
    primitives::{Address, SecretKey},
};
use cowboy_host::{
    files::create_private_dir,
    host_port::HostPort,
    http::{Serving, tls::Acceptor},
    last_words,
};
use futures::future::{BoxFuture, join_all};
use jiff::Timestamp;
use std::{collections::BTreeSet, fmt, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

/// The consensus keys of validators, and where each is.
type Places = Vec<(PublicKey, HostPort)>;

/// How often the names of other validators' hosts are looked up again. The system does not notify
/// of changes, and a validator that has moved is away for at least as long.
const LOOK_UP: Duration = Duration::from_secs(5);

/// The parameters of a node.
pub struct NodeConfig {
    pub lock: Lock,
    pub key: SecretKey,
    pub document: GenesisDocument,
    /// Where all validators of the chain are reached, this one included.
    pub peers: Peers,
    /// The addresses that this one listens on.
    pub listen: ListenAddresses,
    /// The control API for other hosts; `None`: only this host asks it.
    pub outside: Option<OutsideApi>,
    pub options: NodeOptions,
}

/// A control API that other hosts reach.
pub struct OutsideApi {
    pub address: SocketAddr,
    pub tls: Acceptor,
    /// The token that its requests show. It allows no change of state.
    pub token: String,
}

/// A node's use of its disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NodeOptions {
    /// How much of the chain it keeps.
    pub keep: Keep,
    /// Free space to keep on its disk.
    pub reserve: Reserve,
    /// Whether it starts without its stored chain, which it fetches from the others.
    pub resync: bool,
}

/// The addresses that a node listens on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenAddresses {
    /// For other validators.
    pub p2p: SocketAddr,
    /// For runners.
    pub quic: SocketAddr,
    /// For the control API.
    pub api: SocketAddr,
}

/// The name of the validator that has this key.
pub fn name_of(
    document: &GenesisDocument,
    peers: &Peers,
    key: &SecretKey,
) -> Result<Name, OrchestratorError> {
    let (public, address) = (ValidatorKeys::from(key.clone()).public(), key.address());
    let validators = peers.of(document)?;
    let own = validators.iter().find(|(validator, _)| *validator == public);
    own.map(|(_, place)| place.name.clone()).ok_or(OrchestratorError::NoValidator { address })
}

/// Runs a node in this process until `stop` resolves, its API is asked to stop it, or its validator
/// dies. `ready` is called once the validator runs and the API answers.
pub fn run(
    config: NodeConfig,
    stop: BoxFuture<'static, ()>,
    ready: impl FnOnce(&DevnetRecord) + Send,
) -> Result<(), OrchestratorError> {
    let home = config.lock.home().clone();
    if !config.listen.api.ip().is_loopback() {
        return Err(OrchestratorError::OpenApi { address: config.listen.api });
    }
    let genesis = &config.document.genesis;
    let nodes = (genesis.validators.len() as u64, genesis.runners.len() as u64);
    files::prepare(files::needed_for_one(nodes.0, nodes.1))?;
    last_words::keep();
    claim(&config)?;
    if let Some(short) = space::short(&home, config.options.reserve.0, 0) {
        return Err(OrchestratorError::Space(short));
    }
    create_private_dir(&home.data_path())?;
    runtime(&home).start(|context| live(context, config, stop, ready))
}

/// Marks the folder as that of a node of this chain; fails if it is another one's.
fn claim(config: &NodeConfig) -> Result<(), OrchestratorError> {
    let (home, document) = (config.lock.home(), &config.document);
    let folder = home.path().to_owned();
    if home.is_of_node() {
        let kept = GenesisDocument::load(&home.genesis_path())?;
        let id = |document: &GenesisDocument| Text(ChainId(document.genesis.chain_id()));
        if id(&kept) != id(document) && home.has_chain() {
            let (got, expected) = (id(&kept).to_string(), id(document).to_string());
            return Err(OrchestratorError::OtherChain { folder, got, expected });
        }
    } else if home.has_chain() || home.topology()?.is_some() {
        return Err(OrchestratorError::OfDevnet { folder });
    }
    Ok(config.lock.write_genesis(&document.to_json())?)
}

async fn live(
    context: tokio::Context,
    config: NodeConfig,
    mut stop: BoxFuture<'static, ()>,
    ready: impl FnOnce(&DevnetRecord),
) -> Result<(), OrchestratorError> {
    let NodeConfig { lock, key, document, peers, listen, outside, options } = config;
    let NodeOptions { keep, reserve, .. } = options;
    lock.clean()?;
    let home = lock.home().clone();
    let name = name_of(&document, &peers, &key)?;
    let places = peers.of(&document)?;
    let faults = Faults::new(0);
    let mut others = Vec::new();
    for (validator, place) in &places {
        if place.name != name {
            // By these the faults of this process know the others' messages.
            let tap = Tap::new(faults.clone(), place.name.as_str());
            tap.sit(faulty::seat(&consensus_key(validator)));
            others.push((place.name.to_string(), validator.pubkey.address()));
        }
    }
    let watched: Places = places
        .iter()
        .map(|(validator, place)| (consensus_key(validator), place.p2p.clone()))
        .collect();
    let known = look_up(&watched, &[]).await;
    let sender = watch::Sender::new(known);
    let (watched, watching) = watch::channel(watched);
    context.child("peers").spawn({
        let sender = sender.clone();
        move |_| keep_looking_up(watching, sender)
    });
    let tapped = (faults.clone(), name.clone());

    let token = token(&lock)?;
    let listener = api_listener(listen.api).await?;
    let outside = match outside {
        Some(outside) => Some((api_listener(outside.address).await?, outside)),
        None => None,
    };
    let bound = listener.local_addr().map_err(HomeError::io(home.path()))?;
    let rpc_url = format!("http://{bound}");
    let (supervisor, requests) = Supervisor::channel();
    let keys = ValidatorKeys::from(key);
    let started_at = Timestamp::now();
    let named = Named::of(&document);
    let backend = Arc::new(Backend::new(backend::BackendConfig {
        name: document.name.to_string(),
        genesis: document.genesis.clone(),
        block_time: document.block_time,
        clock: Box::new(|| u64::try_from(Timestamp::now().as_millisecond()).unwrap_or(0)),
        pid: std::process::id(),
        started_at,
        token,
        accounts: named.accounts,
        validators: vec![(name.to_string(), keys.public())],
        runners: Vec::new(),
        elsewhere: Elsewhere { validators: others, runners: named.runners },
        labels: labels(&home)?,
        compat: false,
        faults,
        hooks: Hooks {
            save: Box::new(|_| Box::pin(async { Err(no_snapshot()) })),
            peers: Box::new(move |peers| {
                let (faults, own) = &tapped;
                let mut places = Vec::new();
                for (peer, key, place) in read_peers(peers)? {
                    if peer != *own {
                        Tap::new(faults.clone(), peer.as_str()).sit(faulty::seat(&key));
                    }
                    places.push((key, place));
                }
                watched.send_replace(places);
                Ok(())
            }),
            ..supervisor.hooks()
        },
        speculation: None,
    })?);
    let member = Member { name: name.clone(), keys, p2p: listen.p2p, quic: listen.quic };
    let chain_id = document.genesis.chain_id();
    let supervised = requests.start(
        context.child("node"),
        NodesConfig {
            block_time: document.block_time,
            keep,
            reserve,
            runners: Vec::new(),
            agents: BTreeSet::new(),
            home: home.clone(),
            genesis: Arc::new(document.genesis),
            members: Members::one(member, sender),
            backend: backend.clone(),
            rpc_url: rpc_url.clone(),
            agent: None,
            pool: None,
            lease_url: String::new(),
            handout: None,
            afresh: options.resync,
        },
    );
    let mut supervised = supervised.await?;
    let mut api = server::start(listener, backend.clone());
    let mut for_others = outside.map(|(listener, OutsideApi { tls, token, .. })| {
        server::start_for_others(listener, backend.clone(), tls, &token)
    });
    let expiry = context.child("expiry").spawn(move |_| expiry::watch(backend));
    let record = DevnetRecord {
        name: home.name().clone(),
        pid: std::process::id(),
        started_at: Text(started_at),
        rpc_url,
        lease_url: None,
        chain_id: Text(ChainId(chain_id)),
    };
    lock.write_record(&record)?;
    tracing::info!(validator = %name, devnet = %document.name, "running");
    ready(&record);

    let mut stopping = pin!(supervised.stopping());
    let failed = ::tokio::select! {
        biased;
        () = &mut stopping => None,
        () = &mut stop => None,
        failure = supervised.failure() => Some(failure),
        _ = expiry => {
            let (part, reason) = ("the task that heals faults", last_words::recent());
            Some(OrchestratorError::Ended { part, reason })
        }
        reason = api.ended() => Some(OrchestratorError::Ended { part: "the control API", reason }),
        reason = ended(for_others.as_mut()) => {
            Some(OrchestratorError::Ended { part: "the control API for other hosts", reason })
        }
    };
    if let Some(error) = &failed {
        tracing::error!(%error, "the node cannot continue");
    }
    tracing::info!("stopping");
    supervised.stop().await;
    if let Some(api) = for_others {
        api.stop(API_GRACE).await;
    }
    api.stop(API_GRACE).await;
    lock.clean()?;
    tracing::info!("stopped");
    failed.map_or(Ok(()), Err)
}

async fn api_listener(address: SocketAddr) -> Result<TcpListener, OrchestratorError> {
    let what = "the control API";
    let listening = TcpListener::bind(address).await;
    listening.map_err(|error| OrchestratorError::Listen { what, address, error })
}

async fn ended(api: Option<&mut Serving>) -> String {
    match api {
        Some(api) => api.ended().await,
        None => std::future::pending().await,
    }
}

/// The names of a document that are not validators'.
struct Named {
    accounts: Vec<(String, Address)>,
    runners: Vec<(String, Address)>,
}

impl Named {
    fn of(document: &GenesisDocument) -> Self {
        let genesis = &document.genesis;
        let named = document.names.iter().map(|(name, address)| (name.to_string(), *address));
        let is_runner = |address| genesis.runners.iter().any(|r| r.pubkey.address() == address);
        let is_validator =
            |address| genesis.validators.iter().any(|v| v.pubkey.address() == address);
        let (runners, others): (Vec<_>, Vec<_>) = named.partition(|(_, at)| is_runner(*at));
        let accounts = others.into_iter().filter(|(_, at)| !is_validator(*at)).collect();
        Self { accounts, runners }
    }
}

fn no_snapshot() -> SaveError {
    let what = "a snapshot is of a whole devnet, and this process runs one node of it";
    SaveError::Unsupported(what.to_owned())
}

fn consensus_key(validator: &GenesisValidator) -> PublicKey {
    PublicKey::decode(Copying(&validator.consensus_key)).expect("the genesis document was checked")
}

/// The addresses that validators have now. One whose name is not found keeps the address that it
/// had `before`.
async fn look_up(places: &[(PublicKey, HostPort)], before: &[Peer]) -> Vec<Peer> {
    let found = places.iter().map(async |(key, place)| {
        let known = before.iter().find(|peer| peer.key == *key).and_then(|peer| peer.address);
        let address = match place.resolve().await {
            Ok(address) => {
                if known.is_some_and(|known| known != address) {
                    tracing::info!(%place, %address, "a validator has moved");
                }
                Some(address)
            }
            Err(error) => {
                if known.is_none() {
                    tracing::warn!(%place, %error, "a validator's host is not found; looked up again");
                }
                known
            }
        };
        Peer { key: key.clone(), address }
    });
    join_all(found).await
}

/// The validators of a request, with their consensus keys and places.
fn read_peers(peers: &NodePeers) -> Result<Vec<(Name, PublicKey, HostPort)>, String> {
    let read = |peer: &NodePeer| {
        let told = |error: &dyn fmt::Display| format!("{}: {error}", shown(&peer.name));
        let name = peer.name.parse().map_err(|error: NameError| error.to_string())?;
        let key = PublicKey::decode(Copying(&peer.consensus_key.0.0));
        let place = peer.p2p.parse::<HostPort>().map_err(|error| told(&error))?;
        Ok((name, key.map_err(|error| told(&error))?, place))
    };
    peers.validators.iter().map(read).collect()
}

/// Tells of validators that come and go, and of those whose names lead to other addresses than
/// before. Never resolves.
async fn keep_looking_up(mut watched: watch::Receiver<Places>, told: watch::Sender<Vec<Peer>>) {
    loop {
        let places = watched.borrow_and_update().clone();
        let named = places.iter().any(|(_, place)| matches!(place, HostPort::Name(..)));
        let again = async {
            match named {
                true => sleep(LOOK_UP).await,
                false => std::future::pending().await,
            }
        };
        ::tokio::select! {
            // An error: the API has ended, and this with it.
            changed = watched.changed() => if changed.is_err() { std::future::pending().await },
            () = again => {}
        }
        let places = watched.borrow_and_update().clone();
        let before = told.borrow().clone();
        let now = look_up(&places, &before).await;
        told.send_if_modified(|known| {
            let differs = *known != now;
            *known = now;
            differs
        });
    }
}
