//! QUIC on the loopback: the common transport tests, and refusals that only QUIC has.

use super::{
    super::{Connection as _, RecvStream as _, SendStream as _},
    *,
};
use crate::transport::{
    suite,
    tls::{ALPN, BINDING_OID, IdentityError, NO_VERSION},
};
use cowboy_engine::primitives::{SecretKey, Signature, codec, keccak256};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use rcgen::PublicKeyData as _;
use rustls::crypto::aws_lc_rs;
use std::{future::IntoFuture as _, net::Ipv4Addr};
use tokio::sync::{Mutex, watch};

pub(super) const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

fn secret(name: &str) -> SecretKey {
    SecretKey::derive(b"transport tests", name)
}

pub(super) fn identity(name: &str) -> Identity {
    Identity::new(&secret(name)).unwrap()
}

fn listener() -> QuicListener {
    QuicListener::bind(&identity("validator"), LOOPBACK, |_| true).unwrap()
}

fn dialer(name: &str) -> Dialer {
    QuicClient::bind(LOOPBACK).unwrap().dialer(identity(name))
}

/// Runs a test that would otherwise hang forever if an expected event never came.
pub(super) async fn bounded(test: impl Future<Output = ()>) {
    timeout(Duration::from_secs(120), test).await.expect("what is awaited comes");
}

pub(super) async fn connected(
    listener: &mut QuicListener,
    dialer: &Dialer,
) -> (QuicConnection, QuicConnection) {
    let validator = secret("validator").public_key();
    let dialled = dialer.dial(listener.address(), &validator).await.unwrap();
    (dialled, listener.accept().await.unwrap())
}

/// Twenty runners connect, one after another.
async fn twenty_connect(listener: &mut QuicListener) {
    for i in 0..20 {
        connected(listener, &dialer(&format!("runner-{i}"))).await;
    }
}

#[tokio::test]
async fn a_quic_connection_does_what_a_connection_must() {
    let listener = Mutex::new(listener());
    let dialer = dialer("runner");
    bounded(suite::run(async || connected(&mut *listener.lock().await, &dialer).await)).await;
}

#[tokio::test]
async fn both_ends_know_each_other_by_their_on_chain_keys() {
    let mut listener = listener();
    let client = QuicClient::bind(LOOPBACK).unwrap();
    for name in ["one", "two"] {
        let dialer = client.dialer(identity(name));
        let (dialled, accepted) = connected(&mut listener, &dialer).await;
        assert_eq!(*dialled.peer(), secret("validator").public_key());
        assert_eq!(*accepted.peer(), secret(name).public_key());
        assert_eq!(accepted.remote(), LOOPBACK.ip());
    }
}

#[tokio::test]
async fn an_unexpected_identity_is_an_error_that_names_both() {
    let mut listener = listener();
    let expected = secret("another node").public_key();
    let error = dialer("runner").dial(listener.address(), &expected).await.err().unwrap();
    let got = secret("validator").public_key();
    assert_eq!(
        error,
        TransportError::IdentityMismatch {
            address: listener.address(),
            expected: Box::new(expected.clone()),
            got: Box::new(got.clone()),
        }
    );
    let text = error.to_string();
    assert!(text.contains(&expected.to_string()) && text.contains(&got.to_string()), "{text}");
    // It was refused in the handshake: the next dial gives the first accepted connection.
    let (_dialled, accepted) = connected(&mut listener, &dialer("next")).await;
    assert_eq!(*accepted.peer(), secret("next").public_key());
}

#[tokio::test]
async fn a_listener_without_a_valid_identity_is_refused() {
    let (public, key) = (secret("validator").public_key(), ephemeral());
    let impostor = Identity::from_parts(public.clone(), key, vec![]).unwrap();
    let listener = QuicListener::bind(&impostor, LOOPBACK, |_| true).unwrap();
    let error = dialer("runner").dial(listener.address(), &public).await.err().unwrap();
    let missing = IdentityError::Missing.to_string();
    assert!(
        matches!(&error, TransportError::Connect { reason, .. } if reason.contains(&missing)),
        "{error:?}"
    );
}

#[tokio::test]
async fn whom_the_limiter_turns_down_is_refused_before_the_handshake() {
    let admit = |from: IpAddr| from != LOOPBACK.ip();
    let listener = QuicListener::bind(&identity("validator"), LOOPBACK, admit).unwrap();
    let validator = secret("validator").public_key();
    let error = dialer("runner").dial(listener.address(), &validator).await.err().unwrap();
    assert!(
        matches!(&error, TransportError::Connect { reason, .. } if reason.contains("refused")),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_taken_port_is_a_clear_error() {
    let listener = listener();
    let address = listener.address();
    let error = QuicListener::bind(&identity("second"), address, |_| true).err().unwrap();
    assert!(
        matches!(&error, TransportError::Bind { address: at, .. } if *at == address),
        "{error:?}"
    );
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}

#[tokio::test]
async fn a_shutdown_tells_the_peers_and_frees_the_port() {
    let dialer = dialer("runner");
    let mut listener = listener();
    for _ in 0..5 {
        let address = listener.address();
        let (dialled, accepted) = connected(&mut listener, &dialer).await;
        // A user drops its connection once it is closed.
        tokio::spawn(async move { accepted.closed().await });
        listener.shutdown("shutting_down").await;
        let by_peer = TransportError::ClosedByPeer { reason: "shutting_down".to_owned() };
        assert_eq!(dialled.accept().await.err(), Some(by_peer));
        listener = QuicListener::bind(&identity("validator"), address, |_| true).unwrap();
    }
}

#[tokio::test]
async fn closing_the_listener_ends_what_came_from_it() {
    let dialer = dialer("runner");
    let mut listener = listener();
    let (dialled, accepted) = connected(&mut listener, &dialer).await;
    listener.close("shutting_down");
    assert!(listener.accept().await.is_none());
    accepted.closed().await;
    let by_peer = TransportError::ClosedByPeer { reason: "shutting_down".to_owned() };
    assert_eq!(dialled.accept().await.err(), Some(by_peer));
}

/// Forwards the first packets of clients to `listener` from `address`; the clients never read the
/// listener's answers. Returns the address to dial, and the number of answers so far.
async fn relay(listener: &QuicListener, address: IpAddr) -> (SocketAddr, watch::Receiver<usize>) {
    let inside = tokio::net::UdpSocket::bind(LOOPBACK).await.unwrap();
    let outside = tokio::net::UdpSocket::bind((address, 0)).await.unwrap();
    outside.connect(listener.address()).await.unwrap();
    let at = inside.local_addr().unwrap();
    let (answers, answered) = watch::channel(0);
    tokio::spawn(async move {
        let (mut packet, mut answer) = ([0; 2048], [0; 2048]);
        loop {
            tokio::select! {
                received = inside.recv_from(&mut packet) => {
                    let (length, _) = received.unwrap();
                    outside.send(&packet[..length]).await.unwrap();
                }
                received = outside.recv(&mut answer) => {
                    // An error means that the listener is gone.
                    if received.is_err() {
                        return;
                    }
                    answers.send_modify(|answers| *answers += 1);
                }
            }
        }
    });
    (at, answered)
}

/// Makes `count` attempts from `address` that never get through, and returns once there were as
/// many answers as attempts. They continue until the set is dropped.
async fn flood(listener: &QuicListener, address: IpAddr, count: usize) -> JoinSet<()> {
    let (at, mut answers) = relay(listener, address).await;
    let validator = secret("validator").public_key();
    let client = QuicClient::bind(LOOPBACK).unwrap();
    let mut attempts = JoinSet::new();
    for _ in 0..count {
        let (dialer, validator) = (client.dialer(identity("flood")), validator.clone());
        attempts.spawn(async move { while dialer.dial(at, &validator).await.is_err() {} });
    }
    answers.wait_for(|answers| *answers >= count).await.unwrap();
    attempts
}

fn limited(half_open: half_open::HalfOpenLimits, unvalidated: usize) -> QuicListener {
    let limits = QuicLimits { handshake: Duration::from_millis(300), half_open, unvalidated };
    QuicListener::bind_with(&identity("validator"), LOOPBACK, untapped(), |_| true, limits).unwrap()
}

const FLOODING: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

#[tokio::test]
async fn half_open_handshakes_are_few_and_end() {
    let grace = Duration::from_secs(3_600);
    let half_open = half_open::HalfOpenLimits { whole: 1, per_address: 1, grace };
    let mut listener = limited(half_open, usize::MAX);
    bounded(async {
        let flood = flood(&listener, FLOODING, 1).await;
        let validator = secret("validator").public_key();
        let runner = dialer("runner");
        let error = runner.dial(listener.address(), &validator).await.err().unwrap();
        assert!(
            matches!(&error, TransportError::Connect { reason, .. } if reason.contains("refused")),
            "{error:?}"
        );
        drop(flood);
        listener.endpoint.0.wait_idle().await;
        connected(&mut listener, &runner).await;
    })
    .await;
}

#[tokio::test]
async fn a_flood_from_one_address_keeps_nobody_else_out() {
    let mut listener = listener();
    bounded(async {
        let _flood = flood(&listener, FLOODING, 300).await;
        twenty_connect(&mut listener).await;
    })
    .await;
}

#[tokio::test]
async fn a_flood_that_takes_all_places_gives_way_to_another_address() {
    let grace = Duration::from_secs(3_600);
    let half_open = half_open::HalfOpenLimits { whole: 4, per_address: 4, grace };
    // Any number of attempts may be in the handshake, from any claimed address.
    let mut listener = limited(half_open, usize::MAX);
    bounded(async {
        let _flood = flood(&listener, FLOODING, 8).await;
        twenty_connect(&mut listener).await;
    })
    .await;
}

#[tokio::test]
async fn who_cannot_read_what_is_sent_to_its_address_takes_nobodys_place() {
    let grace = Duration::ZERO;
    let half_open = half_open::HalfOpenLimits { whole: 2, per_address: 2, grace };
    let mut listener = limited(half_open, 1);
    bounded(async {
        // Each of these attempts except the first is only told to try again. They claim the
        // runner's address.
        let _flood = flood(&listener, LOOPBACK.ip(), 8).await;
        twenty_connect(&mut listener).await;
    })
    .await;
}

fn ephemeral() -> rcgen::KeyPair {
    rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap()
}

/// The extension that binds `key` to `secret`.
fn binding(secret: &SecretKey, key: &rcgen::KeyPair) -> rcgen::CustomExtension {
    let digest = keccak256(&[b"cowboy-cip11-tls/v1", &key.subject_public_key_info()]);
    extension(secret, secret.sign(&digest))
}

/// The record of spec connectivity §2, encoded by hand.
fn extension(secret: &SecretKey, signature: Signature) -> rcgen::CustomExtension {
    let mut content = vec![0xa2];
    content.extend_from_slice(b"\x63sig\x58\x41");
    content.extend_from_slice(signature.as_bytes());
    content.extend_from_slice(b"\x66pubkey\x58\x21");
    content.extend_from_slice(secret.public_key().as_bytes());
    rcgen::CustomExtension::from_oid_content(&BINDING_OID, content)
}

/// The error that a client with this certificate and these protocols gets.
async fn attempt(listener: &QuicListener, identity: Option<&Identity>, alpn: &[&[u8]]) -> String {
    #[derive(Debug)]
    struct Trusting;

    impl rustls::client::danger::ServerCertVerifier for Trusting {
        fn verify_server_cert(
            &self,
            _: &rustls::pki_types::CertificateDer<'_>,
            _: &[rustls::pki_types::CertificateDer<'_>],
            _: &rustls::pki_types::ServerName<'_>,
            _: &[u8],
            _: rustls::pki_types::UnixTime,
        ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
            Ok(rustls::client::danger::ServerCertVerified::assertion())
        }

        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &rustls::pki_types::CertificateDer<'_>,
            _: &rustls::DigitallySignedStruct,
        ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
            Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
        }

        fn verify_tls13_signature(
            &self,
            _: &[u8],
            _: &rustls::pki_types::CertificateDer<'_>,
            _: &rustls::DigitallySignedStruct,
        ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
            Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
        }

        fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
            aws_lc_rs::default_provider().signature_verification_algorithms.supported_schemes()
        }
    }

    let builder =
        rustls::ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Trusting));
    let mut crypto = match identity {
        Some(identity) => builder.with_client_cert_resolver(identity.certificate()),
        None => builder.with_no_client_auth(),
    };
    crypto.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
    let crypto = QuicClientConfig::try_from(crypto).unwrap();
    let Bound { socket, address, .. } = bind(LOOPBACK, untapped()).unwrap();
    let endpoint = endpoint(socket, address, None).unwrap();
    let config = quinn::ClientConfig::new(Arc::new(crypto));
    let connecting = endpoint.connect_with(config, listener.address(), SERVER_NAME).unwrap();
    let error = match connecting.into_future().await {
        Ok(connection) => connection.closed().await,
        Err(error) => error,
    };
    error.to_string()
}

#[tokio::test]
async fn identities_that_prove_nothing_are_refused_and_the_listener_goes_on() {
    let mut listener = listener();
    let runner = secret("runner");
    let public = runner.public_key();
    let with = |key: rcgen::KeyPair, extensions: Vec<rcgen::CustomExtension>| {
        Identity::from_parts(public.clone(), key, extensions).unwrap()
    };
    let honest = |key: &rcgen::KeyPair| binding(&runner, key);

    let check = async |name: &str, identity: Option<Identity>, alpn: &[&[u8]], expected: &str| {
        let heard = attempt(&listener, identity.as_ref(), alpn).await;
        assert!(heard.contains(expected), "{name}: {heard}");
    };
    let alpn = ALPN;
    let signature = IdentityError::Signature { pubkey: Box::new(public.clone()) }.to_string();

    check("no certificate", None, &alpn, "no certificate").await;

    let missing = IdentityError::Missing.to_string();
    check("no extension", Some(with(ephemeral(), vec![])), &alpn, &missing).await;

    let wrong = extension(&runner, runner.sign(&keccak256(&[b"something else"])));
    check("wrong signature", Some(with(ephemeral(), vec![wrong])), &alpn, &signature).await;

    let other = secret("other").sign(&keccak256(&[b"something else"]));
    let zeroed = extension(&runner, Signature([0; 65]));
    check("no signature", Some(with(ephemeral(), vec![zeroed])), &alpn, &signature).await;
    let foreign = extension(&runner, other);
    check("another's signature", Some(with(ephemeral(), vec![foreign])), &alpn, &signature).await;

    let copied = honest(&ephemeral());
    check("copied extension", Some(with(ephemeral(), vec![copied])), &alpn, &signature).await;

    let key = ephemeral();
    let twice = vec![honest(&key), honest(&key)];
    let duplicate = IdentityError::Duplicate.to_string();
    check("two extensions", Some(with(key, twice)), &alpn, &duplicate).await;

    let key = ephemeral();
    let mut critical = honest(&key);
    critical.set_criticality(true);
    let refused = IdentityError::Critical.to_string();
    check("critical extension", Some(with(key, vec![critical])), &alpn, &refused).await;

    let cut = rcgen::CustomExtension::from_oid_content(&BINDING_OID, vec![0xa2, 0x63]);
    let malformed = IdentityError::Binding(codec::DecodeError::Malformed(String::new()));
    check("cut short", Some(with(ephemeral(), vec![cut])), &alpn, &malformed.to_string()).await;

    let protocol = "any known protocol";
    let key = ephemeral();
    let valid = with_valid(&runner, key);
    check("wrong protocol", Some(valid.clone()), &[b"h3"], protocol).await;
    check("no protocol", Some(valid.clone()), &[], protocol).await;
    check("a version to come", Some(valid.clone()), &[b"cowboy/cip11/3"], protocol).await;

    // None of them was accepted; and the hand-encoded record is the one that is read.
    let valid = with_valid(&secret("honest"), ephemeral());
    let dialer = QuicClient::bind(LOOPBACK).unwrap().dialer(valid);
    let (_dialled, accepted) = connected(&mut listener, &dialer).await;
    assert_eq!(*accepted.peer(), secret("honest").public_key());
}

fn with_valid(secret: &SecretKey, key: rcgen::KeyPair) -> Identity {
    let extension = binding(secret, &key);
    Identity::from_parts(secret.public_key(), key, vec![extension]).unwrap()
}

#[tokio::test]
async fn random_datagrams_change_nothing() {
    let mut listener = listener();
    let dialer = dialer("runner");
    let (dialled, accepted) = connected(&mut listener, &dialer).await;

    let noise = tokio::net::UdpSocket::bind(LOOPBACK).await.unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut datagram = [0; 1400];
    for round in 0..10_000u32 {
        rng.fill_bytes(&mut datagram);
        match round % 4 {
            // Resembles a client's first packet of QUIC v1.
            0 => datagram[..6].copy_from_slice(&[0xc3, 0, 0, 0, 1, 8]),
            // Resembles a packet of an established connection.
            1 => datagram[0] = 0x40 | (datagram[0] & 0x3f),
            _ => {}
        }
        let length = 1 + rng.next_u32() as usize % datagram.len();
        let length = if round % 4 == 0 { datagram.len() } else { length };
        noise.send_to(&datagram[..length], listener.address()).await.unwrap();
    }

    let (mut send, _recv) = dialled.open().await.unwrap();
    send.write(b"still here").await.unwrap();
    send.finish();
    let (_send, mut recv) = accepted.accept().await.unwrap();
    assert_eq!(recv.read(100).await.unwrap().unwrap(), &b"still here"[..]);
    connected(&mut listener, &dialer).await;
}

#[tokio::test]
async fn the_best_version_that_both_ends_know_is_spoken() {
    let client = QuicClient::bind(LOOPBACK).unwrap();
    let identity = |name: &str| Identity::new(&secret(name)).unwrap();
    for (of_validator, of_runner, spoken) in [(2, 2, 2), (2, 1, 1), (1, 2, 1), (1, 1, 1)] {
        let known = |identity: Identity, version| match version {
            1 => identity.of_versions(&ALPN[1..]),
            _ => identity,
        };
        let validator = known(identity("validator"), of_validator);
        let mut listener = QuicListener::bind(&validator, LOOPBACK, |_| true).unwrap();
        let dialer = client.dialer(known(identity("runner"), of_runner));
        let (dialled, accepted) = connected(&mut listener, &dialer).await;
        let heartbeats = dialled.heartbeats();
        assert_eq!(heartbeats.version(), spoken, "{of_validator}, {of_runner}");
        assert_eq!(accepted.heartbeats(), heartbeats);
    }
}

/// Passes on the fields of warnings.
struct Warnings(mpsc::UnboundedSender<String>);

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::WARN
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut text = String::new();
        event.record(&mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
            text.push_str(&format!("{field}={value:?} "));
        });
        let _ = self.0.send(text);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn without_a_common_version_both_ends_name_both() {
    const LATER: [&[u8]; 2] = [b"cowboy/cip11/9", b"cowboy/cip11/8"];
    const OWN: &str = "cowboy/cip11/2 cowboy/cip11/1";
    const THEIRS: &str = "cowboy/cip11/9 cowboy/cip11/8";
    let public = secret("validator").public_key();
    let later = |name: &str| identity(name).of_versions(&LATER);
    let check = async |validator: Identity, runner: Identity, (own, theirs): (&str, &str)| {
        let (send, mut logged) = mpsc::unbounded_channel();
        let _logs = tracing::subscriber::set_default(Warnings(send));
        let listener = QuicListener::bind(&validator, LOOPBACK, |_| true).unwrap();
        let dialer = QuicClient::bind(LOOPBACK).unwrap().dialer(runner);
        let error = |own: &str, theirs: &str| TransportError::NoCommonVersion {
            own: own.to_owned(),
            theirs: theirs.to_owned(),
        };
        let dialled = dialer.dial(listener.address(), &public).await.map(drop).unwrap_err();
        assert_eq!(dialled, error(theirs, own));
        let logged = logged.recv().await.unwrap();
        assert!(logged.contains(&error(own, theirs).to_string()), "{logged}");
    };
    bounded(async {
        check(identity("validator"), later("runner"), (OWN, THEIRS)).await;
        check(later("validator"), identity("runner"), (THEIRS, OWN)).await;
    })
    .await;
}

#[tokio::test]
async fn a_peer_that_knows_no_name_without_a_version_is_refused_too() {
    let limits = QuicLimits { handshake: Duration::from_millis(300), ..QuicLimits::default() };
    let listener =
        QuicListener::bind_with(&identity("validator"), LOOPBACK, untapped(), |_| true, limits);
    let listener = listener.unwrap();
    let heard = attempt(&listener, Some(&identity("runner")), &[b"cowboy/cip11/9"]).await;
    assert!(heard.contains("error 120"), "{heard}");
    // One that agrees to have no version, and then says nothing of use, is no connection.
    let heard = attempt(&listener, Some(&identity("runner")), &[NO_VERSION]).await;
    assert!(heard.contains("closed by peer"), "{heard}");
}
