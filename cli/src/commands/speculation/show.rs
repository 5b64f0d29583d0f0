//! Text output for pipelines, tasks, commitments, proofs and rollbacks.

use crate::output::{
    Document, Row, amount, decoded, fields, millis, or_dash,
    pipeline::{by_name, counted, one_line, parents, reached_ms, standing, steps},
    short, table, table_leaving,
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
    const HEADER: &'static [&'static str] = &[
        ">pipeline",
        "name",
        "status",
        ">tasks",
        ">confirmed",
        ">undone",
        "submitted at",
        ">took",
        ">synchronous",
        ">gain",
    ];
    const LEAST: &'static [&'static str] = &["submitted at", "synchronous", "undone"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.pipeline.to_string(),
            self.name.clone(),
            self.status.to_string(),
            self.tasks.to_string(),
            self.confirmed.to_string(),
            self.undone.to_string(),
            self.submitted_at.to_string(),
            millis(self.elapsed_ms),
            or_dash(self.synchronous_ms.map(millis)),
            or_dash(gain(self).map(|times| format!("{times} ×"))),
        ]
    }

    fn id(&self) -> String {
        self.pipeline.to_string()
    }
}

fn task_cells(task: &SpeculativeTask) -> Vec<String> {
    vec![
        task.task.clone(),
        task.kind.clone(),
        few(&parents(&task.depends_on)),
        task.status.to_string(),
        or_dash(task.depth),
        or_dash(task.bond.map(|bond| amount(*bond))),
        task.attempt.to_string(),
        or_dash(task.runner.clone()),
        or_dash(reached_ms(task).map(millis)),
        task.reason.as_deref().map(one_line).unwrap_or_default(),
    ]
}

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
        let head = fields(&lines);
        let columns = [
            "task",
            "kind",
            "depends on",
            "status",
            ">depth",
            ">bond",
            ">attempt",
            "runner",
            ">at",
            "reason",
        ];
        let least = ["attempt", "bond", "kind", "depth"];
        let rows = self.graph.iter().map(task_cells);
        format!("{head}\n\n{}", table_leaving(&least, &columns, rows))
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
        if let Some(reason) = &task.reason {
            lines.push(("reason", one_line(reason)));
        }
        lines.push(("depth", or_dash(task.depth)));
        lines.push(("bond", or_dash(task.bond.map(|bond| amount(*bond)))));
        lines.push(("attempt", task.attempt.to_string()));
        lines.push(("runner", or_dash(task.runner.clone())));
        if let Some(fault) = &task.fault {
            lines.push(("fault", fault.clone()));
        }
        if let Some(at) = &task.claim_expires_at {
            lines.push(("claim until", at.to_string()));
        }
        if let Some(commitment) = &task.output_commitment {
            lines.push(("commitment", commitment.to_string()));
        }
        if let Some(bytes) = task.output_bytes {
            lines.push(("output bytes", bytes.to_string()));
        }
        if let Some(output) = &self.output {
            let text = self.output_text.clone().unwrap_or_else(|| decoded(&output.0.0));
            lines.push(("output", text.trim_end().to_owned()));
        }
        let mut text = fields(&lines);
        let steps = steps(&task.times);
        if !steps.is_empty() {
            text += &format!("\n\n{}", table(&["step", ">at", ">took"], steps));
        }
        if !self.transactions.is_empty() {
            let row = |sent: &cowboy_devnet::types::TaskTransaction| {
                vec![sent.kind.clone(), sent.transaction.to_string()]
            };
            let rows = self.transactions.iter().map(row);
            text += &format!("\n\n{}", table(&["transaction", "hash"], rows));
        }
        text
    }

    fn id(&self) -> String {
        self.task.status.to_string()
    }
}

impl Row for SpeculativeCommitment {
    const HEADER: &'static [&'static str] = &[
        ">pipeline",
        "task",
        "status",
        ">depth",
        ">bond",
        "commitment",
        "constraint",
        "created at",
        "expires at",
    ];
    const LEAST: &'static [&'static str] = &["created at", "constraint", "depth", "bond"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.pipeline.to_string(),
            self.task.clone(),
            self.status.clone(),
            self.depth.to_string(),
            amount(*self.bond),
            short(&self.output_commitment),
            short(&self.constraint_hash),
            self.created_at.to_string(),
            self.expires_at.to_string(),
        ]
    }

    fn id(&self) -> String {
        self.output_commitment.to_string()
    }
}

impl Row for SpeculativeProof {
    const HEADER: &'static [&'static str] =
        &[">pipeline", "task", "status", "generator", ">took", ">submissions", "waits for"];
    const LEAST: &'static [&'static str] = &["submissions", "generator"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.pipeline.to_string(),
            self.task.clone(),
            self.status.clone(),
            self.generator.clone(),
            or_dash(self.took_ms.map(millis)),
            self.submissions.to_string(),
            few(&self.waits_for),
        ]
    }

    fn id(&self) -> String {
        self.task_id.to_string()
    }
}

impl Row for Rollback {
    const HEADER: &'static [&'static str] = &[
        "at",
        ">pipeline",
        "task",
        "reason",
        ">tasks",
        ">slashed",
        ">released",
        "undone (leaves first)",
    ];
    const LEAST: &'static [&'static str] = &["released", "undone (leaves first)", "tasks"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.at.to_string(),
            self.pipeline.to_string(),
            self.task.clone(),
            self.reason.clone(),
            self.tasks.to_string(),
            amount(*self.slashed),
            amount(*self.released),
            few(&self.undone),
        ]
    }

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
        let mut head = fields(&lines);
        if !self.running.is_empty() {
            let rows = self.running.iter().map(|one| {
                let ProofCounts { queued, proving, waiting, ready, in_flight } = one.proofs;
                let mut row = vec![one.pipeline.to_string(), one.name.clone(), counted(one)];
                let counts = [queued, proving, waiting, ready, in_flight];
                row.extend(counts.map(|count| count.to_string()));
                row
            });
            let columns = [
                ">running",
                "name",
                "tasks",
                ">queued",
                ">being made",
                ">waiting",
                ">ready",
                ">in flight",
            ];
            head += &format!("\n\n{}", table(&columns, rows));
        }
        if self.completed.is_empty() {
            return head;
        }
        let rows = self.completed.iter().map(|done| {
            vec![
                done.pipeline.to_string(),
                done.name.clone(),
                done.tasks.to_string(),
                or_dash(done.outputs_ms.map(millis)),
                millis(done.elapsed_ms),
                or_dash(done.synchronous_ms.map(millis)),
                or_dash(gain(done).map(|times| format!("{times} ×"))),
            ]
        });
        let columns =
            [">completed", "name", ">tasks", ">outputs after", ">took", ">synchronous", ">gain"];
        format!("{head}\n\n{}", table(&columns, rows))
    }

    fn id(&self) -> String {
        if self.enabled { "on" } else { "off" }.to_owned()
    }
}
