//! Blocks and certificates in their canonical form, for clients that verify them.

use crate::{
    api::{
        convert::evidence,
        error::ApiError,
        route::{Route, one},
        view::View,
    },
    storage::{StorageError, StoredPresence},
    types::{
        Bytes, BytesText, EVIDENCE_PAGE, EVIDENCE_PAGE_BYTES, EVIDENCE_PAGE_LIMIT, Evidence,
        EvidencePage, EvidenceQuery, PresenceEvidence, RawBlock,
    },
};
use cowboy_engine::{
    chain::{self, Certificate},
    primitives::{
        Height,
        codec::{from_slice, to_vec},
    },
};

pub(super) fn table() -> Vec<Route> {
    vec![
        one(
            "/v1/chain/blocks/{height}/evidence",
            "A final block and its certificate, as bytes and as fields",
            |view: &View, height: String| show(view, &height),
        ),
        one(
            "/v1/chain/evidence",
            "A page of final blocks and their certificates, as bytes",
            |view: &View, (), query: EvidenceQuery| page(view, &query),
        ),
    ]
}

fn page(view: &View, query: &EvidenceQuery) -> Result<EvidencePage, ApiError> {
    let from = Height::new(query.from.unwrap_or(1));
    view.reached(from)?;
    view.kept(from)?;
    let limit = query.limit.unwrap_or(EVIDENCE_PAGE).clamp(1, EVIDENCE_PAGE_LIMIT);
    let (mut blocks, mut size) = (Vec::new(), 0);
    for height in (from.get()..=view.head().get()).take(limit).map(Height::new) {
        let (_, raw) = raw(view, height)?;
        size += raw.block_bytes.0.len();
        if size > EVIDENCE_PAGE_BYTES && !blocks.is_empty() {
            break;
        }
        blocks.push(raw);
    }
    Ok(EvidencePage { blocks, head: view.head().get() })
}

fn show(view: &View, height: &str) -> Result<Evidence, ApiError> {
    let height = view.height(height, view.head())?;
    let (block, raw) = raw(view, height)?;
    let fields = |certificate: &Certificate| {
        let committee = view.state.committee_in(certificate.round.epoch);
        evidence::certificate(certificate, view.state.chain_id(), &committee)
    };
    let certificate = raw.certificate_bytes.as_ref();
    let certificate = certificate.and_then(|bytes| from_slice::<Certificate>(&bytes.0).ok());
    let presence = readable(view.store().presence(height))?.map(|stored| PresenceEvidence {
        embedded_in: stored.embedded_at.get(),
        bit_length: stored.bit_length,
        bitmap: Bytes(stored.bitmap).into(),
        registry: stored.registry.as_slice().iter().map(|runner| (*runner).into()).collect(),
    });
    let RawBlock { height, hash, state_root, block_bytes, certificate_bytes } = raw;
    Ok(Evidence {
        height,
        hash,
        state_root,
        block_bytes,
        certificate_bytes,
        header: evidence::header(&block.header),
        transactions: block.transactions.iter().map(|signed| signed.hash().into()).collect(),
        embedded: block.certificates.iter().map(fields).collect(),
        certificate: certificate.as_ref().map(fields),
        presence,
    })
}

/// A final block, decoded and as it is stored. `height` is at most the head.
fn raw(view: &View, height: Height) -> Result<(chain::Block, RawBlock), ApiError> {
    let block = view.block(height)?;
    let (state_root, _) = view.executed(height)?;
    let raw = RawBlock {
        height: height.get(),
        hash: block.hash().into(),
        state_root: state_root.into(),
        block_bytes: Bytes(block.to_bytes()).into(),
        certificate_bytes: certificate(view, height)?,
    };
    Ok((block, raw))
}

/// A certificate of a block as it is stored, whether or not it is damaged, because the client
/// verifies it.
fn certificate(view: &View, height: Height) -> Result<Option<BytesText>, ApiError> {
    let bytes = match readable(view.store().presence(height))? {
        Some(StoredPresence { certificate, .. }) => Some(certificate),
        None => readable(view.store().certificate(height))?.map(|found| to_vec(&found)),
    };
    Ok(bytes.map(|bytes| Bytes(bytes).into()))
}

/// A record, or `None` if it is damaged, because a damaged record proves nothing.
fn readable<T>(stored: Result<Option<T>, StorageError>) -> Result<Option<T>, ApiError> {
    match stored {
        Err(StorageError::Corrupt { .. }) => Ok(None),
        other => Ok(other?),
    }
}
