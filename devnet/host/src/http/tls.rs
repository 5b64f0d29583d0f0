//! TLS for HTTP servers: a certificate, its key, and optionally the root certificates of clients.

use rustls::{
    RootCertStore, ServerConfig,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    server::{VerifierBuilderError, WebPkiClientVerifier},
};
use std::{fmt, io, sync::Arc};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, server::TlsStream};

/// A server's certificate and key, and its requirements on clients, in PEM.
#[derive(Clone)]
pub struct Material {
    /// The server's certificate, followed by its intermediate certificates.
    pub certificates: Vec<u8>,
    pub key: Vec<u8>,
    /// Root certificates for clients; `None` if clients need no certificate.
    pub client_roots: Option<Vec<u8>>,
}

/// Why the material is invalid.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("the {0} are not certificates in PEM")]
    Certificates(&'static str),
    #[error("the key is not a private key in PEM")]
    Key,
    #[error("the certificate and its key do not match: {0}")]
    Mismatch(#[from] rustls::Error),
    #[error("the root certificates for clients: {0}")]
    Clients(#[from] VerifierBuilderError),
}

/// Performs the server's side of TLS handshakes.
#[derive(Clone)]
pub struct Acceptor(TlsAcceptor);

impl fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Acceptor(..)")
    }
}

impl Acceptor {
    pub fn new(material: &Material) -> Result<Self, TlsError> {
        let chain = certificates(&material.certificates, "server's")?;
        let key = PrivateKeyDer::from_pem_slice(&material.key).map_err(|_| TlsError::Key)?;
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()?;
        let builder = match &material.client_roots {
            None => builder.with_no_client_auth(),
            Some(roots) => {
                let mut store = RootCertStore::empty();
                for root in certificates(roots, "clients' roots")? {
                    store.add(root)?;
                }
                let roots = Arc::new(store);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
                builder.with_client_cert_verifier(verifier.build()?)
            }
        };
        let mut config = builder.with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    pub(super) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        self.0.accept(stream).await
    }
}

fn certificates(pem: &[u8], whose: &'static str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    all.ok().filter(|all| !all.is_empty()).ok_or(TlsError::Certificates(whose))
}
