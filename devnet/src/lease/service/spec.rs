//! A job without its secrets, and as its runner gets it; and why a run is not taken.

use super::ServiceError;
use crate::lease::{
    check::Fault,
    messages::{EnvValue, GrantedSpec, JobSpec, NewRun},
};
use cowboy_engine::lease::{Board, JobId, SubmitError};
use std::{collections::BTreeMap, mem};

/// What replaces a secret's value.
const MASK: &str = "***";

/// A job without its secrets, and their values.
pub(super) fn without_secrets(mut spec: JobSpec) -> (JobSpec, BTreeMap<String, String>) {
    let mut secrets = BTreeMap::new();
    for (name, value) in &mut spec.env {
        if let EnvValue::Secret { secret } = value {
            secrets.insert(name.clone(), mem::replace(secret, MASK.to_owned()));
        }
    }
    (spec, secrets)
}

/// A job as its runner gets it.
pub(super) fn with_secrets(spec: JobSpec, mut secrets: BTreeMap<String, String>) -> GrantedSpec {
    let mut secret_env = Vec::new();
    let env = spec.env.into_iter().map(|(name, value)| {
        let value = match value {
            EnvValue::Plain(value) => value,
            EnvValue::Secret { .. } => {
                secret_env.push(name.clone());
                secrets.remove(&name).unwrap_or_default()
            }
        };
        (name, value)
    });
    let env = env.collect();
    GrantedSpec {
        name: spec.name,
        workdir: spec.workdir.unwrap_or_else(|| ".".to_owned()),
        image: spec.image,
        steps: spec.steps,
        env,
        secret_env,
        needs: spec.needs.into_iter().chain(spec.artifacts_of).collect(),
        artifacts: spec.artifacts,
        caches: spec.caches,
    }
}

/// Refuses a run that wants artifacts of jobs that the board does not have.
pub(super) fn known_artifacts(run: &NewRun, board: &Board) -> Result<(), Fault> {
    for (at, job) in run.jobs.iter().enumerate() {
        if let Some(n) = job.artifacts_of.iter().position(|id| board.job(id).is_none()) {
            let field = format!("jobs[{at}].artifacts_of[{n}]");
            return Err(Fault::contradiction(field, "there is no such job"));
        }
    }
    Ok(())
}

/// Why the board does not take a run, in the names of the request.
pub(super) fn refused(
    error: &SubmitError,
    run: &NewRun,
    ids: &BTreeMap<String, JobId>,
) -> ServiceError {
    let at = |job: &JobId| run.jobs.iter().position(|spec| ids[&spec.name] == *job).unwrap_or(0);
    let (field, problem) = match error {
        SubmitError::Full => return ServiceError::Full,
        SubmitError::Sets(job) => (
            format!("jobs[{}].requires", at(job)),
            "open jobs have 1,000 different sets of requirements already: ask for one of those, or \
             wait until jobs have ended",
        ),
        SubmitError::Cycle(job) => {
            (format!("jobs[{}].needs", at(job)), "the job needs itself, through others or directly")
        }
        // Ids are new, and the rest was looked at before.
        SubmitError::Taken(_)
        | SubmitError::Jobs(_)
        | SubmitError::UnknownNeed { .. }
        | SubmitError::Rule { .. } => {
            tracing::error!(%error, "a run that was found good is not taken");
            return ServiceError::Failed;
        }
    };
    ServiceError::Fault(Fault::contradiction(field, problem))
}
