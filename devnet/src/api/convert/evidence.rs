//! Blocks and certificates as fields. A client derives the same fields from the bytes.

use crate::types::{
    Bytes, BytesText, CertificateEvidence, HeaderEvidence, OpenBlock, VoteEvidence,
};
use cowboy_engine::chain::{Certificate, GenesisValidator, Header};

fn bytes(bytes: &[u8]) -> BytesText {
    Bytes(bytes.to_vec()).into()
}

/// A header's fields.
pub fn header(header: &Header) -> HeaderEvidence {
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

/// A certificate's fields on the chain `chain_id`; `committee` is its epoch's, in the order of the
/// indices in votes.
pub fn certificate(
    certificate: &Certificate,
    chain_id: u64,
    committee: &[&GenesisValidator],
) -> CertificateEvidence {
    let votes = certificate.votes.iter().map(|vote| VoteEvidence {
        index: vote.validator,
        key: committee.get(vote.validator as usize).map(|v| bytes(&v.consensus_key)),
        bit_length: vote.presence.len(),
        bitmap: bytes(vote.presence.as_bytes()),
        signature: bytes(&vote.signature),
    });
    CertificateEvidence {
        block: certificate.block.into(),
        epoch: certificate.round.epoch,
        view: certificate.round.view,
        parent_view: certificate.round.parent_view,
        namespace: bytes(&[b"cowboy/".as_slice(), &chain_id.to_be_bytes(), b"_FINALIZE"].concat()),
        votes: votes.collect(),
    }
}
