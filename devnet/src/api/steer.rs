//! What requests have a runner take on while it runs, and what it tells its validators then.

use super::{
    error::ApiError,
    types::{CapabilitiesRequest, LimitRequest},
    view::shown,
};
use crate::topology::MAX_CONCURRENT_JOBS;
use cowboy_engine::{
    presence::view::MAX_WITHDRAWN,
    registry::{Ability, AbilityError, JobKind},
    wire::BackpressureSignal,
};
use std::collections::BTreeSet;

/// What a request wants of a runner of the process, beside starting and stopping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Steer {
    /// Nothing but the answer.
    Look,
    /// Take no new jobs.
    Pause,
    /// Take jobs again.
    Resume,
    /// Take at most this many at a time.
    Limit(u32),
    /// Do the first again, and the others not for now.
    Change(BTreeSet<Ability>, BTreeSet<Ability>),
}

/// Why a runner does not do what a request wants of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SteerError {
    /// It would have withdrawn more than validators keep.
    #[error("{0} labels withdrawn, where {MAX_WITHDRAWN} are the most")]
    TooMany(usize),
    /// It has no executor for jobs of that kind.
    #[error("the runner cannot execute jobs of kind {0}")]
    CannotExecute(JobKind),
}

/// What a runner tells its validators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// Its load.
    pub load: BackpressureSignal,
    /// What it cannot do for now.
    pub withdrawn: BTreeSet<Ability>,
}

impl LimitRequest {
    /// What it asks for, where that can be.
    pub fn steer(&self) -> Result<Steer, ApiError> {
        let most = self.max_concurrent;
        if most == 0 || u64::from(most) > MAX_CONCURRENT_JOBS {
            return Err(ApiError::bad_request(format!(
                "max_concurrent: {most} jobs at a time, where 1 to {MAX_CONCURRENT_JOBS} may be"
            ))
            .hint("to have it take none: cowboyctl runner pause RUNNER"));
        }
        Ok(Steer::Limit(most))
    }
}

impl CapabilitiesRequest {
    /// What it asks for, where that can be.
    pub fn steer(&self) -> Result<Steer, ApiError> {
        let parsed = |field: &str, labels: &[String]| {
            let parsed = labels.iter().map(|label| label.parse());
            parsed.collect::<Result<BTreeSet<Ability>, AbilityError>>().map_err(|error| match error
            {
                AbilityError::Unknown(text) => {
                    let shown = AbilityError::Unknown(shown(&text));
                    ApiError::bad_request(format!("{field}: {shown}"))
                }
                AbilityError::TooLong(_) => ApiError::bad_request(format!("{field}: {error}")),
            })
        };
        let (add, remove) = (parsed("add", &self.add)?, parsed("remove", &self.remove)?);
        if let Some(both) = add.intersection(&remove).next() {
            let what = format!("`{both}` is in `add` and in `remove`");
            return Err(ApiError::bad_request(what));
        }
        Ok(Steer::Change(add, remove))
    }
}

impl From<SteerError> for ApiError {
    fn from(error: SteerError) -> Self {
        let hint = match &error {
            SteerError::TooMany(_) => "withdraw a kind in place of its models or servers",
            SteerError::CannotExecute(_) => {
                "configure it among the runner's executors, and start the runner again"
            }
        };
        Self::conflict(error.to_string()).hint(hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_read_and_refused_by_name() {
        let request = |add: &[&str], remove: &[&str]| CapabilitiesRequest {
            add: add.iter().map(|label| (*label).to_owned()).collect(),
            remove: remove.iter().map(|label| (*label).to_owned()).collect(),
        };
        let steer = request(&["tee"], &["llm:small", "pool:eu", "llm:small"]).steer().unwrap();
        let removed = [Ability::Model("small".into()), Ability::Pool("eu".into())];
        assert_eq!(steer, Steer::Change([Ability::Tee].into(), removed.into()));
        let check = |request: CapabilitiesRequest, says: &str| {
            let error = request.steer().unwrap_err();
            assert!(error.to_string().contains(says), "{error}");
        };
        check(request(&[], &["fax"]), "remove: `fax` is no label: expected a kind");
        check(request(&["llm:"], &[]), "add: `llm:` is no label");
        check(request(&["http"], &["custom", "http"]), "`http` is in `add` and in `remove`");
        check(request(&[&"x".repeat(129)], &[]), "add: a label of 129 bytes");
    }
}
