//! Gives names to actors, timers and jobs, and resolves ids by their beginnings.

use super::{actor, job, timer};
use crate::{
    api::{error::ApiError, ids::hash, labels::MOST, view::View},
    topology::{Name, NameError},
    types::{NameRequest, NamedKind},
};

/// Gives a name, or only checks that it is free.
pub(super) fn give(view: &View, request: NameRequest) -> Result<NameRequest, ApiError> {
    let NameRequest { kind, name, id } = request;
    let name: Name =
        name.parse().map_err(|error: NameError| ApiError::bad_request(error.to_string()))?;
    if name.as_str() == "latest" || name.as_str().starts_with("0x") {
        let message = format!("`{name}` is not a valid name: commands read it as an id");
        return Err(ApiError::bad_request(message).hint("choose another name"));
    }
    let id = match (kind, id) {
        (_, None) => None,
        (NamedKind::Actor, Some(id)) => Some(actor::find(view, &view.state, &id)?.0.to_string()),
        (NamedKind::Timer, Some(id)) => Some(timer::find(view, &id)?.timer.id.to_string()),
        (NamedKind::Job, Some(id)) => {
            let id = job::named(view, &id)?;
            job::find(view, &id)?;
            Some(id.to_string())
        }
    };
    let labels = &view.backend.labels;
    let taken = || {
        let of = match kind {
            NamedKind::Actor => "actor, account or node".to_owned(),
            NamedKind::Timer | NamedKind::Job => kind.to_string(),
        };
        let message = format!("`{name}` is the name of another {of}");
        ApiError::conflict(message).hint("choose another name")
    };
    let known = view.backend.names.named(name.as_str()).map(|address| address.to_string());
    if kind == NamedKind::Actor && known.is_some() && known != id {
        return Err(taken());
    }
    match labels.id(kind, name.as_str()) {
        Some(other) if id.as_ref() != Some(&other) && !has_ended(view, kind, &other) => {
            return Err(taken());
        }
        None if labels.count(kind) >= MOST => {
            let message = format!("the devnet has {MOST} names of {kind}s, the maximum");
            return Err(
                ApiError::conflict(message).hint("use the name of one that has ended, or none")
            );
        }
        Some(_) | None => {}
    }
    let Some(id) = id else { return Ok(NameRequest { kind, name: name.to_string(), id: None }) };
    labels.give(kind, name.clone(), id.clone()).map_err(ApiError::internal)?;
    if kind == NamedKind::Actor {
        let address = id.parse().expect("the text of an address");
        view.backend.names.give(name.as_str(), address);
    }
    Ok(NameRequest { kind, name: name.to_string(), id: Some(id) })
}

/// Whether a name can be reassigned, because it belongs to a timer or a job that has ended.
fn has_ended(view: &View, kind: NamedKind, id: &str) -> bool {
    match kind {
        NamedKind::Actor => false,
        NamedKind::Timer => timer::find(view, id).map_or(true, |stored| stored.ended.is_some()),
        NamedKind::Job => match hash("job id", id).ok().and_then(|id| view.state.job(&id)) {
            Some(job) => job.status.ended_at().is_some(),
            None => true,
        },
    }
}
