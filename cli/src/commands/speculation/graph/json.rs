//! The graph for programs: tasks under the names that scripts rely on (spec cli.md), and edges.

use super::{edges, tree};
use crate::output::{COLUMNS, Document};
use cowboy_devnet::types::{Pipeline, PipelineStatus, SpeculativeTask, TimeText};
use serde::Serialize;

/// A pipeline's graph.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Graph<'a> {
    pipeline: u64,
    name: &'a str,
    status: PipelineStatus,
    confirmed: u64,
    undone: u64,
    submitted_at: TimeText,
    elapsed_ms: u64,
    outputs_ms: Option<u64>,
    synchronous_ms: Option<u64>,
    tasks: Vec<TaskNode<'a>>,
    edges: Vec<Edge<'a>>,
    #[serde(skip)]
    drawn: &'a Pipeline,
}

/// A task: the API's fields, and its name and its parents' under the names that scripts use.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct TaskNode<'a> {
    id: &'a str,
    parents: Vec<&'a str>,
    #[serde(flatten)]
    task: &'a SpeculativeTask,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Edge<'a> {
    from: &'a str,
    to: &'a str,
    order_only: bool,
}

impl<'a> Graph<'a> {
    pub fn of(pipeline: &'a Pipeline) -> Self {
        let tasks = &pipeline.graph;
        let name = |at: usize| tasks[at].task.as_str();
        let node = |task: &'a SpeculativeTask| TaskNode {
            id: &task.task,
            parents: task.depends_on.iter().map(|parent| parent.task.as_str()).collect(),
            task,
        };
        let edge = |(from, to, order_only)| Edge { from: name(from), to: name(to), order_only };
        let summary = &pipeline.summary;
        Self {
            pipeline: summary.pipeline,
            name: &summary.name,
            status: summary.status,
            confirmed: summary.confirmed,
            undone: summary.undone,
            submitted_at: summary.submitted_at,
            elapsed_ms: summary.elapsed_ms,
            outputs_ms: summary.outputs_ms,
            synchronous_ms: summary.synchronous_ms,
            tasks: tasks.iter().map(node).collect(),
            edges: edges(tasks).into_iter().map(edge).collect(),
            drawn: pipeline,
        }
    }
}

impl Document for Graph<'_> {
    fn text(&self) -> String {
        anstream::adapter::strip_str(&tree(self.drawn, COLUMNS)).to_string()
    }

    fn id(&self) -> String {
        self.pipeline.to_string()
    }
}
