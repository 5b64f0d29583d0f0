//! `lease retry`: the jobs of a run that has ended, as a new run.
//!
//! The server does not keep the secrets of jobs that have ended, so they are given again here.
//! Dependencies on jobs outside the new run are dropped; their artifacts are still available.

use super::{
    complete,
    connect::ServerChoice,
    find,
    submit::{Waiting, submitted},
};
use crate::{
    args,
    context::Context,
    error::{CliError, Exit},
};
use clap::Args;
use clap_complete::ArgValueCandidates;
use cowboy_lease::{
    client::Client,
    messages::{EnvValue, Job, JobSpec, JobState, NewRun, Run, RunIf},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    env,
};

/// `lease retry`.
#[derive(Debug, Args)]
pub struct Retry {
    /// The run, which has ended: its id, the beginning of it, or latest
    #[arg(add = ArgValueCandidates::new(complete::runs))]
    run: String,
    /// Only jobs that did not succeed; they still get the artifacts of those that did
    #[arg(long)]
    failed: bool,
    /// A variable for every job that declares it; secrets that are not given are taken from the
    /// environment
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = args::variable)]
    variables: Vec<(String, String)>,
    #[command(flatten)]
    waiting: Waiting,
    #[command(flatten)]
    server: ServerChoice,
}

impl Retry {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let client = self.server.client(cx)?;
        let run = client.run(&find::run(&client, &self.run).await?).await?;
        let again = self.again(&client, &run).await?;
        submitted(cx, &client, &again, &self.waiting).await
    }

    async fn again(&self, client: &Client, run: &Run) -> Result<NewRun, CliError> {
        let id = &run.run_id;
        if run.jobs.iter().any(|job| !job.state.is_terminal()) {
            return Err(CliError::new(Exit::Conflict, format!("run {id} has not ended"))
                .hint(format!("see its progress: cowboyctl lease show {id}")));
        }
        let mut jobs = Vec::new();
        for job in &run.jobs {
            jobs.push(client.job(&job.job).await?);
        }
        let given: BTreeMap<_, _> = self.variables.iter().cloned().collect();
        let again = NewRun {
            name: run.name.clone(),
            concurrency: run.concurrency.clone(),
            jobs: chosen(&jobs, self.failed),
        };
        if again.jobs.is_empty() {
            return Err(CliError::new(Exit::Conflict, format!("run {id}: every job succeeded"))
                .hint(format!("submit all of them again: cowboyctl lease retry {id}")));
        }
        with_values(again, &given, |name| env::var(name).ok()).map_err(|missing| {
            let missing: Vec<_> = missing.into_iter().collect();
            let what = "the server does not keep secrets of jobs that have ended";
            CliError::new(Exit::Usage, format!("{what}: {}", missing.join(", "))).hint(format!(
                "export them, or give each again: --env {}=…",
                missing.first().map_or("NAME", String::as_str)
            ))
        })
    }
}

fn chosen(jobs: &[Job], failed: bool) -> Vec<JobSpec> {
    // A job that only runs when others fail is not needed if those are left out …
    let again = |job: &&Job| {
        let apart = job.spec.run_if == Some(RunIf::Failure);
        !failed || (job.summary.state != JobState::Succeeded && !apart)
    };
    let mut names: BTreeSet<&str> = jobs.iter().filter(again).map(|job| &*job.spec.name).collect();
    // … unless one of the jobs that it depends on is submitted again.
    for job in jobs.iter().filter(|job| job.spec.run_if == Some(RunIf::Failure)) {
        if job.spec.needs.iter().any(|need| names.contains(&**need)) {
            names.insert(&job.spec.name);
        }
    }
    let by_name: BTreeMap<&str, &Job> = jobs.iter().map(|job| (&*job.spec.name, job)).collect();
    let specs = jobs.iter().filter(|job| names.contains(&*job.spec.name)).map(|job| {
        let mut spec = job.spec.clone();
        let (needs, apart): (Vec<_>, Vec<_>) =
            spec.needs.into_iter().partition(|need| names.contains(&**need));
        let left = apart.iter().filter_map(|need| by_name.get(&**need));
        spec.artifacts_of.extend(left.map(|job| job.summary.job.clone()));
        spec.needs = needs;
        spec
    });
    specs.collect()
}

/// The run with values for its variables and secrets. Errors: the secrets without a value.
fn with_values(
    mut run: NewRun,
    given: &BTreeMap<String, String>,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<NewRun, BTreeSet<String>> {
    let mut missing = BTreeSet::new();
    for (name, value) in run.jobs.iter_mut().flat_map(|job| &mut job.env) {
        let new = given.get(name).cloned();
        match value {
            EnvValue::Plain(value) => *value = new.unwrap_or_else(|| value.clone()),
            EnvValue::FromNeeds { .. } => {
                if let Some(new) = new {
                    *value = EnvValue::Plain(new);
                }
            }
            EnvValue::Secret { secret } => {
                let new = new.or_else(|| environment(name)).filter(|new| !new.is_empty());
                match new {
                    Some(new) => *secret = new,
                    None => drop(missing.insert(name.clone())),
                }
            }
        }
    }
    if missing.is_empty() { Ok(run) } else { Err(missing) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cowboy_lease::messages::JobSummary;

    fn job(name: &str, state: JobState, needs: &[&str]) -> Job {
        Job {
            summary: JobSummary {
                job: format!("job_{name}"),
                run: "run_1".to_owned(),
                name: name.to_owned(),
                state,
                allow_failure: false,
                attempt: u32::from(state != JobState::Skipped),
                runner: None,
                lease_state: None,
                expires_at: None,
            },
            spec: JobSpec {
                name: name.to_owned(),
                needs: needs.iter().map(|need| (*need).to_owned()).collect(),
                ..JobSpec::default()
            },
            max_attempts: 1,
            max_runtime_seconds: 1,
            queue_position: None,
            why_queued: None,
            resumes_at: None,
            waits_for: Vec::new(),
            created_at: String::new(),
            ended_at: None,
            ended_by: None,
            finalized: 1,
            attempts: Vec::new(),
        }
    }

    #[test]
    fn what_did_not_succeed_has_what_the_others_left() {
        use JobState::{Failed, Skipped, Succeeded};

        let mut on_failure = job("report", Succeeded, &["unit"]);
        on_failure.spec.run_if = Some(RunIf::Failure);
        let jobs = [
            job("build", Succeeded, &[]),
            job("unit", Failed, &["build"]),
            job("deploy", Skipped, &["unit", "build"]),
            on_failure,
        ];
        let again = chosen(&jobs, true);
        let seen: Vec<_> = again
            .iter()
            .map(|job| (&*job.name, job.needs.join(" "), job.artifacts_of.join(" ")))
            .collect();
        let none = String::new;
        let built = || "job_build".to_owned();
        assert_eq!(
            seen,
            [
                ("unit", none(), built()),
                ("deploy", "unit".to_owned(), built()),
                ("report", "unit".to_owned(), none()),
            ]
        );
        let all = chosen(&jobs, false);
        assert_eq!(all.iter().map(|job| job.needs.len()).collect::<Vec<_>>(), [0, 1, 2, 1]);
        assert!(chosen(&jobs[..1], true).is_empty());
    }

    #[test]
    fn secrets_come_from_here_again() {
        let run = || {
            let mut spec = JobSpec { name: "a".to_owned(), ..JobSpec::default() };
            let secret = || EnvValue::Secret { secret: "***".to_owned() };
            spec.env.insert("KEY".to_owned(), secret());
            spec.env.insert("PIN".to_owned(), secret());
            spec.env.insert("LEVEL".to_owned(), EnvValue::Plain("1".to_owned()));
            NewRun { jobs: vec![spec], ..NewRun::default() }
        };
        let given = BTreeMap::from([
            ("PIN".to_owned(), "1234".to_owned()),
            ("LEVEL".to_owned(), "2".to_owned()),
            ("OTHER".to_owned(), "x".to_owned()),
        ]);
        let missing = with_values(run(), &given, |_| None).unwrap_err();
        assert_eq!(missing, BTreeSet::from(["KEY".to_owned()]));
        let whole = with_values(run(), &given, |name| (name == "KEY").then(|| "k".to_owned()));
        let secret = |value: &str| EnvValue::Secret { secret: value.to_owned() };
        let expected = BTreeMap::from([
            ("KEY".to_owned(), secret("k")),
            ("PIN".to_owned(), secret("1234")),
            ("LEVEL".to_owned(), EnvValue::Plain("2".to_owned())),
        ]);
        assert_eq!(whole.unwrap().jobs[0].env, expected);
    }
}
