//! The network between validators: authenticated, encrypted connections over TCP.
//!
//! Every validator is told every other's key and address, so peers are looked up and not
//! discovered. Tests use a simulated network instead (`crate::simulation`).

use super::{
    channels::{Channels, Endpoint, max_message_size},
    introduction::Introduced,
};
use commonware_cryptography::{
    ChaCha20Poly1305, Signer as _,
    ed25519::{PrivateKey, PublicKey},
};
use commonware_p2p::{
    Address, AddressableManager as _, Blocker, Ingress, Provider, Receiver, Sender,
    authenticated::lookup,
};
use commonware_runtime::{
    Clock, Metrics, Network as RuntimeNetwork, Quota, Resolver, Spawner, Supervisor,
};
use commonware_stream::{
    SakeCups,
    cups::{self, Cups},
    sake::{self, Sake},
};
use commonware_utils::{Hostname, NZU32, NZUsize, ordered::Map};
use rand_core::CryptoRng;
use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener},
    num::NonZeroUsize,
    time::Duration,
};
use tokio::sync::watch;

/// The place of a peer whose address is unknown.
const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// Time limit for a previous run of the validator to release its port.
const LISTEN_WAIT: Duration = Duration::from_secs(2);

/// Why a validator has no network.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    #[error("cannot listen on {address}: {error}")]
    Listen { address: SocketAddr, error: std::io::Error },
    #[error("two validators have the same consensus key")]
    RepeatedKey,
    #[error("the simulated network refuses: {0}")]
    Simulated(String),
}

/// A way to connect a validator to the others.
pub trait Network<E>: Send + 'static {
    type Sender: Sender<PublicKey = PublicKey>;
    type Receiver: Receiver<PublicKey = PublicKey>;
    type Blocker: Blocker<PublicKey = PublicKey>;
    type Peers: Provider<PublicKey = PublicKey>;

    /// The network's tasks end with the task of `context`. `quota` applies to each peer on each
    /// channel.
    fn connect(
        self,
        context: E,
        quota: Quota,
    ) -> impl Future<Output = Result<EndpointOf<E, Self>, NetworkError>> + Send;
}

/// The endpoint that `N` connects.
pub type EndpointOf<E, N> = Endpoint<
    <N as Network<E>>::Sender,
    <N as Network<E>>::Receiver,
    <N as Network<E>>::Blocker,
    <N as Network<E>>::Peers,
>;

/// A validator's end of the network.
pub struct Tcp {
    pub key: PrivateKey,
    /// The chain's id: validators of different chains do not connect.
    pub chain_id: u64,
    /// The version of the protocol, usually [`PROTOCOL`](super::PROTOCOL): validators with
    /// different ones refuse each other.
    pub protocol: u32,
    pub listen: SocketAddr,
    /// Every validator, including this one, updated as validators come, go and move. At most
    /// [`JOINING`] may be added after it connects.
    pub peers: watch::Receiver<Vec<Peer>>,
}

/// A validator that others connect to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    pub key: PublicKey,
    /// `None`: its address is not known yet, but it may connect.
    pub address: Option<SocketAddr>,
}

/// Number of validators that may join while one runs; each reserves mailbox room for them at its
/// start.
pub const JOINING: usize = 16;

type Handshake = SakeCups<PrivateKey, ChaCha20Poly1305>;

/// Waits until `address` can be listened on, because a stopped validator releases its port a moment
/// later. The library panics if it cannot listen, so this checks first.
async fn listenable<E: Clock>(context: &E, address: SocketAddr) -> Result<(), NetworkError> {
    let deadline = context.current() + LISTEN_WAIT;
    loop {
        match TcpListener::bind(address) {
            Ok(_) => return Ok(()),
            Err(error) if context.current() >= deadline => {
                return Err(NetworkError::Listen { address, error });
            }
            Err(_) => context.sleep(Duration::from_millis(5)).await,
        }
    }
}

/// The address of a peer that is accepted but never dialed: names are not looked up here.
fn undialed(address: SocketAddr) -> Address {
    let host = Hostname::new("localhost").expect("a host's name");
    Address::Asymmetric { ingress: Ingress::Dns { host, port: address.port() }, egress: address }
}

/// The addresses at which `me` reaches the validators. Only one of each pair dials: a peer that is
/// dialing refuses a peer that dials it, so if both dialed they would refuse each other for a
/// while. `me` dials the validators before it in the list, because they are likely to listen
/// already.
fn addresses_of(me: &PublicKey, peers: &[Peer]) -> Result<Map<PublicKey, Address>, NetworkError> {
    let mut before_me = true;
    let addresses: Vec<(PublicKey, Address)> = peers
        .iter()
        .map(|peer| {
            before_me &= peer.key != *me;
            let address = match peer.address {
                Some(address) if before_me => Address::from(address),
                Some(address) => undialed(address),
                None => undialed(NOWHERE),
            };
            (peer.key.clone(), address)
        })
        .collect();
    addresses.try_into().map_err(|_| NetworkError::RepeatedKey)
}

impl<E> Network<E> for Tcp
where
    E: Spawner + Clock + CryptoRng + RuntimeNetwork + Resolver + Metrics + Supervisor,
{
    type Sender = lookup::Sender<PublicKey, E>;
    type Receiver = lookup::Receiver<PublicKey>;
    type Blocker = lookup::Oracle<PublicKey>;
    type Peers = lookup::Oracle<PublicKey>;

    async fn connect(self, context: E, quota: Quota) -> Result<EndpointOf<E, Self>, NetworkError> {
        let Self { key, chain_id, protocol, listen, mut peers } = self;
        let me = key.public_key();
        let known = peers.borrow_and_update().clone();
        listenable(&context, listen).await?;
        let addresses = addresses_of(&me, &known)?;

        let handshake: Handshake = Cups::new(
            Sake {
                signer: key,
                synchrony_bound: Duration::from_secs(5),
                max_handshake_age: Duration::from_secs(10),
                version: sake::Version::V1,
            },
            cups::Version::V1,
        );
        let listed = peers.clone();
        let handshake = Introduced::new(handshake, protocol, move |key| {
            let listed = listed.borrow();
            let peer = listed.iter().find(|peer| peer.key[..] == *key)?;
            Some((peer.key.clone(), peer.address))
        });
        // With the version, because introductions alone could be forged on the way.
        let mut namespace = b"cowboy-p2p/".to_vec();
        namespace.extend_from_slice(&chain_id.to_be_bytes());
        namespace.extend_from_slice(&protocol.to_be_bytes());
        let mut config = lookup::Config::local(
            handshake,
            &namespace,
            listen,
            NonZeroUsize::new(known.len() + JOINING).expect("at least this validator"),
            max_message_size(),
            NZUsize!(1024),
        );
        // On one machine a connection takes a millisecond. With the library's defaults the first
        // block would take more than a second.
        config.dial_frequency = Duration::from_millis(5);
        config.dial_timeout = Duration::from_secs(2);
        // This is also how often the library looks for peers to dial when all are connected.
        config.peer_connection_cooldown = Duration::from_millis(250);
        config.allow_dns = false;
        // Other hosts may connect from an address that they are not reached at. Their key counts.
        config.bypass_ip_check = !listen.ip().is_loopback();
        config.handshake_timeout = Duration::from_secs(1);
        config.allowed_handshake_rate_per_ip = Quota::per_second(NZU32!(4096));
        config.allowed_handshake_rate_per_subnet = Quota::per_second(NZU32!(4096));
        config.tracked_peer_sets = NZUsize!(2);
        let (mut network, mut oracle) = lookup::Network::new(context.child("lookup"), config);
        oracle.track(0, addresses);
        let channels = Channels::register(|channel| network.register(channel, quota));
        network.start();
        let mut tracked = oracle.clone();
        context.child("peers").spawn(move |_| async move {
            let mut set = 0;
            // Ends when the sender of the list is gone.
            while peers.changed().await.is_ok() {
                let known = peers.borrow_and_update().clone();
                match addresses_of(&me, &known) {
                    Ok(addresses) => {
                        set += 1;
                        tracked.track(set, addresses);
                    }
                    Err(error) => tracing::error!(%error, "the set of peers stays unchanged"),
                }
            }
        });
        Ok(Endpoint { channels, blocker: oracle.clone(), peers: oracle })
    }
}
