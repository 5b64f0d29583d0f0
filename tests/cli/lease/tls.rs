//! Servers with a certificate, and clients that have to present one.

use super::Served;
use crate::support::Folder;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::fs;

fn pem(label: &str, der: &[u8]) -> String {
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", BASE64_STANDARD.encode(der))
}

#[test]
fn a_server_with_tls_and_clients_that_show_who_they_are() {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let signed = |name: &str| {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &ca).unwrap();
        (pem("CERTIFICATE", certificate.der()), pem("PRIVATE KEY", &key.serialize_der()))
    };
    let folder = Folder::new();
    let (certificate, key) = signed("127.0.0.1");
    let (own, own_key) = signed("client");
    for (name, text) in [
        ("cert.pem", &certificate),
        ("key.pem", &key),
        ("ca.pem", &pem("CERTIFICATE", ca.der())),
        ("client.pem", &(own + &own_key)),
    ] {
        fs::write(folder.path(name), text).unwrap();
    }
    let tls = ["--tls-cert", "cert.pem", "--tls-key", "key.pem", "--tls-client-ca", "ca.pem"];
    let served = Served::in_folder(folder, &[&["--bind", "0.0.0.0"], &tls[..]].concat());
    assert!(served.url.starts_with("https://127.0.0.1:"), "{}", served.url);
    let folder = &served.folder;
    let shows = ["--ca", "ca.pem", "--identity", "client.pem"];
    folder.prints(&[&["lease", "ls"], &shows[..]].concat());
    let issue = ["lease", "token", "issue", "r1", "--file", "r1.token"];
    folder.prints(&[&issue, &shows[..]].concat());
    // Without a trusted certificate on either side there is no answer.
    let said = folder.fails(4, &["lease", "ls"]);
    assert!(said.contains("--ca FILE"), "{said}");
    let refused = folder.run(&["lease", "ls", "--ca", "ca.pem"]);
    assert_ne!(refused.code, 0, "{refused:?}");
    fs::write(folder.path("none.pem"), "nothing").unwrap();
    let said = folder.fails(2, &["lease", "ls", "--ca", "none.pem"]);
    assert!(said.contains("not PEM"), "{said}");
}
