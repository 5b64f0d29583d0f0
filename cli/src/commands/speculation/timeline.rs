//! Draws the time that each task spent in each step, as bars on one scale.

use super::{
    graph::{GAP, colour, cut},
    show::{gain, headline},
};
use crate::output::{AWAITED, BUSY, COLUMNS, DONE, Document, FAINT, HEADING, fitted, millis, room};
use anstyle::Style;
use cowboy_devnet::types::{
    Pipeline, PipelineStatus, SpeculativeTask, TaskStatus, TaskTimes, TimeText,
};
use serde::Serialize;

/// The steps of a task: how each is drawn without and with colour, and its name.
const STEPS: [(char, Style, &str); 4] = [
    ('█', BUSY, "executes"),
    ('▒', AWAITED, "is proved"),
    ('·', FAINT, "waits for ancestors"),
    ('═', DONE, "is confirmed"),
];

/// The minimum width of a bar in columns, even on a narrow terminal.
const LEAST_BAR: usize = 10;

/// The maximum and minimum columns for names, if a terminal limits them.
const MOST_NAME: usize = 24;
const LEAST_NAME: usize = 8;

/// Bars of at most `columns` columns: a line per task in the order in which they began, the
/// duration with speculation compared with the synchronous pipeline's, and a legend. Styled,
/// without a line feed at the end.
pub fn timeline(pipeline: &Pipeline, columns: usize) -> String {
    fitted(format!("{}\n\n{}", headline(&pipeline.summary), bars(pipeline, columns, "took")))
}

/// The bars alone, with `own` as the label for the pipeline's duration.
pub fn bars(pipeline: &Pipeline, columns: usize, own: &str) -> String {
    let summary = &pipeline.summary;
    let ends: Vec<_> = pipeline.graph.iter().map(end).collect();
    let end_width = ends.iter().map(|end| end.chars().count()).max().unwrap_or(0);
    let longest = pipeline.graph.iter().map(|task| task.task.chars().count()).max().unwrap_or(0);
    let most = columns.saturating_sub(LEAST_BAR + 2 * GAP.len() + end_width);
    let most = room().map_or(longest, |_| most.clamp(LEAST_NAME, MOST_NAME));
    let name_width = longest.min(most).max("TASK".len());
    let others = name_width + 2 * GAP.len() + end_width;
    let width = columns.saturating_sub(others).max(LEAST_BAR);
    let last = pipeline.graph.iter().flat_map(|task| spans(task, summary.elapsed_ms));
    let total = last.map(|(_, to)| to).max().unwrap_or(0).max(summary.elapsed_ms).max(1);

    let scale = millis(total);
    let fill = width.saturating_sub("0".len());
    let mut text = format!("{HEADING}{:name_width$}{GAP}0{scale:>fill$}{HEADING:#}", "TASK");
    let mut order: Vec<usize> = (0..pipeline.graph.len()).collect();
    order.sort_by_key(|at| pipeline.graph[*at].times.scheduled_ms.unwrap_or(u64::MAX));
    for at in order {
        let task = &pipeline.graph[at];
        let name = cut(&task.task, name_width);
        let style = colour(task.status);
        let bar = bar(&spans(task, summary.elapsed_ms), total, width);
        text +=
            &format!("\n{name:name_width$}{GAP}{bar}{GAP}{style}{:>end_width$}{style:#}", ends[at]);
    }
    if let Some(comparison) = comparison(pipeline, columns, own) {
        text += &format!("\n\n{comparison}");
    }
    let legend = STEPS.map(|(sign, style, name)| format!("{style}{sign}{style:#} {name}"));
    let wide: usize = STEPS.iter().map(|(.., name)| GAP.len() + 2 + name.chars().count()).sum();
    let between = if room().is_some_and(|columns| wide > columns) { "\n" } else { GAP };
    fitted(format!("{text}\n\n{}", legend.join(between)))
}

/// The time when a task was confirmed, or its status instead.
fn end(task: &SpeculativeTask) -> String {
    match (task.status, task.times.confirmed_ms) {
        (TaskStatus::Confirmed, Some(at)) => millis(at),
        (status, _) => status.to_string(),
    }
}

/// The start and end of each step of a task, in ms; a current step ends now. There are fewer spans
/// than steps if the task has not come so far.
fn spans(task: &SpeculativeTask, now: u64) -> Vec<(u64, u64)> {
    let TaskTimes { scheduled_ms, executed_ms, proved_ms, submitted_ms, confirmed_ms, ended_ms } =
        task.times;
    let ends = [executed_ms, proved_ms, submitted_ms, confirmed_ms];
    let Some(mut from) = scheduled_ms else { return Vec::new() };
    let mut spans = Vec::with_capacity(ends.len());
    for end in ends {
        let until = match end {
            Some(end) => end,
            None if task.status.is_final() => ended_ms.unwrap_or(from),
            None => now,
        };
        spans.push((from, until.max(from)));
        if end.is_none() {
            break;
        }
        from = until.max(from);
    }
    spans
}

/// Spans as cells, `width` of them for `total` ms. Even a short span gets a cell, after those of
/// the previous span; there are four spans at most, so the rest moves by less than that.
fn bar(spans: &[(u64, u64)], total: u64, width: usize) -> String {
    let total = u128::from(total);
    let cell = |ms: u64| ((u128::from(ms) * width as u128 + total / 2) / total) as usize;
    let (mut text, mut filled) = (String::new(), 0);
    for ((from, to), (sign, style, _)) in spans.iter().zip(STEPS) {
        let start = cell(*from).max(filled).min(width);
        text += &" ".repeat(start - filled);
        filled = start;
        if from < to {
            let end = cell(*to).max(start + 1).min(width);
            let cells: String = std::iter::repeat_n(sign, end - start).collect();
            text += &format!("{style}{cells}{style:#}");
            filled = end;
        }
    }
    text + &" ".repeat(width - filled)
}

/// The pipeline's duration and the synchronous one, on a separate scale.
fn comparison(pipeline: &Pipeline, columns: usize, own: &str) -> Option<String> {
    let summary = &pipeline.summary;
    let Some(synchronous) = summary.synchronous_ms else {
        return (summary.status == PipelineStatus::Running)
            .then(|| "synchronously: known when all are confirmed".to_owned());
    };
    let took = millis(summary.elapsed_ms);
    let times = gain(summary).map_or_else(String::new, |times| format!(", {times} times as long"));
    let rows = [
        (own, summary.elapsed_ms, took, DONE),
        ("synchronously", synchronous, millis(synchronous) + &times, FAINT),
    ];
    let names = rows.iter().map(|(name, ..)| name.len()).max().unwrap_or(0);
    let ends = rows.iter().map(|(_, _, end, _)| end.chars().count()).max().unwrap_or(0);
    let width = columns.saturating_sub(names + 2 * GAP.len() + ends).max(LEAST_BAR);
    let most = u128::from(summary.elapsed_ms.max(synchronous).max(1));
    let lines = rows.map(|(name, ms, end, style)| {
        let cells = (u128::from(ms) * width as u128).div_ceil(most) as usize;
        format!("{name:names$}{GAP}{style}{}{style:#}{GAP}{end}", "━".repeat(cells))
    });
    Some(lines.join("\n"))
}

/// A timeline for programs: the times of each task, in ms since the pipeline was accepted.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Timeline<'a> {
    pipeline: u64,
    name: &'a str,
    status: PipelineStatus,
    submitted_at: TimeText,
    elapsed_ms: u64,
    synchronous_ms: Option<u64>,
    tasks: Vec<Timed<'a>>,
    #[serde(skip)]
    drawn: &'a Pipeline,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Timed<'a> {
    id: &'a str,
    status: TaskStatus,
    #[serde(flatten)]
    times: TaskTimes,
}

impl<'a> Timeline<'a> {
    pub fn of(pipeline: &'a Pipeline) -> Self {
        let timed = |task: &'a SpeculativeTask| Timed {
            id: &task.task,
            status: task.status,
            times: task.times,
        };
        let summary = &pipeline.summary;
        Self {
            pipeline: summary.pipeline,
            name: &summary.name,
            status: summary.status,
            submitted_at: summary.submitted_at,
            elapsed_ms: summary.elapsed_ms,
            synchronous_ms: summary.synchronous_ms,
            tasks: pipeline.graph.iter().map(timed).collect(),
            drawn: pipeline,
        }
    }
}

impl Document for Timeline<'_> {
    fn text(&self) -> String {
        anstream::adapter::strip_str(&timeline(self.drawn, COLUMNS)).to_string()
    }

    fn id(&self) -> String {
        self.pipeline.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::{super::graph::samples, *};
    use crate::output::within;

    fn drawn(pipeline: &Pipeline, columns: usize) -> String {
        let text = within(Some(columns), || timeline(pipeline, columns));
        let text = anstream::adapter::strip_str(&text).to_string();
        for line in text.lines() {
            assert!(line.chars().count() <= columns, "{line}");
        }
        text
    }

    #[test]
    fn a_chain_overlaps_and_is_confirmed_in_order() {
        insta::assert_snapshot!(drawn(&samples::chain(5), 80));
    }

    #[test]
    fn what_has_not_ended_goes_on_until_now() {
        insta::assert_snapshot!(drawn(&samples::statuses(), 70));
    }

    #[test]
    fn a_narrow_terminal_cuts_and_nothing_else_does() {
        let mut long = samples::chain(3);
        long.graph[0].task = "a-task-with-a-name-of-many-more-columns".to_owned();
        for columns in 10..100 {
            drawn(&long, columns);
        }
        insta::assert_snapshot!(drawn(&long, 40));
        assert!(timeline(&long, 40).contains(&long.graph[0].task));
    }

    #[test]
    fn the_shortest_step_has_a_cell() {
        let plain = |spans: &[(u64, u64)], total, width| {
            anstream::adapter::strip_str(&bar(spans, total, width)).to_string()
        };
        assert_eq!(plain(&[(0, 1), (1, 500), (500, 500), (500, 1_000)], 1_000, 10), "█▒▒▒▒═════");
        assert_eq!(plain(&[(200, 201), (201, 202), (202, 203)], 1_000, 10), "  █▒·     ");
        assert_eq!(plain(&[(0, 2_000)], 1_000, 4), "████");
        assert_eq!(plain(&[], 1, 3), "   ");
        assert_eq!(plain(&[(0, u64::MAX)], u64::MAX, 3), "███");
    }
}
