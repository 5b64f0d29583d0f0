//! What two validators tell each other before anything else, so that versions do not mix.
//!
//! On connecting, each side:
//! * sends its introduction, whose format is the same in all versions of the protocol;
//! * reads the peer's and refuses the connection if the version is another one. The peer has this
//!   side's introduction then, so both know both versions, and log them.
//!
//! The library's handshake follows, whose namespace has the version too. An introduction proves
//! nothing: a peer that lies about its version fails in that handshake, or is then like any peer
//! that sends what it should not.

use commonware_cryptography::ed25519::PublicKey;
use commonware_runtime::{Buf as _, Clock, Sink, Stream};
use commonware_stream::Upgrader;
use commonware_utils::sync::Mutex;
use cowboy_host::rarely::Rarely;
use rand_core::CryptoRng;
use std::{
    fmt,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, SystemTime},
};

/// No handshake of the library begins like this: as the length of its first message it is too
/// large, so builds that introduce themselves not yet hang up at once.
const MAGIC: [u8; 8] = *b"\xff\xff\xff\x7fcowb";

/// Bytes for the program's own version, padded with zeros.
const PROGRAM: usize = 20;
const KEY: usize = 32;
const LENGTH: usize = MAGIC.len() + size_of::<u32>() + PROGRAM + KEY;

/// How long the dialler holds a refused peer's place, so that it does not dial again at once. The
/// limit on handshakes may end it earlier.
const HOLD: Duration = Duration::from_secs(1);

/// The versions of a validator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Introduction {
    protocol: u32,
    /// Only for people: `0.1.0`.
    program: String,
    key: [u8; KEY],
}

impl Introduction {
    fn own(protocol: u32, key: &PublicKey) -> Self {
        let key = key.as_ref().try_into().expect("an ed25519 key has 32 bytes");
        Self { protocol, program: env!("CARGO_PKG_VERSION").to_owned(), key }
    }

    fn encode(&self) -> Vec<u8> {
        let mut program = self.program.as_bytes().to_vec();
        program.resize(PROGRAM, 0);
        [&MAGIC[..], &self.protocol.to_be_bytes(), &program, &self.key].concat()
    }

    /// `None` if the bytes are no introduction.
    fn decode(bytes: &[u8; LENGTH]) -> Option<Self> {
        let (protocol, rest) = bytes.strip_prefix(&MAGIC)?.split_first_chunk()?;
        let (program, key) = rest.split_first_chunk::<PROGRAM>()?;
        // A peer's text: nothing but what versions consist of is repeated.
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b".-+".contains(byte);
        let program: Vec<u8> = program.iter().copied().take_while(plain).collect();
        Some(Self {
            protocol: u32::from_be_bytes(*protocol),
            program: String::from_utf8(program).ok()?,
            key: key.try_into().ok()?,
        })
    }
}

impl fmt::Display for Introduction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cowboyctl {} (protocol {})", self.program, self.protocol)
    }
}

/// Why a connection between validators is refused.
#[derive(Debug, thiserror::Error)]
pub(super) enum IntroductionError<E> {
    #[error(
        "the peer is {theirs}, this validator {own}: run builds with the same protocol at both; \
         `cowboyctl node version` prints it"
    )]
    Version { own: Introduction, theirs: Introduction },
    #[error(
        "the peer does not say its version, this validator is {own}: it may be an older cowboyctl"
    )]
    Silent { own: Introduction },
    #[error("the connection ended during the introductions: {0}")]
    Lost(#[source] commonware_runtime::Error),
    #[error(transparent)]
    Handshake(E),
}

type FindPeer = dyn Fn(&[u8]) -> Option<(PublicKey, Option<SocketAddr>)> + Send + Sync;

/// The library's handshake, after introductions.
#[derive(Clone)]
pub(super) struct Introduced<U> {
    handshake: U,
    own: Introduction,
    known: Arc<FindPeer>,
    /// Refused peers; `None`: one that is not a known validator.
    refused: Arc<Mutex<Rarely<Option<PublicKey>>>>,
}

impl<U: Upgrader<PublicKey = PublicKey>> Introduced<U> {
    /// `known` finds a validator and its address by its key.
    pub(super) fn new(
        handshake: U,
        protocol: u32,
        known: impl Fn(&[u8]) -> Option<(PublicKey, Option<SocketAddr>)> + Send + Sync + 'static,
    ) -> Self {
        let own = Introduction::own(protocol, &handshake.public_key());
        Self { handshake, own, known: Arc::new(known), refused: Arc::default() }
    }

    /// `expected` is the peer if this side dials.
    async fn introduce(
        &self,
        now: SystemTime,
        expected: Option<&PublicKey>,
        stream: &mut impl Stream,
        sink: &mut impl Sink,
    ) -> Result<(), IntroductionError<U::Error>> {
        sink.send(self.own.encode()).await.map_err(IntroductionError::Lost)?;
        let mut bytes = [0; LENGTH];
        let mut received = stream.recv(LENGTH).await.map_err(IntroductionError::Lost)?;
        received.copy_to_slice(&mut bytes);
        let own = self.own.clone();
        let error = match Introduction::decode(&bytes) {
            Some(theirs) if theirs.protocol == own.protocol => return Ok(()),
            Some(theirs) => IntroductionError::Version { own, theirs },
            None => IntroductionError::Silent { own },
        };
        self.log(now, expected, &error);
        Err(error)
    }

    fn log(
        &self,
        now: SystemTime,
        expected: Option<&PublicKey>,
        error: &IntroductionError<U::Error>,
    ) {
        let claimed = match error {
            IntroductionError::Version { theirs, .. } => Some(&theirs.key[..]),
            _ => None,
        };
        let key = expected.map(|key| &key[..]).or(claimed);
        let peer = key.and_then(|key| (self.known)(key));
        let ms = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis();
        let ms = u64::try_from(ms).unwrap_or(u64::MAX);
        if !self.refused.lock().may(peer.as_ref().map(|(key, _)| key.clone()), ms) {
            return;
        }
        match peer {
            Some((key, address)) => {
                let address = address.map_or_else(String::new, |address| address.to_string());
                // Who dialled is only what the peer says.
                let dialled = expected.is_some();
                tracing::error!(validator = %key, address, dialled, %error, "a validator is refused");
            }
            None => tracing::warn!(%error, "a connection to the validators' port is refused"),
        }
    }
}

impl<U: Upgrader<PublicKey = PublicKey>> Upgrader for Introduced<U> {
    const MAX_SIZE: u32 = U::MAX_SIZE;

    type PublicKey = PublicKey;
    type Error = IntroductionError<U::Error>;
    type Sender<I: Stream, O: Sink> = U::Sender<I, O>;
    type Receiver<I: Stream, O: Sink> = U::Receiver<I, O>;

    fn public_key(&self) -> PublicKey {
        self.handshake.public_key()
    }

    async fn dial<C, I, O>(
        self,
        context: C,
        namespace: &[u8],
        max_message_size: u32,
        peer: PublicKey,
        mut stream: I,
        mut sink: O,
    ) -> Result<(Self::Sender<I, O>, Self::Receiver<I, O>), Self::Error>
    where
        C: Clock + CryptoRng,
        I: Stream,
        O: Sink,
    {
        let now = context.current();
        if let Err(error) = self.introduce(now, Some(&peer), &mut stream, &mut sink).await {
            drop((stream, sink));
            if !matches!(error, IntroductionError::Lost(_)) {
                context.sleep(HOLD).await;
            }
            return Err(error);
        }
        let shaken = self.handshake.dial(context, namespace, max_message_size, peer, stream, sink);
        shaken.await.map_err(IntroductionError::Handshake)
    }

    async fn listen<C, I, O, B, F>(
        self,
        context: C,
        namespace: &[u8],
        max_message_size: u32,
        bouncer: B,
        mut stream: I,
        mut sink: O,
    ) -> Result<(PublicKey, Self::Sender<I, O>, Self::Receiver<I, O>), Self::Error>
    where
        C: Clock + CryptoRng,
        I: Stream,
        O: Sink,
        B: FnOnce(PublicKey) -> F + Send,
        F: Future<Output = bool> + Send,
    {
        self.introduce(context.current(), None, &mut stream, &mut sink).await?;
        let shaken =
            self.handshake.listen(context, namespace, max_message_size, bouncer, stream, sink);
        shaken.await.map_err(IntroductionError::Handshake)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use commonware_cryptography::{ChaCha20Poly1305, Signer as _, ed25519::PrivateKey};
    use commonware_runtime::{Runner as _, Spawner as _, Supervisor as _, deterministic, mocks};
    use commonware_stream::{
        SakeCups,
        cups::{self, Cups},
        sake::{self, Sake},
    };

    type Handshake = SakeCups<PrivateKey, ChaCha20Poly1305>;

    fn side(seed: u64, protocol: u32) -> Introduced<Handshake> {
        let sake = Sake {
            signer: PrivateKey::from_seed(seed),
            synchrony_bound: Duration::from_secs(5),
            max_handshake_age: Duration::from_secs(10),
            version: sake::Version::V1,
        };
        Introduced::new(Cups::new(sake, cups::Version::V1), protocol, |_| None)
    }

    /// Validator 1 dials validator 0. Both say the version of `says` and shake hands for that of
    /// their namespace; returns the errors of dialler and listener.
    fn connect(says: [u32; 2], namespaces: [u32; 2]) -> [Option<String>; 2] {
        deterministic::Runner::timed(Duration::from_secs(60)).start(|context| async move {
            let (to_listener, from_dialler) = mocks::Channel::init();
            let (to_dialler, from_listener) = mocks::Channel::init();
            let (dialler, listener) = (side(1, says[0]), side(0, says[1]));
            let namespaces = namespaces.map(u32::to_be_bytes);
            let listening = context.child("listener").spawn(move |context| async move {
                let admit = async |_| true;
                let listened =
                    listener.listen(context, &namespaces[1], 64, admit, from_dialler, to_dialler);
                match listened.await {
                    Ok((_, _, mut receiver)) => {
                        let heard = receiver.recv().await.unwrap();
                        assert_eq!(heard.coalesce().as_ref(), b"block");
                        None
                    }
                    Err(error) => Some(error.to_string()),
                }
            });
            let peer = PrivateKey::from_seed(0).public_key();
            let dialled =
                dialler.dial(context, &namespaces[0], 64, peer, from_listener, to_listener).await;
            let dialled = match dialled {
                Ok((mut sender, _receiver)) => {
                    sender.send(b"block".to_vec()).await.unwrap();
                    None
                }
                Err(error) => Some(error.to_string()),
            };
            [dialled, listening.await.unwrap()]
        })
    }

    #[test]
    fn equal_versions_connect() {
        assert_eq!(connect([7, 7], [7, 7]), [None, None]);
    }

    #[test]
    fn both_sides_name_both_versions() {
        let [dialler, listener] = connect([7, 8], [7, 8]).map(|error| error.expect("refused"));
        let says = |own, theirs| {
            let program = env!("CARGO_PKG_VERSION");
            format!(
                "the peer is cowboyctl {program} (protocol {theirs}), this validator cowboyctl \
                 {program} (protocol {own}): run builds with the same protocol at both; \
                 `cowboyctl node version` prints it"
            )
        };
        assert_eq!((dialler, listener), (says(7, 8), says(8, 7)));
    }

    #[test]
    fn a_peer_that_lies_about_its_version_fails_in_the_handshake() {
        let [_, listener] = connect([7, 7], [7, 8]);
        assert!(listener.is_some());
    }

    #[test]
    fn what_is_no_introduction_is_refused() {
        let own = Introduction::own(7, &PrivateKey::from_seed(0).public_key());
        let bytes: [u8; LENGTH] = own.encode().try_into().unwrap();
        assert_eq!(Introduction::decode(&bytes), Some(own.clone()));
        let mut other = bytes;
        other[0] ^= 1;
        assert_eq!(Introduction::decode(&other), None);
        // A program's version is repeated up to what no version has.
        let at = MAGIC.len() + size_of::<u32>();
        let mut other = bytes;
        other[at..at + 4].copy_from_slice(b"1\x1b[3");
        assert_eq!(Introduction::decode(&other).unwrap().program, "1");
    }
}
