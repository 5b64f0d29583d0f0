//! Identities in the TLS handshake (spec connectivity §2).
//!
//! secp256k1 has no TLS 1.3 signature scheme. Each side therefore makes a self-signed certificate
//! with an ephemeral Ed25519 key, and one non-critical extension ([`BINDING_OID`]) binds that key
//! to the on-chain key: deterministic CBOR of `{pubkey, sig}`, where the on-chain key signs
//! keccak256("cowboy-cip11-tls/v1" ‖ SubjectPublicKeyInfo in DER). TLS itself proves that the peer
//! holds the ephemeral key; the extension proves which on-chain key it belongs to.
//!
//! In the handshake, either side refuses the peer's certificate unless
//!
//! * it is the only certificate, is well formed and is signed with its own key,
//! * it has the extension exactly once, not critical, in its only valid CBOR form,
//! * the extension's signature was made by its on-chain key over this certificate's key.
//!
//! Names and validity dates are ignored: the chain's registry decides which peers may connect. Only
//! TLS 1.3 is allowed, without session resumption and early data, so every connection proves both
//! identities again.

use cowboy_engine::{
    primitives::{Hash, PublicKey, SecretKey, Signature, codec, keccak256},
    record,
    session::heartbeat::Heartbeats,
    wire::{
        HeartbeatKey,
        heartbeat::{EXPORTER_LABEL, exporter_context},
    },
};
use quinn::crypto::rustls::HandshakeData;
use rcgen::PublicKeyData as _;
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, OtherError, PeerIncompatible,
    SignatureScheme,
    client::{
        Resumption,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, aws_lc_rs, verify_tls13_signature},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime},
    server::{
        NoServerSessionStorage,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
    sign::{CertifiedKey, SingleCertAndKey},
    version::TLS13,
};
use std::{
    fmt,
    sync::{Arc, OnceLock},
};
use x509_parser::{certificate::X509Certificate, oid_registry::Oid, prelude::FromDer as _};

/// The protocol's versions as names for the handshake, best first: 2 with keyed heartbeats, 1 with
/// signed ones.
pub const ALPN: [&[u8]; 2] = [b"cowboy/cip11/2", b"cowboy/cip11/1"];

/// The name that both sides offer last. They agree on it if they have no version in common: then
/// they only tell each other their versions (see [`super::quic`]).
pub const NO_VERSION: &[u8] = b"cowboy/cip11";

/// The extension that carries the binding.
pub const BINDING_OID: [u64; 9] = [1, 3, 6, 1, 4, 1, 58888, 11, 1];

const BINDING_DOMAIN: &[u8] = b"cowboy-cip11-tls/v1";

/// Why a certificate gives no identity or cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// This side's certificate or TLS configuration cannot be made.
    #[error("cannot make a certificate: {0}")]
    Certificate(String),
    #[error("the peer has no certificate")]
    NoCertificate,
    #[error("a chain of {0} certificates, expected a self-signed one")]
    Chain(usize),
    #[error("not an X.509 certificate: {0}")]
    Malformed(String),
    #[error("the certificate is not signed with its own key: {0}")]
    SelfSignature(String),
    #[error("the certificate has no extension {}", oid())]
    Missing,
    #[error("the certificate has the extension {} more than once", oid())]
    Duplicate,
    #[error("the extension {} is marked critical", oid())]
    Critical,
    #[error("the certificate's binding to a key: {0}")]
    Binding(#[from] codec::DecodeError),
    #[error("{pubkey} did not sign the certificate's key")]
    Signature { pubkey: Box<PublicKey> },
    #[error("TLS exports no key for heartbeats: {0}")]
    Export(String),
    #[error("the peer is {got}, expected {expected}")]
    Unexpected { expected: Box<PublicKey>, got: Box<PublicKey> },
}

fn oid() -> String {
    BINDING_OID.map(|arc| arc.to_string()).join(".")
}

struct Binding {
    pubkey: PublicKey,
    sig: Signature,
}
record!(Binding { pubkey, sig });

/// The digest that the on-chain key signs: the certificate's SubjectPublicKeyInfo in DER, with a
/// domain prefix.
fn binding_digest(spki: &[u8]) -> Hash {
    keccak256(&[BINDING_DOMAIN, spki])
}

/// The extension's value for a certificate with this key (SubjectPublicKeyInfo in DER) and the
/// holder of `secret`.
pub fn binding(secret: &SecretKey, spki: &[u8]) -> Vec<u8> {
    codec::to_vec(&Binding { pubkey: secret.public_key(), sig: secret.sign(&binding_digest(spki)) })
}

/// The on-chain key that a certificate (DER) is bound to; fails when the binding is invalid.
pub fn bound_key(certificate: &[u8]) -> Result<PublicKey, IdentityError> {
    let (rest, parsed) = X509Certificate::from_der(certificate)
        .map_err(|error| IdentityError::Malformed(error.to_string()))?;
    if !rest.is_empty() {
        return Err(IdentityError::Malformed(format!("{} bytes after its end", rest.len())));
    }
    let oid = Oid::from(&BINDING_OID).expect("the arcs are in the range of an OID");
    let mut bindings = parsed.extensions().iter().filter(|extension| extension.oid == oid);
    let extension = bindings.next().ok_or(IdentityError::Missing)?;
    if bindings.next().is_some() {
        return Err(IdentityError::Duplicate);
    }
    if extension.critical {
        return Err(IdentityError::Critical);
    }
    let Binding { pubkey, sig } = codec::from_slice(extension.value)?;
    if !pubkey.verify(&binding_digest(parsed.public_key().raw), &sig) {
        return Err(IdentityError::Signature { pubkey: Box::new(pubkey) });
    }
    parsed
        .verify_signature(None)
        .map_err(|error| IdentityError::SelfSignature(error.to_string()))?;
    Ok(pubkey)
}

/// The on-chain key of the peer of a handshaken connection.
pub fn peer_key(connection: &quinn::Connection) -> Result<PublicKey, IdentityError> {
    let identity = connection.peer_identity().ok_or(IdentityError::NoCertificate)?;
    let chain = identity
        .downcast::<Vec<CertificateDer<'static>>>()
        .expect("quinn's rustls session has certificates as its identity");
    match chain.as_slice() {
        [] => Err(IdentityError::NoCertificate),
        [certificate] => bound_key(certificate),
        more => Err(IdentityError::Chain(more.len())),
    }
}

/// The name that the two ends of a handshaken connection agreed on.
pub(super) fn agreed(connection: &quinn::Connection) -> Option<Vec<u8>> {
    connection.handshake_data().and_then(|data| data.downcast::<HandshakeData>().ok()?.protocol)
}

/// How the two ends of a handshaken connection authenticate heartbeats.
pub fn heartbeats(
    connection: &quinn::Connection,
    own: &PublicKey,
    peer: &PublicKey,
) -> Result<Heartbeats, IdentityError> {
    if agreed(connection).as_deref() != Some(ALPN[0]) {
        return Ok(Heartbeats::Signed);
    }
    let (runner, validator) = match connection.side() {
        quinn::Side::Client => (own, peer),
        quinn::Side::Server => (peer, own),
    };
    let mut key = [0; 32];
    connection
        .export_keying_material(&mut key, EXPORTER_LABEL, &exporter_context(runner, validator))
        .map_err(|error| IdentityError::Export(format!("{error:?}")))?;
    Ok(Heartbeats::Keyed(HeartbeatKey(key)))
}

/// One side's on-chain key, its certificate, and the TLS configurations made from them.
#[derive(Debug, Clone)]
pub struct Identity {
    public: PublicKey,
    der: CertificateDer<'static>,
    certified: Arc<SingleCertAndKey>,
    provider: Arc<CryptoProvider>,
    /// The names of [`ALPN`] that this side offers or accepts.
    offered: &'static [&'static [u8]],
}

impl Identity {
    /// Makes a new certificate for the holder of `secret`, used for as long as the value lives.
    pub fn new(secret: &SecretKey) -> Result<Self, IdentityError> {
        let ephemeral = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).map_err(cannot_make)?;
        let binding = binding(secret, &ephemeral.subject_public_key_info());
        let extension = rcgen::CustomExtension::from_oid_content(&BINDING_OID, binding);
        Self::from_parts(secret.public_key(), ephemeral, vec![extension])
    }

    /// A certificate with the given extensions, valid or not.
    pub(super) fn from_parts(
        public: PublicKey,
        ephemeral: rcgen::KeyPair,
        extensions: Vec<rcgen::CustomExtension>,
    ) -> Result<Self, IdentityError> {
        let mut params = rcgen::CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.custom_extensions = extensions;
        let certificate = params.self_signed(&ephemeral).map_err(cannot_make)?;
        let provider = Arc::new(aws_lc_rs::default_provider());
        let key = provider
            .key_provider
            .load_private_key(PrivateKeyDer::Pkcs8(ephemeral.serialize_der().into()))
            .map_err(cannot_make)?;
        let der = certificate.der().clone();
        let certified = CertifiedKey::new(vec![der.clone()], key);
        Ok(Self { public, der, certified: Arc::new(certified.into()), provider, offered: &ALPN })
    }

    /// As a peer that knows only these versions.
    #[must_use]
    pub fn of_versions(self, offered: &'static [&'static [u8]]) -> Self {
        Self { offered, ..self }
    }

    fn alpn(&self) -> Vec<Vec<u8>> {
        self.offered.iter().chain(&[NO_VERSION]).map(|name| name.to_vec()).collect()
    }

    /// The names of the versions that this side speaks, separated by spaces.
    pub(super) fn versions(&self) -> String {
        let names = self.offered.iter().map(|name| String::from_utf8_lossy(name).into_owned());
        names.collect::<Vec<_>>().join(" ")
    }

    pub const fn public_key(&self) -> &PublicKey {
        &self.public
    }

    pub fn der(&self) -> &[u8] {
        &self.der
    }

    #[cfg(test)]
    pub(super) fn certificate(&self) -> Arc<SingleCertAndKey> {
        self.certified.clone()
    }

    pub(super) fn server_config(&self) -> Result<rustls::ServerConfig, IdentityError> {
        let verifier = Arc::new(AnyIdentity { provider: self.provider.clone() });
        let mut config = rustls::ServerConfig::builder_with_provider(self.provider.clone())
            .with_protocol_versions(&[&TLS13])
            .map_err(cannot_make)?
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(self.certified.clone());
        config.alpn_protocols = self.alpn();
        config.max_early_data_size = 0;
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        Ok(config)
    }

    /// The configuration of one connection to the holder of `expected`. The second value holds,
    /// after a failed handshake, the identity that was valid but not the expected one.
    pub(super) fn client_config(
        &self,
        expected: &PublicKey,
    ) -> Result<(rustls::ClientConfig, Arc<OneIdentity>), IdentityError> {
        let verifier = Arc::new(OneIdentity {
            provider: self.provider.clone(),
            expected: expected.clone(),
            refused: OnceLock::new(),
        });
        let mut config = rustls::ClientConfig::builder_with_provider(self.provider.clone())
            .with_protocol_versions(&[&TLS13])
            .map_err(cannot_make)?
            .dangerous()
            .with_custom_certificate_verifier(verifier.clone())
            .with_client_cert_resolver(self.certified.clone());
        config.alpn_protocols = self.alpn();
        config.enable_early_data = false;
        config.enable_sni = false;
        config.resumption = Resumption::disabled();
        Ok((config, verifier))
    }
}

fn cannot_make(error: impl fmt::Display) -> IdentityError {
    IdentityError::Certificate(error.to_string())
}

fn verified_key(
    certificate: &CertificateDer<'_>,
    further: &[CertificateDer<'_>],
) -> Result<PublicKey, rustls::Error> {
    if !further.is_empty() {
        return Err(refusal(IdentityError::Chain(further.len() + 1)));
    }
    bound_key(certificate).map_err(refusal)
}

/// The alert for a bad certificate, with the reason in its text.
fn refusal(error: IdentityError) -> rustls::Error {
    CertificateError::Other(OtherError(Arc::new(TlsRefusal(error)))).into()
}

/// An error formatted for the peer: rustls includes its debug form.
#[derive(thiserror::Error)]
#[error(transparent)]
struct TlsRefusal(IdentityError);

impl fmt::Debug for TlsRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// How both sides verify the peer's signature: in TLS 1.3 alone, with the provider's algorithms.
macro_rules! tls13_signatures {
    () => {
        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            Err(PeerIncompatible::Tls13RequiredForQuic.into())
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            let algorithms = &self.provider.signature_verification_algorithms;
            verify_tls13_signature(message, certificate, signed, algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.provider.signature_verification_algorithms.supported_schemes()
        }
    };
}

/// The server's check: any valid identity passes.
#[derive(Debug)]
struct AnyIdentity {
    provider: Arc<CryptoProvider>,
}

impl ClientCertVerifier for AnyIdentity {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn client_auth_mandatory(&self) -> bool {
        true
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        further: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        verified_key(certificate, further).map(|_| ClientCertVerified::assertion())
    }

    tls13_signatures!();
}

/// The client's check: only the dialled identity passes.
#[derive(Debug)]
pub(super) struct OneIdentity {
    provider: Arc<CryptoProvider>,
    expected: PublicKey,
    refused: OnceLock<PublicKey>,
}

impl OneIdentity {
    pub(super) fn refused(&self) -> Option<&PublicKey> {
        self.refused.get()
    }
}

impl ServerCertVerifier for OneIdentity {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        further: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let got = verified_key(certificate, further)?;
        if got == self.expected {
            return Ok(ServerCertVerified::assertion());
        }
        let got = self.refused.get_or_init(|| got).clone();
        let expected = Box::new(self.expected.clone());
        Err(refusal(IdentityError::Unexpected { expected, got: Box::new(got) }))
    }

    tls13_signatures!();
}
