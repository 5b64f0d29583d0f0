//! A pipeline's graph, drawn: as a tree for people, as DOT, Mermaid and JSON for programs.
//!
//! Functions of what the API says of a pipeline, without recursion: a chain of any length is
//! drawn. An answer whose tasks make a cycle, or name tasks that are not there, is drawn as far as
//! it goes.

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
pub use tree::tree;

use crate::output::{AWAITED, BUSY, DONE, FAILED, FAINT, UNDONE, forest};
use anstyle::Style;
use cowboy_devnet::api::types::{Pipeline, SpeculativeTask, TaskStatus};

/// What a graph is drawn as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Form {
    /// Lines with their columns, for people.
    #[default]
    Tree,
    /// For Graphviz.
    Dot,
    /// A flowchart for Markdown.
    Mermaid,
    /// Tasks and edges.
    Json,
}

/// How a status is shown.
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

/// The edges: position of the parent, position of the child, whether only the order counts.
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

/// The beginning of a text that is longer than so many columns.
pub fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    text.chars().take(columns.saturating_sub(1)).chain(['…']).collect()
}
