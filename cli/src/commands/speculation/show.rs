//! Text output for pipelines, tasks, commitments, proofs and rollbacks.

use crate::output::{
    ColumnOf, Document, Row, amount, any_table, any_table_of, columns, decoded, fields, millis,
    or_dash, paragraphs,
    pipeline::{by_name, counted, one_line, parents, reached_ms, standing, steps},
    short, table_of,
};
use cowboy_devnet::types::{
    BreakerOpened, ChainAway, HashText, Pipeline, PipelineStatus, PipelineSummary, ProofCounts,
    Rollback, SpeculationStatus, SpeculativeCommitment, SpeculativeProof, SpeculativeTask,
    TaskDetail, TasksRetried,
};
use serde::Serialize;

/// Maximum number of names in a table's cell; JSON output has all.
const NAMED: usize = 3;

fn few(names: &[String]) -> String {
    match names.len().checked_sub(NAMED).filter(|more| *more > 0) {
        Some(more) => format!("{} and {more} more", names[..NAMED].join(", ")),
        None if names.is_empty() => "-".to_owned(),
        None => names.join(", "),
    }
}

pub fn headline(summary: &PipelineSummary) -> String {
    let PipelineSummary { pipeline, name, .. } = summary;
    format!("{name} (pipeline {pipeline}): {}", standing(summary))
}

/// The duration of the synchronous pipeline as a multiple of this one's, to the nearest tenth.
pub fn gain(summary: &PipelineSummary) -> Option<String> {
    let (other, own) = (summary.synchronous_ms?, summary.elapsed_ms);
    let tenths = other.saturating_mul(10).saturating_add(own / 2).checked_div(own)?;
    Some(format!("{}.{}", tenths / 10, tenths % 10))
}

fn proofs(counts: &ProofCounts) -> String {
    let ProofCounts { queued, proving, waiting, ready, in_flight } = counts;
    format!(
        "{queued} queued, {proving} being made, {waiting} waiting, {ready} ready, {in_flight} in \
         flight"
    )
}

impl Row for PipelineSummary {
    columns! { self;
        ">pipeline" => self.pipeline.to_string(),
        "name" => self.name.clone(),
        "status" => self.status.to_string(),
        ">tasks" => self.tasks.to_string(),
        ">confirmed" => self.confirmed.to_string(),
        ">undone" => self.undone.to_string(),
        "submitted at" => self.submitted_at.to_string(),
        ">took" => millis(self.elapsed_ms),
        ">synchronous" => or_dash(self.synchronous_ms.map(millis)),
        ">gain" => or_dash(gain(self).map(|times| format!("{times} ×"))),
    }
    const LEAST: &'static [&'static str] = &["submitted at", "synchronous", "undone"];

    fn id(&self) -> String {
        self.pipeline.to_string()
    }
}

const TASKS: &[ColumnOf<SpeculativeTask>] = &[
    ("task", |task| task.task.clone()),
    ("kind", |task| task.kind.clone()),
    ("depends on", |task| few(&parents(&task.depends_on))),
    ("status", |task| task.status.to_string()),
    (">depth", |task| or_dash(task.depth)),
    (">bond", |task| or_dash(task.bond.map(|bond| amount(*bond)))),
    (">attempt", |task| task.attempt.to_string()),
    ("runner", |task| or_dash(task.runner.clone())),
    (">at", |task| or_dash(reached_ms(task).map(millis))),
    ("reason", |task| task.reason.as_deref().map(one_line).unwrap_or_default()),
];

impl Document for Pipeline {
    fn text(&self) -> String {
        let summary = &self.summary;
        let synchronous = summary.synchronous_ms.map(|ms| match gain(summary) {
            Some(times) => format!("{}, {times} times as long", millis(ms)),
            None => millis(ms),
        });
        let mut lines = vec![
            ("pipeline", summary.pipeline.to_string()),
            ("name", summary.name.clone()),
            ("status", summary.status.to_string()),
            ("tasks", counted(summary)),
            ("submitted at", summary.submitted_at.to_string()),
            ("took", millis(summary.elapsed_ms)),
            ("outputs after", or_dash(summary.outputs_ms.map(millis))),
            ("synchronously", or_dash(synchronous)),
        ];
        if summary.status == PipelineStatus::Running {
            lines.push(("proofs now", proofs(&summary.proofs)));
        }
        let tasks = table_of(&["attempt", "bond", "kind", "depth"], TASKS, &self.graph);
        format!("{}\n\n{tasks}", fields(&lines))
    }

    fn id(&self) -> String {
        self.summary.status.to_string()
    }
}

impl Document for TaskDetail {
    fn text(&self) -> String {
        let task = &self.task;
        let mut lines = vec![
            ("task", task.task.clone()),
            ("pipeline", task.pipeline.to_string()),
            ("id", task.task_id.to_string()),
            ("kind", task.kind.clone()),
            (
                "depends on",
                match task.depends_on.as_slice() {
                    [] => "-".to_owned(),
                    of => parents(of).join(", "),
                },
            ),
            ("status", task.status.to_string()),
        ];
        lines.extend(task.reason.as_ref().map(|reason| ("reason", one_line(reason))));
        lines.push(("depth", or_dash(task.depth)));
        lines.push(("bond", or_dash(task.bond.map(|bond| amount(*bond)))));
        lines.push(("attempt", task.attempt.to_string()));
        lines.push(("runner", or_dash(task.runner.clone())));
        lines.extend(task.fault.as_ref().map(|fault| ("fault", fault.clone())));
        lines.extend(task.claim_expires_at.as_ref().map(|at| ("claim until", at.to_string())));
        if let Some(commitment) = &task.output_commitment {
            lines.push(("commitment", commitment.to_string()));
        }
        lines.extend(task.output_bytes.map(|bytes| ("output bytes", bytes.to_string())));
        if let Some(output) = &self.output {
            let text = self.output_text.clone().unwrap_or_else(|| decoded(&output.0.0));
            lines.push(("output", text.trim_end().to_owned()));
        }
        let sent = self.transactions.iter();
        let sent = sent.map(|sent| vec![sent.kind.clone(), sent.transaction.to_string()]);
        paragraphs([
            fields(&lines),
            any_table(&["step", ">at", ">took"], steps(&task.times)),
            any_table(&["transaction", "hash"], sent),
        ])
    }

    fn id(&self) -> String {
        self.task.status.to_string()
    }
}

impl Row for SpeculativeCommitment {
    columns! { self;
        ">pipeline" => self.pipeline.to_string(),
        "task" => self.task.clone(),
        "status" => self.status.clone(),
        ">depth" => self.depth.to_string(),
        ">bond" => amount(*self.bond),
        "commitment" => short(&self.output_commitment),
        "constraint" => short(&self.constraint_hash),
        "created at" => self.created_at.to_string(),
        "expires at" => self.expires_at.to_string(),
    }
    const LEAST: &'static [&'static str] = &["created at", "constraint", "depth", "bond"];

    fn id(&self) -> String {
        self.output_commitment.to_string()
    }
}

impl Row for SpeculativeProof {
    columns! { self;
        ">pipeline" => self.pipeline.to_string(),
        "task" => self.task.clone(),
        "status" => self.status.clone(),
        "generator" => self.generator.clone(),
        ">took" => or_dash(self.took_ms.map(millis)),
        ">submissions" => self.submissions.to_string(),
        "waits for" => few(&self.waits_for),
    }
    const LEAST: &'static [&'static str] = &["submissions", "generator"];

    fn id(&self) -> String {
        self.task_id.to_string()
    }
}

impl Row for Rollback {
    columns! { self;
        "at" => self.at.to_string(),
        ">pipeline" => self.pipeline.to_string(),
        "task" => self.task.clone(),
        "reason" => self.reason.clone(),
        ">tasks" => self.tasks.to_string(),
        ">slashed" => amount(*self.slashed),
        ">released" => amount(*self.released),
        "undone (leaves first)" => few(&self.undone),
    }
    const LEAST: &'static [&'static str] = &["released", "undone (leaves first)", "tasks"];

    fn id(&self) -> String {
        self.task_id.to_string()
    }
}

/// The result of a cancellation.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Cancelled {
    /// The pipeline's number.
    pub pipeline: u64,
    /// Number of cancelled tasks.
    pub tasks: u64,
}

impl Document for Cancelled {
    fn text(&self) -> String {
        let tasks = match self.tasks {
            1 => "1 task".to_owned(),
            tasks => format!("{tasks} tasks"),
        };
        fields(&[("pipeline", self.pipeline.to_string()), ("cancelled", tasks)])
    }

    fn id(&self) -> String {
        self.tasks.to_string()
    }
}

impl Document for TasksRetried {
    fn text(&self) -> String {
        fields(&[("pipeline", self.pipeline.to_string()), ("tried again", self.tasks.join(", "))])
    }

    fn id(&self) -> String {
        self.tasks.join("\n")
    }
}

fn away_since(away: &ChainAway) -> String {
    let ChainAway { since, tries, paused } = away;
    let paused = if *paused { "; paused until it is back" } else { "" };
    format!("away since {since}, tried {tries} times{paused}")
}

fn breaker_lines(opened: &BreakerOpened) -> Vec<(&'static str, String)> {
    let name = |pipeline: Option<u64>, task: Option<&str>, id: &HashText| match (pipeline, task) {
        (Some(pipeline), Some(task)) => format!("{task} of pipeline {pipeline}"),
        _ => short(id),
    };
    let failed = opened.failures.iter().map(|failure| {
        let task = name(failure.pipeline, failure.task.as_deref(), &failure.task_id);
        format!("{task}: {}", failure.reason)
    });
    let failed: Vec<_> = failed.collect();
    let cause = match opened.cause.as_str() {
        "rate" => {
            let (undone, of) = (opened.rolled_back, opened.resolved);
            format!("{undone} of the last {of} tasks were rolled back")
        }
        "probe" => "the task that it had let through failed".to_owned(),
        _ => "failures within a minute".to_owned(),
    };
    let next = match (&opened.lets_one_through_at, &opened.probe) {
        (_, Some(probe)) => {
            let task = name(probe.pipeline, probe.task.as_deref(), &probe.task_id);
            format!("has let {task} through, which decides")
        }
        (Some(at), None) => format!("one task at {at}"),
        (None, None) => "-".to_owned(),
    };
    vec![
        ("opened by", format!("{cause}, at {}", opened.since)),
        ("failed", few(&failed)),
        ("lets through", next),
    ]
}

const RUNNING: &[ColumnOf<PipelineSummary>] = &[
    (">running", |one| one.pipeline.to_string()),
    ("name", |one| one.name.clone()),
    ("tasks", counted),
    (">queued", |one| one.proofs.queued.to_string()),
    (">being made", |one| one.proofs.proving.to_string()),
    (">waiting", |one| one.proofs.waiting.to_string()),
    (">ready", |one| one.proofs.ready.to_string()),
    (">in flight", |one| one.proofs.in_flight.to_string()),
];

const COMPLETED: &[ColumnOf<PipelineSummary>] = &[
    (">completed", |done| done.pipeline.to_string()),
    ("name", |done| done.name.clone()),
    (">tasks", |done| done.tasks.to_string()),
    (">outputs after", |done| or_dash(done.outputs_ms.map(millis))),
    (">took", |done| millis(done.elapsed_ms)),
    (">synchronous", |done| or_dash(done.synchronous_ms.map(millis))),
    (">gain", |done| or_dash(gain(done).map(|times| format!("{times} ×")))),
];

impl Document for SpeculationStatus {
    fn text(&self) -> String {
        let generator = match self.generator.as_str() {
            "mock" => "mock, which proves nothing".to_owned(),
            other => other.to_owned(),
        };
        let recent = (self.recent_rollbacks, self.recent_tasks);
        let mut lines = vec![
            ("agent", self.agent.to_string()),
            ("speculation", if self.enabled { "on" } else { "off: synchronous" }.to_owned()),
            ("mode", self.mode.clone()),
            ("policy", self.policy.clone()),
            ("proofs", generator),
            (
                "breaker",
                format!("{} ({} of the last {} rolled back)", self.breaker, recent.0, recent.1),
            ),
            (
                "stake",
                format!(
                    "{} available, {} locked, {} slashed",
                    amount(*self.stake_available),
                    amount(*self.stake_locked),
                    amount(*self.stake_slashed)
                ),
            ),
            ("tasks now", format!("{} live, {} waiting", self.tasks_live, self.tasks_waiting)),
            ("branches", format!("{}, the deepest at {}", self.branches, self.max_depth_current)),
            (
                "proofs now",
                proofs(&ProofCounts {
                    queued: self.proofs_queued,
                    proving: self.proofs_proving,
                    waiting: self.proofs_waiting,
                    ready: self.proofs_ready,
                    in_flight: self.proofs_in_flight,
                }),
            ),
            ("memory", format!("{} KiB", self.memory_bytes.div_ceil(1_024))),
            (
                "tasks so far",
                format!(
                    "{} accepted, {} confirmed, {} undone",
                    self.tasks_scheduled, self.tasks_confirmed, self.tasks_rolled_back
                ),
            ),
            ("refused", by_name(&self.tasks_rejected)),
            ("rollbacks", by_name(&self.rollbacks)),
            (
                "pipelines",
                format!("{} running, {} done", self.pipelines_running, self.pipelines_done),
            ),
        ];
        if let Some(away) = &self.chain_away {
            lines.insert(2, ("chain", away_since(away)));
        }
        if let Some(opened) = &self.breaker_opened {
            let at = lines.iter().position(|(name, _)| *name == "breaker").map_or(0, |at| at + 1);
            lines.splice(at..at, breaker_lines(opened));
        }
        paragraphs([
            fields(&lines),
            any_table_of(RUNNING, &self.running),
            any_table_of(COMPLETED, &self.completed),
        ])
    }

    fn id(&self) -> String {
        if self.enabled { "on" } else { "off" }.to_owned()
    }
}
