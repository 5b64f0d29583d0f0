//! `lease submit`: reads the run file, reports what is wrong with it, and waits for the run's end.

use super::{connect::ServerChoice, wait};
use crate::{
    args,
    context::{Context, Deadline},
    error::{CliError, Exit},
};
use clap::Args;
use cowboy_lease::{
    client::Client,
    messages::{NewRun, Run},
    runfile::{Given, MAX_FILE, RunFile, RunFileError},
};
use std::{
    env,
    path::{Path, PathBuf},
    time::Duration,
};

/// `lease submit`.
#[derive(Debug, Args)]
pub struct Submit {
    #[command(flatten)]
    source: RunSource,
    #[command(flatten)]
    waiting: Waiting,
    #[command(flatten)]
    server: ServerChoice,
}

/// A run file, and the changes from the command line.
#[derive(Debug, Args)]
pub struct RunSource {
    /// A run file in YAML; - for standard input
    file: PathBuf,
    /// Only this job and those that it needs; may be given several times
    #[arg(long = "job", value_name = "NAME")]
    jobs: Vec<String>,
    /// A variable of every job; overrides the file's, and stays secret if that one is
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = args::variable)]
    variables: Vec<(String, String)>,
}

/// Whether to wait for a submitted run.
#[derive(Debug, Args)]
pub struct Waiting {
    /// Wait until every job has ended; fails unless all succeed
    #[arg(long)]
    wait: bool,
    /// With --wait: maximum time
    #[arg(long, value_parser = args::duration, value_name = "DURATION", default_value = "1h")]
    timeout: Duration,
}

/// Submits a run and shows it; if asked to wait, when it has ended.
pub async fn submitted(
    cx: &Context,
    client: &Client,
    run: &NewRun,
    waiting: &Waiting,
) -> Result<(), CliError> {
    let deadline = Deadline::after(waiting.timeout);
    let run = client.submit(run).await?;
    if !waiting.wait {
        cx.ui.document(&run)?;
        let id = &run.run_id;
        cx.ui.note(&format!(
            "see its progress: cowboyctl lease show {id}; follow a job: cowboyctl lease logs \
             {id}/NAME --follow"
        ));
        return Ok(());
    }
    let run = wait::for_run(cx.ui, client, &run.run_id, deadline).await?;
    cx.ui.document(&run)?;
    succeeded(&run)
}

impl Submit {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let run = self.source.read()?;
        submitted(cx, &self.server.client(cx)?, &run, &self.waiting).await
    }
}

impl RunSource {
    pub fn read(&self) -> Result<NewRun, CliError> {
        let text = args::text(&self.file, args::input(&self.file, MAX_FILE)?)?;
        let refused = |problem: String| {
            CliError::yaml(Exit::Usage, &args::shown(&self.file), &text, &problem)
                .hint("this is not a run; its fields are listed in docs/leases.md")
        };
        let folder = match self.file.as_os_str() == "-" {
            true => Path::new("."),
            false => self.file.parent().unwrap_or(Path::new(".")),
        };
        let given = Given {
            folder,
            environment: &|name| env::var(name).ok(),
            env: &self.variables.iter().cloned().collect(),
            only: &self.jobs,
        };
        RunFile::parse(&text).and_then(|file| file.into_run(&given)).map_err(|error| match &error {
            RunFileError::NoSuchJob { .. } => CliError::new(Exit::NotFound, error.to_string()),
            _ => refused(error.to_string()),
        })
    }
}

fn succeeded(run: &Run) -> Result<(), CliError> {
    use cowboy_lease::messages::JobState::{Canceled, Skipped, Succeeded};

    // A job is skipped because of others: if that is a failure, theirs is reported.
    let others = run.jobs.iter().filter(|job| match job.state {
        Succeeded | Skipped => false,
        Canceled => true,
        _ => !job.allow_failure,
    });
    // A failed job is more informative than a canceled one.
    let Some(first) = others.min_by_key(|job| job.state == Canceled) else { return Ok(()) };
    let (id, name) = (&run.run_id, &first.name);
    let ended = run.jobs.iter().filter(|job| job.state == Succeeded).count();
    let what = format!(
        "run {id} ended as {}: job `{name}` {}, {ended} of {} succeeded",
        run.state,
        first.state,
        run.jobs.len()
    );
    Err(CliError::failed(what).hint(format!(
        "see why: cowboyctl lease show {id}/{name}; what it said: cowboyctl lease logs {id}/{name}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cowboy_lease::messages::{JobState, JobSummary};

    fn run(states: &[(&str, JobState)]) -> Run {
        let job = |(name, state): &(&str, JobState)| JobSummary {
            job: format!("job_{name}"),
            run: "run_1".to_owned(),
            name: (*name).to_owned(),
            state: *state,
            allow_failure: *name == "allowed",
            attempt: 1,
            runner: None,
            lease_state: None,
            expires_at: None,
        };
        Run {
            run_id: "run_1".to_owned(),
            name: None,
            created_at: String::new(),
            concurrency: None,
            by_schedule: None,
            state: JobState::Failed,
            jobs: states.iter().map(job).collect(),
        }
    }

    #[test]
    fn a_failure_names_the_job_that_tells_most() {
        use JobState::{Canceled, Failed, Skipped, Succeeded, TimedOut};

        assert_eq!(succeeded(&run(&[("a", Succeeded), ("b", Succeeded)])), Ok(()));
        let fine = [("a", Succeeded), ("b", Skipped), ("allowed", Failed)];
        assert_eq!(succeeded(&run(&fine)), Ok(()));
        let failed = run(&[("a", Succeeded), ("b", Canceled), ("c", TimedOut)]);
        let error = succeeded(&failed).unwrap_err();
        assert_eq!(error.exit, Exit::Failed);
        insta::assert_snapshot!(error, @r"
        run run_1 ended as FAILED: job `c` TIMED_OUT, 1 of 3 succeeded
          see why: cowboyctl lease show run_1/c; what it said: cowboyctl lease logs run_1/c
        ");
    }
}
