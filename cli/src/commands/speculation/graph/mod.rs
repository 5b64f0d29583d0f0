//! Draws a pipeline's graph: as a tree for people, as DOT, Mermaid and JSON for programs.
//!
//! These are functions of the API's answer, without recursion, so a chain of any length can be
//! drawn. If the tasks of an answer form a cycle or name missing tasks, the rest is drawn.

mod dot;
mod json;
mod mermaid;
mod tree;

#[cfg(test)]
pub mod samples;
#[cfg(test)]
mod tests;

pub use dot::dot;
pub use json::Graph;
pub use mermaid::mermaid;
pub(super) use tree::GAP;
pub use tree::tree;

use crate::output::{AWAITED, BUSY, DONE, FAILED, FAINT, UNDONE, forest};
use anstyle::Style;
use cowboy_devnet::types::{Pipeline, SpeculativeTask, TaskStatus};

/// The format of a drawn graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Form {
    /// A tree with columns, for people.
    #[default]
    Tree,
    /// DOT, for Graphviz.
    Dot,
    /// A Mermaid flowchart, for Markdown.
    Mermaid,
    /// Tasks and edges in JSON.
    Json,
}

pub const fn colour(status: TaskStatus) -> Style {
    match status {
        TaskStatus::Waiting | TaskStatus::Cancelled => FAINT,
        TaskStatus::Running | TaskStatus::Proving => BUSY,
        TaskStatus::Proved | TaskStatus::Submitted => AWAITED,
        TaskStatus::Confirmed => DONE,
        TaskStatus::Failed => FAILED,
        TaskStatus::RolledBack => UNDONE,
    }
}

/// The edges: position of the parent, position of the child, whether only the order matters.
fn edges(tasks: &[SpeculativeTask]) -> Vec<(usize, usize, bool)> {
    forest::parents(tasks)
        .into_iter()
        .enumerate()
        .flat_map(|(child, parents)| {
            parents.into_iter().map(move |(parent, order_only)| (parent, child, order_only))
        })
        .collect()
}

/// The statuses that occur, in the order in which a task passes through them.
fn statuses(pipeline: &Pipeline) -> impl Iterator<Item = TaskStatus> {
    let occurs = |status: &TaskStatus| pipeline.graph.iter().any(|task| task.status == *status);
    TaskStatus::ALL.iter().copied().filter(occurs)
}

/// The beginning of a text, if it is longer than `columns`.
pub fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    text.chars().take(columns.saturating_sub(1)).chain(['…']).collect()
}
