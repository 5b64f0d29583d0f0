//! Canonical presence, and the votes from which the chain derived it.

use crate::{
    api::{
        convert::count,
        error::ApiError,
        route::{Route, one},
        view::View,
    },
    storage::StoredPresence,
    types::{AbsentRunner, Bytes, Presence, Text, Vote, Votes},
};
use cowboy_engine::{
    chain::Certificate,
    presence::{Bitmap, ThresholdRule, canonical},
    primitives::{Address, Height},
};

pub(super) fn table() -> Vec<Route> {
    vec![
        one(
            "/v1/presence/{height}",
            "Canonical presence: the runners that a block's certificate shows as present",
            |view: &View, height: String| show(view, &height),
        ),
        one(
            "/v1/presence/{height}/votes",
            "The votes in the certificate of a block",
            |view: &View, height: String| votes(view, &height),
        ),
    ]
}

fn show(view: &View, height: &str) -> Result<Presence, ApiError> {
    let stored = stored(view, asked(view, height)?)?;
    let certificate = decoded(&stored)?;
    let bitmap = stored.bitmap().ok_or_else(|| damaged(&stored, "bitmap"))?;
    let (rule, len) = (view.state.params().threshold_rule, stored.registry.len());
    let counts = canonical::counts(&ballots(&certificate), len);
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
            ThresholdRule::Committee => Some(canonical::of(validators(view, stored.height))),
            ThresholdRule::Quorum => Some(canonical::of(votes)),
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

fn votes(view: &View, height: &str) -> Result<Votes, ApiError> {
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
        quorum: canonical::quorum(validators(view, stored.height)),
        validators: validators(view, stored.height),
        votes: certificate.votes.iter().map(vote).collect(),
        embedded_in: stored.embedded_at.get(),
    })
}

/// The height in a request: `latest` is the newest one with a known P(H).
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

fn without_certificate(view: &View, height: Height) -> ApiError {
    if height == Height::GENESIS {
        return ApiError::not_found("genesis has no certificate: no validator votes on it");
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

pub(super) fn decoded(stored: &StoredPresence) -> Result<Certificate, ApiError> {
    stored.certificate().map_err(|_| damaged(stored, "certificate"))
}

fn damaged(stored: &StoredPresence, what: &str) -> ApiError {
    let height = stored.height;
    ApiError::internal(format!("the stored {what} of block {height} is damaged"))
        .hint(format!("cowboyctl presence verify {height} shows how; another validator has a copy"))
}

fn ballots(certificate: &Certificate) -> Vec<(u32, &Bitmap)> {
    certificate.votes.iter().map(|vote| (vote.validator, &vote.presence)).collect()
}

fn validators(view: &View, height: Height) -> u32 {
    count(view.state.validators_in(view.state.epoch_at(height)).len())
}

fn voter(view: &View, height: Height, index: u32) -> String {
    let committee = view.state.committee_in(view.state.epoch_at(height));
    let address: Option<Address> = committee.get(index as usize).map(|v| v.pubkey.address());
    address.map_or_else(|| format!("#{index}"), |address| view.name(&address))
}
