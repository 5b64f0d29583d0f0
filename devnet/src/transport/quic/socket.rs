//! A UDP socket that tells when its port is free again.

use super::faulty::Faulty;
use crate::{faults::Tap, transport::TransportError};
use quinn::{AsyncUdpSocket, Runtime as _, TokioRuntime};
use rustix::net::sockopt::set_socket_recv_buffer_size;
use std::{
    convert::Infallible,
    io,
    net::{SocketAddr, UdpSocket},
    sync::Arc,
};
use tokio::sync::oneshot;

/// The requested size of a socket's receive buffer in bytes; the system may give less. When a
/// validator comes back, all its runners greet it at once, with four packets or more each. Packets
/// that do not fit are sent again only after [`INITIAL_RTT`](super::INITIAL_RTT) or more.
const RECEIVE_BUFFER: usize = 4 << 20;

pub(super) struct Bound {
    pub(super) socket: Arc<dyn AsyncUdpSocket>,
    pub(super) address: SocketAddr,
    /// Fails once nothing uses the socket; nothing is ever sent.
    pub(super) released: oneshot::Receiver<Infallible>,
}

pub(super) fn bind(address: SocketAddr, tap: Tap) -> Result<Bound, TransportError> {
    let failed = |error: io::Error| TransportError::Bind { address, reason: error.to_string() };
    let socket = UdpSocket::bind(address).map_err(failed)?;
    let bound = socket.local_addr().map_err(failed)?;
    if let Err(error) = set_socket_recv_buffer_size(&socket, RECEIVE_BUFFER) {
        tracing::debug!(%bound, %error, "the socket keeps its receive buffer's size");
    }
    let socket = TokioRuntime.wrap_udp_socket(socket).map_err(failed)?;
    let (in_use, released) = oneshot::channel();
    Ok(Bound {
        socket: Arc::new(Faulty::new(socket, bound, tap, in_use)),
        address: bound,
        released,
    })
}
