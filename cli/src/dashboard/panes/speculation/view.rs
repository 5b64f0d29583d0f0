//! The agent, its pipelines, the drawn graph of one of them, and the rollbacks.

use super::{
    DrawnTask, GraphLevel, Speculation,
    tasks::{self, draw_about, draw_tasks},
};
use crate::{
    dashboard::{
        arrangement::SortKey,
        drawing::{
            Cell, Column, Page,
            facts::{self, Facts},
            grid, lines, list_grid, list_rows, page, plain, section, split, unlike,
        },
        filter::Filter,
        look::Look,
        pane::Cx,
        rows::Cursor,
    },
    output::{
        amount, cut, grouped, millis, or_dash,
        pipeline::{by_name, standing},
        seconds_since,
    },
};
use cowboy_devnet::types::{
    Pipeline, PipelineStatus, PipelineSummary, Rollback, SpeculationStatus,
};
use ratatui::{buffer::Buffer, layout::Rect, style::Style, text::Line};

/// The minimum width to show the graph next to the pipelines.
const WIDE: u16 = 150;

/// Minimum columns for the pipelines next to a graph.
const LISTS: u16 = 72;

/// The minimum rows of the pane for the agent.
const LOW: u16 = 16;

/// The minimum rows below a graph for its tasks in words.
const TASK_ROWS: u16 = 6;

/// Rows for the agent, including their rule.
const AGENT: u16 = 6;

/// Rows for the task under the cursor, including their rule.
const ABOUT: u16 = 5;

pub const PIPELINES: [Column; 8] = [
    Column::number("#"),
    Column::long("name"),
    Column::text("status"),
    Column::number("confirmed"),
    Column::number("undone"),
    Column::number("took"),
    Column::number("synchronous"),
    Column::number("ago"),
];

const ROLLBACKS: [Column; 8] = [
    Column::number("ago"),
    Column::number("#"),
    Column::long("task"),
    Column::text("reason"),
    Column::number("undone"),
    Column::number("slashed"),
    Column::number("released"),
    Column::long("leaves first"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpeculationAreas {
    agent: Rect,
    pub pipelines: Rect,
    rollbacks: Rect,
    pub graph: Rect,
    about: Rect,
}

fn part(area: Rect, from: u16, height: u16) -> Rect {
    let from = from.min(area.height);
    Rect { y: area.y + from, height: height.min(area.height - from), ..area }
}

pub fn shape(pane: &Speculation, cx: &Cx<'_>) -> SpeculationAreas {
    let area = cx.area;
    let none = Rect { height: 0, ..area };
    if let GraphLevel::Graph { .. } = pane.level {
        let about = if area.height < LOW { 0 } else { ABOUT };
        let graph = part(area, 0, area.height - about);
        let about = part(area, graph.height, ABOUT);
        return SpeculationAreas { agent: none, pipelines: none, rollbacks: none, graph, about };
    }
    let agent = part(area, 0, if area.height < LOW { 0 } else { AGENT });
    let rest = part(area, agent.height, area.height);
    let count = (pane.accepted(cx).len().clamp(1, 1_000) as u16).saturating_add(3);
    let undone = match pane.rollbacks.len().min(1_000) as u16 {
        0 => 0,
        count => count.saturating_add(3).min(rest.height / 3),
    };
    if area.width >= WIDE {
        let left = Rect { width: (rest.width / 3).max(LISTS), ..rest };
        let x = rest.x + left.width + 2;
        let graph = Rect { x, width: rest.right() - x, ..rest };
        let pipelines = part(left, 0, count.min(left.height - undone));
        let room = if undone > 0 { left.height } else { 0 };
        let rollbacks = part(left, pipelines.height, room);
        return SpeculationAreas { agent, pipelines, rollbacks, graph, about: none };
    }
    // On a low terminal the rollbacks only have their own page.
    let undone = if rest.height < 24 { 0 } else { undone };
    let pipelines = part(rest, 0, count.min(rest.height / 3).max(4));
    let graph = part(rest, pipelines.height, rest.height - pipelines.height - undone);
    let rollbacks = part(rest, pipelines.height + graph.height, undone);
    SpeculationAreas { agent, pipelines, rollbacks, graph, about: none }
}

fn style_of(status: PipelineStatus, look: Look) -> Style {
    match status {
        PipelineStatus::Running => look.busy(),
        PipelineStatus::Completed => look.good(),
        PipelineStatus::Failed => look.bad(),
        PipelineStatus::Cancelled => look.warn(),
    }
}

pub fn draw(pane: &Speculation, cx: &Cx<'_>, buffer: &mut Buffer) {
    let shape = shape(pane, cx);
    match &pane.level {
        GraphLevel::Pipelines => {
            draw_agent(pane, cx, shape.agent, buffer);
            draw_pipelines(pane, cx, &shape, buffer);
            draw_preview(pane, cx, shape.graph, buffer);
            let title = match pane.rollbacks.len() {
                1 => "1 rollback".to_owned(),
                count => format!("{count} rollbacks"),
            };
            if shape.rollbacks.height > 0 {
                let area = section(&title, shape.rollbacks, cx.look, buffer);
                let rows = rollback_rows(&pane.rollbacks, cx);
                grid(&ROLLBACKS, &rows, None, area, cx.look, buffer);
            }
        }
        GraphLevel::Rollbacks(first) => {
            let title = format!("rollbacks: {}", pane.rollbacks.len());
            let area = section(&title, cx.area, cx.look, buffer);
            rollbacks(&pane.rollbacks, cx).draw(*first, area, buffer);
        }
        GraphLevel::Graph { pipeline, task: Some(opened), .. } => {
            let title = format!("{} of pipeline {pipeline}", opened.key);
            let area = section(&title, cx.area, cx.look, buffer);
            tasks::task(opened, cx).draw(opened.first, area, buffer);
        }
        GraphLevel::Graph { pipeline, cursor, task: None } => {
            let Some(graph) = pane.graph(*pipeline) else {
                let area = section(&format!("pipeline {pipeline}"), cx.area, cx.look, buffer);
                let withheld = pane.withheld.as_ref().filter(|(number, _)| number == pipeline);
                let text = withheld.map_or("asking for its tasks", |(_, reason)| reason.as_str());
                let text = text.to_owned();
                return lines([Line::styled(text, cx.look.faint())], area, buffer);
            };
            let area = section(&headline(&graph.summary), shape.graph, cx.look, buffer);
            let drawn = Speculation::drawn(graph, cx);
            let (seen, selected) = cursor.seen(&drawn, list_rows(shape.graph));
            draw_tasks(graph, seen, selected, cx, area, buffer);
            let chosen = drawn.get(cursor.of(drawn.len())).map(|line| &graph.graph[line.task]);
            draw_about(chosen, tasks::scale(graph), cx, shape.about, buffer);
        }
    }
}

/// A pipeline on one line that is shorter than the command's.
fn headline(summary: &PipelineSummary) -> String {
    format!("{} ({}): {}", summary.name, summary.pipeline, standing(summary))
}

fn draw_agent(pane: &Speculation, cx: &Cx<'_>, area: Rect, buffer: &mut Buffer) {
    let look = cx.look;
    let area = section("agent", area, look, buffer);
    let Some(status) = &pane.status else {
        let text = pane.refused.as_deref().unwrap_or("asking for the agent").to_owned();
        return lines([Line::styled(text, look.faint())], area, buffer);
    };
    facts::draw(&agent(status, look), &stake(status, look), area, look, buffer);
}

fn agent(status: &SpeculationStatus, look: Look) -> Facts {
    let mode = match status.enabled {
        true => format!("{}, {}", status.mode, status.policy),
        false => "off: synchronous".to_owned(),
    };
    let breaker = match status.breaker.as_str() {
        "closed" => look.good(),
        "half_open" => look.warn(),
        _ => look.bad(),
    };
    let (undone, of) = (status.recent_rollbacks, status.recent_tasks);
    let generator = match status.generator.as_str() {
        "mock" => "mock: proves nothing",
        other => other,
    };
    let (queued, made) = (status.proofs_queued, status.proofs_proving);
    let (waiting_proofs, flying) = (status.proofs_waiting, status.proofs_in_flight);
    let (live, waiting) = (status.tasks_live, status.tasks_waiting);
    let plain = Style::new();
    let facts = [
        ("account", status.agent.to_string(), plain),
        ("mode", mode, if status.enabled { plain } else { look.warn() }),
        ("breaker", format!("{}, {undone} of {of} undone", status.breaker), breaker),
        (
            "proofs",
            format!(
                "{queued} queued, {made} made, {waiting_proofs} waiting, {flying} out, {generator}"
            ),
            plain,
        ),
        (
            "tasks",
            format!("{live} live, {waiting} waiting, depth {}", status.max_depth_current),
            if live + waiting > 0 { look.busy() } else { plain },
        ),
    ];
    facts.map(|(name, text, style)| (name, facts::styled(text, style))).into()
}

fn stake(status: &SpeculationStatus, look: Look) -> Facts {
    let plain = Style::new();
    let slashed = if status.stake_slashed.get() > 0 { look.bad() } else { plain };
    let (confirmed, undone) = (status.tasks_confirmed, status.tasks_rolled_back);
    let facts = [
        ("stake", format!("{} available", amount(*status.stake_available)), plain),
        ("bonds", format!("{} locked", amount(*status.stake_locked)), plain),
        ("slashed", amount(*status.stake_slashed), slashed),
        (
            "so far",
            format!("{confirmed} confirmed, {undone} undone of {}", status.tasks_scheduled),
            plain,
        ),
        ("rollbacks", by_name(&status.rollbacks), plain),
    ];
    facts.map(|(name, text, style)| (name, facts::styled(text, style))).into()
}

fn draw_pipelines(pane: &Speculation, cx: &Cx<'_>, shape: &SpeculationAreas, buffer: &mut Buffer) {
    let (all, accepted) = (pane.all().unwrap_or_default().len(), pane.accepted(cx));
    let title = match accepted.len() == all {
        true => format!("pipelines: {}", grouped(all as u128)),
        false => format!("pipelines: {} of {}", accepted.len(), grouped(all as u128)),
    };
    let area = section(&title, shape.pipelines, cx.look, buffer);
    if accepted.is_empty() {
        let text = match (pane.all(), &pane.refused) {
            (_, Some(reason)) => reason.clone(),
            (None, None) => "asking for the pipelines".to_owned(),
            (Some([]), None) => "no pipelines yet: cowboyctl speculation submit FILE".to_owned(),
            (Some(_), None) => unlike("pipeline", None, cx),
        };
        return lines([Line::styled(text, cx.look.faint())], area, buffer);
    }
    let (seen, selected) = pane.cursor(&accepted).seen(&accepted, list_rows(shape.pipelines));
    let row = |pipeline: &&PipelineSummary| -> Vec<Cell> {
        let undone = match pipeline.undone {
            0 => plain("-"),
            count => (count.to_string(), cx.look.warn()),
        };
        vec![
            plain(pipeline.pipeline.to_string()),
            plain(pipeline.name.clone()),
            (pipeline.status.to_string(), style_of(pipeline.status, cx.look)),
            plain(format!("{} of {}", pipeline.confirmed, pipeline.tasks)),
            undone,
            plain(millis(pipeline.elapsed_ms)),
            plain(or_dash(pipeline.synchronous_ms.map(millis))),
            plain(seconds_since(*pipeline.submitted_at, cx.now)),
        ]
    };
    let rows: Vec<_> = seen.iter().map(row).collect();
    list_grid(&PIPELINES, PIPELINES.len(), &rows, selected, area, cx, buffer);
}

/// A pipeline's value in a column.
pub fn key(pipeline: &PipelineSummary, column: usize) -> SortKey {
    match PIPELINES[column].name {
        "name" => SortKey::text(&pipeline.name),
        "status" => SortKey::text(pipeline.status),
        "confirmed" => SortKey::number(pipeline.confirmed),
        "undone" => SortKey::number(pipeline.undone),
        "took" => SortKey::number(pipeline.elapsed_ms),
        "synchronous" => SortKey::of(pipeline.synchronous_ms),
        // The youngest pipeline has the highest number.
        _ => SortKey::number(pipeline.pipeline),
    }
}

/// Draws the graph of the pipeline under the cursor, as much as fits.
fn draw_preview(pane: &Speculation, cx: &Cx<'_>, area: Rect, buffer: &mut Buffer) {
    let Some(graph) = pane.chosen(cx).and_then(|number| pane.graph(number)) else {
        return;
    };
    let inner = section(&headline(&graph.summary), area, cx.look, buffer);
    // The filter on pipelines does not hide their tasks.
    let everything = Filter::default();
    let drawn = Speculation::drawn(graph, &Cx { filter: &everything, ..*cx });
    let fits = usize::from(inner.height).saturating_sub(1);
    let shown = &drawn[..drawn.len().min(fits)];
    draw_tasks(graph, shown, None, cx, inner, buffer);
    let (_, below) = split(inner, shown.len() as u16 + 2);
    if below.height >= TASK_ROWS {
        draw_tasks_in_words(graph, &drawn, below, cx, buffer);
    }
    if drawn.len() > shown.len() && inner.height > 0 {
        let more = format!(" {} more: enter ", drawn.len() - shown.len());
        let x = inner.right().saturating_sub(more.len() as u16);
        buffer.set_stringn(x, area.y, more, inner.width.into(), cx.look.faint());
    }
}

/// Draws what each task depends on, and what became of it.
fn draw_tasks_in_words(
    graph: &Pipeline,
    drawn: &[DrawnTask],
    area: Rect,
    cx: &Cx<'_>,
    buffer: &mut Buffer,
) {
    let title = format!("tasks in words; bars of times: 0 to {}", millis(tasks::scale(graph)));
    let area = section(&title, area, cx.look, buffer);
    let mut page = Page::new(area.width, cx.look);
    for line in drawn.iter().take(area.height.into()) {
        let name = cut(&graph.graph[line.task].task, page::NAME - 1);
        for (index, text) in tasks::in_words(&graph.graph[line.task]).iter().enumerate() {
            page.plain(if index == 0 { &name } else { "" }, text);
        }
    }
    page.draw(Cursor::default(), area, buffer);
}

fn rollback_rows(rollbacks: &[Rollback], cx: &Cx<'_>) -> Vec<Vec<Cell>> {
    let row = |rollback: &Rollback| {
        let slashed = rollback.slashed.get() > 0;
        vec![
            plain(seconds_since(*rollback.at, cx.now)),
            plain(rollback.pipeline.to_string()),
            plain(rollback.task.clone()),
            (rollback.reason.clone(), cx.look.warn()),
            plain(rollback.tasks.to_string()),
            (amount(*rollback.slashed), if slashed { cx.look.bad() } else { Style::new() }),
            plain(amount(*rollback.released)),
            plain(rollback.undone.join(" ")),
        ]
    };
    rollbacks.iter().map(row).collect()
}

/// All rollbacks: the table, and below it the tasks that each one undid.
pub fn rollbacks(rollbacks: &[Rollback], cx: &Cx<'_>) -> Page {
    let mut page = Page::new(cx.area.width, cx.look);
    let accepted = |rollback: &&Rollback| {
        let Rollback { task, reason, undone, .. } = rollback;
        cx.filter.accepts(&format!("{task} {reason} {}", undone.join(" ")))
    };
    let shown: Vec<_> = rollbacks.iter().filter(accepted).cloned().collect();
    if shown.is_empty() {
        let none = match rollbacks.is_empty() {
            true => "nothing was rolled back".to_owned(),
            false => unlike("rollback", None, cx),
        };
        page.text(&none, cx.look.faint());
        return page;
    }
    // The tasks that each rollback undid are listed below.
    page.table(&ROLLBACKS[..ROLLBACKS.len() - 1], &rollback_rows(&shown, cx));
    page.title("undone, leaves first");
    for rollback in &shown {
        let name = format!("{}, {}", rollback.pipeline, rollback.task);
        let more = rollback.tasks.saturating_sub(rollback.undone.len() as u64);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        page.plain(&cut(&name, page::NAME - 1), &format!("{}{more}", rollback.undone.join(" ")));
    }
    page
}
