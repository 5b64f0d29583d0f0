//! `speculation plan`: predicts a pipeline's acceptance, waits and duration, without running it
//! (AgenC §4.5, `ScheduleResult`).

mod basis;

use super::{submit::read, timeline::bars};
use crate::{
    args, complete,
    context::Context,
    error::{CliError, Exit},
    output::{
        COLUMNS, ColumnOf, Document, amount, fields,
        forest::{Forest, TreeLine},
        millis, or_dash, table_of, to_ms,
    },
};
use basis::Basis;
use clap::Args;
use clap_complete::ArgValueCandidates;
use cowboy_devnet::{
    agent::model::{Cost, Devnet, Forecast, TaskForecast, forecast},
    speculation::{
        pipeline::{Checked, CheckedTask, TaskFault},
        workload::Workload,
    },
    types::{
        AmountText, Pipeline, PipelineStatus, PipelineSummary, ProofCounts, SpeculativeTask,
        TaskParent, TaskStatus, TaskTimes,
    },
};
use cowboy_engine::{
    primitives::Hash,
    speculation::{Reason, RollbackReason},
};
use jiff::Timestamp;
use serde::Serialize;
use std::{path::PathBuf, time::Duration};

/// Minimum time for a Groth16 proof, even if `proof.latency` is less, in ms (docs/performance.md).
const PROOF_MS: u64 = 40;
/// Time until a block is seen after it is made, in ms.
const LAG_MS: u64 = 50;

/// `speculation plan`.
#[derive(Debug, Args)]
pub struct Plan {
    /// A pipeline in YAML or JSON; - for standard input
    file: PathBuf,
    /// The topology whose options and parameters to use [default: the running devnet's, else
    /// defaults]
    #[arg(long, short = 'f', value_name = "FILE")]
    topology: Option<PathBuf>,
    /// Options of this workload, applied on top: low-latency-pipelines, production-default,
    /// safety-critical or testing
    #[arg(long, value_parser = args::named("workload", Workload::ALL))]
    #[arg(add = ArgValueCandidates::new(|| complete::all(Workload::ALL)))]
    workload: Option<Workload>,
    /// Time for a task's work
    #[arg(long, value_parser = args::duration, value_name = "DURATION", default_value = "20ms")]
    work_time: Duration,
    /// Time for a proof [default: proof.latency; with groth16 at least 40ms]
    #[arg(long, value_parser = args::duration, value_name = "DURATION")]
    proof_time: Option<Duration>,
}

impl Plan {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let request = read(&self.file)?;
        let checked = request.check().map_err(|error| CliError::failed(error.to_string()))?;
        let mut basis = Basis::find(cx, self.topology.as_deref()).await?;
        if let Some(workload) = self.workload {
            let settings = workload.settings().iter().copied();
            basis.options = basis.options.with(settings).map_err(|wrong| {
                let wrong: Vec<String> = wrong.iter().map(ToString::to_string).collect();
                CliError::new(Exit::Usage, wrong.join("; "))
            })?;
            basis.what += &format!(", workload {workload}");
        }
        let options = &basis.options;
        let least = match options.config.generator.name() {
            "mock" => 0,
            _ => PROOF_MS,
        };
        let own = options.proof_latency_ms.max(least);
        let proof_ms = self.proof_time.map_or(own, to_ms);
        let planned = Planned::of(checked, &basis, to_ms(self.work_time), proof_ms);
        cx.ui.drawing(&planned, |columns| planned.drawn(columns))
    }
}

/// The predicted course of a pipeline.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Planned {
    /// The pipeline's name.
    name: String,
    /// The basis of the plan: a topology, a running devnet, or the defaults.
    basis: String,
    /// Whether speculation is on there; if it is off, `synchronous` is the prediction.
    enabled: bool,
    /// The preset of options.
    mode: String,
    /// Maximum depth of a task.
    max_depth: u64,
    /// Maximum number of live tips.
    max_parallel_branches: u64,
    /// Time between two blocks, in ms.
    block_time_ms: u64,
    /// Assumed duration of each task's work, in ms.
    work_ms: u64,
    /// Assumed duration of each proof, in ms.
    proof_ms: u64,
    /// Time until the circuit breaker lets a task through, in ms; absent if it is closed.
    breaker_ms: Option<u64>,
    /// Tasks of other pipelines that are not final: the plan includes their bonds, not their time.
    other_tasks: u64,
    /// Number of its tasks.
    tasks: u64,
    /// Number of tasks that would be confirmed, with speculation on.
    confirmed: u64,
    /// Time from the submission to the last confirmation with speculation on, in ms; absent if a
    /// task would not be confirmed.
    speculative_ms: Option<u64>,
    /// The same with speculation off.
    synchronous_ms: Option<u64>,
    /// Maximum stake locked at one time with speculation on, in wei.
    #[cfg_attr(test, schema(value_type = String))]
    locked_at_most: AmountText,
    /// Its tasks, in the order of its file.
    graph: Vec<PlannedTask>,
    #[serde(skip)]
    drawn: Pipeline,
}

/// The predicted course of a task.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
struct PlannedTask {
    /// Its name.
    task: String,
    /// The tasks that it depends on.
    depends_on: Vec<TaskParent>,
    /// Whether it would be accepted, with speculation on.
    accepted: bool,
    /// The reason why it would not be accepted, or not be confirmed.
    reason: Option<String>,
    /// Unconfirmed tasks above it when it is accepted; absent if it is not.
    depth: Option<u32>,
    /// The stake that would be locked for it, in wei.
    #[cfg_attr(test, schema(value_type = Option<String>))]
    bond: Option<AmountText>,
    /// Its waits, in order.
    waits: Vec<PlannedWait>,
    /// The fault that its file injects; a plan includes only the time that it adds.
    fault: Option<String>,
    /// With speculation on.
    speculative: PlannedTimes,
    /// With speculation off.
    synchronous: PlannedTimes,
}

/// A period in which a task waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
struct PlannedWait {
    /// What it waits for: the end of a reason for refusal, such as `depth_exceeded`,
    /// `too_many_branches`, `insufficient_stake` or `breaker_open`; a `prover`; the confirmation of
    /// its `ancestors`; the end of another `submission`.
    #[serde(rename = "for")]
    awaited: String,
    /// The start, in ms from the submission of the pipeline.
    from_ms: u64,
    /// The end; absent if it never ends.
    until_ms: Option<u64>,
}

/// The times at which a task would reach each step, in ms from the submission of its pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
struct PlannedTimes {
    /// It is accepted.
    scheduled_ms: Option<u64>,
    /// Its output exists.
    executed_ms: Option<u64>,
    /// Its proof exists.
    proved_ms: Option<u64>,
    /// Its proof is sent to the chain.
    submitted_ms: Option<u64>,
    /// The chain confirms it.
    confirmed_ms: Option<u64>,
}

impl PlannedTimes {
    const fn of(task: &TaskForecast) -> Self {
        Self {
            scheduled_ms: task.scheduled_ms,
            executed_ms: task.executed_ms,
            proved_ms: task.proved_ms,
            submitted_ms: task.submitted_ms,
            confirmed_ms: task.confirmed_ms,
        }
    }
}

/// The waits of a task, from being refused to the submission of its proof. `ancestors`: when all
/// its parents are confirmed. `optimistic`: whether its proof is made before that.
fn waits(task: &TaskForecast, ancestors: Option<u64>, optimistic: bool) -> Vec<PlannedWait> {
    let wait = |awaited: &str, from_ms, until_ms| {
        let awaited = awaited.to_owned();
        PlannedWait { awaited, from_ms, until_ms }
    };
    let refused = task.waits.iter();
    let mut all: Vec<_> =
        refused.map(|one| wait(one.reason.name(), one.from_ms, one.until_ms)).collect();
    // After a step has ended, the next one may first wait for ancestors, then for its turn.
    let mut then = |from: Option<u64>, until: Option<u64>, for_ancestors: bool, turn: &str| {
        let Some(from) = from else { return };
        let free = if for_ancestors { ancestors.map(|at| at.max(from)) } else { Some(from) };
        all.push(wait("ancestors", from, free));
        if let Some(free) = free {
            all.push(wait(turn, free, until));
        }
    };
    then(task.executed_ms, task.proving_ms, !optimistic, "prover");
    then(task.proved_ms, task.submitted_ms, true, "submission");
    all.retain(|one| one.until_ms != Some(one.from_ms));
    all
}

impl Planned {
    fn of(pipeline: Checked, basis: &Basis, work_ms: u64, proof_ms: u64) -> Self {
        let costs: Vec<_> =
            pipeline.tasks.iter().map(|task| cost(task, work_ms, proof_ms)).collect();
        let options = &basis.options;
        let run = |enabled: bool| {
            let mut config = options.config.clone();
            config.enabled = enabled;
            let devnet = Devnet {
                config,
                bonds: basis.bonds,
                stake: basis.stake,
                latency_ms: options.confirmation_latency_ms,
                block_ms: basis.block_ms.max(1),
                lag_ms: LAG_MS.min(basis.block_ms / 2),
                breaker_ms: basis.breaker_ms,
                expires: true,
            };
            forecast(pipeline.clone(), (&basis.agent, basis.number), &costs, &devnet)
        };
        let (ahead, behind) = (run(true), run(false));
        let optimistic = options.config.enable_optimistic_proofs;
        let graph: Vec<_> = (0..pipeline.tasks.len())
            .map(|at| planned(&pipeline, at, (&ahead, &behind), optimistic))
            .collect();
        let drawn = drawn(&pipeline, &ahead, behind.length_ms);
        Self {
            name: pipeline.name.clone(),
            basis: basis.what.clone(),
            enabled: options.config.enabled,
            mode: options.config.mode.to_string(),
            max_depth: options.config.max_depth,
            max_parallel_branches: options.config.branches(),
            block_time_ms: basis.block_ms,
            work_ms,
            proof_ms,
            breaker_ms: basis.breaker_ms,
            other_tasks: basis.others,
            tasks: graph.len() as u64,
            confirmed: drawn.summary.confirmed,
            speculative_ms: ahead.length_ms,
            synchronous_ms: behind.length_ms,
            locked_at_most: ahead.peak.into(),
            graph,
            drawn,
        }
    }

    fn drawn(&self, columns: usize) -> String {
        if self.graph.iter().all(|task| !task.accepted) {
            return self.head();
        }
        let own = if self.enabled { "it would take" } else { "with it on" };
        format!("{}\n\n{}", self.head(), bars(&self.drawn, columns, own))
    }

    fn head(&self) -> String {
        let length = |ms: Option<u64>| ms.map_or_else(|| "never whole".to_owned(), millis);
        let more = |n: u64, one: &str| match n {
            1 => format!("1 {one}"),
            n => format!("{n} {one}s"),
        };
        let branches = match self.max_parallel_branches {
            1 => "1 branch".to_owned(),
            n => format!("{n} branches"),
        };
        let mut lines = vec![
            ("pipeline", format!("{}, {}", self.name, more(self.tasks, "task"))),
            ("by", self.basis.clone()),
            ("options", format!("{}, depth {} at most, {branches}", self.mode, self.max_depth)),
            (
                "supposed",
                format!(
                    "work {}, a proof {}, blocks every {}",
                    millis(self.work_ms),
                    millis(self.proof_ms),
                    millis(self.block_time_ms)
                ),
            ),
            ("speculatively", length(self.speculative_ms)),
            ("synchronously", length(self.synchronous_ms)),
            ("locked at most", amount(*self.locked_at_most)),
        ];
        if !self.enabled {
            let text = "off there: what would happen is the synchronous pipeline";
            lines.insert(3, ("speculation", text.to_owned()));
        }
        if let Some(ms) = self.breaker_ms {
            lines.insert(3, ("breaker", format!("open: lets one task through in {}", millis(ms))));
        }
        if self.other_tasks > 0 {
            let others = more(self.other_tasks, "task");
            lines.push(("left out", format!("the time of {others} of other pipelines")));
        }
        let broken: Vec<_> = self.graph.iter().filter_map(|task| task.left_out()).collect();
        if !broken.is_empty() {
            lines.push(("left out", format!("faults: {}", broken.join(", "))));
        }
        let tasks = &self.drawn.graph;
        let forest = Forest::of(tasks);
        let of = |line: TreeLine| (line.lead, &self.graph[line.task]);
        let tasks: Vec<_> = forest.lines().into_iter().map(of).collect();
        let columns: [ColumnOf<(String, &PlannedTask)>; 9] = [
            ("task", |(lead, one)| format!("{lead}{}", one.task)),
            (">depth", |(_, one)| or_dash(one.depth)),
            (">bond", |(_, one)| or_dash(one.bond.map(|bond| amount(*bond)))),
            (">begins", |(_, one)| or_dash(one.speculative.scheduled_ms.map(millis))),
            (">output", |(_, one)| or_dash(one.speculative.executed_ms.map(millis))),
            (">proved", |(_, one)| or_dash(one.speculative.proved_ms.map(millis))),
            (">confirmed", |(_, one)| or_dash(one.speculative.confirmed_ms.map(millis))),
            (">synchronously", |(_, one)| or_dash(one.synchronous.confirmed_ms.map(millis))),
            ("waits for", |(_, one)| one.waits_for()),
        ];
        let least = ["depth", "begins", "synchronously"];
        format!("{}\n\n{}", fields(&lines), table_of(&least, &columns, &tasks))
    }
}

impl PlannedTask {
    fn waits_for(&self) -> String {
        // A wait that does not end is shown as the reason.
        let ends = |wait: &&PlannedWait| wait.until_ms.is_some() || self.reason.is_none();
        let mut waits: Vec<_> = self.waits.iter().filter(ends).map(PlannedWait::words).collect();
        waits.extend(self.reason.clone());
        if waits.is_empty() { "-".to_owned() } else { waits.join(", ") }
    }

    fn left_out(&self) -> Option<String> {
        let fault = self.fault.as_deref()?;
        let timed = fault.starts_with("slow_ms") || fault.starts_with("late_event_ms");
        (!timed).then(|| format!("{} ({fault})", self.task))
    }
}

impl PlannedWait {
    fn words(&self) -> String {
        let what = match self.awaited.as_str() {
            "prover" => "a prover",
            "submission" => "a submission",
            other => other,
        };
        match self.until_ms {
            Some(until) => format!("{what} {}", millis(until.saturating_sub(self.from_ms))),
            None => format!("{what}, without end"),
        }
    }
}

/// The duration of a task's steps, including the time that its fault adds.
fn cost(task: &CheckedTask, work_ms: u64, proof_ms: u64) -> Cost {
    let (slow_ms, late_ms) = Cost::added(task.fault);
    Cost { work_ms, proof_ms: proof_ms.saturating_add(slow_ms), late_ms }
}

fn parents(pipeline: &Checked, at: usize) -> Vec<TaskParent> {
    let parent = |(parent, order_only): &(usize, bool)| TaskParent {
        task: pipeline.tasks[*parent].entry.id.clone(),
        order_only: *order_only,
    };
    pipeline.tasks[at].parents.iter().map(parent).collect()
}

fn reason(task: &TaskForecast) -> Option<String> {
    match (task.failed, task.waits.last()) {
        (Some(_), Some(last)) if last.reason == Reason::ClaimTooSoon => {
            Some("its claim is not longer than claimBufferMs: submit refuses it".to_owned())
        }
        (Some(RollbackReason::AncestorFailed), _) => Some("what it depends on fails".to_owned()),
        (Some(reason), _) => Some(format!("undone: {reason}")),
        (None, Some(last)) if last.until_ms.is_none() => Some(format!("refused: {}", last.reason)),
        (None, _) if task.scheduled_ms.is_none() => Some("what it depends on waits".to_owned()),
        (None, _) => None,
    }
}

fn planned(
    pipeline: &Checked,
    at: usize,
    (ahead, behind): (&Forecast, &Forecast),
    optimistic: bool,
) -> PlannedTask {
    let task = &ahead.tasks[at];
    let above = pipeline.tasks[at].parents.iter();
    let above = above.map(|(parent, _)| ahead.tasks[*parent].confirmed_ms);
    let ancestors = above.collect::<Option<Vec<_>>>().map(|all| all.into_iter().max().unwrap_or(0));
    PlannedTask {
        task: pipeline.tasks[at].entry.id.clone(),
        depends_on: parents(pipeline, at),
        accepted: task.scheduled_ms.is_some(),
        reason: reason(task),
        depth: task.depth,
        bond: task.bond.map(AmountText::from),
        waits: waits(task, ancestors, optimistic),
        fault: pipeline.tasks[at].fault.map(TaskFault::describe),
        speculative: PlannedTimes::of(task),
        synchronous: PlannedTimes::of(&behind.tasks[at]),
    }
}

/// The plan in the form of a pipeline that has run, so that it can be drawn in the same way.
fn drawn(pipeline: &Checked, ahead: &Forecast, synchronous_ms: Option<u64>) -> Pipeline {
    let end = |task: &TaskForecast| {
        let times = [task.scheduled_ms, task.executed_ms, task.proved_ms, task.submitted_ms];
        times.into_iter().chain([task.confirmed_ms]).flatten().max().unwrap_or(0)
    };
    let task = |(at, one): (usize, &TaskForecast)| SpeculativeTask {
        pipeline: 0,
        task: pipeline.tasks[at].entry.id.clone(),
        task_id: Hash::ZERO.into(),
        kind: pipeline.tasks[at].kind.to_owned(),
        depends_on: parents(pipeline, at),
        status: match (one.confirmed_ms, one.failed) {
            (Some(_), _) => TaskStatus::Confirmed,
            (None, Some(RollbackReason::AncestorFailed)) => TaskStatus::RolledBack,
            (None, Some(_)) => TaskStatus::Failed,
            (None, None) => TaskStatus::Waiting,
        },
        reason: None,
        depth: one.depth,
        bond: one.bond.map(AmountText::from),
        attempt: 1,
        runner: None,
        fault: None,
        output_bytes: None,
        output_commitment: None,
        claim_expires_at: None,
        times: TaskTimes {
            scheduled_ms: one.scheduled_ms,
            executed_ms: one.executed_ms,
            proved_ms: one.proved_ms,
            submitted_ms: one.submitted_ms,
            confirmed_ms: one.confirmed_ms,
            ended_ms: one.failed.map(|_| end(one)),
        },
    };
    let graph: Vec<_> = ahead.tasks.iter().enumerate().map(task).collect();
    let confirmed = graph.iter().filter(|task| task.status == TaskStatus::Confirmed).count() as u64;
    let last = ahead.tasks.iter().map(end).max().unwrap_or(0);
    let summary = PipelineSummary {
        pipeline: 0,
        name: pipeline.name.clone(),
        status: match ahead.length_ms {
            Some(_) => PipelineStatus::Completed,
            None => PipelineStatus::Failed,
        },
        tasks: graph.len() as u64,
        confirmed,
        undone: graph.len() as u64 - confirmed,
        submitted_at: Timestamp::UNIX_EPOCH.into(),
        elapsed_ms: ahead.length_ms.unwrap_or(last),
        outputs_ms: None,
        synchronous_ms: synchronous_ms.filter(|_| ahead.length_ms.is_some()),
        proofs: ProofCounts::default(),
    };
    Pipeline { summary, graph }
}

impl Document for Planned {
    fn text(&self) -> String {
        anstream::adapter::strip_str(&self.drawn(COLUMNS)).to_string()
    }

    fn id(&self) -> String {
        self.speculative_ms.map_or_else(String::new, |ms| ms.to_string())
    }
}
