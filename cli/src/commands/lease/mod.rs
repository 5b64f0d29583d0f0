//! `lease`: runs of jobs that runners take by lease.

pub(super) mod artifacts;
mod complete;
mod connect;
mod find;
mod logs;
mod retry;
mod runner;
mod schedule;
pub(super) mod serve;
mod show;
mod submit;
pub(super) mod token;
mod wait;

use super::block_on;
use crate::{
    args,
    context::{Context, Deadline},
    error::CliError,
};
use clap::Subcommand;
use clap_complete::ArgValueCandidates;
pub(super) use connect::ServerChoice;
use cowboy_lease::messages::{JobQuery, JobState, PageQuery};
use find::Thing;
use std::time::Duration;

#[derive(Debug, Subcommand)]
pub enum Lease {
    /// Submit a run: jobs and what they need, as described in docs/leases.md
    ///
    /// The file is YAML, and is checked before it is sent.
    Submit(submit::Submit),
    /// Jobs, newest first; or runs
    Ls {
        /// Runs instead of jobs
        #[arg(long, conflicts_with_all = ["run", "state"])]
        runs: bool,
        /// Only jobs of this run: its id, the beginning of it, or latest
        #[arg(long, value_name = "RUN", add = ArgValueCandidates::new(complete::runs))]
        run: Option<String>,
        /// Only jobs in this state: QUEUED, LEASED, STARTING, RUNNING, CANCEL_REQUESTED,
        /// SUCCEEDED, FAILED, CANCELED, TIMED_OUT or SKIPPED
        #[arg(long, value_parser = state, add = ArgValueCandidates::new(complete::states))]
        state: Option<JobState>,
        /// Maximum number to show
        #[arg(long, default_value_t = 100)]
        limit: usize,
        #[command(flatten)]
        server: ServerChoice,
    },
    /// Show a run and its jobs, or a job and its attempts
    Show {
        /// The run or job: an id, the beginning of one, latest (a run), or RUN/NAME (a job)
        #[arg(add = ArgValueCandidates::new(complete::things))]
        id: String,
        /// Show the states that a job and its leases have entered instead
        #[arg(long)]
        events: bool,
        #[command(flatten)]
        server: ServerChoice,
    },
    /// Runners that have asked for work since the server started, and their jobs
    Runners {
        #[command(flatten)]
        server: ServerChoice,
    },
    /// Print a job's log
    Logs(logs::Logs),
    /// A job's artifacts; with --download, copied here
    Artifacts(artifacts::Artifacts),
    /// Cancel a run, or a job
    ///
    /// Waiting jobs end at once. Running ones are stopped by their runners, which have until the
    /// cancel deadline.
    Cancel {
        /// The run or job: an id, the beginning of one, latest (a run), or RUN/NAME (a job)
        #[arg(add = ArgValueCandidates::new(complete::things))]
        id: String,
        /// Wait until it has ended
        #[arg(long)]
        wait: bool,
        /// With --wait: maximum time
        #[arg(long, value_parser = args::duration, value_name = "DURATION", default_value = "2m")]
        timeout: Duration,
        #[command(flatten)]
        server: ServerChoice,
    },
    /// Submit the jobs of a run that has ended again, as a new run
    Retry(retry::Retry),
    /// Revoke a job's lease: its runner stops, and the job is tried again while it has attempts
    /// left
    Revoke {
        /// The job: an id, the beginning of one, or RUN/NAME
        #[arg(add = ArgValueCandidates::new(complete::jobs))]
        job: String,
        #[command(flatten)]
        server: ServerChoice,
    },
    /// Runs that timers of the chain submit
    #[command(subcommand)]
    Schedule(schedule::Schedule),
    /// Tokens of runners
    #[command(subcommand)]
    Token(token::Token),
    /// Run a lease server without a devnet, until Ctrl-C or SIGTERM
    ///
    /// Commands on this machine find it by themselves; others name it with --server and
    /// --token-file. Its data survives restarts. Its log goes to stderr; COWBOYCTL_LOG sets what is
    /// logged.
    Serve(Box<serve::Serve>),
    /// Run jobs of a lease server on this machine, one at a time, until Ctrl-C or SIGTERM
    ///
    /// Steps run as the user who starts the runner, each job in a fresh directory, which is removed
    /// with all processes of the job afterwards. Without --token-file the runner gets a token of
    /// its own, which is valid until it ends. The first signal lets it finish its current job and
    /// take no other; the second stops the job, which returns to the queue; a third ends the runner
    /// at once.
    Runner(Box<runner::Runner>),
}

impl Lease {
    pub fn run(self, cx: &Context) -> Result<(), CliError> {
        match self {
            Self::Serve(serve) => serve.run(cx),
            Self::Runner(runner) => runner.run(cx),
            other => block_on(other.ask(cx)),
        }
    }

    async fn ask(self, cx: &Context) -> Result<(), CliError> {
        match self {
            Self::Serve(_) | Self::Runner(_) => unreachable!("they are run by themselves"),
            Self::Submit(submit) => submit.run(cx).await,
            Self::Ls { runs: true, limit, server, .. } => {
                let query = PageQuery { limit: Some(limit) };
                cx.ui.list(&server.client(cx)?.runs(&query).await?)
            }
            Self::Ls { runs: false, run, state, limit, server } => {
                let client = server.client(cx)?;
                let run = match run {
                    Some(run) => Some(find::run(&client, &run).await?),
                    None => None,
                };
                let query = JobQuery { run, state, limit: Some(limit) };
                cx.ui.list(&client.jobs(&query).await?)
            }
            Self::Show { id, events: true, server } => {
                let client = server.client(cx)?;
                let job = find::job(&client, &id).await?;
                cx.ui.list(&client.job_events(&job).await?)
            }
            Self::Runners { server } => cx.ui.list(&server.client(cx)?.runners().await?),
            Self::Show { id, events: false, server } => {
                let client = server.client(cx)?;
                match find::thing(&client, &id).await? {
                    Thing::Run(run) => cx.ui.document(&client.run(&run).await?),
                    Thing::Job(job) => cx.ui.document(&client.job(&job).await?),
                }
            }
            Self::Logs(logs) => logs.run(cx).await,
            Self::Artifacts(artifacts) => artifacts.run(cx).await,
            Self::Cancel { id, wait, timeout, server } => {
                let client = server.client(cx)?;
                let deadline = Deadline::after(timeout);
                match find::thing(&client, &id).await? {
                    Thing::Run(id) => {
                        let mut run = client.cancel_run(&id).await?;
                        if wait {
                            run = wait::for_run(cx.ui, &client, &id, deadline).await?;
                        }
                        cx.ui.document(&run)
                    }
                    Thing::Job(id) => {
                        let mut changed = client.cancel_job(&id).await?;
                        if wait {
                            let job = wait::for_job(cx.ui, &client, &id, deadline).await?;
                            changed.state = job.summary.state;
                        }
                        cx.ui.document(&changed)
                    }
                }
            }
            Self::Revoke { job, server } => {
                let client = server.client(cx)?;
                let job = find::job(&client, &job).await?;
                cx.ui.document(&client.revoke(&job).await?)
            }
            Self::Retry(retry) => retry.run(cx).await,
            Self::Schedule(schedule) => schedule.run(cx).await,
            Self::Token(token) => token.run(cx).await,
        }
    }
}

/// A job's state, spelled as in JSON or in lower case.
fn state(text: &str) -> Result<JobState, String> {
    args::one_of("state", text, JobState::ALL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_parse() {
        assert_eq!(state("RUNNING"), Ok(JobState::Running));
        assert_eq!(state("timed_out"), Ok(JobState::TimedOut));
        assert!(state("done").is_err_and(|error| error.contains("expected QUEUED")));
    }
}
