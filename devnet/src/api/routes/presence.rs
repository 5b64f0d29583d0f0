//! Canonical presence: what the chain concluded, from which votes, and whether that holds.

use crate::{
    api::{
        convert::count,
        error::ApiError,
        types::{
            AbsentRunner, Bytes, Mismatch, MismatchKind, Presence, PresenceCheck, Text, Vote, Votes,
        },
        view::View,
    },
    consensus::{
        certificate::{self, CertificateError},
        scheme::Committee,
    },
    storage::{StorageError, StoredPresence},
};
use cowboy_engine::{
    chain::Certificate,
    presence::{Bitmap, ThresholdRule, threshold},
    primitives::{Address, Height},
};

/// `GET /v1/presence/{height}`
pub(super) fn show(view: &View, height: &str) -> Result<Presence, ApiError> {
    let stored = stored(view, asked(view, height)?)?;
    let certificate = decoded(&stored)?;
    let bitmap = stored.bitmap().ok_or_else(|| damaged(&stored, "bitmap"))?;
    let (rule, len) = (view.state.params().threshold_rule, stored.registry.len());
    let counts = threshold::counts(&ballots(&certificate), len);
    let votes = count(certificate.votes.len());
    let (present, absent): (Vec<_>, Vec<_>) = (0..)
        .zip(stored.registry.as_slice())
        .zip(counts)
        .map(|((index, runner), present_count)| (bitmap.get(index), runner, present_count))
        .partition(|(present, ..)| *present);
    Ok(Presence {
        height: stored.height.get(),
        rule: rule.to_string(),
        votes,
        threshold: match rule {
            ThresholdRule::Committee => Some(threshold::of(validators(view, stored.height))),
            ThresholdRule::Quorum => Some(threshold::of(votes)),
            ThresholdRule::Subset => None,
        },
        registry_len: len,
        bitmap: Text(Bytes(bitmap.as_bytes().to_vec())),
        present: present.into_iter().map(|(_, runner, _)| view.name(runner)).collect(),
        absent: absent
            .into_iter()
            .map(|(_, runner, present_count)| AbsentRunner {
                name: view.name(runner),
                present_count,
            })
            .collect(),
        embedded_in: stored.embedded_at.get(),
    })
}

/// `GET /v1/presence/{height}/votes`
pub(super) fn votes(view: &View, height: &str) -> Result<Votes, ApiError> {
    let stored = stored(view, asked(view, height)?)?;
    let certificate = decoded(&stored)?;
    let vote = |vote: &cowboy_engine::chain::Vote| Vote {
        validator: voter(view, stored.height, vote.validator),
        index: vote.validator,
        bit_length: vote.presence.len(),
        bytes: Text(Bytes(vote.presence.as_bytes().to_vec())),
        present: view.named(
            vote.presence.ones().filter_map(|at| stored.registry.as_slice().get(at as usize)),
        ),
    };
    Ok(Votes {
        height: stored.height.get(),
        quorum: threshold::quorum(validators(view, stored.height)),
        validators: validators(view, stored.height),
        votes: certificate.votes.iter().map(vote).collect(),
        embedded_in: stored.embedded_at.get(),
    })
}

/// `GET /v1/presence/{height}/verify`
pub(super) fn verify(view: &View, height: &str) -> Result<PresenceCheck, ApiError> {
    let height = asked(view, height)?;
    let mut found = Findings::default();
    let mut check = PresenceCheck {
        height: height.get(),
        valid: false,
        certificate_valid: false,
        recomputed: Text::default(),
        stored: Text::default(),
        mismatches: Vec::new(),
    };
    let stored = match view.store().presence(height) {
        Ok(Some(stored)) => stored,
        Ok(None) => return Err(without_certificate(view, height)),
        Err(StorageError::Corrupt { record, error, .. }) => {
            found.malformed(format!("the stored {record} does not decode: {error}"));
            check.mismatches = found.0;
            return Ok(check);
        }
        Err(error) => return Err(error.into()),
    };
    check.stored = Text(Bytes(stored.bitmap.clone()));
    match stored.certificate() {
        Ok(certificate) => {
            found.certificate(view, &stored, &certificate)?;
            check.certificate_valid = found.0.is_empty();
            let votes = ballots(&certificate);
            let bitmap = view.state.presence_from(height, &votes, &stored.registry);
            found.bitmap(view, &stored, &bitmap);
            check.recomputed = Text(Bytes(bitmap.as_bytes().to_vec()));
        }
        Err(error) => found.malformed(error.to_string()),
    }
    check.valid = found.0.is_empty();
    check.mismatches = found.0;
    Ok(check)
}

/// What does not hold.
#[derive(Default)]
struct Findings(Vec<Mismatch>);

impl Findings {
    fn add(&mut self, kind: MismatchKind, validator: Option<String>, detail: String) {
        self.0.push(Mismatch { kind, validator, runner: None, bit: None, detail });
    }

    fn malformed(&mut self, detail: String) {
        self.add(MismatchKind::Malformed, None, detail);
    }

    /// Whether the certificate is a quorum of valid votes for the block of that height, and the one
    /// on the chain.
    fn certificate(
        &mut self,
        view: &View,
        stored: &StoredPresence,
        certificate: &Certificate,
    ) -> Result<(), ApiError> {
        let (epoch, chain_id) = (view.state.epoch_at(stored.height), view.state.chain_id());
        let committee = Committee::of(chain_id, view.state.validators_in(epoch))
            .map_err(|error| ApiError::internal(error.to_string()))?;
        for fault in certificate::faults(&committee, certificate) {
            let (kind, validator) = match &fault {
                CertificateError::Signature { validator, .. } => {
                    (MismatchKind::Signature, Some(*validator))
                }
                CertificateError::Order { validator, .. }
                | CertificateError::UnknownValidator { validator, .. } => {
                    (MismatchKind::Quorum, Some(*validator))
                }
                CertificateError::Votes { .. } => (MismatchKind::Quorum, None),
            };
            let validator = validator.map(|index| voter(view, stored.height, index));
            self.add(kind, validator, fault.to_string());
        }
        let (height, expected) = (stored.height, view.block_hash(stored.height)?);
        if certificate.block != expected {
            let got = certificate.block;
            let detail = format!("the certificate is for {got}, block {height} is {expected}");
            self.add(MismatchKind::Block, None, detail);
        }
        let embedding = view.block(stored.embedded_at)?;
        if !embedding.certificates.contains(certificate) {
            let at = stored.embedded_at;
            let detail = format!("block {at} embeds another certificate than the one stored");
            self.add(MismatchKind::Certificate, None, detail);
        }
        Ok(())
    }

    /// Whether the bitmap in use follows from the votes.
    fn bitmap(&mut self, view: &View, stored: &StoredPresence, recomputed: &Bitmap) {
        let order = view.state.order_for_votes_on(stored.height);
        if order.is_some_and(|order| *order != stored.registry) {
            self.malformed("the stored registry order is not the chain's".to_owned());
        }
        let Some(bitmap) = stored.bitmap() else {
            let (bytes, bits) = (stored.bitmap.len(), stored.bit_length);
            return self.malformed(format!("{bytes} stored bytes are no bitmap of {bits} bits"));
        };
        if bitmap.len() != recomputed.len() {
            let (got, expected) = (bitmap.len(), recomputed.len());
            self.malformed(format!("the stored bitmap has {got} bits, the registry {expected}"));
        }
        for (bit, runner) in (0..).zip(stored.registry.as_slice()) {
            let (got, expected) = (u8::from(bitmap.get(bit)), u8::from(recomputed.get(bit)));
            if got != expected {
                let runner = view.name(runner);
                let detail =
                    format!("bit {bit} ({runner}) is {got}, from the votes follows {expected}");
                self.0.push(Mismatch {
                    kind: MismatchKind::Bit,
                    validator: None,
                    runner: Some(runner),
                    bit: Some(bit),
                    detail,
                });
            }
        }
    }
}

/// The height of a request: `latest` is the newest one whose P(H) is known.
fn asked(view: &View, text: &str) -> Result<Height, ApiError> {
    let newest = view.state.known_presence().map(|known| known.height);
    match newest {
        None if text == "latest" => {
            let message = "no block of this chain has a certificate on the chain yet";
            Err(ApiError::unavailable(message).hint("wait for the next block"))
        }
        newest => view.height(text, newest.unwrap_or_default()),
    }
}

fn stored(view: &View, height: Height) -> Result<StoredPresence, ApiError> {
    view.store().presence(height)?.ok_or_else(|| without_certificate(view, height))
}

/// Why a final block has no certificate on the chain.
fn without_certificate(view: &View, height: Height) -> ApiError {
    if height == Height::GENESIS {
        return ApiError::not_found("nobody votes on genesis: it has no certificate");
    }
    if let Err(pruned) = view.kept(height) {
        return pruned;
    }
    let candidates = view.state.head().candidates(view.state.head_hash());
    if candidates.iter().any(|open| open.height == height) {
        let head = view.head();
        let message = format!(
            "block {height} is final, but no block up to the head {head} embeds its certificate yet"
        );
        return ApiError::unavailable(message).hint("wait for the next block");
    }
    ApiError::not_found(format!(
        "block {height} is final through its descendants only: the chain has no certificate for it"
    ))
}

fn decoded(stored: &StoredPresence) -> Result<Certificate, ApiError> {
    stored.certificate().map_err(|_| damaged(stored, "certificate"))
}

fn damaged(stored: &StoredPresence, what: &str) -> ApiError {
    let height = stored.height;
    ApiError::internal(format!("the stored {what} of block {height} is damaged"))
        .hint(format!("cowboyctl presence verify {height} says how; another validator has a copy"))
}

fn ballots(certificate: &Certificate) -> Vec<(u32, &Bitmap)> {
    certificate.votes.iter().map(|vote| (vote.validator, &vote.presence)).collect()
}

/// How many validators vote on the block at `height`.
fn validators(view: &View, height: Height) -> u32 {
    count(view.state.validators_in(view.state.epoch_at(height)).len())
}

/// The name of the validator that votes on the block at `height` number `index`.
fn voter(view: &View, height: Height, index: u32) -> String {
    let committee = view.state.committee_in(view.state.epoch_at(height));
    let address: Option<Address> = committee.get(index as usize).map(|v| v.pubkey.address());
    address.map_or_else(|| format!("#{index}"), |address| view.name(&address))
}
