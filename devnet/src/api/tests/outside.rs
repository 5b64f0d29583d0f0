//! The API for other hosts: TLS, and a token in every request.

use super::fixture::*;
use crate::{
    api::server,
    client::{Access, Client, ClientError},
    types::ErrorCode,
};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use cowboy_host::http::tls::{Acceptor, Material};
use std::time::Duration;
use tokio::net::TcpListener;

const WITHIN: Duration = Duration::from_secs(1);
const READ: &str = "r3ad";

fn pem(label: &str, der: &[u8]) -> Vec<u8> {
    let body = BASE64_STANDARD.encode(der);
    format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n").into_bytes()
}

#[tokio::test]
async fn other_hosts_need_tls_and_a_token_and_change_nothing_with_it() {
    let devnet = Devnet::new().await;
    let own = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let roots = pem("CERTIFICATE", own.cert.der());
    let material = Material {
        certificates: roots.clone(),
        key: pem("PRIVATE KEY", &own.signing_key.serialize_der()),
        client_roots: None,
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let tls = Acceptor::new(&material).unwrap();
    let _serving = server::start_for_others(listener, devnet.backend.clone(), tls, READ);
    let url = format!("https://127.0.0.1:{port}");
    let with = |token: Option<&str>| {
        let access = Access { token: token.map(str::to_owned), roots: Some(roots.clone()) };
        Client::with_access(&url, access).unwrap()
    };
    assert!(with(Some(READ)).head().await.is_ok());
    assert!(with(Some(TOKEN)).head().await.is_ok());
    for token in [None, Some(""), Some("wrong"), Some("r3a"), Some("r3add")] {
        let refused = with(token).head().await.unwrap_err();
        assert_eq!(refused.code(), Some(ErrorCode::Unauthorized), "{token:?}: {refused}");
    }
    let refused = with(Some(READ)).advance(1, WITHIN).await.unwrap_err();
    assert_eq!(refused.code(), Some(ErrorCode::Unauthorized), "{refused}");
    assert!(with(Some(READ)).with_token(TOKEN.to_owned()).advance(1, WITHIN).await.is_ok());

    // Another certificate, or none that is trusted, is no answer; and neither is plain HTTP.
    let stranger = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let roots = Some(pem("CERTIFICATE", stranger.cert.der()));
    let access = Access { token: Some(READ.to_owned()), roots };
    let other = Client::with_access(&url, access).unwrap().head().await.unwrap_err();
    assert!(matches!(other, ClientError::Unreachable { .. }), "{other}");
    let open = Client::new(&format!("http://127.0.0.1:{port}")).unwrap().head().await.unwrap_err();
    assert!(matches!(open, ClientError::Unreachable { .. }), "{open}");
    // The loopback's API takes no other token.
    let access = Access { token: Some(READ.to_owned()), roots: None };
    let shown = Client::with_access(&devnet.url, access).unwrap().advance(1, WITHIN).await;
    assert_eq!(shown.unwrap_err().code(), Some(ErrorCode::Unauthorized));
}
