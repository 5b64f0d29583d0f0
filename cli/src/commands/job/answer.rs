//! `job answer`: a result by hand, for a job that waits at runners with `by_hand: true`.

use super::{WhichJob, submit::wait_until_final};
use crate::{
    args,
    commands::runner::steer::{self, Steer},
    context::{Context, Deadline},
    error::{CliError, Exit},
};
use clap::Args;
use cowboy_devnet::types::{AnswerRequest, Bytes, Text};
use cowboy_engine::job::spec::MAX_RETURN_BYTES;
use std::{collections::BTreeSet, ops::ControlFlow, time::Duration};

/// `job answer`.
#[derive(Debug, Args)]
pub struct Answer {
    #[command(flatten)]
    which: WhichJob,
    /// The result: text, bytes as 0x-hex, or the contents of @FILE (@- for standard input)
    #[arg(required_unless_present = "fail")]
    result: Option<String>,
    /// Report that there is no result, and why
    #[arg(long, value_name = "REASON", conflicts_with = "result")]
    fail: Option<String>,
    /// Maximum time to wait until a runner has the job, and then until the job is final
    #[arg(long, value_parser = args::duration, value_name = "DURATION", default_value = "30s")]
    timeout: Duration,
}

impl Answer {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let Self { which: WhichJob { job }, result, fail, timeout } = self;
        let result = result.map(|text| args::payload(&text, MAX_RETURN_BYTES as usize));
        let result = result.transpose()?.map(|bytes| Text(Bytes(bytes)));
        let (client, deadline) = (cx.client()?, Deadline::after(timeout));
        let id = client.job(&job).await?.job_id;
        let request = AnswerRequest { job_id: id, result, failure: fail.clone() };
        let steer = Steer::Answer(request);
        let (mut answered, awaited) = (BTreeSet::new(), format!("a runner that has job {id}"));
        deadline
            .until(cx.ui, &client, &awaited, async || {
                let job = client.job(&id.to_string()).await?;
                if job.status.is_final() {
                    let what = format!("job {id} is {} already", job.status);
                    return Err(CliError::new(Exit::Conflict, what));
                }
                let mut refused = format!("{}, with no runner", job.status);
                for runner in &job.committee {
                    if answered.contains(runner) {
                        continue;
                    }
                    match steer::apply(cx, runner, &steer).await {
                        Ok(_) => drop(answered.insert(runner.clone())),
                        Err(error) if error.exit == Exit::Conflict => {
                            refused = format!("{runner}: {error}");
                        }
                        Err(error) => return Err(error),
                    }
                }
                let all = job.committee.iter().all(|runner| answered.contains(runner));
                Ok(match all && !answered.is_empty() {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(refused),
                })
            })
            .await?;
        if fail.is_some() {
            return cx.ui.document(&client.job(&id.to_string()).await?);
        }
        let job = wait_until_final(cx.ui, &client, &id.to_string(), deadline).await?;
        cx.ui.document(&job)
    }
}
