//! Proofs of entries in a recent state, each with a header and a certificate.

use super::{actor, job, timer};
use crate::{
    api::{
        error::{ApiError, shown},
        ids,
        route::{Route, one},
        view::View,
    },
    chain::{anchor::LOOKED_AT, ledger::STATES_KEPT},
    types::{Bytes, ProofQuery, StateProof, Text},
};
use cowboy_engine::{
    chain::{self, Certificate, Header, MAX_PROOF_BYTES, State, Subject},
    primitives::{Address, Hash, Height},
};

/// The kinds of proofs, by their names in requests.
const KINDS: &str =
    "account, actor, stored, job, runner, task, presence, timer, timers or validators";

pub(super) fn table() -> Vec<Route> {
    vec![one(
        "/v1/chain/proofs/{subject}",
        "A proof of the state's value under a key, with header and certificate",
        |view: &View, kind: String, query: ProofQuery| prove(view, &kind, &query),
    )]
}

fn prove(view: &View, kind: &str, query: &ProofQuery) -> Result<StateProof, ApiError> {
    let subject = subject(view, kind, query.key.as_deref())?;
    let (state, header, certificate) = match query.at {
        Some(at) => anchor_of(view, Height::new(at))?,
        None => newest_anchor(view)?,
    };
    let kind = subject.kind().to_owned();
    let key = subject.to_string().split_once(' ').map_or("", |(_, key)| key).to_owned();
    let (height, state_root) = (header.executed.height.get(), header.executed.state_root.into());
    let (header_height, header_hash) = (header.height.get(), header.hash().into());
    let proof = chain::StateProof::new(&state, subject, header, certificate)
        .and_then(|proof| proof.to_bytes())
        .map_err(|_| {
            let message =
                format!("ProofTooLarge: {kind} {key} takes more than {MAX_PROOF_BYTES} bytes");
            let hint = match kind.as_str() {
                "timers" => "ask for fewer heights",
                _ => "read it from a validator that you trust",
            };
            ApiError::rejected(message).hint(hint)
        })?;
    let proof = Text(Bytes(proof));
    Ok(StateProof { kind, key, height, state_root, header_height, header_hash, proof })
}

fn subject(view: &View, kind: &str, key: Option<&str>) -> Result<Subject, ApiError> {
    let newest = match kind {
        "presence" => Some((Subject::Presence, "the newest that is known")),
        "validators" => Some((Subject::Validators, "those of the state")),
        _ => None,
    };
    if let Some((subject, which)) = newest {
        return match key {
            None => Ok(subject),
            Some(_) => Err(ApiError::bad_request(format!("{kind} has no key: {which}"))),
        };
    }
    let key = key.unwrap_or_default();
    Ok(match kind {
        "account" => Subject::Account(view.resolve("account", key)?),
        "runner" => Subject::Runner(view.resolve("runner", key)?),
        "actor" => Subject::Actor(actor_address(view, key)?),
        "stored" => {
            let (actor, key) = key.split_once('/').ok_or_else(|| {
                let key = shown(key);
                ApiError::bad_request(format!("`{key}` is not a key in a store"))
                    .hint("expected an actor, a slash and the key in its store: 0x12…/n")
            })?;
            Subject::Stored(actor_address(view, actor)?, key.into())
        }
        "job" => Subject::Job(match key.parse::<Text<Hash>>() {
            Ok(id) => id.0,
            Err(_) => job::named(view, key)?,
        }),
        "task" => Subject::Task(ids::hash("task id", key)?),
        "timer" => Subject::Timer(timer_id(view, key)?),
        "timers" => heights(key)?,
        _ => {
            let kind = shown(kind);
            return Err(ApiError::bad_request(format!("nothing of kind `{kind}` can be proved"))
                .hint(format!("expected {KINDS}")));
        }
    })
}

/// Resolves an address, whether or not an actor has it, or enough of the beginning of an actor's
/// address.
fn actor_address(view: &View, text: &str) -> Result<Address, ApiError> {
    match view.backend.names.resolve(text) {
        Some(address) => Ok(address),
        None => actor::find(view, &view.state, text).map(|(address, _)| address),
    }
}

/// Resolves an id, whether or not a timer has it, or enough of the beginning of a timer's id.
fn timer_id(view: &View, text: &str) -> Result<Hash, ApiError> {
    match text.parse::<Text<Hash>>() {
        Ok(id) => Ok(id.0),
        Err(_) => timer::find(view, text).map(|stored| stored.timer.id),
    }
}

fn heights(text: &str) -> Result<Subject, ApiError> {
    let number = |text: &str| {
        let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        plain.then(|| text.parse().ok()).flatten().map(Height::new)
    };
    let bounds = text.split_once("..").map(|(from, to)| (number(from), number(to)));
    match bounds {
        Some((Some(from), Some(to))) if from <= to => Ok(Subject::Timers { from, to }),
        _ => {
            let text = shown(text);
            Err(ApiError::bad_request(format!("`{text}` is not a range of heights"))
                .hint("expected two heights, both included: 120..150"))
        }
    }
}

/// The newest state that a final block with a certificate names.
fn newest_anchor(view: &View) -> Result<(State, Header, Certificate), ApiError> {
    let head = view.head().get();
    for height in (head.saturating_sub(LOOKED_AT).max(1)..=head).rev().map(Height::new) {
        if let Some(found) = anchored(view, height)? {
            return Ok(found);
        }
    }
    let message = "no recent block of this validator has a certificate and names a state it keeps";
    Err(ApiError::unavailable(message).hint("wait for the next block: cowboyctl chain wait +1"))
}

/// The state after a block, and a final block with a certificate that names it.
fn anchor_of(view: &View, at: Height) -> Result<(State, Header, Certificate), ApiError> {
    view.reached(at)?;
    if view.state_at(at).is_none() {
        let message = format!("the state after block {at} is no longer kept");
        return Err(ApiError::gone(message)
            .hint(format!("the last {STATES_KEPT} states since the last start are kept")));
    }
    let head = view.head();
    for height in (at.next().get()..=head.get()).take(LOOKED_AT as usize).map(Height::new) {
        let executed = view.block(height)?.header.executed.height;
        if executed == at {
            if let Some(found) = anchored(view, height)? {
                return Ok(found);
            }
        } else if executed > at {
            let message = format!("no final block with a certificate names the state after {at}");
            return Err(ApiError::not_found(message).hint(format!(
                "block {height} names that after block {executed}: --at {executed}"
            )));
        }
    }
    let message = format!("no final block with a certificate names the state after {at} yet");
    Err(ApiError::unavailable(message).hint("wait for the next block: cowboyctl chain wait +1"))
}

/// The state that a block names, with its header and certificate; `None` if the block has no
/// certificate or the state is not kept.
fn anchored(view: &View, height: Height) -> Result<Option<(State, Header, Certificate)>, ApiError> {
    let Some(certificate) = view.store().certificate(height)? else { return Ok(None) };
    let header = view.block(height)?.header;
    let state = view.state_at(header.executed.height);
    let state = state.filter(|rooted| rooted.root == header.executed.state_root);
    Ok(state.map(|rooted| (rooted.state.clone(), header, certificate)))
}
