//! A job without its secrets and as its runner gets it; and the reasons to refuse a run.

use super::ServiceError;
use crate::{
    check::Fault,
    machine::{self, Board, JobId, JobState, SubmitError},
    messages::{Concurrency, EnvValue, GrantedSpec, JobSpec, NewRun},
    store::{Record, Store, StoreError},
    template::{self, Part},
};
use std::{collections::BTreeMap, mem};

const MASK: &str = "***";

pub(super) fn without_secrets(mut spec: JobSpec) -> (JobSpec, BTreeMap<String, String>) {
    let mut secrets = BTreeMap::new();
    for (name, value) in &mut spec.env {
        if let EnvValue::Secret { secret } = value {
            secrets.insert(name.clone(), mem::replace(secret, MASK.to_owned()));
        }
    }
    (spec, secrets)
}

pub(super) fn group(concurrency: &Concurrency) -> machine::Concurrency {
    let Concurrency { group, cancel_in_progress } = concurrency;
    machine::Concurrency { group: group.clone(), cancel: *cancel_in_progress }
}

/// The ends of needed jobs, by name: the state, and the outputs of the last attempt.
pub(super) type Ends = BTreeMap<String, (JobState, BTreeMap<String, String>)>;

/// The ends that a job's environment refers to, including what the current message reports.
pub(super) fn ends(
    spec: &JobSpec,
    run: &str,
    board: &Board,
    store: &Store,
    record: &Record,
) -> Result<Ends, StoreError> {
    let mut ends = Ends::new();
    if !spec.env.values().any(|value| matches!(value, EnvValue::FromNeeds { .. })) {
        return Ok(ends);
    }
    let mut ids = spec.artifacts_of.clone();
    for name in &spec.needs {
        ids.extend(store.job_named(run, name)?);
    }
    for id in ids {
        let Some(((name, kept), job)) = store.outputs(&id)?.zip(board.job(&id)) else { continue };
        let told = record.report.as_ref().filter(|report| report.job == id);
        let outputs = told.map_or(kept, |report| report.outputs.clone());
        let outputs = outputs.and_then(|outputs| serde_json::from_str(&outputs).ok());
        ends.insert(name, (job.state(), outputs.unwrap_or_default()));
    }
    Ok(ends)
}

/// The value of a reference. It is empty for an output that was not written.
fn value(part: Part<'_>, ends: &Ends) -> String {
    let end = part.job().and_then(|job| ends.get(job));
    let value = end.and_then(|(state, outputs)| match part {
        Part::Output { name, .. } => outputs.get(name).cloned(),
        Part::Result(_) => Some(state.to_string()),
        Part::Text(_) => None,
    });
    value.unwrap_or_default()
}

pub(super) fn with_secrets(
    spec: JobSpec,
    mut secrets: BTreeMap<String, String>,
    ends: &Ends,
) -> GrantedSpec {
    let mut secret_env = Vec::new();
    let env = spec.env.into_iter().map(|(name, entry)| {
        let value = match entry {
            EnvValue::Plain(value) => value,
            EnvValue::FromNeeds { from_needs } => {
                template::fill(&from_needs, |part| value(part, ends))
            }
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
        outputs: spec.outputs,
        artifacts: spec.artifacts,
        caches: spec.caches,
    }
}

/// Refuses a run that needs artifacts of jobs that the board does not have.
pub(super) fn known_artifacts(run: &NewRun, board: &Board) -> Result<(), Fault> {
    for (at, job) in run.jobs.iter().enumerate() {
        if let Some(n) = job.artifacts_of.iter().position(|id| board.job(id).is_none()) {
            let field = format!("jobs[{at}].artifacts_of[{n}]");
            return Err(Fault::contradiction(field, "there is no such job"));
        }
    }
    Ok(())
}

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
        // Ids are new, and the rest has been checked before.
        SubmitError::Taken(_)
        | SubmitError::Jobs(_)
        | SubmitError::UnknownNeed { .. }
        | SubmitError::Rule { .. } => {
            tracing::error!(%error, "the board refused a valid run");
            return ServiceError::Failed;
        }
    };
    ServiceError::Fault(Fault::contradiction(field, problem))
}
