//! Resolves the names of nodes in requests, and starts, stops and kills nodes for requests.

use super::{
    backend::{Backend, Switch},
    error::{ApiError, shown},
};
use cowboy_host::spelling::nearest;
use std::sync::Arc;

pub(super) fn find(backend: &Backend, text: &str) -> Result<String, ApiError> {
    let found = backend.names.resolve(text).and_then(|address| {
        let validator = backend.slot_at(&address).map(|slot| slot.name().to_owned());
        validator
            .or_else(|| backend.runner_runs(&address).map(|_| backend.names.of(&address)))
            .or_else(|| elsewhere(backend, &backend.names.of(&address)))
    });
    found.ok_or_else(|| {
        let all = all(backend);
        let hint = match nearest(text, all.iter().map(String::as_str)) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("the nodes of this devnet are {}", all.join(", ")),
        };
        ApiError::not_found(format!("there is no node `{}`", shown(text))).hint(hint)
    })
}

/// A node of this process; a conflict if another process runs it.
pub(super) fn here(backend: &Backend, text: &str) -> Result<String, ApiError> {
    let node = find(backend, text)?;
    match elsewhere(backend, &node) {
        Some(node) => Err(ApiError::conflict(format!("`{node}` runs in another process"))
            .hint("ask the control API of that process")),
        None => Ok(node),
    }
}

fn elsewhere(backend: &Backend, name: &str) -> Option<String> {
    let mut elsewhere = backend.elsewhere().iter();
    elsewhere.find(|(known, _)| known == name).map(|(known, _)| known.clone())
}

pub(super) fn is_validator(backend: &Backend, name: &str) -> bool {
    backend.slot(name).is_some() || elsewhere(backend, name).is_some()
}

/// The names of all nodes: validators, then runners of the process, `runner-2` before `runner-10`.
pub(super) fn all(backend: &Backend) -> Vec<String> {
    let here = backend.slots().into_iter().map(|slot| slot.name().to_owned());
    let validators = here.chain(backend.elsewhere().iter().map(|(name, _)| name.clone()));
    let mut runners: Vec<_> = backend.runners().collect();
    runners.sort_by_cached_key(|name| {
        let stem = name.trim_end_matches(|char: char| char.is_ascii_digit());
        (stem.to_owned(), name.len(), name.clone())
    });
    validators.chain(runners).collect()
}

pub(super) async fn switch(
    backend: Arc<Backend>,
    name: &str,
    wanted: Switch,
) -> Result<(), ApiError> {
    let name = name.to_owned();
    // A separate task, so that the switch completes even if the client no longer waits.
    let task = tokio::spawn(async move {
        let slot = backend.slot(&name);
        let what = if slot.is_some() { "validator" } else { "runner" };
        let _one = match slot.map(|slot| slot.switching.clone().try_lock_owned()) {
            Some(Ok(one)) => Some(one),
            Some(Err(_)) => {
                let message = format!("{what} `{name}` is being started or stopped");
                return Err(ApiError::conflict(message));
            }
            None => None,
        };
        let verb = match wanted {
            Switch::Start | Switch::Resync => "running",
            Switch::Stop | Switch::Kill => "stopped",
            Switch::Freeze => "frozen",
            Switch::Thaw => "going on",
        };
        let others =
            || backend.slots().iter().any(|slot| slot.name() != name && slot.running().is_some());
        if wanted == Switch::Resync && !others() {
            let message = format!("no validator but `{name}` runs: only it has the chain");
            return Err(ApiError::conflict(message)
                .hint("start others first: cowboyctl validator start NAME"));
        }
        let changes_nothing = match wanted {
            Switch::Start => runs(&backend, &name),
            Switch::Stop | Switch::Kill => !runs(&backend, &name),
            Switch::Resync | Switch::Freeze | Switch::Thaw => false,
        };
        if changes_nothing {
            return Err(ApiError::conflict(format!("{what} `{name}` is {verb} already")));
        }
        (backend.hooks.switch)(&name, wanted).await.map_err(|reason| {
            ApiError::internal(format!("{what} `{name}` is not {verb}: {reason}"))
        })
    });
    task.await.map_err(|error| ApiError::internal(error.to_string()))?
}

pub(super) fn runs(backend: &Backend, name: &str) -> bool {
    match backend.slot(name) {
        Some(slot) => slot.running().is_some(),
        None => backend
            .names
            .resolve(name)
            .and_then(|address| backend.runner_runs(&address))
            .unwrap_or(false),
    }
}
