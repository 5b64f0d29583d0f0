//! A certificate authority of a devnet, for the control APIs of nodes on other hosts.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use cowboy_host::files::{self, FileError, write_private};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair,
};
use std::path::Path;

/// Characters of a line of PEM.
const LINE: usize = 64;

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("no certificate: {0}")]
    Certificate(#[from] rcgen::Error),
}

/// A certificate with its secret key, both PEM.
pub(super) struct SignedCertificate {
    pub(super) certificate: String,
    pub(super) key: String,
}

/// Signs certificates of nodes. In a folder its own certificate is `ca.pem`, its key `ca.key`.
pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
}

impl Authority {
    /// The authority whose key is in `folder`, or a new one. Its certificate goes to `certificate`.
    pub(super) fn load_or_make(folder: &Path, certificate: &Path) -> Result<Self, AuthorityError> {
        let path = folder.join("ca.key");
        let kept = files::read_if_there(&path)?;
        let kept = kept.and_then(|pem| KeyPair::try_from(contents(&pem)?).ok());
        if let (Some(key), Some(certificate)) = (kept, files::read_if_there(certificate)?) {
            return Ok(Self { issuer: Issuer::new(params()?, key), certificate });
        }
        let made = Self::new()?;
        write_private(&path, &pem("PRIVATE KEY", &made.issuer.key().serialize_der()))?;
        write_private(certificate, &made.certificate)?;
        Ok(made)
    }

    /// A new authority.
    pub(super) fn new() -> Result<Self, AuthorityError> {
        let key = KeyPair::generate()?;
        let certificate = pem("CERTIFICATE", params()?.self_signed(&key)?.der());
        Ok(Self { issuer: Issuer::new(params()?, key), certificate })
    }

    /// Its own certificate, PEM.
    pub(super) fn certificate(&self) -> &str {
        &self.certificate
    }

    /// A certificate for these names and addresses.
    pub(super) fn certify(&self, names: Vec<String>) -> Result<SignedCertificate, AuthorityError> {
        let key = KeyPair::generate()?;
        let made = CertificateParams::new(names)?.signed_by(&key, &self.issuer)?;
        Ok(SignedCertificate {
            certificate: pem("CERTIFICATE", made.der()),
            key: pem("PRIVATE KEY", &key.serialize_der()),
        })
    }
}

/// The same for the same authority at every start.
fn params() -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, "cowboyctl devnet");
    params.distinguished_name = name;
    Ok(params)
}

fn pem(label: &str, der: &[u8]) -> String {
    let text = BASE64_STANDARD.encode(der);
    let mut pem = format!("-----BEGIN {label}-----\n");
    for line in text.as_bytes().chunks(LINE) {
        pem.extend(line.iter().map(|byte| char::from(*byte)));
        pem.push('\n');
    }
    pem + &format!("-----END {label}-----\n")
}

/// The contents of a file with one PEM section.
fn contents(pem: &str) -> Option<Vec<u8>> {
    let lines = pem.lines().filter(|line| !line.starts_with("-----"));
    BASE64_STANDARD.decode(lines.collect::<String>()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cowboy_host::http::tls::{Acceptor, Material};

    #[test]
    fn an_authority_goes_on_with_its_key() {
        let folder = tempfile::tempdir().unwrap();
        let ca = folder.path().join("ca.pem");
        let first = Authority::load_or_make(folder.path(), &ca).unwrap();
        let made = std::fs::read(&ca).unwrap();
        let again = Authority::load_or_make(folder.path(), &ca).unwrap();
        assert_eq!(std::fs::read(&ca).unwrap(), made);
        for authority in [first, again] {
            let one = authority.certify(vec!["validator-0".to_owned()]).unwrap();
            let (certificates, key) = (one.certificate.into_bytes(), one.key.into_bytes());
            Acceptor::new(&Material { certificates, key, client_roots: None }).unwrap();
        }
    }
}
