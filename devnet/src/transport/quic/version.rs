//! Two sides that have no version of the protocol in common tell each other which they speak.

use super::CODE;
use crate::transport::{
    TransportError,
    tls::{NO_VERSION, agreed},
};
use quinn::{Connection, ConnectionError, TransportErrorCode};

/// The longest list of names that is read, in bytes: about eight.
const MAX_VERSIONS_BYTES: usize = 128;

/// TLS's alert `no_application_protocol` (RFC 7301 §3.2).
const NO_APPLICATION_PROTOCOL: u8 = 120;

const REASON: &[u8] = b"no version of the protocol in common";

pub(super) fn none_in_common(connection: &Connection) -> bool {
    agreed(connection).as_deref() == Some(NO_VERSION)
}

/// The dialler's part: it ends the connection once it has the answer.
pub(super) async fn ask(connection: &Connection, own: &str) -> TransportError {
    let asked = async {
        let (mut send, mut recv) = connection.open_bi().await.ok()?;
        send.write_all(own.as_bytes()).await.ok()?;
        send.finish().ok()?;
        recv.read_to_end(MAX_VERSIONS_BYTES).await.ok()
    };
    let error = none(own, asked.await);
    connection.close(CODE, REASON);
    error
}

/// The listener's part: the dialler ends the connection, unless the time for handshakes is over.
pub(super) async fn answer(connection: &Connection, own: &str) -> TransportError {
    let answered = async {
        let (mut send, mut recv) = connection.accept_bi().await.ok()?;
        let theirs = recv.read_to_end(MAX_VERSIONS_BYTES).await.ok()?;
        send.write_all(own.as_bytes()).await.ok()?;
        send.finish().ok()?;
        // An error means that the dialler has ended the connection.
        let _ = send.stopped().await;
        Some(theirs)
    };
    let error = none(own, answered.await);
    connection.close(CODE, REASON);
    error
}

/// The error when the peer does not even know [`NO_VERSION`]; `None` for other failures.
pub(super) fn refused(error: &ConnectionError, own: &str) -> Option<TransportError> {
    let code = match error {
        ConnectionError::TransportError(error) => error.code,
        ConnectionError::ConnectionClosed(close) => close.error_code,
        _ => return None,
    };
    let refused = code == TransportErrorCode::crypto(NO_APPLICATION_PROTOCOL);
    refused.then(|| none(own, None))
}

/// The names come from a peer: only letters, digits, `/`, `.`, `-` and spaces are repeated.
fn none(own: &str, theirs: Option<Vec<u8>>) -> TransportError {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/.- ".contains(byte);
    let theirs = theirs.filter(|names| !names.is_empty() && names.iter().all(plain));
    let theirs = theirs.and_then(|names| String::from_utf8(names).ok());
    let theirs = theirs.unwrap_or_else(|| "versions that it does not name".to_owned());
    TransportError::NoCommonVersion { own: own.to_owned(), theirs }
}
