//! The tasks of a pipeline in the form of its graph, with the time that each spent in each step,
//! and one of them in full.

use super::{DrawnTask, OpenedTask};
use crate::{
    dashboard::{
        drawing::{Cell, Column, Page, grid, plain, section},
        look::Look,
        pane::Cx,
        rows::Cursor,
    },
    output::{
        amount, cut, grouped, millis, or_dash,
        pipeline::{one_line, parents, reached_ms, steps},
        width,
    },
};
use cowboy_devnet::types::{Pipeline, SpeculativeTask, TaskStatus, TaskTransaction};
use ratatui::{buffer::Buffer, layout::Rect, style::Style};

/// The minimum width to explain the bars of times.
const TIMED: u16 = 110;

const TASKS: [Column; 7] = [
    Column::long("task"),
    Column::text("status"),
    Column::number("depth"),
    Column::number("bond"),
    Column::number("try"),
    Column::number("at"),
    Column::long("runner"),
];

const TIME: Column = Column::text("time");

/// The parents that a task is not drawn under, if there are any.
const AFTER: Column = Column::long("also after");

/// Minimum and maximum columns of bars.
const NARROWEST: usize = 16;
const WIDEST: usize = 100;

fn style(status: TaskStatus, look: Look) -> Style {
    match status {
        TaskStatus::Waiting | TaskStatus::Cancelled => look.faint(),
        TaskStatus::Running | TaskStatus::Proving => look.busy(),
        TaskStatus::Proved | TaskStatus::Submitted => look.strong(),
        TaskStatus::Confirmed => look.good(),
        TaskStatus::Failed => look.bad(),
        TaskStatus::RolledBack => look.warn(),
    }
}

/// Draws tasks, one row each; with their times as bars if there is room.
pub fn draw_tasks(
    graph: &Pipeline,
    drawn: &[DrawnTask],
    selected: Option<usize>,
    cx: &Cx<'_>,
    area: Rect,
    buffer: &mut Buffer,
) {
    let row = |line: &DrawnTask| {
        let task = &graph.graph[line.task];
        let tries = if task.attempt > 1 { cx.look.warn() } else { Style::new() };
        vec![
            plain(format!("{}{}", line.lead, task.task)),
            (task.status.to_string(), style(task.status, cx.look)),
            plain(or_dash(task.depth)),
            plain(or_dash(task.bond.map(|bond| amount(*bond)))),
            (task.attempt.to_string(), tries),
            plain(or_dash(reached_ms(task).map(millis))),
            plain(or_dash(task.runner.clone())),
        ]
    };
    let mut columns = TASKS.to_vec();
    let mut rows: Vec<Vec<Cell>> = drawn.iter().map(row).collect();
    let wide = |index: usize, column: &Column| {
        let cells = rows.iter().map(|row| width(&row[index].0));
        cells.max().unwrap_or(0).max(width(column.name)) + 2
    };
    let taken: usize = TASKS.iter().enumerate().map(|(index, column)| wide(index, column)).sum();
    let room = usize::from(area.width).saturating_sub(taken);
    let after = drawn.iter().map(|line| width(&line.after)).max().unwrap_or(0);
    let aside = if after > 0 { after.min(room / 2).max(width(AFTER.name)) + 2 } else { 0 };
    let bars = room.saturating_sub(aside).min(WIDEST);
    if bars >= NARROWEST {
        columns.push(TIME);
        let total = scale(graph);
        for (row, line) in rows.iter_mut().zip(drawn) {
            row.push((bar(&graph.graph[line.task], total, bars), cx.look.chart()));
        }
    }
    // It takes no room from the names, because the parents of the task under the cursor are shown
    // below.
    let left = if bars >= NARROWEST { aside } else { room };
    if after > 0 && left >= width(AFTER.name) + 2 {
        columns.push(AFTER);
        for (row, line) in rows.iter_mut().zip(drawn) {
            row.push((cut(&line.after, left - 2), cx.look.faint()));
        }
    }
    grid(&columns, &rows, selected, area, cx.look, buffer);
}

/// The milliseconds that a whole bar of times spans.
pub fn scale(graph: &Pipeline) -> u64 {
    let last = graph.graph.iter().filter_map(reached_ms).max();
    last.unwrap_or(0).max(graph.summary.elapsed_ms).max(1)
}

/// The times of a task, on a scale of `total` ms: it runs, is proved, waits for its ancestors, is
/// confirmed.
fn bar(task: &SpeculativeTask, total: u64, columns: usize) -> String {
    let times = &task.times;
    let Some(start) = times.scheduled_ms else { return String::new() };
    let end = if task.status.is_final() { reached_ms(task).unwrap_or(start) } else { total };
    let steps = [
        ('█', times.executed_ms),
        ('▒', times.proved_ms),
        ('·', times.submitted_ms),
        ('═', times.confirmed_ms),
    ];
    let scaled = |at: u64| (u128::from(at) * columns as u128 / u128::from(total)) as usize;
    let cell = |column: usize| {
        let middle = (2 * column as u128 + 1) * u128::from(total) / (2 * columns as u128);
        let step = steps.iter().find(|(_, until)| until.is_none_or(|at| middle <= at.into()));
        match step {
            // Even a short execution is visible.
            _ if column == scaled(start).min(columns - 1) => '█',
            Some((sign, _)) if (start.into()..=end.into()).contains(&middle) => *sign,
            _ => ' ',
        }
    };
    let text: String = (0..columns).map(cell).collect();
    text.trim_end().to_owned()
}

/// Draws the task under the cursor, in a graph whose bars span `total` ms.
pub fn draw_about(
    task: Option<&SpeculativeTask>,
    total: u64,
    cx: &Cx<'_>,
    area: Rect,
    buffer: &mut Buffer,
) {
    let title = task.map_or("no task like that", |task| task.task.as_str());
    let area = section(title, area, cx.look, buffer);
    let Some(task) = task else { return };
    let mut page = Page::new(area.width, cx.look);
    match &task.reason {
        Some(reason) => page.fact("reason", &one_line(reason), style(task.status, cx.look)),
        None => page.plain("task id", &task.task_id.to_string()),
    }
    page.plain("depends on", &depends_on(task));
    let bytes = task.output_bytes.map(|bytes| format!("{} bytes", grouped(bytes.into())));
    page.plain("output", &bytes.unwrap_or_else(|| "none yet".to_owned()));
    if let Some(fault) = &task.fault {
        page.fact("fault", fault, cx.look.warn());
    }
    if area.width >= TIMED {
        let legend = "█ executes  ▒ is proved  · waits for ancestors  ═ is confirmed";
        let legend = format!("0 to {}: {legend}", millis(total));
        page.fact("time", &legend, cx.look.faint());
    }
    page.draw(Cursor::default(), area, buffer);
}

/// What a task depends on, what it made, and what became of it; a line each.
pub fn in_words(task: &SpeculativeTask) -> Vec<String> {
    let output = match task.output_bytes {
        Some(bytes) => format!("{} bytes of output", grouped(bytes.into())),
        None => "no output yet".to_owned(),
    };
    let mut lines = vec![format!("depends on {}; {output}", depends_on(task))];
    lines.extend(task.reason.as_ref().map(|reason| one_line(reason)));
    lines.extend(task.fault.as_ref().map(|fault| format!("fault: {}", one_line(fault))));
    lines.push(task.task_id.to_string());
    lines
}

fn depends_on(task: &SpeculativeTask) -> String {
    match task.depends_on.as_slice() {
        [] => "nothing".to_owned(),
        all => parents(all).join(", "),
    }
}

pub fn task(opened: &OpenedTask, cx: &Cx<'_>) -> Page {
    let look = cx.look;
    let mut page = Page::new(cx.area.width, look);
    let Some(detail) = &opened.known else {
        let text = opened.refused.as_deref().unwrap_or("asking for the task");
        page.text(text, look.faint());
        return page;
    };
    let task = &detail.task;
    page.fact("status", &task.status.to_string(), style(task.status, look));
    if let Some(reason) = &task.reason {
        page.fact("reason", &one_line(reason), look.warn());
    }
    page.plain("task id", &task.task_id.to_string());
    page.plain("kind", &task.kind);
    page.plain("depends on", &depends_on(task));
    page.plain("depth", &or_dash(task.depth));
    page.plain("bond", &or_dash(task.bond.map(|bond| amount(*bond))));
    page.plain("attempt", &task.attempt.to_string());
    page.plain("runner", task.runner.as_deref().unwrap_or("-"));
    if let Some(fault) = &task.fault {
        page.fact("fault", fault, look.warn());
    }
    if let Some(commitment) = &task.output_commitment {
        page.plain("commitment", &commitment.to_string());
    }
    if let Some(until) = &task.claim_expires_at {
        page.plain("claim until", &until.to_string());
    }
    page.title("steps");
    let columns = [Column::text("step"), Column::number("at"), Column::number("took")];
    let cells = |row: Vec<String>| row.into_iter().map(plain).collect();
    page.table(&columns, &steps(&task.times).into_iter().map(cells).collect::<Vec<Vec<Cell>>>());
    if !detail.transactions.is_empty() {
        page.title("transactions");
        let row = |sent: &TaskTransaction| {
            vec![plain(sent.kind.clone()), plain(sent.transaction.to_string())]
        };
        let rows: Vec<_> = detail.transactions.iter().map(row).collect();
        page.table(&[Column::text("transaction"), Column::long("hash")], &rows);
    }
    if let Some(output) = &detail.output {
        let text = detail.output_text.clone().unwrap_or_else(|| output.to_string());
        page.title(&format!("output: {} bytes", grouped(output.0.0.len() as u128)));
        let printable: Vec<_> = text.trim_end().lines().map(one_line).collect();
        page.text(&printable.join("\n"), Style::new());
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_shows_what_took_how_long() {
        let task = |status: &str, times: serde_json::Value| -> SpeculativeTask {
            serde_json::from_value(serde_json::json!({
                "pipeline": 1, "task": "t", "task_id": format!("0x{}", "00".repeat(32)),
                "kind": "custom", "depends_on": [], "status": status, "attempt": 1,
                "times": times,
            }))
            .unwrap()
        };
        let check = |status: &str, times: serde_json::Value, total, expected: &str| {
            assert_eq!(bar(&task(status, times), total, 10), expected);
        };
        let times = serde_json::json!({
            "scheduled_ms": 0, "executed_ms": 300, "proved_ms": 600, "submitted_ms": 800,
            "confirmed_ms": 1_000,
        });
        check("confirmed", times.clone(), 1_000, "███▒▒▒··══");
        // On a longer scale it ends earlier.
        check("confirmed", times, 2_000, "██▒·═");
        // A current step lasts until now; a short step is visible.
        check(
            "proving",
            serde_json::json!({"scheduled_ms": 500, "executed_ms": 501}),
            1_000,
            "     █▒▒▒▒",
        );
        check("failed", serde_json::json!({"scheduled_ms": 0, "ended_ms": 400}), 1_000, "████");
        check("waiting", serde_json::json!({}), 1_000, "");
        check("running", serde_json::json!({"scheduled_ms": 1_000}), 1_000, "         █");
    }
}
