//! Checks a block's evidence, valid and with each part changed, with `verify_evidence.py`, which
//! implements `docs/verification.md` and shares no code with the chain.

use super::proofs::{Chain, script};
use cowboy_devnet::types::{
    Bytes, BytesText, CertificateEvidence, Evidence, HeaderEvidence, OpenBlock, PresenceEvidence,
    VoteEvidence,
};
use cowboy_engine::{
    chain::{Certificate, Header, block::certificates_root},
    primitives::codec::to_vec,
};
use serde_json::Value;
use std::{fs, path::Path, process::Command};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/formats/verify_evidence.py");

fn bytes(bytes: &[u8]) -> BytesText {
    Bytes(bytes.to_vec()).into()
}

fn header(header: &Header) -> HeaderEvidence {
    HeaderEvidence {
        height: header.height.get(),
        parent: header.parent.into(),
        epoch: header.round.epoch,
        view: header.round.view,
        parent_view: header.round.parent_view,
        proposer: bytes(&header.proposer),
        timestamp_ms: header.timestamp_ms,
        subset_epoch: header.subset_epoch,
        transactions_root: header.transactions_root.into(),
        certificates_root: header.certificates_root.into(),
        open: header
            .open
            .iter()
            .map(|open| OpenBlock { height: open.height.get(), hash: open.hash.into() })
            .collect(),
        executed_height: header.executed.height.get(),
        executed_state_root: header.executed.state_root.into(),
    }
}

fn fields(certificate: &Certificate, chain: &Chain) -> CertificateEvidence {
    let id = chain.state.chain_id().to_be_bytes();
    CertificateEvidence {
        block: certificate.block.into(),
        epoch: certificate.round.epoch,
        view: certificate.round.view,
        parent_view: certificate.round.parent_view,
        namespace: bytes(&[b"cowboy/".as_slice(), &id, b"_FINALIZE"].concat()),
        votes: certificate
            .votes
            .iter()
            .map(|vote| VoteEvidence {
                index: vote.validator,
                key: Some(bytes(&chain.keys()[vote.validator as usize])),
                bit_length: vote.presence.len(),
                bitmap: bytes(vote.presence.as_bytes()),
                signature: bytes(&vote.signature),
            })
            .collect(),
    }
}

/// A validator's answer about the next block, once the block's certificate is on the chain.
fn evidence(chain: &Chain) -> Evidence {
    let mut block = chain.child(vec![chain.transfer()]);
    block.certificates = vec![chain.certificate(chain.state.head())];
    block.header.certificates_root = certificates_root(&block.certificates);
    let certificate = chain.certificate(&block.header);
    Evidence {
        height: block.header.height.get(),
        hash: block.hash().into(),
        state_root: chain.state.root().into(),
        block_bytes: bytes(&block.to_bytes()),
        certificate_bytes: Some(bytes(&to_vec(&certificate))),
        header: header(&block.header),
        transactions: block.transactions.iter().map(|signed| signed.hash().into()).collect(),
        embedded: Vec::new(),
        certificate: Some(fields(&certificate, chain)),
        presence: Some(PresenceEvidence {
            embedded_in: block.header.height.next().get(),
            bit_length: 3,
            // Each voter saw all runners but the one of its own number, so at least two of three
            // votes have each runner, and two are enough.
            bitmap: bytes(&[0b111]),
            registry: chain
                .state
                .registry()
                .order()
                .as_slice()
                .iter()
                .map(|runner| (*runner).into())
                .collect(),
        }),
    }
}

/// The script's verdict on an answer: exit code and output.
fn checked(file: &Path, chain: &Chain, rule: &str, answer: &Value) -> (i32, String) {
    fs::write(file, answer.to_string()).expect("written");
    script(SCRIPT, file, chain, &[rule])
}

#[test]
fn a_second_implementation_derives_the_same_presence() {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("there is no python3: nothing is compared");
        return;
    }
    let (chain, _) = Chain::new();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("evidence.json");
    let sound = serde_json::to_value(evidence(&chain)).expect("plain data");
    let (code, line) = checked(&file, &chain, "committee", &sound);
    assert_eq!(code, 0, "{line}");
    let said: Value = serde_json::from_str(&line).expect("a line of JSON");
    assert_eq!(said["presence"], "0x07");
    assert_eq!(said["counts"], serde_json::json!([2, 3, 2]));
    // The committee's first validator proposes, and embeds the parent's certificate.
    let seed = chain.certificate(chain.state.head()).seed_digest(Some(0));
    assert_eq!(said["seeds"], serde_json::json!([seed.to_string()]));
    let (code, line) = checked(&file, &chain, "quorum", &sound);
    assert_eq!(code, 0, "one of three votes is enough: {line}");

    // Changes a digit of a byte string, counted from its end, or a number.
    let flip = |pointer: &str, at: usize| {
        let mut forged = sound.clone();
        let value = forged.pointer_mut(pointer).expect("it is there");
        match value {
            Value::String(text) => {
                let place = text.len() - 1 - at;
                let digit = if text.as_bytes()[place] == b'0' { "1" } else { "0" };
                text.replace_range(place..=place, digit);
            }
            other => *other = (other.as_u64().expect("a number") ^ 1).into(),
        }
        forged
    };
    for (pointer, at, expected) in [
        ("/block_bytes", 0, "block: its transactions differ"),
        ("/block_bytes", 400, ""),
        ("/certificate_bytes", 0, "certificate: votes are out of order"),
        // The last vote ends with its signature, 64 bytes, and its number.
        ("/certificate_bytes", 60, "certificate: the vote of validator 3 is not signed"),
        ("/certificate_bytes", 420, ""),
        ("/hash", 0, "block: it has another hash"),
        ("/height", 0, "block: it has another height"),
        ("/header/timestamp_ms", 0, "fields: the header"),
        ("/transactions/0", 0, "fields: the transactions"),
        ("/certificate/votes/1/signature", 7, "fields: the certificate"),
        ("/certificate/votes/1/bitmap", 0, "fields: the certificate"),
        ("/certificate/view", 0, "fields: the certificate"),
        ("/presence/bitmap", 0, "presence: the votes give 0x07"),
        ("/presence/bit_length", 0, "presence: it has another length"),
    ] {
        let (code, line) = checked(&file, &chain, "committee", &flip(pointer, at));
        assert_eq!(code, 7, "{pointer} {at}: {line}");
        assert!(line.contains(expected), "{pointer} {at}: {line}");
    }
    let mut without = sound.clone();
    without["certificate_bytes"] = Value::Null;
    let (code, line) = checked(&file, &chain, "committee", &without);
    assert_eq!((code, line.as_str()), (7, "certificate: it is missing\n"));
}
