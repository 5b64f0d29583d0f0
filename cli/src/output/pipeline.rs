//! Words for pipelines and their tasks, for commands and the dashboard.

use super::millis;
use cowboy_devnet::types::{
    PipelineStatus, PipelineSummary, SpeculativeTask, TaskParent, TaskTimes,
};
use std::collections::BTreeMap;

pub fn counted(summary: &PipelineSummary) -> String {
    let PipelineSummary { confirmed, tasks, undone, .. } = summary;
    let undone = if *undone > 0 { format!(", {undone} undone") } else { String::new() };
    format!("{confirmed} of {tasks} confirmed{undone}")
}

pub fn standing(summary: &PipelineSummary) -> String {
    let (counted, elapsed) = (counted(summary), millis(summary.elapsed_ms));
    match summary.status {
        PipelineStatus::Running => format!("running for {elapsed}, {counted}"),
        PipelineStatus::Completed => {
            let synchronous = summary.synchronous_ms.map(millis);
            let other = synchronous.map_or_else(String::new, |ms| format!(", synchronously {ms}"));
            format!("completed, {counted} in {elapsed}{other}")
        }
        status @ (PipelineStatus::Failed | PipelineStatus::Cancelled) => {
            format!("{status} after {elapsed}, {counted}")
        }
    }
}

pub fn parents(parents: &[TaskParent]) -> Vec<String> {
    let name = |parent: &TaskParent| match parent.order_only {
        true => format!("{} (order only)", parent.task),
        false => parent.task.clone(),
    };
    parents.iter().map(name).collect()
}

/// The steps that a task has reached: when, and how long after the previous step.
pub fn steps(times: &TaskTimes) -> Vec<Vec<String>> {
    let all = [
        ("scheduled", times.scheduled_ms),
        ("executed", times.executed_ms),
        ("proved", times.proved_ms),
        ("submitted", times.submitted_ms),
        ("confirmed", times.confirmed_ms),
        ("ended", times.ended_ms),
    ];
    let mut last = None;
    let mut rows = Vec::new();
    for (step, at) in all {
        let Some(at) = at else { continue };
        let took = last.replace(at).map(|before: u64| millis(at.saturating_sub(before)));
        rows.push(vec![step.to_owned(), millis(at), took.unwrap_or_else(|| "-".to_owned())]);
    }
    rows
}

/// The time when a task reached its status, in ms since its pipeline was accepted.
pub fn reached_ms(task: &SpeculativeTask) -> Option<u64> {
    let times = &task.times;
    times
        .ended_ms
        .filter(|_| task.status.is_final())
        .or(times.confirmed_ms)
        .or(times.submitted_ms)
        .or(times.proved_ms)
        .or(times.executed_ms)
        .or(times.scheduled_ms)
}

/// Counts by name: `max_depth 3, no_stake 1`.
pub fn by_name(counts: &BTreeMap<String, u64>) -> String {
    let counts: Vec<_> = counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
    if counts.is_empty() { "-".to_owned() } else { counts.join(", ") }
}

/// A text on one line, without control characters.
pub fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}
