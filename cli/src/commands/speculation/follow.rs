//! `speculation follow`: prints changes of a pipeline's tasks, across restarts of the devnet.

use super::{
    PipelineArg,
    submit::{closing, succeeded},
};
use crate::{
    args, complete,
    context::Context,
    error::{CliError, Exit},
    output::{Row, amount, millis, pipeline::one_line},
};
use clap::Args;
use clap_complete::ArgValueCandidates;
use cowboy_devnet::{
    client::{Client, ClientError},
    orchestrator::home::{DevnetHome, DevnetState},
    types::{AmountText, ErrorCode, Pipeline, PipelineStatus, SpeculativeTask, TaskStatus},
};
use cowboy_host::duration::Plain;
use serde::Serialize;
use std::{collections::BTreeMap, time::Duration};
use tokio::time::{Instant, sleep, timeout};

/// The minimum time between two requests; together they take at most one part in `SHARE` of the
/// time.
const PAUSE: Duration = Duration::from_millis(100);
const SHARE: u32 = 4;
/// How long a devnet may be unreachable.
const PATIENCE: Duration = Duration::from_secs(120);

/// `speculation follow`.
#[derive(Debug, Args)]
pub struct Follow {
    /// The pipeline: its number, its name, or latest
    #[arg(add = ArgValueCandidates::new(complete::pipelines))]
    pipeline: PipelineArg,
    /// Maximum time to follow [default: to the end]
    #[arg(long, value_parser = args::duration, value_name = "DURATION")]
    timeout: Option<Duration>,
}

impl Follow {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let (devnet, client) = cx.devnet_and_client()?;
        let number = self.pipeline.resolve(&client).await?;
        let to_end = follow(cx, &devnet, &client, number);
        let pipeline = match self.timeout {
            None => to_end.await?,
            Some(most) => timeout(most, to_end).await.unwrap_or_else(|_| {
                let what = format!("pipeline {number}: no end within {}", Plain(most));
                Err(CliError::new(Exit::TimedOut, what)
                    .hint("it continues; give it longer with --timeout"))
            })?,
        };
        cx.ui.note(&closing(&pipeline.summary));
        succeeded(&pipeline)
    }
}

/// Prints changes until every task is final; returns the final pipeline.
async fn follow(
    cx: &Context,
    devnet: &DevnetHome,
    client: &Client,
    number: u64,
) -> Result<Pipeline, CliError> {
    let mut seen = BTreeMap::new();
    let mut away: Option<Instant> = None;
    loop {
        let asked = Instant::now();
        match client.pipeline(number).await {
            Ok(pipeline) => {
                away = None;
                for change in changes(&mut seen, &pipeline) {
                    cx.ui.record(&change)?;
                }
                if pipeline.summary.status != PipelineStatus::Running {
                    return Ok(pipeline);
                }
            }
            Err(error) if is_away(&error) => {
                if away.get_or_insert(asked).elapsed() > PATIENCE {
                    return Err(error.into());
                }
                // It may have another address when it is back.
                if let Ok(DevnetState::Running(record)) = devnet.state() {
                    client.move_to(&record.rpc_url)?;
                }
            }
            Err(error) => return Err(error.into()),
        }
        sleep(PAUSE.max(asked.elapsed() * SHARE)).await;
    }
}

fn is_away(error: &ClientError) -> bool {
    matches!(error, ClientError::Unreachable { .. } | ClientError::Timeout { .. })
        || error.code() == Some(ErrorCode::Unavailable)
}

/// A change of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct TaskChange {
    /// The pipeline's number.
    pipeline: u64,
    /// Time in ms since the pipeline was accepted.
    at_ms: u64,
    /// The task's name.
    task: String,
    /// Its new status.
    status: TaskStatus,
    /// The attempt, from 1; 0 before the first.
    attempt: u32,
    /// Unconfirmed tasks above it when this was seen; absent before it is accepted.
    depth: Option<u32>,
    /// The stake locked for it; absent before it is accepted.
    #[cfg_attr(test, schema(value_type = Option<String>))]
    bond: Option<AmountText>,
    /// The runner that works on it, or that made its output.
    runner: Option<String>,
    /// The reason why it waits or failed.
    reason: Option<String>,
}

impl Row for TaskChange {
    const HEADER: &'static [&'static str] = &[">at", "task", "status", "change"];

    fn cells(&self) -> Vec<String> {
        let mut more = Vec::new();
        match self.status {
            TaskStatus::Running => {
                more.extend(self.depth.map(|depth| format!("depth {depth}")));
                more.extend(self.bond.map(|bond| format!("bond {}", amount(*bond))));
            }
            TaskStatus::Proving => more.extend(self.runner.clone()),
            _ => {}
        }
        if self.attempt > 1 {
            more.push(format!("attempt {}", self.attempt));
        }
        more.extend(self.reason.as_deref().map(one_line));
        let mut cells = vec![millis(self.at_ms), self.task.clone(), self.status.to_string()];
        if !more.is_empty() {
            cells.push(more.join(", "));
        }
        cells
    }

    fn id(&self) -> String {
        format!("{} {}", self.task, self.status)
    }
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct SeenTask {
    attempt: u32,
    steps: usize,
    status: Option<TaskStatus>,
    reason: Option<String>,
}

/// The changes since `seen`, in the order of their times.
fn changes(seen: &mut BTreeMap<String, SeenTask>, pipeline: &Pipeline) -> Vec<TaskChange> {
    let elapsed = pipeline.summary.elapsed_ms;
    let mut all = Vec::new();
    for task in &pipeline.graph {
        changed(seen.entry(task.task.clone()).or_default(), task, elapsed, &mut all);
    }
    all.sort_by_key(|change| change.at_ms);
    all
}

fn changed(seen: &mut SeenTask, task: &SpeculativeTask, elapsed: u64, all: &mut Vec<TaskChange>) {
    let change = |at_ms, status| TaskChange {
        pipeline: task.pipeline,
        at_ms,
        task: task.task.clone(),
        status,
        attempt: task.attempt,
        depth: task.depth,
        bond: task.bond,
        runner: task.runner.clone(),
        reason: task.reason.clone().filter(|_| status == task.status),
    };
    if seen.attempt != task.attempt {
        *seen = SeenTask { attempt: task.attempt, ..SeenTask::default() };
    }
    let times = task.times;
    let steps = [
        (times.scheduled_ms, TaskStatus::Running),
        (times.executed_ms, TaskStatus::Proving),
        (times.proved_ms, TaskStatus::Proved),
        (times.submitted_ms, TaskStatus::Submitted),
        (times.confirmed_ms, TaskStatus::Confirmed),
    ];
    for (step, (at, status)) in steps.into_iter().enumerate() {
        let Some(at) = at.filter(|_| step >= seen.steps) else { continue };
        seen.steps = step + 1;
        (seen.status, seen.reason) = (Some(status), None);
        all.push(change(at, status));
    }
    // A restarted agent may be at an earlier step than the one that was printed.
    let step = |of| steps.iter().position(|(_, status)| Some(*status) == of);
    let again = step(Some(task.status)).is_some_and(|now| Some(now) < step(seen.status));
    let waits = task.status == TaskStatus::Waiting;
    let differs = seen.status != Some(task.status) || (waits && seen.reason != task.reason);
    let news = differs && !again;
    // A task that only waits for its parents is not reported.
    let silent = waits && task.reason.is_none() && seen.status.is_none();
    if news && !silent {
        (seen.status, seen.reason) = (Some(task.status), task.reason.clone());
        let at = times.ended_ms.filter(|_| task.status.is_final()).unwrap_or(elapsed);
        all.push(change(at, task.status));
    }
}

#[cfg(test)]
mod tests {
    use super::{super::graph::samples, *};

    #[test]
    fn each_step_is_told_once_in_the_order_of_the_times() {
        let (mut seen, chain) = (BTreeMap::new(), samples::chain(2));
        let told = |all: Vec<TaskChange>| {
            let line = |change: TaskChange| format!("{} {}", change.at_ms, change.id());
            all.into_iter().map(line).collect::<Vec<_>>()
        };
        let first = told(changes(&mut seen, &chain));
        assert_eq!(first.len(), 10, "{first:?}");
        assert_eq!(first[..3], ["0 step-0 running", "500 step-0 proving", "500 step-1 running"]);
        assert_eq!(first[9], "9500 step-1 confirmed");
        assert!(changes(&mut seen, &chain).is_empty());

        // Steps that a kill of the agent undid are not printed, and neither is their repetition.
        let mut earlier = chain.clone();
        let task = &mut earlier.graph[1];
        (task.status, task.times.confirmed_ms) = (TaskStatus::Submitted, None);
        assert!(changes(&mut seen, &earlier).is_empty());
        assert!(changes(&mut seen, &chain).is_empty());

        let mut again = chain.clone();
        let task = &mut again.graph[1];
        (task.status, task.reason) = (TaskStatus::Waiting, Some("`step-0` failed".to_owned()));
        assert_eq!(told(changes(&mut seen, &again)), ["9500 step-1 waiting"]);
        assert!(changes(&mut seen, &again).is_empty());
        let task = &mut again.graph[1];
        (task.status, task.attempt, task.reason) = (TaskStatus::Running, 2, None);
        task.times =
            cowboy_devnet::types::TaskTimes { scheduled_ms: Some(9_600), ..Default::default() };
        let told = changes(&mut seen, &again);
        assert_eq!(told.len(), 1, "{told:?}");
        let text = "9.6 s  step-1  running  depth 0, bond 0.0015 CBY, attempt 2";
        assert_eq!(told[0].cells().join("  "), text);
    }
}
