//! QUIC as it comes out of the library, for comparison.

use rustls::{RootCertStore, pki_types::PrivatePkcs8KeyDer};
use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
};

/// Any port of the loopback.
pub const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A server, a client, and what the client connects to it with.
pub fn ends() -> (quinn::Endpoint, quinn::Endpoint, quinn::ClientConfig) {
    let certified =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let certificate = certified.cert.der().clone();
    let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    let server = quinn::ServerConfig::with_single_cert(vec![certificate.clone()], key.into());
    let server = quinn::Endpoint::server(server.expect("a key"), LOOPBACK).expect("a socket");
    let mut roots = RootCertStore::empty();
    roots.add(certificate).expect("a certificate");
    let config = quinn::ClientConfig::with_root_certificates(Arc::new(roots)).expect("roots");
    let client = quinn::Endpoint::client(LOOPBACK).expect("a socket");
    (server, client, config)
}
