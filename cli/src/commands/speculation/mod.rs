//! `speculation`: pipelines of tasks that run before their dependencies are confirmed.

mod config;
mod events;
pub(super) mod follow;
pub(super) mod graph;
pub(super) mod load;
pub(super) mod plan;
pub(super) mod show;
pub(super) mod submit;
pub(super) mod timeline;
mod verify;

use crate::{
    args, complete,
    context::Context,
    error::{CliError, Exit},
};
use clap::Subcommand;
use clap_complete::ArgValueCandidates;
use cowboy_devnet::{
    client::Client,
    types::{OfPipelineQuery, PipelineQuery, PipelineStatus, RetryRequest},
};
use graph::{Form, Graph, dot, mermaid, tree};
use std::str::FromStr;
use timeline::{Timeline, timeline};

#[derive(Debug, Subcommand)]
pub enum Speculation {
    /// Submit a pipeline: tasks, and their dependencies
    ///
    /// The file is YAML or JSON, as described in docs/speculation.md, and is checked before it is
    /// sent.
    Submit(submit::Submit),
    /// Show what a pipeline would lock, wait for and take, without running it
    ///
    /// It uses a topology (-f), else the running devnet, else the defaults.
    Plan(plan::Plan),
    /// Pipelines, newest first
    Ls {
        /// Only pipelines with this status: running, completed, failed or cancelled
        #[arg(long, value_parser = status)]
        #[arg(add = ArgValueCandidates::new(|| complete::all(PipelineStatus::ALL)))]
        status: Option<PipelineStatus>,
        /// Maximum number of pipelines
        #[arg(long, default_value_t = 100)]
        limit: usize,
    },
    /// A pipeline's graph: its tasks, their dependencies, and the status of each
    ///
    /// A task with several parents is drawn below the deepest one; the others are named after it.
    /// AT is when it reached its status, counted from when the pipeline was accepted.
    Graph {
        /// The pipeline: its number, its name, or latest
        #[arg(add = ArgValueCandidates::new(complete::pipelines))]
        pipeline: PipelineArg,
        /// The format: tree, dot, mermaid or json
        #[arg(long, value_enum, default_value = "tree", hide_possible_values = true)]
        format: Form,
    },
    /// Show a pipeline and its tasks, or one of its tasks: times, transactions, output
    Show {
        /// The pipeline: its number, its name, or latest
        #[arg(add = ArgValueCandidates::new(complete::pipelines))]
        pipeline: PipelineArg,
        /// The task's name
        task: Option<String>,
    },
    /// Verify the proof that completed a task, from the chain's own transaction
    ///
    /// The blocks are verified from genesis on; the key, and the statement that the proof has to
    /// prove, follow from there, whatever the API says.
    Verify {
        /// The pipeline: its number, its name, or latest
        #[arg(add = ArgValueCandidates::new(complete::pipelines))]
        pipeline: PipelineArg,
        /// The task's name
        task: String,
    },
    /// The time that each task spent on what, as bars, compared with the synchronous pipeline
    Timeline {
        /// The pipeline: its number, its name, or latest
        #[arg(add = ArgValueCandidates::new(complete::pipelines))]
        pipeline: PipelineArg,
    },
    /// Commitments to outputs
    Commitments(Of),
    /// Proofs: those in the making, waiting for ancestors, or submitted
    Proofs(Of),
    /// Rollbacks, newest first: what failed, what was rolled back with it, what it cost
    Rollbacks(Of),
    /// Events of the components of speculation: the last 20,000, oldest first
    ///
    /// docs/observability.md lists every event and its data.
    Events(events::Events),
    /// Cancel a pipeline, or one of its tasks and all that depends on it
    Cancel {
        /// The pipeline: its number, its name, or latest
        #[arg(add = ArgValueCandidates::new(complete::pipelines))]
        pipeline: PipelineArg,
        /// The task's name
        task: Option<String>,
    },
    /// Print a line for each change of a pipeline's tasks until it ends
    ///
    /// Exits with 0 if every task is confirmed, else with 1. If it is interrupted, the pipeline
    /// continues.
    Follow(follow::Follow),
    /// Retry tasks that failed or were rolled back, as new attempts
    ///
    /// A task is retried together with what was rolled back below it. Without names, everything in
    /// the pipeline that failed is retried.
    Retry {
        /// The pipeline: its number, its name, or latest
        #[arg(add = ArgValueCandidates::new(complete::pipelines))]
        pipeline: PipelineArg,
        /// The tasks' names
        tasks: Vec<String>,
    },
    /// Run many pipelines and report: tasks per second, latencies, rollbacks, refusals, stake
    ///
    /// An interrupted run reports its results so far.
    Load(load::Load),
    /// The status of speculation, and the last pipelines compared with synchronous ones
    Status,
    /// Options of speculation: all, or one
    Config(config::Config),
}

/// Selects the entries of a list.
#[derive(Debug, clap::Args)]
pub struct Of {
    /// Only of this pipeline: its number, its name, or latest
    #[arg(long, add = ArgValueCandidates::new(complete::pipelines))]
    pipeline: Option<PipelineArg>,
    /// Maximum number to show
    #[arg(long, default_value_t = 100)]
    limit: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PipelineArg {
    Number(u64),
    /// The newest with this name.
    Named(String),
    Latest,
}

impl FromStr for PipelineArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match text {
            "latest" => Ok(Self::Latest),
            _ if digits => text
                .parse()
                .map(Self::Number)
                .map_err(|_| format!("`{text}` is not a pipeline: expected 1 to {}", u64::MAX)),
            _ => Ok(Self::Named(text.to_owned())),
        }
    }
}

impl PipelineArg {
    async fn resolve(self, client: &Client) -> Result<u64, CliError> {
        match self {
            Self::Number(number) => Ok(number),
            Self::Latest => newest(client, None).await?.ok_or_else(|| {
                CliError::new(Exit::NotFound, "there is no pipeline yet")
                    .hint("submit one: cowboyctl speculation submit FILE")
            }),
            Self::Named(name) => newest(client, Some(name.clone())).await?.ok_or_else(|| {
                CliError::new(Exit::NotFound, format!("there is no pipeline `{name}`"))
                    .hint("expected a number, a name or latest; see: cowboyctl speculation ls")
            }),
        }
    }
}

async fn newest(client: &Client, name: Option<String>) -> Result<Option<u64>, CliError> {
    let query = PipelineQuery { status: None, name, limit: Some(1) };
    Ok(client.pipelines(&query).await?.first().map(|pipeline| pipeline.pipeline))
}

impl Of {
    async fn query(&self, client: &Client) -> Result<OfPipelineQuery, CliError> {
        let pipeline = match &self.pipeline {
            Some(pipeline) => Some(pipeline.clone().resolve(client).await?),
            None => None,
        };
        Ok(OfPipelineQuery { pipeline, limit: Some(self.limit) })
    }
}

fn status(text: &str) -> Result<PipelineStatus, String> {
    args::one_of("status", text, PipelineStatus::ALL)
}

impl Speculation {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let other = match self {
            // Errors in the file are reported even without a devnet.
            Self::Submit(submit) => return submit.run(cx).await,
            Self::Verify { pipeline, task } => return verify::run(cx, pipeline, &task).await,
            Self::Plan(plan) => return plan.run(cx).await,
            Self::Follow(follow) => return follow.run(cx).await,
            Self::Load(load) => return load.run(cx).await,
            other => other,
        };
        let client = cx.client()?;
        match other {
            Self::Submit(_)
            | Self::Verify { .. }
            | Self::Plan(_)
            | Self::Follow(_)
            | Self::Load(_) => unreachable!("they are run by themselves"),
            Self::Ls { status, limit } => {
                let query = PipelineQuery { status, name: None, limit: Some(limit) };
                cx.ui.list(&client.pipelines(&query).await?)
            }
            Self::Graph { pipeline, format } => {
                let pipeline = client.pipeline(pipeline.resolve(&client).await?).await?;
                match format {
                    Form::Tree => {
                        cx.ui.drawing(&Graph::of(&pipeline), |columns| tree(&pipeline, columns))
                    }
                    Form::Dot => cx.ui.plain(dot(&pipeline).as_bytes()),
                    Form::Mermaid => cx.ui.plain(mermaid(&pipeline).as_bytes()),
                    Form::Json => cx.ui.data(&Graph::of(&pipeline)),
                }
            }
            Self::Show { pipeline, task } => {
                let number = pipeline.resolve(&client).await?;
                match task {
                    Some(task) => cx.ui.document(&client.task(number, &task).await?),
                    None => cx.ui.document(&client.pipeline(number).await?),
                }
            }
            Self::Timeline { pipeline } => {
                let pipeline = client.pipeline(pipeline.resolve(&client).await?).await?;
                cx.ui.drawing(&Timeline::of(&pipeline), |columns| timeline(&pipeline, columns))
            }
            Self::Commitments(of) => {
                cx.ui.list(&client.commitments(&of.query(&client).await?).await?)
            }
            Self::Proofs(of) => cx.ui.list(&client.proofs(&of.query(&client).await?).await?),
            Self::Rollbacks(of) => cx.ui.list(&client.rollbacks(&of.query(&client).await?).await?),
            Self::Events(events) => events.run(cx, &client).await,
            Self::Cancel { pipeline, task } => {
                let number = pipeline.resolve(&client).await?;
                let cancelled = match &task {
                    Some(task) => client.cancel_task(number, task).await?,
                    None => client.cancel_pipeline(number).await?,
                };
                cx.ui.document(&show::Cancelled { pipeline: number, tasks: cancelled.tasks })
            }
            Self::Retry { pipeline, tasks } => {
                let number = pipeline.resolve(&client).await?;
                cx.ui.document(&client.retry_tasks(number, &RetryRequest { tasks }).await?)
            }
            Self::Status => cx.ui.document(&client.speculation().await?),
            Self::Config(config) => config.run(cx.ui, &client).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipelines_are_numbers_names_or_the_latest() {
        let check = |text: &str, expected: Option<PipelineArg>| {
            assert_eq!(text.parse().ok(), expected, "{text}");
        };
        check("1", Some(PipelineArg::Number(1)));
        check("18446744073709551615", Some(PipelineArg::Number(u64::MAX)));
        check("latest", Some(PipelineArg::Latest));
        check("first", Some(PipelineArg::Named("first".to_owned())));
        check("1.0", Some(PipelineArg::Named("1.0".to_owned())));
        check("18446744073709551616", None);
    }

    #[test]
    fn statuses_parse() {
        assert_eq!(status("cancelled"), Ok(PipelineStatus::Cancelled));
        assert!(status("done").is_err_and(|error| error.contains("expected running, completed")));
    }
}
