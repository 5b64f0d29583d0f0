//! Plain QUIC with the library's defaults, for comparison.

use rustix::net::sockopt::set_socket_recv_buffer_size;
use rustls::{RootCertStore, pki_types::PrivatePkcs8KeyDer};
use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket},
    sync::Arc,
};

/// Any port on the loopback.
pub const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A server, a client, and the configuration with which the client connects to it.
pub fn ends() -> (quinn::Endpoint, quinn::Endpoint, quinn::ClientConfig) {
    let certified =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let certificate = certified.cert.der().clone();
    let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    let server = quinn::ServerConfig::with_single_cert(vec![certificate.clone()], key.into());
    let server = endpoint(Some(server.expect("a key")));
    let mut roots = RootCertStore::empty();
    roots.add(certificate).expect("a certificate");
    let config = quinn::ClientConfig::with_root_certificates(Arc::new(roots)).expect("roots");
    (server, endpoint(None), config)
}

/// An endpoint whose socket has a receive buffer as large as a devnet's.
fn endpoint(server: Option<quinn::ServerConfig>) -> quinn::Endpoint {
    let socket = UdpSocket::bind(LOOPBACK).expect("a port");
    set_socket_recv_buffer_size(&socket, 4 << 20).expect("a socket");
    let (config, runtime) = (quinn::EndpointConfig::default(), Arc::new(quinn::TokioRuntime));
    quinn::Endpoint::new(config, server, socket, runtime).expect("a socket")
}
