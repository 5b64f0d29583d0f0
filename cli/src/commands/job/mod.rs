//! `job`: off-chain work, its results, and how its runners were drawn.

mod show;
mod submit;

pub use submit::{Submitted, submit, succeeded};

use submit::wait_until_final;

use crate::{
    args, complete,
    context::{Context, Deadline},
    error::{CliError, Exit},
    output::{Format, raw},
};
use clap::Subcommand;
use clap_complete::ArgValueCandidates;
use cowboy_devnet::api::types::{JobQuery, JobStatus};
use std::time::Duration;

#[derive(Debug, Subcommand)]
pub enum Job {
    /// Submit a job
    #[command(subcommand)]
    Submit(submit::Submit),
    /// Jobs, newest first
    Ls {
        /// Only jobs that stand there: Pending, Assigned, Verified or Failed
        #[arg(long, env = "COWBOYCTL_STATUS", hide_env_values = true)]
        status: Option<JobStatus>,
        /// How many at most
        #[arg(long, default_value_t = 100, env = "COWBOYCTL_LIMIT", hide_env_values = true)]
        limit: usize,
    },
    /// A job: where it stands, who works on it, what happened to it
    Show {
        /// The job's id
        #[arg(add = ArgValueCandidates::new(complete::jobs))]
        job: String,
    },
    /// Wait until a job is final
    Wait {
        /// The job's id
        #[arg(add = ArgValueCandidates::new(complete::jobs))]
        job: String,
        /// How long at most
        #[arg(long, value_parser = args::duration, value_name = "DURATION", default_value = "2m")]
        #[arg(env = "COWBOYCTL_TIMEOUT", hide_env_values = true)]
        timeout: Duration,
    },
    /// A job's verified result; as a table, the bytes as they are
    Result {
        /// The job's id
        #[arg(add = ArgValueCandidates::new(complete::jobs))]
        job: String,
    },
    /// How a job's runners were drawn: who was dropped why, seed, weights, draws
    Explain {
        /// The job's id
        #[arg(add = ArgValueCandidates::new(complete::jobs))]
        job: String,
    },
    /// Draw a job's runners anew from what the chain records, and compare
    VerifySelection {
        /// The job's id
        #[arg(add = ArgValueCandidates::new(complete::jobs))]
        job: String,
    },
}

impl Job {
    /// Runs the command.
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        if let Self::Submit(submit) = self {
            return submit.run(cx).await;
        }
        let client = cx.client()?;
        match self {
            Self::Submit(_) => Ok(()),
            Self::Ls { status, limit } => {
                let query = JobQuery { status, limit: Some(limit) };
                cx.ui.list(&client.jobs(&query).await?)
            }
            Self::Show { job } => cx.ui.document(&client.job(&job).await?),
            Self::Wait { job, timeout } => {
                let deadline = Deadline::after(timeout);
                let job = wait_until_final(cx.ui, &client, &job, deadline).await?;
                cx.ui.document(&job)?;
                succeeded(&job)
            }
            Self::Result { job } => {
                let result = client.job_result(&job).await?;
                if cx.ui.format() == Format::Table {
                    return raw(&result.result);
                }
                cx.ui.document(&result)
            }
            Self::Explain { job } => cx.ui.document(&client.explain(&job).await?),
            Self::VerifySelection { job } => {
                let check = client.verify_selection(&job).await?;
                cx.ui.document(&check)?;
                if check.valid {
                    return Ok(());
                }
                let what = format!("the selection for job {} does not verify", check.job_id);
                let first = check.mismatches.first().cloned();
                Err(CliError { detail: first, ..CliError::new(Exit::Invalid, what) })
            }
        }
    }
}
