//! Pipelines of tasks that run ahead of the chain: their graphs, bonds and rollbacks, and the agent
//! that runs them.

mod tasks;
mod view;

use crate::{
    dashboard::{
        arrangement::Column,
        drawing::{list_row_at, list_rows, page},
        news::{Answer, Ask},
        palette::quoted,
        pane::{Cx, Pane},
        rows::{Cursor, Detail, Pick},
    },
    output::forest::{Forest, TreeLine},
};
use cowboy_devnet::types::{
    Pipeline, PipelineStatus, PipelineSummary, Rollback, SpeculationStatus, TaskDetail,
};
use crossterm::event::{KeyCode, KeyEvent};
use ratatui::{buffer::Buffer, layout::Position};
use std::{cmp::Reverse, collections::BTreeMap};

/// Maximum number of pipelines whose graphs are kept.
const GRAPHS: usize = 16;

pub type OpenedTask = Detail<String, TaskDetail>;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum GraphLevel {
    #[default]
    Pipelines,
    /// All rollbacks, scrolled to this line.
    Rollbacks(Cursor),
    Graph {
        pipeline: u64,
        /// The cursor among its tasks, in drawn order.
        cursor: Cursor,
        task: Option<OpenedTask>,
    },
}

#[derive(Debug)]
pub struct DrawnTask {
    pub task: usize,
    /// The text before its name.
    pub lead: String,
    /// The other tasks that it comes after, as text.
    pub after: String,
}

#[derive(Debug, Default)]
pub struct Speculation {
    /// The agent's status; `None` before the first answer.
    pub status: Option<SpeculationStatus>,
    /// Newest first; `None` before the first answer.
    known: Option<Vec<PipelineSummary>>,
    /// Newest first.
    pub rollbacks: Vec<Rollback>,
    graphs: BTreeMap<u64, Pipeline>,
    /// The pipeline whose tasks the devnet last refused to send, and why.
    pub withheld: Option<(u64, String)>,
    pub refused: Option<String>,
    pick: Pick<u64>,
    pub level: GraphLevel,
}

impl Speculation {
    /// Every pipeline of the list, newest first; `None` before the first answer.
    pub fn all(&self) -> Option<&[PipelineSummary]> {
        self.known.as_deref()
    }

    pub fn accepted(&self, cx: &Cx<'_>) -> Vec<&PipelineSummary> {
        let all = self.known.iter().flatten();
        let accepts = |pipeline: &&PipelineSummary| {
            let PipelineSummary { pipeline, name, status, .. } = pipeline;
            cx.filter.accepts(&format!("{pipeline} {name} {status}"))
        };
        let mut accepted: Vec<_> = all.filter(accepts).collect();
        cx.arrangement.sort(&mut accepted, |pipeline, column| view::key(pipeline, column));
        accepted
    }

    pub fn cursor(&self, accepted: &[&PipelineSummary]) -> Cursor {
        self.pick.cursor(&numbers(accepted))
    }

    /// The number of the opened pipeline, or of the one under the cursor.
    pub fn chosen(&self, cx: &Cx<'_>) -> Option<u64> {
        if let GraphLevel::Graph { pipeline, .. } = self.level {
            return Some(pipeline);
        }
        self.pick.chosen(&numbers(&self.accepted(cx)))
    }

    pub fn graph(&self, pipeline: u64) -> Option<&Pipeline> {
        self.graphs.get(&pipeline)
    }

    /// The tasks of a pipeline that the filter accepts, as they are drawn. The filter sees the
    /// name, the status and the runner of each, and its pipeline's name.
    pub fn drawn(pipeline: &Pipeline, cx: &Cx<'_>) -> Vec<DrawnTask> {
        let forest = Forest::of(&pipeline.graph);
        let accepts = |line: &TreeLine| {
            let task = &pipeline.graph[line.task];
            let runner = task.runner.as_deref().unwrap_or_default();
            let name = &pipeline.summary.name;
            cx.filter.accepts(&format!("{} {} {runner} {name}", task.task, task.status))
        };
        let lines = forest.lines().into_iter().filter(accepts);
        let drawn = lines.map(|line| {
            let TreeLine { task, lead, .. } = line;
            let parents = forest.parents[task].iter();
            let others = parents.filter(|(at, only)| *only || Some(*at) != forest.under[task]);
            let (order, read): (Vec<_>, Vec<_>) = others.partition(|(_, only)| *only);
            let names = |of: Vec<&(usize, bool)>| {
                let names = of.into_iter().map(|(at, _)| pipeline.graph[*at].task.as_str());
                names.collect::<Vec<_>>().join(", ")
            };
            // Only the order of the others matters.
            let after = match (names(read), names(order)) {
                (read, order) if order.is_empty() => read,
                (read, order) if read.is_empty() => format!("only order: {order}"),
                (read, order) => format!("{read}; only order: {order}"),
            };
            DrawnTask { task, lead, after }
        });
        drawn.collect()
    }

    /// Number of drawn tasks of the chosen pipeline.
    fn tasks(&self, cx: &Cx<'_>) -> usize {
        let graph = self.chosen(cx).and_then(|number| self.graph(number));
        graph.map_or(0, |pipeline| Self::drawn(pipeline, cx).len())
    }

    fn task(&self, cx: &Cx<'_>) -> Option<String> {
        let GraphLevel::Graph { pipeline, cursor, .. } = &self.level else { return None };
        let graph = self.graph(*pipeline)?;
        let drawn = Self::drawn(graph, cx);
        let line = drawn.get(cursor.of(drawn.len()))?;
        Some(graph.graph[line.task].task.clone())
    }
}

fn numbers(pipelines: &[&PipelineSummary]) -> Vec<u64> {
    pipelines.iter().map(|pipeline| pipeline.pipeline).collect()
}

/// The command that shows a pipeline, or its opened task.
fn graph_command(pipeline: u64, task: Option<&OpenedTask>) -> String {
    match task {
        Some(task) => {
            format!("cowboyctl speculation show {pipeline} {}", quoted(&task.key))
        }
        None => format!("cowboyctl speculation graph {pipeline}"),
    }
}

impl Pane for Speculation {
    fn name(&self) -> &'static str {
        "speculation"
    }

    fn short(&self) -> &'static str {
        "spec"
    }

    fn wants(&self, cx: &Cx<'_>) -> Vec<Ask> {
        let mut wants = vec![Ask::Speculation, Ask::Pipelines, Ask::Rollbacks];
        if let Some(number) = self.chosen(cx) {
            let known = self.graph(number).map(|pipeline| pipeline.summary.status);
            if matches!(known, None | Some(PipelineStatus::Running)) {
                wants.push(Ask::Pipeline(number));
            }
            if let GraphLevel::Graph { task: Some(task), .. } = &self.level {
                let known = task.known.as_ref().map(|detail| detail.task.status);
                if known.is_none_or(|status| !status.is_final()) {
                    wants.push(Ask::Task(number, task.key.clone()));
                }
            }
        }
        wants
    }

    fn answer(&mut self, ask: &Ask, answer: &Answer, cx: &Cx<'_>) {
        match (ask, answer) {
            (_, Answer::Speculation(status)) => {
                self.status = Some(status.clone());
                self.refused = None;
            }
            (_, Answer::Pipelines(pipelines)) => {
                let mut newest_first = pipelines.clone();
                newest_first.sort_by_key(|pipeline| Reverse(pipeline.pipeline));
                self.known = Some(newest_first);
            }
            (_, Answer::Rollbacks(rollbacks)) => self.rollbacks = rollbacks.clone(),
            (Ask::Pipeline(number), Answer::Pipeline(pipeline)) => {
                self.graphs.insert(*number, pipeline.clone());
                let chosen = self.chosen(cx);
                while self.graphs.len() > GRAPHS {
                    let other = self.graphs.keys().find(|kept| Some(**kept) != chosen).copied();
                    let Some(other) = other else { break };
                    self.graphs.remove(&other);
                }
            }
            (Ask::Task(number, name), Answer::Task(detail)) => {
                if let GraphLevel::Graph { pipeline, task: Some(task), .. } = &mut self.level
                    && (*pipeline, &task.key) == (*number, name)
                {
                    task.hear(detail.clone());
                }
            }
            _ => {}
        }
    }

    fn refused(&mut self, ask: &Ask, reason: &str) {
        match (ask, &mut self.level) {
            (Ask::Speculation | Ask::Pipelines, _) => self.refused = Some(reason.to_owned()),
            (Ask::Pipeline(number), _) => self.withheld = Some((*number, reason.to_owned())),
            (Ask::Task(number, name), GraphLevel::Graph { pipeline, task: Some(task), .. })
                if (*pipeline, &task.key) == (*number, name) =>
            {
                task.refuse(reason);
            }
            _ => {}
        }
    }

    fn key(&mut self, key: KeyEvent, cx: &Cx<'_>) -> bool {
        let (shape, pipelines) = (view::shape(self, cx), numbers(&self.accepted(cx)));
        let tasks = self.tasks(cx);
        match &mut self.level {
            GraphLevel::Pipelines if key.code == KeyCode::Char('r') => {
                self.level = GraphLevel::Rollbacks(Cursor::default());
                true
            }
            GraphLevel::Pipelines => self.pick.key(key, &pipelines, list_rows(shape.pipelines)),
            GraphLevel::Rollbacks(first) => {
                let fit = page::rows(cx.area);
                let places = view::rollbacks(&self.rollbacks, cx).places(fit);
                first.key(key, places, fit)
            }
            GraphLevel::Graph { task: Some(task), .. } => {
                let fit = page::rows(cx.area);
                let places = tasks::task(task, cx).places(fit);
                task.first.key(key, places, fit)
            }
            GraphLevel::Graph { cursor, .. } => cursor.key(key, tasks, list_rows(shape.graph)),
        }
    }

    fn click(&mut self, at: Position, cx: &Cx<'_>) -> bool {
        let (shape, pipelines) = (view::shape(self, cx), numbers(&self.accepted(cx)));
        let tasks = self.tasks(cx);
        match &mut self.level {
            GraphLevel::Pipelines => list_row_at(shape.pipelines, at)
                .is_some_and(|line| self.pick.click(line, &pipelines, list_rows(shape.pipelines))),
            GraphLevel::Graph { cursor, task: None, .. } => list_row_at(shape.graph, at)
                .is_some_and(|line| cursor.click(line, tasks, list_rows(shape.graph))),
            GraphLevel::Graph { .. } | GraphLevel::Rollbacks(_) => false,
        }
    }

    fn enter(&mut self, cx: &Cx<'_>) -> bool {
        let (chosen, name) = (self.chosen(cx), self.task(cx));
        match (&mut self.level, chosen, name) {
            (GraphLevel::Pipelines, Some(pipeline), _) => {
                self.pick.go(pipeline);
                self.level = GraphLevel::Graph { pipeline, cursor: Cursor::default(), task: None };
                true
            }
            (GraphLevel::Graph { task: task @ None, .. }, _, Some(name)) => {
                *task = Some(Detail::new(name));
                true
            }
            _ => false,
        }
    }

    fn back(&mut self) -> bool {
        match &mut self.level {
            GraphLevel::Pipelines => return false,
            GraphLevel::Graph { task: task @ Some(_), .. } => *task = None,
            GraphLevel::Graph { .. } | GraphLevel::Rollbacks(_) => {
                self.level = GraphLevel::Pipelines;
            }
        }
        true
    }

    fn columns(&self) -> &'static [Column] {
        match self.level {
            GraphLevel::Pipelines => &view::PIPELINES,
            GraphLevel::Rollbacks(_) | GraphLevel::Graph { .. } => &[],
        }
    }

    fn equivalent(&self, cx: &Cx<'_>) -> Option<String> {
        Some(match (&self.level, self.chosen(cx)) {
            (GraphLevel::Rollbacks(_), _) => "cowboyctl speculation rollbacks".to_owned(),
            (GraphLevel::Graph { pipeline, task, .. }, _) => {
                graph_command(*pipeline, task.as_ref())
            }
            (GraphLevel::Pipelines, Some(number)) => graph_command(number, None),
            (GraphLevel::Pipelines, None) => "cowboyctl speculation status".to_owned(),
        })
    }

    fn keys(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("↑ ↓ PgUp PgDn Home End", "move; at the top it follows the newest"),
            ("enter", "the tasks of the pipeline; then a task with its steps and output"),
            ("r", "the rollbacks: what was undone, and what it cost"),
            ("esc", "back"),
        ]
    }

    fn draw(&self, cx: &Cx<'_>, buffer: &mut Buffer) {
        view::draw(self, cx, buffer);
    }
}
