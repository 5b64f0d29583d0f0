//! Requests that change a running runner's capacity, and the reports to its validators that follow.

use super::error::{ApiError, shown};
use crate::{
    topology::MAX_CONCURRENT_JOBS,
    types::{AnswerRequest, CapabilitiesRequest, LimitRequest},
};
use cowboy_engine::{
    presence::view::MAX_WITHDRAWN,
    primitives::Hash,
    registry::{Ability, AbilityError, JobKind},
    wire::BackpressureSignal,
};
use std::collections::BTreeSet;

/// A request's command to a running runner of the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Steer {
    Look,
    Pause,
    Resume,
    Limit(u32),
    /// Restore the first abilities, and withdraw the others for now.
    Change(BTreeSet<Ability>, BTreeSet<Ability>),
    /// Give a job, which waits for it, its result.
    Answer(Hash, HandAnswer),
}

/// A result that a person gives, or the reason for giving none.
pub type HandAnswer = Result<Vec<u8>, String>;

/// Why a runner refuses a command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SteerError {
    /// The runner would have more labels withdrawn than validators store.
    #[error("{0} labels withdrawn, but the maximum is {MAX_WITHDRAWN}")]
    TooMany(usize),
    #[error("the runner cannot execute jobs of kind {0}")]
    CannotExecute(JobKind),
    /// The runner executes its jobs itself, or has no such job now.
    #[error("no job {0} waits for an answer at the runner")]
    NotWaiting(Hash),
}

/// A runner's report to its validators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    pub load: BackpressureSignal,
    pub withdrawn: BTreeSet<Ability>,
}

impl LimitRequest {
    pub fn steer(&self) -> Result<Steer, ApiError> {
        let most = self.max_concurrent;
        if most == 0 || u64::from(most) > MAX_CONCURRENT_JOBS {
            return Err(ApiError::bad_request(format!(
                "max_concurrent: {most} jobs at a time, expected 1 to {MAX_CONCURRENT_JOBS}"
            ))
            .hint("to have it take none: cowboyctl runner pause RUNNER"));
        }
        Ok(Steer::Limit(most))
    }
}

impl CapabilitiesRequest {
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

impl AnswerRequest {
    pub fn steer(&self) -> Result<Steer, ApiError> {
        let answer = match (&self.result, &self.failure) {
            (Some(result), None) => Ok(result.0.0.clone()),
            (None, Some(failure)) => Err(failure.clone()),
            _ => return Err(ApiError::bad_request("expected `result` or `failure`")),
        };
        Ok(Steer::Answer(*self.job_id, answer))
    }
}

impl From<SteerError> for ApiError {
    fn from(error: SteerError) -> Self {
        let hint = match &error {
            SteerError::TooMany(_) => "withdraw a kind instead of its models or servers",
            SteerError::CannotExecute(_) => {
                "configure it among the runner's executors, and start the runner again"
            }
            SteerError::NotWaiting(_) => {
                "a runner with `executors: {by_hand: true}` waits with the jobs that it is drawn for"
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
        check(request(&[], &["fax"]), "remove: `fax` is not a label: expected a kind");
        check(request(&["llm:"], &[]), "add: `llm:` is not a label");
        check(request(&["http"], &["custom", "http"]), "`http` is in `add` and in `remove`");
        check(request(&[&"x".repeat(129)], &[]), "add: a label of 129 bytes");
    }
}
