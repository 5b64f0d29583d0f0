//! Every reason to refuse a runner (spec connectivity.md §2), sent by a validator's listener to a
//! client with hand-made frames, while another runner stays connected.
//!
//! `COWBOYCTL_BAD_HANDSHAKES=100000` sets the number of handshakes in the memory test.

use commonware_runtime::{Runner as _, Spawner as _, Supervisor as _, tokio as runtime};
use cowboy_devnet::{
    sample::{key, validator_keys},
    transport::{
        Connection as _, Dial as _, RecvStream as _, SendStream as _, TransportError,
        quic::{QuicClient, QuicConnection, QuicListener, QuicRecv, QuicSend},
        tls::{ALPN, Identity},
    },
    validator::{
        gateway::{self, Gateway},
        limiter::BucketLimits,
    },
};
use cowboy_engine::{
    chain::{
        Block, Endowment, Header, Payload, ReceiptStatus, State, Transaction,
        block::transactions_root, execute, params::MIN_EPOCH_BLOCKS,
    },
    primitives::{Height, SecretKey, Wei, keccak256},
    session::heartbeat::Heartbeats,
    wire::{
        Channel, Control, FrameReader, Goodbye, GoodbyeReason, HeartbeatKey, HeartbeatPing, Hello,
        HelloAck, KeyedPing, Message as _, Role,
    },
};
use cowboy_simulation::Setup;
use futures::StreamExt as _;
use std::{
    collections::BTreeSet,
    env, fs,
    net::{Ipv4Addr, SocketAddr},
    ops::Range,
    time::Duration,
};
use tokio::time::timeout;

const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// Long enough for a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(60);
/// A runner's subset has four of them.
const VALIDATORS: usize = 5;
const RUNNERS: usize = 20;
/// The runner that stays connected.
pub(super) const BYSTANDER: &str = "runner-0";
const DEREGISTERED: &str = "runner-1";
const STRANGER: &str = "stranger";
/// The account that may change the committee.
pub(super) const GOVERNOR: &str = "account-0";
const BYSTANDERS_NONCE: [u8; 32] = [7; 32];

/// A chain on which a runner has deregistered.
fn state() -> State {
    let mut setup = Setup::new(VALIDATORS, RUNNERS, Duration::ZERO);
    for leaver in [DEREGISTERED, BYSTANDER] {
        let account = key(leaver).address();
        setup.genesis.endowments.push(Endowment { account, balance: Wei::cby(10) });
    }
    setup.genesis.params.epoch_blocks = MIN_EPOCH_BLOCKS;
    setup.genesis.params.system_deployers = vec![key(GOVERNOR).address()];
    let state = setup.genesis.state().expect("a chain");
    child(&state, Some((DEREGISTERED, Payload::DeregisterRunner)))
}

/// The state after another block, with a payload of this sender if there is one.
pub(super) fn child(state: &State, sent: Option<(&str, Payload)>) -> State {
    let (cycle, cell) = (state.basefee_cycle(), state.basefee_cell());
    let signed = sent.map(|(sender, payload)| {
        let nonce = state.account(&key(sender).address()).nonce;
        let transaction = Transaction::with_limits(state.chain_id(), nonce, cycle, cell, payload);
        transaction.sign(&key(sender))
    });
    let transactions: Vec<_> = signed.into_iter().collect();
    let header = Header {
        height: state.height().next(),
        parent: state.head_hash(),
        timestamp_ms: state.head().timestamp_ms + 1_000,
        transactions_root: transactions_root(&transactions),
        subset_epoch: state.childs_subset_epoch(),
        proposer: [1; 32],
        ..state.head().clone()
    };
    let block = Block { header, certificates: Vec::new(), transactions };
    let execution = execute(state, &block).expect("a child");
    for receipt in &execution.receipts {
        assert_eq!(receipt.status, ReceiptStatus::Success);
    }
    execution.state
}

/// A validator's listener and its gateway, and a client.
pub(super) struct World {
    pub(super) context: runtime::Context,
    pub(super) state: State,
    pub(super) gateway: Gateway,
    pub(super) address: SocketAddr,
    pub(super) client: QuicClient,
}

/// Runs `test` on a validator with these limits on handshakes.
pub(super) fn run(limits: BucketLimits, test: impl AsyncFnOnce(World)) {
    let folder = tempfile::tempdir().expect("a folder");
    let config =
        runtime::Config::new().with_storage_directory(folder.path()).with_worker_threads(2);
    runtime::Runner::new(config).start(async |context| {
        let (state, own) = (state(), validator_keys(0).identity);
        let identity = Identity::new(&own).expect("an identity");
        let listener = QuicListener::bind(&identity, LOOPBACK, |_| true).expect("a port");
        let address = listener.address();
        let config = gateway::GatewayConfig { key: own, limits, state: state.clone() };
        let (gateway, _results) = Gateway::new(config);
        let serving = gateway.clone();
        context.child("gateway").spawn(|context| async move {
            serving.serve(context, listener).await;
        });
        let client = QuicClient::bind(LOOPBACK).expect("a socket");
        test(World { context, state, gateway, address, client }).await;
    });
}

pub(super) const PLENTY: BucketLimits = BucketLimits { burst: u32::MAX, per_second: u32::MAX };

/// A runner's end of a connection, frame by frame.
pub(super) struct Peer {
    connection: QuicConnection,
    chain_id: u64,
    key: SecretKey,
    send: QuicSend,
    recv: QuicRecv,
    reader: FrameReader,
    /// Received bytes that are not decoded yet.
    rest: Vec<u8>,
}

impl Peer {
    /// Connects with the best version of the protocol.
    pub(super) async fn connect(world: &World, key: SecretKey) -> Self {
        let identity = Identity::new(&key).expect("an identity");
        Self::connect_as(world, key, identity).await
    }

    async fn connect_as(world: &World, key: SecretKey, identity: Identity) -> Self {
        let dialer = world.client.dialer(identity);
        let validator = validator_keys(0).identity.public_key();
        let dialled = async {
            loop {
                match dialer.dial(world.address, &validator).await {
                    // The machine is busy: a refusal would have arrived.
                    Err(TransportError::ConnectTimeout { .. }) => {}
                    dialled => break dialled.expect("a connection"),
                }
            }
        };
        let connection = timeout(PATIENCE, dialled).await.expect("in time");
        let (send, recv) = connection.open().await.expect("a stream");
        let (chain_id, reader) = (world.state.chain_id(), FrameReader::new(Channel::Control));
        Self { connection, chain_id, key, send, recv, reader, rest: Vec::new() }
    }

    /// Writes bytes, and ignores an error because the validator may have closed the connection.
    async fn write(&mut self, bytes: &[u8]) {
        let _closed = self.send.write(bytes).await;
    }

    /// The next frame; `None` at the end.
    async fn read(&mut self) -> Option<Control> {
        loop {
            let mut rest = self.rest.as_slice();
            let frame = self.reader.feed(&mut rest).expect("validators write frames");
            self.rest = rest.to_vec();
            if let Some(frame) = frame {
                return Some(Control::decode(&frame).expect("of the table"));
            }
            let more = timeout(PATIENCE, self.recv.read(4_096)).await.expect("an answer");
            self.rest.extend_from_slice(&more.ok()??);
        }
    }

    fn hello(&self, challenge_nonce: [u8; 32]) -> Hello {
        Hello {
            version: self.connection.heartbeats().version(),
            party_pubkey: self.key.public_key(),
            party_role: Role::Runner,
            block_height: Height::GENESIS,
            challenge_nonce,
        }
    }

    /// The validator's challenge, after it has accepted a hello and proved its identity.
    async fn challenge(&mut self, nonce: &[u8; 32]) -> [u8; 32] {
        let Some(Control::Hello(theirs)) = self.read().await else { panic!("no hello") };
        let Some(Control::HelloAck(ack)) = self.read().await else { panic!("no ack") };
        assert!(ack.verify(self.chain_id, nonce), "the validator proves who it is");
        theirs.challenge_nonce
    }

    /// Completes the handshake, up to the first pong.
    pub(super) async fn shake_hands(&mut self, nonce: [u8; 32]) {
        self.write(&self.hello(nonce).to_frame()).await;
        let challenge = self.challenge(&nonce).await;
        self.write(&self.ack(&challenge).to_frame()).await;
        let (runner, validator) = (self.key.public_key(), self.connection.peer().clone());
        let holds = match (self.connection.heartbeats(), self.read().await) {
            (Heartbeats::Signed, Some(Control::Pong(pong))) => {
                pong.verify(self.chain_id, &validator, &runner)
            }
            (Heartbeats::Keyed(key), Some(Control::KeyedPong(pong))) => {
                pong.verify(self.chain_id, &key)
            }
            (_, frame) => panic!("no pong of this version but {frame:?}"),
        };
        assert!(holds, "a pong by the validator");
    }

    fn ack(&self, challenge: &[u8; 32]) -> HelloAck {
        self.ack_by(&self.key, self.chain_id, challenge)
    }

    fn ack_by(&self, key: &SecretKey, chain_id: u64, challenge: &[u8; 32]) -> HelloAck {
        let party = (self.connection.heartbeats().version(), Role::Runner);
        HelloAck::signed(chain_id, key, party, Height::GENESIS, challenge)
    }

    fn ping(&self, nonce: u64) -> Vec<u8> {
        self.ping_of_chain(self.chain_id, nonce)
    }

    fn ping_of_chain(&self, chain_id: u64, nonce: u64) -> Vec<u8> {
        self.connection.heartbeats().ping(chain_id, &self.key, Height::GENESIS, nonce)
    }

    /// Reads to the end: the validator's goodbye and the reason of the connection's close.
    pub(super) async fn end(mut self) -> (Option<GoodbyeReason>, String) {
        let mut goodbye = None;
        while let Some(frame) = self.read().await {
            if let Control::Goodbye(Goodbye { reason }) = frame {
                goodbye = Some(reason);
            }
        }
        let closed = timeout(PATIENCE, self.connection.accept()).await.expect("it is closed");
        match closed {
            Err(TransportError::ClosedByPeer { reason }) => (goodbye, reason),
            Err(error) => panic!("{goodbye:?}, then {error}"),
            Ok(_) => panic!("the validator opened a stream"),
        }
    }
}

/// Bytes that a validator refuses.
struct Case {
    reason: GoodbyeReason,
    /// The name of the key that makes the connection.
    party: String,
    stage: Stage,
    words: Words,
}

/// The time at which a case's bytes are sent.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// In place of the hello.
    Hello,
    /// In place of the answer to the validator's challenge.
    Ack,
    /// After the handshake.
    Later,
}

/// Makes a runner's bytes from its fresh nonce, or from the validator's challenge.
type Words = fn(&Peer, [u8; 32]) -> Vec<u8>;

impl Case {
    /// Plays the case with the best version of the protocol.
    async fn play(&self, world: &World, nonce: [u8; 32]) -> (Option<GoodbyeReason>, String) {
        self.play_by(Peer::connect(world, key(&self.party)).await, nonce).await
    }

    async fn play_in_version_1(
        &self,
        world: &World,
        nonce: [u8; 32],
    ) -> (Option<GoodbyeReason>, String) {
        let key = key(&self.party);
        let identity = Identity::new(&key).expect("an identity").of_versions(&ALPN[1..]);
        self.play_by(Peer::connect_as(world, key, identity).await, nonce).await
    }

    async fn play_by(&self, mut peer: Peer, nonce: [u8; 32]) -> (Option<GoodbyeReason>, String) {
        let words = match self.stage {
            Stage::Hello => (self.words)(&peer, nonce),
            Stage::Ack => {
                peer.write(&peer.hello(nonce).to_frame()).await;
                let challenge = peer.challenge(&nonce).await;
                (self.words)(&peer, challenge)
            }
            Stage::Later => {
                peer.shake_hands(nonce).await;
                (self.words)(&peer, nonce)
            }
        };
        peer.write(&words).await;
        peer.end().await
    }
}

/// A frame with any payload.
fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len() + 1).expect("a short frame");
    [&length.to_be_bytes()[..], &[kind], payload].concat()
}

/// Whether the runner of this name may connect to the validator.
pub(super) fn admitted(state: &State, name: &str) -> Result<(), GoodbyeReason> {
    let validator = validator_keys(0).identity.public_key();
    state.admit(&key(name).public_key(), &validator).map(drop)
}

/// The first runner with this verdict from the chain.
fn runner(state: &State, verdict: Result<(), GoodbyeReason>) -> String {
    let mut names = (2..RUNNERS).map(|index| format!("runner-{index}"));
    names.find(|name| admitted(state, name) == verdict).expect("one in five is outside")
}

/// The violations of spec §2 that a single connection can commit.
fn cases(state: &State) -> Vec<Case> {
    use GoodbyeReason as R;
    let good = runner(state, Ok(()));
    let outsider = runner(state, Err(R::NotInSubset));
    let mut cases = Vec::new();
    let mut case = |reason, party: &str, stage, words| {
        cases.push(Case { reason, party: party.to_owned(), stage, words });
    };
    let hello: Words = |peer, nonce| peer.hello(nonce).to_frame();
    // Also a known version, but not the one that TLS agreed on.
    case(R::UnsupportedVersion, &good, Stage::Hello, |peer, nonce| {
        let version = 3 - peer.hello(nonce).version;
        Hello { version, ..peer.hello(nonce) }.to_frame()
    });
    case(R::UnsupportedVersion, &good, Stage::Hello, |peer, nonce| {
        Hello { version: 3, ..peer.hello(nonce) }.to_frame()
    });
    case(R::UnsupportedVersion, &good, Stage::Hello, |peer, nonce| {
        Hello { version: 0, ..peer.hello(nonce) }.to_frame()
    });
    case(R::WrongRole, &good, Stage::Hello, |peer, nonce| {
        Hello { party_role: Role::Validator, ..peer.hello(nonce) }.to_frame()
    });
    case(R::UnknownRunner, STRANGER, Stage::Hello, hello);
    case(R::Deregistered, DEREGISTERED, Stage::Hello, hello);
    case(R::NotInSubset, &outsider, Stage::Hello, hello);
    case(R::IdentityMismatch, &good, Stage::Hello, |peer, nonce| {
        Hello { party_pubkey: key(BYSTANDER).public_key(), ..peer.hello(nonce) }.to_frame()
    });
    case(R::ReplayedNonce, &good, Stage::Hello, |peer, _| peer.hello(BYSTANDERS_NONCE).to_frame());
    // No type, a type of job streams, an unknown type, one that only job streams ignore.
    case(R::MalformedFrame, &good, Stage::Hello, |_, _| vec![0; 4]);
    case(R::MalformedFrame, &good, Stage::Hello, |_, _| frame(0x20, &[0xa0]));
    case(R::MalformedFrame, &good, Stage::Hello, |_, _| frame(0x7f, &[]));
    case(R::MalformedFrame, &good, Stage::Hello, |_, _| frame(0x80, &[]));
    // Not a map, a map without an end, a hello with a trailing byte, one without its last byte.
    case(R::MalformedFrame, &good, Stage::Hello, |_, _| frame(0x01, b"hello"));
    case(R::MalformedFrame, &good, Stage::Hello, |_, _| frame(0x01, &[0xbf, 0xff]));
    case(R::MalformedFrame, &good, Stage::Hello, |peer, nonce| {
        frame(0x01, &[&peer.hello(nonce).to_frame()[5..], &[0]].concat())
    });
    case(R::MalformedFrame, &good, Stage::Hello, |peer, nonce| {
        let hello = peer.hello(nonce).to_frame();
        frame(0x01, &hello[5..hello.len() - 1])
    });
    // Frames that are too early or too late.
    case(R::MalformedFrame, &good, Stage::Hello, |peer, _| peer.ping(1));
    case(R::MalformedFrame, &good, Stage::Ack, |peer, _| peer.ping(1));
    case(R::MalformedFrame, &good, Stage::Ack, |peer, challenge| peer.hello(challenge).to_frame());
    case(R::MalformedFrame, &good, Stage::Later, |peer, nonce| peer.hello(nonce).to_frame());
    case(R::MalformedFrame, &good, Stage::Later, |peer, nonce| peer.ack(&nonce).to_frame());
    // 64 KiB and a byte, and the largest length: refused before the payload arrives.
    case(R::FrameTooLarge, &good, Stage::Hello, |_, _| vec![0, 1, 0, 1]);
    case(R::FrameTooLarge, &good, Stage::Ack, |_, _| vec![0xff; 4]);
    case(R::FrameTooLarge, &good, Stage::Later, |_, _| vec![0xff; 4]);

    case(R::UnsupportedVersion, &good, Stage::Ack, |peer, challenge| {
        HelloAck { version: 3, ..peer.ack(&challenge) }.to_frame()
    });
    case(R::WrongRole, &good, Stage::Ack, |peer, challenge| {
        HelloAck { party_role: Role::Validator, ..peer.ack(&challenge) }.to_frame()
    });
    case(R::IdentityMismatch, &good, Stage::Ack, |peer, challenge| {
        peer.ack_by(&key(BYSTANDER), peer.chain_id, &challenge).to_frame()
    });
    // Signatures of another challenge, for another chain, by another key, of another message.
    case(R::BadSignature, &good, Stage::Ack, |peer, _| peer.ack(&[0; 32]).to_frame());
    case(R::BadSignature, &good, Stage::Ack, |peer, challenge| {
        peer.ack_by(&peer.key, peer.chain_id ^ 1, &challenge).to_frame()
    });
    case(R::BadSignature, &good, Stage::Ack, |peer, challenge| {
        let party_pubkey = peer.key.public_key();
        let by_other = peer.ack_by(&key(BYSTANDER), peer.chain_id, &challenge);
        HelloAck { party_pubkey, ..by_other }.to_frame()
    });
    case(R::BadSignature, &good, Stage::Ack, |peer, challenge| {
        let ping = HeartbeatPing::signed(peer.chain_id, &peer.key, Height::GENESIS, 1);
        HelloAck { signed_challenge: ping.signed, ..peer.ack(&challenge) }.to_frame()
    });
    case(R::BadSignature, &good, Stage::Later, |peer, _| peer.ping_of_chain(peer.chain_id ^ 1, 1));
    // By another key: the bystander's, or one that the connection does not have.
    case(R::BadSignature, &good, Stage::Later, |peer, _| {
        let heartbeats = match peer.connection.heartbeats() {
            Heartbeats::Signed => Heartbeats::Signed,
            Heartbeats::Keyed(_) => Heartbeats::Keyed(HeartbeatKey([0; 32])),
        };
        heartbeats.ping(peer.chain_id, &key(BYSTANDER), Height::GENESIS, 1)
    });
    case(R::BadSignature, &good, Stage::Later, |peer, _| match peer.connection.heartbeats() {
        Heartbeats::Signed => {
            let ping = HeartbeatPing::signed(peer.chain_id, &peer.key, Height::GENESIS, 1);
            HeartbeatPing { nonce: 2, ..ping }.to_frame()
        }
        Heartbeats::Keyed(key) => {
            let ping = KeyedPing::with_mac(peer.chain_id, &key, Height::GENESIS, 1);
            KeyedPing { nonce: 2, ..ping }.to_frame()
        }
    });
    // A valid ping of the other version.
    case(R::MalformedFrame, &good, Stage::Later, |peer, _| {
        let other = match peer.connection.heartbeats() {
            Heartbeats::Signed => Heartbeats::Keyed(HeartbeatKey([0; 32])),
            Heartbeats::Keyed(_) => Heartbeats::Signed,
        };
        other.ping(peer.chain_id, &peer.key, Height::GENESIS, 1)
    });
    // Pings whose nonces do not grow.
    case(R::ReplayedNonce, &good, Stage::Later, |peer, _| [peer.ping(7), peer.ping(7)].concat());
    case(R::ReplayedNonce, &good, Stage::Later, |peer, _| [peer.ping(7), peer.ping(6)].concat());
    cases
}

/// A nonce that no connection had before.
pub(super) fn fresh(number: usize) -> [u8; 32] {
    keccak256(&[b"nonce", &number.to_be_bytes()]).0
}

/// Connects the bystander and waits until it counts as present.
pub(super) async fn bystander(world: &World) -> Peer {
    let mut peer = Peer::connect(world, key(BYSTANDER)).await;
    peer.shake_hands(BYSTANDERS_NONCE).await;
    peer.write(&peer.ping(1)).await;
    peer
}

/// The bystander is connected, and the only one.
pub(super) fn is_alone(world: &World) -> bool {
    let connected = world.gateway.connected();
    connected.len() == 1 && connected[0].runner == key(BYSTANDER).address()
}

#[test]
fn whatever_is_wrong_is_refused_for_its_reason_and_others_stay_connected() {
    run(PLENTY, async |world| {
        let bystander = bystander(&world).await;
        let mut told = BTreeSet::new();
        let cases = cases(&world.state);
        let count = cases.len();
        for (number, case) in cases.iter().chain(&cases).enumerate() {
            let (goodbye, words) = if number < count {
                case.play(&world, fresh(number)).await
            } else {
                case.play_in_version_1(&world, fresh(number)).await
            };
            let (reason, stage) = (case.reason, case.stage);
            assert_eq!(goodbye, Some(reason), "case {number} of {count}, {stage:?}");
            assert_eq!(words, format!("closed: {reason}"), "case {number} of {count}, {stage:?}");
            told.insert(reason);
            assert!(is_alone(&world), "case {number}, {stage:?}: {:?}", world.gateway.connected());
        }
        // The bystander was not cut off before: this is its first violation.
        let mut bystander = bystander;
        bystander.write(&bystander.ping(1)).await;
        assert_eq!(bystander.end().await.0, Some(GoodbyeReason::ReplayedNonce));
        // Other tests cover the other reasons, but no chain lets a stake become too small yet.
        for reason in [
            GoodbyeReason::InsufficientStake,
            GoodbyeReason::RateLimited,
            GoodbyeReason::DuplicateConnection,
            GoodbyeReason::ShuttingDown,
        ] {
            assert!(told.insert(reason), "{reason}");
        }
        assert_eq!(told.len(), GoodbyeReason::ALL.len(), "{told:?}");
    });
}

#[test]
fn attempts_are_counted_but_not_those_of_a_connected_runner() {
    run(BucketLimits { burst: 3, per_second: 0 }, async |world| {
        let first = bystander(&world).await;
        // A connected runner may reconnect without limit: the newer connection replaces the older.
        let mut last = first;
        for number in 0..5 {
            let mut again = Peer::connect(&world, key(BYSTANDER)).await;
            again.shake_hands(fresh(number)).await;
            let (goodbye, _) = last.end().await;
            assert_eq!(goodbye, Some(GoodbyeReason::DuplicateConnection));
            last = again;
        }
        // Two attempts are left for all others at this address.
        let stranger = Case {
            reason: GoodbyeReason::UnknownRunner,
            party: STRANGER.to_owned(),
            stage: Stage::Hello,
            words: |peer, nonce| peer.hello(nonce).to_frame(),
        };
        let mut reasons = Vec::new();
        for number in 10..14 {
            reasons.push(stranger.play(&world, fresh(number)).await.0.expect("a goodbye"));
        }
        let (unknown, limited) = (GoodbyeReason::UnknownRunner, GoodbyeReason::RateLimited);
        assert_eq!(reasons, [unknown, unknown, limited, limited]);
        assert!(is_alone(&world));
        let mut again = Peer::connect(&world, key(BYSTANDER)).await;
        again.shake_hands(fresh(20)).await;
        assert_eq!(last.end().await.0, Some(GoodbyeReason::DuplicateConnection));
    });
}

#[test]
fn who_does_not_finish_the_handshake_is_dropped() {
    run(PLENTY, async |world| {
        let silent = Peer::connect(&world, key(BYSTANDER)).await;
        let mut mute = Peer::connect(&world, key(BYSTANDER)).await;
        mute.write(&mute.hello(fresh(1)).to_frame()).await;
        mute.challenge(&fresh(1)).await;
        for peer in [silent, mute] {
            let (goodbye, words) = peer.end().await;
            assert_eq!((goodbye, words.as_str()), (None, "handshake not complete in time"));
        }
        assert!(world.gateway.connected().is_empty());
    });
}

#[test]
fn a_validator_that_stops_says_so_to_everybody() {
    run(PLENTY, async |world| {
        let bystander = bystander(&world).await;
        world.gateway.close(&world.context).await;
        assert_eq!(bystander.end().await.0, Some(GoodbyeReason::ShuttingDown));
        let late = Case {
            reason: GoodbyeReason::ShuttingDown,
            party: BYSTANDER.to_owned(),
            stage: Stage::Hello,
            words: |peer, nonce| peer.hello(nonce).to_frame(),
        };
        assert_eq!(late.play(&world, fresh(1)).await.0, Some(GoodbyeReason::ShuttingDown));
    });
}

/// The process's resident memory, in bytes.
fn resident() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm").expect("Linux says so");
    let pages = pages.split(' ').nth(1).expect("the second word");
    pages.parse::<u64>().expect("a number") * 4_096
}

/// Both ends are in this process, so its memory shows whether either keeps anything.
#[test]
#[cfg(target_os = "linux")]
fn bad_handshakes_leave_nothing() {
    /// Number of simultaneous handshakes.
    const AT_ONCE: usize = 16;
    let wanted = env::var("COWBOYCTL_BAD_HANDSHAKES").ok();
    let count = wanted.map_or(600, |n| n.parse().expect("COWBOYCTL_BAD_HANDSHAKES is a number"));
    run(PLENTY, async |world| {
        let _bystander = bystander(&world).await;
        // No replayed nonces, because a nonce is forgotten after many others.
        let mut cases = cases(&world.state);
        cases.retain(|case| {
            !matches!(case.stage, Stage::Later) && case.reason != GoodbyeReason::ReplayedNonce
        });
        let play = async |numbers: Range<usize>| {
            let plays = futures::stream::iter(numbers).map(async |number| {
                let case = &cases[number % cases.len()];
                let (goodbye, _) = case.play(&world, fresh(number)).await;
                assert_eq!(goodbye, Some(case.reason), "{number}");
            });
            plays.buffer_unordered(AT_ONCE).collect::<()>().await;
        };
        // Warms up pools and caches, which hold 8,192 nonces.
        let warm = (count / 3).min(12_000);
        play(0..warm).await;
        let before = resident();
        play(warm..count).await;
        let grown = resident().saturating_sub(before);
        assert!(grown < 16 << 20, "{grown} bytes after {} bad handshakes", count - warm);
        assert!(is_alone(&world));
    });
}
